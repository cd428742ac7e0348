"""A Dask cluster as the executor of an ingest."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2._optional import require
from gulpio2.errors import IngestError, IngestSettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

__all__ = [
    "Cluster",
    "ask_workers",
    "client_of",
    "connect",
    "count_threads",
    "is_dropped",
    "is_lost",
    "refuse_other_addresses",
    "share_bytes",
]

_logger = logging.getLogger(__name__)

# Seconds to wait for a scheduler before the user is told.
_CONNECT_SECONDS = 30
# Seconds until they are told that it is waited for.
_SILENT_SECONDS = 10
# Seconds to wait for a cluster's first worker: some clusters start them for what there
# is to do.
_FIRST_WORKER_SECONDS = 60
# Seconds between two looks, for that one and for workers that do not answer.
_LOOK_SECONDS = 0.5
# Seconds that a scheduler may take to count its workers.
_ANSWER_SECONDS = 5
# Times that workers are asked that do not answer.
_TRIES = 2
# Dask's errors for what was under way when the scheduler ended.
_LOST = {
    "CancelledError",
    "ClosedClientError",
    "CommClosedError",
    "FutureCancelledError",
    "FuturesCancelledError",
}
# The logger that reports errors in Dask's event loop, and the function there that hands
# the result of a task to whoever waits for it.
_LOOP_LOG = "tornado.application"
_BRINGING = "_cascade_future"
_ADDRESS = re.compile(r"((?P<protocol>\w+)://)?[^\s/]*:\d+(/.*)?|inproc://.+")


class Cluster(NamedTuple):
    """A cluster that answered."""

    executor: Executor
    """Runs tasks on its workers."""
    num_workers: int
    """Tasks that it runs at a time: the threads of all workers."""


@contextlib.contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler for the time of the block.

    Parameters
    ----------
    address : str
        As ``tcp://host:8786``.

    Raises
    ------
    MissingDependencyError
        The extra ``distributed`` is not installed.
    IngestSettingError
        It is no address of a scheduler.
    IngestError
        Nothing answers at the address, or the cluster has no workers for a minute.
    """
    distributed = require("distributed", extra="distributed")
    refuse_other_addresses(address)
    try:
        with _telling_of_silence(address):
            client = distributed.Client(
                address, timeout=_CONNECT_SECONDS, set_as_default=False
            )
    except (OSError, TimeoutError, ValueError) as cause:
        raise IngestError(
            f"no Dask scheduler answers at {address!r}: {cause}. Start one with 'dask "
            "scheduler' and give the address that it prints"
        ) from cause
    # The event loop of the client logs by the second what it can raise to nobody.
    logs = [logging.getLogger(name) for name in ("distributed.client", _LOOP_LOG)]
    for log in logs:
        log.addFilter(_is_news)
    try:
        with client:
            num_workers = _count_first_threads(client, address)
            # A chunk whose worker is lost is done again elsewhere by the scheduler.
            yield Cluster(client.get_executor(pure=False), num_workers)
    finally:
        for log in logs:
            log.removeFilter(_is_news)


