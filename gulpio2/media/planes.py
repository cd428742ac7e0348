"""The planes of a decoded frame, whatever its pixel format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import cv2
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

if TYPE_CHECKING:
    import numpy.typing as npt

    Plane = npt.NDArray[np.unsignedinteger[Any]]

__all__ = [
    "SLACK",
    "SWS_EXACT",
    "Layout",
    "PlaneReader",
    "layout_of",
    "plane_views",
]

# What can be read without conversion: separate planes in this machine's byte order.
_PLANAR = re.compile(r"yuv[aj]?(410|411|420|422|440|444)p((9|10|12|14|16)le)?")
_DEPTHS = (8, 9, 10, 12, 14, 16)
# Made once: this is done for every frame, after a decode, which is when everything that
# Python does takes twice its time.
_BYTE, _DEEP = np.dtype(np.uint8), np.dtype(np.uint16)
# Flags of swscale (libswscale/swscale.h); PyAV names the first two, and takes numbers.
_SWS_BILINEAR = 0x2
SWS_EXACT = 0x40000 | 0x80000  # accurate rounding, the same on every processor
# Columns behind the end of a row, because swscale may read some bytes too many.
SLACK = 32


class _Grid(NamedTuple):
    """Where chroma is, and how it becomes a grid that JPEG planes have."""

    name: str
    """As pixel formats have it."""
    subsampling: Literal["444", "422", "420"]
    """The nearest that keeps all of it."""
    down: int = 1
    """Rows for one of them."""
    across: int = 1
    """Columns for one of them."""


# By chroma samples per 64 luma samples, across and down.
_GRIDS = {
    (64, 64): _Grid("444", "444"),
    (64, 32): _Grid("440", "444", down=2),
    (32, 64): _Grid("422", "422"),
    (16, 64): _Grid("411", "422", across=2),
    (32, 32): _Grid("420", "420"),
    (16, 16): _Grid("410", "420", down=2, across=2),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How a pixel format is read."""

    kind: Literal["yuv", "grey", "rgb"]
    """What the planes are."""
    depth: int
    """Bits of a value."""
    read_as: str
    """The pixel format that is read; another than the frame's own where the planes
    have to be taken apart first."""
    full_range: bool
    """The format itself says full range, as grey and ``yuvj`` formats do."""
    subsampling: Literal["444", "422", "420"] = "420"
    """Of the planes that are given; without meaning for grey and RGB."""
    repeats: tuple[int, int] = (1, 1)
    """Rows and columns of chroma to be given for one that is read."""

    def chroma_shape(self, height: int, width: int) -> tuple[int, int]:
        """Give the size of chroma planes for a size of luma."""
        return (
            (height + 1) // 2 if self.subsampling == "420" else height,
            width if self.subsampling == "444" else (width + 1) // 2,
        )


def layout_of(format_: Any) -> Layout:
    """Choose how a pixel format is read.

    Parameters
    ----------
    format_ : av.VideoFormat
        Of a decoded frame.

    Returns
    -------
    Layout
        RGB, palette, Bayer and XYZ formats are read as RGB, one-bit ones as grey.

    Raises
    ------
    ValueError
        A chroma grid that is not known; the message names the format.
    """
    name = format_.name
    components = [part for part in format_.components if not part.is_alpha]
    bits = components[0].bits
    if format_.is_rgb or format_.has_palette or name.startswith("xyz"):
        # Down to eight bits with rounding, which swscale would leave out.
        deep = bits > 8
        read_as = "rgb48le" if deep else "rgb24"
        return Layout("rgb", 16 if deep else 8, read_as, full_range=True)
    depth = min((d for d in _DEPTHS if d >= bits), default=16)
    suffix = f"{depth}le" if depth > 8 else ""
    if len(components) == 1:
        return Layout("grey", depth, f"gray{suffix}", full_range=True)
    grid = _GRIDS.get((format_.chroma_width(64), format_.chroma_height(64)))
    if grid is None:
        raise ValueError(f"the pixel format {name!r} has a chroma grid that is unknown")
    read_as = name if _PLANAR.fullmatch(name) else f"yuv{grid.name}p{suffix}"
    return Layout(
        "yuv",
        depth,
        read_as,
        full_range=name.startswith("yuvj"),
        subsampling=grid.subsampling,
        repeats=(grid.down, grid.across),
    )


# swscale reads these in the other byte order, which it does right where it only turns
# them round.
_TURNED = re.compile("(rgb|bgr)(555|565)be")
# Luma and alpha as floats, as of an EXR: swscale says that it reads them, and ends the
# process, or stretches those of 16 bits as if they were of limited range.
_FLOATS = {"yaf16le": "<f2", "yaf16be": ">f2", "yaf32le": "<f4", "yaf32be": ">f4"}


