"""Gulp some videos, check them, read random clips, and look at the result.

Run it with ``bin/demo``, or with any Python that has the package installed. It uses
what every user has: the ``gulp2`` command and `gulpio2.GulpDirectory`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import av
import cv2
import numpy as np

from gulpio2 import GulpDirectory

if TYPE_CHECKING:
    import numpy.typing as npt

    Image = npt.NDArray[np.uint8]

CLIP_FRAMES = 8
MARK = ".made-by-demo"  # a folder with this file may be replaced by the next run


class Recipe(NamedTuple):
    """How one video is made."""

    name: str
    """File name below the folder of videos, with the class as its folder."""
    codec: str
    rate: int
    """Frames per second."""
    frames: int
    pixel_format: str = "yuv420p"


RECIPES = [
    Recipe("circle/h264_30fps.mp4", "libx264", 30, 150),
    Recipe("circle/vp9_24fps.webm", "libvpx-vp9", 24, 96),
    Recipe("square/mpeg4_25fps.mp4", "mpeg4", 25, 125),
    Recipe("square/h264_444_60fps.mp4", "libx264", 60, 180, "yuv444p"),
    Recipe("triangle/h264_12fps.mp4", "libx264", 12, 60),
    Recipe("triangle/vp8_30fps.webm", "libvpx", 30, 120),
]
SIZE = (340, 256)  # width and height that video models are commonly trained on


def draw(shape: str, index: int, count: int) -> Image:
    """Draw one frame: a shape that crosses a coloured slope, and the frame's number."""
    width, height = SIZE
    across = np.linspace(40, 200, width, dtype=np.uint8)
    down = np.linspace(30, 180, height, dtype=np.uint8)[:, None]
    image = np.empty((height, width, 3), np.uint8)
    image[..., 0] = across
    image[..., 1] = down
    image[..., 2] = 110
    x = int(50 + (width - 100) * index / max(count - 1, 1))
    y = int(height / 2 + 60 * np.sin(index / 12))
    colour = (250, 220, 60)
    if shape == "circle":
        cv2.circle(image, (x, y), 34, colour, -1, cv2.LINE_AA)
    elif shape == "square":
        cv2.rectangle(image, (x - 30, y - 30), (x + 30, y + 30), colour, -1)
    else:
        corners = np.array([[x, y - 36], [x - 34, y + 28], [x + 34, y + 28]], np.int32)
        cv2.fillPoly(image, [corners], colour, cv2.LINE_AA)
    cv2.putText(image, str(index), (8, 26), 0, 0.8, (255, 255, 255), 2, cv2.LINE_AA)
    return image


def make_videos(folder: Path) -> None:
    """Encode every recipe into a file below the folder."""
    for recipe in RECIPES:
        path = folder / recipe.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w") as container:
            stream = cast(
                "av.VideoStream", container.add_stream(recipe.codec, rate=recipe.rate)
            )
            stream.width, stream.height = SIZE
            stream.pix_fmt = recipe.pixel_format
            stream.bit_rate = 1_000_000
            stream.time_base = Fraction(1, recipe.rate)
            for index in range(recipe.frames):
                image = draw(path.parent.name, index, recipe.frames)
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode())


def gulp2(*arguments: str | Path) -> int:
    """Run the ``gulp2`` command beside this interpreter, and show it."""
    program = Path(sys.executable).with_name("gulp2")
    print(f"\n$ gulp2 {' '.join(map(str, arguments))}", flush=True)
    return subprocess.run([program, *map(str, arguments)], check=False).returncode


def read_clips(
    directory: GulpDirectory, lengths: dict[str, int], seconds: float
) -> float:
    """Read random clips as arrays for a while, and give the frames per second."""
    rng = random.Random(0)
    ids = list(lengths)
    frames = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        id_ = rng.choice(ids)
        first = rng.randrange(max(lengths[id_] - CLIP_FRAMES, 0) + 1)
        clip = directory.read_clip(id_, slice(first, first + CLIP_FRAMES))
        frames += len(clip)
    return frames / (time.perf_counter() - start)


def decode_clips(videos: list[Path], seconds: float) -> float:
    """Read random clips out of the videos themselves, by seeking, as a comparison."""
    rng = random.Random(0)
    frames = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        with av.open(str(rng.choice(videos))) as container:
            stream = container.streams.video[0]
            duration = (container.duration or 0) / av.time_base
            first = rng.random() * max(duration - 1, 0)
            container.seek(int(first * av.time_base))
            taken = 0
            for frame in container.decode(stream):
                if (frame.time or 0.0) < first:
                    continue
                frame.to_ndarray(format="rgb24")
                taken += 1
                if taken == CLIP_FRAMES:
                    break
            frames += taken
    return frames / (time.perf_counter() - start)


def prepare(output: Path) -> None:
    """Make the output folder, replacing what an earlier run of the demo left."""
    if output.exists() and not output.is_dir():
        raise SystemExit(f"{output} is no folder. Name another one with --output.")
    if output.exists() and any(output.iterdir()) and not (output / MARK).exists():
        raise SystemExit(
            f"{output} holds something that the demo did not make. "
            "Name another folder with --output."
        )
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / MARK).touch()


def main() -> int:
    """Run the demo and give its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("videos", nargs="?", type=Path, help="FOLDER/<class>/<video>")
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measuring")
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    videos = arguments.videos
    if videos is not None and videos.resolve().is_relative_to(output):
        raise SystemExit(
            f"{videos} is inside of {output}, which the demo replaces. "
            "Name another folder with --output."
        )
    prepare(output)

    if videos is None:
        videos = output / "videos"
        start = time.perf_counter()
        make_videos(videos)
        seconds = time.perf_counter() - start
        print(f"made {len(RECIPES)} videos in {videos} ({seconds:.1f} s)")

    gulped = output / "gulped"
    start = time.perf_counter()
    ingested = gulp2("ingest", "video-folder", videos, gulped)
    ingest_seconds = time.perf_counter() - start
    if not any(gulped.glob("data_*.gulp")):
        print(f"nothing was gulped out of {videos}", file=sys.stderr)
        return 1
    checked = gulp2("check", "--deep", gulped)
    described = gulp2("info", gulped)
    picture = output / "contact_sheet.png"
    drawn = gulp2("sheet", "--quiet", "--items", "12", "--out", picture, gulped)

    with GulpDirectory(str(gulped)) as directory:
        entries = directory.merged_meta_dict.items()
        lengths = {id_: len(entry["frame_info"]) for id_, entry in entries}
        total = sum(lengths.values())
        stored = read_clips(directory, lengths, arguments.seconds)
    sources = [
        file
        for file in videos.rglob("*")
        if f"{file.parent.name}-{file.name}" in lengths
    ]

    print(f"\ngulped   {len(lengths)} items, {total} frames in {ingest_seconds:.1f} s,")
    print(f"         {total / ingest_seconds:,.0f} frames/s with the program's start")
    print(f"read     random clips of {CLIP_FRAMES} frames: {stored:,.0f} frames/s")
    if sources:
        decoded = decode_clips(sources, arguments.seconds)
        print(f"compare  a seek and a decode in the videos: {decoded:,.0f} frames/s")
    print(f"look at  {picture}")
    failed = [ingested, checked, described, drawn]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
