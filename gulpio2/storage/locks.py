"""One writer per folder or data file, by a lock that dies with its owner."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from gulpio2.errors import LockedError, StorageError
from gulpio2.format.layout import is_partial_of
from gulpio2.storage.descriptors import open_descriptor
from gulpio2.storage.paths import is_at, is_there
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from gulpio2.types import StrPath

__all__ = [
    "WriterLock",
    "lock_file",
    "lock_folder",
    "share_locks",
]

# Descriptors of locks that this process holds. A forked child closes its copies, for
# a lock lives as long as any copy of its descriptor: workers that outlive a killed
# parent for a moment must not keep the folder locked.
_held: set[int] = set()
# Seconds. What a worker whose parent was killed needs at most to end, or to close what
# it has inherited, if its disk answers.
_PATIENCE = 1.0
# What is said of a file that may not be written to; it can be locked all the same.
_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY)
# What a file system says that knows no locks.
_UNKNOWN = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)


def _drop_inherited() -> None:
    for fd in _held:
        with suppress(OSError):  # as in `_let_go`
            os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_drop_inherited)


@contextmanager
def lock_folder(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the folder's writer lock.

    Parameters
    ----------
    folder : Path
        The folder.
    shared : bool, optional
        Keep writers away only: others may hold it like this at the same time.

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
    writing = not shared
    try:
        fd = open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as cause:
        raise refused(cause, "open the folder", folder, writing=writing) from cause
    _held.add(fd)  # also while it waits: a fork in between would keep the lock
    try:
        try:
            is_locked = lock_file(fd, shared=shared)
            # Where it can be shared, those who have it write nothing.
            by_reader = not (is_locked or shared) and lock_file(
                fd, shared=True, at_once=True
            )
        except OSError as cause:
            if cause.errno not in _UNKNOWN:
                raise refused(
                    cause, "lock the folder", folder, writing=writing
                ) from cause
            raise StorageError(
                cause.errno,
                f"cannot lock the folder {folder}: {cause.strerror}. The file system "
                "must support flock",
            ) from cause
        if not is_locked:
            doing = "copying from" if by_reader else "writing to"
            elsewhere = "" if shared else ", or write to another folder"
            raise LockedError(
                errno.EWOULDBLOCK,
                f"another process is {doing} {folder}. Wait for it to end{elsewhere}",
            )
        yield
    finally:
        _let_go(fd)


def _let_go(fd: int) -> None:
    # Not held any more where a fork in between has closed this copy.
    if fd in _held:
        _held.discard(fd)
        # Nothing was written by it, and it is closed all the same: what was done under
        # the lock did not fail.
        with suppress(OSError):
            os.close(fd)


class WriterLock:
    """The right to append to a data file, or to replace it, which one at a time has.

    It is let go of at the end of a ``with`` block, or of the process.

    Notes
    -----
    An advisory ``flock`` on the data file itself, by a descriptor of its own: a worker
    that is forked meanwhile keeps what the program writes by, and not the lock. Where
    the file system knows no locks, there is none.
    """

    def __init__(self) -> None:
        self._fds: list[int] = []

    def __enter__(self) -> WriterLock:
        """Begin without a lock."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Let go of what was locked."""
        while self._fds:
            _let_go(self._fds.pop())

    def take(
        self, path: StrPath, *, to_write: bool = False, at_once: bool = False
    ) -> bool:
        """Lock the file of this name, beside what is locked already.

        Where there is none, nothing is locked.

        Parameters
        ----------
        path : str or path
            Its path.
        to_write : bool, optional
            It is to be written to, and so must be one that may be. Else one that can
            only be read is locked as well, and one that may not be opened is not.
        at_once : bool, optional
            Do not wait for another.

        Returns
        -------
        bool
            False where it may not be opened: another may have it locked.

        Raises
        ------
        LockedError
            Another has it locked, and does not let go within a second.
        StorageError
            It cannot be opened for writing, be looked at, or be locked.
        """
        while not self.has(path):
            try:
                fd = _open_to_lock(path, to_write=to_write)
            except FileNotFoundError:
                break
            except OSError as cause:
                if not to_write and isinstance(cause, PermissionError):
                    return False
                raise refused(
                    cause, "open for writing", path, writing=True, extending=True
                ) from cause
            _held.add(fd)
            self._fds.append(fd)
            if not _is_locked(fd, path, at_once=at_once):
                raise LockedError(
                    errno.EWOULDBLOCK,
                    f"{os.fspath(path)} is open for writing already, in another "
                    "process or by another object of this one. Wait for it to be "
                    "closed, and open again",
                )
        return True

    def begin(
        self,
        partial: str,
        path: Path,
        names: Collection[str],
        *,
        replacing: bool = False,
    ) -> bool:
        """Lock a new file that is to get a name which nobody else is about to give.

        Parameters
        ----------
        partial : str
            Path of the file, which is new.
        path : Path
            Its path to be.
        names : collection of str
            What is in the folder, the new file included.
        replacing : bool, optional
            Another file may have the name, and loses it.

        Returns
        -------
        bool
            False where it is gone: who clears unfinished files away was earlier.

        Raises
        ------
        LockedError
            Another begins it too: one would replace the other's.
        StorageError
            As `take`.
        """
        self.take(partial, to_write=True)
        if not self.has(partial):
            return False
        self.refuse_begun(path, names)
        if replacing:
            self.take(path)  # it may be there since
            self._keep({fd for fd in self._fds if not _is_shared(fd, path)})
        elif is_there(path):
            raise _begun(path)
        return True

    def refuse_begun(self, path: Path, names: Collection[str]) -> None:
        """Refuse a name that another is about to give to a new file.

        Parameters
        ----------
        path : Path
            Where it will be.
        names : collection of str
            What is in the folder.

        Raises
        ------
        LockedError
            Another has such a file open, and does not close it within a second.
        StorageError
            One cannot be opened for writing, so that nobody can tell.
        """
        begun = [name for name in names if is_partial_of(name, path.name)]
        for other in (path.parent / name for name in begun):
            if not self.has(other):
                with WriterLock() as lock:  # one that is left over can be locked
                    lock.take(other, to_write=True)

    def refuse_others(self, path: StrPath) -> None:
        """Refuse a file that is not locked, as it has come since that was to be done.

        Raises
        ------
        LockedError
            It is another: its map may be one that has come since as well.
        """
        if not self.has(path):
            raise _begun(path)

    def keep_only(self, path: StrPath) -> None:
        """Let go of all but the file of this name, which may have replaced another.

        Raises
        ------
        LockedError
            As `take`.
        """
        self.take(path, to_write=True)
        self._keep({fd for fd in self._fds if is_at(fd, path)})

    def _keep(self, fds: Collection[int]) -> None:
        for fd in self._fds:
            if fd not in fds:
                _let_go(fd)
        self._fds = [fd for fd in self._fds if fd in _held]

    def has(self, path: StrPath) -> bool:
        """Tell whether a path leads to a file that is locked."""
        return any(is_at(fd, path) for fd in self._fds)


