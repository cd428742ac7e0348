"""Frames out of data files: few reads, shared out over threads, into given memory.

`FrameRequest` names the records that are wanted of one item. `read_arrays` decodes the
frames of several requests into one array, `read_list` those of one into a list, and
`fetch_jpegs` gives the bytes as they are.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.blocks import FrameRequest, cut_at, plan_blocks, verify_crc32
from gulpio2.codecs.jpeg import decode_frame
from gulpio2.codecs.options import AS_STORED
from gulpio2.codecs.output import empty_frames, have_heap_keep
from gulpio2.codecs.recent import decoder_for
from gulpio2.errors import (
    CorruptFrameError,
    FormatError,
    ReadRangeError,
    with_article,
)
from gulpio2.format.plan import first_empty, plan_reads
from gulpio2.jobs import Job
from gulpio2.stopwatch import STOPWATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from gulpio2.blocks import Block
    from gulpio2.codecs.decode import FrameDecoder
    from gulpio2.codecs.options import DecodeOptions
    from gulpio2.jobs import Decode, Targets

__all__ = [
    "FrameRequest",
    "fetch_jpegs",
    "put_array",
    "read_arrays",
    "read_list",
    "with_place",
    "writable_array",
]


def _repeats(request: FrameRequest) -> dict[int, int]:
    """Find frames that come again: position to that of the first."""
    again: dict[int, int] = {}
    spans = request.spans
    if len(set(spans)) == len(spans):
        return again
    first: dict[tuple[int, int], int] = {}
    for position, span in enumerate(spans):
        earlier = first.setdefault(span, position)
        if earlier != position:
            again[position] = earlier
    return again


def fetch_jpegs(request: FrameRequest) -> list[memoryview]:
    """Fetch the JPEG bytes of records.

    Returns
    -------
    list of memoryview
        In the order of the request.

    Raises
    ------
    CorruptFrameError
        A record is empty, or is not what its checksum says.

    Notes
    -----
    Neighbours share one read; see `gulpio2.format.plan.plan_reads`.
    """
    spans = request.spans
    jpegs = [memoryview(b"")] * len(spans)
    reads = plan_reads(spans)
    if sum(len(read.members) for read in reads) < len(spans):
        where = request.place(first_empty(spans))
        raise CorruptFrameError(f"{where}: the record is empty")
    for read in reads:
        start = perf_counter()
        try:
            block = request.read_at(read.offset, read.length)
        except ReadRangeError as cause:
            raise cut_at(request.place(read.members[0]), cause) from cause
        if STOPWATCH.is_on:
            STOPWATCH.add_read(start, read.length)
        view = memoryview(block)
        for member in read.members:
            offset, length = spans[member]
            at = offset - read.offset
            jpegs[member] = view[at : at + length]
            if request.crc32 is not None:
                try:
                    verify_crc32(
                        jpegs[member], request.crc32[member], request.is_edited_to
                    )
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
    repeats = {} if request.distinct else _repeats(request)
    blocks = plan_blocks(request, 0, repeats, threads)
    if not blocks:
        return []
    frames: list[Any] = [None] * len(request.spans)

    def prepare(block: Block) -> tuple[Decode, range]:
        decoder = _decoder_of(block, AS_STORED)
        shape = decoder.shape if decoder.shape[2] == 3 else decoder.shape[:2]
        have_heap_keep()

        def decode(
            data: bytes | bytearray,
            places: Iterable[tuple[int, int, int]],
            *,
            sound: bool,
        ) -> None:
            for start, stop, position in places:
                if decoder.fits(data, start):
                    frame = np.empty(shape, np.uint8)
                    decoder.decode(data, start, stop, frame, sound=sound)
                else:
                    frame = decode_frame(memoryview(data)[start:stop])
                frames[position] = frame

        return decode, range(len(frames))

    _run(blocks, threads, prepare)
    for position, earlier in repeats.items():
        frames[position] = frames[earlier].copy()
    return frames


def read_arrays(
    requests: Sequence[FrameRequest],
    out: Any,
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
    out : writable buffer or None
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
    blocks: list[Block] = []
    copies: list[tuple[int, int]] = []
    for number, request in enumerate(requests):
        first = number * num_frames
        repeats = {} if request.distinct else _repeats(request)
        blocks += plan_blocks(request, first, repeats, threads)
        if repeats:
            copies += [(first + again, first + at) for again, at in repeats.items()]
    array: Any = None
    frames: Any = None  # the same memory, without an axis for the requests

    def prepare(block: Block) -> tuple[Decode, npt.NDArray[np.uint8]]:
        nonlocal array, frames
        decoder = _decoder_of(block, options)
        lead = (len(requests), num_frames) if batched else (num_frames,)
        shape = (*lead, *decoder.shape)
        array = empty_frames(shape) if out is None else writable_array(out, shape)
        frames = array.reshape(-1, *decoder.shape) if batched else array
        return decoder.decode_each, frames

    _run(blocks, threads, prepare)
    for again, at in copies:
        frames[again][...] = frames[at]
    return array if out is None else out


def _run(
    blocks: Sequence[Block],
    threads: int,
    prepare: Callable[[Block], tuple[Decode, Targets]],
) -> None:
    """Read and decode blocks, see `Job.run`."""
    if not STOPWATCH.is_on:
        Job(blocks).run(threads, prepare)
        return
    num_frames = sum(len(block.members) for block in blocks)
    # All bytes, though a helper's reads have a time of their own.
    num_bytes = sum(block.length for block in blocks)
    with STOPWATCH.decoding(num_frames, num_bytes):
        Job(blocks).run(threads, prepare)


def _decoder_of(block: Block, options: DecodeOptions) -> FrameDecoder:
    """Make a decoder of the first frame of a block."""
    place = block.members[0]
    offset, length = block.spans[place]
    start, data = offset - block.offset, block.load()
    try:
        return decoder_for(data, start, start + length, options)
    except ValueError as cause:  # damage, or a crop that reaches out
        raise with_place(cause, block.request.place(place)) from cause


def with_place(cause: ValueError, place: str) -> ValueError:
    """Give an error that says at which frame a decoder could not be made."""
    kind = CorruptFrameError if isinstance(cause, CorruptFrameError) else ValueError
    return kind(f"{place}: {cause}")


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
    if (
        type(out) is np.ndarray
        and out.shape == shape
        and out.dtype == np.uint8
        and out.flags.carray
    ):
        return out  # the common case, without a step more
    array = _array_over(out)
    fits = array.shape == shape or array.shape == (int(np.prod(shape)),)
    if (
        not fits
        or array.dtype != np.uint8
        or not array.flags.c_contiguous
        or not array.flags.writeable
    ):
        raise FormatError(
            f"frames of shape {shape} do not fit into out, which is {_kind_of(array)}; "
            "it must be writable C-contiguous uint8"
        )
    return array.reshape(shape)


def put_array(array: npt.NDArray[Any], out: Any, *, unknown: bool) -> None:
    """Copy an array of any type into a caller's buffer.

    Parameters
    ----------
    array : numpy.ndarray
        What came out.
    out : object
        As of `writable_array`, and of the array's type; strided memory is taken, too.
    unknown : bool
        Neither the type of the array nor its last axes are known, since it is empty.

    Raises
    ------
    FormatError
        It has another shape or type, is read-only, or has several elements in the same
        memory, as a tensor that was expanded.
    """
    given = _array_over(out)
    shape = given.shape[: array.ndim] if unknown else given.shape
    fits = shape == array.shape or given.shape == (array.size,)
    if (
        not fits
        or not (unknown or given.dtype == array.dtype)
        or not given.flags.writeable
    ):
        raise FormatError(
            f"frames of shape {array.shape} and type {array.dtype} do not fit into "
            f"out, which is {_kind_of(given)}: both must agree"
        )
    if array.size:
        strides = zip(given.strides, given.shape, strict=True)
        if any(step == 0 and size > 1 for step, size in strides):
            raise FormatError(
                f"out, which is {_kind_of(given)}, has several elements in the same "
                "memory; give one with memory for each, as contiguous() of a tensor"
            )
        given[...] = array.reshape(given.shape)


def _kind_of(array: npt.NDArray[Any]) -> str:
    """Say what an array is, for a message."""
    kind = "writable" if array.flags.writeable else "read-only"
    order = "" if array.flags.c_contiguous else ", not C-contiguous"
    return f"{array.shape} {array.dtype}, {kind}{order}"


def _array_over(out: Any) -> npt.NDArray[Any]:
    """Give the memory of a caller's buffer, whatever is in it, as an array.

    Raises
    ------
    FormatError
        It has none that could be written to from here.
    """
    try:
        if isinstance(out, np.ndarray):
            return out
        if hasattr(out, "data_ptr") and hasattr(out, "numpy"):
            array: npt.NDArray[Any] = out.numpy()  # a tensor gives a view of its memory
            return array
        return np.asarray(memoryview(out))
    except (TypeError, ValueError, RuntimeError) as cause:
        raise FormatError(
            f"out is {with_article(type(out).__name__)}: {cause}"
        ) from cause
