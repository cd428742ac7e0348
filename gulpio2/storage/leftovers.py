"""What writers leave behind that are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.format.layout import JOURNAL_NAME, list_chunks

if TYPE_CHECKING:
    from gulpio2.storage.base import Store

__all__ = ["remove_leftovers", "remove_partials"]


def remove_leftovers(store: Store) -> None:
    """Remove unfinished files; to be called by who holds the store's lock.

    Nothing is removed that an interrupted ingest can be resumed with.
    """
    if JOURNAL_NAME not in store.names():
        remove_partials(store)


def remove_partials(store: Store) -> None:
    """Remove all unfinished files; to be called by who holds the store's lock."""
    for name in list_chunks(store.names()).partials:
        store.remove(name)
