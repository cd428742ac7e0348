"""Measure the loader beside the codec's own limit and beside other programs' loaders.

    python bench/loader.py [--rounds 7] [--seconds 0.5] [--only NAME ...] [--json FILE]

Forty clips of 340x256 (``bench/clips.py``) are loaded in shuffled batches of 8 clips of
16 frames, by two threads or two worker processes, and nobody consumes them. Each loader
is a process of its own that stays alive and waits for its turn. Before and after each
turn the codec alone has one: as many threads decode the same JPEGs from memory into
memory of numpy's that is used again, which is the limit of ``bench/read.py`` as well.
The speed of a shared machine changes within seconds, so a turn is short, and what
counts is its ratio to the codec's two beside it; medians of those are printed. It also
differs by some hundredths from process to process, for as long as it lives, by where
the system happens to put its memory: of GulpLoader and of the codec there are several,
which take turns. So are there of the codec into memory as this package makes it, where
it is faster: GulpLoader has that too, and the ratio of the two says what it costs.

Loaders of other programs get every help: WebDataset and MosaicML's streaming read clips
that were cut beforehand, so that no byte is read in vain, torchcodec keeps its
decoders, and what decodes JPEGs does it with the codec's fastest settings.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from clips import Clips, make_clips
from loaders import (
    BATCH_SIZE,
    CLIP_LENGTH,
    CODEC,
    CODEC_AT_ODD,
    LOADERS,
    WORKERS,
)
from peers import python_of

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "bench" / "loaders.py"
# Seconds between two turns.
_PAUSE = 0.4
# Processes of a kind, each with a turn in a round; the others' ratios are far from
# their targets. The codec's have theirs before and after everybody else's. Of single
# ones the ratio differs by 0.01; with six of each, a run's median differed by 0.004
# from another's.
_PROCESSES = {"GulpLoader": 12, CODEC: 12, CODEC_AT_ODD: 12}
# Changing this writes what the peers read afresh.
_VERSION = 1
# The peer in whose environment a loader runs; None: this one.
ENVIRONMENTS = {
    CODEC: None,
    CODEC_AT_ODD: None,
    "GulpLoader": None,
    "GulpLoader, cropped to 224": None,
    "GulpLoader, single frames": None,
    "DataLoader, recycling": None,
    "DataLoader, our sampler": None,
    "original": "original-torch",
    "torchcodec": "torchcodec",
    "files": None,
    "webdataset": "webdataset",
    "streaming": "streaming",
}
OURS = "GulpLoader"
PEERS = ("original", "torchcodec", "files", "webdataset", "streaming")
TARGETS = {
    "GulpLoader / codec": 0.95,
    "DataLoader, recycling / codec": 0.48,
    "GulpLoader / original": 2.7,
    "GulpLoader / best peer": 2.0,
}


class Turns:
    """A loader in a process of its own, which waits until it is its turn."""

    def __init__(self, python: Path, kind: str, facts: dict[str, Any]) -> None:
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        environment.pop("PYTHONPATH", None)
        folder = ROOT / ".peers"
        if ENVIRONMENTS[kind] is None:  # this package, perhaps not installed
            environment["PYTHONPATH"] = str(ROOT)
        self.process = subprocess.Popen(  # noqa: S603  # programs of this repository
            [str(python), str(PROGRAM), kind, json.dumps(facts)],
            env=environment,
            cwd=folder,  # not the checkout, whose package is called as the original
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.versions: dict[str, str] = self._answer()

    def run(self, seconds: float) -> float:
        """Give frames per second of a turn."""
        pipe: Any = self.process.stdin
        pipe.write(f"{seconds}\n")
        pipe.flush()
        answer = self._answer()
        return float(answer["frames"] / answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        pipe: Any = self.process.stdout
        line = pipe.readline()
        if not line:
            raise RuntimeError(f"a loader ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, and its workers."""
        pipe: Any = self.process.stdin
        pipe.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def facts_of(clips: Clips, names: list[str]) -> dict[str, Any]:
    """Say where everything is, and write what these peers read in their own form."""
    facts: dict[str, Any] = {
        "ids": list(clips.ids),
        "num_frames": clips.num_frames,
        "gulped": str(clips.gulped),
        "original": str(clips.original),
        "jpegs": str(clips.jpegs),
        "video_paths": [str(clips.video_of(id_)) for id_ in clips.ids],
    }
    for peer, kind in (("webdataset", "shards"), ("streaming", "mds")):
        stamp = (clips.folder / "stamp.json").read_text("utf-8")
        folder = clips.folder / f"{kind}-{_VERSION}"
        done = folder / "done"
        python = python_of(peer) if peer in names else None
        if python is None:
            continue
        if not done.exists() or done.read_text("utf-8") != stamp:
            subprocess.run(["rm", "-rf", str(folder)], check=True)  # noqa: S603, S607
            arguments = json.dumps({**facts, "to": str(folder / "data")})
            command = [str(python), str(PROGRAM), f"write {kind}", arguments]
            subprocess.run(command, cwd=clips.folder, check=True)  # noqa: S603
            done.write_text(stamp, "utf-8")
        facts[kind] = str(folder / "data")
    if "shards" in facts:
        facts["shards"] = [str(path) for path in Path(facts["shards"]).iterdir()]
    return facts


