"""The order and the view that a loader is given, checked there."""

from __future__ import annotations

from typing import Any

from gulpio2.errors import with_article

__all__ = ["require_order", "require_view"]


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
