"""A data file as a whole: opened, compared with its map, or about to be begun."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from gulpio2.errors import StorageError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.gmeta import end_of
from gulpio2.format.other_frames import known_crc32
from gulpio2.storage.refusals import not_opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, BinaryIO

    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = ["has_frame", "has_frames_of", "open_data_file", "refuse_taken"]


def open_data_file(path: StrPath) -> BinaryIO:
    """Open a data file; its caller closes it.

    Raises
    ------
    StorageError
        It cannot be opened, or is no regular file: a pipe would wait for ever.
    """
    name = os.fspath(path)
    try:
        # Asked before, as clients patch `open`, and expect a path and a flag.
        if os.path.exists(name) and not os.path.isfile(name):  # noqa: PTH110, PTH113  # of any path
            raise OSError(errno.EINVAL, "not a regular file", name)
        return open(path, "rb")  # noqa: PTH123  # see above
    except OSError as cause:
        raise not_opened(cause, name) from cause


def has_frame(store: Store, name: str, info: Sequence[int], crc32: int) -> bool:
    """Tell whether a data file has a frame of this checksum in a place."""
    offset, pad, length = info
    return crc32_of(store.read_at(name, offset, length - pad)) == crc32


def has_frames_of(entries: Mapping[str, Any], store: Store, name: str) -> bool:
    """Tell whether a data file is the one of a map, and nothing was appended to it.

    By its length, and by the checksum of each frame that has one.
    """
    if store.size(name) != end_of(entries):
        return False
    return all(
        has_frame(store, name, *frame)
        for entry in entries.values()
        for frame in known_crc32(entry).items()
    )


def refuse_taken(path: StrPath, *, since_opened: bool = False) -> None:
    """Refuse to write over a chunk that has the number of a new one.

    For who has the number locked: what is not there is not begun meanwhile. An ingest
    or a merge, which lock the folder, may store it all the same.

    Parameters
    ----------
    path : str or path
        The data file that was not there when the number was given.
    since_opened : bool, optional
        Nor was it when the new one was opened.

    Raises
    ------
    StorageExistsError
        It is there.
    """
    if not os.path.exists(path):  # noqa: PTH110  # any StrPath
        return
    name = os.fspath(path)
    if since_opened:
        text = (
            f"{name} is there, and was not when it was opened for writing: another "
            "program, such as an ingest or a merge, has stored it meanwhile. It stays "
            "as that program left it, and what was appended here is not stored: ask "
            "`new_chunks` for another number, and append again"
        )
    else:
        text = (
            f"{name} is there, and was not when `new_chunks` gave its "
            "number: it was stored meanwhile. If that was an earlier try of this "
            "program, as in a pool of processes, make a `GulpChunk` of the two files, "
            "which replaces it; else ask `new_chunks` for another number"
        )
    raise StorageError(errno.EEXIST, text)
