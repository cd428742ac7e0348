"""The map of a chunk, to bytes and back."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from gulpio2.errors import ChunkMismatchError, MetaFileError, with_article
from gulpio2.format.wording import shown

__all__ = [
    "advice_for_pickle",
    "dump_gmeta",
    "dump_text",
    "end_of",
    "is_no_metadata",
    "join_gmeta",
    "load_gmeta",
    "load_ordered_json",
    "load_pairs",
    "may_have_an_entry",
    "refuse_cut_data",
    "validate_entry",
]

# Bytes. No file is longer, and the system's calls take no larger number.
_MAX_OFFSET = 2**63 - 1
# An ASCII character that stands in JSON as an escape and has no need to.
_NEEDLESS = re.compile(rb"\\(?:u00[2-7]|/)")
# Ids up to which a search for each takes less time than parsing.
_MOST_SOUGHT = 16
_HINT = "Run `gulp2 check` on the directory for a full list"


def dump_text(text: str) -> str:
    """Write a string as JSON: what `json.dumps` gives, at a tenth of its time."""
    return encode_basestring_ascii(text)


def dump_gmeta(meta_dict: Mapping[str, Any]) -> bytes:
    """Write a map as GulpIO2 0.0.4 writes it: ``json.dump`` with its defaults.

    Parameters
    ----------
    meta_dict : mapping
        Id to entry, in the order to be kept.

    Returns
    -------
    bytes
        One line of ASCII without a final newline. ``NaN`` and ``Infinity`` are
        written as such literals.
    """
    return json.dumps(meta_dict).encode("ascii")


def join_gmeta(entries: Mapping[str, str]) -> bytes:
    """Write a map of entries that are JSON already: the bytes of `dump_gmeta`."""
    items = (f"{dump_text(id_)}: {text}" for id_, text in entries.items())
    return f"{{{', '.join(items)}}}".encode("ascii")


def load_ordered_json(data: bytes, *, where: str, advice: str = "") -> Any:
    """Parse JSON into ordered mappings, refusing what cannot be parsed by name.

    Parameters
    ----------
    data : bytes
        The whole file.
    where : str
        Its path, for the message.
    advice : str, optional
        What may be done about a damaged one that is no map, for the message.

    Raises
    ------
    MetaFileError
        Not JSON, or an object that has one key twice at the top level.
    """
    try:
        value, last = _parsed(data, OrderedDict)
    except (ValueError, RecursionError) as cause:
        advice = advice or ". ".join(filter(None, (advice_for_pickle(data), _HINT)))
        raise MetaFileError(
            f"{where}: {len(data)} bytes that are not JSON ({cause}). {advice}"
        ) from cause
    if isinstance(value, OrderedDict) and len(value) != len(last):
        seen: set[str] = set()
        twice = next(key for key, _ in last if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add() is the else
        what = "key" if advice else "id"
        raise MetaFileError(
            f"{where}: {what} {twice!r} appears twice. {advice or _HINT}"
        )
    return value


def advice_for_pickle(data: bytes) -> str:
    """Say how a map that is a pickle becomes one that is JSON; nothing of another.

    `PickleSerializer` writes such maps. They are whole, and what salvages the frames
    alone would lose their ids and metadata.
    """
    if not (data[:1] == b"\x80" and data.endswith(b".")):
        return ""
    return (
        "It seems to be a pickle, which runs code when it is loaded. If you trust it, "
        "json_serializer.dump(pickle_serializer.load(path), path), both of "
        "gulpio2.fileio, writes the file anew as JSON"
    )


def load_pairs(data: bytes) -> list[tuple[str, Any]]:
    """Give the entries of a map, those of a repeated id all, whatever they hold.

    Raises
    ------
    MetaFileError
        It is no JSON object.
    ValueError, RecursionError
        It is no JSON.
    """
    value, last = _parsed(data, dict)
    if not isinstance(value, dict):
        raise MetaFileError(
            f"holds no JSON object but {with_article(type(value).__name__)}"
        )
    return last


def _parsed(data: bytes, kind: type[dict[str, Any]]) -> tuple[Any, list[Any]]:
    """Parse JSON; give the pairs of the object that ends last, repeated keys and all.

    That is the one around all others, where the whole is an object.
    """
    last: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal last
        last = pairs
        return kind(pairs)

    return json.loads(data, object_pairs_hook=keep), last


def may_have_an_entry(data: bytes, ids: Collection[str]) -> bool:
    """Tell whether a map may have one of these ids, without parsing it.

    Parameters
    ----------
    data : bytes
        The whole file.
    ids : collection of str
        Sought.

    Returns
    -------
    bool
        False only where none of them is a key, however the map is written.

    Examples
    --------
    >>> may_have_an_entry(b'{"clip_7": {}}', ["7", "clip_70"])
    False
    """
    if len(ids) > _MOST_SOUGHT or b"\0" in data or _NEEDLESS.search(data):
        return True  # by NUL, it is in UTF-16 or UTF-32
    keys = map(dump_text, ids)
    return any("\\" in key or key.encode("ascii") in data for key in keys)


def load_gmeta(data: bytes, *, where: str) -> OrderedDict[str, Any]:
    """Read a map.

    Parameters
    ----------
    data : bytes
        The whole file.
    where : str
        Its path, for the message.

    Returns
    -------
    OrderedDict
        Id to entry, in file order; mappings inside are ordered as well.

    Raises
    ------
    MetaFileError
        It is not a valid map; the message gives the item and the place.
    """
    value = load_ordered_json(data, where=where)
    if not isinstance(value, OrderedDict):
        raise MetaFileError(f"{where}: holds no JSON object. {_HINT}")
    for id_, entry in value.items():
        if fault := validate_entry(entry):
            raise MetaFileError(f"{where}: item {id_!r}: {fault}. {_HINT}")
    return value


def end_of(entries: Mapping[str, Any]) -> int:
    """Give where the last record of a map ends."""
    infos = (info for entry in entries.values() for info in entry["frame_info"])
    return max((offset + length for offset, _, length in infos), default=0)


def refuse_cut_data(where: str, size: int, end: int, advice: str) -> None:
    """Refuse a data file that is shorter than its map says.

    Parameters
    ----------
    where : str
        Its path, for the message.
    size : int
        Its length in bytes.
    end : int
        Where the last record of the map ends; see `end_of`.
    advice : str
        What was left undone, and what to do now.

    Raises
    ------
    ChunkMismatchError
        It is.
    """
    if size < end:
        raise ChunkMismatchError(
            f"{where} ends at byte {size}, and its map speaks of {end}: frames are "
            f"lost. {advice}"
        )


def is_no_metadata(meta: Any) -> bool:
    """Tell what 0.0.4 stores, and reads as an empty dict, where it is given nothing.

    Examples
    --------
    >>> [is_no_metadata(meta) for meta in (None, [], "", {}, 0, ["a"])]
    [True, True, True, False, False, False]
    """
    return meta is None or (isinstance(meta, (list, str)) and not meta)


def validate_entry(entry: Any) -> str | None:
    """Say what is wrong with an entry, or None.

    The spans are checked to be whole numbers that can be a record; whether they lie
    inside of the data file is known only where that file is.
    """
    if not isinstance(entry, Mapping):
        return f"is {type(entry).__name__} and no object"
    infos = entry.get("frame_info")
    if not isinstance(infos, list):
        return "has no list (at `$.frame_info`)"
    for index, info in enumerate(infos):
        if not (
            isinstance(info, (list, tuple))
            and len(info) == 3
            and type(info[0]) is int
            and type(info[1]) is int
            and type(info[2]) is int
            and info[0] >= 0
            and 0 <= info[1] <= 3
            and info[1] <= info[2]
            and info[0] + info[2] <= _MAX_OFFSET
        ):
            return (
                f"{shown(info)} is no [loc, pad, length] (at `$.frame_info[{index}]`)"
            )
    metas = entry.get("meta_data")
    if not isinstance(metas, list) or not all(
        isinstance(meta, Mapping) or is_no_metadata(meta) for meta in metas
    ):
        return "has no list of objects (at `$.meta_data`)"
    extras = entry.get("gulp2", {})
    if not isinstance(extras, Mapping):
        return "is no object (at `$.gulp2`)"
    return None
