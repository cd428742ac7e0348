"""How reading, loading and ingesting grow with the cores of a machine, and feed a GPU.

    bin/bench cores                         every case, on 1, 2, 4, ... of the cores
    bin/bench cores read gpu --rounds 3     some of them: see `CASES`
    bin/bench cores --json FILE             the figures as JSON, added to the file's

The clips are those of `bench/read.py`. Each program is a process of its own, pinned to
as many cores as it is given threads or workers, and within a round all take turns. The
codec alone is measured twice: as threads of one process, which is the limit of whatever
reads in one, and as processes of one thread each, which is what the machine can do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clips import CLIP_FRAMES, Clips, make_clips
from figures import Report, refuse_unknown
from ingest_inputs import link_clips
from peers import Program

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
CORES = sorted(os.sched_getaffinity(0))
# Clips of a call: as many as a batch has that keeps 16 threads busy.
BATCH = 32
# What reads in one process; the label of each.
CALLS: dict[str, dict[str, Any]] = {
    "read_clip of 16 frames": {},
    f"read_clips of {BATCH}": {"call": "batch", "batch": BATCH},
}


class Bench:
    """The clips, what was measured, and what is to be ended."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self.rounds: int = options.rounds
        self.seconds: float = options.seconds
        most = min(options.most or len(CORES), len(CORES))
        self.counts = [2**k for k in range(most.bit_length()) if 2**k < most] + [most]
        folder = options.clips
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="gulpio2-bench-"))
        self.folder = Path(made)
        self.clips: Clips = make_clips((folder or self.folder / "clips").resolve())
        self.report = Report()
        self._stack = stack
        self._json: Path | None = options.json

    def keep(self) -> None:
        """Write what there is, so that an interrupt costs what comes after it."""
        if self._json is None:
            return
        versions = {}
        for package in ("gulpio2", "numpy", "simplejpeg", "av", "torch"):
            with suppress(metadata.PackageNotFoundError):
                versions[package] = metadata.version(package)
        notes = [f"clips: {len(self.clips.ids)} of {self.clips.made_of}"]
        self.report.write(self._json, versions, notes=notes)

    def start(self, script: str, *kinds: str, **more: Any) -> list[Program]:
        """Start programs that work when it is their turn."""
        with ThreadPoolExecutor(len(kinds)) as pool:
            return list(pool.map(lambda kind: self._start(script, kind, more), kinds))

    def _start(self, script: str, kind: str, more: dict[str, Any]) -> Program:
        clips = self.clips
        facts = {
            "ids": clips.ids,
            "num_frames": clips.num_frames,
            "gulped": str(clips.gulped),
            "jpegs": str(clips.jpegs),
            "videos": [str(clips.video_of(id_)) for id_ in clips.ids],
            **more,
        }
        path = HERE / script
        program = Program(Path(sys.executable), path, kind, facts, has_package=True)
        self._stack.callback(program.close)
        return program


def _pin(process: int, cores: list[int]) -> None:
    """Let a process, and each of its threads, run on these cores alone."""
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(task.name), cores)


# ------------------------------------------------------------------ reading
def read(bench: Bench) -> None:
    """Read by 1 thread to one for each core, and by as many processes."""
    most = bench.counts[-1]
    limits = bench.start("readers.py", *["limit"] * most)
    readers = bench.start("readers.py", *["ours"] * most, threads=bench.counts)
    rates: dict[tuple[str, int], list[float]] = {}
    for seed in range(bench.rounds):
        for count in bench.counts if seed % 2 == 0 else bench.counts[::-1]:
            task = {"pattern": "random 16", "seed": seed, "seconds": bench.seconds}
            turns: dict[str, Callable[[], float]] = {
                "the codec, threads": lambda c=count, t=task: _in_one(limits[0], c, t),
                "the codec, processes": lambda c=count, t=task: _at_once(limits[:c], t),
                "read_clip, processes": lambda c=count, t=task: _at_once(
                    readers[:c], t
                ),
            }
            for label, call in CALLS.items():
                turns[f"{label}, threads"] = lambda c=count, t={**task, **call}: (
                    _in_one(readers[0], c, t)
                )
            for label, turn in turns.items():
                rates.setdefault((label, count), []).append(turn())
        sys.stderr.write(f"read: round {seed + 1} of {bench.rounds}\n")
    _grown(bench, "reading", rates, over="the codec, threads")


def _in_one(program: Program, threads: int, task: dict[str, Any]) -> float:
    _pin(program.pid, CORES[:threads])
    return program.run({**task, "threads": threads})


def _at_once(programs: list[Program], task: dict[str, Any]) -> float:
    for number, program in enumerate(programs):
        _pin(program.pid, CORES[number : number + 1])
    one = {**task, "threads": 1}
    with ThreadPoolExecutor(len(programs)) as pool:
        found = pool.map(
            lambda pair: pair[1].run({**one, "seed": task["seed"] + 1000 * pair[0]}),
            enumerate(programs),
        )
        return sum(found)


def _grown(
    bench: Bench,
    group: str,
    rates: dict[tuple[str, int], list[float]],
    *,
    over: str,
) -> None:
    """Add rates, and what they are of the codec's."""
    for (label, count), values in rates.items():
        bench.report.add(f"{group}: {label}, {_cores(count)}", values, "frames/s")
    for (label, count), values in rates.items():
        if label != over:
            ratios = _ratios(values, rates[over, count])
            bench.report.add(
                f"{group}, of {over}: {label}, {_cores(count)}", ratios, "ratio"
            )


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _ratios(ones: list[float], others: list[float]) -> list[float]:
    return [one / other for one, other in zip(ones, others, strict=True)]


