"""The items of a sample looked at, by as many processes as there are."""

from __future__ import annotations

from collections import deque
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError
from gulpio2.ingest.crashes import (
    CrashedItems,
    CrashedWorkersError,
    describe_crashes,
)
from gulpio2.ingest.local_workers import LocalWorkers
from gulpio2.ingest.looking import LookTask, look_at
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from gulpio2.ingest.crashes import Crash
    from gulpio2.ingest.extrapolation import Look
    from gulpio2.ingest.looking import LookJob
    from gulpio2.ingest.workers import Submit

__all__ = ["Lookers"]


class Lookers:
    """Processes that look at items; an item that ends one is noted as an ingest would.

    Parameters
    ----------
    job : LookJob
        What all looks have in common.
    num_workers : int
        Processes; 1 is this one, which such an item ends.
    apart : bool, optional
        One is not this process, where another one costs nothing.
    """

    def __init__(self, job: LookJob, num_workers: int, *, apart: bool = False) -> None:
        self._job = job
        self._local = LocalWorkers(num_workers, apart=apart)
        self._crashed = CrashedItems(num_workers)
        self._workers = ExitStack()
        self._submit: Submit | None = None

    def __enter__(self) -> Lookers:
        """Start nothing yet."""
        return self

    def __exit__(self, *error: Any) -> None:
        """End the processes."""
        self._workers.__exit__(*error)

    def look(self, positions: Sequence[int]) -> Iterator[Look]:
        """Look at items, a few ahead.

        Parameters
        ----------
        positions : sequence of int
            In the adapter, each once.

        Yields
        ------
        Look
            In the order of the positions.

        Raises
        ------
        IngestError
            Processes cannot be started, or end again and again.
        """
        waiting = deque(positions)
        running: dict[int, Future[Look]] = {}
        for position in positions:
            while position not in running or not _has_looked(running[position]):
                try:
                    while waiting and len(running) < self._local.num_tasks:
                        task = LookTask(waiting[0])
                        running[task.position] = self._hand_out(task)
                        waiting.popleft()
                    running[position].result()
                except BrokenExecutor as error:
                    left = [n for n, each in running.items() if not _has_looked(each)]
                    waiting.extendleft(reversed(left))
                    for each in left:
                        del running[each]
                    self._begin_anew(error, left)
            yield running.pop(position).result()

    def _hand_out(self, task: LookTask) -> Future[Look]:
        if self._submit is None:
            workers = self._local.begin(
                self._job, no_progress, self._crashed.items, look_at
            )
            self._submit = self._workers.enter_context(workers)
        return self._submit(task)

    def _begin_anew(self, error: BrokenExecutor, left: Sequence[int]) -> None:
        """End what is left of the processes, and note what has ended one."""
        self._submit = None
        crashes: Sequence[Crash] = ()
        try:
            # What nobody is to blame for is the same error, which is not raised again.
            self._workers.__exit__(type(error), error, error.__traceback__)
        except CrashedWorkersError as cause:
            crashes = cause.crashes
        tasks = [LookTask(position) for position in left]
        if not self._crashed.take(crashes, tasks):
            raise IngestError(
                f"a worker process ended without a word{describe_crashes(crashes)}: "
                "killed, out of memory, or crashed in a codec. Take fewer workers"
            ) from error


def _has_looked(future: Future[Look]) -> bool:
    return future.done() and not isinstance(future.exception(), BrokenExecutor)
