"""Which items of a run a survey looks at, and in which order."""

from __future__ import annotations

import itertools
import math
import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.ingest.items import sized_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from gulpio2.types import Adapter

__all__ = ["SamplePlan", "plan_of_sizes", "plan_sample", "sample_positions"]

# Files of a folder that are asked for their size at least; of a large one the square
# root of their number.
_IN_FOLDER = 4
# Part of the items that files of one ending must be to count as a kind: of a smaller
# part, twenty looks may meet none.
_OWN_KIND = 0.05
# Where the items differ much, the sample grows up to this many times its first size.
_AT_MOST = 5
# Larger items are looked at more often, but the files of the sample hold at most this
# many times the bytes that they would if each item had the same chance.
_MORE_BYTES = 3
# If files of about one size hold this part of all bytes, one of them is looked at in
# any case: a few long videos may hold half of all frames. Where the sample is expected
# to have this many of them, it will have one anyway.
_WORTH_IT, _MET_ANYWAY = 0.02, 2
# Distance between kinds, to be added to logarithms of sizes: so large that no item is
# nearest to one of another kind.
_APART = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class SamplePlan:
    """In which order to look at items, and what is known of all before that."""

    num_items: int
    """Of the run."""
    places: npt.NDArray[np.int64]
    """Where each item that may be looked at is among the items of the run. They are
    sorted by kind and size, and so are the arrays below."""
    kinds: npt.NDArray[np.int64]
    """A number for the kind of each: the ending of its file, where many have it."""
    sizes: npt.NDArray[np.float64]
    """Size of each file, divided by the mean of its kind; 1 where it is not known."""
    order: npt.NDArray[np.int64]
    """Their ranks in these arrays, in the order of the looks. However many are looked
    at, they are spread over all."""
    first: int
    """How many to look at at least."""
    most: int
    """How many to look at at most."""

    def coordinates(self) -> npt.NDArray[np.float64]:
        """Give a number for each item; those of items that are alike are near."""
        return np.asarray(_APART * self.kinds + np.log(self.sizes), np.float64)


