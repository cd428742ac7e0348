"""Ctrl-C that nothing on the way keeps to itself."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from gulpio2.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gulpio2.types import Progress

__all__ = [
    "insist_on_interrupts",
    "is_interrupt",
    "raise_once_a_second",
    "saying_how_to_go_on",
]

# For so long after an interrupt others are the same one: pressed twice, or passed on to
# the process by the program that started it, while the terminal tells both.
_SAME_SECONDS = 1.0


def is_interrupt(error: BaseException) -> bool:
    """Tell whether an error is an interrupt that Python has wrapped.

    Before 3.12 it makes a ``RuntimeError`` of what is raised while a class is being
    made, as some are by every import of numpy.
    """
    return isinstance(error, RuntimeError) and isinstance(
        error.__cause__, KeyboardInterrupt
    )


class _Interrupts:
    """Raise ``KeyboardInterrupt``, once for those of the same second."""

    def __init__(self) -> None:
        self.came: float | None = None

    def __call__(self, _number: int, _frame: object) -> None:
        now = time.monotonic()
        if self.came is None or now - self.came > _SAME_SECONDS:
            self.came = now
            raise KeyboardInterrupt


def raise_once_a_second() -> None:
    """Raise one interrupt for all of the same second, to the end of the process.

    A second one would meet what the first one is tidying up, and be printed with a
    traceback where nothing can be raised, as in a finaliser.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Interrupts())


@contextlib.contextmanager
def insist_on_interrupts(progress: Progress) -> Iterator[Progress]:
    """Raise an interrupt again if the work that reports progress goes on after it.

    Compiled modules may clear an error while they are imported, and so one that a
    signal raises just then: 12 of 935 ingests that were interrupted in their first
    0.4 s went on to their end.

    Parameters
    ----------
    progress : Progress
        Called by the work.

    Yields
    ------
    Progress
        To be called instead.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    # Of those of the process it knows that they came, before there was any progress.
    interrupts = before if isinstance(before, _Interrupts) else _Interrupts()
    if not is_main or before not in (interrupts, signal.default_int_handler):
        yield progress  # interrupts are somebody else's business
        return

    def insist(**counts: int) -> None:
        progress(**counts)
        # What it raises in another thread is raised once more in that of the run.
        if interrupts.came is not None:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupts)
    try:
        yield insist
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def saying_how_to_go_on(advice: str, *, where: Path) -> Iterator[None]:
    """Say after an interrupt what to do, if something was begun.

    Parameters
    ----------
    advice : str
        To be said before the interrupt itself is.
    where : Path
        A file that is there if so.
    """
    try:
        yield
    except KeyboardInterrupt:
        if os.path.exists(where):  # noqa: PTH110  # Path's raises
            note(f"gulp2: {advice}")
        raise
