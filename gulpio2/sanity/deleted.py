"""Frames of deleted items that are in the data file no more."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.format.checks import Record

__all__ = ["not_shared", "overwritten"]


def not_shared(deleted: Sequence[Record], present: Iterable[Record]) -> list[Record]:
    """Leave out deleted records that are also those of another item.

    Items that GulpIO2 0.0.4, or an edit of a map, has written may share frames. What is
    present keeps them, and of several deleted items the first one accounts for them.
    """
    places = {record[:3] for record in deleted}
    known = {record[:3]: record.crc32 for record in present if record[:3] in places}
    kept = []
    for record in deleted:
        frames = {known.get(record[:3]), record.crc32} - {None}
        if record[:3] not in known or len(frames) > 1:  # another was in its place
            known.setdefault(record[:3], record.crc32)
            kept.append(record)
    return kept


def overwritten(deleted: Sequence[Record], present: Sequence[Record]) -> set[int]:
    """Find deleted records that share bytes with what was written after them.

    Parameters
    ----------
    deleted : sequence of Record
        Records of deleted items, those that were deleted first at first.
    present : sequence of Record
        Records of items that are there.

    Returns
    -------
    set of int
        Their places in `deleted`.

    Notes
    -----
    Nothing is written over the frames of an item before they are erased: of two
    records that share bytes, the one that was deleted first was erased then.
    """
    records = [*deleted, *present]
    found: set[int] = set()
    # What began before, and may go on: by rank, where all that is present is the last.
    newest: list[tuple[int, int]] = []
    oldest: list[tuple[int, int, int]] = []
    places = [place for place, record in enumerate(records) if record.length]
    for place in sorted(places, key=lambda place: records[place].loc):
        loc, rank = records[place].loc, min(place, len(deleted))
        stop = loc + records[place].length
        while newest and newest[0][1] <= loc:
            heappop(newest)
        if newest and -newest[0][0] > rank:
            found.add(place)
        # Whoever is found here, or has ended, need not be looked at again.
        while oldest and oldest[0][0] < rank:
            _, other_stop, other = heappop(oldest)
            if other_stop > loc:
                found.add(other)
        heappush(newest, (-rank, stop))
        heappush(oldest, (rank, stop, place))
    return found
