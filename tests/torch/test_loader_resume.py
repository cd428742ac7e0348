"""The loader's order against a brute-force model: any ranks, threads and stops."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2.order import MixedOrder, Order, PlainOrder, RepeatedOrder
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader, RandomResizedCrop

RANKS = [1, 2, 3, 8]
NUM_ITEMS = 11

ORDERS: dict[str, Order] = {
    "plain": PlainOrder(NUM_ITEMS, seed=3),
    "mixed": MixedOrder(
        [PlainOrder(7, seed=1), PlainOrder(4, seed=2)], [2, 1], epoch_length=13, seed=4
    ),
    "balanced": RepeatedOrder([1, 2, 1, 1, 3, 1, 1, 0, 1, 1, 2], seed=5),
}


@pytest.fixture
def items(make_directory):
    """Make a dataset of eleven items; frames are chosen at random."""
    path = make_directory(counts=(9,) * NUM_ITEMS)
    return GulpClipDataset(path, partial(sample_window, clip_length=2), target="id")


@pytest.fixture
def pixel_items(tmp_path):
    """Make a dataset whose frames differ all over."""
    from gulpio2.testing import make_gulp_directory

    make_gulp_directory(tmp_path / "noise", num_items=7, num_frames=9).close()
    sampler = partial(sample_window, clip_length=3)
    return GulpClipDataset(tmp_path / "noise", sampler)


def epoch_of(order, epoch):
    """Give the global order of an epoch, position by position."""
    return order.indices(epoch, np.arange(order.epoch_length)).tolist()


def model(order, epoch, start, num_ranks, *, drop_last):
    """Deal the rest of an epoch out, one sample to each rank in turn."""
    whole = epoch_of(order, epoch)
    rest = [(position, whole[position]) for position in range(start, len(whole))]
    if drop_last:
        rest = rest[: len(rest) // num_ranks * num_ranks]
    position = len(whole)
    while len(rest) % num_ranks:
        rest.append((position, whole[position % len(whole)]))
        position += 1
    return [rest[rank::num_ranks] for rank in range(num_ranks)]


def make_ranks(items, order, num_ranks, **options: Any):
    return [
        GulpLoader(
            items,
            batch_size=2,
            order=order,
            rank=rank,
            num_ranks=num_ranks,
            output="numpy",
            **options,
        )
        for rank in range(num_ranks)
    ]


def taken(batches):
    """List position and item of each sample."""
    return [
        (position, index)
        for batch in batches
        for position, index in zip(
            batch.positions.tolist(), batch.indices.tolist(), strict=True
        )
    ]


def take(loader, num_batches):
    """Take some batches and leave: the threads are ahead by then."""
    found = []
    for _, batch in zip(range(num_batches), loader, strict=False):
        found.append(batch)
    return taken(found)


@pytest.mark.parametrize("threads", [0, 1, 4])
@pytest.mark.parametrize("before", RANKS)
@pytest.mark.parametrize("name", ORDERS)
def test_every_stop_goes_on_with_any_number_of_ranks(items, name, before, threads):
    order = ORDERS[name]
    options = {"threads": threads, "prefetch": 1 + threads % 3}
    num_batches = len(make_ranks(items, order, before)[0])
    # A stop after each batch, and before the first; what follows by another number of
    # ranks, each in its turn.
    for stop in range(num_batches + 1):
        first = make_ranks(items, order, before, **options)
        done = [take(loader, stop) for loader in first]
        shares = model(order, 0, 0, before, drop_last=False)
        assert done == [share[: 2 * stop] for share in shares]
        states = [loader.state_dict() for loader in first]
        assert all(state == states[0] for state in states)
        after = RANKS[(RANKS.index(before) + 1 + stop) % len(RANKS)]
        second = make_ranks(items, order, after, **options)
        for loader in second:
            loader.load_state_dict(json.loads(json.dumps(states[0])))
        rest = [taken(loader) for loader in second]
        start = min(order.epoch_length, 2 * stop * before)
        if start == order.epoch_length:
            assert rest == model(order, 1, 0, after, drop_last=False)
            continue
        assert rest == model(order, 0, start, after, drop_last=False)
        consumed = {position for share in [*done, *rest] for position, _ in share}
        assert set(range(order.epoch_length)) <= consumed
        assert all(loader.epoch == 1 for loader in second)


@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize("name", ORDERS)
def test_dropping_leaves_full_batches_on_every_rank(items, name, num_ranks):
    order = ORDERS[name]
    loaders = make_ranks(items, order, num_ranks, drop_last=True, threads=2)
    for epoch in range(2):
        shares = model(order, epoch, 0, num_ranks, drop_last=True)
        for loader, share in zip(loaders, shares, strict=True):
            assert taken(loader) == share[: len(share) // 2 * 2]
            assert loader.epoch == epoch + 1


def test_a_state_is_a_few_integers(items):
    loader = GulpLoader(items, batch_size=2, output="numpy")
    next(iter(loader))
    state = loader.state_dict()
    assert all(type(value) is int for value in state.values())
    assert len(state) == 8
    assert state["position"] == 2


def test_a_state_of_another_order_is_refused(items):
    state = GulpLoader(items, batch_size=2, seed=1).state_dict()
    loader = GulpLoader(items, batch_size=2, seed=2)
    with pytest.raises(ValueError, match="along another order: seed 1, here 2"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("stop", [0, 1, 2, 3, 5])
def test_pixels_are_the_same_after_a_resume(pixel_items, stop):
    view = RandomResizedCrop(16)

    def run(state, num_batches, *, threads, prefetch, batch_size=1):
        loader = GulpLoader(
            pixel_items,
            batch_size=batch_size,
            view=view,
            seed=9,
            threads=threads,
            prefetch=prefetch,
            output="numpy",
        )
        if state is not None:
            loader.load_state_dict(state)
        found: list[Any] = []
        while len(found) < num_batches:
            for batch in loader:
                found += list(batch.clips.copy())
                if len(found) >= num_batches:
                    break
        return found, loader.state_dict()

    undisturbed, _ = run(None, 14, threads=1, prefetch=1)
    begun, state = run(None, stop, threads=3, prefetch=4) if stop else ([], None)
    rest, _ = run(state, 14 - stop, threads=2, prefetch=2)
    for wanted, found in zip(undisturbed, [*begun, *rest], strict=True):
        assert np.array_equal(wanted, found)
    assert len({clip.tobytes() for clip in undisturbed}) == 14


def test_global_generators_have_no_part_in_it(pixel_items):
    import random

    def run():
        loader = GulpLoader(
            pixel_items, batch_size=7, view=RandomResizedCrop(16), output="numpy"
        )
        return next(iter(loader)).clips.copy()

    states = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    first = run()
    assert (random.getstate(), str(np.random.get_state())) == states  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    assert np.array_equal(first, run())
