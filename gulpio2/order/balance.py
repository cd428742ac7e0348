"""How often to repeat items so that rare classes come up more often."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from gulpio2.arguments import as_number

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

__all__ = ["repeat_counts", "repeat_factors"]


def repeat_factors(
    categories: Sequence[Collection[Hashable]], threshold: float
) -> list[float]:
    """Give the repeat factor of each item by the frequency of its rarest category.

    Parameters
    ----------
    categories : sequence of collection
        Of each item the categories in it; repeats count once, none is allowed.
    threshold : float
        Categories that are in a smaller share of the items than this are repeated.

    Returns
    -------
    list of float
        ``max(1, sqrt(threshold / frequency))`` of the rarest category, 1 without one.

    Raises
    ------
    TypeError
        An item has a text for its categories, which would be one for each letter.
    ValueError
        The threshold is no number, less than 0 or infinite.

    Notes
    -----
    The rule of Gupta, Dollár and Girshick, "LVIS", CVPR 2019, section 5.

    Examples
    --------
    >>> repeat_factors([[0], [0], [0], [1]], 1.0)
    [1.1547005383792515, 1.1547005383792515, 1.1547005383792515, 2.0]
    """
    # Infinitely often nothing can be repeated.
    least = as_number(threshold)
    if not 0 <= least < math.inf:
        raise ValueError(f"threshold is {threshold!r}, expected at least 0 and finite")
    items = [_categories_of(item) for item in categories]
    counted = Counter(category for item in items for category in item)
    factors = {
        category: max(1.0, math.sqrt(least / (count / len(items))))
        for category, count in counted.items()
    }
    return [
        max((factors[category] for category in item), default=1.0) for item in items
    ]


def _categories_of(item: Collection[Hashable]) -> set[Hashable]:
    if isinstance(item, (str, bytes)):
        raise TypeError(
            f"the categories of an item are {item!r}, expected a collection for each "
            f"item, such as [{item!r}]"
        )
    return set(item)


def repeat_counts(
    categories: Sequence[Collection[Hashable]], threshold: float
) -> list[int]:
    """Give the whole number of times each item comes: its factor rounded up.

    Parameters
    ----------
    categories, threshold
        As in `repeat_factors`.

    Returns
    -------
    list of int
        At least 1 each.

    Raises
    ------
    TypeError, ValueError
        As in `repeat_factors`.

    Notes
    -----
    Rounding up means that any factor above 1 already doubles an item.
    """
    return [math.ceil(factor) for factor in repeat_factors(categories, threshold)]