def plane_views(frame: Any, *, deep: bool, count: int = 3) -> list[Plane]:
    """Look at the planes of a frame, without copying.

    Parameters
    ----------
    frame : av.VideoFrame
        Planar, of 8 to 16 bits.
    deep : bool
        More than 8 bits.
    count : int
        How many planes, from the first.

    Returns
    -------
    list of numpy.ndarray
        ``(height, width)``, read-only: the decoder still predicts from them. They
        keep the frame's memory alive.
    """
    dtype, size = (_DEEP, 2) if deep else (_BYTE, 1)
    views: list[Plane] = []
    for plane in frame.planes[:count]:
        line_size = plane.line_size
        shape = (plane.height, plane.width)
        if line_size > 0:
            rows: Plane = np.ndarray(shape, dtype, plane, 0, (line_size, size))
            rows.setflags(write=False)
        else:  # stored from the bottom up; OpenCV takes no such strides
            values = np.frombuffer(plane, dtype).reshape(-1, -line_size // size)
            rows = np.ascontiguousarray(values[::-1, : shape[1]])
        views.append(rows)
    return views


def _widened(plane: Plane, repeats: tuple[int, int], shape: tuple[int, int]) -> Plane:
    """Bring chroma to a finer grid, linearly between its samples.

    By whole factors, and cut then: swscale would stretch a plane of which a part hangs
    over the edge of the picture, and move colours by up to two pixels.
    """
    rows, columns = (
        factor * length for factor, length in zip(repeats, plane.shape, strict=True)
    )
    large = cv2.resize(plane, (columns, rows), interpolation=cv2.INTER_LINEAR)
    padded = cv2.copyMakeBorder(large, 0, 0, 0, SLACK, cv2.BORDER_REPLICATE)
    return np.asarray(padded, plane.dtype)[: shape[0], : shape[1]]


def _luma_of_floats(frame: Any) -> Plane:
    """Give luma that stands beside alpha, 0 to 1, in 16 bits."""
    height, width = frame.height, frame.width
    plane = frame.planes[0]
    dtype = np.dtype(_FLOATS[frame.format.name])
    strides = (plane.line_size, 2 * dtype.itemsize)
    floats: npt.NDArray[np.floating[Any]] = np.ndarray(
        (height, width), dtype, plane, 0, strides
    )
    luma = np.zeros((height, width + SLACK), np.uint16)[:, :width]
    # No number at all becomes black, as what is below it.
    whole = np.clip(np.nan_to_num(floats, nan=0.0), 0, 1).astype(np.float32) * 65535
    luma[:] = np.rint(whole)
    return luma


class PlaneReader:
    """Reads frames of any pixel format; keeps its converter from frame to frame."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()
        self._turner = VideoReformatter()

    def yuv(
        self, frame: Any, layout: Layout, *, full_range: bool
    ) -> tuple[Plane, Plane, Plane]:
        """Give luma and chroma planes, values as they are in the frame.

        Chroma of a grid that JPEG has not is linear between its samples.
        """
        separate = self._converted(frame, layout, full_range=full_range)
        y, u, v = plane_views(separate, deep=layout.depth > 8)
        if layout.repeats == (1, 1):
            return y, u, v
        shape = layout.chroma_shape(*y.shape)
        return y, *(_widened(plane, layout.repeats, shape) for plane in (u, v))  # type: ignore[return-value]  # two of them

    def grey(self, frame: Any, layout: Layout, *, full_range: bool) -> Plane:
        """Give the only plane, values as they are in the frame."""
        if frame.format.name in _FLOATS:
            return _luma_of_floats(frame)
        separate = self._converted(frame, layout, full_range=full_range)
        return plane_views(separate, deep=layout.depth > 8, count=1)[0]

    def rgb(self, frame: Any, layout: Layout) -> npt.NDArray[np.uint8]:
        """Give ``(H, W, 3)`` uint8 RGB; transparency is dropped."""
        pixels = self._converted(frame, layout, full_range=True).to_ndarray()
        if layout.depth > 8:
            pixels = cv2.convertScaleAbs(pixels, alpha=1 / 257)
        return np.asarray(pixels, np.uint8)

    def _converted(self, frame: Any, layout: Layout, *, full_range: bool) -> Any:
        """Take a frame apart where its pixel format needs it."""
        name = frame.format.name
        if name == layout.read_as:
            return frame
        if name.startswith("bayer") and frame.height < 2:
            # A colour needs both rows of its pattern; swscale ends the process.
            raise ValueError(f"one row of the pixel format {name!r} has no colours")
        if _TURNED.fullmatch(name):
            frame = self._turner.reformat(frame, format=f"{name[:-2]}le", threads=1)
        # The same on both sides: swscale is to move values, not to change them. Not
        # told a matrix, it refuses frames of one that it has not, as Y'CgCo.
        range_ = ColorRange.JPEG if full_range else ColorRange.MPEG
        return self._reformatter.reformat(
            frame,
            format=layout.read_as,
            src_color_range=range_,
            dst_color_range=range_,
            src_colorspace=Colorspace.ITU601,
            dst_colorspace=Colorspace.ITU601,
            interpolation=_SWS_BILINEAR | SWS_EXACT,
            threads=1,
        )
