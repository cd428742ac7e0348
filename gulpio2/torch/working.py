"""Where the time of a worker goes, from the first sample of a batch to the batch."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.profile import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WORK", "Work", "timed_transform"]


class Work(threading.local):
    """What one thread does for batches; looked at where `STOPWATCH` is on."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._begun: float | None = None
        self._ended: float | None = None
        self._is_transforming = False

    def begin(self) -> None:
        """Note that a sample is begun, which may be the first of a batch."""
        if self._begun is None:
            self._begun = perf_counter()
            if self._ended is not None:
                self._clock.waiting += self._begun - self._ended

    def end(self, collating: float, num_samples: int) -> Clock:
        """Note that a batch is there, and give what went into it.

        Parameters
        ----------
        collating : float
            When its samples were all made.
        num_samples : int
            How many they were.
        """
        clock, now = self._clock, perf_counter()
        clock.collate += now - collating
        clock.busy += now - (collating if self._begun is None else self._begun)
        clock.samples += num_samples
        clock.storage, clock.decode, clock.frames, clock.num_bytes = STOPWATCH.take()
        self._clock, self._begun, self._ended = Clock(), None, now
        return clock

    def transform(self, function: Callable[[Any], Any], data: Any) -> Any:
        """Call a function, and count it as a transform, but for what it reads."""
        if self._is_transforming:  # inside of another one
            return function(data)
        times = STOPWATCH.times
        start, before = perf_counter(), times.storage + times.decode
        self._is_transforming = True
        try:
            return function(data)
        finally:
            self._is_transforming = False
            reading = times.storage + times.decode - before
            self._clock.transform += perf_counter() - start - reading


WORK = Work()


def timed_transform(function: Callable[[Any], Any], data: Any) -> Any:
    """Call a function of the user's that makes a sample of what was read."""
    if not STOPWATCH.is_on:
        return function(data)
    return WORK.transform(function, data)
