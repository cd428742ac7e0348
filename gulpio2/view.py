"""A part of a directory's items, which reads like a directory."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gulpio2._optional import require
from gulpio2.errors import ItemNotFoundError, MapChangedError
from gulpio2.format.wording import counted
from gulpio2.grouping import groups_of
from gulpio2.passage import IN_ARROW, load_arrow
from gulpio2.query import select_rows
from gulpio2.storage.index.mappings import PartOfMapping
from gulpio2.verbs import ReadingVerbs, each_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from gulpio2.chunk import GulpChunk
    from gulpio2.format.manifest import Manifest
    from gulpio2.item import StoredItem
    from gulpio2.storage.index.index import Index

__all__ = ["GulpView", "as_frame", "view_of_rows"]

# Times that a directory is opened again in another process, before the last.
_TRIES = 9


class Viewed(Protocol):
    """What a view needs of its directory, which `gulpio2.GulpDirectory` has."""

    output_dir: Any
    merged_meta_dict: Any
    chunk_lookup: Any
    jpeg_decoder: Any
    threads: int | None

    @property
    def _item_index(self) -> Index:
        """The index of the directory, also of one that was opened without."""

    @property
    def manifest(self) -> Manifest:
        """How it was made."""

    @property
    def metainfo(self) -> dict[str, Any]:
        """Metadata of the whole dataset."""
        ...

    def item(self, id_: Any) -> StoredItem:
        """Find an item."""
        ...

    def close(self) -> None:
        """Close every file."""
        ...

    def _part_of_chunk(self, number: int, ids: Sequence[str]) -> GulpChunk:
        """Make an object of some items of a chunk."""
        ...

    def _reopening(
        self, ids: Iterable[str]
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Give what opens it again elsewhere, with changes to these items."""
        ...

    def _load_label_dict(self) -> Any:
        """Read ``label2idx.json``."""
        ...


