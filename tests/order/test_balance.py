"""The repeat factor rule on the worked case of the dataset interface."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gulpio2.order import RepeatedOrder, repeat_counts, repeat_factors

CATEGORIES = [[0], [0], [0], [0], [1], [], [0, 1, 1], [2]]

WORKED = [
    (0.1, [1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5, 6, 7]),
    (0.3, [1, 1.095, 1, 1.095, 1.549], [0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 7]),
    (0.5, [1, 1.414, 1, 1.414, 2.0], [0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 7]),
    (
        1,
        [1.265, 2.0, 1, 2.0, 2.828],
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 7, 7],
    ),
    (
        2.0,
        [1.789, 2.828, 1, 2.828, 4.0],
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 6, 7, 7, 7, 7],
    ),
]


@pytest.mark.parametrize(("threshold", "factors", "indices"), WORKED)
def test_the_worked_case(threshold, factors, indices):
    first, *rest = factors
    found = repeat_factors(CATEGORIES, threshold)
    assert found == pytest.approx([first] * 4 + rest, abs=5e-4)
    counts = repeat_counts(CATEGORIES, threshold)
    order = RepeatedOrder(counts, shuffle=False)
    assert order.indices(0, range(order.epoch_length)).tolist() == indices


def test_no_items_have_no_factors():
    assert repeat_factors([], 0.5) == []


@pytest.mark.parametrize("threshold", [-1.0, float("nan"), float("inf"), 10**400, "1"])
@pytest.mark.parametrize("function", [repeat_factors, repeat_counts])
def test_a_threshold_below_zero_or_without_end_is_refused(function, threshold):
    with pytest.raises(ValueError, match=r"threshold is .*, expected at least 0 and f"):
        function([[0]], threshold)


def test_a_threshold_of_zero_repeats_nothing():
    assert repeat_factors([[0], [0], [1]], 0) == [1.0, 1.0, 1.0]


def test_a_threshold_is_a_number_of_any_kind():
    factors = repeat_factors(CATEGORIES, 0.5)
    assert repeat_factors(CATEGORIES, Decimal("0.5")) == factors  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize("items", [["walk", "run"], [["walk"], b"run"], [""]], ids=str)
@pytest.mark.parametrize("function", [repeat_factors, repeat_counts])
def test_a_text_is_no_collection_of_categories(function, items):
    with pytest.raises(TypeError, match=r"expected a collection for each item, such"):
        function(items, 0.5)
    assert function([["walk"], ["run"]], 0.5) == [1, 1]
