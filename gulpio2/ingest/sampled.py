"""Which items of a run a survey looks at."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.ingest.items import source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.types import Adapter

__all__ = ["outsized_places", "sample_positions"]

# Bytes of a source in those of the middle one, from which on it is looked at apart.
_FAR_LARGER = 4
# Part of all bytes that such items have to hold, and of all items that the largest,
# which are looked at apart, are at most: of more the sample as a whole meets enough.
_WORTH_IT, _FEW = 0.01, 0.2
# Items at most whose files are asked for their size. The sample of more is large.
_MOST = 10_000


def sample_positions(
    num_items: int, *, share: float = 0.01, least: int = 20
) -> list[int]:
    """Choose the items to look at: one by chance out of each of as many equal parts.

    Evenly spaced ones would always meet the same of what comes in turns. The choice is
    the same each time.

    Examples
    --------
    >>> sample_positions(3), len(sample_positions(100)), len(sample_positions(5000))
    ([0, 1, 2], 20, 50)
    """
    count = min(num_items, max(least, math.ceil(share * num_items)))
    rng = np.random.default_rng(0)
    borders = [turn * num_items // max(count, 1) for turn in range(count + 1)]
    return [int(rng.integers(*pair)) for pair in itertools.pairwise(borders)]


def outsized_places(adapter: Adapter, positions: Sequence[int]) -> list[dict[int, int]]:
    """Find the items whose sources are much larger than the middle one, by their size.

    A few long videos among many short ones may hold half of all frames, and a sample
    that met none of them would know of none.

    Parameters
    ----------
    adapter : Adapter
        Which tells where its items come from; else none are found.
    positions : sequence of int
        Of the items that are to be stored.

    Returns
    -------
    list of dict
        Bytes of the source by place in `positions`: one for each size within a factor
        of two.
    """
    if len(positions) > _MOST:
        return []
    sizes = {}
    for place, position in enumerate(positions):
        source = source_of(adapter, position)
        try:
            size = 0 if source is None else Path(source).stat().st_size
        except (OSError, ValueError):  # no path, or nothing there
            continue
        if size:
            sizes[place] = size
    if not sizes:
        return []
    in_order = sorted(sizes.values())
    border = max(
        _FAR_LARGER * statistics.median(in_order),
        in_order[math.floor((1 - _FEW) * len(in_order))],
    )
    found: dict[int, dict[int, int]] = {}
    for place, size in sizes.items():
        if size > border:
            found.setdefault(int(math.log2(size / border)), {})[place] = size
    held = sum(map(sum, map(dict.values, found.values())))
    return [*found.values()] if held >= _WORTH_IT * sum(in_order) else []
