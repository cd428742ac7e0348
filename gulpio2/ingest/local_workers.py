"""What does the work on one machine: this process, one beside it, or several."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import sys
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError
from gulpio2.ingest.task import run_task
from gulpio2.ingest.workers import in_this_process, in_worker_processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from gulpio2.ingest.items import PlacedItem
    from gulpio2.ingest.workers import AnyJob, Submit, Work
    from gulpio2.types import Progress

__all__ = ["TASKS_EACH", "LocalWorkers"]

_logger = logging.getLogger(__name__)

# Tasks under way for each worker: two keep it busy, and more would only hold memory.
TASKS_EACH = 2


class LocalWorkers:
    """The workers of one machine.

    Parameters
    ----------
    num_workers : int
        Processes; 1 is this one, which an item may end.
    apart : bool, optional
        One is a process beside this one, where that costs nothing and hides nothing.

    Attributes
    ----------
    num_tasks : int
        Tasks to have under way at a time.
    """

    def __init__(self, num_workers: int, *, apart: bool = False) -> None:
        self._num_workers = num_workers
        self._is_here = num_workers == 1 and not (apart and _is_own_process_free())
        self.num_tasks = 1 if self._is_here else TASKS_EACH * num_workers

    def begin(
        self,
        job: AnyJob,
        progress: Progress,
        in_place: Mapping[int, PlacedItem],
        work: Work = run_task,
    ) -> AbstractContextManager[Submit]:
        """Have them ready for tasks.

        Parameters
        ----------
        job : Job or LookJob
            What all tasks have in common.
        progress : Progress
            Told of what is done.
        in_place : mapping of int to PlacedItem
            Items that have ended a worker, and what stands in their place.
        work : callable, optional
            What does a task.

        Returns
        -------
        context manager of callable
            Which takes a task and returns its future.
        """
        if self._is_here:
            return in_this_process(job, progress, work)
        if self._num_workers == 1:
            return _in_own_process(job, progress, in_place, work)
        return in_worker_processes(self._num_workers, job, progress, in_place, work)


def _is_own_process_free() -> bool:
    """Tell whether a process of its own costs nothing, and hides nothing.

    One that is not forked imports everything anew, and needs an adapter that can be
    sent to it. And a debugger that follows this process does not follow another one.
    """
    return multiprocessing.get_start_method() == "fork" and sys.gettrace() is None


@contextlib.contextmanager
def _in_own_process(
    job: AnyJob,
    progress: Progress,
    in_place: Mapping[int, PlacedItem],
    work: Work,
) -> Iterator[Submit]:
    """Do tasks in one process beside this one; in this one where the system refuses.

    Raises
    ------
    CrashedWorkersError
        It has ended by a fault of its own, or was killed.
    """
    hand_out: Submit | None = None

    def submit(task: Any) -> Future[Any]:
        nonlocal hand_out
        if hand_out is not None:
            return hand_out(task)
        try:
            with contextlib.ExitStack() as beginning:
                beside = in_worker_processes(1, job, progress, in_place, work)
                there = beginning.enter_context(beside)
                future = there(task)
                stack.enter_context(beginning.pop_all())
        except IngestError as error:
            if in_place:  # what has ended one would end this one
                raise
            _logger.debug("no process of its own for the one worker: %s", error)
            hand_out = stack.enter_context(in_this_process(job, progress, work))
            return hand_out(task)
        hand_out = there
        return future

    with contextlib.ExitStack() as stack:
        yield submit
