"""Deleting items: hidden at once, erased when their chunk is compacted."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

from gulpio2.errors import ReadRangeError
from gulpio2.format.gmeta import dump_gmeta, load_gmeta, may_have_an_entry
from gulpio2.format.layout import data_name, meta_name
from gulpio2.format.other_frames import known_crc32
from gulpio2.format.removals import Removals, entry_spans, merge_spans
from gulpio2.storage.base import read_map, require_known_version
from gulpio2.storage.beside_writers import (
    refuse_writers,
    replacing_unless_changed,
    settled_listing,
    settled_map,
    without_writers,
)
from gulpio2.storage.data_file import has_frame
from gulpio2.storage.index.keeping import refresh_index
from gulpio2.storage.leftovers import remove_leftovers
from gulpio2.storage.links import num_names
from gulpio2.storage.local import open_store
from gulpio2.storage.removable import (
    refuse_broken_link,
    refuse_items_without_data,
    refuse_other_data,
    refuse_unknown_chunks,
    refuse_unknown_items,
    refuse_what_cannot_be_rewritten,
)
from gulpio2.storage.removals_file import read_removals, write_removals
from gulpio2.types import no_progress
from gulpio2.unfinished import refuse_unfinished_copying
from gulpio2.verbs import each_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gulpio2.storage.base import Store, StoreWriter
    from gulpio2.types import Progress, StrPath

__all__ = [
    "Compaction",
    "Deletion",
    "compact_directory",
    "delete_items",
]

# Bytes copied at once.
_BLOCK = 4 * 1024 * 1024

# Times that a compaction notes how far it is, each of which writes all that is deleted.
# One that is killed does the rest of such a part again.
_NOTES = 32


@dataclass(frozen=True, slots=True)
class Deletion:
    """An item that was deleted."""

    id: str
    chunk: int
    frames: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """A chunk whose deleted items were erased."""

    chunk: int
    items: int
    """Deleted items whose frames are gone."""
    num_bytes: int
    """Bytes of theirs that no other item has."""
    other_names: int = 0
    """Hard links to the data file elsewhere, under which the frames are still there."""


def delete_items(
    path: StrPath,
    ids: Iterable[Any],
    *,
    chunks: Iterable[int] | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> list[Deletion]:
    """Hide items: no reader that opens the directory from now on sees them.

    Parameters
    ----------
    path : str or path
        The directory.
    ids : iterable of str or int
        The items; all of them must be there, but for some that are hidden already.
    chunks : iterable of int, optional
        Look in these chunks alone: of an item that is in two, which keeps the directory
        from being opened, one goes and the other stays.
    dry_run : bool, optional
        Only say what would be done.
    progress : Progress, optional
        Told of the bytes of each map that is done with, and once more of each that the
        index is brought up to date with.

    Returns
    -------
    list of Deletion
        In the order of chunks.

    Raises
    ------
    ItemNotFoundError
        One of them is not there, or not in `chunks`, or one of those is not; or all are
        hidden. Nothing was changed then.
    ChunkMismatchError
        The data file of one of them is missing, or a link that leads nowhere; nothing
        was changed then.
    IngestError
        A merge into the directory was interrupted; nothing was changed then.
    LockedError
        Another process writes to the directory, or has one of the chunks open for
        writing.
    TypeError
        `ids` is one id, and no list of them; or `chunks` has what is no number.

    Notes
    -----
    The frames stay in the data file until `compact_directory`. A crash between two
    chunks leaves the items of the first hidden and the others visible; deleting them
    again is all it takes.
    """
    wanted = {str(id_) for id_ in each_of(ids)}
    among = None if chunks is None else {index(number) for number in chunks}
    store = open_store(path)
    require_known_version(store, to_write=True)
    with store.lock():
        refuse_unfinished_copying(store, "deleting", ("merge",))
        if not dry_run:
            remove_leftovers(store)
        removals = read_removals(store)
        # Not the maps: those of a large directory do not fit into memory together.
        changed: dict[int, list[str]] = {}
        deletions: list[Deletion] = []
        listing = settled_listing(store)
        refuse_unknown_chunks(listing, among or (), path)
        for number in listing.chunks:
            name = meta_name(number)
            if among is not None and number not in among:
                progress(num_bytes=store.size(name))
                continue
            content = settled_map(store, number)
            # In a hundredth of the time that reading it as JSON takes.
            may_have = may_have_an_entry(content, wanted)
            entries = load_gmeta(content, where=store.path(name)) if may_have else {}
            found = [id_ for id_ in entries if id_ in wanted]
            if dry_run or not found:
                progress(num_bytes=len(content))
            if not found:
                continue
            refuse_broken_link(store, number, found[0])
            if not dry_run:
                refuse_writers(store, number)
            changed[number] = found
            hidden = removals.deleted.setdefault(number, [])
            # By a run that was killed half-way they were hidden before.
            known = dict(hidden)
            for id_ in found:
                entry = entries[id_]
                if known.get(id_) != entry:
                    hidden.append((id_, entry))
                size = sum(stop - start for start, stop in entry_spans(entry))
                frames = len(entry["frame_info"])
                deletions.append(Deletion(id_, number, frames, size))
        if missing := wanted.difference(deletion.id for deletion in deletions):
            refuse_items_without_data(store, missing, among)
            refuse_unknown_items(
                missing, removals, among, path, may_be_hidden=bool(deletions)
            )
        if not dry_run and changed:
            # First what accounts for the bytes, then what hides the items.
            write_removals(store, removals)
            for number, gone in changed.items():
                with without_writers(store, number):
                    progress(num_bytes=_hide(store, number, gone, removals))
            # It has the metadata of what was deleted.
            refresh_index(path, forgetting=True, progress=progress)
    return deletions


def _hide(store: Store, number: int, gone: Collection[str], removals: Removals) -> int:
    """Write a map without items noted as deleted; give how many bytes it had."""
    name, hidden = meta_name(number), removals.deleted[number]
    content, entries = read_map(store, name)
    there = {id_: entries.pop(id_) for id_ in gone if id_ in entries}
    places = {id_: place for place, (id_, _) in enumerate(hidden)}
    others = {
        places[id_]: (id_, entry)
        for id_, entry in there.items()
        if hidden[places[id_]][1]["frame_info"][: len(entry["frame_info"])]
        != entry["frame_info"]
    }
    store.close()  # another may have replaced the data file since it was looked at
    lost = {
        id_
        for id_ in gone
        if id_ not in there and not _has_frames(store, number, hidden[places[id_]][1])
    }
    # Appended to, or written anew with its chunk or without it, since it was noted.
    if others or lost:
        for place, pair in others.items():
            hidden[place] = pair
        kept = [pair for pair in hidden if pair[0] not in lost]
        removals.deleted[number] = kept
        if not kept:
            del removals.deleted[number]
        write_removals(store, removals)
    with replacing_unless_changed(store, name, number, content) as writer:
        writer.write(dump_gmeta(entries))
    return len(content)


def _has_frames(store: Store, number: int, entry: dict[str, Any]) -> bool:
    """Tell whether the data file may still hold frames of an entry."""
    known = known_crc32(entry)
    for frame in known.items():
        with suppress(ReadRangeError):
            if has_frame(store, data_name(number), *frame):
                return True
    return not known


def compact_directory(
    path: StrPath, *, dry_run: bool = False, progress: Progress | None = None
) -> list[Compaction]:
    """Erase the frames of deleted items.

    Parameters
    ----------
    path : str or path
        The directory.
    dry_run : bool, optional
        Only say what would be done.
    progress : Progress, optional
        Told of the bytes copied, and of those of each map that the index is brought up
        to date with.

    Returns
    -------
    list of Compaction
        One for each chunk that was rewritten.

    Raises
    ------
    FormatError
        A chunk cannot be rewritten: a file is missing or a link, or the data file is
        not the one that its map speaks of, was cut, or holds bytes that nothing speaks
        of. Nothing was changed then.
    IngestError
        A merge into the directory was interrupted; nothing was changed then.
    LockedError
        Another process writes to the directory, or has one of the chunks open for
        writing.

    Notes
    -----
    A chunk's data file is written anew and takes the old one's place in one step. The
    frames that stay keep their offsets, and holes are left between them, which take no
    room where the file system knows sparse files: so map and data file fit at every
    instant, for readers that have either open already as well. The file keeps its
    length, so that what is appended later lies where nothing ever was: a reader that
    still knows a deleted item finds zeros in its place, and no other item's frames.
    """
    tell = progress or no_progress
    store = open_store(path)
    require_known_version(store, to_write=True)
    done: list[Compaction] = []
    with store.lock():
        refuse_unfinished_copying(store, "compacting", ("merge",))
        if not dry_run:
            remove_leftovers(store)
        removals = read_removals(store)
        names = set(store.names())
        for number in sorted(removals.deleted):
            refuse_what_cannot_be_rewritten(store, number, names)
            # What another just appends would be taken for bytes of nobody.
            with without_writers(store, number):
                refuse_other_data(store, number, removals)
        chunks = sorted(removals.deleted)
        together = -(-len(chunks) // _NOTES)
        not_noted = 0
        try:
            for number in chunks:
                with nullcontext() if dry_run else without_writers(store, number):
                    compaction = _compact(
                        store, number, removals, tell, dry_run=dry_run
                    )
                done += [compaction] if compaction else []
                if dry_run:
                    continue
                del removals.deleted[number]
                not_noted += 1
                if not_noted == together:
                    write_removals(store, removals)
                    not_noted = 0
        finally:
            if not_noted:
                write_removals(store, removals)
        if not dry_run:
            # A deletion that was killed has not come to it.
            refresh_index(path, forgetting=True, progress=tell)
    return done


def _compact(
    store: Store,
    number: int,
    removals: Removals,
    progress: Progress,
    *,
    dry_run: bool,
) -> Compaction | None:
    """Erase the deleted items of a chunk; None where all of them are in its map."""
    store.close()  # another may have replaced the data file since it was looked at
    content, meta_dict = read_map(store, meta_name(number))
    there = ((id_, entry["frame_info"]) for id_, entry in meta_dict.items())
    hidden = removals.hidden_items(number, there)
    if not hidden:
        return None
    # Of a chunk that GulpIO2 0.0.4 wrote anew, the places may be another item's, or
    # lie behind the end.
    end = store.size(data_name(number))
    kept = [span for entry in meta_dict.values() for span in entry_spans(entry)]
    spans = [
        (start, min(stop, end))
        for _, entry in hidden
        for start, stop in entry_spans(entry)
    ]
    size = _length([*kept, *spans]) - _length(kept)
    others = num_names(store.path(data_name(number))) - 1
    if not dry_run:
        with replacing_unless_changed(
            store, data_name(number), number, content
        ) as writer:
            holes = _rewrite(store, number, kept, writer, progress)
        removals.erased[number] = holes
    return Compaction(number, len(hidden), size, others)


def _length(spans: Iterable[tuple[int, int]]) -> int:
    """Count the bytes that lie in one of the spans, or in several."""
    return sum(stop - start for start, stop in merge_spans(spans))


def _rewrite(
    store: Store,
    number: int,
    kept: Iterable[tuple[int, int]],
    writer: StoreWriter,
    progress: Progress,
) -> list[tuple[int, int]]:
    """Copy spans to the same offsets of a new data file; give the holes left."""
    name = data_name(number)
    size = store.size(name)
    holes: list[tuple[int, int]] = []
    for start, stop in merge_spans(kept):
        if start > writer.tell():
            holes.append((writer.tell(), start))
            writer.truncate(start)
        while writer.tell() < stop:
            length = min(_BLOCK, stop - writer.tell())
            writer.write(store.read_at(name, writer.tell(), length))
            progress(num_bytes=length)
    if size > writer.tell():  # else the next item would get a deleted one's place
        holes.append((writer.tell(), size))
        writer.truncate(size)
    store.close()  # the handle of the file that is about to be replaced
    return holes
