"""Chunks that several processes store together.

Where there are fewer chunks than processes, and at the end of every run, processes
would be without work. So the last tasks are cut. The *first piece* of a task is written
into the file of the chunk, *later* pieces into files of their own, each with a journal
like that of a task. When all pieces are there, the task itself is run: it goes on where
the first piece has ended, takes over the encoded records of the later ones, and closes
the chunk. The chunk is the same as that of a task that was not cut. If the adapter does
not give to a piece what it lists for its positions, the whole task is done anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gulpio2.errors import GulpError
from gulpio2.format.journal import load_lines
from gulpio2.ingest.task_journal import OpenPart, TaskJournal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.ingest.jobs import Task, TaskResult
    from gulpio2.ingest.report import ItemFailure
    from gulpio2.staging import ChunkSession
    from gulpio2.storage.base import Store

__all__ = ["CutTasks", "Piece"]

# Later pieces for each worker at least: they take unequal times, and with few of them
# the workers wait long for the last one.
_PIECES = 4
# Part of a task that is in its first piece at most. It should be large, as the later
# pieces are written twice.
_FIRST_SHARE = 0.75
# Bytes that are taken over at a time.
_BLOCK = 1 << 20


@dataclass(slots=True)
class _Cut:
    """A task that was cut."""

    task: Task
    closing: Task
    """The same task, as it is run after its pieces."""
    waiting: int
    """Pieces that are to be done still."""
    resumed: int | None = 0
    """Items that pieces had from an interrupted run; None where none was run."""
    is_fit: bool = True
    """Whether the adapter gave to each piece what it lists for its positions."""


class CutTasks:
    """The tasks of a run that are done in pieces.

    Parameters
    ----------
    tasks : sequence of Task
        All of the run, also those that are done.
    ids : sequence of str or None
        Of all items, by position. Without them nothing is cut: two pieces might store
        one id.
    num_workers : int
        Processes to share the work out to; the same where a run is resumed.
    """

    def __init__(
        self, tasks: Sequence[Task], ids: Sequence[str] | None, num_workers: int
    ) -> None:
        self._ids = ids
        self._cuts: dict[int, _Cut] = {}
        # By task, position and id of the failures of it that were told.
        self._told: dict[int, set[tuple[int, str | None]]] = {}
        last = tasks[-num_workers:] if ids is not None and num_workers > 1 else ()
        self._share = len(last) / max(num_workers, 1)  # a journal may say anything
        self._indices = {task.index for task in last}

    def hand_out(
        self, tasks: Sequence[Task], store: Store, *, resume: bool
    ) -> list[Task]:
        """List the tasks and pieces that are to be run for these tasks, in this order.

        With `resume` some of it may have been stored already.
        """
        self._cuts.clear()
        names = store.names() if resume else []
        firsts: list[Task] = []
        later: list[Task] = []
        for task in tasks:
            pieces = self._cut(task) if task.index in self._indices else []
            if not pieces:
                firsts.append(task)
                continue
            first, *others = pieces
            spans = tuple(range(piece.start, piece.stop) for piece in others)
            cut = _Cut(task, replace(task, later_spans=spans), len(pieces))
            self._cuts[task.index] = cut
            if _is_being_closed(store, names, first):
                cut.resumed = None
                firsts.append(cut.closing)
            else:
                firsts.append(first)
                later += others
        if not resume:
            return firsts + later
        # Once for all: looking for its own takes each task a listing of the folder.
        begun = {name.partition(".")[0] for name in names}
        return [
            replace(task, is_begun=task.name in begun) for task in (*firsts, *later)
        ]

    def _cut(self, task: Task) -> list[Task]:
        positions = task.positions()
        count = len(positions)
        first = min(max(round(count * min(self._share, _FIRST_SHARE)), 1), count)
        parts = round(_PIECES / self._share) if self._share < 1 else 2 * _PIECES
        size = max(-(-count // parts), 1)
        starts = [0, *range(first, count, size)]
        if len(starts) == 1 or self._ids is None:
            return []
        pieces = []
        for number, begin in enumerate(starts):
            is_last = begin == starts[-1]
            start = task.start if number == 0 else positions[begin]
            stop = task.stop if is_last else positions[starts[number + 1]]
            listed = tuple(self._ids[start:stop])
            pieces.append(
                replace(
                    task,
                    start=start,
                    stop=stop,
                    left_out=task.left_out.intersection(range(start, stop)),
                    ids=frozenset(listed).intersection(task.ids or ()),
                    listed=listed,
                    piece="later" if number else "first",
                )
            )
        return pieces

    def take(self, result: TaskResult, store: Store) -> Task | None:
        """Take the result of a piece; after the last one, give the task to be run."""
        cut = self._cuts[result.task.index]
        cut.waiting -= 1
        cut.resumed = (cut.resumed or 0) + result.resumed
        cut.is_fit = cut.is_fit and not result.is_unfit
        if cut.waiting:
            return None
        if cut.is_fit:
            return cut.closing
        # The result must be that of one worker, whatever the adapter does.
        prefixes = (f"{cut.task.name}.", f"{cut.task.name}-")
        for name in store.names():
            if name.startswith(prefixes):
                store.remove(name)
        cut.resumed = 0
        return cut.task

    def untold(self, result: TaskResult) -> list[ItemFailure]:
        """List the failures of a result that no earlier one of its task has told."""
        if not result.failures:
            return []
        index = result.task.index
        told = self._told.setdefault(index, set())
        new = [each for each in result.failures if (each.position, each.id) not in told]
        told.update((each.position, each.id) for each in new)
        return new

    def settle(self, result: TaskResult) -> Task:
        """Give the task that a result is of, as it was before it was cut."""
        cut = self._cuts.get(result.task.index)
        if cut is None:
            return result.task
        if cut.resumed is not None:
            result.resumed = cut.resumed
        return cut.task


def _is_being_closed(store: Store, names: Sequence[str], first: Task) -> bool:
    """Tell whether a task has begun to take over what is behind its first piece.

    Some later pieces are gone then, and what they held is where it belongs.
    """
    prefix = f"{first.name}.journal."
    for name in names:
        if name.startswith(prefix):
            try:
                lines, _ = load_lines(store.read(name))
                at = [
                    (line["items"][-1] if "items" in line else line).get("at")
                    for line in lines
                ]
            except (GulpError, OSError, LookupError, TypeError, AttributeError):
                continue  # it is looked at again, closely, by the task
            if any(type(n) is int and n >= first.stop for n in at):
                return True
    return False


class Piece:
    """The later piece of a task that holds a span of positions, read by its journal.

    Its frames have been compared with the checksums in the journal, which is locked
    until the piece is closed.
    """

    def __init__(self, store: Store, task: Task, span: range) -> None:
        piece = replace(task, start=span.start, stop=span.stop, piece="later")
        self._journal = TaskJournal(
            store, piece.name, span.start, span.stop, resume=True
        )
        self._store = store
        self.record = self._journal.record
        self._part = self.record.open_part or OpenPart("")

    def ids_from(self, done: int) -> list[str]:
        """List the items that it holds, from a position on."""
        where = self._part.positions
        return [id_ for id_ in self._part.meta_dict if where[id_] >= done]

    def move(
        self, session: ChunkSession, journal: TaskJournal, done: int
    ) -> dict[str, Any]:
        """Store what it holds in the task's chunk, and note it in the task's journal.

        What is before the position `done` is there already. Gives the entries of the
        others by id, as they were in this piece.
        """
        if (error := self.record.error_behind) is not None:
            journal.note_raised(self.record.next_position, error)
        part = self._part
        entries = {id_: part.meta_dict[id_] for id_ in self.ids_from(done)}
        begin = next((e["frame_info"][0][0] for e in entries.values()), part.size)
        texts = session.take_over(entries, self._blocks(range(begin, part.size)))
        items = [(part.positions[id_], id_) for id_ in entries]
        failed = {each.position: each for each in self.failures_from(done)}
        for position, id_ in sorted([*items, *((n, "") for n in failed)]):
            if position in failed:
                journal.add_failure(failed[position], position)
            else:
                journal.add_item(position, id_, texts[id_])
        journal.write_items()
        return entries

    def failures_from(self, done: int) -> list[ItemFailure]:
        """List its failures, from a position on."""
        return [each for each in self.record.failures if each.position >= done]

    def remove(self) -> None:
        """Remove its files: what they held is in the chunk."""
        if self._part.partial:
            self._store.remove(self._part.partial)
        self._store.remove(self._journal.name)

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _blocks(self, span: range) -> Iterator[bytes]:
        for start in range(span.start, span.stop, _BLOCK):
            length = min(_BLOCK, span.stop - start)
            yield self._store.read_at(self._part.partial, start, length)
