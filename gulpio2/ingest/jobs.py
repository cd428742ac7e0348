"""What a run hands to its workers, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.report import ItemFailure
    from gulpio2.ingest.task_journal import Part
    from gulpio2.types import Adapter

__all__ = ["MAX_WORKERS", "Job", "OnDuplicate", "Task", "TaskResult"]

# Worker processes of one machine. All of them are started at once; the numbers of four
# times as many fill a pipe, and the run would wait for ever.
MAX_WORKERS = 4096

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
    resume: bool = False
    """Go on with what an interrupted run left."""
    sign: str | None = None
    """A file that is there while the run goes on, where a worker may outlive it."""
    sources: tuple[str, ...] = ()
    """Some paths that a worker elsewhere must see."""
    program: dict[str, int] = field(default_factory=dict)
    """Of the adapter, which a worker elsewhere must have: see `program_of`."""


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
    ids: frozenset[str] | None = None
    """What it is to store; None where the adapter lists no ids."""
    listed: tuple[str, ...] = ()
    """What the adapter lists for each position from `start` on, if it does."""
    piece: Literal["", "first", "later"] = ""
    """Which part of a task it is that was cut, if any: see `gulpio2.ingest.pieces`."""
    later_spans: tuple[range, ...] | None = None
    """Of a task that was cut, and now closes its chunk: the later pieces' positions."""
    is_begun: bool = field(default=True, compare=False)
    """Whether an interrupted run may have left files of it."""
    _places: dict[str, int] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The first place of each id in `listed`, once it was asked for."""

    @property
    def name(self) -> str:
        """What the names of its files begin with; the first piece has the task's."""
        whole = f"chunk_{self.index}"
        return f"{whole}-{self.start}-{self.stop}" if self.piece == "later" else whole

    def positions(self) -> list[int]:
        """List the positions that are to be stored."""
        return [n for n in range(self.start, self.stop) if n not in self.left_out]

    def listed_in(self, start: int, stop: int) -> tuple[str, ...]:
        """Give what the adapter lists from one position to another."""
        return self.listed[start - self.start : stop - self.start]

    def listed_at(self, position: int) -> str | None:
        """Give what the adapter lists for a position, if it does."""
        return next(iter(self.listed_in(position, position + 1)), None)

    def leaves_out(self, position: int, id_: str | None) -> bool:
        """Tell whether an item is not to be stored that was given for a position.

        The adapter may list another one there. Without an id it is an error.
        """
        if self.ids is None or id_ is None or id_ == self.listed_at(position):
            return position in self.left_out
        return id_ not in self.ids and self._listed_place(id_) is not None

    def _listed_place(self, id_: str) -> int | None:
        """Give the first place in `listed` of an id; None where it is not listed."""
        if not self._places:  # many may come at other places than where they are listed
            pairs = reversed([*enumerate(self.listed)])
            self._places.update({each: at for at, each in pairs})
        return self._places.get(id_)

    def place_of(self, position: int, id_: str | None) -> tuple[int, str | None]:
        """Give where the adapter lists an id; else the position it was given for.

        Where no id was given, with the one that the adapter lists there.
        """
        listed = self.listed_at(position)
        if id_ is None:
            return position, listed
        if id_ == listed or (place := self._listed_place(id_)) is None:
            return position, id_
        return self.start + place, id_


@dataclass(slots=True)
class TaskResult:
    """What a task did; holds no pixels."""

    task: Task
    given: int = 0
    """Items that the adapter gave, an error in the place of one counted."""
    journal: str = ""
    """Name of its journal, to be removed once the chunks are published."""
    resumed: int = 0
    """Items that an interrupted run had stored."""
    parts: list[Part] = field(default_factory=list)
    skipped: int = 0
    failures: list[ItemFailure] = field(default_factory=list)
    error_behind: str | None = None
    """What the adapter raised after it had given the last item, if it did."""
    first_error: Exception | None = None
    """The first failure's exception, to be raised in the caller."""
    is_unfit: bool = False
    """Of a piece: the adapter did not give what it lists for each position."""

    @property
    def not_given(self) -> int:
        """Items that the adapter counts and did not give, as far as the task knows.

        Of an adapter that lists ids they are known by these: one more of others does
        not stand for one that is missing.
        """
        task = self.task
        if task.ids is None:
            return max(0, task.stop - task.start - self.given)
        known: set[str | None] = {id_ for part in self.parts for id_ in part.ids}
        for failure in self.failures:
            is_known = failure.id is not None
            known.add(failure.id if is_known else task.listed_at(failure.position))
        return len(task.ids - known)
