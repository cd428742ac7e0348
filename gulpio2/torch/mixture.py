"""A weighted mixture of datasets."""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gulpio2.arguments import optional_number, require_number, whole_number
from gulpio2.format.wording import shown
from gulpio2.order import MixedOrder, PlainOrder, SourceIndices, derive_seed
from gulpio2.torch.metainfo import are_equal
from gulpio2.torch.registry import register
from gulpio2.torch.seeding import SampleIndex
from gulpio2.torch.selection import sample_position
from gulpio2.torch.wrappers import DatasetWrapper, as_datasets

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MixtureDataset"]

_logger = logging.getLogger(__name__)

# Portions out of turn after which positions are computed one by one; and how many, as a
# share of the epoch's samples, after which all of it is: that takes seconds, which who
# looks at a few does not wait for.
_FEW_JUMPS, _SHARE_OF_JUMPS = 8, 1 / 2000
# Samples of an epoch that are kept: twelve bytes each, and two seconds or so to compute
# for a million. One by one they take half a millisecond each.
_MOST_KEPT = 1 << 23
_END_OF_EPOCHS = 1 << 32


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
        one's is the mixture's. Of classes that differ a warning tells: class 0 of one
        is not that of another.
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

    _goes_by_epoch: ClassVar[bool] = True

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
        self.weights = _listed(weights)
        self.length = optional_number("length", length, 1)
        self.seed = whole_number("seed", seed)
        self._epoch = _SharedNumber()
        super().__init__(self.datasets, lazy_init=lazy_init)

    def set_epoch(self, epoch: int) -> None:
        """Go on to an epoch: the datasets continue where the one before left them.

        Parameters
        ----------
        epoch : int
            From 0. Workers that persist from one epoch to the next hear of it, unless
            they were spawned. A `SampleIndex` has its own epoch, which counts for it.
        """
        number = require_number("epoch", epoch, 0)
        if number >= _END_OF_EPOCHS:
            raise ValueError(f"epoch is {number}, expected below 2**32")
        self._epoch.value = number

    @property
    def epoch(self) -> int:
        """The epoch that was set last."""
        return self._epoch.value

    def _prepare(self) -> None:
        self._warn_of_classes()
        orders = [
            PlainOrder(len(dataset), seed=derive_seed(self.seed, number))
            for number, dataset in enumerate(self.datasets)
        ]
        self.order = MixedOrder(
            orders, self.weights, epoch_length=self.length, seed=self.seed
        )
        self._places = _Places(self.order)

    def _warn_of_classes(self) -> None:
        """Tell of classes that are not those of the first dataset that has some."""
        known = [
            (number, metainfo["classes"])
            for number, dataset in enumerate(self.datasets)
            if "classes" in (metainfo := dataset.metainfo)
        ]
        for number, classes in known[1:]:
            first, expected = known[0]
            if not are_equal(classes, expected):
                _logger.warning(
                    "the classes of dataset %d of a mixture are not those of dataset "
                    "%d: %s, and there %s. As the target (idx) a number means one "
                    "class here and another there: number the labels yourself, as by "
                    "target=lambda info: numbers[info['label']]",
                    number,
                    first,
                    shown(classes),
                    shown(expected),
                )
                return

    def _rule(self) -> int:
        return self.order.fingerprint

    def _count(self) -> int:
        return self.order.epoch_length

    def _locate(self, idx: int) -> tuple[int, int]:
        position = sample_position(idx, self._count())
        epoch = idx.epoch if isinstance(idx, SampleIndex) else self.epoch
        return self._places.at(epoch, position)


def _listed(weights: Any) -> list[float]:
    """Refuse weights that are in no order, or have others beside them."""
    if not isinstance(weights, Iterable) or isinstance(weights, (Mapping, Set, str)):
        raise TypeError(f"weights are {weights!r}, expected one for each dataset")
    return list(weights)


class _Part(NamedTuple):
    """Positions of an epoch, and where they come from."""

    epoch: int
    start: int
    stop: int
    found: SourceIndices


class _Places:
    """Where positions of a mixture come from, many computed at once.

    A portion takes milliseconds, since each source in it has a permutation of its own,
    and a whole epoch some microseconds a position. So those who jump about get all of
    it, unless it is too long to be kept: then each position by itself.
    """

    def __init__(self, order: MixedOrder) -> None:
        self._order = order
        self._parts: tuple[_Part, ...] = ()  # the last two, of different epochs
        self._num_jumps = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of."""
        return _Places, (self._order,)

    def at(self, epoch: int, position: int) -> tuple[int, int]:
        """Give source, and sample there."""
        for part in self._parts:
            if part.epoch == epoch and part.start <= position < part.stop:
                break
        else:
            part = self._find(epoch, position)
            others = [other for other in self._parts if other.epoch != epoch]
            self._parts = (part, *others[:1])
        sources, indices = part.found
        place = position - part.start
        return int(sources[place]), int(indices[place])

    def _find(self, epoch: int, position: int) -> _Part:
        length, size = self._order.epoch_length, self._order.block_length
        start = position - position % size
        # Where the part of this epoch ends; there is no other one of it.
        ends = next((part.stop for part in self._parts if part.epoch == epoch), 0)
        self._num_jumps = 0 if ends in (start, position) else self._num_jumps + 1
        stop = start + size
        if self._num_jumps > _FEW_JUMPS:
            is_worth = self._num_jumps > max(_FEW_JUMPS, length * _SHARE_OF_JUMPS)
            whole = is_worth and length <= _MOST_KEPT
            start, stop = (0, length) if whole else (position, position + 1)
        stop = min(stop, length)
        found = self._order.source_indices(epoch, np.arange(start, stop))
        # Half the memory for the one of which the numbers are small.
        found = found._replace(sources=found.sources.astype(np.int32))
        return _Part(epoch, start, stop, found)
