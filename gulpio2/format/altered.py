"""Entries that are not what their checks say, found in the text of a map.

`gulpio2.format.entry.verify_entry` makes JSON of an entry again to compare it. As maps
are written, all that its check covers stands in the map already.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from gulpio2.errors import CorruptFrameError, MetaFileError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import EXTRAS_KEY, stored_crc32, verify_entry
from gulpio2.format.gmeta import dump_text
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["altered_ids", "crc32_to_compare", "describe_altered", "is_altered"]

_END = b', "check": "%s"}}'
_CRC32_BYTES = 4
_END_LENGTH = len(_END % (8 * b"0"))


def altered_ids(data: bytes, entries: Mapping[str, Any]) -> list[str]:
    """Give the ids of a map whose entries are not what their checks say.

    Parameters
    ----------
    data : bytes
        The whole map.
    entries : mapping
        What it says: id to entry, each of them valid.
    """
    found: list[str] = []
    view = memoryview(data)
    at = 0
    for key, entry in entries.items():
        if EXTRAS_KEY not in entry:
            continue
        id_ = str(key)  # of a client's own serializer it may be no text
        extras = entry[EXTRAS_KEY]
        check = extras.get("check") if isinstance(extras, dict) else None
        text = check if isinstance(check, str) else ""
        end = _END % text.encode("ascii", "backslashreplace")
        # Of a map in another form nothing is found, and looked for once.
        start = data.find(b"%s: " % dump_text(id_).encode("ascii"), at)
        stop = data.find(end, start) + len(end) if start >= 0 else 0
        at = stop if stop >= len(end) else len(data)
        if not _has_check(view[start:at], id_) and _is_other(id_, entry):
            found.append(id_)
    return found


def is_altered(text: memoryview, id_: str) -> bool:
    """Tell whether an entry is not what its check says.

    Parameters
    ----------
    text : memoryview
        The entry as it stands in the map, from the quote before its id.
    id_ : str
        Its id.
    """
    if _has_check(text, id_):
        return False
    return _is_other(id_, json.loads(b"{%s}" % text)[id_])


def describe_altered(id_: str, number: int) -> str:
    """Say that entries of a map are not what their checks say.

    Parameters
    ----------
    id_ : str
        The first of them.
    number : int
        How many there are.
    """
    others = f" (and of {counted(number - 1, 'other', spec=',')})" if number > 1 else ""
    return (
        f"the entry of item {id_!r}{others} is not what its check says: another "
        "program has changed it, or it is damaged, and so its metadata may be wrong. "
        "Run `gulp2 check` on the directory"
    )


def _has_check(text: memoryview, id_: str) -> bool:
    """Tell whether a text ends with the check of what is before it."""
    key = dump_text(id_).encode("ascii")
    start = len(key) + len(": ")
    check = crc32_of(b"[%s, " % key)  # of pieces, since the text may be long
    check = crc32_of(text[start:-_END_LENGTH], check)
    check = crc32_of(b"}}]", check)
    return (
        text[-_END_LENGTH:] == _END % (b"%08x" % check)
        and text[:start] == b"%s: " % key
    )


def _is_other(id_: str, entry: Mapping[str, Any]) -> bool:
    try:
        verify_entry(id_, entry, where="")
    except MetaFileError:
        return True
    return False


def crc32_to_compare(
    entry: Mapping[str, Any], indices: Sequence[int]
) -> list[int] | None:
    """Give the checksums that frames are to be compared with.

    As `stored_crc32` does, which gives None for damaged ones, too.

    Raises
    ------
    CorruptFrameError
        There were some, and they cannot be told any more.
    """
    found = stored_crc32(entry, indices)
    extras = entry.get(EXTRAS_KEY) if found is None else None
    text = extras.get("crc32", "") if isinstance(extras, dict) else ""
    if not _is_list(text):
        raise CorruptFrameError(
            "the checksums of its frames are damaged, in its entry, so that nothing "
            "tells whether the frames are. Run `gulp2 check` on the directory; "
            "GulpDirectory(path, verify=False) gives what is there"
        )
    return found


def _is_list(text: Any) -> bool:
    """Tell whether it is the base64 of some checksums."""
    try:
        return len(base64.b64decode(text, validate=True)) % _CRC32_BYTES == 0
    except (TypeError, ValueError):
        return False
