"""How the images of a folder are named: as one series, or several; its warnings."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.format.wording import some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.types import StrPath

__all__ = [
    "describe_series",
    "numbers_of",
    "series_of",
    "warn_of_folder",
    "warn_of_late_beginning",
    "warn_of_no_numbers",
    "warn_of_numbers",
    "warn_of_several_series",
]

logger = logging.getLogger(__name__)

_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_NUMBERS = re.compile("[0-9]+")
# Series of one folder that are told, and folders of one other folder.
_NAMED, _MAX_WARNINGS = 4, 20
_ENDS_IN_DECIMALS = re.compile(r"[0-9]\.\Z")
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
    >>> numbers_of(["v1_img_0009.jpg", "v1_img_0010.png"]), numbers_of(["a7.jpg"])
    ([9, 10], [7])
    """
    numbers = _numbers(names)
    is_ascending = all(a < b for a, b in pairwise(numbers))
    return numbers if numbers and is_ascending else None


def _numbers(names: Sequence[str]) -> list[int]:
    """Give the one number in which names differ; nothing where they differ otherwise.

    Of a single name it is the one at its end.
    """
    first, last = (name.rpartition(".")[0] for name in (names[0], names[-1]))
    before = os.path.commonprefix((first, last))  # noqa: RUF071  # of names
    before = before.rstrip("0123456789")
    if _ENDS_IN_DECIMALS.search(before):  # 0.04.jpg is no image number 4
        return []
    after = first[len(before) :].lstrip("0123456789")  # as in img_001_rgb.jpg
    number = re.compile(rf"{re.escape(before)}([0-9]+){re.escape(after)}\.[^.]+")
    numbers = [int(each[1]) for each in map(number.fullmatch, names) if each]
    return numbers if len(numbers) == len(names) else []


def warn_of_numbers(folder: StrPath, names: Sequence[str], *, is_timed: bool) -> None:
    """Warn where the numbers of an item's images leave some out, or come twice.

    Those of every fifth image of a video leave out none.

    Parameters
    ----------
    folder : str or path object
        Of the item.
    names : sequence of str
        Sorted by their numbers.
    is_timed : bool
        Whether the numbers are times as well.
    """
    ends = _numbers([names[0], names[-1]] if len(names) > 1 else names)
    is_full = not ends or ends[-1] - ends[0] == len(names) - 1
    if is_full and len({*map(len, names)}) == 1:  # of most folders
        return
    numbers = _numbers(names)
    twice = [n for n, (a, b) in enumerate(pairwise(numbers)) if a == b]
    if twice:
        warn_of_folder(
            folder,
            "numbers of images come twice",
            "images in %s have the same number, as %s and %s (%s of %s): all of them "
            "are frames of the one item. Move those that are not to another folder",
            *(names[twice[0]], names[twice[0] + 1]),
            *(str(len(twice)), str(len(names))),
        )
        return
    if gaps := _gaps(numbers):
        step = min(b - a for a, b in pairwise(numbers))
        expected = (numbers[-1] - numbers[0]) // step + 1
        effect = "at their times there is nothing"
        if not is_timed:
            effect = "what is on either side of a gap is stored as if it followed"
        warn_of_folder(
            folder,
            "numbers of images are missing",
            "images are missing in %s by their numbers, %s of %s: %s; %s. Bring back "
            "what is missing, or leave the item out",
            *(str(expected - len(numbers)), str(expected)),
            *(some_of(gaps, _MAX_GAPS), effect),
        )


def _gaps(numbers: Sequence[int]) -> list[str]:
    """Name the numbers that are missing in a row; nothing of what is none."""
    steps = [b - a for a, b in pairwise(numbers)]
    step = min(steps, default=0)
    # Times, and what was drawn at random, are no numbers of a row.
    if 2 * steps.count(step) < len(steps) or any(each % step for each in steps):
        return []
    return [
        f"{a + step}" if b == a + 2 * step else f"{a + step} to {b - step}"
        for a, b in pairwise(numbers)
        if b > a + step
    ]


def warn_of_no_numbers(folder: StrPath) -> None:
    """Warn where times are to go by numbers, and images have none."""
    warn_of_folder(
        folder,
        "images have no numbers",
        "the images in %s have no number each, in ascending order: their times go by "
        "their places, as if none were missing. Rename them, or give no image_rate",
    )


def warn_of_late_beginning(folder: StrPath, numbers: Sequence[int]) -> None:
    """Warn where nothing says whether images that begin late are all there are."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if numbers[0] > step:
        warn_of_folder(
            folder,
            "images begin with a later number than 1",
            "the images in %s begin with number %s, which is taken for the image at 0 "
            "seconds. If images before it are missing, or numbers count from the "
            "beginning of a recording, give first_number, as 1 (on the command line "
            "--first-number 1)",
            str(numbers[0]),
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
