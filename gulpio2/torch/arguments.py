"""What is given to a loader, checked where it is given."""

from __future__ import annotations

import operator
from typing import Any, get_args

from gulpio2.errors import with_article

__all__ = ["require_choice", "require_number", "require_order", "require_view"]


def require_choice(name: str, value: object, choices: Any) -> None:
    """Make sure that a value is one of those of a Literal type.

    Raises
    ------
    ValueError
        It is not.
    """
    if value not in get_args(choices):
        allowed = ", ".join(map(repr, get_args(choices)))
        raise ValueError(f"{name} is {value!r}; it must be one of {allowed}")


def require_number(name: str, value: Any, least: int) -> int:
    """Give a whole number as an int.

    Raises
    ------
    TypeError
        It is none.
    ValueError
        It is too small.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a whole number") from None
    if number < least:
        raise ValueError(f"{name} is {value!r}, expected at least {least}")
    return number


def require_view(view: Any) -> None:
    """Make sure that it is a view, and not its class or its size.

    Raises
    ------
    TypeError
        It is none.
    """
    if view is not None and (isinstance(view, type) or not hasattr(view, "choose")):
        raise TypeError(
            f"view is {view!r}, expected one such as CenterCrop(224) or "
            "RandomResizedCrop(224)"
        )


def require_order(order: Any, num_samples: int) -> None:
    """Make sure that it is an order over so many samples.

    Raises
    ------
    TypeError
        It is no order.
    ValueError
        It is one over more samples, or fewer.
    """
    if not hasattr(order, "num_items"):
        raise TypeError(
            f"order is {with_article(type(order).__name__)}, expected one of "
            "gulpio2.order, such as MixedOrder"
        )
    if order.num_items != num_samples:
        raise ValueError(
            f"the order draws from {order.num_items} samples, and the dataset has "
            f"{num_samples}: build the order from this dataset"
        )
