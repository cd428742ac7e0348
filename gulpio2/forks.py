"""What a forked child has to have anew, such as locks.

A lock that another thread holds at the moment of a fork stays locked in the child for
ever: that thread is not there to let go of it.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["renew_in_children"]

T = TypeVar("T")

_renewals: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = (
    weakref.WeakKeyDictionary()
)


def renew_in_children(owner: T, renew: Callable[[T], None]) -> None:
    """Call a function with an object, now and in children forked while that exists."""
    renew(owner)
    _renewals[owner] = renew


def _renew_all() -> None:
    for owner, renew in list(_renewals.items()):
        renew(owner)


os.register_at_fork(after_in_child=_renew_all)
