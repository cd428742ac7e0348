"""Compare what 0.0.4 and this package store of the same videos.

    bin/original
    python tests/compat/measure.py VIDEO [VIDEO ...]

Prints a row per video: frames, bytes, and the mean PSNR of the stored frames against an
exact decode of the video, for both; and the PSNR of one against the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import av
import numpy as np

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import VideoFolderAdapter

REPOSITORY = Path(__file__).resolve().parents[2]
ORIGINAL = REPOSITORY / ".original-env" / "bin"


def psnr(one: np.ndarray, two: np.ndarray) -> float:
    """Give the peak signal-to-noise ratio in dB."""
    error = np.mean((one.astype(float) - two.astype(float)) ** 2)
    return float(10 * np.log10(255**2 / max(error, 1e-9)))


def exact(video: Path) -> list[np.ndarray]:
    """Decode a video to RGB by the matrix and the range that it declares."""
    from av.video.reformatter import Interpolation

    frames = []
    with av.open(str(video)) as container:
        stream: Any = container.streams.best("video")
        for frame in container.decode(stream):
            picture: Any = frame
            full = picture.color_range == 2  # AVCOL_RANGE_JPEG
            kr, kb = (0.2126, 0.0722) if picture.colorspace == 1 else (0.299, 0.114)
            planes = picture.reformat(
                format="yuv444p", interpolation=Interpolation.BICUBIC
            ).to_ndarray()
            y, u, v = (plane.astype(float) for plane in planes)
            y, u, v = (
                (y, u - 128, v - 128)
                if full
                else (
                    (y - 16) * 255 / 219,
                    (u - 128) * 255 / 224,
                    (v - 128) * 255 / 224,
                )
            )
            red, blue = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
            green = (y - kr * red - kb * blue) / (1 - kr - kb)
            frames.append(np.clip(np.stack([red, green, blue], -1), 0, 255))
    return frames


def stored(folder: Path) -> tuple[int, list[np.ndarray]]:
    """Give the bytes and the frames of the one item of a directory."""
    size = sum(path.stat().st_size for path in folder.glob("*.gulp"))
    directory = GulpDirectory(folder)
    (id_,) = directory.merged_meta_dict
    return size, directory[id_][0]


def compare(video: Path) -> str:
    """Store a video with both and write a row."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "videos" / "a"
        source.mkdir(parents=True)
        (source / video.name).symlink_to(video.resolve())
        theirs, ours = Path(scratch) / "theirs", Path(scratch) / "ours"
        env = dict(os.environ)
        env.pop("PYTHONPATH", None)
        env["PATH"] = os.pathsep.join([str(ORIGINAL), os.environ["PATH"]])
        # One extension: 0.0.4 looks at the last of a list alone.
        code = (
            "import sys; from gulpio2 import GulpIngestor; "
            "from gulpio2.adapters import VideoFolderAdapter as A; "
            "GulpIngestor(A(sys.argv[1], sys.argv[2], [sys.argv[3]]), sys.argv[2],"
            " 1, 1)()"
        )
        subprocess.run(
            [
                str(ORIGINAL / "python"),
                "-c",
                code,
                f"{source.parent}/",
                str(theirs),
                video.suffix,
            ],
            check=True,
            capture_output=True,
            cwd=scratch,
            env=env,
        )
        adapter = VideoFolderAdapter(str(source.parent), str(ours), [video.suffix])
        GulpIngestor(adapter, str(ours), 1, 1)()
        (their_size, their_frames), (our_size, our_frames) = (
            stored(theirs),
            stored(ours),
        )
    reference = exact(video)
    count = min(len(reference), len(their_frames), len(our_frames))

    def mean(one: list[np.ndarray], two: list[np.ndarray]) -> float:
        return float(np.mean([psnr(a, b) for a, b in zip(one, two, strict=False)]))

    return (
        f"| {video.name} | {len(their_frames)} / {len(our_frames)} of {len(reference)} "
        f"| {their_size / 1e6:.2f} / {our_size / 1e6:.2f} MB "
        f"| {mean(their_frames[:count], reference):.1f} / "
        f"{mean(our_frames[:count], reference):.1f} dB "
        f"| {mean(their_frames[:count], our_frames):.1f} dB |"
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write(compare(Path(name)) + "\n")
