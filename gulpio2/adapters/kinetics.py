"""Kinetics: clips in a folder per class, named by video and time, and one JSON."""

from __future__ import annotations

import logging
import os
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.settings import check_choice, checked_frame_rate, checked_size
from gulpio2.adapters.sources import OTHER_VIDEO_FORMATS, VIDEO_FORMATS, video_frames
from gulpio2.adapters.tables import read_json_file, records_by_id
from gulpio2.errors import SourceReadError
from gulpio2.format.wording import counted
from gulpio2.media.folders import find_files
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource, Item, StrPath

__all__ = ["KineticsAdapter"]

logger = logging.getLogger(__name__)

_VIDEOS = VIDEO_FORMATS | OTHER_VIDEO_FORMATS
# <video>_<first second>_<last second>, read from the right: a video's own id may hold
# underscores and digits.
_CLIP = re.compile(r"(?P<video>.+)_[0-9]{6}_[0-9]{6}")

ClipIdRule = Literal["video", "clip"]


class KineticsAdapter(AbstractDatasetAdapter):
    """Clips of Kinetics.

    Parameters
    ----------
    json_file : str or path object
        Object of YouTube id to record.
    folder : str or path object
        Holds ``<class>/<id>_<start>_<end>.mp4``, the times in seconds of six digits. A
        warning tells of videos that lie otherwise, or are no MP4: they are left out.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    shm_dir_path : str or path object
        Accepted and without effect: frames go straight from the decoder to the store.
    frame_rate : float or str, optional
        Frames a second to resample to. Default: as they are.
    id_rule : 'video' or 'clip'
        Id of ``abc_000003_000013.mp4``: ``abc``, as in GulpIO2 0.0.4, or
        ``abc_000003_000013``, for sets with several clips of a video.
    skip_unlisted : bool
        Whether to leave out videos of which the JSON has no record, instead of
        refusing the folder.

    Notes
    -----
    Metadata is the record. Clips come in the order of their paths.
    """

    # Of a subclass with a constructor of its own, as written for 0.0.4.
    frame_rate: FrameRate | None = None
    id_rule: ClipIdRule = "video"
    skip_unlisted = False

    def __init__(
        self,
        json_file: StrPath,
        folder: StrPath,
        shuffle: bool = False,
        frame_size: int = -1,
        shm_dir_path: StrPath = "/dev/shm",  # noqa: S108 - a default of 0.0.4, unused
        *,
        frame_rate: FrameRate | None = None,
        id_rule: ClipIdRule = "video",
        skip_unlisted: bool = False,
    ) -> None:
        check_choice("id_rule", id_rule, ClipIdRule)
        self.json_file = json_file
        self.json_storage = self._records(json_file)
        self.folder = folder
        self.id_rule = id_rule
        self.skip_unlisted = skip_unlisted
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        self.shm_dir_path = shm_dir_path
        self.set_video_storage()
        if shuffle:
            random.shuffle(self.vid_storage)

    def read_json(self, json_file: StrPath) -> Any:
        """Read the whole JSON file.

        Parameters
        ----------
        json_file : str or path object
            The file.
        """
        return read_json_file(json_file)

    def set_video_storage(self) -> None:
        """List the clips in ``vid_storage``, as sorted paths.

        Raises
        ------
        SourceNotFoundError
            The folder is missing.
        SourceReadError
            There are videos of which the JSON has no record.
        """
        folder = str(local_path(self.folder, "read"))
        paths, left_out = [], []
        for parent, name in find_files(folder, max_depth=1):
            path = str(Path(parent, name))
            if parent != folder and name.endswith(".mp4"):
                paths.append(path)
            elif Path(name).suffix[1:].lower() in _VIDEOS:
                left_out.append(path)
        if left_out:
            logger.warning(
                "%s: %s left out, for not being <class>/<clip>.mp4: %s%s. To have "
                "them, put them into the folder of their class, as MP4",
                self.folder,
                counted(len(left_out), "video is", "videos are"),
                ", ".join(left_out[:3]),
                ", ..." if len(left_out) > 3 else "",
            )
        unlisted = [path for path in paths if self._video_of(path) is None]
        if unlisted and not self.skip_unlisted:
            raise SourceReadError(
                f"{os.fspath(self.json_file)!r} has no record of {len(unlisted)} of "
                f"{counted(len(paths), 'video')}, among them {unlisted[0]!r}. Give "
                "the JSON file that belongs to the folder, or leave them out with "
                "skip_unlisted=True."
            )
        skipped = set(unlisted)
        self.vid_storage = [path for path in paths if path not in skipped]

    def get_bursted_frames(self, vid_file: StrPath) -> FrameSource:
        """Give the frames of a video, which is opened when they are iterated.

        Parameters
        ----------
        vid_file : str or path object
            The file, as it is in ``vid_storage``.
        """
        return video_frames(
            vid_file, frame_rate=self.frame_rate, frame_size=self.frame_size
        )

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; videos are opened when iterated."""
        for path in self.vid_storage[slice_element or slice(None)]:
            yield {
                "meta": dict(self.json_storage[self._video_of(path) or ""]),
                "frames": self.get_bursted_frames(path),
                "id": self._id_of(path),
            }

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.vid_storage)

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [self._id_of(path) for path in self.vid_storage]

    def item_source(self, position: int) -> str:
        """Give the path of the clip."""
        return self.vid_storage[position]

    def _video_of(self, path: str) -> str | None:
        """Give the key of a clip's record, or None where there is no record."""
        stem = Path(path).stem
        clip = _CLIP.fullmatch(stem)
        # A name without times is taken whole.
        video = clip["video"] if clip else stem
        return video if video in self.json_storage else None

    def _id_of(self, path: str) -> str:
        stem = Path(path).stem
        clip = _CLIP.fullmatch(stem)
        return clip["video"] if clip and self.id_rule == "video" else stem

    def _records(self, json_file: StrPath) -> dict[str, dict[str, Any]]:
        return records_by_id(
            self.read_json(json_file),
            f"{os.fspath(json_file)!r} is not an object of YouTube id to record. Give "
            "Kinetics' annotation file.",
        )
