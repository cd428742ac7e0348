"""Damaged samples of a DataLoader: what is done about them, and what is counted."""

from __future__ import annotations

import errno
import itertools
import logging
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import CorruptFrameError, SampleIndexError, StorageError
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    ConcatDataset,
    GulpClipDataset,
    GulpLoader,
    RecyclingCollate,
    RepeatDataset,
    ResumableSampler,
    TolerantCollate,
    TolerantDataset,
    default_collate,
    pseudo_collate,
)
from tests.torch.troubles import damage, fail_reads

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # few cores here
    # Python 3.12 on: torch has threads, and its loader forks.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

BAD = (1, 4)
NUM_ITEMS = 9
POLICIES = ["skip", "substitute"]


def clips_of(path):
    return GulpClipDataset(path, partial(sample_window, clip_length=4), target="id")


@pytest.fixture
def damaged(make_directory):
    """Make a dataset of nine items, of which the second and the fifth are damaged."""
    path = make_directory(counts=(8,) * NUM_ITEMS)
    damage(path, BAD)
    return clips_of(path)


def loader_of(dataset, how, *, collate=default_collate, share=None, **options: Any):
    """Make a sampler, and a loader that has a rule for damage."""
    from torch.utils.data import DataLoader

    own = {"shuffle", "max_corrupt"} & options.keys()
    sampler = ResumableSampler(
        dataset, seed=6, **(share or {}), **{name: options.pop(name) for name in own}
    )
    loader = DataLoader(
        TolerantDataset(dataset, on_corrupt=how),
        sampler=sampler,
        collate_fn=TolerantCollate(collate),
        **{"batch_size": 2, **options},
    )
    return sampler, loader


def of_gulp_loader(dataset, how, share=None):
    """Give the batches of a GulpLoader, and the state after each."""
    loader = GulpLoader(
        dataset,
        batch_size=2,
        seed=6,
        layout="TCHW",
        on_corrupt=how,
        threads=1,
        **(share or {}),
    )
    return [
        (list(batch.targets), batch.clips.clone(), loader.state_dict())
        for batch in loader
    ]


def of_data_loader(sampler, loader):
    """Give the same of a DataLoader."""
    found = []
    for batch in sampler.track(loader):
        clips, targets = batch if batch else (None, [])
        clips = None if clips is None else clips.clone()
        found.append((targets, clips, sampler.state_dict()))
    return found


def assert_same(mine, wanted):
    assert len(mine) == len(wanted)
    for (targets, clips, state), (names, pixels, wanted_state) in zip(
        mine, wanted, strict=True
    ):
        assert targets == names
        assert state == wanted_state
        if names:
            assert clips.shape == pixels.shape
            assert clips.equal(pixels)
        else:
            assert clips is None


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", POLICIES)
def test_batches_and_counts_are_those_of_a_gulp_loader(damaged, how, workers):
    wanted = of_gulp_loader(damaged, how)
    sampler, loader = loader_of(damaged, how, num_workers=workers)
    assert_same(of_data_loader(sampler, loader), wanted)
    counts = sampler.num_skipped, sampler.num_substituted
    assert counts == ((2, 0) if how == "skip" else (0, 2))
    assert sampler.epoch == 1


@pytest.mark.parametrize("how", POLICIES)
def test_spawned_workers_have_the_rule_too(damaged, how):
    options = {"num_workers": 1, "multiprocessing_context": "spawn"}
    sampler, loader = loader_of(damaged, how, **options)
    assert_same(of_data_loader(sampler, loader), of_gulp_loader(damaged, how))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", POLICIES)
def test_memory_that_is_used_again_holds_the_same(tmp_path, how, workers):
    from gulpio2.testing import make_gulp_directory

    path = tmp_path / "large"  # whose batches are large enough to be sent in slots
    make_gulp_directory(
        path, num_items=NUM_ITEMS, num_frames=8, height=64, width=96
    ).close()
    damage(path, BAD, name="item")
    dataset = clips_of(path)
    sampler, loader = loader_of(
        dataset, how, num_workers=workers, collate=RecyclingCollate()
    )
    assert_same(of_data_loader(sampler, loader), of_gulp_loader(dataset, how))


