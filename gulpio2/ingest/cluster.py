"""A Dask cluster as the executor of an ingest."""

from __future__ import annotations

import contextlib
import pickle
import pkgutil
import platform
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.__version__ import __version__
from gulpio2._optional import require
from gulpio2.errors import AdapterContractError, IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

__all__ = [
    "Cluster",
    "connect",
    "is_lost",
    "refuse_other_workers",
    "share_bytes",
    "unpack",
]

# Seconds to wait for a scheduler before the user is told.
_CONNECT_SECONDS = 30
# Dask's errors for what was under way when the scheduler ended.
_LOST = {
    "CancelledError",
    "ClosedClientError",
    "CommClosedError",
    "FutureCancelledError",
    "FuturesCancelledError",
}
# The place of the version, for `pkgutil.resolve_name`.
_VERSION = "gulpio2.__version__:__version__"
_ADDRESS = re.compile(r"(\w+://)?[^\s/]*:\d+(/.*)?|inproc://.+")


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
    IngestError
        Nothing answers at the address, or the cluster has no workers.
    """
    distributed = require("distributed", extra="distributed")
    # A client of what is no address goes on trying for a minute, beyond its end.
    if not _ADDRESS.fullmatch(address):
        raise IngestError(
            f"{address!r} is no address of a Dask scheduler; they are as "
            "tcp://host:8786, and 'dask scheduler' prints its own"
        )
    try:
        client = distributed.Client(
            address, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, TimeoutError, ValueError) as cause:
        raise IngestError(
            f"no Dask scheduler answers at {address!r}: {cause}. Start one with 'dask "
            "scheduler' and give the address that it prints"
        ) from cause
    with client:
        num_workers = sum(client.nthreads().values())
        if num_workers == 0:
            raise IngestError(
                f"the scheduler at {address!r} has no workers. Start some with 'dask "
                f"worker {address}'"
            )
        # A chunk whose worker is lost is done again elsewhere by the scheduler itself.
        yield Cluster(client.get_executor(pure=False), num_workers)


def share_bytes(executor: Executor, data: bytes) -> Any:
    """Send bytes to each worker once, where the executor can.

    Returns
    -------
    object
        To be given to `executor` as an argument in their place.
    """
    client = _client_of(executor)
    if client is not None:
        with warnings.catch_warnings():
            # That large data are scattered better. Those are lost with the workers that
            # have them; the result of a task is made again, and goes from one worker to
            # the next as they do.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return client.submit(_identity, data, pure=False)
    return data


def refuse_other_workers(executor: Executor) -> None:
    """Refuse a cluster whose workers lack this package, or have another version of it.

    A worker of Dask that cannot import what it is sent ends without a word, the task
    goes to the next one, and whoever waits for it waits for ever.

    Raises
    ------
    IngestError
        The message names a worker, and what is amiss there.
    """
    client = _client_of(executor)
    if client is None:
        return
    # Of the standard library, so that any worker understands what it is asked.
    found = client.run(pkgutil.resolve_name, _VERSION, on_error="return")
    for worker, version in sorted(found.items()):
        if version == __version__:
            continue
        what = f"has version {version}" if isinstance(version, str) else "has none"
        why = f" ({version})" if isinstance(version, Exception) else ""
        raise IngestError(
            f"this is gulpio2 {__version__}, and the worker {worker} {what}{why}. Give "
            "all workers the same version, as by 'pip install' in their environment, "
            "and start them again"
        )


def _client_of(executor: Executor) -> Any:
    """Give the client of a Dask cluster's executor; None for any other executor."""
    if type(executor).__module__.partition(".")[0] != "distributed":
        return None
    return getattr(executor, "_client", None)


def unpack(shipped: bytes) -> Any:
    """Unpickle a job on the worker that it was sent to.

    Raises
    ------
    AdapterContractError
        The adapter's module is not there, or its class is another.
    """
    try:
        return pickle.loads(shipped)  # noqa: S301  # our own parent's
    except Exception as cause:
        raise AdapterContractError(
            f"a worker on {platform.node()} cannot make the adapter that it was sent: "
            f"{type(cause).__name__}: {cause}. Its module must be there for all "
            "workers to import: install it in their environment, or start them with "
            "its folder in PYTHONPATH"
        ) from cause


def is_lost(error: BaseException) -> bool:
    """Tell whether an error says that a cluster is gone, and what it had to do.

    By name: the package that it is of need not be there.
    """
    return type(error).__name__ in _LOST


def _identity(data: bytes) -> bytes:
    return data
