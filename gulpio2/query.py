"""Conditions on the items of a directory, written like Python and never run as it.

A text is parsed, and only comparisons, membership, ``and``, ``or``, ``not`` and a few
tests of strings are turned into an Arrow expression; anything else is refused.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require
from gulpio2.storage.index.exact import compare_exactly, is_among, is_number_type
from gulpio2.storage.index.fitting import (
    as_written,
    explain_misfit,
    find_unquoted,
    meets,
    no_column,
    not_taken,
    written,
)
from gulpio2.storage.index.hints import hint_of, hint_of_part
from gulpio2.storage.index.masks import rows_of_mask
from gulpio2.storage.index.plain_names import with_plain_names
from gulpio2.storage.index.table import without_frames
from gulpio2.storage.index.typed import half_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy.typing as npt

__all__ = ["parse_condition", "select_rows"]

# Arrow goes through an expression by recursion, and too deep a one ends the process.
_MOST_COMPARISONS = 1000
_SHOWN = 300  # characters of a condition in a message
_STRING_TESTS = {
    "startswith": "starts_with",
    "endswith": "ends_with",
    "contains": "match_substring",
}


def select_rows(
    table: Any, condition: Any, rows: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Find the rows of a table that meet a condition.

    Parameters
    ----------
    table : pyarrow.Table
        A row per item.
    condition : str, pyarrow.compute.Expression, or boolean mask
        A text is parsed by `parse_condition`; a mask is a list, a numpy, pandas or
        Arrow array, with a value per row, of which null counts as False.
    rows : numpy.ndarray of int64, optional
        Which rows the condition is about, and a mask has values for. Default: all.

    Returns
    -------
    numpy.ndarray of int64
        Row numbers, ascending; in the order of `rows`, where there are some.

    Raises
    ------
    ValueError
        The condition cannot be understood, or does not fit the columns.
    TypeError
        It is none of these.
    """
    if isinstance(condition, require("pyarrow.compute").Expression):
        # It may name a column by its position, so it gets all of them.
        try:
            met = _filter(table, condition)
        except ValueError:
            if rows is None:
                raise
            _filter(table.slice(0, 0), condition)  # raises if it fits no row at all
            # Other rows than these may be what cannot be computed. Not done at once, as
            # it copies the frames of all of them.
            return rows[_filter(table.take(rows), condition)]
        return met if rows is None else rows[np.isin(rows, met, kind="table")]
    if isinstance(condition, str):
        known = without_frames(table)
        part = known if rows is None else known.take(rows)
        types = dict(zip(part.schema.names, part.schema.types, strict=True))
        expression, translator = _parse(condition, types)
        met = _filter(part, expression, translator)
    else:
        met = rows_of_mask(condition, table.num_rows if rows is None else len(rows))
    return met if rows is None else rows[met]


def _filter(
    table: Any, expression: Any, translator: _Translator | None = None
) -> npt.NDArray[np.int64]:
    pa = require("pyarrow")
    parts, quoted = (translator.parts, translator.quoted) if translator else ([], {})
    if wrong := find_unquoted(table, parts, quoted):
        raise ValueError(f"the condition does not fit the columns: {wrong}")
    try:
        met = meets(table, expression)
    except pa.ArrowException as cause:
        why = explain_misfit(table, parts, quoted)
        raise ValueError(
            "the condition does not fit the columns"
            + (f": {why}" if why else f" ({_types(table)}): {cause}")
        ) from cause
    return np.flatnonzero(met.fill_null(False).to_numpy())  # noqa: FBT003  # of pyarrow


def _types(table: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in table.schema)


def parse_condition(text: str, names: Collection[str]) -> Any:
    """Turn a text into an Arrow expression.

    Parameters
    ----------
    text : str
        As ``label == 'waving' and num_frames >= 16``. Names are columns, those that
        are no Python names in backticks. There are ``== != < <= > >=``, chains of
        them, ``in`` and ``not in`` a list, ``is None``, ``is not None``, ``and``,
        ``or``, ``not``, parentheses, and of strings ``name.startswith('x')``,
        ``.endswith('x')``, ``.contains('x')``. Up to 1,000 comparisons. What is null
        meets no comparison and no test, nor the ``not`` of one; it is in no list. There
        are no comments.
    names : collection of str
        The columns that there are. A mapping to their Arrow types has numbers compared
        as Python does: exactly, whatever the column could hold.

    Returns
    -------
    pyarrow.compute.Expression

    Raises
    ------
    ValueError
        It is something else; the message says what, and which columns there are.

    Examples
    --------
    >>> print(parse_condition("n >= 16 and kind in ['a', 'b']", ["n", "kind"]))
    ((n >= 16) and is_in(kind, {value_set=string:[
      "a",
      "b"
    ], null_matching_behavior=MATCH}))
    """
    return _parse(text, names)[0]


