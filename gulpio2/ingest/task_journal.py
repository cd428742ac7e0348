"""What a task of an interrupted run had done, so that another can go on.

``chunk_K.journal.<token>.partial`` is written by the worker, in checked lines
(`gulpio2.format.journal`): the items of task K; small ones, whose frames are written
together, share a line. It is not synced: whether its lines and the data agree is
checked on resuming. It is gone when the run is complete. A piece of a task has one of
its own (`gulpio2.ingest.pieces`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import LockedError, MetaFileError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import load_extras
from gulpio2.format.gmeta import dump_text, validate_entry
from gulpio2.format.journal import dump_body, dump_line, load_lines
from gulpio2.format.layout import partial_name
from gulpio2.ingest.report import ItemFailure
from gulpio2.staging import StagedChunk
from gulpio2.storage.local import new_token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gulpio2.storage.base import Store, StoreWriter

__all__ = [
    "OpenPart",
    "Part",
    "TaskJournal",
    "TaskRecord",
]


# Bytes that are read back at a time.
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A staged chunk, and what is in it."""

    staged: StagedChunk
    ids: tuple[str, ...]
    frames: int
    num_bytes: int


@dataclass(slots=True)
class OpenPart:
    """A data file that was being written, and the items in it that are whole."""

    partial: str
    size: int = 0
    frames: int = 0
    meta_dict: OrderedDict[str, Any] = field(default_factory=OrderedDict)
    positions: dict[str, int] = field(default_factory=dict)
    """Of each item, in the adapter."""


@dataclass(slots=True)
class TaskRecord:
    """What a task had done."""

    next_position: int
    parts: list[Part] = field(default_factory=list)
    open_part: OpenPart | None = None
    skipped: int = 0
    failures: list[ItemFailure] = field(default_factory=list)
    error_behind: str | None = None
    """What the adapter raised after it had given the last item, if it did."""
    is_ended: bool = False
    """Whether it is known what the adapter does behind the last item."""
    left_out: set[str] = field(default_factory=set)
    """Ids of items that were skipped, or have failed."""
    last_id: str | None = None
    """That of the last item; None where it had failed before it had one."""
    is_last_given: bool = True
    """Whether the adapter gave the last item; if not, to ask may end the process."""

    def leave_out(self, id_: str | None, *, is_given: bool) -> None:
        """Note an item that was not stored."""
        self.last_id, self.is_last_given = id_, is_given
        if id_ is not None:
            self.left_out.add(id_)


