"""What a map says of one item, from an entry in memory or from an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.format.altered import crc32_to_compare
from gulpio2.format.entry import EntryExtras, covered_part, load_extras
from gulpio2.format.times import FrameTimes, TimeRuns, runs_of, times_of
from gulpio2.storage.index.entries import IndexRecord
from gulpio2.storage.index.mappings import Entries
from gulpio2.storage.index.spans import FrameSpans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gulpio2.types import Meta

__all__ = ["EntryRecord", "ItemRecord", "record_of"]


class ItemRecord(Protocol):
    """What a map says of an item, however it was looked up."""

    @property
    def num_frames(self) -> int:
        """Frames stored."""

    @property
    def num_bytes(self) -> int:
        """Bytes of the records, padding included."""

    @property
    def entry(self) -> Mapping[str, Any]:
        """The entry in the map."""

    @property
    def meta(self) -> Meta:
        """A copy of the metadata; {} where there is none."""

    def extras(self, where: str) -> EntryExtras:
        """Give checksums, times and source facts, where it has them."""

    def times(self, where: str) -> TimeRuns | None:
        """Give the times as they are stored, where it has some."""

    def frame_times(self, where: str) -> FrameTimes | None:
        """Give a time for each frame, where it has some."""

    def spans(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Give offset and length of the JPEG of each of these frames."""

    def crc32(self, indices: Sequence[int]) -> list[int] | None:
        """Give the checksum of each of these frames; None where there are none."""

    def is_edited(self, id_: str) -> bool:
        """Tell whether the entry, of this id, is not any more what its check says."""


# These two are not frozen, which would make them slow to make, for each clip.
@dataclass(slots=True, eq=False)
class EntryRecord:
    """An entry of a map that is in memory."""

    entry: Mapping[str, Any]
    """Its value in the map."""

    @property
    def num_frames(self) -> int:
        """Frames stored."""
        return len(self.entry["frame_info"])

    @property
    def num_bytes(self) -> int:
        """Bytes of the records, padding included."""
        return sum(info[2] for info in self.entry["frame_info"])

    @property
    def meta(self) -> Meta:
        """A copy of the metadata, not of what is nested; {} where there is none."""
        metas = self.entry["meta_data"]
        return dict(metas[0] or {}) if metas else {}

    def extras(self, where: str) -> EntryExtras:
        """Give checksums, times and source facts, where it has them."""
        return load_extras(self.entry, where=where)

    def times(self, where: str) -> TimeRuns | None:
        """Give the times as they are stored, where it has some."""
        return runs_of(self.extras(where))

    def frame_times(self, where: str) -> FrameTimes | None:
        """Give a time for each frame, where it has some."""
        return times_of(self.extras(where))

    def spans(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Give offset and length of the JPEG of each of these frames."""
        infos = self.entry["frame_info"]
        if type(infos) is FrameSpans and not infos.changed:
            return infos.jpeg_spans(indices)
        chosen = map(infos.__getitem__, indices)
        return [(loc, length - pad) for loc, pad, length in chosen]

    def crc32(self, indices: Sequence[int]) -> list[int] | None:
        """Give the checksum of each of these frames; None where there are none."""
        return crc32_to_compare(self.entry, indices)

    def is_edited(self, id_: str) -> bool:
        """Tell whether the entry, of this id, is not any more what its check says."""
        try:
            return covered_part(id_, self.entry) is None
        except (TypeError, ValueError, RecursionError):  # into what JSON cannot hold
            return True


def record_of(meta_dict: Mapping[str, Any], id_: str) -> ItemRecord | None:
    """Look an item up in a map; None where there is none."""
    if not isinstance(meta_dict, Entries):
        entry = meta_dict.get(id_)
        return None if entry is None else EntryRecord(entry)
    found = meta_dict.look_up(id_)
    if found is None or isinstance(found, IndexRecord):
        return found
    return EntryRecord(found)
