"""The layouts in which 20BN published its datasets: JSON or CSV beside the files."""

from __future__ import annotations

import os
import random
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.image_folders import folder_frames
from gulpio2.adapters.label_numbers import label_key
from gulpio2.adapters.labels import Custom20BNAdapterMixin, labelled_rows
from gulpio2.adapters.settings import checked_frame_rate, checked_size
from gulpio2.adapters.sources import single_video_frames, video_frames
from gulpio2.adapters.tables import read_json_file
from gulpio2.errors import (
    NotOneVideoError,
    SourceFieldError,
    SourceFormatError,
    SourceReadError,
    UnknownFileFormatError,
)

# Known when the program runs: the command line looks what a rate may be, or it would
# take what the default is, a whole number.
from gulpio2.format.rates import FrameRate  # noqa: TC001  # see above
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Item, Meta, StrPath

__all__ = [
    "Custom20BNCsvJpegAdapter",
    "Custom20BNCsvWebmAdapter",
    "Custom20BNJsonVideoAdapter",
]

_SHM = "/dev/shm"  # noqa: S108 - the default of 0.0.4, accepted and unused


class _LabelledRows(Custom20BNAdapterMixin, AbstractDatasetAdapter):
    """Rows with an id and a label, each of which names a file or a folder."""

    data: list[Meta]
    all_meta: list[Meta]
    folder: StrPath
    output_folder: StrPath

    @property
    def _label_key(self) -> str:
        """Key of the label in the rows."""
        return "label"

    def _set_rows(self, table: StrPath, rows: list[Meta]) -> None:
        """Take the rows of a table and number their labels."""
        local_path(self.folder, "read")
        self.data = rows
        for position, row in enumerate(rows):
            for key in ("id", self._label_key):
                if key not in row:
                    advice = (
                        "Every item needs one."
                        if key == "id"
                        else "Add it, or give label_name the right name."
                    )
                    raise SourceFieldError(
                        f"{os.fspath(table)!r}: item {position + 1} has no {key!r}; it "
                        f"has {list(row)}. {advice}"
                    )
            if not isinstance(row["id"], Hashable) or row["id"] in (None, ""):
                raise SourceReadError(
                    f"{os.fspath(table)!r}: item {position + 1} has {row['id']!r} as "
                    "id. An id is a string or an integer."
                )
        self.labels2idx = self.create_label2idx_dict(self._label_key)
        self.all_meta = self.get_meta()

    def _finish(self, shuffle: bool, remove_duplicate_ids: bool = False) -> None:
        """Drop and permute items as the constructor was told to."""
        if remove_duplicate_ids:
            from gulpio2.adapters.duplicates import remove_entries_with_duplicate_ids

            self.all_meta = remove_entries_with_duplicate_ids(
                self.output_folder, self.all_meta
            )
        self.shuffle = bool(shuffle)
        if self.shuffle:
            random.shuffle(self.all_meta)

    def get_meta(self) -> list[Meta]:
        """Give the metadata of all items: ``id``, ``label`` and ``idx``."""
        name = self._label_key
        return [
            {
                "id": row["id"],
                "label": row[name],
                "idx": self.labels2idx[label_key(row[name])],
            }
            for row in self.data
        ]

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; files are opened when iterated."""
        for meta in self.all_meta[slice_element or slice(None)]:
            yield {
                "meta": dict(meta),
                "frames": self._frames(self._source(meta["id"])),
                "id": meta["id"],
            }

    def __len__(self) -> int:
        """Count the items."""
        return len(self.all_meta)

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [meta["id"] for meta in self.all_meta]

    def item_source(self, position: int) -> str:
        """Give the path of the item's file or folder."""
        return self._source(self.all_meta[position]["id"])

    def _source(self, id_: object) -> str:
        return str(Path(self.folder, str(id_)))

    def _frames(self, path: str) -> Any:
        raise NotImplementedError


class Custom20BNJsonVideoAdapter(_LabelledRows):
    """Videos listed in a JSON file, one MP4 in a folder of its own per item.

    Parameters
    ----------
    json_file : str or path object
        ``.json`` or ``.json.gz``: a list of objects with ``id`` and the key that
        `label_name` says.
    folder : str or path object
        Holds ``<id>/<any name>.mp4``, exactly one in each folder.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float or str
        Frames a second to resample to; 0 or None: as they are.
    shm_dir_path : str or path object
        Accepted and without effect: frames go straight from the decoder to the store.
    label_name : str
        Key of the label in the objects.
    remove_duplicate_ids : bool
        Whether to leave out, with a printed line each, ids that are repeated or are in
        the output folder already.

    Notes
    -----
    Metadata is ``id`` (of its type in the JSON), ``label`` and ``idx``.
    """

    def __init__(
        self,
        json_file: StrPath,
        folder: StrPath,
        output_folder: StrPath,
        shuffle: bool = False,
        frame_size: int = -1,
        frame_rate: FrameRate | None = 8,
        shm_dir_path: StrPath = _SHM,
        label_name: str = "template",
        remove_duplicate_ids: bool = False,
    ) -> None:
        self.json_file = json_file
        self.label_name = label_name
        self.output_folder = output_folder
        self.folder = folder
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        self.shm_dir_path = shm_dir_path
        name = os.fspath(json_file)
        if name.endswith(".json.gz"):
            rows = self.read_gz_json(json_file)
        elif name.endswith(".json"):
            rows = self.read_json(json_file)
        else:
            raise UnknownFileFormatError(
                f"Wrong data file format (.json.gz or .json): {name!r}. "
                "Give a file with one of these endings."
            )
        if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
            raise SourceFormatError(f"{name!r} is not a list of objects, one an item.")
        self._set_rows(json_file, rows)
        self._finish(shuffle, remove_duplicate_ids)

    @property
    def _label_key(self) -> str:
        return self.label_name

    def read_json(self, json_file: StrPath) -> Any:
        """Read a ``.json`` file.

        Parameters
        ----------
        json_file : str or path object
            The file.
        """
        return read_json_file(json_file)

    def read_gz_json(self, gz_json_file: StrPath) -> Any:
        """Read a ``.json.gz`` file.

        Parameters
        ----------
        gz_json_file : str or path object
            The file.
        """
        return read_json_file(gz_json_file)

    def _frames(self, path: str) -> Any:
        return single_video_frames(
            path, frame_rate=self.frame_rate, frame_size=self.frame_size
        )


