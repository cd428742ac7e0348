"""Has the system begin to write to the disk, before a sync waits for it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["begin_writeback"]

_SYNC_FILE_RANGE_WRITE = 2


def _find_sync_range() -> Callable[[int, int, int, int], int] | None:
    """Find Linux's ``sync_file_range``, which Python has no name for."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError, TypeError):  # another system or C library
        return None
    whole = ctypes.c_int64
    function.argtypes = (ctypes.c_int, whole, whole, ctypes.c_uint)
    found: Callable[[int, int, int, int], int] = function
    return found


_sync_range = _find_sync_range()


def begin_writeback(fd: int, start: int, size: int) -> None:
    """Have the system write to the disk what a file has there; waits for nothing."""
    if _sync_range is not None:
        _sync_range(fd, start, size, _SYNC_FILE_RANGE_WRITE)
