"""Frames out of data files: few reads, shared out over threads, into given memory.

`FrameRequest` names the records that are wanted of one item. `read_arrays` decodes the
frames of several requests into one array, `read_list` those of one into a list, and
`fetch_jpegs` gives the bytes as they are.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.codecs.decode import DecodeOptions, decoder_for
from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError, FormatError, GulpError, with_article
from gulpio2.format.plan import plan_reads
from gulpio2.threads import work_together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from gulpio2.codecs.decode import FrameDecoder

__all__ = [
    "FrameRequest",
    "fetch_jpegs",
    "read_arrays",
    "read_list",
    "writable_array",
]

# Bytes of JPEG for which waking another thread pays: decoding them takes a tenth of a
# millisecond, waking a thread some twenty microseconds.
_SHARE_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class FrameRequest:
    """Records of one data file, in the order in which their frames are wanted."""

    read_at: Callable[[int, int], bytes]
    """Offset and length to bytes of the data file."""
    spans: Sequence[tuple[int, int]]
    """Offset and length of each JPEG, padding left out."""
    place: Callable[[int], str]
    """Position in `spans` to where that frame is, for messages."""
    crc32: Sequence[int] | None = None
    """Checksum of each JPEG where it is to be verified."""


class _Block:
    """One read, and the frames in it; several threads may work at one."""

    __slots__ = ("_lock", "data", "done", "frames", "length", "offset", "request")

    def __init__(
        self,
        request: FrameRequest,
        offset: int,
        length: int,
        frames: list[tuple[int, int, int, int]],
    ) -> None:
        self.request = request
        self.offset = offset
        self.length = length
        # Position in the request and in the whole job, start and stop in the block.
        self.frames = frames
        self.data: bytes | None = None
        self.done = False
        self._lock = threading.Lock()

    def load(self) -> bytes | None:
        """Read the bytes if nobody has; None where all frames are taken already."""
        with self._lock:
            if self.data is None and not self.done:
                self.data = self.request.read_at(self.offset, self.length)
            return self.data


def _plan(request: FrameRequest, first: int, skip: dict[int, int]) -> list[_Block]:
    """Plan the reads of a request whose first frame is the `first` of the job."""
    spans = request.spans
    blocks = []
    planned = 0
    for read in plan_reads(spans):
        base = read.offset
        frames = [
            (member, first + member, spans[member][0] - base, sum(spans[member]) - base)
            for member in read.members
            if member not in skip
        ]
        planned += len(read.members)
        blocks.append(_Block(request, base, read.length, frames))
    if planned < len(spans):
        empty = next(k for k, span in enumerate(spans) if span[1] == 0)
        raise CorruptFrameError(f"{request.place(empty)}: the record is empty")
    return blocks


def _repeats(spans: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Find frames that come again: position to that of the first."""
    again: dict[int, int] = {}
    if len(set(spans)) == len(spans):
        return again
    first: dict[tuple[int, int], int] = {}
    for position, span in enumerate(spans):
        earlier = first.setdefault(span, position)
        if earlier != position:
            again[position] = earlier
    return again