def start(names: list[str], facts: dict[str, Any]) -> dict[str, list[Turns]]:
    """Start the loaders that can be had, and the codec."""
    running: dict[str, list[Turns]] = {}
    for name in [CODEC, *names]:
        peer = ENVIRONMENTS[name]
        python = Path(sys.executable) if peer is None else python_of(peer)
        if python is None or (name == "original" and facts["original"] == "None"):
            continue
        try:
            for _ in range(_PROCESSES.get(name, 1)):
                running.setdefault(name, []).append(Turns(python, name, facts))
        except RuntimeError as error:
            sys.stderr.write(f"{name} is left out: {error}\n")
    return running


def measure(
    running: dict[str, list[Turns]], rounds: int, seconds: float
) -> list[dict[str, float]]:
    """Let them take turns; give frames per second of each to the codec's beside it.

    Those of the codec itself, as they are, are in it as "codec".
    """
    results = []
    codecs = cycle(running[CODEC])
    turns = [
        (name, process)
        for name, processes in running.items()
        for process in processes
        if name != CODEC
    ]
    for number in range(rounds):
        first = number % len(turns)  # nobody always comes after the same one
        codec = [next(codecs).run(seconds)]
        found: dict[str, list[float]] = {}
        for name, process in turns[first:] + turns[:first]:
            speed = process.run(seconds)
            # It still makes the batches that it keeps ready.
            time.sleep(_PAUSE)
            codec.append(next(codecs).run(seconds))
            found.setdefault(name, []).append(2 * speed / (codec[-2] + codec[-1]))
        ratios = {name: statistics.mean(values) for name, values in found.items()}
        results.append({CODEC: statistics.mean(codec), **ratios})
        text = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        sys.stderr.write(f"round {number + 1}: {text}\n")
    return results


def cases_of(results: list[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Give ratios of each round as cases with median, least and largest."""
    names = [name for name in results[0] if name != CODEC]
    series: dict[str, list[float]] = {}
    for name in names:
        series[f"{name} / {CODEC}"] = [found[name] for found in results]
    peers = [name for name in names if name in PEERS]
    if OURS in names and CODEC_AT_ODD in names:
        series[f"GulpLoader / {CODEC_AT_ODD}"] = [
            found[OURS] / found[CODEC_AT_ODD] for found in results
        ]
    if OURS in names and "original" in names:
        series["GulpLoader / original"] = [r[OURS] / r["original"] for r in results]
    if OURS in names and peers:
        series["GulpLoader / best peer"] = [
            found[OURS] / max(found[peer] for peer in peers) for found in results
        ]
    cases = {name: _case(name, values, "ratio") for name, values in series.items()}
    speeds = [found[CODEC] for found in results]
    cases[CODEC] = _case(CODEC, speeds, "frames/s")
    return cases


def _case(name: str, values: list[float], unit: str) -> dict[str, Any]:
    median, target = statistics.median(values), TARGETS.get(name)
    return {
        "median": round(median, 3),
        "least": round(min(values), 3),
        "largest": round(max(values), 3),
        "unit": unit,
        "target": None if target is None else f">= {target}",
        "met": target is None or median >= target,
    }


def report_of(
    cases: dict[str, Any], running: dict[str, list[Turns]], clips: Clips, rounds: int
) -> dict[str, Any]:
    """Put everything together as it is kept."""
    versions = {name: version(name) for name in ("numpy", "simplejpeg", "torch")}
    for processes in running.values():
        versions.update(processes[0].versions)
    return {
        "machine": machine(),
        "versions": versions,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cases": cases,
        "notes": [
            f"{len(clips.ids)} clips of {clips.num_frames} frames, of {clips.made_of}",
            f"batches of {BATCH_SIZE} clips of {CLIP_LENGTH} frames, "
            f"{WORKERS} threads or workers",
            f"{rounds} rounds; a ratio is of one turn to the codec's two beside it, "
            f"the mean of {_PROCESSES[OURS]} processes' turns in a round for {OURS}",
            f"load average at the end {os.getloadavg()[0]:.1f}",
        ],
    }


def machine() -> dict[str, Any]:
    """Say what it ran on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def main() -> None:
    """Measure, print a table, and keep the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument(
        "--only", nargs="+", choices=[CODEC_AT_ODD, *LOADERS], metavar="NAME"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--clips", type=Path, default=ROOT / ".peers" / "clips")
    options = parser.parse_args()
    clips = make_clips(options.clips.resolve())
    names = options.only or [CODEC_AT_ODD, *LOADERS]
    facts = facts_of(clips, names)
    running = start(names, facts)
    try:
        measure(running, 1, 0.3)  # opens what is opened once
        results = measure(running, options.rounds, options.seconds)
    finally:
        for process in chain.from_iterable(running.values()):
            process.close()
    cases = cases_of(results)
    for name, case in cases.items():
        spread = f"{case['least']:,} to {case['largest']:,}"
        target = case["target"] or ""
        verdict = "" if not target else "met" if case["met"] else "NOT MET"
        sys.stdout.write(
            f"{name:<36}{case['median']:>10,}  {spread:<22}{target:<9}{verdict}\n"
        )
    if options.json is not None:
        report = report_of(cases, running, clips, options.rounds)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
