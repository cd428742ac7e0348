"""One stored item: its frames by index and by time.

`GulpChunk` and `GulpDirectory` find an item; what is done with it is here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.blocks import cut_at
from gulpio2.codecs.decode import FrameDecoder
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.codecs.options import AS_STORED
from gulpio2.errors import (
    CorruptFrameError,
    FormatError,
    FrameIndexError,
    FrameTimeError,
    ReadRangeError,
    of_zeros,
)
from gulpio2.format.jpeg_markers import SOI
from gulpio2.format.selection import select_frames
from gulpio2.format.times import TimeMode, indices_at
from gulpio2.format.wording import counted
from gulpio2.reading import (
    FrameRequest,
    fetch_jpegs,
    put_array,
    read_arrays,
    read_list,
    with_place,
)
from gulpio2.record import EntryRecord
from gulpio2.threads import default_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction

    from gulpio2.codecs.options import DecodeOptions
    from gulpio2.format.entry import EntryExtras
    from gulpio2.format.times import TimeRuns
    from gulpio2.record import ItemRecord
    from gulpio2.storage.handles import HandlePool
    from gulpio2.types import FrameSelection, Meta, StrPath

    Seconds = float | Fraction | Iterable[float | Fraction]

__all__ = ["EditedChecksums", "StoredItem", "read_clips"]


@dataclass(slots=True, eq=False)
class StoredItem:
    """An item and the way to its bytes. Opens nothing before frames are read."""

    id_: str
    """Its id."""
    record: ItemRecord
    """What the map says of it."""
    data_path: StrPath
    """The data file, for messages."""
    read_at: Callable[[int, int], bytes]
    """Offset and length to bytes of the data file."""
    decoder: Callable[[Any], Any]
    """Bytes of a JPEG to what a frame is to be."""
    threads: int | None = None
    """Threads that may decode at the same time; None for the default."""
    verify: bool = True
    """Whether the checksum of each frame is compared before it is given."""
    handles: HandlePool | None = None
    """The open files that `read_at` reads from, where it does nothing else."""

    @property
    def entry(self) -> Mapping[str, Any]:
        """Its entry in the map."""
        return self.record.entry

    @property
    def num_frames(self) -> int:
        """Frames stored."""
        return self.record.num_frames

    @property
    def num_bytes(self) -> int:
        """Bytes of the records, padding included."""
        return self.record.num_bytes

    @property
    def duration(self) -> float | None:
        """Seconds from the first frame's time to the last one's end; None if unknown.

        The last frame is taken to be shown for as long as those before it (the median).
        """
        if (times := self.times) is None:
            return None
        numerator, denominator = times.time_base
        return times.ticks_shown * numerator / denominator

    @property
    def meta(self) -> Meta:
        """A copy of the metadata, lists in which may be shared; {} without any."""
        return self.record.meta

    @property
    def extras(self) -> EntryExtras:
        """Checksums, times and source facts, where it has them."""
        return self.record.extras(self._where)

    @property
    def times(self) -> TimeRuns | None:
        """Times of its frames as they are stored, without one for each; None: none."""
        return self.record.times(self._where)

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of the first frame, ``(H, W, C)``, C 1 for grey; reads one record.

        ``(0, 0, 3)`` for an item without frames.
        """
        return self.decoded_shape(AS_STORED)

    def decoded_shape(self, options: DecodeOptions) -> tuple[int, ...]:
        """Shape that the first frame has when it is decoded like this."""
        if not self.num_frames:
            return (0, 0, 1 if options.colorspace == "gray" else 3)
        (jpeg,) = fetch_jpegs(self.request([0]))
        try:
            return FrameDecoder(bytes(jpeg), options).shape
        except ValueError as cause:  # damage, or a crop that reaches out
            raise with_place(cause, self._place(0)) from cause

    def read_frames(
        self, selection: FrameSelection, edited: EditedChecksums | None = None
    ) -> list[Any]:
        """Decode frames into a list; for `edited` see `request`."""
        indices = self.select(selection)
        request = self.request(indices, edited)
        if self.decoder is jpeg_bytes_to_img:
            return read_list(request, threads=self.num_threads)
        frames = []
        # One after the other and in this thread: the decoder is a caller's.
        for position, jpeg in enumerate(fetch_jpegs(request)):
            try:
                frames.append(self.decoder(bytes(jpeg)))
            except CorruptFrameError as cause:
                raise with_place(cause, self._place(indices[position])) from cause
        return frames

    def read_jpegs(self, selection: FrameSelection) -> list[bytes]:
        """Read frames as they are stored."""
        request = self.request(self.select(selection))
        jpegs = [bytes(jpeg) for jpeg in fetch_jpegs(request)]
        for position, jpeg in enumerate(jpegs):
            # Without a checksum nothing has looked at it, and nobody decodes it here.
            if not jpeg.startswith(SOI):
                why = f"does not begin as a JPEG does{of_zeros(jpeg)}"
                raise CorruptFrameError(f"{request.place(position)}: {why}")
        return jpegs

    def read_clip(
        self,
        selection: FrameSelection,
        out: Any = None,
        options: DecodeOptions = AS_STORED,
    ) -> Any:
        """Decode frames into one array."""
        indices = self.select(selection)
        if indices and self.decoder is jpeg_bytes_to_img:
            return read_arrays(
                [self.request(indices)],
                out,
                options=options,
                threads=self.num_threads,
                batched=False,
            )
        return read_clips([(self, indices)], out, options, batched=False)

    def request(
        self, indices: Sequence[int], edited: EditedChecksums | None = None
    ) -> FrameRequest:
        """Name the records of these frames; requests of one call may share `edited`."""
        handles = self.handles  # asked directly: a call less than `read_into`, per read
        return FrameRequest(
            self.read_at,
            self.record.spans(indices),
            lambda position: self._place(indices[position]),
            self.checksums(indices),
            partial(handles.read_several, str(self.data_path)) if handles else None,
            isinstance(indices, range),
            edited or EditedChecksums(self),
        )

    def checksums(self, indices: Sequence[int]) -> list[int] | None:
        """Give the CRC-32 of each of these frames; None where none is compared."""
        try:
            return self.record.crc32(indices) if self.verify else None
        except CorruptFrameError as cause:
            raise CorruptFrameError(f"{self._where}: {cause}") from cause

    def read_into(
        self, offset: int, length: int, memory: bytearray
    ) -> bytes | bytearray:
        """Read bytes of the data file, where possible into memory that is used again.

        Gives what begins with them: `memory` (see `HandlePool.read_into`), or other.
        """
        try:
            if self.handles is None:
                return self.read_at(offset, length)
            return self.handles.read_into(str(self.data_path), offset, length, memory)
        except ReadRangeError as cause:
            raise cut_at(f"item {self.id_!r}", cause) from cause

    @property
    def num_threads(self) -> int:
        """Threads that may decode at the same time."""
        return default_threads() if self.threads is None else self.threads

    def frame_indices_at(
        self, seconds: Seconds, mode: TimeMode = "nearest"
    ) -> list[int]:
        """Find the frames at these times.

        Parameters
        ----------
        seconds : number or iterable of numbers
            Times on the source's own timeline.
        mode : {"nearest", "before", "at"}, optional
            "nearest": the frame whose time is closest, the earlier one of two equally
            close. "before": the last frame whose time is not after it, the one on the
            screen then. "at": the frame at that very time, to a tick of the source.

        Returns
        -------
        list of int
            One per time.

        Raises
        ------
        FrameTimeError, TypeError, ValueError
            As `GulpDirectory.read_frames_at`.
        """
        if (times := self.record.frame_times(self._where)) is None:
            raise FrameTimeError(
                f"item {self.id_!r} in {self.data_path} has no presentation times: it "
                "has no video behind it, GulpIO2 0.0.4 wrote it, or frames without "
                "such times were appended. Select by index"
            )
        return indices_at(times, seconds, mode)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy with the entry itself: an index stays where it is."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return partial(StoredItem, **{**values, "record": EntryRecord(self.entry)}), ()

    def __repr__(self) -> str:
        """Show the id and the number of frames, never the frames."""
        return f"StoredItem({self.id_!r}, {counted(self.num_frames, 'frame')})"

    def select(self, selection: FrameSelection) -> Sequence[int]:
        """Turn a selection into frame indices."""
        try:
            return select_frames(selection, self.num_frames)
        except FrameIndexError as cause:
            raise FrameIndexError(f"item {self.id_!r}: {cause}") from None
        except (TypeError, ValueError) as cause:
            kind = TypeError if isinstance(cause, TypeError) else ValueError
            raise kind(f"item {self.id_!r}: {cause}") from None

    @property
    def _where(self) -> str:
        return f"item {self.id_!r} of {self.data_path}"

    def _place(self, index: int) -> str:
        loc = self.record.spans([index])[0][0]
        return f"item {self.id_!r}, frame {index}, in {self.data_path} at byte {loc}"


