"""Where a JPEG says its size and components: for what the codec cannot be asked."""

from __future__ import annotations

from typing import NamedTuple

from gulpio2.format.jpeg_markers import SEQUENTIAL, START_OF_FRAME, START_OF_SCAN

__all__ = ["FrameHeader", "find_frame_header", "with_factors_of_444"]

# Markers without a length, and fill bytes: not expected before the first scan.
_BARE = frozenset({0x00, 0x01, 0xFF, *range(0xD0, 0xDA)})


class FrameHeader(NamedTuple):
    """Where the frame header of a JPEG is, and whether rows can be left out."""

    start: int
    """Offset of its marker."""
    end: int
    """Bytes up to its end: size and components are in them."""
    height_at: int
    """Offset of the two bytes with the height; 0 where it must stay as it is."""
    scan_at: int
    """Bytes up to the entropy-coded data; 0 where `height_at` is."""


def find_frame_header(jpeg: bytes) -> FrameHeader | None:
    """Walk the segments of a JPEG; None where they are not in order."""
    position, start, end, height_at, components = 2, 0, 0, 0, 0
    while position + 9 < len(jpeg) and jpeg[position] == 0xFF:
        marker = jpeg[position + 1]
        if marker in _BARE:
            return None
        length = int.from_bytes(jpeg[position + 2 : position + 4], "big")
        if length < 2:
            return None
        if marker in START_OF_FRAME:
            start, end = position, position + 2 + length
            components = jpeg[position + 9]
            # Where rows come in order, the last ones can be left.
            height_at = position + 5 if marker in SEQUENTIAL else 0
        elif marker == START_OF_SCAN:
            # More than one scan: the rows of all but the last would have to be read.
            if jpeg[position + 4] != components:
                height_at = 0
            scan_at = position + 2 + length if height_at else 0
            return FrameHeader(start, end, height_at, scan_at) if end else None
        position += 2 + length
    return None


def with_factors_of_444(jpeg: bytes) -> bytes | None:
    """Change a header so that every component has a value per pixel.

    The data behind the header does not fit it any more.

    Returns
    -------
    bytes or None
        None where there is no header, or one that is cut.
    """
    header = find_frame_header(jpeg)
    if header is None:
        return None
    changed = bytearray(jpeg)
    factors = range(header.start + 11, header.end, 3)
    if len(factors) != changed[header.start + 9] or header.end > len(changed):
        return None
    for at in factors:
        changed[at] = 0x11
    return bytes(changed)
