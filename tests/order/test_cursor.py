"""Sharing out, saving and taking up, against a model on plain lists."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2.order import (
    MixedOrder,
    Order,
    OrderCursor,
    PlainOrder,
    RepeatedOrder,
    augmentation_seeds,
    rank_positions,
    repeat_counts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = (1, 2, 3, 8)
WORKERS = (0, 1, 4)
BATCH = 2

ORDERS: dict[str, Callable[[], Order]] = {
    "plain": lambda: PlainOrder(13, seed=5),
    "mixed": lambda: MixedOrder(
        [PlainOrder(4, seed=1), PlainOrder(7, seed=2)], [0.7, 0.3], epoch_length=13
    ),
    "balanced": lambda: RepeatedOrder(
        repeat_counts([[0]] * 6 + [[1], [1], [2]], 0.5), seed=5
    ),
}


class ModelLoader:
    """A loader with worker processes, as far as order goes.

    It asks the cursor ahead for two batches a worker, like torch's, and tells it of a
    batch when that is handed over.
    """

    def __init__(self, cursor, workers):
        self.cursor = cursor
        self.prefetch = 2 * workers

    def __iter__(self):
        draws = self.cursor.pending()
        ahead: list[Any] = []
        while True:
            while len(ahead) <= self.prefetch:
                batch = list(itertools.islice(draws, BATCH))
                if not batch:
                    break
                ahead.append(batch)
            if not ahead:
                return
            batch = ahead.pop(0)
            self.cursor.advance(len(batch))
            yield batch


def loaders(order, ranks, workers, drop_last, state=None):
    made = []
    for rank in range(ranks):
        cursor = OrderCursor(order(), rank=rank, num_ranks=ranks, drop_last=drop_last)
        if state is not None:
            cursor.load_state_dict(state)
        made.append(ModelLoader(cursor, workers))
    return made


def model_shares(items, ranks, drop_last):
    """Deal a list out as a person would: to one rank after the other."""
    shares: list[list[Any]] = [[] for _ in range(ranks)]
    dealt = list(items)
    if drop_last:
        dealt = dealt[: len(dealt) // ranks * ranks]
    for place, item in enumerate(dealt):
        shares[place % ranks].append(item)
    return shares


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("ranks", "workers"), list(itertools.product(RANKS, WORKERS)))
def test_saved_after_any_step_the_global_order_goes_on_elsewhere(
    kind, drop_last, ranks, workers
):
    order = ORDERS[kind]
    length = order().epoch_length
    wanted = list(
        zip(
            range(length),
            order().indices(0, range(length)).tolist(),
            augmentation_seeds(order().seed, 0, range(length)).tolist(),
            strict=True,
        )
    )
    most = -(-length // ranks)
    for stop in range(-(-most // BATCH) + 1):
        before = loaders(order, ranks, workers, drop_last)
        iterators = [iter(loader) for loader in before]
        seen: list[Any] = []
        for _ in range(stop):
            for iterator in iterators:
                seen += next(iterator, [])
        states = [loader.cursor.state_dict() for loader in before]
        assert all(state == states[0] for state in states)
        done = sorted(
            (draw.position, draw.index, draw.seed)
            for draw in seen
            if draw.position < length
        )
        # Nothing lost, nothing twice: what is done is a beginning of the global order.
        assert done == wanted[: len(done)]
        for new_ranks, new_workers in itertools.product(RANKS, WORKERS):
            after = loaders(order, new_ranks, new_workers, drop_last, states[0])
            rest = wanted[len(done) :] if len(done) < length else None
            if rest is None:  # saved at the very end: the next epoch it is
                assert [loader.cursor.epoch for loader in after] == [1] * new_ranks
                continue
            shares = model_shares(rest, new_ranks, drop_last)
            most_left = max(len(share) for share in shares)
            for loader, share in zip(after, shares, strict=True):
                draws = [draw for batch in loader for draw in batch]
                own = [d for d in draws if d.position < length]
                assert [(d.position, d.index, d.seed) for d in own] == share
                assert len(draws) == most_left  # as many as every other rank
                padding = [d.index for d in draws if d.position >= length]
                assert padding == [
                    wanted[d.position % length][1]
                    for d in draws
                    if d.position >= length
                ]


@pytest.mark.parametrize("kind", ORDERS)
def test_a_run_through_many_changes_is_the_global_order(kind):
    order = ORDERS[kind]
    length = order().epoch_length
    state: dict[str, int] | None = None
    seen: list[Any] = []
    changes = itertools.cycle([(1, 1), (2, 1), (1, 2), (3, 1), (1, 1)])
    while state is None or state["epoch"] < 4:
        ranks, steps = next(changes)
        cursors = []
        for rank in range(ranks):
            cursor = OrderCursor(order(), rank=rank, num_ranks=ranks)
            if state is not None:
                cursor.load_state_dict(state)
            cursors.append(cursor)
        drawn = [list(cursor.pending())[:steps] for cursor in cursors]
        for cursor, draws in zip(cursors, drawn, strict=True):
            cursor.advance(len(draws))
        seen += sorted(itertools.chain(*drawn), key=lambda draw: draw.position)
        if not len(cursors[0]):
            cursors[0].next_epoch()
        state = cursors[0].state_dict()
    indices = [draw.index for draw in seen if draw.position < length]
    expected = [order().indices(epoch, range(length)).tolist() for epoch in range(4)]
    assert indices == list(itertools.chain(*expected))


# ---------------------------------------------------------------- shares
@pytest.mark.parametrize(
    ("arguments", "drop_last", "shares"),
    [
        ((0, 5, 2), False, [[0, 2, 4], [1, 3, 5]]),
        ((0, 5, 2), True, [[0, 2], [1, 3]]),
        ((3, 5, 3), False, [[3], [4], [5]]),
        ((3, 5, 3), True, [[], [], []]),
        ((5, 5, 2), False, [[], []]),
        ((6, 5, 2), False, [[], []]),
        ((0, 1, 3), False, [[0], [1], [2]]),
        ((0, 0, 2), False, [[], []]),
    ],
)
def test_a_rest_is_dealt_out_to_the_ranks_in_turn(arguments, drop_last, shares):
    start, length, ranks = arguments
    found = [
        list(rank_positions(start, length, rank, ranks, drop_last=drop_last))
        for rank in range(ranks)
    ]
    assert found == shares


def test_a_lone_item_is_enough_for_every_rank():
    cursor = OrderCursor(PlainOrder(1), rank=2, num_ranks=3)
    assert [draw.index for draw in cursor.pending()] == [0]


def test_an_empty_order_has_no_samples_in_any_epoch():
    cursor = OrderCursor(PlainOrder(0), rank=1, num_ranks=3)
    assert list(cursor.pending()) == []
    cursor.next_epoch()
    assert len(cursor) == 0


def test_an_epoch_longer_than_a_portion_is_drawn_whole():
    cursor = OrderCursor(PlainOrder(5000, seed=1), rank=1, num_ranks=2)
    draws = list(cursor.pending())
    whole = PlainOrder(5000, seed=1).indices(0, range(5000)).tolist()
    assert [draw.index for draw in draws] == whole[1::2]
    assert [draw.position for draw in draws] == list(range(1, 5000, 2))


# ---------------------------------------------------------------- the state
def test_a_state_is_a_few_plain_integers():
    cursor = OrderCursor(PlainOrder(10, seed=3), num_ranks=2)
    cursor.advance(2)
    state = cursor.state_dict()
    assert state == {
        "version": 1,
        "seed": 3,
        "epoch": 0,
        "position": 4,
        "epoch_length": 10,
        "fingerprint": PlainOrder(10, seed=3).fingerprint,
    }
    assert all(type(value) is int for value in state.values())


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (PlainOrder(11, seed=3), "epoch_length 10, here 11"),
        (PlainOrder(10, seed=4), "seed 3, here 4"),
        (PlainOrder(10, seed=3, shuffle=False), "fingerprint"),
    ],
)
def test_a_state_of_another_order_is_refused(order, message):
    state = OrderCursor(PlainOrder(10, seed=3)).state_dict()
    with pytest.raises(ValueError, match=message):
        OrderCursor(order).load_state_dict(state)


def test_a_state_that_lacks_something_is_refused():
    cursor = OrderCursor(PlainOrder(5))
    before = cursor.state_dict()
    for name in set(before) - {"version"}:
        state = {**before, "position": 3}
        del state[name]
        with pytest.raises(ValueError, match=f"the state has no {name}: it is not"):
            cursor.load_state_dict(state)
    assert cursor.state_dict() == before


@pytest.mark.parametrize("state", [None, "position", [("position", 3)]])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(TypeError, match="expected the dict of state_dict"):
        OrderCursor(PlainOrder(5)).load_state_dict(state)


def test_a_position_behind_the_epoch_is_refused():
    cursor = OrderCursor(PlainOrder(5))
    state = {**cursor.state_dict(), "position": 6}
    with pytest.raises(ValueError, match="position is 6, expected 0 to 5, the length"):
        cursor.load_state_dict(state)
    cursor.load_state_dict({**state, "position": 5})
    assert (cursor.epoch, cursor.position) == (1, 0)


def test_a_state_of_an_unknown_version_is_refused():
    cursor = OrderCursor(PlainOrder(1))
    with pytest.raises(ValueError, match="state of version 2, expected 1"):
        cursor.load_state_dict({**cursor.state_dict(), "version": 2})


@pytest.mark.parametrize("count", [-1, 6])
def test_more_than_was_left_cannot_have_been_consumed(count):
    with pytest.raises(ValueError, match="of 5 that this rank had left"):
        OrderCursor(PlainOrder(10), num_ranks=2).advance(count)


@pytest.mark.parametrize(("rank", "num_ranks"), [(1, 1), (-1, 2), (0, 0)])
def test_a_rank_outside_of_its_number_is_refused(rank, num_ranks):
    with pytest.raises(ValueError, match=f"rank is {rank} of {num_ranks}"):
        OrderCursor(PlainOrder(1), rank=rank, num_ranks=num_ranks)


def test_a_position_before_the_first_is_refused():
    cursor = OrderCursor(PlainOrder(3))
    with pytest.raises(ValueError, match="position is -1"):
        cursor.load_state_dict({**cursor.state_dict(), "position": -1})


def test_what_is_pending_was_so_when_it_was_asked_for():
    cursor = OrderCursor(PlainOrder(3, shuffle=False))
    pending = cursor.pending()
    cursor.advance(2)
    assert [draw.index for draw in pending] == [0, 1, 2]


def test_an_epoch_before_the_first_is_refused():
    with pytest.raises(ValueError, match="epoch is -1"):
        OrderCursor(PlainOrder(1)).set_epoch(-1)


def test_ranks_of_numpy_are_taken_as_ints():
    rank: Any = np.uint8(1)
    cursor = OrderCursor(PlainOrder(1000), rank=rank, num_ranks=2 * rank)
    assert len(cursor) == 500
    cursor.advance(3)
    assert json.loads(json.dumps(cursor.state_dict())) == cursor.state_dict()


def test_a_rank_that_is_no_number_is_named():
    with pytest.raises(TypeError, match=r"^rank is '0', expected a whole number$"):
        OrderCursor(PlainOrder(1), rank="0", num_ranks=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (lambda indices: indices[:-1], r"int64 of shape \(4,\)"),
        (lambda indices: indices[:, np.newaxis], r"int64 of shape \(5, 1\)"),
        (lambda indices: indices / 2, r"float64 of shape \(5,\)"),
    ],
    ids=["too few", "another shape", "no whole numbers"],
)
def test_an_order_of_ones_own_gives_a_number_for_each_position(change, given):
    class Own(PlainOrder):
        def indices(self, epoch, positions):
            return change(super().indices(epoch, positions))

    message = rf"^PlainOrder.* gave {given} for 5 positions, expected a whole number"
    with pytest.raises(ValueError, match=message):
        list(OrderCursor(Own(5)).pending())
