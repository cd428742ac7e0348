"""The file of an index: written, checked against the maps, and removed."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.errors import MapChangedError, MetaFileError, StorageError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import INDEX_NAME, list_chunks, meta_name
from gulpio2.storage.index.building import columns_of_map
from gulpio2.storage.index.columns import DTYPES, Columns, make_lookup
from gulpio2.storage.index.composing import read_map
from gulpio2.storage.index.loading import map_or_refuse
from gulpio2.storage.index.replacing import IndexSummary, replace_index, sweep
from gulpio2.storage.index.stale import stale_maps, states_of
from gulpio2.storage.index.table import has_right_metadata
from gulpio2.storage.index.whole import is_whole
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import path_in
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from gulpio2.types import Progress, StrPath

__all__ = [
    "IndexState",
    "build_index",
    "check_index",
    "index_state",
    "map_bytes",
    "refresh_index",
    "remove_index",
]

_logger = logging.getLogger(__name__)

# Tries before the last.
_TIMES_AGAIN = 4


@dataclass(frozen=True, slots=True)
class IndexState:
    """Whether a directory has an index, and of which maps."""

    path: str
    """The file."""
    num_bytes: int
    """Its bytes; 0 where there is none."""
    fault: str | None
    """Why it cannot be used; None if it can, or if there is none."""
    stale: tuple[str, ...]
    """Maps that it was not made of, or not as they are."""
    is_unread: bool = False
    """Whether that it cannot be used is as it cannot be read, which may pass."""

    @property
    def is_fresh(self) -> bool:
        """Whether the directory is opened by it as it is."""
        return self.num_bytes > 0 and self.fault is None and not self.stale


def index_state(
    path: StrPath,
    *,
    thorough: bool = False,
    unread: Callable[[str, OSError], None] | None = None,
) -> IndexState:
    """Say whether there is an index, and whether it is fresh, by sizes and times.

    Parameters
    ----------
    path : str or path
        The directory.
    thorough : bool, optional
        Read the maps of which the time alone is another, as after copying, and compare
        their CRC-32. Without it no map is read.
    unread : callable, optional
        Called with the name of a map and the error, where the system refuses to read
        it: whether it is as it was indexed is not known. Default: the error is raised.

    Raises
    ------
    StorageError
        Maps cannot be looked at, or, without `unread`, cannot be read.
    """
    folder = os.fspath(path)
    target = path_in(folder, INDEX_NAME)
    states = states_of(folder)
    try:
        content = map_or_refuse(folder)
    except FileNotFoundError:
        return IndexState(target, 0, None, ())
    except (StorageError, ValueError) as cause:
        num_bytes = 0
        with suppress(OSError):  # a link to itself
            num_bytes = os.stat(target).st_size  # noqa: PTH116  # a tenth of Path's time
        is_unread = isinstance(cause, StorageError)
        why = str(getattr(cause, "strerror", cause))
        return IndexState(target, num_bytes, why, (), is_unread=is_unread)
    stale = stale_maps(folder, states, content, thorough=thorough, unread=unread)
    return IndexState(target, len(content.source or b""), None, stale)


def map_bytes(path: StrPath) -> int:
    """Count the bytes of all maps, which an index is built of."""
    return int(states_of(os.fspath(path))[:, 1].sum())


def build_index(
    path: StrPath,
    *,
    thorough: bool = False,
    progress: Progress = no_progress,
) -> IndexSummary | None:
    """Write the index of a directory, or bring it up to date.

    Parameters
    ----------
    path : str or path
        The directory. Where another changes it meanwhile, the maps are read again.
    thorough : bool, optional
        Read every map and compare it with its CRC-32 in the index, in place of its
        size and time; parse those that differ.
    progress : Progress, optional
        Called for each chunk, with the bytes of its map.

    Returns
    -------
    IndexSummary or None
        None if there is nothing to index, and now no index.

    Raises
    ------
    ChunkMismatchError
        A map has no data file; or a data file no map, and the index has its items.
    MetaFileError
        A map is damaged; with `thorough` also where the index has its entries as they
        were written.
    DuplicateIdError
        Two chunks have an item of the same id.
    LockedError
        Another is writing such a data file anew, and does not store its map.
    MapChangedError
        Others go on changing maps, or making the index.
    StorageError
        The file cannot be written; or there is one that cannot be read, which alone may
        tell what is in a data file.
    UnusualMapError
        A map can be read, but not be put into columns.
    """
    return _made_again(partial(replace_index, path, thorough=thorough), progress)


def _made_again(
    build: Callable[..., IndexSummary | None], progress: Progress
) -> IndexSummary | None:
    """Make an index, and again where another changes the directory or makes its own."""
    for _ in range(_TIMES_AGAIN):
        with suppress(MapChangedError):
            return build(progress=progress)
        progress = no_progress
    return build(progress=progress)


def refresh_index(
    path: StrPath,
    ahead: MutableMapping[int, tuple[Columns, list[int]]] | None = None,
    *,
    forgetting: bool = False,
    progress: Progress = no_progress,
) -> None:
    """Write the index at the end of a change, where the directory is large enough.

    For whoever holds the directory's lock. What goes wrong is told and no more: the
    directory can be read without.

    Parameters
    ----------
    path : str or path
        The directory.
    ahead : mutable mapping, optional
        Columns of maps that were read before, see `MapsAhead.parts`; taken out of it.
    forgetting : bool, optional
        Replace an index also where nothing else tells what is in a data file: its rows
        of that are kept.
    progress : Progress, optional
        Called for each chunk, with the bytes of its map and nothing else: whoever made
        the change has told of its items.
    """

    def tell(*, num_bytes: int = 0, **_: int) -> None:
        progress(num_bytes=num_bytes)

    build = partial(
        replace_index,
        path,
        forgetting=forgetting,
        ahead=ahead,
        after_change=True,
    )
    try:
        summary = _made_again(build, tell)
    except Exception as cause:  # noqa: BLE001  # what was just written is whole
        # What the system refuses, it would refuse that command as well.
        is_refused = isinstance(cause, StorageError)
        _logger.warning(
            "%s has no index that is up to date: %s%s",
            os.fspath(path),
            cause,
            "" if is_refused else ". `gulp2 index` makes one",
        )
    else:
        if summary is not None:
            _logger.info("%s: %d frames", summary.path, summary.frames)


def remove_index(path: StrPath) -> bool:
    """Remove the index; tell whether there was one."""
    store = LocalStore(path)
    there = INDEX_NAME in store.names()
    if there:  # else what may not be written to would refuse to remove nothing
        store.remove(INDEX_NAME)
    sweep(store)
    return there


def check_index(path: StrPath, progress: Progress = no_progress) -> list[str]:
    """Compare the whole index with the maps, which are all parsed.

    Parameters
    ----------
    path : str or path
        The directory.
    progress : Progress, optional
        Called for each chunk, with the bytes of its map.

    Returns
    -------
    list of str
        What is wrong, a line each. That there is none, only where there are items.

    Raises
    ------
    MetaFileError
        A map is damaged.
    UnusualMapError
        A map can be read, but not be put into columns.
    StorageError
        The index or a map cannot be read, so that nothing can be said of it.
    """
    folder = os.fspath(path)
    states = states_of(folder)
    try:
        content = map_or_refuse(folder)
    except FileNotFoundError:
        return ["there is no index"] if _has_items(folder) else []
    except ValueError as cause:
        return [f"it cannot be used: {cause}"]
    if stale := stale_maps(folder, states, content, thorough=True):
        return [f"{name} is not as it was indexed" for name in stale]
    faults = []
    for (number, _, _, crc32, count), rows in content.by_chunk():
        data, _ = read_map(folder, number)
        where = path_in(folder, meta_name(number))
        wanted = columns_of_map(data, number, where=where)
        found = content.columns.rows(rows.start, rows.stop)
        progress(items=count, frames=wanted.total_frames, num_bytes=len(data))
        if crc32_of(data) != crc32 or not _is_same(found, wanted):
            faults.append(f"{meta_name(number)} does not say what the index says")
    if not faults:
        lookup = make_lookup(content.columns)
        if not (
            np.array_equal(lookup.hashes, content.lookup.hashes)
            and np.array_equal(lookup.rows, content.lookup.rows)
        ):
            faults.append("its columns for finding ids are damaged")
        if not has_right_metadata(content):
            faults.append("its columns of metadata are damaged")
        if not faults and not (content.source and is_whole(content.source)):
            faults.append("a byte of it has changed, of those that readers need not")
    return faults


def _has_items(folder: str) -> bool:
    """Tell whether there is anything to index, or a damaged map."""
    for number in list_chunks(LocalStore(folder).names()).chunks:
        where = path_in(folder, meta_name(number))
        try:
            columns = columns_of_map(read_map(folder, number)[0], number, where=where)
        except MetaFileError:
            return True
        if len(columns):
            return True
    return False


def _is_same(one: Columns, other: Columns) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in DTYPES
    )
