"""A directory in another process: what of it is pickled, and how it is opened there.

Entries may have been edited in memory, and are of the maps as they were read. A copy
reads the maps again, which may be others by then; so it is told which maps its edited
entries are of, and compares those that have changed before it reads a frame.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.format.layout import data_name, meta_name
from gulpio2.storage.index.composing import NO_MAP, map_states, state_in
from gulpio2.storage.index.lazy import LazyDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gulpio2.chunk import GulpChunk
    from gulpio2.rewritten import LoadedMap
    from gulpio2.storage.index.index import Index
    from gulpio2.types import StrPath

__all__ = ["plain_state", "reopening", "restore", "stored_in"]

_State = tuple[int, int] | None

# What a copy makes anew where there is an index.
_REOPENED = (
    "_all_meta_dicts",
    "_doubted",
    "_handles",
    "_index",
    "_is_of_others",
    "_is_settled",
    "_made_index",
    "_original",
    "_prefix",
    "_states",
    "_store",
    "chunk_lookup",
    "chunk_objs_lookup",
    "merged_meta_dict",
    "num_chunks",
)

# Attributes of a chunk that go with its map, or with a block in which it is open.
_OF_A_MAP = ("meta_dict", "meta_file_path", "serializer", "fp")

# Mappings over an index, unless a program has put others in their places.
_LOOKUPS = ("merged_meta_dict", "chunk_lookup", "chunk_objs_lookup")


class _Directory(Protocol):
    """What is looked at of a `gulpio2.GulpDirectory`."""

    _folder: StrPath
    _prefix: str
    _index: Index | None
    _doubted: frozenset[int]
    chunk_lookup: Any
    chunk_objs_lookup: Any
    merged_meta_dict: Any

    def _open(self) -> None: ...
    def _watch_chunks(self) -> None: ...
    def _settings(self) -> Any: ...
    def _made_chunks(self) -> Mapping[int, GulpChunk]: ...
    def _chunk_of(self, id_: Any) -> GulpChunk: ...
    def _loaded_map(self, number: int) -> LoadedMap: ...
    def _state_of(self, number: int) -> _State: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...


def reopening(
    directory: _Directory, ids: Iterable[str]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Give what opens a directory again in another process.

    Parameters
    ----------
    directory : GulpDirectory
        The directory.
    ids : iterable of str
        Items whose changed entries are to go along.

    Returns
    -------
    make : callable
    arguments : tuple
        What it is to be called with.
    """
    wanted = set(ids)
    if directory._index is None:
        state = {**_settings_of(directory), "_edits": _edits_of(directory, wanted)}
    else:
        state = _cut_down(directory, plain_state(directory), wanted)
    return _reopen, (type(directory), state)


def _reopen(kind: type[_Directory], state: dict[str, Any]) -> _Directory:
    """Open a directory by what `reopening` gave."""
    directory = kind.__new__(kind)
    # A copy: what takes it over takes out of it, and a view may try again.
    directory.__setstate__({**state})
    return directory


def _cut_down(
    directory: _Directory, state: dict[str, Any], wanted: set[str]
) -> dict[str, Any]:
    """Leave out of the state of a directory what was changed of other items."""
    entries, lookups, of_chunks, assigned, states = state["_edits"]
    entries = {id_: entry for id_, entry in entries.items() if id_ in wanted}
    lookups = {
        name: _part_of(change, wanted)
        if isinstance(change, tuple) and name != "chunk_objs_lookup"
        else change
        for name, change in lookups.items()
    }
    of_chunks = {
        number: part
        for number, change in of_chunks.items()
        if any(part := _part_of(change, wanted))
    }
    behind = _chunks_of(directory, entries, of_chunks)
    states = {number: states[number] for number in behind if number in states}
    return {**state, "_edits": (entries, lookups, of_chunks, assigned, states)}


def _part_of(changes: tuple[Any, ...], wanted: set[str]) -> tuple[Any, ...]:
    """Give what was changed of some items: mappings by their ids, and sets of ids."""
    return tuple(
        {id_: change[id_] for id_ in change if id_ in wanted}
        if isinstance(change, dict)
        else change & wanted
        for change in changes
    )


