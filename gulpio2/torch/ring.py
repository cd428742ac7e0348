"""Memory of batches that is used again and again."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2._optional import require
from gulpio2.codecs.output import empty_frames

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Place", "Slot", "make_slots"]


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

    Attributes
    ----------
    array : numpy.ndarray
        The memory, uint8.
    gives_tensors : bool
        Whether batches are tensors.
    places : list of Place
        The same memory by sample and frame.
    """

    def __init__(self, shape: tuple[int, ...], *, tensor: bool, pinned: bool) -> None:
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
        else:
            # By numpy, which asks the system for huge pages: into those two threads
            # decode 2 % faster than into the small ones that torch takes.
            self.array = empty_frames(shape)
        self.array.fill(0)  # mapped now: page faults cost as much as decoding does
        self._address = self.array.ctypes.data
        frames = self.array.reshape(shape[0], math.prod(shape[1:-3]), *shape[-3:])
        self.places = [Place(shape[1:-3], list(sample)) for sample in frames]

    def beginning(self, count: int) -> Any:
        """Give the first samples as an array, or as a tensor.

        A whole batch is mostly the same tensor, as making one takes a sixth of the time
        of decoding a frame of 340x256. But torch gives a tensor that is sent to another
        process other memory, and whoever had it may have given it another shape.
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
    num_slots: int, shape: tuple[int, ...], *, tensor: bool, pinned: bool
) -> list[Slot]:
    """Make the memory of several batches.

    Where there is no CUDA device, memory is not pinned, and a warning says so: the
    program may be tried out on such a machine, as with torch's own ``DataLoader``.
    """
    if pinned and not require("torch", extra="torch").cuda.is_available():
        warnings.warn(
            "pin_memory=True needs a CUDA device, and there is none: batches are in "
            "ordinary memory",
            stacklevel=2,
        )
        pinned = False
    return [Slot(shape, tensor=tensor, pinned=pinned) for _ in range(num_slots)]