class Custom20BNCsvWebmAdapter(_LabelledRows):
    """WebM videos listed in a CSV file.

    Parameters
    ----------
    csv_file : str or path object
        Rows of ``id;label``, no header; a row of an id alone has the label ``dummy``.
        Blank rows are left out.
    folder : str or path object
        Holds ``<id>.webm``.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float or str
        Frames a second to resample to; 0 or None: as they are.
    shm_dir_path : str or path object
        Accepted and without effect: frames go straight from the decoder to the store.
    label_name : str
        Accepted and without effect, as in GulpIO2 0.0.4: the rows have two columns.
    remove_duplicate_ids : bool
        Whether to leave out, with a printed line each, ids that are repeated or are in
        the output folder already.

    Notes
    -----
    Metadata is ``id`` (str), ``label`` and ``idx``.
    """

    def __init__(
        self,
        csv_file: StrPath,
        folder: StrPath,
        output_folder: StrPath,
        shuffle: bool = False,
        frame_size: int = -1,
        frame_rate: FrameRate | None = 12,
        shm_dir_path: StrPath = _SHM,
        label_name: str = "label",
        remove_duplicate_ids: bool = False,
    ) -> None:
        self.csv_file = csv_file
        self.label_name = label_name
        self.output_folder = output_folder
        self.folder = folder
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        self.shm_dir_path = shm_dir_path
        self._set_rows(csv_file, self.read_csv(csv_file))
        self._finish(shuffle, remove_duplicate_ids)

    def read_csv(self, csv_file: StrPath) -> list[Meta]:
        """Read the rows as ``id`` and ``label``.

        Parameters
        ----------
        csv_file : str or path object
            The file.
        """
        return [
            {"id": row[0], "label": row[1] if len(row) > 1 else "dummy"}
            for _, row in labelled_rows(csv_file)
        ]

    def get_single_video_file_path(
        self, folder_name: StrPath, format_: str = "webm"
    ) -> str:
        """Give the path of the video that belongs to a path without an ending.

        Parameters
        ----------
        folder_name : str or path object
            ``<folder>/<id>``.
        format_ : str
            Ending without its dot.

        Raises
        ------
        NotOneVideoError
            There is no such file. It is an ``AssertionError`` too.
        """
        path = f"{os.fspath(folder_name)}.{format_}"
        if not Path(path).is_file():
            raise NotOneVideoError(
                f"There is no video {path!r}. Put it there, or take it out of the list."
            )
        return path

    def _source(self, id_: object) -> str:
        find = type(self).get_single_video_file_path
        if find is Custom20BNCsvWebmAdapter.get_single_video_file_path:
            # That there is none is said when it is opened.
            return str(Path(self.folder, f"{id_}.webm"))
        return self.get_single_video_file_path(str(Path(self.folder, str(id_))))

    def _frames(self, path: str) -> Any:
        return video_frames(
            path, frame_rate=self.frame_rate, frame_size=self.frame_size
        )


class Custom20BNCsvJpegAdapter(_LabelledRows):
    """Videos as folders of JPEG frames, listed in a CSV file.

    Parameters
    ----------
    csv_file : str or path object
        Rows of ``id;label``, no header. Blank rows are left out.
    folder : str or path object
        Holds ``<id>/*.jpg``, the frames in the order of their names, ``2.jpg`` before
        ``10.jpg``.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    shm_dir_path : str or path object
        Accepted and without effect.

    Notes
    -----
    Metadata is ``id`` (str), ``label`` and ``idx``. A JPEG that keeps its size is
    stored byte for byte.
    """

    def __init__(
        self,
        csv_file: StrPath,
        folder: StrPath,
        output_folder: StrPath,
        shuffle: bool = False,
        frame_size: int = -1,
        shm_dir_path: StrPath = _SHM,
    ) -> None:
        self.csv_file = csv_file
        self.output_folder = output_folder
        self.folder = folder
        self.frame_size = checked_size("frame_size", frame_size)
        self.shm_dir_path = shm_dir_path
        self._set_rows(csv_file, self.read_csv(csv_file))
        self._finish(shuffle)

    def read_csv(self, csv_file: StrPath) -> list[Meta]:
        """Read the rows as ``id`` and ``label``.

        Parameters
        ----------
        csv_file : str or path object
            The file.

        Raises
        ------
        SourceFieldError
            A row has no label; the message gives the line.
        """
        rows = []
        for line, row in labelled_rows(csv_file):
            if len(row) < 2:
                raise SourceFieldError(
                    f"{os.fspath(csv_file)!r}, line {line}: {row[0]!r} is not "
                    "'id;label'. Add the semicolon and the label."
                )
            rows.append({"id": row[0], "label": row[1]})
        return rows

    def _frames(self, path: str) -> Any:
        return folder_frames(path, frame_size=self.frame_size)
