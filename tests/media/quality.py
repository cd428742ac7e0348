"""How good stored frames are: ``python -m tests.media.quality FOLDER`` prints it.

The videos of a folder are ingested, and what is stored of each is compared with an
exact decode of the source. Beside it that exact decode is encoded with the same
settings. Each row is printed with another idea of what is exact: chroma samples between
two pixels, as JPEG has them, or on the left one, as MPEG has; FFmpeg's conversion,
which repeats chroma samples unless it is asked to filter them, and then puts them on
the left; and last, stored frames read in the reader's own quick way.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import simplejpeg
from av.video.reformatter import Interpolation

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
from tests.media.conftest import decode_all, exact_rgb, psnr

if TYPE_CHECKING:
    from collections.abc import Callable

QUALITY = 90
ENDINGS = (".mp4", ".mkv", ".avi", ".webm", ".mov")


class Quality(NamedTuple):
    """Of the compared frames of one video."""

    stored: float
    """Mean PSNR of stored frames against the exact ones, in dB."""
    encoded: float
    """Mean PSNR of the exact ones, encoded with the same settings, in dB."""
    shift: float
    """Largest shift of a channel's mean, in levels."""


def exactly(jpeg: bytes) -> Any:
    """Decode without the reader's short cuts, whose error is not the store's."""
    return simplejpeg.decode_jpeg(jpeg, fastdct=False, fastupsample=False)


def quickly(jpeg: bytes) -> Any:
    """Decode as a directory does when it is not told otherwise."""
    return simplejpeg.decode_jpeg(jpeg, fastdct=True, fastupsample=True)


def by_ffmpeg(frame: Any, flags: Interpolation = Interpolation.BICUBIC) -> Any:
    """Convert to RGB with FFmpeg's own library, by the matrix and range declared."""
    matrix = frame.colorspace if frame.colorspace in (1, 5, 6, 9) else 5
    return frame.to_ndarray(
        format="rgb24", src_colorspace=matrix, interpolation=flags
    ).astype(float)


def by_ffmpeg_filtering(frame: Any) -> Any:
    """Convert as `by_ffmpeg`, chroma interpolated; old PyAVs lack the flags."""
    return by_ffmpeg(
        frame,
        Interpolation.BICUBIC
        | Interpolation.ACCURATE_RND
        | Interpolation.FULL_CHR_H_INT
        | Interpolation.FULL_CHR_H_INP,
    )


def compare(
    frames: list[Any],
    jpegs: list[bytes],
    *,
    every: int = 1,
    exact: Callable[[Any], Any] = exact_rgb,
    decode: Callable[[bytes], Any] = exactly,
) -> Quality:
    """Compare every so many of the stored frames of a video with decoded ones."""
    stored, encoded, shifts = [], [], []
    for frame, jpeg in list(zip(frames, jpegs, strict=True))[::every]:
        wanted = np.rot90(exact(frame), frame.rotation // 90)
        ours = decode(jpeg)
        theirs = decode(
            simplejpeg.encode_jpeg(
                np.ascontiguousarray(np.rint(wanted).astype(np.uint8)),
                quality=QUALITY,
                colorsubsampling=simplejpeg.decode_jpeg_header(jpeg)[3],
            )
        )
        stored.append(psnr(ours, wanted))
        encoded.append(psnr(theirs, wanted))
        shifts.append((ours - wanted).mean((0, 1)))
    shift = float(np.abs(np.mean(shifts, axis=0)).max())
    return Quality(statistics.mean(stored), statistics.mean(encoded), shift)


READINGS: dict[str, dict[str, Any]] = {
    "exact, chroma between pixels": {},
    "exact, chroma on the left": {"exact": lambda frame: exact_rgb(frame, left=True)},
    "FFmpeg's default": {"exact": by_ffmpeg},
    "FFmpeg, filtering chroma": {"exact": by_ffmpeg_filtering},
    "exact, read quickly": {"decode": quickly},
}


def main() -> int:
    """Ingest a folder and print a row for each video and reading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=10, help="frames to compare")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    say = sys.stdout.write
    with tempfile.TemporaryDirectory() as made:
        adapter = VideoFolderAdapter(folder, made, file_extensions=ENDINGS)
        report = GulpIngestor(adapter, made, 4, 2).run()
        for failure in report.failures:
            say(f"not stored: {failure}\n")
        with GulpDirectory(made) as directory:
            for id_ in directory.chunk_lookup:
                say(_rows(folder, directory, id_, arguments.every))
    return 0


def _rows(folder: Path, directory: Any, id_: str, every: int) -> str:
    item = directory.item(id_)
    path = folder / id_.removeprefix(f"{folder.name}-")
    frames = decode_all(path)
    pts = [frame.pts for frame in frames]
    if pts != sorted(pts):  # FFmpeg guesses them for an AVI file, which has none
        times = "no presentation times in the container"
    else:
        times = "times equal" if list(item.extras.pts) == pts else "TIMES DIFFER"
    rows = [f"{path.name}: {item.num_frames} of {len(frames)} frames, {times}"]
    jpegs = directory.read_jpegs(id_)
    for reading, options in READINGS.items():
        found = compare(frames, jpegs, every=every, **options)
        rows.append(
            f"  {reading:30} {found.stored:5.1f} dB, encoded {found.encoded:5.1f} dB, "
            f"difference {found.stored - found.encoded:+5.2f}, shift {found.shift:.2f}"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
