"""What a JPEG file is, by its markers: nothing is decoded."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["JpegOutline", "outline_jpeg"]

_SOI = b"\xff\xd8"
_EOI = 0xD9
_START_OF_SCAN = 0xDA
# Frame headers (SOF0 to SOF15) are C0 to CF but for tables and the reserved JPG.
_NOT_FRAMES = (0xC4, 0xC8, 0xCC)
# Baseline, extended sequential and progressive, all with Huffman coding: what every
# decoder has. The others are lossless, hierarchical or arithmetic.
_COMMON = (0xC0, 0xC1, 0xC2)
# A marker that ends entropy-coded data: neither a stuffed FF 00 nor a restart. The
# first byte stands apart, since only then does `re` skip to the next one of its kind.
_NEXT_MARKER = re.compile(rb"\xff\xff*([\x01-\xcf\xd8-\xfe])")
_MARKERS = frozenset((*range(0x01, 0xD0), *range(0xD8, 0xFF)))


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
    if data[:2] != _SOI:
        raise ValueError("it does not begin as a JPEG does")
    frame: JpegOutline | None = None
    position, size = 2, len(data)
    while True:
        # In a header the next marker is where the segment before it ends.
        here = data[position : position + 2]
        if len(here) == 2 and here[0] == 0xFF and here[1] in _MARKERS:
            marker = here[1]
            position += 2
        else:
            match = _NEXT_MARKER.search(data, position)
            if match is None:
                raise ValueError(
                    f"it is cut off: no end of the image in its {size} bytes"
                )
            marker, position = match[1][0], match.end()
        if marker == _EOI:
            break
        if marker == 0x01 or marker == _SOI[1]:
            continue
        length = int.from_bytes(data[position : position + 2], "big")
        if length < 2 or position + length > size:
            raise ValueError(f"it is cut off or damaged at byte {position}")
        if 0xC0 <= marker <= 0xCF and marker not in _NOT_FRAMES:
            header = data[position + 2 : position + 8]
            if len(header) < 6:
                raise ValueError(f"it is cut off or damaged at byte {position}")
            height, width = (int.from_bytes(header[i : i + 2], "big") for i in (1, 3))
            common = marker in _COMMON
            frame = JpegOutline(height, width, header[5], header[0], common, end=0)
        position += length
    if frame is None:
        raise ValueError("it has no image")
    return frame._replace(end=position)
