"""Resizing the planes of a decoded frame."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from av import VideoFrame
from av.video.reformatter import VideoReformatter

from gulpio2.media.planes import SLACK, SWS_EXACT, plane_views
from gulpio2.media.resize import resize_pixels

if TYPE_CHECKING:
    from gulpio2.media.planes import Plane

__all__ = ["PlaneScaler", "resize_chroma"]

# A flag of swscale (libswscale/swscale.h); PyAV does not name it.
_SWS_AREA = 0x20
# How often swscale makes an edge smaller in one step. From about 170 times it takes
# two, by way of another format, and every value is off by up to 15 levels.
_FURTHEST = 64
# Edges that swscale averages for: of a smaller one it takes the nearest samples.
_LEAST = 3
# How far chroma may be from its luma at the far edge of a smaller picture, in its
# samples, and which part of its samples may be made in vain to bring it there.
_DRIFT = 0.03
_MOST_MORE = 4


class PlaneScaler:
    """Shrinks planes by their areas, several times faster than OpenCV does.

    swscale's area filter is applied to each plane as if it were a grey picture, since
    on whole frames it moves chroma by a quarter of a sample: it keeps the chroma at
    the place that video has it, where JPEG has another. A converter is kept for each
    pair of sizes, because setting one up takes longer than using it.
    """

    def __init__(self) -> None:
        self._reformatters: dict[tuple[int, ...], VideoReformatter] = {}
        self._continued: dict[tuple[int, ...], Plane] = {}

    def shrink(self, plane: Plane, shape: tuple[int, int], depth: int) -> Plane:
        """Resize one plane to a smaller shape; the plane itself for the same one.

        Parameters
        ----------
        plane : numpy.ndarray
            ``(H, W)`` uint8, or uint16 above 8 bits.
        shape : tuple of int
            New height and width, none of them larger.
        depth : int
            Bits of a value.
        """
        height, width = plane.shape
        if shape == (height, width):
            return plane
        if (2 * shape[0], 2 * shape[1]) == (height, width):
            return resize_pixels(plane, shape)  # OpenCV has a fast way for halves
        if (
            height > _FURTHEST * shape[0]
            or width > _FURTHEST * shape[1]
            or min(shape) < _LEAST
        ):
            return resize_pixels(plane, shape)
        key = (height, width, *shape, depth)
        reformatter = self._reformatters.get(key)
        if reformatter is None:
            reformatter = self._reformatters[key] = VideoReformatter()
        picture = VideoFrame.from_numpy_buffer(
            plane, format="gray" if depth == 8 else f"gray{depth}le"
        )
        smaller = reformatter.reformat(
            picture,
            width=shape[1],
            height=shape[0],
            interpolation=_SWS_AREA | SWS_EXACT,
            threads=1,
        )
        return plane_views(smaller, deep=depth > 8, count=1)[0]

    def shrink_chroma(
        self,
        plane: Plane,
        luma: tuple[int, int],
        new_luma: tuple[int, int],
        shape: tuple[int, int],
        depth: int,
    ) -> Plane:
        """Resize a chroma plane at the pace of its luma, to hundredths of a sample.

        Parameters
        ----------
        plane : numpy.ndarray
            ``(h, w)`` uint8, or uint16 above 8 bits; subsampled or not.
        luma, new_luma : tuple of int
            Height and width of luma before and after, none of them larger.
        shape : tuple of int
            Height and width that chroma has beside the new luma.
        depth : int
            Bits of a value.

        Notes
        -----
        swscale knows whole sizes only. Where another pair of them has the pace of luma,
        the plane is continued to the first, shrunk to the second, and cut. Else
        OpenCV does it, exactly.
        """
        height, width = plane.shape
        way = _detour((height, width), luma, new_luma, shape)
        if way is None:
            return resize_chroma(plane, luma, new_luma, shape)
        if way.source != (height, width):
            plane = self._of_shape(plane, way.source)
        small = self.shrink(plane, way.target, depth)
        return small if way.target == shape else small[: shape[0], : shape[1]]

    def _of_shape(self, plane: Plane, shape: tuple[int, int]) -> Plane:
        """Cut a plane, or repeat its last row and column; for the next moment only."""
        height, width = min(plane.shape[0], shape[0]), min(plane.shape[1], shape[1])
        if (height, width) == shape:
            return plane[:height, :width]
        key = (*shape, plane.itemsize)
        memory = self._continued.get(key)
        if memory is None:
            memory = np.empty((shape[0], shape[1] + SLACK), plane.dtype)
            self._continued[key] = memory
        larger = memory[:, : shape[1]]
        larger[:height, :width] = plane[:height, :width]
        larger[:height, width:] = plane[:height, width - 1 : width]
        larger[height:] = larger[height - 1]
        return larger


def resize_chroma(
    chroma: Plane,
    luma: tuple[int, int],
    new_luma: tuple[int, int],
    shape: tuple[int, int],
) -> Plane:
    """Resize a chroma plane at exactly the pace of its luma.

    Half a chroma sample hangs over an odd edge. Where the old or the new edge is odd,
    the plane as a whole becomes larger or smaller by another factor than luma, and
    colours would be off by up to a pixel at the far edge.

    Parameters
    ----------
    chroma : numpy.ndarray
        ``(h, w)``, subsampled or not.
    luma, new_luma : tuple of int
        Height and width of luma before and after.
    shape : tuple of int
        Height and width that chroma has beside the new luma.

    Returns
    -------
    numpy.ndarray
        Of that shape and the same type.
    """
    if _is_in_pace(chroma.shape, luma, new_luma, shape):
        return resize_pixels(chroma, shape)
    if chroma.shape == shape:  # OpenCV would copy it
        chroma = np.pad(chroma, ((0, 1), (0, 1)), "edge")
    shrinks = new_luma[0] <= luma[0] and new_luma[1] <= luma[1]
    # With factors and no size, OpenCV takes the factors as they are, and rounds the
    # size: up, where it is half a sample short. Above 1 it would not take areas.
    fy, fx = (
        1.0 if new == old else new / old * (1 + 1e-9)
        for old, new in zip(luma, new_luma, strict=True)
    )
    resized = cv2.resize(
        chroma,
        None,
        fx=fx,
        fy=fy,
        interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
    )
    return np.asarray(resized, chroma.dtype)[: shape[0], : shape[1]]


def _is_in_pace(
    have: tuple[int, ...],
    luma: tuple[int, int],
    new_luma: tuple[int, int],
    shape: tuple[int, int],
) -> bool:
    """Tell whether a chroma plane as a whole is resized by the factors of luma."""
    return (
        have[0] * new_luma[0] == shape[0] * luma[0]
        and have[1] * new_luma[1] == shape[1] * luma[1]
    )


class _Detour(NamedTuple):
    """A way to shrink chroma at the pace of luma, by whole sizes."""

    source: tuple[int, int]
    """The size to cut or continue the plane to."""
    target: tuple[int, int]
    """The size to shrink it to then."""


@lru_cache(maxsize=64)
def _detour(
    have: tuple[int, int],
    luma: tuple[int, int],
    new_luma: tuple[int, int],
    shape: tuple[int, int],
) -> _Detour | None:
    """Choose whole sizes that have the pace of luma, or nearly so.

    Parameters
    ----------
    have, luma, new_luma, shape : tuple of int
        Height and width of chroma, of luma before and after, and of chroma after.

    Returns
    -------
    _Detour or None
        None where the samples that would be made in vain are too many.
    """
    lengths = [
        _lengths(*sizes) for sizes in zip(have, luma, new_luma, shape, strict=True)
    ]
    rows, columns = lengths
    if rows is None or columns is None:
        return None
    return _Detour((rows[0], columns[0]), (rows[1], columns[1]))


def _lengths(have: int, old: int, new: int, want: int) -> tuple[int, int] | None:
    """Choose two lengths of one axis, before and after."""
    if have * new == want * old:
        return have, want
    for more in range(want // _MOST_MORE + 5):
        exact = (want + more) * old / new
        source = round(exact)
        drift = abs(source - exact) * new / old * want / (want + more)
        if drift <= _DRIFT:
            return source, want + more
    return None