@pytest.mark.parametrize("how", POLICIES)
def test_each_rank_has_what_a_gulp_loader_of_it_has(damaged, how):
    total, places = 0, []
    for rank in range(2):
        share = {"rank": rank, "num_ranks": 2}
        sampler, loader = loader_of(damaged, how, share=share)
        mine = of_data_loader(sampler, loader)
        assert_same(mine, of_gulp_loader(damaged, how, share))
        total += sampler.num_skipped + sampler.num_substituted
        places.append([state["position"] for _, _, state in mine])
    assert places[0] == places[1]  # in step, whatever was left out
    assert total == 2


@pytest.mark.parametrize("how", POLICIES)
def test_a_run_is_taken_up_after_any_batch(damaged, how):
    sampler, loader = loader_of(damaged, how)
    whole = of_data_loader(sampler, loader)
    for stop in range(1, len(whole)):
        sampler, loader = loader_of(damaged, how, num_workers=stop % 2)
        batches = sampler.track(loader)
        for _ in range(stop):
            next(batches)
        state = sampler.state_dict()  # the worker is further
        batches.close()
        assert state == whole[stop - 1][2]
        resumed, loader = loader_of(damaged, how)
        resumed.load_state_dict(state)
        assert_same(of_data_loader(resumed, loader), whole[stop:])


def test_a_state_without_counts_has_none(damaged):
    sampler, loader = loader_of(damaged, "skip")
    list(sampler.track(loader))
    older = {
        name: value
        for name, value in sampler.state_dict().items()
        if name not in ("skipped", "substituted", "counts", "damaged")
    }
    sampler.load_state_dict(older)
    assert (sampler.num_skipped, sampler.num_substituted) == (0, 0)


def test_a_batch_of_which_all_is_damaged_is_an_empty_list(make_directory):
    path = make_directory(counts=(8,) * 4)
    damage(path, (0, 1))
    sampler, loader = loader_of(clips_of(path), "skip", shuffle=False)
    batches = sampler.track(loader)
    assert next(batches) == []
    assert sampler.state_dict()["position"] == 2
    assert next(batches)[1] == ["clip2", "clip3"]


@pytest.mark.parametrize("how", POLICIES)
def test_substitutes_come_from_the_same_inner_dataset(make_directory, how):
    first, second = (
        make_directory(name, counts=(8,) * 3) for name in ("first", "second")
    )
    damage(second, (0, 1), name="second")
    parts = [clips_of(path) for path in (first, second)]
    joined = RepeatDataset(ConcatDataset(parts), times=2)
    # The two damaged ones, met twice each, are two.
    sampler, loader = loader_of(joined, how, max_corrupt=2)
    assert_same(of_data_loader(sampler, loader), of_gulp_loader(joined, how))
    assert sampler.num_skipped + sampler.num_substituted == 4


def test_a_wrapper_that_makes_its_samples_makes_the_substitutes(damaged):
    class Named(RepeatDataset):
        def __getitem__(self, idx):
            return "mine", super().__getitem__(idx)[1]

    sampler, loader = loader_of(
        ConcatDataset([Named(damaged, times=1)]), "substitute", collate=list
    )
    made = list(itertools.chain.from_iterable(sampler.track(loader)))
    assert len(made) == NUM_ITEMS
    assert {name for name, _ in made} == {"mine"}
    assert sampler.num_substituted == 2


def test_damage_is_logged(damaged, caplog):
    sampler, loader = loader_of(damaged, "skip", shuffle=False)
    with caplog.at_level(logging.WARNING, logger="gulpio2"):
        list(sampler.track(loader))
        TolerantDataset(damaged, on_corrupt="skip")[4]
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(", frame")[0] for text in texts] == [
        "epoch 0, position 1: sample left out: item 'clip1'",
        "epoch 0, position 4: sample left out: item 'clip4'",
        "sample 4 left out: item 'clip4'",
    ]


