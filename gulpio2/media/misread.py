"""What of BMP, GIF, Sun raster and JPEG 2000 OpenCV would read otherwise than stored.

It makes bitmaps of OS/2 grey, leaves white at 248 in bitmaps of 16 bits, puts the
background into transparent pixels of a GIF, and takes a Sun raster without a map of
colours for black: all four can be helped. What cannot is refused: bitmaps whose colours
lie in another order, and JPEG 2000 of sYCC, which it converts with another matrix. More
about TIFF is in `gulpio2.media.tiff`.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import AdapterContractError
from gulpio2.media.declared import codestream_start
from gulpio2.media.tiff import has_multiplied_colours, has_two_colours

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "is_made_grey",
    "refuse_misread",
    "with_all_bits",
    "with_map_of_grey",
    "with_whole_colours",
    "without_transparency",
]

# The length of the header of a BMP, and what stands in it of 32 bits with masks, and
# behind it: where the bits of red, green and blue are.
_OS2_HEADER = b"\x0c\0\0\0"
_WITH_MASKS = b"\x20\0\x03\0\0\0"
# The number of 16 bits, and of masks; and those that give green six of them.
_SIXTEEN, _MASKS = b"\x10\0", b"\x03\0\0\0"
_FIVE_SIX_FIVE = bytes.fromhex("00f80000 e0070000 1f000000")
_USUAL_MASKS = bytes.fromhex("0000ff00 00ff0000 ff000000")
# The eight numbers at the start of a Sun raster: 0x59a66a95, width, height, bits of a
# pixel, bytes, encoding, kind of the map of colours, and its length; and that of a map
# which has red, green and blue one after another.
_SUN, _SUN_HEADER, _RGB_MAP = b"\x59\xa6\x6a\x95", struct.Struct(">8I"), 1
# What values mean where it has no map.
_GREY = {1: b"\xff\0", 8: bytes(range(256))}
# The number of sYCC in the box of a JP2 that tells its colours.
_SYCC = re.compile(rb"colr\x01..\0\0\0\x12", re.DOTALL)


def is_made_grey(data: bytes) -> bool:
    """Tell whether colours become grey unless they are asked for."""
    is_of_os2 = data[:2] == b"BM" and data[14:18] == _OS2_HEADER
    return is_of_os2 or has_two_colours(data)


def refuse_misread(data: bytes) -> None:
    """Refuse an image whose colours would be others.

    Raises
    ------
    AdapterContractError
        It is such a one; the message is a clause about it.
    """
    if data[:2] == b"BM" and data[28:34] == _WITH_MASKS and data[54:66] != _USUAL_MASKS:
        raise AdapterContractError(
            "it is a BMP whose colours lie in another order than blue, green, red, and "
            "would be exchanged; write it with 24 bits"
        )
    if data[4:8] == b"jP  " and _SYCC.search(data, 0, codestream_start(data)):
        raise AdapterContractError(
            "it is a JPEG 2000 of sYCC, which would be read with other colours; "
            "convert it to RGB"
        )


def with_all_bits(data: bytes, pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give the pixels of a BMP of 16 bits such that the highest value is 255.

    The five or six bits of a value are repeated behind them, as readers of such files
    do: the values are within 1 of ``255 * bits / 31``.

    Parameters
    ----------
    data : bytes
        Any file.
    pixels : numpy.ndarray
        ``(H, W, 3)``, what OpenCV makes of it; given back where it is no such file.
    """
    if data[:2] != b"BM" or data[28:30] != _SIXTEEN or pixels.shape[2:] != (3,):
        return pixels
    has_six = data[30:34] == _MASKS and data[54:66] == _FIVE_SIX_FIVE
    bits = np.array([5, 6 if has_six else 5, 5], np.uint8)
    return np.asarray(pixels | pixels >> bits)


def with_whole_colours(data: bytes, pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Divide the colours of a TIFF by the transparency that they were multiplied by.

    Parameters
    ----------
    data : bytes
        Any file.
    pixels : numpy.ndarray
        What OpenCV makes of it; given back where it is no such file. Of
        ``(H, W, 4)``, the last value is how opaque a pixel is.

    Returns
    -------
    numpy.ndarray
        Rounded, and cut at the highest value. Pixels that cannot be seen at all have
        the colour that they have, as Pillow gives them.
    """
    if pixels.shape[2:] != (4,) or pixels.dtype not in (np.uint8, np.uint16):
        return pixels
    if not has_multiplied_colours(data):
        return pixels
    most = np.iinfo(pixels.dtype).max
    opaque = pixels[..., 3:].astype(np.uint32)
    opaque[opaque == 0] = most
    colours = (pixels[..., :3].astype(np.uint32) * most + opaque // 2) // opaque
    return np.asarray(np.minimum(colours, most), pixels.dtype)


def without_transparency(data: bytes) -> bytes:
    """Give a GIF such that no pixel of its first picture is transparent.

    Parameters
    ----------
    data : bytes
        Any file; what is no GIF comes back.
    """
    if data[:4] != b"GIF8" or len(data) < 13:
        return data
    opaque = bytearray(data)
    place = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    while data[place : place + 1] == b"!":
        if data[place + 1 : place + 3] == b"\xf9\x04":  # how the next picture is shown
            opaque[place + 3 : place + 4] = [
                flag & 0xFE for flag in data[place + 3 : place + 4]
            ]
        place += 2
        while length := data[place : place + 1].strip(b"\0"):
            place += 1 + length[0]
        place += 1
    return bytes(opaque)


def with_map_of_grey(data: bytes) -> bytes:
    """Give a Sun raster of up to 8 bits such that it has a map of colours.

    Parameters
    ----------
    data : bytes
        Any file; what is no Sun raster, or has a map, comes back.
    """
    if data[:4] != _SUN or len(data) < _SUN_HEADER.size:
        return data
    *numbers, _, length = _SUN_HEADER.unpack_from(data)
    grey = _GREY.get(numbers[3])
    if grey is None or length:
        return data
    header = _SUN_HEADER.pack(*numbers, _RGB_MAP, 3 * len(grey))
    return header + 3 * grey + data[_SUN_HEADER.size :]
