"""How long a thread reads bytes, and decodes them; off until somebody wants to know."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STOPWATCH", "Stopwatch"]


class _Times(threading.local):
    """Seconds and counts of one thread."""

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
    times
        Of this thread, since it was last taken: seconds of ``storage`` and ``decode``,
        ``frames``, ``num_bytes``.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.times = _Times()

    def add_read(self, start: float, num_bytes: int) -> None:
        """Add a read that began at `start`, of `time.perf_counter`."""
        times = self.times
        times.storage += perf_counter() - start
        times.num_bytes += num_bytes

    @contextmanager
    def decoding(self, num_frames: int) -> Iterator[None]:
        """Add what is done inside, but for the reads of this thread in it."""
        times = self.times
        start, read_before = perf_counter(), times.storage
        try:
            yield
        finally:
            own_reads = times.storage - read_before
            times.decode += perf_counter() - start - own_reads
            times.frames += num_frames

    def take(self) -> tuple[float, float, int, int]:
        """Give this thread's storage, decode, frames and bytes, and begin anew."""
        times = self.times
        taken = times.storage, times.decode, times.frames, times.num_bytes
        times.storage = times.decode = 0.0
        times.frames = times.num_bytes = 0
        return taken


STOPWATCH = Stopwatch()
