"""The headers of Theora, which come again where files of Ogg follow each other.

FFmpeg hands them out as packets. Its decoder begins anew with those that tell of the
video and of its tables, and answers the one with comments as if it were damage.
"""

from __future__ import annotations

from typing import Any

__all__ = ["differs", "is_comment", "is_header"]

# Theora specification, section 6: the first byte of a header, where a frame has no such
# bit. In the one that tells of the video, the rate and the bits by which the number of
# a key frame is shifted in the time of a page.
_HEADER, _VIDEO, _COMMENT = 0x80, 0x80, 0x81
_RATE, _SHIFT, _SHIFT_BITS = slice(22, 30), slice(40, 42), 0x03E0
# Of the headers before the first frame, each has its length before it.
_LENGTH_BYTES = 2


def is_header(packet: Any) -> bool:
    """Tell whether a packet of the video, which is not empty, is no frame."""
    return bool(memoryview(packet)[0] & _HEADER)


def is_comment(header: Any) -> bool:
    """Tell whether it is one that the decoder is not to be given."""
    return bool(memoryview(header)[0] == _COMMENT)


def differs(header: Any, extradata: bytes | None) -> bool:
    """Tell whether times behind a header are others than FFmpeg takes them for.

    Parameters
    ----------
    header : av.Packet
        Any of them.
    extradata : bytes or None
        The headers before the first frame, by which FFmpeg tells all times.
    """
    new, first = bytes(header), (extradata or b"")[_LENGTH_BYTES:]
    return new[0] == _VIDEO and _times_of(new) != _times_of(first)


def _times_of(header: bytes) -> tuple[bytes, int]:
    return header[_RATE], int.from_bytes(header[_SHIFT], "big") & _SHIFT_BITS
