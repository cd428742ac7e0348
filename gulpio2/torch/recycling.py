"""Batches of a ``DataLoader``'s workers, in memory that is used again.

A fresh piece of shared memory for each batch costs as much per frame as decoding it:
every page of it is cleared, and mapped twice. Here workers write into memory that the
trainer has mapped already, and again when the trainer has let go of the batch.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from typing import TYPE_CHECKING, Any

from gulpio2._optional import require
from gulpio2.arguments import require_number
from gulpio2.codecs.output import lead_of
from gulpio2.memory import is_for_new_process
from gulpio2.torch.collate import collate_leaves, default_collate, stack_leaves
from gulpio2.torch.sending import require_sendable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from gulpio2.torch.shared import Lease, SharedSlots

__all__ = ["RecyclingCollate", "get_samples"]

# Bytes, below which a tensor is sent with the message: mapping memory costs more.
_SMALL = 64 * 1024
# Types of tensors that numpy has too.
_KINDS_OF_NUMPY = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class RecyclingCollate:
    """Collate like `default_collate`, in a worker into memory that is used again.

    Give it to a ``torch.utils.data.DataLoader`` as its ``collate_fn``. Batches are what
    they would be without, and stay as they are for as long as anything in the trainer
    refers to them; then a worker fills their memory again, also for a process that was
    forked meanwhile: that copies what it keeps. Samples of a dataset of this package
    that has no transform are decoded straight into that memory.

    Parameters
    ----------
    num_slots : int, default 32
        Batches on their way or in use at the same time. Where they are all taken, a
        batch comes in fresh memory as usual.
    slot_bytes : int, default 512 MiB
        Largest batch; a larger one comes in fresh memory. It is address space, and
        costs memory only as far as batches have filled it.

    Examples
    --------
    ::

        loader = DataLoader(
            dataset,
            batch_size=8,
            sampler=ResumableSampler(dataset),
            num_workers=2,
            collate_fn=RecyclingCollate(),
        )

    Notes
    -----
    In a worker it gives what becomes a batch when it arrives in the trainer: a collate
    function that changes batches has to come before, on samples, or after.

    The memory has no name and no file: it is gone with the processes that have it,
    even if they are killed. On systems without such memory this is `default_collate`.
    A copy, or one that was pickled, has memory of its own.
    """

    def __init__(self, *, num_slots: int = 32, slot_bytes: int = 512 << 20) -> None:
        self._sizes = (
            require_number("num_slots", num_slots, 1),
            require_number("slot_bytes", slot_bytes, 1),
        )
        self._slots = _make_slots(*self._sizes)
        self._lease: Lease | None = None
        self.has_lent = False
        """Whether the last batch has memory that is used again."""
        # By the address of its first sample: memory of whole samples, and the address
        # where each begins. A batch has several where it has clips of several datasets.
        self._reserved: dict[int, tuple[Any, list[int]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Send it with its memory to a worker that is started, else without."""
        state = {**vars(self), "_lease": None, "has_lent": False, "_reserved": {}}
        if not is_for_new_process():
            del state["_slots"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Have memory of its own, unless that of the trainer was sent along."""
        # What arrives finds its memory by a name: two must not have the same one.
        vars(self).update(state)
        if "_slots" not in state:
            self._slots = _make_slots(*self._sizes)

    def __call__(self, data_batch: Sequence[Any]) -> Any:
        """Turn samples into a batch, see `default_collate`."""
        global _in_worker
        torch = require("torch", extra="torch")
        if self._slots is None or torch.utils.data.get_worker_info() is None:
            return default_collate(data_batch)
        _in_worker = self  # from the next batch on, datasets ask for memory
        if self._lease is None:
            self._lease = self._slots.claim()
        self.has_lent = False
        try:
            batch = collate_leaves(list(data_batch), self._leaf)
            require_sendable(batch)
        except BaseException:
            self.has_lent = False
            raise
        else:
            return batch
        finally:
            if self._lease is not None and not self.has_lent:
                self._slots.give_back(self._lease)
            self._lease = None
            self._reserved.clear()

    def reserve(
        self, count: int, shape: tuple[int, ...]
    ) -> npt.NDArray[np.uint8] | None:
        """Give memory for samples of a batch that is begun; None if there is none.

        Each call gives other memory: several datasets may ask for samples of one batch.
        """
        if self._slots is None:
            return None
        lead = lead_of(shape)
        size = count * math.prod(shape)
        with _taking:
            # It may be there: of this batch, or of one that came to nothing.
            if self._lease is None:
                self._lease = self._slots.claim()
            if self._lease is None:
                return None
            block = self._lease.take((lead + size,), "u1")
            if block is None and lead:  # one that just fits
                lead, block = 0, self._lease.take((size,), "u1")
        if block is None:
            return None
        memory = block[lead:].reshape(count, *shape)
        starts = [row.__array_interface__["data"][0] for row in memory]
        self._reserved[starts[0]] = memory, starts
        return memory

    def _leaf(self, leaves: list[Any]) -> Any:
        torch = require("torch", extra="torch")
        tensors = all(
            isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
            for leaf in leaves
        )
        if tensors and len(leaves) * leaves[0].nbytes >= _SMALL:
            return self._lend(torch, leaves)
        made = stack_leaves(leaves, torch.stack)
        if not isinstance(made, torch.Tensor):
            return made
        # What cannot be sent has to raise here: torch's queue would tell nobody.
        plain = _are_plain(torch, [made])
        return _Inline(made.numpy()) if plain else default_collate(leaves)

    def _lend(self, torch: Any, leaves: list[Any]) -> Any:
        """Put a tensor into the slot, and say where; or as usual if it cannot be."""
        lease, first = self._lease, leaves[0]
        # In the order of the memory, as `default_collate`.
        moved = first.ndim >= 3 and not first.is_contiguous()
        parts = [leaf.movedim(-3, -1) for leaf in leaves] if moved else leaves
        if lease is None or self._slots is None or not _are_plain(torch, parts):
            return default_collate(leaves)
        memory = self._where_they_are(parts)
        if memory is None:
            memory = lease.take((len(parts), *parts[0].shape), parts[0].numpy().dtype)
            if memory is None:
                return default_collate(leaves)
            torch.stack(parts, out=torch.from_numpy(memory))
        self.has_lent = True
        return _Lent(self._slots, lease, memory, moved=moved)

    def _where_they_are(self, leaves: list[Any]) -> npt.NDArray[np.uint8] | None:
        """Give the memory that was reserved, if these are all that was put there."""
        starts = [leaf.data_ptr() for leaf in leaves]
        memory, wanted = self._reserved.get(starts[0], (None, []))
        if memory is None or leaves[0].shape != memory.shape[1:]:
            return None
        return memory if starts == wanted else None


def _make_slots(num_slots: int, slot_bytes: int) -> SharedSlots | None:
    """Make the memory, where the system has it."""
    # Elsewhere such memory would be a file, and its pages be written to the disk.
    if hasattr(os, "memfd_create"):
        from gulpio2.torch.shared import SharedSlots

        with contextlib.suppress(OSError):
            return SharedSlots(num_slots, slot_bytes)
    return None


def _are_plain(torch: Any, leaves: list[Any]) -> bool:
    """Tell whether numpy can have them as they are."""
    return str(leaves[0].dtype).removeprefix("torch.") in _KINDS_OF_NUMPY and all(
        type(leaf) is torch.Tensor
        and leaf.dtype == leaves[0].dtype
        and leaf.layout == torch.strided
        and leaf.is_contiguous()
        and not leaf.requires_grad
        and leaf.device.type == "cpu"
        and leaf.shape == leaves[0].shape
        for leaf in leaves
    )


class _Inline:
    """A small tensor, which goes with the message."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_tensor, (self.array,)


class _Lent:
    """A tensor in a slot, which arrives as a tensor."""

    def __init__(
        self,
        slots: SharedSlots,
        lease: Lease,
        memory: npt.NDArray[Any],
        *,
        moved: bool,
    ) -> None:
        at = memory.__array_interface__["data"][0] - slots.address_of(lease.slot)
        place = (slots.name, lease.slot, lease.turn, at)
        self.arguments = (*place, memory.shape, memory.dtype.str, moved)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, self.arguments


def _as_tensor(array: npt.NDArray[Any]) -> Any:
    return require("torch", extra="torch").from_numpy(array)


def _arrived(*arguments: Any) -> Any:
    from gulpio2.torch.shared import borrow

    *place, moved = arguments
    tensor = _as_tensor(borrow(*place))
    return tensor.movedim(-1, -3) if moved else tensor


# That of this worker's loader, once it has made a batch.
_in_worker: RecyclingCollate | None = None
# A dataset may read from several of ours at once, in threads.
_taking = threading.Lock()


def get_samples(
    dataset: Any,
    indices: Sequence[int],
    find: Callable[[Any, int], tuple[Any, int] | None],
) -> list[Any]:
    """Make the samples of a batch, where possible in memory that it is sent in.

    Parameters
    ----------
    dataset : dataset or wrapper
        Of which they are.
    indices : sequence of int
        Which ones.
    find : callable
        Gives the dataset that makes one of them, and the index there; None where the
        sample has to be asked for as it is.

    Returns
    -------
    list
        What ``dataset[index]`` gives for each.
    """
    makers = [find(dataset, index) for index in indices] if _in_worker else []
    found = [maker for maker in makers if maker is not None]
    if _in_worker is None or not found or len(found) < len(makers):
        return [dataset[index] for index in indices]
    shape = getattr(found[0][0], "shape_of_clips", None)
    memory = None if shape is None else _in_worker.reserve(len(found), shape)
    samples = []
    for number, (leaf, place) in enumerate(found):
        sample = None
        # A dataset of another class has no such shape.
        if memory is not None and getattr(leaf, "shape_of_clips", None) == shape:
            sample = leaf.make_into(place, memory[number])
        samples.append(leaf[place] if sample is None else sample)
    return samples
