"""Values outside of the range, which are cut off where players cut them: in RGB.

Limited range has room above white and below black, and cameras use it for highlights,
sharpening for its rims; it has room for chroma that is too strong, too. A player adds
chroma to luma and cuts red, green and blue then. A JPEG has no such room: where luma is
cut first, the channels that chroma takes from are too dark by what was cut, and where
chroma is cut first, green is off. Where that can be seen a frame takes the way through
RGB, which costs more than twice its conversion, and most frames do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.media.planes import Plane

    Bytes = npt.NDArray[np.uint8]

__all__ = ["Levels", "Overshoot", "repeat_chroma"]

# Of each plane, which rows are looked at first, into how many parts they are to cut a
# smaller picture, how far outside of the range a value has to be (levels of eight
# bits), and which part of them may be.
_ROWS, _PARTS, _SLACK, _FEW = 16, 16, 2, 1e-3
# How much error, as a mean square over all channels, is left: a tenth to a thirtieth of
# that of a JPEG of quality 90.
_MOST_ERROR = 0.2


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


class _Range:
    """Counts values that are clearly outside of a range."""

    def __init__(self, lowest: float, length: float, *, depth: int) -> None:
        slack = _SLACK << (depth - 8)
        first, room = round(lowest) - slack, round(length) + 2 * slack
        self._is_deep = depth > 8
        self._first, self._last = first, first + room
        self._lowest, self._room = np.uint16(first), np.uint16(room)
        self._inside = b"" if self._is_deep else bytes(range(first, first + room + 1))

    def is_left(self, values: Plane) -> bool:
        """Tell whether more of some values than a few are outside."""
        if self._is_deep:
            # What is below the lowest becomes one of the highest values.
            outside = int(np.count_nonzero(values - self._lowest > self._room))
        else:  # as for numpy, in a third of the time behind a decode
            # Of most planes, chroma above all, none is, and that takes half as long.
            low, high, _, _ = cv2.minMaxLoc(values)
            if low >= self._first and high <= self._last:
                return False
            outside = len(values.tobytes().translate(None, self._inside))
        return outside > _FEW * values.size


class Overshoot:
    """Finds frames for which it matters where values are cut, and converts them.

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
        black, luma, middle, chroma = levels
        self._deep = depth > 8
        self._luma = _Range(black, luma, depth=depth)
        self._chroma = _Range(middle - chroma / 2, chroma, depth=depth)
        gains = np.array([255 / luma, 255 / chroma, 255 / chroma])
        scaled, zeros = to_rgb * gains, np.array([black, middle, middle])
        from_rgb, grey = np.linalg.inv(to_jpeg), np.array([0.0, 128.0, 128.0])
        self._to_rgb = np.column_stack([scaled, -scaled @ zeros])
        self._to_jpeg = np.column_stack([from_rgb, grey])
        at_once = from_rgb @ scaled
        self._at_once = np.column_stack([at_once, grey - at_once @ zeros])
        self._of_jpeg = np.column_stack([to_jpeg, -to_jpeg @ grey])

    def matters(self, y: Plane, u: Plane, v: Plane) -> bool:
        """Tell whether cutting luma and chroma by themselves would be seen.

        Parameters
        ----------
        y, u, v : numpy.ndarray
            uint8, or uint16 for a depth above 8; 4:4:4, 4:2:2 or 4:2:0.
        """
        luma, chroma = self._luma.is_left, self._chroma.is_left
        rows = min(_ROWS, len(y) // _PARTS) or 1
        is_left = luma(y[::rows]) or chroma(u[::rows]) or chroma(v[::rows])
        return is_left and self._error(y, u, v, rows // 2 or 1) > _MOST_ERROR

    def _error(self, y: Plane, u: Plane, v: Plane, rows: int) -> float:
        """Give the mean square of what would be wrong, of levels of 255.

        Of one of so many rows of chroma.
        """
        down, right = (-(-a // b) for a, b in zip(y.shape, u.shape, strict=True))
        luma = y[:: down * rows, ::right]
        some = cv2.merge([luma, u[::rows], v[::rows]])
        some = some.astype(np.float32)
        shown = np.clip(cv2.transform(some, self._to_rgb), 0, 255)
        stored = np.clip(cv2.transform(some, self._at_once), 0, 255)
        wrong = np.clip(cv2.transform(stored, self._of_jpeg), 0, 255) - shown
        return float(np.vdot(wrong, wrong)) / wrong.size

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
