"""What the texts of a table stand for."""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = ["as_float", "parse_column"]

# No leading zeros: 007 is a name. No plus sign: +49 is a telephone number. No more
# digits than Python makes a number of.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,3999})")
_FLOAT = re.compile(
    r"-?((0|[1-9][0-9]{0,299})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|nan|-?inf",
    re.IGNORECASE,
)
_BOOLEANS = {"true": True, "false": False}


def as_float(text: str) -> float | str:
    """Give the number that a text is; the text itself where no float is as large.

    Examples
    --------
    >>> as_float("2.5"), as_float("1e400"), as_float("inf")
    (2.5, '1e400', inf)
    """
    number = float(text)
    # An infinity that nobody has written would be stored in the place of a number.
    return text if math.isinf(number) and text[-1].isdecimal() else number


def parse_column(values: list[str]) -> list[Any]:
    """Give the texts of a column the type that all of them have.

    Parameters
    ----------
    values : list of str
        Cells; blank ones fit every type.

    Returns
    -------
    list
        Where every cell that is not blank is ``true`` or ``false``: bool. An integer
        without leading zeros or plus sign: int. A decimal number that a float can be,
        ``nan`` or ``inf``, and at least one of them finite: float. A blank cell is None
        in these. In any other case the texts as they are, the blank ones too.

    Examples
    --------
    >>> parse_column(["1", "", "20"]), parse_column(["1", "2.5"])
    ([1, None, 20], [1.0, 2.5])
    >>> parse_column(["007", "12"]), parse_column(["True", "false"])
    (['007', '12'], [True, False])
    """
    texts = [value.strip() for value in values]
    filled = [text for text in texts if text]
    if not filled:
        return values
    if all(text.lower() in _BOOLEANS for text in filled):
        return [_BOOLEANS.get(text.lower()) for text in texts]
    if all(_INTEGER.fullmatch(text) for text in filled):
        return [int(text) if text else None for text in texts]
    if all(_FLOAT.fullmatch(text) for text in filled):
        numbers = [as_float(text) if text else None for text in texts]
        known = [number for number in numbers if isinstance(number, float)]
        if len(known) == len(filled) and any(map(math.isfinite, known)):
            return numbers
    return values
