"""What the maps of a directory say, in columns; of an old index as much as holds.

A map is taken to be the one that the index was made of if its size and time are the
same, or else if its CRC-32 is; only maps of which neither holds are parsed.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.errors import StorageError, StorageNotFoundError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import data_name, meta_name
from gulpio2.storage.beside_writers import wait_for_map
from gulpio2.storage.descriptors import open_descriptor, open_regular
from gulpio2.storage.index.building import check_ids, columns_of_map
from gulpio2.storage.index.columns import (
    Columns,
    GrowingColumns,
    IndexContent,
    ids_crc32,
    make_lookup,
)
from gulpio2.storage.index.table import make_table
from gulpio2.storage.index.whole import is_whole
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import path_in
from gulpio2.storage.refusals import refused
from gulpio2.types import Progress, no_progress

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    import numpy.typing as npt


__all__ = [
    "NO_MAP",
    "compose",
    "crc32_in",
    "is_fresh",
    "is_settled",
    "keep_lost",
    "lost_maps",
    "map_states",
    "other_maps",
    "read_map",
    "row_in",
    "state_in",
]

# Nanoseconds between two times that a file system tells apart: a tick of Linux, a
# second where times have no fraction, or two where they are even, as of FAT.
_TICK, _SECOND = 20_000_000, 1_000_000_000
# Size and time of a map that no map has, so that each is compared with it.
NO_MAP = (-1, -1)
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def map_states(folder: str, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Ask for the size and time of every map.

    Returns
    -------
    numpy.ndarray
        ``(k, 5)``: number, bytes, time, and zeros for what is not known yet. A map
        that is gone since the folder was listed is left out, with its chunk.

    Raises
    ------
    StorageError
        The folder cannot be looked into, or a map is a link that leads nowhere, also a
        second after another began to store it.
    """
    try:
        found, sizes, times = _look_at(folder, numbers)
    except StorageError:
        raise
    except OSError as cause:
        raise refused(cause, "look at the maps in", folder) from cause
    states = np.zeros((len(found), 5), np.int64)
    for column, values in enumerate((found, sizes, times)):
        states[:, column] = values
    return states


def lost_maps(
    folder: str, states: npt.NDArray[np.int64], old: IndexContent | None
) -> list[int]:
    """Give the chunks of which nothing but an index tells what is in the data file.

    The map of one is lost, or a program was interrupted that wrote the chunk anew.

    Parameters
    ----------
    folder : str
        The directory.
    states : numpy.ndarray
        Of its maps; see `map_states`.
    old : IndexContent or None
        What there is.
    """
    if old is None:
        return []
    gone = np.setdiff1d(old.chunks[old.chunks[:, 4] > 0, 0], states[:, 0])
    return [
        number for number in gone.tolist() if _may_be_there(folder, data_name(number))
    ]


def _may_be_there(folder: str, name: str) -> bool:
    """Tell whether there is a file; also where the system does not say."""
    try:
        os.stat(path_in(folder, name))  # noqa: PTH116  # the folder is a str
    except OSError as cause:
        # Else the index of what may be there would be replaced.
        return cause.errno not in _NOT_THERE
    return True


def state_in(states: npt.NDArray[np.int64], number: int) -> tuple[int, int] | None:
    """Give size and time (ns) of a chunk's map, as `map_states` found them."""
    row = row_in(states, number)
    return None if row is None else (row[1], row[2])


def crc32_in(states: npt.NDArray[np.int64], number: int) -> tuple[int, int] | None:
    """Give size and CRC-32 of a chunk's map, of those that an index was made of."""
    row = row_in(states, number)
    return None if row is None else (row[1], row[3])


def row_in(states: npt.NDArray[np.int64], number: int) -> list[int] | None:
    """Give all that is known of a chunk's map."""
    at = int(np.searchsorted(states[:, 0], number))
    if at == len(states) or states.item(at, 0) != number:
        return None
    row: list[int] = states[at].tolist()
    return row


