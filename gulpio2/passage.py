"""Calls of a library that must not be under way at a fork, or as the process ends.

Arrow's locks are not made anew in a forked child: one that another thread had at that
moment is never let go of there. And a daemon thread that is cut off inside of Arrow as
the process ends may have a lock for which Arrow's own threads, which end then, wait.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from gulpio2._optional import require

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["IN_ARROW", "Passage", "load_arrow"]

# Seconds for which a fork, or the end, waits at most: a disk may never answer.
_PATIENCE = 10.0


class Passage:
    """Where calls go through, for which a fork and the end of the process wait.

    Notes
    -----
    A thread that forks while it is inside does not wait for itself.
    """

    def __init__(self) -> None:
        self._begin()
        atexit.register(self._hold)  # but for the thread that ends the process
        os.register_at_fork(
            before=self._hold,
            after_in_parent=self._open,
            after_in_child=self._begin,
        )

    def _begin(self) -> None:
        # Taken itself: out of the condition's own `__enter__`, in Python, an interrupt
        # may come when it has the lock and has not said so.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, int] = {}  # thread to its calls
        self._holder: int | None = None

    @contextmanager
    def through(self) -> Iterator[None]:
        """Make calls, once no fork is under way."""
        own, inside = threading.get_ident(), None
        try:
            with self._lock:
                # Whoever is inside already must come out, and who holds it may go in.
                while self._holder not in (None, own) and own not in self._inside:
                    self._changed.wait()
                before = self._inside.get(own, 0)
                # In one step; a child that is forked meanwhile has another one.
                self._inside[own], inside = before + 1, self._inside
            yield
        finally:
            if inside is not None:
                with self._lock:
                    inside[own] -= 1
                    if not inside[own]:
                        del inside[own]
                        self._changed.notify_all()

    def _hold(self) -> None:
        """Let no other thread in, and wait for those that are inside."""
        own, deadline = threading.get_ident(), monotonic() + _PATIENCE
        with self._lock:
            while self._holder not in (None, own) and monotonic() < deadline:
                self._changed.wait(_PATIENCE)  # two forks at once
            self._holder = own
            while self._inside.keys() - {own} and (left := deadline - monotonic()) > 0:
                self._changed.wait(left)

    def _open(self) -> None:
        with self._lock:
            self._holder = None
            self._changed.notify_all()


# Who makes a table or selects rows does so inside, with what else of Arrow that takes.
IN_ARROW = Passage()


def load_arrow() -> None:
    """Import what a query needs, with forks waiting.

    A child that is forked meanwhile would wait for ever where it imports that, too.
    """
    with IN_ARROW.through():
        for name in ("pyarrow", "pyarrow.compute", "pyarrow.dataset", "pyarrow.ipc"):
            require(name)
