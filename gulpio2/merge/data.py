"""Chunks of parts, on their way into the target."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.errors import (
    ChunkMismatchError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from gulpio2.format.gmeta import refuse_cut_data
from gulpio2.format.layout import data_name, meta_name, partial_name
from gulpio2.format.other_frames import known_crc32
from gulpio2.merge.parts import data_path, length_of
from gulpio2.storage.base import read_map
from gulpio2.storage.beside_writers import held_until_mapped, read_settled_map
from gulpio2.storage.leftovers import removed_on_error
from gulpio2.storage.links import copy_file, is_beginning, is_same_file, link_file
from gulpio2.storage.local import new_token
from gulpio2.storage.locks import WriterLock
from gulpio2.storage.paths import is_there, look_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gulpio2.merge.parts import Part
    from gulpio2.storage.base import Store

__all__ = [
    "MapAsRead",
    "bring_chunk",
    "name_data",
    "read_chunk_map",
    "refuse_replaced",
    "store_map",
]


class MapAsRead(NamedTuple):
    """The map of a chunk of a part, and what was seen of its data file."""

    part: Part
    chunk: int
    content: bytes
    entries: Mapping[str, Any]
    end: int
    """Where the data file ends, by the map."""
    before: os.stat_result | None
    """The data file, before the map was read."""


def read_chunk_map(part: Part, chunk: int) -> MapAsRead:
    """Read a map, before anything of its data file.

    What is appended to the chunk meanwhile lies behind all that this map speaks of.

    Raises
    ------
    ChunkMismatchError
        The data file was cut, or written anew meanwhile.
    """
    before = look_at(data_path(part.store, chunk))
    content, entries = read_settled_map(part.store, chunk)
    end = length_of(part, chunk, entries)
    read = MapAsRead(part, chunk, content, entries, end, before)
    size = part.store.size(data_name(chunk))
    if size < end:
        refuse_replaced(read)
    refuse_cut_data(
        part.store.path(data_name(chunk)),
        size,
        end,
        "It was not brought. 'gulp2 repair' copies a directory without what is lost: "
        "merge the copy",
    )
    return read


def bring_chunk(
    read: MapAsRead, out: Store, first: int, data_only: Sequence[int], *, link: bool
) -> int:
    """Store a chunk in the target; give the number that it has there.

    Parameters
    ----------
    read : MapAsRead
        Its map.
    out : Store
        The target.
    first : int
        It gets the first number from this one on that no chunk has.
    data_only : sequence of int
        Data files of the target that have no map. One of them may be the chunk's, of
        a merge that was killed; its number is that of the chunk then.
    link : bool
        Share the data file with the part, where that can be done.
    """
    begun, is_whole = _brought_before(read, out, data_only)
    number = first if begun is None else begun
    partial = partial_name(data_name(number), new_token())
    if not is_whole:
        _bring_data(read, out, partial, link=link)
        with removed_on_error(out, partial):
            refuse_replaced(read)
    with held_until_mapped(out, data_name(number) if is_whole else partial):
        if not is_whole:
            if begun is None:
                number = name_data(out, partial, first)
            else:
                out.rename(partial, data_name(begun))
            out.sync_names()
        store_map(read, out, number, read.content)
    return number


def store_map(read: MapAsRead, out: Store, number: int, content: bytes) -> None:
    """Store the map of a chunk that was brought, which is the commit."""
    map_ = Path(read.part.store.path(meta_name(read.chunk))).absolute()
    out.write_atomically(meta_name(number), content, made_of=[str(map_)])


def _brought_before(
    read: MapAsRead, out: Store, data_only: Sequence[int]
) -> tuple[int | None, bool]:
    """Find the number of a chunk whose map a merge that was killed did not bring.

    Returns
    -------
    number : int or None
        None if there is no such data file.
    is_whole : bool
        Whether it holds all frames. It does not where the part has grown since.
    """
    source, end = data_path(read.part.store, read.chunk), read.end
    shorter = None
    for number in data_only:
        if is_there(out.path(meta_name(number))):
            continue
        present = data_path(out, number)
        if is_same_file(present, source) or is_beginning(present, source, end):
            return number, True
        size = state.st_size if (state := look_at(present)) else 0
        if 0 < size < end and is_beginning(present, source, size):
            shorter = number
    return shorter, False


def _bring_data(read: MapAsRead, out: Store, partial: str, *, link: bool) -> None:
    """Put the frames of a chunk into the target, under a partial name."""
    if not (link and _share(read, out.path(partial))):
        source = data_path(read.part.store, read.chunk)
        copy_file(source, out.path(""), partial, read.end)


def _share(read: MapAsRead, path: str) -> bool:
    """Make a hard link; False where frames that are not of the map may come with it.

    Who opens the part's data file to append to it later gives it bytes of its own. Who
    has it open already does not, and would go on in the target.
    """
    store = read.part.store
    source = data_path(store, read.chunk)
    with WriterLock() as lock:
        try:
            # One that may not be opened may be linked all the same.
            # Another merge has it until its map is written.
            lock.take(source)
        except StorageError:
            # Or nobody can tell whether another has it: by the network a file that
            # may only be read is not locked.
            return False
        # If it is longer than its map says, something was being appended to it.
        is_longer = store.size(data_name(read.chunk)) > read.end
        return not is_longer and link_file(source, path)


def refuse_replaced(read: MapAsRead) -> None:
    """Refuse frames that may be of a data file which is not that of the map.

    Raises
    ------
    ChunkMismatchError
        The chunk was written anew since. Not where the file was replaced by a copy of
        itself, as for an append.
    """
    store, chunk, before = read.part.store, read.chunk, read.before
    now = look_at(data_path(store, chunk))
    if before is not None and now is not None and os.path.samestat(before, now):
        return
    there: Mapping[str, Any] = {}
    with suppress(StorageNotFoundError):
        there = read_map(store, meta_name(chunk))[1]
    for id_, entry in read.entries.items():
        frames, other = entry["frame_info"], there.get(id_)
        if (
            other is None
            or other["frame_info"][: len(frames)] != frames
            or not known_crc32(entry).items() <= known_crc32(other).items()
        ):
            raise ChunkMismatchError(
                f"{store.path(data_name(chunk))} was written anew by another "
                "program while it was merged, and was not brought: merge again"
            )


def name_data(out: Store, partial: str, number: int) -> int:
    """Give a data file the first number from this one on that no chunk has.

    Who writes a single chunk does not ask for the lock of the folder, and may have
    stored some while frames were copied.
    """
    while True:
        if not any(is_there(out.path(name(number))) for name in (data_name, meta_name)):
            with suppress(StorageExistsError):  # one that has come just now
                out.rename(partial, data_name(number), is_new=True)
                return number
        number += 1