def _edits_of(directory: _Directory, wanted: set[str]) -> tuple[Any, ...]:
    """Give what was changed of some items of a directory whose maps were loaded."""
    entries = {k: entry for k, entry in _changed_entries(directory) if k in wanted}
    put: dict[str, dict[Any, Any]] = {name: {} for name in _LOOKUPS}
    gone: dict[str, set[Any]] = {name: set() for name in put}
    out_of_chunks: dict[int, set[str]] = {}
    used = set()
    for id_ in wanted:
        entry = None
        number = directory.chunk_lookup.get(id_)
        chunk = directory.chunk_objs_lookup.get(number)
        if number is None:
            gone["chunk_lookup"].add(id_)
        elif chunk is None:
            gone["chunk_objs_lookup"].add(number)
        else:
            used.add(number)
            entry = chunk.meta_dict.get(id_)
            if entry is None:
                out_of_chunks.setdefault(number, set()).add(id_)
            if entry is None or id_ in entries:  # perhaps another than by the maps
                put["chunk_lookup"][id_] = number
        known = directory.merged_meta_dict.get(id_)
        if known is None:
            gone["merged_meta_dict"].add(id_)
        elif known is not entry and repr(known) != repr(entry):
            put["merged_meta_dict"][id_] = known
    of_chunks: dict[int, tuple[Any, ...]] = {
        number: ({}, {}, out) for number, out in out_of_chunks.items()
    }
    chunks = [(number, directory.chunk_objs_lookup[number]) for number in used]
    assigned = {
        number: found
        for number, chunk in chunks
        if (found := _assigned_to(directory, chunk, number))
    }
    lookups: dict[str, tuple[Any, ...]] = {
        name: (put[name], {}, gone[name]) for name in put if put[name] or gone[name]
    }
    states = _states_behind(directory, entries, of_chunks)
    return entries, lookups, of_chunks, assigned, states


def plain_state(directory: _Directory) -> dict[str, Any]:
    """Give a directory's state without open files, for ``__getstate__``.

    An index stays where it is: only edits travel.
    """
    index = directory._index
    if index is None:
        state = {**vars(directory), "_made_index": None}
        state.pop("_original", None)
        return state
    lookups = {name: getattr(directory, name) for name in _LOOKUPS}
    made = {**directory._made_chunks()}.items()  # other threads may make more
    # Without those that a program has taken out, or put another in the place of.
    there = directory.chunk_objs_lookup.get
    chunks = [(number, chunk) for number, chunk in made if there(number) is chunk]
    entries = index.changed_entries()
    of_chunks = {
        number: changes
        for number, chunk in chunks
        if (changes := _changes_of(chunk, index.entries))
    }
    edits = (
        entries,
        {
            name: lookup.changes() if isinstance(lookup, LazyDict) else lookup
            for name, lookup in lookups.items()
        },
        of_chunks,
        {
            number: assigned
            for number, chunk in chunks
            if (assigned := _assigned_to(directory, chunk, number))
        },
        _states_behind(directory, entries, of_chunks),
    )
    return {**_settings_of(directory), "_edits": edits}


def restore(directory: _Directory, state: dict[str, Any]) -> None:
    """Open a directory again and take over the edits, for ``__setstate__``."""
    edits = state.pop("_edits", None)
    if edits is None and "_handles" not in state:  # pickled by 0.0.4
        # With the class's own defaults.
        directory.__init__(state["output_dir"], state["jpeg_decoder"])  # type: ignore[misc]  # anew
        return
    vars(directory).update(state)
    if edits is None:
        directory._watch_chunks()
        return
    entries, changes, of_chunks, assigned, states = edits
    directory._open()
    # Entries of another copy are compared with maps that have changed since.
    directory._doubted = frozenset(
        number
        for number in _chunks_of(directory, entries, of_chunks)
        if states.get(number) is None or states[number] != directory._state_of(number)
    )
    lookup = changes.get("chunk_lookup")
    if directory._index is None and isinstance(lookup, tuple):
        # Entries are found by it, also those of items that were taken out of it.
        _apply(directory.chunk_lookup, (*lookup[:2], ()))
    _apply_entries(directory, entries)
    for name, change in changes.items():
        if isinstance(change, tuple):
            _apply(getattr(directory, name), change)
        else:
            setattr(directory, name, change)
    chunks = directory.chunk_objs_lookup
    for number, change in of_chunks.items():
        if number in chunks:
            _apply(chunks[number].meta_dict, change)
    for number, attributes in assigned.items():
        if number in chunks:
            vars(chunks[number]).update(attributes)


