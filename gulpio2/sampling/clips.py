"""What every sampler returns, and what stands in for frames that an item lacks."""

from __future__ import annotations

import reprlib
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import require_choice, require_number
from gulpio2.errors import with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "BORDERS",
    "FURTHEST",
    "NO_FRAME",
    "Border",
    "ClipIndices",
    "all_valid",
    "apply_border",
    "given_numbers",
    "in_steps",
    "require_chosen",
]

Border: TypeAlias = Literal["clamp", "loop", "mask", "repeat"]
IndexArray: TypeAlias = npt.NDArray[np.int64]
ValidArray: TypeAlias = npt.NDArray[np.bool_]

FURTHEST = 1 << 61
"""More frames than any item has, and still far from where 64 bits wrap around."""
NO_FRAME = -1
"""Index of a place for which nothing is to be read (border ``"mask"`` only)."""


class ClipIndices:
    """The frames of one clip, or of several, by their index in the item.

    Parameters
    ----------
    indices : numpy.ndarray of int64
        ``(frames,)`` for one clip, ``(clips, frames)`` for several; each in
        ``[0, num_frames)``, or `NO_FRAME` where the border is ``"mask"``.
    valid : numpy.ndarray of bool
        Same shape: False where another frame, or none, stands for the wanted one.

    Examples
    --------
    >>> clip = ClipIndices(np.array([0, 2, 4]), np.array([True, True, True]))
    >>> clip.indices.tolist(), clip.valid.all().item()
    ([0, 2, 4], True)
    """

    # Most clips of a training are frames at equal steps, of which a loader needs no
    # arrays: those are made when they are asked for.
    __slots__ = ("_indices", "_steps", "_valid")
    __match_args__ = ("indices", "valid")

    _indices: IndexArray
    _valid: ValidArray
    _steps: range | None

    def __init__(self, indices: IndexArray, valid: ValidArray) -> None:
        array: Any
        for name, array, kinds in (("indices", indices, "iu"), ("valid", valid, "b")):
            if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
                raise TypeError(
                    f"{name} is {_described(array)}, expected a numpy array of "
                    f"{'whole numbers' if name == 'indices' else 'booleans'}"
                )
        if indices.shape != valid.shape or indices.ndim not in (1, 2):
            raise ValueError(
                f"indices of shape {indices.shape} with a mask of shape "
                f"{valid.shape}: both must be (frames,) or (clips, frames)"
            )
        self._indices, self._valid, self._steps = indices, valid, None

    @property
    def indices(self) -> IndexArray:
        """``(frames,)`` or ``(clips, frames)`` int64: which frames."""
        if (steps := self._steps) is not None:
            self._make_arrays(steps)
        return self._indices

    @property
    def valid(self) -> ValidArray:
        """Same shape, bool: whether each is the wanted one."""
        if (steps := self._steps) is not None:
            self._make_arrays(steps)
        return self._valid

    @property
    def steps(self) -> range | None:
        """The frames, where they are known to be at equal steps and all wanted.

        None as soon as somebody has the arrays, and may have changed them.
        """
        return self._steps

    def _make_arrays(self, steps: range) -> None:
        self._indices = np.arange(steps.start, steps.stop, steps.step, dtype=np.int64)
        self._valid = np.ones(len(steps), np.bool_)
        self._steps = None

    def __reduce__(self) -> tuple[type[ClipIndices], tuple[IndexArray, ValidArray]]:
        """Pickle and copy as the arrays."""
        return type(self), (self.indices, self.valid)

    def __repr__(self) -> str:
        """Show the shape and how many places have no frame of their own."""
        missing = int(self.valid.size - np.count_nonzero(self.valid))
        return f"ClipIndices(shape={self.indices.shape}, missing={missing})"


def all_valid(indices: IndexArray) -> ClipIndices:
    """Give a clip of which every frame is the wanted one."""
    # Done for every sample: np.ones takes longer, and so do the checks of `__init__`.
    clip = ClipIndices.__new__(ClipIndices)
    clip._indices, clip._steps = indices, None
    clip._valid = np.empty(indices.shape, np.bool_)
    clip._valid.fill(1)
    return clip


def in_steps(steps: range) -> ClipIndices:
    """Give a clip of frames at equal steps upwards, every one the wanted one."""
    clip = ClipIndices.__new__(ClipIndices)
    clip._steps = steps
    return clip


