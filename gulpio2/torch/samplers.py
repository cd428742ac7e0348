"""Which samples a ``torch.utils.data.DataLoader`` asks for, on each rank.

A sampler is any iterable with a length, so none of these inherits from torch. Rank and
number of ranks are those of ``torch.distributed`` where that is running, else 0 of 1,
with a warning where the environment tells of several processes.
"""

from __future__ import annotations

import gc
import random
import warnings
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gulpio2._optional import require
from gulpio2.arguments import whole_number
from gulpio2.errors import GulpWarning
from gulpio2.order import Order, OrderCursor, PlainOrder
from gulpio2.stopwatch import STOPWATCH
from gulpio2.torch.arguments import (
    default_order,
    require_order,
    require_own_seed,
    require_taken,
    settings_of,
    warn_of_lost_places,
)
from gulpio2.torch.closed import open_batch
from gulpio2.torch.profile import (
    ConsumerClock,
    LoaderProfile,
    WorkersClock,
    profile_of_workers,
)
from gulpio2.torch.ranks import rank_and_count, share_of, shared_seed
from gulpio2.torch.resuming import GivenPlaces, Resumable
from gulpio2.torch.seeding import SampleIndex, places_of
from gulpio2.torch.turns import in_turn
from gulpio2.torch.working import WORK

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sized

__all__ = [
    "DefaultSampler",
    "InfiniteSampler",
    "ResumableSampler",
    "worker_init_fn",
]

Batch = TypeVar("Batch")

# What no loader gives.
_END = object()


