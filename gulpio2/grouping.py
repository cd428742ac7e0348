"""Places of an array by the values at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["groups_of"]


def groups_of(
    values: npt.NDArray[np.signedinteger[Any]],
) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Give each value of an array, ascending, with the places that have it.

    Parameters
    ----------
    values : numpy.ndarray of int
        Of one dimension.

    Yields
    ------
    int
        A value.
    numpy.ndarray of int
        Its places, ascending. Sorted once: to compare all with each value takes time
        that grows with both.

    Examples
    --------
    >>> [(v, at.tolist()) for v, at in groups_of(np.array([7, 2, 7]))]
    [(2, [1]), (7, [0, 2])]
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    ends = np.flatnonzero(np.diff(ascending, append=ascending[-1:] + 1)) + 1
    start = 0
    for end in ends.tolist():
        yield int(ascending[start]), order[start:end]
        start = end
