"""The file of an index mapped, by readers and by who is to replace it."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from gulpio2.errors import StorageError
from gulpio2.format.layout import INDEX_NAME
from gulpio2.storage.descriptors import letting_go
from gulpio2.storage.index.file import NewerIndexError, map_index
from gulpio2.storage.paths import path_in
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import IndexContent

__all__ = ["TRY_AGAIN", "load_index", "load_to_replace", "map_or_refuse"]

_logger = logging.getLogger(__name__)

TRY_AGAIN = "The error may pass: try again"
# Errors that tell what is there: no file, or a link in a circle. It holds no index.
_NO_FILE = (errno.EINVAL, errno.ELOOP, errno.ENOTDIR)
# Those that somebody has to do something about.
_LASTING = (errno.EACCES, errno.EPERM)


def map_or_refuse(folder: str) -> IndexContent:
    """Map the file; tell one that holds no index from one that cannot be read.

    Parameters
    ----------
    folder : str
        The directory.

    Raises
    ------
    FileNotFoundError
        There is none.
    NewerIndexError
        It is for a later version.
    ValueError
        It is no index that can be used: damaged, or none.
    StorageError
        It cannot be read, which says nothing of what is in it.
    """
    path = _path(folder)
    try:
        return letting_go(lambda: map_index(path))
    except FileNotFoundError:
        raise
    except OSError as cause:
        if cause.errno in _NO_FILE:
            raise ValueError(str(cause)) from cause
        said = str(refused(cause, "read", path).strerror)
        if cause.errno not in _LASTING:
            said += f". {TRY_AGAIN}"
        raise StorageError(cause.errno, said) from cause


def load_index(folder: str) -> tuple[IndexContent | None, bool]:
    """Map the file if there is a usable one; say whether it may be replaced."""
    try:
        return map_or_refuse(folder), True
    except FileNotFoundError:
        return None, True
    except NewerIndexError as cause:
        # Two versions that replace each other's file would never be done.
        _logger.warning(
            "%s: %s. It is left as it is, and not used", _path(folder), cause
        )
        return None, False
    except StorageError as cause:
        # It may alone tell what is in a data file.
        _logger.warning("%s. The index is left as it is, and not used", cause.strerror)
        return None, False
    except ValueError as cause:
        _tell_damaged(folder, cause)
        return None, True


def load_to_replace(folder: str, *, quiet: bool = False) -> IndexContent | None:
    """Map the file that another is to replace; None if there is no usable one.

    Parameters
    ----------
    folder : str
        The directory.
    quiet : bool, optional
        Do not warn of one that is damaged.

    Raises
    ------
    StorageError
        It cannot be read: it may alone tell what is in a data file.
    """
    try:
        return map_or_refuse(folder)
    except FileNotFoundError:
        return None
    except StorageError as cause:
        raise StorageError(
            cause.errno,
            f"{cause.strerror}. It is not replaced, as it alone may tell what is in a "
            "data file; to go on without it, run `gulp2 index --remove` first",
        ) from cause
    except ValueError as cause:
        if not quiet:
            _tell_damaged(folder, cause)
        return None


def _tell_damaged(folder: str, cause: ValueError) -> None:
    _logger.warning("%s cannot be used and is built anew: %s", _path(folder), cause)


def _path(folder: str) -> str:
    return path_in(folder, INDEX_NAME)
