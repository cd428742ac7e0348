"""What a run did, and the items that failed."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError
from gulpio2.format.failures import INGEST_KEY
from gulpio2.format.wording import counted
from gulpio2.ingest.chunk_bar import above_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gulpio2.types import JsonValue

__all__ = [
    "TO_RESUME",
    "IngestReport",
    "ItemFailure",
    "NotedFailures",
    "dump_failures",
    "tell_with",
]

_logger = logging.getLogger(__name__)

# What an error says that ends a run.
TO_RESUME = (
    "What was stored is intact; run again with resume=True (on the command line "
    "--resume) to ingest the rest"
)
# Items of a run whose failure is a warning each; of a million nobody would read more.
_MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class ItemFailure:
    """An item that was not stored, and why."""

    position: int
    """Its position in the adapter."""
    id: str | None
    """Its id; None where the adapter failed before it gave one, and lists none."""
    source: str | None
    """Where it comes from, where the adapter knows."""
    error: str
    """Name of the exception's class."""
    message: str
    """What the exception says."""

    @classmethod
    def load(cls, value: Any) -> ItemFailure:
        """Read what `dataclasses.asdict` has given.

        Raises
        ------
        TypeError, ValueError
            It is another value.
        """
        failure = cls(**value)
        texts = (failure.id or "", failure.source or "", failure.error, failure.message)
        is_sound = type(failure.position) is int and failure.position >= 0
        if not (is_sound and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"{value!r} is no failure of an item")
        return failure

    def __str__(self) -> str:
        """Give id and cause on one line."""
        name = f"item {self.id!r}" if self.id is not None else "an item"
        return f"{name} (position {self.position}): {self.error}: {self.message}"


@dataclass(slots=True)
class IngestReport:
    """Counts of one run."""

    items: int = 0
    """Items stored."""
    frames: int = 0
    """Frames stored."""
    num_bytes: int = 0
    """Bytes of their records."""
    skipped: int = 0
    """Items left out because their id was taken."""
    resumed: int = 0
    """Items, among those stored, that an interrupted run had stored."""
    not_given: int = 0
    """Items that the adapter counts and did not give; others do not make up for it."""
    raised_behind: int = 0
    """Slices of the adapter that raised behind their last item: a check, maybe."""
    failures: list[ItemFailure] = field(default_factory=list)
    """Items that were not stored, by position."""
    chunks: list[int] = field(default_factory=list)
    """Numbers of the chunks written."""
    seconds: float = 0.0
    """Time that the run took."""
    error_behind: str | None = None
    """What the first of the slices that `raised_behind` counts raised, in short."""

    def to_json(self) -> dict[str, JsonValue]:
        """Give the report as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        """Sum the run up on one line."""
        parts = [
            counted(self.items, "item"),
            counted(self.frames, "frame"),
            f"{self.num_bytes / 1e6:.1f} MB in {counted(len(self.chunks), 'chunk')}",
        ]
        if self.resumed:
            parts.append(f"{self.resumed} of the items resumed")
        if self.skipped:
            parts.append(f"{self.skipped} skipped")
        if self.not_given:
            parts.append(f"{self.not_given} not given by the adapter")
        if self.raised_behind:
            parts.append("an error of the adapter behind its last item")
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        return ", ".join(parts)


class NotedFailures:
    """Logs failures as they become known, and keeps the error of the first.

    The `path` is that of the list at the end of the run; `on_failure` is called with
    each.
    """

    def __init__(
        self, path: str, on_failure: Callable[[ItemFailure], object] | None
    ) -> None:
        self._path = path
        self._on_failure = on_failure
        self._num_noted = 0
        self._first: tuple[int, Exception] | None = None

    def note(self, failures: list[ItemFailure], first_error: Exception | None) -> None:
        """Log failures that were not told before.

        The error of the first of them is kept, where it is known and no earlier item of
        the run has failed.
        """
        for failure in failures:
            self._num_noted += 1
            is_shown = self._num_noted <= _MAX_WARNINGS
            if is_shown:
                with above_bars():
                    _logger.warning("%s", failure)
            else:
                _logger.debug("%s", failure)
            if self._num_noted == _MAX_WARNINGS + 1:
                with above_bars():
                    _logger.warning(
                        "more than %d items have failed; the others are not told here. "
                        "At the end of the run %s lists all of them",
                        _MAX_WARNINGS,
                        self._path,
                    )
            if self._on_failure is not None:
                self._on_failure(failure)
        if failures and first_error is not None:
            position = min(failure.position for failure in failures)
            if self._first is None or position < self._first[0]:
                self._first = (position, first_error)

    def error_of(self, report: IngestReport) -> Exception:
        """Give the exception of the first failure, as 0.0.4 raised it."""
        if self._first is not None:
            return self._first[1]
        return IngestError(str(report.failures[0]))


def dump_failures(failures: Iterable[ItemFailure], source: str) -> bytes:
    """Write failures as JSON lines, by position, each with the digest of its source."""
    ordered = sorted(failures, key=lambda failure: failure.position)
    lines = ({**asdict(failure), INGEST_KEY: source} for failure in ordered)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def tell_with(error: Exception, text: str) -> None:
    """Have a text shown with the traceback of an error, which stays as it is otherwise.

    It is a note of the error. Python 3.10 has no notes: there it is an `IngestError`
    that is shown before the error, as its cause.
    """
    add = getattr(error, "add_note", None)
    if add is not None:
        add(text)
        return
    before = IngestError(text)
    before.__cause__, before.__context__ = error.__cause__, error.__context__
    error.__cause__ = before