def given_numbers(
    name: str, value: Any, expected: str, *, whole: bool = False
) -> npt.NDArray[Any]:
    """Make an array of numbers that a caller gives.

    Parameters
    ----------
    name : str
        Of the argument.
    value : array_like
        What was given.
    expected : str
        What is wanted, for the message.
    whole : bool, keyword-only
        Whole numbers only.

    Returns
    -------
    numpy.ndarray
        Of integers or, unless they are to be whole, of floats.

    Raises
    ------
    TypeError
        It holds something else, as texts or booleans, or some of it is masked out.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # rows that are not equally long
        array = np.empty(1, np.void)
    if not array.size:  # whatever numpy makes an empty list of
        array = array.astype(np.int64 if whole else np.float64)
    elif array.dtype.kind == "O" and all(map(_is_number, array.flat)) and not whole:
        array = array.astype(np.float64)  # fractions and decimals
    if (
        array.dtype.kind not in ("iu" if whole else "iuf")
        or _holds_booleans(value)
        or np.ma.is_masked(value)
    ):
        raise TypeError(f"{name} is {reprlib.repr(value)}, expected {expected}")
    return array


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def _holds_booleans(value: object) -> bool:
    """Look for those among numbers, of which numpy makes numbers as well."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_booleans, value))
    return isinstance(value, (bool, np.bool_))


def require_chosen(indices: Iterable[int]) -> None:
    """Refuse an index that no sampler may give.

    Raises
    ------
    ValueError
        One is below `NO_FRAME`. In a clip nothing is counted from the end.
    """
    least = min(indices, default=0)
    if least < NO_FRAME:
        raise ValueError(
            f"the sampler chose frame {least}: frames are counted from 0, and "
            f"{NO_FRAME} stands for none"
        )


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return with_article(type(value).__name__)


def _clamp(wanted: IndexArray, valid: ValidArray, num_frames: int) -> IndexArray:
    """Take the first frame before the beginning and the last one past the end."""
    return np.clip(wanted, 0, num_frames - 1)


def _loop(wanted: IndexArray, valid: ValidArray, num_frames: int) -> IndexArray:
    """Start over: the frame after the last is the first again."""
    return wanted % num_frames


def _mask(wanted: IndexArray, valid: ValidArray, num_frames: int) -> IndexArray:
    """Take nothing."""
    return np.where(valid, wanted, NO_FRAME)


def _repeat(wanted: IndexArray, valid: ValidArray, num_frames: int) -> IndexArray:
    """Repeat the clip's own last frame before the gap, else its first one after it."""
    places = np.broadcast_to(np.arange(wanted.shape[-1]), wanted.shape)
    before = np.maximum.accumulate(np.where(valid, places, -1), axis=-1)
    first = np.argmax(valid, axis=-1)[..., np.newaxis]
    source = np.where(before >= 0, before, first)
    taken = np.take_along_axis(wanted, source, axis=-1)
    # A clip without a single frame of the item has nothing of its own to repeat.
    return np.clip(taken, 0, num_frames - 1)


BORDERS: Mapping[Border, Callable[[IndexArray, ValidArray, int], IndexArray]] = (
    MappingProxyType({"clamp": _clamp, "loop": _loop, "mask": _mask, "repeat": _repeat})
)
"""What stands in for a frame outside of the item.

``clamp``: the item's first or last frame. ``loop``: the item starts over.
``mask``: nothing, the index is `NO_FRAME`. ``repeat``: the clip's last frame before the
gap, else its first one after it, so that its frames stay on one grid of strides.
"""


def apply_border(
    wanted: npt.ArrayLike,
    num_frames: int,
    border: Border,
    *,
    valid: ValidArray | None = None,
) -> ClipIndices:
    """Put frames of the item where a clip reaches over its borders.

    Parameters
    ----------
    wanted : array_like of int
        ``(frames,)`` or ``(clips, frames)``; may lie outside of the item.
    num_frames : int
        Frames of the item, at least one.
    border : {"clamp", "loop", "mask", "repeat"}
        What stands in, see `BORDERS`.
    valid : numpy.ndarray of bool, optional
        Places that count as found; only those inside of the item can. Default: all
        of these.

    Returns
    -------
    ClipIndices
        Indices that can be read, and where they are the wanted ones.

    Raises
    ------
    TypeError
        What is wanted is no whole numbers.
    ValueError
        The item has no frames, or there is no such border.
    """
    num_frames = require_number("num_frames", num_frames, 1)
    require_choice("border", border, Border)
    indices = _whole_numbers(wanted)
    inside = (indices >= 0) & (indices < num_frames)
    if valid is not None:
        inside &= valid
    if inside.all():  # as mostly: then there is nothing to put anywhere
        return ClipIndices(indices.copy(), inside)
    return ClipIndices(BORDERS[border](indices, inside, num_frames), inside)


def _whole_numbers(wanted: npt.ArrayLike) -> IndexArray:
    """Refuse what would be cut off to a whole number, or is no number at all."""
    numbers = np.asarray(wanted)
    if numbers.dtype.kind in "iu" or not numbers.size:
        return numbers.astype(np.int64, copy=False)
    if numbers.dtype.kind in "fO":
        with suppress(TypeError, ValueError, OverflowError), np.errstate(all="ignore"):
            whole = numbers.astype(np.int64)
            if (whole == numbers).all():
                return whole
    raise TypeError(
        f"wanted is of {numbers.dtype}, expected whole numbers: indices of frames"
    )
