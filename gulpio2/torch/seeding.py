"""Randomness that belongs to a sample, whichever process makes it."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

from gulpio2.order import Purpose, derive_seed
from gulpio2.order.seeds import GOLDEN, derive_seeds, mix64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from gulpio2.order import OrderCursor
    from gulpio2.order.cursor import Portion

    Words = npt.NDArray[np.uint64]

__all__ = [
    "SampleIndex",
    "places_of",
    "rng_of",
    "sample_rng",
    "seeded",
    "substitute_index",
]

# Used instead of the number of a word, and never one.
_CHILDREN = -1
# 64-bit words of which a generator is made.
_NUM_WORDS = 4


class SampleIndex(int):
    """An index that carries its place in the run: what a resumable sampler gives.

    To everybody else it is an int; the datasets of this package take their randomness
    from its seed, so that a sample is the same wherever and whenever it is made.

    Parameters
    ----------
    index : int
        Item of the dataset.
    seed : int
        Of this sample, a function of the run's seed, the epoch and the position.
    epoch, position : int
        Where in the global order it stands.
    """

    seed: int
    epoch: int
    position: int
    _words: tuple[int, Words] | None = None  # see `places_of`

    def __new__(
        cls, index: int, *, seed: int, epoch: int, position: int
    ) -> SampleIndex:
        """Make the int and attach its place to it."""
        self = super().__new__(cls, index)
        self.seed, self.epoch, self.position = seed, epoch, position
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]:
        """Pickle with the place."""
        place = {"seed": self.seed, "epoch": self.epoch, "position": self.position}
        return (int(self),), place

    def at(self, index: int) -> SampleIndex:
        """Give another index at the same place, for a dataset inside of this one."""
        other = SampleIndex(
            index, seed=self.seed, epoch=self.epoch, position=self.position
        )
        other._words = self._words
        return other

    @property
    def words(self) -> Words | None:
        """Of which its generator is made, where they were made for many at once.

        They belong to the seed that it had then: somebody may have given it another.
        """
        made = self._words
        return made[1] if made is not None and made[0] == self.seed else None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again sooner than sent."""
        state = self.__dict__.copy()
        state.pop("_words", None)
        return state


def places_of(cursor: OrderCursor, *, used_here: bool = True) -> Iterator[SampleIndex]:
    """Give what a cursor has pending as the indices that our datasets take.

    Parameters
    ----------
    cursor : OrderCursor
        See `OrderCursor.pending`.
    used_here : bool, default True
        Whether the samples are made in this process: then with `SampleIndex.words`,
        which do not travel.
    """
    # Asked for here and not in the generator, which begins when the cursor may have
    # moved: what is given does not follow it.
    return _places_of(cursor.portions(), used_here=used_here)


def _places_of(
    portions: Iterable[Portion], *, used_here: bool
) -> Iterator[SampleIndex]:
    for portion in portions:
        all_words = _words_of(portion.seeds) if used_here else itertools.repeat(None)
        for index, position, seed, words in zip(
            portion.indices.tolist(),
            portion.positions.tolist(),
            portion.seeds.tolist(),
            all_words,
            strict=False,
        ):
            place = SampleIndex(
                index, seed=seed, epoch=portion.epoch, position=position
            )
            if words is not None:
                place._words = seed, words
            yield place


def substitute_index(original: SampleIndex, attempt: int, length: int) -> SampleIndex:
    """Choose what takes the place of a sample that could not be made.

    Parameters
    ----------
    original : SampleIndex
        The sample that was asked for.
    attempt : int
        Counted from 1, so that each attempt has a choice of its own.
    length : int
        Samples to choose from.

    Returns
    -------
    SampleIndex
        The same for the same seed, epoch, position and attempt.
    """
    seed = derive_seed(original.seed, Purpose.SUBSTITUTE, attempt)
    return SampleIndex(
        seed % length, seed=seed, epoch=original.epoch, position=original.position
    )