class EditedChecksums:
    """Tells of a frame whether it is in another one's place by an edit of the entry.

    Entries in memory may be edited, their frames put into another order. Asked for the
    checksums of such frames, not those stored for their places; what it takes to answer
    is looked for once, as every frame of an item may be asked for.

    Parameters
    ----------
    item : StoredItem
        As it is at the first question.
    """

    __slots__ = ("_found", "_item")

    def __init__(self, item: StoredItem) -> None:
        self._item = item
        self._found: frozenset[int] | None = None

    def __call__(self, crc32: int) -> bool:
        """Tell whether the entry is edited and has a frame of this checksum."""
        if self._found is None:
            item = self._item
            edited = item.record.is_edited(item.id_)
            # Of an entry that is damaged elsewhere, too.
            found = item.record.crc32(range(item.num_frames)) if edited else None
            self._found = frozenset(found or ())
        return crc32 in self._found


def read_clips(
    parts: Sequence[tuple[StoredItem, FrameSelection]],
    out: Any,
    options: DecodeOptions,
    *,
    batched: bool = True,
) -> Any:
    """Decode frames of several items of a directory into one array.

    Parameters
    ----------
    parts : sequence of (StoredItem, selection)
        At least one; each must come to the same number of frames.
    out : writable buffer or None
        To decode into.
    options : DecodeOptions
        What to make of each frame.
    batched : bool, optional
        False: there is one part, and the result has no axis for it.

    Returns
    -------
    numpy.ndarray
        ``(B, T, H, W, C)``, or `out`.

    Raises
    ------
    FormatError
        Numbers of frames differ, frames differ in shape, or do not fit `out`.
    """
    chosen = [(item, item.select(selection)) for item, selection in parts]
    first, indices = chosen[0]
    for item, others in chosen:
        if len(others) != len(indices):
            raise FormatError(
                f"{counted(len(indices), 'frame')} of item {first.id_!r} and "
                f"{len(others)} of item {item.id_!r} do not make one array; select the "
                "same number of each"
            )
    is_custom = first.decoder is not jpeg_bytes_to_img
    if indices and not is_custom:
        return read_arrays(
            [item.request(indices) for item, indices in chosen],
            out,
            options=options,
            threads=first.num_threads,
            batched=batched,
        )
    if is_custom:
        if options != AS_STORED:
            raise ValueError(
                "a custom jpeg_decoder returns whole frames: scale, min_size, crop "
                "and colorspace go with the package's decoder only"
            )
        array = _stacked([item.read_frames(each) for item, each in chosen], chosen)
    else:
        array = np.empty((len(chosen), 0, *first.decoded_shape(options)), np.uint8)
    if not batched:
        array = array[0]
    if out is None:
        return array
    # With no frames, a custom decoder gives neither shape nor type.
    put_array(array, out, unknown=not indices and is_custom)
    return out


def _stacked(
    clips: Sequence[list[Any]], chosen: Sequence[tuple[Any, Sequence[int]]]
) -> Any:
    """Put what a caller's decoder gave for several clips into one array.

    Of each clip there are as many, and its item and frames are `chosen`. The shape is
    ``(B, T, ...)``, or ``(B, 0)`` where there are none. FormatError where they differ.
    """
    if not clips[0]:
        return np.empty((len(clips), 0), np.uint8)
    arrays = [[np.asanyarray(result) for result in clip] for clip in clips]
    shape = arrays[0][0].shape
    for clip, (item, indices) in zip(arrays, chosen, strict=True):
        for array, index in zip(clip, indices, strict=True):
            if array.shape != shape:
                raise FormatError(
                    f"item {item.id_!r}, frame {index}: the jpeg_decoder gave what has "
                    f"shape {array.shape}, and {shape} for the first frame. The frames "
                    "of a clip must be of one shape; read_frames gives a list of any"
                )
    return np.stack([np.stack(clip) for clip in arrays])
