"""Goes through a damaged directory and decides about every item and frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.codecs.jpeg import check_jpeg, decode_frame
from gulpio2.errors import (
    AdapterContractError,
    CorruptFrameError,
    GulpError,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import (
    EXTRAS_KEY,
    EntryExtras,
    covered_part,
    load_extras,
)
from gulpio2.format.gmeta import load_pairs, validate_entry
from gulpio2.format.layout import data_name, meta_name
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.records import ALIGNMENT
from gulpio2.format.removals import entry_spans
from gulpio2.format.salvage import (
    JpegFinder,
    gaps_between,
    placeholder_id,
    salvage_map,
)
from gulpio2.repair.report import Loss

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.format.removals import Removals
    from gulpio2.storage.base import Store
    from gulpio2.types import Progress

__all__ = ["Candidate", "ChunkSurvey", "Frame", "survey_chunk"]

# Bytes. No frame that is decoded is longer; of a longer record, which a damaged map can
# speak of, the checksum is computed piece by piece. One without is no frame.
_LONGEST = 64 * 1024 * 1024
# Bytes of a data file that are searched at once; a frame of up to half of it is found.
_WINDOW = 64 * 1024 * 1024
# Bytes. What is read at once of a window that cannot be read as a whole.
_PIECE = 64 * 1024
# What a map that is whole has lost: nothing deletes without a note in deleted.json.
_LEFT_OUT = (
    "no entry of the map speaks of what is there, nor does deleted.json: the map has "
    "lost items, or is another. Put the right one back, if there is one"
)


class Frame(NamedTuple):
    """A frame that is to be moved."""

    loc: int
    """Offset in the source's data file."""
    num_bytes: int
    """Of the JPEG, padding left out."""
    crc32: int
    """As it was read: what is moved later must be the same."""
    pts: int | None = None
    """Its time, where it is known."""


@dataclass(slots=True)
class Candidate:
    """Frames that may become an item of the target."""

    chunk: int
    id: str
    """Its own id, or a placeholder."""
    frames: list[Frame]
    metas: list[dict[str, Any]]
    extras: EntryExtras
    unverified: int = 0
    """Frames without a stored checksum."""
    item: str | None = None
    """Id of the item that it is a part of, if it is not whole."""
    reason: str = ""
    """Why it is not whole; empty if it is."""

    @property
    def offset(self) -> int:
        """First byte in the source's data file."""
        return self.frames[0].loc if self.frames else 0

    def demoted(self, reason: str) -> Candidate:
        """Give the same frames under a placeholder id."""
        return Candidate(
            self.chunk,
            placeholder_id(self.chunk, self.offset),
            self.frames,
            [_origin(self.chunk, self.offset, self.item or self.id, self.metas)],
            self.extras,
            self.unverified,
            self.item or self.id,
            reason,
        )


@dataclass(slots=True)
class ChunkSurvey:
    """What one chunk holds."""

    candidates: list[Candidate] = field(default_factory=list)
    """Whole items, in the order of the map, then the rest, by offset."""
    lost: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def survey_chunk(
    store: Store, number: int, removals: Removals | None, progress: Progress
) -> ChunkSurvey:
    """Go through one chunk.

    Parameters
    ----------
    store : Store
        The damaged directory.
    number : int
        Chunk, of which a file may be missing.
    removals : Removals or None
        What was deleted; None if that cannot be read any more. Frames of unknown
        owner are then left behind, as they may be those of deleted items.
    progress : Progress
        Told of frames and bytes.
    """
    return _ChunkSurveyor(store, number, removals, progress).run()


