"""Data files that several directories share by hard links, until one is changed."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import shutil
import stat
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.format.layout import partial_name
from gulpio2.storage.leftovers import removed_on_error
from gulpio2.storage.local import LocalStore, new_token
from gulpio2.storage.permissions import permit_copy
from gulpio2.storage.refusals import cannot, refused

if TYPE_CHECKING:
    from gulpio2.storage.locks import WriterLock
    from gulpio2.types import StrPath

__all__ = [
    "copy_file",
    "is_beginning",
    "is_same_file",
    "link_file",
    "num_names",
    "stop_sharing",
]

_logger = logging.getLogger(__name__)

# What says that a disk, or what one may write of it, is full.
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
# Bytes that are compared at a time.
_BLOCK = 1 << 20
# Bytes that stay a hole where all of them are zero: sixteen pages.
_HOLE = 1 << 16


def link_file(source: StrPath, target: StrPath) -> bool:
    """Make a hard link; False where the file system cannot.

    Where the source is a symbolic link, it is to the file that this leads to: a link to
    the link would lead elsewhere from another folder.
    """
    try:
        os.link(os.path.realpath(source), target)
    except OSError as cause:
        _logger.debug("%s cannot be linked (%s): copying", source, cause.strerror)
        return False
    return True


def copy_file(
    source: StrPath, folder: StrPath, name: str, length: int | None = None
) -> None:
    """Copy a file under a name that no reader looks at; it is on the disk then.

    Nobody may read it who may not read the file, as where it were a link.

    Parameters
    ----------
    source : str or path
        The file.
    folder : str or path
        Where the copy goes.
    name : str
        Its name there.
    length : int, optional
        Bytes after which it is cut off: another may be writing more to the source.

    Raises
    ------
    StorageError
        One cannot be read, or the other not be written; nothing is left of it.
    """
    store = LocalStore(folder)
    with removed_on_error(store, name):
        try:
            target = Path(store.path(name))
            target.touch()
            permit_copy(target, [Path(source)])
            if _has_holes(source):
                _copy_with_holes(source, target)
            else:
                shutil.copyfile(source, target)
        except OSError as cause:
            # The copying names the source for both, also where it could not write.
            is_full = cause.errno in _NO_ROOM
            if cause.filename == os.fspath(source) and not is_full:
                raise refused(cause, "read", source) from cause
            what = f"copy {source} to"
            raise refused(cause, what, store.path(name), writing=True) from cause
        with closing(store.extend(name)) as writer:
            if length is not None and writer.tell() > length:
                writer.truncate(length)
            writer.sync()


def _has_holes(path: StrPath) -> bool:
    """Tell whether a file takes less room than it has bytes."""
    state = os.stat(os.fspath(path))  # noqa: PTH116  # whose error has it as a string
    return state.st_blocks * 512 < state.st_size


def _copy_with_holes(source: StrPath, target: Path) -> None:
    """Copy a file, and write nothing where it has zeros: there they take no room.

    They are read, as not every file system has told rightly where holes are.
    """
    # An error has the source as it is given, which a Path would spell otherwise.
    with open(source, "rb") as file, target.open("wb") as copy:  # noqa: PTH123  # see above
        for start in itertools.count(0, _HOLE):
            try:
                block = file.read(_HOLE)
            except OSError as cause:
                cause.filename = os.fspath(source)
                raise
            if block.count(0) < len(block):
                copy.seek(start)
                copy.write(block)
            if len(block) < _HOLE:
                copy.truncate(start + len(block))
                return


def is_beginning(path: StrPath, source: StrPath, length: int) -> bool:
    """Tell whether a file holds the first bytes of another, so many, and no more.

    Raises
    ------
    StorageError
        One of them cannot be read.
    """
    state = _state_of(path)
    if not stat.S_ISREG(state.st_mode) or state.st_size != length:
        return False
    try:
        with Path(path).open("rb") as ours, Path(source).open("rb") as theirs:
            return all(
                ours.read(_BLOCK) == theirs.read(min(_BLOCK, length - start))
                for start in range(0, length, _BLOCK)
            )
    except OSError as cause:
        # A read that fails does not say of which file.
        raise cannot(cause, "compare", f"{path} with {source}") from cause


def is_same_file(path: StrPath, other: StrPath) -> bool:
    """Tell whether two paths lead to one file; ``Path.samefile`` lets errors through.

    Raises
    ------
    StorageError
        One of them is not there, or cannot be looked at.
    """
    return os.path.samestat(_state_of(path), _state_of(other))


def num_names(path: StrPath) -> int:
    """Count the names of a file, which it has by hard links.

    Raises
    ------
    StorageError
        It is not there, or cannot be looked at.
    """
    return _state_of(path).st_nlink


def _state_of(path: StrPath) -> os.stat_result:
    """Look at what has to be there."""
    try:
        return os.stat(path)  # noqa: PTH116  # any StrPath
    except OSError as cause:
        raise cannot(cause, "look at", path) from cause


def stop_sharing(path: StrPath, lock: WriterLock) -> None:
    """Give a file that has other names, by hard links, bytes of its own.

    What is appended to it then does not come to directories that it was merged into,
    or to a backup that is made of links.

    Parameters
    ----------
    path : str or path
        Of a file; a symbolic link is followed, and stays.
    lock : WriterLock
        Holds the file, and at the end the copy too.

    Raises
    ------
    StorageError
        There is no room for a copy; the file is as it was.
    """
    file = Path(path).resolve()
    if num_names(file) < 2:
        return
    _logger.info("%s is shared by hard links: it gets bytes of its own", file)
    partial = partial_name(file.name, new_token())
    copy_file(file, file.parent, partial)
    store = LocalStore(file.parent)
    with removed_on_error(store, partial):
        # Or another would before this one does.
        lock.take(store.path(partial), to_write=True)
        store.rename(partial, file.name)
        store.sync_names()