class TaskJournal:
    """The journal of one task, appended to as its items are stored.

    Parameters
    ----------
    store : Store
        The directory.
    task_name : str
        `Task.name`.
    start, stop : int
        First position of the task, and the one behind its last.
    resume : bool
        Go on with the journal of an interrupted run, if there is one.
    """

    def __init__(
        self, store: Store, task_name: str, start: int, stop: int, *, resume: bool
    ) -> None:
        self.store = store
        self._task_name = task_name
        self._stop = stop
        self._items: list[str] = []
        self._end = b""  # the line of what came behind the last item
        self._names: frozenset[str] = frozenset()
        self.record = TaskRecord(start)
        self.name = ""
        if resume:
            self._find(start)
        if not self.name:
            self.name = partial_name(f"{task_name}.journal", new_token())
            self._writer: StoreWriter = store.create(self.name, alone=True)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line."""
        self._writer.write(dump_line(line))

    def add_item(self, position: int, id_: str, entry: str) -> None:
        """Take an item that is whole, with the JSON of its entry, for `write_items`."""
        self._items.append(
            f'{{"at": {position}, "id": {dump_text(id_)}, "entry": {entry}}}'
        )

    def add_failure(
        self, failure: ItemFailure, position: int, *, is_given: bool = False
    ) -> None:
        """Append the line of an item that was not stored, after those before it.

        The `position` is that which was asked for. Where the adapter lists the id at
        another one, the failure has that. An item that the adapter gave (`is_given`)
        may be asked for again.
        """
        self.write_items()
        line = {"at": position, "failed": asdict(failure)}
        self.write({**line, "given": True} if is_given else line)

    def note_raised(self, position: int, error: str) -> None:
        """Take what the adapter raised where it was to give an item, if none is left.

        It is not asked again for what is behind the last one.
        """
        if position >= self._stop and not self.record.is_ended:
            self.record.error_behind, self.record.is_ended = error, True
            self._end = dump_line({"raised_behind": position, "error": error})

    def note_ended(self) -> None:
        """Take it that the adapter came to its end, unless it has raised there."""
        if not self.record.is_ended:
            self.record.is_ended = True
            self._end = dump_line({"ended": self._stop})

    def write_items(self) -> None:
        """Append what was taken: a line for items, and one for what is behind them.

        The frames of the items have to be in the data file before. Both lines are
        written at once: a run killed between them would not ask for the end again.
        """
        lines = self._end
        if self._items:
            body = f'{{"items": [{", ".join(self._items)}]}}'
            lines = dump_body(body) + lines
            self._items.clear()
        if lines:
            self._writer.write(lines)
            self._end = b""

    def close(self) -> None:
        """Close the file; it stays until the run is complete."""
        self._writer.close()

    def _find(self, start: int) -> None:
        """Take up the journal that got furthest, cut after its last sound line.

        A journal that is locked is left alone, with its data: a worker of the run that
        was killed may still be waiting for its disk, and go on writing. It may also
        take over what a piece holds, whose journal is gone then.
        """
        prefix = f"{self._task_name}.journal."
        writers: list[StoreWriter] = []
        kept: StoreWriter | None = None
        # Listed once: a task may have many parts, and each line names files of one.
        self._names = frozenset(self.store.names())
        try:
            for name in sorted(self._names):
                if not name.startswith(prefix):
                    continue
                try:
                    writers.append(self.store.extend(name, alone=True))
                    record, end = self._replay(self.store.read(name), start)
                except (LockedError, FileNotFoundError):
                    continue
                if not self.name or record.next_position > self.record.next_position:
                    self.name, self.record = name, record
                    self._writer, best_end = writers[-1], end
            if self.name:
                self._writer.truncate(best_end)
                kept = self._writer
        finally:
            for writer in writers:
                if writer is not kept:
                    writer.close()

    def _replay(self, data: bytes, start: int) -> tuple[TaskRecord, int]:
        """Read a journal as far as what it says of the data is true."""
        lines, ends = load_lines(data)
        record = TaskRecord(start)
        end = part_start = 0
        for line, line_end in zip(lines, ends, strict=True):
            try:
                if "data" in line:
                    part_start = end
                is_true = self._apply(record, line)
            except (MetaFileError, KeyError, TypeError, ValueError, AttributeError):
                is_true = False  # this package has not written such a line
            if not is_true:
                # A staged chunk that is not whole is done again from its beginning.
                is_stage = isinstance(line, dict) and "staged" in line
                # The line may have been added to the record in part, so begin anew.
                return self._replay(data[: part_start if is_stage else end], start)
            end = line_end
        return record, end

    def _apply(self, record: TaskRecord, line: Mapping[str, Any]) -> bool:
        """Add a line to the record; False where the files do not bear it out."""
        names = self._names
        if "data" in line:
            is_ours = line["data"].startswith(f"{self._task_name}.gulp.")
            if not is_ours or line["data"] not in names:
                return False
            record.open_part = OpenPart(line["data"])
            return True
        if "staged" in line:
            staged = StagedChunk(**line["staged"])
            part = record.open_part
            is_ours = (
                part is not None
                and staged.data == part.partial
                and staged.meta.startswith(f"{self._task_name}.gmeta.")
                and {staged.data, staged.meta} <= names
            )
            if part is None or not is_ours:
                return False
            ids = tuple(part.meta_dict)
            record.parts.append(Part(staged, ids, part.frames, part.size))
            record.open_part = None
            return True
        if "raised_behind" in line:
            if line["raised_behind"] < self._stop:
                return True  # that of a first piece is not that of its task
            record.error_behind, record.is_ended = line["error"], True
            return isinstance(record.error_behind, str)
        if "ended" in line:
            record.is_ended = line["ended"] >= self._stop
            return True
        if "items" in line:
            return self._apply_items(record, line["items"])
        record.next_position = self._position_after(record, line)
        if "failed" in line:
            record.failures.append(ItemFailure.load(line["failed"]))
            is_given = line.get("given") is True
            record.leave_out(record.failures[-1].id, is_given=is_given)
            return True
        record.skipped += 1
        record.leave_out(line["skipped"], is_given=True)
        return True

    def _apply_items(self, record: TaskRecord, items: Sequence[Any]) -> bool:
        """Add the items of a line, all of them or, if one is not whole, none."""
        part = record.open_part
        if part is None:
            return False
        begin = part.size
        for item in items:
            if item["id"] in part.meta_dict or not self._is_whole(
                part, begin, item["id"], item["entry"]
            ):
                return False
            begin = _end(item["entry"]["frame_info"])
        for item in items:
            infos = item["entry"]["frame_info"]
            part.meta_dict[item["id"]] = item["entry"]
            part.positions[item["id"]] = item["at"]
            part.frames += len(infos)
            part.size = _end(infos)
            record.next_position = self._position_after(record, item)
            record.last_id, record.is_last_given = item["id"], True
        return True

    def _position_after(self, record: TaskRecord, line: Mapping[str, Any]) -> int:
        """Give the position after the one that a line is of; they only grow."""
        position = line["at"]
        if type(position) is not int or not (
            record.next_position <= position < self._stop
        ):
            raise ValueError(f"{position!r} is not what comes after what was done")
        return position + 1

    def _is_whole(
        self, part: OpenPart, begin: int, id_: str, entry: Mapping[str, Any]
    ) -> bool:
        """Tell whether the frames of an item lie from here on as they were written."""
        if validate_entry(entry):
            return False
        extras = load_extras(entry, where=f"item {id_!r}")
        infos = entry["frame_info"]
        if not infos or len(extras.crc32) != len(infos):
            return False
        end = begin
        for loc, _, length in infos:
            if loc != end:  # frames are written one after another
                return False
            end += length
        if self.store.size(part.partial) < end:
            return False
        crcs: list[int] = []
        start = 0
        for stop, (loc, _, length) in enumerate(infos, 1):
            if stop == len(infos) or loc + length - infos[start][0] >= _BLOCK:
                found = self._crcs(part.partial, infos[start:stop])
                if found is None:
                    return False
                crcs += found
                start = stop
        return bool(np.array_equal(crcs, extras.crc32))

    def _crcs(self, name: str, records: Sequence[Sequence[int]]) -> list[int] | None:
        """Compute the checksums of neighbours' JPEGs; None where padding is not zeros.

        The caller gives a part of an item at a time, since they are read as a whole.
        """
        begin = records[0][0]
        data = memoryview(self.store.read_at(name, begin, _end(records) - begin))
        ends = [loc - begin + length for loc, _, length in records]
        pads = [pad for _, pad, _ in records]
        if any(b"".join(data[e - pad : e] for e, pad in zip(ends, pads, strict=True))):
            return None
        return [
            crc32_of(data[loc - begin : loc - begin + length - pad])
            for loc, pad, length in records
        ]


def _end(infos: Sequence[Sequence[int]]) -> int:
    """Give the bytes of the data file up to the end of an item."""
    offset, _, length = infos[-1]
    return offset + length
