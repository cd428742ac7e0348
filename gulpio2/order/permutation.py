"""A permutation of any number of items that is computed and never stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gulpio2.order.seeds import GOLDEN, derive_seed, derive_seeds, mix64

__all__ = ["Permutation", "numbers_below"]

# Few items make weak rounds. With 24, all orders of 4 to 6 items come up equally often
# (chi-squared over every permutation); with 8, those of 6 items are far from it.
_SMALL = 1 << 16
_NUM_ROUNDS_SMALL = 24
_NUM_ROUNDS = 12
# Places of which numpy's hundreds of calls take longer than to compute them one by one.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Permutation:
    """Items ``0 .. num_items - 1`` in an order that a key decides.

    Any place can be asked for on its own: ten million items cost no memory, and a
    run that continues in the middle of an epoch computes nothing of what went before.

    Examples
    --------
    >>> Permutation(5, key=1)(np.arange(5)).tolist()
    [1, 3, 2, 4, 0]

    Notes
    -----
    A generalised Feistel network with cycle walking: Black and Rogaway, "Ciphers with
    arbitrary finite domains", CT-RSA 2002. Place ``x`` is ``(x // b, x % b)``, with
    ``a * b`` barely above the number of items; each round adds to one half a hash of
    the other; a result that is no item goes through once more.
    """

    num_items: int
    """Items, at least one."""
    key: int
    """Decides the order; any whole number."""

    def __post_init__(self) -> None:
        """Check the number of items."""
        if self.num_items < 1:
            raise ValueError(f"num_items is {self.num_items}, expected at least 1")

    def __call__(self, places: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Give the item at each place.

        Parameters
        ----------
        places : array_like of int
            In ``[0, num_items)``, of any shape.

        Returns
        -------
        numpy.ndarray of int64
            Of the same shape, in ``[0, num_items)``.

        Raises
        ------
        ValueError
            Places are no whole numbers, or lie outside.
        """
        asked = numbers_below(self.num_items, "places", places)
        if asked.size <= _FEW:
            found = self._encrypt(asked.ravel().tolist())
            return np.array(found, np.int64).reshape(asked.shape)
        items = asked.astype(np.uint64).ravel()
        self._encrypt_in_place(items)
        return items.astype(np.int64).reshape(asked.shape)

    def _encrypt(self, places: list[int]) -> list[int]:
        """Do for a few what `_encrypt_in_place` does, without an array a round."""
        if not places:
            return []
        a = math.isqrt(self.num_items - 1) + 1
        b = -(-self.num_items // a)
        rounds = _NUM_ROUNDS_SMALL if self.num_items <= _SMALL else _NUM_ROUNDS
        keys = [derive_seed(self.key, number) for number in range(rounds)]
        found = []
        for place in places:
            item = self.num_items
            left, right = divmod(place, b)
            while item >= self.num_items:
                for number, key in enumerate(keys):
                    if number % 2:
                        right = (right + mix64((left ^ key) + GOLDEN) % b) % b
                    else:
                        left = (left + mix64((right ^ key) + GOLDEN) % a) % a
                item = left * b + right
            found.append(item)
        return found

    def _encrypt_in_place(self, items: npt.NDArray[np.uint64]) -> None:
        rows = math.isqrt(self.num_items - 1) + 1
        columns = -(-self.num_items // rows)
        a, b = np.uint64(rows), np.uint64(columns)
        rounds = _NUM_ROUNDS_SMALL if self.num_items <= _SMALL else _NUM_ROUNDS
        keys = [derive_seed(self.key, number) for number in range(rounds)]
        outside = np.arange(items.size)
        while outside.size:
            left, right = np.divmod(items[outside], b)
            for number, key in enumerate(keys):
                if number % 2:
                    right = (right + derive_seeds(key, left) % b) % b
                else:
                    left = (left + derive_seeds(key, right) % a) % a
            items[outside] = left * b + right
            outside = outside[items[outside] >= np.uint64(self.num_items)]


def numbers_below(
    stop: int, name: str, numbers: npt.ArrayLike, *, of: str = ""
) -> npt.NDArray[np.int64]:
    """Give an array of whole numbers in ``[0, stop)``; an empty one may have any type.

    Raises
    ------
    ValueError
        They are not whole, and a cast would cut off their fractions, or one lies
        outside; `of` says in the message what they are outside of.
    """
    array = np.asarray(numbers)
    if array.size:
        if array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} are of type {array.dtype}, expected whole numbers"
            )
        if not 0 <= array.min() <= array.max() < stop:
            raise ValueError(f"{name} reach outside of {of}[0, {stop})")
    return array.astype(np.int64)
