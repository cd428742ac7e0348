"""Presentation times of frames, also where the container has none."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.media.clock import Clock

TICK = Fraction(1, 25)


def tell_all(frames, rate=Fraction(25)):
    clock = Clock(TICK, rate=rate)
    return [clock.tell(*frame).pts for frame in frames]


@pytest.mark.parametrize(("frames", "expected"),
    [
        pytest.param(
            [(0, None, 1), (7, None, 1), (8, None, 1)], [0, 7, 8], id="the container's"
        ),
        pytest.param([(5, 0, 1), (5, 1, 1), (9, 2, 1)], [5, 6, 7], id="the same twice"),
        pytest.param([(None, 3, 1), (None, 4, 1)], [3, 4], id="decoding times"),
        pytest.param([(None, None, 2)] * 3, [0, 2, 4], id="durations"),
        pytest.param([(None, None, 0)] * 3, [0, 1, 2], id="the rate"),
        pytest.param([(4, None, 1), (None, None, 1)], [4, 5], id="one is missing"),
        pytest.param(
            [(0, None, 3), (9, None, 3), (2, None, 3), (5, None, 3), (20, None, 3)],
            [0, 9, 12, 15, 20],
            id="a splice starts over",
        ),
        pytest.param(
            # MPEG-4 in AVI: presentation times made up from the order of decoding.
            [(1, 1, 1), (2, 2, 1), (4, 3, 1), (3, 4, 1), (5, 5, 1), (7, 6, 1)],
            [1, 2, 4, 4, 5, 6],
            id="wrong presentation times",
        ),
        pytest.param(
            [(0, None, 1), (10, None, 1), (None, None, 1)], [0, 10, 20],
            id="a made-up duration",
        ),
    ],
)  # fmt: skip
def test_a_frame_has_the_best_time_there_is(frames, expected):
    assert tell_all(frames) == expected


def test_a_frame_without_a_duration_lasts_as_long_as_the_rate_says():
    clock = Clock(Fraction(1, 1000), rate=Fraction(30))
    assert clock.tell(0, 0, 0).duration == 33
    assert clock.tell(33, 33, 40).duration == 40


def test_without_a_rate_a_duration_is_unknown():
    assert Clock(TICK).tell(0, 0, 0).duration == 0


maybe = st.none() | st.integers(-1000, 1000)


@given(st.lists(st.tuples(maybe, maybe, st.integers(0, 50)), max_size=50))
def test_time_never_goes_back(frames):
    times = tell_all(frames)
    assert times == sorted(times)


@given(st.lists(st.integers(0, 10**12), max_size=50, unique=True))
def test_times_that_only_grow_are_kept(times):
    times.sort()
    assert tell_all([(pts, None, 1) for pts in times]) == times
