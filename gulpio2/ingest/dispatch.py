"""Tasks to the workers of a run, and what comes back to its chunks."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    wait,
)
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError
from gulpio2.ingest.adapter_errors import begin_run
from gulpio2.ingest.cluster import client_of, count_threads, is_dropped, is_lost
from gulpio2.ingest.crashes import (
    CrashedItems,
    CrashedWorkersError,
    describe_crashes,
)
from gulpio2.ingest.fitness import choose_sources, refuse_unfit_workers
from gulpio2.ingest.local_workers import TASKS_EACH, LocalWorkers
from gulpio2.ingest.remote import on_executor
from gulpio2.ingest.report import TO_RESUME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from gulpio2.ingest.jobs import Job, Task, TaskResult
    from gulpio2.ingest.pieces import CutTasks
    from gulpio2.ingest.publishing import Publisher
    from gulpio2.ingest.report import IngestReport, NotedFailures
    from gulpio2.ingest.workers import Submit
    from gulpio2.types import Adapter, Progress

__all__ = ["Capacity", "Dispatcher"]

_logger = logging.getLogger(__name__)

# Seconds between two questions to a scheduler.
_ASK_SECONDS = 1.0
# Seconds without a worker after which the user is told. One that is started again, or
# is replaced, is soon back.
_EMPTY_SECONDS = 5.0


class Dispatcher:
    """Has the tasks of a run done.

    Parameters
    ----------
    num_workers : int
        Processes of this machine; 1 is this one. Of an executor, tasks that it runs at
        a time; one of Dask is asked for them.
    executor : concurrent.futures.Executor, optional
        In the place of processes of this machine.
    resume : bool
        Whether the run goes on with an interrupted one, of which results tell.
    progress : Progress
        Told of what is done.
    failures : NotedFailures
        Told of the items that fail.
    apart : bool, optional
        One worker is not this process, where another one costs nothing.
    """

    def __init__(
        self,
        num_workers: int,
        executor: Executor | None,
        *,
        resume: bool,
        progress: Progress,
        failures: NotedFailures,
        apart: bool = False,
    ) -> None:
        self._num_workers = num_workers
        self._local = LocalWorkers(num_workers, apart=apart)
        self._executor = executor
        self._num_tasks = self._local.num_tasks
        if executor is not None:  # whose workers are other processes, also if one
            self._num_tasks = TASKS_EACH * num_workers
        self._resume = resume
        self._progress = _ToldProgress(progress)
        self.failures = failures

    def settle(self, report: IngestReport) -> None:
        """Correct the progress that was told, to what is in the chunks."""
        self._progress.settle(items=report.items, failures=len(report.failures))

    def look_at_workers(
        self, adapter: Adapter, tasks: Sequence[Task], folder: str
    ) -> tuple[str, ...]:
        """Refuse workers elsewhere that are not fit for a run, before it begins.

        Returns
        -------
        tuple of str
            For `Job.sources`: paths that a worker which joins later must see as well.

        Raises
        ------
        IngestError
            The message names a worker, and what is amiss there.
        """
        if self._executor is None or not tasks:
            return ()
        sources = choose_sources(adapter, tasks)
        refuse_unfit_workers(self._executor, folder, sources)
        return sources

    def work(
        self,
        job: Job,
        tasks: list[Task],
        cuts: CutTasks,
        publisher: Publisher,
        on_task: Callable[[], object],
    ) -> None:
        """Store the tasks that are left of a run, and publish the result of each.

        An item that ends its worker is left out. Called after each task: `on_task`.

        Raises
        ------
        IngestError
            The workers, or the cluster, have given up.
        """
        begin_run()
        crashed = CrashedItems(self._num_workers)
        try:
            while tasks:
                left = tasks.copy()
                waiting = cuts.hand_out(tasks, publisher.store, resume=job.resume)
                try:
                    with self._workers(job, crashed) as submit:
                        self._hand_out(waiting, left, cuts, submit, publisher, on_task)
                except CrashedWorkersError as cause:
                    if not crashed.take(cause.crashes, left):
                        raise
                    job = replace(job, resume=True)
                    self.settle(publisher.report)
                tasks = left
        except Exception as cause:
            if is_lost(cause):
                raise IngestError(
                    "the executor has given up what it had to do: it was shut down, or "
                    "a cluster's scheduler ended, or lost its workers "
                    f"({type(cause).__name__}). "
                    f"{TO_RESUME}"
                ) from cause
            if type(cause).__name__ == "KilledWorker":  # Dask's
                raise IngestError(
                    "a chunk has cost the cluster several workers: they were killed or "
                    "out of memory, or an item of it crashes the decoder, and will "
                    f"again. {TO_RESUME}. On one machine, with two workers or more, "
                    "that goes past such an item and names it"
                ) from cause
            if not isinstance(cause, BrokenExecutor):
                raise
            where = ""
            if isinstance(cause, CrashedWorkersError):
                where = describe_crashes(cause.crashes)
            raise IngestError(
                f"a worker process ended without a word{where}: killed, out of memory, "
                "or crashed in a codec. (Where Python spawns its workers, a script "
                'that has no `if __name__ == "__main__":` around its work ends them '
                "too.) "
                f"{TO_RESUME}"
            ) from cause

    def _hand_out(
        self,
        waiting: list[Task],
        left: list[Task],
        cuts: CutTasks,
        submit: Submit,
        publisher: Publisher,
        on_task: Callable[[], object],
    ) -> None:
        """Hand out tasks, a few ahead of the workers, and publish what comes back.

        A task that is done is taken out of `left`.
        """
        waiting.reverse()
        running: dict[Future[TaskResult], Task] = {}
        capacity = Capacity(self._executor, self._num_tasks)
        while waiting or running:
            num_tasks = capacity.num_tasks()
            while waiting and len(running) < num_tasks:
                task = waiting.pop()
                running[submit(task)] = task
            while not any(future.done() for future in running):
                if not publisher.maps.read_next():  # for the index, meanwhile
                    break
            # Of one that its executor has cancelled `wait` is told nothing.
            if any(future.cancelled() for future in running):
                raise CancelledError
            done, _ = wait(running, capacity.seconds, FIRST_COMPLETED)
            for future in done:
                if is_dropped(future.exception()):
                    waiting.append(running.pop(future))
                    continue
                result = future.result()
                if not self._resume:
                    result.resumed = 0  # at most from before a worker crashed
                self.failures.note(cuts.untold(result), result.first_error)
                if running.pop(future).piece:
                    if (whole := cuts.take(result, publisher.store)) is not None:
                        waiting.append(whole)
                    continue
                task = cuts.settle(result)
                again = publisher.take(result)
                waiting.extend(reversed(again))
                left.remove(task)
                left.extend(again)
                if not again:
                    on_task()

    def _workers(
        self, job: Job, crashed: CrashedItems
    ) -> AbstractContextManager[Submit]:
        progress = self._progress
        if self._executor is not None:
            return on_executor(self._executor, job, progress)
        return self._local.begin(job, progress, crashed.items)


class _ToldProgress:
    """Passes on what is told of a run's progress, and can correct it.

    An item is told as soon as it is stored. After a crash of its worker, or as part of
    a piece that is of no use, it is stored, and told, once more.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._told: Counter[str] = Counter()

    def __call__(self, **counts: int) -> None:
        """Pass it on."""
        with self._lock:
            for name, count in counts.items():  # in half of `Counter.update`'s time
                self._told[name] += count
        self._progress(**counts)

    def settle(self, **counts: int) -> None:
        """Tell by how much these counts differ from what was told."""
        missing = {name: count - self._told[name] for name, count in counts.items()}
        if any(missing.values()):
            self(**{name: count for name, count in missing.items() if count})