def sample_positions(num_items: int, count: int) -> list[int]:
    """Choose `count` items: one by chance out of each of so many equal parts.

    If items of several kinds come in turns, evenly spaced ones might all be of one
    kind. The choice is the same each time.

    Examples
    --------
    >>> sample_positions(3, 20), sample_positions(12, 4)
    ([0, 1, 2], [2, 4, 7, 9])
    """
    count = min(num_items, count)
    rng = np.random.default_rng(0)
    borders = [turn * num_items // max(count, 1) for turn in range(count + 1)]
    return [int(rng.integers(*pair)) for pair in itertools.pairwise(borders)]


def plan_sample(
    adapter: Adapter,
    positions: Sequence[int],
    *,
    share: float = 0.01,
    least: int = 20,
    most_files: int = 10_000,
) -> SamplePlan:
    """Choose the items to look at, by what is known of all: the sizes of their files.

    Parameters
    ----------
    adapter : Adapter
        Which may tell where its items come from.
    positions : sequence of int
        Of the items that are to be stored.
    share, least
        As for `plan_of_sizes`.
    most_files : int, optional
        Items at most whose files are asked for their size, which takes a while on a
        disk of another machine. Of more items, so many are chosen by chance.

    Notes
    -----
    The size of a folder is estimated from some of its files. A folder that several
    items share says nothing of the size of any. Nor does a file of excerpts: these are
    compared by their lengths.
    """
    most = max(most_files, least, math.ceil(share * len(positions)))
    places = sample_positions(len(positions), most)
    sources = [sized_source(adapter, positions[place]) for place in places]
    times = Counter(path for path, _ in sources)
    found = [
        _look_at_source(path, length, is_shared=times[path] > 1)
        for path, length in sources
    ]
    counts = Counter(ending for ending, size in found if size)
    common = [n for n in sorted(counts) if counts[n] >= _OWN_KIND * len(found)]
    # 0 where the size is not known, 1 for rare endings, then one for each other.
    kinds = {name: number for number, name in enumerate(common, start=2)}
    return plan_of_sizes(
        [size for _, size in found],
        kinds=[kinds.get(ending, 1) if size else 0 for ending, size in found],
        places=places,
        num_items=len(positions),
        share=share,
        least=least,
    )


def _look_at_source(
    name: str, length: float | None, *, is_shared: bool
) -> tuple[str, float]:
    """Give the ending and the size of an item's files; zero where there are none.

    Of an excerpt its `length` is its size.
    """
    if not name:  # `Path("")` is the current folder
        return "", 0
    try:
        path = Path(name)
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            return "/", 0 if is_shared else _size_of_folder(path)
    except (OSError, ValueError):  # no path, or nothing there
        return "", 0
    if not stat.S_ISREG(state.st_mode):
        size = 0.0
    elif length is None:
        size = max(1, state.st_size)  # an empty file is one whose size is known
    else:
        size = length
    return path.suffix.lower(), size


def _size_of_folder(folder: Path) -> int:
    """Tell from some of the files in a folder how large all are together."""
    names = os.listdir(folder)  # noqa: PTH208  # of thousands of files
    names = sorted(name for name in names if not name.startswith("."))
    count = min(len(names), max(_IN_FOLDER, math.isqrt(len(names))))
    some = [names[turn * len(names) // count] for turn in range(count)]
    states = [(folder / name).stat() for name in some]
    size = sum(state.st_size for state in states if stat.S_ISREG(state.st_mode))
    return size * len(names) // max(count, 1)


def plan_of_sizes(
    sizes: npt.ArrayLike,
    *,
    kinds: npt.ArrayLike | None = None,
    places: npt.ArrayLike | None = None,
    num_items: int | None = None,
    share: float = 0.01,
    least: int = 20,
    seed: int = 0,
) -> SamplePlan:
    """Choose the items to look at, by the sizes of files.

    Parameters
    ----------
    sizes : array_like
        Bytes; zero where it is not known.
    kinds : array_like, optional
        What kind of file each is, a number. Sizes are compared within a kind.
    places : array_like, optional
        Where each is among the items of the run.
    num_items : int, optional
        Of the run, where `sizes` are those of a part of it.
    share : float, optional
        Part of the items of the run to look at.
    least : int, optional
        Items to look at if the share is smaller; all of them if there are fewer.
    seed : int, optional
        Another one gives another choice.

    Notes
    -----
    A long video says more of the whole than a short one, but looking at it takes
    longer. For a given time the error is smallest where the chance of each grows as the
    square root of its size (Cochran, Sampling Techniques, 5.5, with costs and
    deviations that both are as the size). Items below the mean all have the same
    chance: the share. What fails is often small.
    """
    bytes_ = np.asarray(sizes, np.float64)
    kind = np.zeros(len(bytes_), np.int64)
    if kinds is not None:
        kind = np.asarray(kinds, np.int64)
    known = bytes_ > 0
    in_kind = np.bincount(kind[known], minlength=kind.max(initial=0) + 1)
    means = np.bincount(kind[known], bytes_[known], len(in_kind)) / in_kind.clip(1)
    relative = np.ones(len(bytes_))
    relative[known] = bytes_[known] / means[kind[known]]
    ranked = np.lexsort((relative, kind))
    relative, kind, bytes_ = relative[ranked], kind[ranked], bytes_[ranked]
    chances = _chances_of(relative)
    total = len(bytes_) if num_items is None else num_items
    part = max(share * total, least) / max(len(bytes_), 1)
    turns = _spread(len(bytes_), np.random.default_rng(seed)) / chances
    chosen = _in_any_case(kind, relative, bytes_, turns, np.minimum(part * chances, 1))
    turns[chosen], chances[chosen] = 0, np.inf
    first, most = (
        math.ceil(np.minimum(times * part * chances, 1).sum() - 1e-6)
        for times in (1, _AT_MOST)
    )
    return SamplePlan(
        num_items=total,
        places=ranked if places is None else np.asarray(places, np.int64)[ranked],
        kinds=kind,
        sizes=relative,
        order=np.argsort(turns, kind="stable"),
        first=first,
        most=most,
    )


def _chances_of(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give how many times as likely as a small item each is looked at."""
    border = 1.0
    while True:
        chances = np.sqrt(np.maximum(sizes / border, 1))
        if sizes @ chances <= _MORE_BYTES * sizes.sum():
            return chances
        border *= 1.2


def _in_any_case(
    kinds: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.float64],
    bytes_: npt.NDArray[np.float64],
    turns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
) -> list[int]:
    """Choose an item of each size class that has many bytes in few items.

    Of each kind one is chosen: what is rare may be long, or fail.
    """
    octaves = np.floor(np.log2(sizes))
    found = set()

    def choose(those: npt.NDArray[np.int64]) -> None:
        if chances[those].sum() < _MET_ANYWAY:
            found.add(int(those[turns[those].argmin()]))

    for kind, octave in sorted({*zip(kinds.tolist(), octaves.tolist(), strict=True)}):
        those = np.flatnonzero((kinds == kind) & (octaves == octave))
        if any(each[those].sum() >= _WORTH_IT * each.sum() for each in (sizes, bytes_)):
            choose(those)
    for kind in sorted({*kinds.tolist()} - {*kinds[sorted(found)].tolist()}):
        choose(np.flatnonzero(kinds == kind))
    return sorted(found)


def _spread(count: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Give numbers in [0, 1) of which those below any border are spread evenly.

    Each half of the list has nearly as many of these as the other, and so has each
    half of a half, and so on. Which half has the smaller numbers is decided by chance
    for each part, so that items of kinds that come in turns are met of all kinds (van
    der Corput's sequence, scrambled as by Owen).
    """
    places = np.arange(count)
    levels = max(count - 1, 0).bit_length()
    turns = np.zeros(count)
    for level in range(levels):
        below = levels - level
        swapped = rng.integers(0, 2, 1 << level)[places >> below]
        turns += (((places >> (below - 1)) & 1) ^ swapped) << level
    return np.asarray((turns + rng.random(count)) / (1 << levels))
