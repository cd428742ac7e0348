"""What a process does to end with its parent, and how that starts it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = [
    "begin_child",
    "hold_interrupts",
    "is_orphan",
    "share_terminal",
    "starting",
]

# Seconds after which a child looks again whether its parent is there.
_LOOK_SECONDS = 0.2


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Put Ctrl-C off while a process is started, in that process until `begin_child`.

    Python drops what is raised in a fork. And one that is not forked imports the
    program first: ended there, it prints a traceback that tells of nothing.
    """
    if multiprocessing.get_start_method() != "fork":
        # It is started with the first process, and would let Ctrl-C through again.
        resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _handled_later():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextlib.contextmanager
def _handled_later() -> Iterator[None]:
    """Put Ctrl-C off here: another thread may be told of it."""
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not callable(before):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Put Ctrl-C off while a process is started, and a warning of Python's away."""
    with hold_interrupts(), warnings.catch_warnings():
        # From 3.12 on it warns of forking while there are threads. Those of this
        # package hold no lock that a child takes.
        warnings.filterwarnings("ignore", ".*use of fork", category=DeprecationWarning)
        yield


def begin_child() -> None:
    """Leave Ctrl-C to the parent, and end when it ends or says so.

    What the program does about the two signals is inherited with the process, and is
    about the program: its handler of SIGTERM would let a child live on.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def share_terminal() -> None:
    """Read from the terminal, if there is one, from which Python cuts off children.

    A ``breakpoint()`` needs it. For a child that has none beside it.
    """
    with contextlib.suppress(OSError):
        if os.isatty(0):
            sys.stdin = open(0, closefd=False)  # noqa: SIM115  # for as long as it lives


def _end_with_parent() -> None:
    """End this process when its parent is gone, so that none is left behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A worker forked later has this one's sentinel too, so that alone is too late.
        while not (is_orphan() or wait([parent.sentinel], _LOOK_SECONDS)):
            pass
        os._exit(1)


def is_orphan() -> bool:
    """Tell whether the process is gone whose child this is."""
    parent = multiprocessing.parent_process()
    is_child = multiprocessing.get_start_method() != "forkserver"
    return is_child and parent is not None and os.getppid() != parent.pid
