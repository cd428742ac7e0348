"""What a path leads to, where the system may also refuse to say."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.storage.refusals import cannot, refused

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = [
    "follow_link",
    "is_at",
    "is_folder",
    "is_there",
    "look_at",
    "path_in",
    "real_path",
]


def path_in(folder: StrPath, name: str) -> str:
    """Give the path of a file in a folder, in a tenth of the time that `Path` takes."""
    return os.path.join(folder, name)  # noqa: PTH118  # see above


def is_there(path: StrPath) -> bool:
    """Tell whether a path leads to something; ``Path.exists`` lets errors through.

    Raises
    ------
    StorageError
        Nobody may know; see `look_at`.
    """
    return look_at(path) is not None


def is_folder(path: StrPath) -> bool:
    """Tell whether a path leads to a folder; ``Path.is_dir`` lets errors through.

    Raises
    ------
    StorageError
        Nobody may know; see `look_at`.
    """
    state = look_at(path)
    return state is not None and stat.S_ISDIR(state.st_mode)


def look_at(path: StrPath, *, follow: bool = True) -> os.stat_result | None:
    """Give the state of a file or folder; None where nothing is there.

    Parameters
    ----------
    path : str or path
        Of anything.
    follow : bool, keyword-only
        Look at what a symbolic link leads to, and not at the link.

    Raises
    ------
    StorageError
        Nobody may know: a folder above it may not be looked into, its name is longer
        than names can be, or the disk or network did not answer.
    """
    try:
        return (os.stat if follow else os.lstat)(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as cause:
        folder = _closed_folder(path)
        if folder is None:
            raise cannot(cause, "look at", path) from cause
        raise cannot(cause, "look into", folder) from cause
    except OSError as cause:
        raise cannot(cause, "look at", path) from cause


def _closed_folder(path: StrPath) -> Path | None:
    """Give the folder for which a path is out of reach, also by way of links."""
    try:
        real = Path(os.path.realpath(path))
    except OSError:  # of the current folder
        return None
    folders = *reversed(Path(path).parents), *reversed(real.parents), real
    # Of a process that goes by another user's rights than its own, by those.
    effective = os.access in os.supports_effective_ids
    for each in folders:
        if not os.access(each, os.X_OK, effective_ids=effective):
            return each
    return None


def real_path(path: StrPath) -> Path:
    """Give the absolute path without links; ``Path.resolve`` fails where they circle.

    Raises
    ------
    StorageError
        The current folder is gone, and the path is relative to it.
    """
    try:
        return Path(os.path.realpath(path))
    except OSError as cause:
        raise cannot(cause, "find", path) from cause


def follow_link(path: StrPath) -> Path:
    """Give the path that a symbolic link leads to, and any other as it is.

    For a file that is to be replaced where it is, with the link to it left in place.
    """
    is_link = os.path.islink(path)  # noqa: PTH114  # Path's raises
    return Path(os.path.realpath(path)) if is_link else Path(path)


def is_at(fd: int, path: StrPath) -> bool:
    """Tell whether a path leads to an open file; not, where another replaced it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))  # noqa: PTH116  # any StrPath
    except FileNotFoundError:
        return False
    except OSError as cause:  # nobody may know: that is no other writer
        raise refused(cause, "look at", path) from cause
