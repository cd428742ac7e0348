"""Ids, rows and spans for readers, each row checked before it is used."""

from __future__ import annotations

import logging
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.forks import renew_in_children
from gulpio2.format.entry import verify_entry
from gulpio2.format.layout import INDEX_NAME
from gulpio2.passage import IN_ARROW
from gulpio2.storage.index.columns import hash_id
from gulpio2.storage.index.composing import NO_MAP, other_maps, state_in
from gulpio2.storage.index.entries import IndexRecord, is_unchanged
from gulpio2.storage.index.held import Held
from gulpio2.storage.index.table import make_table
from gulpio2.storage.index.texts import MapTexts
from gulpio2.storage.paths import path_in

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import ExitStack

    import numpy as np
    import numpy.typing as npt

    from gulpio2.storage.index.columns import Columns, IndexContent

__all__ = ["Index"]

_logger = logging.getLogger(__name__)
# Ids that are Python objects at the same time while all are gone through.
_BLOCK = 4096


class Index:
    """The items of a directory, by id.

    Parameters
    ----------
    folder : str
        The directory.
    make : callable
        Gives content and whether it is mapped from a file: that of the file if it is
        fresh, or, with ``trust=False``, that of the maps alone.
    verify : bool
        Compare each entry with its own check before it is first used.

    Attributes
    ----------
    entries : dict
        Id to the entries that were handed out, which may have been changed since. What
        each was made of is kept with it, for `first`.
    doubted : set of int
        Chunks of which edited entries may be of another map than the rows.

    Notes
    -----
    A row of a mapped file is checked when it is first used: by a checksum of its own,
    and by one over the entry's text, which is read from the map. Lists of ids and
    the lookup are checked as a whole before ids are listed or said to be missing. If
    something is wrong the file is put aside and the columns are made in memory.
    """

    def __init__(
        self,
        folder: str,
        make: Callable[..., tuple[IndexContent, bool]],
        *,
        verify: bool,
    ) -> None:
        self.folder = folder
        self.verify = verify
        self.entries: dict[str, OrderedDict[str, Any]] = {}
        self._first: dict[str, IndexRecord | None] = {}
        # Of the content that entries were handed out of, after it was let go of.
        self._chunks_before: npt.NDArray[np.int64] | None = None
        self.doubted: set[int] = set()
        self._make = make
        self._texts = MapTexts(folder)
        renew_in_children(self, Index._renew_lock)
        self._loaded: Held | None = None
        self._held: weakref.ref[Held] | None = None
        self._load()

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def _load(self) -> Held:
        """Give the content, which is mapped again after `close`."""
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded
                if loaded is None:
                    # What a view has rows of stays what it is, whatever the maps say.
                    loaded = self._held() if self._held is not None else None
                    if loaded is None:
                        loaded = Held(*self._make())
                        self._forget_unedited(loaded)
                    self._loaded = loaded
        return loaded

    def _forget_unedited(self, loaded: Held) -> None:
        """Let go of entries that nobody edited, of maps that are others by now."""
        before, self._chunks_before = self._chunks_before, None
        if before is None:
            return
        others = other_maps(before, loaded.content.chunks)
        for id_, record in list(self._first.items()):
            if record is not None and record.number not in others:
                continue
            if record is not None and is_unchanged(self.entries[id_], record):
                del self.entries[id_], self._first[id_]
            else:
                self.doubted |= others

    def hold(self) -> Held:
        """Give what row numbers are of: they stay the same as long as it lives."""
        loaded = self._sound_ids()
        self._held = weakref.ref(loaded)
        return loaded

    def holds(self, held: Held) -> bool:
        """Tell whether row numbers still are of this."""
        return self._loaded is held

    @property
    def mapped(self) -> bool:
        """Whether the content comes from a file."""
        return self._load().mapped

    @property
    def state(self) -> object:
        """What is another object once the content was loaded again."""
        return self._load().state

    @property
    def content(self) -> IndexContent:
        """The columns, checked as a whole as far as ids go."""
        return self._sound_ids().content

    # --- what there is -----------------------------------------------------------

    def __len__(self) -> int:
        """Count the items."""
        return len(self._load().columns)

    def describe_altered(self) -> str:
        """Say which entries are not what their checks say; nothing if all are."""
        return self._load().columns.describe_altered()

    @property
    def numbers(self) -> list[int]:
        """Chunk numbers, ascending."""
        numbers: list[int] = self._load().content.chunks[:, 0].tolist()
        return numbers

    def chunk_len(self, number: int) -> int:
        """Count the items of a chunk."""
        return len(self._load().chunk_rows.get(number, ()))

    def ids(self, number: int | None = None) -> Iterator[str]:
        """Give ids in order: all of them, or those of a chunk."""
        loaded = self._sound_ids()
        rows = range(len(loaded.columns))
        if number is not None:
            rows = loaded.chunk_rows.get(number, range(0))
        for start in range(rows.start, rows.stop, _BLOCK):
            yield from loaded.columns.ids(start, min(start + _BLOCK, rows.stop))

    def _sound_ids(self) -> Held:
        loaded = self._load()
        if not loaded.check_ids():
            return self._put_aside(loaded, "the columns of ids and counts are damaged")
        if not loaded.is_of_the_maps:
            if not self._texts.are_those_of(loaded.content):
                return self._put_aside(loaded, "it was made of other maps than these")
            loaded.is_of_the_maps = True
        return loaded

    def table(self) -> Any:
        """Give a ``pyarrow.Table`` with a row per item; see `table.make_table`."""
        loaded = self._sound_ids()
        if self.verify and (altered := loaded.columns.describe_altered()):
            raise MetaFileError(f"{self.folder}: {altered}")
        with IN_ARROW.through():
            if loaded.table is None:
                loaded.table = make_table(loaded.content)
            if loaded.table is None:
                loaded = self._put_aside(loaded, "columns of its table are damaged")
                loaded.table = make_table(loaded.content)
        return loaded.table

    # --- items ---------------------------------------------------------------------

    def row(self, id_: str) -> int | None:
        """Find the row of an id; None where there is none."""
        return self._find_sound(id_)[1]

    def number(self, id_: str) -> int | None:
        """Give the number of an item's chunk; None where there is no such item."""
        loaded, row = self._find_sound(id_)
        return None if row is None else loaded.columns.chunk.item(row)

    def record(self, id_: str) -> IndexRecord | None:
        """Look up an item; None where there is none."""
        loaded, row = self._find(id_)
        if row is None:
            return None
        seen, bit = loaded.seen, 1 << (row & 7)
        if not seen[row >> 3] & bit and loaded.mapped and not self.verify:
            loaded.check_ahead(row, self._texts)
        if not seen[row >> 3] & bit:
            if loaded.mapped and not self._is_right(loaded, row):
                self._put_aside(loaded, f"the row of {id_!r} is not what its map says")
                return self.record(id_)
            if self.verify:
                self._verify(id_, loaded.columns, row)
            seen[row >> 3] |= bit
        return IndexRecord(loaded.columns, row, self._texts.read, self, loaded.state)

    def _find_sound(self, id_: str) -> tuple[Held, int | None]:
        """Find a row of an index that was made of the maps that are here."""
        loaded, row = self._find(id_)
        if row is None or loaded.is_of_the_maps or self._sound_ids() is loaded:
            return loaded, row
        return self._find_sound(id_)

    def _find(self, id_: str) -> tuple[Held, int | None]:
        key = id_.encode("utf-8", "surrogatepass")
        wanted = hash_id(key)
        loaded = self._loaded or self._load()
        try:
            row = loaded.search(key, wanted)
        except IndexError:  # a row or bounds that are none
            row, loaded.lookup_is_right = None, False
        if row is None and not loaded.check_lookup():
            loaded = self._put_aside(loaded, "the columns for finding ids are damaged")
            row = loaded.search(key, wanted)
        if row is None and not loaded.is_of_the_maps:
            loaded = self._sound_ids()
            row = loaded.search(key, wanted)
        return loaded, row

    def entry(self, id_: str, *, keep: bool = True) -> OrderedDict[str, Any] | None:
        """Give an item's entry; None where there is none.

        Parameters
        ----------
        id_ : str
            The item.
        keep : bool, optional
            Give the same object from now on, since it may be changed.
        """
        while (entry := self.entries.get(id_)) is None:
            record = self.record(id_)
            if record is None or not keep:
                return None if record is None else record.entry
            record = record.lasting()
            with self._lock:
                # Else another thread has closed it, and it may be of an earlier map.
                if self._loaded is not None and self._loaded.columns is record.columns:
                    self.entries.setdefault(id_, record.entry)
                    self._first.setdefault(id_, record)
        return entry

    def first(self, id_: str) -> IndexRecord | Mapping[str, Any] | None:
        """Give what an entry that was handed out was made of; of others, what is now.

        Raises
        ------
        MetaFileError
            It is not known any more.
        """
        if id_ not in self._first and id_ in self.entries:
            first = _first_of(self.entries[id_])
            if first is not None:
                return first
        record = self._first.get(id_) or self.record(id_)
        return None if record is None else record.lasting()

    def forget_first(self, ids: Iterable[str], undo: ExitStack) -> None:
        """Have entries that were written since count as made of what is now."""
        handed_out = [id_ for id_ in ids if id_ in self.entries]
        known = {id_: self._first[id_] for id_ in handed_out if id_ in self._first}

        def restore() -> None:
            for id_ in handed_out:
                del self._first[id_]
            self._first.update(known)

        undo.callback(restore)
        self._first.update(dict.fromkeys(handed_out))

    def changed_entries(self) -> dict[str, OrderedDict[str, Any]]:
        """Give the entries that are not any more as the maps have them.

        What each was made of goes along when it is pickled.
        """
        changed = {}
        self._load()  # which may forget some
        for id_, entry in self.entries.copy().items():  # others may ask for more
            unchanged, record = False, self.record(id_)
            with suppress(MetaFileError):  # it has changed on the disk
                unchanged = record is not None and is_unchanged(entry, record)
            if not unchanged:
                changed[id_] = entry
                if id_ in self._first:
                    _set_first(entry, self._first[id_])
        return changed

    # --- trust ---------------------------------------------------------------------

    def _is_right(self, loaded: Held, row: int) -> bool:
        """Check a row against itself, and against its map."""
        columns = loaded.columns
        if not columns.is_sound(row):
            return False
        if self._texts.is_sound(columns, row):
            return True
        # Of a map that was replaced since, the row tells what was there before.
        return self._has_changed(loaded, columns.chunk.item(row))

    def is_right_throughout(self, held: Held) -> bool:
        """Tell of all rows at once whether they are what the maps say.

        A map that was replaced since is left out: its rows tell what there was before.
        """
        return not held.mapped or (
            held.check_whole()
            and self._texts.are_those_of(held.content, throughout=True)
        )

    def read_text(self, columns: Columns, row: int) -> bytes:
        """Read the text of a row's entry from the map; see `MapTexts.read`."""
        return self._texts.read(columns, row)

    def map_state(self, number: int) -> tuple[int, int] | None:
        """Give size and time (ns) of the map that the rows of a chunk were made of.

        Those of no map where entries in memory may be of another one.
        """
        content = self._load().content
        return NO_MAP if number in self.doubted else state_in(content.chunks, number)

    def _has_changed(self, loaded: Held, number: int) -> bool:
        """Tell whether a map is not any more the one that the index was made of."""
        then = state_in(loaded.content.chunks, number)
        return self._texts.present_state(number) != then

    def _verify(self, id_: str, columns: Columns, row: int) -> None:
        where = f"{self._texts.path(columns.chunk.item(row))}: item {id_!r}"
        entry = IndexRecord(columns, row, self._texts.read).entry
        verify_entry(id_, entry, where=where)

    def _put_aside(self, wrong: Held, why: str) -> Held:
        """Go on with columns made of the maps, where those of the file were wrong."""
        with self._lock:
            if self._loaded is wrong:  # else another thread was faster
                fresh = Held(*self._make(trust=False))
                # A repair may take from the file what was there before.
                altered = fresh.columns.describe_altered()
                _logger.warning(
                    "%s: %s, so it is built anew from the maps, in memory. %s",
                    path_in(self.folder, INDEX_NAME),
                    why,
                    f"But in them {altered}"
                    if altered
                    else "Run `gulp2 index` to replace the file",
                )
                self._loaded, self._held = fresh, None
        return self._load()

    def close(self) -> None:
        """Let go of the file; it is mapped again when something is asked for."""
        with self._lock:
            if self._loaded is not None and self._loaded.mapped:
                if self._first:
                    # A copy: the columns themselves are pages of the file.
                    self._chunks_before = self._loaded.content.chunks.copy()
                self._loaded = None


def _set_first(entry: OrderedDict[str, Any], record: IndexRecord | None) -> None:
    """Have an entry take along what it was made of where it is pickled."""
    if record is not None:
        entry.first = record.entry  # type: ignore[attr-defined]  # set here alone
    elif _first_of(entry) is not None:
        del entry.first  # type: ignore[attr-defined]  # set above


def _first_of(entry: Any) -> OrderedDict[str, Any] | None:
    """Give what `_set_first` has noted, here or where the entry comes from."""
    return getattr(entry, "first", None)
