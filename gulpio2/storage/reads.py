"""Reads from a file that is open, whole although the system gives less at a time."""

from __future__ import annotations

import os

from gulpio2.errors import ReadRangeError, StorageError
from gulpio2.storage.refusals import not_read

__all__ = ["range_error", "read_fully", "read_into"]


def read_into(fd: int, path: str, offset: int, memory: memoryview) -> None:
    """Fill memory with the bytes from `offset`; as `read_fully`."""
    try:
        done = os.preadv(fd, (memory,), offset)
        while done < len(memory):
            more = os.preadv(fd, (memory[done:],), offset + done)
            if not more:
                raise range_error(path, offset + done, offset, len(memory))
            done += more
    except OSError as cause:
        if isinstance(cause, StorageError):
            raise
        raise not_read(cause, path, offset) from cause


def read_fully(fd: int, path: str, offset: int, length: int) -> bytes:
    """Read exactly `length` bytes; a short read of the system is gone on with."""
    try:
        data = os.pread(fd, length, offset)
        while len(data) < length:
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                raise range_error(path, offset + len(data), offset, length)
            data += more
    except OSError as cause:
        if isinstance(cause, StorageError):
            raise
        raise not_read(cause, path, offset) from cause
    return data


def range_error(path: str, end: int, offset: int, length: int) -> ReadRangeError:
    """Make the error of a file that ends before what is wanted of it."""
    return ReadRangeError(
        None,
        f"{path} ends at byte {end}, but bytes {offset} to {offset + length} are "
        "wanted: it was cut. Run `gulp2 check` on its directory",
    )
