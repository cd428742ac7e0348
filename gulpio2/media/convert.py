"""From a decoded video frame to the frame that is stored: size, colour, orientation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.media.colour import Matrix, PlaneColour, PlaneConversion, matrix_of
from gulpio2.media.orientation import UPRIGHT, Orientation, read_orientation
from gulpio2.media.planes import Layout, PlaneReader, layout_of, plane_views
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.media.scaling import PlaneScaler, resize_chroma
from gulpio2.types import DeferredImage, YuvFrame

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FrameConverter", "Picture"]

_log = logging.getLogger(__name__)

# AVColorRange.
_LIMITED, _FULL = 1, 2


@dataclass(frozen=True, slots=True)
class Picture:
    """What a decoded frame says about itself."""

    height: int
    """Rows as stored."""
    width: int
    """Columns as stored."""
    pix_fmt: str
    """Pixel format, as FFmpeg calls it."""
    matrix: Matrix
    """Of its Y'CbCr values; without meaning for RGB."""
    full_range: bool
    """Whether black is 0."""
    layout: Layout
    """How it is read."""

    @classmethod
    def of(cls, frame: Any) -> Picture:
        """Describe a decoded frame, an ``av.VideoFrame``.

        Raises
        ------
        ValueError
            A pixel format that cannot be read.
        """
        layout = layout_of(frame.format)
        range_ = int(frame.color_range)
        if layout.kind == "yuv":
            full = layout.full_range or range_ == _FULL
        else:
            full = layout.kind == "rgb" or range_ != _LIMITED
        return cls(
            height=frame.height,
            width=frame.width,
            pix_fmt=frame.format.name,
            # PyAV has primaries from 17 on; they matter for two rare matrices only.
            matrix=matrix_of(
                int(frame.colorspace), int(getattr(frame, "color_primaries", 2))
            ),
            full_range=full,
            layout=layout,
        )


