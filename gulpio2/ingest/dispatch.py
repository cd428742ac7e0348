"""Tasks to the workers of a run, and what comes back to its chunks."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.errors import IngestError
from gulpio2.ingest.capacity import Capacity
from gulpio2.ingest.cluster import is_lost
from gulpio2.ingest.crashes import (
    CrashedItems,
    CrashedWorkersError,
    describe_crashes,
)
from gulpio2.ingest.fitness import choose_sources, refuse_unfit_workers
from gulpio2.ingest.progress import ToldProgress
from gulpio2.ingest.remote import on_executor
from gulpio2.ingest.report import TO_RESUME
from gulpio2.ingest.workers import in_this_process, in_worker_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from gulpio2.ingest.jobs import Job, Task, TaskResult
    from gulpio2.ingest.noted import NotedFailures
    from gulpio2.ingest.pieces import CutTasks
    from gulpio2.ingest.publishing import Publisher
    from gulpio2.ingest.report import IngestReport
    from gulpio2.ingest.workers import Submit
    from gulpio2.types import Adapter, Progress

__all__ = ["Dispatcher"]


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
    """

    def __init__(
        self,
        num_workers: int,
        executor: Executor | None,
        *,
        resume: bool,
        progress: Progress,
        failures: NotedFailures,
    ) -> None:
        self._num_workers = num_workers
        self._executor = executor
        self._resume = resume
        self._progress = ToldProgress(progress)
        self.failures = failures

    def settle(self, report: IngestReport) -> None:
        """Have the progress be what is in the chunks."""
        self._progress.settle(items=report.items, failures=len(report.failures))

    def look_at_workers(
        self, adapter: Adapter, tasks: Sequence[Task], folder: str
    ) -> tuple[str, ...]:
        """Refuse workers elsewhere that are not fit for a run, before it begins.

        Parameters
        ----------
        adapter : Adapter
            Where its items come from.
        tasks : sequence of Task
            What it is to store.
        folder : str
            Where.

        Returns
        -------
        tuple of str
            Paths that a worker that comes later must see as well: for `Job.sources`.

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
        """Store tasks; an item that costs a worker its life is left out.

        Parameters
        ----------
        job : Job
            The run.
        tasks : list of Task
            Those that are left of it.
        cuts : CutTasks
            Which of them are done in pieces.
        publisher : Publisher
            Given the result of each.
        on_task : callable
            Called after each.

        Raises
        ------
        IngestError
            The workers, or the cluster, have given up.
        """
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
                    "the executor has given up what it had to do: a cluster's "
                    f"scheduler ended, or lost its workers ({type(cause).__name__}). "
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

        Of those in `left` the ones stay there that are not done.
        """
        waiting.reverse()
        running: dict[Future[TaskResult], Task] = {}
        capacity = Capacity(self._executor, self._num_workers)
        while waiting or running:
            num_tasks = capacity.num_tasks()
            while waiting and len(running) < num_tasks:
                task = waiting.pop()
                running[submit(task)] = task
            while not any(future.done() for future in running):
                if not publisher.maps.read_next():  # for the index, meanwhile
                    break
            done, _ = wait(running, capacity.seconds, FIRST_COMPLETED)
            for future in done:
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
        if self._num_workers == 1:
            return in_this_process(job, progress)
        return in_worker_processes(self._num_workers, job, progress, crashed.items)