class _ChunkSurveyor:
    """The survey of one chunk under way."""

    def __init__(
        self,
        store: Store,
        number: int,
        removals: Removals | None,
        progress: Progress,
    ) -> None:
        self.store = store
        self.number = number
        self.removals = removals
        self.progress = progress
        self.name = data_name(number)
        self.survey = ChunkSurvey()
        self.size = 0
        # Bytes that entries may have read: each is in one frame, but a crafted map can
        # speak of one frame a million times.
        self.budget = 0
        # What was found of each: items may share frames.
        self._looked_at: dict[tuple[int, int, int | None], int | None] = {}
        # What needs no search by markers.
        self.known: list[tuple[int, int]] = []

    def run(self) -> ChunkSurvey:
        """Do it."""
        pairs, sound = self._read_map()
        try:
            self.size = self.store.size(self.name)
            self.budget = 2 * self.size
            self.store.read_at(self.name, 0, 0)  # opens it
        except FileNotFoundError:
            reason = "its data file is missing"
        except OSError as cause:
            reason = f"cannot be read: {cause.strerror or cause}"
        else:
            reason = ""
        if reason:
            for id_, _ in pairs:
                self._lose(reason, item=id_)
            if not (pairs or sound):
                self._lose(reason)
            return self.survey
        parts = []
        for id_, entry in pairs:
            candidate, is_sound = self._survey_entry(id_, entry)
            sound &= is_sound
            if candidate is not None and candidate.reason:
                parts.append(candidate)
            elif candidate is not None:
                self.survey.candidates.append(candidate)
        self._hide_deleted(pairs)
        parts += self._search(sound=sound)
        parts.sort(key=lambda part: part.offset)
        self.survey.candidates += parts
        return self.survey

    def _lose(self, reason: str, **where: Any) -> None:
        file = where.pop("file", self.name)
        self.survey.lost.append(Loss(file, reason, **where))

    # --- what the map says ---------------------------------------------------------

    def _read_map(self) -> tuple[list[tuple[str, Any]], bool]:
        """Give the entries of the map, and whether it could be read as a whole."""
        name = meta_name(self.number)
        try:
            data = self.store.read(name)
        except FileNotFoundError:
            self._lose("is missing: lost, or its chunk was never committed", file=name)
            return [], False
        except OSError as cause:
            self._lose(f"cannot be read: {cause.strerror or cause}", file=name)
            return [], False
        try:
            pairs = load_pairs(data)
        except (ValueError, RecursionError) as cause:
            found = list(salvage_map(data))
            self._lose(
                f"cannot be read as a whole ({cause}); {len(found)} entries can",
                file=name,
            )
            return found, False
        sound = True
        good = []
        for id_, entry in pairs:
            if fault := validate_entry(entry):
                self._lose(f"its entry {fault[:200]}", file=name, item=id_)
                sound = False
            else:
                good.append((id_, entry))
        return good, sound

    def _survey_entry(
        self, id_: str, entry: dict[str, Any]
    ) -> tuple[Candidate | None, bool]:
        """Look at all frames of an item; say also whether its entry can be trusted."""
        extras, trusted = _trust(id_, entry)
        stored_crc32 = _crc32_of_first(id_, entry, extras) if trusted else extras.crc32
        frames: list[Frame] = []
        indices: list[int] = []
        bad: list[int] = []
        unverified = 0
        for index, (loc, pad, length) in enumerate(entry["frame_info"]):
            expected = int(stored_crc32[index]) if index < len(stored_crc32) else None
            crc32 = self._frame_at(loc, length - pad, expected)
            if crc32 is None or (not trusted and expected is None):
                bad.append(index)
                if trusted:
                    self.known.append((loc, loc + length))
                continue
            self.known.append((loc, loc + length))
            pts = extras.pts[index] if extras.pts and extras.time_base else None
            frames.append(Frame(loc, length - pad, crc32, pts))
            indices.append(index)
            unverified += expected is None
        if bad and trusted:
            text = "damaged, or not in the file"
            self._lose(text, item=id_, frames=tuple(bad))
        metas = [dict(meta or {}) for meta in entry["meta_data"]] or [{}]
        whole = Candidate(self.number, id_, frames, metas, extras, unverified)
        if trusted and not bad and _can_be_stored(metas):
            return whole, True
        reason = "others of its frames are lost"
        text = ""
        if not trusted:
            reason = "its entry is damaged"
            text = (
                "its entry is not what was written: id, metadata or places of frames "
                "may be wrong"
            )
        elif not bad:
            reason = text = "its metadata is nested too deeply to be stored again"
        if text:
            self._lose(text, file=meta_name(self.number), item=id_)
        if not frames:
            return None, trusted
        part = whole.demoted(reason)
        part.metas[0]["salvaged"]["frames"] = indices
        return part, trusted

    def _frame_at(self, loc: int, num_bytes: int, expected: int | None) -> int | None:
        """Give the checksum of a frame that is what was stored; None if it is not."""
        self.progress(frames=1, num_bytes=num_bytes)
        place = loc, num_bytes, expected
        if place not in self._looked_at:
            self._looked_at[place] = self._look_at(*place)
        return self._looked_at[place]

    def _look_at(self, loc: int, num_bytes: int, expected: int | None) -> int | None:
        if num_bytes < 4 or loc + num_bytes > self.size:
            return None
        is_long = num_bytes > _LONGEST
        if is_long and expected is None:
            return None
        self.budget -= num_bytes
        if self.budget < 0:
            return None
        try:
            if is_long:
                crc32 = self._crc32_in_pieces(loc, num_bytes)
                # As much as tells whether it is a JPEG.
                jpeg = self.store.read_at(self.name, loc, _LONGEST - 2)
                jpeg += self.store.read_at(self.name, loc + num_bytes - 2, 2)
            else:
                jpeg = self.store.read_at(self.name, loc, num_bytes)
                crc32 = crc32_of(jpeg)
        except OSError:
            return None
        try:
            if expected is None:
                decode_frame(jpeg)
            check_jpeg(jpeg)
        except CorruptFrameError:
            return None
        return crc32 if expected is None or crc32 == expected else None

    def _crc32_in_pieces(self, loc: int, num_bytes: int) -> int:
        """Compute the checksum of a record that is too long to be read at once."""
        crc32 = 0
        for start in range(0, num_bytes, _LONGEST):
            length = min(_LONGEST, num_bytes - start)
            piece = self.store.read_at(self.name, loc + start, length)
            crc32 = crc32_of(piece, crc32)
        return crc32

    # --- what the map does not say -------------------------------------------------

    def _hide_deleted(self, pairs: list[tuple[str, Any]]) -> None:
        """Leave frames of deleted items alone.

        An item that is in the map with the same frames was not deleted after all. One
        of the same id with others came later.
        """
        if self.removals is None:
            return
        self.known += self.removals.erased.get(self.number, [])
        present: dict[str, list[Any]] = {}
        for id_, entry in pairs:
            present.setdefault(id_, []).append(entry["frame_info"])
        for id_, entry in self.removals.deleted.get(self.number, []):
            spans = entry["frame_info"]
            if all(there[: len(spans)] != spans for there in present.get(id_, ())):
                self.known += entry_spans(entry)

    def _search(self, *, sound: bool) -> list[Candidate]:
        """Find frames that no entry speaks of, where the map is not whole."""
        found: list[Candidate] = []
        last_known = max((stop for _, stop in self.known), default=-1)
        for start, stop in gaps_between(self.known, self.size):
            if sound and self.removals is not None and start != last_known:
                # Not behind the last record, where an append was not committed.
                self._lose(_LEFT_OUT, start=start, stop=stop)
                continue
            if sound or self.removals is None:
                text = (
                    "left behind, as no entry speaks of them: never committed, or "
                    "deleted"
                    if sound
                    else "left behind: they may be those of deleted items, which "
                    "deleted.json can no longer tell"
                )
                self.survey.notes.append(
                    f"{self.name}, bytes {start} to {stop}: {text}"
                )
                continue
            end = start
            last: Candidate | None = None
            for frame, shape in self._frames_between(start, stop):
                if frame.loc - end >= ALIGNMENT:
                    self._lose("no frame was found", start=end, stop=frame.loc)
                    last = None
                if last is None or last.metas[0]["salvaged"]["shape"] != shape:
                    last = self._unknown(frame, shape)
                    found.append(last)
                else:
                    last.frames.append(frame)
                    last.unverified += 1
                end = frame.loc + frame.num_bytes
            if stop - end >= ALIGNMENT:
                self._lose("no frame was found", start=end, stop=stop)
        return found

    def _unknown(self, frame: Frame, shape: list[int]) -> Candidate:
        """Begin an item of frames that follow each other and have one shape."""
        meta = _origin(self.number, frame.loc, None, [])
        meta["salvaged"]["shape"] = shape
        return Candidate(
            self.number,
            placeholder_id(self.number, frame.loc),
            [frame],
            [meta],
            EntryExtras(),
            1,
            reason="found by their markers, as no sound entry speaks of them",
        )

    def _frames_between(
        self, start: int, stop: int
    ) -> Iterator[tuple[Frame, list[int]]]:
        """Find JPEGs that can be decoded, in windows that overlap by half."""
        base = start - start % ALIGNMENT
        position = start
        while base < stop:
            length = min(_WINDOW, stop - base)
            last = base + length == stop
            finder = JpegFinder(self._window(base, length))
            limit = length if last else length // 2
            at = position - base
            while at < limit and (found := finder.find(at, limit)) is not None:
                jpeg = finder.data[found.start : found.stop]
                try:
                    shape = list(decode_frame(jpeg).shape)
                except CorruptFrameError:
                    at = found.start + 1
                    continue
                at = found.stop
                loc = base + found.start
                self.progress(frames=1)
                yield Frame(loc, len(jpeg), crc32_of(jpeg)), shape
            self.progress(num_bytes=limit)
            position = base + max(at, limit)
            base = stop if last else base + limit

    def _window(self, base: int, length: int) -> bytes:
        """Read a part of the data file, with zeros for what cannot be read."""
        try:
            return self.store.read_at(self.name, base, length)
        except OSError:
            pieces = []
            for offset in range(base, base + length, _PIECE):
                size = min(_PIECE, base + length - offset)
                try:
                    pieces.append(self.store.read_at(self.name, offset, size))
                except OSError:
                    pieces.append(bytes(size))
            return b"".join(pieces)