def _parse(text: str, names: Collection[str]) -> tuple[Any, _Translator]:
    try:
        plain, quoted = with_plain_names(text)
        if "\r" in plain:  # Python would read each as the end of a line, in texts too
            told = "a carriage return is in it: write it as \\r, or leave it out"
            raise ValueError(told)
        tree = ast.parse(plain, mode="eval")
        translator = _Translator(names, quoted)
        return translator.translate(tree.body), translator
    except (SyntaxError, RecursionError, MemoryError) as cause:
        hint = hint_of(text, names)
        # Not where it is: in a text that has none of Python's lines.
        why = cause.msg if isinstance(cause, SyntaxError) else cause
        raise ValueError(
            f"the condition {_shown(text)} cannot be parsed: {why}{hint}. Write it as "
            "label == 'waving' and num_frames >= 16"
        ) from cause
    except (ValueError, OverflowError, TypeError, NotImplementedError) as cause:
        # All but the first are Arrow's, of a value that it does not take.
        told = half_of(cause) if isinstance(cause, UnicodeEncodeError) else str(cause)
        raise ValueError(f"in the condition {_shown(text)}: {told}") from cause


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _joined(parts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Join conditions by pairs: the expression becomes no deeper than it must."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [join(one, other) for one, other in pairs] + odd
    return parts[0]


class _Translator:
    """One condition, part by part."""

    def __init__(self, names: Collection[str], quoted: dict[str, str]) -> None:
        self._names = names
        self._types = names if isinstance(names, Mapping) else {}
        self.quoted = quoted
        self._compute = require("pyarrow.compute")
        self._comparisons = 0
        self.parts: list[tuple[ast.expr, Any]] = []  # each with its expression

    def translate(self, node: ast.expr) -> Any:
        """Translate what is true or false."""
        if isinstance(node, ast.BoolOp):
            parts = [self.translate(value) for value in node.values]
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return _joined(parts, join)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.translate(node.operand)
        self._count(len(node.ops) if isinstance(node, ast.Compare) else 1)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            return self._noted(node, self._string_test(node))
        if isinstance(node, ast.Name):
            column = self._field(node)  # of booleans
            column = self._unknown() if self._is_null(node) else column
            return self._noted(node, column)
        raise self._refused(node)

    def _noted(self, node: ast.expr, expression: Any) -> Any:
        self.parts.append((node, expression))
        return expression

    def _comparison(self, node: ast.Compare) -> Any:
        lefts = [node.left, *node.comparators[:-1]]
        pairs = [
            self._noted(
                ast.Compare(left, [sign], [right]), self._pair(left, sign, right)
            )
            for left, sign, right in zip(lefts, node.ops, node.comparators, strict=True)
        ]
        return _joined(pairs, operator.and_)

    def _count(self, more: int) -> None:
        self._comparisons += more
        if self._comparisons > _MOST_COMPARISONS:
            raise ValueError(
                f"there are more than {_MOST_COMPARISONS:,} comparisons; write many "
                "values of one column as a list, as in id in ['a', 'b'], or choose "
                "items by their ids with view(ids)"
            )

    def _pair(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(left, _CONSTANTS) and isinstance(right, _CONSTANTS):
            self._refuse_text(left)
            self._refuse_text(right)
        if isinstance(sign, (ast.In, ast.NotIn)):
            values = self._constant(right)
            if not isinstance(values, list):
                raise self._refused(right, "a list (or name.contains('x'))")
            among = partial(is_among, self._value(left), self._type(left))
            found = self._taken(right, among, values)
            return found if isinstance(sign, ast.In) else ~found
        if isinstance(sign, (ast.Is, ast.IsNot)):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self._refused(right, "None")
            null = self._value(left).is_null()
            return null if isinstance(sign, ast.Is) else ~null
        if self._is_null(left) or self._is_null(right):
            for side in (left, right):  # what is neither column nor value is refused
                see: Any = self._field if isinstance(side, ast.Name) else self._constant
                see(side)
            return self._unknown()
        compare = _COMPARISONS[type(sign)]
        for column, other, turned in (
            (left, right, compare),
            (right, left, _TURNED.get(compare, compare)),
        ):
            kind = self._number_type(column)
            if kind is not None and not isinstance(other, ast.Name):
                number = self._constant(other)
                if type(number) in (int, float):
                    return compare_exactly(self._value(column), turned, number, kind)
        return compare(self._value(left), self._value(right))

    def _refuse_text(self, node: ast.expr) -> None:
        """Refuse a text where no column is compared with it.

        It was meant for one, as SQL and some shells have it, and all items or none
        would meet the condition.
        """
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str):
            raise ValueError(
                f"{text!r} is a text, as it is in quotes, and no column is compared; "
                f"columns are written without quotes: {', '.join(written(self._names))}"
            )

    def _type(self, node: ast.expr) -> Any:
        """Give the type of a column; None of anything else, or if it is not known."""
        if not isinstance(node, ast.Name):
            return None
        return self._types.get(self.quoted.get(node.id, node.id))

    def _is_null(self, node: ast.expr) -> bool:
        """Tell whether this is a column in which everything is null."""
        return str(self._type(node)) == "null"

    def _unknown(self) -> Any:
        """Give what nothing meets, nor the ``not`` of it: a test of what is null."""
        pa = require("pyarrow")
        return self._compute.scalar(pa.scalar(None, pa.bool_()))

    def _number_type(self, node: ast.expr) -> Any:
        """Give the type of a column of numbers; None of anything else."""
        kind = self._type(node)
        return kind if kind is not None and is_number_type(kind) else None

    def _string_test(self, node: ast.Call) -> Any:
        method = node.func
        if (
            not isinstance(method, ast.Attribute)
            or method.attr not in _STRING_TESTS
            or len(node.args) != 1
            or node.keywords
        ):
            raise self._refused(node)
        pattern = self._constant(node.args[0])
        if not isinstance(pattern, str):
            raise self._refused(node.args[0], "a string")
        if self._is_null(method.value):
            return self._unknown()
        self._refuse_text(method.value)
        test = getattr(self._compute, _STRING_TESTS[method.attr])
        return test(self._value(method.value), pattern)

    def _value(self, node: ast.expr) -> Any:
        """Translate a column or a constant into what can be compared."""
        if isinstance(node, ast.Name):
            return self._field(node)
        constant = self._constant(node)
        scalar = self._taken(node, self._compute.scalar, constant)
        # Arrow would take the smallest type that holds a float, and make a column of
        # integers one of that type, which has no room for large ones.
        return scalar.cast("float64", safe=False) if type(constant) is float else scalar

    def _taken(self, node: ast.expr, take: Callable[[Any], Any], value: Any) -> Any:
        """Give a constant to Arrow; say what it is, where Arrow does not take it."""
        try:
            return take(value)
        except (require("pyarrow").ArrowException, OverflowError, TypeError) as cause:
            what = f"{as_written(node, self.quoted)} is {not_taken(value)}"
            raise ValueError(what) from cause

    def _field(self, node: ast.Name) -> Any:
        name = self.quoted.get(node.id, node.id)
        if name not in self._names:
            raise ValueError(no_column(name, self._names))
        return self._compute.field(name)

    def _constant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(
            node.value, (bool, int, float, str)
        ):
            return node.value
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and type(node.operand.value) in (int, float)
        ):
            return -node.operand.value  # type: ignore[operator]  # a number
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [self._constant(part) for part in node.elts]
        if isinstance(node, ast.Constant) and node.value is None:
            raise ValueError("null is compared with nothing: write name is None for it")
        raise self._refused(node, "a number, a string or a list of them")

    def _refused(self, node: ast.expr, wanted: str = "") -> ValueError:
        text = as_written(node, self.quoted)
        if text in self._names and not text.isidentifier():
            wanted = f"`{text}`, with backticks,"
        if wanted:
            hint = hint_of_part(node, self._names)
            return ValueError(f"{text!r} stands where {wanted} is needed{hint}")
        return ValueError(
            f"{text!r} is no condition that is understood: there are comparisons, in, "
            "is None, and, or, not, and tests of strings like name.startswith('x')"
        )


_CONSTANTS = (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Set)
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# What a comparison is with its sides exchanged; that of equals stays.
_TURNED = {operator.lt: operator.gt, operator.le: operator.ge}
_TURNED |= {turned: each for each, turned in _TURNED.items()}
