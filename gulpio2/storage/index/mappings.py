"""Mappings over an index that stand in for the dictionaries of GulpIO2 0.0.4."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gulpio2.errors import MetaFileError
from gulpio2.storage.index.entries import first_entry
from gulpio2.storage.index.lazy import LazyDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gulpio2.storage.index.entries import IndexRecord
    from gulpio2.storage.index.index import Index

__all__ = [
    "ChosenEntries",
    "ChunkEntries",
    "ChunkNumbers",
    "ChunkObjects",
    "Entries",
    "PartOfMapping",
]

V = TypeVar("V")


class _Chosen(Protocol):
    """Some ids, in an order of their own."""

    @property
    def ids(self) -> Sequence[str]:
        """The ids."""
        ...

    def __contains__(self, id_: object) -> bool:
        """Tell whether an id is among them."""
        ...

    def __len__(self) -> int:
        """Count them."""
        ...


class _ByItem(LazyDict[str, V]):
    """Id to something, of all items of an index."""

    def __init__(self, index: Index) -> None:
        super().__init__()
        self.index = index

    def _stored_len(self) -> int:
        return len(self.index)

    def _stored_state(self) -> object:
        return self.index.state

    def _stored_keys(self) -> Iterator[str]:
        return self.index.ids()

    def _has_stored(self, key: Any) -> bool:
        return isinstance(key, str) and self.index.row(key) is not None


class Entries(_ByItem[Any]):
    """Id to entry, of all chunks: ``merged_meta_dict``."""

    # That of the chunk, where they are of one.
    number: int | None = None

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        # What keys stood for that were assigned to or deleted, before that was done.
        self._first: dict[str, IndexRecord | Mapping[str, Any] | None] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        """Keep an entry from now on."""
        stored = self._has_stored(key)
        if (
            stored
            and not self._is_changed(key)
            and value is self.index.entries.get(key)
        ):
            return  # what it stands for: copies would keep it, whatever the map says
        self._note(key, stored=stored)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        """Forget an entry."""
        if self._has_stored(key):
            self._note(key)
        super().__delitem__(key)
        if key not in self._gone and self.was_added(key):
            del self._first[key]

    def clear(self) -> None:
        """Forget every entry."""
        for key in self._stored_keys():
            self._note(key)
        super().clear()
        for key in [*filter(self.was_added, self._first)]:
            if key not in self._gone:
                del self._first[key]

    def _note(self, key: str, *, stored: bool = True) -> None:
        """Note what a key stands for, once; None where it is not `stored`."""
        if key not in self._first:
            with suppress(MetaFileError):
                self._first[key] = self.index.first(key) if stored else None

    def _is_changed(self, key: str) -> bool:
        """Tell whether a key was assigned to or deleted."""
        return key in self._put or key in self._added or key in self._gone

    def was_added(self, key: str) -> bool:
        """Tell whether an entry was put in memory where the map had none.

        Another program may have stored one of that id since.
        """
        return key in self._first and self._first[key] is None

    def first_entry(self, key: str) -> Mapping[str, Any] | None:
        """Give what the map had of an item before it was changed in memory.

        Returns
        -------
        mapping or None
            None where it had none, or it is not known any more.
        """
        with suppress(MetaFileError):
            if key in self._first:
                return first_entry(self._first[key])
            if self._has_stored(key):
                return first_entry(self.index.first(key))
        return None

    def changes(self) -> tuple[Any, ...]:
        """Give what was assigned and deleted, and what had been there before."""
        return *super().changes(), self._first

    def apply(self, changes: tuple[Any, ...]) -> None:
        """Take over what was changed in another of this kind."""
        *parts, first = changes
        super().apply(tuple(parts))
        self._first = first

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if isinstance(key, str) and self._may_have(key):
            entry = self.index.entry(key, keep=keep)
            if entry is not None:
                return entry
        raise KeyError(key)

    def look_up(self, key: str) -> IndexRecord | Mapping[str, Any] | None:
        """Give what readers need of an item, without making its entry.

        Returns
        -------
        IndexRecord or mapping
            The entry, where it was handed out or assigned and may have been changed.
        """
        if not self.untouched:
            self._settle()
            if key in self._put or key in self._added:
                entry: Mapping[str, Any] = self._get(key, keep=False)
                return entry
        if key in self._gone or not self._may_have(key):
            return None
        handed_out = self.index.entries.get(key)
        return self.index.record(key) if handed_out is None else handed_out

    def _may_have(self, key: str) -> bool:
        """Tell of an item of the index whether it is one of these."""
        return True


class ChunkEntries(Entries):
    """Id to entry, of one chunk: ``meta_dict``."""

    def __init__(self, index: Index, number: int) -> None:
        super().__init__(index)
        self.number: int = number

    def _stored_len(self) -> int:
        return self.index.chunk_len(self.number)

    def _stored_keys(self) -> Iterator[str]:
        return self.index.ids(self.number)

    def _has_stored(self, key: Any) -> bool:
        return isinstance(key, str) and self.index.number(key) == self.number

    def _may_have(self, key: str) -> bool:
        return self._has_stored(key)


class ChosenEntries(Entries):
    """Id to entry, of some items of a chunk in an order of their own."""

    def __init__(self, index: Index, number: int, ids: Iterable[str]) -> None:
        super().__init__(index)
        self.number = number
        self._ids = dict.fromkeys(ids)

    def _stored_len(self) -> int:
        return len(self._ids)

    def _stored_state(self) -> object:
        return self._ids  # whatever becomes of the index

    def _stored_keys(self) -> Iterator[str]:
        return iter(self._ids)

    def _has_stored(self, key: Any) -> bool:
        return key in self._ids

    def _may_have(self, key: str) -> bool:
        return key in self._ids


class ChunkNumbers(_ByItem[int]):
    """Id to chunk number: ``chunk_lookup``."""

    def _stored(self, key: Any, *, keep: bool) -> int:
        number = self.index.number(key) if isinstance(key, str) else None
        if number is None:
            raise KeyError(key)
        return number


class ChunkObjects(LazyDict[int, Any]):
    """Chunk number to chunk, each made when it is asked for: ``chunk_objs_lookup``."""

    def __init__(self, numbers: list[int], make: Callable[[int], Any]) -> None:
        super().__init__()
        self._numbers = numbers
        self._known = frozenset(numbers)
        self._make = make
        self.made: dict[int, Any] = {}

    def _stored_len(self) -> int:
        return len(self._numbers)

    def _stored_keys(self) -> Iterator[int]:
        return iter(self._numbers)

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if key not in self._known:
            raise KeyError(key)
        made = self.made.get(key)
        if made is None:
            made = self.made.setdefault(key, self._make(key))
        return made

    def _has_stored(self, key: Any) -> bool:
        return key in self._known


class PartOfMapping(LazyDict[str, Any]):
    """A mapping of a directory as far as a view goes, to be looked at."""

    def __init__(self, view: _Chosen, whole: Mapping[str, Any]) -> None:
        super().__init__()
        self._view = view
        self._whole = whole

    def _stored_len(self) -> int:
        if self._is_all_there:
            return len(self._view)
        return sum(1 for _ in self._stored_keys())

    @property
    def _is_all_there(self) -> bool:
        """Whether nothing can have been deleted in the mapping of the directory."""
        return isinstance(self._whole, LazyDict) and self._whole.untouched

    def _stored_keys(self) -> Iterator[str]:
        ids, whole = self._view.ids, self._whole
        if self._is_all_there:
            return iter(ids)
        return (id_ for id_ in ids if id_ in whole)  # some may be deleted in it

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if not self._has_stored(key):
            raise KeyError(key)
        whole = self._whole
        return (
            whole.peek(key) if isinstance(whole, LazyDict) and not keep else whole[key]
        )

    def _has_stored(self, key: Any) -> bool:
        return isinstance(key, str) and key in self._view and key in self._whole

    def __setitem__(self, key: str, value: Any) -> None:
        """Refuse: what is assigned here would not be in the directory."""
        raise TypeError(f"{key!r} is to be assigned to in the mapping of the directory")

    def __delitem__(self, key: str) -> None:
        """Refuse: a view has the items that it was made of."""
        raise TypeError(f"{key!r} is to be deleted in the mapping of the directory")

    def clear(self) -> None:
        """Refuse, as `__delitem__`."""
        raise TypeError("items are to be deleted in the mapping of the directory")

    def move_to_end(self, key: str, last: bool = True) -> None:  # noqa: FBT001, FBT002  # signature of OrderedDict
        """Refuse: the order is that of the view."""
        raise TypeError(f"{key!r} stays where it is in the view")
