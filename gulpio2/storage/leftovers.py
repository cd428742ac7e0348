"""What writers leave behind that are killed, or refused."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
from typing import TYPE_CHECKING

from gulpio2.errors import LockedError, StorageError
from gulpio2.format.layout import JOURNAL_NAME, list_chunks
from gulpio2.storage.locks import WriterLock
from gulpio2.storage.paths import look_at
from gulpio2.storage.refusals import absolute, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "made_and_locked",
    "missing_folders",
    "remove_empty",
    "remove_leftovers",
    "remove_partials",
    "removed_on_error",
]

_logger = logging.getLogger(__name__)

# Errors that tell what is there: a folder, a pipe, a link in a circle or through a
# file. Nobody writes a chunk to it.
_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)
_OF_CHUNK = re.compile(r"(?:data|meta)_([0-9]+)\.")


@contextlib.contextmanager
def made_and_locked(store: Store, path: StrPath) -> Iterator[Callable[[], None]]:
    """Make a folder and be its only writer; where that is refused, it is gone again.

    Gives what is to be called when a journal was written to it, which is held as well:
    by NFS the lock on a folder holds on one machine alone, that on a file on all.

    Parameters
    ----------
    store : Store
        Of the folder.
    path : str or path
        The folder. One that was there stays.

    Raises
    ------
    LockedError
        Another process writes to it, or has its journal open.
    StorageError
        It cannot be made or locked, or its journal not be opened or locked: nobody can
        tell then whether another has that open.
    """
    made = missing_folders(path)
    with contextlib.ExitStack() as stack:
        try:
            store.make()
            stack.enter_context(store.lock())
        except LockedError:
            raise  # another relies on the folder
        except StorageError:
            remove_empty(made)
            raise
        lock = stack.enter_context(WriterLock())

        def hold() -> None:
            _hold_journal(store, lock)

        try:
            hold()
            yield hold
        except BaseException:
            # While it is locked: another may rely on a folder that it finds.
            remove_empty(made)
            raise


@contextlib.contextmanager
def removed_on_error(store: Store, name: str) -> Iterator[None]:
    """Remove a file where the block raises; what that raises is told in any case."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(StorageError):
            store.remove(name)
        raise


def missing_folders(path: StrPath) -> list[Path]:
    """List what making a folder would make: itself, and folders above it.

    Raises
    ------
    StorageError
        The current folder is gone, and the path is relative to it.
    """
    folder = absolute(path)
    around = (folder, *folder.parents)
    return [each for each in around if not os.path.lexists(each)]


def remove_empty(made: Iterable[Path]) -> None:
    """Remove folders that were made in vain, from the innermost on."""
    for each in made:
        with contextlib.suppress(OSError):  # something is in it, or it was not made
            each.rmdir()


def _hold_journal(store: Store, lock: WriterLock) -> None:
    """Lock the journal, if there is one."""
    path = store.path(JOURNAL_NAME)
    if look_at(path, follow=False) is None:
        return
    try:
        may_open = lock.take(path)
    except LockedError as cause:
        raise LockedError(
            errno.EWOULDBLOCK,
            f"another process is writing to {store.path('')}, perhaps on another "
            "machine. Wait for it to end, or write to another folder",
        ) from cause
    if not may_open:  # another user's, who may be writing it on another machine
        refusal = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        raise refused(refusal, "open", path)


def remove_leftovers(store: Store) -> None:
    """Remove unfinished files; to be called by who holds the store's lock.

    Nothing is removed that an interrupted ingest can be resumed with.
    """
    if JOURNAL_NAME not in store.names():
        remove_partials(store)


def remove_partials(store: Store) -> None:
    """Remove all unfinished files; to be called by who holds the store's lock.

    Those stay of a chunk that a program has open for writing, which does not ask for
    that lock; with a warning also those of which nobody can tell.
    """
    of_chunks: dict[str, list[str]] = {}
    for name in list_chunks(store.names()).partials:
        if found := _OF_CHUNK.match(name):
            of_chunks.setdefault(found[1], []).append(name)
        else:
            store.remove(name)
    for number, names in of_chunks.items():
        data = f"data_{number}.gulp"
        # In this order: what gets its name meanwhile is found under that.
        files = [*(name for name in names if name.startswith(f"{data}.")), data]
        # Until they are removed: one that was just made is about to be locked.
        with WriterLock() as lock:
            if any(_is_in_use(store.path(each), lock) for each in files):
                continue
            for name in names:
                if _is_folder(store.path(name)):
                    _remove_folder(store.path(name))
                else:
                    store.remove(name)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114  # Path's raise


def _remove_folder(path: str) -> None:
    """Remove the folder in which a client's serializer was writing a map."""
    try:
        shutil.rmtree(path)
    except OSError as cause:
        raise refused(cause, "remove", path, writing=True) from cause


def _is_in_use(path: str, lock: WriterLock) -> bool:
    """Tell whether another has, or may have, what is or is to be a data file open.

    Where nobody has, it is locked.
    """
    try:
        if lock.take(path, at_once=True):
            return False
        code = errno.EACCES
    except LockedError:
        return True
    except StorageError as cause:
        if cause.errno in _NO_FILE:
            return False
        code = cause.errno or errno.EIO
    _logger.warning(
        "cannot tell whether a program is writing to %s: %s. The unfinished files of "
        "this chunk stay; remove them if none is",
        path,
        os.strerror(code),
    )
    return True
