"""A ``DataLoader`` with worker processes, to be measured as a `GulpLoader` is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2._optional import require
from gulpio2.errors import FormatError, GulpError
from gulpio2.torch.recycling import RecyclingCollate
from gulpio2.torch.samplers import ResumableSampler
from gulpio2.torch.timed import TimedCollate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.order import Order, OrderCursor
    from gulpio2.torch.profile import LoaderProfile

__all__ = ["DecodedBatch", "WorkersLoader"]


# What torch says of an error that came there.
_IN_WORKER = "in DataLoader worker process"


class DecodedBatch(NamedTuple):
    """A batch, of which only its size is of interest."""

    num_frames: int
    """Frames decoded for it."""


class WorkersLoader:
    """A ``DataLoader`` with what this package has for one.

    Its workers go on from one iteration to the next, as trainers mostly have them.

    Parameters
    ----------
    dataset : dataset
        Of clips of one size.
    order : Order
        Over its samples.
    batch_size : int
        Samples of a batch.
    num_workers : int
        Worker processes, at least one.
    prefetch : int
        Batches that each of them makes ahead.
    """

    def __init__(
        self,
        dataset: Any,
        order: Order,
        *,
        batch_size: int,
        num_workers: int,
        prefetch: int,
    ) -> None:
        data = require("torch.utils.data", extra="torch")
        self.dataset = dataset
        self.num_threads = num_workers
        self._batch_size = batch_size
        self._sampler = ResumableSampler(order)
        self._loader: Any = data.DataLoader(
            dataset,
            batch_size=batch_size,
            sampler=self._sampler,
            num_workers=num_workers,
            prefetch_factor=prefetch,
            persistent_workers=True,
            collate_fn=TimedCollate(RecyclingCollate()),
        )

    @property
    def cursor(self) -> OrderCursor:
        """Where the run stands."""
        return self._sampler.cursor

    @property
    def epoch(self) -> int:
        """The epoch that is under way."""
        return self._sampler.epoch

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch."""
        self._sampler.set_epoch(epoch)

    def __len__(self) -> int:
        """Count the batches that are left of the epoch."""
        return -(-len(self._sampler) // self._batch_size)

    def __iter__(self) -> Iterator[DecodedBatch]:
        """Give the rest of the epoch.

        Raises
        ------
        FormatError
            A worker could not make a batch.
        """
        before = self.profile().num_frames
        try:
            for _ in self._sampler.track(self._loader):
                after = self.profile().num_frames
                yield DecodedBatch(after - before)
                before = after
        except (GulpError, RuntimeError) as error:
            text = str(error)
            if _IN_WORKER not in text:
                raise
            # Torch tells of it in many lines, the last of which says what was wrong.
            *_, last = text.strip().splitlines()
            raise FormatError(last.partition(": ")[2] or last) from error

    def close(self) -> None:
        """End nothing: the workers are for the next iteration, and end with this."""

    def profile(self) -> LoaderProfile:
        """Say where the time went."""
        return self._sampler.profile()

    def reset_profile(self) -> None:
        """Forget what was measured."""
        self._sampler.reset_profile()
