"""What an interrupted run had done, so that another can go on.

``ingest.journal`` is written by the parent, in checked lines
(`gulpio2.format.journal`): the run's arguments, then a line per finished task, synced
before that task's chunks get their names. It is gone when the run is complete.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError, LockedError, MetaFileError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.journal import dump_line, load_lines
from gulpio2.format.layout import JOURNAL_NAME
from gulpio2.ingest.report import ItemFailure
from gulpio2.storage.base import read_if_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gulpio2.storage.base import Store, StoreWriter

__all__ = ["RunJournal"]

_logger = logging.getLogger(__name__)

# Bytes. Tables are smaller; of what is larger only the size is compared.
_MAX_READ = 256 << 20


class RunJournal:
    """The journal of a run: its arguments and its finished tasks.

    Parameters
    ----------
    store : Store
        The directory.
    arguments : mapping
        What must be the same for another run to go on with this one.
    hold : callable, optional
        Called when the journal of a new run is there, to keep others from it.

    Attributes
    ----------
    cut_for : int
        Processes that the run's last tasks were cut for.
    """

    def __init__(
        self,
        store: Store,
        arguments: Mapping[str, Any],
        hold: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self._hold = hold
        self.arguments = dict(arguments)
        self.first_number = 0
        self.cut_for = 1
        self.finished: list[dict[str, Any]] = []
        self._ends: list[int] = []
        self._plan: str | None = None
        self._writer: StoreWriter | None = None

    def begin(self, first_number: int, plan: str, cut_for: int) -> None:
        """Start a journal in place of any other.

        Parameters
        ----------
        first_number : int
            Of the run's chunks.
        plan : str
            The digest of its `RunPlan`.
        cut_for : int
            Processes that its last tasks are cut for.
        """
        self.first_number = first_number
        self.cut_for = cut_for
        line = {
            "run": self.arguments,
            "first_number": first_number,
            "plan": plan,
            "cut_for": cut_for,
            "files": _given_files(self.arguments.get("options")),
        }
        self.store.write_atomically(JOURNAL_NAME, dump_line(line))
        self._hold()
        self._writer = self.store.extend(JOURNAL_NAME)

    def take_up(self) -> bool:
        """Go on with the journal of an interrupted run, if there is one; as `read`."""
        if not self.read():
            return False
        self._writer = self.store.extend(JOURNAL_NAME)
        try:
            self._writer.truncate(self._ends[-1])
        except BaseException:
            self.close()
            raise
        return True

    def read(self) -> bool:
        """Read the journal of an interrupted run; tell whether there is one.

        Raises
        ------
        IngestError
            It is of a run with other arguments; the message names the difference.
        MetaFileError
            It is damaged from its first line on.
        """
        data = read_if_there(self.store, JOURNAL_NAME)
        if data is None:
            return False
        lines, ends = load_lines(data)
        where = self.store.path(JOURNAL_NAME)
        if not _is_sound(lines):
            raise MetaFileError(
                f"{where} is damaged, so the interrupted run cannot be resumed. Run "
                "without resuming and skip what is there (on_duplicate='skip', on the "
                "command line --on-duplicate skip): the rest is done again"
            )
        if differences := _differences(lines[0]["run"], self.arguments):
            raise IngestError(
                f"the run that was interrupted had other arguments ({where}): "
                f"{'; '.join(differences)}. Resume with the same ones, or run without "
                "resuming"
            )
        self.first_number = lines[0]["first_number"]
        self._plan = lines[0]["plan"]
        self.cut_for = lines[0]["cut_for"]
        self.finished, self._ends = lines[1:], ends
        self._tell_of_changes(lines[0]["files"])
        return True

    def _tell_of_changes(self, before: Mapping[str, Any]) -> None:
        """Warn of files, such as a table of labels, that have changed since.

        Items are compared by their ids alone, and those that are stored are not asked
        for again: nothing else would tell that a table says something else of them.
        """
        now = _given_files(self.arguments.get("options"))
        for path, content in before.items():
            if now.get(path) != content:
                _logger.warning(
                    "%s %s since the run began that is resumed. What it has stored "
                    "already stays as it is, with the labels and paths that the file "
                    "gave then. To have others, ingest into an empty folder",
                    path,
                    "has changed" if path in now else "has gone",
                )

    def tell_of_other(self) -> None:
        """Warn where an interrupted run is given up, for another or from its start."""
        lines, _ = load_lines(read_if_there(self.store, JOURNAL_NAME) or b"")
        if not _is_sound(lines):
            return
        own = {**self.arguments, "on_duplicate": lines[0]["run"].get("on_duplicate")}
        if differences := _differences(lines[0]["run"], own):
            _logger.warning(
                "%s: an ingest that was interrupted is given up for this one, which is "
                "another (%s). What it had stored stays; the rest of its items is not "
                "ingested, and it cannot be resumed any more",
                self.store.path(JOURNAL_NAME),
                "; ".join(differences),
            )
        elif self.arguments.get("on_duplicate") != "skip":  # which goes on as well
            _logger.warning(
                "%s: this ingest was interrupted, and begins anew. What it had stored "
                "without committing it is done again; resuming goes on with that "
                "(resume=True, on the command line --resume)",
                self.store.path(JOURNAL_NAME),
            )

    def refuse_other_plan(self, plan: str) -> None:
        """Refuse to go on where other items would be stored, or in other chunks.

        Raises
        ------
        IngestError
            The journal that was taken up is of another plan.
        """
        if plan != self._plan:
            raise IngestError(
                "the items are no longer those of the run that was interrupted "
                f"({self.store.path(JOURNAL_NAME)}): some were added, removed or "
                "renamed where the adapter takes them from, or deleted here. Undo "
                "that, or run without resuming: what was committed stays, and ids that "
                "are there can be skipped (on_duplicate='skip', on the command line "
                "--on-duplicate skip)"
            )

    def finish_task(self, line: Mapping[str, Any]) -> None:
        """Record a finished task, durably; its chunks get their names after this.

        Raises
        ------
        LockedError
            The journal is another one, or none: some network file systems let two runs
            begin in one instant.
        """
        if self._writer is None:
            raise IngestError("the journal was not begun")
        path = self.store.path(JOURNAL_NAME)
        if not self._writer.is_at(path):
            raise LockedError(
                errno.EWOULDBLOCK,
                f"{path} was replaced or removed while this run was at work: another "
                "process writes to the folder, perhaps on another machine. Let one of "
                "the two end. What was committed before is intact",
            )
        self._writer.write(dump_line(line))
        self._writer.sync()

    def drop_last(self) -> None:
        """Take out the last finished task of an interrupted run, to be done again."""
        if self._writer is None:
            raise IngestError("the journal was not begun")
        self.finished.pop()
        self._writer.truncate(self._ends[len(self.finished)])

    def close(self) -> None:
        """Close the file; it stays for a run that resumes."""
        if self._writer is not None:
            self._writer.close()

    def remove(self) -> None:
        """Remove the journal: the run is complete, or is to leave no trace."""
        self.close()
        self.store.remove(JOURNAL_NAME)


def _is_sound(lines: Sequence[Any]) -> bool:
    """Tell whether lines have the form of a run's journal: anybody can make a check."""
    try:
        head, *tasks = lines
        numbers = [head["first_number"], head["cut_for"]]
        objects = head["run"], head["files"]
        is_head = all(isinstance(each, dict) for each in objects)
        if not (is_head and isinstance(head["plan"], str)):
            return False
        for line in tasks:
            numbers += [line["task"], line["skipped"], line["not_given"]]
            numbers.append(line["raised_behind"])
            if not isinstance(line["error_behind"], (str, type(None))):
                return False
            _ = [ItemFailure.load(failure) for failure in line["failures"]]
            for part in line["parts"]:
                numbers += [part["number"], part["frames"], part["num_bytes"]]
                ids = part["ids"]
                numbers.append(ids if isinstance(ids, int) else len(ids))
                texts = [
                    part["data"],
                    part["meta"],
                    *(ids if type(ids) is list else ()),
                ]
                if not all(isinstance(text, str) for text in texts):
                    return False
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return all(type(number) is int and number >= 0 for number in numbers)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Sequence[str]:
    """Name the values that differ, those of a mapping in the mapping as ``key.key``."""
    found: list[str] = []
    for key in {**before, **now}:
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found.extend(f"{key}.{part}" for part in _differences(old, new))
        else:
            found.append(f"{key} was {_told(before, key)} and is {_told(now, key)}")
    return found


def _told(values: Mapping[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "not given"


def _given_files(options: Any) -> dict[str, list[int]]:
    """Give size and CRC-32 of each file that an adapter's options name, by its path.

    Folders, and what cannot be read, are left out.
    """
    found = {}
    for path in _texts(options):
        try:
            state = os.stat(path)  # noqa: PTH116  # any text: Path refuses some
            if not stat.S_ISREG(state.st_mode):
                continue
            is_read = state.st_size <= _MAX_READ
            crc32 = crc32_of(Path(path).read_bytes()) if is_read else 0
        except (OSError, ValueError):
            continue
        found[path] = [state.st_size, crc32]
    return found


def _texts(value: Any) -> Iterator[str]:
    """Give every text in a JSON value that may be a path."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
