"""How fast clips are read, beside the codec's own limit and beside others, in one run.

    bin/bench read                              every case
    bin/bench read random uniform --rounds 9    some of them: see `CASES`
    bin/bench read --json FILE                  the figures as JSON, added to the file's

Forty clips of 340x256 (bench/clips.py), in the page cache. Each program is a process of
its own that waits until it is its turn; within a round all take turns, the next round
goes the other way round, and ratios are those of one round. A turn in which other
programs took more than a tenth of a processor is repeated, and left out where that
does not help. What a process does at this speed another does up to some hundredths
slower for as long as it lives, by where the system happens to put its memory: of this
package's readers and of the limit there are three, one for every third round. The
limit is the codec with nothing around it: the same JPEGs from
memory, into memory that is there, in a loop per thread that waits for nobody.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clips import CLIP_FRAMES, NUM_CLIPS, Clips, make_clips
from figures import Report, refuse_unknown
from peers import Program, python_of

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(__file__).with_name("readers.py")
# Programs by the environment that they run in; None is this one's.
ENVIRONMENTS = {
    "ours": None,
    "limit": None,
    "bare": None,
    "original": "original",
    "original, same bytes": "original",
    "decord": "decord",
    "torchcodec": "torchcodec",
    "JPEG files, OpenCV": None,
    "JPEG files, simplejpeg": None,
}
OTHERS = tuple(ENVIRONMENTS)[3:]

# Seconds of processors that others may have, in a second of a turn; one that was
# disturbed more is repeated, up to so many times.
_FOREIGN_SHARE = 0.1
_NUM_ATTEMPTS = 6
_PAUSE_SECONDS = 0.2
# Processes of a program; the others are further from what they are compared with.
_COPIES = {"ours": 3, "limit": 3, "bare": 3}


@dataclass(frozen=True, slots=True)
class Turn:
    """What a program is to do when it is its turn."""

    label: str
    """Its name in the results."""
    kind: str
    """The program."""
    task: dict[str, Any] = field(default_factory=dict)
    """What it is told."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two rates that are compared, round by round."""

    label: str
    over: str
    target: float | None = None
    """At least so much."""


@dataclass(frozen=True, slots=True)
class Case:
    """Programs that take turns."""

    about: str
    turns: tuple[Turn, ...]
    ratios: tuple[Ratio, ...]


# ------------------------------------------------------------------ cases
def _pattern(pattern: str) -> Case:
    task = {"pattern": pattern, "threads": 2}
    batch = {**task, "call": "batch", "batch": 8}
    return Case(
        f"{pattern} frames of a clip, two threads",
        (
            Turn("ours", "ours", task),
            Turn("ours, 8 clips a call", "ours", batch),
            Turn("ours, new memory", "ours", {**task, "call": "new"}),
            Turn("ours, list of arrays", "ours", {**task, "call": "list"}),
            Turn("limit", "limit", task),
            Turn("limit, memory of 8 clips", "limit", {**task, "batch": 8}),
            Turn("limit, odd addresses", "limit", {**task, "odd": True}),
            Turn("bare", "bare", task),
            *(Turn(kind, kind, {"pattern": pattern}) for kind in OTHERS),
            *(
                Turn(f"{kind}, list", kind, {"pattern": pattern, "call": "list"})
                for kind in ("original", "original, same bytes")
            ),
        ),
        (
            Ratio("ours", "limit", 0.93),
            Ratio("ours, 8 clips a call", "limit, memory of 8 clips", 0.93),
            Ratio("ours", "limit, odd addresses"),
            Ratio("ours, new memory", "limit"),
            Ratio("ours, list of arrays", "limit"),
            Ratio("bare", "limit"),
            Ratio("ours", "bare"),
            Ratio("ours", "original", 2.4),
            Ratio("ours", "original, same bytes", 1.85),
            Ratio("ours", "decord", 9),
            Ratio("ours", "torchcodec", 9),
            Ratio("ours", "JPEG files, OpenCV"),
            Ratio("ours", "JPEG files, simplejpeg"),
            Ratio("ours, list of arrays", "original, list"),
            Ratio("ours, list of arrays", "original, same bytes, list"),
            *(Ratio(kind, "limit") for kind in OTHERS),
        ),
    )


def _single() -> Case:
    task = {"pattern": "random 16", "threads": 1}
    return Case(
        "random 16 frames of a clip, one thread",
        (Turn("ours", "ours", task), Turn("limit", "limit", task)),
        (Ratio("ours", "limit", 0.96),),
    )


