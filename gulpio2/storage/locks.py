"""One writer per folder, by a lock that dies with its owner."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gulpio2.errors import LockedError, StorageError
from gulpio2.storage.handles import open_descriptor
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["lock_file", "lock_folder"]

# Descriptors of locks that this process holds. A forked child closes its copies, for
# a lock lives as long as any copy of its descriptor: workers that outlive a killed
# parent for a moment must not keep the folder locked.
_held: set[int] = set()
# Seconds. What a worker whose parent was killed needs at most to end, or to close what
# it has inherited, if its disk answers.
_PATIENCE = 1.0


def _drop_inherited() -> None:
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_drop_inherited)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's writer lock.

    Notes
    -----
    An advisory ``flock`` on the folder itself: no lock file is left behind, and the
    system releases it when the process ends, however it ends.

    Raises
    ------
    LockedError
        Another writer holds it, and does not end within a second: of one that was
        killed, a worker may just have been started, and not have let go of its copy.
    """
    try:
        fd = open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as cause:
        raise refused(cause, "open the folder", folder, writing=True) from cause
    try:
        is_locked = lock_file(fd)
    except OSError as cause:
        os.close(fd)
        raise StorageError(
            cause.errno,
            f"cannot lock the folder {folder}: {cause.strerror}. The file system must "
            "support flock",
        ) from cause
    except BaseException:  # an interrupt while it waits
        os.close(fd)
        raise
    if not is_locked:
        os.close(fd)
        raise LockedError(
            errno.EWOULDBLOCK,
            f"another process is writing to {folder}. Wait for it to end, or write to "
            "another folder",
        )
    _held.add(fd)
    try:
        yield
    finally:
        # Not held any more where a fork in between has closed this copy.
        if fd in _held:
            _held.discard(fd)
            os.close(fd)


def lock_file(fd: int) -> bool:
    """Lock an open file for as long as its descriptor is open.

    Returns
    -------
    bool
        False where another process has it locked and does not let go within a second.
        One that was killed may still wait for its disk.

    Raises
    ------
    OSError
        The file system does not support locks.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            if cause.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
        else:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
