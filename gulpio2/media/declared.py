"""How large an image file says that it is, before memory is set aside for it, how deep.

A JPEG is looked at by `gulpio2.format.jpeg_outline`; PGM, PPM and PAM by
`gulpio2.media.netpbm`.
"""

from __future__ import annotations

import re

from gulpio2.media.netpbm import header_of
from gulpio2.media.png import PNG
from gulpio2.media.tiff import size_of_tiff

__all__ = [
    "codestream_start",
    "declared_depth",
    "declared_size",
    "num_components_of_jpeg_2000",
]

# Start of a codestream of JPEG 2000, and of the marker with its sizes, SIZ.
_CODESTREAM = b"\xff\x4f\xff\x51"
_JP2 = b"\0\0\0\x0cjP  "
# Bytes of both markers, and of the longest SIZ: that of 16,384 components.
_LONGEST = 4 + 38 + 3 * 16384
# The header of a BMP of OS/2 has shorter numbers.
_SHORT_HEADER = 12


def declared_size(data: bytes) -> tuple[int, int]:
    """Give the width and the height that an image file declares.

    Parameters
    ----------
    data : bytes
        Any file.

    Returns
    -------
    width, height : int
        Pixels; 0 where it is none of PNG, GIF, BMP, WebP, TIFF, PBM, JPEG 2000 and
        AVIF.

    Examples
    --------
    >>> declared_size(b"GIF89a" + bytes([64, 1, 240, 0])), declared_size(b"")
    ((320, 240), (0, 0))
    """
    if data[:8] == PNG:
        return _big(data, 16), _big(data, 20)
    if data[:4] == b"GIF8":
        return _little(data, 6, 2), _little(data, 8, 2)
    if data[:2] == b"BM":
        return _size_of_bmp(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _size_of_webp(data)
    if (size := size_of_tiff(data)) is not None:
        return size
    kind, sides, _ = header_of(data, b"14", 2)
    if kind:
        return sides[0], sides[1]
    if data[:4] == _CODESTREAM or data[:8] == _JP2:
        # Behind the marker: its length and profile, the far corner, the near one.
        sizes = _sizes_of(data)
        right, bottom, left, top = (_big(sizes, 4 + 4 * i) for i in range(4))
        return max(right - left, 0), max(bottom - top, 0)
    if data[4:8] == b"ftyp":
        return _size_of_avif(data)
    return 0, 0


def declared_depth(data: bytes) -> int:
    """Give the bits of a value that a JPEG 2000 or an AVIF declares; 0 for others.

    OpenCV gives the values of both as they are, of 10 bits up to 1023.
    """
    if data[:4] == _CODESTREAM or data[:8] == _JP2:
        sizes = _sizes_of(data)
        # A byte for each component: the sign, and the bits less one.
        bits = sizes[38 : 38 + 3 * int.from_bytes(sizes[36:38], "big") : 3]
        return max((each & 0x7F) + 1 for each in bits) if bits else 0
    if data[4:8] == b"ftyp":
        flags = [data[i.end() + 2] for i in re.finditer(b"av1C(?=...)", data, re.S)]
        return max((8 + (f >> 5 & 2) + (f >> 4 & 2) for f in flags), default=0)
    return 0


def codestream_start(data: bytes) -> int:
    """Give where the codestream of a JPEG 2000 begins; its end where it has none.

    Its own bytes may stand before it as well, in a box of whatever somebody likes.
    """
    if data[:4] == _CODESTREAM:
        return 0
    place = 0
    while place + 8 <= len(data):
        length, kind = _big(data, place), data[place + 4 : place + 8]
        head = 8
        if length == 1:
            length, head = int.from_bytes(data[place + 8 : place + 16], "big"), 16
        if kind == b"jp2c":
            return place + head
        if length < head:  # up to the end, or damaged
            break
        place += length
    return len(data)


def _sizes_of(data: bytes) -> bytes:
    """Give what a JPEG 2000 says of itself, behind the marker for it."""
    start = codestream_start(data)
    is_one = data[start : start + 4] == _CODESTREAM
    return data[start + 4 : start + _LONGEST] if is_one else b""


def num_components_of_jpeg_2000(data: bytes) -> int:
    """Count the values of a pixel; 0 where it is no JPEG 2000."""
    if data[:4] != _CODESTREAM and data[:8] != _JP2:
        return 0
    return int.from_bytes(_sizes_of(data)[36:38], "big")


def _little(data: bytes, place: int, length: int) -> int:
    return int.from_bytes(data[place : place + length], "little")


def _big(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + 4], "big")


def _size_of_bmp(data: bytes) -> tuple[int, int]:
    if _little(data, 14, 4) == _SHORT_HEADER:
        return _little(data, 18, 2), _little(data, 20, 2)
    height = int.from_bytes(data[22:26], "little", signed=True)
    return _little(data, 18, 4), abs(height)  # below 0: from the top down


def _size_of_webp(data: bytes) -> tuple[int, int]:
    """Read RFC 9649, sections 2.5 to 2.7."""
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF


def _size_of_avif(data: bytes) -> tuple[int, int]:
    """Give the largest of the sizes that it names: its parts have sizes as well."""
    places = (found.end() + 4 for found in re.finditer(b"ispe", data))
    sizes = [(_big(data, place), _big(data, place + 4)) for place in places]
    return max(sizes, key=lambda size: size[0] * size[1], default=(0, 0))
