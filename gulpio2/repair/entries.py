"""How far an entry of a damaged map can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.errors import GulpError
from gulpio2.format.entry import (
    ENTRY_KEYS,
    EXTRAS_KEY,
    EntryExtras,
    covered_part,
    load_extras,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.format.removals import Removals

__all__ = ["deleted_frames", "known_part", "read_entry"]


def read_entry(
    id_: str, entry: dict[str, Any]
) -> tuple[EntryExtras, bool, list[int | None]]:
    """Decode the extras of an entry, and say whether it is what was written.

    Parameters
    ----------
    id_ : str
        The item.
    entry : dict
        Its entry, which has the form of one.

    Returns
    -------
    extras : EntryExtras
        Empty where they cannot be read.
    trusted : bool
        Whether the entry is what was written. One without a check, which is one of
        GulpIO2, is trusted as far as its frames are.
    checksums : list of int or None
        The CRC-32 of each frame; None for a frame that GulpIO2 has stored.
    """
    num_frames = len(entry["frame_info"])
    try:
        extras = load_extras(entry, where=id_)
        written = covered_part(id_, entry) if EXTRAS_KEY in entry else entry
    except (GulpError, ValueError, TypeError, RecursionError):
        return EntryExtras(), False, [None] * num_frames
    crc32 = extras.crc32
    if written is not None and not len(crc32):  # GulpIO2 may have appended frames
        crc32 = load_extras(written, where=id_).crc32
    unknown = [None] * (num_frames - len(crc32))
    return extras, written is not None, [*crc32.tolist(), *unknown]


def known_part(id_: str, entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Leave out of an entry what is under keys that the format does not have.

    Damage may have hit the name of the key of the extras. One without that key would be
    taken for one of GulpIO2, which has neither times nor checksums to lose.

    Parameters
    ----------
    id_ : str
        The item.
    entry : dict
        Its entry, which has the form of one.

    Returns
    -------
    part : dict
        With its extras under their own key, if their check shows that they are it.
    unknown : list of str
        The keys that are no part of it, or that its check covers all the same: what is
        under them cannot be stored again.
    """
    unknown = [key for key in entry if key not in ENTRY_KEYS]
    if len(unknown) == 1 and EXTRAS_KEY not in entry:
        (wrong,) = unknown
        part = {EXTRAS_KEY if key == wrong else key: entry[key] for key in entry}
        if read_entry(id_, part)[1]:
            return part, []
    if not unknown or read_entry(id_, entry)[1]:
        return entry, unknown
    return {key: entry[key] for key in entry if key in ENTRY_KEYS}, unknown


def deleted_frames(removals: Removals | None) -> Iterator[tuple[int, int, int]]:
    """Give length, checksum and offset of frames of deleted items that have one."""
    for pairs in removals.deleted.values() if removals else ():
        for id_, entry in pairs:
            checksums = read_entry(id_, entry)[2]
            for (loc, pad, length), crc32 in zip(
                entry["frame_info"], checksums, strict=True
            ):
                if crc32 is not None:
                    yield length - pad, crc32, loc
