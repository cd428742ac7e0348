"""How a stored picture is turned and mirrored to be shown."""

from __future__ import annotations

import functools
import logging
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np

from gulpio2.codecs.pixels import resample_plane
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["UPRIGHT", "Orientation", "read_orientation"]

_log = logging.getLogger(__name__)

# Part of the longer coefficient that the shorter one may have in a turn by a multiple
# of 90 degrees: tan(1 degree), FFmpeg's tolerance.
_TOLERANCE = 0.0175
# More than FFmpeg has kinds of side data: 33 in 8.1.
_KINDS = 64


class Orientation(NamedTuple):
    """A turn by a multiple of 90 degrees, mirrored or not, as three steps in order."""

    transpose: bool = False
    """Rows become columns first."""
    flip_x: bool = False
    """Then columns are reversed."""
    flip_y: bool = False
    """Then rows are reversed."""

    def shown(self, height: int, width: int) -> tuple[int, int]:
        """Give the size as shown of a stored size, and the other way round."""
        return (width, height) if self.transpose else (height, width)

    @property
    def rotation(self) -> int:
        """Degrees counterclockwise, in [-180, 180); ``rotation`` of ffprobe."""
        if self.transpose:
            return 90 if self.flip_y else -90
        return -180 if self.flip_x else 0

    @property
    def mirrored(self) -> bool:
        """Whether the picture is mirrored beside being turned."""
        return (self.transpose + self.flip_x + self.flip_y) % 2 == 1

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Turn an image or a plane, ``(H, W)`` or ``(H, W, 3)`` uint8.

        The result has adjacent columns; it is the argument itself where nothing is
        turned.
        """
        if self.transpose:
            pixels = np.asarray(cv2.transpose(pixels), np.uint8)
        if self.flip_x or self.flip_y:
            code = (-1 if self.flip_y else 1) if self.flip_x else 0
            pixels = np.asarray(cv2.flip(pixels, code), np.uint8)
        return pixels

    def apply_to_planes(self, frame: YuvFrame) -> YuvFrame:
        """Turn all planes.

        Notes
        -----
        4:2:2 turned by 90 degrees has full rows and half the columns' height, which
        no frame may have: its chroma is doubled to 4:4:4 before. Where an odd edge is
        reversed, half a chroma sample hung over its far end; chroma is moved by that
        half sample, so that it stays with its luma.
        """
        if self == UPRIGHT:
            return frame
        u, v = frame.u, frame.v
        if self.transpose and frame.subsampling == "422":
            u, v = (resample_plane(c, frame.y.shape) for c in (u, v))
        y = self.apply(frame.y)
        return YuvFrame(y, *(self._apply_to_chroma(c, frame.y.shape) for c in (u, v)))

    def _apply_to_chroma(
        self, plane: npt.NDArray[np.uint8], luma: tuple[int, int]
    ) -> npt.NDArray[np.uint8]:
        height, width = luma
        odd_y = plane.shape[0] * 2 == height + 1
        odd_x = plane.shape[1] * 2 == width + 1
        turned = self.apply(plane)
        if self.transpose:
            odd_y, odd_x = odd_x, odd_y
        if odd_x and self.flip_x:
            turned = _between_neighbours(turned, axis=1)
        if odd_y and self.flip_y:
            turned = _between_neighbours(turned, axis=0)
        return turned


UPRIGHT = Orientation()


def _between_neighbours(
    plane: npt.NDArray[np.uint8], *, axis: int
) -> npt.NDArray[np.uint8]:
    """Move a plane half a sample towards its start; the last sample is repeated."""
    following = np.concatenate(
        [
            np.take(plane, range(1, plane.shape[axis]), axis=axis),
            np.take(plane, [-1], axis=axis),
        ],
        axis=axis,
    )
    return np.asarray(cv2.addWeighted(plane, 0.5, following, 0.5, 0), np.uint8)


def read_orientation(frame: Any, name: str) -> Orientation:
    """Read the display matrix of a decoded frame.

    Parameters
    ----------
    frame : av.VideoFrame
        The matrix is side data: nine integers, of which four turn the picture.
    name : str
        Of the video, for the log.

    Returns
    -------
    Orientation
        Upright where there is no matrix. Other angles than multiples of 90 degrees
        are not turned (FFmpeg would fill the corners with black); the log says so.
    """
    matrix = _display_matrix(frame)
    if matrix is None:
        return UPRIGHT
    # ISO/IEC 14496-12, 6.2.2: x' = a x + c y, y' = b x + d y.
    a, b, c, d = (int(matrix[i]) for i in (0, 1, 3, 4))
    straight, crossed = max(abs(a), abs(d)), max(abs(b), abs(c))
    if min(straight, crossed) > _TOLERANCE * max(straight, crossed):
        _log.warning(
            "video %r is turned by %s degrees, which is no multiple of 90; it is "
            "stored as it is",
            name,
            frame.rotation,
        )
        return UPRIGHT
    if crossed > straight:
        return Orientation(transpose=True, flip_x=c < 0, flip_y=b < 0)
    return Orientation(flip_x=a < 0, flip_y=d < 0)


def _display_matrix(frame: Any) -> npt.NDArray[np.int32] | None:
    """Read the display matrix past all other side data of a frame.

    PyAV (18.1) frees a dictionary that the frame still owns where side data has one,
    as an ICC profile of a PNG does, and knows no Exif. So nothing of `frame.side_data`
    is touched: filters look whether there is a matrix, and take out the rest.
    """
    if _filtered(frame, ["mode=select:type=DISPLAYMATRIX"]) is None:
        return None
    cleaned = _filtered(frame, [f"mode=delete:type={number}" for number in _unsafe()])
    side_data = None if cleaned is None else cleaned.side_data
    if side_data is None or "DISPLAYMATRIX" not in side_data:
        return None
    return np.frombuffer(bytes(side_data["DISPLAYMATRIX"]), np.int32)


def _filtered(frame: Any, arguments: list[str]) -> Any:
    """Send a frame through FFmpeg's filter of side data; None where it is held back."""
    import av
    from av.filter import Graph

    graph = Graph()
    graph.threads = 1
    steps = [
        graph.add_buffer(
            width=frame.width,
            height=frame.height,
            format=frame.format,
            time_base=frame.time_base or Fraction(1),
        ),
        *(graph.add("sidedata", argument) for argument in arguments),
        graph.add("buffersink"),
    ]
    graph.link_nodes(*steps).configure()
    graph.push(frame)
    try:
        return graph.pull()
    except (av.BlockingIOError, av.EOFError):
        return None


@functools.cache
def _unsafe() -> tuple[int, ...]:
    """List the kinds of side data that have a dictionary, or that PyAV has no name for.

    Numbers are those of `AVFrameSideDataType`; the filter takes any.
    """
    from av.sidedata.sidedata import Type

    safe = {kind.value for kind in Type if kind is not Type.ICC_PROFILE}
    return tuple(sorted({*range(_KINDS)} - safe))
