"""The bytes of a data file between the records that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gulpio2.repair.candidates import Frame
    from gulpio2.repair.moved import Hit, Place, Places

__all__ = ["Region", "regions_between"]


class Region(NamedTuple):
    """Bytes between two records that are known."""

    start: int
    stop: int
    before: Hit | None
    """The record that ends there; None at the beginning of the file."""
    after: Hit | None
    """The record that begins there; None at the end of the file."""
    missing: list[Place]
    """What the map says to be between the two, and was found nowhere."""

    @property
    def is_end(self) -> bool:
        """Whether it is behind the last record of a map that is whole.

        There may be what an append has left that was not committed.
        """
        if self.before is None or self.after is not None:
            return False
        places = self.before.places
        return (
            places is not None
            and places.is_whole
            and self.before.rank == len(places.places) - 1
        )

    def explains(self, frames: Sequence[Frame]) -> bool:
        """Tell whether all that is there is missing records, in a damaged form.

        Parameters
        ----------
        frames : sequence of Frame
            What was found there and is like none that the map speaks of. One that
            begins or ends where a missing one does is that one, damaged. Where no
            known record is beside them, both must agree.
        """
        if len(frames) > len(self.missing):
            return False
        if not frames:
            return bool(self.missing)
        shifts = {0} | {hit.shift for hit in (self.before, self.after) if hit}
        known = [place for place in self.missing if place.crc32 is not None]
        starts = {place.start + shift for place in known for shift in shifts}
        stops = {
            place.start + place.num_bytes + shift for place in known for shift in shifts
        }
        is_alone = self.before is None and self.after is None
        return all(
            (frame.loc in starts) + (frame.loc + frame.num_bytes in stops) > is_alone
            for frame in frames
        )


def regions_between(
    hits: Iterable[Hit], size: int, places: Places | None
) -> Iterator[Region]:
    """Give what is left of a data file between records, in its order.

    Parameters
    ----------
    hits : iterable of Hit
        Records that are known.
    size : int
        Bytes of the file.
    places : Places or None
        What its own map speaks of.
    """
    end = 0
    before: Hit | None = None
    for hit in sorted(hits, key=lambda hit: (hit.start, hit.stop)):
        if hit.start > end and end < size:
            stop = min(hit.start, size)
            yield Region(end, stop, before, hit, _missing(before, hit, places))
        if hit.stop >= end:
            end, before = hit.stop, hit
    if end < size:
        yield Region(end, size, before, None, _missing(before, None, places))


def _missing(
    before: Hit | None, after: Hit | None, places: Places | None
) -> list[Place]:
    """Give what maps say to be between two records, and was found nowhere."""
    if before is None and after is None:
        return [] if places is None else places.missing_after(-1)
    ours = before.places if before is not None else None
    theirs = after.places if after is not None else None
    if before and after and ours is theirs and before.rank < after.rank:
        return [] if ours is None else ours.missing_after(before.rank, after.rank)
    found: list[Place] = []
    if before and ours is not None:
        found += ours.missing_after(before.rank)
    if after and theirs is not None:
        found += theirs.missing_before(after.rank)
    return found
