"""``deleted.json`` of a directory: what was deleted, and where it was erased."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gulpio2.errors import MetaFileError
from gulpio2.format.layout import REMOVALS_NAME, data_number, meta_name
from gulpio2.format.removals import Removals, dump_removals, load_removals
from gulpio2.storage.base import read_unless_missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gulpio2.storage.base import Store

__all__ = [
    "forgetting_deleted",
    "noted_removals",
    "read_removals",
    "removed_numbers",
    "write_removals",
]


def read_removals(store: Store) -> Removals:
    """Read it; empty where there is none.

    Raises
    ------
    MetaFileError
        It is damaged.
    StorageError
        It cannot be read, or is a link that leads nowhere: to go on without it would
        forget what was deleted.
    """
    data = read_unless_missing(store, REMOVALS_NAME)
    if data is None:
        return Removals()
    return load_removals(data, where=store.path(REMOVALS_NAME))


def write_removals(store: Store, removals: Removals) -> None:
    """Put it in place; it is for those who may read the maps that it has entries of."""
    with _replacing(store, removals):
        pass


@contextmanager
def _replacing(store: Store, removals: Removals) -> Iterator[None]:
    """Put it in place after the block; all that needs room is done before."""
    maps = [meta_name(number) for number in removals.deleted]
    with store.replacing(REMOVALS_NAME, made_of=maps) as writer:
        writer.write(dump_removals(removals))
        writer.sync()
        yield


def removed_numbers(store: Store, names: Collection[str]) -> set[int]:
    """Give the numbers of chunks of which ``deleted.json``, if among `names`, tells.

    The files of one may be gone, and put back. What is noted of it stays until then,
    and would be taken for damage of another chunk of that number.
    """
    removals = noted_removals(store) if REMOVALS_NAME in names else Removals()
    return {*removals.deleted, *removals.erased}


def noted_removals(store: Store) -> Removals:
    """Read ``deleted.json``; empty where there is none, or it is damaged."""
    try:
        return read_removals(store)
    except MetaFileError:  # a damaged one is for a check to tell
        return Removals()


@contextmanager
def forgetting_deleted(store: Store, name: str) -> Iterator[None]:
    """Let no note of deleted items speak of the file that takes a data file's place.

    Before the block, which removes the map that the notes belong to, the folder is
    locked: who deletes or compacts has read the notes, and is to write them.
    """
    number = data_number(name)
    if number not in removed_numbers(store, {REMOVALS_NAME}):
        yield
        return
    with store.lock():
        removals = noted_removals(store)
        removals.deleted.pop(number, None)
        removals.erased.pop(number, None)
        with _replacing(store, removals):
            yield
