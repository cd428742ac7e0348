"""Open files for reading: few at a time, safe under threads, forks and pickling."""

from __future__ import annotations

import errno
import os
import stat
import threading
import weakref
from collections import OrderedDict, deque
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

from gulpio2.errors import LockedError
from gulpio2.forks import renew_in_children
from gulpio2.storage.descriptors import (
    STANDARD,
    TOO_MANY,
    add_pool,
    files_of_a_pool,
    fill_standard_descriptors,
    keep_to_share,
    letting_go,
    open_descriptor,
)
from gulpio2.storage.reads import range_error, read_fully, read_into
from gulpio2.storage.refusals import not_opened, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gulpio2.format.plan import Read

__all__ = ["HandlePool", "read_once"]

# Times that a file is opened, if each time another has its path afterwards.
_TRIES = 10


class _Handle:
    """A file descriptor that closes with the last reference to it.

    A reader keeps a reference while it reads, so that dropping a handle from the pool
    never closes a file under a reading thread. No line of Python is between the
    descriptor and this object, where an interrupt would lose one, or be lost itself.
    """

    __slots__ = ("__weakref__", "_end", "fd", "size")  # there may be thousands

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
        if opened[0] <= STANDARD:
            opened.append(open_descriptor(path, flags))
            os.close(opened.pop(0))
            fill_standard_descriptors()  # one was this file's until now
        if not stat.S_ISREG(os.fstat(opened[0]).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        self.fd = opened[0]  # asked for at each read
        # Bytes known to be there; the file may have grown since.
        self.size = 0

    def close(self) -> None:
        """Close it before the last reference goes, where no reader has one."""
        self._end()

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


class _Opening:
    """A file that one thread opens, at its end or not; others who want it wait."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._thread = 0
        # Not the file itself: after an interrupt this may stay.
        self._handle: weakref.ref[_Handle] | None = None

    def has(self, handle: _Handle | None) -> None:
        """Note what is open so far and in no pool yet, for children."""
        self._thread = threading.get_ident()
        self._handle = None if handle is None else weakref.ref(handle)

    def end_in_child(self) -> None:
        """Close what a thread has opened that is not there to go on."""
        handle = None if self._handle is None else self._handle()
        if handle is not None and self._thread != threading.get_ident():
            handle.close()


class HandlePool:
    """Descriptors by path, the least recently used closed first.

    Parameters
    ----------
    max_open : int, optional
        Files that it keeps open. Default: see `files_of_a_pool`.

    Notes
    -----
    Positional reads share no file offset, so one descriptor serves all threads, and
    also a forked child. Threads open as many files at once as they are, and what is
    open already waits for none of them.

    All pools of a process share a quarter of the files that it may have open. Where
    that is not enough, or nothing can be opened any more, all let go of theirs.
    """

    def __init__(self, max_open: int | None = None) -> None:
        self.max_open = files_of_a_pool() if max_open is None else max_open
        # Called with the path of each file that was opened, and its descriptor, before
        # it is read; may raise. False: another file has the path by now, and is to be
        # opened. It must not read through this pool.
        self.on_open: Callable[[str, int], bool] | None = None
        self._handles: OrderedDict[str, _Handle] = OrderedDict()
        # What threads open just now. One that was interrupted may stay, and is no more
        # than a lock that nobody holds.
        self._openings: dict[str, _Opening] = {}
        self._num_opened = 0  # so far
        self._closings = object()  # another one after each `close`
        renew_in_children(self, HandlePool._renew_lock)
        add_pool(self)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()
        left, self._openings = self._openings, {}
        for opening in left.values():
            opening.end_in_child()

    @property
    def num_open(self) -> int:
        """How many files it keeps open."""
        return len(self._handles)

    def let_go(self) -> None:
        """Let go of every file, without a lock.

        A thread that is at work on the old files goes on with them.
        """
        self._handles = OrderedDict()

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
        while True:
            before = self._num_opened
            try:
                return self._opened(path)
            except OSError as cause:
                if cause.errno not in TOO_MANY or not self._have_others_opened(before):
                    raise

    def _have_others_opened(self, before: int) -> bool:
        """Wait for what others open just now; tell whether anything was opened.

        They may have the descriptors that there are, and let go of them.
        """
        with self._lock:
            others = [each for each in self._openings.values() if each.lock.locked()]
        for other in others:
            with other.lock:
                pass
        return self._num_opened != before

    def _opened(self, path: str) -> _Handle:
        """Open a file that no other thread opens, or give what another has opened."""
        while True:
            with self._lock:
                opening = self._openings.setdefault(path, _Opening())
            with opening.lock:
                with self._lock:
                    handle = self._handles.get(path)
                    if handle is not None:
                        return handle
                    is_own = self._openings.setdefault(path, opening) is opening
                    closings = self._closings
                if is_own:  # else it is opened by who came after the one before
                    try:
                        return self._kept(path, opening, closings)
                    finally:
                        self._openings.pop(path, None)

    def _kept(self, path: str, opening: _Opening, closings: object) -> _Handle:
        handle = self._watched(path, opening)
        keep_to_share(handle.fd)
        dropped = None  # closed when the lock is let go of
        with self._lock:
            self._num_opened += 1
            opening.has(None)  # before a child has it by the pool
            if self._closings is closings:  # else `close` was to let go of it
                self._handles[path] = handle
                if len(self._handles) > self.max_open:
                    dropped = self._handles.popitem(last=False)
        del dropped
        return handle

    def _watched(self, path: str, opening: _Opening) -> _Handle:
        """Open a file, and again where another has its path by the time of a look."""
        for _ in range(_TRIES):
            handle = _open(path)
            opening.has(handle)
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
            self._closings = object()
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
