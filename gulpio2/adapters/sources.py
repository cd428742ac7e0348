"""Frame sources as adapters hand them out: nothing is touched before iteration.

A missing file must cost its own item only, so even looking for it waits until the
frames are asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gulpio2.adapters.settings import checked_size
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.folders import get_single_video_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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
    "image_frames",
    "single_video_frames",
    "video_frames",
]

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


def image_frames(
    paths: Iterable[StrPath],
    *,
    frame_size: int = -1,
    pts: Iterable[int] | None = None,
    time_base: Fraction | None = None,
    read: Callable[[str], bytes | bytearray | memoryview] | None = None,
) -> FrameSource:
    """Give image files as frames, opened one by one when they are iterated.

    Parameters
    ----------
    paths : iterable of str or path object
        The files, in the order of the frames.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    pts, time_base, read
        As for `gulpio2.media.images.ImageFrames`.
    """
    size = checked_size("frame_size", frame_size)
    return _image_source()(
        list(paths), frame_size=size, pts=pts, time_base=time_base, read=read
    )


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
