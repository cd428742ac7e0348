"""How fast an ingest is, beside its limit and beside GulpIO2 0.0.4, in one run.

    bin/bench ingest                        every case
    bin/bench ingest clips long --rounds 5  some of them
    bin/bench ingest --json                 for programs

The limit is the same decoder and the same encoder back to back, on the decoder's own
planes, with nothing between and nothing written. Programs that are compared take turns,
and the middle one of the rounds counts. Needs the videos of the tests
(``GULPIO2_SHARED_DATA``); 0.0.4 is left out where ``bin/original`` has not made it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("GULPIO2_SHARED_DATA", ROOT.parent / "shared" / "data"))
ORIGINAL = ROOT / ".original-env" / "bin"
CLIP = DATA / "videos" / "arm_wrestling_h264_28fps.mp4"
CLIP_FRAMES = 280
CORES = 2

Measured = dict[str, float]


# ------------------------------------------------------------------ what is compared
def timed(command: list[str], *, path: str | None = None) -> Measured:
    """Run a program; give wall seconds, and seconds of all cores."""
    environment = dict(os.environ)
    if path is not None:
        environment.pop("PYTHONPATH", None)  # else it would find this package
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603  # programs of this repository
        command, env=environment, capture_output=True, check=False
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr.decode()[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {"seconds": seconds, "cpu_seconds": used}
    if path is None and done.stdout.startswith(b"{"):
        found.update(json.loads(done.stdout))
    return found


def ours(
    source: Path, output: Path, *words: str, workers: int = CORES
) -> Callable[[], Measured]:
    """Give a run of ``gulp2 ingest``, from its start to its end."""

    def measure() -> Measured:
        shutil.rmtree(output, ignore_errors=True)
        kind = "video-folder" if "--image-size" not in words else "image-folder"
        command = [sys.executable, "-m", "gulpio2.cli.main", "ingest"]
        options = ["--num-workers", str(workers), "-q", *words]
        options = [w for w in options if w != "--image-size"]
        return timed([*command, kind, str(source), str(output), *options])

    return measure


def original(
    program: str, source: Path, output: Path, *words: str
) -> Callable[[], Measured]:
    """Give a run of a program of 0.0.4, from its start to its end."""

    def measure() -> Measured:
        shutil.rmtree(output, ignore_errors=True)
        command = [str(ORIGINAL / program), "--num_workers", str(CORES), *words]
        # It finds nothing without the slash.
        return timed([*command, f"{source}/", str(output)], path=str(ORIGINAL))

    return measure


def inner(mode: str, *words: object) -> Callable[[], Measured]:
    """Give a run of a part of this file, which tells its own seconds."""
    command = [sys.executable, __file__, mode, *map(str, words)]
    return lambda: timed(command)


# ------------------------------------------------------------ in their own processes
def decode_and_encode(path: str, times: int, threads: int) -> int:
    """Decode a file and encode its planes, again and again: the limit of a core."""
    import av
    import numpy as np
    import simplejpeg

    count = 0
    for _ in range(times):
        with av.open(path) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = threads
            stream.codec_context.thread_type = "AUTO" if threads != 1 else "NONE"
            for frame in container.decode(stream):
                planes = [
                    np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
                    for plane in frame.planes
                ]
                views = [
                    rows[:, : plane.width]
                    for rows, plane in zip(planes, frame.planes, strict=True)
                ]
                simplejpeg.encode_jpeg_yuv_planes(*views, quality=90)
                count += 1
    return count


def run_limit(path: str, times: str, processes: str, threads: str) -> None:
    """Run the limit in some processes, and print frames and seconds."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    decode_and_encode(path, 1, int(threads))  # what is loaded once
    share = int(times) // int(processes)
    workers = [
        context.Process(target=decode_and_encode, args=(path, share, int(threads)))
        for _ in range(int(processes))
    ]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print_json(began, frames=share * int(processes) * CLIP_FRAMES)


def run_ingest(source: str, output: str, workers: str, per_chunk: str) -> None:
    """Ingest in this process, and print what `run` took without the imports."""
    import gulpio2.media.convert
    import gulpio2.media.decode  # noqa: F401  # loaded before the clock starts
    from gulpio2 import GulpIngestor
    from gulpio2.adapters import VideoFolderAdapter

    shutil.rmtree(output, ignore_errors=True)
    adapter = VideoFolderAdapter(source, output)
    ingestor = GulpIngestor(adapter, output, int(per_chunk), int(workers))
    began = time.perf_counter()
    report = ingestor.run()
    print_json(began, frames=report.frames, num_bytes=report.num_bytes)


