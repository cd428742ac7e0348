"""Frames as JPEG: libjpeg-turbo through simplejpeg."""

from __future__ import annotations

import functools
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import simplejpeg

from gulpio2.arguments import require_choice, whole_number
from gulpio2.codecs.frame_header import with_factors_of_444
from gulpio2.codecs.pixels import cmyk_to_rgb, resample_plane, to_storable
from gulpio2.codecs.whole_jpeg import WholeJpeg, mended
from gulpio2.errors import AdapterContractError, CorruptFrameError, of_zeros
from gulpio2.format.jpeg_markers import EOI, SOI
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.types import EncodableFrame, JsonValue

__all__ = [
    "MAX_PIXELS",
    "EncoderSettings",
    "JpegHeader",
    "Subsampling",
    "ceiling",
    "check_jpeg",
    "decode_frame",
    "encode_frame",
    "img_to_jpeg_bytes",
    "jpeg_bytes_to_img",
    "read_header",
    "refuse_above",
]

_logger = logging.getLogger(__name__)

Subsampling = Literal["source", "444", "422", "420"]

# The quality of GulpIO2. `gulpio2.utils._JPEG_WRITE_QUALITY` is another name for it.
DEFAULT_QUALITY = 90


def ceiling(pixels: int) -> int:
    """Give a ceiling of pixels; ``GULPIO2_MAX_PIXELS`` in the environment raises it."""
    return max(pixels, _wanted_ceiling(os.environ.get("GULPIO2_MAX_PIXELS", "")))


@functools.lru_cache(maxsize=1)  # it tells of a wrong value once, not of each ceiling
def _wanted_ceiling(text: str) -> int:
    wanted = int(text) if text.isdecimal() and len(text) < 100 else 0
    if text and not wanted:
        _logger.warning(
            "GULPIO2_MAX_PIXELS is %r, which is no number of pixels above 0: the "
            "ceilings stay as they are without it. Give digits only, as 268435456",
            text,
        )
    return wanted


# Pixels. A frame that declares more is refused before memory is set aside for it: a
# header of 20 bytes can declare 65535 x 65535, which is 12 GB of RGB.
MAX_PIXELS = ceiling(2**27)
# Pixels: JPEG_MAX_DIMENSION of libjpeg-turbo.
_MAX_EDGE = 65_500


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How frames are encoded.

    Raises
    ------
    TypeError
        A quality that is no whole number.
    ValueError
        A quality outside of 1 to 100, or a subsampling that does not exist.
    """

    quality: int = field(default_factory=lambda: DEFAULT_QUALITY)
    """JPEG quality, 1 to 100."""
    subsampling: Subsampling = "source"
    """Chroma of stored frames: that of the source (4:4:4 for arrays and images), or
    one for all."""

    def __post_init__(self) -> None:
        """Refuse what the encoder cannot do."""
        if type(self.quality) is not int:  # one of NumPy is no JSON
            whole = int(whole_number("quality", self.quality))
            object.__setattr__(self, "quality", whole)
        if not 1 <= self.quality <= 100:
            raise ValueError(f"quality is {self.quality!r}; it must be 1 to 100")
        require_choice("subsampling", self.subsampling, Subsampling)

    def describe(self) -> dict[str, JsonValue]:
        """Give the settings as they go into the manifest."""
        return {
            "codec": "jpeg",
            "quality": self.quality,
            "subsampling": self.subsampling,
            "simplejpeg": simplejpeg.__version__,
        }


class JpegHeader(NamedTuple):
    """What the header of a JPEG says."""

    height: int
    """Rows of the full image."""
    width: int
    """Columns of the full image."""
    colorspace: str
    """'YCbCr', 'RGB', 'Gray', 'CMYK' or 'YCCK'."""
    subsampling: str
    """'444', '422', '420', '440', '411', '441' or 'Gray'."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the decoded frame: ``(H, W)`` for grey, ``(H, W, 3)`` otherwise."""
        size = (self.height, self.width)
        return size if self.colorspace == "Gray" else (*size, 3)


def read_header(data: bytes | memoryview) -> JpegHeader:
    """Read sizes and colour space without decoding.

    Raises
    ------
    CorruptFrameError
        Not a JPEG, or one that the codec cannot read.
    """
    try:
        return JpegHeader(*simplejpeg.decode_jpeg_header(data))
    except KeyError:
        return _read_header_of_441(data)
    except ValueError as cause:
        why = f"not a readable JPEG: {cause}{of_zeros(bytes(data[:2]))}"
        raise CorruptFrameError(why) from cause


