"""Batches decoded straight into memory that is used again, in an order."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.arguments import optional_number, require_choice, require_number
from gulpio2.format.wording import counted
from gulpio2.order import Order, OrderCursor
from gulpio2.threads import default_threads
from gulpio2.torch.arguments import order_over, plain_datasets, require_view
from gulpio2.torch.batch import Batch, make_batch
from gulpio2.torch.batch_memory import BatchMemory
from gulpio2.torch.filling import MakerArguments
from gulpio2.torch.prefetch import Prefetcher
from gulpio2.torch.profile import Clock, ConsumerClock, LoaderProfile, make_profile
from gulpio2.torch.ranks import share_of
from gulpio2.torch.resuming import Resumable
from gulpio2.torch.seeding import places_of
from gulpio2.torch.substitutes import OnCorrupt
from gulpio2.torch.turns import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gulpio2.torch.job import Job
    from gulpio2.torch.ring import Slot
    from gulpio2.torch.views import FrameView

__all__ = ["GulpLoader"]

_logger = logging.getLogger(__name__)

Layout = Literal["THWC", "TCHW"]
Output = Literal["torch", "numpy"]
Colorspace = Literal["rgb", "gray"]


class GulpLoader(Resumable):
    """Batches of clips, in the exact order of a run, by threads or worker processes.

    Parameters
    ----------
    dataset : GulpClipDataset, GulpImageDataset, or a wrapper of such
        What the samples are: which frames, and which target. It has neither transform
        nor pipeline: `view` takes their place, and the rest is done to whole batches.
    batch_size : int
        Samples of a batch of this rank.
    view : FrameView, optional
        Which part of each frame, at which size: `CenterCrop`, `RandomResizedCrop`, or
        one of your own. Default: whole frames, which then have to be of one size.
    order : gulpio2.order.Order, optional
        Mixed, balanced or another order over the samples of the dataset. Default: each
        sample once an epoch.
    seed, shuffle : int, bool
        Of the default order. `shuffle` also decides the default of `go_on`.
    rank, num_ranks : int, optional
        This process's share. Default: those of ``torch.distributed`` where it runs.
    drop_last : bool, default False
        False: the last batch may be smaller, and an epoch that cannot be shared out
        evenly is padded with its own first samples. True: what does not make a full
        batch on every rank is left out.
    threads : int, optional
        Threads that decode, each a few samples at a time. 0: none, and nothing is done
        ahead. Default: one per core, 8 at most.
    num_workers : int, default 0
        Processes that decode, in place of threads, of which more than about eight, or
        four where there is a view, wait for the interpreter that they share.
        They start with the first batch, and stay until `close`, or the loader's end.
        Targets, and what the dataset knows of a sample, come pickled.
    prefetch : int, default 2
        Batches that are made ahead of the one that was given out last.
    keep : int, default 1
        Batches that stay valid, the one that was given out last among them.
    output : {"torch", "numpy"}
        What batches are made of. "numpy" needs no torch.
    layout : {"THWC", "TCHW"}
        Order of the last axes. The memory is ``THWC`` in both cases.
    colorspace : {"rgb", "gray"}
        Three channels, for grey frames too, or the luma alone.
    pin_memory : bool, default False
        Page-locked memory, from which ``.to(device, non_blocking=True)`` copies while
        the program goes on; the memory is not written to before that copy is done, if
        it was started on the current stream. Without a CUDA device it is ordinary
        memory, and a warning says so.
    on_corrupt : {"raise", "skip", "substitute"}
        What to do about a sample with damaged frames: raise; leave it out, so that the
        batch is smaller (and empty if all are damaged, since ranks must keep step); or
        put another one, chosen by its seed, in its place. The others stay where they
        are. Each one is logged, and counted in the state.
    max_corrupt : int, default 100
        Damaged samples of the dataset, each counted once, that are put up with: one
        more raises.
    go_on : bool, optional
        What becomes of an epoch whose iteration was left before its end. True: the next
        one gives the rest of it. False: the next one is of the next epoch, as with a
        torch ``DataLoader``. Default: True, but False for ``shuffle=False``, as in a
        validation, which would be of other samples each time.

    Attributes
    ----------
    cursor : gulpio2.order.OrderCursor
        Where the run stands.
    num_threads : int
        Threads, or workers, that decode.
    num_skipped, num_substituted : int
        Damaged samples so far, of this rank, in batches that were given out.

    Examples
    --------
    >>> from functools import partial
    >>> from gulpio2.sampling import sample_window
    >>> from gulpio2.testing import make_gulp_directory
    >>> from gulpio2.torch import GulpClipDataset
    >>> _ = make_gulp_directory("train", num_items=5, num_frames=8)
    >>> sampler = partial(sample_window, clip_length=4)
    >>> dataset = GulpClipDataset("train", sampler, target="id")
    >>> loader = GulpLoader(dataset, batch_size=2, seed=1, output="numpy")
    >>> for clips, targets in loader:
    ...     print(clips.shape, targets)
    (2, 4, 24, 32, 3) ['item2', 'item4']
    (2, 4, 24, 32, 3) ['item1', 'item3']
    (1, 4, 24, 32, 3) ['item0']

    Notes
    -----
    There are threads only while an iteration is under way; it ends with its last batch,
    with the loop that it is in, `close`, or the program. Memory: ``prefetch + keep``
    batches.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: int,
        view: FrameView | None = None,
        order: Order | None = None,
        seed: int = 0,
        shuffle: bool = True,
        rank: int | None = None,
        num_ranks: int | None = None,
        drop_last: bool = False,
        threads: int | None = None,
        num_workers: int = 0,
        prefetch: int = 2,
        keep: int = 1,
        output: Output = "torch",
        layout: Layout = "THWC",
        colorspace: Colorspace = "rgb",
        pin_memory: bool = False,
        on_corrupt: OnCorrupt = "raise",
        max_corrupt: int = 100,
        go_on: bool | None = None,
    ) -> None:
        require_choice("output", output, Output)
        require_choice("layout", layout, Layout)
        require_choice("colorspace", colorspace, Colorspace)
        require_choice("on_corrupt", on_corrupt, OnCorrupt)
        require_view(view)
        threads = optional_number("threads", threads, 0)
        self._num_workers = require_number("num_workers", num_workers, 0)
        if self._num_workers and threads is not None:
            raise ValueError(
                f"threads={threads} and num_workers={num_workers}: give one, since a "
                "worker is a process of one thread"
            )
        if threads is None:
            threads = self._num_workers or default_threads()
        if pin_memory and output != "torch":
            raise ValueError("pin_memory goes with output='torch' only")
        rank, num_ranks = share_of(self, rank, num_ranks)
        leaves = plain_datasets(dataset)
        dataset.full_init()
        self._has_targets = any(leaf.has_targets for leaf in leaves)
        order = order_over(dataset, order, seed, shuffle=shuffle)
        self.dataset = dataset
        cursor = OrderCursor(order, rank=rank, num_ranks=num_ranks, drop_last=drop_last)
        super().__init__(cursor, max_corrupt)
        self._goes_on = bool(shuffle if go_on is None else go_on)
        self._batch_size = require_number("batch_size", batch_size, 1)
        self.num_threads = threads
        self._prefetch = require_number("prefetch", prefetch, 1)
        self._keep = require_number("keep", keep, 1)
        self._output = output
        self._pinned = pin_memory
        self._channels_first = layout == "TCHW"
        self._arguments = MakerArguments(dataset, view, colorspace, on_corrupt)
        self._start_anew()
        if not len(self):
            _logger.warning(
                "an epoch of %r has no batch: is it the dataset that was meant, or "
                "drop_last=True with few samples?",
                self,
            )

    def _start_anew(self) -> None:
        """Have no memory, no threads and nothing measured."""
        self._memory = BatchMemory(
            self._prefetch + self._keep,
            self._batch_size,
            self._arguments,
            num_workers=self._num_workers,
            tensor=self._output == "torch",
            pinned=self._pinned,
        )
        self._given: deque[Slot] = deque()
        self._active: Prefetcher | None = None
        self.reset_profile()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle, or copy, the settings and the place in the run, and nothing else."""
        own = ("_memory", "_given", "_active", "_past", "_consumer")
        state = super().__getstate__().items()
        return {name: value for name, value in state if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up the settings and the place in the run."""
        super().__setstate__(state)
        self._start_anew()

    def __len__(self) -> int:
        """Count the batches of this rank in an epoch, the whole of it at any time."""
        return self.cursor.batches_of(self.cursor.epoch_share, self._batch_size)

    @property
    def batches_left(self) -> int:
        """Batches that this rank still has in this epoch."""
        return self.cursor.batches_of(len(self.cursor), self._batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """Give the epoch under way, or its rest (`go_on`), then go to the next one.

        Another iteration over the same loader ends with this, in whichever thread.

        Yields
        ------
        Batch
            `state_dict` counts it already: save after the step that it was for. Left
            with the last one, the next iteration is of the next epoch.
        """
        prefetcher, given = self._begin()
        if prefetcher is None:
            return
        try:
            is_first, before = True, self._mark()
            while True:
                job = self._consumer.wait_for(prefetcher.next_job, is_first=is_first)
                is_first, start = False, perf_counter()
                before = self._mark()
                batch = self._give(prefetcher, job)
                if batch is None:
                    break
                job = before = None
                yield batch
                del batch
                self._consumer.working += perf_counter() - start
                if len(given) == self._keep:
                    prefetcher.release(given.popleft())
        except GeneratorExit:
            self._turn.if_free(lambda: self._leave(prefetcher))
            raise
        except BaseException:  # of a signal's handler, perhaps: nobody has the batch
            with self._turn.lock:
                if before and self._active is prefetcher:
                    self._go_back(before)
            raise
        finally:
            self._end(prefetcher)

    def _leave(self, prefetcher: Prefetcher) -> None:
        """End the epoch, where its iteration is left with the last batch."""
        if self._active is prefetcher:
            self._leave_what_is_over()

    def _end(self, prefetcher: Prefetcher) -> None:
        """End the threads of an iteration, and count what they did; may come again."""
        prefetcher.stop()
        for clock in prefetcher.clocks:
            self._past.add(clock)
            clock.reset()

    @in_turn
    def _begin(self) -> tuple[Prefetcher | None, deque[Slot]]:
        """Start the threads; None where the epoch had no batches left, and is over."""
        self._stop()
        self._leave_what_is_behind()
        if not (left := self.batches_left):
            self.cursor.next_epoch()
            return None, self._given
        self._memory.prepare(self.cursor)
        for slot in list(self._given):
            slot.released()
        # The batches that were given out last stay valid into this iteration, but for
        # those in the memory of workers that have ended. The deque is a new one, as an
        # iteration that was left in its middle may still use the old one.
        kept = [slot for slot in self._given if slot in self._memory.slots]
        self._given = deque(deque(kept, self._keep - 1))
        free = [slot for slot in self._memory.slots if slot not in self._given]
        draws = places_of(self.cursor, used_here=not self._num_workers)
        size, maker = self._batch_size, self._memory.maker
        batches = (list(itertools.islice(draws, size)) for _ in range(left))
        self._active = Prefetcher(batches, free, maker, self.num_threads)
        return self._active, self._given

    def _give(self, of: Prefetcher, job: Job | None) -> Batch | None:
        """Make a batch of a job, and count it as consumed; None for the epoch."""
        with self._turn.lock:
            of.require_running()  # another thread may have ended this iteration
            if job is None:
                self._active = None
                self.cursor.next_epoch()
                return None
            batch = make_batch(
                job, channels_first=self._channels_first, has_targets=self._has_targets
            )
            damages = itertools.chain(*job.damages)
            self._damage.add(damages, batch.num_skipped, batch.num_substituted)
            self._given.append(job.slot)
            # Those that make no full batch are left out, if so wished.
            least_left = self._batch_size if self.cursor.drop_last else 1
            self._advance(len(job.draws), least_left)
            self._consumer.batches += 1
            return batch

    @in_turn
    def close(self) -> None:
        """End the iteration that is under way, its threads, and the workers.

        The loader can be used again, as after an iteration that was left.
        """
        self._stop()
        self._memory.end_workers()

    def _stop(self) -> None:
        """End the iteration that is under way, and its threads."""
        if self._active is not None:
            self._end(self._active)
            self._active = None

    def __enter__(self) -> GulpLoader:
        """Give the loader itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the iteration that is under way, its threads, and the workers."""
        self.close()

    @in_turn
    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch; the one under way begins again unless it is gone on with."""
        if epoch != self.cursor.epoch:
            self.cursor.set_epoch(epoch)
            self._stop()
        self._set_at = self.cursor.epoch, self.cursor.position

    @in_turn
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where a state was saved, see `Resumable.load_state_dict`."""
        super().load_state_dict(state)
        self._stop()

    def profile(self) -> LoaderProfile:
        """Say where the time went, and which setting to change first.

        Returns
        -------
        LoaderProfile
            Since the loader was made, or since `reset_profile`. Print it.
        """
        clocks = [self._past, *(self._active.clocks if self._active else [])]
        return make_profile(
            clocks,
            self._consumer,
            num_threads=self.num_threads,
            are_processes=bool(self._num_workers),
        )

    def reset_profile(self) -> None:
        """Forget what was measured; for after the first steps, which are slower."""
        self._past = Clock()
        if self._active is not None:
            for clock in self._active.clocks:
                clock.reset()
        self._consumer = ConsumerClock()

    def __repr__(self) -> str:
        """Show what it loads and where it stands."""
        return (
            f"GulpLoader({type(self.dataset).__name__} of "
            f"{counted(len(self.dataset), 'sample')}, "
            f"batch_size={self._batch_size}, "
            f"{'num_workers' if self._num_workers else 'threads'}={self.num_threads}, "
            f"{self.cursor!r})"
        )
