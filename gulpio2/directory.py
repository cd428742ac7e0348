"""A directory: the chunks of one dataset, read by item id."""

from __future__ import annotations

import logging
import os
import weakref
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.arguments import (
    callable_or,
    optional_number,
    require_number,
    require_verify,
)
from gulpio2.chunk import GulpChunk
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.copies import plain_state, reopening, restore, stored_in
from gulpio2.errors import DuplicateIdError, ItemNotFoundError, MapChangedError
from gulpio2.format.altered import altered_ids, describe_altered
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import (
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    data_name,
    describe_shares,
    in_two_chunks,
    list_chunks,
    meta_name,
)
from gulpio2.format.manifest import free_number
from gulpio2.format.wording import counted
from gulpio2.item import StoredItem
from gulpio2.passage import IN_ARROW, load_arrow
from gulpio2.query import select_rows
from gulpio2.rewritten import LoadedMap, RewriteGuard, note_state
from gulpio2.serializers import json_serializer
from gulpio2.storage.base import read_manifest, require_known_version
from gulpio2.storage.beside_writers import listing_to_read
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.index.composing import NO_MAP, map_states, state_in
from gulpio2.storage.index.entries import IndexRecord
from gulpio2.storage.index.lazy import is_untouched
from gulpio2.storage.index.mappings import (
    ChosenEntries,
    ChunkEntries,
    ChunkNumbers,
    ChunkObjects,
    Entries,
)
from gulpio2.storage.index.opening import (
    index_of_state,
    may_write_index,
    open_index,
)
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import is_there
from gulpio2.storage.refusals import local_path
from gulpio2.storage.removals_file import removed_numbers
from gulpio2.types import no_progress
from gulpio2.verbs import ReadingVerbs
from gulpio2.view import GulpView, as_frame, view_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from gulpio2.format.layout import Listing
    from gulpio2.format.manifest import Manifest
    from gulpio2.storage.index.index import Index
    from gulpio2.types import Progress, StrPath, Verify

__all__ = ["GulpDirectory"]

_logger = logging.getLogger(__name__)

# Times that the maps are looked for, if each time another is gone since it was listed.
_TRIES = 10


class _ChunkSettings(NamedTuple):
    """What the chunks of a directory have in common."""

    prefix: str
    """What the names of files are put behind."""
    jpeg_decoder: Callable[[bytes], Any]
    threads: int | None
    verify: Verify
    handles: HandlePool


def _make_chunk(
    settings: _ChunkSettings,
    number: int,
    meta_dict: OrderedDict[str, Any] | None = None,
) -> GulpChunk:
    """Make the object of a chunk; its map is read if it is not given."""
    return GulpChunk(
        settings.prefix + data_name(number),
        settings.prefix + meta_name(number),
        json_serializer,
        settings.jpeg_decoder,
        threads=settings.threads,
        verify=settings.verify,
        handles=settings.handles,
        meta_dict=meta_dict,
    )


def _before_names(folder: StrPath) -> str:
    """Give what the names of files are put behind.

    It begins with the folder as it was given, as in 0.0.4: programs cut that off, and
    take the folder of "./data_0.gulp" for one to list.
    """
    return os.path.join(folder, "")  # noqa: PTH118  # of any path


