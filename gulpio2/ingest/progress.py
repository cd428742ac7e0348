"""What is told of a run's progress, put right where it was too much."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gulpio2.types import Progress

__all__ = ["ToldProgress"]


class ToldProgress:
    """Passes on what is told of a run's progress, and can put it right.

    Items are told as they are stored. Some are told of that are stored once more: where
    a worker crashed, or pieces of a task were of no use.

    Parameters
    ----------
    progress : Progress
        Whom to tell.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._told: defaultdict[str, int] = defaultdict(int)

    def __call__(self, **counts: int) -> None:
        """Pass it on."""
        with self._lock:
            for name, count in counts.items():  # in half of `Counter.update`'s time
                self._told[name] += count
        self._progress(**counts)

    def settle(self, **counts: int) -> None:
        """Tell what is missing of these counts, or too much, while nobody else does."""
        missing = {name: count - self._told[name] for name, count in counts.items()}
        if any(missing.values()):
            self(**{name: count for name, count in missing.items() if count})
