"""An index made to take the place of another, which may alone know something."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from gulpio2.errors import (
    ChunkMismatchError,
    MapChangedError,
    MetaFileError,
    StorageNotFoundError,
)
from gulpio2.format.layout import (
    INDEX_NAME,
    data_name,
    is_partial_of,
    list_chunks,
    meta_name,
)
from gulpio2.storage.base import require_known_version
from gulpio2.storage.beside_writers import wait_for_map
from gulpio2.storage.index.columns import ALTERED
from gulpio2.storage.index.composing import compose, keep_lost, lost_maps, map_states
from gulpio2.storage.index.file import write_index
from gulpio2.storage.index.loading import load_to_replace
from gulpio2.storage.index.opening import UnlessChanged, is_small
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import path_in
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    import numpy.typing as npt

    from gulpio2.storage.index.columns import Columns, IndexContent
    from gulpio2.types import Progress, StrPath

__all__ = ["IndexSummary", "compose_safely", "foresee_index", "replace_index", "sweep"]

_logger = logging.getLogger(__name__)


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


def compose_safely(
    folder: str,
    states: npt.NDArray[np.int64],
    old: IndexContent | None,
    *,
    thorough: bool,
    forgetting: bool = False,
    progress: Progress = no_progress,
    ahead: MutableMapping[int, tuple[Columns, list[int]]] | None = None,
) -> tuple[IndexContent, int]:
    """As `compose`; where that would lose what an old index alone has, raise.

    Parameters
    ----------
    folder : str
        The directory.
    states : numpy.ndarray
        Of its maps; see `map_states`.
    old : IndexContent or None
        What there is.
    thorough : bool, keyword-only
        As for `compose`.
    forgetting : bool, keyword-only
        Keep the rows of data files whose map is lost, and do not raise.
    progress : Progress, keyword-only
        As for `compose`.
    ahead : mutable mapping, keyword-only
        As for `compose`.

    Raises
    ------
    ChunkMismatchError
        Of a data file without a map nothing else tells what is in it.
    LockedError
        Another has such a data file open for writing.
    MapChangedError
        Another was about to store its map.
    MetaFileError
        With `thorough`: entries as they were written would make way for damaged ones.
    """
    content, parsed = compose(
        folder, states, old, progress, thorough=thorough, ahead=ahead
    )
    if lost := lost_maps(folder, content.chunks, old):
        if not forgetting:
            _wait_for_maps(folder, lost)
            _refuse_to_forget(folder, lost[0])
        content = keep_lost(content, old, lost)
    if thorough and old is not None:
        _refuse_to_believe(folder, content, old)
    return content, parsed


def replace_index(
    path: StrPath,
    *,
    thorough: bool = False,
    forgetting: bool = False,
    progress: Progress = no_progress,
    ahead: MutableMapping[int, tuple[Columns, list[int]]] | None = None,
    after_change: bool = False,
) -> IndexSummary | None:
    """As `gulpio2.storage.index.keeping.build_index`, once.

    Parameters
    ----------
    path : str or path
        The directory.
    thorough, forgetting, progress, ahead
        As for `compose_safely`, keyword-only.
    after_change : bool, optional
        As `gulpio2.storage.index.keeping.refresh_index`: nobody deletes anything
        meanwhile, which without it is not to come back; and nothing is written for a
        directory that is opened as quickly without an index, and has none.

    Raises
    ------
    MapChangedError
        A map has changed meanwhile, or another that changes the directory, or makes its
        own index, has removed the file.
    """
    store = LocalStore(path)
    require_known_version(store, to_write=True)
    folder = str(store.folder)
    # Also what a reader writes just now, of maps as they were. Before the names are
    # listed: one that has got its name by then is to be replaced.
    sweep(store)
    names = store.names()
    listing = list_chunks(names)
    listing.require_data(store.path)
    states = map_states(folder, listing.chunks)
    if is_small(states) and INDEX_NAME not in names and after_change:
        return None
    old = load_to_replace(folder)
    content, parsed = compose_safely(
        folder,
        states,
        old,
        thorough=thorough,
        forgetting=forgetting,
        progress=progress,
        ahead=ahead,
    )
    if altered := content.columns.describe_altered():
        _logger.warning("%s: %s", folder, altered)
    if not len(content.columns):
        if old is not None or listing.chunks:  # else it may be anybody's file
            store.remove(INDEX_NAME)  # of items that are deleted
        return None
    target = path_in(folder, INDEX_NAME)
    try:
        if content is not old:
            writer = store if after_change else UnlessChanged(folder, content)
            write_index(writer, content.columns, content.lookup, content.chunks)
        num_bytes = store.size(INDEX_NAME)
    except StorageNotFoundError as cause:
        raise MapChangedError(
            f"{target} was not written, or is gone: others change the directory, or "
            "make its index. Try again when they are done"
        ) from cause
    return IndexSummary(
        target,
        len(content.columns),
        content.columns.total_frames,
        len(content.chunks),
        parsed,
        num_bytes,
    )


def sweep(store: LocalStore) -> None:
    """Remove what an interrupted process has left."""
    for name in store.names():
        if is_partial_of(name, INDEX_NAME):
            store.remove(name)


def foresee_index(path: StrPath) -> None:
    """Raise what `build_index` raises with `thorough`, and write nothing.

    Parameters
    ----------
    path : str or path
        The directory.

    Raises
    ------
    ChunkMismatchError, DuplicateIdError, MetaFileError, StorageError, UnusualMapError
        As `build_index`.
    """
    store = LocalStore(path)
    require_known_version(store, to_write=True)
    folder = str(store.folder)
    listing = list_chunks(store.names())
    listing.require_data(store.path)
    old = load_to_replace(folder, quiet=True)
    compose_safely(folder, map_states(folder, listing.chunks), old, thorough=True)


def _wait_for_maps(folder: str, numbers: Sequence[int]) -> None:
    """Have the index made again where chunks without a map are being written anew."""
    store = LocalStore(folder)
    for number in numbers:
        wait_for_map(store, number)
    if mapped := set(numbers).intersection(list_chunks(store.names()).chunks):
        path = store.path(meta_name(min(mapped)))
        raise MapChangedError(f"{path} was written anew meanwhile. Try again")


def _refuse_to_forget(folder: str, number: int) -> NoReturn:
    raise ChunkMismatchError(
        f"{path_in(folder, data_name(number))} has no map, and nothing but "
        f"{INDEX_NAME} tells what is in it. Put {meta_name(number)} back, or run "
        "`gulp2 repair`, which takes the items from the index; to go on without "
        "them, run `gulp2 index --remove` first"
    )


def _refuse_to_believe(folder: str, content: IndexContent, old: IndexContent) -> None:
    """Refuse to replace entries as they were written by what a map has since become."""
    before = {known[0]: known for known in old.chunks.tolist()}
    for number, *known, crc32, _ in content.chunks.tolist():
        then = before.get(number, [number, -1, -1, crc32])
        if then[1:3] == known and then[3] != crc32:
            now, was = (_count_altered(each.columns, number) for each in (content, old))
            if now > was:
                raise MetaFileError(
                    f"{path_in(folder, meta_name(number))} has changed, and its "
                    "size and time have not, and entries in it are not what their "
                    f"checks say: it is damaged. {INDEX_NAME} has them as they were "
                    "written, and `gulp2 repair` takes them from there; to have an "
                    "index of what the map says now, run `gulp2 index --remove` first"
                )


def _count_altered(columns: Columns, number: int) -> int:
    return int(np.count_nonzero(columns.flags[columns.chunk == number] & ALTERED))