class _Job:
    """Blocks, each to be read and its frames decoded, by whoever comes."""

    def __init__(
        self,
        blocks: list[_Block],
        decode: Callable[[bytes, int, int, int], None],
    ) -> None:
        self.blocks = blocks
        self.decode = decode
        self.failures: list[tuple[int, BaseException]] = []
        self._next_block = count().__next__
        self._next_frame = [count().__next__ for _ in blocks]

    def run(self, threads: int) -> None:
        """Do all of it; raise what went wrong, of several frames with the first."""
        if threads > 1:
            num_bytes = sum(block.length for block in self.blocks)
            num_frames = sum(len(block.frames) for block in self.blocks)
            threads = min(threads, num_frames, num_bytes // _SHARE_BYTES)
        if threads > 1:
            work_together(self._work, threads - 1)
        else:
            self._work()
        if self.failures:
            raise min(self.failures, key=_position)[1]

    def _work(self) -> None:
        """Take blocks until none is left, then frames of those that others took."""
        blocks = self.blocks
        while (number := self._next_block()) < len(blocks):
            self._drain(number)
        for number, block in enumerate(blocks):
            if not block.done:
                self._drain(number)

    def _drain(self, number: int) -> None:
        """Decode frames of a block until all are taken."""
        block = self.blocks[number]
        frames = block.frames
        take, decode, verify = (
            self._next_frame[number],
            self.decode,
            block.request.crc32,
        )
        position, place = frames[0][1], frames[0][0]
        try:
            data = block.load()
            while data is not None and (index := take()) < len(frames):
                place, position, start, stop = frames[index]
                if self.failures:
                    break
                if verify is not None:
                    _verify(data, start, stop, verify[place])
                decode(data, start, stop, position)
        except CorruptFrameError as cause:
            self._fail(
                position,
                CorruptFrameError(f"{block.request.place(place)}: {cause}"),
                cause,
            )
        except ValueError as cause:
            if isinstance(cause, GulpError):
                self.failures.append((position, cause))
            else:
                error = FormatError(
                    f"{block.request.place(place)}: {cause}. The frames of a clip "
                    "must be of one shape; read_frames gives a list of any"
                )
                self._fail(position, error, cause)
        except BaseException as cause:
            self.failures.append((position, cause))
            if not isinstance(cause, Exception):
                raise
        # A batch is read block by block; what is decoded need not stay in memory.
        block.done, block.data = True, None

    def _fail(self, position: int, error: Exception, cause: Exception) -> None:
        error.__cause__ = cause
        self.failures.append((position, error))


def _position(failure: tuple[int, BaseException]) -> int:
    return failure[0]


def _verify(data: bytes, start: int, stop: int, crc32: int) -> None:
    found = zlib.crc32(memoryview(data)[start:stop])
    if found != crc32:
        raise CorruptFrameError(
            f"its checksum is {found:08x}, and {crc32:08x} was stored: the bytes have "
            "changed since. Run `gulp2 check --deep` on the directory"
        )


def fetch_jpegs(request: FrameRequest) -> list[memoryview]:
    """Fetch the JPEG bytes of records.

    Returns
    -------
    list of memoryview
        In the order of the request.

    Notes
    -----
    Neighbours share one read; see `gulpio2.format.plan.plan_reads`.
    """
    spans = request.spans
    jpegs = [memoryview(b"")] * len(spans)
    for read in plan_reads(spans):
        block = request.read_at(read.offset, read.length)
        view = memoryview(block)
        for member in read.members:
            offset, length = spans[member]
            start = offset - read.offset
            jpegs[member] = view[start : start + length]
            if request.crc32 is not None:
                try:
                    _verify(block, start, start + length, request.crc32[member])
                except CorruptFrameError as cause:
                    raise CorruptFrameError(
                        f"{request.place(member)}: {cause}"
                    ) from cause
    return jpegs


def read_list(request: FrameRequest, *, threads: int) -> list[npt.NDArray[np.uint8]]:
    """Decode frames into arrays of their own.

    Parameters
    ----------
    request : FrameRequest
        The frames, of any shapes.
    threads : int
        How many may decode at the same time.

    Returns
    -------
    list of numpy.ndarray
        ``(H, W, 3)`` uint8 RGB, or ``(H, W)`` for grey ones; each owns its memory.

    Raises
    ------
    CorruptFrameError
        A frame cannot be decoded; the message gives its place.
    """
    repeats = _repeats(request.spans)
    blocks = _plan(request, 0, repeats)
    if not blocks:
        return []
    frames: list[Any] = [None] * len(request.spans)
    decoder = _decoder_of(blocks[0], DecodeOptions())
    shape = decoder.shape if decoder.shape[2] == 3 else decoder.shape[:2]

    def decode(block: bytes, start: int, stop: int, position: int) -> None:
        if decoder.fits(block, start):
            frame = np.empty(shape, np.uint8)
            decoder.decode(block, start, stop, frame)
        else:
            frame = decode_frame(memoryview(block)[start:stop])
        frames[position] = frame

    _Job(blocks, decode).run(threads)
    for position, earlier in repeats.items():
        frames[position] = frames[earlier].copy()
    return frames


def read_arrays(
    requests: Sequence[FrameRequest],
    out: Any = None,
    *,
    options: DecodeOptions,
    threads: int,
    batched: bool,
) -> Any:
    """Decode the frames of several requests into one array.

    Parameters
    ----------
    requests : sequence of FrameRequest
        At least one, each of the same number of frames, at least one.
    out : writable buffer, optional
        Of the shape of the result, to decode into; see `writable_array`.
    options : DecodeOptions
        What to make of each frame.
    threads : int
        How many may decode at the same time.
    batched : bool
        False: there is one request, and the result has no axis for it.

    Returns
    -------
    numpy.ndarray
        ``(B, T, H, W, C)`` uint8, or `out`.

    Raises
    ------
    CorruptFrameError
        A frame cannot be decoded; the message gives its place.
    FormatError
        The frames differ in shape, or do not fit `out`.
    ValueError
        The crop reaches out of the frames.
    """
    num_frames = len(requests[0].spans)
    blocks: list[_Block] = []
    copies: list[tuple[int, int]] = []
    for number, request in enumerate(requests):
        first = number * num_frames
        repeats = _repeats(request.spans)
        blocks += _plan(request, first, repeats)
        copies += [(first + again, first + at) for again, at in repeats.items()]
    decoder = _decoder_of(blocks[0], options)
    lead = (len(requests), num_frames) if batched else (num_frames,)
    shape = (*lead, *decoder.shape)
    array = np.empty(shape, np.uint8) if out is None else writable_array(out, shape)
    # A list: taking a frame out of an array costs three times as much.
    frames = list(array.reshape(-1, *decoder.shape))

    def decode(block: bytes, start: int, stop: int, position: int) -> None:
        decoder.decode(block, start, stop, frames[position])

    _Job(blocks, decode).run(threads)
    for again, at in copies:
        frames[again][...] = frames[at]
    return array if out is None else out


def _decoder_of(block: _Block, options: DecodeOptions) -> FrameDecoder:
    """Make a decoder of the first frame of a block."""
    place, _, start, stop = block.frames[0]
    try:
        data = block.load() or b""
        return decoder_for(data, start, stop, options)
    except CorruptFrameError as cause:
        raise CorruptFrameError(f"{block.request.place(place)}: {cause}") from cause


def writable_array(out: Any, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Give the memory of a caller's buffer as an array.

    Parameters
    ----------
    out : object
        A numpy array, a CPU tensor of torch, or anything with a writable buffer of
        uint8: of this shape, or of one dimension and this many bytes.
    shape : tuple of int
        What is needed.

    Raises
    ------
    FormatError
        It has another shape or type, is not C-contiguous, or is read-only.
    """
    try:
        if isinstance(out, np.ndarray):
            array = out
        elif hasattr(out, "data_ptr"):  # a tensor gives a view of its memory
            array = out.numpy()
        else:
            array = np.asarray(memoryview(out))
    except (TypeError, ValueError, RuntimeError) as cause:
        raise FormatError(
            f"out is {with_article(type(out).__name__)}: {cause}"
        ) from cause
    fits = array.shape == shape or array.shape == (int(np.prod(shape)),)
    if (
        not fits
        or array.dtype != np.uint8
        or not array.flags.c_contiguous
        or not array.flags.writeable
    ):
        kind = "writable" if array.flags.writeable else "read-only"
        raise FormatError(
            f"frames of shape {shape} do not fit into out, which is {array.shape} "
            f"{array.dtype}, {kind}; it must be writable C-contiguous uint8"
        )
    return array.reshape(shape)
