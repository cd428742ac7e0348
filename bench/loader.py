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
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from clips import Clips, make_clips
from figures import Report
from loaders import (
    BATCH_SIZE,
    CLIP_LENGTH,
    CODEC,
    CODEC_AT_ODD,
    LOADERS,
    WORKERS,
)
from peers import Program, python_of

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
    "GulpLoader, processes": None,
    "GulpLoader, processes, cropped to 224": None,
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
    "GulpLoader / codec": ">= 0.95",
    "DataLoader, recycling / codec": ">= 0.48",
    "GulpLoader / original": ">= 2.7",
    "GulpLoader / best peer": ">= 2",
}


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
            subprocess.run(["rm", "-rf", str(folder)], check=True)  # noqa: S603, S607  # a folder of its own
            arguments = json.dumps({**facts, "to": str(folder / "data")})
            command = [str(python), str(PROGRAM), f"write {kind}", arguments]
            subprocess.run(command, cwd=clips.folder, check=True)  # noqa: S603  # the environment of a peer
            done.write_text(stamp, "utf-8")
        facts[kind] = str(folder / "data")
    if "shards" in facts:
        facts["shards"] = [str(path) for path in Path(facts["shards"]).iterdir()]
    return facts


def start(names: list[str], facts: dict[str, Any]) -> dict[str, list[Program]]:
    """Start the loaders that can be had, and the codec."""
    running: dict[str, list[Program]] = {}
    for name in [CODEC, *names]:
        peer = ENVIRONMENTS[name]
        python = Path(sys.executable) if peer is None else python_of(peer)
        if python is None or (name == "original" and facts["original"] == "None"):
            continue
        try:
            for _ in range(_PROCESSES.get(name, 1)):
                program = Program(
                    python, PROGRAM, name, facts, has_package=peer is None
                )
                running.setdefault(name, []).append(program)
        except OSError as error:
            sys.stderr.write(f"{name} is left out: {error}\n")
    return running


def measure(
    running: dict[str, list[Program]], rounds: int, seconds: float
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


def report_all(report: Report, results: list[dict[str, float]]) -> None:
    """Add the ratios of each round, and what the codec did."""
    names = [name for name in results[0] if name != CODEC]
    series = {f"{name} / {CODEC}": [r[name] for r in results] for name in names}
    peers = [name for name in names if name in PEERS]
    if OURS in names and CODEC_AT_ODD in names:
        series[f"{OURS} / {CODEC_AT_ODD}"] = [
            found[OURS] / found[CODEC_AT_ODD] for found in results
        ]
    if OURS in names and "original" in names:
        series[f"{OURS} / original"] = [r[OURS] / r["original"] for r in results]
    if OURS in names and peers:
        series[f"{OURS} / best peer"] = [
            found[OURS] / max(found[peer] for peer in peers) for found in results
        ]
    for name, values in series.items():
        report.add(name, values, "ratio", TARGETS.get(name))
    report.add(CODEC, [found[CODEC] for found in results], "frames/s")


def versions_of(running: dict[str, list[Program]]) -> dict[str, str]:
    """Say what was loaded with."""
    versions = {name: version(name) for name in ("numpy", "simplejpeg", "torch")}
    for processes in running.values():
        versions.update(processes[0].versions)
    return versions


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
    os.environ["OMP_NUM_THREADS"] = "1"  # of each loader
    running = start(names, facts)
    try:
        measure(running, 1, 0.3)  # opens what is opened once
        results = measure(running, options.rounds, options.seconds)
    finally:
        for process in chain.from_iterable(running.values()):
            process.close()
    report = Report()
    report_all(report, results)
    if options.json is not None:
        notes = [
            f"{len(clips.ids)} clips of {clips.num_frames} frames, of {clips.made_of}",
            f"batches of {BATCH_SIZE} clips of {CLIP_LENGTH} frames, "
            f"{WORKERS} threads or workers",
            f"{options.rounds} rounds; a ratio is of one turn to the codec's two "
            f"beside it, the mean of {_PROCESSES[OURS]} processes' turns in a round "
            f"for {OURS}",
        ]
        report.write(options.json, versions_of(running), notes=notes)


if __name__ == "__main__":
    main()
