"""Open files for reading: few at a time, safe under threads, forks and pickling."""

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
from collections import OrderedDict, deque
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from gulpio2.errors import LockedError
from gulpio2.forks import renew_in_children
from gulpio2.storage.reads import range_error, read_fully, read_into
from gulpio2.storage.refusals import not_opened, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gulpio2.format.plan import Read
    from gulpio2.types import StrPath

__all__ = [
    "HandlePool",
    "fill_standard_descriptors",
    "letting_go",
    "open_descriptor",
    "open_regular",
    "read_once",
]

T = TypeVar("T")

# Files. A directory of Kinetics-400 has some 2,400 chunks and the usual limit of a
# process is 1,024 open files, which the training script needs as well.
DEFAULT_MAX_OPEN = 64
# Of the files that a process may have open, one in so many is for all pools together;
# the rest is the program's. Of the usual 1,024 that is four full pools.
_SHARE = 4
_STANDARD = 2  # the last descriptor of stdin, stdout and stderr
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
# Seconds to wait where there is nothing to let go of: files that another thread closes
# just now are in no pool any more, and still open.
_PAUSES = (0.001, 0.004, 0.016)
# Times that a file is opened, if each time another has its path afterwards.
_TRIES = 10

_pools: weakref.WeakSet[HandlePool] = weakref.WeakSet()
# Held while the set changes or is copied. May be taken by who holds a pool's lock, and
# its holder takes no other.
_pools_lock = threading.Lock()


def _renew_pools_lock() -> None:
    global _pools_lock  # see `gulpio2.forks`
    _pools_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_pools_lock)


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
    if sum(len(pool._handles) for pool in pools) <= more_than:
        return False
    for pool in pools:
        # Replaced, which needs no lock: two threads that waited for each other's pools
        # would wait for ever. One that is at work on the old files goes on with them.
        pool._handles = OrderedDict()
    return True


def _keep_to_share(newest: int) -> None:
    """Let go of all files where the pools hold more than their share of descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The system gives the lowest free number: before one is so high, there cannot be so
    # many, and need not be counted.
    if limit != resource.RLIM_INFINITY and newest >= limit // _SHARE:
        _release_idle(limit // _SHARE)


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
    if fd > _STANDARD:
        return fd
    try:
        return letting_go(lambda: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _STANDARD + 1))
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
        while (fd := os.open(os.devnull, os.O_RDWR)) <= _STANDARD:
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
            if cause.errno not in _TOO_MANY:
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


class _Handle:
    """A file descriptor that closes with the last reference to it.

    A reader keeps a reference while it reads, so that dropping a handle from the pool
    never closes a file under a reading thread. No line of Python is between the
    descriptor and this object, where an interrupt would lose one, or be lost itself.
    """

    def __init__(self, path: str) -> None:
        opened: list[int] = []
        # What is opened by then is closed, and nothing said where that fails: it was
        # only read, and the system closes it all the same.
        each = zip(opened, map((1).__add__, opened), strict=True)
        self._end: Callable[[], object] = partial(
            deque, starmap(os.closerange, each), 0
        )
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # at each opening
            raise OSError(errno.EINVAL, "not a regular file", path)
        # It may be a pipe by now, which would be waited for.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        letting_go(lambda: opened.extend(map(os.open, (path,), (flags,))))
        if opened[0] <= _STANDARD:
            opened.append(open_descriptor(path, flags))
            os.close(opened.pop(0))
            fill_standard_descriptors()  # one was this file's until now
        if not stat.S_ISREG(os.fstat(opened[0]).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        self.fd = opened[0]  # asked for at each read
        # Bytes known to be there; the file may have grown since.
        self.size = 0

    def holds(self, end: int) -> bool:
        """Tell whether the file reaches up to this byte."""
        if end > self.size:
            self.size = os.fstat(self.fd).st_size
        return end <= self.size

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied: a copy would close what is not its own."""
        raise TypeError("an open file cannot be copied or pickled")

    # Found and called by the interpreter itself.
    __del__ = property(attrgetter("_end"))


