"""Users' metadata as typed columns.

A key becomes a column of booleans, 64-bit integers, 64-bit floats, strings, or lists
of one of these, where all its values are; a column of JSON text where they are not.
Of more than 256 MB of metadata, strings and lists are Arrow's large ones.
The exact JSON of every item stays in the index beside them. A key with half of a pair
of surrogates, which JSON can hold and Arrow cannot, has no column.
"""

from __future__ import annotations

import json
import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2._optional import require
from gulpio2.storage.index.arrays import array_of

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import Columns

__all__ = [
    "MAX_COLUMNS",
    "TypedColumn",
    "first_metadata",
    "half_of",
    "json_text",
    "typed_columns",
]

# A dataset whose items have each their own keys must not become a table of millions
# of columns; the keys that came first get one.
MAX_COLUMNS = 256
# Integers that a 64-bit float holds exactly.
_EXACT = 2**53
# Bytes of metadata up to which no column can have more text, or more values in lists,
# than bounds of 32 bits tell: JSON text that is written anew is not eight times as long
# (1e15 becomes 1000000000000000.0).
_MOST_TEXT = 2**28
# What is no character by itself, as of a file whose name is no UTF-8.
_HALVES = re.compile("[\ud800-\udfff]")
_BLOCK = 20_000  # items whose values are Python objects at the same time


class TypedColumn(NamedTuple):
    """The values of a key of the metadata."""

    array: Any
    """``pyarrow.Array`` with a value per row."""
    is_json_text: bool
    """Whether each is the JSON of the value, as these are of no one type."""


def first_metadata(columns: Columns, start: int, stop: int) -> list[dict[str, Any]]:
    """Give the metadata of each of these rows; {} where there is none."""
    bounds = columns.meta_bounds[start : stop + 1].tolist()
    text = columns.meta_text[bounds[0] : bounds[-1]].tobytes()
    base = bounds[0]
    # Parsed in one go, at a third of the time that one by one takes.
    parts = [text[one - base : two - base] for one, two in pairwise(bounds)]
    lists = json.loads(b"[%s]" % b",".join(parts))
    return [(metas[0] or {}) if metas else {} for metas in lists]


def typed_columns(columns: Columns) -> dict[str, TypedColumn]:
    """Make a column of each key.

    Returns
    -------
    dict
        Key to its column; keys in the order in which they first come.
    """
    pa = require("pyarrow")
    starts = range(0, len(columns), _BLOCK)
    kinds: dict[str, set[str]] = {}
    for start in starts:
        metas = first_metadata(columns, start, min(start + _BLOCK, len(columns)))
        for key in dict.fromkeys(chain.from_iterable(metas)):
            if key in kinds or (len(kinds) < MAX_COLUMNS and _is_text(key)):
                values = [meta[key] for meta in metas if key in meta]
                kinds.setdefault(key, set()).update(_kinds(values))
    types = {key: _type(pa, found) for key, found in kinds.items()}
    text = pa.string()
    if len(columns.meta_text) > _MOST_TEXT:
        types = {key: _large(pa, kind) for key, kind in types.items()}
        text = pa.large_string()
    parts: dict[str, list[Any]] = {key: [] for key in types}
    for start in starts:
        metas = first_metadata(columns, start, min(start + _BLOCK, len(columns)))
        for key, kind in types.items():
            values = [meta.get(key) for meta in metas]
            if kind is None:
                parts[key].append(array_of(list(map(json_text, values)), text))
            else:
                parts[key].append(array_of(values, kind))
    return {
        key: TypedColumn(pa.concat_arrays(part), types[key] is None)
        for key, part in parts.items()
        if part
    }


def json_text(value: Any) -> str | None:
    """Write a value as JSON text; none for null, as in columns of every type.

    As it is read, so that ``contains`` finds it; what is no text is escaped.
    """
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if _is_text(text) else _HALVES.sub(_escaped, text)


def half_of(cause: UnicodeEncodeError) -> str:
    """Say that a text holds half a character, and how a column may have it."""
    half = cause.object[cause.start]
    return (
        f"{half!r} is half a character, as bytes that are no UTF-8 become, and no text "
        f"in a column has it; in one of JSON text it is written \\\\u{ord(half):04x}"
    )


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _kinds(values: list[Any]) -> set[str]:
    """Name what values are."""
    if set(map(type, values)) == {str} and "".join(values).isascii():
        return {"str"}  # as most are: no call for each
    return set(map(_kind, values))


def _kind(value: Any) -> str:
    """Name what a value is, as far as the choice of a type needs it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if -_EXACT <= value <= _EXACT:
            return "int"
        return "long" if -(2**63) <= value < 2**63 else "other"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        # Half of a pair of surrogates, which JSON can hold, is no text.
        return "str" if value.isascii() or _is_text(value) else "other"
    if isinstance(value, list):
        # Not into lists of lists: they are no type, however deep they go.
        inner = {"other" if isinstance(item, list) else _kind(item) for item in value}
        scalar = inner <= {"null", "bool", "int", "long", "float", "str"}
        return "list " + " ".join(sorted(inner)) if scalar else "other"
    return "other"


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _type(pa: Any, kinds: set[str]) -> Any:
    """Choose an Arrow type; None for JSON text."""
    kinds = kinds - {"null"}
    if kinds and all(kind.startswith("list") for kind in kinds):
        inner = _type(pa, {name for kind in kinds for name in kind.split()[1:]})
        return None if inner is None else pa.list_(inner)
    if not kinds:
        return pa.null()
    if kinds <= {"int", "long"}:
        return pa.int64()
    if kinds <= {"int", "float"}:
        return pa.float64()
    if kinds == {"bool"}:
        return pa.bool_()
    return pa.string() if kinds == {"str"} else None


def _large(pa: Any, kind: Any) -> Any:
    """Give the type whose bounds have 64 bits, where a type has bounds."""
    if kind is not None and pa.types.is_list(kind):
        return pa.large_list(_large(pa, kind.value_type))
    return pa.large_string() if kind == pa.string() else kind
