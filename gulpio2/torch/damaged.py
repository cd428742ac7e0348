"""Damaged samples of a ``torch.utils.data.DataLoader``: what is done about them.

The dataset leaves them out or puts others in their places, in whichever process makes
them; the collate function sends beside each batch what was done; and the sampler, as it
hands the batch over, counts that.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from gulpio2.arguments import callable_or, require_choice
from gulpio2.torch.closed import ClosedBatch
from gulpio2.torch.collate import default_collate
from gulpio2.torch.registry import register
from gulpio2.torch.seeding import SampleIndex
from gulpio2.torch.selection import sample_position
from gulpio2.torch.substitutes import OnCorrupt, stand_in, try_twice
from gulpio2.torch.wrappers import DatasetWrapper, as_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gulpio2.torch.damage import Damage, DamageCount
    from gulpio2.torch.profile import WorkersClock

__all__ = ["TolerantCollate", "TolerantDataset", "is_left_out"]


@register
class TolerantDataset(DatasetWrapper):
    """A dataset with a rule for damaged samples, for a ``DataLoader``.

    It goes with two others, without which its samples are of no use: the loader's
    ``collate_fn`` is a `TolerantCollate`, and its batches come by the ``track`` of its
    `ResumableSampler`, which counts what was done.

    Parameters
    ----------
    dataset : dataset or config
        Any of this package, or a wrapper of such.
    on_corrupt : {"raise", "skip", "substitute"}
        What to do about a sample with damaged frames: raise; leave it out, so that the
        batch is smaller; or put another one of the same inner dataset, chosen by its
        seed, in its place: the one that a `GulpLoader` would put there.
    lazy_init : bool, default False
        True: initialise nothing yet.

    Raises
    ------
    TypeError
        There is such a dataset inside of it already.

    Examples
    --------
    ::

        sampler = ResumableSampler(dataset, seed=1)
        loader = DataLoader(
            TolerantDataset(dataset, on_corrupt="substitute"),
            batch_size=8,
            sampler=sampler,
            num_workers=2,
            collate_fn=TolerantCollate(),
        )
        for batch in sampler.track(loader):
            ...
        print(sampler.num_substituted)

    Notes
    -----
    It is the outermost dataset: no wrapper takes it.
    """

    _is_outermost: ClassVar[bool] = True

    def __init__(
        self,
        dataset: Any,
        *,
        on_corrupt: OnCorrupt = "raise",
        lazy_init: bool = False,
    ) -> None:
        require_choice("on_corrupt", on_corrupt, OnCorrupt)
        self.dataset = as_dataset(dataset)
        self.on_corrupt = on_corrupt
        super().__init__([self.dataset], lazy_init=lazy_init)

    def _count(self) -> int:
        return len(self.dataset)

    def _locate(self, idx: int) -> tuple[int, int]:
        return 0, sample_position(idx, self._count())

    def __getitem__(self, idx: int) -> Any:
        """Make a sample, or do about its damage what the rule says.

        Returns
        -------
        object
            Closed: for `TolerantCollate` to open. Anybody else gets a ValueError that
            says so.

        Raises
        ------
        TypeError
            What would stand in is chosen by a `SampleIndex`, and this is another index.
        CorruptFrameError, StorageError
            It is damaged and that is not put up with, or so are all that could stand
            in; or its storage refuses everything, which is no damage.
        """
        if self.on_corrupt == "substitute" and not isinstance(idx, SampleIndex):
            raise TypeError(
                f"the index is {idx!r} and has no seed, by which on_corrupt="
                "'substitute' chooses what stands in: give the DataLoader "
                "sampler=ResumableSampler(...), or take on_corrupt='skip'"
            )
        make = partial(operator.getitem, self.dataset, idx)
        sample, error = try_twice(make, make, self.on_corrupt)
        if error is None:
            return _Closed(int(idx), sample)
        damages: list[Damage] = []
        sample = stand_in(
            self.dataset, idx, self.on_corrupt, error, operator.getitem, damages
        )
        done = "skipped" if self.on_corrupt == "skip" else "substituted"
        return _Closed(int(idx), sample, done, damages)


class TolerantCollate:
    """Collate what a `TolerantDataset` gives, and tell the sampler what it did.

    Give it to a ``torch.utils.data.DataLoader`` as its ``collate_fn``, and iterate by
    the ``track`` of its `ResumableSampler`. Samples that were left out are not in a
    batch; one of which all were left out is an empty list, since ranks must keep step.

    Parameters
    ----------
    collate : callable, optional
        Makes a batch of samples: `pseudo_collate`, a `RecyclingCollate`, or any other.
        Default: `default_collate`.
    """

    def __init__(
        self, collate: Callable[[Sequence[Any]], Any] | None = default_collate
    ) -> None:
        self.collate = callable_or("collate", collate, default_collate)

    def __call__(self, data_batch: Any) -> Any:
        """Turn samples into a batch, and close it: for ``track`` to open.

        Raises
        ------
        TypeError
            Samples are not of a `TolerantDataset`, or there is no batch of them.
        """
        if isinstance(data_batch, _Closed):
            raise TypeError(
                "a sample by itself is no batch: give the DataLoader a batch_size"
            )
        for sample in data_batch:
            if not isinstance(sample, _Closed):
                raise TypeError(
                    f"a sample is {type(sample).__name__}, and not of a "
                    "TolerantDataset: give the DataLoader TolerantDataset(dataset), "
                    "with all others inside"
                )
        kept = [made.sample for made in data_batch if not is_left_out(made)]
        return _CountedBatch(self.collate(kept) if kept else [], data_batch)


class _Closed(Mapping[Any, Any]):
    """A sample, and what was done about its damage; only `TolerantCollate` opens it.

    Every collate function looks into mappings, so the first batch of a loader that has
    another one ends with what to do.
    """

    def __init__(
        self, index: int, sample: Any, done: str = "", damage: Sequence[Damage] = ()
    ) -> None:
        self.index = index
        self.sample = sample
        self.done = done
        self.damage = damage

    def _refuse(self, *_: Any) -> NoReturn:
        raise ValueError(
            "a sample of a TolerantDataset comes with what was done about damage: "
            "give the DataLoader collate_fn=TolerantCollate(), with the collate "
            "function that it has now inside"
        )

    __getitem__ = __iter__ = __len__ = _refuse

    def __repr__(self) -> str:
        """Show what was done."""
        return f"<sample {self.index} of a TolerantDataset, {self.done or 'undamaged'}>"


def is_left_out(sample: Any) -> bool:
    """Tell whether a sample is one that is left out of its batch."""
    return isinstance(sample, _Closed) and sample.done == "skipped"


class _CountedBatch(ClosedBatch):
    """A batch, and what was done for it."""

    def __init__(self, batch: Any, samples: Sequence[_Closed]) -> None:
        super().__init__(batch)
        self._damage = [damage for sample in samples for damage in sample.damage]
        done = [sample.done for sample in samples]
        self._counts = done.count("skipped"), done.count("substituted")

    def tell(self, damage: DamageCount, workers: WorkersClock) -> None:
        """Count it."""
        del workers
        damage.add(self._damage, *self._counts)
