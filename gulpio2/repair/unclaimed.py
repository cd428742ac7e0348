"""Bytes of a data file that no entry speaks of, and the frames that are in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import EntryExtras
from gulpio2.format.records import ALIGNMENT
from gulpio2.format.salvage import gaps_between, placeholder_id
from gulpio2.format.wording import counted
from gulpio2.repair.candidates import Candidate, Frame, origin
from gulpio2.repair.report import Loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gulpio2.repair.candidates import ChunkSurvey
    from gulpio2.repair.data_file import DataFile
    from gulpio2.repair.moved import Hit, Place, Places

__all__ = ["Unclaimed", "regions_between"]

_NOT_COMMITTED = "left behind, as no entry speaks of them: never committed, or deleted"
_MAY_BE_DELETED = (
    "left behind: they may be those of deleted items, which deleted.json can no longer "
    "tell"
)
# Of a map that is whole: nothing deletes an item without a note in deleted.json.
_LEFT_OUT = (
    "no entry of the map speaks of what is there, nor does deleted.json: the map has "
    "lost items, or is another. Put the right one back, if there is one"
)


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
    own: Places | None
    """Those of the file's own map; None where that is lost."""

    @property
    def is_end(self) -> bool:
        """Whether it is behind the last record of a map that is whole.

        An append that was not committed may have left something there. Frames that two
        items share, as excerpts that overlap do, are found by another file's map as
        well: that speaks of this file only where they lie as it says.
        """
        if self.before is None or self.after is not None:
            return False
        places = self.before.places
        return (
            places is not None
            and places.is_whole
            and (places is self.own or not self.before.shift)
            and self.before.rank == len(places.places) - 1
        )

    def explains(self, frames: Sequence[Frame]) -> bool:
        """Tell whether all that is there are missing records which were damaged.

        The frames were found there, and are like none that the map speaks of. One that
        begins or ends where a missing one does is that one, damaged. Where no known
        record is beside them, both beginning and end must agree.
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
    """Give the bytes of a data file between the records that are known, in order.

    The `places` are those of its own map.
    """
    end = 0
    before: Hit | None = None
    for hit in sorted(hits, key=lambda hit: (hit.start, hit.stop)):
        if hit.start > end and end < size:
            stop = min(hit.start, size)
            missing = _missing(before, hit, places)
            yield Region(end, stop, before, hit, missing, places)
        if hit.stop >= end:
            end, before = hit.stop, hit
    if end < size:
        yield Region(end, size, before, None, _missing(before, None, places), places)


def _missing(
    before: Hit | None, after: Hit | None, places: Places | None
) -> list[Place]:
    """Give the places between two records by their maps, of what was found nowhere."""
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


class Unclaimed:
    """Frames of one data file that are like none that a map speaks of.

    Parameters
    ----------
    file : DataFile
        Where they are.
    survey : ChunkSurvey
        Told of what is lost, or left behind.

    Attributes
    ----------
    items : list of Candidate
        What was made of the frames, by `sort_out`.
    """

    def __init__(self, file: DataFile, survey: ChunkSurvey) -> None:
        self.file = file
        self.survey = survey
        self.items: list[Candidate] = []
        self._frames: list[tuple[Frame, list[int]]] = []

    def take(self, loc: int, jpeg: bytes) -> bool:
        """Keep a JPEG that was found by its markers; False if it cannot be decoded."""
        try:
            shape = list(decode_frame(jpeg).shape)
        except CorruptFrameError:
            return False
        frame = Frame(self.file.number, loc, len(jpeg), crc32_of(jpeg))
        self._frames.append((frame, shape))
        return True

    def leave_out(self, regions: Iterable[Region], *, last_known: int) -> None:
        """Report all regions as lost by a map that is whole otherwise.

        What is behind the last record, from `last_known` on, may be of an append that
        was not committed, and is only noted.
        """
        for region in regions:
            if region.start == last_known:
                self._note(region, _NOT_COMMITTED)
            else:
                self._lose(_LEFT_OUT, region.start, region.stop)
                self._lose_unread(region)

    def leave_behind(self, regions: Iterable[Region], *, is_whole: bool) -> None:
        """Note of all regions that they were left behind, perhaps as deleted items."""
        for region in regions:
            self._note(region, _NOT_COMMITTED if is_whole else _MAY_BE_DELETED)
            if not is_whole:
                self._lose_unread(region)

    def sort_out(self, regions: Iterable[Region], *, may_be_deleted: bool) -> None:
        """Make items of the frames in the regions, and report what is lost.

        No items are made of frames that may be those of deleted items without checksums
        (`may_be_deleted`).
        """
        position = 0
        for region in regions:
            frames = []
            # A frame that crosses a record which was found later is a part of that.
            while position < len(self._frames):
                frame, shape = self._frames[position]
                if frame.loc >= region.stop:
                    break
                position += 1
                if region.start <= frame.loc <= region.stop - frame.num_bytes:
                    frames.append((frame, shape))
            is_explained = region.explains([frame for frame, _ in frames])
            if is_explained or not region.is_end:
                self._lose_unread(region)
            if is_explained:
                continue  # the missing frames are reported with their item
            if region.is_end:
                if region.stop - region.start >= ALIGNMENT:
                    self._note(region, _NOT_COMMITTED)
            elif frames and may_be_deleted:
                text = (
                    f"{counted(len(frames), 'frame')} left behind, as they may be "
                    "those of deleted items, which have no checksums"
                )
                self._lose(text, region.start, region.stop)
            else:
                self._make_items(region, frames)

    def _make_items(
        self, region: Region, frames: list[tuple[Frame, list[int]]]
    ) -> None:
        """Make one item of frames that follow each other and have one shape."""
        end, last = region.start, None
        run: list[Frame] = []
        for frame, shape in frames:
            if frame.loc - end >= ALIGNMENT:
                self._lose_bytes(region, end, frame.loc)
                last = None
            if last is None or last.metas[0]["salvaged"]["shape"] != shape:
                run = [frame]
                last = self._begin(run, shape)
                self.items.append(last)
            else:
                run.append(frame)
                last.unverified += 1
            end = frame.loc + frame.num_bytes
        if region.stop - end >= ALIGNMENT:
            self._lose_bytes(region, end, region.stop)

    def _begin(self, run: list[Frame], shape: list[int]) -> Candidate:
        number, offset = self.file.number, run[0].loc
        meta = origin(number, offset, None, [])
        meta["salvaged"]["shape"] = shape
        return Candidate(
            number,
            placeholder_id(number, offset),
            run,
            [meta],
            EntryExtras(),
            1,
            reason="found by their markers, as no sound entry speaks of them",
        )

    def _lose_bytes(self, region: Region, start: int, stop: int) -> None:
        if region.missing:  # they are reported with their item
            return
        unread = [span[:2] for span in self.file.unread.between(start, stop)]
        for first, last in gaps_between([(0, start), *unread], stop):
            if last - first >= ALIGNMENT:
                self._lose("no frame was found", first, last)

    def _lose_unread(self, region: Region) -> None:
        """Report what could not be read, but for records reported with their item."""
        known = [place[:2] for place in region.missing]
        for span in self.file.unread.between(region.start, region.stop):
            for start, stop in gaps_between([(0, span.start), *known], span.stop):
                self._lose(span.reason, start, stop)

    def _lose(self, reason: str, start: int, stop: int) -> None:
        loss = Loss(self.file.name, reason, start=start, stop=stop)
        self.survey.lost.append(loss)

    def _note(self, region: Region, text: str) -> None:
        self.survey.notes.append(
            f"{self.file.name}, bytes {region.start} to {region.stop}: {text}"
        )