def _read_header_of_441(data: bytes | memoryview) -> JpegHeader:
    """Read the header of a JPEG in 4:4:1, which simplejpeg decodes and cannot name.

    The other facts are those of the same header with the factors of 4:4:4.
    """
    plain = with_factors_of_444(bytes(data))
    try:
        found = simplejpeg.decode_jpeg_header(plain or b"")
    except (KeyError, ValueError) as cause:
        raise CorruptFrameError(
            "not a readable JPEG: its chroma subsampling is of no known kind"
        ) from cause
    return JpegHeader(*found)._replace(subsampling="441")


def check_jpeg(data: bytes | memoryview) -> JpegHeader:
    """Check that bytes are a JPEG by their beginning, their end and their header.

    Raises
    ------
    CorruptFrameError
        They do not begin and end as a JPEG does, or the header cannot be read.
    """
    _refuse_cut(data)
    return read_header(data)


def _refuse_cut(data: bytes | memoryview) -> None:
    if bytes(data[:2]) != SOI:
        raise CorruptFrameError("not a JPEG: it does not begin with FF D8")
    if bytes(data[-2:]) != EOI:
        behind = len(data) - 2 - bytes(data).rfind(EOI)
        raise CorruptFrameError(
            "a cut JPEG: it does not end with FF D9"
            + (f", which is {behind} bytes before" if behind < len(data) - 1 else "")
        )


