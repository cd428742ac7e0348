"""Frames by presentation time, exactly."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from numbers import Rational
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsFloat

import numpy as np

from gulpio2.arguments import require_choice
from gulpio2.errors import FrameTimeError
from gulpio2.format.tick_runs import expand_runs, ticks_to_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from gulpio2.format.entry import EntryExtras

__all__ = [
    "FrameTimes",
    "TimeMode",
    "TimeRuns",
    "exact_ticks",
    "first_tick",
    "index_at",
    "indices_at",
    "runs_of",
    "times_of",
]

# Far below the time between two frames of any camera, far above a float's error.
_SNAP_SECONDS = Fraction(1, 1_000_000)
_EXACT = 2**53  # whole numbers below are floats of 64 bits

TimeMode = Literal["at", "before", "nearest"]


class FrameTimes(NamedTuple):
    """Presentation times of an item, one for each frame."""

    ticks: Sequence[int]
    """In the order in which the frames are stored."""
    time_base: Fraction
    """Seconds of a tick."""

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """The times in seconds."""
        ticks, base = self.ticks, self.time_base
        if isinstance(ticks, range) and max(abs(ticks.start), abs(ticks.stop)) < _EXACT:
            values = np.arange(ticks.start, ticks.stop, ticks.step).astype(np.float64)
        else:
            values = np.array(ticks, dtype=np.float64)
        return values * base.numerator / base.denominator


class TimeRuns(NamedTuple):
    """Presentation times of an item as they are stored, without one for each frame."""

    time_base: tuple[int, int]
    """Seconds of a tick: numerator and denominator."""
    runs: Sequence[Sequence[int]]
    """``[start, step, count]`` of each run, in ticks; at least one."""
    source: Mapping[str, Any]
    """Facts of the source."""

    @property
    def num_frames(self) -> int:
        """Frames that have them."""
        return sum(count for _, _, count in self.runs)

    @property
    def of_frames(self) -> FrameTimes:
        """A time for each frame."""
        return FrameTimes(_expanded(self.runs), Fraction(*self.time_base))

    @property
    def ends(self) -> list[int]:
        """First and last tick of each run."""
        return [
            tick
            for start, step, count in self.runs
            for tick in (start, start + step * (count - 1))
        ]

    @property
    def steps(self) -> list[int]:
        """Ticks from a frame to the next: of each run once, and between runs."""
        ends = self.ends
        between = [start - end for end, start in zip(ends[1::2], ends[2::2])]  # noqa: B905  # the last has none behind it
        return between + [step for _, step, count in self.runs if count > 1]

    @property
    def ticks_shown(self) -> float:
        """Ticks from the first frame's time to where the last frame is over.

        That one is taken to be shown for as long as the frames before it were (the
        median), as a sampler by seconds has it; a single one has no length.
        """
        if len(self.runs) == 1:  # as those of most items
            ((_, step, count),) = self.runs
            return abs(step) * (count if count > 1 else 0)
        from statistics import median  # here, as it brings decimal and random with it

        ticks = sorted(expand_runs(self.runs, self.num_frames))
        gaps = [later - tick for tick, later in pairwise(ticks) if later > tick]
        return ticks[-1] - ticks[0] + (median(gaps) if gaps else 0)


def _expanded(runs: Sequence[Sequence[int]]) -> Sequence[int]:
    """Give the ticks of runs that are in order; a range where it is one of them."""
    if len(runs) == 1 and runs[0][1] > 0:
        start, step, count = runs[0]
        return range(start, start + step * count, step)
    try:
        starts, steps, counts = np.array(runs, np.int64).T
    except OverflowError:
        return expand_runs([*runs], sum(count for _, _, count in runs))
    ends = starts.astype(float) + steps.astype(float) * counts
    if max(np.abs(starts.astype(float)).max(), np.abs(ends).max()) >= _EXACT:
        return expand_runs([*runs], sum(count for _, _, count in runs))
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places = np.arange(len(first)) - first
    ticks: list[int] = (
        np.repeat(starts, counts) + np.repeat(steps, counts) * places
    ).tolist()
    return ticks


def times_of(extras: EntryExtras) -> FrameTimes | None:
    """Give the times of an item's frames; None where it has none."""
    base = extras.time_base
    return None if base is None or not extras.pts else FrameTimes(extras.pts, base)


def runs_of(extras: EntryExtras) -> TimeRuns | None:
    """Give the times of an item as runs; None where it has none."""
    base = extras.time_base
    if base is None or not extras.pts:
        return None
    runs = ticks_to_runs(extras.pts)
    return TimeRuns((base.numerator, base.denominator), runs, extras.source)