class GulpView(ReadingVerbs):
    """Some items of a directory, in an order of their own; made by its ``query``.

    Parameters
    ----------
    directory : GulpDirectory
        Where the items are.
    ids : iterable of str
        Which of them. Repeats are dropped.

    Raises
    ------
    ItemNotFoundError
        The directory has no such item.
    TypeError
        It is one id, and no list of them.

    Examples
    --------
    >>> from gulpio2 import GulpDirectory
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("out", num_items=4, num_frames=8)
    >>> view = GulpDirectory("out").query("number >= 1 and num_frames == 8")
    >>> list(view.ids), view.read_clip("item2", slice(0, 3)).shape
    (['item1', 'item2', 'item3'], (3, 24, 32, 3))
    >>> len(view.query("number in [0, 2]"))
    1

    Notes
    -----
    It holds a number per item, and is pickled as its ids and the directory's path.
    Conditions look at the metadata that is stored; what was changed in
    ``merged_meta_dict`` they do not see.
    """

    # Why it cannot be read, where that was seen while it was unpickled.
    _lost: ItemNotFoundError | None = None
    # Rows, and the ids that were made of them once somebody asked.
    _listed: tuple[npt.NDArray[np.int64], list[str]] | None = None

    def __init__(self, directory: Viewed, ids: Iterable[str]) -> None:
        index = directory._item_index
        self._held = index.hold()  # stays, whatever is done while ids are given
        rows: dict[int, None] = {}
        for id_ in map(str, each_of(ids)):
            row = index.row(id_)
            if row is None:
                raise ItemNotFoundError(
                    f"no item {id_!r} in {directory.output_dir} "
                    f"({counted(len(index), 'item')}; `gulp2 ls` lists them)",
                    id_,
                )
            rows[row] = None
        self._set(directory, np.fromiter(rows, np.int64, len(rows)))

    def _set(self, directory: Viewed, rows: npt.NDArray[np.int64]) -> None:
        self.directory = directory
        self._rows = rows
        # Row numbers are of what is loaded now, which a later map has others for.
        self._held = directory._item_index.hold()
        # Ascending, for looking up.
        self._order = np.sort(rows)

    def _settle(self) -> None:
        """Take the rows that the items have now, if all of the index was made anew.

        Raises
        ------
        ItemNotFoundError
            One of the items is there no more.
        """
        if not self.directory._item_index.holds(self._held):
            now = GulpView(self.directory, self.ids)
            self._rows, self._held, self._order = now._rows, now._held, now._order

    def _require_whole(self) -> None:
        """Raise what was wrong when the view was unpickled."""
        if self._lost is not None:
            raise ItemNotFoundError(str(self._lost), str(self._lost.args[0]))

    # --- what is in it -----------------------------------------------------------

    def __len__(self) -> int:
        """Count the items."""
        self._require_whole()
        return len(self._rows)

    def __contains__(self, id_: object) -> bool:
        """Tell whether an item of this id is in the view; 7 and "7" are the same."""
        self._require_whole()
        row = self.directory._item_index.row(str(id_))
        if row is None:
            return False
        self._settle()
        at = int(self._order.searchsorted(row))
        return at < len(self._order) and int(self._order[at]) == row

    def __iter__(self) -> Iterator[GulpChunk]:
        """Go through the chunks that have items of it, in numeric order.

        Each is a `GulpChunk` that holds the view's items and no others, in the view's
        order; their entries are the directory's own.
        """
        return (chunk for _, chunk in self._numbered_chunks())

    def _numbered_chunks(self) -> Iterator[tuple[int, GulpChunk]]:
        self._require_whole()
        columns = self._held.columns
        numbers = columns.chunk[self._rows]
        for number, places in groups_of(numbers):
            ids = [columns.id_at(row) for row in self._rows[places].tolist()]
            yield number, self.directory._part_of_chunk(number, ids)

    def chunks(self) -> Iterator[GulpChunk]:
        """Go through the chunks that have items of it; see `__iter__`."""
        return iter(self)

    @property
    def num_chunks(self) -> int:
        """Chunks that have items of it."""
        self._require_whole()
        return len(np.unique(self._held.columns.chunk[self._rows]))

    @property
    def ids(self) -> Sequence[str]:
        """A list of the items' ids, in order."""
        self._require_whole()
        listed, rows = self._listed, self._rows
        if listed is None or listed[0] is not rows:
            columns = self._held.columns
            listed = rows, [columns.id_at(row) for row in rows.tolist()]
            self._listed = listed
        return listed[1].copy()

    @property
    def merged_meta_dict(self) -> Mapping[str, Any]:
        """Id to entry, in order; the entries are the directory's own."""
        return PartOfMapping(self, self.directory.merged_meta_dict)

    @property
    def chunk_lookup(self) -> Mapping[str, int]:
        """Id to chunk number, in order."""
        return PartOfMapping(self, self.directory.chunk_lookup)

    @property
    def chunk_objs_lookup(self) -> OrderedDict[int, GulpChunk]:
        """Chunk number to chunk, as `chunks` gives them."""
        return OrderedDict(self._numbered_chunks())

    @property
    def all_meta_dicts(self) -> list[OrderedDict[str, Any]]:
        """Each chunk's map, as far as the view goes."""
        return [chunk.meta_dict for chunk in self]

    @property
    def jpeg_decoder(self) -> Any:
        """What decodes frames."""
        return self.directory.jpeg_decoder

    @property
    def threads(self) -> int | None:
        """Threads of a call; None for the default."""
        return self.directory.threads

    @property
    def output_dir(self) -> Any:
        """The directory's path."""
        return self.directory.output_dir

    @property
    def manifest(self) -> Manifest:
        """How the directory was made."""
        return self.directory.manifest

    @property
    def metainfo(self) -> dict[str, Any]:
        """Metadata of the whole dataset: a copy."""
        return self.directory.metainfo

    def _load_label_dict(self) -> Any:
        return self.directory._load_label_dict()

    # --- asking ------------------------------------------------------------------

    @property
    def table(self) -> Any:
        """A ``pyarrow.Table``, a row per item; see `GulpDirectory.table`."""
        self._require_whole()
        load_arrow()
        table = self.directory._item_index.table()
        self._settle()
        with IN_ARROW.through():
            return table.take(self._rows)

    @property
    def index(self) -> Any:
        """The table as a pandas DataFrame; see `GulpDirectory.index`."""
        return as_frame(self.table)

    def query(self, condition: Any) -> GulpView:
        """Give the part of this view that meets a condition.

        Parameters
        ----------
        condition : str, pyarrow.compute.Expression, or boolean mask
            See `GulpDirectory.query`; a mask has a value per item of the view.
        """
        self._require_whole()
        load_arrow()
        table = self.directory._item_index.table()
        self._settle()
        with IN_ARROW.through():
            chosen = select_rows(table, condition, self._rows)
        return view_of_rows(self.directory, chosen)

    def view(self, ids: Iterable[Any]) -> GulpView:
        """Give some of this view's items, in this order, as another one.

        Parameters
        ----------
        ids : iterable of str or int
            See `GulpDirectory.view`; of items that this view has.
        """
        part = GulpView(self.directory, ids)
        for id_ in part.ids:
            if id_ not in self:
                raise self._not_found(id_)
        return part

    # --- frames ------------------------------------------------------------------

    def item(self, id_: Any) -> StoredItem:
        """Find an item, without reading any of its frames.

        Raises
        ------
        ItemNotFoundError
            The view has no item of this id.
        """
        if id_ not in self:
            raise self._not_found(id_)
        return self.directory.item(id_)

    def _not_found(self, id_: Any) -> ItemNotFoundError:
        among = f"a view of {counted(len(self), 'item')} of {self.output_dir}"
        return ItemNotFoundError(f"no item {str(id_)!r} in {among}", str(id_))

    # --- lifetime ----------------------------------------------------------------

    def close(self) -> None:
        """Close every file of the directory; reading again reopens."""
        self.directory.close()

    def __enter__(self) -> GulpView:
        """Give the view itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close every file of the directory."""
        self.close()

    def __repr__(self) -> str:
        """Show the path and the number of items."""
        return f"GulpView({str(self.output_dir)!r}, {counted(len(self._rows), 'item')})"

    def __copy__(self) -> GulpView:
        """Give the same items of the same directory."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the ids, and what opens the directory again."""
        ids = self.ids
        return _open_view, (*self.directory._reopening(ids), ids)


