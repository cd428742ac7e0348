"""Streams that take nothing more: what is lost of them, and the exit status."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from gulpio2.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "NO_ROOM",
    "drop",
    "noticing_closed_output",
    "settle_remarks",
    "settling_output",
]

# What a full disk and the like say to who writes the output there.
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG))


def drop(stream: TextIO) -> None:
    """Let Python not try again, at its end, what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def settle_remarks() -> None:
    """Drop what stderr does not take: Python's own try would change the status."""
    if sys.stderr is not None:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            drop(sys.stderr)


class _Nowhere(io.RawIOBase):
    """Takes what is written where there is no stdout, and remembers that it was."""

    was_written = False

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, data: Any) -> int:
        """Lose it."""
        self.was_written = True
        return memoryview(data).nbytes


@contextlib.contextmanager
def noticing_closed_output() -> Iterator[Callable[[], bool]]:
    """Give what tells whether something was printed to a stdout that is closed.

    Python has no ``sys.stdout`` then, and prints nothing without a word. The command
    goes on, as what it does may be more than to print.

    Yields
    ------
    callable
        True where something was lost.
    """
    if sys.stdout is not None:
        yield lambda: False
        return
    nowhere = _Nowhere()
    stream = io.TextIOWrapper(io.BufferedWriter(nowhere), "utf-8", "surrogateescape")

    def is_lost() -> bool:
        stream.flush()
        return nowhere.was_written

    sys.stdout = stream
    try:
        yield is_lost
    finally:
        sys.stdout = None


@contextlib.contextmanager
def settling_output(program: str) -> Iterator[Callable[[str], None]]:
    """Give what prints to stdout; where that takes nothing more, the work goes on.

    At the end that is a message and exit status 1; in a pipe that nobody reads any
    more, the status alone. A stdout that is closed is written to in vain.

    Parameters
    ----------
    program : str
        Its name.

    Yields
    ------
    callable
        Prints a text as it is.
    """
    from gulpio2.storage.descriptors import fill_standard_descriptors

    fill_standard_descriptors()  # before anything is opened
    lost: list[OSError] = []

    def write(text: str) -> None:
        try:
            print(text, end="", flush=True)
        except OSError as cause:
            lost.append(cause)
            drop(sys.stdout)

    try:
        try:
            yield write
        finally:
            write("")  # what others have printed
            if lost and lost[0].errno != errno.EPIPE:
                note(f"{program}: cannot write the output: {lost[0].strerror}")
            settle_remarks()
    except SystemExit as end:
        if lost and not end.code:  # as after --help
            sys.exit(1)
        raise
    if lost:
        sys.exit(1)