def _trust(id_: str, entry: dict[str, Any]) -> tuple[EntryExtras, bool]:
    """Decode the extras of an entry, and say whether it is what was written.

    One without a check, which is one of GulpIO2, is trusted as far as its frames are.
    """
    try:
        extras = load_extras(entry, where=id_)
        if EXTRAS_KEY not in entry:
            return extras, True
        return extras, covered_part(id_, entry) is not None
    except (GulpError, ValueError, TypeError, RecursionError):
        return EntryExtras(), False


def _can_be_stored(metas: list[dict[str, Any]]) -> bool:
    """Tell whether the target takes metadata; GulpIO2 nests them deeper."""
    try:
        for meta in metas:
            plain_metadata(meta, "metadata")
    except AdapterContractError:
        return False
    return True


def _crc32_of_first(id_: str, entry: dict[str, Any], extras: EntryExtras) -> Any:
    """Give the checksums that an entry has, also if others have added frames to it."""
    if len(extras.crc32) or EXTRAS_KEY not in entry:
        return extras.crc32
    before = covered_part(id_, entry)
    return extras.crc32 if before is None else load_extras(before, where=id_).crc32


def _origin(
    number: int, offset: int, item: str | None, metas: list[dict[str, Any]]
) -> dict[str, Any]:
    """Make the metadata of a placeholder: where its frames come from."""
    salvaged: dict[str, Any] = {"chunk": number, "offset": offset, "id": item}
    if metas:
        salvaged["meta_data"] = metas
        try:
            plain_metadata({"salvaged": salvaged}, "metadata")
        except AdapterContractError:  # one level more is too many
            del salvaged["meta_data"]
    return {"salvaged": salvaged}
