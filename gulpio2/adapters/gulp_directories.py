"""A gulp directory as a source: some of its items, or all with smaller frames."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.labels import read_label_file
from gulpio2.adapters.settings import checked_size
from gulpio2.adapters.sources import image_frames
from gulpio2.errors import IngestSettingError, SourceNotFoundError
from gulpio2.media.deferred import DeferredFrames
from gulpio2.storage.paths import is_there
from gulpio2.unfinished import open_settled, warn_of_what_is_missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.item import StoredItem
    from gulpio2.types import FrameSource, Item, JsonValue, StrPath

__all__ = ["GulpDirectoryAdapter"]


class GulpDirectoryAdapter(AbstractDatasetAdapter):
    """Items of a gulp directory, with their ids, metadata, times and labels.

    Parameters
    ----------
    folder : str or path object
        The directory.
    where : str
        Only items that meet this condition, as of `GulpDirectory.query`:
        ``"label == 'walk' and num_frames >= 16"``. Default: all.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.

    Raises
    ------
    IngestSettingError
        No such condition; it is a ``ValueError`` too.
    SourceNotFoundError
        There is no such folder.

    Notes
    -----
    Frames that keep their size are copied as they are stored, whatever the quality.
    Others are decoded and encoded once more, with colours at their full size unless
    the encoder is told otherwise (``--subsampling 420``). A damaged frame costs its
    item. Of a directory that is unfinished, or lacks shares, a warning tells.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("train", num_items=5, num_frames=8)
    >>> adapter = GulpDirectoryAdapter("train", where="number >= 3")
    >>> adapter.item_ids(), len(adapter)
    (['item3', 'item4'], 2)
    """

    def __init__(
        self, folder: StrPath, *, where: str = "", frame_size: int = -1
    ) -> None:
        self.folder = folder
        self.where = where
        self.frame_size = checked_size("frame_size", frame_size)
        if not is_there(folder):
            raise SourceNotFoundError(
                f"There is no directory {str(folder)!r}. Give the path of one."
            )
        self.directory = open_settled(folder)
        warn_of_what_is_missing(self.directory)
        self.ids = self._chosen()
        self.metainfo = self.directory.metainfo
        self.label2idx = read_label_file(folder) or None

    def _chosen(self) -> list[str]:
        """List the items that meet the condition."""
        if not self.where:
            return list(self.directory.merged_meta_dict)
        try:
            return list(self.directory.query(self.where).merged_meta_dict)
        except ValueError as cause:
            raise IngestSettingError(f"where: {cause}") from cause

    def __len__(self) -> int:
        """Count the items."""
        return len(self.ids)

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; frames are read when iterated."""
        for id_ in self.ids[slice_element or slice(None)]:
            item = self.directory.item(id_)
            frames = _ItemFrames(item, str(self.folder), self.frame_size)
            yield {"meta": dict(item.meta), "frames": frames, "id": id_}

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return self.ids

    def item_source(self, position: int) -> str:
        """Give the data file that has the item."""
        return str(self.directory.item(self.ids[position]).data_path)

    def label_mapping(self) -> dict[str, int] | None:
        """Give the numbers of all labels of the directory; None where it has none."""
        return self.label2idx


class _ItemFrames(DeferredFrames):
    """The frames of an item, with what is known of its source."""

    def __init__(self, item: StoredItem, folder: str, frame_size: int) -> None:
        super().__init__(partial(_frames_of, item, folder, frame_size))
        self._source = item.extras.source

    def source_info(self) -> dict[str, JsonValue]:
        """Tell what the map tells of the source."""
        return dict(self._source)


def _frames_of(item: StoredItem, folder: str, frame_size: int) -> FrameSource:
    names = [
        f"{Path(folder)}, item {item.id_!r}, frame {number}"
        for number in range(item.num_frames)
    ]
    numbers = {name: number for number, name in enumerate(names)}
    extras = item.extras
    return image_frames(
        names,
        frame_size=frame_size,
        pts=extras.pts or None,
        time_base=extras.time_base,
        read=lambda name: item.read_jpegs([numbers[name]])[0],
    )
