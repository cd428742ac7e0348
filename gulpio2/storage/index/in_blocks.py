"""Items of an index by the thousand, for whoever goes through all of them.

One by one, each is found by its id, and its row compared with its map: most of the time
that counting a million items takes. Here the file and the maps are compared as a whole.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.format.layout import data_name
from gulpio2.storage.index.columns import HAS_CRC32, IRREGULAR
from gulpio2.storage.index.entries import IndexRecord, times_in
from gulpio2.storage.index.typed import first_metadata
from gulpio2.storage.paths import path_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.format.times import TimeRuns
    from gulpio2.storage.index.columns import Columns
    from gulpio2.storage.index.index import Index

__all__ = ["ItemBlock", "ids_without_times", "indexed_blocks"]

# Items whose values are Python objects at the same time.
_BLOCK = 4096

# A key in the text of extras; inside of a string its quotes have a backslash each.
_TIMES = b'"pts"'


class ItemBlock(NamedTuple):
    """Some items, one after the other, with a value for each in every list."""

    num_frames: list[int]
    """Frames stored."""
    num_bytes: list[int]
    """Bytes of the records, padding included."""
    metas: list[dict[str, Any]]
    """Metadata; {} where there is none."""
    times: list[TimeRuns | None]
    """Times as they are stored, where there are some."""


def indexed_blocks(index: Index) -> Iterator[ItemBlock] | None:
    """Go through all items of an index in order.

    Parameters
    ----------
    index : Index
        Entries that were handed out of it, and edited, count as what they were.

    Returns
    -------
    iterator of ItemBlock, or None
        None where rows have to be looked at one by one: they are not all what the maps
        say, or it was asked for.

    Raises
    ------
    MetaFileError
        While it goes on: times are damaged.
    """
    held = index.hold()
    if index.verify or not index.is_right_throughout(held):
        return None
    columns = held.columns
    starts = range(0, len(columns), _BLOCK)
    return (_block(index, columns, at, min(at + _BLOCK, len(columns))) for at in starts)


def ids_without_times(columns: Columns) -> Iterator[str]:
    """Give the ids of items whose frames have no times, by the text of their extras.

    Not of those without frames. The times of an entry that is irregular are in its map
    alone: it counts as having some.
    """
    for start in range(0, len(columns), _BLOCK):
        bounds = columns.extras_bounds[start : start + _BLOCK + 1].tolist()
        text = columns.extras_text[bounds[0] : bounds[-1]].tobytes()
        if text.count(_TIMES) < len(bounds) - 1:
            is_irregular = (columns.flags[start : start + _BLOCK] & IRREGULAR) != 0
            has_some = is_irregular | (columns.num_frames[start : start + _BLOCK] == 0)
            for row, (one, two) in enumerate(pairwise(bounds)):
                found = text.find(_TIMES, one - bounds[0], two - bounds[0]) >= 0
                if not (found or has_some[row]):
                    yield columns.id_at(start + row)


def _block(index: Index, columns: Columns, start: int, stop: int) -> ItemBlock:
    bounds = columns.frame_bounds[start : stop + 1]
    ends = np.cumsum(columns.frame_length[bounds[0] : bounds[-1]], dtype="i8")
    sums = np.concatenate((np.zeros(1, "i8"), ends))[bounds - bounds[0]]
    return ItemBlock(
        columns.num_frames[start:stop].tolist(),
        np.diff(sums).tolist(),
        first_metadata(columns, start, stop),
        _times(index, columns, start, stop),
    )


def _times(
    index: Index, columns: Columns, start: int, stop: int
) -> list[TimeRuns | None]:
    bounds = columns.extras_bounds[start : stop + 1].tolist()
    text = columns.extras_text[bounds[0] : bounds[-1]].tobytes()
    parts = [text[one - bounds[0] : two - bounds[0]] for one, two in pairwise(bounds)]
    # Parsed in one go, as metadata are; what has no times need not be.
    timed = [part if _TIMES in part else b"null" for part in parts]
    all_extras = json.loads(b"[%s]" % b",".join(timed))
    found: list[TimeRuns | None] = []
    flags = columns.flags[start:stop].tolist()
    for row, (extras, flag) in enumerate(zip(all_extras, flags, strict=True), start):
        if flag & HAS_CRC32:
            found.append(times_in(extras) if extras else None)
        elif extras or flag & IRREGULAR:
            record = IndexRecord(columns, row, index.read_text)
            path = path_in(index.folder, data_name(record.number))
            found.append(record.times(f"item {columns.id_at(row)!r} of {path}"))
        else:
            found.append(None)
    return found
