"""Boolean masks of whatever library, as the rows that they choose."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from gulpio2.format.wording import counted

__all__ = ["rows_of_mask"]

_SHOWN = 300  # characters of a mask in a message


def rows_of_mask(mask: Any, num_rows: int) -> npt.NDArray[np.int64]:
    """Give the rows for which a mask is true.

    Parameters
    ----------
    mask : list, or array of numpy, pandas or Arrow
        A boolean per row; null, and what is masked out of an array, counts as False.
    num_rows : int
        How many there are to be.

    Returns
    -------
    numpy.ndarray of int64
        Row numbers, ascending.

    Raises
    ------
    ValueError
        It has another number of values, or they are in another order.
    TypeError
        It is no mask.
    """
    _refuse_other_order(mask)
    if isinstance(mask, list) and not mask:
        mask = np.zeros(0, bool)
    of_arrow = str(getattr(mask, "type", None)) == "bool"
    try:
        values = np.asarray(
            mask.fill_null(False)  # noqa: FBT003  # of pyarrow
            if of_arrow and hasattr(mask, "fill_null")  # a scalar of Arrow has none
            else mask
        )
    except ValueError as cause:  # lists in it that are not equally long
        raise _no_mask(mask) from cause
    if isinstance(mask, np.ma.MaskedArray) and values.dtype in (bool, object):
        values = mask.filled(False)  # noqa: FBT003  # of numpy
    if values.dtype == object and values.ndim == 1:
        values = _without_nulls(values)
    if values.dtype != np.bool_ or values.ndim != 1:
        raise _no_mask(mask)
    if len(values) != num_rows:
        raise ValueError(
            f"a mask of {counted(len(values), 'value')} cannot select from "
            f"{counted(num_rows, 'item')}; give "
            "one value per item"
        )
    return np.flatnonzero(values)


def _no_mask(mask: Any) -> TypeError:
    return TypeError(
        f"cannot select items by {mask!r:.{_SHOWN}}; give a text, an Arrow "
        "expression, or a boolean mask with one value per item; view(ids) takes ids"
    )


def _refuse_other_order(mask: Any) -> None:
    """Refuse a mask of pandas whose rows are told by labels that say another order."""
    if not (hasattr(mask, "iloc") and hasattr(mask, "index")):
        return
    labels = mask.index
    if not np.array_equal(labels, np.arange(len(labels))):
        raise ValueError(
            "the index of a mask of pandas is not 0, 1, 2, ..., as it is after sorting "
            "or filtering; give a mask in the order of the directory, or its "
            ".to_numpy() if it is in that order already"
        )


def _without_nulls(mask: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array of booleans of objects, if all of them are that or null."""
    na = getattr(sys.modules.get("pandas"), "NA", None)
    kinds = (bool, np.bool_)
    if all(isinstance(one, kinds) or one is None or one is na for one in mask):
        return np.array([isinstance(one, kinds) and bool(one) for one in mask], bool)
    return mask
