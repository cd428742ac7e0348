"""Images as items of one frame: from a list, or from a tree of folders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.labels import FolderLabelMixin
from gulpio2.adapters.settings import check_choice, checked_size
from gulpio2.adapters.sources import IMAGE_FORMATS, OTHER_IMAGE_FORMATS, image_frames
from gulpio2.adapters.trees import FolderTreeAdapter, NameRule
from gulpio2.errors import SourceFormatError, unreadable
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.types import Item, Meta, StrPath

__all__ = ["ImageFolderAdapter", "ImageListAdapter"]


class ImageListAdapter(FolderLabelMixin, AbstractDatasetAdapter):
    """Images named in a text file, one ``path,label`` a line.

    Parameters
    ----------
    input_file : str or path object
        UTF-8. What follows the last comma of a line is the label, so that paths may
        hold commas; blank lines are left out, spaces around both parts too.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    root_folder : str or path object
        What the paths are relative to.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    img_size : int
        Length of the short edge in pixels; below 1: as it is.
    id_rule : 'label-name' or 'path'
        Id of ``x/1.jpg,cat``: ``1.jpg`` (and of ``1.jpg,cat``: ``cat-1.jpg``), as in
        GulpIO2 0.0.4, or the path as it is in the file.

    Notes
    -----
    Metadata is ``id``, ``label`` and ``idx``. A missing or unreadable image raises
    when its frames are iterated, and so costs its own item only.
    """

    def __init__(
        self,
        input_file: StrPath,
        output_folder: StrPath,
        root_folder: StrPath = "",
        shuffle: bool = False,
        img_size: int = -1,
        *,
        id_rule: NameRule = "label-name",
    ) -> None:
        check_choice("id_rule", id_rule, NameRule)
        self.input_file = input_file
        self.output_folder = output_folder
        local_path(root_folder, "read")
        self.root_folder = root_folder
        self.folder = root_folder
        self.id_rule = id_rule
        self.data = self.parse_paths(input_file)
        if id_rule == "path":
            for row in self.data:
                row["id"] = row["path"]
        self.label2idx = self.create_label2idx_dict()
        self.shuffle = bool(shuffle)
        self.img_size = checked_size("img_size", img_size)
        self.all_meta = self.get_meta()
        if self.shuffle:
            random.shuffle(self.all_meta)

    @staticmethod
    def parse_paths(input_file: StrPath) -> list[Meta]:
        """Read a list of images.

        Parameters
        ----------
        input_file : str or path object
            Lines of ``path,label``.

        Returns
        -------
        list of dict
            ``id``, ``label`` and ``path`` in the order of the file.

        Raises
        ------
        SourceNotFoundError
            The file is missing.
        SourceFormatError
            It is no UTF-8, or a line has no label; the message gives the line.
        """
        rows: list[Meta] = []
        try:
            lines = Path(input_file).read_text("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as cause:
            reason = getattr(cause, "strerror", None) or cause  # without the name
            raise unreadable(
                cause,
                f"The list of images {str(input_file)!r} cannot be read ({reason}). "
                "Give the path of a UTF-8 text file.",
            ) from cause
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            path, comma, label = (part.strip() for part in line.rpartition(","))
            if not (comma and path and label):
                raise SourceFormatError(
                    f"{str(input_file)!r}, line {number}: {line.strip()!r} is not "
                    "'path,label'. Add the comma and the label."
                )
            # The rule of 0.0.4: only a path without folders keeps its label.
            id_ = f"{label}-{path}".rpartition("/")[2]
            rows.append({"id": id_, "label": label, "path": path})
        return rows

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; the files are opened when iterated."""
        for row in self.all_meta[slice_element or slice(None)]:
            meta = {key: value for key, value in row.items() if key != "path"}
            frames = image_frames([self._path(row)], frame_size=self.img_size)
            yield {"meta": meta, "frames": frames, "id": row["id"]}

    def __len__(self) -> int:
        """Count the images."""
        return len(self.all_meta)

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [row["id"] for row in self.all_meta]

    def item_source(self, position: int) -> str:
        """Give the path of the image."""
        return self._path(self.all_meta[position])

    def _path(self, row: Meta) -> str:
        return str(Path(self.root_folder, row["path"]))


class ImageFolderAdapter(FolderTreeAdapter):
    """Images below a folder, labelled by the folder that each lies in.

    Parameters
    ----------
    folder : str or path object
        Where to look, at any depth; a trailing slash makes no difference.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    file_extensions : iterable of str
        What the names must end with, case-sensitive.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    img_size : int
        Length of the short edge in pixels; below 1: as it is.
    id_rule : 'label-name' or 'path'
        Id of ``<folder>/x/cat/1.jpg``: ``cat-1.jpg``, as in GulpIO2 0.0.4, or
        ``x/cat/1.jpg``, which never collides.

    Notes
    -----
    Metadata is ``id``, ``label``, ``path`` (the parent folder as found) and ``idx``.
    """

    known_endings = frozenset(
        f".{ending}" for ending in IMAGE_FORMATS | OTHER_IMAGE_FORMATS
    )

    def __init__(
        self,
        folder: StrPath,
        output_folder: StrPath,
        file_extensions: Iterable[str] = (".jpg", ".png"),
        shuffle: bool = False,
        img_size: int = -1,
        *,
        id_rule: NameRule = "label-name",
    ) -> None:
        self.img_size = checked_size("img_size", img_size)
        super().__init__(
            folder, output_folder, file_extensions, shuffle, id_rule=id_rule
        )

    def frames_of(self, path: str) -> Any:
        """Give the image as one frame, opened when it is iterated."""
        return image_frames([path], frame_size=self.img_size)
