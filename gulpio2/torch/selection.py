"""Which samples: an index, or a selection of them, as plain positions."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gulpio2.errors import SampleIndexError
from gulpio2.format.wording import counted

__all__ = ["sample_position", "select_samples"]


def sample_position(index: Any, length: int) -> int:
    """Turn an index into a position counted from the first sample.

    Parameters
    ----------
    index : int
        In ``[-length, length)``; any integer type.
    length : int
        Samples of the dataset.

    Returns
    -------
    int
        In ``[0, length)``.

    Raises
    ------
    TypeError
        It is no whole number.
    SampleIndexError
        It is outside. Being an ``IndexError``, it ends a ``for`` loop.
    """
    try:
        position = int(operator.index(index))
    except TypeError:
        raise TypeError(
            f"cannot look up sample {reprlib.repr(index)}; give its position, a whole "
            "number"
        ) from None
    if not -length <= position < length:
        raise SampleIndexError(
            f"sample {position} of a dataset of {counted(length, 'sample')}"
        )
    return position + length if position < 0 else position


def select_samples(indices: Any, length: int) -> npt.NDArray[np.int64]:
    """Turn ``indices``, as datasets take them, into positions.

    Parameters
    ----------
    indices : int, sequence of int or integer array
        A number ``n``: the first ``n`` samples, the last ``-n`` if it is negative, and
        never more than there are. Otherwise these samples in this order, repeats and
        negative ones allowed.
    length : int
        Samples of the dataset.

    Returns
    -------
    numpy.ndarray of int64
        Each in ``[0, length)``.

    Raises
    ------
    TypeError
        It is neither; bools and strings are not taken for numbers.
    SampleIndexError
        One of several is outside.
    """
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        count = int(indices)
        if count < 0:
            return np.arange(max(0, length + count), length, dtype=np.int64)
        return np.arange(min(count, length), dtype=np.int64)
    if isinstance(indices, Sequence) and not isinstance(indices, (str, bytes)):
        if any(isinstance(index, (bool, np.bool_)) for index in indices):
            raise _not_indices(indices)
    elif not isinstance(indices, np.ndarray):
        raise _not_indices(indices)
    try:
        positions = np.asarray(indices)
    except ValueError as cause:  # lists in it that are not equally long
        raise _not_indices(indices) from cause
    if positions.size == 0:
        return np.empty(0, np.int64)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise _not_indices(indices)
    outside = positions[(positions < -length) | (positions >= length)]
    if outside.size:
        raise SampleIndexError(
            f"sample {outside[0]} of a dataset of {counted(length, 'sample')}"
        )
    positions = positions.astype(np.int64)
    return np.where(positions < 0, positions + length, positions)


def _not_indices(indices: Any) -> TypeError:
    return TypeError(
        f"indices are {indices!r}, expected an int, a sequence of ints or an "
        "integer array"
    )
