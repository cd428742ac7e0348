"""Entries of a map as they were, and whether two are the same."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping, MutableSequence
from copy import deepcopy
from typing import Any

from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.format.metadata import is_plain

__all__ = ["Snapshot", "replace_entry", "same"]


def same(one: Any, other: Any) -> bool:
    """Compare as JSON, in which a triplet is a list, NaN is NaN, and 1 is not True."""
    return one is other or _text(one) == _text(other)


def _text(value: Any) -> str:
    try:
        return json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):  # of a pickled map
        return repr(value)


def replace_entry(entry: MutableMapping[str, Any], content: Mapping[str, Any]) -> None:
    """Change an entry that others hold too."""
    entry.clear()
    entry.update(content)


class Snapshot:
    """Entries as they are, to go back to.

    Parameters
    ----------
    entries : mapping
        Id to entry.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._items = list(entries.items())
        self._contents = [_copied(entry) for _, entry in self._items]

    def restore(self, meta_dict: MutableMapping[str, Any] | None = None) -> None:
        """Make the entries, the very same objects, what they were.

        Parameters
        ----------
        meta_dict : mutable mapping, optional
            Has exactly these entries afterwards.
        """
        for (_, entry), content in zip(self._items, self._contents, strict=True):
            if isinstance(entry, MutableMapping) and not same(entry, content):
                replace_entry(entry, content)
        if meta_dict is not None:
            meta_dict.clear()
            meta_dict.update(self._items)


def _copied(entry: Any) -> Any:
    """Copy an entry so far as programs edit it: not its triplets, which are many."""
    if not isinstance(entry, Mapping):
        return entry
    return {key: _copied_part(key, value) for key, value in entry.items()}


def _copied_part(key: str, value: Any) -> Any:
    if key == "frame_info" and isinstance(value, MutableSequence):
        return list(value)
    if key == EXTRAS_KEY and isinstance(value, Mapping):
        return dict(value)
    if type(value) is list and len(value) == 1:
        # As nearly all metadata are, of which a deep copy takes ten times as long.
        meta = value[0]
        if type(meta) in (dict, OrderedDict) and is_plain(meta):
            return [meta.copy()]
    return deepcopy(value)
