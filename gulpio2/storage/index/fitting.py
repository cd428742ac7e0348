"""Expressions and the columns that they are for: what is met, and what does not fit."""

from __future__ import annotations

import ast
import json
from itertools import takewhile
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from gulpio2._optional import require
from gulpio2.storage.index.file import is_json_text
from gulpio2.storage.index.json_parts import may_be_part, with_spaces
from gulpio2.storage.index.typed import MAX_COLUMNS, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "as_written",
    "explain_misfit",
    "find_unquoted",
    "meets",
    "name_at_start",
    "no_column",
    "not_taken",
    "written",
]

_SHOWN = 100  # characters of a part of a condition in a message
# What other languages write in lower case, or in upper.
_MEANT = {"true": "True", "false": "False", "null": "None", "none": "None"}
_HAS_QUOTES = "texts in it have quotes of their own"
_EXACT = 2**53  # up to this, each integer is a float
_HAS_FORM = "it is written as by json.dumps"


def meets(table: Any, expression: Any) -> Any:
    """Tell of each row of a table whether it meets a condition.

    Parameters
    ----------
    table : pyarrow.Table
        A row per item.
    expression : pyarrow.compute.Expression
        Of its columns.

    Returns
    -------
    pyarrow.ChunkedArray of bool
        With nulls.

    Raises
    ------
    pyarrow.ArrowException
        It does not fit the columns, or gives no booleans.
    """
    pa, dataset = require("pyarrow"), require("pyarrow.dataset")
    # A scan reads the columns of the condition and no others.
    met = dataset.Scanner.from_batches(
        table.to_batches(), schema=table.schema, columns={"met": expression}
    ).to_table()
    if met.schema.field("met").type != pa.bool_():
        raise pa.ArrowInvalid(f"it gives {met.schema.field('met').type}")
    return met.column("met")


def explain_misfit(
    table: Any, parts: Iterable[tuple[ast.expr, Any]], quoted: Mapping[str, str]
) -> str | None:
    """Say which part of a condition does not fit the columns, and what these are.

    Parameters
    ----------
    table : pyarrow.Table
        What the condition is for.
    parts : iterable of (ast.expr, pyarrow.compute.Expression)
        Comparisons, calls of methods and names, each with what it was turned into.
    quoted : mapping of str to str
        Stand-ins to the columns that were named in backticks.

    Returns
    -------
    str or None
        None where each part fits.
    """

    def side(node: ast.expr) -> str:
        text = as_written(node, quoted)
        if isinstance(node, ast.Name):
            field = table.schema.field(quoted.get(node.id, node.id))
            kind = "JSON text" if is_json_text(field) else f"type {field.type}"
            return f"{text} is a column of {kind}"
        return f"{text} is {_kind_of(_value_of(node))}"

    empty = table.slice(0, 0)
    for node, expression in parts:
        try:
            meets(empty, expression)
        except require("pyarrow").ArrowException:
            if isinstance(node, ast.Compare):
                both = [node.left, *node.comparators]
                sides = " and ".join(map(side, both))
                is_listed = isinstance(node.ops[0], (ast.In, ast.NotIn))
                advice = "".join(
                    _as_json(table, sides_of, quoted, is_listed=is_listed)
                    for sides_of in (both, both[::-1])
                )
                return f"in {as_written(node, quoted)}, {sides}{advice}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                what = side(node.func.value)
                return f"in {as_written(node, quoted)}, {what}, and not of strings"
            return f"{side(node)}, and no condition"
    for node, _ in parts:
        if isinstance(node, ast.Compare) and (found := _beyond(table, node, quoted)):
            return (
                f"in {as_written(node, quoted)}, {found}: integers beyond 2**53 are "
                "not compared with a column of floats, which are rounded there. "
                "Compare them in Python, by the columns of `table`"
            )
    return None


