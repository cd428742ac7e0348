"""Clips by seconds: on plain lists, and against those by frame number."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.sampling import (
    dense_windows,
    dense_windows_by_time,
    frames_at,
    sample_segments,
    sample_segments_by_time,
    sample_window,
    sample_window_by_time,
    spaced_windows,
    spaced_windows_by_time,
    window_around,
    window_around_time,
)

UNEVEN = [0.0, 0.1, 0.2, 1.0, 1.1]


@pytest.mark.parametrize(
    ("seconds", "options", "indices", "valid"),
    [
        ([0.0, 0.04, 0.06, 1.1], {}, [0, 0, 1, 4], [True] * 4),
        ([0.6], {}, [2], [True]),
        ([0.15], {}, [1], [True]),
        ([0.999], {}, [3], [True]),
        ([0.999], {"mode": "before"}, [2], [True]),
        ([1.0], {"mode": "before"}, [3], [True]),
        ([1.15], {}, [4], [True]),
        ([1.16], {}, [4], [False]),
        ([1.19], {"mode": "before"}, [4], [True]),
        ([1.2], {"mode": "before"}, [4], [False]),
        ([1.21], {"mode": "before"}, [4], [False]),
        ([-0.05], {}, [0], [True]),
        ([-0.06], {}, [0], [False]),
        ([-0.01], {"mode": "before"}, [0], [False]),
        ([0.6], {"tolerance_seconds": 0.2}, [2], [False]),
        ([0.3], {"tolerance_seconds": 0.1}, [2], [True]),
        ([0.6], {"tolerance_seconds": 0.2, "border": "mask"}, [-1], [False]),
        ([0.1, 9.0], {"border": "repeat"}, [1, 1], [True, False]),
        ([-0.1, 1.2, 1.3], {"border": "loop"}, [4, 0, 1], [False] * 3),
        ([[0.0], [1.0]], {}, [[0], [3]], [[True], [True]]),
        # In nanoseconds by mistake: more steps away than 64 bits count.
        ([-1.7e18, 1.7e18], {}, [0, 4], [False, False]),
        ([0.0, 1e300], {"border": "mask"}, [0, -1], [True, False]),
    ],
)
def test_the_frame_at_a_time_is_found(seconds, options, indices, valid):
    clip = frames_at(UNEVEN, seconds, **options)
    assert clip.indices.tolist() == indices
    assert clip.valid.tolist() == valid


def test_a_single_frame_is_valid_at_its_own_time_only():
    clip = frames_at([2.0], [1.0, 2.0, 3.0])
    assert clip.indices.tolist() == [0, 0, 0]
    assert clip.valid.tolist() == [False, True, False]


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=12).map(sorted),
    seconds=st.integers(-10, 60),
)
def test_no_other_frame_is_nearer_than_the_one_found(times, seconds):
    index = int(frames_at(times, [seconds]).indices[0])
    assert abs(times[index] - seconds) == min(abs(time - seconds) for time in times)


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(
        sorted
    ),
    seconds=st.integers(-10, 60),
)
def test_the_frame_shown_is_the_last_that_began(times, seconds):
    index = int(frames_at(times, [seconds], mode="before").indices[0])
    begun = [place for place, time in enumerate(times) if time <= seconds]
    assert index == (begun[-1] if begun else 0)


# ---------------------------------------------------------------- at a constant rate
COUNTS = st.integers(1, 40)
LENGTHS = st.integers(1, 8)
STRIDES = st.integers(1, 4)
RATES = st.sampled_from([1.0, 10.0, 25.0, 30000 / 1001, 59.94])
STARTS = st.sampled_from([0.0, 3.3, 1.6e9])


def clock(num_frames, rate, start):
    return start + np.arange(num_frames) / rate


@given(num_frames=COUNTS, length=LENGTHS, stride=STRIDES, rate=RATES, start=STARTS)
def test_a_window_by_time_is_one_by_index(num_frames, length, stride, rate, start):
    times = clock(num_frames, rate, start)
    period = stride / rate
    by_time = sample_window_by_time(times, length, period_seconds=period)
    by_index = sample_window(num_frames, length, stride=stride)
    if num_frames > 1:  # one frame has no rate, and so no second place
        assert by_time.indices.tolist() == by_index.indices.tolist()
        assert by_time.valid.tolist() == by_index.valid.tolist()


@given(num_frames=st.integers(2, 40), segments=LENGTHS, rate=RATES, start=STARTS)
def test_segments_by_time_are_segments_by_index(num_frames, segments, rate, start):
    by_time = sample_segments_by_time(clock(num_frames, rate, start), segments)
    assert (
        by_time.indices.tolist()
        == sample_segments(num_frames, segments).indices.tolist()
    )
    assert by_time.valid.all()


@given(
    num_frames=st.integers(2, 40),
    length=LENGTHS,
    stride=STRIDES,
    rate=RATES,
    start=STARTS,
    partial=st.booleans(),
    step=st.integers(1, 6),
    mode=st.sampled_from(["before", "nearest"]),
)
def test_dense_windows_by_time_are_those_by_index(
    num_frames, length, stride, rate, start, partial, step, mode
):
    by_time = dense_windows_by_time(
        clock(num_frames, rate, start),
        length,
        period_seconds=stride / rate,
        step_seconds=step / rate,
        partial=partial,
        mode=mode,
    )
    by_index = dense_windows(
        num_frames, length, stride=stride, step=step, partial=partial
    )
    assert by_time.indices.tolist() == by_index.indices.tolist()
    assert by_time.valid.tolist() == by_index.valid.tolist()


@given(
    num_frames=st.integers(2, 40),
    data=st.data(),
    history=st.integers(0, 4),
    future=st.integers(0, 4),
    stride=STRIDES,
    rate=RATES,
    border=st.sampled_from(["clamp", "loop", "mask", "repeat"]),
    mode=st.sampled_from(["before", "nearest"]),
)
def test_a_window_around_a_time_is_one_around_an_index(
    num_frames, data, history, future, stride, rate, border, mode
):
    index = data.draw(st.integers(0, num_frames - 1))
    times = clock(num_frames, rate, 5.0)
    by_time = window_around_time(
        times,
        times[index],
        period_seconds=stride / rate,
        history=history,
        future=future,
        mode=mode,
        border=border,
    )
    by_index = window_around(
        num_frames, index, history=history, future=future, stride=stride, border=border
    )
    assert by_time.indices.tolist() == by_index.indices.tolist()
    assert by_time.valid.tolist() == by_index.valid.tolist()


def test_spaced_windows_by_time_touch_both_ends():
    clips = spaced_windows_by_time(clock(11, 10.0, 0.0), 3, 3, period_seconds=0.1)
    assert clips.indices.tolist() == [[0, 1, 2], [4, 5, 6], [8, 9, 10]]
    assert clips.indices.tolist() == spaced_windows(11, 3, 3).indices.tolist()


# ---------------------------------------------------------------- where an item ends
@pytest.mark.parametrize(("mode", "last"), [("before", 9.5), ("nearest", 9.0)])
def test_dense_windows_end_where_the_last_frame_does(mode, last):
    """Shown until 10 s; where the nearest counts, it is that to 9.5 s."""
    times = clock(10, 1.0, 0.0)
    call = partial(dense_windows_by_time, times, 2, period_seconds=0.25, mode=mode)
    whole = call(step_seconds=0.5, partial=False)
    assert whole.valid.all()
    assert len(whole.indices) == 1 + last / 0.5
    assert call(step_seconds=0.5).indices.tolist() == whole.indices.tolist()


@pytest.mark.parametrize("start", [0.0, 1.6e9])
def test_a_random_window_may_be_where_the_last_frame_is_shown(start):
    rng = np.random.default_rng(1)
    times = clock(4, 1.0, start)
    call = partial(sample_window_by_time, times, 1, period_seconds=1, mode="before")
    drawn = [int(call(rng=rng).indices[0]) for _ in range(800)]
    clips = spaced_windows_by_time(
        times, 2, 800, period_seconds=0.5, mode="before", rng=rng
    )
    for found in (drawn, clips.indices[:, 1].tolist()):
        assert 160 < found.count(3) < 280
    assert clips.valid.all()


# ---------------------------------------------------------------- random choices
@given(seed=st.integers(0, 2**32), length=st.integers(1, 5))
def test_random_windows_by_time_stay_inside_of_the_item(seed, length):
    rng = np.random.default_rng(seed)
    times = clock(30, 25.0, 100.0)
    clip = sample_window_by_time(times, length, period_seconds=0.1, rng=rng)
    clips = spaced_windows_by_time(times, length, 4, period_seconds=0.1, rng=rng)
    assert clip.valid.all()
    assert clips.valid.all()
    assert clips.indices.shape == (4, length)


def test_a_random_segment_moment_follows_time_and_not_the_number_of_frames():
    # Half of the time belongs to the third frame, so half of the clips have it.
    rng = np.random.default_rng(3)
    times = [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]
    drawn = [
        int(sample_segments_by_time(times, 1, rng=rng).indices[0]) for _ in range(2000)
    ]
    assert 900 < drawn.count(2) < 1100


@pytest.mark.parametrize(
    ("history", "future"),
    [
        (np.uint8(2), np.uint8(1)),
        (np.int8(2), np.int8(127)),
        (np.uint64(2), 0),
        (0, np.uint8(255)),
    ],
)
def test_numbers_of_numpy_are_taken_as_plain_ones(history, future):
    def around(history, future):
        times = np.arange(300) / 30
        return window_around_time(
            times, 5.0, period_seconds=1 / 30, history=history, future=future
        ).indices.tolist()

    found = around(history, future)
    assert found == around(int(history), int(future))
    assert found[0] == 150 - int(history)


def test_several_times_give_a_clip_each():
    clips = window_around_time(
        clock(5, 10.0, 0.0), [0.0, 0.4], period_seconds=0.1, history=1, border="mask"
    )
    assert clips.indices.tolist() == [[-1, 0], [3, 4]]


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: frames_at([], [0.0]), r"times of shape \(0,\)"),
        # the type checker takes a number for what could be an array
        (lambda: frames_at(8, [0.0]), "times are 8: expected the time of each frame"),
        (lambda: frames_at([0.0], 0.5), r"seconds is 0\.5, expected .* \(frames,\)"),
        (lambda: frames_at([[0.0]], [0.0]), r"times of shape \(1, 1\)"),
        (lambda: frames_at([0.0, np.nan], [0.0]), "finite and in ascending order"),
        (lambda: frames_at([1.0, 0.0], [0.0]), "finite and in ascending order"),
        # the type checker refuses it too
        (lambda: frames_at([0.0], [0.0], mode="last"), "mode is 'last'"),  # type: ignore[arg-type]
        (
            lambda: sample_window_by_time([0.0], 1, period_seconds=0),
            "period_seconds is 0",
        ),
        (
            lambda: dense_windows_by_time(
                [0.0], 1, period_seconds=1.0, step_seconds=0.0
            ),
            "step_seconds is 0.0",
        ),
        (
            lambda: dense_windows_by_time(
                [0.0], 1, period_seconds=1.0, step_seconds=np.inf
            ),
            "step_seconds is inf",
        ),
        (
            lambda: dense_windows_by_time(
                [0.0], 1, period_seconds=1.0, step_seconds=np.nan
            ),
            "step_seconds is nan",
        ),
        (
            lambda: sample_window_by_time([0.0], 1, period_seconds=np.nan),
            "period_seconds is nan",
        ),
        (
            lambda: frames_at([0.0], [0.0], tolerance_seconds=np.nan),
            "tolerance_seconds is nan",
        ),
        (
            lambda: window_around_time(
                [0.0], 0.0, period_seconds=1.0, tolerance_seconds=-0.1
            ),
            "tolerance_seconds is -0.1",
        ),
        (
            lambda: window_around_time([0.0], np.nan, period_seconds=1.0),
            "expected finite times",
        ),
    ],
)
def test_times_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


NO_NUMBERS = [
    *(True, np.True_, "0.1", b"1", None, 1j, {0.1}, np.datetime64("2020")),
    *([True, False], [0.1, True], [[0.1, True]], ["0.1"], [None], [0.1, [0.2]]),
    np.ma.array([0.1, 0.2], mask=[False, True]),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_no_time(value):
    """As it is no index, see `window_around`."""
    for call in (
        lambda: frames_at([0.0, 0.1], value),
        lambda: window_around_time([0.0, 0.1], value, period_seconds=1.0),
    ):
        with pytest.raises(TypeError, match=r"(?s)seconds is .*, expected finite time"):
            call()
    with pytest.raises(TypeError, match=r"(?s)times is .*, expected seconds"):
        frames_at(value, [0.0])
    with pytest.raises(TypeError, match=r"(?s)index is .*, expected an int or a seq"):
        window_around(8, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("period_seconds", "1"), ("tolerance_seconds", "1"), ("period_seconds", None)],
)
def test_a_time_between_frames_is_a_number(name, value):
    options: Any = {"period_seconds": 0.1, name: value}
    with pytest.raises(ValueError, match=f"{name} is {value!r}, expected"):
        sample_window_by_time([0.0, 0.1], 2, **options)


def test_times_are_numbers_of_any_kind():
    times: Any = [Fraction(k, 10) for k in range(4)]
    wanted: Any = [Decimal("0.1"), Fraction(1, 3), 0.2, np.float16(0.3), 0]
    assert frames_at(times, wanted).indices.tolist() == [1, 3, 2, 3, 0]


@pytest.mark.parametrize("num_frames", [30, 58, 59, 60, 61, 62, 599])
def test_no_dense_window_is_of_no_frame(num_frames):
    times = np.arange(num_frames) / 30
    clips = dense_windows_by_time(times, 8, period_seconds=1 / 8)
    assert clips.valid.any(axis=1).all()
    assert clips.valid.shape == clips.indices.shape
    assert times[-1] - times[clips.indices[-1].max()] < 1 / 8  # up to the last frames


def test_a_clip_length_of_few_bits_does_not_wrap_around():
    times = np.arange(3000.0)
    expected = dense_windows_by_time(times, 16, period_seconds=20)
    length: Any = np.uint8(16)
    found = dense_windows_by_time(times, length, period_seconds=20)
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize(
    "call",
    [
        partial(sample_window_by_time, clip_length=4),
        partial(spaced_windows_by_time, clip_length=4, num_windows=1),
    ],
)
def test_a_window_in_a_gap_is_not_valid_where_a_tolerance_says_so(call):
    times = [0.0, 0.1, 0.2, 9.0, 9.1]  # the wanted ones are 4.4 to 4.7
    clip = call(times, period_seconds=0.1)
    assert clip.indices.ravel().tolist() == [2, 2, 2, 3]
    assert clip.valid.all()
    clip = call(times, period_seconds=0.1, tolerance_seconds=0.05, border="mask")
    assert clip.indices.ravel().tolist() == [-1] * 4
    assert not clip.valid.any()


def test_dense_windows_are_as_many_with_a_tolerance():
    times = [0.0, 0.1, 0.2, 0.3, 2.0, 2.05]
    call = partial(dense_windows_by_time, times, 2, period_seconds=0.3)
    clips, strict = call(), call(tolerance_seconds=0.001, border="mask")
    assert strict.indices.shape == clips.indices.shape == (4, 2)
    assert strict.valid.tolist() == [[True, True], *[[False, False]] * 3]
