"""Damage in the state of a run: what goes on after a resume, at any number of ranks."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2.errors import CorruptFrameError
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    ConcatDataset,
    GulpClipDataset,
    GulpLoader,
    RepeatDataset,
    ResumableSampler,
    TolerantCollate,
    TolerantDataset,
    merge_states,
)
from gulpio2.torch.collate import array_collate
from tests.torch.troubles import damage

pytestmark = pytest.mark.torch

BAD = (0, 2, 3, 7)
NUM_ITEMS = 10


def of_gulp_loader(dataset, how, **options: Any):
    """Make a loader, and what iterates over it."""
    loader = GulpLoader(
        dataset, batch_size=1, seed=3, on_corrupt=how, output="numpy", **options
    )
    return loader, lambda: iter(loader)


def of_data_loader(dataset, how, **options: Any):
    """Make the sampler of a DataLoader, and what iterates over that by `track`."""
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(dataset, seed=3, **options)
    loader: Any = DataLoader(
        TolerantDataset(dataset, on_corrupt=how),
        sampler=sampler,
        collate_fn=TolerantCollate(array_collate),
    )
    return sampler, lambda: sampler.track(loader)


KINDS = [of_gulp_loader, of_data_loader]


@pytest.fixture
def damaged(make_directory):
    """Make a dataset of ten items, of which four are damaged, that comes twice."""
    path = make_directory(counts=(6,) * NUM_ITEMS)
    damage(path, BAD)
    return RepeatDataset(
        GulpClipDataset(path, partial(sample_window, clip_length=2), target="id"), 2
    )


def run(made, batches, num_steps=None):
    """Take so many batches, or those of an epoch; give the state after each."""
    states = []
    for step, _ in enumerate(batches()):
        states.append(json.loads(json.dumps(made.state_dict())))
        if step + 1 == num_steps:
            break
    return states


def counts_of(made):
    return np.array([made.num_skipped, made.num_substituted])


def states_to_the_end(made, batches):
    """Give the state after each batch, until too many samples are damaged."""
    states = [made.state_dict()]
    try:
        for _ in batches():
            states += [made.state_dict()]
    except CorruptFrameError as error:
        assert "More than 3 samples" in str(error)  # noqa: PT017  # the states matter
        return states
    raise AssertionError("the run came to the end of its epoch")


@pytest.mark.parametrize("how", ["skip", "substitute"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_ends_at_the_step_at_which_the_whole_one_ends(damaged, kind, how):
    states = states_to_the_end(*kind(damaged, how, max_corrupt=3))
    assert 4 <= len(states) < 2 * NUM_ITEMS  # in the middle of it
    for step, state in enumerate(states):
        resumed, batches = kind(damaged, how, max_corrupt=3)
        resumed.load_state_dict(state)
        assert states_to_the_end(resumed, batches) == states[step:]


@pytest.mark.parametrize("how", ["skip", "substitute"])
def test_both_kinds_have_the_same_states(damaged, how):
    first, second = (run(*kind(damaged, how)) for kind in KINDS)
    assert first == second
    assert first[-1]["damaged"] == [[0, 0, number] for number in BAD]
    done = first[-1]["skipped"], first[-1]["substituted"]
    assert first[-1]["counts"] == [[0, *done]]
    assert sum(done) == 2 * len(BAD)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_the_sum_over_ranks_goes_on_at_another_number_of_them(
    damaged, kind, before, after
):
    whole, batches = kind(damaged, "skip")
    run(whole, batches)
    for num_steps in range(1, 2 * NUM_ITEMS // before):
        states = []
        for rank in range(before):
            share = {"rank": rank, "num_ranks": before}
            made, batches = kind(damaged, "skip", **share)
            states.append(run(made, batches, num_steps)[-1])
        merged = merge_states(states)
        total = np.zeros(2, int)
        left = 2 * NUM_ITEMS - merged["position"]
        for rank in range(after):
            share = {"rank": rank, "num_ranks": after}
            made, batches = kind(damaged, "skip", **share)
            made.load_state_dict(merged)
            assert len(made.cursor) == -(-left // after)
            run(made, batches)
            total += counts_of(made)
        if left % after == 0:  # else the padding is counted, too
            assert total.tolist() == counts_of(whole).tolist()
        assert total[0] >= whole.num_skipped


@pytest.mark.parametrize("kind", KINDS)
def test_each_rank_goes_on_from_its_own_state(damaged, kind):
    shares = [{"rank": rank, "num_ranks": 2} for rank in range(2)]
    whole = [run(*kind(damaged, "skip", **share)) for share in shares]
    for share, states in zip(shares, whole, strict=True):
        made, batches = kind(damaged, "skip", **share)
        made.load_state_dict(states[3])
        assert run(made, batches) == states[4:]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_one_rank_are_taken_up_once(damaged, kind):
    alone, batches = kind(damaged, "skip")
    state = run(alone, batches, 15)[-1]
    assert alone.num_skipped > 0
    made = [kind(damaged, "skip", rank=rank, num_ranks=3)[0] for rank in range(3)]
    for each in made:
        each.load_state_dict(state)
    assert made[0].state_dict() == state
    assert "damaged" not in made[1].state_dict()
    total = sum(map(counts_of, made))
    assert total.tolist() == counts_of(alone).tolist()


@pytest.mark.parametrize("saved", ["own", "first", "merged"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_whole_run_puts_up_with_the_resumed_one_does_too(damaged, kind, saved):
    shares = [{"rank": rank, "num_ranks": 2} for rank in range(2)]
    most = 0
    for share in shares:
        states = run(*kind(damaged, "skip", **share))
        most = max(most, len(states[-1].get("damaged", [])))
    assert 1 < most <= len(BAD)
    whole = [run(*kind(damaged, "skip", max_corrupt=most, **share)) for share in shares]
    for step, pair in enumerate(zip(*whole, strict=True)):
        for rank, share in enumerate(shares):
            states = {"own": pair[rank], "first": pair[0], "merged": merge_states(pair)}
            made, batches = kind(damaged, "skip", max_corrupt=most, **share)
            made.load_state_dict(states[saved])
            found = run(made, batches)
            if step + 1 == len(whole[0]):
                assert made.epoch == 2  # the state was that of the epoch's end
            elif saved == "first" and rank:
                assert len(found) == NUM_ITEMS - step - 1
            else:
                assert found == whole[rank][step + 1 :]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_ranks_that_are_no_more_are_not_lost(damaged, kind):
    made, batches = kind(damaged, "skip", rank=3, num_ranks=4)
    state = run(made, batches)[-1]
    assert made.num_skipped > 0
    fewer = [kind(damaged, "skip", rank=rank, num_ranks=2)[0] for rank in range(2)]
    for each in fewer:
        each.load_state_dict(state)
    assert sum(map(counts_of, fewer)).tolist() == counts_of(made).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_sample_that_was_counted_does_not_end_a_run(damaged, kind):
    made, batches = kind(damaged, "skip")
    state = run(made, batches)[-1]
    strict, batches = kind(damaged, "skip", max_corrupt=1)  # and more were met already
    strict.load_state_dict(state)
    assert len(run(strict, batches)) == 2 * NUM_ITEMS


@pytest.mark.parametrize("kind", KINDS)
def test_without_damage_all_ranks_have_one_state_of_integers(make_directory, kind):
    dataset = GulpClipDataset(
        make_directory(counts=(4,) * 6), partial(sample_window, clip_length=2)
    )
    states = []
    for rank in range(2):
        made, batches = kind(dataset, "skip", rank=rank, num_ranks=2)
        states.append(run(made, batches, 2)[-1])
    assert states[0] == states[1] == merge_states(states)
    assert {type(value) for value in states[0].values()} == {int}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_knows_the_damage_and_counts_its_own(damaged, kind, again):
    made, batches = kind(damaged, "skip")
    state = run(made, batches, 12)[-1]
    other = again(made)
    assert other.state_dict() == state
    run(made, batches)
    assert other.state_dict() == state != made.state_dict()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["damaged", "counts"])
@pytest.mark.parametrize("wrong", [[3], [[0, -1, 2]], [["a", 1, 2]], 5, [[0, 1]]])
def test_damage_that_is_none_is_refused_and_changes_nothing(damaged, kind, name, wrong):
    made, batches = kind(damaged, "skip")
    state = run(made, batches, 12)[-1]
    fresh, _ = kind(damaged, "skip")
    before = fresh.state_dict()
    with pytest.raises(ValueError, match=f"the state's {name} is "):
        fresh.load_state_dict({**state, name: wrong})
    assert fresh.state_dict() == before


def test_damage_from_a_checkpoint_of_arrays_is_plain_again(damaged):
    made, batches = of_gulp_loader(damaged, "skip")
    state = run(made, batches, 15)[-1]
    made.load_state_dict({name: np.array(value) for name, value in state.items()})
    assert json.loads(json.dumps(made.state_dict())) == state


def test_datasets_are_told_apart(make_directory):
    parts = []
    for number, name in enumerate(("first", "second")):
        path = make_directory(name, counts=(4,) * 3)
        damage(path, [number + 1], name=name)
        parts.append(GulpClipDataset(path, partial(sample_window, clip_length=2)))
    dataset = ConcatDataset([parts[0], RepeatDataset(parts[1], 2), parts[0]])
    for kind in KINDS:
        state = run(*kind(dataset, "skip"))[-1]
        assert state["damaged"] == [[0, 0, 1], [0, 1, 2]]
        assert state["skipped"] == 4


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([], "there are no states"),
        ([{"epoch": 1, "position": 2}, {"epoch": 1, "position": 4}], "position differ"),
        ([{"epoch": 1}, {"epoch": 1, "position": 4}], "position differ"),
        ([{"epoch": 1}, {"epoch": 2, 3: 4}], "3, epoch differ"),
        (2 * [{"epoch": 1, "counts": [[0, 1, 0]]}], "state 1 has damage of a rank"),
    ],
)
def test_states_of_other_steps_are_not_merged(states, told):
    with pytest.raises(ValueError, match=told):
        merge_states(states)


def test_damage_that_was_repaired_can_be_forgotten_and_its_counts_stay(damaged):
    states = []
    for rank in range(2):
        made, batches = of_gulp_loader(damaged, "skip", rank=rank, num_ranks=2)
        states.append(run(made, batches, 8)[-1])
    merged = merge_states(states)
    del merged["damaged"]
    for rank, state in enumerate(states):
        made, _ = of_gulp_loader(damaged, "skip", rank=rank, num_ranks=2)
        made.load_state_dict(merged)
        assert made.num_skipped == state["skipped"] > 0
        assert made.state_dict()["damaged"] == []


def test_a_batch_that_ends_the_run_is_not_counted(make_directory):
    path = make_directory(counts=(6,) * 6)
    damage(path, range(4))
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=2))
    loader = GulpLoader(
        dataset,
        batch_size=2,
        shuffle=False,
        max_corrupt=3,
        on_corrupt="skip",
        output="numpy",
    )
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    with pytest.raises(CorruptFrameError, match="More than 3"):
        next(batches)
    assert loader.state_dict() == state


def test_what_is_merged_may_have_more_and_come_from_anywhere():
    shared = {"epoch": 1, "mine": np.arange(3)}
    states = [{**shared, "skipped": n, "counts": [[n, n, 0]]} for n in (1, 2)]
    merged = merge_states(iter(states))
    assert merged["skipped"] == 3
    assert merged["counts"] == [[1, 1, 0], [2, 2, 0]]
    assert merged["mine"].tolist() == [0, 1, 2]


def test_what_is_no_state_is_not_merged():
    nothing: Any = [None]
    with pytest.raises(TypeError, match="expected the dict of state_dict"):
        merge_states(nothing)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_another_thread_saves_is_of_one_step(damaged, kind):
    made, batches = kind(RepeatDataset(damaged, times=20), "skip")
    seen, states = [made.state_dict()], [made.state_dict()]
    is_over = threading.Event()

    def save():
        while not is_over.is_set():
            states.append(made.state_dict())

    interval = sys.getswitchinterval()
    saving = threading.Thread(target=save)
    sys.setswitchinterval(1e-6)
    try:
        saving.start()
        for _ in batches():
            seen.append(made.state_dict())
            saved = len(states)
            while len(states) == saved and saving.is_alive():
                time.sleep(0)  # a busy machine may not run the other thread for long
    finally:
        is_over.set()
        saving.join()
        sys.setswitchinterval(interval)
    seen.append(made.state_dict())
    assert len({state["position"] for state in states}) > 10
    assert {*map(repr, states)} <= {*map(repr, seen)}