def _beyond(table: Any, node: ast.Compare, quoted: Mapping[str, str]) -> str | None:
    """Name an integer that a column of floats cannot be compared with, and its item."""
    types, compute = require("pyarrow").types, require("pyarrow.compute")
    columns: dict[str, Any] = {
        as_written(side, quoted): table.column(quoted.get(side.id, side.id))
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Name)
    }
    if not any(types.is_floating(column.type) for column in columns.values()):
        return None
    for written, column in columns.items():
        if not types.is_integer(column.type):
            continue
        beyond = compute.or_(
            compute.greater(column, _EXACT), compute.less(column, -_EXACT)
        )
        row = compute.index(beyond, value=True).as_py()
        if row >= 0:
            id_ = table.column("id")[row].as_buffer().to_pybytes()
            return (
                f"{written} of item {id_.decode('utf-8', 'surrogatepass')!r} is "
                f"{column[row].as_py()}"
            )
    return None


def _as_json(
    table: Any, sides: list[ast.expr], quoted: Mapping[str, str], *, is_listed: bool
) -> str:
    """Say how a constant is written in a column of JSON text; nothing of others."""
    column, other = sides
    if not isinstance(column, ast.Name) or isinstance(other, ast.Name):
        return ""
    if not is_json_text(table.schema.field(quoted.get(column.id, column.id))):
        return ""
    value = _value_of(other)
    # Of a list that a value is to be in each is one; else it is the value.
    first = next(iter(value), None) if is_listed else value
    written = f"{as_written(column, quoted)} == {_shortened(str(json_text(first)))!r}"
    what = "lists" if isinstance(first, list) else "numbers and booleans"
    return f": {what} are texts in it, as in {written}"


def find_unquoted(
    table: Any, parts: Iterable[tuple[ast.expr, Any]], quoted: Mapping[str, str]
) -> str | None:
    """Find a text that no value of a column of JSON text is, and say how it is written.

    Parameters
    ----------
    table, parts, quoted
        As in `explain_misfit`.

    Returns
    -------
    str or None
        None where every text can be one.
    """

    def is_json(column: ast.Name) -> bool:
        return is_json_text(table.schema.field(quoted.get(column.id, column.id)))

    for node, _ in parts:
        for column, why, instead in _looked_for(node):
            if is_json(column):
                written = as_written(column, quoted)
                return (
                    f"in {as_written(node, quoted)}, {written} is a column of JSON "
                    "text, as its values are of several types, objects, or texts "
                    "with half a character: "
                    f"{why}, as in {written}{instead}"
                )
        if (sides := _columns_of_text(table, node, quoted)) and (
            is_json(sides[0]) != is_json(sides[1])
        ):
            one, other = sides if is_json(sides[0]) else sides[::-1]
            return (
                f"in {as_written(node, quoted)}, {as_written(one, quoted)} is a column "
                "of JSON text, as its values are of several types, objects, or "
                "texts with half a character, and "
                f"{as_written(other, quoted)} is one of texts: those of the first have "
                "quotes of their own, and are never those of the second. Compare them "
                "in Python, by the columns of `table`"
            )
    return None


def _columns_of_text(
    table: Any, node: ast.expr, quoted: Mapping[str, str]
) -> tuple[ast.Name, ast.Name] | None:
    """Give the two columns of a comparison, if both are of strings."""
    if not isinstance(node, ast.Compare):
        return None
    left, right = node.left, node.comparators[0]
    if not (isinstance(left, ast.Name) and isinstance(right, ast.Name)):
        return None
    kinds = [
        str(table.schema.field(quoted.get(side.id, side.id)).type)
        for side in (left, right)
    ]
    return (left, right) if {*kinds} <= {"string", "large_string"} else None


