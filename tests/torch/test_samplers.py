"""Samplers, on their own and under a DataLoader with workers."""

from __future__ import annotations

import copy
import gc
import inspect
import itertools
import json
import os
import pickle
import random
import subprocess
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2.errors import GulpWarning
from gulpio2.order import (
    MixedOrder,
    Order,
    PlainOrder,
    RepeatedOrder,
    augmentation_seeds,
    repeat_counts,
)
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    ClassBalancedDataset,
    ConcatDataset,
    DefaultSampler,
    GulpClipDataset,
    GulpLoader,
    InfiniteSampler,
    MixtureDataset,
    RepeatDataset,
    ResumableSampler,
    SampleIndex,
    worker_init_fn,
)

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # few cores here
    # Python 3.12 on: torch has threads, and its loader forks.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


class FakeDistributed:
    """Stands for torch.distributed, which needs processes to say anything."""

    def __init__(self, rank, count):
        self.rank, self.count = rank, count

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.count

    def broadcast_object_list(self, objects, src):
        objects[:] = [11]


@pytest.fixture
def ranks(monkeypatch):
    """Make something on each of several ranks."""

    def on_each(count, make):
        made = []
        for rank in range(count):
            with monkeypatch.context() as patch:
                stub = type(sys)("torch")
                stub.distributed = FakeDistributed(rank, count)  # type: ignore[attr-defined]
                patch.setitem(sys.modules, "torch", stub)
                made.append(make())
        return made

    return on_each


# ---------------------------------------------------------------- default
def test_every_sample_comes_once_an_epoch_in_the_order_of_seed_plus_epoch():
    sampler = DefaultSampler(range(10), seed=3)
    epochs = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
        assert list(sampler) == epochs[-1]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert list(DefaultSampler(range(10), seed=5)) == epochs[2]
    assert list(DefaultSampler(range(4), shuffle=False)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("count", "world", "round_up", "shares"),
    [
        (5, 2, True, [[0, 2, 4], [1, 3, 0]]),
        (5, 2, False, [[0, 2, 4], [1, 3]]),
        (2, 5, True, [[0], [1], [0], [1], [0]]),
        (2, 3, False, [[0], [1], []]),
        (0, 2, True, [[], []]),
        (6, 3, True, [[0, 3], [1, 4], [2, 5]]),
    ],
)
def test_an_epoch_is_shared_out_among_ranks(count, world, round_up, shares, ranks):
    samplers = ranks(
        world,
        lambda: DefaultSampler(range(count), shuffle=False, round_up=round_up),
    )
    assert [list(sampler) for sampler in samplers] == shares
    assert [len(sampler) for sampler in samplers] == [len(share) for share in shares]


def test_shuffled_shares_are_an_epoch_together(ranks):
    samplers = ranks(3, lambda: DefaultSampler(range(9), seed=1))
    alone = list(DefaultSampler(range(9), seed=1))
    dealt = [list(sampler) for sampler in samplers]
    assert list(itertools.chain(*zip(*dealt, strict=True))) == alone


def test_ranks_that_are_given_no_seed_agree_on_one(ranks):
    samplers = ranks(2, lambda: DefaultSampler(range(9)))
    assert [sampler.seed for sampler in samplers] == [11, 11]
    assert DefaultSampler(range(9)).seed != DefaultSampler(range(9)).seed


