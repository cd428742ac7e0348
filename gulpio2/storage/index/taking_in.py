"""The map of a chunk, over an index or not, brought up to date before it is written."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from gulpio2.errors import ChunkMismatchError
from gulpio2.format.edits import take_in
from gulpio2.format.snapshot import Snapshot, same
from gulpio2.storage.index.composing import NO_MAP, crc32_in
from gulpio2.storage.index.mappings import ChosenEntries, Entries

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from contextlib import ExitStack

__all__ = ["GivenMap", "remember", "taken_in"]


class GivenMap:
    """What a chunk was given as its map, which it has not read itself.

    It may be of some items of it only. Which of them are missing in memory was deleted
    there, also where another map was put in its place.

    Parameters
    ----------
    meta_dict : mutable mapping
        The map, as it is at first.

    Attributes
    ----------
    may_be_part : bool
        Whether the chunk may have other items as well.
    """

    def __init__(self, meta_dict: MutableMapping[str, Any]) -> None:
        # Of a copy whose original had its chunk changed.
        self._is_lost = False
        # Of a copy, the items of which it is known what the map said.
        self._sure: frozenset[str] = frozenset()
        is_of_index = isinstance(meta_dict, Entries)
        self._entries = meta_dict if is_of_index else OrderedDict(meta_dict)
        self._state = _state_of(self._entries)
        self.may_be_part = not is_of_index or isinstance(meta_dict, ChosenEntries)

    def base_of(
        self, mine: Mapping[str, Any], disk: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what a map was made of.

        Parameters
        ----------
        mine : mapping
            The map in memory.
        disk : mapping
            What is on the disk.

        Returns
        -------
        base : dict
            What each item was, as far as that can be told.
        before : dict
            That of it which is sure: what there is no index of may have been edited.

        Raises
        ------
        ChunkMismatchError
            The chunk has changed and its index was mapped anew since. What was edited
            in `mine`, and which of its items were deleted, nobody can tell.
        """
        if self._has_changed:
            if mine.keys() == disk.keys() and all(same(mine[i], disk[i]) for i in disk):
                return dict(disk), {}
            raise ChunkMismatchError(
                "the map in memory is of a chunk that was changed since, and its "
                "directory was closed meanwhile, so that nothing tells what of it was "
                "edited. Open the directory again, and edit the map that it has then"
            )
        given: Mapping[str, Any] = self._entries
        before = {id_: entry for id_, entry in given.items() if id_ in self._sure}
        given = {id_: given[id_] for id_ in given if id_ not in self._sure}
        if isinstance(self._entries, Entries):
            entries = self._entries
            first = {id_: entries.first_entry(id_) for id_ in entries._stored_keys()}
            before = {id_: entry for id_, entry in first.items() if entry is not None}
            # Where that is not known any more, the disk wins.
            lost = first.keys() - before.keys()
            given = OrderedDict((id_, mine[id_]) for id_ in mine if id_ in lost)
        base = dict(before)
        for id_, entry in given.items():
            # Frames are hardly edited: where they differ, others appended.
            infos = {"frame_info": entry["frame_info"]}
            base[id_] = {**disk[id_], **infos} if id_ in disk else entry
        return base, before

    @property
    def _has_changed(self) -> bool:
        """Whether rows of the index are of another map than when this was made."""
        state = _state_of(self._entries)
        return self._is_lost or state == NO_MAP or state != self._state

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as an ordinary mapping, which also has what was deleted since."""
        given = self._entries
        state = {"_is_lost": self._has_changed, "_sure": self._sure}
        if not isinstance(given, Entries):
            return GivenMap, (given,), state
        first = {id_: given.first_entry(id_) for id_ in given._stored_keys()}
        entries = {id_: entry or given.get(id_) for id_, entry in first.items()}
        known = {id_: entry for id_, entry in entries.items() if entry}
        state["_sure"] = frozenset(id_ for id_, entry in first.items() if entry)
        return GivenMap, (known,), state


def _state_of(entries: Mapping[str, Any]) -> tuple[int, int] | None:
    """Give size and CRC-32 of the map of which an index has these; None: of none.

    Those of no map where entries in memory may be of another one.
    """
    if not isinstance(entries, Entries) or entries.number is None:
        return None
    index, number = entries.index, entries.number
    content = index._load().content
    return NO_MAP if number in index.doubted else crc32_in(content.chunks, number)


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
    base: Mapping[str, Any] | GivenMap,
    disk: Mapping[str, Any] | None,
    undo: ExitStack,
) -> tuple[Any, dict[str, Any]]:
    """Bring a map up to date; see `gulpio2.format.edits.take_in`.

    Parameters
    ----------
    mine : mutable mapping
        The map. One over an index is made an ordinary one, whose entries the other maps
        over the index give from then on.
    base : mapping or GivenMap
        What it was made of; where the chunk has not read that, what it was given.
    disk : mapping or None
        What is on the disk; None where the map is gone and its data file is there, as
        for it to be written anew: what is in memory is all of it then.
    undo : ExitStack
        Is told how to let the other maps be as they were.

    Returns
    -------
    taken_in : mutable mapping
        The map to go on with.
    before : dict
        What its entries were made of, as far as that is known.
    """
    if disk is None:
        whole = mine.copy() if isinstance(mine, Entries) else mine
        return whole, {} if isinstance(base, GivenMap) else dict(base)
    if isinstance(mine, Entries):
        plain, made_of = _detached(mine, disk)
        take_in(plain, made_of, disk)
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
            for id_, entry in made_of.items()
            if not any(entry is e for e in (None, disk.get(id_), plain.get(id_)))
        }
        return plain, before
    if isinstance(base, GivenMap):
        made_of, before = base.base_of(mine, disk)
        take_in(mine, made_of, disk)
        if base.may_be_part:
            _put_in_order(mine, disk)
        return mine, before
    take_in(mine, base, disk)
    return mine, dict(base)


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
    base: dict[str, Any] = {
        id_: entries.first_entry(id_) for id_ in gone if not entries.was_added(id_)
    }
    for id_ in entries:
        if id_ not in taken:
            base[id_] = disk.get(id_)
            if id_ in disk:
                mine[id_] = disk[id_]
            continue
        mine[id_] = taken[id_]
        if entries._has_stored(id_) and not entries.was_added(id_):
            # Where it is not known any more the disk wins.
            base[id_] = entries.first_entry(id_) or taken[id_]
    return mine, base
