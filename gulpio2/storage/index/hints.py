"""What may be wrong with a condition that is refused, for its message."""

from __future__ import annotations

import ast
import re
from keyword import iskeyword, kwlist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

__all__ = ["hint_of", "hint_of_part"]

# Texts in a condition, and Python's words that it may have.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_BACKTICKED = re.compile("`[^`]*`")
_IN_QUOTES = "; a text, as a date or an id, stands in quotes"
_OF_CONDITIONS = frozenset({"and", "False", "in", "is", "None", "not", "or", "True"})
# What begins as a number, with what follows it in dates, times and ids; not longer
# than Python parses at any depth.
_LIKE_NUMBERS = re.compile(r"(?<![\w.-])\d(?:[\w.:/-]{0,80}\w)?(?![\w:/-])")
_SINGLE = re.compile(r"(?<![=!<>])=(?!=)")  # what stands for == elsewhere


def hint_of(text: str, names: Iterable[str]) -> str:
    """Say what may be wrong with a condition that cannot be parsed."""
    bare = _QUOTED.sub("", text)
    columns = {name for name in names if iskeyword(name)}
    for name in (*sorted(columns), *kwlist):
        if re.search(rf"(?<![`\w]){name}(?![`\w])", bare):
            if name in columns:
                return f"; the column {name} stands in backticks, as `{name}`"
            if name not in _OF_CONDITIONS:
                return f"; there is no column {name}, which would stand in backticks"
    for found in _LIKE_NUMBERS.findall(_BACKTICKED.sub("", bare)):
        try:
            ast.parse(found, mode="eval")
        except SyntaxError:
            return f"{_IN_QUOTES}, as '{found}'"
    return "; equal is ==" if _SINGLE.search(text) else ""


def hint_of_part(node: ast.expr, names: Container[str]) -> str:
    """Say how a condition asks for a key of an object, or for a date, where it does.

    Examples
    --------
    >>> print(hint_of_part(ast.parse("box.kind", mode="eval").body, {"box"}))
    . Objects are columns of JSON text: box.contains('"kind": "x"') where kind is a text
    >>> print(hint_of_part(ast.parse("2026-10-12", mode="eval").body, ()))
    ; a text, as a date or an id, stands in quotes, as '2026-10-12'
    """
    if isinstance(node, ast.BinOp):
        text = ast.unparse(node).replace(" ", "")
        return f"{_IN_QUOTES}, as '{text}'" if re.fullmatch(r"[\d/-]+", text) else ""
    key = ""
    if isinstance(node, ast.Attribute):
        key = node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value if isinstance(node.slice.value, str) else ""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if not (key and isinstance(node, ast.Name) and node.id in names):
        return ""
    return (
        f'. Objects are columns of JSON text: {node.id}.contains(\'"{key}": "x"\')'
        f" where {key} is a text"
    )
