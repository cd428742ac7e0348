"""Where the time of a ``DataLoader``'s workers goes: sent along with its batches."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.closed import ClosedBatch
from gulpio2.torch.collate import default_collate
from gulpio2.torch.working import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gulpio2.torch.damage import DamageCount
    from gulpio2.torch.profile import Clock, WorkersClock

__all__ = ["TimedCollate"]


class TimedCollate:
    """Collate, and tell the sampler where the time went.

    Give it to a ``torch.utils.data.DataLoader`` as its ``collate_fn``, iterate by the
    ``track`` of its `ResumableSampler`, and ask that for its ``profile``.

    Parameters
    ----------
    collate : callable, optional
        Makes a batch of samples: a `RecyclingCollate`, a `TolerantCollate`, or any
        other. Default: `default_collate`.

    Examples
    --------
    ::

        loader = DataLoader(
            dataset,
            batch_size=8,
            sampler=sampler,
            num_workers=2,
            collate_fn=TimedCollate(RecyclingCollate()),
        )
        for batch in sampler.track(loader):
            ...
        print(sampler.profile())

    Notes
    -----
    Samples of the datasets of this package are measured: their reading, whoever asks
    for it in the worker, and their transforms. Of others only the collating is.
    """

    def __init__(
        self, collate: Callable[[Sequence[Any]], Any] = default_collate
    ) -> None:
        if not callable(collate):
            raise TypeError(f"collate is {collate!r}, expected a function of samples")
        self.collate = collate
        STOPWATCH.is_on = True  # here, and so in workers that are forked

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Measure in this worker, too, which was not forked."""
        vars(self).update(state)
        STOPWATCH.is_on = True

    def __call__(self, data_batch: Sequence[Any]) -> Any:
        """Turn samples into a batch, and close it: for ``track`` to open."""
        start = perf_counter()
        batch = self.collate(data_batch)
        return _TimedBatch(batch, WORK.end(start, len(data_batch)))


class _TimedBatch(ClosedBatch):
    """A batch, and what it took."""

    def __init__(self, batch: Any, clock: Clock) -> None:
        super().__init__(batch)
        self._clock = clock
        self._worker = os.getpid()

    def tell(self, damage: DamageCount, workers: WorkersClock) -> None:
        """Add what it took."""
        del damage
        workers.add(self._worker, self._clock)
