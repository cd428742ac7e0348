"""What a caller asks for, as frame indices."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import FrameIndexError
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["select_frames"]


def select_frames(selection: Any, num_frames: int) -> Sequence[int]:
    """Turn a selection into indices.

    Parameters
    ----------
    selection : None, int, slice, sequence of int, integer or boolean array
        None is every frame. A slice means what it means for a Python list: negative
        bounds count from the end, bounds outside are clipped. A single integer is
        that one frame. A sequence, a range or an integer array gives positions in
        any order, repeats kept, negative ones from the end. A boolean array, or a
        list of bools, must have one value per frame. Tensors are arrays, too.
    num_frames : int
        Frames of the item.

    Returns
    -------
    sequence of int
        Each in ``[0, num_frames)``, in the order asked for; a ``range`` where the
        selection is one.

    Raises
    ------
    FrameIndexError
        A position is outside of the item, or a mask has the wrong length.
    TypeError
        The selection is none of these, a slice of other bounds than whole numbers, or
        an array some of which is masked out.
    ValueError
        The step of a slice is 0.
    """
    if selection is None:
        return range(num_frames)
    if isinstance(selection, slice):
        return _select_slice(selection, num_frames)
    if isinstance(selection, range):
        return _select_range(selection, num_frames)
    if isinstance(selection, (list, tuple)):
        # The common case of plain positions, without the detour through an array.
        if all(type(index) is int for index in selection):
            return [_position(index, num_frames) for index in selection]
    elif isinstance(selection, (str, bytes, dict, set, frozenset)):
        raise _not_a_selection(selection)
    elif not getattr(selection, "shape", None) and not _is_boolean(selection):
        try:
            return [_position(operator.index(selection), num_frames)]
        except TypeError:
            pass
    return _select_array(selection, num_frames)


def _is_boolean(selection: Any) -> bool:
    """Tell whether this is True or False, of Python, numpy or torch."""
    kind = getattr(selection, "dtype", type(selection))
    return kind is bool or str(kind).endswith("bool")


def _select_slice(selection: slice, num_frames: int) -> range:
    """Say of a slice that is none what is wrong with it, which Python does not."""
    try:
        return range(*selection.indices(num_frames))
    except (TypeError, ValueError) as cause:
        kind = TypeError if isinstance(cause, TypeError) else ValueError
        raise kind(
            f"cannot select frames by {selection!r}: {cause}. Give whole numbers, or "
            "None, as its bounds and its step, and no step of 0"
        ) from cause


def _select_range(selection: range, num_frames: int) -> Sequence[int]:
    """Keep a range that lies inside as it is; positions of any other are looked up."""
    if not selection or (
        0 <= min(selection[0], selection[-1])
        and max(selection[0], selection[-1]) < num_frames
    ):
        return selection
    return [_position(index, num_frames) for index in selection]


def _select_array(selection: Any, num_frames: int) -> list[int]:
    """Look up the positions of an array, or of what becomes one."""
    if isinstance(selection, np.ma.MaskedArray) and np.ma.is_masked(selection):
        raise TypeError(
            f"cannot select frames by {selection!r}, some of which is masked out; give "
            "its .compressed(), or .filled(False) of booleans"
        )
    try:
        array = np.asarray(selection)
    except ValueError as cause:  # ragged nested lists
        raise _not_a_selection(selection) from cause
    if array.ndim == 1 and array.size == 0 and array.dtype != np.bool_:
        return []  # whatever numpy makes an empty list of
    if array.ndim == 1 and array.dtype == np.bool_:
        if len(array) != num_frames:
            raise FrameIndexError(
                f"a mask of {len(array)} values cannot select from {num_frames} "
                "frames; give one value per frame"
            )
        return [int(index) for index in np.flatnonzero(array)]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _not_a_selection(selection)
    if isinstance(selection, (list, tuple)) and any(map(_is_boolean, selection)):
        raise _not_a_selection(selection)  # neither a mask nor positions
    return [_position(index, num_frames) for index in array.tolist()]


def _position(index: int, num_frames: int) -> int:
    """Count a negative index from the end."""
    position = index + num_frames if index < 0 else index
    if not 0 <= position < num_frames:
        raise FrameIndexError(
            f"frame index {index} is outside of an item of "
            f"{counted(num_frames, 'frame')}"
        )
    return position


def _not_a_selection(selection: Any) -> TypeError:
    return TypeError(
        f"cannot select frames by {selection!r}; give an int, a slice, a sequence of "
        "ints, an integer array, or a boolean array with one value per frame"
    )
