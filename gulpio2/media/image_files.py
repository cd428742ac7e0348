"""Reading image files: JPEG through the codec, PGM, PPM and PAM here, others by OpenCV.

Orientation in EXIF is not applied, as in GulpIO2 0.0.4. Transparency is dropped and
deeper values are scaled to 8 bits, as `gulpio2.codecs.pixels` says.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import IO, TYPE_CHECKING

import numpy as np

from gulpio2.codecs.jpeg import MAX_PIXELS
from gulpio2.codecs.pixels import cmyk_to_rgb, to_eight_bits, to_storable
from gulpio2.codecs.whole_jpeg import EXTRANEOUS, without_padding, without_remarks
from gulpio2.errors import (
    AdapterContractError,
    DamagedImageError,
    ImageNotFoundError,
    SourceReadError,
)
from gulpio2.format.jpeg_markers import SOI
from gulpio2.format.jpeg_outline import outline_jpeg
from gulpio2.media.declared import (
    declared_depth,
    declared_size,
    num_components_of_jpeg_2000,
)
from gulpio2.media.misread import (
    is_made_grey,
    refuse_misread,
    with_all_bits,
    with_map_of_grey,
    with_whole_colours,
    without_transparency,
)
from gulpio2.media.netpbm import decode_netpbm
from gulpio2.media.png import PNG, without_animation
from gulpio2.media.tiff import as_stored
from gulpio2.media.unreadable import why_unreadable

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.format.jpeg_outline import JpegOutline
    from gulpio2.types import StrPath

__all__ = [
    "decode_image",
    "read_file",
    "read_image",
    "read_open_image",
    "read_outline",
    "reduction_for",
]

_PNG_GREY_AND_ALPHA = 4
# Values of a pixel.
_GREY_AND_ALPHA = 2
# What the codec reduces by while it decodes; the result is to be so many times as large
# as the picture that is wanted, so that what it does worse than an area filter is lost.
_REDUCTIONS = (4, 2)
_ROOM = 4
# It averages the chroma of these; of 4:2:2 it leaves every other sample out.
_AVERAGED = frozenset({"Gray", "444", "420"})
# What it says of factors of subsampling that are rare, as 4x2 and 3x1: OpenCV decodes
# such images.
_UNKNOWN_GRID = "Could not determine subsampling"
# Which part of the values may be near black or white at half of the size, and half of
# that at 1/4. The whole image is cut off there, pixel by pixel, around letters on paper
# above all, and the reduced one is not: its mean would be off by up to three levels.
# At 1/8 that could no longer be seen.
_MOST_CUT = 1 / 16
_NEAR = 12
# Bytes that are read at a time where a file does not come as a whole.
_PIECE = 1 << 20


def read_file(path: StrPath) -> bytes:
    """Read the bytes of an image file.

    Returns
    -------
    bytes
        Those of the file.

    Raises
    ------
    ImageNotFoundError
        There is no such file, or it is a folder.
    SourceReadError
        It cannot be read.
    """
    name = os.fspath(path)
    try:
        return _read_regular(name)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as cause:
        raise ImageNotFoundError(
            f"Image {name!r} does not exist, or is a folder. Check the list of files."
        ) from cause
    except OSError as cause:
        raise SourceReadError(
            f"Image {name!r} cannot be read: {cause.strerror or cause}. "
            "Mend that, or leave it out."
        ) from cause


def _read_regular(name: str) -> bytes:
    """Read a file with as few calls of the system as there can be."""
    # Without waiting: a pipe would wait for ever for somebody to write.
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        state = os.fstat(file)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder")
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = os.read(file, state.st_size + 1)
        if len(data) == state.st_size and data:
            return data
        parts = [data]  # it grows, or comes in pieces
        while part := os.read(file, _PIECE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def read_outline(data: bytes, path: StrPath) -> JpegOutline | None:
    """Look at the structure of an image file.

    Returns
    -------
    JpegOutline or None
        None where it is no JPEG.

    Raises
    ------
    DamagedImageError
        A JPEG that is cut off or damaged.
    SourceReadError
        An image above `MAX_PIXELS`, or JPEG-LS.
    """
    outline = None
    if data[:2] == SOI:
        try:
            outline = outline_jpeg(data)
        except AdapterContractError as cause:
            raise SourceReadError(f"Image {os.fspath(path)!r}: {cause}.") from cause
        except ValueError as cause:
            # As what decodes an image of another kind has it.
            raise DamagedImageError(
                f"Image {os.fspath(path)!r} is a damaged JPEG: {cause}. Get a whole "
                "copy of it, or leave it out."
            ) from cause
        size = (outline.width, outline.height)
    else:
        size = declared_size(data)
    if size[0] * size[1] > MAX_PIXELS:
        raise SourceReadError(
            f"Image {os.fspath(path)!r} has {size[0]}x{size[1]} pixels, above the "
            f"limit of {MAX_PIXELS}. Make it smaller, or leave it out."
        )
    return outline


def decode_image(
    data: bytes, path: StrPath, outline: JpegOutline | None, *, short_edge: int = -1
) -> npt.NDArray[np.uint8]:
    """Decode the bytes of an image file.

    Parameters
    ----------
    data : bytes
        The file.
    path : str or path object
        For messages.
    outline : JpegOutline or None
        As `read_outline` gives it for these bytes.
    short_edge : int
        Length that the short edge will be resized to. A JPEG of at least eight times
        the size may be decoded at 1/2 or 1/4 of it, see below.

    Returns
    -------
    numpy.ndarray
        uint8: ``(H, W, 3)`` RGB, or ``(H, W)`` grey.

    Raises
    ------
    DamagedImageError
        It is no image, or a damaged one.
    SourceReadError
        It is an image whose values have no place in 0 to 255, such as float.

    Notes
    -----
    A JPEG is decoded at 1/2 or 1/4 where its sides are multiples of that, its chroma is
    4:4:4 or 4:2:0 or it is grey, and few of its values are near black or white. Resized
    to the end it is then another picture than the whole image resized: within 40 dB
    (PSNR) for photographs, and the mean of each channel within half a level. Encoded at
    quality 90 it is within half a dB of that picture encoded, and within 2 dB for what
    is nothing but fine lines of strong contrast.
    """
    data = without_remarks(data, outline)
    try:
        pixels = None
        if outline is not None and outline.common and outline.precision == 8:
            reduction = reduction_for(outline.height, outline.width, short_edge)
            try:
                pixels = _decode_jpeg(data, outline, reduction)
            except ValueError as cause:
                if EXTRANEOUS in str(cause):
                    data = without_padding(data, outline)
                    pixels = _decode_jpeg(data, outline, reduction)
                elif _UNKNOWN_GRID not in str(cause):
                    raise
        if pixels is None:
            pixels = _decode_other(data, outline)
    except AdapterContractError as cause:
        raise SourceReadError(f"Image {os.fspath(path)!r}: {cause}.") from cause
    except ValueError as cause:
        raise DamagedImageError(
            f"Image {os.fspath(path)!r} cannot be decoded: {cause}. Leave it out."
        ) from cause
    return pixels


def reduction_for(height: int, width: int, short_edge: int) -> int:
    """Choose what to divide the size of a JPEG by while it is decoded; 1 for nothing.

    Examples
    --------
    >>> reduction_for(1080, 1920, 256), reduction_for(1080, 1920, 128)
    (1, 2)
    >>> reduction_for(1080, 1919, 128), reduction_for(1080, 1920, -1)
    (1, 1)
    """
    if short_edge < 1:
        return 1
    # A side that is no multiple has its last column stretched over more than it shows.
    for reduction in _REDUCTIONS:
        if height % reduction == width % reduction == 0 and (
            min(height, width) >= reduction * _ROOM * short_edge
        ):
            return reduction
    return 1


def _decode_jpeg(
    data: bytes, outline: JpegOutline, reduction: int
) -> npt.NDArray[np.uint8] | None:
    """Decode with the exact DCT and smooth chroma; None for an unusual colour space."""
    import simplejpeg

    if outline.num_components == 4:
        # All writers of such files invert them, as Adobe did first.
        return cmyk_to_rgb(simplejpeg.decode_jpeg(data, "CMYK"))
    colours = {1: "GRAY", 3: "RGB"}.get(outline.num_components)
    if colours is None:
        return None
    if reduction > 1 and simplejpeg.decode_jpeg_header(data)[3] in _AVERAGED:
        reduced = simplejpeg.decode_jpeg(
            data,
            colours,
            min_height=outline.height // reduction,
            min_width=outline.width // reduction,
        )
        if _part_cut(reduced) <= 2 * _MOST_CUT / reduction:
            return to_storable(reduced)
    return to_storable(simplejpeg.decode_jpeg(data, colours))


def _part_cut(pixels: npt.NDArray[np.uint8]) -> float:
    """Give which part of the values is near 0 or 255, from every fourth row."""
    rows = pixels[::4]
    # Above 255 they begin again at 0.
    return np.count_nonzero(rows + np.uint8(_NEAR) <= 2 * _NEAR) / rows.size


def _decode_other(data: bytes, outline: JpegOutline | None) -> npt.NDArray[np.uint8]:
    import cv2

    if not data:
        raise ValueError("it is no image: the file is empty")
    if (netpbm := decode_netpbm(data)) is not None:
        return to_storable(netpbm)
    refuse_misread(data)
    # Unchanged: else 16 bits would be cut, and EXIF would turn the image.
    flags = cv2.IMREAD_COLOR if is_made_grey(data) else cv2.IMREAD_UNCHANGED
    if num_components_of_jpeg_2000(data) == _GREY_AND_ALPHA:  # unread, unchanged
        flags = cv2.IMREAD_GRAYSCALE | cv2.IMREAD_ANYDEPTH
    readable = with_map_of_grey(data)
    readable = without_animation(without_transparency(as_stored(readable)))
    try:
        decoded = cv2.imdecode(np.frombuffer(readable, np.uint8), flags)
    except cv2.error as cause:
        raise ValueError(f"OpenCV says {cause.err or cause}") from cause
    pixels = None if decoded is None else np.asarray(decoded)
    if pixels is None or pixels.size == 0:
        if why := why_unreadable(data, outline):
            raise AdapterContractError(why)
        raise ValueError("it is no image that OpenCV reads, or a damaged one")
    pixels = with_whole_colours(data, pixels)
    if pixels.dtype == np.uint16:
        most = (1 << (declared_depth(data) or 16)) - 1
        pixels = to_eight_bits(np.asarray(pixels, np.uint16), most)
    pixels = with_all_bits(data, pixels)
    if pixels.ndim == 3:
        grey = data[:8] == PNG and data[25] == _PNG_GREY_AND_ALPHA
        pixels = pixels[..., 0] if grey else pixels[..., 2::-1]  # BGR to RGB
    return to_storable(pixels)


def read_image(path: StrPath) -> npt.NDArray[np.uint8]:
    """Read an image file.

    Parameters
    ----------
    path : str or path object
        In any format that OpenCV reads.

    Returns
    -------
    numpy.ndarray
        uint8: ``(H, W, 3)`` RGB, or ``(H, W)`` grey.

    Raises
    ------
    ImageNotFoundError
        A ``FileNotFoundError``: there is no such file, or it is no image, or a damaged
        one, such as one that is cut off.
    SourceReadError
        It cannot be read, or is too large.
    """
    data = read_file(path)
    return decode_image(data, path, read_outline(data, path))


def read_open_image(file: IO[bytes]) -> npt.NDArray[np.uint8]:
    """Read an image out of an open file, as of an archive, from its beginning.

    Parameters
    ----------
    file : binary file object
        Stays open. One that cannot seek is read from where it is.

    Returns
    -------
    numpy.ndarray
        As `read_image` gives it.

    Raises
    ------
    DamagedImageError
        It is no image, or a damaged one, such as one that is cut off.
    SourceReadError
        It is too large.
    AdapterContractError
        A ``ValueError``: it gives text.
    """
    with contextlib.suppress(AttributeError, OSError):
        file.seek(0)
    data: object = file.read()
    name = str(getattr(file, "name", file))
    if not isinstance(data, bytes):
        raise AdapterContractError(f"{name!r} is open as text; open it with mode 'rb'")
    return decode_image(data, name, read_outline(data, name))
