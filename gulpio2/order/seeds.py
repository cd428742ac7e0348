"""64-bit seeds out of seeds: the same on every machine, Python and numpy.

Whole-number arithmetic only, so nothing here depends on a random generator's version.
"""

from __future__ import annotations

import operator
from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["GOLDEN", "Purpose", "derive_seed", "derive_seeds", "mix64"]

_MASK = (1 << 64) - 1
# The increment and the two multipliers of splitmix64: Steele, Lea and Flood, "Fast
# splittable pseudorandom number generators", OOPSLA 2014.
GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


class Purpose(IntEnum):
    """What a seed is for, so that two uses of one (seed, epoch) never share it.

    The numbers are part of the order that a seed gives: add new ones, change none.
    """

    PERMUTATION = 1
    MIXTURE = 2
    AUGMENTATION = 3
    SUBSTITUTE = 4
    FINGERPRINT = 5
    VIEW = 6


def mix64(value: int) -> int:
    """Scatter a 64-bit value over all 64-bit values, one to one (splitmix64)."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)


def derive_seed(*parts: int) -> int:
    """Make one 64-bit seed out of whole numbers; their order matters.

    Parameters
    ----------
    *parts : int
        Any whole numbers, taken modulo ``2 ** 64``.

    Returns
    -------
    int
        In ``[0, 2 ** 64)``.

    Examples
    --------
    >>> derive_seed(0, 1) == derive_seed(1, 0)
    False
    """
    seed = 0
    for part in parts:
        seed = mix64((seed ^ (operator.index(part) & _MASK)) + GOLDEN)
    return seed


def derive_seeds(base: int, parts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Take one more part into a seed, for many parts at once.

    ``derive_seeds(derive_seed(a, b), [c, d])`` is
    ``[derive_seed(a, b, c), derive_seed(a, b, d)]``.

    Parameters
    ----------
    base : int
        What `derive_seed` gave for the parts before.
    parts : numpy.ndarray of uint64
        The last part, of any number of axes from 1 on.

    Returns
    -------
    numpy.ndarray of uint64
        Of the shape of `parts`.
    """
    value = (parts ^ np.uint64(base)) + np.uint64(GOLDEN)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(_FIRST)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(_SECOND)
    return value ^ (value >> np.uint64(31))
