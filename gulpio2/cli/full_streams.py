"""Streams that take nothing more: what is lost of them, and the exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TYPE_CHECKING, TextIO

from gulpio2.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["NO_ROOM", "drop", "settle_remarks", "settling_output"]

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
    from gulpio2.storage.handles import fill_standard_descriptors

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
