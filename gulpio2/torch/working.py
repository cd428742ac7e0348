"""Where the time of a worker goes, from the first sample of a batch to the batch."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gulpio2.forks import renew_in_children
from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.profile import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["WORK", "Work", "timed_sample", "timed_transform"]


class _State(threading.local):
    """What one thread is at."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be at nothing."""
        self.clock = Clock()
        # When the last batch was done, until the next one is begun.
        self.ended: float | None = None
        # Whether what is made inside is part of a sample, or of a batch, already.
        self.is_inside = False
        self.is_transforming = False


class Work:
    """What each thread does for batches; looked at where `STOPWATCH` is on."""

    def __init__(self) -> None:
        # The thread that forks goes on in the child, as a worker that is new.
        renew_in_children(self, Work._forget)

    def _forget(self) -> None:
        self._state = _State()

    def begin(self) -> None:
        """Forget what this thread did, which was for nobody who counts."""
        self._state.forget()
        STOPWATCH.take()

    @contextmanager
    def sample(self) -> Iterator[None]:
        """Make a sample inside."""
        state = self._state
        if state.is_inside:
            yield
            return
        start = perf_counter()
        if state.ended is not None:
            state.clock.waiting += start - state.ended
            state.ended = None
        state.is_inside = True
        try:
            yield
            state.clock.measured += 1
        finally:
            state.is_inside = False
            state.clock.busy += perf_counter() - start

    def collate(
        self, function: Callable[[Any], Any], samples: Any, num_samples: int
    ) -> tuple[Any, Clock]:
        """Make a batch of samples, and say what went into it."""
        state = self._state
        clock, start = state.clock, perf_counter()
        before = STOPWATCH.read().seconds + clock.transform
        state.is_inside = True
        try:
            batch = function(samples)
        finally:
            state.is_inside = False
            now, read = perf_counter(), STOPWATCH.take()
            state.clock, state.ended = Clock(), now
        clock.collate = now - start - (read.seconds + clock.transform - before)
        clock.busy += now - start
        clock.storage, clock.decode, clock.frames, clock.num_bytes = read
        clock.samples = num_samples
        return batch, clock

    def transform(self, function: Callable[[Any], Any], data: Any) -> Any:
        """Call a function, and count it as a transform, but for what it reads."""
        state = self._state
        if state.is_transforming:  # inside of another one
            return function(data)
        start, before = perf_counter(), STOPWATCH.read().seconds
        state.is_transforming = True
        try:
            return function(data)
        finally:
            state.is_transforming = False
            reading = STOPWATCH.read().seconds - before
            state.clock.transform += perf_counter() - start - reading


WORK = Work()


def timed_sample(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that makes a sample."""
    if not STOPWATCH.is_on:
        return function(*arguments)
    with WORK.sample():
        return function(*arguments)


def timed_transform(function: Callable[[Any], Any], data: Any) -> Any:
    """Call a function of the user's that makes a sample of what was read."""
    if not STOPWATCH.is_on:
        return function(data)
    return WORK.transform(function, data)