def run_held(source: str, output: str) -> None:
    """Measure the share of time outside of calls that let the interpreter lock go.

    By the profiler, which makes Python code look slower than it is: an upper bound.
    """
    import cProfile
    import pstats

    import gulpio2.media.convert
    import gulpio2.media.decode  # noqa: F401  # loaded before the clock starts
    from gulpio2 import GulpIngestor
    from gulpio2.adapters import VideoFolderAdapter

    shutil.rmtree(output, ignore_errors=True)
    ingestor = GulpIngestor(VideoFolderAdapter(source, output), output, 100, 1)
    profile = cProfile.Profile()
    began = time.perf_counter()
    report = profile.runcall(ingestor.run)
    free = ("'decode' of", "addWeighted", "fsync", "posix.write", "unlink", "crc32")
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # not in the stubs
    released = sum(
        own
        for (_, _, name), (_, _, own, _, _) in found.items()
        if name == "_encode_planes" or any(word in name for word in free)
    )
    total = sum(own for _, _, own, _, _ in found.values())
    print_json(began, frames=report.frames, held=1 - released / total)


def run_overhead(output: str, chunks: str, engine: str) -> None:
    """Ingest chunks of one tiny frame, so that only what a chunk costs is left."""
    import contextlib

    from gulpio2 import GulpIngestor
    from gulpio2.testing import FrameAdapter

    shutil.rmtree(output, ignore_errors=True)
    adapter = FrameAdapter(num_items=int(chunks), num_frames=1, height=8, width=8)
    with contextlib.ExitStack() as stack:
        executor = None
        if engine == "dask":
            import distributed

            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=CORES, threads_per_worker=1, dashboard_address=None
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
            executor = client.get_executor()
        workers = 1 if engine == "alone" else CORES
        ingestor = GulpIngestor(adapter, output, 1, workers, executor=executor)
        began = time.perf_counter()
        before = os.times()
        report = ingestor.run()
        after = os.times()
        parent = after.user + after.system - before.user - before.system
        print_json(began, frames=report.frames, parent_us=parent / int(chunks) * 1e6)


def print_json(began: float, **facts: float) -> None:
    """Print what was measured, for the process that asked."""
    sys.stdout.write(json.dumps({"seconds": time.perf_counter() - began, **facts}))


# ------------------------------------------------------------------ what is ingested
def make_clips(folder: Path, source: Path, count: int) -> Path:
    """Make a folder of clips of one label: links to one file.

    They are called ``.webm``, since 0.0.4's command takes no others; FFmpeg looks at
    what is in a file.
    """
    (folder / "label").mkdir(parents=True)
    for number in range(count):
        link = folder / "label" / f"clip{number:04d}.webm"
        link.symlink_to(source)
    return folder


def make_long(path: Path, source: Path, times: int) -> Path:
    """Repeat the packets of a video, without encoding them again."""
    import av

    shift = 0
    with av.open(str(path), "w") as output:
        stream = None
        for _ in range(times):
            last = first = None
            with av.open(str(source)) as container:
                video = container.streams.video[0]
                if stream is None:
                    stream = output.add_stream_from_template(video)
                for packet in container.demux(video):
                    if packet.dts is None:
                        continue
                    first = packet.dts if first is None else first
                    last = packet.dts + (packet.duration or 1)
                    packet.dts += shift
                    packet.pts += shift
                    packet.stream = stream
                    output.mux(packet)
            shift += (last or 0) - (first or 0)
    return path


def make_large(path: Path, source: Path, num_frames: int) -> Path:
    """Encode a clip in 1920x1080."""
    import av

    with av.open(str(source)) as container, av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=28, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number, frame in enumerate(container.decode(video=0)):
            if number == num_frames:
                break
            larger = frame.reformat(1920, 1080, "yuv420p")
            larger.pts = number
            larger.time_base = Fraction(1, 28)
            for packet in stream.encode(larger):
                output.mux(packet)
        for packet in stream.encode():
            output.mux(packet)
    return path


