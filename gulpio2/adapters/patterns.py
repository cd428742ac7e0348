"""Texts made of the columns of a table, such as ``videos/{video_id}.mp4``."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Any

from gulpio2.errors import IngestSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["columns_of_pattern", "fill_pattern"]

# Characters that zeros fill a value up to, as `format` has it for whole numbers. All
# values of a CSV are texts, of which `format` takes this otherwise: 3 gets 300000.
_FILLING = re.compile(r"0([1-9][0-9]?)d?")


def columns_of_pattern(pattern: str) -> list[str]:
    """List the columns that a pattern is made of, each once.

    Parameters
    ----------
    pattern : str
        A text with names of columns in braces; ``{{`` and ``}}`` are braces.
        ``{start:06d}`` has zeros before the value, up to six characters.

    Raises
    ------
    IngestSettingError
        It names no column, or has something else in its braces.

    Examples
    --------
    >>> columns_of_pattern("{participant}/{video_id}_{start:06d}.mp4")
    ['participant', 'video_id', 'start']
    """
    columns: dict[str, None] = {}
    try:
        for _, name, spec, conversion in Formatter().parse(pattern):
            if name is None:
                continue
            if not name or conversion or (spec and not _FILLING.fullmatch(spec)):
                raise ValueError("braces hold a column, and at most :06d behind it")
            columns[name] = None
        if not columns:
            raise ValueError("it names no column, so all rows would have one path")
    except ValueError as cause:
        raise IngestSettingError(
            f"path_pattern is {pattern!r}: {cause}. Write it as "
            "'videos/{video_id}.mp4', with {{ and }} for braces of a path."
        ) from cause
    return list(columns)


def fill_pattern(pattern: str, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Put the values of each row into a pattern.

    Parameters
    ----------
    pattern : str
        As `columns_of_pattern` takes it.
    columns : mapping of str to sequence
        The values of each column that it names, all of one length.

    Returns
    -------
    list of str
        One per row.

    Examples
    --------
    >>> fill_pattern("{who}/{n:03}.mp4", {"who": ["P01", "P02"], "n": ["3", "15"]})
    ['P01/003.mp4', 'P02/015.mp4']
    """
    # Not `str.format`: to it a name such as `a.b` or `a[0]` is a part of a value.
    pieces: list[tuple[str, Sequence[Any], int]] = []
    ending = ""
    for text, name, spec, _ in Formatter().parse(pattern):
        if name is None:
            ending += text
            continue
        filling = _FILLING.fullmatch(spec or "")
        pieces.append((ending + text, columns[name], int(filling[1]) if filling else 0))
        ending = ""
    return [
        "".join(f"{text}{str(values[row]).zfill(n)}" for text, values, n in pieces)
        + ending
        for row in range(len(pieces[0][1]))
    ]