class _Scattered(ISpawnableSeedSequence):
    """A seed that is mixed already, as numpy's generators want it: in many words.

    numpy's own `SeedSequence` mixes again what `gulpio2.order.derive_seed` has mixed,
    which takes longer than all else that is done to choose the frames of a clip.
    """

    def __init__(self, seed: int, words: Words | None = None) -> None:
        self._seed = seed
        self._words = words
        self._num_children = 0

    def generate_state(
        self, n_words: int, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[Any]:
        """Give as many words, each a seed of its own of this one."""
        if self._words is not None and n_words == _NUM_WORDS and dtype is np.uint64:
            return self._words.copy()
        words, seed = [], self._seed
        for _ in range(n_words):  # splitmix64's own sequence
            seed += GOLDEN
            words.append(mix64(seed))
        scattered = np.array(words, np.uint64)
        return scattered if dtype is np.uint64 else scattered.astype(dtype)

    def spawn(self, n_children: int) -> list[_Scattered]:
        """Give further ones, for a sampler that wants generators of its own."""
        first = self._num_children
        self._num_children += n_children
        return [
            _Scattered(derive_seed(self._seed, _CHILDREN, number))
            for number in range(first, self._num_children)
        ]


def _words_of(seeds: npt.NDArray[np.uint64]) -> Words:
    """Give the words of which a generator of each seed is made, ``(seeds, 4)``."""
    steps = np.arange(_NUM_WORDS, dtype=np.uint64) * np.uint64(GOLDEN)
    return derive_seeds(0, seeds[:, np.newaxis] + steps)  # see `generate_state`


def rng_of(seed: int, words: Words | None = None) -> np.random.Generator:
    """Give a generator of a seed that `derive_seed` made, or one as well mixed.

    Parameters
    ----------
    seed : int
        In ``[0, 2 ** 64)``.
    words : numpy.ndarray of uint64, optional
        Those of this seed, see `SampleIndex.words`.
    """
    scattered: Any = _Scattered(seed, words)  # of numpy's interface, not of its types
    return np.random.Generator(np.random.PCG64(scattered))


def sample_rng(index: int) -> np.random.Generator:
    """Give the generator from which the frames of a sample are chosen.

    Parameters
    ----------
    index : int
        A `SampleIndex` gives its own generator; any other int one that is drawn from
        numpy's global state, which a worker's initialisation seeds.

    Returns
    -------
    numpy.random.Generator
        A new one.
    """
    if isinstance(index, SampleIndex):
        return rng_of(index.seed, index.words)
    drawn = np.random.randint(0, 2**31, size=4)  # noqa: NPY002  what workers seed
    return np.random.default_rng(drawn)


@contextmanager
def seeded(index: int) -> Iterator[None]:
    """Let the global generators belong to one sample, and give them back after it.

    Parameters
    ----------
    index : int
        A `SampleIndex` seeds ``random``, ``numpy.random`` and, where it is loaded,
        torch on the CPU, for transforms that use those; any other int does nothing.

    Notes
    -----
    The generators are the process's: not for several threads at once. In a worker of a
    ``DataLoader``, which makes samples and nothing else, they stay as they are at the
    end: to keep them takes a quarter of the time of decoding a frame of 340x256.
    """
    if not isinstance(index, SampleIndex):
        yield
        return
    torch: Any = sys.modules.get("torch")  # transforms that use it have loaded it
    if not _INSIDE.sample and _is_worker():
        _INSIDE.sample = True  # one that is made for it gives them back to this one
        try:
            _seed(index.seed, torch)
            yield
        finally:
            _INSIDE.sample = False
        return
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002  what transforms use
    torch_state = torch and torch.default_generator.get_state()
    try:
        _seed(index.seed, torch)
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002  what transforms use
        if torch:
            torch.default_generator.set_state(torch_state)


def _is_worker() -> bool:
    """Tell whether this is a worker of a DataLoader."""
    data: Any = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


class _Inside(threading.local):
    """Whether this thread is making a sample for which the generators are seeded."""

    sample = False


_INSIDE = _Inside()


def _seed(seed: int, torch: Any) -> None:
    """Seed the global generators."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002  what transforms use
    if torch:
        torch.default_generator.manual_seed(seed >> 1)
