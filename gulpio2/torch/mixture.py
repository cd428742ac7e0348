"""A weighted mixture of datasets."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.arguments import require_number
from gulpio2.order import MixedOrder, PlainOrder, SourceIndices, derive_seed
from gulpio2.torch.registry import register
from gulpio2.torch.seeding import SampleIndex
from gulpio2.torch.selection import sample_position
from gulpio2.torch.wrappers import DatasetWrapper, as_datasets

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MixtureDataset"]


class _SharedNumber:
    """A whole number that forks of this process see when it is changed."""

    def __init__(self, value: int = 0) -> None:
        self._memory = mmap.mmap(-1, 8)
        self.value = value

    @property
    def value(self) -> int:
        """The number."""
        return int.from_bytes(self._memory[:8], "little")

    @value.setter
    def value(self, value: int) -> None:
        self._memory[:8] = value.to_bytes(8, "little")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the number as it is now."""
        return _SharedNumber, (self.value,)


@register
class MixtureDataset(DatasetWrapper):
    """Several datasets in exact shares, each gone through again and again.

    Sample ``i`` of an epoch is fixed, so this is for loaders that go through it in
    order, or shuffle it. A run whose global order is the mixture has it from a
    `gulpio2.order.MixedOrder` over a `ConcatDataset`, see ``docs/training.md``.

    Parameters
    ----------
    datasets : sequence of dataset or config
        At least one, none of them empty. Their metadata need not agree; the first
        one's is the mixture's.
    weights : sequence of float
        Share of each, above 0; they need not sum to 1.
    length : int, optional
        Samples of an epoch. Default: those of all datasets together.
    seed : int, default 0
        Decides the mixing and the order in each dataset.
    lazy_init : bool, default False
        True: initialise nothing yet.

    Attributes
    ----------
    order : gulpio2.order.MixedOrder
        The mixture's order, once initialised.

    Notes
    -----
    Shares are exact in each 256 samples on from the first, and so of a long run: of a
    short epoch they are about right.
    """

    def __init__(
        self,
        datasets: Sequence[Any],
        weights: Sequence[float],
        *,
        length: int | None = None,
        seed: int = 0,
        lazy_init: bool = False,
    ) -> None:
        self.datasets = as_datasets(datasets)
        if not isinstance(weights, Iterable):
            raise TypeError(f"weights are {weights!r}, expected one for each dataset")
        self.weights = list(weights)
        self.length = length
        self.seed = seed
        self._epoch = _SharedNumber()
        self._portion: tuple[tuple[int, int], SourceIndices] | None = None
        super().__init__(self.datasets, lazy_init=lazy_init)

    def set_epoch(self, epoch: int) -> None:
        """Go on to an epoch: the datasets continue where the one before left them.

        Parameters
        ----------
        epoch : int
            From 0. Workers that persist from one epoch to the next hear of it, unless
            they were spawned. A `SampleIndex` has its own epoch, which counts for it.
        """
        self._epoch.value = require_number("epoch", epoch, 0)

    @property
    def epoch(self) -> int:
        """The epoch that was set last."""
        return self._epoch.value

    def _prepare(self) -> None:
        orders = [
            PlainOrder(len(dataset), seed=derive_seed(self.seed, number))
            for number, dataset in enumerate(self.datasets)
        ]
        self.order = MixedOrder(
            orders, self.weights, epoch_length=self.length, seed=self.seed
        )

    def _rule(self) -> int:
        return self.order.fingerprint

    def _count(self) -> int:
        return self.order.epoch_length

    def _locate(self, idx: int) -> tuple[int, int]:
        position = sample_position(idx, self._count())
        epoch = idx.epoch if isinstance(idx, SampleIndex) else self.epoch
        portion, place = divmod(position, self.order.block_length)
        # Samples are mostly asked for in order: keep the portion of the last one.
        cached = self._portion
        if cached is None or cached[0] != (epoch, portion):
            start = portion * self.order.block_length
            stop = min(start + self.order.block_length, self._count())
            found = self.order.source_indices(epoch, np.arange(start, stop))
            self._portion = cached = ((epoch, portion), found)
        return int(cached[1].sources[place]), int(cached[1].indices[place])