class Capacity:
    """Says how many tasks of a run are under way at a time.

    A Dask cluster is asked for its threads, and again while the run goes on.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        Does the work; None for processes of this machine.
    num_tasks : int
        Under way at a time, unless a cluster of Dask says otherwise.

    Attributes
    ----------
    seconds : float or None
        Time after which to look again though no task has ended; None for never.
    """

    def __init__(self, executor: Executor | None, num_tasks: int) -> None:
        self._client: Any = None if executor is None else client_of(executor)
        self._num_tasks = num_tasks
        self.seconds = None if executor is None else _ASK_SECONDS
        self._ask_at = 0.0
        self._empty_since: float | None = None
        self._is_told = False

    def num_tasks(self) -> int:
        """Count the tasks that may be under way now; at least 1."""
        if self._client is not None and time.monotonic() >= self._ask_at:
            threads = count_threads(self._client)
            if threads is not None:
                # Where there are none there may be some once there is work.
                self._num_tasks = TASKS_EACH * max(threads, 1)
                self._watch(threads)
            self._ask_at = time.monotonic() + _ASK_SECONDS
        return self._num_tasks

    def _watch(self, threads: int) -> None:
        """Tell when all workers have been gone for a while, and when they are back."""
        if threads:
            if self._is_told:
                _logger.warning("the Dask cluster has workers again; the run goes on")
            self._empty_since, self._is_told = None, False
            return
        if self._empty_since is None:
            self._empty_since = time.monotonic()
        waited = time.monotonic() - self._empty_since
        if waited >= _EMPTY_SECONDS and not self._is_told:
            self._is_told = True
            address = self._client.scheduler.address
            _logger.warning(
                "the Dask cluster at %s has no workers; the run waits for some. Start "
                "them with 'dask worker %s', or interrupt the run (Ctrl-C): what was "
                "stored is intact",
                address,
                address,
            )
