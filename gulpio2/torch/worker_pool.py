"""Worker processes that make the samples of a loader's batches.

Threads of one process share its interpreter, and more than about eight of them wait for
it most of the time. Here each thread of the loader has a process that does its work:
the thread says which samples, waits, and takes what there is to say of them. Frames do
not travel: the processes decode into memory that the loader has mapped as well.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import queue
import weakref
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.children import starting
from gulpio2.errors import WorkerEndedError
from gulpio2.memory import Parcel
from gulpio2.torch.substitutes import log_damage
from gulpio2.torch.turns import Turn
from gulpio2.torch.worker_process import NOTHING, Setup, Task, serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from multiprocessing.connection import Connection

    from gulpio2.torch.job import Job
    from gulpio2.torch.plan import Plan
    from gulpio2.torch.profile import Clock
    from gulpio2.torch.seeding import SampleIndex

__all__ = ["WorkerPool"]

_log = logging.getLogger(__name__)

# Seconds for a process to end by itself, once nobody asks it for anything.
_END_SECONDS = 5.0
# Seconds for a few samples after which the log names the process that makes them.
_SLOW_SECONDS = 60.0
# How many of the samples it names.
_NAMED = 4


# One process at a time is started, whichever threads make loaders. Another one that is
# forked meanwhile would inherit the worker's end of its connection: then the worker's
# death would not close that connection, and nobody would notice.
_STARTING = Turn()


class _Worker(NamedTuple):
    """A process, and the way to it."""

    number: int
    process: Any
    connection: Connection


class WorkerPool:
    """Makes samples as `SampleMaker` does, in processes of one thread each.

    Parameters
    ----------
    num_workers : int
        Processes.
    setup : Setup
        What they need to know.

    Attributes
    ----------
    is_usable : bool
        Whether all of them are there, in this process.
    """

    def __init__(self, num_workers: int, setup: Setup) -> None:
        if multiprocessing.current_process().daemon:
            raise ValueError(
                "workers go with a process that may have children, and this one, a "
                "worker itself, may not: give the loader threads in place of workers"
            )
        self._on_corrupt = setup.arguments.on_corrupt
        self._owner = os.getpid()
        self._failure: BaseException | None = None
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        workers: list[_Worker] = []
        # Also where this is dropped.
        self._end = weakref.finalize(self, _end_workers, workers, self._owner)
        try:
            for number in range(num_workers):
                with _STARTING.lock, starting():
                    workers.append(_start(number, setup))
        except BaseException:
            self._end()  # whoever holds the error may hold this
            raise
        for worker in workers:
            self._idle.put(worker)

    @property
    def is_usable(self) -> bool:
        """Whether all of the processes are there, in this process."""
        return self._end.alive and self._failure is None and self._owner == os.getpid()

    def close(self) -> None:
        """End the processes."""
        self._end()

    # --- as SampleMaker ----------------------------------------------------------

    def begin(self) -> None:
        """Do nothing: what a process has read ahead is used with the next samples."""

    def plan(self, draws: Sequence[SampleIndex], clock: Clock) -> list[Plan | None]:
        """Leave the planning to the process that makes a sample."""
        del clock
        return [None] * len(draws)

    def make(self, job: Job, rows: Iterable[int], clock: Clock) -> None:
        """Have a process make some samples of a batch, see `SampleMaker.make`.

        Raises
        ------
        WorkerEndedError
            The process has ended, or one did before.
        """
        chosen = list(rows)
        worker = self._idle.get()
        try:
            if self._failure is not None:
                raise self._failure
            draws = [job.draws[row] for row in chosen]
            made = self._ask(worker, Task(job.slot.number, chosen, draws))
        finally:
            self._idle.put(worker)
        clock.add(made.clock)
        for row, sample, damages, error in made.samples:
            for damage in damages:
                log_damage(job.draws[row], self._on_corrupt, damage.message)
            job.damages[row] += damages
            job.samples[row] = sample
            if error is not None:
                job.errors[row] = error.restored()
        job.slot.take_over(chosen)

    def _ask(self, worker: _Worker, task: Task) -> Any:
        try:
            worker.connection.send_bytes(pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            if not worker.connection.poll(_SLOW_SECONDS):
                _log.warning("%s", _said_of_slow(worker, task))
            answer = worker.connection.recv_bytes()
        except (EOFError, OSError) as cause:
            self._failure = WorkerEndedError(_said_of(worker))
            raise self._failure from cause
        try:
            return pickle.loads(answer)  # noqa: S301  # of a process of our own
        except Exception as cause:
            raise TypeError(
                f"what a worker process sent of {_named(task)} of the dataset cannot "
                f"be unpickled in the trainer ({cause}): give the loader threads in "
                "place of workers, or targets that can be"
            ) from cause


def _start(number: int, setup: Setup) -> _Worker:
    """Start a process."""
    own, other = multiprocessing.Pipe()
    process = multiprocessing.Process(
        target=serve,
        args=(other, Parcel(setup)),
        name=f"gulpio2-loader-{number}",
        daemon=True,
    )
    process.start()
    # Else the end of the process would not be the end of the connection.
    other.close()
    return _Worker(number, process, own)


def _said_of_slow(worker: _Worker, task: Task) -> str:
    """Say which process does not answer, and what it was asked for."""
    return (
        f"worker {worker.number} of the loader (process {worker.process.pid}) has been "
        f"at {_named(task)} of the dataset for {_SLOW_SECONDS:g} s, and is still "
        "waited for. Where it hangs, kill it: the iteration then ends with a "
        "WorkerEndedError, and the next one starts others"
    )


def _named(task: Task) -> str:
    samples = ", ".join(map(repr, map(int, task.draws[:_NAMED])))
    more = "" if len(task.draws) <= _NAMED else f" and {len(task.draws) - _NAMED} more"
    return f"samples {samples}{more}"


def _said_of(worker: _Worker) -> str:
    """Say how a process ended."""
    worker.process.join(_END_SECONDS)
    status = worker.process.exitcode
    if status is None or status >= 0:
        ended = f"ended with status {status}: what it wrote to stderr may say why"
        method = multiprocessing.get_start_method()
        if method != "fork":
            ended += (
                '. (A script that has no `if __name__ == "__main__":` around its work '
                f"ends it too, where Python starts processes by {method})"
            )
    else:
        ended = f"was killed by signal {-status}, perhaps for want of memory"
    return (
        f"worker {worker.number} of the loader (process {worker.process.pid}) {ended}. "
        "Iterating anew starts others; take fewer workers if it comes again"
    )


def _end_workers(workers: list[_Worker], owner: int) -> None:
    """End processes that nobody asks for anything any more."""
    if os.getpid() != owner:
        return  # a fork has no children here
    for worker in workers:
        with suppress(OSError):  # it has ended
            worker.connection.send_bytes(NOTHING)
        worker.connection.close()
    latest = monotonic() + _END_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, latest - monotonic()))
        if worker.process.exitcode is None:
            worker.process.kill()  # a stopped one would not take a request
            worker.process.join()
    workers.clear()
