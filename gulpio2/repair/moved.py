"""Frames that are not where the map says: found by their checksums where they are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.format.checksum import crc32_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gulpio2.repair.data_file import DataFile

__all__ = ["Hit", "MovedFrames", "Place", "Places"]

# Data files of one size that are looked into for the frames of one map.
_MOST_FILES = 100
# Records that are given as missing in one place: a crafted map could have as many of
# such places as it has records.
_MOST_LOST = 1000


class Place(NamedTuple):
    """Where a record is to be, by the map, or by deleted.json."""

    start: int
    stop: int
    """The end, padding included."""
    num_bytes: int
    """Of the JPEG."""
    crc32: int | None
    """The stored checksum; None where there is none, or the bytes were erased."""

    @property
    def key(self) -> tuple[int, int]:
        """What tells the frame from others, where it has a checksum."""
        return self.num_bytes, self.crc32 or 0


@dataclass(slots=True, eq=False)
class Places:
    """All places that one chunk speaks of, in the order of the file."""

    number: int
    is_whole: bool
    """Whether the map could be read as a whole, and each entry be trusted."""
    places: list[Place] = field(default_factory=list)
    found: list[tuple[int, int] | None] = field(default_factory=list)
    """For each place, the data file that its record is in, and the offset there."""
    _lost: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls, number: int, records: Iterable[tuple[Place, bool]], *, is_whole: bool
    ) -> Places:
        """Put places in order; each comes with whether its record is there."""
        here: dict[Place, bool] = {}
        for place, is_here in records:
            here[place] = is_here or here.get(place, False)
        places = sorted(here, key=lambda place: (place.start, place.stop))
        found = [(number, place.start) if here[place] else None for place in places]
        return cls(number, is_whole, places, found)

    @property
    def end(self) -> int:
        """Length that the data file is to have."""
        return max((place.stop for place in self.places), default=0)

    def missing_after(self, rank: int, before: int | None = None) -> list[Place]:
        """Give the places behind one whose records were not found, up to a number."""
        lost = self._lost
        first = bisect_right(lost, rank)
        last = len(lost) if before is None else bisect_left(lost, before)
        return [self.places[at] for at in lost[first : min(last, first + _MOST_LOST)]]

    def missing_before(self, rank: int) -> list[Place]:
        """Give the places before one whose records were not found, up to a number."""
        last = bisect_left(self._lost, rank)
        return [self.places[at] for at in self._lost[max(0, last - _MOST_LOST) : last]]

    def close(self) -> None:
        """Note which records were found nowhere, at the end of the search."""
        self._lost = [rank for rank, at in enumerate(self.found) if at is None]


class Hit(NamedTuple):
    """A record in a data file, in its place or anywhere else."""

    start: int
    stop: int
    places: Places | None = None
    """The places of its map; None where all records of the map are in their places."""
    rank: int = -1
    """Which of these places is that of the record."""

    @property
    def shift(self) -> int:
        """Bytes from its place to where it is."""
        return self.start - self.places.places[self.rank].start if self.places else 0


class MovedFrames:
    """The search, in all data files, for records that are not in their places.

    Parameters
    ----------
    chunks : list of Places
        Those of each chunk of which a record is not in its place.
    files : mapping
        All data files, by number.
    deleted : iterable of (int, int, int)
        Length, checksum and offset of frames of deleted items. Where one is found, it
        stays deleted.

    Attributes
    ----------
    left : dict of int to list of int
        Offsets of frames, by data file, that are taken for those of deleted items
        because they are at their places.
    """

    def __init__(
        self,
        chunks: list[Places],
        files: Mapping[int, DataFile],
        deleted: Iterable[tuple[int, int, int]],
    ) -> None:
        self.chunks = chunks
        self.files = files
        self._deleted: dict[tuple[int, int], set[int]] = {}
        for num_bytes, crc32, loc in deleted:
            self._deleted.setdefault((num_bytes, crc32), set()).add(loc)
        self.left: dict[int, list[int]] = {number: [] for number in files}
        self.hits: dict[int, list[Hit]] = {number: [] for number in files}
        """What was found, by data file."""
        self._found: dict[tuple[int, int], tuple[int, int]] = {}
        # By length and checksum, and by chunk, the ranks of the records, ascending:
        # several may have the same bytes.
        self._wanted: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._places = {places.number: places for places in chunks}
        for places in chunks:
            for rank, place in enumerate(places.places):
                if places.found[rank] is None and place.crc32 is not None:
                    ranks = self._wanted.setdefault(place.key, {})
                    ranks.setdefault(places.number, []).append(rank)
        # Most frames are told apart by their lengths, without their checksums.
        self._lengths = {num_bytes for num_bytes, _ in [*self._wanted, *self._deleted]}

    def __bool__(self) -> bool:
        """Tell whether there is anything to look for."""
        return bool(self._wanted)

    def where(self, num_bytes: int, crc32: int | None) -> tuple[int, int] | None:
        """Give data file and offset of a frame; None where it was not found."""
        return None if crc32 is None else self._found.get((num_bytes, crc32))

    def is_needed(self, number: int) -> bool:
        """Tell whether frames that were missing are taken from a data file.

        They are not where another file was found first to have them all.
        """
        return any(
            hit.places is None
            or self._found[hit.places.places[hit.rank].key][0] == number
            for hit in self.hits[number]
        )

    def take(self, number: int, loc: int, jpeg: bytes, *, is_foreign: bool) -> bool:
        """Take a frame that was found by its markers; False if no record is like it.

        One like that of a deleted item is taken if it is foreign: no entry was lost.
        Else it may be of an item that was deleted and stored again, and is taken only
        at the offset of that frame: the file then is the one that it was deleted in,
        by another name, unless the item was stored again at the very place.
        """
        if len(jpeg) not in self._lengths:
            return False
        key = len(jpeg), crc32_of(jpeg)
        wanted = self._wanted.get(key)
        if wanted is None:
            places = self._deleted.get(key, ())
            is_deleted = bool(places) if is_foreign else loc in places
            if is_deleted:
                self.hits[number].append(Hit(loc, loc + len(jpeg)))
                if not is_foreign:
                    self.left[number].append(loc)
            return is_deleted
        chosen, ranks = next(iter(wanted.items()))
        rank = ranks[0]
        # Of records with the same bytes it is the next behind the last that was found.
        last = self.hits[number][-1] if self.hits[number] else None
        if last is not None and last.places is not None:
            ranks = wanted.get(last.places.number, [])
            if (at := bisect_right(ranks, last.rank)) < len(ranks):
                chosen, rank = last.places.number, ranks[at]
        self._note(number, loc, self._places[chosen], rank)
        return True

    def follow(self) -> None:
        """Look for frames where they are if they moved as far as those next to them.

        This needs no search, and also finds frames that do not end with a marker.
        """
        for file in self.files.values():
            file.renew_budget()
        self._try_ends()
        for places in self.chunks:
            ranks = range(len(places.places))
            for order, step in ((ranks, -1), (ranks[::-1], 1)):
                for rank in order:
                    neighbour = rank + step
                    if neighbour not in ranks or places.found[rank] is not None:
                        continue
                    if (at := places.found[neighbour]) is not None:
                        here = places.places[neighbour].start
                        self._try(at[0], at[1] - here, places, rank)

    def _try_ends(self) -> None:
        """Look for a frame of each chunk from which `follow` finds the others.

        It is the last one, where bytes were put in or cut out once, or the first one,
        where a data file has the name of another.
        """
        by_size: dict[int, list[int]] = {}
        for number, file in self.files.items():
            by_size.setdefault(file.size, []).append(number)
        for places in self.chunks:
            missing = [rank for rank, at in enumerate(places.found) if at is None]
            if not missing:
                continue
            shift = self.files[places.number].size - places.end
            if self._try(places.number, shift, places, missing[-1]):
                continue
            for number in by_size.get(places.end, [])[:_MOST_FILES]:
                if self._try(number, 0, places, missing[0]):
                    break

    def _try(self, number: int, shift: int, places: Places, rank: int) -> bool:
        """Look at one frame in one place; tell whether it is there."""
        place = places.places[rank]
        loc = place.start + shift
        if place.crc32 is None or (number == places.number and not shift):
            return False
        if self.files[number].frame_at(loc, place.num_bytes, place.crc32) is None:
            return False
        self._note(number, loc, places, rank)
        return True

    def _note(self, number: int, loc: int, places: Places, rank: int) -> None:
        """Note where a frame is; those of the same bytes are found with it."""
        place = places.places[rank]
        stop = loc + place.stop - place.start
        self.hits[number].append(Hit(loc, stop, places, rank))
        if place.key not in self._found:
            self._found[place.key] = number, loc
            for other, ranks in self._wanted[place.key].items():
                for at in ranks:
                    self._places[other].found[at] = number, loc
        places.found[rank] = number, loc
