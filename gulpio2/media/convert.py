"""From a decoded video frame to the frame that is stored: size, colour, orientation."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import av
import numpy as np

from gulpio2.errors import IngestSettingError, SourceReadError
from gulpio2.media.colour import (
    Matrix,
    PlaneColour,
    PlaneConversion,
    is_matrix_known,
    matrix_of,
)
from gulpio2.media.orientation import UPRIGHT, Orientation, read_orientation
from gulpio2.media.planes import Layout, PlaneReader, layout_of, plane_views
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.media.scaling import PlaneScaler, resize_chroma
from gulpio2.types import DeferredImage, YuvFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

__all__ = ["FrameConverter", "Picture", "Way"]

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
            matrix=matrix_of(*_declared_colour(frame)),
            full_range=full,
            layout=layout,
        )


def _declared_colour(frame: Any) -> tuple[int, int]:
    """Give the numbers of a frame's matrix and of its primaries."""
    # PyAV has primaries from 17 on; they matter for two rare matrices only.
    return int(frame.colorspace), int(getattr(frame, "color_primaries", 2))


@dataclass(frozen=True, slots=True)
class Way:
    """What is to be done with frames that are alike."""

    picture: Picture
    """What they say about themselves."""
    orientation: Orientation
    """How they are turned."""
    shape: tuple[int, int]
    """Height and width to be stored, before they are turned."""
    conversion: PlaneConversion
    """Of their colours."""
    is_direct: bool
    """Whether planes are taken as they are: of this grid, this size and upright."""