def share_locks(path: Path, other: Path) -> bool:
    """Tell whether two names of a file have one lock.

    Many file systems of FUSE make two files of them, in all but their bytes. True, too,
    where the file system knows no locks.
    """
    try:
        while True:
            with ExitStack() as stack:
                # It may be another's, as of who writes the file.
                is_free = _take_at_once(path, stack)
                if not _take_at_once(other, stack):
                    return True
            with ExitStack() as stack:
                # Else the other has let go of it between the two.
                if is_free or not _take_at_once(path, stack):
                    return False
    except OSError:
        return True


def _take_at_once(path: Path, stack: ExitStack) -> bool:
    """Lock a file until the end of a block; False where another has it locked."""
    # For reading: by NFS, where both names have one lock, that is refused.
    fd = open_descriptor(path, os.O_RDONLY)
    _held.add(fd)
    stack.callback(_let_go, fd)
    return lock_file(fd, at_once=True)


def _begun(path: StrPath) -> LockedError:
    return LockedError(
        errno.EWOULDBLOCK,
        "another process, or another object of this one, has just begun "
        f"{os.fspath(path)}. Open it again to append to it",
    )


def _open_to_lock(path: StrPath, *, to_write: bool) -> int:
    try:
        # By the network some locks need a file that may be written to.
        return open_descriptor(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as cause:
        if to_write or cause.errno not in _MAY_NOT:
            raise
    return open_descriptor(path, os.O_RDONLY | os.O_NONBLOCK)


def _is_shared(fd: int, path: StrPath) -> bool:
    """Tell whether an open file has several names, as of directories that were merged.

    Who appends to it under another name gets a copy, and is not to wait until then.
    """
    try:
        return os.fstat(fd).st_nlink > 1
    except OSError as cause:
        raise refused(cause, "look at", path) from cause


def _is_locked(fd: int, path: StrPath, *, at_once: bool) -> bool:
    """Lock a file that is open; true, too, where the file system knows no locks."""
    try:
        return lock_file(fd, at_once=at_once)
    except OSError as cause:
        if cause.errno in _UNKNOWN:
            return True
        raise refused(cause, "lock", path, writing=True, extending=True) from cause


def lock_file(fd: int, *, at_once: bool = False, shared: bool = False) -> bool:
    """Lock an open file for as long as its descriptor is open.

    Parameters
    ----------
    fd : int
        The descriptor.
    at_once : bool, optional
        Do not wait for another.
    shared : bool, optional
        Others may have it locked like this at the same time.

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
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except OSError as cause:
            if cause.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
        else:
            return True
        if at_once or time.monotonic() > deadline:
            return False
        time.sleep(0.01)
