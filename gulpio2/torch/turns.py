"""One thread at a time, where threads share a loader."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from gulpio2.forks import renew_in_children

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Turn", "in_turn", "work_until"]

Own = TypeVar("Own")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Seconds after which a thread that works for a loader looks whether that is over.
_LOOK_SECONDS = 0.05


class _Thread(threading.local):
    """What a thread works for."""

    is_over: Callable[[], bool] | None = None


_THREAD = _Thread()


def work_until(is_over: Callable[[], bool]) -> None:
    """Say what this thread works for, by whether that is over.

    Whoever ends it has the turn, and waits for this thread, which may wait for the turn
    itself: a target of somebody's own may ask the loader for its state.
    """
    _THREAD.is_over = is_over


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
        Of an object that has a `Turn` as ``_turn``. It raises a RuntimeError in a
        thread whose work is over, see `work_until`.
    """

    @functools.wraps(method)
    def waiting(
        self: Own, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        own: Any = self
        lock, is_over = own._turn.lock, _THREAD.is_over
        if is_over is None:
            with lock:
                return method(self, *arguments, **named)
        while not lock.acquire(timeout=_LOOK_SECONDS):
            if is_over():
                raise RuntimeError("the iteration that this is for has ended")
        try:
            return method(self, *arguments, **named)
        finally:
            lock.release()

    return waiting