def other_maps(before: npt.NDArray[np.int64], now: npt.NDArray[np.int64]) -> set[int]:
    """Give the chunks whose maps are others by now, or came, or are gone."""
    # Without the times: one that was touched, or written as it was, is the same.
    was, there = (
        {row[0]: row[1:2] + row[3:] for row in part.tolist()} for part in (before, now)
    )
    return {number for number in {*was, *there} if was.get(number) != there.get(number)}


def _look_at(
    folder: str, numbers: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Give numbers, sizes and times of the maps that are there."""
    stat = os.stat
    found, sizes, times = [], [], []
    # By the folder's descriptor a file is found in two thirds of the time.
    fd = open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY) if numbers else -1
    try:
        for number in numbers:
            try:
                state = stat(f"meta_{number}.gmeta", dir_fd=fd)
            except FileNotFoundError:
                if (behind := _behind_link(folder, number, fd)) is None:
                    continue  # gone, and with it its items
                state = behind
            found.append(number)
            sizes.append(state.st_size)
            times.append(state.st_mtime_ns)
    finally:
        if numbers:
            os.close(fd)
    return found, sizes, times


def _behind_link(folder: str, number: int, fd: int) -> os.stat_result | None:
    """Look behind a link again, once who writes the chunk anew has stored its map."""
    name = meta_name(number)
    try:
        target = os.readlink(name, dir_fd=fd)
    except OSError:
        return None
    wait_for_map(LocalStore(folder), number)
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=fd)
    raise StorageNotFoundError(
        errno.ENOENT,
        f"{Path(folder, name)} is a link to {target}, which is not there, so that the "
        "items of its chunk cannot be read. Bring back what it leads to, or run `gulp2 "
        "check` on the directory",
    )


def is_fresh(old: IndexContent | None, states: npt.NDArray[np.int64]) -> bool:
    """Tell whether an index is of maps of these sizes and times, and of no others."""
    return old is not None and np.array_equal(old.chunks[:, :3], states[:, :3])


def compose(
    folder: str,
    states: npt.NDArray[np.int64],
    old: IndexContent | None,
    progress: Progress = no_progress,
    *,
    thorough: bool = False,
    ahead: MutableMapping[int, tuple[Columns, list[int]]] | None = None,
) -> tuple[IndexContent, int]:
    """Put together what the maps say, with as much as possible of an old index.

    Parameters
    ----------
    folder : str
        The directory.
    states : numpy.ndarray
        Of its maps; see `map_states`.
    old : IndexContent or None
        What there is.
    progress : Progress, optional
        Called for each chunk, with the bytes of its map.
    thorough : bool, optional
        Trust no map's size and time, but its CRC-32 only.
    ahead : mutable mapping, optional
        Columns of maps that were read before, see `MapsAhead.parts`. What is used is
        taken out of it: it would need as much memory as the index.

    Returns
    -------
    content : IndexContent
        The old one itself, if all of it holds. Without the chunks whose maps are gone
        since `states` were asked for.
    parsed : int
        Maps that were parsed.
    """
    fresh = is_fresh(old, states)
    if old is not None and fresh and not thorough:
        return old, 0
    earlier = _Earlier(old)
    ahead = {} if ahead is None else ahead
    growing = GrowingColumns()
    chunks = np.zeros_like(states)
    there = np.zeros(len(states), np.bool_)
    parsed = 0
    for at, state in enumerate(states.tolist()):
        read = ahead.pop(state[0], None)
        part, known = read or earlier.chunk(state[0])
        if part is None or thorough or known[:3] != state[:3]:
            try:
                data, state = read_map(folder, state[0])
            except FileNotFoundError:
                continue  # gone since it was looked at, and with it its items
            if part is None or known[3] != state[3]:
                where = path_in(folder, meta_name(state[0]))
                part = columns_of_map(data, state[0], where=where)
                parsed += 1
            known = state
        chunks[at], there[at] = [*known[:4], len(part)], True
        growing.add(part)
        progress(
            items=len(part), frames=part.total_frames, num_bytes=int(states[at, 1])
        )
    columns = growing.finish()
    lookup = make_lookup(columns)
    check_ids(columns, lookup, where=folder)
    made = IndexContent(columns, lookup, chunks[there])
    if old is not None and fresh and not parsed and _is_whole(old, made):
        return old, 0
    return made, parsed


def keep_lost(
    content: IndexContent, old: IndexContent | None, lost: Sequence[int]
) -> IndexContent:
    """Add what an old index has of chunks whose maps are lost.

    Parameters
    ----------
    content : IndexContent
        What the maps say.
    old : IndexContent or None
        What there was.
    lost : sequence of int
        The chunks; see `lost_maps`.

    Returns
    -------
    IndexContent
        One by which nobody opens the directory, as other maps are there. An id may be
        in it twice, where the item has been stored again.
    """
    parts: dict[int, tuple[Columns, list[int]]] = {}
    for known, rows in content.by_chunk():
        parts[known[0]] = content.columns.rows(rows.start, rows.stop), known
    earlier = _Earlier(old)
    for number in lost:
        part, known = earlier.chunk(number)
        if part is not None:
            # Without its time: a map that is put back is compared by its CRC-32, and
            # then ids are looked at.
            parts[number] = part, [*known[:2], 0, *known[3:]]
    growing = GrowingColumns()
    chunks = []
    for _, (part, known) in sorted(parts.items()):
        growing.add(part)
        chunks.append(known)
    columns = growing.finish()
    return IndexContent(
        columns, make_lookup(columns), np.array(chunks, np.int64).reshape(-1, 5)
    )


def _is_whole(old: IndexContent, made: IndexContent) -> bool:
    """Tell whether an old index, whose rows are right, is right in all the rest."""
    return (
        np.array_equal(old.chunks, made.chunks)
        and len(old.columns) == len(made.columns)
        and np.array_equal(old.lookup.hashes, made.lookup.hashes)
        and np.array_equal(old.lookup.rows, made.lookup.rows)
        and make_table(old) is not None
        # Of bytes that readers need not, as the names of columns, nothing else tells.
        and old.source is not None
        and is_whole(old.source)
    )


class _Earlier:
    """The chunks of an old index, as far as they prove to be right."""

    def __init__(self, old: IndexContent | None) -> None:
        self._old = old
        self._place: dict[int, tuple[list[int], range]] = {}
        if old is not None and ids_crc32(old.columns) == old.crc32.get("ids"):
            self._place = {known[0]: (known, rows) for known, rows in old.by_chunk()}

    def chunk(self, number: int) -> tuple[Columns | None, list[int]]:
        """Give the rows of a chunk and what is known of its map."""
        if self._old is None or number not in self._place:
            return None, []
        known, rows = self._place[number]
        try:
            part = self._old.columns.rows(rows.start, rows.stop)
            checks = part.row_checks(0, known[4])
        except (ValueError, IndexError, OverflowError):
            return None, []
        if checks != part.row_crc32.tolist():
            return None, []
        return part, known


def read_map(folder: str, number: int) -> tuple[bytes, list[int]]:
    """Read a map; give what is known of it, the number of items left out.

    A map that was written just now is read once the clock has moved on: one that
    replaces it later could have the same time, and, if it has the same size, pass for
    the one that was read.

    Raises
    ------
    StorageError
        It cannot be read, or is no file.
    """
    path = path_in(folder, meta_name(number))
    try:
        _wait_for_the_clock(os.stat(path).st_mtime_ns)  # noqa: PTH116  # a tenth of Path's time
        with os.fdopen(open_regular(path), "rb") as file:
            state = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        raise
    except OSError as cause:
        raise refused(cause, "read", path) from cause
    return data, [number, state.st_size, state.st_mtime_ns, crc32_of(data)]


def is_settled(changed_ns: int) -> bool:
    """Tell whether what is written from now on has another time than this one."""
    return not _left_of_tick(changed_ns)


def _wait_for_the_clock(changed_ns: int) -> None:
    if left := _left_of_tick(changed_ns):  # to sleep for no time is a turn of others
        time.sleep(left / _SECOND)


def _left_of_tick(changed_ns: int) -> int:
    """Count the nanoseconds for which the clock stays as it was at a time."""
    seconds, fraction = divmod(changed_ns, _SECOND)
    tick = _TICK if fraction else _SECOND if seconds % 2 else 2 * _SECOND
    left = changed_ns + tick - time.time_ns()
    return left if 0 < left <= tick else 0
