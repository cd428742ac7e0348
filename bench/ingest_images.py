"""Ingests of image files that are stored as they are, beside GulpIO2 0.0.4."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from clips import CLIP_FRAMES, DATA
from ingest_bench import original, ours, part
from ingest_inputs import link_frames, link_images, make_images

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ingest_bench import Bench, Measured

IMAGES, MANY_IMAGES, LARGE_IMAGES = 4000, 40_000, 10_000


def images(bench: Bench) -> None:
    """4,000 JPEG files of 340x256, no resize."""
    source = make_images(bench.folder / "images", bench.videos[0], IMAGES)
    _images(bench, f"{IMAGES:,} JPEG files of 340x256", source, IMAGES)


def many_images(bench: Bench) -> None:
    """40,000 JPEG files of 340x256, so that the start of a program matters less."""
    few = make_images(bench.folder / "few", bench.videos[0], IMAGES)
    source = link_images(bench.folder / "many", few, MANY_IMAGES)
    _images(bench, f"{MANY_IMAGES:,} JPEG files of 340x256", source, MANY_IMAGES)


def large_images(bench: Bench) -> None:
    """10,000 JPEG files of 1280x720, no resize: thirty frames of a video, linked."""
    few = _large_frames(bench)
    if few is None:
        return
    source = link_images(bench.folder / "large", few, LARGE_IMAGES)
    _images(bench, f"{LARGE_IMAGES:,} JPEG files of 1280x720", source, LARGE_IMAGES)


def folders(bench: Bench) -> None:
    """200 videos as folders of 280 JPEG files of 340x256, no resize."""
    few = make_images(bench.folder / "frames", bench.videos[0], IMAGES)
    _folders(bench, few, "340x256", 200, CLIP_FRAMES)


def large_folders(bench: Bench) -> None:
    """40 videos as folders of 250 JPEG files of 1280x720, no resize."""
    few = _large_frames(bench)
    if few is not None:
        _folders(bench, few, "1280x720", 40, LARGE_IMAGES // 40)


def _large_frames(bench: Bench) -> Path | None:
    video = DATA / "videos" / "bt709_full_range.mp4"
    if not video.exists():
        sys.stdout.write(f"1280x720: left out, for there is no {video}\n")
        return None
    folder = bench.folder / "large-frames"
    return folder if folder.exists() else make_images(folder, video, 30)


def _images(bench: Bench, case: str, source: Path, count: int) -> None:
    """Ingest a folder of images beside 0.0.4."""
    output, theirs = bench.folder / "ours", bench.folder / "theirs"
    programs = {
        "ours": ours("image-folder", [source], output, "--videos-per-chunk", "500"),
        "0.0.4": original(
            "gulp2_image_folder", [source], theirs, "--images_per_chunk", "500"
        ),
    }
    _copies(bench, case, programs, count, source)


def _folders(bench: Bench, few: Path, size: str, videos: int, frames: int) -> None:
    """Ingest videos that are folders of frames beside 0.0.4."""
    table = link_frames(bench.folder / f"videos-{size}", few, videos, frames)
    source = table.parent / "frames"
    output, theirs = bench.folder / "ours", bench.folder / "theirs"
    per_chunk = str(videos // 8)
    programs = {
        "ours": ours(
            "20bn-csv-jpeg", [table, source], output, "--videos-per-chunk", per_chunk
        ),
        "0.0.4": original(
            *("gulp2_20bn_csv_jpeg", [table, source], theirs),
            *("--videos_per_chunk", per_chunk),
        ),
    }
    case = f"{videos} folders of {frames} JPEG files of {size}"
    _copies(bench, case, programs, videos * frames, source)


def _copies(
    bench: Bench,
    case: str,
    programs: dict[str, Callable[[], Measured]],
    count: int,
    source: Path,
) -> None:
    """Run what stores JPEG files as they are, and say what the disk alone takes."""
    bench.compare(case, count, programs, least=20)
    size = sum(path.stat().st_size for path in source.rglob("*.jpg"))
    runs = bench.take_turns({"disk": part("disk", bench.folder / "ours", size)})
    speeds = [count / run["seconds"] for run in runs["disk"]]
    bench.report.add(f"{case}: as many bytes, written and synced", speeds, "frames/s")
