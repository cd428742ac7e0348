"""Reading the stored bytes of samples before it is their turn."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING

from gulpio2.codecs.first_frame import TAIL_BYTES
from gulpio2.errors import GulpError

if TYPE_CHECKING:
    from gulpio2.torch.profile import Clock
    from gulpio2.torch.stored import StoredClip

__all__ = ["ReadAhead"]

# Bytes that lie ready at most: thirty clips of 340x256, and still in the caches that
# the processor's cores share.
_MAX_BYTES = 16 << 20
# Bytes. Memory is set aside in such steps.
_STEP = 1 << 16
# Spare memory serves a request if it is at most so many times as large.
_MOST_SPARE = 4
# Seconds for each megabyte, and for a read. Bytes that come more slowly come from a
# disk, or over a network: that is waited for by all threads at once, each for its own.
_SLOW_MEGABYTE, _SLOW_READ = 0.002, 0.001


class ReadAhead:
    """Reads the blocks of samples, in the thread that has just planned them.

    A thread that plans holds the interpreter's lock, and threads that come out of the
    codec wait for it. Reading releases the lock after each sample. To read many samples
    in a row also takes half the time: after a decode, none of the code that reads is in
    the processor's caches.

    Parameters
    ----------
    max_bytes : int, optional
        Of memory that holds blocks.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = self._num_left = max_bytes
        self._lock = threading.Lock()
        self._spare: list[bytearray] = []

    def begin(self) -> None:
        """Start over: memory of what was read and never used does not come back."""
        # Perhaps in a child that was forked while a thread of its parent held it.
        self._lock = threading.Lock()
        self._num_left = self._max_bytes

    def read(self, clip: StoredClip, clock: Clock) -> bool:
        """Read the blocks of a clip, as many as there is memory for.

        Parameters
        ----------
        clip : StoredClip
            It has them afterwards, see `StoredClip.blocks`.
        clock : Clock
            Of this thread.

        Returns
        -------
        bool
            Whether to go on with the next clip: there is memory, and storage is fast.
        """
        clip.ahead = self
        for read in clip.reads[len(clip.blocks) :]:
            memory = self._take(read.length + TAIL_BYTES)
            if memory is None:
                return False
            start = perf_counter()
            try:
                clip.read_next(memory, clock)
            except (GulpError, OSError):  # told when it is the sample's turn
                self.give_back(memory)
                return False
            if clip.blocks[-1] is not memory:
                # A storage with memory of its own, which is not bounded here.
                self.give_back(memory)
                return False
            seconds = perf_counter() - start
            if seconds > _SLOW_READ + _SLOW_MEGABYTE * read.length / 1e6:
                return False
        return True

    def _take(self, length: int) -> bytearray | None:
        with self._lock:
            spare = self._spare
            size = -(-length // _STEP) * _STEP
            fits = bool(spare) and size <= len(spare[-1]) <= _MOST_SPARE * size
            if fits:
                size = len(spare[-1])
            if size > self._num_left:
                return None
            self._num_left -= size
            # One of the wrong size is dropped: too short, or so long that it would
            # count for many.
            memory = spare.pop() if spare else None
        return memory if fits else bytearray(size)

    def give_back(self, memory: bytearray) -> None:
        """Take memory that is not needed any more."""
        with self._lock:
            self._num_left = min(self._num_left + len(memory), self._max_bytes)
            self._spare.append(memory)
