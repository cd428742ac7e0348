"""Staged chunks get their numbers and names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.errors import DuplicateIdError
from gulpio2.format.layout import data_name, meta_name

if TYPE_CHECKING:
    from gulpio2.ingest.report import IngestReport
    from gulpio2.ingest.task import OnDuplicate, Task, TaskResult
    from gulpio2.storage.base import Store

__all__ = ["Publisher"]


class Publisher:
    """Publishes the results of tasks, whose order they may come in does not matter.

    Parameters
    ----------
    store : Store
        The directory.
    first_number : int
        Number of the run's first chunk.
    in_order : bool
        A task's chunks wait for those of the tasks before it. Needed where the number
        of a task's chunks, or the ids in them, are known only when it is done;
        otherwise task k is chunk ``first_number + k`` and is published at once.
    on_duplicate : {"raise", "skip", "report"}
        What to do about an id that two tasks have.
    report : IngestReport
        Counts what is published.
    """

    def __init__(
        self,
        store: Store,
        first_number: int,
        report: IngestReport,
        *,
        in_order: bool,
        on_duplicate: OnDuplicate,
    ) -> None:
        self.store = store
        self.first_number = first_number
        self.report = report
        self.in_order = in_order
        self.on_duplicate = on_duplicate
        self._next_task = 0
        self._next_number = first_number
        self._waiting: dict[int, TaskResult] = {}
        # Ids of this run's chunks so far; only where no list of them came first.
        self._ids: set[str] = set()

    def take(self, result: TaskResult) -> list[Task]:
        """Publish what can be published.

        Returns
        -------
        list of Task
            Tasks to do again, with further ids that are taken.

        Raises
        ------
        DuplicateIdError
            Two tasks have an item of the same id, and that is refused.
        """
        if not self.in_order:
            self._next_number = self.first_number + result.task.index
            self._publish(result)
            return []
        self._waiting[result.task.index] = result
        while (following := self._waiting.pop(self._next_task, None)) is not None:
            ids = {id_ for part in following.parts for id_ in part.ids}
            if twice := ids & self._ids:
                for part in following.parts:
                    part.staged.discard(self.store)
                if self.on_duplicate == "raise":
                    raise DuplicateIdError(
                        f"the id {min(twice)!r} is that of an item in an earlier chunk "
                        f"and of one at positions {following.task.start} to "
                        f"{following.task.stop - 1}. The chunks before are in place. "
                        "Give each item an id of its own, or choose to skip such items "
                        "(on_duplicate='skip')"
                    )
                taken = following.task.taken | twice
                return [replace(following.task, taken=taken)]
            self._ids |= ids
            self._publish(following)
            self._next_task += 1
        return []

    def _publish(self, result: TaskResult) -> None:
        for part in result.parts:
            number = self._next_number
            part.staged.publish(self.store, data_name(number), meta_name(number))
            self._next_number += 1
            self.report.chunks.append(number)
            self.report.items += len(part.ids)
            self.report.frames += part.frames
            self.report.num_bytes += part.num_bytes
        self.report.skipped += result.skipped
        self.report.failures.extend(result.failures)
