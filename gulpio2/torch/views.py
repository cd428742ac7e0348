"""Which part of a stored frame a loader's batches show, and at which size.

A view chooses a region from the size of the frames and a generator: one for all clips
of a sample or, where it has a true ``each_clip``, one for each of them. The region is
then decoded, resized and, where it says so, mirrored.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.arguments import as_number, whole_number
from gulpio2.errors import FormatError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "CenterCrop",
    "FrameView",
    "RandomResizedCrop",
    "Region",
    "choose_region",
    "takes_info",
]

# Tries of a random region before the largest one is taken, as in torchvision.
_NUM_TRIES = 10


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the frames of a clip, in pixels of the stored frame."""

    top: int
    """First row."""
    left: int
    """First column."""
    height: int
    """Rows, at least one."""
    width: int
    """Columns, at least one."""
    mirrored: bool = False
    """Whether left and right change places."""


class FrameView(Protocol):
    """What a loader needs in order to bring items of all sizes to one."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the frames in a batch."""
        ...

    def choose(
        self, height: int, width: int, rng: np.random.Generator | None
    ) -> Region:
        """Choose a region of frames of this size.

        Parameters
        ----------
        height, width : int
            Of the stored frames.
        rng : numpy.random.Generator or None
            Of this sample, for all that is random; None in test mode.

        Returns
        -------
        Region
            It is resized to `shape`, whatever its proportions.

        Notes
        -----
        One with a parameter `info` is also told, by that name, what `get_data_info`
        gives of the sample, for a view that goes by its boxes.
        """
        ...