class FrameConverter:
    """Turns decoded frames into frames to store; all of one size.

    Parameters
    ----------
    short_edge : int
        Length of the short edge as shown, in pixels; below 1 for no change.
    name : str, optional
        Of the video, for the log.

    Notes
    -----
    The order is that of the least work: planes are taken as the decoder has them and
    shrunk, then their colours are converted and only then is the picture turned. A
    picture that grows is converted first.

    The first frame sets the size. Where a stream changes its size in the middle, later
    frames are resized to it, so that an item is one array; the log says so once.
    """

    def __init__(self, short_edge: int = -1, *, name: str = "") -> None:
        self._short_edge = short_edge
        self._name = name
        self._reader = PlaneReader()
        self._scaler = PlaneScaler()
        self._key: tuple[Any, ...] | None = None
        self._conversion = _conversion_of(PlaneColour())
        self._picture: Picture | None = None
        self._orientation: Orientation | None = None
        self._shape: tuple[int, int] | None = None
        # Planes need neither taking apart nor resizing nor turning.
        self._direct = False
        self._deep = False
        self._told_of_sizes = False

    @property
    def picture(self) -> Picture | None:
        """What the latest frame said about itself."""
        return self._picture

    @property
    def orientation(self) -> Orientation | None:
        """How the picture is turned; set by the first frame."""
        return self._orientation

    def convert(self, frame: Any) -> YuvFrame | npt.NDArray[np.uint8]:
        """Convert one frame.

        Parameters
        ----------
        frame : av.VideoFrame
            Decoded, on the CPU.

        Returns
        -------
        YuvFrame or numpy.ndarray
            Planes with the subsampling of the source; grey gets 4:2:0 chroma without
            colour. ``(H, W, 3)`` uint8 RGB where the source is RGB. It may share
            memory with `frame`, which it then keeps alive; that memory is read-only.

        Raises
        ------
        ValueError
            A pixel format that cannot be read.
        """
        if self._is_direct(frame):
            return _convert_planes(frame, self._conversion, deep=self._deep)
        picture, orientation, shape = self._picture, self._orientation, self._shape
        if picture is None or orientation is None or shape is None:
            raise TypeError("a frame was not taken note of")
        stored_shape = orientation.shown(*shape)
        if picture.layout.kind == "rgb":
            pixels = self._reader.rgb(frame, picture.layout)
            resized = resize_pixels(pixels, stored_shape)
            return orientation.apply(resized)
        return orientation.apply_to_planes(self._planes(frame, picture, stored_shape))

    def convert_later(
        self, frame: Any
    ) -> DeferredImage | YuvFrame | npt.NDArray[np.uint8]:
        """Convert one frame, or say how: what needs nothing of the converter is left.

        Raises
        ------
        ValueError
            As `convert`.
        """
        if self._is_direct(frame):
            return DeferredImage(
                partial(_convert_planes, frame, self._conversion, deep=self._deep)
            )
        return self.convert(frame)

    def _is_direct(self, frame: Any) -> bool:
        """Look at a frame, and tell whether its planes need their colours only."""
        key = (
            frame.height,
            frame.width,
            frame.format.name,
            frame.colorspace,
            frame.color_range,
        )
        if key != self._key:
            self._take_note(frame)
            self._key = key
        return self._direct

    def _take_note(self, frame: Any) -> None:
        """Choose what to do with frames like this one; the first sets the size."""
        picture = Picture.of(frame)
        before = self._picture
        if (
            before
            and (before.height, before.width) != (frame.height, frame.width)
            and not self._told_of_sizes
        ):
            self._told_of_sizes = True
            _log.warning(
                "video %r changes its size from %dx%d to %dx%d; all frames are stored "
                "at the size of the first one",
                self._name,
                before.width,
                before.height,
                frame.width,
                frame.height,
            )
        if self._orientation is None:
            self._orientation = read_orientation(frame, self._name)
            shown = self._orientation.shown(picture.height, picture.width)
            self._shape = resized_shape(*shown, self._short_edge)
        layout = picture.layout
        self._picture = picture
        self._deep = layout.depth > 8
        self._conversion = _conversion_of(
            PlaneColour(picture.matrix, picture.full_range, layout.depth)
        )
        self._direct = (
            layout.kind == "yuv"
            and layout.read_as == picture.pix_fmt
            and self._orientation == UPRIGHT
            and self._shape == (picture.height, picture.width)
        )

    def _planes(self, frame: Any, picture: Picture, shape: tuple[int, int]) -> YuvFrame:
        """Resize and convert the planes of a frame, still as it is stored."""
        layout, full = picture.layout, picture.full_range
        have = (picture.height, picture.width)
        grows = shape[0] > have[0] or shape[1] > have[1]
        first = have if grows else shape
        shrink = self._scaler.shrink
        if layout.kind == "grey":
            grey = self._reader.grey(frame, layout, full_range=full)
            grey = shrink(grey, first, layout.depth)
            chroma = _no_colour(layout.chroma_shape(*first))
            converted = YuvFrame(self._conversion.luma(grey), chroma, chroma)
        else:
            y, u, v = self._reader.yuv(frame, layout, full_range=full)
            if first != have:
                y = shrink(y, first, layout.depth)
                small = layout.chroma_shape(*first)
                shrink_chroma = self._scaler.shrink_chroma
                u = shrink_chroma(u, have, first, small, layout.depth)
                v = shrink_chroma(v, have, first, small, layout.depth)
            converted = self._conversion(y, u, v)
        if not grows:
            return converted
        large = layout.chroma_shape(*shape)
        return YuvFrame(
            resize_pixels(converted.y, shape),
            resize_chroma(converted.u, have, shape, large),
            resize_chroma(converted.v, have, shape, large),
        )


def _convert_planes(frame: Any, conversion: PlaneConversion, *, deep: bool) -> YuvFrame:
    y, u, v = plane_views(frame, deep=deep)
    return conversion(y, u, v)


@lru_cache(maxsize=32)
def _conversion_of(colour: PlaneColour) -> PlaneConversion:
    """Give a conversion, kept from file to file: many videos are of few kinds."""
    return PlaneConversion(colour)


@lru_cache(maxsize=4)
def _no_colour(shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Give a chroma plane without colour, shared and read-only."""
    plane = np.full(shape, 128, np.uint8)
    plane.flags.writeable = False
    return plane
