"""Memory of batches that is used again and again."""

from __future__ import annotations

import math
import mmap
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2._optional import require
from gulpio2.codecs.output import empty_frames, lead_of
from gulpio2.errors import GulpWarning
from gulpio2.memory import SharedBytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["Place", "Slot", "make_slots", "share_memory", "shared_arrays"]


class Place(NamedTuple):
    """Where the frames of one sample of a batch are to be."""

    shape: tuple[int, ...]
    """Of the frames, see `gulpio2.torch.plan.Plan`."""
    rows: list[npt.NDArray[np.uint8]]
    """The memory of each; views are made once, not for each batch."""


class Slot:
    """The memory of one batch.

    Parameters
    ----------
    shape : tuple of int
        ``(B, ..., H, W, C)``.
    tensor : bool
        Whether batches are to be tensors.
    pinned : bool
        Page-locked memory, from which a GPU copies while the program goes on.
    number : int
        Which of a loader's it is.
    memory : numpy.ndarray, optional
        Of this shape, shared with processes that fill it. Page-locked memory cannot be:
        what they have made is copied there.

    Attributes
    ----------
    array : numpy.ndarray
        The memory, uint8.
    gives_tensors : bool
        Whether batches are tensors.
    places : list of Place
        The same memory by sample and frame.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        tensor: bool,
        pinned: bool,
        number: int = 0,
        memory: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        self.number = number
        self.gives_tensors = tensor or pinned
        self.array: npt.NDArray[np.uint8]
        self._copied: Any = None
        # Looked up once: what is done for a batch is never in the processor's caches.
        torch: Any = require("torch", extra="torch") if self.gives_tensors else None
        self._as_tensor = torch and torch.from_numpy
        self._tensor: Any = None  # that of the whole batch which was given last
        self._pinned: Any = None
        if pinned:
            # Batches are parts of this tensor: of its own memory torch knows what is
            # still copied, and gives it to nobody else before, should the loader go.
            self._pinned = torch.empty(shape, dtype=torch.uint8, pin_memory=True)
            self.array = self._pinned.numpy()
        elif memory is not None:
            self.array = memory
        else:
            # By numpy, which asks the system for huge pages: into those two threads
            # decode 2 % faster than into the small ones that torch takes.
            self.array = empty_frames(shape)
        if memory is None:
            self.array.fill(0)  # mapped now: page faults cost as much as decoding does
        self._filled = memory if pinned else None
        self._address = self.array.ctypes.data
        frames = self.array.reshape(shape[0], math.prod(shape[1:-3]), *shape[-3:])
        self.places = [Place(shape[1:-3], list(sample)) for sample in frames]

    def beginning(self, count: int) -> Any:
        """Give the first samples as an array, or as a tensor.

        The tensor of a whole batch is kept, as making one takes a sixth of the time of
        decoding a frame of 340x256. It is made anew where torch has moved it to other
        memory, to send it to another process, or where somebody has given it another
        shape.
        """
        if not self.gives_tensors:
            return self.array[:count]
        if self._pinned is not None and self._pinned.data_ptr() == self._address:
            return self._pinned[:count]
        if count < len(self.array):
            return self._as_tensor(self.array[:count])
        tensor, array = self._tensor, self.array
        if (
            tensor is None
            or tensor.data_ptr() != self._address
            or tensor.shape != array.shape
            or tensor.stride() != array.strides  # of bytes, as uint8 has
        ):
            tensor = self._tensor = self._as_tensor(array)
        return tensor

    def take_over(self, rows: Sequence[int]) -> None:
        """Take what other processes have put into these places of shared memory."""
        if self._filled is not None:
            for row in rows:
                self.array[row] = self._filled[row]

    def released(self) -> None:
        """Note what the GPU still has to copy out of it, now that nobody uses it."""
        if self._pinned is not None:
            torch = require("torch", extra="torch")
            self._copied = torch.cuda.current_stream().record_event()

    def wait_until_copied(self) -> None:
        """Return once the GPU has copied what it was to copy; from any thread."""
        copied = self._copied
        if copied is not None:
            copied.synchronize()


def make_slots(
    num_slots: int,
    shape: tuple[int, ...],
    *,
    tensor: bool,
    pinned: bool,
    shared: SharedBytes | None = None,
) -> list[Slot]:
    """Make the memory of several batches.

    Where there is no CUDA device, memory is not pinned, and a warning says so: the
    program may be tried out on such a machine, as with torch's own ``DataLoader``.
    """
    if pinned and not require("torch", extra="torch").cuda.is_available():
        warnings.warn(
            "pin_memory=True needs a CUDA device, and there is none: batches are in "
            "ordinary memory",
            GulpWarning,
            stacklevel=2,
        )
        pinned = False
    memory: Sequence[Any] = [None] * num_slots
    if shared is not None:
        memory = shared_arrays(shared, num_slots, shape)
    return [
        Slot(shape, tensor=tensor, pinned=pinned, number=number, memory=memory[number])
        for number in range(num_slots)
    ]


def share_memory(num_slots: int, shape: tuple[int, ...]) -> SharedBytes:
    """Make memory of several batches that processes share, see `shared_arrays`.

    Raises
    ------
    OSError
        The system has no such memory.
    """
    return SharedBytes(num_slots * _slot_bytes(shape))


def shared_arrays(
    shared: SharedBytes, num_slots: int, shape: tuple[int, ...]
) -> list[npt.NDArray[np.uint8]]:
    """Give the memory of each batch, as an array of this shape."""
    step, lead = _slot_bytes(shape), lead_of(shape)
    return [
        np.ndarray(shape, np.uint8, shared.memory, number * step + lead)
        for number in range(num_slots)
    ]


def _slot_bytes(shape: tuple[int, ...]) -> int:
    """Give the bytes of a batch, in whole pages."""
    return -(-(math.prod(shape) + lead_of(shape)) // mmap.PAGESIZE) * mmap.PAGESIZE