class _Tools(threading.local):
    """What a thread keeps from frame to frame."""

    def __init__(self) -> None:
        self.reader = PlaneReader()
        self.scaler = PlaneScaler()


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
        self._tools = _Tools()
        self._key: tuple[Any, ...] | None = None
        self._way: Way | None = None
        self._first: Any = None
        self._told_of_sizes = False
        self._told_of_matrix = False

    def turn_as(self, frame: Any) -> None:
        """Turn all frames as one says that comes before them; None for the first.

        In H.264 those behind it need not say it again.
        """
        self._first = frame

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
        SourceReadError
            A pixel format that cannot be read.
        IngestSettingError
            A size that no picture can have.
        """
        return self._converted(frame, self.look_at(frame))

    def convert_later(self, frame: Any) -> DeferredImage:
        """Look at one frame, and leave its conversion to whichever thread wants it.

        Raises
        ------
        SourceReadError, IngestSettingError
            As `convert`; some of it only when the image is made.
        """
        make = partial(self._converted, frame, self.look_at(frame))
        return DeferredImage(_Once(make))

    def look_at(self, frame: Any) -> Way:
        """Look at a frame, and say what is to be done with it.

        Raises
        ------
        SourceReadError, IngestSettingError
            As `convert`.
        """
        key = (
            frame.height,
            frame.width,
            frame.format.name,
            frame.colorspace,
            frame.color_range,
        )
        if self._way is None or key != self._key:
            try:
                self._way = self._choose_way(frame, self._way)
            except IngestSettingError:  # the size that is asked for, not the video
                raise
            except ValueError as cause:
                raise self._refused(cause) from cause
            self._key = key
        return self._way

    def _choose_way(self, frame: Any, last: Way | None) -> Way:
        """Choose what to do with frames like this one; the first sets the size."""
        picture = Picture.of(frame)
        before = None if last is None else last.picture
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
        if picture.layout.kind == "yuv" and not self._told_of_matrix:
            self._tell_of_matrix(*_declared_colour(frame))
        if last is None:
            first, self._first = self._first or frame, None
            orientation = read_orientation(first, self._name)
            shown = orientation.shown(picture.height, picture.width)
            shape = orientation.shown(*resized_shape(*shown, self._short_edge))
        else:
            orientation, shape = last.orientation, last.shape
        layout = picture.layout
        return Way(
            picture,
            orientation,
            shape,
            _conversion_of(
                PlaneColour(picture.matrix, picture.full_range, layout.depth)
            ),
            is_direct=layout.kind == "yuv"
            and layout.read_as == picture.pix_fmt
            and layout.repeats == (1, 1)
            and orientation == UPRIGHT
            and shape == (picture.height, picture.width),
        )

    def _tell_of_matrix(self, matrix: int, primaries: int) -> None:
        """Say where colours are of a kind that is not known; FFmpeg says nothing."""
        if is_matrix_known(matrix, primaries):
            return
        self._told_of_matrix = True
        _log.warning(
            "video %r declares colours of a kind that cannot be converted (matrix "
            "coefficients %d, colour primaries %d, of ITU-T H.273); they are taken for "
            "BT.601, as FFmpeg takes them, and are likely wrong. Convert it to BT.709 "
            "first",
            self._name,
            matrix,
            primaries,
        )

    def _converted(self, frame: Any, way: Way) -> YuvFrame | npt.NDArray[np.uint8]:
        """Convert a frame, in any thread."""
        layout = way.picture.layout
        try:
            if way.is_direct:
                return way.conversion(*plane_views(frame, deep=layout.depth > 8))
            if layout.kind == "rgb":
                pixels = self._tools.reader.rgb(frame, layout)
                return way.orientation.apply(resize_pixels(pixels, way.shape))
            return way.orientation.apply_to_planes(self._planes(frame, way))
        except (av.FFmpegError, ValueError) as cause:
            raise self._refused(cause) from cause

    def _refused(self, cause: Exception) -> SourceReadError:
        return SourceReadError(
            f"Video {self._name!r} has frames that cannot be converted: {cause}. "
            "Re-encode it, as with -pix_fmt yuv420p."
        )

    def _planes(self, frame: Any, way: Way) -> YuvFrame:
        """Resize and convert the planes of a frame, still as it is stored."""
        picture, shape = way.picture, way.shape
        layout, full = picture.layout, picture.full_range
        reader, scaler = self._tools.reader, self._tools.scaler
        have = (picture.height, picture.width)
        grows = shape[0] > have[0] or shape[1] > have[1]
        first = have if grows else shape
        shrink = scaler.shrink
        if layout.kind == "grey":
            grey = reader.grey(frame, layout, full_range=full)
            grey = shrink(grey, first, layout.depth)
            chroma = _no_colour(layout.chroma_shape(*first))
            converted = YuvFrame(way.conversion.luma(grey), chroma, chroma)
        else:
            y, u, v = reader.yuv(frame, layout, full_range=full)
            if first != have:
                y = shrink(y, first, layout.depth)
                small = layout.chroma_shape(*first)
                shrink_chroma = scaler.shrink_chroma
                u = shrink_chroma(u, have, first, small, layout.depth)
                v = shrink_chroma(v, have, first, small, layout.depth)
            converted = way.conversion(y, u, v)
        if not grows:
            return converted
        large = layout.chroma_shape(*shape)
        return YuvFrame(
            resize_pixels(converted.y, shape),
            resize_chroma(converted.u, have, shape, large),
            resize_chroma(converted.v, have, shape, large),
        )


class _Once:
    """Converts a frame when it is first wanted, also where it is repeated.

    One thread at a time: swscale's settings pass through the frame itself.
    """

    __slots__ = ("_image", "_lock", "_make")

    def __init__(self, make: Callable[[], YuvFrame | npt.NDArray[np.uint8]]) -> None:
        self._lock = threading.Lock()
        self._make: Callable[[], YuvFrame | npt.NDArray[np.uint8]] | None = make
        self._image: YuvFrame | npt.NDArray[np.uint8] | None = None

    def __call__(self) -> YuvFrame | npt.NDArray[np.uint8] | None:
        with self._lock:
            if self._make is not None:
                self._image = self._make()
                self._make = None  # and with it the decoded frame
            return self._image


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
