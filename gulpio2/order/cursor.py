"""An order shared out among ranks, and where in it a run stands.

What has been consumed is always a beginning of the global order, the same for all
ranks, so the whole state is one position, which any number of ranks can take up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import require_number, require_state, whole_number
from gulpio2.format.wording import counted
from gulpio2.order.seeds import Purpose, derive_seed, derive_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gulpio2.order.orders import Order

__all__ = ["Draw", "OrderCursor", "Portion", "augmentation_seeds", "rank_positions"]

_STATE_VERSION = 1
_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class Draw:
    """One sample to be made."""

    index: int
    """Item of the dataset."""
    epoch: int
    """From 0."""
    position: int
    """Place in the epoch's global order; past its end for padding."""
    seed: int
    """For all that is random about this sample."""


class Portion(NamedTuple):
    """Samples to be made one after the other, see `Draw`."""

    epoch: int
    """From 0."""
    indices: npt.NDArray[np.int64]
    """Items of the dataset."""
    positions: npt.NDArray[np.int64]
    """Places in the epoch's global order."""
    seeds: npt.NDArray[np.uint64]
    """For all that is random about each sample."""


def rank_positions(
    start: int, epoch_length: int, rank: int, num_ranks: int, *, drop_last: bool
) -> range:
    """Give the positions of one rank in the rest of an epoch.

    Parameters
    ----------
    start : int
        Positions of the epoch that all ranks together have behind them.
    epoch_length : int
        Positions of the epoch.
    rank, num_ranks : int
        Which share, of how many.
    drop_last : bool
        What to do where the rest cannot be shared out evenly: True leaves the last
        ones out, False goes on past the end, where the epoch's first ones come again.

    Returns
    -------
    range
        Every ``num_ranks``-th position; equally many for every rank.

    Examples
    --------
    >>> [list(rank_positions(0, 5, rank, 2, drop_last=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 5]]
    """
    if not 0 <= rank < num_ranks:
        raise ValueError(
            f"rank is {rank} of {num_ranks}, expected 0 to {num_ranks - 1}"
        )
    each = _share(epoch_length - start, num_ranks, drop_last=drop_last)
    return range(start + rank, start + rank + each * num_ranks, num_ranks)


