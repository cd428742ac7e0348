"""How tasks reach an executor that somebody else made, on whatever machines it has."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import threading
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gulpio2.__version__ import __version__
from gulpio2.errors import LockedError, StorageError
from gulpio2.ingest.cluster import share_bytes
from gulpio2.ingest.facts import unsendable
from gulpio2.ingest.fitness import (
    refuse_other_program,
    refuse_other_version,
    refuse_unseen_sources,
    sign_of_a_run,
    this_worker,
    unpack,
)
from gulpio2.ingest.programs import program_of
from gulpio2.ingest.task import run_task
from gulpio2.ingest.workers import Reporter
from gulpio2.storage.local import open_store
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor, Future

    from gulpio2.ingest.jobs import Job, Task, TaskResult
    from gulpio2.ingest.workers import Submit
    from gulpio2.types import Progress

__all__ = ["on_executor"]


@contextlib.contextmanager
def on_executor(executor: Executor, job: Job, progress: Progress) -> Iterator[Submit]:
    """Run tasks on an executor that somebody else made and will shut down.

    Notes
    -----
    The job is sent as bytes that each worker unpickles once. Progress is told when a
    task ends, as an executor gives back results and nothing else. Where the block is
    left with an error, tasks that are running end at their next item: a file that is
    there while the run goes on is gone then.
    """
    job = replace(job, program=program_of(job.adapter))
    try:
        shipped = pickle.dumps(job)
    except Exception as cause:
        raise unsendable(job.adapter, "the executor's workers", cause) from cause
    digest = hashlib.sha256(shipped).hexdigest()
    shared = share_bytes(executor, shipped)
    futures: set[Future[TaskResult]] = set()
    report = Reporter(progress)

    def submit(task: Task) -> Future[TaskResult]:
        report.raise_error()
        work = pickle.dumps(task)
        try:
            future = executor.submit(
                _run_shipped, __version__, digest, shared, sign, work
            )
        except RuntimeError as cause:
            if type(cause) is RuntimeError and "after shutdown" in str(cause):
                raise CancelledError from cause
            raise
        futures.add(future)
        future.add_done_callback(tell)
        return future

    def tell(future: Future[TaskResult]) -> None:
        futures.discard(future)
        if not future.cancelled() and future.exception() is None:
            result = future.result()
            for part in result.parts:
                report(
                    items=len(part.ids), frames=part.frames, num_bytes=part.num_bytes
                )
            report(failures=len(result.failures))

    with sign_of_a_run(open_store(job.folder)) as sign:
        try:
            yield submit
            report.raise_error()
        except BaseException:
            for future in list(futures):
                future.cancel()
            raise


# --- on the worker --------------------------------------------------------------

_shipped = threading.local()


def _run_shipped(version: str, *sent: Any) -> TaskResult:
    """Run a task of a job; both come as bytes.

    The version is compared before anything else is looked at: another version may send
    other classes, or more arguments.
    """
    refuse_other_version(version)
    digest, shipped, sign, task = sent
    # Each thread keeps a copy of the job for itself.
    if getattr(_shipped, "digest", None) != digest:
        job: Job = unpack(shipped)
        refuse_other_program(job)
        refuse_unseen_sources(job.sources)
        _shipped.job, _shipped.digest = job, digest
    job = replace(_shipped.job, sign=sign)
    try:
        return run_task(job, pickle.loads(task), no_progress)  # noqa: S301  # our parent's
    except LockedError:
        raise
    except StorageError as cause:  # perhaps of this machine alone
        what = cause.strerror or str(cause)
        raise StorageError(
            cause.errno, f"the worker {this_worker()}: {what}"
        ) from cause
