"""One stored item: its frames by index and by time.

`GulpChunk` and `GulpDirectory` find an item; what is done with it is here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.codecs.jpeg import jpeg_bytes_to_img, read_header
from gulpio2.errors import CorruptFrameError, FrameIndexError, FrameTimeError
from gulpio2.format.entry import EntryExtras, load_extras
from gulpio2.format.selection import select_frames
from gulpio2.format.times import TimeMode, index_at
from gulpio2.reading import decode_clip, decode_frames, fetch_jpegs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction

    import numpy.typing as npt

    from gulpio2.format.records import FrameInfo
    from gulpio2.types import FrameSelection, Meta, StrPath

    Seconds = float | Fraction | Iterable[float | Fraction]

__all__ = ["StoredItem"]


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item and the way to its bytes. Opens nothing before frames are read."""

    id_: str
    """Its id."""
    entry: Mapping[str, Any]
    """Its entry in the map."""
    data_path: StrPath
    """The data file, for messages."""
    read_at: Callable[[int, int], bytes]
    """Offset and length to bytes of the data file."""
    decoder: Callable[[Any], Any]
    """Bytes of a JPEG to what a frame is to be."""

    @property
    def num_frames(self) -> int:
        """Frames stored."""
        return len(self.entry["frame_info"])

    @property
    def num_bytes(self) -> int:
        """Bytes of the records, padding included."""
        return sum(info[2] for info in self.entry["frame_info"])

    @property
    def duration(self) -> float | None:
        """Seconds from the first frame's time to the last one's; None if unknown."""
        extras = self.extras
        if extras.time_base is None or not extras.pts:
            return None
        return float((max(extras.pts) - min(extras.pts)) * extras.time_base)

    @property
    def meta(self) -> Meta:
        """A copy of the metadata; {} where there is none."""
        metas = self.entry["meta_data"]
        return dict(metas[0] or {}) if metas else {}

    @property
    def extras(self) -> EntryExtras:
        """Checksums, times and source facts, where it has them."""
        where = f"item {self.id_!r} of {self.data_path}"
        return load_extras(self.entry, where=where)

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of the first frame, ``(H, W, C)``, C 1 for grey; reads one record.

        ``(0, 0, 3)`` for an item without frames.
        """
        indices = range(min(1, self.num_frames))
        if not indices:
            return (0, 0, 3)
        try:
            shape = read_header(self._fetch(indices)[0]).shape
        except CorruptFrameError as cause:
            raise CorruptFrameError(f"{self._place(0)}: {cause}") from cause
        return shape if len(shape) == 3 else (*shape, 1)

    def read_frames(self, selection: FrameSelection) -> list[Any]:
        """Decode frames into a list."""
        indices = self._select(selection)
        jpegs = self._fetch(indices)
        return decode_frames(jpegs, self.decoder, lambda k: self._place(indices[k]))

    def read_jpegs(self, selection: FrameSelection) -> list[bytes]:
        """Read frames as they are stored."""
        return [bytes(jpeg) for jpeg in self._fetch(self._select(selection))]

    def read_clip(
        self, selection: FrameSelection, out: npt.NDArray[np.uint8] | None
    ) -> npt.NDArray[np.uint8]:
        """Decode frames into one array."""
        indices = self._select(selection)
        if self.decoder is not jpeg_bytes_to_img:
            frames = self.read_frames(indices)
            stacked = np.stack(frames) if frames else np.empty((0,), np.uint8)
            if out is None:
                return stacked
            out[...] = stacked
            return out
        if not indices:
            empty = np.empty((0, *self.frame_shape), np.uint8)
            return empty if out is None else out
        jpegs = self._fetch(indices)
        return decode_clip(jpegs, out, lambda k: self._place(indices[k]))

    def frame_indices_at(self, seconds: Seconds, mode: TimeMode) -> list[int]:
        """Find the frames at these times."""
        extras = self.extras
        if extras.time_base is None or not extras.pts:
            raise FrameTimeError(
                f"item {self.id_!r} in {self.data_path} has no presentation times: it "
                "was made from images, or by GulpIO2. Select its frames by index"
            )
        times = [seconds] if isinstance(seconds, Real) else seconds
        order = sorted(range(len(extras.pts)), key=extras.pts.__getitem__)
        ascending = [extras.pts[index] for index in order]
        return [
            order[index_at(ascending, extras.time_base, time, mode)]
            for time in times  # type: ignore[union-attr]  # Real covers the numbers
        ]

    def __repr__(self) -> str:
        """Show the id and the number of frames, never the frames."""
        return f"StoredItem({self.id_!r}, {self.num_frames} frames)"

    def _select(self, selection: FrameSelection) -> Sequence[int]:
        try:
            return select_frames(selection, self.num_frames)
        except FrameIndexError as cause:
            raise FrameIndexError(f"item {self.id_!r}: {cause}") from None

    def _fetch(self, indices: Sequence[int]) -> list[memoryview]:
        infos: list[FrameInfo] = self.entry["frame_info"]
        return fetch_jpegs(self.read_at, [infos[index] for index in indices])

    def _place(self, index: int) -> str:
        loc = self.entry["frame_info"][index][0]
        return f"item {self.id_!r}, frame {index}, in {self.data_path} at byte {loc}"
