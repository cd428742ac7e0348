"""An item of an index: its record for readers, and its entry as the map has it."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.errors import MapChangedError
from gulpio2.format.altered import crc32_to_compare
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import EXTRAS_KEY, EntryExtras, load_extras
from gulpio2.format.gmeta import dump_text, validate_entry
from gulpio2.format.times import FrameTimes, TimeRuns, runs_of
from gulpio2.storage.index.columns import ALTERED, HAS_CRC32, IRREGULAR
from gulpio2.storage.index.spans import FrameSpans

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        ItemsView,
        KeysView,
        Mapping,
        Sequence,
        ValuesView,
    )

    from gulpio2.storage.index.columns import Columns

__all__ = [
    "IndexRecord",
    "IndexedEntry",
    "find_entry",
    "first_entry",
    "is_unchanged",
    "load_entry",
    "times_in",
]

# Places in a map that are tried for an entry: its id may stand in metadata as well.
_MOST_PLACES = 100


class _Unmade:
    """Stands for a part of an entry that nobody has asked for."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class IndexedEntry(OrderedDict[str, Any]):
    """An entry of a map; its parts are made when they are asked for.

    Its ``frame_info`` is a `FrameSpans`, until somebody wants all of the entry.
    """

    def __getitem__(self, key: str) -> Any:
        """Give a part."""
        value = OrderedDict.__getitem__(self, key)
        if type(value) is _Unmade:
            value = self[key] = value.make()
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Give a part, or something else where there is none."""
        return self[key] if key in self else default  # noqa: SIM401  # it is this very method

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Give a part, which is put there where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any, **named: Any) -> Any:
        """Remove a part and give it, or the `default` where there is none."""
        return OrderedDict.pop(self._listed(), key, *default, **named)

    def popitem(self, last: bool = True) -> tuple[str, Any]:  # noqa: FBT001, FBT002  # signature of OrderedDict
        """Remove a part and give it with its key."""
        return OrderedDict.popitem(self._listed(), last)

    def _listed(self) -> IndexedEntry:
        """Make every part, and of the spans the list that they stand for."""
        for key in self:
            value = self[key]
            if isinstance(value, FrameSpans):
                self[key] = value.to_list()
        return self

    def is_as_stored(self, key: str) -> bool:
        """Tell whether nobody can have changed a part, since nobody has seen it."""
        value = OrderedDict.get(self, key)
        return type(value) is _Unmade or (
            isinstance(value, FrameSpans) and not value.changed
        )

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a plain view
        """Give keys, the spans as a list: dict() and ** go this way."""
        return OrderedDict.keys(self._listed())

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]  # a plain view
        """Give pairs, the spans as a list: programs that write JSON go this way."""
        return OrderedDict.items(self._listed())

    def values(self) -> ValuesView[Any]:  # type: ignore[override]  # a plain view
        """Give values, the spans as a list."""
        return OrderedDict.values(self._listed())

    def copy(self) -> OrderedDict[str, Any]:  # type: ignore[override]  # an ordinary one
        """Give an ordinary mapping with the same parts."""
        return OrderedDict(self.items())

    def __copy__(self) -> OrderedDict[str, Any]:
        """Give an ordinary mapping with the same parts."""
        return self.copy()

    def __eq__(self, other: object) -> bool:
        """Compare with a mapping."""
        if isinstance(other, IndexedEntry):
            other._listed()
        return OrderedDict.__eq__(self._listed(), other)

    def __ne__(self, other: object) -> bool:
        """Compare with a mapping."""
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # a dictionary has none

    def __or__(self, other: Any) -> Any:
        """Merge into an ordinary mapping."""
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        """Merge into an ordinary mapping."""
        return other | self.copy()

    def __repr__(self) -> str:
        """Show it as the mapping that it stands for."""
        return repr(self.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as an ordinary mapping."""
        return OrderedDict, (list(self.items()),), vars(self) or None


class _Index(Protocol):
    """What is asked of a `gulpio2.storage.index.index.Index`."""

    @property
    def state(self) -> object: ...

    def record(self, id_: str) -> IndexRecord | None: ...


