"""Any dataset that can be written down as a table of paths and ids."""

from __future__ import annotations

import contextlib
import os
import random
import reprlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.cells import parse_column
from gulpio2.adapters.endings import ANY_ENDING
from gulpio2.adapters.image_folders import ImageTimes
from gulpio2.adapters.label_numbers import label_key, number_labels
from gulpio2.adapters.labels import read_label_file
from gulpio2.adapters.path_sources import (
    FolderImages,
    MediaKind,
    find_path,
    is_url,
    open_path,
)
from gulpio2.adapters.settings import check_choice, checked_frame_rate, checked_size
from gulpio2.adapters.sources import DeferredFrames
from gulpio2.adapters.table_columns import (
    check_excerpts,
    checked_column,
    filled_paths,
    rates_column,
    seconds_column,
)
from gulpio2.adapters.tables import Table, read_table
from gulpio2.errors import (
    GulpError,
    IngestSettingError,
    SourceReadError,
)
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.adapters.path_sources import Times
    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource, Item, Meta, StrPath

__all__ = ["TableAdapter"]

# As of `KineticsAdapter`.
IdRule = Literal["video", "clip"]


class TableAdapter(AbstractDatasetAdapter):
    """Items listed in a table: a path, an id, and metadata in the other columns.

    Parameters
    ----------
    table : str or path object
        A ``.csv`` or ``.tsv`` file with a header line, a ``.json`` list of objects, or
        ``.jsonl``; each also with ``.gz``.
    output_folder : str or path object, optional
        The gulp directory; labels that it has already keep their index.
    path_column : str
        Column with the path of a video, of an image, or of a folder of images, which
        together are one item, sorted by name, ``2.jpg`` before ``10.jpg``; endings
        count in any case of letters. A path that ends in ``.*`` is of the one video
        that is there, or else the one image, with an ending in small or in capital
        letters; as an id it has no ``.*``.
    id_column : str, optional
        Column with the id, a text or an integer. None takes the path as it is in the
        table, of an excerpt with its times.
    label_column : str, optional
        Column with a label. It gets into the metadata as ``label``, with its number as
        ``idx``.
    root_folder : str or path object, optional
        What relative paths begin at. Default: the folder that the table lies in.
    media : 'auto', 'video', 'image' or 'folder'
        What the paths lead to. 'auto' tells by the ending, item by item; a path that
        has no known ending must be a folder.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float or str, optional
        Frames a second to resample videos to. Default: as they are.
    prefix : str
        What the names of the images of a folder must begin with.
    image_rate : float or str, optional
        Images a second of folders, by which they get times. Default: they have none.
    first_number : int, optional
        The number of the image at 0 seconds. Default: that of each item's first image.
    image_rate_column : str, optional
        Column with the images a second, where folders have different ones; it stays in
        the metadata. An empty cell, or 0: this one has no times.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    delimiter : str, optional
        What stands between columns. Default: a comma in CSV, a tab in TSV.
    parse_values : bool
        Whether metadata texts of a CSV or TSV table become bool, int or float where
        the whole column can; see `gulpio2.adapters.parse_column`. Ids, paths and labels
        always stay as they are written.
    start_column : str, optional
        Column with the time from which an item has the frames of its video: seconds
        from the first frame of the video, or ``HH:MM:SS.sss``. Default: whole videos.
    end_column : str, optional
        Column with the time before which they end.
    id_rule : 'video' or 'clip', optional
        Id of an excerpt: ``abc``, as `id_column` has it, or ``abc_3.5_13.5`` with the
        times as they are in the table. Default: 'clip' if `id_column` is None, else
        'video'.
    path_template : str or path object, optional
        The paths, where no column has them: ``videos/{video_id}.mp4``, with names of
        columns in braces, and ``{start:06d}`` for zeros before a number. The columns
        stay in the metadata.

    Notes
    -----
    Metadata is ``id``, then ``label`` and ``idx`` where there is a label column, then
    all other columns but the path. Only the table is read here; a missing file raises
    when its frames are iterated, and so costs its own item only.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> rows = [{"path": "a.mp4", "id": "a", "fold": 1}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder, "clips.json")
    ...     _ = table.write_text(json.dumps(rows))
    ...     adapter = TableAdapter(table)
    >>> [item["meta"] for item in adapter.iter_data()]
    [{'id': 'a', 'fold': 1}]
    """

    def __init__(
        self,
        table: StrPath,
        output_folder: StrPath | None = None,
        *,
        path_column: str = "path",
        id_column: str | None = "id",
        label_column: str | None = None,
        root_folder: StrPath | None = None,
        media: MediaKind = "auto",
        frame_size: int = -1,
        frame_rate: FrameRate | None = None,
        shuffle: bool = False,
        delimiter: str | None = None,
        parse_values: bool = True,
        start_column: str | None = None,
        end_column: str | None = None,
        id_rule: IdRule | None = None,
        path_template: StrPath | None = None,
        prefix: str = "",
        image_rate: FrameRate | None = None,
        first_number: int | None = None,
        image_rate_column: str | None = None,
    ) -> None:
        if not isinstance(table, (str, os.PathLike)):
            raise TypeError(
                f"table is {reprlib.repr(table)}; give the path of a file. Rows in "
                "memory have to be written to one, as by pandas' to_csv"
            )
        check_choice("media", media, MediaKind)
        if id_rule is not None:
            check_choice("id_rule", id_rule, IdRule)
        path_template = None if path_template is None else os.fspath(path_template)
        if path_template is not None and path_column != "path":
            raise IngestSettingError(
                f"path_column is {path_column!r}, and path_template is "
                f"{path_template!r}: the paths come from one of them. Leave the other "
                "out."
            )
        if (path_template or "").endswith(ANY_ENDING) and media == "folder":
            raise IngestSettingError(
                f"path_template is {path_template!r}, and media is 'folder': folders "
                "have no ending. Leave the .* out."
            )
        check_excerpts(start_column, end_column, id_rule, media)
        self.table = table
        self.output_folder = output_folder
        self.root_folder = Path(table).parent if root_folder is None else root_folder
        local_path(self.root_folder, "read")
        self.media = media
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        if image_rate is not None and image_rate_column is not None:
            raise IngestSettingError(
                f"image_rate is {image_rate!r}, and image_rate_column is "
                f"{image_rate_column!r}: leave one of them out."
            )
        self.prefix = prefix
        self.image_rate, self.first_number = ImageTimes.checked(
            image_rate, first_number, by_item=image_rate_column is not None
        )
        content = read_table(table, delimiter=delimiter, parse_values=False)
        self._rates = (
            None
            if image_rate_column is None
            else rates_column(content, image_rate_column)
        )
        self._paths = (
            checked_column(content, "path_column", path_column, str)
            if path_template is None
            else filled_paths(content, path_template)
        )
        self._ids = (
            [path.removesuffix(ANY_ENDING) for path in self._paths]
            if id_column is None
            else checked_column(content, "id_column", id_column, str, int)
        )
        self._times: list[tuple[float, float]] | None = None
        if start_column is not None and end_column is not None:
            starts = checked_column(
                content, "start_column", start_column, str, int, float
            )
            ends = checked_column(content, "end_column", end_column, str, int, float)
            self._times = list(
                zip(
                    seconds_column(content, start_column, starts),
                    seconds_column(content, end_column, ends),
                    strict=True,
                )
            )
            if id_rule == "clip" or (id_rule is None and id_column is None):
                rows = zip(self._ids, starts, ends, strict=True)
                self._ids = [
                    "_".join(str(cell).strip() for cell in row) for row in rows
                ]
        self._labels = (
            None
            if label_column is None
            else checked_column(
                content, "label_column", label_column, str, int, float, bool
            )
        )
        taken = {id_column, label_column}
        if path_template is None:
            taken.add(path_column)
        self._extra = self._metadata_columns(content, taken, parse_values)
        self.label2idx = (
            None
            if self._labels is None
            else number_labels(
                self._labels,
                None if output_folder is None else read_label_file(output_folder),
            )
        )
        # Rows by position: a permutation costs one integer a row.
        self._rows: Sequence[int] = range(len(content))
        if shuffle:
            self._rows = random.sample(self._rows, len(content))

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; files are opened when iterated."""
        for row in self._rows[slice_element or slice(None)]:
            yield {
                "meta": self._meta(row),
                "frames": self._frames(row),
                "id": self._ids[row],
            }

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._rows)

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [self._ids[row] for row in self._rows]

    def item_source(self, position: int) -> str:
        """Give the path of the item and the row that names it, with its times."""
        row = self._rows[position]
        where = f"row {row + 1} of {os.fspath(self.table)}"
        if self._times is not None:
            start, end = self._times[row]
            where = f"{where}, {start} s to {end} s"
        source = self._source(row)
        with contextlib.suppress(GulpError):  # told when its frames are iterated
            source = find_path(source, self.media, self._times_of(row))
        return f"{source} ({where})"

    def label_mapping(self) -> dict[str, int] | None:
        """Give label to index, or None without a label column."""
        return None if self.label2idx is None else dict(self.label2idx)

    def _metadata_columns(
        self, content: Table, taken: set[str | None], parse_values: bool
    ) -> Table:
        columns = {
            name: values
            for name, values in content.columns.items()
            if name not in taken
        }
        reserved = {"id"} | (set() if self._labels is None else {"label", "idx"})
        if clash := reserved & columns.keys():
            raise SourceReadError(
                f"{content.name}: the columns {sorted(clash)} would hide what the "
                "metadata has under these names. Rename them, or name them as "
                "id_column or label_column."
            )
        if parse_values and content.is_text:
            columns = {name: parse_column(values) for name, values in columns.items()}
        return Table(columns, name=content.name, num_rows=len(content))

    def _meta(self, row: int) -> Meta:
        meta: Meta = {"id": self._ids[row]}
        if self._labels is not None and self.label2idx is not None:
            label = self._labels[row]
            meta["label"] = label
            meta["idx"] = self.label2idx[label_key(label)]
        meta.update(self._extra[row])
        return meta

    def _source(self, row: int) -> str:
        path = self._paths[row]
        return path if is_url(path) else str(Path(self.root_folder, path))

    def _frames(self, row: int) -> FrameSource:
        rate = self.image_rate if self._rates is None else self._rates[row]
        images = FolderImages(self.prefix, ImageTimes(rate, self.first_number))
        options = (self.frame_size, self.frame_rate, self._times_of(row), images)
        path = self._source(row)
        return DeferredFrames(partial(open_path, path, self.media, *options))

    def _times_of(self, row: int) -> Times:
        return None if self._times is None else self._times[row]
