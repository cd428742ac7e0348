"""Goes through a damaged directory and decides about every item and frame."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from gulpio2.format.entry import EntryExtras
from gulpio2.format.layout import data_name, meta_name
from gulpio2.format.records import ALIGNMENT
from gulpio2.format.removals import entry_spans, merge_spans
from gulpio2.format.salvage import gaps_between
from gulpio2.format.wording import counted
from gulpio2.repair.candidates import (
    Candidate,
    ChunkSurvey,
    Frame,
    FramesOfFile,
    can_be_stored,
)
from gulpio2.repair.data_file import DAMAGED, DataFile
from gulpio2.repair.entries import deleted_frames, read_entry
from gulpio2.repair.maps import IndexedMaps, items_left_out, no_map, read_map
from gulpio2.repair.moved import Hit, MovedFrames, Place, Places
from gulpio2.repair.report import Loss
from gulpio2.repair.unclaimed import Unclaimed, regions_between
from gulpio2.storage.beside_writers import of_one_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gulpio2.format.removals import Removals
    from gulpio2.storage.base import Store
    from gulpio2.types import Progress

__all__ = ["survey_chunks"]

_LEFT = (
    "{} left behind: deleted items had the same at the same place. An item that was "
    "deleted and stored again there has to be ingested once more"
)


def survey_chunks(
    store: Store, numbers: Iterable[int], removals: Removals | None, progress: Progress
) -> Iterator[ChunkSurvey]:
    """Yield what each of the chunks of a damaged directory holds, in their order.

    Each may have lost a file. Where it cannot be read what was deleted (`removals` is
    None), frames of unknown owner are left behind: they may be of deleted items.
    """
    indexed = IndexedMaps(store)

    def look(number: int) -> _ChunkSurveyor:
        chunk = _ChunkSurveyor(store, number, removals, progress, indexed)
        chunk.look()
        return chunk

    chunks = [of_one_state(store, number, partial(look, number)) for number in numbers]
    if others := {chunk.number: chunk for chunk in chunks if chunk.is_other}:
        present = {item.id for chunk in chunks for item in chunk.items}
        for number, loss in items_left_out(store, others, present):
            others[number].survey.lost.append(loss)
    files = {chunk.number: chunk.file for chunk in chunks}
    misfits = [chunk.places for chunk in chunks if chunk.places is not None]
    is_sound = not misfits and all(chunk.sound for chunk in chunks)
    deleted = () if is_sound else deleted_frames(removals)  # they may be many
    moved = MovedFrames(misfits, files, deleted)
    moved.follow()
    for chunk in chunks:
        chunk.search(moved)
    moved.follow()
    for places in moved.chunks:
        places.close()
    unprovable = any(chunk.is_unprovable for chunk in chunks)
    for chunk in chunks:
        yield chunk.finish(moved, is_unprovable=unprovable)


@dataclass(slots=True)
class _Item:
    """The item of an entry, and its frames that are in their places."""

    id: str
    trusted: bool
    """Whether the entry is what was written."""
    metas: list[dict[str, Any]]
    extras: EntryExtras
    frames: Sequence[Frame | None] = ()
    missing: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """Length and checksum of the frames that are not in their places, by index."""
    faults: dict[int, str] = field(default_factory=dict)
    """Why each of these is not."""
    unverified: int = 0
    """Frames without a stored checksum."""

    @property
    def times(self) -> tuple[int, ...]:
        """The time of each frame; empty where they are not known."""
        return self.extras.pts if self.extras.time_base else ()

    def keep(self, frames: Sequence[Frame | None]) -> None:
        """Take the frames; if none is missing, in little memory.

        The items of all chunks are kept until it is known what moved where.
        """
        self.frames = frames
        there = [frame for frame in frames if frame is not None]
        if there and len(there) == len(frames):
            with contextlib.suppress(OverflowError):
                self.frames = FramesOfFile(there)
                # The frames have their times and checksums themselves.
                known = self.extras
                self.extras = EntryExtras(
                    time_base=known.time_base, source=known.source
                )


class _ChunkSurveyor:
    """The survey of one chunk under way."""

    def __init__(
        self,
        store: Store,
        number: int,
        removals: Removals | None,
        progress: Progress,
        indexed: IndexedMaps,
    ) -> None:
        self.store = store
        self.number = number
        self.removals = removals
        self._indexed = indexed
        self.name = data_name(number)
        self.file = DataFile(store, number, progress)
        self.survey = ChunkSurvey()
        self.items: list[_Item] = []
        self.sound = True
        """Whether all of the map is known, and each entry can be trusted."""
        self.is_other = False
        """Whether the index was made of another map."""
        self.places: Places | None = None
        """What the map speaks of, where any of it is not in its place."""
        self.is_unprovable = False
        """Whether frames of deleted items may be anywhere, and nothing tells them."""
        self.known: list[tuple[int, int]] = []
        """Records that are in their places: they are not searched."""
        self.hidden: list[tuple[int, int]] = []
        """Spans of deleted items and erased bytes: searched only for what moved."""
        self._unclaimed = Unclaimed(self.file, self.survey)

    def look(self) -> None:
        """Look at what the map speaks of, in its place."""
        self.file.open()
        reading = read_map(self.store, self.file, self._indexed, self.removals)
        self.file.grow()  # by what others have appended, of which the map may tell
        pairs, self.sound = reading.pairs, reading.sound
        self.is_other = reading.is_other
        self.survey.lost += reading.lost
        self.survey.notes += reading.notes
        if self.file.fault and not (pairs or self.sound):
            self._lose(self.file.fault)
        for id_, entry in pairs:
            self._look_at(id_, entry)
        deleted = self._deleted(pairs)
        if self.file.fault or any(it.missing and it.trusted for it in self.items):
            records = self._deleted_records(deleted)
            self.known += [(at.start, at.stop) for at, is_here in records if is_here]
            records += self._records(pairs)
            self.places = Places.of(self.number, records, is_whole=self.sound)
        elif self.removals is not None:
            self.hidden += self.removals.erased.get(self.number, [])
            self.hidden += [span for _, it in deleted for span in entry_spans(it)]
        self.known = merge_spans(self.known)
        self.file.renew_budget()

    def _lose(self, reason: str, **where: Any) -> None:
        self.survey.lost.append(Loss(self.name, reason, **where))

    # --- what the map says ---------------------------------------------------------

    def _look_at(self, id_: str, entry: dict[str, Any]) -> None:
        """Look at all frames of an item in their places."""
        extras, trusted, checksums = read_entry(id_, entry)
        self.sound &= trusted
        metas = [dict(meta or {}) for meta in entry["meta_data"]] or [{}]
        item = _Item(id_, trusted, metas, extras)
        times = item.times
        self.items.append(item)
        frames: list[Frame | None] = []
        for index, (loc, pad, length) in enumerate(entry["frame_info"]):
            expected = checksums[index]
            num_bytes = length - pad
            self.file.tell(frames=1, num_bytes=num_bytes)
            crc32 = self.file.frame_at(loc, num_bytes, expected)
            if crc32 is None or (not trusted and expected is None):
                frames.append(None)
                item.missing[index] = num_bytes, expected
                item.faults[index] = self.file.why_not(loc, num_bytes, expected)
            else:
                pts = times[index] if times else None
                frames.append(Frame(self.number, loc, num_bytes, crc32, pts))
                item.unverified += expected is None
                self.known.append((loc, loc + length))
        item.keep(frames)

    def _records(
        self, pairs: list[tuple[str, dict[str, Any]]]
    ) -> Iterator[tuple[Place, bool]]:
        """Give the place of each record, and whether it is there.

        A record of an entry that cannot be trusted is left out where it is not there:
        there may never have been one.
        """
        for item, (_, entry) in zip(self.items, pairs, strict=True):
            for index, (loc, pad, length) in enumerate(entry["frame_info"]):
                frame = item.frames[index]
                if frame is not None:
                    yield Place(loc, loc + length, length - pad, frame.crc32), True
                elif item.trusted:
                    yield Place(loc, loc + length, *item.missing[index]), False

    def _deleted(
        self, pairs: list[tuple[str, Any]]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Give the entries of deleted items, whose frames are to be left alone."""
        if self.removals is None:
            return []
        there = ((id_, entry["frame_info"]) for id_, entry in pairs)
        return self.removals.hidden_items(self.number, there)

    def _deleted_records(
        self, deleted: list[tuple[str, dict[str, Any]]]
    ) -> list[tuple[Place, bool]]:
        """Look whether frames of deleted items are in their places, and erased bytes.

        Where the data moved, these moved with it, and must stay deleted.
        """
        records = []
        for id_, entry in deleted:
            _, _, checksums = read_entry(id_, entry)
            for (loc, pad, length), expected in zip(
                entry["frame_info"], checksums, strict=True
            ):
                is_here = self.file.frame_at(loc, length - pad, expected) is not None
                self.is_unprovable |= expected is None and not is_here
                place = Place(loc, loc + length, length - pad, expected)
                records.append((place, is_here))
        erased = self.removals.erased.get(self.number, []) if self.removals else []
        for start, stop in erased:
            place = Place(start, stop, 0, None)
            records.append((place, self.file.is_zero(start, stop)))
        return records

    # --- what is elsewhere ---------------------------------------------------------

    def search(self, moved: MovedFrames) -> None:
        """Search the bytes between the records that are in their places for frames.

        They are frames that moved, or frames of unknown items.
        """
        fits = self.sound and self.places is None
        if self.file.fault or (fits and not moved):
            return
        is_kept = not fits and self.removals is not None

        def take(loc: int, jpeg: bytes) -> bool:
            is_one = moved.take(self.number, loc, jpeg, is_foreign=self.sound)
            if is_one or not is_kept or self._unclaimed.take(loc, jpeg):
                self.file.tell(frames=1)
                return True
            return False

        found = [(hit.start, hit.stop) for hit in moved.hits[self.number]]
        known = [*self.known, *found, *([] if moved else self.hidden)]
        # A frame that moved may begin at any byte: its checksum proves what it is.
        alignment = 1 if moved else ALIGNMENT
        for start, stop in gaps_between(known, self.file.size):
            self.file.search(start, stop, take, alignment=alignment)

    def finish(self, moved: MovedFrames, *, is_unprovable: bool) -> ChunkSurvey:
        """Decide what becomes of each item, and of what no entry speaks of.

        With `is_unprovable`, frames of deleted items that have no checksums may be in
        any data file.
        """
        whole, parts = self.survey.candidates, list[Candidate]()
        elsewhere: dict[int, int] = {}
        for item in self.items:
            if (candidate := self._settle(item, moved, elsewhere)) is not None:
                (parts if candidate.reason else whole).append(candidate)
        for number, frames in sorted(elsewhere.items()):
            where = "elsewhere" if number == self.number else f"in {data_name(number)}"
            self.survey.notes.append(
                f"{meta_name(self.number)}: {counted(frames, 'frame')} not at the "
                f"place in {self.name} that it says, and found {where} by checksum"
            )
        self.items.clear()
        if not self.file.fault:
            self._sort_out(moved, is_unprovable=is_unprovable)
            parts += self._unclaimed.items
        whole += sorted(parts, key=lambda part: part.offset)
        return self.survey

    def _settle(
        self, item: _Item, moved: MovedFrames, elsewhere: dict[int, int]
    ) -> Candidate | None:
        """Make a candidate of an item from those frames that were found anywhere."""
        frames: list[Frame] = []
        indices: list[int] = []
        times = item.times
        for index, here in enumerate(item.frames):
            frame = here
            if frame is None and item.trusted:
                num_bytes, crc32 = item.missing[index]
                at = moved.where(num_bytes, crc32)
                if at is not None and crc32 is not None:
                    pts = times[index] if times else None
                    frame = Frame(*at, num_bytes, crc32, pts)
                    # Or it is in its place, and could be read this time.
                    if at[0] != self.number or item.faults[index] == DAMAGED:
                        elsewhere[at[0]] = elsewhere.get(at[0], 0) + 1
            if frame is not None:
                frames.append(frame)
                indices.append(index)
        is_all = len(frames) == len(item.frames)
        kept = item.frames if isinstance(item.frames, FramesOfFile) else frames
        if self.file.fault and not (frames or (item.trusted and is_all)):
            self._lose(self.file.fault, item=item.id)
            return None
        if item.trusted and not is_all:
            bad = dict[str, list[int]]()
            for index in sorted({*range(len(item.frames))} - {*indices}):
                bad.setdefault(self.file.fault or item.faults[index], []).append(index)
            for text, lost in bad.items():
                self._lose(text, item=item.id, frames=tuple(lost))
        whole = Candidate(
            self.number, item.id, kept, item.metas, item.extras, item.unverified
        )
        if item.trusted and is_all and can_be_stored(item.metas):
            return whole
        reason = "others of its frames are lost"
        text = ""
        if not item.trusted:
            reason = "its entry is damaged"
            text = (
                "its entry is not what was written: id, metadata or places of frames "
                "may be wrong"
            )
        elif is_all:
            reason = text = "its metadata is nested too deeply to be stored again"
        if text:
            self.survey.lost.append(Loss(meta_name(self.number), text, item=item.id))
        if not frames:
            return None
        part = whole.demoted(reason)
        part.metas[0]["salvaged"]["frames"] = indices
        return part

    def _sort_out(self, moved: MovedFrames, *, is_unprovable: bool) -> None:
        """Decide what becomes of the bytes that no entry speaks of."""
        places, hits = self.places, moved.hits[self.number]
        if places is None:
            known = [Hit(*span) for span in merge_spans([*self.known, *self.hidden])]
        else:
            known = [
                Hit(place.start, place.stop, places, rank)
                for rank, place in enumerate(places.places)
                if places.found[rank] == (self.number, place.start)
            ]
        regions = [*regions_between([*known, *hits], self.file.size, places)]
        if hits:  # leave out padding that did not move with its frame
            regions = [it for it in regions if it.stop - it.start >= ALIGNMENT]
        if self.removals is None:
            self._unclaimed.leave_behind(regions, is_whole=self.sound and not places)
        elif self.sound and places is None:
            last = max((hit.stop for hit in known), default=-1)
            self._unclaimed.leave_out(regions, last_known=last)
        else:
            # A data file that does not fit its map may be that of any chunk.
            may_be = self.is_unprovable or (places is not None and is_unprovable)
            self._unclaimed.sort_out(regions, may_be_deleted=may_be)
        # Of what was deleted in this very chunk nothing has to be told.
        own = {start for start, _ in self.hidden}
        if left := [loc for loc in moved.left[self.number] if loc not in own]:
            self._lose(_LEFT.format(counted(len(left), "frame")))
        # Where all are in another file, too, nobody knows whose map this one has lost.
        is_it = moved.is_needed(self.number)
        if is_it and not regions and self.survey.lost == [no_map(self.number)]:
            # It is the data file of another map, under a name of its own.
            self.survey.lost.clear()
            self.survey.notes.append(f"{self.name}: all that is in it has other maps")
            self.survey.is_of_others = True