# Not frozen, which would make it slow to make, for each clip.
@dataclass(slots=True, eq=False)
class IndexRecord:
    """What an index says of an item. See `gulpio2.record.ItemRecord`."""

    columns: Columns
    row: int
    read_text: Callable[[Columns, int], bytes]
    """Reads the text of a row's entry from the map."""
    index: _Index | None = None
    """What it was looked up in; None where that does not matter any more."""
    state: object = None
    """What the index had loaded then; see `Index.state`."""

    @property
    def frame_info(self) -> FrameSpans:
        """The spans."""
        return FrameSpans(self.columns, self.row)

    @property
    def number(self) -> int:
        """Number of the chunk."""
        return self.columns.chunk.item(self.row)

    @property
    def num_frames(self) -> int:
        """Frames stored."""
        return self.columns.num_frames.item(self.row)

    @property
    def num_bytes(self) -> int:
        """Bytes of the records, padding included."""
        first, last = self.columns.frame_bounds[self.row : self.row + 2].tolist()
        return int(self.columns.frame_length[first:last].sum(dtype="i8"))

    @property
    def entry(self) -> OrderedDict[str, Any]:
        """The entry, made anew."""
        columns, row = self.columns, self.row
        if columns.flags.item(row) & IRREGULAR:
            return load_entry(self.read_text(columns, row), columns.id_at(row))
        made = IndexedEntry(
            frame_info=self.frame_info, meta_data=_load(self._meta_text)
        )
        if columns.extras_bounds.item(row) < columns.extras_bounds.item(row + 1):
            made[EXTRAS_KEY] = _Unmade(self._extras)
        return made

    @property
    def placed(self) -> OrderedDict[str, Any]:
        """What says where the frames are: the entry, or the spans of an irregular one.

        Nothing is read from the map for it.
        """
        if self.columns.flags.item(self.row) & IRREGULAR:
            return OrderedDict(frame_info=self.frame_info)
        return self.entry

    @property
    def meta(self) -> dict[str, Any]:
        """A copy of the metadata; {} where there is none."""
        metas = _load(self._meta_text)
        return dict(metas[0] or {}) if metas else {}

    def extras(self, where: str) -> EntryExtras:
        """Give checksums, times and source facts, where it has them."""
        return load_extras(self.entry, where=where)

    def times(self, where: str) -> TimeRuns | None:
        """Give the times as they are stored, where it has some."""
        text, flags = self._extras_text, self.columns.flags.item(self.row)
        if not flags & HAS_CRC32:  # of extras without checksums nothing holds
            return runs_of(self.extras(where)) if text or flags & IRREGULAR else None
        return times_in(json.loads(text))

    def frame_times(self, where: str) -> FrameTimes | None:
        """Give a time for each frame, where it has some."""
        times = self.times(where)
        return None if times is None else times.of_frames

    def spans(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Give offset and length of the JPEG of each of these frames.

        Raises
        ------
        MapChangedError
            The index was loaded again since, of a map by which the frames are others.
        """
        if self.index is not None and self.index.state is not self.state:
            self._settle(self.index)
        return self.frame_info.jpeg_spans(indices)

    def _settle(self, index: _Index) -> None:
        """Make sure that an index of later maps has the same frames, or more.

        Data files are opened for what it says, and may have others by now.
        """
        state, id_, frames = index.state, self.columns.id_at(self.row), self.num_frames
        now = index.record(id_)
        if (
            now is None
            or now.number != self.number
            or now.num_frames < frames
            or now.frame_info[:frames] != self.frame_info.to_list()
            or now.crc32(range(frames)) != self.crc32(range(frames))
        ):
            raise MapChangedError(
                f"item {id_!r} of chunk {self.number} was written anew or deleted "
                "since it was found, and its directory was closed meanwhile. Ask the "
                "directory for it again"
            )
        self.state = state

    def crc32(self, indices: Sequence[int]) -> list[int] | None:
        """Give the checksum of each of these frames; None where there are none."""
        flags = self.columns.flags.item(self.row)
        if flags & HAS_CRC32:
            first = self.columns.frame_bounds.item(self.row)
            if isinstance(indices, range) and indices.step > 0:
                part = slice(first + indices.start, first + indices.stop, indices.step)
                checksums: list[int] = self.columns.frame_crc32[part].tolist()
                return checksums
            checksum = self.columns.frame_crc32.item
            return [checksum(first + index) for index in indices]
        if flags & IRREGULAR:
            return crc32_to_compare(self.entry, indices)
        return None

    def is_edited(self, id_: str) -> bool:
        """Tell whether the entry, of this id, is not what its check says."""
        del id_
        return bool(self.columns.flags.item(self.row) & ALTERED)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the entry: the columns stay where they are."""
        return OrderedDict, (list(self.entry.items()),)

    def lasting(self) -> IndexRecord:
        """Give a record whose entry stays what it is now, whatever the map says."""
        if not self.columns.flags.item(self.row) & IRREGULAR:
            return IndexRecord(self.columns, self.row, self.read_text)
        text = self.read_text(self.columns, self.row)
        return IndexRecord(self.columns, self.row, lambda _columns, _row: text)

    @property
    def _meta_text(self) -> bytes:
        first, last = self.columns.meta_bounds[self.row : self.row + 2].tolist()
        return self.columns.meta_text[first:last].tobytes()

    @property
    def _extras_text(self) -> bytes:
        first, last = self.columns.extras_bounds[self.row : self.row + 2].tolist()
        return self.columns.extras_text[first:last].tobytes()

    def _extras(self) -> OrderedDict[str, Any]:
        extras: OrderedDict[str, Any] = _load(self._extras_text)
        if extras.get("crc32") is True:
            first, last = self.columns.frame_bounds[self.row : self.row + 2].tolist()
            packed = self.columns.frame_crc32[first:last].tobytes()
            extras["crc32"] = base64.b64encode(packed).decode("ascii")
        return extras


def first_entry(
    first: IndexRecord | Mapping[str, Any] | None,
) -> Mapping[str, Any] | None:
    """Give the entry that `Index.first` stands for, which is made only now."""
    return first.entry if isinstance(first, IndexRecord) else first


def times_in(extras: Mapping[str, Any]) -> TimeRuns | None:
    """Give the times of a row that has checksums, of its extras; None: there are none.

    They were looked at when the index was made.
    """
    if not (extras.get("time_base") and extras.get("pts")):
        return None
    numerator, denominator = extras["time_base"]
    return TimeRuns((numerator, denominator), extras["pts"], extras.get("source", {}))


def load_entry(text: bytes, id_: str) -> OrderedDict[str, Any]:
    """Read an entry's own text, which begins with its id.

    Raises
    ------
    MapChangedError
        It is not what it was when the index was made.
    """
    try:
        entry: OrderedDict[str, Any] = _load(b"{%s}" % text)[id_]
        fault = validate_entry(entry)
    except (ValueError, KeyError) as cause:
        fault = str(cause)
    if fault:
        raise MapChangedError(
            f"an entry of the map has changed since the directory was opened: {fault}. "
            "Open the directory again"
        )
    return entry


def is_unchanged(entry: OrderedDict[str, Any], record: IndexRecord) -> bool:
    """Compare an entry that was handed out with what the index says."""
    fresh = record.entry
    return list(entry) == list(fresh) and all(
        # By repr, NaN equals NaN.
        (isinstance(entry, IndexedEntry) and entry.is_as_stored(key))
        or repr(entry[key]) == repr(fresh[key])
        for key in fresh
    )


def find_entry(data: bytes, id_: str, length: int, crc32: int) -> bytes:
    """Find the text of an entry in a map, wherever it stands; nothing if it is not."""
    # Other programs may write ids as they are read.
    for key in dict.fromkeys((dump_text(id_), json.dumps(id_, ensure_ascii=False))):
        sought = key.encode("utf-8")
        at = data.find(sought)
        for _ in range(_MOST_PLACES):
            if at < 0:
                break
            if crc32_of(text := data[at : at + length]) == crc32:
                return text
            at = data.find(sought, at + 1)
    return b""


_decode = json.JSONDecoder(object_pairs_hook=OrderedDict).decode


def _load(text: bytes) -> Any:
    return _decode(text.decode("utf-8", "surrogatepass"))
