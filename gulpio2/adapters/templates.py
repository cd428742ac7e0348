"""Texts made of the columns of a table, such as ``videos/{video_id}.mp4``."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.adapters.endings import ANY_ENDING
from gulpio2.errors import IngestSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Piece", "fill_template", "parse_template"]

# Characters that zeros fill a value up to, as `format` has it for whole numbers. All
# values of a CSV are texts, of which `format` takes this otherwise: 3 gets 300000.
_FILLING = re.compile(r"0([1-9][0-9]?)d?")


class Piece(NamedTuple):
    """A part of a template: a text, and the column behind it."""

    text: str
    column: str | None
    """None behind the last text."""
    width: int
    """Characters that zeros fill the value up to."""


def parse_template(template: str) -> list[Piece]:
    """Take a template apart.

    Parameters
    ----------
    template : str
        A text with names of columns in braces; ``{{`` and ``}}`` are braces.
        ``{start:06d}`` has zeros before the value, up to six characters; ``.*`` at the
        end is any ending.

    Raises
    ------
    IngestSettingError
        It names no column, or has something else in its braces.

    Examples
    --------
    >>> [piece.column for piece in parse_template("{participant}/{start:06d}.mp4")]
    ['participant', 'start', None]
    """
    pieces: list[Piece] = []
    try:
        for text, column, spec, conversion in Formatter().parse(template):
            filling = _FILLING.fullmatch(spec or "")
            if column == "" or conversion or (spec and not filling):
                raise ValueError("braces hold a column, and at most :06d behind it")
            pieces.append(Piece(text, column, int(filling[1]) if filling else 0))
        # Without the columns, whose names may have one.
        fixed = "".join(f"{text}/" if column else text for text, column, _ in pieces)
        if "*" in fixed.removesuffix(ANY_ENDING):
            raise ValueError("a * is only at its end, as .*, for any ending")
        if not any(piece.column for piece in pieces):
            raise ValueError("it names no column, so all rows would have one path")
    except ValueError as cause:
        raise IngestSettingError(
            f"path_template is {template!r}: {cause}. Write it as "
            "'videos/{video_id}.mp4', with {{ and }} for braces of a path."
        ) from cause
    return pieces


def fill_template(
    pieces: Sequence[Piece], columns: Mapping[str, Sequence[Any]], num_rows: int
) -> list[str]:
    """Put the values of each row into a template.

    Parameters
    ----------
    pieces : sequence of Piece
        The template.
    columns : mapping of str to sequence
        The values of each column that it names, a value per row.
    num_rows : int
        How many rows there are.

    Returns
    -------
    list of str
        One per row.

    Examples
    --------
    >>> pieces = parse_template("{who}/{n:03}.mp4")
    >>> fill_template(pieces, {"who": ["P01", "P02"], "n": ["3", "15"]}, 2)
    ['P01/003.mp4', 'P02/015.mp4']
    """
    # Not `str.format`: to it a name such as `a.b` or `a[0]` is a part of a value.
    values = [columns[piece.column] if piece.column else None for piece in pieces]
    return [
        "".join(
            text if cells is None else f"{text}{str(cells[row]).zfill(width)}"
            for (text, _, width), cells in zip(pieces, values, strict=True)
        )
        for row in range(num_rows)
    ]
