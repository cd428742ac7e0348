"""The index of a directory: the file if it is fresh, else columns built anew.

A map is taken to be the one that the index was made of if its size and time are the
same, or else if its CRC-32 is; only maps of which neither holds are parsed.
"""

from __future__ import annotations

import logging
import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.errors import StorageError
from gulpio2.format.layout import list_chunks, meta_name
from gulpio2.format.scan import UnusualMapError
from gulpio2.storage.index.building import check_ids, columns_of_map
from gulpio2.storage.index.columns import (
    Columns,
    IndexContent,
    concatenate,
    ids_crc32,
    make_lookup,
)
from gulpio2.storage.index.file import INDEX_NAME, map_index, write_index
from gulpio2.storage.index.index import Index
from gulpio2.storage.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from gulpio2.types import StrPath

__all__ = ["SMALL_MAPS_BYTES", "IndexSummary", "build_index", "open_index"]

_logger = logging.getLogger(__name__)

# Bytes of all maps. Below, parsing them takes some hundredths of a second at most, and
# ordinary dictionaries have nothing to be explained.
SMALL_MAPS_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What an index holds."""

    path: str
    """The file."""
    items: int
    frames: int
    chunks: int
    parsed: int
    """Chunks whose map was parsed; of the others the rows were taken over."""
    num_bytes: int
    """Bytes of the file."""


def build_index(path: StrPath, *, even_if_small: bool = True) -> IndexSummary | None:
    """Write the index of a directory, or bring it up to date.

    Parameters
    ----------
    path : str or path
        The directory.
    even_if_small : bool, optional
        Without it nothing is written for a directory that is opened as quickly
        without an index, and has none.

    Returns
    -------
    IndexSummary or None
        None if there is nothing to index.

    Raises
    ------
    MetaFileError
        A map is damaged.
    DuplicateIdError
        Two chunks have an item of the same id.
    StorageError
        The file cannot be written.
    UnusualMapError
        A map can be read, but not be put into columns.
    """
    store = LocalStore(path)
    folder = str(store.folder)
    listing = list_chunks(store.names())
    states = _states(folder, listing.chunks)
    old = _load(folder)
    small = int(states[:, 1].sum()) <= SMALL_MAPS_BYTES
    if not listing.chunks or (small and old is None and not even_if_small):
        return None
    content, parsed = _compose(folder, states, old)
    if not len(content.columns):
        return None
    target = os.path.join(folder, INDEX_NAME)  # noqa: PTH118  # as everywhere here
    if content is not old:
        write_index(store, content.columns, content.lookup, content.chunks)
    return IndexSummary(
        target,
        len(content.columns),
        content.columns.total_frames,
        len(content.chunks),
        parsed,
        store.size(INDEX_NAME),
    )


def open_index(
    path: StrPath,
    numbers: Sequence[int],
    *,
    wanted: bool | None,
    may_write: bool,
    verify: bool = False,
) -> Index | None:
    """Give the index of a directory.

    Parameters
    ----------
    path : str or path
        The directory.
    numbers : sequence of int
        Its chunks, ascending.
    wanted : bool or None
        None: only if the directory is not small.
    may_write : bool
        Whether the file may be written, where it is missing or stale and the folder
        allows it.
    verify : bool, optional
        Whether each entry is compared with its own check before it is first used.

    Returns
    -------
    Index or None
        None if there is none, so that the maps have to be loaded.

    Raises
    ------
    MetaFileError
        A map is damaged.
    DuplicateIdError
        Two chunks have an item of the same id.
    """
    folder = os.fspath(path)
    if wanted is False or (wanted is None and not numbers):
        return None
    states = _states(folder, numbers)
    if wanted is None and int(states[:, 1].sum()) <= SMALL_MAPS_BYTES:
        return None
    try:
        return Index(
            folder, _Maker(folder, numbers, states, may_write=may_write), verify=verify
        )
    except UnusualMapError as cause:
        _logger.info("%s is opened without an index: %s", folder, cause)
        return None


class _Maker:
    """Makes the content of an index, first of all of maps in a state that is known."""

    def __init__(
        self,
        folder: str,
        numbers: Sequence[int],
        states: npt.NDArray[np.int64],
        *,
        may_write: bool,
    ) -> None:
        self._folder = folder
        self._numbers = numbers
        self._known: npt.NDArray[np.int64] | None = states
        self._may_write = may_write

    def __call__(self, *, trust: bool = True) -> tuple[IndexContent, bool]:
        """Give content, and whether it is mapped from the file."""
        folder, states = self._folder, self._known
        self._known = None
        if states is None:
            states = _states(folder, self._numbers)
        old = _load(folder) if trust else None
        content, _ = _compose(folder, states, old)
        if content is old:
            return content, True
        if trust and self._may_write and _write(folder, content):
            written = _load(folder)
            if written is not None and np.array_equal(written.chunks, content.chunks):
                return written, True
        return content, False


def _write(folder: str, content: IndexContent) -> bool:
    """Write the file if the folder allows it."""
    if not len(content.columns) or not os.access(folder, os.W_OK):
        return False
    try:
        write_index(LocalStore(folder), content.columns, content.lookup, content.chunks)
    except (OSError, StorageError, ImportError) as cause:
        _logger.info("the index of %s stays in memory: %s", folder, cause)
        return False
    return True


def _load(folder: str) -> IndexContent | None:
    """Map the file if there is a usable one."""
    path = os.path.join(folder, INDEX_NAME)  # noqa: PTH118
    try:
        return map_index(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as cause:
        _logger.warning("%s cannot be used and is built anew: %s", path, cause)
        return None


def _states(folder: str, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Ask for the size and time of every map.

    Returns
    -------
    numpy.ndarray
        ``(k, 5)``: number, bytes, time, and zeros for what is not known yet.
    """
    states = np.zeros((len(numbers), 5), np.int64)
    stat, prefix = os.stat, os.path.join(folder, "")  # noqa: PTH118
    for at, number in enumerate(numbers):
        state = stat(prefix + meta_name(number))
        states[at, :3] = number, state.st_size, state.st_mtime_ns
    return states