@pytest.mark.parametrize("workers", [0, 1])
def test_damage_raises_without_a_rule(damaged, workers):
    sampler, loader = loader_of(damaged, "raise", shuffle=False, num_workers=workers)
    with pytest.raises(CorruptFrameError, match="item 'clip1'"):
        list(sampler.track(loader))
    assert sampler.state_dict()["position"] == 0


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", POLICIES)
def test_many_damaged_samples_are_no_few_damaged_samples(damaged, how, workers):
    sampler, loader = loader_of(damaged, how, max_corrupt=2, num_workers=workers)
    for _ in range(3):  # the same two each epoch
        assert len(list(sampler.track(loader))) == 5
    sampler, loader = loader_of(
        damaged, how, max_corrupt=1, shuffle=False, num_workers=workers
    )
    batches = sampler.track(loader)
    next(batches)
    next(batches)
    with pytest.raises(
        CorruptFrameError, match=r"clip.*More than 1 sample is dam.*max_cor"
    ):
        next(batches)
    state = sampler.state_dict()  # of what was given out
    assert (state["position"], state["skipped"] + state["substituted"]) == (4, 1)


def test_a_number_of_damaged_samples_is_a_whole_number():
    with pytest.raises(ValueError, match="max_corrupt is -1"):
        ResumableSampler(range(3), max_corrupt=-1)


def test_it_gives_up_where_nothing_can_stand_in(make_directory):
    path = make_directory(counts=(8, 8))
    damage(path, (0, 1))
    sampler, loader = loader_of(clips_of(path), "substitute")
    with pytest.raises(CorruptFrameError):
        list(sampler.track(loader))


@pytest.mark.parametrize("how", POLICIES)
def test_a_disk_that_refuses_everything_is_no_damage(damaged, how):
    class Reader(GulpDirectory):
        def read_clip(self, *_: Any, **__: Any):
            raise StorageError(errno.EACCES, "no permission")

    dataset = clips_of(Reader(damaged.source.readers[0].output_dir))
    sampler, loader = loader_of(dataset, how)
    with pytest.raises(StorageError, match="no permission"):
        list(sampler.track(loader))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"collate_fn": default_collate},
        {"collate_fn": pseudo_collate},
        {"collate_fn": RecyclingCollate()},
        {"collate_fn": lambda samples: [clip for clip, _ in samples]},
        {"batch_size": None},
    ],
    ids=["torch", "default", "pseudo", "recycling", "own", "none"],
)
def test_another_collate_function_is_told_which_to_use(damaged, options, workers):
    from torch.utils.data import DataLoader

    dataset = TolerantDataset(damaged, on_corrupt="skip")
    good = [0, 2, 3]  # the first batch says so, not the first damaged one
    arguments = {"batch_size": 2, "num_workers": workers, **options}
    with pytest.raises(ValueError, match=r"collate_fn=TolerantCollate\(\)"):
        next(iter(DataLoader(dataset, sampler=good, **arguments)))


def test_without_track_nobody_would_count(damaged):
    _, loader = loader_of(damaged, "skip")
    with pytest.raises(ValueError, match=r"iterate by the track\(loader\)"):
        for _clips, _targets in loader:
            pass


def test_the_collate_function_wants_batches_of_such_a_dataset(damaged):
    collate = TolerantCollate()
    with pytest.raises(TypeError, match=r"give the DataLoader TolerantDataset\("):
        collate([damaged[0]])
    with pytest.raises(TypeError, match="give the DataLoader a batch_size"):
        collate(TolerantDataset(damaged)[0])
    assert TolerantCollate(None).collate is default_collate
    with pytest.raises(TypeError, match="collate is 3, expected something that can"):
        TolerantCollate(3)  # type: ignore[arg-type]  # what the test is about


