"""Luma above white or below black, which is cut off where players cut it: in RGB.

Limited range has room above white and below black, and cameras use it for highlights,
sharpening for its rims. A player adds chroma to luma and cuts red, green and blue then.
A JPEG has no luma above 255: where luma is cut first, the channels that chroma takes
from are too dark by what was cut. Where that can be seen a frame takes the way through
RGB, which costs more than twice its conversion, and most frames do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Plane = npt.NDArray[np.unsignedinteger[Any]]
    Bytes = npt.NDArray[np.uint8]

__all__ = ["Levels", "Overshoot", "repeat_chroma"]

# Of luma, which rows are looked at first, how far outside of the range a value has to
# be (levels of eight bits), and which part of them may be.
_ROWS, _SLACK, _FEW = 16, 2, 1e-3
# Of chroma, which rows the error is computed of, and how much of it, as a mean square
# over all channels, is left: a tenth to a thirtieth of that of a JPEG of quality 90.
_CHROMA_ROWS, _MOST_ERROR = 8, 0.2


class Levels(NamedTuple):
    """What values of the planes mean."""

    black: float
    """Luma of black."""
    luma: float
    """Luma of white less that of black."""
    middle: float
    """Chroma of grey."""
    chroma: float
    """From the lowest chroma to the highest."""


class Overshoot:
    """Finds frames for which it matters where luma is cut, and converts them.

    Parameters
    ----------
    levels : Levels
        Of the planes.
    to_rgb, to_jpeg : numpy.ndarray
        3x3: Y', Cb, Cr of the video to RGB, and those of a JPEG to RGB; chroma in
        [-0.5, 0.5].
    depth : int
        Bits of a value.
    """

    def __init__(
        self,
        levels: Levels,
        to_rgb: npt.NDArray[np.float64],
        to_jpeg: npt.NDArray[np.float64],
        *,
        depth: int,
    ) -> None:
        black, luma, middle, chroma = self._levels = levels
        self._deep = depth > 8
        slack = _SLACK << (depth - 8)
        lowest, room = round(black) - slack, round(luma) + 2 * slack
        self._lowest, self._room = np.uint16(lowest), np.uint16(room)
        self._inside = b"" if self._deep else bytes(range(lowest, lowest + room + 1))
        gains = np.array([255 / luma, 255 / chroma, 255 / chroma])
        scaled, zeros = to_rgb * gains, np.array([black, middle, middle])
        self._to_rgb = np.column_stack([scaled, -scaled @ zeros])
        self._to_jpeg = np.column_stack([np.linalg.inv(to_jpeg), [0.0, 128.0, 128.0]])
        self._of_chroma = scaled[:, 1:].astype(np.float32)

    def matters(self, y: Plane, u: Plane, v: Plane) -> bool:
        """Tell whether cutting luma by itself would be seen.

        Parameters
        ----------
        y, u, v : numpy.ndarray
            uint8, or uint16 for a depth above 8; 4:4:4, 4:2:2 or 4:2:0.
        """
        rows = y[::_ROWS]
        if self._deep:
            # What is below the lowest becomes one of the highest values.
            outside = int(np.count_nonzero(rows - self._lowest > self._room))
        else:  # as for numpy, in a third of the time behind a decode
            outside = len(rows.tobytes().translate(None, self._inside))
        return outside > _FEW * rows.size and self._error(y, u, v) > _MOST_ERROR

    def _error(self, y: Plane, u: Plane, v: Plane) -> float:
        """Give the mean square of what would be missing, of levels of 255."""
        black, luma, middle, _ = self._levels
        down, right = (-(-a // b) for a, b in zip(y.shape, u.shape, strict=True))
        some = y[:: down * _CHROMA_ROWS, ::right].astype(np.float32)
        over = np.maximum(some - np.float32(black + luma), 0) * np.float32(255 / luma)
        under = np.maximum(np.float32(black) - some, 0) * np.float32(255 / luma)
        first, second = (
            plane[::_CHROMA_ROWS].astype(np.float32) - np.float32(middle)
            for plane in (u, v)
        )
        total = 0.0
        for a, b in self._of_chroma:
            share = a * first + b * second
            missing = np.minimum(over, np.maximum(-share, 0))
            missing += np.minimum(under, np.maximum(share, 0))
            total += float(np.vdot(missing, missing))
        return total / float(3 * over.size)

    def through_rgb(self, y: Plane, u: Plane, v: Plane) -> tuple[Bytes, Bytes, Bytes]:
        """Convert a frame by way of RGB; chroma keeps its size."""
        planes = cv2.merge([y, *(repeat_chroma(plane, y.shape) for plane in (u, v))])
        if self._deep:
            rgb = cv2.transform(planes.astype(np.float32), self._to_rgb)
            rgb = np.clip(rgb, 0, 255)
            whole = np.rint(cv2.transform(rgb, self._to_jpeg))
            stored = np.clip(whole, 0, 255).astype(np.uint8)
        else:
            # OpenCV rounds, and cuts to [0, 255].
            rgb = cv2.transform(planes, self._to_rgb)
            stored = np.asarray(cv2.transform(rgb, self._to_jpeg), np.uint8)
        luma, first, second = cv2.split(stored)
        return (
            np.asarray(luma, np.uint8),
            _mean_of_samples(np.asarray(first, np.uint8), u.shape),
            _mean_of_samples(np.asarray(second, np.uint8), u.shape),
        )


def _mean_of_samples(plane: Bytes, shape: tuple[int, ...]) -> Bytes:
    """Bring a plane of the size of luma to that of chroma, by means."""
    if plane.shape == shape:
        return plane
    height, width = plane.shape
    rows, columns = shape
    whole = tuple(
        have if have == want else 2 * want
        for have, want in zip(plane.shape, shape, strict=True)
    )
    if whole != plane.shape:  # the last sample of chroma is of one pixel
        below, right = whole[0] - height, whole[1] - width
        border = cv2.BORDER_REPLICATE
        plane = np.asarray(cv2.copyMakeBorder(plane, 0, below, 0, right, border))
    small = cv2.resize(plane, (columns, rows), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8)


def repeat_chroma(chroma: Plane, shape: tuple[int, ...]) -> Plane:
    """Bring a subsampled plane to the size of luma by repeating its samples."""
    rows, columns = chroma.shape
    height, width = shape
    wide = chroma
    if columns != width:
        # Two equal channels are one row of pairs: faster than numpy's repeat.
        wide = np.asarray(cv2.merge([chroma, chroma]), chroma.dtype)
        wide = wide.reshape(rows, 2 * columns)
    if rows == height:
        return wide[:, :width]
    high = np.empty((rows, 2, wide.shape[1]), chroma.dtype)
    high[:, 0] = high[:, 1] = wide
    return high.reshape(2 * rows, -1)[:height, :width]
