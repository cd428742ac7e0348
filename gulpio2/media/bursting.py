"""A video as a folder of JPEG files, as programs written for GulpIO2 expect it.

Nothing in this package needs it: frames go from the decoder to the chunk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.media.video import VideoFrames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import StrPath

__all__ = [
    "burst_frames_to_shm",
    "burst_video_into_frames",
    "check_ffmpeg_exists",
    "temp_dir_for_bursting",
]

# The files are read and encoded again, so they are written to lose next to nothing.
_QUALITY = 98
# The default of 0.0.4; nobody has asked for it where a system has none.
_SHM = Path("/dev/shm")  # noqa: S108  # where 0.0.4 has them


def check_ffmpeg_exists() -> bool:
    """Tell whether there is an ``ffmpeg`` program. Nothing here needs it any more."""
    return os.system("ffmpeg -version > /dev/null 2>&1") == 0  # noqa: S605, S607  # contract of 0.0.4


def burst_frames_to_shm(
    vid_path: StrPath,
    temp_burst_dir: StrPath,
    frame_rate: float | str | None = None,
) -> None:
    """Write the frames of a video as ``0000000001.jpg`` and so on.

    Parameters
    ----------
    vid_path : str or path
        The video.
    temp_burst_dir : str or path
        A folder that exists.
    frame_rate : float or str, optional
        Frames per second to write; the video's own where it is 0 or missing.

    Raises
    ------
    SourceReadError
        The video cannot be read to its end.
    ValueError
        A frame rate that is none.
    OSError
        The folder is not there, or cannot be written to.
    """
    settings = EncoderSettings(quality=_QUALITY)
    frames = VideoFrames(vid_path, frame_rate=frame_rate or None)
    for number, frame in enumerate(frames.stored(), 1):
        path = Path(temp_burst_dir) / f"{number:010d}.jpg"
        path.write_bytes(encode_frame(frame.image, settings))


def burst_video_into_frames(
    vid_path: StrPath,
    temp_burst_dir: StrPath,
    frame_rate: float | str | None = None,
) -> list[str]:
    """Write the frames of a video, and give the paths of the files in order.

    See Also
    --------
    burst_frames_to_shm : Takes the same arguments.
    """
    burst_frames_to_shm(vid_path, temp_burst_dir, frame_rate=frame_rate)
    return sorted(str(path) for path in Path(temp_burst_dir).glob("*.jpg"))


@contextmanager
def temp_dir_for_bursting(shm_dir_path: StrPath = "/dev/shm") -> Iterator[str]:  # noqa: S108  # default of 0.0.4
    """Make a folder, and remove it whatever happens.

    Parameters
    ----------
    shm_dir_path : str or path, optional
        Where; made if it is missing, as by 0.0.4. Without a ``/dev/shm`` the default is
        the system's temporary folder.

    Yields
    ------
    str
        Path of the folder.
    """
    parent = Path(shm_dir_path)
    if parent != _SHM:
        parent.mkdir(parents=True, exist_ok=True)
    is_there = parent.is_dir()
    folder = tempfile.mkdtemp(prefix="gulp_", dir=parent if is_there else None)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
