"""Processes that are really killed, at a chosen operation on the disk.

For tests of anything that must survive it; POSIX only.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["content", "fail_at_operation", "in_child", "kill_at_operation"]

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
)


def content(folder: Path) -> dict[str, bytes]:
    """Give every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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


def kill_at_operation(number: int) -> None:
    """Make this process kill itself -9 when it is about to do its n-th operation."""

    def kill(count: int) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    _before_each_operation(kill)


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

    _before_each_operation(fail)


def _before_each_operation(act: Callable[[int], None]) -> None:
    """Call something with the ordinal of each operation, before it is done."""
    count = 0

    def wrap(operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            act(count)
            return operation(*args, **kwargs)

        return counted

    for name in _OPERATIONS:
        setattr(os, name, wrap(getattr(os, name)))
