"""Gives staged chunks their numbers and names."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gulpio2.errors import DuplicateIdError, IngestError
from gulpio2.format.layout import data_name, meta_name
from gulpio2.ingest.duplicates import advice_on_given
from gulpio2.ingest.report import ItemFailure
from gulpio2.staging import StagedChunk, taken_number
from gulpio2.storage.base import read_map
from gulpio2.storage.beside_writers import held_until_mapped
from gulpio2.storage.index.ahead import MapsAhead
from gulpio2.storage.removals_file import removed_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gulpio2.ingest.jobs import OnDuplicate, Task, TaskResult
    from gulpio2.ingest.journal import RunJournal
    from gulpio2.ingest.planning import RunPlan
    from gulpio2.ingest.report import IngestReport
    from gulpio2.storage.base import Store

__all__ = ["Publisher"]


class Publisher:
    """Publishes the results of tasks, in whichever order they come.

    Parameters
    ----------
    store : Store
        The directory.
    journal : RunJournal
        Told of a task before its chunks get their names.
    report : IngestReport
        Counts what is published.
    in_order : bool
        A task's chunks wait for those of the tasks before it. Needed where the number
        of a task's chunks, or the ids in them, are known only when it is done;
        otherwise task k is chunk ``first_number + k`` and is published at once.
    watch_ids : bool
        Look for ids that two tasks have: the adapter gave no list of them.
    on_duplicate : {"raise", "skip", "report"}
        What to do about such an id.
    """

    def __init__(
        self,
        store: Store,
        journal: RunJournal,
        report: IngestReport,
        *,
        in_order: bool,
        watch_ids: bool,
        on_duplicate: OnDuplicate,
    ) -> None:
        self.store = store
        self.journal = journal
        self.report = report
        self.in_order = in_order
        self.on_duplicate = on_duplicate
        self._next_task = 0
        self._first_raised: int | None = None
        self._next_number = journal.first_number
        self.ids: set[str] | None = set() if watch_ids else None
        self.maps = MapsAhead(store.path(""))
        self._waiting: dict[int, TaskResult] = {}

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
            self._next_number = self.journal.first_number + result.task.index
            self._finish(result)
            return []
        self._waiting[result.task.index] = result
        while (following := self._waiting.pop(self._next_task, None)) is not None:
            ids = {id_ for part in following.parts for id_ in part.ids}
            if twice := ids & (self.ids or set()):
                for part in following.parts:
                    part.staged.discard(self.store)
                self.store.remove(following.journal)
                if self.on_duplicate == "raise":
                    raise DuplicateIdError(
                        f"the id {min(twice)!r} is that of an item in an earlier chunk "
                        f"and of one at positions {following.task.start} to "
                        f"{following.task.stop - 1}. The chunks before are in place. "
                        + advice_on_given("on_duplicate='skip'")
                    )
                taken = following.task.taken | twice
                return [replace(following.task, taken=taken)]
            self._finish(following)
        return []

    def _finish(self, result: TaskResult) -> None:
        """Record a task as finished, then publish its chunks."""
        line: dict[str, Any] = {
            "task": result.task.index,
            "parts": [
                {
                    **asdict(part.staged),
                    "number": self._next_number + offset,
                    "ids": len(part.ids) if self.ids is None else list(part.ids),
                    "frames": part.frames,
                    "num_bytes": part.num_bytes,
                }
                for offset, part in enumerate(result.parts)
            ],
            "skipped": result.skipped,
            # More than were counted here do not make up for fewer elsewhere.
            "not_given": result.not_given,
            "raised_behind": int(result.error_behind is not None),
            "error_behind": result.error_behind,
            "failures": [asdict(failure) for failure in result.failures],
        }
        self.journal.finish_task(line)
        self.report.resumed += result.resumed
        # All of them are there: no need to list a folder of thousands of chunks.
        fresh = {
            name for part in line["parts"] for name in (part["data"], part["meta"])
        }
        self._publish(line, fresh)
        self.store.remove(result.journal)

    def take_up(self, plan: RunPlan) -> set[int]:
        """Publish what an interrupted run had finished; give the ordinals of its tasks.

        Raises
        ------
        IngestError
            Chunks that it had stored are missing, or others have taken their numbers.
        """
        names = set(self.store.names())
        self._compare(names, plan)
        for line in self.journal.finished:
            self._publish(line, names)
        self.report.resumed = self.report.items
        return {line["task"] for line in self.journal.finished}

    def _compare(self, names: set[str], plan: RunPlan) -> None:
        """Compare the journal with what is there, before anything is renamed.

        Of all tasks but the last, the chunks had their names. The files of the last one
        may have been removed since, as long as no map of them was in place: then the
        task is done again, and another's chunk may have its number.
        """
        lost: list[str] = []
        removed = removed_numbers(self.store, names)  # a map of theirs was in place
        for line in self.journal.finished[-1:]:
            for part in line["parts"]:
                name = meta_name(part["number"])
                if part["meta"] not in names and name in names:
                    ids = part["ids"]
                    if isinstance(ids, int):
                        ids = plan.ids_of(line["task"])
                    self._refuse_chunk_of_others(name, ids)
        for line in tuple(self.journal.finished):
            missing = []
            for part in line["parts"]:
                number = part["number"]
                pairs = (
                    (part["data"], data_name(number)),
                    (part["meta"], meta_name(number)),
                )
                missing += [
                    name for staged, name in pairs if not {staged, name} & names
                ]
            is_begun = any(
                meta_name(part["number"]) in names or part["number"] in removed
                for part in line["parts"]
            )
            if missing and not is_begun and line is self.journal.finished[-1]:
                self.journal.drop_last()
            else:
                lost += missing
        if lost:
            raise IngestError(
                f"{self.store.path(lost[0])}"
                + (f" (and {len(lost) - 1} more)" if lost[1:] else "")
                + " is missing, which the interrupted run had stored. Put it back, or "
                "run without resuming: ids that are there can be skipped "
                "(on_duplicate='skip', on the command line --on-duplicate skip)"
            )

    def _refuse_chunk_of_others(self, name: str, ids: Collection[str]) -> None:
        """Refuse a map that holds items, and none of these: it is not this run's.

        To a chunk of this run items may have been appended since, and others have been
        deleted. If all of its own were, nothing tells it from another's chunk.
        """
        _, there = read_map(self.store, name)
        if there and there.keys().isdisjoint(ids):
            raise taken_number(
                self.store.path(name),
                "holds none of the items that this run has stored in it: something "
                "else has written it since the run was interrupted, or they were all "
                "deleted and others appended",
            )

    def _publish(self, line: Mapping[str, Any], names: Collection[str]) -> None:
        """Give chunks their names, those that have not got them yet."""
        for part in line["parts"]:
            number, ids = part["number"], part["ids"]
            staged = StagedChunk(part["data"], part["meta"])
            data, meta = data_name(number), meta_name(number)
            # Not those of a run that resumes which have their maps.
            to_hold = (staged.data, data) if staged.meta in names else ()
            held = [name for name in to_hold if name in names]
            with held_until_mapped(self.store, *held):
                staged.publish(self.store, data, meta, names)
            self.maps.add(number)
            self.report.chunks.append(number)
            self.report.items += ids if isinstance(ids, int) else len(ids)
            self.report.frames += part["frames"]
            self.report.num_bytes += part["num_bytes"]
            self._next_number = number + 1
            if self.ids is not None:
                self.ids.update(ids)
        self._next_task = line["task"] + 1
        self.report.skipped += line["skipped"]
        self.report.not_given += line["not_given"]
        self.report.raised_behind += line["raised_behind"]
        error, first = line["error_behind"], self._first_raised
        # Tasks end in any order; the report is to be the same for all of them.
        if error is not None and (first is None or line["task"] < first):
            self.report.error_behind, self._first_raised = error, line["task"]
        self.report.failures.extend(ItemFailure.load(item) for item in line["failures"])
