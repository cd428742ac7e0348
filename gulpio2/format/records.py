"""Where a frame is in a data file, and its padding."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ALIGNMENT", "FrameInfo", "pad_length", "padded_length", "record_of"]

# Bytes. Of GulpIO2: every record starts at a multiple of four.
ALIGNMENT = 4


class FrameInfo(NamedTuple):
    """One record: a complete JPEG and 0 to 3 zero bytes. Equal to the plain triplet."""

    loc: int
    """Offset of the first byte in the data file."""
    pad: int
    """Zero bytes after the JPEG, 0 to 3."""
    length: int
    """Bytes of the record, padding included."""


# So that GulpIO2 reads a pickled map that has some, and they are printed as there.
FrameInfo.__module__ = "gulpio2.fileio"
FrameInfo.__name__ = FrameInfo.__qualname__ = "ImgInfo"


def pad_length(num_bytes: int) -> int:
    """Count the zero bytes that bring a length to a multiple of four.

    Examples
    --------
    >>> [pad_length(n) for n in range(5)]
    [0, 3, 2, 1, 0]
    """
    return -num_bytes % ALIGNMENT


def padded_length(num_bytes: int) -> int:
    """Count the bytes of the record of a JPEG.

    Examples
    --------
    >>> [padded_length(n) for n in range(5)]
    [0, 4, 4, 4, 4]
    """
    return num_bytes + pad_length(num_bytes)


def record_of(jpeg: bytes | memoryview, loc: int) -> tuple[FrameInfo, bytes]:
    """Make the record of a JPEG that goes to offset `loc`.

    Returns
    -------
    info : FrameInfo
        Where the record lies.
    padding : bytes
        The zeros to write after the JPEG.
    """
    length = len(jpeg)
    pad = -length % ALIGNMENT
    return FrameInfo(loc, pad, length + pad), b"\0" * pad
