"""Videos below a folder, one item a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.adapters.settings import checked_frame_rate, checked_size
from gulpio2.adapters.sources import OTHER_VIDEO_FORMATS, VIDEO_FORMATS, video_frames
from gulpio2.adapters.trees import FolderTreeAdapter, NameRule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource, StrPath

__all__ = ["VideoFolderAdapter"]


class VideoFolderAdapter(FolderTreeAdapter):
    """Videos below a folder, labelled by the folder that each lies in.

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
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    shm_dir_path : str or path object
        Accepted and without effect: frames go straight from the decoder to the store.
    frame_rate : float or str, optional
        Frames a second to resample to. Default: as they are.
    id_rule : 'label-name' or 'path'
        Id of ``<folder>/x/run/1.mp4``: ``run-1.mp4``, as in GulpIO2 0.0.4, or
        ``x/run/1.mp4``, which never collides.

    Notes
    -----
    Metadata is ``id``, ``label``, ``path`` (the parent folder as found) and ``idx``.
    """

    known_endings = frozenset(
        f".{ending}" for ending in VIDEO_FORMATS | OTHER_VIDEO_FORMATS
    )
    # Of a subclass with a constructor of its own, as written for 0.0.4.
    frame_rate: FrameRate | None = None

    def __init__(
        self,
        folder: StrPath,
        output_folder: StrPath,
        file_extensions: Iterable[str] = (".mp4", ".webm"),
        shuffle: bool = False,
        frame_size: int = -1,
        shm_dir_path: StrPath = "/dev/shm",  # noqa: S108 - a default of 0.0.4, unused
        *,
        frame_rate: FrameRate | None = None,
        id_rule: NameRule = "label-name",
    ) -> None:
        self.frame_size = checked_size("frame_size", frame_size)
        self.frame_rate = checked_frame_rate(frame_rate)
        self.shm_dir_path = shm_dir_path
        super().__init__(
            folder, output_folder, file_extensions, shuffle, id_rule=id_rule
        )

    def get_bursted_frames(self, video_path: StrPath) -> FrameSource:
        """Give the frames of a video, which is opened when they are iterated.

        Parameters
        ----------
        video_path : str or path object
            The file.
        """
        return video_frames(
            video_path, frame_rate=self.frame_rate, frame_size=self.frame_size
        )

    def frames_of(self, path: str) -> Any:
        """Give the frames of one file, lazily."""
        return self.get_bursted_frames(path)
