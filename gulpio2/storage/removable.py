"""What is refused before items are hidden or erased: more than they would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.errors import ChunkMismatchError, FormatError
from gulpio2.format.gmeta import load_gmeta
from gulpio2.format.layout import data_name, list_chunks, meta_name
from gulpio2.format.removals import Removals, entry_spans
from gulpio2.format.salvage import gaps_between
from gulpio2.storage.local import real_path
from gulpio2.storage.refusals import broken_link

if TYPE_CHECKING:
    from collections.abc import Collection

    from gulpio2.storage.base import Store

__all__ = [
    "refuse_broken_link",
    "refuse_frames_of_nobody",
    "refuse_items_without_data",
    "refuse_what_cannot_be_rewritten",
]

# Bytes read at once.
_BLOCK = 4 * 1024 * 1024


def refuse_items_without_data(store: Store, ids: Collection[str]) -> None:
    """Refuse items of chunks whose data file is missing: they are not unknown."""
    for number in list_chunks(store.names()).meta_only:
        where = store.path(meta_name(number))
        there = load_gmeta(store.read(meta_name(number)), where=where)
        if found := sorted(there.keys() & ids):
            raise _without_data(store, number, found[0], "is missing", "Put the file")


def refuse_broken_link(store: Store, number: int, id_: str) -> None:
    """Refuse an item whose data file is a link that leads nowhere."""
    if target := broken_link(store.path(data_name(number))):
        why = f"is a link to {target}, which is not there"
        raise _without_data(store, number, id_, why, "Bring what it leads to")


def _without_data(
    store: Store, number: int, id_: str, why: str, put: str
) -> ChunkMismatchError:
    return ChunkMismatchError(
        f"item {id_!r} is in {store.path(meta_name(number))}, whose data file "
        f"{data_name(number)} {why}: the directory is damaged. Nothing was deleted. "
        f"{put} back and delete again, or run `gulp2 repair`, which copies what is "
        "left into a new directory"
    )


def refuse_what_cannot_be_rewritten(
    store: Store, number: int, names: Collection[str]
) -> None:
    """Refuse a chunk of which a file is missing, or the data file is a link."""
    for name in (data_name(number), meta_name(number)):
        if name not in names:
            raise FormatError(
                f"{store.path(name)} is missing, and items of this chunk were deleted. "
                "Put it back. If the chunk is not to be had again, 'gulp2 repair' "
                "copies what is left"
            )
    path = Path(store.path(data_name(number)))
    if path.is_symlink():
        raise FormatError(
            f"{path} is a link, and the deleted frames would stay in the file that it "
            f"leads to ({real_path(path)}). Put that file in the place of the link "
            "before compacting"
        )


def refuse_frames_of_nobody(store: Store, number: int, removals: Removals) -> None:
    """Refuse to erase bytes that were not deleted, but may be lost from the map."""
    name = data_name(number)
    entries = load_gmeta(store.read(meta_name(number)), where=meta_name(number))
    gone = (entry for _, entry in removals.deleted[number])
    spans = [span for each in (*entries.values(), *gone) for span in entry_spans(each)]
    spans += removals.erased.get(number, ())
    size, end = store.size(name), max((stop for _, stop in spans), default=0)
    for start, stop in gaps_between(spans, size):
        for first in range(start, stop, _BLOCK):
            block = store.read_at(name, first, min(_BLOCK, stop - first))
            if block.count(0) < len(block):
                # Not told apart: an older map that was put back ends there as well.
                killed = "or what an append left that was killed, " * (start >= end)
                raise FormatError(
                    f"{store.path(name)} holds bytes from {first} on that neither its "
                    "map nor the list of deleted items speaks of: they may be frames "
                    f"of items that {meta_name(number)} has lost, {killed}and would be "
                    "erased. Nothing was changed. Put the whole map back, if it has "
                    "lost any; or have 'gulp2 repair' copy what is left to a new "
                    "directory, without them and without the deleted items; 'gulp2 "
                    "check' tells more"
                )
