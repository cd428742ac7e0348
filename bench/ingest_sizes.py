"""How many bytes a frame of 4:2:0 video takes, beside what GulpIO2 0.0.4 makes of it.

    python bench/ingest_sizes.py FFMPEG VIDEO...

0.0.4 lets FFmpeg write JPEGs (``-q:v 1``), decodes and encodes them again, in 4:4:4. So
its frames have been quantised once before. Prints one line of JSON for all videos: the
ratio of bytes at quality 90, that to 4:4:4 of the frames as they are, luma's share,
what both have lost of luma (PSNR in dB), and the ratio at the lowest quality at which
ours has lost no more than 0.0.4.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import simplejpeg

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import SourceReadError
from gulpio2.media.colour import to_rgb
from gulpio2.media.video import VideoFrames
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    Frame = np.ndarray[Any, Any]

FRAMES, QUALITY, LOWEST = 40, 90, 70


def _mean_psnr(jpegs: Sequence[bytes], frames: Sequence[Frame]) -> float:
    """Compare luma with that of the frames as they are; every eighth frame."""
    weights = np.array([0.299, 0.587, 0.114])
    found = []
    for jpeg, frame in list(zip(jpegs, frames, strict=True))[::8]:
        decoded = simplejpeg.decode_jpeg(jpeg, "RGB")
        error = ((decoded.astype(float) - frame) @ weights) ** 2
        found.append(10 * np.log10(255**2 / error.mean()))
    return float(np.mean(found))


def _by_original(ffmpeg: str, path: str, count: int) -> list[bytes]:
    """Make JPEGs as 0.0.4 does."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ffmpeg, "-v", "error", "-i", path, "-frames:v", str(count)]
        command += ["-q:v", "1", "-f", "image2", f"{folder}/%05d.jpg"]
        subprocess.run(command, check=True)  # noqa: S603  # 0.0.4's own
        burst = [file.read_bytes() for file in sorted(Path(folder).iterdir())]
    return [
        simplejpeg.encode_jpeg(
            simplejpeg.decode_jpeg(jpeg, "RGB", fastdct=True, fastupsample=True),
            quality=QUALITY,
        )
        for jpeg in burst
    ]


def _encoded(images: Sequence[YuvFrame], quality: int) -> list[bytes]:
    return [encode_frame(image, EncoderSettings(quality=quality)) for image in images]


def _size(jpegs: Sequence[bytes]) -> int:
    return sum(map(len, jpegs))


def measure(ffmpeg: str, path: str) -> dict[str, float] | None:
    """Measure a video; None where it is none of 4:2:0, upright and whole."""
    try:
        images = [frame.image for frame in islice(VideoFrames(path).stored(), FRAMES)]
    except SourceReadError:
        return None
    first = images[0]
    if not isinstance(first, YuvFrame) or first.subsampling != "420":
        return None
    theirs = _by_original(ffmpeg, path, len(images))
    frames = [to_rgb(image) for image in images]
    shape = simplejpeg.decode_jpeg_header(theirs[0])[:2]
    if len(theirs) != len(images) or shape != frames[0].shape[:2]:
        return None
    ours = _encoded(images, QUALITY)
    full = [simplejpeg.encode_jpeg(frame, quality=QUALITY) for frame in frames]
    grey = [encode_frame(image.y, EncoderSettings(quality=QUALITY)) for image in images]
    wanted = _mean_psnr(theirs, frames)
    equal = QUALITY
    while equal > LOWEST:
        lower = _encoded(images, equal - 1)
        if _mean_psnr(lower, frames) < wanted:
            break
        equal -= 1
    return {
        "ratio": _size(ours) / _size(theirs),
        "to 4:4:4": _size(ours) / _size(full),
        "luma": _size(grey) / _size(ours),
        "psnr": _mean_psnr(ours, frames),
        "psnr of 0.0.4": wanted,
        "equal": _size(_encoded(images, equal)) / _size(theirs),
    }


def main() -> None:
    """Measure the videos of the command line."""
    ffmpeg, *paths = sys.argv[1:]
    found = {Path(path).name: measure(ffmpeg, path) for path in paths}
    sys.stdout.write(json.dumps({"videos": found}))


if __name__ == "__main__":
    main()
