"""Numbers compared with the columns of a table as Python compares them: exactly.

Arrow refuses a number that the column's type cannot hold, or rounds one of the two.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from gulpio2._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compare_exactly", "exact_values", "is_number_type"]


def is_number_type(kind: Any) -> bool:
    """Tell whether this is an Arrow type that columns of numbers have."""
    types = require("pyarrow").types
    return bool(types.is_signed_integer(kind) or types.is_float64(kind))


def compare_exactly(
    column: Any, compare: Callable[[Any, Any], Any], number: float, kind: Any
) -> Any:
    """Compare a column with a number.

    Parameters
    ----------
    column : pyarrow.compute.Expression
        The column.
    compare : callable
        Of the module ``operator``: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``.
    number : int or float
        Of any size.
    kind : pyarrow.DataType
        The column's, one of numbers.

    Returns
    -------
    pyarrow.compute.Expression
        Null where the column is.
    """
    pa, compute = require("pyarrow"), require("pyarrow.compute")
    below, above = _neighbours(number, kind)
    if compare in (operator.eq, operator.ne):
        bound = below if below == above else None
    else:
        is_upper = compare in (operator.lt, operator.le)
        bound = below if is_upper else above
        if bound != number:  # no value of the column lies between
            compare = operator.le if is_upper else operator.ge
    if bound is None:
        zero = compute.scalar(pa.scalar(0, kind))
        never = (column < zero) & (column > zero)
        return ~never if compare is operator.ne else never
    return compare(column, compute.scalar(pa.scalar(bound, kind)))


def exact_values(numbers: list[Any], kind: Any) -> Any:
    """Make an Arrow array of those numbers that a column of this type can hold."""
    pa = require("pyarrow")
    pairs = [_neighbours(number, kind) for number in numbers]
    held = [below for below, above in pairs if below == above]
    if 0 in held and pa.types.is_float64(kind):
        held += [0.0, -0.0]  # two values, for Arrow, in a list and only there
    return pa.array(held, kind)


def _neighbours(number: float, kind: Any) -> tuple[Any, Any]:
    """Give the largest value of a type up to a number, and the smallest from it on.

    Both are the number itself where the type has it. None: there is no such value.
    """
    if require("pyarrow").types.is_float64(kind):
        try:
            near = float(number)
        except OverflowError:
            near = math.inf if number > 0 else -math.inf
        return (
            near if near <= number else math.nextafter(near, -math.inf),
            near if near >= number else math.nextafter(near, math.inf),
        )
    limit = 2 ** (kind.bit_width - 1)
    if number < -limit:
        return None, -limit
    if number >= limit:
        return limit - 1, None
    return math.floor(number), math.ceil(number)
