"""Memory for batches that worker processes fill and the trainer has mapped already.

A slot goes from hand to hand: a worker claims a free one and fills it; the trainer
borrows it when the batch arrives, and it is free again when nothing refers to that
memory any more. The memory has no name, so the system takes it back with the last of
the processes, however they end.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import struct
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.forks import renew_in_children
from gulpio2.memory import SharedBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["Lease", "SharedSlots", "borrow"]

# Of each slot: the worker that fills it or has sent it (0: none), how often it has been
# claimed, and whether the trainer has it.
_STATE = struct.Struct("<QQQ")
_BORROWED_AT = 16


class Lease:
    """A slot that a worker has claimed, and what is taken of it already.

    Attributes
    ----------
    slot : int
        Which.
    turn : int
        How often it had been claimed by then.
    """

    def __init__(self, slots: SharedSlots, slot: int, turn: int) -> None:
        self._slots = slots
        self.slot = slot
        self.turn = turn
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any] | None:
        """Take memory for an array; None where the slot has too little left."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        start = self._used
        if start + size > self._slots.slot_bytes:
            return None
        self._used = -(-(start + size) // 64) * 64
        at = self._slots.start_of(self.slot) + start
        return np.ndarray(shape, dtype, self._slots.memory, at)


class SharedSlots:
    """Slots of memory that several processes have mapped.

    Parameters
    ----------
    num_slots : int
        How many batches may be on their way or in use.
    slot_bytes : int
        Largest batch. Neither costs memory before it is used.

    Raises
    ------
    OSError
        The system has no such memory.
    """

    def __init__(self, num_slots: int, slot_bytes: int) -> None:
        page = mmap.PAGESIZE
        self.num_slots = num_slots
        self.slot_bytes = -(-slot_bytes // page) * page
        self.name = secrets.token_hex(8)
        self._table_bytes = -(-num_slots * _STATE.size // page) * page
        size = self._table_bytes + self.num_slots * self.slot_bytes
        self._open(SharedBytes(size))

    def _open(self, shared: SharedBytes) -> None:
        self._shared = shared
        self.memory = shared.memory
        renew_in_children(self, SharedSlots._renew)
        _known[self.name] = self

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._lent: weakref.WeakValueDictionary[int, Any] = (
            weakref.WeakValueDictionary()
        )

    def start_of(self, slot: int) -> int:
        """Give the first byte of a slot."""
        return self._table_bytes + slot * self.slot_bytes

    def address_of(self, slot: int) -> int:
        """Give the address of a slot in this process."""
        table = np.frombuffer(self.memory, np.uint8, 1)
        address: int = table.__array_interface__["data"][0]
        return address + self.start_of(slot)

    # --- in workers --------------------------------------------------------------

    def claim(self) -> Lease | None:
        """Take a free slot; None if there is none.

        A slot that a worker left behind is free: its processes are gone, and whatever
        they sent is refused by `borrow`.
        """
        own = os.getpid()
        with self._alone():
            for slot in range(self.num_slots):
                owner, turn, borrowed = self._state(slot)
                # An owner that lives is filling it, or has sent what it put there.
                if borrowed or owner == own or (owner and _lives(owner)):
                    continue
                self._set_state(slot, own, turn + 1, 0)
                return Lease(self, slot, turn + 1)
        return None

    def give_back(self, lease: Lease) -> None:
        """Free a slot that was claimed and not sent."""
        with self._alone():
            self._set_state(lease.slot, 0, lease.turn, 0)

    # --- in the trainer ----------------------------------------------------------

    def borrow(self, slot: int, turn: int, at: int, shape: Any, dtype: str) -> Any:
        """Give an array that a worker has filled.

        Parameters
        ----------
        slot, turn : int
            Of its lease.
        at : int
            First byte, counted from that of the slot.
        shape, dtype
            Of the array.

        Returns
        -------
        numpy.ndarray
            The slot is free when this array is gone, and all that refers to it.

        Raises
        ------
        RuntimeError
            The worker that sent it is gone and another has taken the slot.
        """
        with self._alone():
            _, now, _ = self._state(slot)
            if now != turn:
                raise RuntimeError(
                    "a batch was lost: the worker process that made it has ended "
                    "before it arrived. See what ended it, perhaps a lack of memory"
                )
            self._set_state(slot, 0, turn, 1)
            whole = self._lent.get(slot)
            if whole is None:  # else another array of the same batch
                whole = np.frombuffer(
                    self.memory, np.uint8, self.slot_bytes, self.start_of(slot)
                )
                # Numpy's views refer to it, and torch's tensors to those: its end is
                # the end of them all.
                end = weakref.finalize(whole, _return, self.memory, slot, os.getpid())
                end.atexit = False
                self._lent[slot] = whole
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return whole[at : at + count].view(dtype).reshape(shape)

    # --- state -------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of all processes, which the system frees when one ends."""
        with self._lock:
            fcntl.lockf(self._shared.fd, fcntl.LOCK_EX, 1)
            try:
                yield
            finally:
                fcntl.lockf(self._shared.fd, fcntl.LOCK_UN, 1)

    def _state(self, slot: int) -> tuple[int, int, int]:
        owner, turn, borrowed = _STATE.unpack_from(self.memory, slot * _STATE.size)
        return owner, turn, borrowed

    def _set_state(self, slot: int, owner: int, turn: int, borrowed: int) -> None:
        _STATE.pack_into(self.memory, slot * _STATE.size, owner, turn, borrowed)

    def __getstate__(self) -> dict[str, Any]:
        """Send it to a process that is being started, with its memory."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("memory", "_lock", "_lent")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up the memory here."""
        self.__dict__.update(state)
        self._open(self._shared)


def _return(memory: mmap.mmap, slot: int, process: int) -> None:
    """Free a slot of which nothing is in use any more."""
    # A fork of the trainer has copies of its arrays, and returns nothing. Without the
    # lock: this comes at any time, also to a thread that has it.
    if os.getpid() == process:
        at = slot * _STATE.size + _BORROWED_AT
        memory[at : at + 8] = bytes(8)


_known: weakref.WeakValueDictionary[str, SharedSlots] = weakref.WeakValueDictionary()


def borrow(name: str, slot: int, turn: int, at: int, shape: Any, dtype: str) -> Any:
    """Give an array of the slots of this name, see `SharedSlots.borrow`."""
    slots = _known.get(name)
    if slots is None:
        raise RuntimeError(
            "a batch has arrived in a process that does not have its memory: take "
            "batches in the process that made the loader, and keep its collate_fn"
        )
    return slots.borrow(slot, turn, at, shape, dtype)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
