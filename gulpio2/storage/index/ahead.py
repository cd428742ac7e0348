"""Maps that are read while an ingest goes on, for the index at its end.

An index of a hundred million frames takes most of a minute, in one process. While
workers store frames theirs has little to do.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import GulpError
from gulpio2.format.layout import meta_name
from gulpio2.format.scan import UnusualMapError
from gulpio2.storage.index import opening
from gulpio2.storage.index.building import columns_of_map
from gulpio2.storage.index.columns import DTYPES, Columns
from gulpio2.storage.index.composing import is_settled, read_map
from gulpio2.storage.paths import path_in

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["MapsAhead"]

_logger = logging.getLogger(__name__)

# Bytes of columns that get memory of their own.
_LARGE = 1 << 17


class MapsAhead:
    """Columns of maps that are in place already.

    Parameters
    ----------
    folder : str
        The directory.

    Attributes
    ----------
    parts : dict
        Number of a chunk to its columns, and what is known of its map, as `compose`
        takes them.

    Notes
    -----
    Whoever composes the index compares each map with what is known of it, so that one
    that was changed since is read again. One that cannot be read is left out here: at
    the end it is told of.
    """

    def __init__(self, folder: str) -> None:
        self.parts: dict[int, tuple[Columns, list[int]]] = {}
        self._folder = folder
        self._waiting: deque[int] = deque()
        self._num_bytes = 0

    def add(self, number: int) -> None:
        """Take note of the map of a chunk; one that is not there is left out."""
        with contextlib.suppress(OSError):
            self._num_bytes += os.stat(self._path(number)).st_size  # noqa: PTH116  # a tenth of Path's time
            self._waiting.append(number)

    def read_next(self) -> bool:
        """Read one map; False where there is none to be read now.

        Nor is there while all of them are so small that there will be no index.
        """
        if self._num_bytes <= opening.SMALL_MAPS_BYTES or not self._waiting:
            return False
        number = self._waiting[0]
        path = self._path(number)
        try:
            if not is_settled(os.stat(path).st_mtime_ns):  # noqa: PTH116  # as above
                return False
            data, known = read_map(self._folder, number)
            part = columns_of_map(data, number, where=path)
        except (GulpError, OSError, UnusualMapError) as cause:
            _logger.debug("%s is left for the end: %s", path, cause)
        else:
            self.parts[number] = _in_own_memory(part), known
        self._waiting.popleft()
        return True

    def _path(self, number: int) -> str:
        return path_in(self._folder, meta_name(number))


def _in_own_memory(part: Columns) -> Columns:
    """Copy columns to where their memory is the system's again once they are dropped.

    They are many, and all there before the first of them is put into the index: freed
    memory of the heap would be kept beside that, as much once more.
    """
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(part, name) for name in DTYPES}
    # Each begins at a multiple of eight bytes.
    starts, size = {}, 0
    for name, array in arrays.items():
        starts[name] = size
        size += -(-array.nbytes // 8) * 8
    if size < _LARGE:
        return part
    try:
        memory = mmap.mmap(-1, size)
    except OSError:  # too many of them
        return part
    own = {
        name: np.frombuffer(memory, array.dtype, array.size, starts[name])
        for name, array in arrays.items()
        if array.size
    }
    for name, array in own.items():
        array[:] = arrays[name]
    return Columns(**{**arrays, **own})
