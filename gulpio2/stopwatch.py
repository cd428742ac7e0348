"""How long a thread reads bytes, and decodes them; off until somebody wants to know."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.forks import renew_in_children

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STOPWATCH", "Reading", "Stopwatch"]


class Reading(NamedTuple):
    """What a thread read."""

    storage: float = 0.0
    """Seconds: reading bytes."""
    decode: float = 0.0
    """Seconds: JPEG to pixels, and what helper threads read meanwhile."""
    frames: int = 0
    num_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Of both."""
        return self.storage + self.decode


class _Times(threading.local):
    """What this thread has read since that was taken."""

    storage = 0.0
    decode = 0.0
    frames = 0
    num_bytes = 0


class Stopwatch:
    """Adds up, for each thread by itself, what its reading takes.

    Attributes
    ----------
    is_on : bool
        Whether anything is measured, in this process. Whoever could measure looks here
        first: it costs a few nanoseconds.
    """

    def __init__(self) -> None:
        self.is_on = False
        # The thread that forks goes on in the child, which has read nothing yet.
        renew_in_children(self, Stopwatch._begin)

    def _begin(self) -> None:
        self._times = _Times()

    def add_read(self, start: float, num_bytes: int = 0) -> None:
        """Add a read that began at `start`, of `time.perf_counter`."""
        times = self._times
        times.storage += perf_counter() - start
        times.num_bytes += num_bytes

    @contextmanager
    def decoding(self, num_frames: int, num_bytes: int) -> Iterator[None]:
        """Add what is done inside, but for the reads of this thread in it."""
        times = self._times
        start, read_before = perf_counter(), times.storage
        try:
            yield
            times.frames += num_frames
            times.num_bytes += num_bytes
        finally:
            own_reads = times.storage - read_before
            times.decode += perf_counter() - start - own_reads

    def read(self) -> Reading:
        """Say what this thread has read since that was taken."""
        times = self._times
        return Reading(times.storage, times.decode, times.frames, times.num_bytes)

    def take(self) -> Reading:
        """Say the same, and begin anew."""
        taken, times = self.read(), self._times
        times.storage = times.decode = 0.0
        times.frames = times.num_bytes = 0
        return taken


STOPWATCH = Stopwatch()
