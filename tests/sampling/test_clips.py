"""What stands in for the frames that an item lacks, on plain lists."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.sampling import (
    BORDERS,
    NO_FRAME,
    ClipIndices,
    apply_border,
    sample_window,
)


def round_trip(clip: ClipIndices) -> Any:
    """Send it to another process and back."""
    return pickle.loads(pickle.dumps(clip))


# wanted, frames of the item, border -> indices
CASES = [
    pytest.param([0, 1, 2], 3, "clamp", [0, 1, 2], id="all-there"),
    pytest.param([-2, -1, 0, 1], 3, "clamp", [0, 0, 0, 1], id="clamp-before"),
    pytest.param([1, 2, 3, 4], 3, "clamp", [1, 2, 2, 2], id="clamp-past"),
    pytest.param([0, 2, 4, 6], 4, "clamp", [0, 2, 3, 3], id="clamp-off-the-grid"),
    pytest.param([0, 2, 4, 6], 4, "repeat", [0, 2, 2, 2], id="repeat-on-the-grid"),
    pytest.param([-3, -1, 1, 3], 4, "repeat", [1, 1, 1, 3], id="repeat-before"),
    pytest.param([-1, 0, 1, 2], 2, "repeat", [0, 0, 1, 1], id="repeat-both-ends"),
    pytest.param([-5, -4], 2, "repeat", [0, 0], id="repeat-nothing-of-its-own"),
    pytest.param([7, 9], 2, "repeat", [1, 1], id="repeat-all-past"),
    pytest.param([-1, 0, 1, 2, 3], 2, "loop", [1, 0, 1, 0, 1], id="loop"),
    pytest.param([-1, 0, 1, 2], 2, "mask", [NO_FRAME, 0, 1, NO_FRAME], id="mask"),
    pytest.param([], 2, "clamp", [], id="no-places"),
]


@pytest.mark.parametrize(("wanted", "num_frames", "border", "indices"), CASES)
def test_a_border_puts_these_frames_where_the_item_has_none(
    wanted, num_frames, border, indices
):
    clip = apply_border(wanted, num_frames, border)
    assert clip.indices.tolist() == indices
    assert clip.valid.tolist() == [0 <= index < num_frames for index in wanted]


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.array])
def test_a_number_of_frames_may_be_of_any_library(kind):
    clip = apply_border([0, 5, -1], kind(3), "repeat")
    assert clip.indices.tolist() == [0, 0, 0]


def test_each_clip_of_several_repeats_its_own_frames():
    clips = apply_border([[0, 1, 2], [2, 3, 4], [-1, 0, 1]], 3, "repeat")
    assert clips.indices.tolist() == [[0, 1, 2], [2, 2, 2], [0, 0, 1]]


def test_a_place_ruled_out_by_the_caller_is_filled_like_one_outside():
    valid = np.array([True, False, True])
    clip = apply_border([0, 1, 2], 3, "repeat", valid=valid)
    assert clip.indices.tolist() == [0, 0, 2]
    assert clip.valid.tolist() == [True, False, True]


def test_a_gap_repeats_the_frame_before_it_also_where_the_one_after_is_nearer():
    valid = np.array([False, True, False, False, False, True])
    clip = apply_border(range(6), 6, "repeat", valid=valid)
    assert clip.indices.tolist() == [1, 1, 1, 1, 1, 5]


@given(
    wanted=st.lists(st.integers(-50, 50), min_size=1, max_size=8),
    num_frames=st.integers(1, 20),
    border=st.sampled_from(sorted(BORDERS)),
)
def test_frames_inside_stay_and_the_others_can_be_read(wanted, num_frames, border):
    clip = apply_border(wanted, num_frames, border)
    for asked, index, valid in zip(wanted, clip.indices, clip.valid, strict=True):
        assert valid == (0 <= asked < num_frames)
        if valid:
            assert index == asked
        elif border == "mask":
            assert index == NO_FRAME
        else:
            assert 0 <= index < num_frames


@pytest.mark.parametrize(
    ("num_frames", "border", "message"),
    [
        (0, "clamp", "num_frames is 0, expected at least 1"),
        (3, "mirror", "border is 'mirror'; it must be one of"),
    ],
)
def test_an_item_without_frames_and_an_unknown_border_are_refused(
    num_frames, border, message
):
    with pytest.raises(ValueError, match=message):
        apply_border([0], num_frames, border)


def test_indices_and_mask_of_two_shapes_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"shape \(3,\) with a mask of shape \(2,\)"):
        ClipIndices(np.arange(3), np.ones(2, bool))


@pytest.mark.parametrize(
    ("indices", "valid", "message"),
    [
        ([0, 1], np.ones(2, bool), r"^indices is a list, expected .* whole numbers$"),
        (np.arange(2), [True, True], r"^valid is a list, expected .* booleans$"),
        (np.zeros(2), np.ones(2, bool), "^indices is an array of float64"),
        (np.arange(2), np.arange(2), "^valid is an array of int64"),
    ],
    ids=["a list", "a list as mask", "floats", "numbers as mask"],
)
def test_other_than_arrays_of_numbers_and_booleans_are_refused(indices, valid, message):
    with pytest.raises(TypeError, match=message):
        ClipIndices(indices, valid)


def test_the_repr_tells_the_shape_and_what_is_missing():
    assert (
        repr(apply_border([0, 5], 3, "clamp")) == "ClipIndices(shape=(2,), missing=1)"
    )


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, round_trip])
def test_the_arrays_of_a_window_are_made_once_and_are_the_clip_s(copied):
    clip = sample_window(20, 4, stride=3)
    assert clip.steps == range(5, 15, 3)
    again = copied(clip)
    for same in (clip, again):
        assert same.indices.tolist() == [5, 8, 11, 14]
        assert same.indices.dtype == np.int64
        assert same.valid.tolist() == [True] * 4
        assert same.valid.dtype == np.bool_
        assert same.steps is None
    clip.indices[0] = 2
    clip.valid[1] = False
    assert clip.indices.tolist() == [2, 8, 11, 14]
    assert clip.valid.tolist() == [True, False, True, True]
    with pytest.raises(AttributeError):
        clip.indices = again.indices  # type: ignore[misc]  # it cannot
    assert sample_window(2, 4).steps is None


def test_a_class_of_somebody_s_own_stays_it_when_it_is_copied():
    class Own(ClipIndices):
        pass

    clip = Own(np.arange(3), np.ones(3, bool))
    assert type(copy.copy(clip)) is Own
    match clip:
        case ClipIndices(indices, valid):
            assert (indices is clip.indices, valid is clip.valid) == (True, True)


@pytest.mark.parametrize(
    "wanted", [[0.5, 1.9], [True, False], ["0"], [math.nan], [None]]
)
def test_what_is_no_whole_number_is_not_cut_off(wanted):
    with pytest.raises(TypeError, match="expected whole numbers"):
        apply_border(wanted, 4, "clamp")


def test_no_frames_and_small_integers_are_wanted_as_they_are():
    assert apply_border([], 4, "clamp").indices.tolist() == []
    for same in ([-1.0, 3.0], np.array([-1, 3], object)):
        assert apply_border(same, 4, "clamp").indices.tolist() == [0, 3]
    wanted = np.array([-1, 3, 9], np.int8)
    assert apply_border(wanted, 4, "clamp").indices.tolist() == [0, 3, 3]
