"""Which frames of deleted items are still accounted for in a data file."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.format.checks import Record

__all__ = ["not_shared", "overwritten"]


def not_shared(deleted: Sequence[Record], present: Iterable[Record]) -> list[Record]:
    """Leave out deleted records that another item has too.

    Items that GulpIO2 0.0.4, or an edit of a map, has written may share frames. Such a
    record counts for the item that is present, or for the first of the deleted ones.
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

    The `deleted` are in the order of their deletion. Gives the places of those found in
    that list. Nothing is written over frames before they are erased: of two records
    that share bytes, the one that was deleted first was erased before the other was
    written.
    """
    records = [*deleted, *present]
    found: set[int] = set()
    # Records that began before, and may not have ended. Their rank is that of their
    # deletion; all that are present have the last rank.
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
        # A record that is found here, or has ended, need not be looked at again.
        while oldest and oldest[0][0] < rank:
            _, other_stop, other = heappop(oldest)
            if other_stop > loc:
                found.add(other)
        heappush(newest, (-rank, stop))
        heappush(oldest, (rank, stop, place))
    return found