def _compose(
    folder: str, states: npt.NDArray[np.int64], old: IndexContent | None
) -> tuple[IndexContent, int]:
    """Put together what the maps say, with as much as possible of an old index.

    Returns
    -------
    content : IndexContent
        The old one itself, if all of it holds.
    parsed : int
        Maps that were parsed.
    """
    if old is not None and np.array_equal(old.chunks[:, :3], states[:, :3]):
        return old, 0
    earlier = _Earlier(old)
    parts: list[Columns] = []
    chunks = np.zeros_like(states)
    parsed = 0
    for at, state in enumerate(states.tolist()):
        part, known = earlier.chunk(state[0])
        if part is None or known[:3] != state[:3]:
            data, state = _read_map(folder, state[0])
            if part is None or known[3] != state[3]:
                where = os.path.join(folder, meta_name(state[0]))  # noqa: PTH118
                part = columns_of_map(data, state[0], where=where)
                parsed += 1
            known = state
        chunks[at] = [*known[:4], len(part)]
        parts.append(part)
    columns = concatenate(parts)
    lookup = make_lookup(columns)
    check_ids(columns, lookup, where=folder)
    return IndexContent(columns, lookup, chunks), parsed


class _Earlier:
    """The chunks of an old index, as far as they prove to be right."""

    def __init__(self, old: IndexContent | None) -> None:
        self._old = old
        self._place: dict[int, tuple[int, list[int]]] = {}
        if old is not None:
            if ids_crc32(old.columns) != old.crc32.get("ids"):
                return
            start = 0
            for known in old.chunks.tolist():
                self._place[known[0]] = (start, known)
                start += known[4]

    def chunk(self, number: int) -> tuple[Columns | None, list[int]]:
        """Give the rows of a chunk and what is known of its map."""
        if self._old is None or number not in self._place:
            return None, []
        start, known = self._place[number]
        try:
            part = self._old.columns.rows(start, start + known[4])
            checks = [part.row_check(row) for row in range(known[4])]
        except (ValueError, IndexError, OverflowError):
            return None, []
        if checks != part.row_crc32.tolist():
            return None, []
        return part, known


def _read_map(folder: str, number: int) -> tuple[bytes, list[int]]:
    """Read a map; give what is known of it, the number of items left out."""
    with open(os.path.join(folder, meta_name(number)), "rb") as file:  # noqa: PTH118, PTH123
        state = os.fstat(file.fileno())
        data = file.read()
    return data, [number, state.st_size, state.st_mtime_ns, zlib.crc32(data)]
