"""Data files that have changed places, told by their lengths alone.

What GulpIO2 0.0.4 wrote has no checksums: of two of its data files that were swapped
nothing but this tells.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gulpio2.format.layout import data_name, meta_name
from gulpio2.format.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["note_changed_places"]

# Files of one circle that are named.
_MOST = 10


def note_changed_places(lengths: Mapping[int, tuple[int, int]]) -> list[Problem]:
    """Note data files of which each has the length that the map of another speaks of.

    Parameters
    ----------
    lengths : mapping
        By number of chunk: bytes of its data file, and where its map says that ends.

    Returns
    -------
    list of Problem
        One for each circle of files, at its lowest number. None where another file or
        map would fit as well.
    """
    wrong = {n: pair for n, pair in lengths.items() if pair[0] != pair[1]}
    sizes = Counter(size for size, _ in wrong.values())
    ends = Counter(end for _, end in wrong.values())
    owners = {end: n for n, (_, end) in wrong.items() if ends[end] == sizes[end] == 1}
    follows = {n: owners[size] for n, (size, _) in wrong.items() if size in owners}
    notes = []
    seen: set[int] = set()
    for first in sorted(follows):
        circle: list[int] = []
        number: int | None = first
        while number is not None and number not in seen:
            seen.add(number)
            circle.append(number)
            number = follows.get(number)
        if circle and number == first:  # no two files lead to the same map
            notes.append(_note(circle, follows))
    return notes


def _note(circle: list[int], follows: Mapping[int, int]) -> Problem:
    (first, then), *others = [(data_name(n), meta_name(follows[n])) for n in circle]
    told = [f"{data} that of {map_}" for data, map_ in others[: _MOST - 1]]
    more = len(others) - len(told)
    text = (
        f"has the length that {then} speaks of, {', '.join(told)}"
        + (f", and so on for {more} more" if more else "")
        + ": the data files seem to have changed places. Give each the number of that "
        "map, by way of another name, and check again"
    )
    return Problem("changed-places", text, first)
