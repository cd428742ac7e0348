"""A few threads per process that share the frames of a call.

The thread that makes a call works too, so a call needs `helpers`: one fewer than the
threads that it may use. They are kept for the next call, shared by every directory
of the process, and gone before it forks.
"""

from __future__ import annotations

import os
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["MAX_DEFAULT", "default_threads", "usable_cores", "work_together"]

# Threads. More of one process wait for its interpreter, whatever the machine has:
# docs/performance.md, Many cores.
MAX_DEFAULT = 8
# Each is some microseconds; a thread that has ended is gone after a few.
_EXIT_CHECKS = 2000


def default_threads() -> int:
    """Say how many threads a call uses where nobody has said it.

    Returns
    -------
    int
        One in a daemonic worker process, as those of a torch ``DataLoader`` are: there
        each core has a process already. Else one per core that this process may use,
        8 at most.
    """
    number = _pool.default
    if number is None:
        number = _pool.default = _count_default()
    if number > 1 and _is_worker():
        # Asked again: the first read of a spawned worker may be one that its script
        # makes when it is imported, before the process knows what it is.
        number = _pool.default = 1
    return number


def _count_default() -> int:
    return min(MAX_DEFAULT, usable_cores())


def _is_worker() -> bool:
    # Not imported here: a process that has not loaded it is nobody's worker.
    module = sys.modules.get("multiprocessing.process")
    return module is not None and bool(module.current_process().daemon)


def usable_cores() -> int:
    """Count the cores that this process may use; all there are, on some systems."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Call:
    """One piece of work, and who is at it; see `work_together`."""

    __slots__ = ("_done", "_left", "_tickets", "_withdrawn", "asked", "error", "work")

    def __init__(self, work: Callable[[], None], asked: int) -> None:
        self.work = work
        self.asked = asked
        self.error: BaseException | None = None
        """What a helper raised; to be looked at after `wait`."""
        # Taken one by one, each once, by whoever comes: a step of an iterator cannot be
        # interrupted by another thread.
        self._tickets = iter(range(asked))
        self._withdrawn: list[int] = []
        # Those who have left, and what wakes who waits for them.
        self._left: list[None] = []
        self._done: SimpleQueue[None] = SimpleQueue()

    def help(self) -> None:
        """Take part, unless the work is done already."""
        if next(self._tickets, None) is None:
            return
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  # raised where the call was made
            self.error = error
        self._left.append(None)
        self._done.put(None)

    def wait(self) -> None:
        """Return once nobody is at the work any more; an interrupt comes after.

        Whatever a handler of signals raises is one, be it a timeout of the program's
        own: what is given back to the caller must not be written to any more. It may
        be called again.
        """
        interrupt = None
        while True:
            # An interrupt comes between two steps, and so none of them takes something
            # and leaves it to the next one to count it.
            try:
                self._withdrawn.extend(self._tickets)
                while len(self._left) < self.asked - len(self._withdrawn):
                    self._done.get()
                break
            except BaseException as error:  # noqa: BLE001  # rare, and not to be lost
                interrupt = error
        # Helpers that are busy, or wait for a processor, find the call later on: until
        # then it must not keep what the work has made.
        self.work = _nothing
        if interrupt is not None:
            raise interrupt


def _nothing() -> None:
    """Work of a call that is done."""


class _Pool:
    """The threads of this process."""

    def __init__(self) -> None:
        self.default: int | None = None
        self._lock = threading.Lock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def ask(self, call: _Call) -> None:
        """Have so many threads take part as it asks for, or as many as there are."""
        helpers = call.asked
        if len(self._threads) < helpers:
            with self._lock:
                while len(self._threads) < helpers:
                    thread = threading.Thread(
                        target=_serve,
                        args=(self._calls,),
                        name=f"gulpio2-{len(self._threads)}",
                        daemon=True,
                    )
                    try:
                        thread.start()
                    except RuntimeError:  # the system gives no more: go on without
                        break
                    self._threads.append(thread)
        for _ in range(min(helpers, len(self._threads))):
            self._calls.put(call)

    def stop(self) -> None:
        """End every thread; the next call starts new ones."""
        with self._lock:
            threads, self._threads = self._threads, []
            # Those that other callers start meanwhile have a queue of their own: they
            # would end in place of these, which would be waited for without end.
            calls, self._calls = self._calls, SimpleQueue()
            calls.put(None)
        for thread in threads:
            thread.join()
            _await_exit(thread)


def _await_exit(thread: threading.Thread) -> None:
    """Wait until the system too has no such thread, which comes just after Python.

    Python 3.12 warns of a fork while the system counts more than one thread.
    """
    task = f"/proc/self/task/{thread.native_id}"
    for _ in range(_EXIT_CHECKS):
        if not os.path.exists(task):  # noqa: PTH110  # a tenth of Path's time
            return
        os.sched_yield()


def _serve(calls: SimpleQueue[_Call | None]) -> None:
    """Help with one call after another."""
    while True:
        call = calls.get()
        if call is None:
            # For the next one, also of those that nobody knows of, since an interrupt
            # came while they were started.
            calls.put(None)
            return
        call.help()
        # The arrays of a call must not live until the next one.
        del call


def work_together(
    work: Callable[[], None],
    helpers: int,
    *,
    own: Callable[[], None] | None = None,
    let_go: Callable[[], None] | None = None,
) -> None:
    """Do a piece of work in this thread and in others, and return when it is done.

    Parameters
    ----------
    work : callable
        Takes shares until none is left. Called in this thread, and at the same time
        in as many others as come in time.
    helpers : int
        How many others may take part, at most.
    own : callable, optional
        What this thread does in place of `work`; the others begin before it.
    let_go : callable, optional
        Called before the others are waited for, whatever has happened, and more than
        once: they may wait for something that `own` was to do.

    Notes
    -----
    Whatever `work` raises comes out, after every thread has left it. So does what a
    handler of signals raises, wherever it comes.
    """
    call = _Call(work, helpers)

    def end() -> None:
        if let_go is not None:
            let_go()
        call.wait()

    try:
        try:
            _pool.ask(call)
            (own or work)()
        finally:
            end()
    finally:
        end()  # again, for an interrupt that came between two steps of this
    if call.error is not None:
        raise call.error


def _is_at_work() -> bool:
    """Tell whether this thread makes a call; a handler of signals comes in between."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not work_together.__code__:
        frame = frame.f_back
    return frame is not None


def _before_fork() -> None:
    # A fork takes no thread along, and Python 3.12 and later warn of those that run.
    # Those that wait for this very thread would be waited for without end.
    if not _is_at_work():
        _pool.stop()


def _in_child() -> None:
    global _pool  # locks and queue may have been in use at the fork
    _pool = _Pool()


_pool = _Pool()
os.register_at_fork(before=_before_fork, after_in_child=_in_child)
