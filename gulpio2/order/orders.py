"""The global order of a training run: which item is at each position of each epoch.

An order is a pure function of ``(epoch, position)``. It knows nothing of ranks, workers
or batches, which is why they can change while it goes on; `gulpio2.order.cursor` shares
it out.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import (
    as_number,
    require_number,
    whole_number,
)
from gulpio2.format.wording import counted
from gulpio2.grouping import groups_of
from gulpio2.order.permutation import Permutation, numbers_below
from gulpio2.order.seeds import Purpose, derive_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MixedOrder", "Order", "PlainOrder", "RepeatedOrder", "SourceIndices"]

Positions = npt.NDArray[np.int64]


@runtime_checkable
class Order(Protocol):
    """What the loader and the samplers follow."""

    @property
    def num_items(self) -> int:
        """Items that the order draws from."""
        ...

    @property
    def epoch_length(self) -> int:
        """Positions in one epoch."""
        ...

    @property
    def seed(self) -> int:
        """What the order, and the augmentation along it, is derived from."""
        ...

    @property
    def fingerprint(self) -> int:
        """A number that changes with anything that changes the order."""
        ...

    def indices(self, epoch: int, positions: npt.ArrayLike) -> Positions:
        """Give the items at positions in ``[0, epoch_length)`` of an epoch."""
        ...


class PlainOrder:
    """Every item once an epoch, in a new order each epoch.

    Parameters
    ----------
    num_items : int
        Items; none is allowed and gives epochs of no positions.
    seed : int, default 0
        Decides the orders of all epochs.
    shuffle : bool, default True
        False: the items as they stand, each epoch.
    items_key : int, default 0
        Stands for what decides which item a number is, where something does. It changes
        the fingerprint, and not the order.

    Examples
    --------
    >>> order = PlainOrder(5, seed=3)
    >>> order.indices(0, range(5)).tolist(), order.indices(1, range(5)).tolist()
    ([4, 0, 3, 1, 2], [4, 3, 2, 1, 0])
    """

    items_key: int = 0  # of one that was pickled before there was any

    def __init__(
        self,
        num_items: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        items_key: int = 0,
    ) -> None:
        self.num_items = require_number("num_items", num_items, 0)
        self.seed = whole_number("seed", seed)
        self.shuffle = shuffle
        self.items_key = whole_number("items_key", items_key)

    @property
    def epoch_length(self) -> int:
        """Positions in one epoch: the number of items."""
        return self.num_items

    @property
    def fingerprint(self) -> int:
        """A number that changes with anything that changes the order."""
        of_items = (self.items_key,) if self.items_key else ()
        return _fingerprint(1, self.seed, self.num_items, self.shuffle, *of_items)

    def indices(self, epoch: int, positions: npt.ArrayLike) -> Positions:
        """Give the items at positions of an epoch.

        Parameters
        ----------
        epoch : int
            From 0.
        positions : array_like of int
            In ``[0, epoch_length)``, of any shape.

        Returns
        -------
        numpy.ndarray of int64
            Of the same shape.

        Raises
        ------
        ValueError
            Positions are no whole numbers, or lie outside of the epoch.
        """
        places = _checked(positions, self.epoch_length)
        if not self.shuffle or self.num_items < 2:
            return places
        key = derive_seed(self.seed, Purpose.PERMUTATION, epoch)
        return Permutation(self.num_items, key)(places)

    def __repr__(self) -> str:
        """Show what it was made from."""
        key = f", items_key={self.items_key}" if self.items_key else ""
        return (
            f"PlainOrder({self.num_items}, seed={self.seed}, shuffle={self.shuffle}"
            f"{key})"
        )


class RepeatedOrder:
    """Each item a given number of times an epoch, all of it shuffled.

    With the counts of `gulpio2.order.balance.repeat_counts` this balances classes.

    Parameters
    ----------
    repeats : sequence of int
        Times that each item comes in an epoch; 0 leaves it out.
    seed : int, default 0
        Decides the orders of all epochs.
    shuffle : bool, default True
        False: the items as they stand, repeats side by side.

    Examples
    --------
    >>> order = RepeatedOrder([1, 0, 2], shuffle=False)
    >>> order.indices(0, range(order.epoch_length)).tolist()
    [0, 2, 2]
    """

    def __init__(
        self, repeats: Sequence[int], *, seed: int = 0, shuffle: bool = True
    ) -> None:
        counts = np.asarray(repeats)
        if counts.size == 0:
            counts = counts.astype(np.int64)
        if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise ValueError("repeats must be whole numbers, none below 0")
        self.num_items = len(counts)
        self._ends = np.cumsum(counts, dtype=np.int64)
        length = int(self._ends[-1]) if len(counts) else 0
        self._places = PlainOrder(length, seed=seed, shuffle=shuffle)
        counted = hashlib.blake2b(self._ends.astype("<i8").tobytes(), digest_size=8)
        self.fingerprint = _fingerprint(
            2, self._places.fingerprint, int.from_bytes(counted.digest(), "little")
        )

    @property
    def seed(self) -> int:
        """Decides the orders of all epochs."""
        return self._places.seed

    @property
    def epoch_length(self) -> int:
        """Positions in one epoch: the sum of the repeats."""
        return self._places.num_items

    def indices(self, epoch: int, positions: npt.ArrayLike) -> Positions:
        """Give the items at positions of an epoch, see `PlainOrder.indices`."""
        places = self._places.indices(epoch, positions)
        return np.searchsorted(self._ends, places, side="right").astype(np.int64)

    def __repr__(self) -> str:
        """Show the sizes and the seed."""
        return (
            f"RepeatedOrder({counted(self.num_items, 'item')}, "
            f"{counted(self.epoch_length, 'position')}, "
            f"seed={self.seed})"
        )


class SourceIndices(NamedTuple):
    """Where positions of a mixture come from."""

    sources: Positions
    """Number of the source, in the order in which they were given."""
    indices: Positions
    """Item of that source."""


class MixedOrder:
    """Several orders mixed by weight.

    Each source goes through its own epochs, whatever the others do: all its items come
    once before any comes again. From the beginning to the end of any block (of
    `block_length` positions) each source has had its share, give or take a position for
    each source before it; where in a block its positions are is random.

    Parameters
    ----------
    orders : sequence of Order
        The sources. An item of source ``k`` has the number that it has in a
        concatenation: its own plus the items of the sources before.
    weights : sequence of float
        Shares of the sources, above 0; they need not sum to 1 and are taken exactly.
    epoch_length : int, optional
        Positions after which an epoch is counted. Default: the sum of the sources'
        epochs. The sources themselves go on from one epoch to the next.
    seed : int, default 0
        Decides the mixing; the sources have seeds of their own.

    Examples
    --------
    >>> sources = [PlainOrder(3, shuffle=False), PlainOrder(2, shuffle=False)]
    >>> order = MixedOrder(sources, [2, 1], epoch_length=12)
    >>> order.indices(0, range(12)).tolist()
    [3, 0, 1, 4, 2, 3, 0, 4, 3, 1, 2, 0]
    >>> order.source_indices(0, range(12)).sources.tolist()
    [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0]
    """

    block_length = 256
    """Positions within which a source's places are random; part of the seed's order."""

    def __init__(
        self,
        orders: Sequence[Order],
        weights: Sequence[float],
        *,
        epoch_length: int | None = None,
        seed: int = 0,
    ) -> None:
        if not orders or len(orders) != len(weights):
            raise ValueError(
                f"{len(orders)} orders with {len(weights)} weights: one weight for "
                "each order, and at least one order"
            )
        if not all(0 < as_number(weight) < float("inf") for weight in weights):
            raise ValueError(f"weights are {list(weights)}, expected all above 0")
        empty = [
            number for number, order in enumerate(orders) if not order.epoch_length
        ]
        if empty:
            raise ValueError(f"orders {empty} have no items to mix in")
        self.orders = tuple(orders)
        self.seed = whole_number("seed", seed)
        # As fractions, so that a billion positions drift by nothing.
        self._weights = [
            Fraction(weight if isinstance(weight, int) else float(weight))
            for weight in weights
        ]
        self._shares = _shares_of_rest(self._weights)
        sizes = [order.num_items for order in orders]
        self.num_items = sum(sizes)
        self.offsets = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        if epoch_length is None:
            epoch_length = sum(order.epoch_length for order in orders)
        self.epoch_length = require_number("epoch_length", epoch_length, 1)
        parts = [order.fingerprint for order in self.orders]
        for weight in self._weights:
            parts += [weight.numerator, weight.denominator]
        self.fingerprint = _fingerprint(
            3, self.seed, self.epoch_length, self.block_length, *parts
        )

    def indices(self, epoch: int, positions: npt.ArrayLike) -> Positions:
        """Give the items at positions of an epoch, see `PlainOrder.indices`."""
        sources, indices = self.source_indices(epoch, positions)
        return self.offsets[sources] + indices

    def source_indices(self, epoch: int, positions: npt.ArrayLike) -> SourceIndices:
        """Give source and item of that source at positions of an epoch.

        Parameters
        ----------
        epoch : int
            From 0.
        positions : array_like of int
            In ``[0, epoch_length)``, of any shape.

        Returns
        -------
        SourceIndices
            Two arrays of that shape.

        Notes
        -----
        Costs a block for each block that the positions touch: ask for many together.
        """
        asked = _checked(positions, self.epoch_length)
        streamed = asked.ravel() + epoch * self.epoch_length
        sources = np.empty(streamed.size, np.int64)
        places = np.empty(streamed.size, np.int64)
        for block, inside in groups_of(streamed // self.block_length):
            offsets = streamed[inside] - block * self.block_length
            block_sources, block_places = self._block(block)
            sources[inside] = block_sources[offsets]
            places[inside] = block_places[offsets]
        indices = np.empty(streamed.size, np.int64)
        for number, mine in groups_of(sources):
            indices[mine] = _along_epochs(self.orders[number], places[mine])
        return SourceIndices(sources.reshape(asked.shape), indices.reshape(asked.shape))

    def _block(self, block: int) -> tuple[Positions, Positions]:
        """Give source, and place in that source's stream, of a block's positions."""
        first, length = block * self.block_length, self.block_length
        starts, counts = [], []
        for share, whole in self._shares:
            # Of `length` positions from `first` on, this source takes its share of
            # what the sources before it left over, and leaves the rest to the others.
            start = first * share // whole
            count = (first + length) * share // whole - start
            starts.append(start)
            counts.append(count)
            first, length = first - start, length - count
        key = derive_seed(self.seed, Purpose.MIXTURE, block)
        slots = Permutation(self.block_length, key)(np.arange(self.block_length))
        ends = np.cumsum(counts)
        sources = np.searchsorted(ends, slots, side="right").astype(np.int64)
        by_source = np.argsort(sources, kind="stable")
        # Sorted, a source's positions begin where those of the sources before it end.
        shifts = np.array(starts, np.int64) - ends + counts
        places = np.empty(self.block_length, np.int64)
        places[by_source] = np.arange(self.block_length) + shifts[sources[by_source]]
        return sources, places

    def __repr__(self) -> str:
        """Show the sources and their weights."""
        weights = [float(weight) for weight in self._weights]
        return f"MixedOrder({list(self.orders)}, {weights}, seed={self.seed})"


def _shares_of_rest(weights: Sequence[Fraction]) -> list[tuple[int, int]]:
    """Give each source's share of what those before it leave, as two numbers."""
    left = sum(weights, Fraction(0))
    shares = []
    for weight in weights:
        shares.append((weight / left).as_integer_ratio())
        left -= weight
    return shares


def _along_epochs(order: Order, places: Positions) -> Positions:
    """Give the items at places of an order's epochs laid end to end."""
    items = np.empty(places.size, np.int64)
    epochs, positions = np.divmod(places, order.epoch_length)
    for epoch, inside in groups_of(epochs):
        items[inside] = order.indices(epoch, positions[inside])
    return items


def _checked(positions: npt.ArrayLike, length: int) -> Positions:
    return numbers_below(length, "positions", positions, of="the epoch, ")


def _fingerprint(*parts: int) -> int:
    """Hash what makes an order; 63 bits, to fit every integer type it may pass."""
    return derive_seed(Purpose.FINGERPRINT, *parts) >> 1
