"""Chunks that are written anew while somebody has them or their directory open."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gulpio2.errors import MapChangedError, MetaFileError
from gulpio2.format.entry import load_extras
from gulpio2.format.layout import REMOVALS_NAME, data_number
from gulpio2.format.removals import (
    Removals,
    entry_spans,
    load_removals,
    meets_spans,
    merge_spans,
)
from gulpio2.storage.base import read_if_there
from gulpio2.storage.index.entries import IndexRecord
from gulpio2.storage.index.lazy import LazyDict
from gulpio2.storage.index.mappings import Entries
from gulpio2.storage.index.texts import MapTexts
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import is_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gulpio2.storage.base import Store
    from gulpio2.storage.handles import HandlePool
    from gulpio2.storage.map_file import MapFile
    from gulpio2.types import StrPath, Verify

__all__ = ["LoadedMap", "RewriteGuard", "note_state", "watched"]


# An index of which a row proves to be damaged is made anew of what the maps say now:
# they would be compared with themselves, and not with what was read of it before.
_MADE_ANEW = (
    "its map was replaced, and the index made anew meanwhile, so that nothing tells "
    "whether the frames are where they were"
)


class _Chunk(Protocol):
    """What is looked at of a `gulpio2.GulpChunk`."""

    data_file_path: StrPath
    meta_file_path: StrPath
    meta_dict: Any
    verify: Verify
    _base: bytes | None
    _base_map: MapFile


class LoadedMap(NamedTuple):
    """A map as a directory has read it."""

    state: tuple[int, int] | None
    """Its size and time (ns) before it was read; None where it was not there."""
    chunk: Callable[[], _Chunk | None]
    """Gives the chunk, with what the map said; None where there was none."""
    said: Callable[[], Iterable[tuple[str, Any]]] | None = None
    """Gives what the map said, without what was edited since; None: it is not known."""


class RewriteGuard:
    """Looks whether a data file still is the one that its map was read for.

    Appending, deleting and compacting leave every frame in its place. A chunk that is
    written anew does not: where a frame was is another one then. So the map's size and
    time are looked at whenever a data file is opened; the old map is taken away before
    a new data file gets its name, so that with an old map the file is the old one too.
    If the map has changed, what it said is compared with what it says.

    Parameters
    ----------
    store : Store
        The directory.
    prefix : str
        What the names of its data files are put behind. Others are left to `chunks`,
        as those of chunks that were made for another folder.
    loaded : callable
        Gives the map of a chunk, by number, as it was read; None where the directory
        is not in use any more.
    before : callable or None
        What `HandlePool.on_open` was, with the chunks that `watched` was given.

    Attributes
    ----------
    chunks : _ChunkGuards
        Looks at the chunks that outlive the directory.
    """

    def __init__(
        self,
        store: Store,
        prefix: str,
        loaded: Callable[[int], LoadedMap | None],
        before: Callable[[str, int], bool] | None,
    ) -> None:
        self._store = store
        self._prefix = prefix
        self.chunks = before if isinstance(before, _ChunkGuards) else _ChunkGuards()
        self._maps = MapTexts(store.path(""))
        self._loaded = loaded
        # Of chunks that were compared: the map's state then, and what was wrong.
        self._seen: dict[int, tuple[tuple[int, int] | None, str]] = {}

    def state_of(self, path: str) -> tuple[int, int] | None:
        """Give the state of a data file's map as it was read; None if not known."""
        number = self._number_of(path)
        loaded = None if number is None else self._loaded(number)
        return None if loaded is None else loaded.state

    def _number_of(self, path: str) -> int | None:
        """Give the number of a chunk of the directory; None of any other file."""
        begin = len(self._prefix)
        return data_number(path[begin:]) if path.startswith(self._prefix) else None

    def __call__(self, path: str, fd: int) -> bool:
        """Look at the map of a data file that was opened just now.

        Returns
        -------
        bool
            False where the map may be of another file, which has the path by now.

        Raises
        ------
        MapChangedError
            The chunk was written anew, or its map is gone or damaged.
        """
        number = self._number_of(path)
        loaded = None if number is None else self._loaded(number)
        # Of a chunk that was added since, the directory has read no map.
        if number is None or loaded is None or loaded.state is None:
            return self.chunks(path, fd)
        state = self._maps.state(number)
        if state == loaded.state:
            return True
        chunk = loaded.chunk()
        if chunk is None:  # a program has taken it out, and may have it still
            return self.chunks(path, fd)
        seen, fault = self._seen.get(number, (None, ""))
        if seen is None or seen != state:
            fault = self._compare(number, chunk, loaded.said)
            again = self._loaded(number)
            if not fault and again is not None and again.state != loaded.state:
                raise MapChangedError(f"{path}: {_MADE_ANEW}. Read the item again")
            self._seen[number] = state, fault
        if fault:
            raise MapChangedError(
                f"{path} was written anew since its directory was opened: {fault}. "
                "Open the directory again"
            )
        return is_at(fd, path)

    def _compare(
        self,
        number: int,
        chunk: _Chunk,
        said: Callable[[], Iterable[tuple[str, Any]]] | None,
    ) -> str:
        """Say of which item the frames are not where they were; nothing if of none."""
        before = _entries_of(chunk)
        now = _stored_now(chunk)
        fault = _difference(before, now, self._store, number)
        if fault and said is not None:
            # What the program has put there itself is its own affair.
            fault = _difference(said(), now, self._store, number)
        return fault


