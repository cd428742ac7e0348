"""Giving a new file its name, where nothing has it."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gulpio2.errors import LockedError
from gulpio2.format.layout import partial_name
from gulpio2.storage.descriptors import open_descriptor
from gulpio2.storage.locks import WriterLock, share_locks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["rename_new"]


def rename_new(file: Path, name: Path) -> None:
    """Rename a file, unless there is another of that name.

    By a hard link. Where the file system knows none, or such that have locks of their
    own, one that gets the name in the same instant stays if it is renamed so too, and
    the file system knows locks.

    Raises
    ------
    OSError
        There is another of that name, which stays (``FileExistsError``), or the file
        cannot be renamed.
    LockedError
        Another that is about to take the name hangs.
    """
    if not _link(file, name):
        _replace_nothing(file, name)


def _link(file: Path, name: Path) -> bool:
    """Rename by a second name and the removal of the first; False if it cannot."""
    try:
        os.link(file, name)
    except FileExistsError:
        # By the network a request that is sent again finds what it has done.
        if not os.path.samestat(file.lstat(), name.lstat()):
            raise
    except OSError:
        return False
    if not share_locks(file, name):  # who holds the file would not hold its name
        name.unlink()
        return False
    with suppress(OSError):  # it has its name: the other is a leftover
        file.unlink()
    return True


def _replace_nothing(file: Path, name: Path) -> None:
    """Rename without links, one at a time of those who do so.

    The name itself is not taken before: who is killed then would leave it.
    """
    with _locked(name.with_name(partial_name(name.name, "naming"))):
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        file.replace(name)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file that is made for that, and removed at the end.

    One that is left over is taken up: nobody has it locked. Where it cannot be made, as
    on a full disk, or the file system knows no locks, the block is run without.

    Raises
    ------
    LockedError
        Another has it locked, and does not let go within a second.
    """
    with WriterLock() as lock:
        try:
            while not lock.has(path):  # again where the other has removed it
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
                os.close(open_descriptor(path, flags, 0o666))
                lock.take(path, to_write=True)
        except LockedError:
            raise
        except OSError:
            pass
        try:
            yield
        finally:
            with suppress(OSError):  # what is left over is cleared away with others
                if lock.has(path):
                    path.unlink()