def decode_frame(
    data: bytes | memoryview, *, max_pixels: int = MAX_PIXELS
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG.

    Parameters
    ----------
    data : bytes-like
        One JPEG; bytes after its end are ignored.
    max_pixels : int, optional
        A header that declares more is refused.

    Returns
    -------
    numpy.ndarray
        ``(H, W, 3)`` uint8 RGB, or ``(H, W)`` for a grey JPEG; C-contiguous, writable,
        owning its memory.

    Raises
    ------
    CorruptFrameError
        Not a JPEG, a damaged or cut one, or one above `max_pixels`.

    Notes
    -----
    The fast DCT and the fast chroma upsampling are used, as in GulpIO2: values differ
    from an exact decoder's by a few levels.
    """
    header = read_header(data)
    refuse_above(max_pixels, header)
    out = np.empty(header.shape, np.uint8)
    try:
        if header.colorspace in ("CMYK", "YCCK"):
            cmyk = simplejpeg.decode_jpeg(data, "CMYK", fastdct=True, fastupsample=True)
            out[...] = cmyk_to_rgb(cmyk)
        else:
            simplejpeg.decode_jpeg(
                data,
                "GRAY" if header.colorspace == "Gray" else "RGB",
                fastdct=True,
                fastupsample=True,
                buffer=out,
            )
    except ValueError as cause:
        raise CorruptFrameError(f"a damaged or cut JPEG: {cause}") from cause
    return out


def refuse_above(max_pixels: int, header: JpegHeader) -> None:
    """Refuse a frame that declares more pixels than are allowed.

    Raises
    ------
    CorruptFrameError
        It does; nothing was set aside for it.
    """
    if header.height * header.width > max_pixels:
        raise CorruptFrameError(
            f"a frame of {header.width}x{header.height} pixels is above the limit of "
            f"{max_pixels}; raise max_pixels, or set GULPIO2_MAX_PIXELS, if it "
            "is meant to be that large"
        )


def encode_frame(frame: EncodableFrame, settings: EncoderSettings) -> bytes:
    """Encode a frame, or take the bytes of a JPEG.

    Parameters
    ----------
    frame : numpy.ndarray, PIL image, YuvFrame or bytes
        ``(H, W)`` or ``(H, W, 1)`` is stored grey, ``(H, W, 3)`` as YCbCr.
    settings : EncoderSettings
        Not applied to bytes, which are stored as they are: `codecs.whole_jpeg` has
        the exceptions.

    Returns
    -------
    bytes
        One complete JPEG.

    Raises
    ------
    AdapterContractError
        Something that is no image, bytes that are no whole JPEG, or more pixels than
        readers allow.
    """
    if isinstance(frame, YuvFrame):
        _refuse_unreadable(*frame.y.shape)
        return _encode_planes(frame, settings)
    if type(frame) is WholeJpeg:
        return frame
    if isinstance(frame, (bytes, bytearray, memoryview)):
        data = bytes(frame)
        try:
            _refuse_cut(data)
            data = mended(data, max_pixels=MAX_PIXELS)
            header = read_header(data)
        except CorruptFrameError as cause:
            raise AdapterContractError(
                f"a frame given as {len(data)} bytes cannot be stored: {cause}"
            ) from cause
        _refuse_unreadable(header.height, header.width)
        return data
    pixels = to_storable(frame)
    _refuse_unreadable(*pixels.shape[:2])
    if pixels.ndim == 2:
        encoded = simplejpeg.encode_jpeg(
            pixels[..., np.newaxis],
            quality=settings.quality,
            colorspace="GRAY",
            colorsubsampling="Gray",
        )
    else:
        encoded = simplejpeg.encode_jpeg(
            pixels,
            quality=settings.quality,
            colorspace="RGB",
            colorsubsampling=(
                "444" if settings.subsampling == "source" else settings.subsampling
            ),
        )
    return bytes(encoded)


def _refuse_unreadable(height: int, width: int) -> None:
    if max(height, width) > _MAX_EDGE:
        raise AdapterContractError(
            f"a frame of {height}x{width} (height x width) has an edge above "
            f"{_MAX_EDGE} pixels, more than a JPEG can have. Make it smaller"
        )
    if height * width > MAX_PIXELS:
        raise AdapterContractError(
            f"a frame of {height}x{width} (height x width) is above the limit of "
            f"{MAX_PIXELS} pixels, which readers refuse. Make it smaller, or set "
            "GULPIO2_MAX_PIXELS, for readers too"
        )


def _encode_planes(frame: YuvFrame, settings: EncoderSettings) -> bytes:
    """Encode planes; chroma is resampled only where another subsampling is asked."""
    height, width = frame.y.shape
    u, v = frame.u, frame.v
    wanted = settings.subsampling
    if wanted != "source" and wanted != frame.subsampling:
        shape = {
            "444": (height, width),
            "422": (height, (width + 1) // 2),
            "420": ((height + 1) // 2, (width + 1) // 2),
        }[wanted]
        u, v = resample_plane(u, shape), resample_plane(v, shape)
    y = _with_margin(frame.y, (2 * u.shape[0], 2 * u.shape[1]))
    return bytes(simplejpeg.encode_jpeg_yuv_planes(y, u, v, quality=settings.quality))


def _with_margin(
    luma: npt.NDArray[np.uint8], chroma_covers: tuple[int, int]
) -> npt.NDArray[np.uint8]:
    """Repeat the last row and column in the memory after them, where it is odd.

    The codec reads luma for whole samples of chroma: of 85 columns in 4:2:0 it reads
    86. The last one would be another row's pixel, and at the end whatever comes there.
    """
    height, width = luma.shape
    below, right = height == chroma_covers[0] - 1, width == chroma_covers[1] - 1
    if not below and not right:
        return luma
    larger = np.empty((height + below, width + right), np.uint8)
    larger[:height, :width] = luma
    larger[:height, width:] = luma[:, -1:]
    larger[height:] = larger[height - 1]
    return larger[:height, :width]


def img_to_jpeg_bytes(img: EncodableFrame) -> bytes:
    """Encode an image with the default settings.

    Parameters
    ----------
    img : numpy.ndarray or PIL image
        ``(H, W)`` grey or ``(H, W, 3)`` RGB, uint8 or bool.

    Returns
    -------
    bytes
        A JPEG of quality `gulpio2.utils._JPEG_WRITE_QUALITY`.

    Raises
    ------
    ValueError
        An array that is no image.
    """
    return encode_frame(img, EncoderSettings())


def jpeg_bytes_to_img(jpeg_bytes: bytes | memoryview) -> npt.NDArray[np.uint8]:
    """Decode a JPEG: `decode_frame` under its name in GulpIO2.

    Parameters
    ----------
    jpeg_bytes : bytes-like
        One JPEG.

    Returns
    -------
    numpy.ndarray
        ``(H, W, 3)`` uint8 RGB, or ``(H, W)`` for a grey JPEG.

    Raises
    ------
    CorruptFrameError
        A ``ValueError``: not a JPEG, or a damaged one.
    """
    return decode_frame(jpeg_bytes)
