"""Colours of video as colours of JPEG, from planes to planes.

A JPEG file stores Y'CbCr of the BT.601 matrix in full range (JFIF 1.02). Video comes in
other matrices (BT.709 for HD), mostly in limited range (luma 16 to 235), and in more
than eight bits. The conversion is linear and chroma does not depend on luma, so it is
done where chroma is small, without going through RGB::

    Y' = gain Y + up(a Cb + b Cr) + offset          up: to the size of luma
    Cb' = c Cb + d Cr + offset                      at the size of chroma
    Cr' = e Cb + f Cr + offset

Limited range has room outside of it, and there the conversion is not linear; see
`gulpio2.media.overshoot`.

Nothing is done about the transfer curve or the primaries: as with FFmpeg's own
conversions, HDR video is not tone-mapped. Nor is the position of chroma samples, which
differs by a quarter of a chroma sample between video and JPEG.

What a file does not say is taken as FFmpeg takes it: no matrix means BT.601, whatever
the size; no range means limited, but full for grey and for the ``yuvj`` formats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

from gulpio2.media.overshoot import Levels, Overshoot, repeat_chroma
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.media.planes import Plane

__all__ = [
    "Matrix",
    "PlaneColour",
    "PlaneConversion",
    "is_matrix_known",
    "matrix_of",
    "to_rgb",
]


class Matrix(NamedTuple):
    """A Y'CbCr matrix, by the weights of red and blue in luma."""

    name: str
    """As FFmpeg calls it, where it has one name."""
    red: float
    """Weight of red; ignored for YCgCo."""
    blue: float
    """Weight of blue; ignored for YCgCo."""

    def to_rgb(self) -> npt.NDArray[np.float64]:
        """Give the 3x3 matrix from Y, Cb, Cr to R, G, B; chroma in [-0.5, 0.5]."""
        if self.name == "ycgco":  # its planes are Y, Cg, Co
            return np.array([[1.0, -1.0, 1.0], [1.0, 1.0, 0.0], [1.0, -1.0, -1.0]])
        red, blue = self.red, self.blue
        green = 1 - red - blue
        return np.array(
            [
                [1.0, 0.0, 2 * (1 - red)],
                [1.0, -2 * blue * (1 - blue) / green, -2 * red * (1 - red) / green],
                [1.0, 2 * (1 - blue), 0.0],
            ]
        )


_BT601 = Matrix("bt601", 0.299, 0.114)
_BT709 = Matrix("bt709", 0.2126, 0.0722)
_BT2020 = Matrix("bt2020nc", 0.2627, 0.0593)
# ITU-T H.273, table 4 (the numbers are those of AVColorSpace). Constant luminance
# (10, 13) is no linear map and is taken as its non-constant neighbour, as FFmpeg does.
_MATRICES = {
    1: _BT709,
    4: Matrix("fcc", 0.30, 0.11),
    5: _BT601,
    6: _BT601,
    7: Matrix("smpte240m", 0.212, 0.087),
    8: Matrix("ycgco", 0.0, 0.0),
    9: _BT2020,
    10: _BT2020,
}
# "Derived from the primaries": H.273, table 2, for the sets that occur.
_MATRICES_OF_PRIMARIES = {1: _BT709, 9: _BT2020}
# What says nothing about Y'CbCr: RGB, by mistake, unspecified, and reserved.
_NOTHING_SAID = (0, 2, 3)


def matrix_of(colorspace: int, primaries: int = 2) -> Matrix:
    """Choose the matrix for what a frame says about itself.

    Parameters
    ----------
    colorspace, primaries : int
        Code points of ITU-T H.273, as FFmpeg gives them; 2 is unspecified.

    Returns
    -------
    Matrix
        BT.601 for what is not specified or not known.

    Examples
    --------
    >>> matrix_of(1).name, matrix_of(2).name
    ('bt709', 'bt601')
    """
    if colorspace in (12, 13):
        return _MATRICES_OF_PRIMARIES.get(primaries, _BT601)
    return _MATRICES.get(colorspace, _BT601)


