"""The failures of a run, as they become known."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gulpio2.errors import IngestError
from gulpio2.ingest.chunk_bar import above_bars

if TYPE_CHECKING:
    from collections.abc import Callable

    from gulpio2.ingest.report import IngestReport, ItemFailure

__all__ = ["NotedFailures"]

_logger = logging.getLogger(__name__)

# Items of a run whose failure is a warning each; of a million nobody would read more.
_MAX_WARNINGS = 20


class NotedFailures:
    """Tells of failures, and keeps the error of the first.

    Parameters
    ----------
    path : str
        Where they will be listed.
    on_failure : callable, optional
        Called with each `ItemFailure`.
    """

    def __init__(
        self, path: str, on_failure: Callable[[ItemFailure], object] | None
    ) -> None:
        self._path = path
        self._on_failure = on_failure
        self._num_noted = 0
        self._first: tuple[int, Exception] | None = None

    def note(self, failures: list[ItemFailure], first_error: Exception | None) -> None:
        """Tell of items that failed, and keep the error if they are the first.

        Parameters
        ----------
        failures : list of ItemFailure
            Not told of before.
        first_error : Exception or None
            What the first of them raised, where it is known.
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
