"""``deleted.json`` of a directory: what was deleted, and where it was erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.format.layout import REMOVALS_NAME, meta_name
from gulpio2.format.removals import Removals, dump_removals, load_removals
from gulpio2.storage.base import read_if_there

if TYPE_CHECKING:
    from gulpio2.storage.base import Store

__all__ = ["read_removals", "write_removals"]


def read_removals(store: Store) -> Removals:
    """Read it; empty where there is none.

    Raises
    ------
    MetaFileError
        It is damaged.
    """
    data = read_if_there(store, REMOVALS_NAME)
    if data is None:
        return Removals()
    return load_removals(data, where=store.path(REMOVALS_NAME))


def write_removals(store: Store, removals: Removals) -> None:
    """Put it in place; it is for those who may read the maps that it has entries of."""
    maps = [meta_name(number) for number in removals.deleted]
    store.write_atomically(REMOVALS_NAME, dump_removals(removals), made_of=maps)
