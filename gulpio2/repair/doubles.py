"""Items that are there twice, and chunks of which only a copy of another is left."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.layout import data_name
from gulpio2.repair.report import Loss
from gulpio2.storage.base import read_manifest

if TYPE_CHECKING:
    from gulpio2.repair.candidates import Candidate
    from gulpio2.repair.report import RepairReport
    from gulpio2.storage.base import Store

__all__ = ["miss_replaced", "without_doubles"]


def without_doubles(
    whole: list[Candidate], report: RepairReport, copies: dict[int, str]
) -> tuple[list[Candidate], list[Candidate]]:
    """Let the first of several items keep the id; note chunks that have a copy."""
    first: dict[str, Candidate] = {}
    contents: dict[str, Any] = {}  # of those that have a double
    doubles = []
    for candidate in whole:
        keeper = first.setdefault(candidate.id, candidate)
        if keeper is candidate:
            continue
        if keeper.id not in contents:
            contents[keeper.id] = _content(keeper)
        if contents[keeper.id] == _content(candidate):
            copies[candidate.chunk] = f"in {data_name(keeper.chunk)} as well"
            report.notes.append(
                f"{data_name(candidate.chunk)}: a second copy of item "
                f"{candidate.id!r} was left out"
            )
        else:
            where = data_name(keeper.chunk)
            doubles.append(candidate.demoted(f"another item in {where} has the id"))
    return list(first.values()), doubles


def _content(candidate: Candidate) -> Any:
    frames = [(frame.num_bytes, frame.crc32, frame.pts) for frame in candidate.frames]
    return frames, candidate.metas


def miss_replaced(
    store: Store, copies: dict[int, str], others: set[int], report: RepairReport
) -> None:
    """Tell of chunks of a run in whose place there is nothing but that of others.

    Parameters
    ----------
    store : Store
        The source.
    copies : dict
        Chunks of which an item was left out as a copy, to where it is as well.
    others : set of int
        Chunks whose data file is that of another map. As many chunks of no run may be
        these under new numbers.
    report : RepairReport
        Of the repair; is added to.
    """
    with contextlib.suppress(MetaFileError, OSError):  # that is told elsewhere
        runs = read_manifest(store).runs
        written = {number for run in runs for number in run.chunks}
        gone = written.difference(report.chunks)
        found = {number: copies[number] for number in gone.intersection(copies)}
        renamed = set(report.chunks) - written
        if len(gone & others) > len(renamed):
            found |= dict.fromkeys(gone & others, "of other chunks")
        report.lost += [
            Loss(
                data_name(number),
                f"holds what is {where}; what the run that wrote it stored there is "
                "gone",
            )
            for number, where in sorted(found.items())
        ]