class _ChunkGuards:
    """Looks whether data files still are those that the maps of chunks were read for.

    As `RewriteGuard`, of chunks that are used without their directory.
    """

    def __init__(self) -> None:
        # Each by its address: a set cannot be gone through while others add to it.
        self._chunks: weakref.WeakValueDictionary[int, Any] = (
            weakref.WeakValueDictionary()
        )

    def add(self, chunk: _Chunk) -> None:
        """Look at this one, too, as long as it is there."""
        self._chunks[id(chunk)] = chunk

    def __call__(self, path: str, fd: int) -> bool:
        """Look at the map of a data file that was opened just now.

        Returns
        -------
        bool
            False where the map may be of another file, which has the path by now.

        Raises
        ------
        MetaFileError
            The chunk was written anew, or its map is gone or damaged.
        """
        is_compared = False
        for chunk in (each() for each in self._chunks.valuerefs()):
            if chunk is None or str(chunk.data_file_path) != path:
                continue
            is_compared = True
            if fault := _fault_of(chunk):
                raise MetaFileError(
                    f"{path} was written anew since its map was read: {fault}. Open "
                    "the chunk again"
                )
        return not is_compared or is_at(fd, path)


def watched(chunk: _Chunk, pool: HandlePool) -> HandlePool:
    """Have a chunk's data file compared with what was read of its map.

    Parameters
    ----------
    chunk : GulpChunk
        It is not kept alive.
    pool : HandlePool
        What opens its data file. That of a directory looks at what the directory has
        read of the map, and at the chunk once the directory is not in use any more.

    Returns
    -------
    HandlePool
        `pool`.
    """
    guard = pool.on_open
    if isinstance(guard, RewriteGuard):
        # Where the directory has not read the map as a whole. Once that is not in use
        # it tells nothing, and a copy of a chunk knows the state already.
        if chunk._base is None and (state := guard.state_of(str(chunk.data_file_path))):
            note_state(chunk, state)
        guard = guard.chunks
    elif not isinstance(guard, _ChunkGuards):
        guard = pool.on_open = _ChunkGuards()
    guard.add(chunk)
    return pool


def note_state(chunk: _Chunk, state: tuple[int, int] | None) -> None:
    """Have a chunk know its map's size and time, where it does not know its bytes."""
    vars(chunk).update(_map_state=state)


def _fault_of(chunk: _Chunk) -> str:
    """Say of which item the frames are not where they were; nothing if of none."""
    folder, name = os.path.split(chunk.data_file_path)
    base, map_file = chunk._base, _map_of(chunk)
    before = _entries_of(chunk)
    content = _content_of(chunk)
    if base is None:
        state, number = getattr(chunk, "_map_state", None), data_number(name)
        if state is None or number is None or state == MapTexts(folder).state(number):
            return ""
    # To read what a serializer of somebody's own wrote, it would have to be a file.
    elif not map_file.reads_json or map_file.read() == base:
        return ""
    else:
        read = map_file.parse(base)
        # What the program has put there itself is its own affair.
        before = (
            (id_, entry)
            for id_, entry in before
            if id_ in read and _goes_on(read[id_], entry)
        )
    now = _stored_now(chunk)
    fault = _difference(before, now, LocalStore(folder or "."), data_number(name))
    return fault or ("" if _content_of(chunk) is content else _MADE_ANEW)


