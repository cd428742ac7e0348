"""The items of directories that were opened by an index, without an object for each."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any

from gulpio2.directory import GulpDirectory
from gulpio2.view import GulpView

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Listing"]


class Listing:
    """Items by number, those of one reader after those of another.

    Parameters
    ----------
    readers : sequence of FrameReader
        Each a directory that was opened by its index, or a view of one.
    """

    def __init__(self, readers: Sequence[Any]) -> None:
        self._readers = readers
        self._ends = list(itertools.accumulate(map(len, readers)))

    @staticmethod
    def is_of(readers: Sequence[Any]) -> bool:
        """Tell whether all of these were opened by an index."""
        directories = [_directory_of(reader) for reader in readers]
        return all(
            directory is not None and directory._index is not None
            for directory in directories
        )

    def __len__(self) -> int:
        """Count the items."""
        return self._ends[-1]

    def find(self, position: int) -> tuple[int, str]:
        """Give the number of an item's reader, and its id there."""
        number = bisect.bisect_right(self._ends, position)
        reader = self._readers[number]
        row = position - (self._ends[number - 1] if number else 0)
        if isinstance(reader, GulpView):
            row = int(reader._rows[row])
        return number, _directory_of(reader)._item_index.content.columns.id_at(row)


def _directory_of(reader: Any) -> Any:
    if isinstance(reader, GulpView):
        reader = reader.directory
    return reader if isinstance(reader, GulpDirectory) else None
