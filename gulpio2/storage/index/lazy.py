"""Dictionaries whose values are made when they are asked for.

They hold what was changed through them, and make the rest when it is asked for. They
are dictionaries by type, for programs that ask; every way in goes through the methods.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    MutableMapping,
    ValuesView,
)
from types import MappingProxyType
from typing import Any, TypeVar

__all__ = ["LazyDict", "is_untouched"]

K = TypeVar("K")
V = TypeVar("V")


_NOBODY: Any = None
_REQUIRED: Any = object()


class _View:
    """What views of a dictionary have in common."""

    _mapping: Any

    @property
    def mapping(self) -> MappingProxyType[Any, Any]:
        """The dictionary itself, to look at."""
        return MappingProxyType(self._mapping)


class _Keys(_View, KeysView[K]):
    """Keys, also backwards, as those of a dictionary."""

    _mapping: LazyDict[K, Any]

    def __reversed__(self) -> Iterator[K]:
        return reversed(self._mapping)


class _Items(_View, ItemsView[K, V]):
    """Pairs, also backwards."""

    _mapping: LazyDict[K, V]

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        for key in reversed(self._mapping):
            yield key, self._mapping[key]


class _Values(_View, ValuesView[V]):
    """Values, also backwards."""

    _mapping: LazyDict[Any, V]

    def __reversed__(self) -> Iterator[V]:
        for key in reversed(self._mapping):
            yield self._mapping[key]


class LazyDict(OrderedDict[K, V]):
    """A dictionary whose items are made on demand.

    A subclass says what there is by `_stored_len`, `_stored_keys` and `_stored`.
    Values that are assigned are kept here, and so is which keys were deleted.
    """

    def __init__(self) -> None:
        self._put: dict[Any, Any] = {}  # assigned to keys that are stored
        self._added: dict[Any, Any] = {}  # assigned to others
        self._gone: set[Any] = set()  # stored, and deleted or assigned as others
        self._state: object = None  # of what is stored, when these were right
        # json.dumps takes a dictionary for empty, whatever its methods say, if there
        # is nothing in the memory of the type that this one derives from.
        super().__setitem__(_NOBODY, _NOBODY)

    def _stored_len(self) -> int:
        raise NotImplementedError

    def _stored_state(self) -> object:
        """Give what is another object once other keys may be stored."""
        return None

    def _stored_keys(self) -> Iterator[Any]:
        raise NotImplementedError

    def _stored(self, key: Any, *, keep: bool) -> Any:
        """Give a stored value, or raise ``KeyError``; `keep` what may be changed."""
        raise NotImplementedError

    def _has_stored(self, key: Any) -> bool:
        try:
            self._stored(key, keep=False)
        except KeyError:
            return False
        return True

    def changes(self) -> tuple[Any, ...]:
        """Give what was assigned to stored keys, to others, and what was deleted."""
        return self._put, self._added, self._gone

    def apply(self, changes: tuple[Any, ...]) -> None:
        """Take over what was changed in another of this kind."""
        self._put, self._added, self._gone = changes
        self._state = None

    def _settle(self) -> None:
        """Have the changes fit what is stored, of which others delete, and add to it.

        What was assigned to a key that they deleted is deleted with it.
        """
        state = self._stored_state()
        if state is self._state:
            return
        self._put = {k: value for k, value in self._put.items() if self._has_stored(k)}
        self._gone = {k for k in (*self._gone, *self._added) if self._has_stored(k)}
        self._state = state

    @property
    def untouched(self) -> bool:
        """Whether nothing was assigned and nothing deleted."""
        return not (self._put or self._added or self._gone)

    def _get(self, key: Any, *, keep: bool) -> Any:
        hash(key)  # a list is no key, and says so
        if not self.untouched:
            self._settle()
            if key in self._put:
                return self._put[key]
            if key in self._added:
                return self._added[key]
            if key in self._gone:
                raise KeyError(key)
        return self._stored(key, keep=keep)

    def peek(self, key: K) -> V:
        """Give a value to look at: nothing is kept for changes that may be made to it.

        Raises
        ------
        KeyError
            There is none.
        """
        value: V = self._get(key, keep=False)
        return value

    def __getitem__(self, key: K) -> V:
        """Give a value."""
        value: V = self._get(key, keep=True)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        """Keep a value from now on."""
        hash(key)
        self._settle()
        if key not in self._added and key not in self._gone and self._has_stored(key):
            self._put[key] = value
        else:
            self._added[key] = value

    def __delitem__(self, key: K) -> None:
        """Forget a value."""
        self._settle()
        if key in self._added:
            del self._added[key]
            return
        if key in self._gone or not self._has_stored(key):
            raise KeyError(key)
        self._put.pop(key, None)
        self._gone.add(key)

    def __contains__(self, key: object) -> bool:
        """Tell whether there is such a key."""
        hash(key)
        if not self.untouched:
            self._settle()
            if key in self._put or key in self._added:
                return True
            if key in self._gone:
                return False
        return self._has_stored(key)

    def __len__(self) -> int:
        """Count the keys."""
        self._settle()
        return self._stored_len() - len(self._gone) + len(self._added)

    def __iter__(self) -> Iterator[K]:
        """Go through the keys, in order; added ones last."""
        self._settle()
        for key in self._stored_keys():
            if key not in self._gone:
                yield key
        yield from self._added

    def __reversed__(self) -> Iterator[K]:
        """Go through the keys backwards."""
        return reversed(list(self))

    # The mixin's methods, which go through those above.
    get = MutableMapping.get  # type: ignore[assignment]  # dict's is overloaded
    setdefault = MutableMapping.setdefault  # type: ignore[assignment]  # as get
    update = MutableMapping.update

    def keys(self) -> KeysView[K]:  # type: ignore[override]  # a plain view
        """View the keys."""
        return _Keys(self)

    def items(self) -> ItemsView[K, V]:  # type: ignore[override]  # a plain view
        """View pairs of key and value."""
        return _Items(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]  # a plain view
        """View the values."""
        return _Values(self)

    def pop(self, key: Any, default: Any = _REQUIRED) -> Any:
        """Remove a value and give it, or the default where there is none."""
        if key in self:
            value = self[key]
            del self[key]
            return value
        if default is _REQUIRED:
            raise KeyError(key)
        return default

    def popitem(self, last: bool = True) -> tuple[K, V]:  # noqa: FBT001, FBT002  # signature of OrderedDict
        """Remove a pair, the last one or the first, and give it."""
        for key in reversed(self) if last else self:
            return key, self.pop(key)
        raise KeyError("popitem(): the mapping is empty")

    def move_to_end(self, key: K, last: bool = True) -> None:  # noqa: FBT001, FBT002  # signature of OrderedDict
        """Move a key to the end; to the beginning, it cannot be moved."""
        if not last:
            raise NotImplementedError("the order of what is stored stays; copy first")
        self[key] = self.pop(key)

    def clear(self) -> None:
        """Forget every value."""
        self._gone.update(self._stored_keys())
        self._put.clear()
        self._added.clear()

    def copy(self) -> OrderedDict[K, V]:  # type: ignore[override]  # no LazyDict
        """Give an ordinary dictionary with the same values."""
        return OrderedDict((key, self[key]) for key in self)

    @classmethod
    def fromkeys(  # no LazyDict
        cls, keys: Iterable[Any], value: Any = None
    ) -> OrderedDict[Any, Any]:
        """Give an ordinary dictionary of these keys."""
        return OrderedDict.fromkeys(keys, value)

    def __eq__(self, other: object) -> bool:
        """Compare with any mapping; nothing is kept for it."""
        if not isinstance(other, (dict, LazyDict)):
            return NotImplemented
        if len(self) != len(other):
            return False
        if isinstance(other, OrderedDict) and list(self) != list(other):
            return False
        look = other.peek if isinstance(other, LazyDict) else other.__getitem__
        # What is the same object is equal, as in any dictionary.
        return all(
            key in other
            and ((mine := self.peek(key)) is (theirs := look(key)) or mine == theirs)
            for key in self
        )

    def __ne__(self, other: object) -> bool:
        """Compare with any mapping."""
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]  # a dictionary has none

    def __or__(self, other: Any) -> Any:
        """Merge into an ordinary dictionary."""
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        """Merge into an ordinary dictionary."""
        return other | self.copy()

    def __ior__(self, other: Any) -> Any:
        """Assign what another mapping has."""
        self.update(other)
        return self

    def __repr__(self) -> str:
        """Show how many there are, and the first keys."""
        first = [repr(key) for key, _ in zip(self, range(3), strict=False)]
        more = ", ..." if len(self) > len(first) else ""
        return f"<{type(self).__name__} of {len(self)}: {', '.join(first)}{more}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as an ordinary dictionary."""
        return OrderedDict, ([(key, self[key]) for key in self],)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle and copy as an ordinary dictionary."""
        return self.__reduce__()

    def __copy__(self) -> OrderedDict[K, V]:
        """Copy as an ordinary dictionary."""
        return self.copy()


def is_untouched(mapping: object) -> bool:
    """Tell whether a mapping is one of these, and nothing was changed in it."""
    return isinstance(mapping, LazyDict) and mapping.untouched