class HandlePool:
    """Descriptors by path, the least recently used closed first.

    Positional reads share no file offset, so one descriptor serves all threads, and
    also a forked child.

    All pools of a process share a quarter of the files that it may have open. Where
    that is not enough, or nothing can be opened any more, all let go of theirs.
    """

    def __init__(self, max_open: int = DEFAULT_MAX_OPEN) -> None:
        self.max_open = max_open
        # Called with the path of each file that was opened, and its descriptor, before
        # it is read; may raise. False: another file has the path by now, and is to be
        # opened. It must not read through this pool.
        self.on_open: Callable[[str, int], bool] | None = None
        self._handles: OrderedDict[str, _Handle] = OrderedDict()
        renew_in_children(self, HandlePool._renew_lock)
        with _pools_lock:
            _pools.add(self)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`.

        Raises
        ------
        ReadRangeError
            The file ends before.
        StorageNotFoundError
            It is not there.
        StorageError
            The system refuses to open or read it.
        """
        return _read(self._handle(path), path, offset, length)

    def read_into(
        self, path: str, offset: int, length: int, memory: bytearray
    ) -> bytearray:
        """Read exactly `length` bytes from `offset` into memory that is used again.

        Parameters
        ----------
        path : str
            The file.
        offset, length : int
            Which bytes.
        memory : bytearray
            They are put at its beginning; it is made longer where it is too short.

        Returns
        -------
        bytearray
            `memory`; other memory where that is too short and something refers to it.

        Raises
        ------
        ReadRangeError, StorageNotFoundError, StorageError
            As `read_at`.

        Notes
        -----
        From the page cache this takes half the time of `read_at`, whose new memory
        is in no cache of the processor.
        """
        handle = self._handle(path)
        if offset + length > handle.size:  # mostly known: two calls less for a clip
            _require_range(handle, path, offset, length)
        if len(memory) < length:
            try:
                memory.extend(bytes(length - len(memory)))
            except BufferError:  # an error that somebody keeps, by its traceback
                memory = bytearray(length)
        read_into(handle.fd, path, offset, memoryview(memory)[:length])
        return memory

    def read_several(self, path: str, reads: Sequence[Read], memory: bytearray) -> None:
        """Make several reads, whose bytes lie in memory one after the other.

        Parameters
        ----------
        path : str
            The file.
        reads : sequence of Read
            Which bytes.
        memory : bytearray
            Long enough for all.

        Raises
        ------
        ReadRangeError, StorageNotFoundError, StorageError
            As `read_at`.
        """
        handle, view, start = self._handle(path), memoryview(memory), 0
        for offset, length, _ in reads:
            if offset + length > handle.size:
                _require_range(handle, path, offset, length)
            stop = start + length
            read_into(handle.fd, path, offset, view[start:stop])
            start = stop

    def _handle(self, path: str) -> _Handle:
        with self._lock:
            handles = self._handles  # another thread may put others in their place
            handle = handles.get(path)
            if handle is not None:
                handles.move_to_end(path)
                return handle
            del handles  # what is let go of meanwhile would stay open by it
            # Under the lock: a file that `close` was to let go of must not come after.
            handle = self._watched(path)
            _keep_to_share(handle.fd)
            handles = self._handles
            handles[path] = handle
            if len(handles) > self.max_open:
                handles.popitem(last=False)
            return handle

    def _watched(self, path: str) -> _Handle:
        """Open a file, and again where another has its path by the time of a look."""
        for _ in range(_TRIES):
            handle = _open(path)
            if self.on_open is None or self.on_open(path, handle.fd):
                return handle
        raise LockedError(
            errno.EWOULDBLOCK,
            f"{path} is written anew again and again by another process. Wait for it "
            "to end, and try again",
        )

    def close(self) -> None:
        """Let go of every file; reading again reopens."""
        with self._lock:
            # Whole at any moment, as a fork may come while a file is closed.
            let_go, self._handles = self._handles, OrderedDict()
        let_go.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the settings alone: files are reopened where they are needed."""
        return {"max_open": self.max_open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start without open files."""
        self.__init__(**state)  # type: ignore[misc]  # a fresh pool is what is wanted


def read_once(path: str, offset: int, length: int) -> bytes:
    """Read from a file that need not stay open; as `HandlePool.read_at`."""
    return _read(_open(path), path, offset, length)


def _open(path: str) -> _Handle:
    try:
        return _Handle(path)
    except OSError as cause:
        raise not_opened(cause, path) from cause


def _read(handle: _Handle, path: str, offset: int, length: int) -> bytes:
    _require_range(handle, path, offset, length)
    return read_fully(handle.fd, path, offset, length)


def _require_range(handle: _Handle, path: str, offset: int, length: int) -> None:
    # Before any memory is set aside: a damaged map can ask for terabytes.
    try:
        is_there = handle.holds(offset + length)
    except OSError as cause:
        raise refused(cause, "read", path) from cause
    if not is_there:
        raise range_error(path, handle.size, offset, length)
