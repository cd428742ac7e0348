"""Clips by frame number, on plain lists and as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.sampling import (
    dense_windows,
    sample_segments,
    sample_window,
    spaced_windows,
    window_around,
)

COUNTS = st.integers(1, 60)
SEEDS = st.none() | st.integers(0, 2**32)


def rng_of(seed):
    return None if seed is None else np.random.default_rng(seed)


# ---------------------------------------------------------------- segments
@pytest.mark.parametrize(
    ("num_frames", "num_segments", "indices"),
    [
        (10, 5, [1, 3, 5, 7, 9]),
        (9, 3, [1, 4, 7]),
        (100, 1, [50]),
        (3, 6, [0, 0, 1, 1, 2, 2]),
        (1, 4, [0, 0, 0, 0]),
        (8, 3, [1, 4, 6]),
    ],
)
def test_a_test_clip_has_the_centre_of_each_segment(num_frames, num_segments, indices):
    assert sample_segments(num_frames, num_segments).indices.tolist() == indices


@given(num_frames=COUNTS, num_segments=COUNTS, seed=SEEDS)
def test_the_frame_of_a_segment_touches_that_segment(num_frames, num_segments, seed):
    clip = sample_segments(num_frames, num_segments, rng=rng_of(seed))
    assert clip.valid.all()
    assert clip.indices.shape == (num_segments,)
    for place, index in enumerate(clip.indices.tolist()):
        # Segment [place, place + 1) * n / s and frame [index, index + 1), in s-ths.
        assert index * num_segments < (place + 1) * num_frames
        assert (index + 1) * num_segments > place * num_frames


def test_a_training_clip_reaches_every_frame_equally_often():
    rng = np.random.default_rng(0)
    drawn = np.concatenate(
        [sample_segments(7, 3, rng=rng).indices for _ in range(7000)]
    )
    counts = np.bincount(drawn, minlength=7)
    assert counts.min() > 2850, counts.tolist()
    assert counts.max() < 3150, counts.tolist()


# ---------------------------------------------------------------- one window
@pytest.mark.parametrize(
    ("arguments", "options", "indices"),
    [
        ((20, 4), {"stride": 2}, [6, 8, 10, 12]),
        ((4, 4), {}, [0, 1, 2, 3]),
        ((5, 4), {}, [0, 1, 2, 3]),
        ((3, 5), {}, [0, 1, 2, 2, 2]),
        ((3, 5), {"border": "loop"}, [0, 1, 2, 0, 1]),
        ((3, 5), {"border": "mask"}, [0, 1, 2, -1, -1]),
        ((4, 3), {"stride": 3}, [0, 3, 3]),
        ((4, 3), {"stride": 2, "border": "clamp"}, [0, 2, 3]),
        ((1, 1), {"stride": 9}, [0]),
    ],
)
def test_a_test_window_lies_in_the_middle(arguments, options, indices):
    assert sample_window(*arguments, **options).indices.tolist() == indices


@given(
    num_frames=COUNTS, length=st.integers(1, 9), stride=st.integers(1, 6), seed=SEEDS
)
def test_a_window_that_fits_is_whole_and_evenly_strided(
    num_frames, length, stride, seed
):
    clip = sample_window(num_frames, length, stride=stride, rng=rng_of(seed))
    fits = (length - 1) * stride < num_frames
    assert clip.valid.all() == fits
    if fits:
        assert set(np.diff(clip.indices).tolist()) <= {stride}


def test_a_random_window_may_begin_at_every_place_where_it_fits():
    rng = np.random.default_rng(1)
    starts = {
        int(sample_window(10, 3, stride=2, rng=rng).indices[0]) for _ in range(300)
    }
    assert starts == set(range(6))


def test_one_generator_state_gives_one_clip():
    first = sample_window(1000, 8, rng=np.random.default_rng(5))
    again = sample_window(1000, 8, rng=np.random.default_rng(5))
    assert first.indices.tolist() == again.indices.tolist()


# ---------------------------------------------------------------- several windows
@pytest.mark.parametrize(
    ("arguments", "options", "indices"),
    [
        ((10, 4, 3), {}, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]),
        ((10, 4, 1), {}, [[3, 4, 5, 6]]),
        ((5, 3, 2), {"stride": 2}, [[0, 2, 4], [0, 2, 4]]),
        ((2, 3, 2), {}, [[0, 1, 1], [0, 1, 1]]),
    ],
)
def test_spaced_windows_go_from_the_first_frame_to_the_last(
    arguments, options, indices
):
    assert spaced_windows(*arguments, **options).indices.tolist() == indices


@given(num_frames=COUNTS, length=st.integers(1, 9), count=st.integers(2, 7), seed=SEEDS)
def test_spaced_windows_that_fit_touch_both_ends(num_frames, length, count, seed):
    clips = spaced_windows(num_frames, length, count, rng=rng_of(seed))
    assert clips.indices.shape == (count, length)
    if length <= num_frames:
        assert clips.valid.all()
        if seed is None:
            assert clips.indices[0, 0] == 0
            assert clips.indices[-1, -1] == num_frames - 1
            starts = np.diff(clips.indices[:, 0])
            assert starts.max() - starts.min() <= 1


@pytest.mark.parametrize(
    ("arguments", "options", "indices"),
    [
        ((7, 3), {}, [[0, 1, 2], [3, 4, 5], [6, 6, 6]]),
        ((6, 3), {}, [[0, 1, 2], [3, 4, 5]]),
        ((7, 3), {"partial": False}, [[0, 1, 2], [3, 4, 5]]),
        ((7, 3), {"step": 2}, [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
        ((6, 2), {"stride": 2, "step": 1}, [[0, 2], [1, 3], [2, 4], [3, 5]]),
        ((2, 3), {"border": "mask"}, [[0, 1, -1]]),
        ((2, 3), {"partial": False}, []),
    ],
)
def test_dense_windows_slide_over_the_item(arguments, options, indices):
    clips = dense_windows(*arguments, **options)
    assert clips.indices.tolist() == indices
    assert clips.indices.shape == (len(indices), arguments[1])


@given(num_frames=COUNTS, length=st.integers(1, 9), step=st.integers(1, 9))
def test_dense_windows_no_further_apart_than_long_reach_every_frame(
    num_frames, length, step
):
    step = min(step, length)
    clips = dense_windows(num_frames, length, step=step)
    assert set(clips.indices[clips.valid].tolist()) == set(range(num_frames))
    whole = dense_windows(num_frames, length, step=step, partial=False)
    assert whole.valid.all()
    assert len(clips.indices) - len(whole.indices) in (0, 1)


# ---------------------------------------------------------------- around an index
@pytest.mark.parametrize(
    ("arguments", "options", "indices"),
    [
        ((10, 5), {"history": 2, "future": 1}, [3, 4, 5, 6]),
        ((10, 5), {}, [5]),
        ((10, 1), {"history": 2, "stride": 2}, [0, 0, 1]),
        ((10, 9), {"future": 2, "border": "mask"}, [9, -1, -1]),
        ((10, 9), {"history": 1, "future": 2, "stride": 3}, [6, 9, 9, 9]),
        ((10, [0, 9]), {"history": 1, "border": "mask"}, [[-1, 0], [8, 9]]),
        ((10, np.array([3], np.uint8)), {"history": 1}, [[2, 3]]),
        ((10, []), {"history": 1}, []),
    ],
)
def test_a_window_has_the_frames_before_and_after_an_index(arguments, options, indices):
    assert window_around(*arguments, **options).indices.tolist() == indices


@pytest.mark.parametrize("index", [-1, 10, [0, 10]])
def test_an_index_outside_of_the_item_is_refused(index):
    with pytest.raises(ValueError, match="is outside of an item of 10 frames"):
        window_around(10, index, history=1)


@pytest.mark.parametrize("index", [1.0, "1", None, [[1]], [1, True], [1, [2]]])
def test_an_index_that_is_no_whole_number_is_refused(index):
    with pytest.raises(TypeError, match="expected an int or a sequence of ints"):
        window_around(10, index)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: sample_segments(0, 3), "num_frames"),
        (lambda: sample_segments(3, 0), "num_segments"),
        (lambda: sample_window(0, 3), "num_frames"),
        (lambda: sample_window(3, 0), "clip_length"),
        (lambda: sample_window(3, 3, stride=0), "stride"),
        (lambda: spaced_windows(3, 3, 0), "num_windows"),
        (lambda: dense_windows(3, 3, step=0), "step"),
        (lambda: window_around(0, 0), "num_frames"),
        (lambda: window_around(3, 1, history=-1), "history"),
        (lambda: window_around(3, 1, future=-1), "future"),
    ],
)
def test_a_count_that_is_too_small_is_named(call, name):
    with pytest.raises(ValueError, match=f"{name} is -?[0-9]+, expected at least"):
        call()


# Each in a type of numpy in which what is computed with it would wrap around.
@pytest.mark.parametrize(
    ("call", "arguments", "options"),
    [
        (sample_segments, (np.uint8(200), np.uint8(200)), {}),
        (sample_window, (np.uint8(5), 10), {}),
        (sample_window, (500, np.uint8(3)), {"stride": np.uint8(200)}),
        (sample_window, (500, 2), {"stride": np.int8(100)}),
        (spaced_windows, (np.uint16(5), 10, np.uint8(2)), {}),
        (dense_windows, (np.uint16(5), np.int8(10)), {"step": np.uint8(2)}),
        (
            window_around,
            (np.uint16(500), np.uint16(300)),
            {"history": np.uint8(2), "future": np.uint8(1)},
        ),
    ],
)
def test_numbers_of_numpy_are_taken_as_plain_ones(call, arguments, options):
    clip = call(*arguments, **options)
    options = {name: int(value) for name, value in options.items()}
    plain = call(*map(int, arguments), **options)
    assert clip.indices.tolist() == plain.indices.tolist()
    assert clip.valid.tolist() == plain.valid.tolist()


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
def test_a_number_of_frames_that_is_not_whole_is_refused(rng):
    with pytest.raises(TypeError, match=r"num_frames is 5\.5, expected a whole number"):
        # the type checker refuses it too
        sample_window(5.5, 3, rng=rng)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: sample_window(10, 3, stride=2**62), "stride"),
        (lambda: spaced_windows(10, 3, 2, stride=2**62), "stride"),
        (lambda: dense_windows(10, 3, stride=2**62), "stride"),
        (lambda: dense_windows(10, 3, step=2**63), "step"),
        (lambda: window_around(10, 3, history=4, stride=2**62), "stride"),
        (lambda: window_around(10, 3, stride=2**64), "stride"),
    ],
)
def test_a_step_that_no_index_can_follow_is_named(call, name):
    with pytest.raises(ValueError, match=f"{name} is [0-9]+, expected at most"):
        call()


@pytest.mark.parametrize(
    ("arguments", "step", "starts"),
    [((10, 3), 20, [0]), ((10, 3), 9, [0, 9]), ((10, 3), 10, [0]), ((2, 5), 7, [0])],
)
def test_no_dense_window_begins_past_the_end(arguments, step, starts):
    clips = dense_windows(*arguments, step=step)
    assert clips.indices[:, 0].tolist() == starts
    assert clips.valid.any(axis=1).all()
