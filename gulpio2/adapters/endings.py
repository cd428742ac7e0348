"""Paths of which the ending is not known: ``videos/abc.*``."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.errors import SourceNotFoundError, SourceReadError
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ANY_ENDING", "find_by_ending"]

ANY_ENDING = ".*"
"""Stands for the ending of the one file that is there."""


def find_by_ending(path: str, *formats: Iterable[str]) -> str:
    """Find the file that a path with any ending means.

    Parameters
    ----------
    path : str
        It ends in `ANY_ENDING`.
    *formats : iterable of str
        Endings without their dot, in lower case; those in upper case count as well.
        Files of the second are looked for where there is none of the first, as
        downloads have pictures beside their videos.

    Returns
    -------
    str
        The path of the file. No folder is listed: it may have a million of them.

    Raises
    ------
    SourceNotFoundError
        There is none.
    SourceReadError
        There are several.
    """
    if _key_of(path) is not None:  # it is called so
        return path
    stem = path.removesuffix(ANY_ENDING)
    for endings in formats:
        written = [ending for each in endings for ending in (each, each.upper())]
        there = {
            key: name
            for ending in sorted(written)
            if (key := _key_of(name := f"{stem}.{ending}")) is not None
        }  # one file where names are the same in either case
        if len(there) > 1:
            names = sorted(Path(name).name for name in there.values())
            raise SourceReadError(
                f"{path!r} may be any of {', '.join(names)}. Keep one of them, or give "
                "the path an ending."
            )
        if there:
            return next(iter(there.values()))
    known = ", ".join(f".{ending}" for each in formats for ending in sorted(each))
    raise SourceNotFoundError(
        f"There is no {path!r}, with any of the endings {known}, in small or in "
        "capital letters. Check the path column or the path template, or say what "
        "paths begin at in root_folder (on the command line --root-folder)."
    )


def _key_of(path: str) -> tuple[int, int] | None:
    """Tell a file from others; None where there is none."""
    try:
        state = os.stat(path)  # noqa: PTH116  # a tenth of Path's time
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as cause:
        raise refused(cause, "look for", path) from cause
    return (state.st_dev, state.st_ino) if stat.S_ISREG(state.st_mode) else None