# ---------------------------------------------------------------- infinite
@pytest.mark.parametrize("world", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_samples_without_end_are_shared_out_among_ranks(count, world, ranks):
    samplers = ranks(world, lambda: InfiniteSampler(range(count), seed=4))
    taken = [list(itertools.islice(sampler, 9)) for sampler in samplers]
    stream = list(itertools.islice(InfiniteSampler(range(count), seed=4), 9 * world))
    assert list(itertools.chain(*zip(*taken, strict=True))) == stream
    for begin in range(0, len(stream) - count, count):
        assert sorted(stream[begin : begin + count]) == list(range(count))
    assert [len(sampler) for sampler in samplers] == [count] * world


def test_an_empty_dataset_has_nothing_to_go_on_with():
    with pytest.raises(ValueError, match="the dataset is empty"):
        InfiniteSampler([])


# ---------------------------------------------------------------- resumable
def test_an_index_carries_its_place_and_is_an_int():
    indices = list(ResumableSampler(PlainOrder(5, seed=3)))
    assert indices == PlainOrder(5, seed=3).indices(0, range(5)).tolist()
    seeds = augmentation_seeds(3, 0, range(5)).tolist()
    assert [index.seed for index in indices] == seeds
    assert [(index.epoch, index.position) for index in indices] == [
        (0, position) for position in range(5)
    ]
    again = pickle.loads(pickle.dumps(indices[2]))
    assert isinstance(again, SampleIndex)
    assert (again, again.__dict__) == (indices[2], indices[2].__dict__)


def test_a_dataset_is_gone_through_once_an_epoch():
    sampler = ResumableSampler(range(6), seed=1)
    assert sorted(sampler) == list(range(6))
    assert list(ResumableSampler("abc", shuffle=False)) == [0, 1, 2]


def test_setting_the_epoch_under_way_does_not_begin_it_again():
    sampler = ResumableSampler(range(6))
    sampler.cursor.advance(4)
    sampler.set_epoch(0)
    assert (len(sampler), sampler.samples_left) == (6, 2)
    sampler.set_epoch(1)
    assert (sampler.samples_left, sampler.epoch) == (6, 1)


def test_the_state_is_json_and_needs_the_same_dataset():
    sampler = ResumableSampler(range(6), seed=2)
    sampler.cursor.advance(4)
    state = json.loads(json.dumps(sampler.state_dict()))
    other = ResumableSampler(range(6), seed=2)
    other.load_state_dict(state)
    assert list(other) == list(sampler)
    with pytest.raises(ValueError, match="epoch_length 6, here 7"):
        ResumableSampler(range(7), seed=2).load_state_dict(state)


def test_a_rank_alone_is_refused():
    with pytest.raises(ValueError, match="give both"):
        ResumableSampler(range(3), rank=0)


def test_ranks_are_those_of_the_process_group(ranks):
    samplers = ranks(2, lambda: ResumableSampler(range(5), shuffle=False))
    assert [list(sampler) for sampler in samplers] == [[0, 2, 4], [1, 3, 0]]


# ---------------------------------------------------------------- under a DataLoader
RANKS = (1, 2, 3, 8)
WORKERS = (0, 1, 4)


class Places:
    """A dataset that gives the place that it was asked for."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return int(index), index.epoch, index.position, index.seed


ORDERS: dict[str, Callable[[], Order]] = {
    "plain": lambda: PlainOrder(11, seed=5),
    "mixed": lambda: MixedOrder(
        [PlainOrder(4, seed=1), PlainOrder(7, seed=2)], [0.7, 0.3], epoch_length=11
    ),
    "balanced": lambda: RepeatedOrder(
        repeat_counts([[0]] * 6 + [[1], [2]], 0.3), seed=5
    ),
}


def loader_of(order, rank, ranks, workers, state=None, **options):
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(order(), rank=rank, num_ranks=ranks)
    if state is not None:
        sampler.load_state_dict(state)
    loader = DataLoader(
        Places(order().num_items),
        batch_size=2,
        sampler=sampler,
        num_workers=workers,
        collate_fn=list,
        **options,
    )
    return sampler, loader


# Every number of ranks and of workers, each with others to go on with. All of them take
# half a minute; the cursor, which decides, is tested for all of them by itself.
CHANGES = [
    pytest.param(
        ranks,
        workers,
        RANKS[(place + 1) % 4],
        WORKERS[(place + 1 + place // 4) % 3],
        marks=[] if place % 5 == 1 else pytest.mark.slow,
    )
    for place, (ranks, workers) in enumerate(itertools.product(RANKS, WORKERS))
]


@pytest.mark.torch
@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize(("ranks", "workers", "new_ranks", "new_workers"), CHANGES)
def test_a_loader_goes_on_at_any_step_with_other_ranks_and_workers(
    kind, ranks, workers, new_ranks, new_workers
):
    order = ORDERS[kind]
    length = order().epoch_length
    wanted = [
        (index, 0, position, seed)
        for position, (index, seed) in enumerate(
            zip(
                order().indices(0, range(length)).tolist(),
                augmentation_seeds(order().seed, 0, range(length)).tolist(),
                strict=True,
            )
        )
    ]
    for stop in range(1, -(-length // (2 * ranks)) + 1):
        done: list[Any] = []
        states = []
        for rank in range(ranks):
            sampler, loader = loader_of(order, rank, ranks, workers)
            for batch in itertools.islice(sampler.track(loader), stop):
                done += batch
            states.append(sampler.state_dict())
        assert all(state == states[0] for state in states)
        for rank in range(new_ranks):
            sampler, loader = loader_of(order, rank, new_ranks, new_workers, states[0])
            if sampler.epoch == 0:
                for batch in sampler.track(loader):
                    done += batch
                assert sampler.epoch == 1
        real = [place for place in done if place[2] < length]
        assert sorted(real, key=lambda place: place[2]) == wanted
        padding = len(done) - len(real)
        assert padding < ranks + new_ranks


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
def test_leaving_a_loader_early_and_coming_back_goes_on(workers):
    options = {"persistent_workers": True} if workers else {}
    sampler, loader = loader_of(ORDERS["plain"], 0, 1, workers, **options)
    seen = []
    while sampler.epoch < 2:
        for batch in itertools.islice(sampler.track(loader), 2):
            seen += [place[1:3] for place in batch]
    assert seen == [(epoch, position) for epoch in (0, 1) for position in range(11)]


@pytest.mark.torch
def test_a_batch_that_the_loader_drops_is_not_consumed():
    sampler, loader = loader_of(ORDERS["plain"], 0, 1, 0, drop_last=True)
    states = [sampler.state_dict() for _ in itertools.islice(sampler.track(loader), 5)]
    assert states[-1]["position"] == 10
    sampler.load_state_dict(states[-1])
    assert list(sampler.track(loader)) == []
    assert sampler.state_dict()["epoch"] == 1


class Exhausted(Places):
    """Samples, one of which is made of something that has come to its end."""

    def __getitem__(self, index):
        return next(iter(())) if index == 5 else super().__getitem__(index)


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("options", "num_seen", "missing"),
    [
        ({"batch_size": 2}, 4, 7),
        ({"batch_size": 2, "drop_last": True}, 4, 6),
        ({"batch_size": 8}, 0, 11),
        ({"batch_size": None}, 5, 6),
    ],
    ids=str,
)
def test_a_loader_that_ends_too_early_is_told(workers, options, num_seen, missing):
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(PlainOrder(11, shuffle=False))
    own = {"sampler": sampler, "num_workers": workers, "collate_fn": list}
    options = {**options, **own}
    seen: list[Any] = []
    with pytest.raises(RuntimeError, match=rf"{missing} samples of epoch 0 .* StopIt"):
        seen.extend(sampler.track(DataLoader(Exhausted(11), **options)))
    assert len(seen) * (options["batch_size"] or 1) == num_seen
    # The run stands before what is missing, and goes on there.
    assert sampler.state_dict()["position"] == num_seen
    for _ in sampler.track(DataLoader(Places(11), **options)):
        pass
    assert (sampler.epoch, sampler.state_dict()["position"]) == (1, 0)


class Broken(Places):
    """Samples, one of which is an error."""

    def __getitem__(self, index):
        return {}[index] if index == 5 else super().__getitem__(index)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("dataset", "error"), [(Exhausted(11), RuntimeError), (Broken(11), KeyError)]
)
def test_workers_are_forked_without_what_an_error_has_left(dataset, error):
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    sampler = ResumableSampler(PlainOrder(11, shuffle=False))
    options = {"sampler": sampler, "num_workers": 1, "collate_fn": list}
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(error):
            for _ in sampler.track(DataLoader(dataset, **options)):
                pass
        batches = sampler.track(DataLoader(Places(11), **options))
        next(batches)
        kinds = [type(each) for each in gc.get_objects()]
    finally:
        gc.enable()
    batches.close()
    # Where it is collected in a worker, it may wait there for ever.
    assert kinds.count(_MultiProcessingDataLoaderIter) == 1


@pytest.mark.torch
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_look_at_another_batch_does_not_hold_up_the_epoch(workers, drop_last):
    sampler, loader = loader_of(ORDERS["plain"], 0, 1, workers, drop_last=drop_last)
    seen = []
    for step, batch in enumerate(sampler.track(loader)):
        seen += [place[2] for place in batch]
        if step == 1:  # whose samples are taken, and count for nothing
            assert [place[2] for place in next(iter(loader))] == [4, 5]
    assert seen == list(range(10 if drop_last else 11))
    assert (sampler.epoch, sampler.state_dict()["position"]) == (1, 0)


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_that_a_batch_sampler_cuts_short_is_over(workers):
    from torch.utils.data import BatchSampler, DataLoader

    class Fewer(BatchSampler):
        """Gives three batches of an epoch."""

        def __iter__(self):
            return itertools.islice(super().__iter__(), 3)

    sampler = ResumableSampler(PlainOrder(11))
    loader = DataLoader(
        Places(11),
        batch_sampler=Fewer(sampler, 2, drop_last=False),
        num_workers=workers,
        collate_fn=list,
    )
    for epoch in (1, 2):
        assert len(list(sampler.track(loader))) == 3
        assert sampler.epoch == epoch


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("sizes", [[2, 4, 4, 2], [4, 4, 2, 2], [6, 6]])
def test_batches_of_another_size_than_is_said_are_refused(sizes, workers):
    from torch.utils.data import BatchSampler, DataLoader

    class Uneven(BatchSampler):
        def __iter__(self):
            indices = iter(self.sampler)
            for size in sizes:
                yield list(itertools.islice(indices, size))

    sampler = ResumableSampler(PlainOrder(12))
    batch_sampler = Uneven(sampler, 4, drop_last=False)
    loader = DataLoader(
        Places(12), batch_sampler=batch_sampler, num_workers=workers, collate_fn=list
    )
    with pytest.raises((ValueError, RuntimeError), match=r"other sizes|never came"):
        list(sampler.track(loader))
    assert sampler.epoch == 0, "nobody may take it for whole"


@pytest.mark.torch
def test_a_loader_without_batches_counts_samples():
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(PlainOrder(5))
    loader = DataLoader(Places(5), batch_size=None, sampler=sampler)
    for count, _ in enumerate(sampler.track(loader), 1):
        assert sampler.state_dict()["position"] == count


@pytest.mark.torch
def test_a_loader_of_another_sampler_is_refused():
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(range(5))
    with pytest.raises(ValueError, match="another sampler"):
        next(sampler.track(DataLoader(Places(5), batch_size=2)))
    with pytest.raises(ValueError, match="another sampler"):
        next(sampler.track([0, 1]))  # no loader at all


@pytest.mark.torch
def test_workers_whose_batches_come_in_any_order_are_refused():
    from torch.utils.data import DataLoader

    if "in_order" not in inspect.signature(DataLoader).parameters:
        pytest.skip("this torch gives batches in their order only")
    sampler, loader = loader_of(ORDERS["plain"], 0, 1, 2, in_order=False)
    with pytest.raises(ValueError, match="leave in_order=False away"):
        next(sampler.track(loader))
    sampler, loader = loader_of(ORDERS["plain"], 0, 1, 0, in_order=False)
    assert len(list(sampler.track(loader))) == 6  # no workers: there is one order


@pytest.mark.torch
def test_the_same_pixels_come_from_any_number_of_workers(make_directory):
    import torch
    from torch.utils.data import DataLoader

    from gulpio2.sampling import sample_window
    from gulpio2.torch import GulpClipDataset, default_collate

    folder = make_directory(counts=[9] * 8)

    def clips(workers, stop=None):
        dataset = GulpClipDataset(
            folder,
            partial(sample_window, clip_length=3),
            transform=add_noise,
            target="idx",
        )
        sampler = ResumableSampler(dataset, seed=6)
        if stop is not None:
            sampler.cursor.advance(stop)
        loader = DataLoader(
            dataset,
            batch_size=2,
            sampler=sampler,
            num_workers=workers,
            collate_fn=default_collate,
        )
        return [clip for batch, _ in sampler.track(loader) for clip in batch]

    alone = clips(0)
    assert len(alone) == 8
    for workers, stop in [(2, None), (1, 4), (0, 2)]:
        others = clips(workers, stop)
        for one, other in zip(alone[stop or 0 :], others, strict=True):
            assert torch.equal(one, other)


def add_noise(clip):
    import torch

    return clip.float() + torch.rand(1)


# ---------------------------------------------------------------- workers
@pytest.mark.torch
def test_each_worker_of_each_rank_is_seeded_on_its_own():
    import torch

    def drawn():
        numbers = random.random(), np.random.rand(), torch.rand(1).item()
        return tuple(round(number, 6) for number in numbers)

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        seen = []
        for rank, worker in itertools.product(range(2), range(3)):
            worker_init_fn(worker, num_workers=3, rank=rank, seed=40)
            seen.append(drawn())
        worker_init_fn(1, 3, 1, 40)
        assert drawn() == seen[4]
        assert len(set(seen)) == 6
        torch.manual_seed(44)
        random.seed(44)
        np.random.seed(44)
        assert drawn() == seen[4]
        # A seed may be of numpy's, of few bits, and any number, as that of a sampler.
        seeds: list[Any] = [np.int64(40), np.int8(124), 2**64 - 1, -(2**70), "40"]
        for seed in seeds[:4]:
            worker_init_fn(1, 3, 1, seed)
            seen.append(drawn())
        assert seen[6] == seen[4]
        assert len(set(seen)) == 9
        with pytest.raises(TypeError, match="seed is '40', expected a whole number"):
            worker_init_fn(1, 3, 1, seeds[4])
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


# ---------------------------------------------------------------- a process group
@pytest.mark.torch
def test_two_real_ranks_share_a_seed_and_an_epoch(python, tmp_path):
    program = """
import json, sys
import torch.distributed as distributed
from gulpio2.torch import DefaultSampler, ResumableSampler
rank = int(sys.argv[1])
distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2
)
sampler = DefaultSampler(range(6))
exact = ResumableSampler(range(6), seed=1)
print(json.dumps([sampler.seed, list(sampler), list(exact)]))
distributed.destroy_process_group()
"""
    processes = [
        subprocess.Popen(
            [python, "-c", program, str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert told[0][0] == told[1][0]
    for shares in ([told[0][1], told[1][1]], [told[0][2], told[1][2]]):
        assert sorted(shares[0] + shares[1]) == list(range(6))


@pytest.mark.torch
def test_ranks_that_are_launched_and_not_yet_a_group_are_warned_of(python, tmp_path):
    program = """
