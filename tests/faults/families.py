"""The processes of a program, where it has others work for it."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.beside import before_each

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

__all__ = ["Family", "send"]

# Processes of a program at most, one after another.
_MOST = 256
_NUMBERS = struct.Struct("ii")


class Family:
    """A process, and those that it forks, known to all of them and to who began it."""

    def __init__(self) -> None:
        # For each in the order of their beginnings its number, and its operations.
        self._members = mmap.mmap(-1, _MOST * _NUMBERS.size)
        self._ordinal = self._begun = 0

    def begin(self, act: Callable[[int, int], None]) -> None:
        """Take this process for the first one.

        Before each operation `act` gets the ordinal of the process, the first being 0,
        and that of the operation there.
        """

        def counted(count: int) -> None:
            self._note(count)
            act(self._ordinal, count)

        self._note(0)
        os.register_at_fork(before=self._count, after_in_child=self._join)
        before_each(counted)

    def _count(self) -> None:
        self._begun += 1

    def _join(self) -> None:
        self._ordinal = self._begun
        self._note(0)

    def _note(self, count: int) -> None:
        place = self._ordinal * _NUMBERS.size
        _NUMBERS.pack_into(self._members, place, os.getpid(), count)

    def counts(self) -> list[int]:
        """Give the operations of each process so far."""
        return [count for pid, count in self._all() if pid]

    def _all(self) -> list[tuple[int, int]]:
        return [*_NUMBERS.iter_unpack(self._members[:])]

    def living(self) -> list[int]:
        """List the processes that have not ended."""
        return [pid for pid, _ in self._all() if pid and _state_of(pid)]

    def stopped(self) -> list[int]:
        """List those that stand still."""
        return [pid for pid in self.living() if _state_of(pid) == "T"]

    def settle(self, seconds: float) -> None:
        """Wait until all of them stand still or have ended, but no longer than this."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.living() != self.stopped():
            time.sleep(0.001)


def _state_of(pid: int) -> str:
    """Give the letter that the system has for the state of a process, if it lives."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.rpartition(")")[2].split()[0].strip("ZX")


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, which may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