def is_matrix_known(colorspace: int, primaries: int = 2) -> bool:
    """Tell whether a frame says that it has a matrix that `matrix_of` knows, or none.

    Parameters
    ----------
    colorspace, primaries : int
        As for `matrix_of`.

    Examples
    --------
    >>> is_matrix_known(1), is_matrix_known(2), is_matrix_known(14)
    (True, True, False)
    """
    if colorspace in (12, 13):
        return primaries in _MATRICES_OF_PRIMARIES
    return colorspace in _MATRICES or colorspace in _NOTHING_SAID


@dataclass(frozen=True, slots=True)
class PlaneColour:
    """What the numbers in the planes of a frame mean."""

    matrix: Matrix = _BT601
    """Which Y'CbCr it is."""
    full_range: bool = False
    """Luma from 0 to the highest value; otherwise from 16 to 235 of 256."""
    depth: int = 8
    """Bits of a value."""

    def levels(self) -> Levels:
        """Give what the values mean."""
        unit = float(1 << (self.depth - 8))
        middle = 128 * unit
        if self.full_range:
            highest = float((1 << self.depth) - 1)
            return Levels(0.0, highest, middle, highest)
        return Levels(16 * unit, 219 * unit, middle, 224 * unit)


class _Mix(NamedTuple):
    """``first * a + second * b + offset``, rounded and cut to [0, 255]."""

    a: float
    b: float
    offset: float


def _line(gain: float, offset: float) -> npt.NDArray[np.float64]:
    """Give ``plane * gain + offset`` as OpenCV takes it."""
    return np.array([[gain, offset]])


class PlaneConversion:
    """From the planes of one kind of video to those of a JPEG.

    Parameters
    ----------
    colour : PlaneColour
        What the values of the video mean.

    Notes
    -----
    One pass over each plane; for another matrix one more over chroma, and one that
    brings chroma's share of luma to the size of luma. A pass is vectorised and gives
    what a table of rounded values would. The result is the exact value, rounded, but
    luma of another matrix may be off by a level more: the share of chroma is rounded
    before, and so is luma of more than eight bits.

    Chroma's share is repeated over the pixels that it belongs to, not smoothed. That is
    how the reader decodes chroma by default, and it is four times faster.

    Examples
    --------
    >>> convert = PlaneConversion(PlaneColour(full_range=False))
    >>> black, grey = np.full((2, 2), 16, np.uint8), np.full((1, 1), 128, np.uint8)
    >>> convert(black, grey, grey).y.tolist()
    [[0, 0], [0, 0]]
    """

    def __init__(self, colour: PlaneColour) -> None:
        black, luma, middle, chroma = levels = colour.levels()
        self._deep = colour.depth > 8
        self._matrix_differs = colour.matrix != _BT601
        # Exact to what JPEG stores already: the planes are taken as they are.
        self._luma_differs = self._deep or not colour.full_range
        gain_y, gain_c = 255 / luma, 255 / chroma
        self._black, self._gain_y = black, gain_y
        self._lowest_c, self._gain_c = middle - 128 / gain_c, gain_c
        self._y = _line(gain_y, -gain_y * black)
        self._c = _line(gain_c, 128 - gain_c * middle)
        rgb, jpeg_rgb = colour.matrix.to_rgb(), _BT601.to_rgb()
        # Full range has no room outside of it, but for colours that JPEG has as well.
        self._overshoot = (
            None
            if colour.full_range
            else Overshoot(levels, rgb, jpeg_rgb, depth=colour.depth)
        )
        change = np.linalg.solve(jpeg_rgb, rgb)

        def around_128(a: float, b: float) -> _Mix:
            """Mix both chroma planes so that no colour stays at 128."""
            return _Mix(a, b, 128 - (a + b) * middle)

        self._u = around_128(float(change[1, 1]) * gain_c, float(change[1, 2]) * gain_c)
        self._v = around_128(float(change[2, 2]) * gain_c, float(change[2, 1]) * gain_c)
        # Chroma's share of luma, around 128, in as many steps to a level as fit, so
        # that its rounding costs little.
        share = [float(change[0, column]) * gain_c for column in (1, 2)]
        steps = 127 / max(sum(map(abs, share)) * middle, 1e-6)
        self._share = around_128(share[0] * steps, share[1] * steps)
        gain = 1.0 if self._deep else gain_y  # deep luma is scaled before
        offset = -128 / steps - (0.0 if self._deep else gain_y * black)
        self._y_and_share = _Mix(gain, 1 / steps, offset)

    def __call__(self, y: Plane, u: Plane, v: Plane) -> YuvFrame:
        """Convert one frame.

        Parameters
        ----------
        y, u, v : numpy.ndarray
            uint8, or uint16 for a depth above 8; 4:4:4, 4:2:2 or 4:2:0. Rows may be
            padded.

        Returns
        -------
        YuvFrame
            The arguments themselves where they already are what JPEG stores.
        """
        overshoot = self._overshoot
        if overshoot is not None and overshoot.matters(y, u, v):
            return YuvFrame(*overshoot.through_rgb(y, u, v))
        if self._matrix_differs:
            share = repeat_chroma(_mix(self._share, u, v), y.shape)
            luma = self.luma(y) if self._deep else y
            return YuvFrame(
                _mix(self._y_and_share, luma, share),
                _mix(self._u, u, v),
                _mix(self._v, v, u),
            )
        if self._deep:
            lowest, gain = self._lowest_c, self._gain_c
            return YuvFrame(
                self.luma(y),
                _to_eight_bits(u, lowest, gain),
                _to_eight_bits(v, lowest, gain),
            )
        if self._luma_differs:
            scale, of_chroma = cv2.transform, self._c
            # Two thirds of the time of a table, and of `addWeighted`.
            planes = (scale(y, self._y), scale(u, of_chroma), scale(v, of_chroma))
            return YuvFrame(*planes)  # type: ignore[arg-type]  # uint8, as they came
        return YuvFrame(_bytes(y), _bytes(u), _bytes(v))

    def luma(self, y: Plane) -> npt.NDArray[np.uint8]:
        """Convert luma alone, or grey; the matrix does not matter.

        Parameters
        ----------
        y : numpy.ndarray
            ``(H, W)`` uint8, or uint16 for a depth above 8.
        """
        if self._deep:
            return _to_eight_bits(y, self._black, self._gain_y)
        plane = cv2.transform(y, self._y) if self._luma_differs else y
        return np.asarray(plane, np.uint8)


