"""Descriptors: opened where too many are, and never those of the standard streams."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import stat
import threading
import time
import weakref
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from gulpio2.types import StrPath

__all__ = [
    "STANDARD",
    "TOO_MANY",
    "add_pool",
    "files_of_a_pool",
    "fill_standard_descriptors",
    "keep_to_share",
    "letting_go",
    "open_descriptor",
    "open_regular",
]

T = TypeVar("T")

# Of the files that a process may have open, one in so many is for all pools together;
# the rest is the program's. That is two full pools, as of training and validation.
_SHARE, _POOLS = 4, 2
# Files of a pool: a directory of Kinetics-400 has some 2,400 chunks. Each takes 0.8 kB
# of memory, which a worker is to have within its first epochs and not go on to take.
_FEWEST, _MOST = 64, 512
STANDARD = 2  # the last descriptor of stdin, stdout and stderr
TOO_MANY = (errno.EMFILE, errno.ENFILE)
# Seconds to wait where there is nothing to let go of: files that another thread closes
# just now are in no pool any more, and still open.
_PAUSES = (0.001, 0.004, 0.016)


class _Pool(Protocol):
    """What keeps files open that it can open again."""

    @property
    def num_open(self) -> int: ...

    def let_go(self) -> None: ...


_pools: weakref.WeakSet[_Pool] = weakref.WeakSet()
# Held while the set changes or is copied. May be taken by who holds a pool's lock, and
# its holder takes no other.
_pools_lock = threading.Lock()


def _renew_pools_lock() -> None:
    global _pools_lock  # see `gulpio2.forks`
    _pools_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_pools_lock)


def add_pool(pool: _Pool) -> None:
    """Have a pool, while it is there, let go of its files where too many are open."""
    with _pools_lock:
        _pools.add(pool)


def _release_idle(more_than: int = 0) -> bool:
    """Let go of the files of all pools of this process, if they are more than so many.

    Returns
    -------
    bool
        Whether there were any. Those that a thread reads from stay open until it is
        done; see `_Handle`.
    """
    with _pools_lock:
        pools = list(_pools)
    if sum(pool.num_open for pool in pools) <= more_than:
        return False
    for pool in pools:
        # Two threads that waited for each other's pools would wait for ever.
        pool.let_go()
    return True


def keep_to_share(newest: int) -> None:
    """Let go of all files where the pools hold more than their share of descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The system gives the lowest free number: before one is so high, there cannot be so
    # many, and need not be counted.
    if limit != resource.RLIM_INFINITY and newest >= limit // _SHARE:
        _release_idle(limit // _SHARE)


def files_of_a_pool() -> int:
    """Give the number of files that a pool keeps open where nobody says.

    An eighth of those that the process may have open, at least 64 and 512 at most.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _MOST
    return min(max(limit // (_SHARE * _POOLS), _FEWEST), _MOST)


def open_descriptor(path: StrPath, flags: int, mode: int = 0o777) -> int:
    """Open as ``os.open`` does; if too many are open, without those of idle files.

    The descriptor is never one of the standard streams: see
    `fill_standard_descriptors`.

    Raises
    ------
    OSError
        It cannot be opened.
    """
    fd = letting_go(lambda: os.open(path, flags | os.O_CLOEXEC, mode))
    if fd > STANDARD:
        return fd
    try:
        return letting_go(lambda: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STANDARD + 1))
    finally:
        os.close(fd)
        fill_standard_descriptors()


def fill_standard_descriptors() -> None:
    """Put ``/dev/null`` in the place of each standard stream that is closed.

    Where a program is started with stderr closed, the next thing that is opened gets
    its number: a data file, or a pipe to a worker. The warnings that libraries of C
    write to stderr would go into it.
    """
    with contextlib.suppress(OSError):  # nothing is in its place, or no room for more
        # The system gives the lowest free number.
        while (fd := os.open(os.devnull, os.O_RDWR)) <= STANDARD:
            os.set_inheritable(fd, True)  # noqa: FBT003  # or it is closed in children
        os.close(fd)


def letting_go(action: Callable[[], T]) -> T:
    """Do what needs a descriptor; if too many are open, without those of idle files.

    Raises
    ------
    OSError
        As the action does, which is repeated where that may help.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            return action()
        except OSError as cause:
            if cause.errno not in TOO_MANY:
                raise
            if _release_idle():
                continue
            # There are none, but perhaps for another thread that just lets go of them.
            pause = next(pauses, None)
            if pause is None:
                raise
        time.sleep(pause)


def open_regular(path: str) -> int:
    """Open a file for reading, and nothing but a file: a pipe would wait for ever.

    Raises
    ------
    OSError
        It cannot be opened, or is no regular file.
    """
    fd = open_descriptor(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
    except BaseException:
        os.close(fd)
        raise
    return fd