def _open_view(
    make: Callable[..., Any], arguments: tuple[Any, ...], ids: list[str]
) -> GulpView:
    """Open the directory again, and as often as another changes it just then."""
    for _ in range(_TRIES):
        with suppress(MapChangedError):
            return _restored_view(make(*arguments), ids)
    return _restored_view(make(*arguments), ids)


def _restored_view(directory: Any, ids: list[str]) -> GulpView:
    try:
        return GulpView(directory, ids)
    except ItemNotFoundError as cause:
        # Raised when it is read: what goes wrong while a worker is started does not
        # come to the process that started it.
        index = directory._item_index
        view = GulpView(directory, [id_ for id_ in ids if index.row(id_) is not None])
        view._lost = cause
        return view


def view_of_rows(directory: Viewed, rows: npt.NDArray[np.int64]) -> GulpView:
    """Make a view of rows of the directory's index."""
    view = GulpView.__new__(GulpView)
    view._set(directory, rows)
    return view


def as_frame(table: Any) -> Any:
    """Turn a table into a pandas DataFrame of the same columns, if pandas is there."""
    if find_spec("pandas") is None:
        return table
    pandas = require("pandas")
    columns = {
        name: pandas.arrays.ArrowExtensionArray(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pandas.DataFrame(columns, copy=False)
