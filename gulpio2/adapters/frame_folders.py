"""Videos whose frames are image files already, one item a folder."""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.image_folders import ImageTimes, folder_frames
from gulpio2.adapters.naming import describe_series, series_of
from gulpio2.adapters.settings import checked_size
from gulpio2.adapters.sources import IMAGE_FORMATS, OTHER_IMAGE_FORMATS
from gulpio2.adapters.trees import FolderTreeAdapter, NameRule
from gulpio2.format.wording import counted
from gulpio2.media.folders import walk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.format.rates import FrameRate
    from gulpio2.types import StrPath

__all__ = ["FrameFolderAdapter"]

logger = logging.getLogger(__name__)

# Folders that are named in a warning.
_NAMED = 4


class FrameFolderAdapter(FolderTreeAdapter):
    """Folders of images, each a video, labelled by the folder that each lies in.

    Parameters
    ----------
    folder : str or path object
        Where to look, at any depth; a trailing slash makes no difference.
    output_folder : str or path object
        The gulp directory; labels that it has already keep their index.
    file_extensions : iterable of str
        What the names of images must end with, case-sensitive.
    prefix : str
        What they must begin with, as ``img_`` where ``flow_x_00001.jpg`` lies beside
        ``img_00001.jpg``.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    image_rate : float or str, optional
        Images a second in the video that they are of, by which they get times: samplers
        by seconds need these. Default, and for 0: they have none.
    first_number : int, optional
        The number of the image at 0 seconds. Default: that of each item's first image.
    id_rule : 'label-name' or 'path'
        Id of ``<folder>/x/run/v1/00001.jpg``: ``run-v1``, or ``x/run/v1``, which never
        collides.

    Notes
    -----
    Metadata is ``id``, ``label``, ``path`` (the parent folder as found) and ``idx``.
    Numbers in the names of images count as numbers: ``2.jpg`` comes before ``10.jpg``.
    Of numbers that are missing a warning tells, also at the beginning where they are
    times, as with `image_rate`: there is nothing at the times of those. Of images
    without a number each the times go by their places, and a warning says so.
    Images in `folder` itself, or in one that holds such folders, are left out with a
    warning.
    """

    known_endings = frozenset(
        f".{ending}" for ending in IMAGE_FORMATS | OTHER_IMAGE_FORMATS
    )

    def __init__(
        self,
        folder: StrPath,
        output_folder: StrPath,
        *,
        file_extensions: Iterable[str] = (".jpg", ".jpeg", ".png"),
        prefix: str = "",
        shuffle: bool = False,
        frame_size: int = -1,
        image_rate: FrameRate | None = None,
        first_number: int | None = None,
        id_rule: NameRule = "label-name",
    ) -> None:
        self.frame_size = checked_size("frame_size", frame_size)
        self.prefix = prefix
        self._times = ImageTimes.checked(image_rate, first_number)
        self.image_rate, self.first_number = self._times
        super().__init__(
            folder, output_folder, file_extensions, shuffle, id_rule=id_rule
        )

    def frames_of(self, path: str) -> Any:
        """Give the images of a folder as frames, listed when they are iterated."""
        return folder_frames(
            path,
            formats=[ending.removeprefix(".") for ending in self.file_extensions],
            prefix=self.prefix,
            frame_size=self.frame_size,
            times=self._times,
        )

    def _find(self, folder: StrPath) -> Iterable[tuple[str, str]]:
        """Find the folders that hold images."""
        root = str(Path(folder))
        endings = tuple(self.file_extensions)
        found: dict[str, int] = {}
        left_out: Counter[str] = Counter()
        none_taken: dict[str, str] = {}
        some_taken: dict[str, str] = {}
        empty: list[str] = []
        for parent, names, has_more in walk_folders(folder):
            images = [name for name in names if name.endswith(endings)]
            left_out.update(Path(name).suffix for name in {*names}.difference(images))
            if not (images or has_more or parent == root or self._has_others(names)):
                empty.append(parent)
            taken = [name for name in images if name.startswith(self.prefix)]
            if taken:
                found[parent] = len(taken)
            if len(taken) == len(images):
                continue
            others = series_of(sorted({*images}.difference(taken)))
            if not taken:
                none_taken[parent] = describe_series(others.values())
            elif cut := others.keys() & series_of(taken).keys():
                some_taken[parent] = describe_series(others[key] for key in cut)
        self._tell_of_endings(left_out, folder)
        self._tell_of_prefix(none_taken, "nothing is taken out of")
        self._tell_of_prefix(some_taken, "a part of the images is taken out of")
        if empty:
            logger.warning(
                "%s without images: %s. Bring back what is missing, or take them away",
                counted(len(empty), "folder"),
                _named(empty, ", "),
            )
        # Each folder that another one with images is in.
        above = {root}
        for item in found:
            while (item := os.path.dirname(item)) not in above and item:  # noqa: PTH120  # of millions
                above.add(item)
        for each in sorted(above & found.keys()):
            logger.warning(
                "%s: %s left out, since folders of images lie there as well, or it is "
                "the folder that items are looked for in: move them to a folder of "
                "their own, or give the folder above it",
                each,
                counted(found[each], "image"),
            )
        return [os.path.split(each) for each in sorted(found.keys() - above)]

    def _has_others(self, names: list[str]) -> bool:
        """Tell whether there are images that a warning tells of by their endings."""
        return any(Path(name).suffix.lower() in self.known_endings for name in names)

    def _tell_of_prefix(self, folders: dict[str, str], what: str) -> None:
        """Warn of folders of which a prefix was perhaps not meant to leave images."""
        if folders:
            logger.warning(
                "%s %s, since these names do not begin with %r (prefix): %s",
                what,
                counted(len(folders), "folder"),
                self.prefix,
                _named([f"{each}: {told}" for each, told in folders.items()], "; "),
            )


def _named(told: list[str], between: str) -> str:
    """Name the first of what is told of folders, and count the others."""
    more = f" (and {len(told) - _NAMED} more)" if told[_NAMED:] else ""
    return between.join(sorted(told)[:_NAMED]) + more