def _scales() -> Case:
    turns, ratios = [], []
    for scale in (1, 2, 4, 8):
        task = {"pattern": "random 16", "threads": 2, "options": {"scale": scale}}
        batch = {**task, "call": "batch", "batch": 8}
        ours, limit = f"ours 1/{scale}", f"limit 1/{scale}"
        turns += [
            Turn(ours, "ours", task),
            Turn(f"{ours}, 8 clips a call", "ours", batch),
            Turn(limit, "limit", task),
            Turn(f"{limit}, memory of 8 clips", "limit", {**task, "batch": 8}),
        ]
        if scale > 1:
            ratios += [
                Ratio(ours, limit, 0.93),
                Ratio(f"{ours}, 8 clips a call", f"{limit}, memory of 8 clips", 0.93),
                Ratio(ours, "ours 1/1"),
                Ratio(limit, "limit 1/1"),
            ]
    return Case(
        "random 16 frames of a clip at a part of their size, two threads",
        tuple(turns),
        tuple(ratios),
    )


def _threads() -> Case:
    labels = {n: f"{n} threads" if n > 1 else "1 thread" for n in range(1, 9)}
    return Case(
        "random 16 frames of a clip, by number of threads",
        tuple(
            Turn(label, "ours", {"pattern": "random 16", "threads": n})
            for n, label in labels.items()
        ),
        tuple(Ratio(label, "1 thread", 1) for n, label in labels.items() if n > 1),
    )


def _parts() -> Case:
    options = {
        "whole": {},
        "upper half": {"crop": [0, 0, 128, 340]},
        "middle 224x224": {"crop": [16, 58, 224, 224]},
        "lower half": {"crop": [128, 0, 128, 340]},
        "grey": {"colorspace": "gray"},
    }
    return Case(
        "random 16 frames of a clip, a region or grey, two threads",
        tuple(
            Turn(
                label,
                "ours",
                {"pattern": "random 16", "threads": 2, "options": chosen},
            )
            for label, chosen in options.items()
        ),
        tuple(Ratio(label, "whole") for label in options if label != "whole"),
    )


def _overhead() -> Case:
    """Frames of 16x16, whose decoding takes next to nothing."""
    turns = []
    for pattern in ("random 16", "8 uniform", "32 at stride 2"):
        task = {"pattern": pattern, "threads": 1}
        turns += [
            Turn(f"{pattern}, ours", "tiny ours", task),
            Turn(f"{pattern}, codec", "tiny limit", task),
        ]
    return Case("what a frame costs beside the codec", tuple(turns), ())


CASES: dict[str, Callable[[], Case]] = {
    "random": lambda: _pattern("random 16"),
    "uniform": lambda: _pattern("8 uniform"),
    "stride": lambda: _pattern("32 at stride 2"),
    "single": _single,
    "scales": _scales,
    "threads": _threads,
    "parts": _parts,
    "overhead": _overhead,
}


# ------------------------------------------------------------------ programs
class Reader(Program):
    """A reader, which reads again where other programs took the processors."""

    disturbed = given_up = 0

    def rate(self, task: dict[str, Any]) -> float | None:
        """Have it read, and give its frames per second.

        While something else used the processors it reads again, some times; None where
        that did not help.
        """
        for _ in range(_NUM_ATTEMPTS):
            before = self._foreign_seconds()
            start = time.perf_counter()
            found = self.run(task)
            share = (self._foreign_seconds() - before) / (time.perf_counter() - start)
            if share < _FOREIGN_SHARE:
                return found
            self.disturbed += 1
            time.sleep(_PAUSE_SECONDS)
        self.given_up += 1
        return None

    def _foreign_seconds(self) -> float:
        """Give the time that all processors have spent on anything but this program.

        Time that the machine's host took away is part of it. 0 where it is not known.
        """
        try:
            fields = Path("/proc/stat").read_text("utf-8").split("\n", 1)[0].split()
            text = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8")
        except OSError:
            return 0.0
        user, nice, system, _, _, interrupts, soft, stolen = map(int, fields[1:9])
        own = sum(int(value) for value in text.rpartition(")")[2].split()[11:13])
        busy = user + nice + system + interrupts + soft + stolen
        return (busy - own) / os.sysconf("SC_CLK_TCK")