# ------------------------------------------------------------------ loading
def loader(bench: Bench) -> None:
    """Load by 1 thread, or worker process, to one for each core."""
    (limit,) = bench.start("readers.py", "limit")
    kinds = (
        *("GulpLoader", "GulpLoader, processes"),
        *("GulpLoader, cropped to 224", "GulpLoader, processes, cropped to 224"),
        "DataLoader, recycling",
    )
    for count in bench.counts:
        rates: dict[tuple[str, int], list[float]] = {}
        started = bench.start("loaders.py", *kinds, workers=count)
        programs = dict(zip(kinds, started, strict=True))
        for program in programs.values():
            program.run(0.3)  # opens what is opened once; its workers are there
            for worker in [program.pid, *_descendants(program.pid)]:
                _pin(worker, CORES[:count])
        for seed in range(bench.rounds):
            task = {"pattern": "random 16", "seed": seed, "seconds": bench.seconds}
            rates.setdefault(("the codec, threads", count), []).append(
                _in_one(limit, count, task)
            )
            for kind, program in programs.items():
                rates.setdefault((kind, count), []).append(program.run(bench.seconds))
                time.sleep(0.4)  # it still makes the batches that it keeps ready
        for program in programs.values():
            program.close()
        _grown(bench, "loading", rates, over="the codec, threads")
        bench.keep()


def _descendants(pid: int) -> list[int]:
    """Give the processes that one has started, and those have."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text("ascii").split():
                found += [int(child), *_descendants(int(child))]
    return found


# ------------------------------------------------------------------ ingesting
def ingest(bench: Bench) -> None:
    """Ingest 40 clips for each worker, by 1 worker to one for each core."""
    videos = sorted((bench.clips.videos / "clips").iterdir())
    for count in bench.counts:
        rates: dict[tuple[str, int], list[float]] = {}
        peaks: list[float] = []
        source = link_clips(bench.folder / f"ingest{count}", videos * count)
        for _ in range(bench.rounds):
            seconds, _ = _part("limit", count, *videos * count)
            frames = len(videos) * count * CLIP_FRAMES
            rates.setdefault(("the decoder and the encoder", count), []).append(
                frames / seconds
            )
            output = bench.folder / "gulped"
            seconds, peak = _part("ingest", count, source, output, count, 10)
            rates.setdefault(("gulp2 ingest", count), []).append(frames / seconds)
            peaks.append(peak / 1e6)
            shutil.rmtree(output)
        _grown(bench, "ingesting", rates, over="the decoder and the encoder")
        bench.report.add(f"ingesting, memory: {_cores(count)}", peaks, "MB")
        bench.keep()


def _part(name: str, count: int, *words: object) -> tuple[float, float]:
    """Run a part of `ingest_parts` on so many cores; give its seconds and peak memory.

    The memory is that of all its processes, what they share counted once.
    """
    command = [sys.executable, str(HERE / "ingest_parts.py"), name, *map(str, words)]
    process = subprocess.Popen(  # noqa: S603  # of this repository
        command,
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parent),
            "GULPIO2_BENCH_CORES": str(count),
        },
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES[:count]),  # no threads run yet
    )
    peaks, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            pids = [process.pid, *_descendants(process.pid)]
            peaks.append(sum(map(_private_and_share, pids)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    answer, _ = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        sys.exit(f"{command} failed")
    return json.loads(answer)["seconds"], max(peaks)


def _private_and_share(pid: int) -> float:
    """Give a process's bytes, of what it shares with others its share."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return 1024.0 * int(line.split()[1])
    return 0.0


# ------------------------------------------------------------------ a GPU
def gpu(bench: Bench) -> None:
    """Train beside what loads, to see whether the GPU has to wait."""
    import torch

    if not torch.cuda.is_available():
        sys.stdout.write("gpu: left out, for there is no CUDA device\n")
        return
    from trainers import DEVICE_KINDS

    found: dict[str, list[float]] = {}
    started = bench.start("trainers.py", *DEVICE_KINDS, workers=bench.counts[-1])
    programs = dict(zip(DEVICE_KINDS, started, strict=True))
    for program in programs.values():
        program.run(0.5)
    for number in range(bench.rounds):
        for kind, program in programs.items():
            found.setdefault(kind, []).append(program.run(4 * bench.seconds))
            time.sleep(0.4)
        sys.stderr.write(f"gpu: round {number + 1} of {bench.rounds}\n")
    group = f"feeding {torch.cuda.get_device_name()}"
    for kind, values in found.items():
        bench.report.add(f"{group}: {kind}", values, "frames/s")
    for kind, over in DEVICE_KINDS.items():
        if over is not None:
            ratios = _ratios(found[kind], found[over])
            bench.report.add(f"{group}: {kind} / {over}", ratios, "ratio")


CASES = {case.__name__: case for case in (read, loader, ingest, gpu)}


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of one turn")
    parser.add_argument("--most", type=int, help="cores; default: all of them")
    parser.add_argument("--clips", type=Path, help="folder to keep the clips in")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    refuse_unknown(parser, options.cases, CASES)
    os.environ["OMP_NUM_THREADS"] = "1"  # of each program
    with ExitStack() as stack:
        bench = Bench(options, stack)
        for name in options.cases or CASES:
            CASES[name](bench)
            bench.keep()


if __name__ == "__main__":
    main()