class DefaultSampler:
    """Every sample once an epoch, shared out among the ranks.

    Parameters
    ----------
    dataset : sized
        The dataset.
    shuffle : bool, default True
        In a new order each epoch.
    seed : int, optional
        ``seed + epoch`` decides an epoch's order. Default: a random one, the same on
        all ranks.
    round_up : bool, default True
        Begin again so that every rank has equally many.
    """

    def __init__(
        self,
        dataset: Sized,
        shuffle: bool = True,  # noqa: FBT001, FBT002  the interface
        seed: int | None = None,
        round_up: bool = True,  # noqa: FBT001, FBT002  the interface
    ) -> None:
        self.rank, self.world_size = rank_and_count(self, may_be_given=False)
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = shared_seed() if seed is None else whole_number("seed", seed)
        self.round_up = round_up
        self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        """Give this rank's samples of the epoch."""
        count = len(self.dataset)
        order = PlainOrder(count, seed=self.seed + self.epoch, shuffle=self.shuffle)
        last = -(-count // self.world_size) * self.world_size
        places = np.arange(self.rank, last if self.round_up else count, self.world_size)
        return iter(order.indices(0, places % max(1, count)).tolist())

    def __len__(self) -> int:
        """Count this rank's samples of an epoch."""
        count = len(self.dataset)
        if self.round_up:
            return -(-count // self.world_size)
        return len(range(self.rank, count, self.world_size))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is."""
        self.epoch = whole_number("epoch", epoch)


class InfiniteSampler:
    """Samples without end, epoch after epoch, shared out among the ranks.

    Parameters
    ----------
    dataset : sized
        The dataset; not an empty one.
    shuffle : bool, default True
        In a new order each time round.
    seed : int, optional
        Decides the orders. Default: a random one, the same on all ranks.
    """

    def __init__(
        self,
        dataset: Sized,
        shuffle: bool = True,  # noqa: FBT001, FBT002  the interface
        seed: int | None = None,
    ) -> None:
        if not len(dataset):
            raise ValueError("the dataset is empty: there is nothing to go on with")
        self.rank, self.world_size = rank_and_count(self, may_be_given=False)
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = shared_seed() if seed is None else whole_number("seed", seed)

    def __iter__(self) -> Iterator[int]:
        """Give this rank's samples, from the first epoch on."""
        count = len(self.dataset)
        order = PlainOrder(count, seed=self.seed, shuffle=self.shuffle)
        place, epoch = self.rank, 0
        while True:
            places = np.arange(place, count, self.world_size)
            yield from order.indices(epoch, places).tolist()
            # Where this rank's next sample is, counted from the next epoch's first.
            place = (place - count) % self.world_size
            epoch += 1

    def __len__(self) -> int:
        """Count the samples of the dataset."""
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: it goes on by itself."""


class ResumableSampler(Resumable):
    """The exact global order: saved at any step, taken up by any number of ranks.

    Parameters
    ----------
    order : Order or sized
        An order of `gulpio2.order`, or a dataset to go through once an epoch.
    seed : int, default 0
        Of the order of a dataset; an order has its own.
    shuffle : bool, default True
        Whether to shuffle a dataset.
    rank, num_ranks : int, optional
        This process's share. Default: those of ``torch.distributed``.
    drop_last : bool, default False
        Leave out what cannot be shared out evenly; otherwise an epoch is padded with
        its own first samples.
    max_corrupt : int, default 100
        Damaged samples of a `TolerantDataset` that are put up with, each counted once.

    Attributes
    ----------
    cursor : gulpio2.order.OrderCursor
        Where the run stands.
    num_skipped, num_substituted : int
        Damaged samples so far, of this rank, in batches that were given out.

    Examples
    --------
    >>> sampler = ResumableSampler(range(6), seed=1)
    >>> [int(index) for index in sampler]
    [2, 4, 1, 3, 0, 5]

    With a loader, over which `track` iterates so as to know what was consumed::

        loader = DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=2)
        for epoch in range(sampler.epoch, num_epochs):
            for batch in sampler.track(loader):
                ...
                save(sampler.state_dict())

    Notes
    -----
    It gives a `SampleIndex` for each sample, from which the datasets of this package
    take all randomness: a sample is the same in whichever worker it is made.
    """

    def __init__(
        self,
        order: Order | Sized,
        *,
        seed: int = 0,
        shuffle: bool = True,
        rank: int | None = None,
        num_ranks: int | None = None,
        drop_last: bool = False,
        max_corrupt: int = 100,
    ) -> None:
        rank, num_ranks = share_of(self, rank, num_ranks)
        if isinstance(order, Order):
            require_own_seed(order, seed, shuffle=shuffle)
        elif hasattr(order, "__len__"):
            order = default_order(order, seed, shuffle=shuffle)
        else:
            raise TypeError(
                f"order is {order!r}, expected one of gulpio2.order, or a dataset"
            )
        cursor = OrderCursor(order, rank=rank, num_ranks=num_ranks, drop_last=drop_last)
        super().__init__(cursor, max_corrupt)
        # Where all of an epoch's samples were given from, to nobody who tracks them.
        self._given: tuple[int, int] | None = None
        self._is_tracked = False
        self._has_failed = False
        self._num_given = 0
        self._workers = WorkersClock()
        self._consumer = ConsumerClock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle, or copy, without what was measured."""
        clocks = {"_workers": WorkersClock(), "_consumer": ConsumerClock()}
        return {**super().__getstate__(), **clocks}

    def __iter__(self) -> Iterator[SampleIndex]:
        """Give what this rank still has to do in this epoch."""
        return GivenPlaces(self._give())

    def _give(self) -> Iterator[SampleIndex]:
        place = self.cursor.epoch, self.cursor.position
        if self._given == place and not self._is_tracked:
            warnings.warn(
                "the sampler gives the same samples again: its place in the run moves "
                "by track() alone, as in `for batch in sampler.track(loader)`",
                GulpWarning,
                stacklevel=3,
            )
        for index in places_of(self.cursor, used_here=False):
            self._num_given += 1
            yield index
        self._given = place

    def __len__(self) -> int:
        """Count the samples of this rank in an epoch, the whole of it at any time."""
        return self.cursor.epoch_share

    @property
    def samples_left(self) -> int:
        """Samples that this rank still has in this epoch."""
        return len(self.cursor)

    def track(self, loader: Iterable[Batch]) -> Generator[Batch, None, None]:
        """Iterate over a loader to the end of the epoch, and note what it hands over.

        Parameters
        ----------
        loader : torch.utils.data.DataLoader
            It has this sampler. What it has prefetched does not count as consumed.

        Yields
        ------
        batch
            From the loader. `state_dict` counts it already: save after the step that
            it was for. Left before the end, the next call goes on with the batch after;
            left with the last one, with the next epoch.

        Raises
        ------
        ValueError
            The loader has another sampler, a dataset of more samples than the order
            draws from, or of fewer, batches of a size that nobody says or of another
            than is said (with workers that shows in the epoch's last batches, and
            not where there are as many), or workers that give them in any order.
        RuntimeError
            Another iteration was begun meanwhile, or the state or the epoch was set; or
            the loader ended, and samples that it had taken never came.
        CorruptFrameError
            More than `max_corrupt` samples are damaged.
        """
        settings, cursor = settings_of(loader, self), self.cursor
        dataset: Any = getattr(loader, "dataset", None)
        if hasattr(dataset, "__len__"):
            require_order(cursor.order, len(dataset))
        warn_of_lost_places(dataset)
        with self._turn.lock:
            self._leave_what_is_over()
            place = cursor.epoch, cursor.position
        self._is_tracked = True
        # What is given from here on and not consumed is open, see `num_open`.
        at_first = len(cursor) + self._num_given
        self._workers.begin(
            settings.num_workers,
            are_ended=not settings.workers_persist,
            are_single=settings.are_single,
        )
        batches: Any = None
        while True:
            if STOPWATCH.is_on and not settings.num_workers:
                WORK.begin()  # here, where the consumer may have read, too
            start, is_first = perf_counter(), batches is None
            if is_first:  # which starts workers
                if self._has_failed and settings.num_workers:
                    # An error of torch's holds the iterator that it came out of. Were
                    # that collected in a worker, it would put something into a queue
                    # whose lock a thread of its own may have had at the fork.
                    gc.collect()
                batches = iter(loader)
            self._has_failed = True
            with self._left_at(place):  # a worker may end behind the last batch
                batch: Any = next(batches, _END)
            self._has_failed = batch is _END  # and perhaps too early
            seconds = perf_counter() - start
            self._consumer.waiting += seconds
            if batch is _END:
                break
            start = perf_counter()
            with self._turn.lock:
                self._require_place(place)
                batch = open_batch(batch, self._damage, self._workers)
                num_open = len(cursor) + self._num_given - at_first
                num_samples = min(settings.batch_size, len(cursor))
                require_taken(num_samples, num_open)
                self._advance(num_samples, settings.least_left)
            if is_first:
                self._consumer.starting += max(0.0, seconds - self._workers.first_busy)
            place = cursor.epoch, cursor.position
            self._consumer.batches += 1
            with self._left_at(place):
                yield batch
            del batch  # whose memory the next one may have
            self._consumer.working += perf_counter() - start
        with self._turn.lock:
            self._require_place(place)
            num_open = len(cursor) + self._num_given - at_first
            self._end_epoch(num_open, settings.least_missing)
        self._has_failed = False

    def profile(self) -> LoaderProfile:
        """Say where the time went, and which setting to change first.

        Returns
        -------
        LoaderProfile
            Of what `track` gave out, since the sampler was made, or `reset_profile`.
            What workers did is in it where the loader has a `TimedCollate`. Print it.
        """
        return profile_of_workers(self._workers, self._consumer)

    def reset_profile(self) -> None:
        """Forget what was measured; for after the first steps, which are slower."""
        self._workers.reset()
        self._consumer = ConsumerClock()

    def _require_place(self, place: tuple[int, int]) -> None:
        """Make sure that nobody else has moved on what an iteration counts."""
        if (self.cursor.epoch, self.cursor.position) != place:
            raise RuntimeError(
                "this iteration over the loader has ended, because another was begun, "
                "or the sampler's state or epoch was set: begin a new one"
            )

    @in_turn
    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch; the one under way is gone on with, not begun again."""
        if epoch != self.cursor.epoch:
            self.cursor.set_epoch(epoch)


def worker_init_fn(worker_id: int, num_workers: int, rank: int, seed: int) -> None:
    """Seed ``random``, numpy and torch in a worker process, each with its own seed.

    Parameters
    ----------
    worker_id : int
        From the loader; bind the others with ``functools.partial``.
    num_workers, rank : int
        Workers of each rank, and which one this is.
    seed : int
        Of the run: workers that start anew, as those of a ``DataLoader`` do for each
        epoch without ``persistent_workers=True``, begin the same numbers again.
    """
    worker_seed = int(num_workers) * int(rank) + worker_id + whole_number("seed", seed)
    if not -(2**63) <= worker_seed < 2**64:  # of which torch takes none
        worker_seed %= 2**64
    random.seed(worker_seed)
    np.random.seed(worker_seed % 2**32)  # noqa: NPY002  what transforms use
    require("torch", extra="torch").manual_seed(worker_seed)
