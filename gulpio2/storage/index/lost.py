"""Items that the index has and a map has lost, as an older one that was put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import MetaFileError, ReadRangeError
from gulpio2.format.gmeta import load_pairs, validate_entry
from gulpio2.format.layout import REMOVALS_NAME, data_name, meta_name
from gulpio2.format.removals import Removals, load_removals
from gulpio2.storage.base import read_unless_missing
from gulpio2.storage.data_file import has_frame
from gulpio2.storage.index.columns import HAS_CRC32
from gulpio2.storage.index.loading import map_or_refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from gulpio2.storage.base import Store
    from gulpio2.storage.index.columns import Columns

__all__ = ["lost_items"]


def lost_items(
    store: Store,
    numbers: Iterable[int],
    present: Collection[str],
    unread: Callable[[str, int | None, OSError], None],
) -> Iterator[tuple[int, str]]:
    """Find items that are in no map and were not deleted, and whose frames are there.

    Parameters
    ----------
    store : Store
        The directory, with an index.
    numbers : iterable of int
        Chunks whose maps are others than those that the index was made of.
    present : collection of str
        Items that are in any map.
    unread : callable
        Called with a file, an offset or None, and the error, where the system refuses
        to read it: items of which that would tell are left out.

    Yields
    ------
    (int, str)
        Chunk and id. None of an item without checksums: nothing tells its frames; and
        none at all where what was deleted cannot be read.

    Raises
    ------
    FileNotFoundError, StorageError, ValueError
        The index is gone, cannot be read, or cannot be used.
    """
    columns = map_or_refuse(store.path("")).columns
    removals, told = Removals(), None
    for number in numbers:
        try:
            pairs = load_pairs(store.read(meta_name(number)))
        except OSError as cause:
            unread(meta_name(number), None, cause)
            continue
        except (ValueError, RecursionError):
            continue  # which is a finding itself
        there = {id_ for id_, _ in pairs}
        spoken_of = {
            loc
            for _, entry in pairs
            if validate_entry(entry) is None
            for loc, _, _ in entry["frame_info"]
        }
        # Behind the map, and the data file behind it: that is the order in which who
        # deletes and compacts writes them.
        try:
            data = read_unless_missing(store, REMOVALS_NAME)
            if data != told:  # it may be long
                where = store.path(REMOVALS_NAME)
                removals = load_removals(data, where=where) if data else Removals()
                told = data
            there |= {id_ for id_, _ in removals.deleted.get(number, ())}
        except MetaFileError:
            return  # a finding itself, and nobody knows what was deleted
        except OSError as cause:
            unread(REMOVALS_NAME, None, cause)
            return
        store.close()
        for row in np.flatnonzero(columns.chunk == number).tolist():
            id_ = columns.id_at(row)
            if id_ in there or id_ in present:
                continue
            if not columns.is_sound(row):
                continue
            frames = _frames(columns, row)
            if not frames or any(info[0] in spoken_of for info, _ in frames):
                continue
            name, ends = data_name(number), (frames[0], frames[-1])
            try:
                are_there = all(has_frame(store, name, *frame) for frame in ends)
            except (FileNotFoundError, ReadRangeError):
                continue  # the data are gone, or cut
            except OSError as cause:
                unread(name, frames[0][0][0], cause)
                continue
            if are_there:
                yield number, id_


def _frames(columns: Columns, row: int) -> list[tuple[tuple[int, ...], int]]:
    """Give frame info and checksum of each frame; none where there are no sums."""
    if not columns.flags.item(row) & HAS_CRC32:
        return []
    part = slice(*columns.frame_bounds[row : row + 2].tolist())
    places: list[Any] = [columns.frame_offset, columns.frame_pad, columns.frame_length]
    infos = zip(*(each[part].tolist() for each in places), strict=True)
    return list(zip(infos, columns.frame_crc32[part].tolist(), strict=True))