def _stored_now(chunk: _Chunk) -> Mapping[str, Any]:
    """Read the map again that a chunk is made of, where another may be assigned."""
    return _map_of(chunk).load_checked(verify=chunk.verify is True)[0]


def _map_of(chunk: _Chunk) -> MapFile:
    """Give the map that a chunk has read; the one assigned since, where it is gone."""
    return chunk._base_map.or_at(chunk.meta_file_path)


def _difference(
    before: Iterable[tuple[str, Any]],
    now: Mapping[str, Any],
    store: Store,
    number: int | None,
) -> str:
    """Say of which item the frames are not where they were; nothing if of none.

    Parameters
    ----------
    before : iterable of (str, dict)
        Ids and entries, as they were read.
    now : mapping of str to dict
        What the map says now.
    store : Store
        The folder of the chunk.
    number : int or None
        The chunk's; None where its files have other names.
    """
    gone = None
    for id_, entry in before:
        if id_ in now and _goes_on(entry, now[id_]):
            continue
        gone = gone or _Gone(store, number, now)
        if gone.has(id_, entry):  # it may have been stored again since
            continue
        if id_ in now:
            return f"the frames of item {id_!r} are others, or elsewhere"
        return f"item {id_!r} is not in it any more, and was not deleted"
    return ""


def _entries_of(chunk: _Chunk) -> Iterator[tuple[str, Any]]:
    """Give ids and entries, which are not kept for changes."""
    entries = chunk.meta_dict
    look = entries.peek if isinstance(entries, LazyDict) else entries.__getitem__
    if isinstance(entries, Entries):
        look = partial(_as_indexed, entries)
    for id_ in entries:
        try:
            yield id_, look(id_)
        except KeyError:
            continue  # an index that was made anew meanwhile has it no more


def _as_indexed(entries: Entries, id_: str) -> Mapping[str, Any]:
    """Give an entry as far as an index has it, whose map may have it no more."""
    found = entries.look_up(id_)
    if found is None:
        raise KeyError(id_)
    return found.placed if isinstance(found, IndexRecord) else found


def _content_of(chunk: _Chunk) -> object:
    """Give what is another object once an index of the entries was made anew."""
    entries = chunk.meta_dict
    return entries.index.state if isinstance(entries, Entries) else None


def _goes_on(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Tell whether the frames of an entry are those that it had, and perhaps more."""
    try:
        spans = [list(span) for span in before["frame_info"]]
        if spans != [list(span) for span in now["frame_info"][: len(spans)]]:
            return False
        old, new = (load_extras(each, where="").crc32 for each in (before, now))
    except (KeyError, TypeError, ValueError):  # edited by hand, in memory
        return False
    return not len(old) or not len(new) or np.array_equal(old, new[: len(old)])


class _Gone:
    """Items of a chunk that were deleted, and spans whose frames were erased."""

    def __init__(
        self, store: Store, number: int | None, now: Mapping[str, Any]
    ) -> None:
        data = None if number is None else read_if_there(store, REMOVALS_NAME)
        where = store.path(REMOVALS_NAME)
        removals = load_removals(data, where=where) if data else Removals()
        self._deleted: dict[str, list[Any]] = {}
        for id_, entry in removals.deleted.get(number or 0, ()):
            self._deleted.setdefault(id_, []).append(entry)
        self._erased = merge_spans(removals.erased.get(number or 0, []))
        if self._erased and any(
            meets_spans(span, self._erased)
            for entry in now.values()
            for span in entry_spans(entry)
        ):
            # Nobody's bytes are nobody's: it is said of a file that had this number.
            self._erased = []

    def has(self, id_: str, entry: Any) -> bool:
        """Tell whether this item was deleted, and its frames are there or erased.

        That others of the chunk were deleted says nothing: in one that was written anew
        before that, theirs may lie where those of this item were.
        """
        if any(_goes_on(entry, gone) for gone in self._deleted.get(id_, ())):
            return True
        return all(self._is_erased(*span) for span in entry_spans(entry))

    def _is_erased(self, first: int, last: int) -> bool:
        """Tell whether a span is in one of those that were erased, which lie apart."""
        at = bisect_right(self._erased, first, key=itemgetter(0)) - 1
        return at >= 0 and last <= self._erased[at][1]