def test_substitutes_need_the_place_in_the_run(damaged):
    dataset = TolerantDataset(damaged, on_corrupt="substitute")
    with pytest.raises(TypeError, match=r"sampler=ResumableSampler\("):
        dataset[0]  # also where nothing is damaged


def test_it_is_the_outermost_dataset_and_there_is_one(damaged):
    with pytest.raises(TypeError, match="wrap the outermost dataset only"):
        TolerantDataset(ConcatDataset([TolerantDataset(damaged)]))
    with pytest.raises(TypeError, match="a TolerantDataset inside of this ConcatData"):
        ConcatDataset([TolerantDataset(damaged), TolerantDataset(damaged)])
    with pytest.raises(ValueError, match="on_corrupt is 'ignore'; it must be one of"):
        TolerantDataset(damaged, on_corrupt="ignore")  # type: ignore[arg-type]  # too


def test_a_gulp_loader_has_a_rule_of_its_own(damaged):
    with pytest.raises(TypeError, match="the dataset inside, and on_corrupt"):
        GulpLoader(TolerantDataset(damaged), batch_size=2)


@pytest.mark.parametrize("how", POLICIES)
def test_a_damaged_sample_that_was_fetched_for_another_is_the_one_that_is_told(
    damaged, how
):
    taken = {f"clip{number}" for number in (0, *BAD)}
    damaged.transform = None
    damaged.pipeline.transforms.append(
        lambda sample: sample if sample["id"] in taken else None
    )
    sampler, loader = loader_of(
        damaged, how, collate=pseudo_collate, max_corrupt=len(BAD)
    )
    for _ in range(2):
        for _ in sampler.track(loader):
            pass
    state = sampler.state_dict()
    assert state["damaged"] == [[0, 0, number] for number in BAD]
    assert state["skipped" if how == "skip" else "substituted"] > len(BAD)


def test_it_is_a_wrapper_as_others(damaged):
    dataset = pickle.loads(pickle.dumps(TolerantDataset(damaged, lazy_init=True)))
    dataset.full_init()
    assert len(dataset) == NUM_ITEMS
    assert dataset.get_data_info(3)["id"] == "clip3"
    assert dataset.metainfo == damaged.metainfo
    assert repr(dataset[0]) == "<sample 0 of a TolerantDataset, undamaged>"
    inside, place = dataset.locate(np.int64(-1))
    assert (inside, place, type(place)) == (dataset.dataset, NUM_ITEMS - 1, int)
    with pytest.raises(SampleIndexError, match=f"sample {NUM_ITEMS} of a dataset of"):
        dataset.locate(NUM_ITEMS)


def test_batches_are_pinned_as_others_are(damaged):
    class Pinned:
        def pin_memory(self):
            return "pinned"

    dataset = TolerantDataset(damaged)
    batch = TolerantCollate(lambda _: Pinned())([dataset[0]])
    assert batch.pin_memory().batch == "pinned"


@pytest.mark.parametrize("how", POLICIES)
def test_an_error_of_reading_that_passes_is_no_damage(damaged, monkeypatch, how):
    sound = damaged.get_subset([0, 2, 3, 5])
    wanted = of_gulp_loader(sound, how)
    sampler, loader = loader_of(sound, how)
    fail_reads(monkeypatch, "pread", "preadv", times=1)
    assert_same(of_data_loader(sampler, loader), wanted)
    assert (sampler.num_skipped, sampler.num_substituted) == (0, 0)


@pytest.mark.parametrize("how", POLICIES)
def test_a_file_that_cannot_be_opened_is_no_damage(damaged, monkeypatch, how):
    sampler, loader = loader_of(clips_of(damaged.source.readers[0].output_dir), how)
    fail_reads(monkeypatch, "open", times=1)
    with pytest.raises(StorageError, match=r"cannot open .*: Input/output error"):
        of_data_loader(sampler, loader)
    assert (sampler.num_skipped, sampler.num_substituted) == (0, 0)
