"""Where the time of a worker goes, from the first sample of a batch to the batch."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.profile import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["WORK", "Work", "timed_transform"]


class _State(threading.local):
    """What one thread is at."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.begun: float | None = None
        self.ended: float | None = None
        self.failed: float | None = None
        self.is_transforming = False


class Work:
    """What each thread does for batches; looked at where `STOPWATCH` is on."""

    def __init__(self) -> None:
        self.begin_anew()
        if hasattr(os, "register_at_fork"):
            # The thread that forks goes on in the child, as a worker that is new.
            os.register_at_fork(after_in_child=self.begin_anew)

    def begin_anew(self) -> None:
        """Forget what all threads did."""
        self._state = _State()
        STOPWATCH.take()

    def begin(self) -> None:
        """Forget what this thread did, which was for nobody who counts."""
        vars(self._state).update(vars(_State()))
        STOPWATCH.take()

    @contextmanager
    def sample(self) -> Iterator[None]:
        """Make a sample, which may be the first of a batch."""
        state, now = self._state, perf_counter()
        if state.begun is None:
            state.begun = now
            if state.ended is not None:
                state.clock.waiting += now - state.ended
        elif state.failed is not None:
            # Mostly the batch came to nothing. What was done until then counts for the
            # next one, and what was not done since does not.
            state.begun += now - state.failed
        state.failed = None
        try:
            yield
        except BaseException:
            state.failed = perf_counter()
            raise

    def collate(
        self, function: Callable[[Any], Any], samples: Any, num_samples: int
    ) -> tuple[Any, Clock]:
        """Make a batch of samples, and say what went into it."""
        state = self._state
        start, before = perf_counter(), STOPWATCH.read()
        is_known = state.begun is not None
        begun = start if state.begun is None else state.begun
        try:
            batch = function(samples)
        finally:
            clock, now, read = state.clock, perf_counter(), STOPWATCH.take()
            state.clock, state.begun, state.ended = Clock(), None, now
            state.failed = None
        clock.collate = now - start - (read.seconds - before.seconds)
        clock.busy = now - begun
        clock.storage, clock.decode, clock.frames, clock.num_bytes = read
        clock.samples = num_samples
        clock.unmeasured = 0 if is_known else num_samples
        return batch, clock

    def transform(self, function: Callable[[Any], Any], data: Any) -> Any:
        """Call a function, and count it as a transform, but for what it reads."""
        state = self._state
        if state.is_transforming:  # inside of another one
            return function(data)
        start, before = perf_counter(), STOPWATCH.read()
        state.is_transforming = True
        try:
            return function(data)
        finally:
            state.is_transforming = False
            reading = STOPWATCH.read().seconds - before.seconds
            state.clock.transform += perf_counter() - start - reading


WORK = Work()


def timed_transform(function: Callable[[Any], Any], data: Any) -> Any:
    """Call a function of the user's that makes a sample of what was read."""
    if not STOPWATCH.is_on:
        return function(data)
    return WORK.transform(function, data)
