"""What the texts of a table stand for."""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = ["as_float", "as_seconds", "parse_column"]

# No leading zeros: 007 is a name. No plus sign: +49 is a telephone number. No more
# digits than Python makes a number of.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,3999})")
_FLOAT = re.compile(
    r"-?((0|[1-9][0-9]{0,299})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|nan|-?inf",
    re.IGNORECASE,
)
# A time of a recording: seconds, also with leading zeros as in AVA; or hours, minutes
# and seconds as in EPIC-KITCHENS, of which the hours may be missing.
_SECONDS = re.compile(
    r"[-+]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|nan|[-+]?inf",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:(?P<hours>[0-9]{1,6}):(?=[0-9]{1,2}:))?"
    r"(?P<minutes>[0-9]{1,6}):(?P<seconds>[0-9]{1,2}(?:\.[0-9]*)?)"
)
_EXACT = 2**53  # whole numbers below are floats of 64 bits
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
        whole ones exactly, ``nan`` or ``inf``, and at least one of them finite: float.
        A blank cell is None in these. In any other case the texts as they are, the
        blank ones too.

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
        if (
            len(known) == len(filled)
            and any(map(math.isfinite, known))
            and all(map(_is_told, known, filled))
        ):
            return numbers
    return values


def _is_told(number: float, text: str) -> bool:
    """Tell whether a float loses nothing of its text but digits behind the point."""
    if abs(number) >= _EXACT and math.isfinite(number) and _INTEGER.fullmatch(text):
        return int(number) == int(text)
    digits = text.lower().partition("e")[0] if number == 0 else ""
    return not any(digit in digits for digit in "123456789")


def as_seconds(cell: object) -> float:
    """Give the time of a recording that a cell holds.

    Parameters
    ----------
    cell : int, float or str
        Seconds, or ``HH:MM:SS``, ``MM:SS``, with or without a fraction.

    Returns
    -------
    float
        Seconds; also those that no recording has, as negative ones.

    Raises
    ------
    ValueError
        It is no time.

    Examples
    --------
    >>> as_seconds("00:01:05.64"), as_seconds("0902"), as_seconds(1.5)
    (65.64, 902.0, 1.5)
    """
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    text = cell.strip() if isinstance(cell, str) else ""
    if _SECONDS.fullmatch(text):
        return float(text)
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        raise ValueError("it is no number of seconds, and no HH:MM:SS")
    hours, minutes = clock["hours"], int(clock["minutes"])
    if (hours is not None and minutes >= 60) or float(clock["seconds"]) >= 60:
        raise ValueError("minutes and seconds are below 60")
    # As one decimal number, so that 00:00:01.1 is what 1.1 is.
    whole, point, rest = clock["seconds"].partition(".")
    total = 3600 * int(hours or 0) + 60 * minutes + int(whole)
    return float(f"{total}{point}{rest}")