import os, sys
import torch.distributed as distributed
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import *
make_gulp_directory("out", num_items=4)
clips = GulpClipDataset("out", partial(sample_window, clip_length=2))
sizes = "1", "many", "2"
for os.environ["WORLD_SIZE"] in sizes:
    print(os.environ["WORLD_SIZE"], file=sys.stderr, flush=True)
    loader = GulpLoader(clips, batch_size=1, output="numpy", threads=0)
    sampler = ResumableSampler(clips)
    old = DefaultSampler(clips, seed=1)
    print(len(loader), len(sampler), len(old), len(list(sampler)), len(list(loader)))
    GulpLoader(clips, batch_size=1, output="numpy", threads=0, rank=1, num_ranks=2)
    ResumableSampler(clips, rank=1, num_ranks=2)
distributed.init_process_group(
    "gloo", store=distributed.HashStore(), rank=0, world_size=1
)
for os.environ["WORLD_SIZE"] in sizes:
    ResumableSampler(clips)
distributed.destroy_process_group()
"""
    done = subprocess.run(
        [python, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "RANK": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == 3 * "4 4 4 4 4\n"
    alone, _, told_of_two = done.stderr.partition("2\n")
    assert alone.endswith("1\nmany\n")
    assert "WORLD_SIZE" not in alone
    told = [line for line in told_of_two.splitlines() if "WORLD_SIZE" in line]
    assert [line.partition(" ")[0] for line in told] == [
        "GulpLoader",
        "ResumableSampler",
        "DefaultSampler",
    ]
    assert told[0] == (
        "GulpLoader was made before torch.distributed was initialised, and WORLD_SIZE "
        "is 2: every rank gets all samples instead of its share. Make the GulpLoader "
        "after torch.distributed.init_process_group(), or give it rank= and num_ranks="
    )
    assert told[2].endswith("init_process_group()")  # it takes no ranks


# ---------------------------------------------------------------- without torch
def test_ranks_are_warned_of_before_torch_is_loaded(python, tmp_path):
    program = """
