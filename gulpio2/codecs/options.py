"""What to make of each frame: its size, a part of it, its colours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.arguments import require_choice, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.codecs.jpeg import JpegHeader

__all__ = [
    "AS_STORED",
    "SCALES",
    "Colorspace",
    "Crop",
    "DecodeOptions",
    "decode_options",
]

Colorspace = Literal["source", "rgb", "gray"]
# Top, left, height and width, in pixels of the stored frame.
Crop = tuple[int, int, int, int]

# Denominators at which the codec decodes directly.
SCALES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """What to make of each frame.

    Raises
    ------
    ValueError
        A scale that the codec does not have, scale and min_size together, or a crop
        that is no region.
    """

    scale: int = 1
    """1, 2, 4 or 8: decode at this fraction of the size, rounded up."""
    min_size: int | None = None
    """Decode at the smallest of these sizes whose shorter edge has still so many
    pixels."""
    crop: Crop | None = None
    """Top, left, height and width of a region, in pixels of the stored frame."""
    colorspace: Colorspace = "source"
    """"source": as stored. "rgb": three channels also for grey frames. "gray": one
    channel, the luma that the JPEG holds."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.scale not in SCALES:
            raise ValueError(f"scale is {self.scale!r}; it must be one of 1, 2, 4, 8")
        if self.min_size is not None and self.scale != 1:
            raise ValueError(
                f"min_size is {self.min_size!r} with scale {self.scale}; give one of "
                "the two"
            )
        if self.min_size is not None and self.min_size < 1:
            raise ValueError(
                f"min_size is {self.min_size!r}; it must be at least 1 pixel"
            )
        require_choice("colorspace", self.colorspace, Colorspace)
        crop: Sequence[int] | None = self.crop
        if crop is not None and (
            len(crop) != 4 or min(crop[:2]) < 0 or min(crop[2:]) < 1
        ):
            raise ValueError(
                f"crop is {crop!r}; it must be (top, left, height, width), from 0, 0 "
                "on, height and width at least 1"
            )

    def scale_for(self, header: JpegHeader) -> int:
        """Choose the denominator for a frame of this size."""
        if self.min_size is None:
            return self.scale
        short = min(header.height, header.width)
        return max(s for s in SCALES if s == 1 or -(-short // s) >= self.min_size)


def decode_options(
    scale: int, min_size: int | None, crop: Sequence[int] | None, colorspace: Colorspace
) -> DecodeOptions:
    """Give options, the same object for the same values.

    Raises
    ------
    TypeError
        A number of pixels that is no integer, or a crop that is no sequence of them.
    ValueError
        As `DecodeOptions`.
    """
    # What equals an integer would find its options, or leave its own to be found.
    if type(scale) is not int:
        scale = _whole(scale, f"scale is {scale!r}; it must be one of 1, 2, 4, 8")
    if min_size is not None:
        message = f"min_size is {min_size!r}; it must be a whole number of pixels"
        min_size = _whole(min_size, message)
    if crop is not None:
        message = f"crop is {crop!r}; it must be (top, left, height, width), integers"
        try:
            numbers = tuple(crop)
        except TypeError:
            raise TypeError(message) from None
        crop = tuple(_whole(number, message) for number in numbers)
    if type(colorspace) is not str:  # it may have no hash
        require_choice("colorspace", colorspace, Colorspace)
    return _options(scale, min_size, crop, colorspace)


def _whole(number: Any, message: str) -> int:
    try:
        return whole_number("", number)  # no True: a frame of one pixel
    except TypeError:
        raise TypeError(message) from None


_options = lru_cache(maxsize=64)(DecodeOptions)
AS_STORED = decode_options(1, None, None, "source")
"""Whole frames as they are stored."""
