"""Users' metadata, as JSON can hold it."""

from __future__ import annotations

import copy
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gulpio2.errors import AdapterContractError, with_article

__all__ = ["first_metadata", "is_plain", "plain_metadata", "without_addresses"]

# Nesting that no metadata needs; keeps a circular structure from exhausting the stack.
_MAX_DEPTH = 100
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = frozenset((type(None), bool, int, float, str))
# Of their subclasses, enumerations among them, what JSON writes: the value that they
# are. What their own `__str__` or `__int__` says may be another.
_PLAIN_VALUES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
)


def plain_metadata(meta: Any, what: str) -> dict[Any, Any]:
    """Copy an item's metadata into what JSON can hold.

    Parameters
    ----------
    meta : mapping
        Values may be None, bool, int, float, str, lists, tuples, mappings, and numpy
        scalars and arrays of bools, integers, floats and strings, which become the
        Python values and (nested) lists that they stand for.
    what : str
        Of what it is, for the message: "the metadata of item 'a'".

    Returns
    -------
    dict
        Plain Python values, key order kept.

    Raises
    ------
    AdapterContractError
        Something that JSON cannot hold; the message gives its place.
    """
    if type(meta) in (dict, OrderedDict) and is_plain(meta):
        return dict(meta)
    if not isinstance(meta, Mapping):
        raise AdapterContractError(
            f"{what} is {meta!r}, "
            f"{with_article(type(meta).__name__)}; it must be a dict "
            "(an empty one where there is none)"
        )
    plain = _plain(meta, what, "$", 0)
    return dict(plain)


def first_metadata(metas: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Copy an entry's metadata, whatever is nested in it; {} where there is none."""
    copied = dict(metas[0] or {}) if metas else {}
    # Mostly nothing is, and a deep copy of that takes ten times as long.
    if all(type(value) in _PLAIN for value in copied.values()):
        return copied
    return copy.deepcopy(copied)


def is_plain(meta: Mapping[Any, Any]) -> bool:
    """Tell whether there is nothing to change, as with most: no call for each value."""
    for key, value in meta.items():
        if type(key) is not str or type(value) not in _PLAIN:
            return False
    return True


def _plain(value: Any, what: str, place: str, depth: int) -> Any:
    if type(value) in _PLAIN:
        return value
    if depth > _MAX_DEPTH:
        raise _cannot_hold(value, what, place, "nested too deeply, or in itself")
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for key, item in value.items():
            name = _key(key, what, place)
            if name in plain:
                raise _cannot_hold(
                    key, what, place, f"the key {name!r} once more", "Rename one"
                )
            plain[name] = _plain(item, what, f"{place}.{key}", depth + 1)
        return plain
    if isinstance(value, (list, tuple)):
        return [
            _plain(item, what, f"{place}[{index}]", depth + 1)
            for index, item in enumerate(value)
        ]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufU":
        if value.dtype.kind == "f" and value.dtype.itemsize > 8:
            value = value.astype(np.float64)  # JSON has no longer ones
        return value.tolist()
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _plain(value.tolist(), what, place, depth + 1)
    for kind, plain_value in _PLAIN_VALUES:
        if isinstance(value, kind):
            return plain_value(value)
    raise _cannot_hold(value, what, place, with_article(type(value).__name__))


def _key(key: Any, what: str, place: str) -> str:
    """Give the string that JSON turns a key into."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, (bool, int, float)):
        (name,) = json.loads(json.dumps({key: 0}))
        return str(name)
    raise _cannot_hold(key, what, place, f"{with_article(type(key).__name__)} as a key")


def without_addresses(text: str) -> str:
    """Leave addresses in memory out of a repr: equal runs are to tell the same."""
    return _ADDRESS.sub("", text)


def _cannot_hold(
    value: Any,
    what: str,
    place: str,
    why: str,
    advice: str = "Convert it to a number, a string or a list",
) -> AdapterContractError:
    try:
        shown = without_addresses(repr(value))
    except RecursionError:
        shown = with_article(type(value).__name__)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return AdapterContractError(
        f"{what} cannot be stored as JSON: {shown} is {why} (at `{place}`). {advice}"
    )
