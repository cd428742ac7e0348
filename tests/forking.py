"""Forked children: what they do, and how they end."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["forked", "status_of"]


def forked(work: Callable[[], int | None]) -> int:
    """Do something in a forked child, and give its process number.

    It ends with the status that comes out, 0 for None, and with 255 where that raises,
    of which it prints the traceback.
    """
    child = os.fork()
    if child == 0:
        status = 255
        try:
            status = work() or 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    return child


def status_of(child: int) -> int:
    """Wait for a child to end; give its exit status, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
