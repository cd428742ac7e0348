"""How fast an ingest is, beside its limit and beside GulpIO2 0.0.4, in one run.

    bin/bench ingest                        every case
    bin/bench ingest clips long --rounds 5  some of them
    bin/bench ingest --json FILE            the figures as JSON too; cases that FILE has
                                            and that were not run stay in it

The limit is the same decoder and the same encoder back to back, on the decoder's own
planes, with nothing between and nothing written; the bare program also gives the planes
the range of a JPEG, which what is stored needs, and writes nothing either. Programs
that are compared take turns; a ratio is that of two neighbours, and the middle one of
the rounds counts. Beside 0.0.4 both are commands, from their start to their end, and
both find their bytecode compiled, as an installed package has it; in the case `inside`,
and beside the limit, neither has the start of Python in it. 0.0.4 is left out where
``bin/original`` has not made it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clips import CLIP_FRAMES, DATA, make_clips
from figures import refuse_unknown
from ingest_bench import (
    CORES,
    Bench,
    original,
    original_inside,
    ours,
    part,
    ratios,
    timed,
)
from ingest_images import folders, images, large_folders, large_images, many_images
from ingest_inputs import link_clips, make_large, make_long
from peers import python_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
LARGE_FRAMES, LONG_SECONDS, CHUNKS = 120, 600, 400


def _data_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("data*.gulp"))


def _videos(
    bench: Bench,
    case: str,
    videos: Sequence[Path],
    *,
    per_chunk: int,
    short_edge: int = -1,
    frames: int = CLIP_FRAMES,
    least: float = 5,
) -> tuple[Path, Path]:
    """Ingest videos of so many frames beside 0.0.4; give both outputs."""
    source = link_clips(bench.folder / case.replace(" ", "-"), videos)
    outputs = bench.folder / "ours", bench.folder / "theirs"
    options = ["--frame-size", str(short_edge), "--videos-per-chunk", str(per_chunk)]
    theirs = ["--frame_size", str(short_edge), "--videos_per_chunk", str(per_chunk)]
    bench.compare(
        case,
        len(videos) * frames,
        {
            "ours": ours("video-folder", [source], outputs[0], *options),
            "0.0.4": original("gulp2_video_folder", [source], outputs[1], *theirs),
        },
        least=least,
    )
    return outputs


def clips(bench: Bench) -> None:
    """40 clips of 340x256, no resize, beside 0.0.4."""
    case = f"{len(bench.videos)} clips of 340x256"
    output, theirs = _videos(bench, case, bench.videos, per_chunk=10)
    if theirs.exists():
        ratio = _data_bytes(output) / _data_bytes(theirs)
        bench.report.add(f"{case}: bytes, ours / 0.0.4", [ratio], "ratio", "<= 0.83")


def one_chunk(bench: Bench) -> None:
    """40 clips in one chunk, which is the default of both programs."""
    case = f"{len(bench.videos)} clips in one chunk"
    _videos(bench, case, bench.videos, per_chunk=100)
    case += ", short side 128"
    _videos(bench, case, bench.videos, per_chunk=100, short_edge=128)


def sizes(bench: Bench) -> None:
    """Bytes of a frame of 4:2:0 video, beside 0.0.4, and what both have lost."""
    python = python_of("original")
    if python is None:
        return
    videos = [*bench.videos[::6], *sorted((DATA / "videos").glob("*.*"))]
    script = str(Path(__file__).with_name("ingest_sizes.py"))
    command = [sys.executable, script, str(python.with_name("ffmpeg"))]
    told: Any = timed([*command, *map(str, videos)])
    found = [facts for facts in told["videos"].values() if facts is not None]
    case = f"frames of {len(found)} 4:2:0 videos at quality 90"
    for key, name, unit in (
        ("ratio", "bytes, ours / 0.0.4", "ratio"),
        ("to 4:4:4", "bytes, ours / the same frames in 4:4:4", "ratio"),
        ("luma", "share of luma in ours", "share"),
        ("psnr", "luma, ours", "dB PSNR"),
        ("psnr of 0.0.4", "luma, 0.0.4", "dB PSNR"),
        ("equal", "bytes, ours at a quality of equal PSNR / 0.0.4", "ratio"),
    ):
        bench.report.add(f"{case}: {name}", [facts[key] for facts in found], unit)


def inside(bench: Bench) -> None:
    """Run the same clips in programs that have loaded everything, beside 0.0.4."""
    source = link_clips(bench.folder / "inside", bench.videos)
    bench.compare(
        f"{len(bench.videos)} clips, without the start of the programs",
        len(bench.videos) * CLIP_FRAMES,
        {
            "ours": part("ingest", source, bench.folder / "inner", CORES, 10),
            "0.0.4": original_inside(source, bench.folder / "theirs"),
        },
        least=5,
    )


def limit(bench: Bench) -> None:
    """Run the same clips beside the limit, and beside one worker."""
    source, output = bench.clips.videos, bench.folder / "inner"
    case, frames = "beside the limit", len(bench.videos) * CLIP_FRAMES
    runs = bench.take_turns(
        {
            "limit": part("limit", *bench.videos),
            "bare": part("bare", *bench.videos),
            "2 workers": part("ingest", source, output, CORES, 10),
            "1 worker": part("ingest", source, output, 1, 10),
        }
    )
    speeds = {
        name: bench.speeds(case, name, frames, found) for name, found in runs.items()
    }
    for name, over, under, target in (
        ("ours / limit", "2 workers", "limit", ">= 0.88"),
        ("bare / limit", "bare", "limit", None),
        ("ours / bare", "2 workers", "bare", None),
        ("2 workers / 1 worker", "2 workers", "1 worker", ">= 1.85"),
    ):
        found = ratios(speeds[over], speeds[under])
        bench.report.add(f"{case}: {name}", found, "ratio", target)
    cores = [CORES * run["busy"] for run in runs["1 worker"]]
    bench.report.add(f"{case}: cores that one worker uses", cores, "cores")


def small(bench: Bench) -> None:
    """40 clips of 340x256, short side 128."""
    _videos(bench, "short side 128", bench.videos, per_chunk=10, short_edge=128)


def large(bench: Bench) -> None:
    """8 clips of 1920x1080, short side 256."""
    clip = make_large(bench.folder / "large.mp4", bench.videos[0], LARGE_FRAMES)
    _videos(
        bench,
        "1080p to short side 256",
        [clip] * 8,
        per_chunk=2,
        short_edge=256,
        frames=LARGE_FRAMES,
        least=3,
    )


def long(bench: Bench) -> None:
    """One video of ten minutes."""
    times = -(-LONG_SECONDS * 25 // CLIP_FRAMES)
    clip = make_long(bench.folder / "long.mp4", bench.videos[0], times)
    source = link_clips(bench.folder / "long", [clip])
    output = bench.folder / "inner"
    case = "one video of 10 minutes"
    runs = bench.take_turns(
        {
            "2 cores": part("ingest", source, output, CORES, 100),
            "1 core": part("ingest", source, output, 1, 100),
        }
    )
    for name, found in runs.items():
        bench.speeds(case, name, times * CLIP_FRAMES, found)
    busy = [run["busy"] for run in runs["2 cores"]]
    bench.report.add(f"{case}: both cores busy", busy, "share", ">= 0.85")
    per_frame = [run["num_bytes"] / run["frames"] for run in runs["1 core"]]
    bench.report.add(f"{case}: bytes per frame", per_frame, "bytes")


def held(bench: Bench) -> None:
    """How long the interpreter lock is held."""
    library = bench.folder / "lock_share.so"
    code = Path(__file__).with_name("lock_share.c")
    command = ["cc", "-O2", "-shared", "-fPIC", str(code), "-o", str(library), "-ldl"]
    try:
        subprocess.run(command, check=True)  # noqa: S603  # a file of this repository
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stdout.write(f"held: left out, for there is no C compiler ({error})\n")
        return
    source = link_clips(bench.folder / "held", bench.videos[::4])
    run = part("held", source, bench.folder / "inner", preload=library)
    runs = bench.take_turns({"ours": run})["ours"]
    if any("unseen" in run for run in runs):
        text = "held: left out, for this Python has its functions in the program itself"
        sys.stdout.write(f"{text}\n")
        return
    shares = [run["held"] for run in runs]
    bench.report.add("interpreter lock held", shares, "share", "<= 0.15")


def overhead(bench: Bench) -> None:
    """Measure what a chunk costs beside its frames."""
    output, case = bench.folder / "inner", "a chunk of one tiny frame"
    engines = {
        "alone": "one process",
        "processes": "2 processes",
        "dask": "Dask, 2 workers",
    }
    runs = bench.take_turns(
        {name: part("overhead", output, CHUNKS, name) for name in engines}
    )
    for name, found in runs.items():
        if name != "dask":  # whose workers still run, so that nobody counted theirs
            spent = [
                CORES * run["busy"] * run["seconds"] * 1e3 / CHUNKS for run in found
            ]
            bench.report.add(f"{case}: {engines[name]}", spent, "core ms")
        wall = [run["seconds"] * 1e3 / CHUNKS for run in found]
        bench.report.add(f"{case}: {engines[name]}, passed", wall, "ms")
        if name == "dask":
            parent = [run["parent_us"] / 1e3 for run in found]
            bench.report.add(
                f"{case}: {engines[name]}, in the parent", parent, "core ms"
            )


CASES = {
    case.__name__: case
    for case in (
        *(clips, one_chunk, sizes, inside, limit, small, large, long),
        *(images, many_images, large_images, folders, large_folders),
        *(held, overhead),
    )
}


def _compile(bench: Bench) -> None:
    """Have the bytecode made of all that will be loaded, before anything is timed."""
    package = str(ROOT / "gulpio2")
    subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True)  # noqa: S603  # our own
    source = link_clips(bench.folder / "first", bench.videos[:1])
    ours("video-folder", [source], bench.folder / "ours", "--frame-size", "128")()


def _versions() -> dict[str, str]:
    names = ("gulpio2", "av", "simplejpeg", "opencv-python-headless", "numpy")
    return {name: metadata.version(name) for name in names}


def write_json(path: Path, bench: Bench) -> None:
    """Keep the figures; those of cases that were not run stay."""
    notes = [] if bench.has_original else ["GulpIO2 0.0.4 was not there"]
    notes.append(f"clips: {len(bench.videos)} of {bench.clips.made_of}")
    bench.report.write(path, _versions(), notes=notes)


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file to keep the figures in")
    parser.add_argument("--folder", type=Path, help="keeps the clips from run to run")
    given = parser.parse_args()
    refuse_unknown(parser, given.cases, CASES)
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="gulpio2-bench-") as name:
        # An installed package has its bytecode; a checkout may not be written to.
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(name, "bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        bench = Bench(
            Path(name), given.rounds, make_clips(given.folder or Path(name, "made"))
        )
        _compile(bench)
        for case in given.cases or CASES:
            CASES[case](bench)
            if given.json:  # after each, so that an interrupt costs one
                write_json(given.json, bench)


if __name__ == "__main__":
    main()
