"""The texts of entries, read from the maps that an index was made of."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from gulpio2.errors import (
    MapChangedError,
    MetaFileError,
    ReadRangeError,
    StorageError,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import INDEX_NAME, meta_name
from gulpio2.format.scan import UnusualMapError, scan_gmeta
from gulpio2.storage.handles import read_once
from gulpio2.storage.paths import path_in
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import Columns, IndexContent

__all__ = ["MapTexts"]

# Where a text begins, and its bytes.
_Place: TypeAlias = tuple[int, int]

# Bytes of maps that are read to tell whether they are those of an index, in some ten
# milliseconds, and chunks that are looked at where there are more.
_MOST_BYTES, _MOST_CHUNKS = 16 << 20, 512
# Bytes of maps that were touched after the index was written, in a tenth of a second.
_MOST_TOUCHED_BYTES = 256 << 20
# Entries of maps that were replaced whose places are kept, in some hundred MB.
_MOST_PLACES = 1 << 20


class MapTexts:
    """Reads entries where the columns of an index say that they are.

    Parameters
    ----------
    folder : str
        The directory.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        # Of maps that were replaced: the state, and where entries stand.
        self._later: dict[int, tuple[tuple[int, int] | None, dict[str, _Place]]] = {}

    def path(self, number: int) -> str:
        """Give the path of a chunk's map."""
        return path_in(self._folder, meta_name(number))

    def state(self, number: int) -> tuple[int, int] | None:
        """Give size and time (ns) of a map as it is; None where that is not known."""
        try:
            return self.present_state(number)
        except StorageError:
            return None

    def present_state(self, number: int) -> tuple[int, int] | None:
        """Give size and time (ns) of a map as it is; None where there is none.

        Raises
        ------
        StorageError
            The system does not say. What is not known has neither changed nor not.
        """
        state = self._look_at(self.path(number))
        return None if state is None else (state.st_size, state.st_mtime_ns)

    def _look_at(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path)  # noqa: PTH116  # a tenth of Path's time
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as cause:
            if cause.errno == errno.ELOOP:
                return None  # a link in a circle, which leads to no file
            raise refused(cause, "look at", path) from cause

    def is_sound(self, columns: Columns, row: int) -> bool:
        """Tell whether what is now in an entry's place is what was indexed."""
        return crc32_of(self._in_place(columns, row)) == columns.entry_crc32.item(row)

    def are_those_of(self, content: IndexContent, *, throughout: bool = False) -> bool:
        """Tell whether an index was made of the maps that are here.

        Maps of the same sizes and times may be others, where somebody sets the times
        and has taken an index over from somewhere else. Up to `_MOST_BYTES` of maps are
        read and compared by their CRC-32. Of more, an entry of each of `_MOST_CHUNKS`,
        and up to `_MOST_TOUCHED_BYTES` those that were touched after the index was
        written: who sets back the time of a file does not set back that of this.
        Maps that were replaced since are left out: of these it tells what there was.
        `throughout` has all of every map read, however much that is.

        Raises
        ------
        StorageError
            A map cannot be looked at or read.
        """
        chunks = content.chunks
        states = {row[0]: (row[1], row[2]) for row in chunks.tolist()}

        def is_replaced(number: int) -> bool:
            return self.present_state(number) != states[number]

        same = [row for row in chunks.tolist() if not is_replaced(row[0])]
        whole = same
        if not throughout and int(chunks[:, 1].sum()) > _MOST_BYTES:
            whole = self._touched(same)
        are_right = all(
            # It may be replaced while it is read.
            crc32_of(self._whole(number)) == crc32 or is_replaced(number)
            for number, _, _, crc32, _ in whole
        )
        if not are_right or whole is same:
            return are_right
        starts = {known[0]: rows.start for known, rows in content.by_chunk()}
        some = same[:: -(-len(same) // _MOST_CHUNKS) or 1]
        rows = [(row[0], starts[row[0]] + row[4] // 2) for row in some if row[4]]
        columns = content.columns
        return all(
            # Where an entry stands may be anything, in a row that is damaged.
            columns.is_sound(row)
            and (self.is_sound(columns, row) or is_replaced(number))
            for number, row in rows
        )

    def _touched(self, chunks: list[list[int]]) -> list[list[int]]:
        """Give the chunks whose maps were touched since; none of too many bytes.

        Of a directory that was copied as a whole all may have been.
        """
        made = self._touched_at(INDEX_NAME)
        touched = [row for row in chunks if self._touched_at(meta_name(row[0])) >= made]
        few = sum(row[1] for row in touched) <= _MOST_TOUCHED_BYTES
        return touched if few else []

    def _touched_at(self, name: str) -> int:
        """Give when a file or what is known of it was changed, in ns; 0: it is gone."""
        state = self._look_at(path_in(self._folder, name))
        return 0 if state is None else state.st_ctime_ns

    def read(self, columns: Columns, row: int) -> bytes:
        """Read an entry from its map, also from a later one that still has it.

        Raises
        ------
        MapChangedError
            It is not any more what was indexed.
        StorageError
            The map cannot be looked at or read.
        """
        text = self._in_place(columns, row)
        wanted = columns.entry_crc32.item(row)
        if crc32_of(text) != wanted:
            # Of a map that was replaced since, in which others may stand before it.
            text = self._in_later(columns.chunk.item(row), columns.id_at(row))
        if not text or crc32_of(text) != wanted:
            raise MapChangedError(
                f"{self.path(columns.chunk.item(row))}: the entry of "
                f"{columns.id_at(row)!r} has changed since the directory was opened. "
                "Open the directory again"
            )
        return text

    def _in_place(self, columns: Columns, row: int) -> bytes:
        """Read what is now in an entry's place; nothing where there is nothing."""
        offset, length = columns.entry_offset.item(row), columns.entry_length.item(row)
        return self.part(columns.chunk.item(row), offset, length)

    def _in_later(self, number: int, id_: str) -> bytes:
        """Read an item's entry from a map as it is now; nothing where it has none.

        Such a map is looked through once, whoever asks for its entries.
        """
        state, later = self.present_state(number), self._later.get(number)
        if later is None or later[0] != state:
            places: dict[str, _Place] = {}
            # One that cannot be read says nothing.
            with suppress(MetaFileError, UnusualMapError):
                for entry in scan_gmeta(self._whole(number), where=self.path(number)):
                    places[entry.id_] = entry.start, entry.stop - entry.start
            known = sum(len(others) for _, others in [*self._later.values()])
            if known + len(places) > _MOST_PLACES:
                self._later.clear()
            self._later[number] = later = state, places
        place = later[1].get(id_)
        return b"" if place is None else self.part(number, *place)

    def _whole(self, number: int) -> bytes:
        """Read a whole map; nothing where there is none."""
        state = self.present_state(number)
        return b"" if state is None else self.part(number, 0, state[0])

    def part(self, number: int, offset: int, length: int) -> bytes:
        """Read a part of a map as it is now; nothing where it has no such part."""
        if offset < 0 or length < 0:
            return b""  # of a row that is damaged
        try:
            return read_once(self.path(number), offset, length)
        except (ReadRangeError, FileNotFoundError):
            return b""  # a later map; one that cannot be read says nothing of a row
