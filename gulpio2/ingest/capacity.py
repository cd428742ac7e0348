"""How many tasks are under way at a time, also while a cluster grows and shrinks."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from gulpio2.ingest.cluster import client_of, count_threads

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Capacity"]

_logger = logging.getLogger(__name__)

# Seconds between two questions to a scheduler.
_ASK_SECONDS = 1.0
# Seconds without a worker after which the user is told. One that is started again, or
# is replaced, is soon back.
_EMPTY_SECONDS = 5.0


class Capacity:
    """Says how many tasks of a run are under way at a time.

    Two to a worker keep it busy; more would only hold memory. A Dask cluster is asked
    for its threads, and again while the run goes on.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        Does the work; None for processes of this machine.
    num_workers : int
        Tasks that run at a time, where the executor is not one of Dask.

    Attributes
    ----------
    seconds : float or None
        Time after which to ask again though no task has ended; None for never.
    """

    def __init__(self, executor: Executor | None, num_workers: int) -> None:
        self._client: Any = None if executor is None else client_of(executor)
        is_this_process = executor is None and num_workers == 1
        self._num_tasks = 1 if is_this_process else 2 * num_workers
        self.seconds = None if self._client is None else _ASK_SECONDS
        self._ask_at = 0.0
        self._empty_since: float | None = None
        self._is_told = False

    def num_tasks(self) -> int:
        """Count the tasks that may be under way now; at least 1."""
        if self._client is not None and time.monotonic() >= self._ask_at:
            threads = count_threads(self._client)
            if threads is not None:
                # Where there are none there may be some once there is work.
                self._num_tasks = 2 * max(threads, 1)
                self._watch(threads)
            self._ask_at = time.monotonic() + _ASK_SECONDS
        return self._num_tasks

    def _watch(self, threads: int) -> None:
        """Tell when all workers have been gone for a while, and when they are back."""
        if threads:
            if self._is_told:
                _logger.warning("the Dask cluster has workers again; the run goes on")
            self._empty_since, self._is_told = None, False
            return
        if self._empty_since is None:
            self._empty_since = time.monotonic()
        waited = time.monotonic() - self._empty_since
        if waited >= _EMPTY_SECONDS and not self._is_told:
            self._is_told = True
            address = self._client.scheduler.address
            _logger.warning(
                "the Dask cluster at %s has no workers; the run waits for some. Start "
                "them with 'dask worker %s', or interrupt the run (Ctrl-C): what was "
                "stored is intact",
                address,
                address,
            )