@contextlib.contextmanager
def _telling_of_silence(address: str) -> Iterator[None]:
    """Warn, where a scheduler does not answer soon, that it is being waited for."""
    timer = threading.Timer(
        _SILENT_SECONDS,
        _logger.warning,
        (
            "no Dask scheduler answers at %s so far; trying for %d s",
            address,
            _CONNECT_SECONDS,
        ),
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def refuse_other_addresses(address: str) -> None:
    """Refuse what is no address: a client would try it for a minute, and say little.

    Raises
    ------
    MissingDependencyError
        The extra ``distributed`` is not installed.
    IngestSettingError
        It has another form, or a protocol that Dask does not have here.
    """
    form = _ADDRESS.fullmatch(address)
    if form is None:
        raise IngestSettingError(
            f"{address!r} is no address of a Dask scheduler; they are as "
            "tcp://host:8786, and 'dask scheduler' prints its own"
        )
    protocols = require("distributed.comm.registry", extra="distributed")
    protocol = form["protocol"] or "tcp"
    try:
        protocols.get_backend(protocol).get_connector()
    # A protocol may be known, and what it needs not be installed.
    except (ImportError, TypeError, ValueError) as cause:
        raise IngestSettingError(
            f"{address!r} is no address of a Dask scheduler that can be reached from "
            f"here, for {protocol}:// cannot be used ({cause}). Give the address that "
            "'dask scheduler' prints, as tcp://host:8786"
        ) from cause


def _count_first_threads(client: Any, address: str) -> int:
    """Count the threads of a cluster, and wait for some if it has none.

    Raises
    ------
    IngestError
        None has come.
    """
    if num_threads := count_threads(client):
        return num_threads
    _logger.warning(
        "the scheduler at %s has no workers; waiting %d s for the first one",
        address,
        _FIRST_WORKER_SECONDS,
    )
    # Some clusters have workers only while there is work: this is some.
    work = client.submit(os.getpid, pure=False)
    deadline = time.monotonic() + _FIRST_WORKER_SECONDS
    while time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        if num_threads := count_threads(client):
            return num_threads
    work.cancel()
    raise IngestError(
        f"the scheduler at {address!r} has no workers. Start some with 'dask worker "
        f"{address}'"
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record of Dask's client says more than that its scheduler is gone.

    That is what the error of the run says. Dask logs besides, with tracebacks, each
    future that is cancelled by it, and that it could not connect again, with a wrong
    number of seconds; and results that come while their task is being cancelled.
    """
    error = record.exc_info[1] if record.exc_info else None
    if record.name == _LOOP_LOG:
        is_late = type(error).__name__ in {*_LOST, "InvalidStateError"}
        frames = traceback.walk_tb(error.__traceback__ if error else None)
        names = {frame.f_code.co_name for frame, _ in frames}
        return not (is_late and _BRINGING in names)
    is_cancelled = type(error).__name__ == "CancelledError"
    return not is_cancelled and not str(record.msg).startswith("Failed to reconnect")


def share_bytes(executor: Executor, data: bytes) -> Any:
    """Send bytes to each worker once, where the executor can.

    Returns
    -------
    object
        To be given to `executor` as an argument in their place.
    """
    client = client_of(executor)
    if client is not None:
        with warnings.catch_warnings():
            # Dask advises to scatter large data. But scattered data are lost with the
            # worker that holds them; the result of a task is computed again then.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return client.submit(_identity, data, pure=False)
    return data


def client_of(executor: Executor) -> Any:
    """Give the client of a Dask cluster's executor; None for any other executor."""
    if type(executor).__module__.partition(".")[0] != "distributed":
        return None
    return getattr(executor, "_client", None)


def count_threads(client: Any) -> int | None:
    """Count the threads of all workers; None where the scheduler does not answer."""
    try:
        ask = client.scheduler.ncores
        threads = client.sync(ask, workers=None, callback_timeout=_ANSWER_SECONDS)
        return int(sum(threads.values()))
    except Exception:  # noqa: BLE001  # what was under way tells of a lost scheduler
        return None


def ask_workers(
    client: Any, function: Callable[..., object], *arguments: object
) -> list[tuple[str, Any]]:
    """Have each worker of a Dask client call a function with these arguments.

    A worker that cannot import the function ends without a word, so it should be one
    of the standard library.

    Returns
    -------
    list of tuple
        Address of each worker, and what the function returned or raised there. Workers
        that have ended meanwhile are left out.

    Raises
    ------
    IngestError
        A worker, or the scheduler, does not answer.
    """
    answers: dict[str, Any] = {}
    asked: list[str] | None = None  # all of them
    try:
        for _ in range(_TRIES):
            found = client.run(function, *arguments, workers=asked, on_error="return")
            # An OSError is that of a closed connection: the worker is ending.
            silent = {k: v for k, v in found.items() if isinstance(v, OSError)}
            answers.update((k, v) for k, v in found.items() if k not in silent)
            if silent:
                time.sleep(_LOOK_SECONDS)  # until the scheduler knows of the end
                there = client.nthreads()
                silent = {k: v for k, v in silent.items() if k in there}
            if not silent:
                return sorted(answers.items())
            asked = sorted(silent)
    except OSError as cause:
        raise IngestError(
            f"the Dask scheduler at {client.scheduler.address} does not answer: {cause}"
        ) from cause
    worker, why = min(silent.items())
    raise IngestError(
        f"the worker {worker} does not answer: {why}. End it, or wait until the "
        "scheduler has taken note of its end, and run again"
    )


def is_lost(error: BaseException) -> bool:
    """Tell whether an error is Dask's for tasks that were lost with the cluster.

    By its name, as Dask need not be installed.
    """
    return type(error).__name__ in _LOST


def is_dropped(error: BaseException | None) -> bool:
    """Tell whether an error is Dask's for a result that it had, and takes for an error.

    That is one whose worker is lost between its coming and the look at how its task
    has ended (`_cascade_future` of `distributed.cfexecutor`). The task is to be done
    again.
    """
    if type(error) is not TypeError or "TaskResult" not in str(error):
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_name == _BRINGING


def _identity(data: bytes) -> bytes:
    return data
