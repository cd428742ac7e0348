"""Times of frames as runs of equal steps."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from gulpio2.errors import MetaFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["expand_runs", "ticks_to_runs"]


def ticks_to_runs(ticks: Iterable[int]) -> list[list[int]]:
    """Write times as arithmetic runs ``[start, step, count]``.

    Examples
    --------
    >>> ticks_to_runs([0, 512, 1024, 1030])
    [[0, 512, 3], [1030, 0, 1]]
    """
    runs: list[list[int]] = []
    for tick in ticks:
        if runs:
            start, step, count = runs[-1]
            if count == 1:
                runs[-1] = [start, tick - start, 2]
                continue
            if tick == start + step * count:
                runs[-1][2] += 1
                continue
        runs.append([tick, 0, 1])
    return runs


def expand_runs(runs: Sequence[Sequence[int]], num_frames: int) -> tuple[int, ...]:
    """Undo `ticks_to_runs`.

    Raises
    ------
    MetaFileError
        The runs are malformed, or are not `num_frames` ticks in all. Nothing is
        expanded before that is known, so a crafted count allocates nothing.
    """
    if not isinstance(runs, list) or not all(
        isinstance(run, list) and len(run) == 3 and all(type(n) is int for n in run)
        for run in runs
    ):
        raise MetaFileError("pts is not a list of [start, step, count]")
    total = sum(run[2] for run in runs)
    if total != num_frames or any(run[2] < 1 for run in runs):
        raise MetaFileError(f"pts holds {total} times for {num_frames} frames")
    return tuple(
        chain.from_iterable(
            range(start, start + step * count, step) if step else repeat(start, count)
            for start, step, count in runs
        )
    )
