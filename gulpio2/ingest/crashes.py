"""Items whose reading ends the process that reads them, as a fault in a codec may."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.errors import SourceReadError
from gulpio2.ingest.items import NOTHING, PlacedItem
from gulpio2.memory import SharedBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    from gulpio2.ingest.jobs import Task

__all__ = ["AtWork", "CrashedItems", "CrashedWorkersError", "WorkerSlots", "blame"]

# What a process gets for a fault of its own. Others send SIGKILL and SIGTERM, and that
# may have come during any item.
_OWN_FAULTS = (
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGABRT,
)

# Of an id that a worker tells of; of a longer one only the position is told.
_ID_BYTES = 512


class AtWork(NamedTuple):
    """What a worker was about to do."""

    position: int
    """Of the item, in the adapter."""
    id_: str | None
    """Of the item, if the adapter had given it."""


class _Slot(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_int),
        ("position", ctypes.c_longlong),
        ("id_", ctypes.c_char * _ID_BYTES),
    )


class WorkerSlots:
    """Shared memory in which each worker writes what it is about to do.

    A message of it would cost more than a small item.

    Parameters
    ----------
    context : multiprocessing.context.BaseContext
        Of the workers.
    num_workers : int
        How many claim a slot.
    """

    def __init__(self, context: BaseContext, num_workers: int) -> None:
        self._shared = SharedBytes(num_workers * ctypes.sizeof(_Slot))
        self._num_workers = num_workers
        # Numbers of slots, each of which one worker reads.
        self._free, give = context.Pipe(duplex=False)
        os.write(give.fileno(), struct.pack(f"{num_workers}i", *range(num_workers)))
        give.close()

    def claim(self) -> Callable[[int, str | None], None]:
        """Give what writes into a slot of this process's own."""
        (number,) = struct.unpack("i", os.read(self._free.fileno(), 4))
        slot = self._slots()[number]
        slot.position = NOTHING
        slot.pid = os.getpid()

        def begin(position: int, id_: str | None) -> None:
            slot.position = position
            text = b"" if id_ is None else id_.encode(errors="replace")
            # Half an id would be another one.
            slot.id_ = text if len(text) <= _ID_BYTES and 0 not in text else b""

        return begin

    def at_work(self) -> dict[int | None, AtWork]:
        """Say what each process was about to do, by its number."""
        return {
            slot.pid: AtWork(slot.position, slot.id_.decode("utf-8", "ignore") or None)
            for slot in self._slots()
        }

    def _slots(self) -> Any:
        return (_Slot * self._num_workers).from_buffer(self._shared.memory)

    def close(self) -> None:
        """Let go of the free slots."""
        self._free.close()


class CrashedWorkersError(BrokenExecutor):
    """Workers ended by a fault of their own, and what they were at is known.

    Parameters
    ----------
    crashes : sequence of (AtWork, str)
        What they were at, and the name of the signal.
    """

    def __init__(self, crashes: Sequence[tuple[AtWork, str]]) -> None:
        super().__init__(crashes)
        self.crashes = crashes


def blame(
    processes: Sequence[BaseProcess], at_work: Mapping[int | None, AtWork]
) -> list[tuple[AtWork, str]]:
    """Say which of the processes did end by a fault of their own.

    They are to be joined before, and by nobody else at the same time: of two threads
    that ask the system how a process ended, only one is told.
    """
    names = {-number: number.name for number in _OWN_FAULTS}
    return [
        (at_work[process.pid], names[process.exitcode])
        for process in processes
        if process.pid in at_work and process.exitcode in names
    ]


class CrashedItems:
    """The items of a run that cost it a worker, each of which is tried once."""

    def __init__(self) -> None:
        self.items: dict[int, PlacedItem] = {}
        """What stands in their places, by position."""

    def take(
        self, crashes: Iterable[tuple[AtWork, str]], tasks: Iterable[Task]
    ) -> bool:
        """Take up items at fault.

        Returns
        -------
        bool
            Whether there is one that is not known. If not, something else is at fault.
        """
        positions = {n for task in tasks for n in task.positions()}
        new = {
            at_work.position: PlacedItem(
                at_work.position, at_work.id_, error=_error(signal_name)
            )
            for at_work, signal_name in crashes
            if at_work.position in positions - self.items.keys()
        }
        self.items.update(new)
        return bool(new)


def _error(signal_name: str) -> SourceReadError:
    return SourceReadError(
        f"reading it ended the process by {signal_name}, as a fault in a decoder does. "
        "Convert the file with another program, or leave the item out"
    )
