"""What a map says, which may be damaged or lost, or the index in its place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.errors import GulpError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.format.gmeta import advice_for_pickle, load_pairs, validate_entry
from gulpio2.format.layout import INDEX_NAME, meta_name
from gulpio2.format.removals import entry_spans, meets_spans
from gulpio2.format.salvage import salvage_map
from gulpio2.format.wording import cannot_be_read, counted
from gulpio2.repair.entries import known_part, read_entry
from gulpio2.repair.report import Loss
from gulpio2.repair.unread import why_unread
from gulpio2.storage.index.composing import row_in
from gulpio2.storage.index.entries import IndexRecord, find_entry
from gulpio2.storage.index.file import map_index
from gulpio2.storage.index.lost import lost_items
from gulpio2.storage.index.texts import MapTexts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gulpio2.format.removals import Removals
    from gulpio2.repair.data_file import DataFile
    from gulpio2.storage.base import Store
    from gulpio2.storage.index.columns import Columns, IndexContent

__all__ = ["IndexedMaps", "MapReading", "items_left_out", "no_map", "read_map"]

_Pair = tuple[str, dict[str, Any]]

_UNKNOWN = f"whether items of {INDEX_NAME} are lost is not known"


@dataclass(slots=True)
class MapReading:
    """What is known of a map."""

    pairs: list[_Pair] = field(default_factory=list)
    """Id and entry, of all entries that have the form of one."""
    sound: bool = False
    """Whether these are all of the entries that it had."""
    lost: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: bytes | None = None
    """Its bytes; None where there are none to be had."""
    is_json: bool = False
    """Whether it could be parsed as a whole."""
    fault: str = ""
    """Why the system refuses to read it; empty where it does not."""
    is_other: bool = False
    """Whether it is whole, and the index was made of another."""


def no_map(number: int) -> Loss:
    """Say that there is no map."""
    text = "is missing: lost, or its chunk was never committed"
    return Loss(meta_name(number), text)


def items_left_out(
    store: Store, numbers: Iterable[int], present: Collection[str]
) -> Iterator[tuple[int, Loss]]:
    """Tell of the items that the maps of some chunks have lost, by their chunks.

    And of what cannot be read this time, with the first of the chunks: it would tell.
    """
    first = min(numbers)
    unread: list[Loss] = []

    def tell(name: str, offset: int | None, cause: OSError) -> None:
        unread.append(Loss(name, f"{_UNKNOWN}: {why_unread(cause)}"))

    try:
        for number, id_ in lost_items(store, numbers, present, tell):
            yield number, _left_out(number, id_)
    except (OSError, ValueError) as cause:  # of the index, which was read before
        error = cause if isinstance(cause, OSError) else OSError(str(cause))
        tell(INDEX_NAME, None, error)
    yield from ((first, loss) for loss in dict.fromkeys(unread))


def _left_out(number: int, id_: str) -> Loss:
    """Say that the index has an item that the map has not.

    An older map may have been put back, or a program have taken the item out. Nobody
    knows which, so the copy is made without the item.
    """
    text = (
        f"is in {INDEX_NAME} and not in the map any more, and was not deleted: if an "
        "older map was put back, move it away, and a repair takes its items from the "
        "index"
    )
    return Loss(meta_name(number), text, item=id_)


def read_map(
    store: Store, file: DataFile, indexed: IndexedMaps, removals: Removals | None
) -> MapReading:
    """Read the map of a chunk whose data file is open.

    Where the map is damaged, the index is asked. It is derived from the maps, and may
    be older than they are. It has all of a map whose size and time are the same as when
    the index was made. Else it has items that were there once, and those are taken that
    neither the map itself nor ``deleted.json`` (`removals`; None if it cannot be read)
    tells of.
    """
    reading = _as_it_is(store, file.number)
    told = indexed.of(file.number, reading.data)
    if told is None:
        if not reading.sound and indexed.fault:
            reading.notes.append(indexed.fault)
            indexed.fault = ""  # it is told once
        return reading
    trusted = {id_ for id_, entry in reading.pairs if read_entry(id_, entry)[1]}
    is_whole = not reading.lost and len(trusted) == len(reading.pairs)
    if told.is_current and not is_whole:
        why = "damaged" if reading.is_json else reading.fault or reading.lost[0].reason
        text = f"{meta_name(file.number)}: {why}. {INDEX_NAME} has all of it"
        return MapReading(told.pairs, sound=True, notes=[text])
    if reading.is_json:  # it was changed since, perhaps on purpose
        return replace(reading, is_other=True)
    rows = dict(_still_there(told.pairs, file, removals))
    taken = len(rows.keys() - trusted)
    if not taken:
        return reading
    ours = dict(reading.pairs)
    pairs = [(id_, ours[id_] if id_ in trusted else rows[id_]) for id_ in rows]
    # An entry of the map whose id is damaged has its frames where one of these has.
    places = {span for _, entry in pairs for span in entry_spans(entry)[:1]}
    pairs += [
        (id_, entry)
        for id_, entry in reading.pairs
        if id_ not in rows
        and (id_ in trusted or places.isdisjoint(entry_spans(entry)[:1]))
    ]
    (loss,) = reading.lost
    text = (
        f"{loss.reason}; {counted(taken, 'item')} taken from {INDEX_NAME}, as they "
        "were when it was made: what was changed since then is lost"
    )
    return replace(reading, pairs=pairs, lost=[replace(loss, reason=text)])


def _as_it_is(store: Store, number: int) -> MapReading:
    """Read what can be read of the file."""
    name = meta_name(number)
    try:
        data = store.read(name)
    except FileNotFoundError:
        return MapReading(lost=[no_map(number)])
    except OSError as cause:
        lost = [Loss(name, why_unread(cause))]
        return MapReading(lost=lost, fault=cannot_be_read(cause))
    try:
        pairs = load_pairs(data)
    except (ValueError, RecursionError) as cause:
        found = salvage_map(data)
        text = f"cannot be read as a whole ({cause}); {len(found)} entries can"
        if advice := advice_for_pickle(data):
            text += f". {advice}: then repair again"
        return MapReading(found, lost=[Loss(name, text)], data=data)
    reading = MapReading(sound=True, data=data, is_json=True)
    for id_, entry in pairs:
        if fault := validate_entry(entry):
            text = f"its entry {fault[:200]}"
            reading.lost.append(Loss(name, text, item=id_))
            reading.sound = False
            continue
        part, unknown = known_part(id_, entry)
        reading.pairs.append((id_, part))
        if unknown:
            keys = ", ".join(map(repr, unknown))[:200]
            text = f"not copied, as the format does not have such keys: {keys}"
            reading.lost.append(Loss(name, text, item=id_))
        elif part is not entry:
            text = f"{name}, item {id_!r}: has its extras under a damaged key"
            reading.notes.append(f"{text}, and they are whole by their check")
    return reading


def _still_there(
    pairs: Iterable[_Pair], file: DataFile, removals: Removals | None
) -> list[_Pair]:
    """Leave out of an earlier map the items that may not be there any more."""
    if removals is None:
        return []
    deleted: dict[str, list[Any]] = {}
    for id_, gone in removals.deleted.get(file.number, ()):
        deleted.setdefault(id_, []).append(gone["frame_info"])
    erased = removals.erased.get(file.number, [])
    left = [
        (id_, entry)
        for id_, entry in pairs
        if entry["frame_info"] not in deleted.get(id_, ())
        and not any(meets_spans(span, erased) for span in entry_spans(entry))
    ]
    # Frames without checksums must all be there: where one is not, GulpIO2 may have
    # written another data file.
    if all(
        file.frame_at(loc, length - pad, None) is not None
        for _, entry in left
        if EXTRAS_KEY not in entry
        for loc, pad, length in entry["frame_info"]
    ):
        return left
    return [(id_, entry) for id_, entry in left if EXTRAS_KEY in entry]


class _IndexedMap(NamedTuple):
    """One map as the index has it."""

    pairs: list[_Pair]
    """Id and entry, in the order of the map; each as it was written."""
    is_current: bool
    """Whether no row is missing or damaged, and the map has the size and time that it
    had: then it is the same but for damage."""


class IndexedMaps:
    """The maps of a directory as its index has them, if there is one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.fault = ""
        """Why the index cannot be read, known after the first call of `of`; empty if
        it can, or there is none."""

    @cached_property
    def _content(self) -> IndexContent | None:
        try:
            return map_index(self.store.path(INDEX_NAME))
        except FileNotFoundError:
            return None
        except OSError as cause:
            self.fault = f"{INDEX_NAME}: {why_unread(cause)}"
            return None
        except ValueError as cause:
            self.fault = f"{INDEX_NAME}: cannot be used: {cause}"
            return None

    def of(self, number: int, data: bytes | None) -> _IndexedMap | None:
        """Give the map of a chunk; None where the index has none, or the same.

        The `data` are those of the map as it is; None where it cannot be read.
        """
        content = self._content
        if content is None or (known := row_in(content.chunks, number)) is None:
            return None
        _, *then, crc32, items = known
        if data is not None and crc32_of(data) == crc32:
            return None
        pairs = []
        for row in np.flatnonzero(content.columns.chunk == number).tolist():
            try:
                pairs.append(_pair(content.columns, row, data or b""))
            except (GulpError, ValueError, KeyError, TypeError, RecursionError):
                continue  # damaged, or of a form that only the map has
        now = MapTexts(self.store.path("")).state(number)
        return _IndexedMap(pairs, len(pairs) == items and now == tuple(then))


def _pair(columns: Columns, row: int, data: bytes) -> _Pair:
    """Give id and entry of a row.

    Raises
    ------
    GulpError, ValueError, KeyError, TypeError, RecursionError
        It is not what was written, or cannot be told without the map.
    """
    if not columns.is_sound(row):
        raise ValueError("the row has changed")
    id_ = columns.id_at(row)

    def text(columns: Columns, row: int) -> bytes:
        length, crc32 = columns.entry_length.item(row), columns.entry_crc32.item(row)
        return find_entry(data, id_, length, crc32)

    entry = dict(IndexRecord(columns, row, text).entry.items())
    if validate_entry(entry) or not read_entry(id_, entry)[1]:
        raise ValueError("the entry is none, or its check does not fit")
    return id_, entry
