"""Columns that can be searched for an id, checked as a whole when that is needed."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.format.checksum import crc32_of
from gulpio2.storage.index.columns import arrays_crc32, ids_crc32
from gulpio2.storage.index.whole import is_whole

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import Columns, IndexContent
    from gulpio2.storage.index.texts import MapTexts

__all__ = ["Held"]

_HASH_BITS = 64
# Rows that are checked together, and bytes of their map: a fraction of a millisecond.
_ROWS_AHEAD, _BYTES_AHEAD = 128, 1 << 18


class Held:
    """Content that can be searched, and which of it has been checked."""

    def __init__(self, content: IndexContent, mapped: bool) -> None:  # noqa: FBT001  # of a pair
        self.content = content
        self.columns: Columns = content.columns
        self.mapped = mapped
        self.state = object()  # tells this from what is loaded later
        # Views give Python's own integers, three times as fast as arrays.
        self._hashes = content.lookup.hashes.data
        self._rows = content.lookup.rows.data
        self._id_bounds = self.columns.id_bounds.data
        self._id_text = self.columns.id_text.data
        # Hashes are spread evenly, so that the place of one is known but for chance:
        # six standard deviations of a binomial distribution.
        self._reach = 3 * int(len(self.columns) ** 0.5) + 8
        # A bit per row. Its pages come into being as rows are used.
        self.seen = np.zeros(len(self.columns) // 8 + 1, np.uint8).data
        self._after = -1  # the row behind the one that was asked for last
        self._tried = range(-1, -1)  # rows that were checked together last
        self.ids_are_right = self.lookup_is_right = not mapped
        self.is_of_the_maps = not mapped  # which was looked at, and not by their times
        self.table: Any = None
        self._chunk_rows: dict[int, range] | None = None

    @property
    def chunk_rows(self) -> dict[int, range]:
        """Chunk number to rows, in numeric order; made once."""
        # No cached_property: before Python 3.12 it has a lock, which a fork may leave
        # held in the child.
        if self._chunk_rows is None:
            pairs = self.content.by_chunk()
            self._chunk_rows = {known[0]: rows for known, rows in pairs}
        return self._chunk_rows

    def search(self, key: bytes, wanted: int) -> int | None:
        """Find the row of an id by its bytes and their hash."""
        hashes, rows, bounds = self._hashes, self._rows, self._id_bounds
        end = len(hashes)
        guess = wanted * end >> _HASH_BITS
        low, high = max(guess - self._reach, 0), min(guess + self._reach, end)
        at = bisect_left(hashes, wanted, low, high)
        if (at == low and low) or (at == high and high < end):
            at = bisect_left(hashes, wanted)  # beyond its place: once in a lifetime
        while at < end and hashes[at] == wanted:
            row: int = rows[at]
            if row >= 0 and self._id_text[bounds[row] : bounds[row + 1]] == key:
                return row
            at += 1
        return None

    def check_ahead(self, row: int, texts: MapTexts) -> None:
        """Check some rows from this one on, where all are gone through in order.

        Together they take a fifth of the time that they take one by one. Of those that
        are not what they should be, and of a map that was replaced, nothing is said:
        that is for whoever asks for one of them.
        """
        in_order, self._after = row in (self._after, self._tried.stop), row + 1
        if not in_order or row in self._tried:
            return
        columns, part = self.columns, slice(row, row + _ROWS_AHEAD)
        number, *others = columns.chunk[part].tolist()
        first, *offsets = columns.entry_offset[part].tolist()
        length, *lengths = columns.entry_length[part].tolist()
        ends = [length]  # from the first byte of this row's entry on
        for other, offset, length in zip(others, offsets, lengths, strict=True):
            end = offset + length - first
            if other != number or not first < offset or end > _BYTES_AHEAD:
                break
            ends.append(end)
        self._tried = range(row, row + len(ends))
        try:
            checks = columns.row_checks(row, row + len(ends))
        except ValueError:
            return
        rows = zip(
            checks,
            columns.row_crc32[part].tolist(),
            columns.entry_crc32[part].tolist(),
            columns.entry_length[part].tolist(),
            ends,
            strict=False,  # there may be more that are not checked
        )
        if checks[0] != columns.row_crc32.item(row):
            return  # where its entry stands may be anything
        text = memoryview(texts.part(number, first, ends[-1]))
        for place, (check, stored, crc32, length, end) in enumerate(rows, row):
            if check == stored and crc32_of(text[end - length : end]) == crc32:
                self.seen[place >> 3] |= 1 << (place & 7)

    def check_whole(self) -> bool:
        """Check every byte of the file that it is mapped from, if it is."""
        source = self.content.source
        return not self.mapped or (source is not None and is_whole(source))

    def check_ids(self) -> bool:
        """Check the column of ids as a whole, once."""
        if not self.ids_are_right:
            found = ids_crc32(self.columns)
            self.ids_are_right = found == self.content.crc32.get("ids")
        return self.ids_are_right

    def check_lookup(self) -> bool:
        """Check ids and lookup as a whole, once."""
        if not self.lookup_is_right:
            lookup = self.content.lookup
            found = arrays_crc32(lookup.hashes, lookup.rows)
            self.lookup_is_right = (
                found == self.content.crc32.get("lookup") and self.check_ids()
            )
        return self.lookup_is_right
