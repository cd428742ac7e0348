"""Frame sources as adapters hand them out: nothing is touched before iteration.

A missing file must cost its own item only, so even looking for it waits until the
frames are asked for.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.adapters.naming import (
    numbers_of,
    warn_of_folder,
    warn_of_gaps,
    warn_of_several_series,
)
from gulpio2.adapters.settings import checked_size
from gulpio2.errors import SourceReadError
from gulpio2.format.rates import parse_frame_rate
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.folders import (
    find_files,
    find_images_in_folder,
    get_single_video_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from gulpio2.format.rates import FrameRate
    from gulpio2.media.images import ImageFrames
    from gulpio2.types import FrameSource, StrPath

__all__ = [
    "IMAGE_FORMATS",
    "OTHER_IMAGE_FORMATS",
    "OTHER_VIDEO_FORMATS",
    "VIDEO_FORMATS",
    "DeferredFrames",
    "folder_frames",
    "image_frames",
    "single_video_frames",
    "video_frames",
]

logger = logging.getLogger(__name__)

# By ending, in lower case: what PyAV and OpenCV read and people keep datasets in.
IMAGE_FORMATS = frozenset({"bmp", "jpeg", "jpg", "png", "tif", "tiff", "webp"})
# Images too, but not taken for frames without being named: a warning tells of them.
OTHER_IMAGE_FORMATS = frozenset(
    {
        "avif", "dib", "exr", "gif", "hdr", "heic", "j2k", "jp2", "jpe", "jxl", "pam",
        "pbm", "pgm", "pnm", "ppm", "ras", "tga",
    }
)  # fmt: skip
VIDEO_FORMATS = frozenset(
    {
        "3gp", "avi", "flv", "gif", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg",
        "mts", "ogv", "ts", "webm", "wmv",
    }
)  # fmt: skip
# Videos too, of which a warning tells alike.
OTHER_VIDEO_FORMATS = frozenset(
    {
        "264", "265", "3g2", "asf", "divx", "dv", "f4v", "h264", "hevc", "ivf", "m1v",
        "m2v", "mjpeg", "mpe", "mxf", "nut", "ogg", "ogm", "qt", "rm", "rmvb", "vob",
        "y4m",
    }
)  # fmt: skip
# A number in a name, but not the decimals of one: 1.25 comes before 1.5. Where two
# would be the same number so, as 1.1 and 1.10, or where they go on from 9 to 10, they
# count: 1.2 comes before 1.10.
_NUMBER = re.compile(r"(?<![0-9])(?<![0-9]\.)[0-9]+")
_ANY_NUMBER = re.compile("[0-9]+")
_DECIMAL = re.compile(r"(?<=[0-9])(\.[0-9]*?)0+(?![0-9])")
_LAST_DECIMALS = re.compile(r"(?<=[0-9])\.([0-9]{1,18})(\D*)$")
_DIGITS = 32


def video_frames(
    path: StrPath,
    *,
    frame_rate: FrameRate | None = None,
    frame_size: int = -1,
    start: float | None = None,
    end: float | None = None,
) -> FrameSource:
    """Give the frames of a video file, which is opened when they are iterated.

    Parameters
    ----------
    path : str or path object
        The file.
    frame_rate : float or str, optional
        Frames a second to resample to. Default, and for 0: as they are.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    start, end : float, optional
        Seconds: the frames from the one time on and before the other. Default: all.
    """
    from gulpio2.media.video import VideoFrames

    return VideoFrames(
        path,
        frame_rate=frame_rate or None,
        frame_size=checked_size("frame_size", frame_size),
        start=start,
        end=end,
    )


def image_frames(paths: Iterable[StrPath], *, frame_size: int = -1) -> FrameSource:
    """Give image files as frames, opened one by one when they are iterated.

    Parameters
    ----------
    paths : iterable of str or path object
        The files, in the order of the frames.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    """
    size = checked_size("frame_size", frame_size)
    return _image_source()(list(paths), frame_size=size)


@cache
def _image_source() -> type[ImageFrames]:
    """Load the class when it is first needed; an import for each file is slower."""
    from gulpio2.media.images import ImageFrames

    return ImageFrames


def single_video_frames(
    folder: StrPath,
    *,
    frame_rate: FrameRate | None = None,
    frame_size: int = -1,
) -> FrameSource:
    """Give the frames of the only video in a folder, looked for when needed.

    Parameters
    ----------
    folder : str or path object
        Holds exactly one video; otherwise iteration raises `NotOneVideoError`.
    frame_rate, frame_size
        As for `video_frames`.
    """

    def find() -> FrameSource:
        path = get_single_video_path(folder)
        return video_frames(path, frame_rate=frame_rate, frame_size=frame_size)

    return DeferredFrames(find)


def folder_frames(
    folder: StrPath,
    *,
    formats: Iterable[str] = ("jpg",),
    prefix: str = "",
    frame_size: int = -1,
    image_rate: FrameRate | None = None,
) -> FrameSource:
    """Give the images in a folder as frames, sorted by name, listed when needed.

    Parameters
    ----------
    folder : str or path object
        Holds at least one image; otherwise iteration raises `SourceReadError`.
    formats : iterable of str
        Endings without their dot, case-sensitive.
    prefix : str
        What the names begin with, where there are other images as well.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    image_rate : float or str, optional
        Images a second, by which they get times: by their numbers where they have one
        each, else by their places. Default, and for 0: none have.

    Notes
    -----
    Numbers in the names count as numbers: ``2.jpg`` comes before ``10.jpg``.
    """
    rate = parse_frame_rate(image_rate, "image_rate")
    return DeferredFrames(
        partial(_listed_frames, folder, tuple(formats), prefix, frame_size, rate)
    )


def _listed_frames(
    folder: StrPath,
    formats: tuple[str, ...],
    prefix: str,
    frame_size: int,
    rate: Fraction | None,
) -> FrameSource:
    paths = _in_order(
        path
        for path in find_images_in_folder(folder, formats)
        if path.rpartition("/")[2].startswith(prefix)
    )
    others = _other_images(folder, paths, prefix)
    if not paths:
        what = " or ".join(f"{prefix}*.{ending}" for ending in formats)
        missing = f" (but {_counted(others)})" if others else ""
        if not Path(folder).is_dir():
            missing = " (there is no such folder)"
        raise SourceReadError(
            f"{str(folder)!r} holds no {what}{missing}. Put the frames of the item "
            "there, or take it out of the list of items."
        )
    # Not of a mask.png beside each item's *.jpg, which nobody takes for a frame.
    kinds = {_kind_of(ending) for ending in formats}
    lost = {
        ending: number
        for ending, number in others.items()
        if ending.lower() in OTHER_IMAGE_FORMATS or _kind_of(ending) in kinds
    }
    if lost:
        warn_of_folder(
            folder,
            "files are left out for their endings",
            "files in %s are left out for their endings: %s. Rename or convert them, "
            "or take them out of the folder",
            _counted(lost),
        )
    names = [path.rpartition("/")[2] for path in paths]
    warn_of_several_series(folder, names)
    warn_of_gaps(folder, names)
    if rate is None:
        return image_frames(paths, frame_size=frame_size)
    numbers = numbers_of(names) or range(len(names))
    pts = [number - numbers[0] for number in numbers]
    return _image_source()(paths, frame_size=frame_size, pts=pts, time_base=1 / rate)


def _other_images(folder: StrPath, paths: list[str], prefix: str) -> dict[str, int]:
    """Count the images of a folder that are none of these, by their endings."""
    if not Path(folder).is_dir():
        return {}
    # By name, for a format may be a pattern, or an ending of several parts.
    taken = {path.rpartition("/")[2] for path in paths}
    there = {name for _, name in find_files(folder, max_depth=0)}
    names = {name for name in there - taken if name.startswith(prefix)}
    endings = Counter(Path(name).suffix[1:] for name in names)
    known = IMAGE_FORMATS | OTHER_IMAGE_FORMATS
    return {
        ending: number for ending, number in endings.items() if ending.lower() in known
    }


def _kind_of(ending: str) -> str:
    """Give one ending for all that files of a kind have."""
    return {"jpeg": "jpg", "jpe": "jpg", "tiff": "tif"}.get(
        ending.lower(), ending.lower()
    )


def _counted(endings: dict[str, int]) -> str:
    return ", ".join(f".{ending} ({n})" for ending, n in sorted(endings.items()))


def _in_order(paths: Iterable[str]) -> list[str]:
    """Sort the files of a folder as if all numbers had as many digits."""
    names = {path: path.rpartition("/")[2] for path in paths}
    # What is the same without the zeros at the end of decimals.
    numbers = Counter(_DECIMAL.sub(r"\1", name) for name in names.values())
    is_count = max(numbers.values(), default=1) > 1 or _count_on(names.values())
    number = _ANY_NUMBER if is_count else _NUMBER
    return sorted(
        names,
        key=lambda path: (
            number.sub(lambda found: found[0].zfill(_DIGITS), names[path]),
            names[path],
        ),
    )


def _count_on(names: Iterable[str]) -> bool:
    """Tell whether what could be decimals are numbers in a row, from 9 to 10 and on."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name in names:
        stem, _, ending = name.rpartition(".")
        if found := _LAST_DECIMALS.search(stem):
            row = rows.setdefault((stem[: found.start()], found[2] + ending), [])
            row.append(found[1])
    return any(
        len({*map(len, row)}) > 1
        and not any(digits != "0" and digits.startswith("0") for digits in row)
        and max(map(int, row)) - min(map(int, row)) == len(row) - 1
        for row in rows.values()
    )
