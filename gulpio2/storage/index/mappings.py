"""Mappings over an index that stand in for the dictionaries of GulpIO2 0.0.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from gulpio2.storage.index.lazy import LazyDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gulpio2.storage.index.entries import IndexRecord
    from gulpio2.storage.index.index import Index

__all__ = ["ChosenEntries", "ChunkEntries", "ChunkNumbers", "ChunkObjects", "Entries"]

V = TypeVar("V")


class _ByItem(LazyDict[str, V]):
    """Id to something, of all items of an index."""

    def __init__(self, index: Index) -> None:
        super().__init__()
        self.index = index

    def _stored_len(self) -> int:
        return len(self.index)

    def _stored_keys(self) -> Iterator[str]:
        return self.index.ids()

    def _has_stored(self, key: Any) -> bool:
        return isinstance(key, str) and self.index.row(key) is not None


class Entries(_ByItem[Any]):
    """Id to entry, of all chunks: ``merged_meta_dict``."""

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if isinstance(key, str):
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
        if not self.untouched and (key in self._put or key in self._added):
            entry: Mapping[str, Any] = self._get(key, keep=False)
            return entry
        if key in self._gone or not self._may_have(key):
            return None
        return self.index.entries.get(key) or self.index.record(key)

    def _may_have(self, key: str) -> bool:
        return True


class ChunkEntries(Entries):
    """Id to entry, of one chunk: ``meta_dict``."""

    def __init__(self, index: Index, number: int) -> None:
        super().__init__(index)
        self.number = number

    def _stored_len(self) -> int:
        return self.index.chunk_len(self.number)

    def _stored_keys(self) -> Iterator[str]:
        return self.index.ids(self.number)

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if not self._has_stored(key):
            raise KeyError(key)
        return super()._stored(key, keep=keep)

    def _has_stored(self, key: Any) -> bool:
        return isinstance(key, str) and self.index.number(key) == self.number

    def _may_have(self, key: str) -> bool:
        return self._has_stored(key)


class ChosenEntries(Entries):
    """Id to entry, of some items in an order of their own."""

    def __init__(self, index: Index, ids: Iterable[str]) -> None:
        super().__init__(index)
        self._ids = dict.fromkeys(ids)

    def _stored_len(self) -> int:
        return len(self._ids)

    def _stored_keys(self) -> Iterator[str]:
        return iter(self._ids)

    def _stored(self, key: Any, *, keep: bool) -> Any:
        if not self._has_stored(key):
            raise KeyError(key)
        return super()._stored(key, keep=keep)

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
