"""What can go wrong with Python's pool of processes, from its start to its end."""

from __future__ import annotations

import contextlib
import errno
import threading
from concurrent.futures import InvalidStateError
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestError
from gulpio2.ingest.report import TO_RESUME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

__all__ = ["give_up", "processes", "reason_of", "refusals", "shut_down", "terminate"]

# Seconds that workers without work may take to end.
_END_SECONDS = 5.0
_SHARED_ROOM = "What they share needs room in /dev/shm, and leave to write there"
_OPEN_FILES = "Raise the limit of open files (ulimit -n)"
_PROCESSES = "Raise the limit of processes (ulimit -u, or that of the container)"
# Error number -> what to do where no worker can be started.
_ADVICE = {
    errno.ENOSPC: _SHARED_ROOM,
    errno.EROFS: _SHARED_ROOM,
    errno.EACCES: _SHARED_ROOM,
    errno.ENOENT: _SHARED_ROOM,
    errno.EMFILE: _OPEN_FILES,
    errno.ENFILE: _OPEN_FILES,
    errno.EAGAIN: _PROCESSES,
    errno.EFBIG: "Raise the limit of the size of a file (ulimit -f)",
}


@contextlib.contextmanager
def refusals(num_workers: int) -> Iterator[None]:
    """Turn what the system refuses in the block into an `IngestError` with advice."""
    try:
        yield
    except (OSError, RuntimeError, AssertionError) as cause:
        number = cause.errno if isinstance(cause, OSError) else None
        if isinstance(cause, AssertionError):
            if "daemonic" not in str(cause):  # as a worker of another pool is
                raise
        elif type(cause) is RuntimeError:
            if "thread" not in str(cause):  # Python says no more of one it cannot start
                raise
            number = errno.EAGAIN
        elif number is None:
            raise
        advice = _ADVICE.get(number or 0)
        raise IngestError(
            f"the {num_workers} worker processes cannot be started: "
            f"{getattr(cause, 'strerror', None) or cause}. "
            + (f"{advice}, or take" if advice else "Take")
            + " fewer workers: with num_workers=1 (on the command line --num-workers "
            f"1) no other process is needed. {TO_RESUME}"
        ) from cause


def give_up(pool: ProcessPoolExecutor, futures: Iterable[Future[Any]]) -> None:
    """Fail the futures of a pool whose own thread has ended, or a run waits for ever.

    A pool does so itself if its workers have ended, but not if its thread has, as where
    it could not start another thread.
    """
    thread = getattr(pool, "_executor_manager_thread", None)  # no public way either
    if thread is None or thread.is_alive():
        return
    for future in tuple(futures):
        with contextlib.suppress(InvalidStateError):  # it has come back meanwhile
            future.set_exception(
                _ended(
                    ", and has written why. If it could not start a thread, there were "
                    "too many."
                )
            )


def reason_of(error: BrokenExecutor) -> Exception:
    """Give what to raise where a pool says that it is broken.

    From Python 3.12 on it says so too if its own thread has ended, and the cause is
    what that thread has raised. A worker that was killed gives no cause mostly.
    """
    if "start new thread" in str(error.__cause__):  # Python says no more of it
        return _ended(": it could not start a thread, as there were too many.")
    return error


def _ended(why: str) -> IngestError:
    return IngestError(
        f"Python's pool of worker processes has ended of itself{why} {_PROCESSES}, or "
        f"take fewer workers. {TO_RESUME}"
    )


def shut_down(pool: ProcessPoolExecutor, workers: Iterable[BaseProcess]) -> bool:
    """Wait until the workers have ended; tell whether they had to be killed."""
    # A worker that is killed while it waits for work never gives the queue's lock back,
    # and the others do not hear that there is no more work.
    were_killed = threading.Event()
    late = threading.Timer(_END_SECONDS, _kill, [workers, were_killed])
    try:
        late.start()
    except RuntimeError:  # no thread can be started
        _kill(workers, were_killed)
    with contextlib.suppress(RuntimeError):  # the pool's own was not started
        pool.shutdown(wait=True, cancel_futures=True)
    for worker in workers:  # where not all could be started, the pool has not
        worker.join()
    late.cancel()
    if late.ident is not None:
        late.join()
    return were_killed.is_set()


def processes(pool: ProcessPoolExecutor) -> list[BaseProcess]:
    """List the workers; a pool that was shut down has forgotten them."""
    # No public way before Python 3.14.
    return list((getattr(pool, "_processes", None) or {}).values())


def terminate(workers: Iterable[BaseProcess]) -> None:
    """Have workers end; what they were doing is not done."""
    for worker in workers:
        worker.terminate()


def _kill(workers: Iterable[BaseProcess], were_killed: threading.Event) -> None:
    were_killed.set()
    for worker in workers:
        worker.kill()
