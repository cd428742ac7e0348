"""The spans of an item's frames, as the list that the map has of them."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gulpio2.storage.index.columns import Columns

__all__ = ["FrameSpans"]


class _Triplet(list[int]):
    """A triplet, of which the list becomes one of its own once somebody changes it."""

    __slots__ = ("__weakref__", "_spans")

    def __init__(self, triplet: Iterable[int], spans: FrameSpans) -> None:
        super().__init__(triplet)
        self._spans = spans

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle and copy as a list."""
        return list, (list(self),)


def _counting(name: str) -> Callable[..., Any]:
    """Make a method of a list one whose change counts."""
    change = getattr(list, name)

    def method(self: _Triplet, *values: Any, **how: Any) -> Any:
        self._spans._mine()
        return change(self, *values, **how)

    return method


for _name in (
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend"),
    *("insert", "pop", "remove", "clear", "sort", "reverse"),
):
    setattr(_Triplet, _name, _counting(_name))


class FrameSpans(MutableSequence[Any]):
    """The ``frame_info`` of an item: a list of ``[loc, pad, length]``, made on demand.

    It equals the list that it stands for. Once it is changed it is that list.
    """

    __slots__ = ("_columns", "_first", "_given", "_last", "_own")

    def __init__(self, columns: Columns, row: int) -> None:
        self._columns = columns
        self._first, self._last = columns.frame_bounds[row : row + 2].tolist()
        self._own: list[Any] | None = None
        # Triplets that somebody has: in a list they would be the same every time.
        self._given: WeakValueDictionary[int, _Triplet] | None = None

    @property
    def changed(self) -> bool:
        """Whether it was, so that the index does not tell the spans any more."""
        return self._own is not None

    def to_list(self) -> list[Any]:
        """Give the list itself."""
        if self._own is not None:
            return self._own
        part = slice(self._first, self._last)
        columns = self._columns
        return [
            list(triplet)
            for triplet in zip(
                columns.frame_offset[part].tolist(),
                columns.frame_pad[part].tolist(),
                columns.frame_length[part].tolist(),
                strict=True,
            )
        ]

    def jpeg_spans(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Give offset and length of the JPEG of each of these frames.

        Raises
        ------
        IndexError
            The item has no such frame: there another one's begin.
        """
        if not indices:
            return []
        columns, first = self._columns, self._first
        steps = indices if isinstance(indices, range) and indices.step > 0 else None
        if steps is not None:
            least, most = steps[0], steps[-1]
        else:
            least, most = min(indices), max(indices)
        if least < 0 or most >= self._last - first:
            raise IndexError(f"frames {least} to {most} of {self._last - first}")
        if steps is not None:
            part = slice(first + steps.start, first + steps.stop, steps.step)
            lengths = (columns.frame_length[part] - columns.frame_pad[part]).tolist()
            return list(zip(columns.frame_offset[part].tolist(), lengths, strict=True))
        offset, length, pad = (
            columns.frame_offset.item,
            columns.frame_length.item,
            columns.frame_pad.item,
        )
        return [
            (offset(first + index), length(first + index) - pad(first + index))
            for index in indices
        ]

    def __len__(self) -> int:
        """Count the frames."""
        return self._last - self._first if self._own is None else len(self._own)

    def __getitem__(self, index: Any) -> Any:
        """Give a triplet, or a list of them."""
        if self._own is not None:
            return self._own[index]
        at = range(self._last - self._first)[index]
        return self._at(at) if isinstance(at, int) else [self._at(each) for each in at]

    def _at(self, at: int) -> _Triplet:
        given = self._given
        if given is None:
            given = self._given = WeakValueDictionary()
        elif (known := given.get(at)) is not None:
            return known
        columns, place = self._columns, self._first + at
        triplet = (
            columns.frame_offset.item(place),
            columns.frame_pad.item(place),
            columns.frame_length.item(place),
        )
        given[at] = made = _Triplet(triplet, self)
        return made

    def _mine(self) -> list[Any]:
        """Be a list from now on, of the triplets that somebody has and of others."""
        if self._own is None:
            own: list[Any] = self.to_list()
            given = self._given
            for at, triplet in [] if given is None else [*given.items()]:
                own[at] = triplet
            self._own, self._given = own, None
        return self._own

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace triplets."""
        self._mine()[index] = value

    def __delitem__(self, index: Any) -> None:
        """Remove triplets."""
        del self._mine()[index]

    def insert(self, index: int, value: Any) -> None:
        """Insert a triplet."""
        self._mine().insert(index, value)

    def __eq__(self, other: object) -> bool:
        """Compare with a list."""
        if isinstance(other, FrameSpans):
            return self.to_list() == other.to_list()
        return self.to_list() == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a list has none

    def __lt__(self, other: Any) -> bool:
        """Compare with a list."""
        return self.to_list() < _listed(other)

    def __gt__(self, other: Any) -> bool:
        """Compare with a list."""
        return self.to_list() > _listed(other)

    def __le__(self, other: Any) -> bool:
        """Compare with a list."""
        return self.to_list() <= _listed(other)

    def __ge__(self, other: Any) -> bool:
        """Compare with a list."""
        return self.to_list() >= _listed(other)

    def __add__(self, other: Any) -> list[Any]:
        """Give a list with more."""
        return self.to_list() + list(other)

    def __radd__(self, other: list[Any]) -> list[Any]:
        """Give a list with more before it, as in a sum of lists."""
        return other + self.to_list()

    def __mul__(self, times: int) -> list[Any]:
        """Give a list of it, so many times."""
        return self.to_list() * times

    __rmul__ = __mul__

    def __imul__(self, times: int) -> FrameSpans:
        """Be the list so many times."""
        own = self._mine()
        own *= times
        return self

    def copy(self) -> list[Any]:
        """Give a list of the same triplets."""
        return list(self.to_list())

    def sort(self, **how: Any) -> None:
        """Put the triplets in order."""
        self._mine().sort(**how)

    def __repr__(self) -> str:
        """Show the list."""
        return repr(self.to_list())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a list."""
        return list, (self.to_list(),)


def _listed(spans: Any) -> list[Any]:
    return spans.to_list() if isinstance(spans, FrameSpans) else spans
