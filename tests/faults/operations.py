"""Processes that are really killed, at a chosen operation on the disk.

For tests of anything that must survive it; POSIX only.
"""

from __future__ import annotations

import os
import pathlib
import resource
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = [
    "before_each_operation",
    "content",
    "end_of_small_child",
    "fail_at_operation",
    "in_child",
    "kill_at_operation",
    "open_files",
    "shorten_write",
]

# What a small child may use: bytes beyond what its parent has, and seconds of
# processor time.
_MORE_BYTES = 200 * 1024 * 1024
_CPU_SECONDS = 20
# Every way in which the package changes what is on the disk.
_OPERATIONS = (
    "write",
    "fsync",
    "ftruncate",
    "replace",
    "rename",
    "unlink",
    "open",
    "mkdir",
    "link",
)


def content(folder: Path) -> dict[str, bytes]:
    """Give every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def open_files() -> set[str]:
    """Give the paths of what this process has open."""
    links = pathlib.Path("/proc/self/fd").iterdir()
    return {str(link.resolve()) for link in links if link.exists()}


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; give what ``os.waitpid`` says of its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001  # a forked child must end here
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def end_of_small_child(work: Callable[[], object]) -> int:
    """Do something in a forked process that may take little memory and time.

    It may take 200 MiB of address space more than this process has, and 20 s of
    processor time: a small directory, image or video needs much less.

    Returns
    -------
    int
        0 if it ended well: neither by an error that was not expected, which is 1, nor
        by a signal, nor for want of memory or time.
    """

    def limited() -> None:
        pages = int(pathlib.Path("/proc/self/statm").read_text("ascii").split()[0])
        size = pages * resource.getpagesize() + _MORE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        work()

    return os.waitstatus_to_exitcode(in_child(limited))


def kill_at_operation(
    number: int,
    *,
    where: Literal["anywhere", "parent", "worker"] = "anywhere",
    killed: mmap.mmap | None = None,
) -> None:
    """Make a process kill itself -9 when it is about to do its n-th operation.

    Parameters
    ----------
    number : int
        Ordinal of the operation in its process, from 1.
    where : {"anywhere", "parent", "worker"}
        Which process: this one, those that it forks, or whichever comes first.
    killed : mmap.mmap, optional
        A byte that processes share, set at the first kill; then there is no other.
    """
    parent = os.getpid()

    def kill(count: int) -> None:
        is_meant = where == "anywhere" or (os.getpid() == parent) == (where == "parent")
        if count == number and is_meant and not (killed is not None and killed[0]):
            if killed is not None:
                killed[0] = 1
            os.kill(os.getpid(), signal.SIGKILL)

    before_each_operation(kill)


def fail_at_operation(number: int, code: int, *, for_good: bool) -> None:
    """Make the n-th operation of this process fail, and perhaps all after it.

    Parameters
    ----------
    number : int
        Ordinal of the operation, from 1.
    code : int
        Error number, as ``errno.ENOSPC``.
    for_good : bool
        Whether the ones after it that need room or a sound disk fail as well.
    """

    def fail(count: int) -> None:
        if count == number or (for_good and count > number):
            raise OSError(code, os.strerror(code))

    before_each_operation(fail)


def shorten_write(number: int, *, for_good: bool) -> None:
    """Make the n-th write of this process take a part of its bytes only.

    Parameters
    ----------
    number : int
        Ordinal of the write, from 1; the other operations do not count.
    for_good : bool
        Whether all after it take a part only as well.

    Notes
    -----
    The system may do so at any time, and says how many bytes it took. A write of one
    byte cannot be shortened.
    """
    count = 0
    write = os.write

    def shortened(fd: int, data: Any) -> int:
        nonlocal count
        count += 1
        view = memoryview(data)
        is_meant = count == number or (for_good and count > number)
        return write(fd, view[: max(1, len(view) // 2)] if is_meant else view)

    os.write = shortened


def before_each_operation(
    act: Callable[[int], None],
    names: Sequence[str] = _OPERATIONS,
    others: Sequence[tuple[Any, str]] = (),
) -> None:
    """Call something with the ordinal of each operation, before it is done.

    A forked process counts from the beginning.

    Parameters
    ----------
    act : callable
        Gets the ordinal, from 1.
    names : sequence of str, optional
        Functions of `os`. Default: those that change what is on the disk.
    others : sequence of (module, str), optional
        Functions of other modules that count as well.
    """
    count = 0

    def begin_again() -> None:
        nonlocal count
        count = 0

    def wrap(operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            act(count)
            return operation(*args, **kwargs)

        return counted

    os.register_at_fork(after_in_child=begin_again)
    # Python 3.10 has some of them in a second place, taken over when it starts.
    accessor = getattr(pathlib, "_normal_accessor", None)
    for module, name in [*((os, name) for name in names), *others]:
        wrapped = wrap(getattr(module, name))
        setattr(module, name, wrapped)
        if (
            name in ("replace", "rename", "unlink", "mkdir", "link")
            and accessor is not None
        ):
            setattr(accessor, name, wrapped)