import sys
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import GulpClipDataset, GulpLoader
make_gulp_directory("out", num_items=4)
clips = GulpClipDataset("out", partial(sample_window, clip_length=2))
GulpLoader(clips, batch_size=1, output="numpy")
GulpLoader(clips, batch_size=1, output="numpy", rank=1, num_ranks=2)
assert "torch" not in sys.modules
"""
    done = subprocess.run(
        [python, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "RANK": "1", "WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in done.stderr.splitlines() if "WORLD_SIZE" in line]
    assert len(told) == 1
    assert "every rank gets all samples" in told[0]


def test_everything_but_tensors_works_without_torch(python, tmp_path):
    program = """
import sys
sys.modules["torch"] = None
import json
from gulpio2.errors import MissingDependencyError
from gulpio2.torch import *
from gulpio2.testing import make_gulp_directory
make_gulp_directory("out", num_items=3)
dataset = ConcatDataset([GulpDataset("out"), RepeatDataset(GulpDataset("out"), 2)])
print(len(dataset), dataset[4]["id"], sorted(DefaultSampler(dataset, seed=1)))
print(pseudo_collate([dataset[0], dataset[1]])["id"])
print(len(list(ResumableSampler(dataset))))
try:
    GulpImageDataset("out")[0]
except MissingDependencyError as error:
    print("pip install 'gulpio2[torch]'" in str(error))
