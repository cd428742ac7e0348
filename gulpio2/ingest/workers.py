"""The workers of this machine: this process, or some that it starts.

What they do to a task is a function of the job, the task and the progress that it tells
of: `run_task` stores it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import threading
import time
from concurrent.futures import (
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.children import (
    begin_child,
    hold_interrupts,
    is_orphan,
    share_terminal,
    starting,
)
from gulpio2.errors import AdapterContractError
from gulpio2.ingest.adapter_errors import ToldInVainError
from gulpio2.ingest.crashes import (
    CrashedWorkersError,
    WorkerSlots,
    blame,
    name_of,
)
from gulpio2.ingest.facts import unsendable
from gulpio2.ingest.items import PlacedItem, begin_worker
from gulpio2.ingest.lingering import Lingering, watching_here
from gulpio2.ingest.pool import (
    give_up,
    processes,
    reason_of,
    refusals,
    shut_down,
    terminate,
)
from gulpio2.ingest.task import run_task
from gulpio2.ingest.telling import NOTHING, rest
from gulpio2.memory import Parcel, SharedBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from gulpio2.types import Adapter, Progress

    Submit = Callable[[Any], "Future[Any]"]
    Work = Callable[..., Any]

__all__ = [
    "AnyJob",
    "Reporter",
    "SharedCores",
    "in_this_process",
    "in_worker_processes",
]

_logger = logging.getLogger(__name__)

# Seconds for which a worker gathers what it did before it tells the parent.
_TELL_SECONDS = 0.1
# Seconds between two looks at the pool, and at what the workers are at.
_LOOK_SECONDS = 1.0
# Objects after which a worker looks for cycles.
_COLLECT_AFTER = 50_000
# M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc, in bytes.
_GLIBC_OPTIONS = {-3: 32 << 20, -1: 64 << 20}


class AnyJob(Protocol):
    """What tasks have in common."""

    @property
    def adapter(self) -> Adapter:
        """Where the items come from."""


@contextlib.contextmanager
def in_this_process(
    job: AnyJob, progress: Progress, work: Work = run_task
) -> Iterator[Submit]:
    """Do each task in this process when it is submitted."""

    def tell(**counts: int) -> None:
        try:
            progress(**counts)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ToldInVainError(error) from error

    def submit(task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(job, task, tell))
        except ToldInVainError as told:
            future.set_exception(told.error)
        except Exception as error:  # noqa: BLE001  # a future carries any
            future.set_exception(error)
        return future

    with watching_here():
        yield submit


@contextlib.contextmanager
def in_worker_processes(
    num_workers: int,
    job: AnyJob,
    progress: Progress,
    in_place: Mapping[int, PlacedItem] | None = None,
    work: Work = run_task,
) -> Iterator[Submit]:
    """Do tasks in processes of this machine.

    They are started by Python's own default method. They end with their parent,
    however it ends, and leave Ctrl-C to it. By position, `in_place` has what to give
    for items that are not to be asked for.

    Raises
    ------
    CrashedWorkersError
        Some have ended by a fault of their own, or were killed.
    IngestError
        The system refuses what they need.
    """
    context = multiprocessing.get_context()
    # Their tasks may take hours, and what raises here is to end the run.
    report = Reporter(progress, lambda: terminate(processes(pool)))
    parcel = Parcel(
        (work, job, in_place or {}),
        partial(unsendable, job.adapter, "the worker processes"),
    )
    with refusals(num_workers):
        # A pipe and no queue: a queue has a lock, which a killed worker may hold for
        # ever. A message is so short that a pipe takes it as a whole.
        told, tell = context.Pipe(duplex=False)
        cores = SharedCores(num_workers)
        slots = WorkerSlots(context, num_workers)
        pool = ProcessPoolExecutor(
            num_workers,
            mp_context=context,
            initializer=_begin_worker,
            initargs=(parcel, tell, cores, slots),
        )
    handed_out: set[Future[Any]] = set()
    lingering = Lingering()

    def look() -> None:
        give_up(pool, handed_out)
        lingering.look(slots.at_work())

    listener = threading.Thread(
        target=_pass_on,
        args=(told, report, look),
        name="gulpio2-progress",
        daemon=True,
    )

    def submit(task: Any) -> Future[Any]:
        report.raise_error()
        with starting(), refusals(num_workers):
            future = pool.submit(_run_in_worker, task)
        cores.begin()
        handed_out.add(future)
        future.add_done_callback(cores.end)
        future.add_done_callback(handed_out.discard)
        return future

    workers: list[BaseProcess] = []
    broken: BrokenExecutor | None = None
    is_done = were_killed = False
    try:
        with hold_interrupts(), refusals(num_workers):
            listener.start()
        yield submit
        is_done = True
    except BrokenExecutor as error:
        broken = error
    finally:
        # A second Ctrl-C would interrupt this, and what is left undone here would keep
        # the program from ending.
        with hold_interrupts():
            workers = processes(pool)
            if not is_done:
                _tell_of_work(slots)
                terminate(workers)
            were_killed = shut_down(pool, workers)
            # The listener is told to end. The pipe has no end of its own as long as a
            # process has it open that the program or an adapter has forked meanwhile.
            tell.send(None)
            if listener.ident is not None:  # else there was no thread to be had
                listener.join()
            tell.close()
            told.close()
            slots.close()
    report.raise_error()
    if broken is not None:
        crashes = blame(workers, slots.at_work(), were_killed=were_killed)
        raise CrashedWorkersError(crashes) if crashes else reason_of(broken)


def _tell_of_work(slots: WorkerSlots) -> None:
    """Say what the workers are at, as one of them may be at it for ever."""
    at_work = slots.at_work().values()
    if items := sorted({name_of(each) for each in at_work if each.position != NOTHING}):
        _logger.info("the workers were at %s", ", ".join(items))


class SharedCores:
    """Shares as many cores as there are workers out among the tasks under way.

    While there are as many tasks as workers, each has one core. Where fewer are left,
    as at the end, they have the cores of the others too.
    """

    def __init__(self, num_workers: int) -> None:
        self.num_workers = num_workers
        self._open(SharedBytes(ctypes.sizeof(ctypes.c_int)))

    def _open(self, shared: SharedBytes) -> None:
        self._shared = shared
        # Written by the parent alone, and an int is written at once: it needs no lock.
        self._tasks = ctypes.c_int.from_buffer(shared.memory)
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[int, SharedBytes]:
        """Leave the parent's lock behind."""
        return self.num_workers, self._shared

    def __setstate__(self, state: tuple[int, SharedBytes]) -> None:
        """Take up the shared count."""
        self.num_workers, shared = state
        self._open(shared)

    def begin(self) -> None:
        """Count a task that was handed out."""
        with self._lock:
            self._tasks.value += 1

    def end(self, _future: Future[Any]) -> None:
        """Count a task that came back."""
        with self._lock:
            self._tasks.value -= 1

    def idle(self) -> int:
        """Say how many cores more than its own a task may use now."""
        tasks = self._tasks.value
        return -(-self.num_workers // max(tasks, 1)) - 1


class Reporter:
    """Tells a run's progress, from whichever thread, until the callback raises.

    Then it calls `on_error`, if that is given.
    """

    def __init__(
        self, progress: Progress, on_error: Callable[[], object] = lambda: None
    ) -> None:
        self._progress, self._on_error = progress, on_error
        self._error: BaseException | None = None

    def __call__(self, **counts: int) -> None:
        """Tell what was done."""
        if self._error is None:
            self.attempt(partial(self._progress, **counts))

    def attempt(self, call: Callable[[], object]) -> None:
        """Do what may raise, as it may log to a handler of the program's."""
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised in the run
            self._error = self._error or error
            self._on_error()

    def raise_error(self) -> None:
        """Raise in the thread of the run what was raised first."""
        if self._error is not None:
            raise self._error


def _pass_on(told: Connection, report: Reporter, look: Callable[[], None]) -> None:
    """Pass on what workers tell, until None comes; call `look` about every second.

    It goes on reading when one of these has failed: workers would wait for ever for
    room in a pipe that nobody reads.
    """
    look_at = time.monotonic() + _LOOK_SECONDS
    while True:
        if told.poll(_LOOK_SECONDS):
            if (counts := told.recv()) is None:
                return
            report(**counts)
        if time.monotonic() >= look_at:
            report.attempt(look)
            look_at = time.monotonic() + _LOOK_SECONDS


# --- in the workers -------------------------------------------------------------

_work: Work = run_task
_job: AnyJob | None = None
_told: _Teller | None = None
_cores: SharedCores | None = None
# Why the job could not be unpickled.
_fault: str | None = None


class _Teller:
    """Gathers counts and tells them a few times a second."""

    def __init__(self, tell: Connection) -> None:
        self.tell = tell
        self.counts: dict[str, int] = {}
        self.last = time.monotonic()

    def __call__(self, **counts: int) -> None:
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if time.monotonic() - self.last >= _TELL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self.last = time.monotonic()
        if self.counts:
            counts, self.counts = self.counts, {}
            self.tell.send(counts)


def _begin_worker(
    parcel: Parcel,
    tell: Connection,
    cores: SharedCores,
    slots: WorkerSlots,
) -> None:
    global _work, _job, _told, _cores, _fault  # one of each per worker process
    in_place: Mapping[int, PlacedItem] = {}
    try:
        _work, _job, in_place = parcel.content
    except Exception as cause:  # noqa: BLE001  # told by the first task
        _fault = f"{type(cause).__name__}: {cause}"
    _told, _cores = _Teller(tell), cores
    begin_worker(slots.claim(), in_place)
    # The garbage collector need not look through what is here now, which stays until
    # the process ends. Nor do frames make cycles: to look for some after every 700
    # objects took 2 % of the time.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 10, 10)
    _keep_freed_memory()
    begin_child()
    if cores.num_workers == 1:
        share_terminal()


def _keep_freed_memory() -> None:
    """Have the C library keep freed memory instead of giving it back to the system.

    Every frame needs the same few buffers. The system would map the larger ones, and
    fill them with zeros, for each frame anew.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        change = ctypes.CDLL(None).mallopt
        for number, value in _GLIBC_OPTIONS.items():
            change(number, value)


def _run_in_worker(task: Any) -> Any:
    if _fault is not None:
        raise AdapterContractError(
            f"a worker process cannot make the adapter that it was sent: {_fault}. "
            "What pickling leaves out of it has to be made again when it is unpickled, "
            "and its module must be there to import"
        )
    if _job is None or _told is None or _cores is None:
        raise RuntimeError("the worker was not begun")
    if is_orphan():
        os._exit(1)
    try:
        result = _work(_job, task, _told, idle_cores=_cores.idle)
        rest()
        return result
    finally:
        _told.flush()