class GulpDirectory(ReadingVerbs):
    """The items of a gulp directory, by id.

    Parameters
    ----------
    output_dir : str or path
        The directory. A missing or empty one holds no items; of a missing one a
        warning is logged.
    jpeg_decoder : callable, optional
        Bytes of a JPEG to anything; called once per frame, its results are passed on.
    threads : int, optional
        Threads that may decode the frames of a call at the same time; all directories
        of a process share them. Default: one per core, 8 at most; one in a daemonic
        worker process, as those of a torch ``DataLoader`` are.
    verify : bool or 'frames', optional
        What to compare with the checks that are stored; what was written by GulpIO2
        0.0.4 has none. Default: the checksum of each frame before it is given; entries
        of the maps that have changed, as another program may want it, are warned of.
        True: such an entry is an error, on opening, or with an index when it is first
        used, and when something is asked of all (`query`, `table`). False: nothing.
        Most changes of a stored byte decode without an error.
    indexed : bool, optional
        Whether to open by the index, ``index.arrow``, which is written where it is
        missing or stale and the folder allows it, and else made in memory. Default: if
        the maps are of more than a megabyte. With an index the mappings below make
        their values when they are asked for.
    progress : Progress, optional
        Called for each map that is looked through, with its bytes: a large directory
        without an index is opened in seconds or minutes.

    Attributes
    ----------
    chunk_objs_lookup : OrderedDict
        Chunk number to `GulpChunk`, in numeric order.
    chunk_lookup : dict
        Id to chunk number.
    all_meta_dicts : list
        Each chunk's ``meta_dict``, as it is when the list is first asked for. What
        ``open("ab")`` appends to a chunk shows in it at once; with an index not, as
        the chunk has a ``meta_dict`` of its own then, nor does what "wb" stores.
    merged_meta_dict : dict
        Id to entry, over all chunks. Changes to the metadata in it show in later reads.
        Items that are stored after the directory was opened are neither here nor in
        `chunk_lookup`: to read them by it, open it again.
    num_chunks : int
        Chunks.

    Raises
    ------
    ChunkMismatchError
        A map has no data file.
    DuplicateIdError
        Two chunks have an item of the same id.
    MetaFileError
        A map is damaged, or ``gulp.json`` says a version of the format that is not
        known.
    StorageError
        The path is a URL, or the folder cannot be read.
    ValueError
        The path is empty.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("out", num_items=3, num_frames=8)
    >>> with GulpDirectory("out") as directory:
    ...     frames, meta = directory["item1", 0:4]
    ...     clip = directory.read_clip("item1", slice(0, 8, 2))
    >>> len(frames), clip.shape
    (4, (4, 24, 32, 3))

    Notes
    -----
    Opening reads the maps and no frame. Reading is safe from many threads, and in
    processes that were forked or to which the directory was pickled.
    """

    # Chunks of which entries that came from another copy may be of another map.
    _doubted: frozenset[int] = frozenset()

    def __init__(
        self,
        output_dir: StrPath,
        jpeg_decoder: Callable[[bytes], Any] | None = jpeg_bytes_to_img,
        *,
        threads: int | None = None,
        verify: Verify = "frames",
        indexed: bool | None = None,
        progress: Progress = no_progress,
    ) -> None:
        if not os.fspath(output_dir):  # a setting that was forgotten
            raise ValueError(
                f"output_dir is {output_dir!r}, which is empty; give a folder ('.' is "
                "the current one)"
            )
        # Those of the chunks stay when a program assigns others, as in 0.0.4: only new
        # chunks have these.
        self.output_dir = self._folder = output_dir
        decoder = callable_or("jpeg_decoder", jpeg_decoder, jpeg_bytes_to_img)
        self.jpeg_decoder = self._decoder = decoder
        self.threads = optional_number("threads", threads, 1)
        self.verify = require_verify(verify)
        self.indexed = indexed
        self._open(callable_or("progress", progress, no_progress))
        self._warn_of_altered()

    def _open(self, progress: Progress = no_progress) -> None:
        self._handles = HandlePool()
        # What the names of files are put behind: joining takes a microsecond.
        self._prefix = _before_names(self._folder)
        self._made_index: Index | None = None
        self._doubted = frozenset()
        self._all_meta_dicts: list[OrderedDict[str, Any]] | None = None
        self._store = open_store(self._folder)
        require_known_version(self._store)
        self.chunk_objs_lookup: OrderedDict[int, GulpChunk]
        self.chunk_lookup: dict[str, int]
        self.merged_meta_dict: dict[str, Any]
        for _ in range(_TRIES):
            listing, is_settled = listing_to_read(self._store)
            listing.require_data(self._store.path)
            self._load(listing, progress)
            unmapped = self._unmapped(listing.chunks)
            if not unmapped:
                break
        self._is_settled = is_settled and not unmapped
        for number in (*listing.data_only, *unmapped):
            _logger.warning(
                "%s has no map and is left out: it is being stored, was never "
                "committed, or its map is lost. Run `gulp2 check` on the directory",
                self._store.path(data_name(number)),
            )
        if listing.strays:
            _logger.warning("%s: %s", self.output_dir, listing.describe_strays())
        self._watch_chunks()
        self.num_chunks = len(self.chunk_objs_lookup)
        self._is_of_others = False
        if not self.num_chunks:
            self._warn_of_no_chunk(listing)

    def _load(self, listing: Listing, progress: Progress) -> None:
        """Take what the maps say, out of the index or out of themselves."""
        self._index = open_index(
            self._folder,
            listing.chunks,
            wanted=self.indexed,
            may_write=may_write_index(self._folder, listing.partials),
            verify=self.verify is True,
            progress=progress,
        )
        if self._index is None:
            # Of maps that are read now; what is written meanwhile counts as a change.
            self._states = map_states(os.fspath(self._folder), listing.chunks)
            self._load_maps(listing.chunks, progress)
        else:
            self._use_index(self._index)

    def _unmapped(self, numbers: Sequence[int]) -> list[int]:
        """Give the chunks whose maps were gone by the time they were asked for."""
        if self._index is not None:
            return sorted({*numbers}.difference(self._index.numbers))
        chunks = self.chunk_objs_lookup
        return [number for number in numbers if chunks[number]._base == b""]

    def _warn_of_altered(self) -> None:
        """Tell of entries that have changed; a copy in a worker has no need to."""
        if self.verify != "frames":
            return
        if self._index is not None:
            altered = self._index.describe_altered()
        else:
            chunks = self.chunk_objs_lookup.values()
            found = [
                id_
                for chunk in chunks
                for id_ in altered_ids(chunk._base or b"", chunk.meta_dict)
            ]
            altered = describe_altered(found[0], len(found)) if found else ""
        if altered:
            _logger.warning("%s: %s", self.output_dir, altered)

    def _warn_of_no_chunk(self, listing: Listing) -> None:
        """Say that there is nothing, where another path may have been meant."""
        folder = local_path(self._folder, "read")
        advice = "Check the path if it should hold items"
        if not is_there(folder):
            found = f"there is no folder {folder}"
        elif (
            listing.partials
            or listing.data_only
            or listing.strays
            or MANIFEST_NAME in (names := {*self._store.names()})
            or names <= {LABELS_NAME}
        ):
            return
        elif JOURNAL_NAME in names:
            found = f"{folder} holds no chunk yet"
            advice = (
                "An ingest, a merge or a repair is at work there, or was interrupted"
            )
        else:
            found = f"{folder} holds no chunk, but other files or folders"
            self._is_of_others = True
        _logger.warning(
            "%s: it is taken for an empty gulp directory. %s",
            found,
            describe_shares(self._store.names()) or advice,
        )

    def _load_maps(self, numbers: Sequence[int], progress: Progress) -> None:
        """Have every entry in memory."""
        num_bytes = dict(self._states[:, :2].tolist())
        self.chunk_objs_lookup = OrderedDict(
            (number, self._chunk(number)) for number in numbers
        )
        self.chunk_lookup = {}
        self.merged_meta_dict = {}
        for number, chunk in self.chunk_objs_lookup.items():
            progress(items=len(chunk.meta_dict), num_bytes=num_bytes.get(number, 0))
            for id_, entry in chunk.meta_dict.items():
                if id_ in self.chunk_lookup:
                    first = self.chunk_lookup[id_]
                    message = in_two_chunks(id_, first, number, self.output_dir)
                    raise DuplicateIdError(message)
                self.chunk_lookup[id_] = number
                self.merged_meta_dict[id_] = entry

    def _use_index(self, index: Index) -> None:
        """Have mappings that look into the index."""
        # What makes the chunks must not hold the directory: an index would stay mapped
        # until the next round of the garbage collector.
        settings = self._settings()

        def make(number: int) -> GulpChunk:
            chunk = _make_chunk(settings, number, ChunkEntries(index, number))
            note_state(chunk, index.map_state(number))  # it may outlive the directory
            return chunk

        self.chunk_objs_lookup = ChunkObjects(index.numbers, make)
        self.chunk_lookup = ChunkNumbers(index)
        self.merged_meta_dict = Entries(index)

    def _watch_chunks(self) -> None:
        """Have data files compared with what was read of their maps."""
        # Weakly, for the reason above.
        loaded_map = weakref.WeakMethod(self._loaded_map)

        def loaded(number: int) -> LoadedMap | None:
            give = loaded_map()
            return None if give is None else give(number)

        on_open = self._handles.on_open
        guard = RewriteGuard(self._store, self._prefix, loaded, on_open)
        self._handles.on_open = guard

    def _loaded_map(self, number: int) -> LoadedMap:
        """Give a chunk's map as it was read, and how to read it again."""
        state, chunk = self._state_of(number), self._made_chunks().get(number)
        find = partial(self.chunk_objs_lookup.get, number)
        if number in self._doubted or state == NO_MAP:  # entries of another map
            return LoadedMap(NO_MAP, find)
        if chunk is not None and chunk._base:
            if self._index is not None:
                # Once it was opened with "ab", its map is none of the index any more.
                state = NO_MAP
            # Parsed only where something differs: each opening of a file asks this.
            return LoadedMap(state, find, lambda: stored_in(chunk).items())
        if self._index is None:
            return LoadedMap(state, find)
        if chunk is not None and not is_untouched(chunk.meta_dict):
            # What is assigned was made of what the index said when the chunk was made.
            then = getattr(chunk, "_map_state", NO_MAP)
            if then != state:
                return LoadedMap(then, find)
        return LoadedMap(state, find, partial(self._first_entries, number))

    def _first_entries(self, number: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Give a chunk's entries as the index had them, whatever was edited since."""
        if (index := self._index) is not None:
            for id_ in index.ids(number):
                try:
                    first = index.first(id_)
                except MapChangedError:  # its spans are known nevertheless
                    first = index.record(id_)
                if isinstance(first, IndexRecord):
                    yield id_, first.placed
                elif first is not None:
                    yield id_, first

    def _state_of(self, number: int) -> tuple[int, int] | None:
        """Give size and time of the map that a chunk's entries were read of."""
        if self._index is not None:
            return self._index.map_state(number)
        return state_in(self._states, number)

    @property
    def all_meta_dicts(self) -> list[OrderedDict[str, Any]]:
        """Each chunk's map, as it was when the list was first asked for."""
        # No cached_property: before Python 3.12 it has a lock, which a fork may leave
        # held in the child.
        if self._all_meta_dicts is None:
            self._all_meta_dicts = [
                chunk.meta_dict for chunk in self.chunk_objs_lookup.values()
            ]
        return self._all_meta_dicts

    @all_meta_dicts.setter
    def all_meta_dicts(self, maps: list[OrderedDict[str, Any]]) -> None:
        self._all_meta_dicts = maps

    def _settings(self) -> _ChunkSettings:
        return _ChunkSettings(
            self._prefix, self._decoder, self.threads, self.verify, self._handles
        )

    def _chunk(self, number: int) -> GulpChunk:
        return _make_chunk(self._settings(), number)

    def _part_of_chunk(self, number: int, ids: Sequence[str]) -> GulpChunk:
        """Make an object of some items of a chunk; their entries are those of all."""
        whole = self._made_chunks().get(number)
        if self._index is not None and (whole is None or is_untouched(whole.meta_dict)):
            entries: OrderedDict[str, Any] = ChosenEntries(self._index, number, ids)
        else:
            of_all = self.chunk_objs_lookup[number] if whole is None else whole
            known = of_all.meta_dict
            # Some may be deleted in it since the view was made.
            entries = OrderedDict((id_, known[id_]) for id_ in ids if id_ in known)
        return _make_chunk(self._settings(), number, entries)

    # --- what is in it -----------------------------------------------------------

    def __len__(self) -> int:
        """Count the items."""
        return len(self.chunk_lookup)

    def __contains__(self, id_: object) -> bool:
        """Tell whether an item has this id; 7 and "7" are the same."""
        return str(id_) in self.chunk_lookup

    def __iter__(self) -> Iterator[GulpChunk]:
        """Go through the chunks in numeric order."""
        return iter(self.chunk_objs_lookup.values())

    def chunks(self) -> Iterator[GulpChunk]:
        """Go through the chunks in numeric order."""
        return iter(self)

    def new_chunks(self, total_new_chunks: int) -> Iterator[GulpChunk]:
        """Make chunk objects for the next free numbers. Writes and reserves nothing.

        Where another has stored a chunk of that number by the time one is opened with
        "wb", or an ingest or a merge has when it is to be stored, it is refused
        (`StorageExistsError`): ask again for another number.

        Parameters
        ----------
        total_new_chunks : int
            How many.

        Yields
        ------
        GulpChunk
            Empty, with this directory's decoder.

        Raises
        ------
        TypeError, ValueError
            The number is none, or below 0.
        MetaFileError
            ``gulp.json``, which may tell of chunks that are lost, is damaged.
        """
        count = require_number("total_new_chunks", total_new_chunks, 0)
        # What a program has assigned meanwhile counts for new chunks.
        store = open_store(self.output_dir)
        names = store.names()
        removed = removed_numbers(store, names)
        first = free_number(list_chunks(names), read_manifest(store).runs, removed)
        settings = self._settings()._replace(
            prefix=_before_names(self.output_dir), jpeg_decoder=self.jpeg_decoder
        )
        for number in range(first, first + count):
            chunk = _make_chunk(settings, number)
            chunk.is_new = True  # another program may be given the same number
            yield chunk

    @property
    def manifest(self) -> Manifest:
        """How the directory was made; an empty manifest where it has none.

        Raises
        ------
        MetaFileError
            ``gulp.json`` is damaged, or of a newer format.
        StorageError
            It cannot be read, or is a link that leads nowhere.
        """
        return read_manifest(self._store)

    @property
    def metainfo(self) -> dict[str, Any]:
        """Metadata of the whole dataset, from the manifest: a copy."""
        return dict(self.manifest.metainfo)

    def item(self, id_: Any) -> StoredItem:
        """Find an item, without reading any of its frames.

        Raises
        ------
        ItemNotFoundError
            No item has this id.
        """
        if self._index is None:
            return self._chunk_of(id_).item(id_)
        id_ = str(id_)
        record = self._index.record(id_) if id_ not in self._index.entries else None
        if record is None or self._may_be_changed(record.number):
            return self._chunk_of(id_).item(id_)
        path = f"{self._prefix}data_{record.number}.gulp"
        return StoredItem(
            id_,
            record,
            path,
            partial(self._handles.read_at, path),
            self._decoder,
            self.threads,
            bool(self.verify),
            self._handles,
        )

    def _may_be_changed(self, number: int) -> bool:
        """Tell whether what was handed out may say something else than the index."""
        numbers, chunks = self.chunk_lookup, self.chunk_objs_lookup
        return number in self._made_chunks() or not (
            is_untouched(numbers) and is_untouched(chunks)
        )

    def _made_chunks(self) -> Mapping[int, GulpChunk]:
        """Give the chunk objects that there are."""
        lookup = self.chunk_objs_lookup
        return lookup.made if isinstance(lookup, ChunkObjects) else lookup

    # --- asking ------------------------------------------------------------------

    @property
    def _item_index(self) -> Index:
        """The index; one of the maps that were loaded, if there is no other.

        Raises
        ------
        MapChangedError
            The directory was opened without, and its maps have changed since.
        MetaFileError
            It cannot have one.
        """
        if self._index is not None:
            return self._index
        if self._made_index is None:
            states = self._states.copy()
            for row, number in enumerate(states[:, 0].tolist()):
                states[row, 3] = self._crc32_of_map(number)
            self._made_index = index_of_state(
                self._folder, states, verify=self.verify is True
            )
        return self._made_index

    def _crc32_of_map(self, number: int) -> int:
        """Give the CRC-32 of a map as it was read; 0 where that is not known."""
        chunk = self.chunk_objs_lookup.get(number)
        path = Path(self._prefix + meta_name(number))
        if chunk is None or not chunk._base or chunk._base_map.path != path:
            return 0
        return crc32_of(chunk._base)

    @property
    def table(self) -> Any:
        """A ``pyarrow.Table`` with a row per item.

        Its columns are ``id``, ``chunk``, ``num_frames``, ``frames`` (for each frame
        ``offset``, ``length``, ``pad`` and ``crc32``), and the keys of the items'
        metadata; a key that has one of these names is a column ``meta.id`` and so on
        (``meta.meta.id`` where there is a key ``meta.id`` as well), and so is one named
        like another column of the index file: ``extras``, ``flags``, ``meta_data``.
        A key whose values are of several types, or mappings, is a column of JSON text.
        Of a mapped index the columns are its pages, and nothing is copied; ``frames``
        is as the file has it, which readers check item by item and this does not.
        """
        load_arrow()
        return self._item_index.table()

    @property
    def index(self) -> Any:
        """The `table` as a pandas DataFrame; itself, where pandas is not installed.

        The columns are Arrow's (``pandas.ArrowDtype``), so that nothing is copied.
        """
        return as_frame(self.table)

    def query(self, condition: Any) -> GulpView:
        """Give the items that meet a condition, as a view that reads like a directory.

        Parameters
        ----------
        condition : str, pyarrow.compute.Expression, or boolean mask
            A text as ``label == 'waving' and num_frames >= 16``, see
            `gulpio2.query.parse_condition`; an Arrow expression over the columns of
            `table`; or a mask with a value per row of it.

        Returns
        -------
        GulpView
            It can be asked again.

        Raises
        ------
        ValueError
            The condition cannot be understood, or does not fit the columns.
        """
        held = self._item_index.hold()  # what rows are of, whoever closes this
        table = self.table
        with IN_ARROW.through():
            rows = select_rows(table, condition)
        view = view_of_rows(self, rows)
        del held
        return view

    def view(self, ids: Iterable[Any]) -> GulpView:
        """Give some items, in this order, as a view that reads like a directory.

        Parameters
        ----------
        ids : iterable of str or int
            Which. Repeats are dropped.

        Raises
        ------
        ItemNotFoundError
            There is no such item.
        TypeError
            It is one id, and no list of them.
        """
        return GulpView(self, ids)

    def _chunk_of(self, id_: Any) -> GulpChunk:
        try:
            return self.chunk_objs_lookup[self.chunk_lookup[str(id_)]]
        except KeyError:
            raise ItemNotFoundError(
                f"no item {str(id_)!r} in {self.output_dir} "
                f"({counted(len(self), 'item')}; `gulp2 ls` lists them)",
                str(id_),
            ) from None

    def _load_label_dict(self) -> Any:
        """Read ``label2idx.json``."""
        return json_serializer.load(self._store.path(LABELS_NAME))

    # --- lifetime ----------------------------------------------------------------

    def close(self) -> None:
        """Close every file; reading again reopens."""
        self._handles.close()
        for index in (self._index, self._made_index):
            if index is not None:
                index.close()

    def __enter__(self) -> GulpDirectory:
        """Give the directory itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every file."""
        self.close()

    def _reopening(
        self, ids: Iterable[str]
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Give what opens it again elsewhere, with changes to these items."""
        return reopening(self, ids)

    def __copy__(self) -> GulpDirectory:
        """Share everything, as a shallow copy does: entries, edits and open files."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        # Whose maps data files are compared with, as long as a copy of it is in use.
        copy.__dict__.setdefault("_original", self)
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without open files; an index stays where it is, only edits travel."""
        return plain_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the directory again, and take over the edits."""
        restore(self, state)

    def __repr__(self) -> str:
        """Show the path, items and chunks."""
        return (
            f"GulpDirectory({str(self.output_dir)!r}, {counted(len(self), 'item')} "
            f"in {counted(self.num_chunks, 'chunk')})"
        )
