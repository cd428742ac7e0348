"""What is refused before items are hidden or erased: more than they would be lost."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any, TypeAlias

from gulpio2.errors import ChunkMismatchError, FormatError, ItemNotFoundError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import stored_crc32
from gulpio2.format.gmeta import end_of, refuse_cut_data
from gulpio2.format.jpeg_markers import EOI, SOI
from gulpio2.format.layout import data_name, list_chunks, meta_name
from gulpio2.format.removals import entry_spans
from gulpio2.format.salvage import gaps_between
from gulpio2.format.wording import counted
from gulpio2.storage.base import read_map
from gulpio2.storage.paths import look_at, real_path
from gulpio2.storage.refusals import broken_link

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gulpio2.format.layout import Listing
    from gulpio2.format.removals import Removals
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "refuse_broken_link",
    "refuse_items_without_data",
    "refuse_other_data",
    "refuse_unknown_chunks",
    "refuse_unknown_items",
    "refuse_what_cannot_be_rewritten",
]

_Pair: TypeAlias = "tuple[str, dict[str, Any]]"

# Bytes read at once.
_BLOCK = 4 * 1024 * 1024
# Frames of a chunk that tell whether its data file is the right one.
_LOOKED_AT = 32
_NOT_DONE = "Nothing was changed"


def refuse_unknown_chunks(
    listing: Listing, chunks: Collection[int], path: StrPath
) -> None:
    """Refuse to look in chunks of which there is no map."""
    if unknown := sorted({*chunks}.difference(listing.chunks, listing.meta_only)):
        raise ItemNotFoundError(
            f"there is no chunk {', '.join(map(str, unknown))} in {path}. Nothing was "
            "deleted (N is that of data_N.gulp)"
        )


def refuse_unknown_items(
    ids: Collection[str],
    removals: Removals,
    chunks: Collection[int] | None,
    path: StrPath,
    *,
    may_be_hidden: bool,
) -> None:
    """Refuse items that are in no map, unless all were deleted and may have been.

    Parameters
    ----------
    ids : collection of str
        Items that no map has; at least one.
    removals : Removals
        What was deleted.
    chunks : collection of int, optional
        Where they were looked for. Default: everywhere.
    path : str or path
        The directory.
    may_be_hidden : bool
        Whether there are others to delete, as after a run that was killed.
    """
    known = {
        id_
        for number, pairs in removals.deleted.items()
        if chunks is None or number in chunks
        for id_, _ in pairs
    }
    unknown = {*ids} - known
    if not unknown and may_be_hidden:
        return
    name, others = min(unknown or ids), len(ids) - 1
    names = " or ".join(map(data_name, sorted(chunks or ()))) or "no chunk"
    raise ItemNotFoundError(
        f"no item {name!r} in "
        + (f"{path}" if chunks is None else f"{names} of {path}")
        + (f", nor {counted(others, 'other')}" if others else "")
        + ("" if unknown else ": deleted already")
        + ". Nothing was deleted (`gulp2 ls` lists the items)",
        name,
    )


def refuse_items_without_data(
    store: Store, ids: Collection[str], chunks: Collection[int] | None = None
) -> None:
    """Refuse items of chunks whose data file is missing: they are not unknown.

    With `chunks` those alone are looked at.
    """
    for number in list_chunks(store.names()).meta_only:
        if chunks is not None and number not in chunks:
            continue
        _, there = read_map(store, meta_name(number))
        if found := sorted(there.keys() & ids):
            raise _without_data(store, number, found[0], "is missing", "Put the file")


def refuse_broken_link(store: Store, number: int, id_: str) -> None:
    """Refuse an item whose data file is a link that leads nowhere."""
    if target := broken_link(store.path(data_name(number))):
        why = f"is a link to {target}, which is not there"
        raise _without_data(store, number, id_, why, "Bring what it leads to")


def _without_data(
    store: Store, number: int, id_: str, why: str, put: str
) -> ChunkMismatchError:
    return ChunkMismatchError(
        f"item {id_!r} is in {store.path(meta_name(number))}, whose data file "
        f"{data_name(number)} {why}: the directory is damaged. Nothing was deleted. "
        f"{put} back and delete again, or run `gulp2 repair`, which copies what is "
        "left into a new directory"
    )


def refuse_what_cannot_be_rewritten(
    store: Store, number: int, names: Collection[str]
) -> None:
    """Refuse a chunk of which a file is missing, or the data file is a link."""
    for name in (data_name(number), meta_name(number)):
        if name not in names:
            raise FormatError(
                f"{store.path(name)} is missing, and items of this chunk were deleted. "
                "Put it back. If the chunk is not to be had again, 'gulp2 repair' "
                "copies what is left"
            )
    path = store.path(data_name(number))
    state = look_at(path, follow=False)
    if state is not None and stat.S_ISLNK(state.st_mode):
        raise FormatError(
            f"{path} is a link, and the deleted frames would stay in the file that it "
            f"leads to ({real_path(path)}). Put that file in the place of the link "
            "before compacting"
        )


def refuse_other_data(store: Store, number: int, removals: Removals) -> None:
    """Refuse to rewrite a data file that does not fit its map.

    It may have been cut, be another one, or hold more than the map and the list of
    deleted items speak of: frames that a map has lost.
    """
    where = store.path(meta_name(number))
    _, entries = read_map(store, meta_name(number))
    kept, gone = list(entries.items()), removals.deleted[number]
    size, mapped = store.size(data_name(number)), end_of(entries)
    refuse_cut_data(
        store.path(data_name(number)),
        size,
        mapped,
        f"{_NOT_DONE}. Put the whole file back and compact again, or have 'gulp2 "
        "repair' copy what is left to a new directory, without the deleted items",
    )
    spans = [*_spans_of(kept), *_spans_of(gone), *removals.erased.get(number, ())]
    end = max((stop for _, stop in spans), default=0)
    looked_at = [
        # Of an interrupted compaction deleted frames are gone already.
        *_looks(store, number, kept, may_be_erased=False),
        *([] if mapped else _looks(store, number, gone, may_be_erased=True)),
    ]
    wrong = len(looked_at) - sum(looked_at)
    # One or two frames may be damaged in a file that is the right one.
    if 2 * wrong > len(looked_at) and (len(looked_at) > 2 or size != end):
        raise FormatError(
            f"{store.path(data_name(number))} is not the data file that {where} speaks "
            f"of: of {counted(len(looked_at), 'frame')} that were looked at, {wrong} "
            f"{'is' if wrong == 1 else 'are'} not what "
            f"was stored, and others would be erased. {_NOT_DONE}. Have data files "
            "changed places? Put the right one back; or 'gulp2 repair' copies what is "
            "left to a new directory, without the deleted items. 'gulp2 check --deep' "
            "tells more"
        )
    _refuse_frames_of_nobody(store, number, spans, size)


def _spans_of(pairs: Iterable[_Pair]) -> Iterator[tuple[int, int]]:
    for _, entry in pairs:
        yield from entry_spans(entry)


def _looks(
    store: Store, number: int, pairs: Sequence[_Pair], *, may_be_erased: bool
) -> Iterator[bool]:
    """Tell of some frames, from all over a chunk, whether they are what was stored."""
    name = data_name(number)
    size = store.size(name)
    frames = [
        (entry, frame)
        for _, entry in pairs
        for frame in range(len(entry["frame_info"]))
    ]
    for entry, frame in frames[:: max(1, len(frames) // _LOOKED_AT)]:
        loc, pad, length = entry["frame_info"][frame]
        if may_be_erased and loc + length > size:
            continue
        jpeg = store.read_at(name, loc, length - pad)
        known = stored_crc32(entry, [frame])
        if known is None:
            is_right = jpeg.startswith(SOI) and jpeg.endswith(EOI)
        else:
            is_right = [crc32_of(jpeg)] == known
        yield is_right or (may_be_erased and jpeg.count(0) == len(jpeg))


def _refuse_frames_of_nobody(
    store: Store, number: int, spans: Iterable[tuple[int, int]], size: int
) -> None:
    """Refuse to erase bytes that were not deleted, but may be lost from the map."""
    name = data_name(number)
    for start, stop in gaps_between(spans, size):
        for first in range(start, stop, _BLOCK):
            block = store.read_at(name, first, min(_BLOCK, stop - first))
            if block.count(0) < len(block):
                # Not told apart: the next append seals in what a killed one left, and
                # an older map that was put back ends there as well.
                raise FormatError(
                    f"{store.path(name)} holds bytes from {first} on that neither its "
                    "map nor the list of deleted items speaks of: they may be frames "
                    f"of items that {meta_name(number)} has lost, or what an append "
                    "left that was killed, and would be erased. Nothing was changed. "
                    "Put the whole map back, if it has lost any; or have 'gulp2 "
                    "repair' copy what is left to a new directory, without them and "
                    "without the deleted items; 'gulp2 check' tells more"
                )
