"""Where the time of a ``DataLoader``'s workers goes: sent along with its batches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gulpio2.arguments import callable_or
from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.closed import ClosedBatch
from gulpio2.torch.collate import default_collate
from gulpio2.torch.damaged import TolerantCollate, is_left_out
from gulpio2.torch.recycling import RecyclingCollate
from gulpio2.torch.working import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    Reading is measured whoever asks for it in the thread that makes samples. Of samples
    of this package's datasets their transforms are, too, and what else they take.
    """

    def __init__(
        self, collate: Callable[[Sequence[Any]], Any] | None = default_collate
    ) -> None:
        collate = callable_or("collate", collate, default_collate)
        inside = [*_chain(collate)]
        if any(isinstance(each, TimedCollate) for each in inside):
            raise TypeError("there is a TimedCollate inside of this one: one measures")
        self.collate = collate
        recycling = [each for each in inside if isinstance(each, RecyclingCollate)]
        self._recycling = recycling[0] if recycling else None
        STOPWATCH.is_on = True  # here, and so in workers that are forked

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Measure in this worker, too, which was not forked."""
        vars(self).update(state)
        STOPWATCH.is_on = True

    def __call__(self, data_batch: Sequence[Any]) -> Any:
        """Turn samples into a batch, and close it: for ``track`` to open."""
        # Without a batch_size it is a sample by itself.
        samples = data_batch if isinstance(data_batch, list) else [data_batch]
        count = sum(not is_left_out(sample) for sample in samples)
        if self._recycling is not None:
            self._recycling.has_lent = False  # it is not asked for a batch of nothing
        batch, clock = WORK.collate(self.collate, data_batch, count)
        return _TimedBatch(batch, clock, self._recycling)


def _chain(collate: Any) -> Iterator[Any]:
    """Give a collate function, and those inside of it."""
    yield collate
    while isinstance(collate, (TimedCollate, TolerantCollate)):
        collate = collate.collate
        yield collate


class _TimedBatch(ClosedBatch):
    """A batch, and what it took."""

    def __init__(
        self, batch: Any, clock: Clock, recycling: RecyclingCollate | None
    ) -> None:
        super().__init__(batch)
        self._memory = {
            "recycles": recycling is not None,
            "is_recycled": recycling is not None and recycling.has_lent,
        }
        self._clock = clock
        self._process = os.getpid()

    def tell(self, damage: DamageCount, workers: WorkersClock) -> None:
        """Add what it took."""
        del damage
        workers.add(self._process, self._clock, **self._memory)
