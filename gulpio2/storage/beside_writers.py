"""Changing a chunk that others append to, who do not ask for the folder's lock."""

from __future__ import annotations

import errno
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gulpio2.errors import LockedError, StorageError, StorageNotFoundError
from gulpio2.format.gmeta import load_gmeta
from gulpio2.format.layout import data_name, list_chunks, meta_name
from gulpio2.storage.local import LocalStore
from gulpio2.storage.locks import WriterLock
from gulpio2.storage.paths import follow_link, is_there, look_at

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Iterator

    from gulpio2.format.layout import Listing
    from gulpio2.storage.base import Store, StoreWriter

__all__ = [
    "held_until_mapped",
    "listing_to_read",
    "of_one_state",
    "read_settled_map",
    "refuse_writers",
    "replacing_unless_changed",
    "settled_listing",
    "settled_map",
    "wait_for_map",
    "without_writers",
]

T = TypeVar("T")

# Times that a chunk is looked at, if each time another data file has its name after it.
_TRIES = 10


@contextmanager
def without_writers(store: Store, number: int) -> Iterator[None]:
    """Be the only one who writes to a chunk.

    Raises
    ------
    LockedError
        Another has it open for writing.
    """
    path = store.path(data_name(number))
    with WriterLock() as lock:
        try:
            lock.take(path)
            _refuse_begun(path, lock)
            lock.take(path)  # what was begun may have replaced it
        except LockedError as cause:
            raise LockedError(
                cause.errno,
                f"{path} is open for writing, in another process or by an object of "
                "this one. Wait for it to be closed, and try again",
            ) from cause
        yield


def _refuse_begun(path: str, lock: WriterLock) -> None:
    """Refuse a data file that is written anew: of several hard links none is held."""
    file = follow_link(path)
    try:
        lock.refuse_begun(file, LocalStore(file.parent).names())
    except LockedError:
        raise
    except StorageError:
        return  # nobody can tell, of what may not be opened


@contextmanager
def held_until_mapped(store: Store, *names: str) -> Iterator[None]:
    """Let nobody begin to write to a data file that is to get its name, and its map.

    Who opens it then, to replace it or to append to it, waits, and finds the map.

    Parameters
    ----------
    store : Store
        Where it is.
    *names : str
        Its partial name, its name, or both where it may have either.

    Notes
    -----
    One that another has open already, or that cannot be locked, is not held.
    """
    with WriterLock() as lock:
        for name in names:
            with suppress(StorageError):
                lock.take(store.path(name))
        yield


def refuse_writers(store: Store, number: int) -> None:
    """Refuse to change a chunk that another has open for writing.

    Raises
    ------
    LockedError
        As `without_writers`, before anything is changed.
    """
    with without_writers(store, number):
        pass


def settled_listing(store: Store) -> Listing:
    """List the files, once the maps are there of chunks that others are storing.

    Who writes a chunk anew has an instant without a map. To a copy that is made then
    its items would be lost, and who deletes or stores items would not know of them.

    Raises
    ------
    LockedError
        Another has a data file without a map open for writing, and does not store the
        map within a second.
    """
    listing = list_chunks(store.names())
    for number in listing.data_only:
        wait_for_map(store, number)
    return list_chunks(store.names()) if listing.data_only else listing


def listing_to_read(store: Store) -> tuple[Listing, bool]:
    """List the files as `settled_listing` does, for who goes on without a chunk.

    Returns
    -------
    listing : Listing
    is_settled : bool
        False where a chunk has no map as another is still storing it.
    """
    try:
        return settled_listing(store), True
    except LockedError:  # for a second already
        return list_chunks(store.names()), False


def settled_map(store: Store, number: int) -> bytes:
    """Read the map of a chunk that was listed, also while it is written anew.

    Raises
    ------
    LockedError
        As `settled_listing`.
    StorageError
        It cannot be read.
    """
    try:
        return store.read(meta_name(number))
    except StorageNotFoundError:
        wait_for_map(store, number)
        return store.read(meta_name(number))


def read_settled_map(store: Store, number: int) -> tuple[bytes, OrderedDict[str, Any]]:
    """Give the bytes of a map and its entries, also while the chunk is written anew.

    Raises
    ------
    MetaFileError
        It is damaged.
    LockedError, StorageError
        As `settled_map`.
    """
    content = settled_map(store, number)
    return content, load_gmeta(content, where=store.path(meta_name(number)))


def of_one_state(store: Store, number: int, look: Callable[[], T]) -> T:
    """Look at a chunk, and again if it was written anew meanwhile.

    Parameters
    ----------
    store : Store
        Where it is.
    number : int
        Its number.
    look : callable
        Reads the map, and the data file after it, which may grow.

    Raises
    ------
    LockedError
        As `settled_listing`; or it is written anew again and again.
    """
    for _ in range(_TRIES):
        if _state_of(store, number)[1] is None:
            wait_for_map(store, number)
        before = _state_of(store, number)
        found = look()
        if _state_of(store, number) == before:
            return found
        store.close()  # it has the old data file open
    raise LockedError(
        errno.EWOULDBLOCK,
        f"{store.path(data_name(number))} is written anew again and again by another "
        "process. Wait for it to end, and try again",
    )


def _state_of(store: Store, number: int) -> tuple[Any, Any]:
    """Tell which file has the name of a chunk's data file, and whether there is a map.

    None stands for what is not there, and for what nobody may know.
    """
    data = is_mapped = None
    with suppress(StorageError):
        if (state := look_at(store.path(data_name(number)))) is not None:
            data = state.st_dev, state.st_ino
        is_mapped = is_there(store.path(meta_name(number))) or None
    return data, is_mapped


def wait_for_map(store: Store, number: int) -> None:
    """Wait for a map that another may be about to store, as `settled_listing` does."""
    try:
        refuse_writers(store, number)
    except LockedError:
        raise
    except StorageError:
        return  # if it cannot be opened, that is told where it is read


@contextmanager
def replacing_unless_changed(
    store: Store, name: str, number: int, content: bytes
) -> Iterator[StoreWriter]:
    """Replace a file of a chunk by what the block writes.

    Parameters
    ----------
    store : Store
        Where it is.
    name : str
        Name of the file.
    number : int
        The chunk.
    content : bytes
        Its map, of which the new file is made.

    Raises
    ------
    LockedError
        Another has committed to the chunk meanwhile: the map is another one.
    """
    with store.replacing(name) as writer:
        yield writer
        writer.sync()  # before the map is looked at: it may take long
        if store.read(meta_name(number)) != content:
            raise LockedError(
                errno.EWOULDBLOCK,
                f"{store.path(meta_name(number))} was changed meanwhile by another "
                "process, as by one that appends, and stays as that one left it. Wait "
                "for it to end, and try again",
            )