def _apply(mapping: Any, change: tuple[Any, ...]) -> None:
    """Take over what was put into a mapping of another copy, and taken out of it."""
    if isinstance(mapping, LazyDict):
        mapping.apply(change)
        return
    put, added, gone, *_ = change
    for key in gone:
        mapping.pop(key, None)
    mapping.update({**put, **added})


def stored_in(chunk: GulpChunk) -> Mapping[str, Any]:
    """Give the map that a chunk's is made of; it may be another one by now."""
    stored = chunk._base_map.parse(chunk._base) if chunk._base else None
    return chunk._get_or_create_dict() if stored is None else stored


def _settings_of(directory: _Directory) -> dict[str, Any]:
    return {k: value for k, value in vars(directory).items() if k not in _REOPENED}


def _changed_entries(directory: _Directory) -> Iterator[tuple[str, Any]]:
    """Give the entries that are not as the maps have them."""
    if directory._index is not None:
        yield from directory._index.changed_entries().items()
        return
    for chunk in directory.chunk_objs_lookup.values():
        stored = stored_in(chunk)
        for id_, entry in chunk.meta_dict.items():
            # By repr, NaN equals NaN.
            if entry != stored.get(id_) and repr(entry) != repr(stored.get(id_)):
                yield id_, entry


def _apply_entries(directory: _Directory, entries: Mapping[str, Any]) -> None:
    """Take over entries that were changed in another copy."""
    if directory._index is not None:
        directory._index.entries.update(entries)
        return
    for id_, entry in entries.items():
        if id_ in directory.merged_meta_dict:
            directory.merged_meta_dict[id_] = entry
            directory._chunk_of(id_).meta_dict[id_] = entry


def _changes_of(chunk: GulpChunk, shared: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Give what was changed in a chunk's map, as `LazyDict.changes` does; or None.

    Once the chunk was opened with "ab", its map is an ordinary one.
    """
    entries = chunk.meta_dict
    if isinstance(entries, LazyDict):
        return None if entries.untouched else entries.changes()
    stored = stored_in(chunk)
    put, added, gone = {}, {}, {*stored}.difference(entries)
    for id_, entry in entries.items():
        if id_ not in stored:
            added[id_] = entry
        elif entry is not shared.get(id_):
            put[id_] = entry
    first = dict.fromkeys(added) | {id_: stored[id_] for id_ in (*put, *gone)}
    return (put, added, gone, first) if put or added or gone else None


def _assigned_to(
    directory: _Directory, chunk: GulpChunk, number: int
) -> dict[str, Any]:
    """Give what a program has set of a chunk, but what is of its map."""
    settings = directory._settings()
    first = {
        "data_file_path": settings.prefix + data_name(number),
        "jpeg_decoder": settings.jpeg_decoder,
        "threads": settings.threads,
        "verify": settings.verify,
    }
    return {
        name: value
        for name, value in vars(chunk).items()
        if not (name.startswith("_") or name in _OF_A_MAP)
        and (name not in first or first[name] != value)
    }


# --- which maps edited entries are of ----------------------------------------------


def _chunks_of(
    directory: _Directory, ids: Iterable[str], numbers: Iterable[int]
) -> set[int]:
    """Give chunks, and those that items are in which are there."""
    known = (directory.chunk_lookup.get(id_) for id_ in ids)
    return {*numbers, *(number for number in known if number is not None)}


def _states_behind(
    directory: _Directory, ids: Iterable[str], numbers: Iterable[int]
) -> dict[int, _State]:
    """Give the states of the maps of which changed entries were made."""
    chunks = _chunks_of(directory, ids, numbers)
    return {number: _state_behind(directory, number) for number in chunks}


def _state_behind(directory: _Directory, number: int) -> _State:
    state = directory._loaded_map(number).state
    chunk, index = directory._made_chunks().get(number), directory._index
    if state != NO_MAP or chunk is None or not chunk._base:
        return state
    if (
        number in directory._doubted
        or (index is not None and number in index.doubted)
        or chunk._base_map.path != Path(directory._prefix + meta_name(number))
    ):
        return state
    # It has been opened with "ab". As long as the map is what that wrote, entries
    # in memory are of it; another that is put there meanwhile has another state.
    now = state_in(map_states(os.fspath(directory._folder), [number]), number)
    return now if chunk._base_map.read() == chunk._base else state
