"""Batches of a ``DataLoader`` that come with something for ``track`` to count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn

from gulpio2._optional import require

if TYPE_CHECKING:
    from gulpio2.torch.damage import DamageCount
    from gulpio2.torch.profile import WorkersClock

__all__ = ["ClosedBatch", "open_batch"]


_CLOSED = (
    "a batch of a TolerantCollate, or of a TimedCollate, comes with what is to be "
    "counted: iterate by the track(loader) of the loader's ResumableSampler"
)


class ClosedBatch(ABC):
    """What a collate function made, and what to tell of it; only ``track`` opens it.

    Parameters
    ----------
    batch : object
        What a loop is to get; it may be closed itself.
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    @abstractmethod
    def tell(self, damage: DamageCount, workers: WorkersClock) -> None:
        """Say what there is to count."""

    def pin_memory(self) -> ClosedBatch:
        """Move the batch to page-locked memory, where a loader asks for that."""
        pinning = require("torch.utils.data._utils.pin_memory", extra="torch")
        self.batch = pinning.pin_memory(self.batch)
        return self

    def _refuse(self, *_: Any) -> NoReturn:
        """Refuse: nobody would count."""
        raise ValueError(_CLOSED)

    __getitem__ = __iter__ = __len__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what a batch may have, and this has not."""
        raise AttributeError(name if name.startswith("__") else f"{name}: {_CLOSED}")


def open_batch(batch: Any, damage: DamageCount, workers: WorkersClock) -> Any:
    """Give what is in a batch, and count what there is to count; others as they are.

    Raises
    ------
    CorruptFrameError
        More samples are damaged than are put up with.
    """
    while isinstance(batch, ClosedBatch):
        batch.tell(damage, workers)
        batch = batch.batch
    return batch