@dataclass(frozen=True, slots=True)
class CenterCrop:
    """The middle of the frame, as large as its proportions allow.

    Examples
    --------
    >>> CenterCrop(224).choose(256, 340, None)
    Region(top=0, left=42, height=256, width=256, mirrored=False)
    """

    size: int | Sequence[int]
    """Edge of a square, or height and width, in pixels of the batch."""
    share: float = 1.0
    """Of the largest such region's edges, the part to take; 0.875 is usual in tests."""

    def __post_init__(self) -> None:
        """Check size and share."""
        object.__setattr__(self, "size", _size_of(self.size))
        if not 0 < as_number(self.share) <= 1:
            raise ValueError(f"share is {self.share!r}, expected above 0, 1 at most")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the frames in a batch."""
        return _pair(self.size)

    def choose(
        self, height: int, width: int, rng: np.random.Generator | None
    ) -> Region:
        """Choose the middle; nothing is random."""
        del rng
        rows, columns = _largest(height, width, self.shape)
        return _middle(height, width, rows * self.share, columns * self.share)


@dataclass(frozen=True, slots=True)
class RandomResizedCrop:
    """A region of random area and proportions, perhaps mirrored; for training.

    The rule of torchvision's transform of that name. In test mode: the middle.

    Examples
    --------
    >>> import numpy as np
    >>> view = RandomResizedCrop(112, area=(0.3, 1.0))
    >>> view.choose(256, 340, np.random.default_rng(1))
    Region(top=20, left=50, height=207, width=250, mirrored=False)
    """

    size: int | Sequence[int]
    """Edge of a square, or height and width, in pixels of the batch."""
    area: tuple[float, float] = (0.08, 1.0)
    """Least and largest area, as a share of the frame's."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Least and largest width for a height of one, in the stored frame."""
    mirrored: float = 0.5
    """How often left and right change places; 0 where that changes the meaning."""
    each_clip: bool = False
    """Whether each clip of a sample shows a region of its own, in place of one for all.

    So they are views of a video that a contrastive loss brings together.
    """

    def __post_init__(self) -> None:
        """Check the bounds."""
        object.__setattr__(self, "size", _size_of(self.size))
        _require_bounds("area", self.area)
        if self.area[1] > 1:
            raise ValueError(
                f"area is {self.area!r}, expected shares of the frame's area: 1 at most"
            )
        _require_bounds("ratio", self.ratio)
        if not 0 <= as_number(self.mirrored) <= 1:
            raise ValueError(f"mirrored is {self.mirrored!r}, expected 0 to 1")
        if not isinstance(self.each_clip, bool):
            raise TypeError(f"each_clip is {self.each_clip!r}, expected True or False")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the frames in a batch."""
        return _pair(self.size)

    def choose(
        self, height: int, width: int, rng: np.random.Generator | None
    ) -> Region:
        """Choose a random region, or the middle without a generator."""
        if rng is None:
            return _middle(height, width, *_largest(height, width, self.shape))
        # All that may be needed, in [0, 1), at once: between two frames of a loader it
        # is the call that takes time, and not the numbers.
        drawn = iter(rng.random(1 + 4 * _NUM_TRIES).tolist())
        mirrored = next(drawn) < self.mirrored
        least, most = self.area
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(_NUM_TRIES):
            area = height * width * (least + (most - least) * next(drawn))
            ratio = math.exp(low + (high - low) * next(drawn))
            down, right = next(drawn), next(drawn)
            columns = round(math.sqrt(area * ratio))
            rows = round(math.sqrt(area / ratio))
            if 0 < rows <= height and 0 < columns <= width:
                top = int((height - rows + 1) * down)
                left = int((width - columns + 1) * right)
                return Region(top, left, rows, columns, mirrored)
        # A frame of other proportions than any of these: as much of it as they allow.
        ratio = min(max(width / height, self.ratio[0]), self.ratio[1])
        region = _middle(
            height, width, min(height, width / ratio), min(width, height * ratio)
        )
        return Region(region.top, region.left, region.height, region.width, mirrored)


def takes_info(view: FrameView) -> bool:
    """Tell whether a view wants to know of the sample for which it chooses."""
    try:
        return "info" in inspect.signature(view.choose).parameters
    except (AttributeError, TypeError, ValueError):  # no view, or it does not say
        return False


def choose_region(
    view: FrameView,
    height: int,
    width: int,
    rng: np.random.Generator | None,
    **info: Any,
) -> Region:
    """Have a view choose, and refuse what is no region of the frame.

    Parameters
    ----------
    view : FrameView
        Perhaps one of somebody's own.
    height, width, rng
        As in `FrameView.choose`.
    **info
        For one that takes it, `info` of the sample.

    Returns
    -------
    Region
        Of ints, where the view has taken them from a generator too.

    Raises
    ------
    TypeError
        It is none, or not of whole numbers.
    FormatError
        It reaches out of the frame, or is empty.
    """
    chosen: Any = view.choose(height, width, rng, **info)
    try:
        region = Region(
            operator.index(chosen.top),
            operator.index(chosen.left),
            operator.index(chosen.height),
            operator.index(chosen.width),
            bool(chosen.mirrored),
        )
    except (AttributeError, TypeError):
        raise TypeError(
            f"the view {view!r} chose {chosen!r}, expected a Region of whole numbers"
        ) from None
    if not (
        0 <= region.top < region.top + region.height <= height
        and 0 <= region.left < region.left + region.width <= width
    ):
        raise FormatError(
            f"the view {view!r} chose {chosen!r}, which is no part of a frame of "
            f"{height} rows and {width} columns"
        )
    return region


def _require_bounds(name: str, bounds: Any) -> None:
    """Refuse what is no least and largest of something."""
    try:
        least, most = bounds
        good = 0 < least <= most < math.inf
    except (TypeError, ValueError):  # not two, or no numbers
        good = False
    if not good:
        raise ValueError(
            f"{name} is {bounds!r}, expected (least, most), both above 0 and finite"
        )


def _size_of(size: int | Sequence[int]) -> int | Sequence[int]:
    """Check a size; a list, as configs have them, becomes a tuple."""
    pair = _pair(size)
    return pair if isinstance(size, Sequence) else size


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    try:
        height, width = size if isinstance(size, Sequence) else (size, size)
        pair = whole_number("height", height), whole_number("width", width)
    except (TypeError, ValueError):
        raise TypeError(
            f"size is {size!r}, expected an edge in pixels, or (height, width)"
        ) from None
    if min(pair) < 1:
        raise ValueError(f"size is {size!r}, expected at least one pixel")
    return pair


def _largest(height: int, width: int, shape: tuple[int, int]) -> tuple[float, float]:
    """Give the largest rows and columns of these proportions."""
    factor = min(height / shape[0], width / shape[1])
    return shape[0] * factor, shape[1] * factor


def _middle(height: int, width: int, rows: float, columns: float) -> Region:
    """Put a region, rounded to whole pixels, into the middle."""
    tall, wide = max(1, round(rows)), max(1, round(columns))
    return Region((height - tall) // 2, (width - wide) // 2, tall, wide)