def exact_ticks(seconds: SupportsFloat, time_base: Fraction) -> Fraction:
    """Give a time in ticks, which need not be a whole number.

    Parameters
    ----------
    seconds : number
        A `Fraction` is the exact number that it is; a float within a microsecond of a
        tick is taken for that tick, since few ticks are numbers that a float can be.
    time_base : Fraction
        Seconds per tick.

    Raises
    ------
    TypeError
        What is no number: texts and booleans are none.
    ValueError
        A time that no finite float is near.

    Examples
    --------
    >>> exact_ticks(0.2, Fraction(1, 25)), exact_ticks(0.25, Fraction(1, 25))
    (Fraction(5, 1), Fraction(25, 4))
    """
    try:
        if isinstance(seconds, (str, bytes, bytearray)):  # float would read it
            raise TypeError("it is a text")
        kind = getattr(seconds, "dtype", type(seconds))
        if kind is bool or str(kind).endswith("bool"):  # of numpy, or torch
            raise TypeError("it is a boolean: a mask of frames goes by index")
        # Numpy's floats of other sizes than double are no numbers to Fraction.
        about = float(seconds)
        exact: Fraction | float = about
        if isinstance(seconds, Rational):  # numpy's would be computed with in its bits
            exact = Fraction(int(seconds.numerator), int(seconds.denominator))
        wanted = Fraction(exact) / time_base
    except TypeError as cause:
        raise TypeError(f"{seconds!r} is no time; give a number of seconds") from cause
    except (OverflowError, ValueError) as cause:
        raise ValueError(f"{seconds!r} seconds is no time") from cause
    nearest = Fraction(floor(wanted + Fraction(1, 2)))
    is_near = abs(wanted - nearest) * time_base < _SNAP_SECONDS
    return nearest if isinstance(exact, float) and is_near else wanted


def first_tick(seconds: SupportsFloat, time_base: Fraction) -> int:
    """Give the first tick that is not before a time, as `exact_ticks` takes it.

    Ticks may be far finer than a float is meant: what is less than a microsecond before
    one is not before it.

    Examples
    --------
    >>> first_tick(0.2, Fraction(1, 25)), first_tick(0.25, Fraction(1, 25))
    (5, 7)
    >>> first_tick(0.066667, Fraction(1, 10_000_000))  # a frame may be at 666,667
    666661
    """
    wanted = exact_ticks(seconds, time_base)
    if isinstance(seconds, Rational):
        return ceil(wanted)
    return floor(wanted - _SNAP_SECONDS / time_base) + 1


def index_at(
    pts: Sequence[int],
    time_base: Fraction,
    seconds: SupportsFloat,
    mode: TimeMode = "nearest",
) -> int:
    """Find the frame at a time.

    Parameters
    ----------
    pts : sequence of int
        Presentation times in ticks, ascending; at least one.
    time_base : Fraction
        Seconds per tick.
    seconds : number
        On the source's own timeline. A `Fraction` is compared as the exact number
        that it is; a float within a microsecond of a tick is taken for that tick,
        since few ticks are numbers that a float can be.
    mode : {"at", "before", "nearest"}
        "before": the last frame whose time is not after `seconds`, that is the one
        on the screen then. "nearest": the frame whose time is closest, the earlier
        one of two equally close. "at": the frame whose time is `seconds` rounded to
        a whole tick (halves up).

    Returns
    -------
    int
        Frame index; the first one of several with the same time for "at" and
        "nearest", the last one for "before".

    Raises
    ------
    FrameTimeError
        "before" a first frame, or no frame "at" that time.
    TypeError
        What is no number: texts and booleans are none.
    ValueError
        An unknown mode, or a time that no finite float is near.

    Examples
    --------
    >>> tick = Fraction(1, 1000)
    >>> [index_at([0, 40, 80], tick, t, "before") for t in (0.0, 0.039, 0.04, 9.0)]
    [0, 0, 1, 2]
    """
    require_choice("mode", mode, TimeMode)
    wanted = exact_ticks(seconds, time_base)
    about = float(seconds)
    nearest_tick = floor(wanted + Fraction(1, 2))
    last_before = bisect_right(pts, wanted) - 1
    if mode == "before":
        if last_before < 0:
            raise FrameTimeError(
                f"no frame is before {about} s: the first one is at "
                f"{float(pts[0] * time_base)} s"
            )
        return last_before
    candidates = [i for i in (last_before, last_before + 1) if 0 <= i < len(pts)]
    nearest = min(candidates, key=lambda i: abs(pts[i] - wanted))
    while nearest > 0 and pts[nearest - 1] == pts[nearest]:
        nearest -= 1
    if mode == "nearest":
        return nearest
    index = bisect_left(pts, nearest_tick)
    if index == len(pts) or pts[index] != nearest_tick:
        raise FrameTimeError(
            f"no frame is at {about} s; the nearest one is at "
            f"{float(pts[nearest] * time_base)} s (mode 'nearest' takes it)"
        )
    return index


def indices_at(
    times: FrameTimes, seconds: Any, mode: TimeMode = "nearest"
) -> list[int]:
    """Find the frames at a time, or at several, of an item whose times go anyhow.

    Parameters
    ----------
    times : FrameTimes
        Of the item; at least one.
    seconds : number or iterable of numbers
        See `index_at`.
    mode : {"at", "before", "nearest"}, optional
        See `index_at`.

    Returns
    -------
    list of int
        One per time.

    Raises
    ------
    FrameTimeError, TypeError, ValueError
        As `index_at`.
    """
    ticks, time_base = times
    ascending = ticks
    order: Sequence[int] = range(len(ticks))
    if not isinstance(ticks, range) and sorted(ticks) != [*ticks]:
        order = sorted(order, key=ticks.__getitem__)
        ascending = [ticks[index] for index in order]
    return [
        order[index_at(ascending, time_base, time, mode)] for time in _each_of(seconds)
    ]


def _each_of(seconds: Any) -> Iterable[Any]:
    """Give several times, or one of whatever kind."""
    if isinstance(seconds, (str, bytes, bytearray)):
        return [seconds]  # refused whole: its letters may be numbers as well
    try:
        each: Iterable[Any] = iter(seconds)
    except TypeError:  # also of an array that has no axis
        return [seconds]
    return each
