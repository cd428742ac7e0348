"""A loop that ends with the last batch of an epoch, without asking for one more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gulpio2.torch import GulpLoader, ResumableSampler
from gulpio2.torch.collate import array_collate

pytestmark = pytest.mark.torch

NUM_ITEMS = 8


@pytest.fixture
def dataset(make_numbered):
    return make_numbered(NUM_ITEMS)


def gulp_loader(dataset, *, batch_size=2, drop_last=False, seed=1):
    loader = GulpLoader(
        dataset, batch_size=batch_size, seed=seed, drop_last=drop_last, output="numpy"
    )
    return loader, lambda: iter(loader)


def data_loader(dataset, *, batch_size=2, drop_last=False, seed=1):
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(dataset, seed=seed)
    loader: Any = DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=sampler,
        drop_last=drop_last,
        collate_fn=array_collate,
    )
    return sampler, lambda: sampler.track(loader)


KINDS = [gulp_loader, data_loader]
BATCHES = [(2, False, 4), (3, False, 3), (3, True, 2), (8, False, 1)]


def whole_epochs(kind, dataset, count, **options):
    """Give the targets of each batch, epoch by epoch, of loops to their ends."""
    _, batches = kind(dataset, **options)
    return [[batch[1].tolist() for batch in map(list, batches())] for _ in range(count)]


@pytest.mark.parametrize(("batch_size", "drop_last", "count"), BATCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_loop_is_the_next_epoch(dataset, kind, batch_size, drop_last, count):
    options = {"batch_size": batch_size, "drop_last": drop_last}
    wanted = whole_epochs(kind, dataset, 4, **options)
    assert [len(epoch) for epoch in wanted] == [count] * 4
    made, batches = kind(dataset, **options)
    for number, epoch in enumerate(wanted):
        assert made.epoch == number
        # Alternately as `islice` does it, and by a break.
        found = []
        if number % 2:
            found = [list(b)[1].tolist() for b in itertools.islice(batches(), count)]
        else:
            for step, batch in enumerate(batches(), start=1):
                found.append(list(batch)[1].tolist())
                assert made.epoch == number  # within the loop
                if step == count:
                    break
        assert found == epoch
    assert made.epoch == 4


@pytest.mark.parametrize("kind", KINDS)
def test_an_iterator_that_is_kept_ends_the_epoch_as_well(dataset, kind):
    made, batches = kind(dataset)
    wanted = whole_epochs(kind, dataset, 2)
    for epoch in wanted:
        kept = batches()
        assert [list(next(kept))[1].tolist() for _ in range(4)] == epoch
    kept.close()
    assert made.epoch == 2


@pytest.mark.parametrize("kind", KINDS)
def test_two_side_by_side_stay_in_step(dataset, kind):
    one, of_one = kind(dataset, seed=1)
    two, of_two = kind(dataset, seed=2)
    for _ in range(5):
        assert sum(1 for _ in zip(of_one(), of_two(), strict=False)) == 4
    assert one.epoch == two.epoch == 5


@pytest.mark.parametrize(("batch_size", "drop_last", "count"), BATCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_goes_on_as_the_one_that_was_left(
    dataset, kind, batch_size, drop_last, count
):
    options = {"batch_size": batch_size, "drop_last": drop_last}
    wanted = whole_epochs(kind, dataset, 3, **options)
    made, batches = kind(dataset, **options)
    inside: dict[str, int] = {}
    for _ in itertools.islice(batches(), count):
        inside = made.state_dict()
    for state in (inside, made.state_dict()):
        resumed, its_batches = kind(dataset, **options)
        resumed.load_state_dict(state)
        found = []
        while resumed.epoch < 3:
            found.append([list(batch)[1].tolist() for batch in its_batches()])
        # An epoch of which nothing is left that makes a batch may come as an empty one.
        assert [epoch for epoch in found if epoch] == wanted[1:]


@pytest.mark.parametrize("kind", KINDS)
def test_left_in_the_middle_it_goes_on_there(dataset, kind):
    made, batches = kind(dataset)
    (wanted,) = whole_epochs(kind, dataset, 1)
    for _ in itertools.islice(batches(), 3):
        pass
    assert made.epoch == 0
    assert [list(batch)[1].tolist() for batch in batches()] == wanted[3:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_is_loaded_is_where_it_was_saved(dataset, kind):
    made, batches = kind(dataset)
    first = made.state_dict()
    for _ in itertools.islice(batches(), 4):
        last = made.state_dict()
    made.load_state_dict(first)
    assert made.epoch == 0
    assert sum(1 for _ in batches()) == 4
    made.load_state_dict(last)
    assert made.epoch == 1
    assert sum(1 for _ in batches()) == 4
    assert made.epoch == 2
