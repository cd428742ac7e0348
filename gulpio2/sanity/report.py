"""The report of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.format.problems import Problem, Tally
from gulpio2.format.wording import cannot_be_read, counted

if TYPE_CHECKING:
    from gulpio2.types import JsonValue, Progress

__all__ = ["CheckReport", "Findings", "original_tests", "unreadable"]


_COUNTS = ("chunks", "items", "frames", "num_bytes", "frames_without_checksum")
# Problems of one kind in one file that are listed; the rest is counted.
_MOST = 1000
# Problems that the fifth test names: 0.0.4 prints a test's failures on one line.
_NAMED = 20


@dataclass(slots=True)
class CheckReport:
    """What a check went through, and what it found."""

    path: str
    """The directory."""
    deep: bool
    """Whether the content of every frame was checked as well."""
    decoded: bool = False
    """Whether every frame was decoded as well."""
    chunks: int = 0
    """Chunks that have both files."""
    items: int = 0
    """Entries in their maps."""
    frames: int = 0
    """Frames that the entries speak of."""
    num_bytes: int = 0
    """Bytes of the data files."""
    frames_without_checksum: int = 0
    """Frames of which not every changed byte can be found."""
    problems: list[Problem] = field(default_factory=list)
    """Faults, by file. Of one kind in one file the first 1,000 are listed (the first
    500 of spans that share bytes or leave gaps), and the first one of each of up to
    1,000 items. One more problem stands for the rest, with their count."""
    notes: list[Problem] = field(default_factory=list)
    """What is worth knowing and no fault."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> dict[str, JsonValue]:
        """Give the report as JSON values."""
        return {
            "path": self.path,
            "ok": self.ok,
            "deep": self.deep,
            "decoded": self.decoded,
            "chunks": self.chunks,
            "items": self.items,
            "frames": self.frames,
            "bytes": self.num_bytes,
            "frames_without_checksum": self.frames_without_checksum,
            "problems": [problem.to_json() for problem in self.problems],
            "notes": [note.to_json() for note in self.notes],
        }

    def __str__(self) -> str:
        """Sum the check up on one line."""
        count = sum(problem.count for problem in self.problems)
        verdict = counted(count, "problem") if count else "no problem"
        return (
            f"{verdict} in {counted(self.frames, 'frame')} of "
            f"{counted(self.items, 'item')} in {counted(self.chunks, 'chunk')} "
            f"({self.num_bytes / 1e6:.1f} MB)"
            + ("" if self.deep else "; what is in the frames was not compared")
        )


def original_tests(report: CheckReport) -> list[dict[str, object]]:
    """Sort the problems of a report into the four tests of GulpIO2, and a fifth.

    Parameters
    ----------
    report : CheckReport
        Of any directory.

    Returns
    -------
    list of dict
        With ``message`` and ``failures``, as
        `gulpio2.sanity_utils.check_for_failures` prints them. The fifth, with
        everything that GulpIO2 did not look for, is there only if it failed.
    """
    folder = Path(report.path)
    wrong_size = {"data-too-short", "data-too-long", "empty-data-file"}
    tests: list[dict[str, object]] = []
    left = list(report.problems)
    for message, codes in (
        ("Check for empty meta files", {"empty-map-file"}),
        ("Check for empty data files", {"empty-data-file"}),
        ("Check data file size equals size in meta file", wrong_size),
        ("Check presence of duplicate ids", {"duplicate-id"}),
    ):
        found = [problem for problem in report.problems if problem.code in codes]
        left = [problem for problem in left if problem.code not in codes]
        # 0.0.4 named ids in the last test, and files by their paths in the others.
        names = [p.item or str(folder / p.file) for p in found]
        tests.append({"message": message, "failures": list(dict.fromkeys(names))})
    if left:
        failures = [str(problem) for problem in left[:_NAMED]]
        if len(left) > _NAMED:
            more = sum(problem.count for problem in left[_NAMED:])
            failures.append(f"and {more} more (see `gulp2 check`)")
        tests.append({"message": "Check everything else", "failures": failures})
    return tests


class Findings:
    """A report under way, and who is told of what comes into it."""

    def __init__(self, report: CheckReport, progress: Progress) -> None:
        self.report = report
        self.progress = progress
        self._tally = Tally(_MOST)

    def add(self, problems: list[Problem], notes: list[Problem] | None = None) -> None:
        """Take up problems and notes."""
        self.report.notes += notes or []
        if problems:
            self.report.problems += self._tally.admit(problems)
            self.progress(failures=sum(problem.count for problem in problems))

    def take(self, part: Findings) -> None:
        """Take in what was found in a part of the directory."""
        part.finish()
        ours, theirs = self.report, part.report
        for name in _COUNTS:
            setattr(ours, name, getattr(ours, name) + getattr(theirs, name))
        ours.problems += theirs.problems
        ours.notes += theirs.notes

    def finish(self) -> None:
        """Say how many problems are counted only."""
        self.report.problems += self._tally.rest()


def unreadable(name: str, cause: OSError, offset: int | None = None) -> Problem:
    """Make the problem of a file that the system refuses to read."""
    return Problem("unreadable-file", cannot_be_read(cause), name, offset=offset)