def _bytes(plane: Plane) -> npt.NDArray[np.uint8]:
    return np.asarray(plane, np.uint8)


def _mix(mix: _Mix, first: Plane, second: Plane) -> npt.NDArray[np.uint8]:
    # Eight bits in and out is much faster than a depth that changes.
    depth = -1 if first.dtype == np.uint8 else cv2.CV_8U
    mixed = cv2.addWeighted(first, mix.a, second, mix.b, mix.offset, dtype=depth)
    return np.asarray(mixed, np.uint8)


def _to_eight_bits(plane: Plane, lowest: float, gain: float) -> npt.NDArray[np.uint8]:
    """Scale so that `lowest` becomes 0, rounded and cut to [0, 255]."""
    # The scaling below takes absolute values, so what is under 0 is cut first.
    whole = max(math.floor(lowest), 0)
    above = plane
    if whole:
        # One number is four to OpenCV, and four rows of one pixel are no other array
        # than that: it takes them pixel by pixel, and asks for a type then.
        above = cv2.subtract(plane, (whole,) * 4, dtype=cv2.CV_16U)  # type: ignore[call-overload]  # numbers are a scalar to OpenCV
    scaled = cv2.convertScaleAbs(above, alpha=gain, beta=(whole - lowest) * gain)
    return np.asarray(scaled, np.uint8)


def to_rgb(frame: YuvFrame) -> npt.NDArray[np.uint8]:
    """Convert the planes of a JPEG into RGB, as an exact decoder would.

    Returns
    -------
    numpy.ndarray
        ``(H, W, 3)`` uint8, chroma linear between its samples.
    """
    height, width = frame.y.shape
    chroma = []
    for plane in (frame.v, frame.u):
        rows, columns = (
            have if have == want else 2 * have
            for have, want in zip(plane.shape, (height, width), strict=True)
        )
        larger = cv2.resize(plane, (columns, rows), interpolation=cv2.INTER_LINEAR)
        chroma.append(larger[:height, :width])
    # OpenCV's YCrCb is JPEG's: BT.601, full range, chroma around 128.
    rgb = cv2.cvtColor(cv2.merge([frame.y, *chroma]), cv2.COLOR_YCrCb2RGB)
    return np.asarray(rgb, np.uint8)