def _share(rest: int, num_ranks: int, *, drop_last: bool) -> int:
    """Give how many positions of the rest of an epoch each rank has."""
    return max(0, rest // num_ranks if drop_last else -(-rest // num_ranks))


def augmentation_seeds(
    seed: int, epoch: int, positions: npt.ArrayLike
) -> npt.NDArray[np.uint64]:
    """Give a seed for each position of an epoch, for all that is random about it.

    Parameters
    ----------
    seed, epoch : int
        Of the run.
    positions : array_like of int
        Places in the global order of the epoch.

    Returns
    -------
    numpy.ndarray of uint64
        Of the shape of `positions`.
    """
    base = derive_seed(seed, Purpose.AUGMENTATION, epoch)
    return derive_seeds(base, np.asarray(positions, dtype=np.int64).astype(np.uint64))


class OrderCursor:
    """One rank's way along an order, which can be saved and taken up elsewhere.

    Parameters
    ----------
    order : Order
        The global order, the same on every rank.
    rank, num_ranks : int
        This process's share.
    drop_last : bool, default False
        Whether positions that cannot be shared out evenly are left out; otherwise
        the epoch is padded with its own first ones.

    Examples
    --------
    >>> from gulpio2.order import PlainOrder
    >>> cursor = OrderCursor(PlainOrder(5, shuffle=False), rank=1, num_ranks=2)
    >>> [draw.index for draw in cursor.pending()]
    [1, 3, 0]
    >>> cursor.advance(2)
    >>> state = cursor.state_dict()
    >>> alone = OrderCursor(PlainOrder(5, shuffle=False))
    >>> alone.load_state_dict(state)
    >>> [draw.index for draw in alone.pending()]
    [4]
    """

    def __init__(
        self,
        order: Order,
        *,
        rank: int = 0,
        num_ranks: int = 1,
        drop_last: bool = False,
    ) -> None:
        # As ints, since those of numpy may be of few bits, and no JSON.
        rank = whole_number("rank", rank)
        num_ranks = whole_number("num_ranks", num_ranks)
        rank_positions(0, 0, rank, num_ranks, drop_last=drop_last)  # checks the rank
        self.order = order
        self.rank = rank
        self.num_ranks = num_ranks
        self.drop_last = drop_last
        self.epoch = 0
        self.position = 0

    def __len__(self) -> int:
        """Count the samples that this rank still has in this epoch."""
        rest = self.order.epoch_length - self.position
        return _share(rest, self.num_ranks, drop_last=self.drop_last)

    @property
    def epoch_share(self) -> int:
        """Samples that this rank has in a whole epoch."""
        rest = self.order.epoch_length
        return _share(rest, self.num_ranks, drop_last=self.drop_last)

    def batches_of(self, num_samples: int, batch_size: int) -> int:
        """Count the batches that so many samples make."""
        full, rest = divmod(num_samples, batch_size)
        return full + bool(rest and not self.drop_last)

    def pending(self) -> Iterator[Draw]:
        """Give what this rank has to do in the rest of this epoch.

        It runs ahead of what is consumed as far as anyone likes: only `advance` moves
        the cursor, and what is given here does not follow it.

        Returns
        -------
        iterator of Draw
            In order; computed in portions, so that an epoch of any length costs little.
        """
        return (
            Draw(index, portion.epoch, position, seed)
            for portion in self.portions()
            for index, position, seed in zip(
                portion.indices.tolist(),
                portion.positions.tolist(),
                portion.seeds.tolist(),
                strict=True,
            )
        )

    def portions(self) -> Iterator[Portion]:
        """Give the same as `pending`, many at once.

        Returns
        -------
        iterator of Portion
            In order.
        """
        positions = rank_positions(
            self.position,
            self.order.epoch_length,
            self.rank,
            self.num_ranks,
            drop_last=self.drop_last,
        )
        return self._portions(self.epoch, positions)

    def _portions(self, epoch: int, positions: range) -> Iterator[Portion]:
        for begin in range(0, len(positions), _CHUNK):
            chunk = np.array(positions[begin : begin + _CHUNK], dtype=np.int64)
            places = chunk % self.order.epoch_length
            indices = np.asarray(self.order.indices(epoch, places))
            if indices.shape != chunk.shape or indices.dtype.kind not in "iu":
                raise ValueError(  # of an order of somebody's own
                    f"{self.order!r} gave {indices.dtype} of shape {indices.shape} for "
                    f"{len(chunk)} positions, expected a whole number for each"
                )
            seeds = augmentation_seeds(self.order.seed, epoch, chunk)
            yield Portion(epoch, indices, chunk, seeds)

    def advance(self, num_samples: int) -> None:
        """Note that this rank, and so every other, has consumed some more samples.

        Parameters
        ----------
        num_samples : int
            Of this rank; at most ``len(self)``.
        """
        count = whole_number("num_samples", num_samples)
        if not 0 <= count <= len(self):
            raise ValueError(
                f"{counted(count, 'sample')} consumed of {len(self)} that this "
                "rank had left"
            )
        self.position += count * self.num_ranks

    def next_epoch(self) -> None:
        """Go to the beginning of the next epoch."""
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch, self.position = require_number("epoch", epoch, 0), 0

    def state_dict(self) -> dict[str, int]:
        """Give the state as a few integers; the same from every rank.

        Returns
        -------
        dict
            Knows nothing of ranks, workers, batches or prefetching.
        """
        return {
            "version": _STATE_VERSION,
            "seed": self.order.seed,
            "epoch": self.epoch,
            "position": min(self.position, self.order.epoch_length),
            "epoch_length": self.order.epoch_length,
            "fingerprint": self.order.fingerprint,
        }

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go to where a state was saved, with this cursor's own number of ranks.

        Parameters
        ----------
        state : mapping
            What `state_dict` gave. At the end of an epoch it leads to the next one.

        Raises
        ------
        TypeError
            It is no mapping.
        ValueError
            It was saved along another order.
        """
        require_state(state)
        if state.get("version", _STATE_VERSION) != _STATE_VERSION:
            raise ValueError(
                f"state of version {state['version']!r}, expected {_STATE_VERSION}"
            )
        if missing := [name for name in self.state_dict() if name not in state]:
            raise ValueError(
                f"the state has no {', '.join(missing)}: it is not what state_dict gave"
            )
        for name in ("seed", "epoch_length", "fingerprint"):
            own = getattr(self.order, name)
            if state[name] != own:
                raise ValueError(
                    f"the state was saved along another order: {name} {state[name]}, "
                    f"here {own}. Build the order from as many items, with the same "
                    "seed and shuffle, and where it has such, the same weights and "
                    "categories"
                )
        position = whole_number("the state's position", state["position"])
        if not 0 <= position <= self.order.epoch_length:
            raise ValueError(
                f"the state's position is {position}, expected 0 to "
                f"{self.order.epoch_length}, the length of an epoch"
            )
        self.set_epoch(state["epoch"])
        if position >= self.order.epoch_length:
            self.next_epoch()
        else:
            self.position = position

    def __repr__(self) -> str:
        """Show the order and where it stands."""
        return (
            f"OrderCursor({self.order!r}, rank={self.rank} of {self.num_ranks}, "
            f"epoch={self.epoch}, position={self.position})"
        )
