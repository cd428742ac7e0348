"""What a worker does: it stores the items of a task in staged chunks."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import OrderedDict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gulpio2.codecs.encoding import FrameEncoder
from gulpio2.errors import DuplicateIdError, IngestError, SourceReadError, StorageError
from gulpio2.ingest.adapter_errors import as_failure, portable_error, short_text
from gulpio2.ingest.items import (
    PlacedItem,
    describe_failure,
    is_filled_anew,
    place_items,
    unlisted,
)
from gulpio2.ingest.jobs import Job, Task, TaskResult
from gulpio2.ingest.lent_cores import lent_cores
from gulpio2.ingest.pieces import Piece
from gulpio2.ingest.resuming import ask_behind, refuse_ended_run, refuse_other_items
from gulpio2.ingest.task_journal import Part, TaskJournal
from gulpio2.staging import ChunkSession
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gulpio2.storage.base import Store
    from gulpio2.types import Progress

__all__ = ["run_task"]

_logger = logging.getLogger(__name__)

# Bytes of small items that are written together, with one line in the journal.
_GATHERED_BYTES = 1 << 17
# Seconds after which they are written in any case: one killed loses no more work.
_GATHERED_SECONDS = 0.05


def run_task(
    job: Job,
    task: Task,
    progress: Progress,
    *,
    idle_cores: Callable[[], int] | None = None,
) -> TaskResult:
    """Store the items of a task in staged chunks.

    An item that fails costs itself alone. Where the storage refuses or the process is
    stopped, what was stored stays for a run that resumes.

    Parameters
    ----------
    job : Job
        The run.
    task : Task
        The slice.
    progress : Progress
        Called for every item, and for frames as they are written.
    idle_cores : callable, optional
        Says how many cores more than one the task may use at this moment. Default:
        none, ever. What is stored does not depend on it.

    Raises
    ------
    StorageError
        The disk is full, for one.
    DuplicateIdError
        An id is taken, and the run refuses that.
    """
    run = _TaskRun(job, task, progress, idle_cores)
    try:
        run.take_up()
        for start, stop in run.missing():
            listed = task.listed_in(start, stop)
            source = job.adapter, start, stop, listed, run.known
            for item in place_items(*source, on_left=run.leave):
                run.check_sign()
                run.result.given += 1
                if run.is_unfit(item):
                    return run.result
                is_left_out = task.leaves_out(item.position, item.id_)
                (run.write_journal if is_left_out else run.store)(item)
        run.finish()
    finally:
        run.close()
    return run.result


class _TaskRun:
    """The state of a task under way."""

    def __init__(
        self,
        job: Job,
        task: Task,
        progress: Progress,
        idle_cores: Callable[[], int] | None,
    ) -> None:
        self.job = job
        self.idle_cores = idle_cores
        self.encoder = FrameEncoder(idle_cores)
        self.task = task
        self.progress = progress
        self.result = TaskResult(task)
        self.output: Store = open_store(job.folder)
        self.check_sign()  # before a file is made that nobody would remove
        self.session: ChunkSession | None = None
        self.meta_dict: OrderedDict[str, Any] = OrderedDict()
        self.frames = 0
        self.ids: set[str] = set()  # of earlier parts; the open one's are in meta_dict
        self.next_position = task.start
        # The item stored last, its metadata and a copy. It goes into the journal when
        # the adapter has given the next one: until then that may change the metadata.
        self._unwritten: tuple[int, str, Any, dict[Any, Any]] | None = None
        self._shared_meta: Any = None  # a dict that came for two items in a row
        # Bytes of the open chunk whose items are in the journal; when others must be.
        self._num_noted, self._write_at = 0, 0.0
        # Ids that an interrupted run has gone through. An adapter that gives fewer than
        # it counts may give some once more: positions are counted.
        self.known: set[str] = set()
        self.journal = TaskJournal(
            self.output,
            task.name,
            task.start,
            task.stop,
            resume=task.is_begun and (job.resume or task.later_spans is not None),
        )
        self.result.journal = self.journal.name

    def check_sign(self) -> None:
        """Stop when the run has ended without this task."""
        if self.job.sign is not None:
            refuse_ended_run(self.output, self.job.sign, self.task.index)

    def take_up(self) -> None:
        """Go on where an interrupted run was."""
        record = self.journal.record
        self.next_position = record.next_position
        self.result.given = record.next_position - self.task.start
        self.result.parts.extend(record.parts)
        self.result.skipped = record.skipped
        self.result.failures.extend(record.failures)
        self.ids.update(*(part.ids for part in record.parts))
        if record.failures and self.task.later_spans is None:
            self.result.first_error = IngestError(str(record.failures[0]))
        if (opened := record.open_part) is not None:
            self.meta_dict, self.frames = opened.meta_dict, opened.frames
            self._session(resume=(opened.partial, opened.size))
        self.known = {*self.ids, *self.meta_dict}
        self.result.resumed = len(self.known)
        if self.task.ids is None:
            came = len(self.known) + record.skipped + len(record.failures)
            self.result.given = came  # the adapter may have passed over positions
            is_there = refuse_other_items(
                self.job.adapter,
                range(self.task.start, self.next_position),
                self.known.union(record.left_out),
                record.failures,
                record.last_id,
                on_left=self._note_raised,
            )
            if is_there:
                self.known.clear()  # none was passed over, so none is given again
            elif is_there is False:
                self.known.update(record.left_out)
        elif self.task.later_spans is None:  # else its pieces have asked
            ask_behind(self.job.adapter, record, self.task.stop, self._note_raised)
        if self.task.later_spans is None:  # else its pieces have told of it
            self.progress(items=self.result.resumed, failures=len(record.failures))
        if opened is not None:  # the run may have ended just before it was closed
            self._stage_if_full()

    def missing(self) -> Iterator[tuple[int, int]]:
        """Give the positions of items to ask for, between those that pieces hold."""
        for span in self.task.later_spans or ():
            if self.next_position < span.start:
                yield self.next_position, span.start
                self.write_journal()
                self.next_position = span.start
            with contextlib.closing(Piece(self.output, self.task, span)) as piece:
                self._take_over(piece)
        yield self.next_position, self.task.stop

    def _take_over(self, piece: Piece) -> None:
        done, end = self.next_position, piece.record.next_position
        if done < end and not any(map(self._is_taken, piece.ids_from(done))):
            self._write_entries()
            entries = piece.move(self._session(), self.journal, done)
            self.frames += sum(len(each["frame_info"]) for each in entries.values())
            self.result.resumed += len(entries)
            self.result.failures.extend(piece.failures_from(done))
            self.result.given += end - done
            self.next_position = end
        piece.remove()

    def is_unfit(self, item: PlacedItem) -> bool:
        """Tell whether a piece got another item than the adapter lists in its place."""
        if self.task.piece and item.id_ is not None:
            self.result.is_unfit = item.id_ != self.task.listed_at(item.position)
        return self.result.is_unfit

    def finish(self) -> None:
        """Close the chunk, or leave that to the task that this is a piece of."""
        record = self.journal.record
        self.result.error_behind = record.error_behind
        self._seal()
        self.journal.note_ended()
        if self.task.piece:
            self.result.is_unfit = self.result.given != len(self.task.listed)
        else:
            self.stage()

    def leave(self, item: PlacedItem) -> None:
        """Note where the adapter's generator ended before its end."""
        self._seal(item)
        self._note_raised(item)
        self._write_entries()

    def _note_raised(self, item: PlacedItem) -> None:
        if item.error is not None:
            self.journal.note_raised(item.position, short_text(item.error))

    def store(self, item: PlacedItem) -> None:
        """Store one item, or record why not."""
        self.write_journal(item)
        # Not before: until the next item came, its metadata could be changed.
        self._stage_if_full()
        if item.error is not None:
            self.fail(item, item.error)
            return
        if item.id_ is None:
            raise TypeError("an item without an error has an id")
        if self.task.ids is not None and item.id_ not in self.task.ids:
            # It was not compared with the ids of other tasks and of the directory.
            self.fail(item, unlisted(item.id_, self.task.start, self.task.stop))
            return
        if self._is_taken(item.id_):
            self._leave_out(item, item.id_)
            return
        session = self._session()
        try:
            with lent_cores(item.frames, self.idle_cores):
                num_frames = session.append(item.id_, item.meta, item.frames)
            if num_frames == 0:
                del self.meta_dict[item.id_]
                raise SourceReadError(
                    f"item {item.id_!r} has no frames, and so was left out. Check its "
                    "source"
                )
        except StorageError:
            raise
        except BaseException as error:  # noqa: BLE001  # the item boundary
            self.fail(item, as_failure(error))
            return
        self.frames += num_frames
        self._unwritten = (item.position, item.id_, item.meta, dict(item.meta))
        self.progress(items=1)

    def _stage_if_full(self) -> None:
        limit, session = self.job.chunk_bytes, self.session
        if limit and session is not None and session.tell() >= limit:
            self.stage()

    def _leave_out(self, item: PlacedItem, id_: str) -> None:
        """Refuse, skip or report an item whose id is taken, as the run is told."""
        stored = id_ in self.job.taken
        owner = f"in {self.job.folder} already" if stored else "of an item before it"
        error = DuplicateIdError(
            f"the id {id_!r} (position {item.position}) is {owner}. Give each item an "
            "id of its own, or choose to skip such items (on_duplicate='skip')"
        )
        if self.job.on_duplicate == "raise":
            raise error
        if self.job.on_duplicate == "skip":
            self.result.skipped += 1
            self._write_entries()
            self.journal.write({"at": item.position, "skipped": id_})
        else:
            self.fail(item, error)

    def fail(self, item: PlacedItem, error: Exception) -> None:
        """Record an item that was not stored."""
        _logger.debug("position %d failed", item.position, exc_info=error)
        place, id_ = self.task.place_of(item.position, item.id_)
        failure = describe_failure(self.job.adapter, place, id_, error)
        self.result.failures.append(failure)
        if self.result.first_error is None:
            self.result.first_error = portable_error(error)
        self._write_entries()
        is_given = item.id_ is not None
        self.journal.add_failure(failure, item.position, is_given=is_given)
        self.progress(failures=1)

    def stage(self) -> None:
        """Close the chunk that is open, if it holds an item."""
        self.write_journal()
        self._write_entries()
        if (session := self.session) is None:
            return
        if self.meta_dict:
            self.check_sign()
            staged = session.stage(f"{self.task.name}.gmeta")
            try:
                self.check_sign()
            except IngestError:
                # The run has ended, and removed what this task had written.
                staged.discard(self.output)
                raise
            ids = tuple(self.meta_dict)
            self.result.parts.append(Part(staged, ids, self.frames, session.tell()))
            self.ids.update(ids)
            self.journal.write({"staged": asdict(staged)})
        else:
            session.abort()
        session.close()
        self.session, self.meta_dict, self.frames = None, OrderedDict(), 0

    def close(self) -> None:
        """Close the files, and leave them where they are."""
        try:
            with contextlib.suppress(StorageError):  # probably what ended the task
                self._write_entries()
        finally:  # a callback that ends the run may raise again
            if self.session is not None:
                self.session.close()
            self.encoder.close()
            self.journal.close()

    def _session(self, resume: tuple[str, int] | None = None) -> ChunkSession:
        if self.session is None:
            self.session = ChunkSession(
                self.output,
                f"{self.task.name}.gulp",
                self.meta_dict,
                self.job.encoder,
                resume=resume,
                on_frames=lambda n, size: self.progress(frames=n, num_bytes=size),
                frame_encoder=self.encoder,
                gather=True,
            )
            self._num_noted = self.session.tell()
            if resume is None:
                self.journal.write({"data": self.session.partial})
        return self.session

    def write_journal(self, following: PlacedItem | None = None) -> None:
        """Record the item that was stored last; its dict may be that of the next."""
        self._seal(following)
        session = self.session
        if session is not None and (
            session.tell() - self._num_noted >= _GATHERED_BYTES
            or time.monotonic() >= self._write_at
        ):
            self._write_entries()

    def _seal(self, following: PlacedItem | None = None) -> None:
        """Have the journal take the item that was stored last, without writing it."""
        if self._unwritten is None or self.session is None:
            return
        (position, id_, meta, before), self._unwritten = self._unwritten, None
        if following is not None and meta is following.meta:
            self._shared_meta = meta
        if meta is self._shared_meta or is_filled_anew(meta, before, following):
            self.meta_dict[id_]["meta_data"] = [before]
        try:
            entry = self.session.seal(id_)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # mostly of metadata added late
            self.frames -= self.session.drop_last(id_)
            self.progress(items=-1)
            self.fail(PlacedItem(position, id_), error)
            return
        self.journal.add_item(position, id_, entry)

    def _write_entries(self) -> None:
        """Write the frames that wait, and then the line of their items."""
        if self.session is not None:
            self.session.flush()
            self._num_noted = self.session.tell()
            self._write_at = time.monotonic() + _GATHERED_SECONDS
        self.journal.write_items()

    def _is_taken(self, id_: str) -> bool:
        return (
            id_ in self.meta_dict
            or id_ in self.ids
            or id_ in self.job.taken
            or id_ in self.task.taken
        )
