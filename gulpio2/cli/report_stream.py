"""Stdout kept for what a command has to report."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["stdout_for_report"]

_STDOUT, _STDERR = 1, 2


@contextlib.contextmanager
def stdout_for_report() -> Iterator[None]:
    """Send to stderr what is printed meanwhile, by processes that are started, too.

    An adapter of somebody's own may print, and so may a library of C; what a command
    reports is read by a program, as that of ``--json``.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        # Where one was closed when the program began, its number may be of any file.
        if sys.__stdout__ is not None and sys.__stderr__ is not None:
            sys.__stdout__.flush()
            kept = os.dup(_STDOUT)
            stack.callback(os.close, kept)
            os.dup2(_STDERR, _STDOUT)
            stack.callback(os.dup2, kept, _STDOUT)
            # What waits in a buffer would come behind the report.
            stack.callback(_flush)
        yield


def _flush() -> None:
    """Write what Python, and the C library for programs in C, have in their buffers."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be closed
        sys.__stdout__.flush()  # type: ignore[union-attr]  # None is no error either
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).fflush(None)
