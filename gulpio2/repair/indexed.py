"""What ``index.arrow`` tells of a map that is lost, or damaged."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.errors import GulpError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.gmeta import validate_entry
from gulpio2.format.layout import INDEX_NAME
from gulpio2.repair.entries import read_entry
from gulpio2.storage.index.composing import state_in
from gulpio2.storage.index.entries import IndexRecord, find_entry
from gulpio2.storage.index.file import map_index
from gulpio2.storage.index.texts import MapTexts

if TYPE_CHECKING:
    from gulpio2.storage.base import Store
    from gulpio2.storage.index.columns import Columns, IndexContent

__all__ = ["IndexedMap", "IndexedMaps"]


class IndexedMap(NamedTuple):
    """One map as the index has it."""

    pairs: list[tuple[str, dict[str, Any]]]
    """Id and entry, in the order of the map; each as it was written."""
    is_current: bool
    """Whether the map has the size and time that it had, so that it is the same but
    for damage, and none of its rows is missing or damaged."""


class IndexedMaps:
    """The maps of a directory as its index has them.

    Parameters
    ----------
    store : Store
        The damaged directory, with an index or without.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.fault = ""
        """Why it cannot be asked, known once it was; empty if it can, or is none."""

    @cached_property
    def _content(self) -> IndexContent | None:
        try:
            return map_index(self.store.path(INDEX_NAME))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as cause:
            self.fault = f"{INDEX_NAME}: cannot be used: {cause}"
            return None

    def of(self, number: int, data: bytes | None) -> IndexedMap | None:
        """Give a map; None where the index has none, or has it as it is.

        Parameters
        ----------
        number : int
            The chunk.
        data : bytes or None
            The map as it is; None where it cannot be read.
        """
        content = self._content
        then = content and state_in(content.chunks, number)
        if content is None or then is None:
            return None
        at = int(np.searchsorted(content.chunks[:, 0], number))
        _, _, _, crc32, items = content.chunks[at].tolist()
        if data is not None and crc32_of(data) == crc32:
            return None
        pairs = []
        for row in np.flatnonzero(content.columns.chunk == number).tolist():
            try:
                pairs.append(_pair(content.columns, row, data or b""))
            except (GulpError, ValueError, KeyError, TypeError, RecursionError):
                continue  # damaged, or of a form that only the map has
        now = MapTexts(self.store.path("")).state(number)
        return IndexedMap(pairs, len(pairs) == items and now == then)


def _pair(columns: Columns, row: int, data: bytes) -> tuple[str, dict[str, Any]]:
    """Give id and entry of a row.

    Raises
    ------
    GulpError, ValueError, KeyError, TypeError, RecursionError
        It is not what was written, or cannot be told without the map.
    """
    if not columns.is_sound(row):
        raise ValueError("the row has changed")
    id_ = columns.id_at(row)

    def text(columns: Columns, row: int) -> bytes:
        length, crc32 = columns.entry_length.item(row), columns.entry_crc32.item(row)
        return find_entry(data, id_, length, crc32)

    entry = dict(IndexRecord(columns, row, text).entry.items())
    if validate_entry(entry) or not read_entry(id_, entry)[1]:
        raise ValueError("the entry is none, or its check does not fit")
    return id_, entry