def _looked_for(node: ast.expr) -> Iterator[tuple[ast.Name, str, str]]:
    """Give columns, why no JSON text is what they are searched for, and what might."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        column, text = node.func.value, _value_of(node.args[0])
        if isinstance(column, ast.Name) and not may_be_part(text, node.func.attr):
            yield column, *_rewritten(node.func.attr, text)
    elif isinstance(node, ast.Compare):
        left, right = node.left, node.comparators[0]
        whole = isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn))
        for column, other in ((left, right), (right, left)):
            if isinstance(column, ast.Name) and not isinstance(other, ast.Name):
                value = _value_of(other)
                for text in value if isinstance(value, list) else [value]:
                    if isinstance(text, str) and (found := _misfit(text, whole=whole)):
                        yield column, *found


def _misfit(text: str, *, whole: bool) -> tuple[str, str] | None:
    """Say why no value is a text, and what it might be; None where one can be.

    Parameters
    ----------
    text : str
        What is compared with JSON text.
    whole : bool
        Whether it is to be equal, and so has to be written as the index writes JSON.
    """
    try:
        value = json.loads(text)
        canonical = json_text(value)
    except ValueError:
        wanted = json.dumps(_shortened(text), ensure_ascii=False)
        return _HAS_QUOTES, f" == {wanted!r}"
    except RecursionError:  # too deep to be told
        return None
    if not whole or canonical == text:
        return None
    if canonical is None:
        return "what is null has no text", " is None"
    return _HAS_FORM, f" == {_shortened(canonical)!r}"


def _rewritten(test: str, text: str) -> tuple[str, str]:
    """Say why a test of strings finds no part of JSON text, and what may find one."""
    text = _shortened(text)
    if _has_control(text):
        plain = (json.dumps(one)[1:-1] if one < " " else one for one in text)
        return _HAS_FORM, f".{test}({''.join(plain)!r})"
    if may_be_part(spaced := with_spaces(text), test):
        return _HAS_FORM, f".{test}({spaced!r})"
    wanted = json.dumps(text, ensure_ascii=False)
    part = wanted[test != "startswith" : len(wanted) - (test != "endswith")]
    why = _HAS_FORM if test == "contains" else _HAS_QUOTES
    return why, f".{test}({part!r})"


def _has_control(text: str) -> bool:
    """Tell whether a text has letters that JSON writes as others."""
    return any(letter < " " for letter in text)


def as_written(node: ast.expr, quoted: Mapping[str, str]) -> str:
    """Give a part of a condition as text, with its names in backticks again."""
    text = ast.unparse(node)
    for name, original in quoted.items():
        text = text.replace(name, f"`{original}`")
    return _shortened(text)


def written(names: Iterable[str]) -> list[str]:
    """Give names of columns as a condition has them.

    Examples
    --------
    >>> written(["label", "my key", "class"])
    ['label', '`my key`', '`class`']
    """
    return [
        each if each.isidentifier() and not iskeyword(each) else f"`{each}`"
        for each in names
    ]


def no_column(name: str, names: Iterable[str]) -> str:
    """Say that a name is no column, which there are, and what it may have meant."""
    columns = written(names)
    more = f" (of the metadata, {MAX_COLUMNS} keys at most are columns)"
    meant = _MEANT.get(name.lower())
    return (
        f"there is no column {name!r}; there are {', '.join(columns)}"
        f"{more if len(columns) > MAX_COLUMNS else ''}. "
        + (f"It is written {meant}" if meant else f"A text stands in quotes: '{name}'")
    )


def name_at_start(text: str) -> str:
    """Give the name with which a text begins, accents of their own included."""
    return "".join(
        takewhile(lambda one: one.isalnum() or f"_{one}".isidentifier(), text)
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def not_taken(value: Any) -> str:
    """Say of a constant that Arrow does not take what it is, and what it must be."""
    if _is_mixed(value):
        return f"{_kind_of(value)}; its values must be of one type"
    return f"{_kind_of(value)}, too large for a column that is not of numbers"


def _is_mixed(value: Any) -> bool:
    return isinstance(value, list) and (
        len({_kind_of(one) for one in value}) > 1 or any(map(_is_mixed, value))
    )


def _value_of(node: ast.expr) -> Any:
    """Evaluate a constant; a set, whose lists Python would not take, is a list."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value_of(part) for part in node.elts]
    return ast.literal_eval(node)


def _kind_of(value: Any) -> str:
    if isinstance(value, list):
        kinds = sorted({_kind_of(one) for one in value})
        return f"a list that holds {' and '.join(kinds) or 'nothing'}"
    if isinstance(value, bool):
        return "a boolean"
    return "a string" if isinstance(value, str) else "a number"
