"""The texts of entries, read from the maps that an index was made of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gulpio2.errors import MetaFileError, ReadRangeError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import meta_name
from gulpio2.storage.handles import read_once
from gulpio2.storage.index.entries import find_entry

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import Columns

__all__ = ["MapTexts"]


class MapTexts:
    """Reads entries where the columns of an index say that they are.

    Parameters
    ----------
    folder : str
        The directory.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def path(self, number: int) -> str:
        """Give the path of a chunk's map."""
        return os.path.join(self._folder, meta_name(number))  # noqa: PTH118  # a tenth of Path's time

    def state(self, number: int) -> tuple[int, int] | None:
        """Give size and time (ns) of a map as it is; None where that is not known."""
        try:
            state = os.stat(self.path(number))  # noqa: PTH116  # a tenth of Path's time
        except OSError:
            return None
        return state.st_size, state.st_mtime_ns

    def is_sound(self, columns: Columns, row: int) -> bool:
        """Tell whether what is now in an entry's place is what was indexed."""
        return crc32_of(self._in_place(columns, row)) == columns.entry_crc32.item(row)

    def read(self, columns: Columns, row: int) -> bytes:
        """Read an entry from its map, also from a later one that still has it.

        Raises
        ------
        MetaFileError
            It is not any more what was indexed.
        """
        text = self._in_place(columns, row)
        wanted = columns.entry_crc32.item(row)
        if crc32_of(text) != wanted:
            # Of a map that was replaced since, in which others may stand before it.
            data = self._read(columns, row, 0, None)
            length = columns.entry_length.item(row)
            text = find_entry(data, columns.id_at(row), length, wanted)
        if not text:
            raise MetaFileError(
                f"{self.path(columns.chunk.item(row))}: the entry of "
                f"{columns.id_at(row)!r} has changed since the directory was opened. "
                "Open the directory again"
            )
        return text

    def _in_place(self, columns: Columns, row: int) -> bytes:
        """Read what is now in an entry's place; nothing where there is nothing."""
        offset, length = columns.entry_offset.item(row), columns.entry_length.item(row)
        return self._read(columns, row, offset, length)

    def _read(
        self, columns: Columns, row: int, offset: int, length: int | None
    ) -> bytes:
        path = self.path(columns.chunk.item(row))
        try:
            if length is None:
                length = os.stat(path).st_size  # noqa: PTH116
            return read_once(path, offset, length)
        except (ReadRangeError, FileNotFoundError):
            return b""  # a later map; one that cannot be read says nothing of a row
