"""The three orders against what they promise, and pinned by value."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.order import MixedOrder, Order, PlainOrder, RepeatedOrder
from gulpio2.order import orders as orders_module
from tests.forking import forked, status_of


def whole_epoch(order, epoch):
    return order.indices(epoch, np.arange(order.epoch_length)).tolist()


def stream(order, length):
    """Lay epochs end to end."""
    epochs = -(-length // order.epoch_length)
    return [item for epoch in range(epochs) for item in whole_epoch(order, epoch)]


# ---------------------------------------------------------------- plain
@pytest.mark.parametrize(
    ("epoch", "items"), [(0, [4, 0, 3, 1, 2]), (1, [4, 3, 2, 1, 0])]
)
def test_a_seed_and_an_epoch_give_this_order_for_good(epoch, items):
    assert whole_epoch(PlainOrder(5, seed=3), epoch) == items


@given(num_items=st.integers(0, 99), seed=st.integers(), epoch=st.integers(0, 9))
def test_every_item_comes_once_an_epoch(num_items, seed, epoch):
    order = PlainOrder(num_items, seed=seed)
    assert sorted(whole_epoch(order, epoch)) == list(range(num_items))


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = {
        tuple(whole_epoch(PlainOrder(50, seed=seed), epoch))
        for seed in range(5)
        for epoch in range(5)
    }
    assert len(orders) == 25


def test_without_shuffling_items_come_as_they_stand():
    order = PlainOrder(4, shuffle=False)
    assert [whole_epoch(order, epoch) for epoch in (0, 7)] == [[0, 1, 2, 3]] * 2


# ---------------------------------------------------------------- repeated
@given(
    repeats=st.lists(st.integers(0, 4), max_size=20),
    seed=st.integers(0, 99),
    epoch=st.integers(0, 9),
)
def test_each_item_comes_as_often_as_asked(repeats, seed, epoch):
    order = RepeatedOrder(repeats, seed=seed)
    assert order.epoch_length == sum(repeats)
    counts = Counter(whole_epoch(order, epoch))
    assert [counts[item] for item in range(len(repeats))] == repeats


def test_repeats_are_spread_by_shuffling():
    assert whole_epoch(RepeatedOrder([3, 1, 2], seed=1), 0) == [0, 2, 0, 1, 0, 2]


@pytest.mark.parametrize("repeats", [[1.5], [-1], [[1]], ["1"]])
def test_repeats_that_are_no_counts_are_refused(repeats):
    with pytest.raises(ValueError, match="whole numbers, none below 0"):
        RepeatedOrder(repeats)


# ---------------------------------------------------------------- mixed
SOURCES = st.lists(
    st.tuples(st.integers(1, 30), st.floats(0.001, 50)), min_size=1, max_size=5
)


@given(sources=SOURCES, seed=st.integers(0, 99))
def test_a_source_of_a_mixture_goes_through_its_own_order(sources, seed):
    orders = [PlainOrder(size, seed=number) for number, (size, _) in enumerate(sources)]
    weights = [weight for _, weight in sources]
    mixed = MixedOrder(orders, weights, epoch_length=300, seed=seed)
    found = [mixed.source_indices(epoch, np.arange(300)) for epoch in (0, 1)]
    numbers = np.concatenate([part.sources for part in found])
    indices = np.concatenate([part.indices for part in found])
    for number, order in enumerate(orders):
        mine = indices[numbers == number].tolist()
        assert mine == stream(order, len(mine))[: len(mine)]


@given(sources=SOURCES, seed=st.integers(0, 99))
def test_each_source_has_its_share_of_whole_blocks(sources, seed):
    orders = [PlainOrder(size) for size, _ in sources]
    weights = [weight for _, weight in sources]
    length = 6 * MixedOrder.block_length
    mixed = MixedOrder(orders, weights, epoch_length=length, seed=seed)
    numbers = mixed.source_indices(0, np.arange(length)).sources
    for blocks in range(1, 7):
        until = blocks * MixedOrder.block_length
        counts = np.bincount(numbers[:until], minlength=len(orders))
        shares = until * np.array(weights) / sum(weights)
        assert np.abs(counts - shares).max() < len(orders)


def test_a_mixture_is_this_order_for_good():
    mixed = MixedOrder(
        [PlainOrder(3, seed=1), RepeatedOrder([1, 2], seed=2), PlainOrder(2)],
        [0.5, 0.3, 0.2],
        epoch_length=12,
        seed=4,
    )
    assert whole_epoch(mixed, 0) == [4, 6, 5, 1, 4, 3, 2, 0, 4, 3, 1, 4]
    assert whole_epoch(mixed, 100) == [0, 6, 1, 4, 4, 2, 3, 0, 4, 1, 1, 0]
    assert mixed.fingerprint == 5613193467636638939


def test_mixed_items_are_numbered_as_in_a_concatenation():
    orders = [PlainOrder(3), PlainOrder(4), PlainOrder(5)]
    mixed = MixedOrder(orders, [1, 1, 1], epoch_length=300)
    assert mixed.num_items == 12
    assert set(whole_epoch(mixed, 0)) == set(range(12))
    sources, indices = mixed.source_indices(0, range(300))
    expected = np.array([0, 3, 7])[sources] + indices
    assert whole_epoch(mixed, 0) == expected.tolist()


def test_the_default_epoch_of_a_mixture_is_as_long_as_its_sources_together():
    assert MixedOrder([PlainOrder(3), PlainOrder(4)], [9, 1]).epoch_length == 7


def test_equal_weights_do_not_give_each_rank_a_source_of_its_own():
    mixed = MixedOrder([PlainOrder(100), PlainOrder(100)], [1, 1], epoch_length=400)
    sources = mixed.source_indices(0, range(400)).sources
    assert 60 < sources[::2].sum() < 140


@given(
    positions=st.lists(st.integers(0, 599), max_size=9),
    epoch=st.integers(0, 5),
)
def test_any_positions_of_a_mixture_can_be_asked_for_alone(positions, epoch):
    mixed = MixedOrder([PlainOrder(7), PlainOrder(30)], [0.9, 0.1], epoch_length=600)
    whole = whole_epoch(mixed, epoch)
    assert mixed.indices(epoch, positions).tolist() == [whole[p] for p in positions]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_has_orders_although_a_thread_made_one_at_the_fork(monkeypatch):
    divide, at_work, done = Fraction.__truediv__, threading.Event(), threading.Event()
    here = MixedOrder([PlainOrder(3), PlainOrder(5)], [1, 2])

    def slow(*pair):
        if threading.current_thread() is thread:
            at_work.set()
            done.wait(30)
        return divide(*pair)

    def ask() -> int:
        signal.alarm(10)
        return len(here.indices(0, [0, 1])) != 2

    monkeypatch.setattr(Fraction, "__truediv__", slow)
    thread = threading.Thread(
        target=lambda: MixedOrder([PlainOrder(3)] * 2, [1, 2]).indices(0, [0])
    )
    thread.start()
    at_work.wait(30)
    child = forked(ask)
    done.set()
    thread.join()
    assert status_of(child) == 0


def test_sources_of_which_no_position_is_asked_for_cost_nothing(monkeypatch):
    divided, gone_along = [], []
    divide, go_along = Fraction.__truediv__, orders_module._along_epochs

    def noted_divide(*pair):
        divided.append(1)
        return divide(*pair)

    def noted_go_along(order, places):
        gone_along.append(1)
        return go_along(order, places)

    monkeypatch.setattr(Fraction, "__truediv__", noted_divide)
    monkeypatch.setattr(orders_module, "_along_epochs", noted_go_along)
    mixed = MixedOrder([PlainOrder(100)] * 50, [0.3] * 50)
    mixed.indices(0, [1, 4_000])
    mixed.indices(0, [2_000])
    assert len(gone_along) <= 3
    assert len(divided) == 50  # once, and not for each block


@pytest.mark.parametrize(
    ("sizes", "weights", "options", "message"),
    [
        ([], [], {}, "0 orders with 0 weights"),
        ([1], [1, 2], {}, "1 orders with 2 weights"),
        ([1, 1], [1, 0], {}, "expected all above 0"),
        ([1, 1], [1, float("inf")], {}, "expected all above 0"),
        ([1, 1], [1, float("nan")], {}, "expected all above 0"),
        ([1, 1], [1, 10**400], {}, "expected all above 0"),
        ([1, 0], [1, 1], {}, r"orders \[1\] have no items"),
        ([1], [1], {"epoch_length": 0}, "epoch_length is 0"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(sizes, weights, options, message):
    with pytest.raises(ValueError, match=message):
        MixedOrder([PlainOrder(size) for size in sizes], weights, **options)


# ---------------------------------------------------------------- all
ORDERS: list[Order] = [
    PlainOrder(9, seed=1),
    PlainOrder(9, seed=2),
    PlainOrder(9, seed=1, shuffle=False),
    PlainOrder(10, seed=1),
    RepeatedOrder([1] * 9, seed=1),
    RepeatedOrder([1] * 8 + [2], seed=1),
    MixedOrder([PlainOrder(4), PlainOrder(5)], [1, 1], seed=1),
    MixedOrder([PlainOrder(4), PlainOrder(5)], [1, 2], seed=1),
    MixedOrder([PlainOrder(4), PlainOrder(5, seed=1)], [1, 1], seed=1),
]


def test_orders_that_differ_have_fingerprints_that_differ():
    assert len({order.fingerprint for order in ORDERS}) == len(ORDERS)
    assert PlainOrder(9, seed=1).fingerprint == ORDERS[0].fingerprint
    assert all(0 <= order.fingerprint < 2**63 for order in ORDERS)


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_an_order_can_be_asked_in_any_shape_and_only_inside(order):
    assert isinstance(order, Order)
    whole = np.array(whole_epoch(order, 1))
    square = np.array([[0, 3], [2, 0]])
    assert order.indices(1, square).tolist() == whole[square].tolist()
    assert order.indices(1, []).tolist() == []
    for outside in (-1, order.epoch_length):
        with pytest.raises(ValueError, match="outside of the epoch"):
            order.indices(1, [outside])
    for others in ([1.7], [True], np.array([1.0])):
        with pytest.raises(ValueError, match=r"positions are of type .* whole numbers"):
            order.indices(1, others)
    assert order.indices(1, np.array([1], np.uint8)).dtype == np.int64


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
def test_an_epoch_length_of_numpy_is_taken_as_an_int(kind):
    def order(length):
        orders = [PlainOrder(10, seed=1), PlainOrder(7, seed=2)]
        return MixedOrder(orders, [0.7, 0.3], epoch_length=length)

    given, plain = order(kind(200)), order(200)
    assert type(given.epoch_length) is int
    np.testing.assert_array_equal(
        given.indices(30_000, range(200)), plain.indices(30_000, range(200))
    )


def test_an_epoch_length_that_is_none_is_named():
    with pytest.raises(TypeError, match=r"epoch_length is 2\.5, expected a whole"):
        MixedOrder([PlainOrder(10)], [1], epoch_length=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("seed", None), ("seed", 1.5), ("num_items", "5")]
)
def test_a_number_of_an_order_that_is_none_is_named(name, value):
    with pytest.raises(TypeError, match=rf"^{name} is {value!r}, expected a whole num"):
        PlainOrder(**{"num_items": 5, name: value})


def test_a_seed_below_zero_is_a_seed():
    assert PlainOrder(9, seed=-1).seed == -1
