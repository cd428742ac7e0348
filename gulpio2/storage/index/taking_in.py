"""The map of a chunk, over an index or not, brought up to date before it is written."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from gulpio2.format.edits import Snapshot, take_in
from gulpio2.storage.index.mappings import ChosenEntries, Entries

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from contextlib import ExitStack

__all__ = ["remember", "taken_in"]


def remember(meta_dict: MutableMapping[str, Any], undo: ExitStack) -> None:
    """Have a map and its entries become again what they are now, if `undo` is done.

    Of a map over an index only entries that somebody has are copied: others cannot have
    been edited.
    """
    if isinstance(meta_dict, Entries):
        undo.callback(Snapshot(_handed_out(meta_dict)).restore)
    else:
        undo.callback(Snapshot(meta_dict).restore, meta_dict)


def taken_in(
    mine: MutableMapping[str, Any],
    base: Mapping[str, Any] | None,
    disk: Mapping[str, Any],
    undo: ExitStack,
) -> tuple[Any, dict[str, Any]]:
    """Bring a map up to date; see `gulpio2.format.edits.take_in`.

    Parameters
    ----------
    mine : mutable mapping
        The map. One over an index is made an ordinary one, whose entries the other maps
        over the index give from then on.
    base : mapping or None
        What it was made of, if that is known.
    disk : mapping
        What is on the disk.
    undo : ExitStack
        Is told how to let the other maps be as they were.

    Returns
    -------
    taken_in : mutable mapping
        The map to go on with.
    before : dict
        What its entries were made of, as far as that is known.
    """
    if isinstance(mine, Entries):
        plain, base = _detached(mine, disk)
        take_in(plain, base, disk)
        if isinstance(mine, ChosenEntries):
            _put_in_order(plain, disk)
        known = mine.index.entries
        new = [id_ for id_ in plain if id_ not in known and mine._has_stored(id_)]
        known.update((id_, plain[id_]) for id_ in new)
        undo.callback(lambda: [known.pop(id_, None) for id_ in new])
        mine.index.forget_first(plain, undo)
        # What is a part of a map in memory may be edited from now on.
        before = {
            id_: entry
            for id_, entry in base.items()
            if not any(entry is e for e in (None, disk.get(id_), plain.get(id_)))
        }
        return plain, before
    before = {} if base is None else dict(base)
    may_be_part = base is None
    if base is None:  # frames are hardly edited: where they differ, others appended
        base = {
            id_: {**disk[id_], "frame_info": entry["frame_info"]}
            for id_, entry in mine.items()
            if id_ in disk
        }
    take_in(mine, base, disk)
    if may_be_part:
        _put_in_order(mine, disk)
    return mine, before


def _put_in_order(mine: MutableMapping[str, Any], disk: Mapping[str, Any]) -> None:
    """Have entries in the order of the disk, and new ones last.

    A map may have been that of some items of a chunk, in an order of their own.
    """
    order = [id_ for id_ in disk if id_ in mine]
    order += [id_ for id_ in mine if id_ not in disk]
    if order != list(mine):
        for id_ in order:
            mine[id_] = mine.pop(id_)


def _handed_out(entries: Entries) -> dict[str, Any]:
    """Give the entries that somebody has, and may have edited."""
    put, added, *_ = entries.changes()
    known = {**entries.index.entries, **put, **added}
    return {id_: known[id_] for id_ in entries if id_ in known}


def _detached(
    entries: Entries, disk: Mapping[str, Any]
) -> tuple[OrderedDict[str, Any], dict[str, Any]]:
    """Give a map over an index as an ordinary one, and what it was made of.

    An entry that nobody has is taken from the disk: it need not be made and compared.
    """
    taken = _handed_out(entries)
    mine: OrderedDict[str, Any] = OrderedDict()
    gone = entries.changes()[2]
    base: dict[str, Any] = {id_: entries.first_entry(id_) for id_ in gone}
    for id_ in entries:
        if id_ not in taken:
            base[id_] = disk.get(id_)
            if id_ in disk:
                mine[id_] = disk[id_]
            continue
        mine[id_] = taken[id_]
        if entries._has_stored(id_):
            # Where it is not known any more the disk wins.
            base[id_] = entries.first_entry(id_) or taken[id_]
    return mine, base
