"""The work of one process: a slice of items into staged chunks."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.errors import DuplicateIdError, IngestError, SourceReadError, StorageError
from gulpio2.ingest.items import PlacedItem, describe_failure, place_items
from gulpio2.staging import ChunkSession, StagedChunk
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.report import ItemFailure
    from gulpio2.storage.base import Store
    from gulpio2.types import Adapter, Progress

__all__ = ["Job", "OnDuplicate", "Part", "Task", "TaskResult", "run_task"]

OnDuplicate = Literal["raise", "skip", "report"]


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a run have in common."""

    adapter: Adapter
    folder: str
    encoder: EncoderSettings
    on_duplicate: OnDuplicate
    chunk_bytes: int | None
    taken: frozenset[str]
    """Ids in the directory already, where the adapter does not list its ids."""


@dataclass(frozen=True, slots=True)
class Task:
    """A slice of items for one process."""

    index: int
    """Ordinal of the task in the run."""
    start: int
    stop: int
    left_out: frozenset[int] = frozenset()
    """Positions that are not to be stored."""
    taken: frozenset[str] = frozenset()
    """Further ids that are taken: known once a chunk before this one is there."""


@dataclass(frozen=True, slots=True)
class Part:
    """A staged chunk, and what is in it."""

    staged: StagedChunk
    ids: tuple[str, ...]
    frames: int
    num_bytes: int


@dataclass(slots=True)
class TaskResult:
    """What a task did; holds no pixels."""

    task: Task
    parts: list[Part] = field(default_factory=list)
    skipped: int = 0
    failures: list[ItemFailure] = field(default_factory=list)
    first_error: Exception | None = None
    """The first failure's exception, to be raised in the caller."""


def run_task(job: Job, task: Task, progress: Progress) -> TaskResult:
    """Store the items of a task in staged chunks.

    An item that fails costs itself alone. A storage that refuses ends the task, and
    leaves nothing behind.

    Parameters
    ----------
    job : Job
        The run.
    task : Task
        The slice.
    progress : Progress
        Called for every item and every frame.

    Raises
    ------
    StorageError
        The disk is full, for one.
    DuplicateIdError
        An id is taken, and the run refuses that.
    """
    run = _TaskRun(job, task, progress)
    try:
        for item in place_items(job.adapter, task.start, task.stop):
            if item.position not in task.left_out:
                run.store(item)
        run.stage()
    except BaseException:
        run.abandon()
        raise
    return run.result


class _TaskRun:
    """The state of a task under way."""

    def __init__(self, job: Job, task: Task, progress: Progress) -> None:
        self.job = job
        self.task = task
        self.progress = progress
        self.result = TaskResult(task)
        self.output: Store = open_store(job.folder)
        self.session: ChunkSession | None = None
        self.meta_dict: OrderedDict[str, Any] = OrderedDict()
        self.frames = 0
        # Ids of this task's earlier parts; those of the open one are in meta_dict.
        self.ids: set[str] = set()

    def store(self, item: PlacedItem) -> None:
        """Store one item, or record why not."""
        if item.error is not None:
            self.fail(item, item.error)
            return
        if item.id_ is None:
            raise TypeError("an item without an error has an id")
        if self._is_taken(item.id_):
            error = DuplicateIdError(
                f"the id {item.id_!r} (position {item.position}) is taken by an item "
                "before it. Give each item an id of its own, or choose to skip "
                "such items (on_duplicate='skip')"
            )
            if self.job.on_duplicate == "raise":
                raise error
            if self.job.on_duplicate == "skip":
                self.result.skipped += 1
            else:
                self.fail(item, error)
            return
        session = self._session()
        try:
            num_frames = session.append(item.id_, item.meta, item.frames)
            if num_frames == 0:
                del self.meta_dict[item.id_]
                raise SourceReadError(f"item {item.id_!r} has no frames")
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # the item boundary
            self.fail(item, error)
            return
        self.frames += num_frames
        self.progress(items=1)
        limit = self.job.chunk_bytes
        if limit is not None and session.writer.tell() >= limit:
            self.stage()

    def fail(self, item: PlacedItem, error: Exception) -> None:
        """Record an item that was not stored."""
        failure = describe_failure(self.job.adapter, item.position, item.id_, error)
        self.result.failures.append(failure)
        if self.result.first_error is None:
            self.result.first_error = _portable(error)
        self.progress(failures=1)

    def stage(self) -> None:
        """Close the chunk that is open, if it holds an item."""
        session, self.session = self.session, None
        if session is None:
            return
        try:
            if not self.meta_dict:
                session.abort()
                return
            size = session.writer.tell()
            staged = session.stage(f"chunk_{self.task.index}.gmeta")
            ids = tuple(self.meta_dict)
            self.result.parts.append(Part(staged, ids, self.frames, size))
            self.ids.update(ids)
        except BaseException:
            session.abort()
            raise
        finally:
            session.close()
            self.meta_dict = OrderedDict()
            self.frames = 0

    def abandon(self) -> None:
        """Remove everything that this task has written."""
        if self.session is not None:
            self.session.abort()
            self.session.close()
        for part in self.result.parts:
            part.staged.discard(self.output)

    def _session(self) -> ChunkSession:
        if self.session is None:
            self.session = ChunkSession(
                self.output,
                f"chunk_{self.task.index}.gulp",
                self.meta_dict,
                self.job.encoder,
                on_frame=lambda num_bytes: self.progress(frames=1, num_bytes=num_bytes),
            )
        return self.session

    def _is_taken(self, id_: str) -> bool:
        return (
            id_ in self.meta_dict
            or id_ in self.ids
            or id_ in self.job.taken
            or id_ in self.task.taken
        )


def _portable(error: Exception) -> Exception:
    """Give an exception that survives the way to another process."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  # made in the line before
    except Exception:  # noqa: BLE001  # whatever a foreign class raises
        return IngestError(f"{type(error).__name__}: {error}")
    return error
