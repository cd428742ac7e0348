"""Frames by time, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import FrameTimeError
from gulpio2.format.entry import EntryExtras
from gulpio2.format.tick_runs import expand_runs
from gulpio2.format.times import (
    TimeRuns,
    exact_ticks,
    first_tick,
    index_at,
    runs_of,
    times_of,
)

MILLISECOND = Fraction(1, 1000)
# Of a screen recording: long gaps, one time twice, none evenly spaced.
VARIABLE = [-20, 0, 40, 40, 41, 1000]
ticks = st.lists(st.integers(-200, 200), min_size=1, max_size=12).map(sorted)
times = st.fractions(-250, 250, max_denominator=8)


@pytest.mark.parametrize(
    ("seconds", "index"),
    [
        (Fraction(-20, 1000), 0),
        (-0.001, 0),
        (0.0, 1),
        (0.039, 1),
        (Fraction(40, 1000), 3),  # the later one of two is on the screen
        (0.0405, 3),
        (0.041, 4),
        (0.9, 4),
        (1.0, 5),
        (1e9, 5),
    ],
)
def test_before_is_the_frame_on_the_screen(seconds, index):
    assert index_at(VARIABLE, MILLISECOND, seconds, "before") == index


def test_before_the_first_frame_there_is_none():
    message = r"no frame is before -0\.021 s: the first one is at -0\.02 s"
    with pytest.raises(FrameTimeError, match=message):
        index_at(VARIABLE, MILLISECOND, -0.021, "before")


@pytest.mark.parametrize(
    ("seconds", "index"),
    [
        (-99, 0),
        (-0.01, 0),  # as close to 0 as to -20: the earlier one
        (-0.009, 1),
        (Fraction(20, 1000), 1),  # as close to 0 as to 40
        (0.021, 2),  # the first one of two at that time
        (0.5205, 4),  # as a float just below the middle of 41 and 1000
        (0.53, 5),
        (99, 5),
    ],
)
def test_nearest_is_the_closest_and_the_earlier_of_two(seconds, index):
    assert index_at(VARIABLE, MILLISECOND, seconds) == index


@pytest.mark.parametrize(
    ("seconds", "index"),
    [
        (0.0404, 2),
        (0.0396, 2),
        (Fraction(405, 10000), 4),  # half a tick is rounded up, to 41
        (Fraction(-5, 10000), 1),  # and so to 0
        (1, 5),
    ],
)
def test_at_is_the_frame_at_the_rounded_tick(seconds, index):
    assert index_at(VARIABLE, MILLISECOND, seconds, "at") == index


@pytest.mark.parametrize("seconds", [0.02, 0.042, 0.9994, 1.001])
def test_no_frame_at_a_time_is_an_error_that_names_the_nearest(seconds):
    with pytest.raises(FrameTimeError, match="the nearest one is at"):
        index_at(VARIABLE, MILLISECOND, seconds, "at")


def test_a_float_within_a_microsecond_of_a_tick_is_that_tick():
    pts, tick = [0, 1, 2], Fraction(1, 10)
    # What callers have in arrays; to type checkers they are no float.
    float32: Any = np.float32
    int64: Any = np.int64
    assert index_at(pts, tick, 0.1, "before") == 1
    assert index_at(pts, tick, math.nextafter(0.1, 0), "before") == 1
    assert index_at(pts, tick, 0.1 - 9e-7, "before") == 1
    assert index_at(pts, tick, 0.1 - 2e-6, "before") == 0
    assert index_at(pts, tick, Fraction(1, 10) - Fraction(1, 10**9), "before") == 0
    assert index_at(pts, tick, np.float64(0.1), "before") == 1
    assert index_at(pts, tick, float32(0.1), "before") == 1
    assert index_at(pts, tick, int64(0), "before") == 0


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("time_base", [Fraction(1, 14336), Fraction(1, 10**9)])
def test_whole_seconds_of_few_bits_are_what_python_s_own_are(kind, time_base):
    tick = exact_ticks(kind(100), time_base)
    assert tick == 100 / time_base
    assert type(tick.numerator) is int
    assert first_tick(kind(100), time_base) == 100 / time_base


@pytest.mark.parametrize("kind", [float, np.float32])
def test_the_float_time_of_a_frame_finds_that_frame(kind):
    tick = Fraction(1001, 30000)
    found = [index_at(range(300), tick, kind(k * tick), "before") for k in range(300)]
    assert found == list(range(300))


@given(ticks, times)
def test_before_and_nearest_agree_with_looking_at_every_frame(pts, ticks_wanted):
    seconds = ticks_wanted * MILLISECOND
    nearest = index_at(pts, MILLISECOND, seconds)
    assert nearest == min(
        range(len(pts)), key=lambda index: (abs(pts[index] - ticks_wanted), index)
    )
    before = [index for index, tick in enumerate(pts) if tick <= ticks_wanted]
    if before:
        assert index_at(pts, MILLISECOND, seconds, "before") == before[-1]
    else:
        with pytest.raises(FrameTimeError):
            index_at(pts, MILLISECOND, seconds, "before")


@given(ticks, st.data())
def test_every_frame_is_found_at_its_own_time(pts, data):
    tick = data.draw(st.sampled_from(pts))
    for mode in ("at", "nearest"):
        assert index_at(pts, MILLISECOND, tick * MILLISECOND, mode) == pts.index(tick)
        assert index_at(pts, MILLISECOND, float(tick * MILLISECOND), mode) == pts.index(
            tick
        )


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_what_is_no_time_is_refused(seconds):
    with pytest.raises(ValueError, match="seconds is no time"):
        index_at([0], MILLISECOND, seconds)


def test_an_unknown_mode_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="must be one of at, before, nearest"):
        index_at([0], MILLISECOND, 0.0, "after")  # type: ignore[arg-type]  # on purpose


@given(st.lists(st.integers(-50, 50) | st.integers(), min_size=1, max_size=12))
def test_runs_tell_of_their_frames_what_the_times_of_each_do(pts):
    runs = runs_of(EntryExtras(pts=tuple(pts), time_base=Fraction(2, 30)))
    assert runs is not None
    assert runs.num_frames == len(pts)
    assert (min(runs.ends), max(runs.ends)) == (min(pts), max(pts))
    steps = [after - before for before, after in pairwise(pts)]
    assert set(runs.steps) == set(steps)
    assert runs.time_base == (1, 15)
    ticks = sorted(pts)
    gaps = [after - before for before, after in pairwise(ticks) if after > before]
    assert runs.ticks_shown == ticks[-1] - ticks[0] + (median(gaps) if gaps else 0)


@pytest.mark.parametrize(
    "extras", [EntryExtras(), EntryExtras(pts=(1,)), EntryExtras(time_base=MILLISECOND)]
)
def test_without_times_there_are_no_runs(extras):
    assert runs_of(extras) is None


RUNS = st.lists(
    st.tuples(
        st.integers(-(2**70), 2**70) | st.integers(-1000, 1000),
        st.integers(-(2**64), 2**64) | st.integers(-40, 40),
        st.integers(1, 9),
    ).map(list),
    min_size=1,
    max_size=6,
)


@given(RUNS, st.sampled_from([(1, 1000), (1001, 30000), (1, 1)]))
def test_frames_have_the_times_of_their_runs(runs, time_base):
    number = sum(count for _, _, count in runs)
    expected = expand_runs(runs, number)
    times = TimeRuns(time_base, runs, {}).of_frames
    assert [*times.ticks] == [*expected]
    assert times.time_base == Fraction(*time_base)
    numerator, denominator = time_base
    seconds = np.array(expected, np.float64) * numerator / denominator
    assert times.seconds.tolist() == seconds.tolist()
    extras = EntryExtras(time_base=Fraction(*time_base), pts=tuple(expected))
    of_extras = times_of(extras)
    assert of_extras is not None
    assert of_extras.seconds.tolist() == seconds.tolist()
    assert times_of(EntryExtras()) is None
