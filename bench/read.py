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
from pathlib import Path
from typing import Any

from clips import CLIP_FRAMES, NUM_CLIPS, Clips, make_clips
from figures import Report, refuse_unknown
from peers import Program, python_of
from read_cases import CASES, ENVIRONMENTS, Case

PROGRAM = Path(__file__).with_name("readers.py")
# Seconds of processors that others may have, in a second of a turn; one that was
# disturbed more is repeated, up to so many times.
_FOREIGN_SHARE = 0.1
_NUM_ATTEMPTS = 6
_PAUSE_SECONDS = 0.2
# Processes of a program; the others are further from what they are compared with.
_COPIES = {"ours": 3, "limit": 3, "bare": 3}


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