def make_images(folder: Path, source: Path, count: int) -> Path:
    """Store frames of a video as JPEG files of one label."""
    from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
    from gulpio2.media.video import VideoFrames

    (folder / "label").mkdir(parents=True)
    frames = list(VideoFrames(source).stored())
    for number in range(count):
        image = frames[number % len(frames)].image
        data = encode_frame(image, EncoderSettings())
        (folder / "label" / f"image{number:05d}.jpg").write_bytes(data)
    return folder


# ------------------------------------------------------------------ cases
class Bench:
    """Runs cases and keeps what they gave."""

    def __init__(self, folder: Path, rounds: int, num_clips: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.num_clips = num_clips
        self.results: dict[str, dict[str, Any]] = {}
        self.has_original = (ORIGINAL / "gulp2_video_folder").exists()

    def take_turns(
        self, case: str, frames: int, programs: dict[str, Callable[[], Measured]]
    ) -> dict[str, float]:
        """Run programs in turns; give frames per second of the middle round."""
        runs: dict[str, list[Measured]] = {name: [] for name in programs}
        for turn in range(self.rounds):
            order = list(programs) if turn % 2 == 0 else list(reversed(programs))
            for name in order:
                runs[name].append(programs[name]())
        result: dict[str, Any] = {}
        for name, measured in runs.items():
            seconds = statistics.median(run["seconds"] for run in measured)
            count = measured[0].get("frames", frames)
            result[name] = {"frames_per_second": round(count / seconds)}
            result[name]["cpu_us_per_frame"] = round(
                statistics.median(run["cpu_seconds"] for run in measured) / count * 1e6
            )
            for key in ("held", "num_bytes", "parent_us"):
                if key in measured[0]:
                    result[name][key] = measured[0][key]
            result[name]["busy"] = round(
                statistics.median(
                    run["cpu_seconds"] / run["seconds"] / CORES for run in measured
                ),
                3,
            )
        self.results[case] = result
        return {name: found["frames_per_second"] for name, found in result.items()}

    def note(self, case: str, text: str, value: float) -> None:
        """Keep a ratio, and print it."""
        self.results[case].setdefault("ratios", {})[text] = round(value, 3)

    def compare(
        self,
        case: str,
        source: Path,
        frames: int,
        words: tuple[str, ...] = (),
        original_words: tuple[str, ...] = (),
        program: str = "gulp2_video_folder",
    ) -> None:
        """Run our program and that of 0.0.4."""
        output = self.folder / "ours"
        programs = {"ours": ours(source, output, *words)}
        if self.has_original:
            theirs = self.folder / "theirs"
            programs["0.0.4"] = original(program, source, theirs, *original_words)
        speeds = self.take_turns(case, frames, programs)
        if "0.0.4" in speeds:
            self.note(case, "ours / 0.0.4", speeds["ours"] / speeds["0.0.4"])
            sizes = [
                sum(path.stat().st_size for path in folder.rglob("data*.gulp"))
                for folder in (output, self.folder / "theirs")
            ]
            self.note(case, "bytes, ours / 0.0.4", sizes[0] / sizes[1])


def clips(bench: Bench) -> None:
    """40 clips of 340x256, no resize."""
    count = bench.num_clips
    source = make_clips(bench.folder / "clips", CLIP, count)
    chunked = ("--videos-per-chunk", "10")
    bench.compare(
        "clips", source, count * CLIP_FRAMES, chunked, ("--videos_per_chunk", "10")
    )
    output = bench.folder / "inner"
    speeds = bench.take_turns(
        "clips, beside the limit",
        count * CLIP_FRAMES,
        {
            "limit": inner("_limit", CLIP, count, CORES, 1),
            "limit, decoders with 2 threads": inner("_limit", CLIP, count, CORES, 2),
            "ours": inner("_run", source, output, CORES, 10),
            "ours, one chunk": inner("_run", source, output, CORES, 100),
            "ours, one worker": inner("_run", source, output, 1, 10),
        },
    )
    best = max(speed for name, speed in speeds.items() if name.startswith("limit"))
    bench.note("clips, beside the limit", "ours / limit", speeds["ours"] / best)
    core = bench.results["clips, beside the limit"]
    bench.note(
        "clips, beside the limit",
        "core time, limit / ours",
        core["limit"]["cpu_us_per_frame"] / core["ours"]["cpu_us_per_frame"],
    )
    bench.note(
        "clips, beside the limit", "one chunk / limit", speeds["ours, one chunk"] / best
    )
    bench.note(
        "clips, beside the limit",
        "2 workers / 1 worker",
        speeds["ours"] / speeds["ours, one worker"],
    )


def small(bench: Bench) -> None:
    """40 clips of 340x256, short side 128."""
    source = make_clips(bench.folder / "small", CLIP, bench.num_clips)
    bench.compare(
        "short side 128",
        source,
        bench.num_clips * CLIP_FRAMES,
        ("--frame-size", "128", "--videos-per-chunk", "10"),
        ("--frame_size", "128", "--videos_per_chunk", "10"),
    )


def large(bench: Bench) -> None:
    """8 clips of 1920x1080, short side 256."""
    clip = make_large(bench.folder / "large.mp4", CLIP, 120)
    source = make_clips(bench.folder / "large", clip, 8)
    bench.compare(
        "1080p to short side 256",
        source,
        8 * 120,
        ("--frame-size", "256", "--videos-per-chunk", "2"),
        ("--frame_size", "256", "--videos_per_chunk", "2"),
    )


def long(bench: Bench) -> None:
    """One video of ten minutes."""
    clip = make_long(bench.folder / "long.mp4", CLIP, 60)
    source = make_clips(bench.folder / "long", clip, 1)
    bench.take_turns(
        "one video of 10 minutes",
        60 * CLIP_FRAMES,
        {
            "2 cores": inner("_run", source, bench.folder / "inner", CORES, 100),
            "1 core": inner("_run", source, bench.folder / "inner", 1, 100),
        },
    )


def images(bench: Bench) -> None:
    """4,000 JPEG files, no resize."""
    source = make_images(bench.folder / "images", CLIP, 4000)
    bench.compare(
        "JPEG files",
        source,
        4000,
        ("--image-size", "--videos-per-chunk", "500"),
        ("--images_per_chunk", "500"),
        "gulp2_image_folder",
    )


def held(bench: Bench) -> None:
    """Measure the interpreter lock."""
    source = make_clips(bench.folder / "held", CLIP, 6)
    bench.take_turns(
        "interpreter lock",
        6 * CLIP_FRAMES,
        {"ours": inner("_held", source, bench.folder / "inner")},
    )


def overhead(bench: Bench) -> None:
    """Measure what a chunk costs beside its frames."""
    output = bench.folder / "inner"
    bench.take_turns(
        "a chunk of one tiny frame",
        400,
        {
            "in this process": inner("_overhead", output, 400, "alone"),
            "2 processes": inner("_overhead", output, 400, "processes"),
            "Dask, 2 workers": inner("_overhead", output, 400, "dask"),
        },
    )


CASES = {
    case.__name__: case for case in (clips, small, large, long, images, held, overhead)
}
INNER = {
    "_limit": run_limit,
    "_run": run_ingest,
    "_held": run_held,
    "_overhead": run_overhead,
}


def lines(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Write results for people."""
    for case, programs in results.items():
        yield case
        for name, found in programs.items():
            if name == "ratios":
                continue
            more = f", lock held {found['held']:.1%}" if "held" in found else ""
            if "parent_us" in found:
                more = f", {found['parent_us']:.0f} us of them in the parent"
            yield (
                f"  {name:32} {found['frames_per_second']:7,} frames/s, "
                f"{found['cpu_us_per_frame']:6,} us of a core per frame, "
                f"{CORES} cores {found['busy']:.0%} busy{more}"
            )
        for name, ratio in programs.get("ratios", {}).items():
            yield f"  {name:32} {ratio:7.2f}"


def main() -> None:
    """Run the cases that are asked for."""
    if len(sys.argv) > 1 and sys.argv[1] in INNER:
        INNER[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clips", type=int, default=40, help="how many; 40")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not CLIP.exists():
        sys.exit(f"{CLIP} is not there; set GULPIO2_SHARED_DATA to the folder with it")
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="gulpio2-bench-") as folder:
        bench = Bench(Path(folder), given.rounds, given.clips)
        for name in given.cases or CASES:
            CASES[name](bench)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if given.json:
        sys.stdout.write(json.dumps({"load": load, "cases": bench.results}) + "\n")
    else:
        sys.stdout.write("\n".join([*lines(bench.results), f"load: {load:.1f}", ""]))


if __name__ == "__main__":
    main()
