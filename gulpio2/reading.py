"""Records out of a data file: few reads, then a decode per frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gulpio2.codecs.jpeg import decode_into, read_header
from gulpio2.errors import CorruptFrameError, FormatError
from gulpio2.format.plan import plan_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy.typing as npt

    from gulpio2.format.records import FrameInfo

    ReadAt = Callable[[int, int], bytes]

__all__ = ["decode_clip", "decode_frames", "fetch_jpegs"]


def fetch_jpegs(read_at: ReadAt, infos: Sequence[FrameInfo]) -> list[memoryview]:
    """Fetch the JPEG bytes of records, without their padding.

    Parameters
    ----------
    read_at : callable
        Offset and length in bytes to exactly those bytes.
    infos : sequence of FrameInfo
        Any order; repeats are fetched once.

    Returns
    -------
    list of memoryview
        In the order of `infos`.

    Notes
    -----
    Neighbours share one call of `read_at`; see `gulpio2.format.plan.plan_reads`.
    """
    spans = [(info[0], info[2] - info[1]) for info in infos]
    jpegs = [memoryview(b"")] * len(spans)
    for read in plan_reads(spans):
        block = memoryview(read_at(read.offset, read.length))
        for member in read.members:
            offset, length = spans[member]
            start = offset - read.offset
            jpegs[member] = block[start : start + length]
    return jpegs


def decode_frames(
    jpegs: Sequence[memoryview],
    decoder: Callable[[Any], Any],
    describe: Callable[[int], str],
) -> list[Any]:
    """Decode each frame by a decoder that takes bytes and returns anything.

    Parameters
    ----------
    jpegs : sequence of memoryview
        One per frame.
    decoder : callable
        Called once per frame, in order; its result is passed on unchanged.
    describe : callable
        Position in `jpegs` to where that frame is, for the message.

    Raises
    ------
    CorruptFrameError
        The package's own decoder could not decode a frame.
    """
    frames = []
    for position, jpeg in enumerate(jpegs):
        try:
            frames.append(decoder(bytes(jpeg)))
        except CorruptFrameError as cause:
            raise CorruptFrameError(f"{describe(position)}: {cause}") from cause
    return frames


def decode_clip(
    jpegs: Sequence[memoryview],
    out: npt.NDArray[np.uint8] | None,
    describe: Callable[[int], str],
) -> npt.NDArray[np.uint8]:
    """Decode frames of one size into one array.

    Parameters
    ----------
    jpegs : sequence of memoryview
        At least one.
    out : numpy.ndarray, optional
        ``(T, H, W, C)`` uint8, C-contiguous, to decode into.
    describe : callable
        Position in `jpegs` to where that frame is, for messages.

    Returns
    -------
    numpy.ndarray
        `out`, or a new array: ``(T, H, W, 3)`` RGB, ``(T, H, W, 1)`` if all are grey.

    Raises
    ------
    CorruptFrameError
        A frame cannot be decoded.
    FormatError
        Frames differ in size or in being grey, or do not fit `out`.
    """
    position = 0
    try:
        first = read_header(jpegs[0]).shape
        shape = (len(jpegs), *first, *((1,) if len(first) == 2 else ()))
        if out is None:
            out = np.empty(shape, np.uint8)
        elif out.shape != shape or out.dtype != np.uint8 or not out.flags.c_contiguous:
            raise FormatError(
                f"{describe(0)}: a clip of shape {shape} does not fit into out, which "
                f"is {out.shape} {out.dtype}; it must be C-contiguous uint8"
            )
        for position, jpeg in enumerate(jpegs):
            frame = out[position]
            decode_into(jpeg, frame[..., 0] if len(first) == 2 else frame)
    except CorruptFrameError as cause:
        raise CorruptFrameError(f"{describe(position)}: {cause}") from cause
    except ValueError as cause:
        if isinstance(cause, FormatError):
            raise
        raise FormatError(
            f"{describe(position)}: {cause}. The frames of this item differ in shape: "
            "use read_frames, which gives a list"
        ) from cause
    return out
