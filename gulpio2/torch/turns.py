"""One thread at a time, where threads share a loader."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from gulpio2.forks import renew_in_children

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Turn", "in_turn"]

Own = TypeVar("Own")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Turn:
    """A lock that a forked child has anew, whoever held it in its parent.

    Attributes
    ----------
    lock : threading.RLock
        Reentrant: what is done in turn may call what is.
    """

    def __init__(self) -> None:
        renew_in_children(self, Turn._renew)

    def _renew(self) -> None:
        self.lock = threading.RLock()

    def if_free(self, do: Callable[[], object]) -> None:
        """Do something, unless another thread has the turn.

        For what garbage calls: it is collected in whichever thread, also in one for
        whose end the thread waits that has the turn.
        """
        if self.lock.acquire(blocking=False):
            try:
                do()
            finally:
                self.lock.release()


def in_turn(
    method: Callable[Concatenate[Own, Arguments], Result],
) -> Callable[Concatenate[Own, Arguments], Result]:
    """Let a method of an object wait while another thread is in one of them.

    Parameters
    ----------
    method : callable
        Of an object that has a `Turn` as ``_turn``.
    """

    @functools.wraps(method)
    def waiting(
        self: Own, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        own: Any = self
        with own._turn.lock:
            return method(self, *arguments, **named)

    return waiting
