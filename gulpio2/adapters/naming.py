"""How the images of a folder are named: as one series, or several; its warnings."""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.types import StrPath

__all__ = ["describe_series", "series_of", "warn_of_folder", "warn_of_several_series"]

logger = logging.getLogger(__name__)

_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_NUMBERS = re.compile("[0-9]+")
# Series of one folder that are told, and folders of one other folder.
_NAMED, _MAX_WARNINGS = 4, 20
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
