"""Why something cannot be read, and whether it may be another time."""

from __future__ import annotations

import errno
import os

from gulpio2.format.wording import cannot_be_read

__all__ = ["why_unread", "why_unread_there"]

# What is wrong there stays so until somebody does something, and the error says what.
_LASTING = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
        *(errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG),
    }
)
_KEEP = "The error may pass: keep the source, and repair it again later"


def why_unread(cause: OSError) -> str:
    """Say why something could not be read, and whether it may be another time.

    What is unreadable is not known to be damaged. Of a failing disk or a server that is
    away it may be had another time, so nobody should remove the source.
    """
    said = cannot_be_read(cause)
    return said if cause.errno in _LASTING else f"{said.removesuffix('.')}. {_KEEP}"


def why_unread_there(cause: OSError) -> str:
    """As `why_unread`, without the place: then it is the same of all frames there."""
    if cause.errno is None:
        return why_unread(cause)
    return why_unread(OSError(cause.errno, os.strerror(cause.errno)))