class Programs:
    """The readers that there are, started when they are first needed."""

    def __init__(self, clips: Clips, stack: ExitStack) -> None:
        self.clips = clips
        self._stack = stack
        self._started: dict[tuple[str, int], Reader | None] = {}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what they loaded."""
        found: dict[str, str] = {}
        for (kind, _), program in self._started.items():
            if program is not None:
                own = dict(program.versions)
                if kind.startswith("original"):
                    own = {"original gulpio2": own["gulpio2"]}
                found.update(own)
        return dict(sorted(found.items()))

    @property
    def disturbed(self) -> tuple[int, int]:
        """Turns that were repeated, and those that stayed disturbed."""
        programs = [program for program in self._started.values() if program]
        return (
            sum(program.disturbed for program in programs),
            sum(program.given_up for program in programs),
        )

    def get(self, kind: str, number: int = 0) -> Reader | None:
        """Give a reader for a round; None where it cannot be had, which is said once.

        Those of a kind take turns, so that each meets each of another kind.
        """
        copies = _COPIES.get(kind.rpartition(" ")[2], 1)
        place = number + (number // copies if kind.endswith("limit") else 0)
        key = kind, place % copies
        if key not in self._started:
            self._started[key] = self._start(kind)
        return self._started[key]

    def _start(self, kind: str) -> Reader | None:
        clips = self.clips
        facts = {
            "ids": clips.ids,
            "num_frames": clips.num_frames,
            "gulped": str(clips.gulped),
            "original": str(clips.original),
            "jpegs": str(clips.jpegs),
            "videos": [str(clips.video_of(id_)) for id_ in clips.ids],
        }
        tiny, _, name = (
            kind.rpartition(" ") if kind.startswith("tiny ") else ("", "", kind)
        )
        if tiny:
            facts["gulped"] = str(_make_tiny(clips.folder / "tiny"))
            facts["ids"] = [f"item{k}" for k in range(NUM_CLIPS)]
        if name == "original" and clips.original is None:
            return None
        peer = ENVIRONMENTS[name]
        python = Path(sys.executable) if peer is None else python_of(peer)
        if python is None:
            return None
        try:
            program = Reader(python, PROGRAM, name, facts, has_package=peer is None)
        except OSError as error:
            sys.stderr.write(f"{kind} is left out: {error}\n")
            return None
        self._stack.callback(program.close)
        return program


def _make_tiny(folder: Path) -> Path:
    """Gulp frames of 16x16."""
    from gulpio2.testing import make_gulp_directory

    if not (folder / "gulp.json").exists():
        make_gulp_directory(
            folder,
            num_items=NUM_CLIPS,
            num_frames=CLIP_FRAMES,
            height=16,
            width=16,
            items_per_chunk=10,
        )
    return folder


# ------------------------------------------------------------------ measuring
def measure(
    case: Case, programs: Programs, rounds: int, seconds: float
) -> dict[str, list[float | None]]:
    """Have the programs of a case take turns; give the rates by label and round.

    None where the machine was not free.
    """
    turns = [turn for turn in case.turns if programs.get(turn.kind) is not None]
    rates: dict[str, list[float | None]] = {turn.label: [] for turn in turns}
    for number in range(rounds):
        for turn in turns if number % 2 == 0 else reversed(turns):
            program = programs.get(turn.kind, number)
            if program is not None:
                task = {**turn.task, "seed": number, "seconds": seconds}
                rates[turn.label].append(program.rate(task))
        sys.stderr.write(f"\r{case.about}: round {number + 1} of {rounds} ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    return rates


def pairs(
    ones: list[float | None], others: list[float | None]
) -> list[tuple[float, float]]:
    """Give the rounds in which both are known."""
    both = zip(ones, others, strict=True)
    return [(a, b) for a, b in both if a is not None and b is not None]


def report_case(
    report: Report, name: str, case: Case, rates: dict[str, list[float | None]]
) -> None:
    """Add the figures of a case."""
    if name == "overhead":
        for label, values in rates.items():
            pattern, _, who = label.rpartition(", ")
            if who == "ours":
                codec = rates[f"{pattern}, codec"]
                costs = [1e6 / one - 1e6 / other for one, other in pairs(values, codec)]
                if costs:
                    report.add(f"{name}: {pattern}", costs, "us per frame", "< 5")
        return
    for label, values in rates.items():
        if free := [value for value in values if value is not None]:
            report.add(f"{name}: {label}", free, "frames/s")
    for ratio in case.ratios:
        if ratio.label in rates and ratio.over in rates:
            both = pairs(rates[ratio.label], rates[ratio.over])
            if both:
                report.add(
                    f"{name}: {ratio.label} / {ratio.over}",
                    [one / other for one, other in both],
                    "ratio",
                    None if ratio.target is None else f">= {ratio.target:g}",
                )


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.25, help="of one turn")
    parser.add_argument("--clips", type=Path, help="folder to keep the clips in")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    refuse_unknown(parser, options.cases, CASES)
    report = Report()
    with ExitStack() as stack:
        folder = options.clips
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="gulpio2-bench-")
            folder = Path(stack.enter_context(made))
        programs = Programs(make_clips(folder.resolve()), stack)
        for name in options.cases or CASES:
            case = CASES[name]()
            rates = measure(case, programs, options.rounds, options.seconds)
            sys.stdout.write(f"{case.about}\n")
            report_case(report, name, case, rates)
        repeated, stayed = programs.disturbed
        sys.stdout.write(f"{repeated} turns repeated, {stayed} stayed disturbed\n")
    if options.json is not None:
        report.write(
            options.json,
            programs.versions,
            rounds=options.rounds,
            seconds=options.seconds,
            clips=programs.clips.made_of,
            turns={"repeated": repeated, "stayed disturbed": stayed},
        )


if __name__ == "__main__":
    main()
