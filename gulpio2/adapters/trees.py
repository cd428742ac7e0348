"""What image and video folders have in common: a tree whose folders are labels."""

from __future__ import annotations

import logging
import random
from abc import abstractmethod
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.labels import FolderLabelMixin
from gulpio2.adapters.settings import check_choice
from gulpio2.media.folders import find_files, join_path
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gulpio2.types import Item, Meta, StrPath

__all__ = ["FolderTreeAdapter", "NameRule"]

logger = logging.getLogger(__name__)

# How an item of a labelled file gets its id.
NameRule = Literal["label-name", "path"]


class FolderTreeAdapter(FolderLabelMixin, AbstractDatasetAdapter):
    """What lies below a folder, each an item, labelled by the folder that it lies in.

    Items are files, unless a subclass finds others.

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
    id_rule : 'label-name' or 'path'
        Id of ``<folder>/x/cat/1.jpg``: ``cat-1.jpg``, as in GulpIO2 0.0.4, or
        ``x/cat/1.jpg``, which never collides.
    """

    # Lower-case endings of files of the kind: of those that are there and not taken, a
    # warning tells.
    known_endings: ClassVar[frozenset[str]] = frozenset()
    # Of a subclass with a constructor of its own, as written for 0.0.4.
    id_rule: NameRule = "label-name"

    def __init__(
        self,
        folder: StrPath,
        output_folder: StrPath,
        file_extensions: Iterable[str],
        shuffle: bool,
        *,
        id_rule: NameRule,
    ) -> None:
        check_choice("id_rule", id_rule, NameRule)
        self.folder = folder
        self.output_folder = output_folder
        self.file_extensions = (
            [file_extensions]
            if isinstance(file_extensions, str)
            else list(file_extensions)
        )
        self.id_rule = id_rule
        self.data = self.parse_folder(folder)
        self.label2idx = self.create_label2idx_dict()
        self.all_meta = self.get_meta()
        self.shuffle = bool(shuffle)
        if self.shuffle:
            random.shuffle(self.all_meta)

    @abstractmethod
    def frames_of(self, path: str) -> Any:
        """Give the frames of one item, lazily.

        Parameters
        ----------
        path : str
            The file, or the folder.
        """
        raise NotImplementedError

    def parse_folder(self, folder: StrPath) -> list[Meta]:
        """List the items with their ids and labels.

        Parameters
        ----------
        folder : str or path object
            Where to look.

        Returns
        -------
        list of dict
            ``id``, ``label`` and ``path``, the parent folder as found; sorted by path.

        Raises
        ------
        SourceNotFoundError
            The folder is missing.
        SourceReadError
            It cannot be listed.
        """
        inside = len(str(local_path(folder, "read")).rstrip("/")) + 1
        by_path = self.id_rule == "path"
        labels: dict[str, str] = {}
        rows = []
        for parent, name in self._find(folder):
            if parent not in labels:
                label = Path(parent).name
                if label in ("", ".."):  # as of the current folder, or the one above
                    label = Path(parent).resolve().name
                labels[parent] = label
            label = labels[parent]
            id_ = f"{parent}/{name}"[inside:] if by_path else f"{label}-{name}"
            rows.append({"id": id_, "label": label, "path": parent})
        return rows

    def _find(self, folder: StrPath) -> Iterable[tuple[str, str]]:
        """Find the items, sorted by path: the folder that each is in, and its name."""
        endings = tuple(self.file_extensions)
        found, left_out = [], Counter[str]()
        for parent, name in find_files(folder):
            if name.endswith(endings):
                found.append((parent, name))
            else:
                left_out[Path(name).suffix] += 1
        self._tell_of_endings(left_out, folder)
        return found

    def _tell_of_endings(self, counts: Mapping[str, int], folder: StrPath) -> None:
        """Warn of files that are of the kind, by endings that are not taken."""
        left_out = {
            ending: number
            for ending, number in counts.items()
            if ending.lower() in self.known_endings
        }
        if left_out:
            logger.warning(
                "files below %s are left out for their endings: %s. Name the endings "
                "to take in file_extensions (on the command line --file-extensions), "
                "or convert the files",
                folder,
                ", ".join(f"{ending} ({n})" for ending, n in sorted(left_out.items())),
            )

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; the files are opened when iterated."""
        for meta in self.all_meta[slice_element or slice(None)]:
            yield {
                "meta": dict(meta),
                "frames": self.frames_of(self._path(meta)),
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
        return self._path(self.all_meta[position])

    def _path(self, meta: Meta) -> str:
        if self.id_rule == "path":
            name = meta["id"].rpartition("/")[2]
        else:
            name = meta["id"][len(meta["label"]) + 1 :]
        folder = meta["path"]
        if folder[:1] == ".":  # the current one has no name in a path
            return str(Path(folder, name))
        return join_path(folder, name)
