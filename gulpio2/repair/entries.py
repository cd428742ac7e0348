"""How far an entry of a damaged map can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.errors import GulpError
from gulpio2.format.entry import (
    EXTRAS_KEY,
    EntryExtras,
    covered_part,
    load_extras,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.format.removals import Removals

__all__ = ["deleted_frames", "read_entry"]


def read_entry(
    id_: str, entry: dict[str, Any]
) -> tuple[EntryExtras, bool, Sequence[int]]:
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
    crc32 : sequence of int
        The checksums of its first frames. Those that GulpIO2 added have none.
    """
    extras, trusted = _trust(id_, entry)
    crc32 = extras.crc32
    if trusted and not len(crc32) and EXTRAS_KEY in entry:
        before = covered_part(id_, entry)
        if before is not None:
            crc32 = load_extras(before, where=id_).crc32
    return extras, trusted, crc32.tolist()


def _trust(id_: str, entry: dict[str, Any]) -> tuple[EntryExtras, bool]:
    try:
        extras = load_extras(entry, where=id_)
        if EXTRAS_KEY not in entry:
            return extras, True
        return extras, covered_part(id_, entry) is not None
    except (GulpError, ValueError, TypeError, RecursionError):
        return EntryExtras(), False


def deleted_frames(removals: Removals | None) -> Iterator[tuple[int, int]]:
    """Give length and checksum of the frames of deleted items that have one."""
    for pairs in removals.deleted.values() if removals else ():
        for id_, entry in pairs:
            stored = read_entry(id_, entry)[2]
            for (_, pad, length), crc32 in zip(
                entry["frame_info"], stored, strict=False
            ):
                yield length - pad, crc32
