"""Which item is worked on: told before it is asked for, to whom it may concern."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tell = Callable[[int, str | None], None]

__all__ = ["NOTHING", "rest", "tell_from_worker", "tell_of", "telling_here"]

# The position that is told past the end of a slice, where a crash is no item's fault.
NOTHING = -1


class _Here(threading.local):
    tell: Tell | None = None


# In a worker, and of a thread of any other process.
_tell: Tell | None = None
_here = _Here()


def tell_from_worker(tell: Tell) -> None:
    """Have this process tell for good.

    Parameters
    ----------
    tell : callable
        Takes the position of an item before it is asked for, and again with its id.
    """
    global _tell  # one per worker process
    _tell = tell


@contextlib.contextmanager
def telling_here(tell: Tell) -> Iterator[None]:
    """Have this thread tell in the block, in a process that is no worker."""
    before, _here.tell = _here.tell, tell
    try:
        yield
    finally:
        _here.tell = before


def tell_of(position: int, id_: str | None = None) -> None:
    """Tell that an item is worked on."""
    if (tell := _tell or _here.tell) is not None:
        tell(position, id_)


def rest() -> None:
    """Tell that none is, until the next one is told of."""
    tell_of(NOTHING)
