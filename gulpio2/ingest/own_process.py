"""The one worker of a run in a process of its own, which an item may end."""

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

    from gulpio2.ingest.items import PlacedItem
    from gulpio2.ingest.workers import AnyJob, Submit, Work
    from gulpio2.types import Progress

__all__ = ["in_own_process", "is_to_be_had"]

_logger = logging.getLogger(__name__)


def is_to_be_had() -> bool:
    """Tell whether such a process costs nothing, and hides nothing.

    One that is not forked imports everything anew, and needs an adapter that can be
    sent to it. And a debugger that follows this process does not follow another one.
    """
    return multiprocessing.get_start_method() == "fork" and sys.gettrace() is None


@contextlib.contextmanager
def in_own_process(
    job: AnyJob,
    progress: Progress,
    in_place: Mapping[int, PlacedItem],
    work: Work = run_task,
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
