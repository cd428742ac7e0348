"""A ``DataLoader`` with worker processes, to be measured as a `GulpLoader` is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2._optional import require
from gulpio2.errors import GulpError
from gulpio2.torch.recycling import RecyclingCollate
from gulpio2.torch.samplers import ResumableSampler
from gulpio2.torch.timed import TimedCollate

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from gulpio2.order import Order, OrderCursor
    from gulpio2.torch.profile import LoaderProfile

__all__ = ["WorkersLoader"]


# How lines of a traceback begin.
_PLACE, _CODE = '  File "', "    "
# What torch says of an error that came there, and of one that is gone.
_IN_WORKER, _ENDED = "in DataLoader worker process", "exited unexpectedly"


class WorkersLoader:
    """A ``DataLoader`` with what this package has for one.

    Its profile is that of the last iteration, without the first batches of its workers,
    which are started for it and end with it.

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
        self.prefetch = prefetch
        self._batches: Generator[Any, None, None] | None = None
        self._batch_size = batch_size
        self._sampler = ResumableSampler(order)
        self._loader: Any = data.DataLoader(
            dataset,
            batch_size=batch_size,
            sampler=self._sampler,
            num_workers=num_workers,
            prefetch_factor=prefetch,
            collate_fn=TimedCollate(RecyclingCollate()),
        )

    @property
    def cursor(self) -> OrderCursor:
        """Where the run stands."""
        return self._sampler.cursor

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch."""
        self._sampler.set_epoch(epoch)

    @property
    def batches_left(self) -> int:
        """Batches that are left of the epoch."""
        return -(-self._sampler.samples_left // self._batch_size)

    def __iter__(self) -> Iterator[int]:
        """Give, of each batch in the rest of the epoch, the frames decoded for it.

        Raises
        ------
        GulpError
            A worker could not make a batch, or has ended.
        """
        self._batches = self._sampler.track(self._loader)
        before = self.profile().num_frames
        try:
            for number, _ in enumerate(self._batches, start=1):
                after = self.profile().num_frames
                yield after - before
                before = after
                if number == self.num_threads:  # workers were started for these
                    self.reset_profile()
                    before = 0
        except Exception as error:
            if (told := _told_by_worker(error)) is None:
                raise
            raise GulpError(told) from error

    def close(self) -> None:
        """End the workers of an iteration that was left."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    def profile(self) -> LoaderProfile:
        """Say where the time went."""
        return self._sampler.profile()

    def reset_profile(self) -> None:
        """Forget what was measured."""
        self._sampler.reset_profile()


def _told_by_worker(error: Exception) -> str | None:
    """Say in short what torch says in many lines; None where it is no worker's."""
    text = str(error)
    if _ENDED in text:
        return (
            f"{text.strip().splitlines()[0]}. It was killed, perhaps as there was no "
            "memory left: take fewer workers, or a smaller batch"
        )
    if _IN_WORKER not in text:
        return None
    # Behind the last place of the traceback come the class and what it says.
    lines = text.strip().splitlines()
    places = [number for number, line in enumerate(lines) if line.startswith(_PLACE)]
    last = places[-1] + 1 if places else 0
    while last < len(lines) and lines[last].startswith(_CODE):
        last += 1
    kind, _, said = "\n".join(lines[last:]).partition(": ")
    return said or kind or text
