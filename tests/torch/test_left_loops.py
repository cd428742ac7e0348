"""Loops that are left in the midst of an epoch, and trainers that count batches."""

from __future__ import annotations

import copy
import itertools

import pytest

from gulpio2.order import PlainOrder
from gulpio2.torch import GulpLoader, ResumableSampler
from gulpio2.torch.collate import array_collate

pytestmark = pytest.mark.torch

NUM_ITEMS = 9


@pytest.fixture
def dataset(make_numbered):
    return make_numbered(NUM_ITEMS)


def loader_of(dataset, **options):
    return GulpLoader(dataset, batch_size=2, output="numpy", threads=1, **options)


def targets(batches):
    return [batch.targets.tolist() for batch in batches]


IN_ORDER = [[0, 1], [2, 3], [4, 5], [6, 7], [8]]


def test_a_validation_that_is_left_is_of_the_same_samples_each_time(dataset):
    loader = loader_of(dataset, shuffle=False)
    for _ in range(3):
        assert targets(itertools.islice(loader, 2)) == IN_ORDER[:2]
    assert targets(loader) == IN_ORDER
    assert targets(loader) == IN_ORDER


@pytest.mark.parametrize(
    ("options", "goes_on"),
    [
        ({}, True),
        ({"go_on": False}, False),
        ({"shuffle": False}, False),
        ({"shuffle": False, "go_on": True}, True),
        ({"order": PlainOrder(NUM_ITEMS, shuffle=False)}, True),
        ({"order": PlainOrder(NUM_ITEMS, shuffle=False), "shuffle": False}, False),
        ({"order": PlainOrder(NUM_ITEMS, seed=2), "go_on": False}, False),
    ],
)
def test_the_next_loop_gives_the_rest_or_the_next_epoch(dataset, options, goes_on):
    whole = loader_of(dataset, **options)
    first, second = targets(whole), targets(whole)
    loader = loader_of(dataset, **options)
    assert targets(itertools.islice(loader, 3)) == first[:3]
    assert loader.batches_left == 2
    assert targets(loader) == (first[3:] if goes_on else second)
    assert loader.epoch == (1 if goes_on else 2)


@pytest.mark.parametrize("again", [copy.copy, None], ids=["a copy", "the same"])
def test_a_state_that_is_loaded_is_gone_on_with_by_any_loader(dataset, again):
    loader = loader_of(dataset, seed=1, go_on=False)
    first = targets(loader)
    loader.set_epoch(0)
    for _ in itertools.islice(loader, 2):
        state = loader.state_dict()
    loader.load_state_dict(state)
    if again is not None:
        loader = again(loader)
    assert iter(loader) is not None  # one of which nothing is asked changes nothing
    assert targets(itertools.islice(loader, 1)) == first[2:3]
    assert loader.epoch == 0
    # That loop was left in its turn.
    assert next(iter(loader)).epoch == 1


def test_a_place_is_taken_up_once(dataset):
    loader = loader_of(dataset, shuffle=False)
    assert targets(itertools.islice(loader, 2)) == IN_ORDER[:2]
    loader.load_state_dict(loader.state_dict())
    assert targets(loader) == IN_ORDER[2:]
    loader.set_epoch(0)
    for _ in range(2):
        assert targets(itertools.islice(loader, 2)) == IN_ORDER[:2]


def test_an_epoch_that_was_left_can_be_asked_for_again(dataset):
    loader = loader_of(dataset, seed=1, go_on=False)
    first = targets(loader)
    for number in range(4):
        loader.set_epoch(0)
        batches = iter(loader)
        assert next(batches).targets.tolist() == first[0]
        loader.set_epoch(0)  # within a loop it changes nothing
        rest = itertools.islice(batches, number)
        assert targets(rest) == first[1 : 1 + number]
    assert next(iter(loader)).epoch == 1
    loader.load_state_dict({**loader.state_dict(), "position": 4})
    loader.set_epoch(1)  # where it was loaded it goes on
    assert loader.batches_left == len(targets(loader)) == 3


def test_the_length_is_that_of_a_whole_epoch_at_any_time(dataset):
    for options, length in (({}, 5), ({"drop_last": True}, 4)):
        loader = loader_of(dataset, seed=1, **options)
        left = []
        for _ in loader:
            assert len(loader) == length
            left.append(loader.batches_left)
        assert left == [*range(length)][::-1]
    for ranks, samples in ((2, 5), (4, 3)):
        sampler = ResumableSampler(dataset, rank=1, num_ranks=ranks)
        sampler.cursor.advance(2)
        assert len(sampler) == samples
        assert sampler.samples_left == samples - 2


@pytest.mark.parametrize("stop", range(1, 15))
def test_who_counts_batches_by_the_length_makes_all_steps_of_a_resumed_run(
    dataset, stop
):
    """As Lightning: with a checkpoint come the loader's state and batches done."""
    num_epochs, made = 3, []

    class KilledError(Exception):
        pass

    def train(loader, epoch, done, save_at):
        while epoch < num_epochs:
            for batch in loader:
                made.append((epoch, done, batch.targets.tolist()))
                done += 1
                if len(made) == save_at:
                    raise KilledError(loader.state_dict(), epoch, done)
                if done >= len(loader):
                    break
            epoch, done = epoch + 1, 0

    train(loader_of(dataset, seed=4), 0, 0, None)
    wanted, made = made, []
    assert len(wanted) == 15
    with pytest.raises(KilledError) as killed:
        train(loader_of(dataset, seed=4), 0, 0, stop)
    state, epoch, done = killed.value.args
    resumed = loader_of(dataset, seed=4)
    resumed.load_state_dict(state)
    if done == len(resumed):
        epoch, done = epoch + 1, 0
    train(resumed, epoch, done, None)
    assert made == wanted


def test_a_sampler_that_nobody_tracks_gives_whole_epochs(dataset):
    """As in Lightning, which sets the epoch, and iterates over the loader itself."""
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(dataset, seed=1)
    loader = DataLoader(
        dataset, batch_size=2, sampler=sampler, collate_fn=array_collate
    )
    epochs = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert len(loader) == 5
        epochs.append([number for _, numbers in loader for number in numbers])
    assert all(sorted(numbers) == [*range(NUM_ITEMS)] for numbers in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