"""
    done = subprocess.run(
        [python, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "9 item1 [0, 1, 2, 3, 4, 5, 6, 7, 8]",
        "['item0', 'item1']",
        "9",
        "True",
    ]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, by_pickle])
def test_a_copy_has_a_place_in_the_run_of_its_own(again):
    sampler = ResumableSampler(PlainOrder(6, seed=3), rank=0, num_ranks=1)
    sampler.cursor.advance(2)
    other = again(sampler)
    assert list(other) == list(sampler)
    other.cursor.advance(3)
    assert (other.samples_left, sampler.samples_left) == (1, 4)


def test_giving_the_same_samples_again_is_told_where_nobody_tracks_them():
    torch = pytest.importorskip("torch")
    sampler = ResumableSampler(PlainOrder(6, seed=3), rank=0, num_ranks=1)
    loader = torch.utils.data.DataLoader(range(6), batch_size=2, sampler=sampler)
    next(iter(sampler))  # not to its end
    first = list(loader)
    with pytest.warns(GulpWarning, match=r"same samples again.* by track\(\) alone"):
        again = list(loader)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in first]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert len(list(sampler.track(loader))) == 3
        sampler.set_epoch(7)
        list(sampler)


def test_a_state_that_a_loader_keeps_of_its_own_is_refused():
    # As torchdata's StatefulDataLoader does it, which is not among the packages here.
    def keep(sampler, places):
        return {"sampler": sampler.state_dict(), "places": places.state_dict()}

    def go_on(sampler, state):
        sampler.load_state_dict(state["sampler"])
        places = iter(sampler)
        places.load_state_dict(state["places"])
        return places

    sampler = ResumableSampler(PlainOrder(6, seed=3), rank=0, num_ranks=1)
    places = iter(sampler)
    assert [next(places), next(places)] == list(sampler)[:2]
    with pytest.raises(RuntimeError, match=r"come again: save state_dict\(\) of the s"):
        go_on(sampler, keep(sampler, places))
    assert len([*places]) == 4


@pytest.mark.torch
def test_an_order_over_other_samples_than_the_loader_has_is_refused():
    from torch.utils.data import DataLoader

    for count in (3, 60):
        sampler = ResumableSampler(PlainOrder(count))
        loader = DataLoader(range(6), batch_size=2, sampler=sampler)
        with pytest.raises(ValueError, match=f"draws from {count} samples, and the"):
            next(sampler.track(loader))


@pytest.mark.parametrize("options", [{"seed": 1}, {"shuffle": False}])
def test_a_seed_beside_an_order_that_has_its_own_is_refused(options):
    with pytest.raises(ValueError, match=r"and PlainOrder\(6, .* has its own"):
        ResumableSampler(PlainOrder(6, seed=3), **options)
    ResumableSampler(PlainOrder(6, seed=3, shuffle=False), seed=3, shuffle=False)


def test_what_is_neither_order_nor_dataset_is_refused():
    with pytest.raises(TypeError, match=r"order is 5, expected one of gulpio2\.order"):
        ResumableSampler(5)  # type: ignore[arg-type]  # refused


@pytest.mark.torch
def test_a_wrapper_that_loses_the_places_of_samples_is_told(make_directory):
    from torch.utils.data import DataLoader, Dataset, StackDataset, Subset

    path = make_directory(counts=(8,) * 4)
    dataset = whole = GulpClipDataset(path, partial(sample_window, clip_length=2))

    def batches_of(wrapped):
        sampler = ResumableSampler(wrapped)
        return list(sampler.track(DataLoader(wrapped, batch_size=2, sampler=sampler)))

    wrapped: Any
    for wrapped in (
        Subset(dataset, [0, 1, 2]),
        Subset(Subset(dataset, [0, 1, 2]), [0, 1]),
        torch_concat([dataset, dataset]),
        StackDataset(Subset(dataset, [0, 1])),
        StackDataset(clip=StackDataset(dataset, torch_concat([dataset]))),
        StackDataset(torch_concat([Subset(dataset, [0, 1])])),
    ):
        with pytest.warns(GulpWarning, match=r"torch\..* hands plain numbers on"):
            batches_of(wrapped)

    class Wrapper(Dataset[Any]):
        """Hands indices on as they are, and has something called as elsewhere."""

        dataset, datasets = whole, np.arange(3)

        def __len__(self):
            return len(self.dataset)

        def __getitem__(self, index):
            return self.dataset[index]

    in_test = GulpClipDataset(path, dataset.sampler, test_mode=True)
    fine = (dataset, RepeatDataset(dataset, 2), dataset.get_subset([1, 2]), Wrapper())
    stacked = StackDataset(dataset, Subset(in_test, range(4)))
    circle: Any = Wrapper()
    circle.datasets = [circle]
    for wrapped in (*fine, Subset(in_test, [0, 1]), stacked, circle):
        assert batches_of(wrapped)  # a warning would be an error


def torch_concat(datasets):
    from torch.utils.data import ConcatDataset

    return ConcatDataset(datasets)


def mixture(parts, weights, seed=0):
    return MixtureDataset(parts, weights, length=10, seed=seed)


def categories_of(path, categories, threshold):
    class Labelled(GulpClipDataset):
        def get_cat_ids(self, idx):
            return [categories[idx]]

    inner = Labelled(path, partial(sample_window, clip_length=2))
    return ClassBalancedDataset(inner, threshold)


def test_a_state_goes_with_the_rule_by_which_samples_are_chosen(make_directory):
    path = make_directory(counts=(8,) * 6)
    parts = [GulpClipDataset(path, partial(sample_window, clip_length=2))] * 2
    rare_first = categories_of(path, [0, 1, 1, 1, 1, 1], 0.5)
    rare_last = categories_of(path, [1, 1, 1, 1, 1, 0], 0.5)
    assert len(rare_first) == len(rare_last) == 7
    others = [
        (mixture(parts, [1, 1]), mixture(parts, [1, 9])),
        (mixture(parts, [1, 1]), mixture(parts, [1, 1], seed=1)),
        (rare_first, rare_last),
        (RepeatDataset(rare_first, 2), RepeatDataset(rare_last, 2)),
        (ConcatDataset([rare_first] * 2), ConcatDataset([rare_first, rare_last])),
    ]
    options: Any = {"batch_size": 2, "output": "numpy", "threads": 0}
    for one, other in others:
        state = ResumableSampler(one).state_dict()
        GulpLoader(one, **options).load_state_dict(state)
        for refusing in (ResumableSampler(other), GulpLoader(other, **options)):
            with pytest.raises(ValueError, match="another order"):
                refusing.load_state_dict(state)


def test_a_state_of_a_plain_dataset_is_that_of_its_number_of_samples(make_directory):
    path = make_directory(counts=(8,) * 6)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=2))
    state = ResumableSampler(RepeatDataset(dataset, 2)).state_dict()
    assert state == ResumableSampler(range(12)).state_dict()
