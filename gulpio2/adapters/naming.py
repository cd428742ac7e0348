"""How the images of a folder are named: as one series, or several; its warnings."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.types import StrPath

__all__ = [
    "describe_series",
    "numbers_of",
    "series_of",
    "warn_of_folder",
    "warn_of_gaps",
    "warn_of_several_series",
]

logger = logging.getLogger(__name__)

_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_NUMBERS = re.compile("[0-9]+")
# Series of one folder that are told, and folders of one other folder.
_NAMED, _MAX_WARNINGS = 4, 20
# Gaps in the numbers of one folder that are told.
_MAX_GAPS = 3
_num_warned: Counter[tuple[str, str]] = Counter()


def series_of(names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Sort names into those that differ in their numbers alone, or in case.

    Returns
    -------
    dict
        What they have in common, to one of the names with stars for numbers, and how
        many there are.

    Examples
    --------
    >>> series_of(["img_1.jpg", "img_2.jpg", "flow_x_1.jpg"])
    {'img_.jpg': ('img_*.jpg', 2), 'flow_x_.jpg': ('flow_x_*.jpg', 1)}
    """
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name in names:
        key = name.translate(_NO_DIGITS).lower().replace(".jpeg", ".jpg")
        first.setdefault(key, name)
        counts[key] += 1
    return {key: (_NUMBERS.sub("*", name), counts[key]) for key, name in first.items()}


def describe_series(series: Iterable[tuple[str, int]]) -> str:
    """Name series of images, each with how many there are.

    Examples
    --------
    >>> describe_series([("img_*.jpg", 2), ("flow_x_*.jpg", 1)])
    'flow_x_*.jpg (1), img_*.jpg (2)'
    """
    told = [f"{kind} ({number})" for kind, number in sorted(series)]
    more = [f"and {len(told) - _NAMED} more"] if told[_NAMED:] else []
    return ", ".join([*told[:_NAMED], *more])


def warn_of_several_series(folder: StrPath, names: Iterable[str]) -> None:
    """Warn where the images of an item are several series, as frames and a flow.

    Pictures that are named each in its own way are none.
    """
    series = series_of(names).values()
    if not (1 < len(series) <= _NAMED and max(number for _, number in series) > 1):
        return
    warn_of_folder(
        folder,
        "images are named in several ways",
        "the images in %s are named in several ways, %s, and all of them are frames of "
        "the one item. If some are not, move them to another folder, or ingest by "
        "FrameFolderAdapter (gulp2 ingest frame-folder) with the prefix of the others",
        describe_series(series),
    )


def numbers_of(names: Sequence[str]) -> list[int] | None:
    """Give the numbers in the names of a series of images.

    Parameters
    ----------
    names : sequence of str
        Sorted by their numbers.

    Returns
    -------
    list of int, or None
        None where the names do not differ in one ascending number alone.

    Examples
    --------
    >>> numbers_of(["v1_img_0009.jpg", "v1_img_0010.png"])
    [9, 10]
    """
    ends = names[0], names[-1]
    before = os.path.commonprefix(ends).rstrip("0123456789")  # noqa: RUF071  # of names
    number = re.compile(re.escape(before) + r"([0-9]+)\.[A-Za-z]+")
    numbers = [int(each[1]) for each in map(number.fullmatch, names) if each]
    is_one_each = len(numbers) == len(names)
    is_ascending = all(a < b for a, b in pairwise(numbers))
    return numbers if is_one_each and is_ascending else None


def warn_of_gaps(folder: StrPath, names: Sequence[str]) -> None:
    """Warn where the numbers in the names of an item's images leave some out.

    Those of every fifth image of a video leave out none.

    Parameters
    ----------
    folder : str or path object
        Of the item.
    names : sequence of str
        Sorted by their numbers.
    """
    ends = numbers_of([names[0], names[-1]])
    if ends is None or ends[-1] - ends[0] < len(names):  # of most folders
        return
    numbers = numbers_of(names) or []
    steps = [b - a for a, b in pairwise(numbers)]
    step = min(steps, default=0)
    # Times, and what was drawn at random, are no numbers of a row.
    if 2 * steps.count(step) <= len(steps) or any(each % step for each in steps):
        return
    gaps = [
        f"{a + step}" if b == a + 2 * step else f"{a + step} to {b - step}"
        for a, b in pairwise(numbers)
        if b > a + step
    ]
    if not gaps:
        return
    expected = (numbers[-1] - numbers[0]) // step + 1
    more = [f"{len(gaps) - _MAX_GAPS} more gaps"] if gaps[_MAX_GAPS:] else []
    warn_of_folder(
        folder,
        "numbers of images are missing",
        "images are missing in %s by their numbers, %s of %s: %s. What is on either "
        "side of a gap is stored as if it followed: bring back what is missing, or "
        "leave the item out",
        str(expected - len(numbers)),
        str(expected),
        ", ".join([*gaps[:_MAX_GAPS], *more]),
    )


def warn_of_folder(folder: StrPath, what: str, message: str, *args: str) -> None:
    """Warn of the folder of an item; of many that lie in one, of the first alone.

    Parameters
    ----------
    folder : str or path object
        Of the item.
    what : str
        What it is that is the same in all of them, as "files are left out".
    message, *args : str
        With ``%s`` for the folder, and then for each of `args`.
    """
    parent = str(Path(folder).parent)
    _num_warned[parent, what] += 1
    number = _num_warned[parent, what]
    is_shown = number <= _MAX_WARNINGS
    logger.log(logging.WARNING if is_shown else logging.DEBUG, message, folder, *args)
    if number == _MAX_WARNINGS + 1:
        logger.warning(
            "%s in more than %d folders of %s; the others are not told",
            what,
            _MAX_WARNINGS,
            parent,
        )
