"""What the first frame of a clip tells of those that look like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gulpio2.codecs.frame_header import find_frame_header
from gulpio2.codecs.jpeg import MAX_PIXELS, read_header, refuse_above

if TYPE_CHECKING:
    from gulpio2.codecs.frame_header import FrameHeader
    from gulpio2.codecs.jpeg import JpegHeader

__all__ = ["TAIL_BYTES", "FirstFrame", "look_at_first"]

TAIL_BYTES = 512 * 6
"""Bytes behind a frame that the codec is given with it, its tail.

It decodes Huffman codes in its quick way while so many are left for each block of a
unit (``BUFSIZE`` in jdhuff.c of libjpeg-turbo), of which 4:2:0 has six: without them
the end of a frame goes the slow way. They are not decoded, and may be anything.
"""


class FirstFrame(NamedTuple):
    """The header of a frame."""

    header: JpegHeader
    """What it says."""
    at: FrameHeader | None
    """Where its parts are; None where they are not in order."""
    prefix: bytes
    """The frame up to its size and components: one that begins so has the same."""
    whole_header: bytes
    """The frame up to its entropy-coded data, where these are of one sequential scan.

    The codec has read it without a tail: in a frame that begins so, no length up to
    there leads it past the end.
    """


def look_at_first(jpeg: bytes) -> FirstFrame:
    """Look at the header of a frame.

    Parameters
    ----------
    jpeg : bytes
        The frame, and nothing behind it.

    Raises
    ------
    CorruptFrameError
        No JPEG, or one above `MAX_PIXELS`.
    """
    header = read_header(jpeg)
    refuse_above(MAX_PIXELS, header)
    at = find_frame_header(jpeg)
    if at is None:
        return FirstFrame(header, None, b"", b"")
    whole = jpeg[: at.scan_at] if at.scan_at < len(jpeg) else b""
    return FirstFrame(header, at, jpeg[: at.end], whole)
