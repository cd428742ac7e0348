"""Programs whose ingests are compared, run in turns, and what they gave.

Those that are compared take turns; a ratio is that of two neighbours, and the middle
one of the rounds counts.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from figures import Report
from peers import python_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clips import Clips

CORES = 2

Measured = dict[str, float]


def timed(
    command: list[str], *, path: str | None = None, preload: Path | None = None
) -> Measured:
    """Run a program; give wall seconds, and how busy it kept the cores."""
    environment = dict(os.environ)
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    if path is not None:
        environment.pop("PYTHONPATH", None)  # else it would find this package
        environment.pop("PYTHONPYCACHEPREFIX", None)  # it is installed with its own
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    os.sync()  # what was deleted and written before is not to be waited for
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
    found = {"seconds": seconds, "busy": used / seconds / CORES}
    if done.stdout.startswith(b'{"'):
        found.update(json.loads(done.stdout))  # a part of `ingest_parts`, or its like
    return found


def ours(
    kind: str, sources: Sequence[Path], output: Path, *words: str
) -> Callable[[], Measured]:
    """Give a run of ``gulp2 ingest``, from its start to its end."""

    def measure() -> Measured:
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "gulpio2.cli.main", "ingest", kind]
        command += [*map(str, sources), str(output)]
        command += ["--num-workers", str(CORES), "-q"]
        return timed([*command, *words])

    return measure


def original(
    program: str, sources: Sequence[Path], output: Path, *words: str
) -> Callable[[], Measured]:
    """Give a run of a program of 0.0.4, from its start to its end."""
    python = python_of("original")
    bin_ = Path() if python is None else python.parent

    def measure() -> Measured:
        shutil.rmtree(output, ignore_errors=True)
        command = [str(bin_ / program), "--num_workers", str(CORES), *words]
        # In a folder it finds nothing without the slash.
        command += [f"{each}/" if each.is_dir() else str(each) for each in sources]
        return timed([*command, str(output)], path=str(bin_))

    return measure


_ORIGINAL = """\
import json, sys, time
from gulpio2.adapters import VideoFolderAdapter
from gulpio2.fileio import GulpIngestor
source, output, per_chunk, workers = sys.argv[1:]
adapter = VideoFolderAdapter(source + "/", output, file_extensions=[".webm"])
ingestor = GulpIngestor(adapter, output, int(per_chunk), int(workers))
began = time.perf_counter()
ingestor()
print(json.dumps({"seconds": time.perf_counter() - began}))
"""


def original_inside(source: Path, output: Path) -> Callable[[], Measured]:
    """Give a run of 0.0.4's ingestor that tells its own seconds."""
    python = python_of("original") or Path()

    def measure() -> Measured:
        shutil.rmtree(output, ignore_errors=True)
        # Not the checkout, whose package has the same name.
        output.parent.mkdir(exist_ok=True)
        command = [str(python), "-P", "-c", _ORIGINAL, str(source), str(output)]
        return timed([*command, "10", str(CORES)], path=str(python.parent))

    return measure


def part(
    name: str, *words: object, preload: Path | None = None
) -> Callable[[], Measured]:
    """Give a run of a part of `ingest_parts`, which tells its own seconds."""
    script = Path(__file__).with_name("ingest_parts.py")
    command = [sys.executable, str(script), name, *map(str, words)]
    return lambda: timed(command, preload=preload)


class Bench:
    """Runs cases, prints what they gave and keeps it."""

    def __init__(self, folder: Path, rounds: int, clips: Clips) -> None:
        self.folder = folder
        self.rounds = rounds
        self.clips = clips
        self.videos = sorted((clips.videos / "clips").iterdir())
        self.has_original = python_of("original") is not None
        self.report = Report()

    def take_turns(
        self, programs: dict[str, Callable[[], Measured]]
    ) -> dict[str, list[Measured]]:
        """Run programs in turns, the other way round every second time."""
        runs: dict[str, list[Measured]] = {name: [] for name in programs}
        for turn in range(self.rounds):
            order = list(programs) if turn % 2 == 0 else list(reversed(programs))
            for name in order:
                runs[name].append(programs[name]())
        return runs

    def speeds(
        self, case: str, name: str, frames: int, runs: Sequence[Measured]
    ) -> list[float]:
        """Keep frames per second and how busy the cores were."""
        speeds = [frames / run["seconds"] for run in runs]
        self.report.add(f"{case}: {name}", speeds, "frames/s")
        return speeds

    def compare(
        self,
        case: str,
        frames: int,
        programs: dict[str, Callable[[], Measured]],
        *,
        least: float,
    ) -> None:
        """Run our command, and that of 0.0.4 where it is there."""
        if not self.has_original:
            programs = {"ours": programs["ours"]}
        runs = self.take_turns(programs)
        speeds = {
            name: self.speeds(case, name, frames, found) for name, found in runs.items()
        }
        if "0.0.4" in speeds:
            found = ratios(speeds["ours"], speeds["0.0.4"])
            self.report.add(f"{case}: ours / 0.0.4", found, "ratio", f">= {least}")


def ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Divide the figures of a program by those of its neighbour in each round."""
    return [a / b for a, b in zip(first, second, strict=True)]
