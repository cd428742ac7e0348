"""Data files of parts, on their way into the target."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gulpio2.errors import (
    ChunkMismatchError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from gulpio2.format.layout import data_name, meta_name
from gulpio2.format.other_frames import known_crc32
from gulpio2.merge.parts import data_path, read_map
from gulpio2.storage.links import copy_file, is_beginning, is_same_file, link_file
from gulpio2.storage.local import is_there, look_at
from gulpio2.storage.locks import WriterLock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gulpio2.merge.parts import Part
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = ["bring_data", "brought_before", "name_data", "refuse_replaced"]


def brought_before(
    part: Part, chunk: int, end: int, out: Store, data_only: Sequence[int]
) -> tuple[int | None, bool]:
    """Find the number of a chunk whose map a merge that was killed did not bring.

    Returns
    -------
    number : int or None
        None if there is no such data file.
    is_whole : bool
        Whether it holds all frames. It does not where the part has grown since.
    """
    source = data_path(part.store, chunk)
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


def bring_data(
    part: Part,
    chunk: int,
    end: int,
    out: Store,
    target: StrPath,
    partial: str,
    *,
    link: bool,
) -> None:
    """Put the frames of a chunk into the target, under a partial name."""
    if not (link and _share(part, chunk, end, out.path(partial))):
        copy_file(data_path(part.store, chunk), target, partial, end)


def _share(part: Part, chunk: int, end: int, path: str) -> bool:
    """Make a hard link; False where frames that are not of the map may come with it.

    Who opens the part's data file to append to it later gives it bytes of its own. Who
    has it open already does not, and would go on in the target.
    """
    source = data_path(part.store, chunk)
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
        is_longer = part.store.size(data_name(chunk)) > end
        return not is_longer and link_file(source, path)


def refuse_replaced(
    part: Part,
    chunk: int,
    before: os.stat_result | None,
    entries: Mapping[str, Any],
) -> None:
    """Refuse frames that may be of a data file which is not that of the map.

    Parameters
    ----------
    part : Part
        Where the chunk is.
    chunk : int
        Its number.
    before : os.stat_result or None
        The data file, before the map was read.
    entries : mapping
        What the map said.

    Raises
    ------
    ChunkMismatchError
        The chunk was written anew since. Not where the file was replaced by a copy of
        itself, as for an append.
    """
    now = look_at(data_path(part.store, chunk))
    if before is not None and now is not None and os.path.samestat(before, now):
        return
    there: Mapping[str, Any] = {}
    with suppress(StorageNotFoundError):
        there = read_map(part.store, chunk)[1]
    for id_, entry in entries.items():
        frames, other = entry["frame_info"], there.get(id_)
        if (
            other is None
            or other["frame_info"][: len(frames)] != frames
            or not known_crc32(entry).items() <= known_crc32(other).items()
        ):
            raise ChunkMismatchError(
                f"{part.store.path(data_name(chunk))} was written anew by another "
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
