"""The loader's order against a brute-force model: any ranks, threads and stops."""

from __future__ import annotations

import itertools
import json
import logging
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2.order import MixedOrder, Order, PlainOrder, RepeatedOrder
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader, RandomResizedCrop
from tests.torch.troubles import damage

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
    loader = GulpLoader(items, batch_size=2, seed=1, shuffle=False)
    with pytest.raises(ValueError, match=r"fingerprint .* seed and shuffle"):
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

    states = random.getstate(), str(np.random.get_state())
    first = run()
    assert (random.getstate(), str(np.random.get_state())) == states
    np.random.seed(5)
    random.seed(5)
    assert np.array_equal(first, run())


@pytest.mark.parametrize("how", ["skip", "substitute"])
@pytest.mark.parametrize("threads", [0, 1, 4])
def test_damaged_samples_and_random_views_are_the_same_for_any_ranks(
    tmp_path, how, threads, caplog
):
    from gulpio2.testing import make_gulp_directory

    caplog.set_level(logging.ERROR, "gulpio2")
    path = tmp_path / "noise"
    make_gulp_directory(path, num_items=11, num_frames=9).close()
    damage(path, (2, 7), name="item")
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=3))

    def loader_of(rank, num_ranks, state=None):
        loader = GulpLoader(
            dataset,
            batch_size=2,
            view=RandomResizedCrop(16),
            seed=9,
            rank=rank,
            num_ranks=num_ranks,
            threads=threads if num_ranks > 1 else 2,
            prefetch=1 + rank % 3,
            on_corrupt=how,
            output="numpy",
        )
        if state is not None:
            loader.load_state_dict(state)
        return loader

    def pixels_of(batches):
        return {
            int(position): (int(index), clip.tobytes())
            for batch in batches
            for position, index, clip in zip(
                batch.positions,
                [info["sample_idx"] for info in batch.infos],
                batch.clips,
                strict=True,
            )
        }

    wanted = pixels_of(loader_of(0, 1))
    assert len(wanted) == (9 if how == "skip" else 11)
    assert not {2, 7} & {index for index, _ in wanted.values()}
    for place, before in enumerate(RANKS):
        after = RANKS[(place + 1) % len(RANKS)]
        for stop in range(len(loader_of(0, before)) + 1):
            found: dict[int, Any] = {}
            counts, states = 0, []
            for rank in range(before):
                loader = loader_of(rank, before)
                found |= pixels_of(itertools.islice(loader, stop))
                states.append(loader.state_dict())
                counts += loader.num_skipped + loader.num_substituted
            for rank in range(after):
                state = {**states[0], "skipped": 0, "substituted": 0}
                loader = loader_of(rank, after, state)
                if loader.epoch == 0:
                    found |= pixels_of(loader)
                    counts += loader.num_skipped + loader.num_substituted
            in_epoch = {at: seen for at, seen in found.items() if at < 11}
            assert in_epoch == wanted
            assert counts >= 2
