"""What a JPEG file is, by its markers: nothing is decoded."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from gulpio2.format.jpeg_markers import EOI, SOI, START_OF_FRAME

__all__ = ["JpegOutline", "outline_jpeg"]

# Of a frame header, behind its length: precision, rows, columns, components.
_FRAME = struct.Struct(">BHHB")
# Baseline, extended sequential and progressive, all with Huffman coding: what every
# decoder has. The others are lossless, hierarchical or arithmetic.
_COMMON = (0xC0, 0xC1, 0xC2)
# A marker that ends entropy-coded data: neither a stuffed FF 00, nor a restart, nor an
# FF that fills the room before another one.
_NEXT_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_MARKERS = frozenset((*range(0x01, 0xD0), *range(0xD8, 0xFF)))
_WITHOUT_LENGTH = (0x01, SOI[1])


class JpegOutline(NamedTuple):
    """The structure of a JPEG."""

    height: int
    """Rows."""
    width: int
    """Columns."""
    num_components: int
    """1 for grey, 3 for YCbCr or RGB, 4 for CMYK."""
    precision: int
    """Bits of a value."""
    common: bool
    """Of a kind that every decoder reads; not lossless, arithmetic and so on."""
    end: int
    """Bytes up to the end of the image, its marker included."""

    @property
    def storable(self) -> bool:
        """Whether its bytes can be a frame: grey or colour, eight bits, common."""
        return self.common and self.precision == 8 and self.num_components in (1, 3)


def outline_jpeg(data: bytes) -> JpegOutline:
    """Walk through the markers of a JPEG.

    Parameters
    ----------
    data : bytes
        A file; there may be more after the image, such as zeros, a second image or
        what a camera adds.

    Raises
    ------
    ValueError
        Not a JPEG, or one that is cut off; the message says where.

    Notes
    -----
    The end is found by walking, not from the back of the file: a preview in the header
    has an end of its own, and so may have what follows the image.
    """
    if data[:2] != SOI:
        raise ValueError("it does not begin as a JPEG does")
    header, kind = b"", 0
    position, size = 2, len(data)
    while True:
        # In a header the next marker is where the segment before it ends.
        if (
            position + 1 < size
            and data[position] == 0xFF
            and data[position + 1] in _MARKERS
        ):
            marker = data[position + 1]
            position += 2
        else:
            match = _NEXT_MARKER.search(data, position)
            if match is None:
                raise ValueError(
                    f"it is cut off: no end of the image in its {size} bytes"
                )
            position = match.end()
            marker = data[position - 1]
        if marker == EOI[1]:
            break
        if marker in _WITHOUT_LENGTH:
            continue
        length = int.from_bytes(data[position : position + 2], "big")
        if length < 2 or position + length > size:
            raise ValueError(f"it is cut off or damaged at byte {position}")
        if marker in START_OF_FRAME:
            header, kind = data[position + 2 : position + 8], marker
            if len(header) < 6:
                raise ValueError(f"it is cut off or damaged at byte {position}")
        position += length
    if not header:
        raise ValueError("it has no image")
    precision, height, width, num_components = _FRAME.unpack(header)
    if not (height and width):  # no decoder here takes a height that comes later
        raise ValueError(f"it is {width}x{height} pixels large by its header")
    common = kind in _COMMON
    return JpegOutline(height, width, num_components, precision, common, position)
