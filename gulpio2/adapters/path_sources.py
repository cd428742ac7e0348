"""The frames of what a path leads to: a video, an image, or a folder of images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from gulpio2.adapters.endings import ANY_ENDING, find_by_ending
from gulpio2.adapters.image_folders import NO_TIMES, ImageTimes, folder_frames
from gulpio2.adapters.sources import (
    IMAGE_FORMATS,
    OTHER_IMAGE_FORMATS,
    VIDEO_FORMATS,
    image_frames,
    video_frames,
)
from gulpio2.errors import SourceNotFoundError, SourceReadError
from gulpio2.media.folders import find_files

if TYPE_CHECKING:
    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource

__all__ = ["FolderImages", "MediaKind", "Times", "find_path", "is_url", "open_path"]

MediaKind = Literal["auto", "video", "image", "folder"]
# Videos that may lie beside the one that they are of.
_PREVIEWS = frozenset({"gif"})
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Of an excerpt; None for a whole video.
Times = tuple[float, float] | None


class FolderImages(NamedTuple):
    """What is taken of a folder of images."""

    prefix: str = ""
    """What their names begin with."""
    times: ImageTimes = NO_TIMES
    """When they are shown."""


def open_path(
    path: str,
    media: MediaKind,
    frame_size: int,
    frame_rate: FrameRate | None,
    times: Times,
    images: FolderImages,
) -> FrameSource:
    """Find out what a path leads to, once its frames are wanted.

    Parameters
    ----------
    path : str
        Of a video, an image, or a folder of images, which are one item. Where it ends
        in ``.*``, the one video or image that is there.
    media : {"auto", "video", "image", "folder"}
        What it is; 'auto' tells by the ending.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : int, float, str or Fraction, optional
        Frames a second to resample a video to. None: as they are.
    times : tuple of float, optional
        Of an excerpt of a video, in seconds. None for all.
    images : FolderImages
        Which of the images of a folder, and when they are shown.

    Raises
    ------
    SourceNotFoundError
        There is nothing.
    SourceReadError
        It is not what it was said to be, or no path.
    """
    if is_url(path):
        raise SourceReadError(
            f"{path!r} is a URL, and only files of this machine are read. Download it, "
            "and give the path of the file."
        )
    path = find_path(path, media, times)
    ending = Path(path).suffix[1:].lower()
    known = ending in VIDEO_FORMATS or ending in IMAGE_FORMATS
    if media == "auto" and known and Path(path).is_dir():
        raise SourceReadError(
            f"{path!r} is a folder, though it ends as a file does. Give media='folder' "
            "if it holds the frames of the item."
        )
    if media == "video" or (media == "auto" and ending in VIDEO_FORMATS):
        start, end = (None, None) if times is None else times
        return video_frames(
            path, frame_rate=frame_rate, frame_size=frame_size, start=start, end=end
        )
    if times is not None and Path(path).exists():
        raise SourceReadError(
            f"{path!r} is not known to be a video, and only of videos there are "
            "excerpts. Give media='video' if it is one, or take the row out."
        )
    if media == "image" or (media == "auto" and ending in IMAGE_FORMATS):
        return image_frames([path], frame_size=frame_size)
    if media == "folder" or Path(path).is_dir():
        return _folder(path, frame_size, images)
    if not Path(path).exists():
        raise SourceNotFoundError(
            f"There is no {path!r}. Check the path column or the path template, or say "
            "what paths begin at in root_folder (on the command line --root-folder)."
        )
    if ending in OTHER_IMAGE_FORMATS:
        raise SourceReadError(
            f"{path!r} ends in .{ending}, which is not taken for an image unless that "
            "is said. Give media='image' if it is one."
        )
    raise SourceReadError(
        f"{path!r} has no ending of a video or an image, and is no folder. "
        "Give media='video', 'image' or 'folder'."
    )


def is_url(path: str) -> bool:
    """Tell whether what is given as a path is the URL of something elsewhere."""
    return _URL.match(path) is not None


def find_path(path: str, media: MediaKind, times: Times) -> str:
    """Give the path of the file that is meant, where its ending is not known.

    Parameters
    ----------
    path, media, times
        As for `open_path`.

    Raises
    ------
    SourceNotFoundError, SourceReadError
        There is none, or more than one.
    """
    if not path.endswith(ANY_ENDING) or media == "folder":
        return path
    # Pictures after videos: downloads have previews beside them, moving ones as well.
    formats = [IMAGE_FORMATS]
    if media == "video" or times is not None:
        formats = [VIDEO_FORMATS - _PREVIEWS, _PREVIEWS]
    elif media == "auto":
        formats = [VIDEO_FORMATS - _PREVIEWS, IMAGE_FORMATS | _PREVIEWS]
    return find_by_ending(path, *formats)


def _folder(path: str, frame_size: int, images: FolderImages) -> FrameSource:
    """Take the images of a folder, whatever the case of their endings."""
    files = find_files(path, max_depth=0) if Path(path).is_dir() else ()
    endings = {Path(name).suffix[1:] for _, name in files}
    taken = {ending for ending in endings if ending.lower() in IMAGE_FORMATS}
    return folder_frames(
        path,
        formats=sorted(taken or IMAGE_FORMATS),
        prefix=images.prefix,
        frame_size=frame_size,
        times=images.times,
    )
