"""What a run is to store, and in which chunks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gulpio2.format.plan import calculate_chunk_slices
from gulpio2.ingest.duplicates import Sifted, sift_ids
from gulpio2.ingest.facts import count_items, item_ids
from gulpio2.ingest.jobs import Task

if TYPE_CHECKING:
    from collections.abc import Collection

    from gulpio2.ingest.jobs import OnDuplicate
    from gulpio2.ingest.report import ItemFailure
    from gulpio2.ingest.shard import Shard
    from gulpio2.types import Adapter

__all__ = ["RunPlan", "plan_run"]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The tasks of a run, and what is known of its items before it."""

    tasks: list[Task]
    ids: list[str] | None
    """Those of all items, by position; None if the adapter does not list them."""
    skipped: int
    """How many items are left out without being reported as failures."""
    failures: list[ItemFailure]
    """Items that are left out, and reported."""
    share: range
    """Positions that this run stores or leaves out: all, or those of its share."""
    repeats: dict[int, int]
    """As `Sifted.repeats`, of the items of the share."""
    undivided: str
    """Digest of the plan of all shares together, made as if nothing were stored."""

    def ids_of(self, task: int) -> list[str]:
        """List the ids that a task is to store; none if there is no such task."""
        if self.ids is None:
            return []
        tasks = [each for each in self.tasks if each.index == task]
        return [self.ids[n] for each in tasks for n in each.positions()]

    def digest(self) -> str:
        """Give a text that differs where other items are stored, or in other chunks."""
        return _digest(self.tasks, self.ids)


def plan_run(
    adapter: Adapter,
    stored: Collection[str],
    *,
    items_per_chunk: int,
    on_duplicate: OnDuplicate,
    shard: Shard | None = None,
) -> RunPlan:
    """Cut the items of an adapter into tasks, and find those whose id is taken.

    Parameters
    ----------
    adapter : Adapter
        What is ingested.
    stored : collection of str
        Ids in the directory.
    items_per_chunk : int
        Items of a task. It writes one chunk, or several where bytes limit them.
    on_duplicate : {"raise", "skip", "report"}
        What to do about ids that are taken. Where an adapter lists no ids, its tasks
        see to that.
    shard : Shard, optional
        Plan this share alone. Which items are in it does not depend on what is stored.

    Raises
    ------
    DuplicateIdError
        Ids are taken, and `on_duplicate` is "raise".
    AdapterContractError
        The adapter lists more or fewer ids than it has items, or fails to list them.
    """
    ids, num_items = item_ids(adapter), count_items(adapter)
    repeated: set[int] = set()
    if ids is not None and len(set(ids)) < num_items:
        repeated = sift_ids(adapter, ids, (), "skip").left_out
    whole = _tasks(range(num_items), repeated, items_per_chunk)
    share = range(num_items) if shard is None else shard.positions(whole, num_items)
    sifted = Sifted()
    if ids is not None:
        mine = {ids[n] for n in share if n not in repeated}
        sifted = sift_ids(adapter, ids, mine.intersection(stored), on_duplicate)
    tasks = _tasks(share, sifted.left_out, items_per_chunk)
    if ids is not None:
        tasks = [
            replace(
                task,
                ids=frozenset(ids[n] for n in task.positions()),
                listed=tuple(ids[task.start : task.stop]),
            )
            for task in tasks
        ]
    left_out = sifted.left_out.intersection(share)
    return RunPlan(
        tasks,
        ids,
        len(left_out) if on_duplicate == "skip" else 0,
        [failure for failure in sifted.failures if failure.position in share],
        share,
        {n: first for n, first in sifted.repeats.items() if n in share},
        _digest(whole, ids),
    )


def _tasks(share: range, left_out: set[int], items_per_chunk: int) -> list[Task]:
    positions = [n for n in share if n not in left_out]
    if not positions:
        return []
    tasks = []
    slices = calculate_chunk_slices(items_per_chunk, len(positions))
    for index, part in enumerate(slices):
        span = range(positions[part.start], positions[part.stop - 1] + 1)
        between = frozenset(left_out.intersection(span))
        tasks.append(Task(index, span.start, span.stop, between))
    return tasks


def _digest(tasks: list[Task], ids: list[str] | None) -> str:
    spans = [(task.start, task.stop, sorted(task.left_out)) for task in tasks]
    text = json.dumps([spans, ids])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
