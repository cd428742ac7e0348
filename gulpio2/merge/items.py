"""Some items of a chunk of a part, where the target has the others already."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.entry import EXTRAS_KEY, covered_part, entry_check, verify_entry
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.layout import data_name, meta_name, partial_name
from gulpio2.merge.data import name_data, refuse_replaced, store_map
from gulpio2.merge.parts import content_of, data_path
from gulpio2.storage.base import read_map
from gulpio2.storage.beside_writers import held_until_mapped
from gulpio2.storage.leftovers import removed_on_error
from gulpio2.storage.links import is_beginning
from gulpio2.storage.local import new_token
from gulpio2.storage.paths import is_there
from gulpio2.storage.permissions import permit_copy

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from gulpio2.merge.data import MapAsRead
    from gulpio2.storage.base import Store, StoreWriter

__all__ = ["bring_items", "take_brought", "untold_chunks"]


def bring_items(
    read: MapAsRead,
    ids: Sequence[str],
    out: Store,
    first: int,
    data_only: Sequence[int],
) -> int:
    """Store some items of a chunk in the target; give the number of their chunk there.

    Parameters
    ----------
    read : MapAsRead
        The map of the chunk.
    ids : sequence of str
        The items. Their frames are copied, one item behind the other.
    out, first, data_only
        As for `gulpio2.merge.data.bring_chunk`.

    Raises
    ------
    MetaFileError
        One of their entries is altered: a new check would say that it is not.
    ChunkMismatchError
        The chunk was written anew meanwhile.
    """
    partial = partial_name(data_name(first), new_token())
    with removed_on_error(out, partial):
        writer = out.create(partial)
        with closing(writer):
            source = data_path(read.part.store, read.chunk)
            permit_copy(Path(out.path(partial)), [source])
            entries = {id_: _copy_item(read, id_, writer) for id_ in ids}
            writer.sync()
            size = writer.tell()
        refuse_replaced(read)
        number = _begun(out, partial, size, data_only)
    if number is not None:
        out.remove(partial)
    with held_until_mapped(out, partial if number is None else data_name(number)):
        if number is None:
            number = name_data(out, partial, first)
            out.sync_names()
        store_map(read, out, number, dump_gmeta(entries))
    return number


def _copy_item(read: MapAsRead, id_: str, writer: StoreWriter) -> dict[str, Any]:
    """Write the records of an item, and give its entry for where they are now."""
    store, name = read.part.store, data_name(read.chunk)
    entry = read.entries[id_]
    verify_entry(id_, entry, where=f"{store.path(meta_name(read.chunk))}: item {id_!r}")
    places = []
    for loc, pad, length in entry["frame_info"]:
        places.append([writer.tell(), pad, length])
        writer.write(store.read_at(name, loc, length))
    new = {**entry, "frame_info": places}
    if EXTRAS_KEY in entry:
        # What GulpIO2 0.0.4 has appended is not covered by the check, nor will it be.
        covered = covered_part(id_, entry)
        if covered is None:
            raise MetaFileError(f"item {id_!r} has changed while it was read")
        known = {**covered, "frame_info": places[: len(covered["frame_info"])]}
        check = entry_check(id_, known)
        new[EXTRAS_KEY] = {**entry[EXTRAS_KEY], "check": check}
    return new


def _begun(out: Store, partial: str, size: int, data_only: Sequence[int]) -> int | None:
    """Find the same data file without a map, which a merge left that was killed."""
    for number in data_only:
        if not is_there(out.path(meta_name(number))) and is_beginning(
            out.path(data_name(number)), out.path(partial), size
        ):
            return number
    return None


def untold_chunks(
    lookup: Mapping[str, int], told: Container[int]
) -> dict[int, set[str]]:
    """Give the ids of those chunks of a target of which no run tells.

    A merge that was killed has brought such, and could not note them.
    """
    untold: dict[int, set[str]] = {}
    for id_, number in lookup.items():
        if number not in told:
            untold.setdefault(number, set()).add(id_)
    return untold


def take_brought(
    read: MapAsRead, out: Store, lookup: Mapping[str, int], untold: dict[int, set[str]]
) -> int | None:
    """Find the chunk that was made of items of this one, and of no others.

    Where there are several, it is the last: what came before has items of earlier
    parts, which may be the same.

    Parameters
    ----------
    read : MapAsRead
        The map of a chunk of a part; all of its ids are in the target.
    out : Store
        The target.
    lookup : mapping
        The chunk of each id in the target.
    untold : dict
        As `untold_chunks` gives it. What is found is taken out: no other chunk of a
        part is it.
    """
    entries = read.entries
    numbers = {lookup[id_] for id_ in entries if id_ in lookup} & untold.keys()
    for number in sorted(numbers, reverse=True):
        if not untold[number] <= entries.keys():
            continue
        there = read_map(out, meta_name(number))[1]
        # Else it may have been there before the merge, as of GulpIO2 0.0.4.
        if all(content_of(there[id_]) == content_of(entries[id_]) for id_ in there):
            del untold[number]
            return number
    return None
