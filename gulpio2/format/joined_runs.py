"""Many runs into one manifest, each compared with those that may be the same only."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gulpio2.format.manifest import Shares, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.format.manifest import Run

__all__ = ["join_runs"]


@dataclass(slots=True)
class _Joined:
    """What one run of the result is made of."""

    first: Run
    chunks: set[int]
    count: int | None
    """How many shares there are; None where the ingest is whole."""
    present: set[int]
    is_joined: bool = False

    def run(self) -> Run:
        """Give the run."""
        if not self.is_joined:
            return self.first
        shares = None  # all of them, if they are in one
        if self.count is not None:
            shares = Shares(self.count, tuple(sorted(self.present)))
        return replace(self.first, chunks=tuple(sorted(self.chunks)), shares=shares)


def join_runs(before: Iterable[Run], runs: Iterable[Run]) -> list[Run]:
    """Add runs, each to what the same run, or a share of it, wrote, or as a new one.

    Parameters
    ----------
    before : iterable of Run
        What is there, which is not joined with each other.
    runs : iterable of Run
        With the numbers that their chunks have among those of `before`.

    Returns
    -------
    list of Run
        In the order in which they came first.
    """
    joined: list[_Joined] = []
    alike: dict[str, list[_Joined]] = {}

    def new(run: Run, key: str) -> None:
        shares = run.shares
        count, present = (shares.count, {*shares.present}) if shares else (None, set())
        joined.append(_Joined(run, {*run.chunks}, count, present))
        alike.setdefault(key, []).append(joined[-1])

    for run in before:
        new(run, _key(run))
    for run in runs:
        key = _key(run)
        count = run.shares.count if run.shares else None
        for other in alike.get(key, ()):
            fits = other.count is None or count is None or other.count == count
            if fits and other.first.encoder == run.encoder:
                other.is_joined = True
                other.chunks.update(run.chunks)
                other.present.update(run.shares.present if run.shares else ())
                other.count = None if count is None else other.count
                break
        else:
            new(run, key)
    return [each.run() for each in joined]


def _key(run: Run) -> str:
    """Give what is the same in runs that are joined, beside the encoder's settings."""
    return json.dumps([source_of(run), run.package, run.plan])
