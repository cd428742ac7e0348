"""The shuffle: a permutation for every size, pinned by value, and fair."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.order import Permutation, derive_seed, permutation

PINNED = [
    (5, 1, [1, 3, 2, 4, 0]),
    (10, 0, [4, 1, 6, 8, 2, 9, 3, 0, 7, 5]),
]


@pytest.mark.parametrize(("num_items", "key", "items"), PINNED)
def test_a_key_gives_this_order_for_good(num_items, key, items):
    assert Permutation(num_items, key)(range(num_items)).tolist() == items


def test_many_items_have_this_order_for_good():
    items = Permutation(100_003, 2**63 + 5)([0, 1, 2, 100_002])
    assert items.tolist() == [27206, 43993, 64077, 15007]


@given(num_items=st.integers(1, 500), key=st.integers(-(2**65), 2**65))
def test_every_item_comes_once(num_items, key):
    items = Permutation(num_items, key)(np.arange(num_items))
    assert sorted(items.tolist()) == list(range(num_items))


@pytest.mark.parametrize("num_items", [65536, 65537, 100_000, 2**20])
def test_every_one_of_many_items_comes_once(num_items):
    items = Permutation(num_items, 3)(np.arange(num_items))
    assert np.array_equal(np.sort(items), np.arange(num_items))


def test_a_place_costs_the_same_among_any_number_of_items():
    items = Permutation(10**15, 1)([0, 5, 10**15 - 1])
    assert len(set(items.tolist())) == 3
    assert items.min() >= 0
    assert items.max() < 10**15


@given(num_items=st.integers(1, 99), key=st.integers(0, 99), data=st.data())
def test_places_asked_for_alone_or_in_any_shape_are_the_same(num_items, key, data):
    places = data.draw(st.lists(st.integers(0, num_items - 1), max_size=6))
    permutation = Permutation(num_items, key)
    whole = permutation(np.arange(num_items)).tolist()
    assert permutation(places).tolist() == [whole[place] for place in places]
    square = permutation(np.array(places, np.int64).reshape(1, -1))
    assert square.tolist() == [[whole[place] for place in places]]


@pytest.mark.parametrize("num_items", [2, 3, 4])
def test_all_orders_of_few_items_come_up_equally_often(num_items):
    orders = list(itertools.permutations(range(num_items)))
    expected = 60
    seen = Counter(
        tuple(Permutation(num_items, derive_seed(key))(range(num_items)).tolist())
        for key in range(expected * len(orders))
    )
    squares = sum((seen[order] - expected) ** 2 / expected for order in orders)
    freedom = len(orders) - 1
    assert abs(squares - freedom) < 4 * math.sqrt(2 * freedom)


def test_neighbours_end_up_anywhere():
    items = Permutation(100_000, 9)(np.arange(100_000)).astype(float)
    shifts = [np.corrcoef(items[:-lag], items[lag:])[0, 1] for lag in (1, 2, 316, 317)]
    shifts.append(np.corrcoef(items, np.arange(100_000))[0, 1])
    assert np.abs(shifts).max() < 0.015  # five standard deviations


@pytest.mark.parametrize("place", [-1, 3])
def test_a_place_outside_is_refused(place):
    with pytest.raises(ValueError, match=r"outside of \[0, 3\)"):
        Permutation(3, 0)([place])


@pytest.mark.parametrize("places", [[1.7], [True], ["1"], [None], 0.0])
def test_places_that_are_no_whole_numbers_are_refused(places):
    with pytest.raises(ValueError, match=r"places are of type .* whole numbers"):
        Permutation(3, 0)(places)


def test_no_places_are_of_any_type():
    assert Permutation(3, 0)(np.empty((0, 2))).shape == (0, 2)


def test_no_items_have_no_order():
    with pytest.raises(ValueError, match="num_items is 0"):
        Permutation(0, 0)


@pytest.mark.parametrize("num_items", [1, 2, 5, 1000, 65537, (1 << 62) - 3])
def test_few_places_are_computed_without_arrays_and_are_the_same(
    num_items, monkeypatch
):
    places = np.linspace(0, num_items - 1, 20).astype(np.int64).clip(0, num_items - 1)
    many = Permutation(num_items, key=9)(places).tolist()
    monkeypatch.setattr(permutation, "derive_seeds", None)  # what arrays go through
    for few in (1, 2, 4):
        parts = [places[at : at + few] for at in range(0, 20, few)]
        found = [Permutation(num_items, key=9)(part).tolist() for part in parts]
        assert [*itertools.chain(*found)] == many
