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

__all__ = ["compare_exactly", "exact_values", "is_among", "is_number_type"]


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


def is_among(column: Any, kind: Any, values: list[Any]) -> Any:
    """Tell whether a column's value is one of a list.

    Parameters
    ----------
    column : pyarrow.compute.Expression
        The column, or a constant.
    kind : pyarrow.DataType or None
        The column's, where it is known.
    values : list of bool, int, float or str
        Of a column of numbers, of any size.

    Returns
    -------
    pyarrow.compute.Expression
        False where the column is null. One that does not fit the column, where a value
        is none that it could be compared with.
    """
    pa, compute = require("pyarrow"), require("pyarrow.compute")
    if kind is not None and pa.types.is_null(kind):
        return compute.scalar(False)  # noqa: FBT003  # of pyarrow
    others = [] if kind is None else [v for v in values if not _is_like(kind, v)]
    if kind is not None and is_number_type(kind) and not others:
        values = exact_values(values, kind)
    # Arrow has an empty list be one of nulls, which fits no strings.
    among = column.isin(values) if len(values) else compute.scalar(False)  # noqa: FBT003  # of pyarrow
    # In a list Arrow would make '1' a number, and 0.5 a boolean.
    return column == compute.scalar(others[0]) if others else among


def _is_like(kind: Any, value: Any) -> bool:
    """Tell whether a constant is such as a column of this type may hold."""
    if is_number_type(kind):
        return type(value) in (int, float)
    if require("pyarrow").types.is_boolean(kind):
        return isinstance(value, bool)
    return True  # Arrow makes nothing into a string


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
