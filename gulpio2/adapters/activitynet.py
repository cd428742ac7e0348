"""ActivityNet: videos named by their id, and one JSON database of all of them."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.settings import checked_frame_rate, checked_size
from gulpio2.adapters.sources import video_frames
from gulpio2.adapters.tables import read_json_file, records_by_id
from gulpio2.errors import IngestSettingError, SourceFieldError, unreadable
from gulpio2.media.folders import is_folder
from gulpio2.storage.refusals import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource, Item, StrPath

__all__ = ["ActivitynetAdapter"]

logger = logging.getLogger(__name__)


class ActivitynetAdapter(AbstractDatasetAdapter):
    """Videos of one phase of ActivityNet.

    Parameters
    ----------
    json_file : str or path object
        Its key ``database`` holds id to record; a record's ``subset`` is its phase.
    folder : str or path object
        Holds the videos, named by their id up to the first dot. Names that end in
        ``part``, and videos of other phases or of no record, are left out; a warning
        tells of the last, and of records of the phase that have no video. One whose
        record has no phase is refused.
    shuffle : bool
        Whether to permute the items, with the global `random` state.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    shm_dir_path : str or path object
        Accepted and without effect: frames go straight from the decoder to the store.
    phase : str
        ``training``, ``validation`` or ``testing``.
    frame_rate : float or str, optional
        Frames a second to resample to. Default: as they are.

    Notes
    -----
    Metadata is the whole record. Videos come in the order of their names.
    """

    # Of a subclass with a constructor of its own, as written for 0.0.4.
    frame_rate: FrameRate | None = None

    def __init__(
        self,
        json_file: StrPath,
        folder: StrPath,
        shuffle: bool = False,
        frame_size: int = -1,
        shm_dir_path: StrPath = "/dev/shm",  # noqa: S108 - a default of 0.0.4, unused
        phase: str = "training",
        *,
        frame_rate: FrameRate | None = None,
    ) -> None:
        self.json_file = json_file
        self.json_storage = self.read_json(json_file)
        self.folder = folder
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        self.shm_dir_path = shm_dir_path
        self.set_video_storage(phase)
        if shuffle:
            random.shuffle(self.vid_storage)

    def read_json(self, json_file: StrPath) -> Any:
        """Read the records out of the JSON file.

        Parameters
        ----------
        json_file : str or path object
            The file.

        Returns
        -------
        dict
            Record by id: what stands under ``database``.

        Raises
        ------
        SourceFieldError
            It is no annotation file of ActivityNet.
        """
        content = read_json_file(json_file)
        database = content.get("database") if isinstance(content, dict) else None
        return records_by_id(
            database,
            f"{os.fspath(json_file)!r} has no key 'database' with an object of id to "
            "record. Give ActivityNet's annotation file.",
        )

    def set_video_storage(self, phase: str = "training") -> None:
        """List the videos of a phase in ``vid_storage``, as sorted file names.

        Parameters
        ----------
        phase : str
            ``training``, ``validation`` or ``testing``.

        Raises
        ------
        IngestSettingError
            The database has other phases, but not this one.
        SourceFieldError
            The record of a video has no phase, or no record has one.
        SourceNotFoundError
            The folder is missing.
        """
        told = (record.get("subset") for record in self.json_storage.values())
        phases = {each for each in told if isinstance(each, str)}
        if self.json_storage and not phases:
            raise self._without_phase(next(iter(self.json_storage)))
        if phases and phase not in phases:
            raise IngestSettingError(
                f"phase is {phase!r}, but {os.fspath(self.json_file)!r} has only "
                f"{sorted(phases)}. Choose one of them."
            )
        folder = local_path(self.folder, "read")
        try:
            with os.scandir(folder) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    if not (entry.name.endswith("part") or is_folder(entry))
                )
        except OSError as cause:
            advice = "Give the path of an existing folder"
            if isinstance(cause, PermissionError):
                advice = "Mend that, or give another one"
            raise unreadable(
                cause,
                f"The folder of videos {os.fspath(self.folder)!r} cannot be listed "
                f"({cause.strerror}). {advice}.",
            ) from cause
        for name in names:
            record = self.json_storage.get(_id_of(name))
            if record is not None and not isinstance(record.get("subset"), str):
                raise self._without_phase(_id_of(name))
        self.vid_storage = [
            name
            for name in names
            if self.json_storage.get(_id_of(name), {}).get("subset") == phase
        ]
        self._tell_of_others(names, phase)

    def _without_phase(self, id_: str) -> SourceFieldError:
        found = self.json_storage[id_]
        has = f"{found['subset']!r:.80} as" if "subset" in found else "no"
        return SourceFieldError(
            f"{os.fspath(self.json_file)!r}: the record of {id_!r} has {has} 'subset', "
            "which is its phase: training, validation or testing. Add it, or take the "
            "record out."
        )

    def _tell_of_others(self, names: Sequence[str], phase: str) -> None:
        """Tell of files without a record, and of records of the phase without one."""
        ids = {_id_of(name) for name in names}
        unknown = [name for name in names if _id_of(name) not in self.json_storage]
        missing = [
            id_
            for id_, record in self.json_storage.items()
            if record.get("subset") == phase and id_ not in ids
        ]
        for found, what in (
            (unknown, "files that no record is of are left out"),
            (missing, f"records of {phase} have no file"),
        ):
            if found:
                logger.warning(
                    "%s and %s: %s (%d): %s%s",
                    self.folder,
                    self.json_file,
                    what,
                    len(found),
                    ", ".join(found[:3]),
                    ", ..." if len(found) > 3 else "",
                )

    def get_bursted_frames(self, vid_file: StrPath) -> FrameSource:
        """Give the frames of a video, which is opened when they are iterated.

        Parameters
        ----------
        vid_file : str or path object
            Its name in the folder, as it is in ``vid_storage``; or an absolute path.
        """
        path = Path(self.folder, vid_file)
        return video_frames(
            path, frame_rate=self.frame_rate, frame_size=self.frame_size
        )

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the items at these positions; videos are opened when iterated."""
        for name in self.vid_storage[slice_element or slice(None)]:
            yield {
                "meta": dict(self.json_storage[_id_of(name)]),
                "frames": self.get_bursted_frames(name),
                "id": _id_of(name),
            }

    def __len__(self) -> int:
        """Count the videos of the phase."""
        return len(self.vid_storage)

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [_id_of(name) for name in self.vid_storage]

    def item_source(self, position: int) -> str:
        """Give the path of the video."""
        return str(Path(self.folder, self.vid_storage[position]))


def _id_of(name: str) -> str:
    return name.partition(".")[0]
