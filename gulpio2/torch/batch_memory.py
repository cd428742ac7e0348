"""The memory of a loader's batches, and who fills it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gulpio2.order import OrderCursor
from gulpio2.torch.filling import SampleMaker
from gulpio2.torch.ring import Slot, make_slots, share_memory
from gulpio2.torch.seeding import places_of
from gulpio2.torch.worker_pool import WorkerPool
from gulpio2.torch.worker_process import Setup

if TYPE_CHECKING:
    from gulpio2.torch.filling import MakerArguments

__all__ = ["BatchMemory"]

# Samples looked at for the size of the frames where the first ones are damaged.
_NUM_LOOKED_AT = 100


class BatchMemory:
    """Memory of several batches, made when it is first needed.

    Parameters
    ----------
    num_slots : int
        Batches.
    batch_size : int
        Samples of each.
    arguments : MakerArguments
        Of what fills it.
    num_workers : int
        Processes that fill it; 0: threads of this one.
    tensor, pinned : bool
        See `Slot`.

    Attributes
    ----------
    own_maker : SampleMaker
        Makes samples in this process.
    slots : list of Slot
        The memory, once it is there.
    """

    def __init__(
        self,
        num_slots: int,
        batch_size: int,
        arguments: MakerArguments,
        *,
        num_workers: int,
        tensor: bool,
        pinned: bool,
    ) -> None:
        self.own_maker = SampleMaker(arguments)
        self.slots: list[Slot] = []
        self._num_slots = num_slots
        self._batch_size = batch_size
        self._arguments = arguments
        self._num_workers = num_workers
        self._kind = {"tensor": tensor, "pinned": pinned}
        self._pool: WorkerPool | None = None

    def prepare(self, cursor: OrderCursor) -> None:
        """Make the memory and the processes that fill it, where they are not usable.

        Parameters
        ----------
        cursor : OrderCursor
            Where the run stands.
        """
        pool = self._pool
        if self.slots and (pool is None or pool.is_usable):
            return
        self.end_workers()
        shape, shared = (self._batch_size, *self.sample_shape(cursor)), None
        if self._num_workers:
            shared = share_memory(self._num_slots, shape)
            setup = Setup(self._arguments, shared, self._num_slots, shape)
            self._pool = WorkerPool(self._num_workers, setup)
        self.slots = make_slots(self._num_slots, shape, **self._kind, shared=shared)

    def sample_shape(self, cursor: OrderCursor) -> tuple[int, ...]:
        """Give the shape that a sample has in a batch."""
        # What is left of the epoch may be damaged, where the whole epoch is not.
        return self.own_maker.sample_shape(
            draw
            for each in (cursor, OrderCursor(cursor.order))
            for draw in itertools.islice(places_of(each), _NUM_LOOKED_AT)
        )

    @property
    def maker(self) -> SampleMaker | WorkerPool:
        """What makes the samples of batches."""
        return self._pool or self.own_maker

    def end_workers(self) -> None:
        """End the processes, if there are any, and let go of what they share.

        Batches in it that were given out stay; later ones are in other memory.
        """
        if self._pool is not None:
            self._pool.close()
            self._pool, self.slots = None, []
