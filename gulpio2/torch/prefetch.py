"""Threads that fill batches ahead of who consumes them, in order.

The threads take a few samples at a time, those of the next batch first, so a batch is
ready as early as it can be, however many threads there are. They never run further
ahead than there is memory for. The samples of some batches are planned together, by the
thread that is half through the batch before them.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from gulpio2.torch.job import Job
from gulpio2.torch.profile import Clock
from gulpio2.torch.turns import work_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.torch.filling import SampleMaker
    from gulpio2.torch.ring import Slot
    from gulpio2.torch.seeding import SampleIndex
    from gulpio2.torch.worker_pool import WorkerPool

__all__ = ["Prefetcher", "share_of_thread"]


# Samples that are planned at once, so that the code for it is fetched into the caches
# of the processor for all of them.
_NUM_PLANNED = 32


# Bytes of decoded frames that a thread takes at once, at most: those of two clips of 16
# frames of 340x256, some eight milliseconds.
_SHARE_BYTES = 1 << 23
# The memory of all batches has at least so many shares for each thread.
_MIN_SHARES = 4


class Prefetcher:
    """Batches in order, made ahead by threads of this process.

    Parameters
    ----------
    batches : iterator of sequence of SampleIndex
        The samples of each batch.
    slots : sequence of Slot
        Memory; as many batches as there are slots are under way or in use.
    maker : SampleMaker or WorkerPool
        Plans and makes samples, in any of the threads.
    num_threads : int
        0: samples are made where a batch is asked for, none ahead.

    Attributes
    ----------
    clocks : list of Clock
        One per thread.
    """

    def __init__(
        self,
        batches: Iterator[Sequence[SampleIndex]],
        slots: Sequence[Slot],
        maker: SampleMaker | WorkerPool,
        num_threads: int,
    ) -> None:
        self._batches = batches
        self._maker = maker
        maker.begin()
        self._free = deque(slots)
        self._share = share_of_thread(slots, num_threads)
        self._jobs: deque[Job] = deque()
        self._open: Job | None = None
        self._planned: deque[Job] = deque()
        self._planning = False
        self._exhausted = False
        self._failure: BaseException | None = None
        self._stopped = False
        # Reentrant: a generator that is collected while a thread holds it stops us.
        self._lock = threading.RLock()
        self._to_do = threading.Condition(self._lock)
        # What the consumer waits for, in place of a condition, which takes longer. It
        # is always locked; a thread unlocks it when the consumer waits and a batch may
        # be ready.
        self._ready = threading.Lock()
        self._ready.acquire()
        self._is_awaited = False
        self._process = os.getpid()
        self.clocks = [Clock() for _ in range(max(1, num_threads))]
        self._threads: list[threading.Thread] = []
        for number in range(num_threads):
            # Daemons, which the end of the program stops: else it would wait for them
            # wherever an exception left the loader in the middle of an epoch.
            thread = threading.Thread(
                target=self._serve,
                args=(self.clocks[number],),
                name=f"gulpio2-loader-{number}",
                daemon=True,
            )
            self._threads.append(thread)
        if self._threads:
            _running.add(self)
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # no more threads: those that run must not stay
            self.stop()
            raise

    # --- for the consumer --------------------------------------------------------

    def next_job(self) -> Job | None:
        """Give the next batch, when it is ready; None at the end.

        Raises
        ------
        RuntimeError
            It was stopped, or this is a fork of the process that it is of.
        BaseException
            What making one of the samples raised.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                "the loader was begun in another process, and its threads are there: "
                "iterate over it anew"
            )
        if not self._threads:
            while not self._is_ready() and (taken := self._take(self.clocks[0])):
                self._make(*taken, self.clocks[0])
        # The first batch is looked at without the lock, for which the threads would
        # have to wait: nobody else takes that batch away.
        while not self._first_is_made():
            with self._lock:
                if self._is_ready():
                    break
                self._is_awaited = True
            self._ready.acquire()
        try:
            job = self._jobs.popleft() if self._jobs else None  # as nobody else does
        except IndexError:  # but who stops us
            job = None
        self.require_running()
        if job is None:
            if self._failure is not None:
                raise self._failure
            return None
        if job.errors:
            raise job.errors[min(job.errors)]
        return job

    def require_running(self) -> None:
        """Raise a RuntimeError where it was stopped."""
        if self._stopped:
            raise RuntimeError(
                "this iteration over the loader has ended, because another was begun, "
                "the loader was closed, or its state was set"
            )

    def release(self, slot: Slot) -> None:
        """Take the memory of a batch back."""
        if os.getpid() != self._process:
            return  # a thread may have held the lock when this one was forked
        slot.released()
        with self._lock:
            self._free.append(slot)
            self._to_do.notify_all()

    def stop(self) -> None:
        """End the threads, once each is done with its samples."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._stopped = True
            self._to_do.notify_all()
            self._tell_consumer()
        if threading.current_thread() in self._threads:
            # It collects garbage, and perhaps has the lock for which others wait.
            return
        for thread in self._threads:
            # One that has not begun, as an interrupt came while it was started, cannot
            # be waited for; it will find that there is nothing to do.
            if thread.is_alive():
                thread.join()
        _running.discard(self)
        # Whoever still holds this has no use for what was made, or read ahead.
        self._jobs.clear()
        self._planned.clear()
        self._open = None

    def _first_is_made(self) -> bool:
        try:
            return self._jobs[0].num_left == 0
        except IndexError:
            return False

    def _is_ready(self) -> bool:
        if self._stopped:
            return True
        if self._jobs:
            return self._jobs[0].num_left == 0
        return self._exhausted and not self._planned

    def _tell_consumer(self) -> None:
        """Wake who waits for a batch, if there is one; the lock is held."""
        # A consumer that wakes for nothing takes the processor, and then the
        # interpreter, from a thread.
        if self._is_awaited and self._is_ready():
            self._is_awaited = False
            self._ready.release()

    # --- in the threads ----------------------------------------------------------

    def _serve(self, clock: Clock) -> None:
        """Make samples until there is nothing left to do."""
        work_until(lambda: self._stopped)
        while (taken := self._take(clock)) is not None:
            self._make(*taken, clock)

    def _make(self, job: Job, rows: range, clock: Clock) -> None:
        """Make some samples."""
        if 2 * rows.stop > len(job.draws) and not self._planned:
            self._plan_ahead(clock)
        try:
            job.slot.wait_until_copied()
            self._maker.make(job, rows, clock)
        except BaseException as error:  # noqa: BLE001  # raised in the batch's turn
            job.errors[rows.start] = error
        with self._lock:
            job.num_left -= len(rows)
            if job.num_left == 0:
                self._tell_consumer()

    def _take(self, clock: Clock) -> tuple[Job, range] | None:
        """Take the next samples, waiting for memory where there is none."""
        while True:
            with self._lock:
                while not self._stopped:
                    job = self._open
                    if job is not None and job.next_row < len(job.draws):
                        first = job.next_row
                        job.next_row = min(first + self._share, len(job.draws))
                        return job, range(first, job.next_row)
                    if self._planned and self._free:
                        self._open = self._planned.popleft()
                        self._open.slot = self._free.popleft()
                        self._jobs.append(self._open)
                        continue
                    if not self._planned:
                        if self._exhausted:
                            return None
                        if not self._planning:
                            break
                    start = perf_counter()
                    self._to_do.wait()
                    clock.waiting += perf_counter() - start
                else:
                    return None
            self._plan_ahead(clock)

    def _plan_ahead(self, clock: Clock) -> None:
        """Plan the next batches, unless that was done, or is being done."""
        with self._lock:
            if self._planned or self._planning or self._exhausted:
                return
            self._planning = True
        start = perf_counter()
        planned: list[Job] = []
        failure, left = None, _NUM_PLANNED
        try:
            while left > 0 and (draws := next(self._batches, None)) is not None:
                if self._stopped:  # a sampler may be slow
                    break
                planned.append(Job(draws, self._maker.plan(draws, clock)))
                left -= len(draws)
        except BaseException as error:  # noqa: BLE001  # raised where it is missed
            failure = error
        clock.busy += perf_counter() - start
        with self._lock:
            self._planning = False
            self._planned.extend(planned)
            self._failure = failure
            self._exhausted = left > 0
            self._to_do.notify_all()
            self._tell_consumer()
        # Without threads it is the consumer who plans: an interrupt of the program is
        # not to wait until what was planned is used up.
        if not (self._threads or failure is None or isinstance(failure, Exception)):
            raise failure


def share_of_thread(slots: Sequence[Slot], num_threads: int) -> int:
    """Choose how many samples a thread takes at once.

    Parameters
    ----------
    slots : sequence of Slot
        The memory of the batches.
    num_threads : int
        Threads that take from them.
    """
    array = slots[0].array
    small = _SHARE_BYTES * len(array) // max(1, array.nbytes)
    enough = len(array) * len(slots) // (_MIN_SHARES * max(1, num_threads))
    return max(1, min(small, enough))


# Those whose threads run, and so hold them. At exit they are stopped while that can
# still be done in order: daemon threads that are cut off in the middle of a decoder can
# crash.
_running: weakref.WeakSet[Prefetcher] = weakref.WeakSet()


def _stop_all() -> None:
    for prefetcher in list(_running):
        prefetcher.stop()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_running.clear)  # the threads are not here
