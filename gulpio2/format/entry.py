"""What is added to an item's entry in the map: checksums, times, source facts.

All of it lies under one key that GulpIO2 0.0.4 ignores (``docs/format.md``, rules
12 to 17)::

    "gulp2": {"crc32": "<base64>", "time_base": [1, 14336], "pts": [[0, 512, 280]],
              "source": {"width": 340, ...}, "check": "8f0a11c2"}
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gulpio2.errors import MetaFileError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.gmeta import dump_text
from gulpio2.format.tick_runs import expand_runs, ticks_to_runs
from gulpio2.format.wording import shown

if TYPE_CHECKING:
    from gulpio2.types import JsonValue

__all__ = [
    "ENTRY_KEYS",
    "EXTRAS_KEY",
    "EntryExtras",
    "GrowingExtras",
    "checked_extras",
    "covered_part",
    "dump_extras",
    "entry_check",
    "load_extras",
    "seal_entry",
    "stored_crc32",
    "verify_entry",
]

EXTRAS_KEY = "gulp2"
ENTRY_KEYS = frozenset({"frame_info", "meta_data", EXTRAS_KEY})
_MAX_TRIES = 100  # numbers of metadata, from either end: few were there, or few came
_NO_CRC32: npt.NDArray[np.uint32] = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class EntryExtras:
    """The extras of one item, decoded."""

    crc32: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_CRC32)
    """One CRC-32 per frame over the JPEG bytes, padding left out; empty if unknown."""
    time_base: Fraction | None = None
    """Seconds per tick of `pts`."""
    pts: tuple[int, ...] = ()
    """Presentation time of each frame in ticks; empty if unknown."""
    source: Mapping[str, JsonValue] = field(default_factory=dict)
    """Facts of the source file."""
    check: str | None = None
    """CRC-32 of the entry, eight hexadecimal digits; None where there is none."""


@dataclass(slots=True)
class GrowingExtras:
    """What is gathered for an item's extras while its frames are written."""

    infos: list[Any] = field(default_factory=list)
    """The frames that all of it is about."""
    crc32: list[int] = field(default_factory=list)
    pts: list[int] = field(default_factory=list)
    time_base: Fraction | None = None
    source: Mapping[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Mapping[str, Any], *, where: str) -> GrowingExtras | None:
        """Go on with those of an entry; None where frames have no checksums."""
        extras = load_extras(entry, where=where)
        infos = list(entry["frame_info"])
        if len(extras.crc32) != len(infos):
            return None
        crc32 = [int(crc) for crc in extras.crc32]
        return cls(infos, crc32, list(extras.pts), extras.time_base, extras.source)

    def add(
        self,
        infos: Sequence[Any],
        times: Sequence[int | None],
        time_base: Fraction | None,
    ) -> bool:
        """Take frames, whose checksums are here already; say whether times are lost.

        They are kept only where every frame of the item has one, on one time base.
        """
        num_before = len(self.infos)
        self.infos.extend(infos)
        ticks = [tick for tick in times if tick is not None]
        if not times:
            return False
        if (
            len(ticks) == len(times)
            and time_base is not None
            and (not num_before or self.time_base == time_base)
            and len(self.pts) == num_before
        ):
            self.pts.extend(ticks)
            self.time_base = time_base
            return False
        lost, self.pts = self.pts if num_before else ticks, []
        return bool(lost)

    def fits(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry has these frames: it may have been edited."""
        infos = list(entry["frame_info"])
        return self.infos == infos or [*map(tuple, self.infos)] == [*map(tuple, infos)]

    def dump(self) -> dict[str, JsonValue]:
        """Make the value of the ``gulp2`` key, ``check`` left out."""
        return dump_extras(
            crc32=self.crc32,
            time_base=self.time_base,
            pts=self.pts,
            source=self.source,
        )


def dump_extras(
    *,
    crc32: Sequence[int],
    time_base: Fraction | None = None,
    pts: Sequence[int] = (),
    source: Mapping[str, JsonValue] | None = None,
) -> dict[str, JsonValue]:
    """Make the value of the ``gulp2`` key, ``check`` left out.

    Parameters
    ----------
    crc32 : sequence of int
        One per frame.
    time_base : Fraction, optional
        Seconds per tick; times are written only together with it.
    pts : sequence of int, optional
        One per frame, or none.
    source : mapping, optional
        Facts of the source.
    """
    packed = struct.pack(f"<{len(crc32)}I", *crc32)
    extras: dict[str, JsonValue] = {
        "crc32": binascii.b2a_base64(packed, newline=False).decode("ascii")
    }
    if time_base is not None and pts:
        extras["time_base"] = [time_base.numerator, time_base.denominator]
        extras["pts"] = [list(run) for run in ticks_to_runs(pts)]
    if source:
        extras["source"] = dict(source)
    return extras


def entry_check(id_: str, entry: Mapping[str, Any]) -> str:
    """Compute the check of an entry: eight hexadecimal digits; none if it is no JSON.

    It is the CRC-32 of the JSON (separators ``", "`` and ``": "``, ASCII) of
    ``[id, entry]``, with the ``check`` itself left out of the entry.
    """
    extras = {key: value for key, value in entry[EXTRAS_KEY].items() if key != "check"}
    try:
        text = json.dumps([id_, {**entry, EXTRAS_KEY: extras}])
    except (TypeError, ValueError, RecursionError):
        return ""
    return f"{crc32_of(text.encode('ascii')):08x}"


def checked_extras(id_: str, entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the extras of an entry with its check; None where JSON cannot hold it."""
    extras = {key: value for key, value in entry[EXTRAS_KEY].items() if key != "check"}
    check = entry_check(id_, entry)
    return {**extras, "check": check} if check else None


def seal_entry(id_: str, entry: dict[str, Any]) -> str:
    """Add its check to an entry, and give the JSON of it: the work of both at once.

    Parameters
    ----------
    id_ : str
        The item.
    entry : dict
        With extras as its last key, and no check in them.
    """
    extras = entry[EXTRAS_KEY]
    covered = json.dumps(entry)
    check = f"{crc32_of(f'[{dump_text(id_)}, {covered}]'.encode('ascii')):08x}"
    extras["check"] = check
    return f'{covered[:-2]}, "check": "{check}"}}}}'


def covered_part(id_: str, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the part of an entry that its check covers.

    That is the whole entry, or, where GulpIO2 0.0.4 has appended frames to the item
    or metadata, the entry as it was before (rule 17).

    Parameters
    ----------
    id_ : str
        The item.
    entry : mapping
        Its entry, with extras that `load_extras` has found in order.

    Returns
    -------
    mapping or None
        None where the check is not that of the content.
    """
    check = entry[EXTRAS_KEY].get("check")
    if check == entry_check(id_, entry):
        return entry
    packed = base64.b64decode(entry[EXTRAS_KEY].get("crc32", ""))
    metas = entry["meta_data"]
    frame_info = entry["frame_info"][: len(packed) // 4]
    numbers = range(len(metas))
    for num_metas in {*numbers[:_MAX_TRIES], *numbers[-_MAX_TRIES:]}:
        before = {**entry, "frame_info": frame_info, "meta_data": metas[:num_metas]}
        if check == entry_check(id_, before):
            return before
    return None


def verify_entry(id_: str, entry: Mapping[str, Any], *, where: str) -> None:
    """Compare an entry with its check; one without extras has none.

    Raises
    ------
    MetaFileError
        Something of it has changed since it was written.
    """
    if EXTRAS_KEY not in entry:
        return
    load_extras(entry, where=where)
    if covered_part(id_, entry) is None:
        raise MetaFileError(
            f"{where}: its check is not that of its content: something of the entry "
            "has changed since it was written. Run `gulp2 check` on the directory for "
            "a full list, `gulp2 repair` to salvage the rest"
        )


def stored_crc32(entry: Mapping[str, Any], indices: Sequence[int]) -> list[int] | None:
    """Give the checksums of some frames, without decoding times and the rest.

    Parameters
    ----------
    entry : mapping
        Its extras may be damaged.
    indices : sequence of int
        Which frames, from 0.

    Returns
    -------
    list of int or None
        None where not each frame of the item has one: another program that knows
        nothing of them has changed it, or they are damaged. Nothing holds for any then.
    """
    extras = entry.get(EXTRAS_KEY)
    text = extras.get("crc32") if isinstance(extras, Mapping) else None
    checksums = _unpacked(text) if isinstance(text, str) else None
    if not checksums or len(checksums) != len(entry["frame_info"]):
        return None
    return [checksums[index] for index in indices]


# For all items of a directory that is opened without an index, mostly; decoding takes
# half as long as all else that a clip is asked for with.
@lru_cache(maxsize=1024)
def _unpacked(text: str) -> array[int] | None:
    """Decode checksums, for each clip of an item anew; None where they are damaged."""
    try:
        checksums = array("I", base64.b64decode(text, validate=True))
    except ValueError:
        return None
    if sys.byteorder == "big":
        checksums.byteswap()
    return checksums


def load_extras(entry: Mapping[str, Any], *, where: str) -> EntryExtras:
    """Decode the extras of an entry.

    Parameters
    ----------
    entry : mapping
        The item's entry; without the ``gulp2`` key the extras are empty, and also
        where it has checksums for fewer frames than there are: another program has
        added frames, and nothing of the extras holds for the item any more (rule 17).
    where : str
        The item and its file, for the message.

    Raises
    ------
    MetaFileError
        They are not what the format says; ``gulp2 check`` lists every such entry.
    """
    extras = entry.get(EXTRAS_KEY)
    if extras is None:
        return EntryExtras()
    num_frames = len(entry["frame_info"])
    try:
        packed = base64.b64decode(extras.get("crc32", ""), validate=True)
        if len(packed) % 4 or len(packed) > 4 * num_frames:
            raise MetaFileError(f"{len(packed)} bytes of crc32 for {num_frames} frames")
        if len(packed) < 4 * num_frames:
            # 0.0.4 appended frames to the item and knows nothing of the extras.
            return EntryExtras()
        time_base = _load_time_base(extras.get("time_base"))
        pts = expand_runs(extras["pts"], num_frames) if "pts" in extras else ()
        source = extras.get("source", {})
        check = extras.get("check")
        if not isinstance(source, Mapping):
            raise MetaFileError(f"source is {shown(source)} and no object")
        if check is not None and not isinstance(check, str):
            raise MetaFileError(f"check is {shown(check)} and no string")
    except (ValueError, TypeError, AttributeError) as cause:
        raise MetaFileError(
            f"{where}: the '{EXTRAS_KEY}' part of the entry is damaged: {cause}. "
            "Run `gulp2 check` on the directory for a full list"
        ) from cause
    return EntryExtras(
        crc32=np.frombuffer(packed, "<u4"),
        time_base=time_base,
        pts=pts,
        source=source,
        check=check,
    )


def _load_time_base(value: Any) -> Fraction | None:
    if value is None:
        return None
    parts = value if isinstance(value, list) else []
    if len(parts) != 2 or not all(type(part) is int and part > 0 for part in parts):
        raise MetaFileError(
            f"time_base is {shown(value)} and no [numerator, denominator]"
        )
    return Fraction(*parts)
