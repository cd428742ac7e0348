"""Items whose reading ends the process, by a fault in a codec or for want of memory."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import struct
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gulpio2.errors import SourceReadError
from gulpio2.ingest.items import PlacedItem
from gulpio2.ingest.telling import NOTHING
from gulpio2.memory import SharedBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    class AnyTask(Protocol):
        """What a worker is given to do."""

        def positions(self) -> Sequence[int]: ...


__all__ = [
    "AtWork",
    "Crash",
    "CrashedItems",
    "CrashedWorkersError",
    "WorkerSlots",
    "blame",
    "describe_crashes",
    "name_of",
]

_logger = logging.getLogger(__name__)

# What the system sends a process for a fault of its own. SIGTERM comes from others, and
# says nothing of the item that was being read.
_OWN_FAULTS = (
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGABRT,
)
# Sent where memory runs out, mostly to the process that needs most of it; but anybody
# may send it. If it comes twice at one item, that item is taken to be at fault.
_KILLED = signal.SIGKILL

# Room for an id. Of an item with a longer one only the position is told.
_ID_BYTES = 512


class AtWork(NamedTuple):
    """What a worker was about to do."""

    position: int
    """Of the item, in the adapter."""
    id_: str | None
    """Of the item, if the adapter had given it."""


class Crash(NamedTuple):
    """A worker that ended before its work did."""

    at_work: AtWork
    exit_code: int
    """An exit status; or the number of a signal, below zero."""

    @property
    def has_exited(self) -> bool:
        """Whether it called for its own end."""
        return self.exit_code >= 0

    @property
    def is_fault(self) -> bool:
        """Whether what it was at has ended it. Else something else may have."""
        return -self.exit_code in _OWN_FAULTS

    @property
    def reason(self) -> str:
        """The exit status, or the name of the signal."""
        if self.has_exited:
            return f"exit status {self.exit_code}"
        return signal.Signals(-self.exit_code).name


class _Slot(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_int),
        ("position", ctypes.c_longlong),
        ("id_", ctypes.c_char * _ID_BYTES),
    )


def _text_of(id_: bytes) -> str:
    """Give an id as it was written; a worker may have ended in the middle of that."""
    try:
        return id_.decode("utf-8", "surrogatepass")  # names of files may be no UTF-8
    except UnicodeDecodeError:
        return ""


class WorkerSlots:
    """Shared memory in which each worker writes what it is about to do.

    To send a message instead would take longer than to store a small item.
    """

    def __init__(self, context: BaseContext, num_workers: int) -> None:
        self._shared = SharedBytes(num_workers * ctypes.sizeof(_Slot))
        self._num_workers = num_workers
        # Holds the numbers of all slots: a worker reads one, and has its slot.
        self._free, give = context.Pipe(duplex=False)
        os.write(give.fileno(), struct.pack(f"{num_workers}i", *range(num_workers)))
        give.close()

    def claim(self) -> Callable[[int, str | None], None]:
        """Take a slot for this process, and give the function that writes into it."""
        (number,) = struct.unpack("i", os.read(self._free.fileno(), 4))
        slot = self._slots()[number]
        slot.position = NOTHING
        slot.pid = os.getpid()

        def begin(position: int, id_: str | None) -> None:
            slot.position = position
            text = b"" if id_ is None else id_.encode(errors="surrogatepass")
            # An id that is cut off could be that of another item.
            slot.id_ = text if len(text) <= _ID_BYTES and 0 not in text else b""

        return begin

    def at_work(self) -> dict[int | None, AtWork]:
        """Say what each process was about to do, by its number."""
        return {
            slot.pid: AtWork(slot.position, _text_of(slot.id_) or None)
            for slot in self._slots()
        }

    def _slots(self) -> Any:
        return (_Slot * self._num_workers).from_buffer(self._shared.memory)

    def close(self) -> None:
        """Close the pipe of the numbers."""
        self._free.close()


class CrashedWorkersError(BrokenExecutor):
    """Workers ended by a fault of their own or were killed.

    Its `crashes` say what each was at, and how it ended.
    """

    def __init__(self, crashes: Sequence[Crash]) -> None:
        super().__init__(crashes)
        self.crashes = crashes


def blame(
    processes: Sequence[BaseProcess],
    at_work: Mapping[int | None, AtWork],
    *,
    were_killed: bool,
) -> list[Crash]:
    """Give what each process that crashed was at, and how it ended.

    One that has exited counts where an item was being read: some libraries end the
    program where they can go no further.

    Join the processes before, in this thread alone: of two threads that ask the system
    how a process ended, only one is told. Where this program itself has killed those
    that were left (`were_killed`), being killed counts as no crash.
    """
    signals = _OWN_FAULTS if were_killed else (*_OWN_FAULTS, _KILLED)
    crashes: list[Crash] = []
    for process in processes:
        # One that had hardly begun has no slot yet.
        at, code = at_work.get(process.pid, AtWork(NOTHING, None)), process.exitcode
        if code is not None and (
            -code in signals or (code >= 0 and at.position != NOTHING)
        ):
            crashes.append(Crash(at, code))
    return crashes


class CrashedItems:
    """The items of a run that ended a worker: they are left out.

    An item at which a worker was killed, or exited, is tried once more, since that may
    have had another reason. A worker that was killed at no item, as while it closed a
    chunk, does not end the run. The run ends after more than `most_kills` workers were
    killed; those at items that are left out do not count.
    """

    def __init__(self, most_kills: int) -> None:
        self.items: dict[int, PlacedItem] = {}
        """By position, the error that takes the item's place."""
        self._most_kills = most_kills
        self._suspects: set[int] = set()
        self._kills_elsewhere = 0

    def take(self, crashes: Iterable[Crash], tasks: Iterable[AnyTask]) -> bool:
        """Note the items at fault; tell whether the run can go on without them."""
        positions = {n for task in tasks for n in task.positions()} - self.items.keys()
        is_new = is_elsewhere = False
        again: list[Crash] = []
        for crash in crashes:
            position, id_ = crash.at_work
            if position not in positions:
                self._kills_elsewhere += not crash.is_fault
                is_elsewhere = is_elsewhere or not crash.is_fault
                continue
            is_new = True
            if crash.is_fault or position in self._suspects:
                item = PlacedItem(position, id_, error=_error(crash))
                self.items[position] = item
                self._suspects.discard(position)
            else:
                self._suspects.add(position)
                again.append(crash)
        num_kills = len(self._suspects) + self._kills_elsewhere
        if not (is_new or is_elsewhere) or num_kills > self._most_kills:
            return False
        for crash in again:
            name = name_of(crash.at_work)
            if crash.has_exited:
                text = f"a worker ended itself ({crash.reason}) while it was at {name}"
            else:
                text = (
                    f"a worker was killed while it was at {name}, perhaps for want of "
                    "memory"
                )
            _logger.warning("%s. It is tried once more", text)
        if is_elsewhere:
            _logger.warning(
                "a worker was killed while it was at no item, perhaps for want of "
                "memory. The run goes on"
            )
        return True


def describe_crashes(crashes: Iterable[Crash]) -> str:
    """Say at which items workers ended; nothing where they were at none."""
    items = sorted({at for at, _ in crashes if at.position != NOTHING})
    return f" at {', '.join(map(name_of, items))}" if items else ""


def name_of(at_work: AtWork) -> str:
    """Name the item that a worker was at."""
    named = "" if at_work.id_ is None else f" {at_work.id_!r}"
    return f"item{named} (position {at_work.position})"


def _error(crash: Crash) -> SourceReadError:
    if crash.has_exited:
        return SourceReadError(
            f"reading it ended the process twice ({crash.reason}), as a library does "
            "that ends the program where it can go no further. Raise an exception in "
            "its place, convert the file with another program, or leave the item out"
        )
    if not crash.is_fault:
        return SourceReadError(
            f"the process that read it was killed twice ({crash.reason}), as where "
            "memory runs out. Take fewer workers, cut the item or its frames down, or "
            "leave it out"
        )
    return SourceReadError(
        f"reading it ended the process by {crash.reason}, as a fault in a decoder "
        "does. Convert the file with another program, or leave the item out"
    )
