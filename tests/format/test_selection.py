"""What a selection means, against a Python list of the frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import FrameIndexError
from gulpio2.format.selection import select_frames

counts = st.integers(0, 20)
bounds = st.none() | st.integers(-30, 30)
steps = st.none() | st.integers(-5, 5).filter(bool)


@dataclass
class IntLike:
    """An integer by its behaviour alone."""

    value: int

    def __index__(self):
        return self.value


def test_none_is_every_frame():
    assert list(select_frames(None, 3)) == [0, 1, 2]
    assert list(select_frames(None, 0)) == []


@given(counts, bounds, bounds, steps)
def test_a_slice_means_what_it_means_for_a_list(num_frames, start, stop, step):
    frames = list(range(num_frames))
    chosen = slice(start, stop, step)
    assert list(select_frames(chosen, num_frames)) == frames[chosen]


def test_the_bounds_of_a_slice_may_be_numpy_integers():
    chosen = slice(np.int64(1), np.uint8(5), np.int16(2))
    assert list(select_frames(chosen, 10)) == [1, 3]


def test_a_step_of_zero_is_refused_as_by_a_list():
    with pytest.raises(ValueError, match="step cannot be zero"):
        select_frames(slice(0, 3, 0), 3)


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        lambda positions: np.array(positions, np.int32),
        lambda positions: [np.int64(position) for position in positions],
        lambda positions: [
            np.int64(position) if place % 2 else position
            for place, position in enumerate(positions)
        ],
    ],
    ids=["list", "tuple", "array", "int32", "numpy integers", "mixed"],
)
@given(data=st.data())
def test_positions_are_looked_up_one_by_one(make, data):
    num_frames = data.draw(st.integers(1, 20))
    positions = data.draw(
        st.lists(st.integers(-num_frames, num_frames - 1), min_size=1, max_size=30)
    )
    frames = list(range(num_frames))
    assert list(select_frames(make(positions), num_frames)) == [
        frames[position] for position in positions
    ]


@given(counts, st.integers(-25, 25), st.integers(-25, 25), st.integers(1, 4))
def test_a_range_is_its_positions(num_frames, start, stop, step):
    chosen = range(start, stop, step)
    frames = list(range(num_frames))
    try:
        expected = [frames[position] for position in chosen]
    except IndexError:
        with pytest.raises(FrameIndexError):
            select_frames(chosen, num_frames)
    else:
        assert list(select_frames(chosen, num_frames)) == expected


@given(st.lists(st.booleans(), max_size=20), st.booleans())
def test_a_mask_is_the_frames_where_it_is_true(mask, as_array):
    given_mask = np.array(mask, bool) if as_array else mask
    assert list(select_frames(given_mask, len(mask))) == [
        index for index, wanted in enumerate(mask) if wanted
    ]


@pytest.mark.parametrize("one", [2, np.int64(2), np.uint8(2), IntLike(2), np.array(2)])
def test_a_single_integer_is_that_one_frame(one):
    assert list(select_frames(one, 5)) == [2]


def test_a_single_negative_integer_counts_from_the_end():
    assert list(select_frames(-1, 5)) == [4]


@pytest.mark.parametrize("nothing", [[], (), np.array([], int), np.array([]), range(0)])
def test_an_empty_selection_is_no_frame(nothing):
    assert list(select_frames(nothing, 5)) == []


@pytest.mark.parametrize(
    "outside",
    [
        5,
        -6,
        [0, 5],
        [-6],
        np.array([5]),
        range(3, 7),
        (1, 99),
        [-1, 2**64],
        (-1, 2**64),
    ],
)
def test_a_position_outside_is_named_with_the_number_of_frames(outside):
    message = rf"frame index (5|-6|99|{2**64}) is outside of an item of 5 frames"
    with pytest.raises(FrameIndexError, match=message):
        select_frames(outside, 5)


@pytest.mark.parametrize("mask", [[True], np.ones(6, bool), np.zeros(0, bool)])
def test_a_mask_of_another_length_is_refused(mask):
    with pytest.raises(FrameIndexError, match=r"a mask of \d values .* from 5 frames"):
        select_frames(mask, 5)


@pytest.mark.parametrize(
    "chosen",
    [
        1.0,
        "0",
        "01",
        b"0",
        {0: 1},
        {0},
        frozenset({0}),
        [0.0, 1.0],
        ["0"],
        [[0, 1]],
        [[0], [0, 1]],
        np.zeros((1, 2), int),
        np.array(["a"]),
        [None],
        True,
        np.True_,
        pytest.param(object(), id="an object"),
    ],
    ids=repr,
)
def test_what_is_no_selection_is_a_type_error_that_says_what_is_one(chosen):
    with pytest.raises(TypeError, match=r"give an int, a slice, a sequence of ints"):
        select_frames(chosen, 1)


def test_a_tensor_is_an_array_also_with_one_value():
    tensor = pytest.importorskip("torch").tensor
    assert list(select_frames(tensor([False]), 1)) == []
    assert list(select_frames(tensor([True]), 1)) == [0]
    assert list(select_frames(tensor([True, False, True]), 3)) == [0, 2]
    assert list(select_frames(tensor([2]), 3)) == [2]
    assert list(select_frames(tensor(2), 3)) == [2]
    with pytest.raises(FrameIndexError, match="a mask of 1 values cannot select from"):
        select_frames(tensor([False]), 3)
    for none in (tensor(True), tensor(False), tensor([[2]])):
        with pytest.raises(TypeError, match="cannot select frames by"):
            select_frames(none, 3)


@pytest.mark.parametrize("mixed", [[True, 2], (0, False), [np.True_, 1, 0]])
def test_booleans_among_positions_are_neither(mixed):
    with pytest.raises(TypeError, match="cannot select frames by"):
        select_frames(mixed, 3)


@pytest.mark.parametrize("values", [[2, 1, 0], [True, False, True]])
def test_what_is_masked_out_is_not_selected_without_a_word(values):
    part = np.ma.array(values, mask=[False, True, False])
    with pytest.raises(TypeError, match=r"masked out; give its \.compressed\(\)"):
        select_frames(part, 3)
    assert select_frames(np.ma.array(values), 3) == select_frames(values, 3)


@pytest.mark.parametrize("wrong", [slice(0, 4, 0), slice(0, 1.5), slice("a")])
def test_a_slice_that_is_none_is_named_with_what_would_be_one(wrong):
    kind = ValueError if wrong.step == 0 else TypeError
    with pytest.raises(kind) as caught:
        select_frames(wrong, 3)
    assert repr(wrong) in str(caught.value)
    assert "Give whole numbers, or None, as its bounds" in str(caught.value)
