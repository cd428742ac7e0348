"""Memory that several processes have mapped, and that has no name; how much is free.

And what goes to a process that is being started by way of such memory. Python's own
(``multiprocessing.RawArray``) is a file for a moment: a process that is killed in that
moment leaves it in ``/dev/shm``.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Parcel", "SharedBytes", "free_memory", "is_for_new_process"]


def free_memory() -> int | None:
    """Count the bytes that programs can still have; None where nobody says so.

    Of a group of processes that may have less (a container), it is that.
    """
    found: list[int] = []
    with suppress(OSError, ValueError):  # another system than Linux
        lines = Path("/proc/meminfo").read_text().splitlines()
        known = dict(line.split(":", 1) for line in lines)
        if "MemAvailable" in known:
            found.append(int(known["MemAvailable"].split()[0]) << 10)
    with suppress(OSError, ValueError):  # no group, or one without a limit ("max")
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=None)


class SharedBytes:
    """Memory that this process shares with those that it forks or sends it to.

    The system takes it back with the last of them, however they end. It can be sent to
    a process that is being started, and not otherwise.

    Parameters
    ----------
    size : int
        Bytes, zeros at first. What is not used costs no memory.

    Attributes
    ----------
    memory : mmap.mmap
        The bytes.
    fd : int
        Of the memory, to be locked for instance.

    Raises
    ------
    OSError
        The system has no such memory.
    """

    def __init__(self, size: int) -> None:
        self._open(_nameless_file(), size)

    def _open(self, fd: int, size: int) -> None:
        try:
            os.ftruncate(fd, size)  # of a file that was sent, it is that already
            self.memory = mmap.mmap(fd, size)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        self._close = weakref.finalize(self, os.close, fd)
        self._close.atexit = False

    def __getstate__(self) -> dict[str, Any]:
        """Send the file to a process that is being started."""
        from multiprocessing import reduction

        return {"duplicate": reduction.DupFd(self.fd), "size": len(self.memory)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Map the memory here."""
        self._open(state["duplicate"].detach(), state["size"])


class Parcel:
    """Something that a process is to have from its start, whatever its size.

    Python writes what a process is told at its start into a pipe, and holds the other
    end of it as well. Where the process ends before it has read all of it, as that of
    a program without a main guard does, who starts it waits for ever on more than the
    64 kB that a pipe takes. A dataset or an adapter is larger than that.

    Parameters
    ----------
    content : object
        Pickled where the process is not forked, once for each.
    refusal : callable, optional
        Makes the error to raise of one that pickling has raised. Default: that one.

    Attributes
    ----------
    content : object
        It, on both sides. There it is unpickled when it is first asked for: what that
        raises would end a process that is being started, without a word.
    """

    def __init__(
        self, content: Any, refusal: Callable[[Exception], Exception] | None = None
    ) -> None:
        self._content = content
        self._refusal = refusal
        self._sent: SharedBytes | None = None
        self._arrived: SharedBytes | None = None

    @property
    def content(self) -> Any:
        """What is in it."""
        if self._arrived is not None:
            self._content = pickle.loads(self._arrived.memory)  # noqa: S301  # who starts this
            self._arrived = None
        return self._content

    def __getstate__(self) -> SharedBytes:
        """Put the content into memory, and send that."""
        from multiprocessing import reduction

        # As for the process itself: some of it may be for such a one only.
        try:
            pickled = reduction.ForkingPickler.dumps(self.content)
        except MemoryError:
            raise
        except Exception as cause:
            if self._refusal is None:
                raise
            raise self._refusal(cause) from cause
        shared = SharedBytes(len(pickled))
        shared.memory[:] = bytes(pickled)
        self._sent = shared  # to be there when the process is
        return shared

    def __setstate__(self, shared: SharedBytes) -> None:
        """Hold the memory until the content is asked for."""
        self._content = self._refusal = self._sent = None
        self._arrived = shared


def is_for_new_process() -> bool:
    """Tell whether what is pickled now goes to a process that is being started.

    What shares memory by `SharedBytes` does so with that process only: in any other
    pickle, and in a copy, it leaves the memory out.
    """
    from multiprocessing import context

    return context.get_spawning_popen() is not None


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gulpio2", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:  # outside Linux
        return os.dup(file.fileno())
