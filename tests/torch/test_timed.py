"""Where the time of a DataLoader goes: what is counted, and what is advised."""

from __future__ import annotations

import copy
import pickle
import time
import warnings
from functools import partial
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.sampling import sample_window
from gulpio2.stopwatch import STOPWATCH
from gulpio2.storage.handles import HandlePool
from gulpio2.torch import (
    GulpClipDataset,
    GulpDataset,
    RecyclingCollate,
    ResumableSampler,
    TimedCollate,
    TolerantCollate,
    TolerantDataset,
    default_collate,
    profile,
)
from tests.torch.troubles import damage

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # few cores here
    # Python 3.12 on: torch has threads, and its loader forks.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

NUM_ITEMS = 12
NAP = 0.02


@pytest.fixture
def folder(make_directory):
    return make_directory(counts=(8,) * NUM_ITEMS)


@pytest.fixture(autouse=True)
def _off_afterwards():
    yield
    STOPWATCH.is_on = False


def clips_of(path, **options: Any):
    return GulpClipDataset(
        path, partial(sample_window, clip_length=4), target="id", **options
    )


def loader_of(dataset, collate=None, **options: Any):
    """Make a sampler, and a loader that measures."""
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(dataset, seed=1)
    loader: Any = DataLoader(
        dataset,
        sampler=sampler,
        collate_fn=collate or TimedCollate(),
        **{"batch_size": 3, **options},
    )
    return sampler, loader


def profile_of(sampler, loader):
    """Go through an epoch, and give where the time went."""
    start = time.perf_counter()
    for _ in sampler.track(loader):
        pass
    elapsed = time.perf_counter() - start
    found = sampler.profile()
    parts = (
        found.storage_seconds,
        found.decode_seconds,
        found.transform_seconds,
        found.collate_seconds,
        found.other_seconds,
        found.waiting_for_consumer_seconds,
    )
    assert min(parts) >= 0
    assert sum(parts) <= elapsed * max(1, loader.num_workers)
    assert found.seconds <= elapsed
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 0},
        {"num_workers": 1},
        {"num_workers": 2},
        {"num_workers": 1, "multiprocessing_context": "spawn"},
    ],
    ids=str,
)
@pytest.mark.parametrize("recycled", [False, True])
def test_it_counts_what_was_read_for_the_batches(folder, options, recycled):
    dataset = clips_of(folder)
    collate = TimedCollate(RecyclingCollate() if recycled else default_collate)
    found = profile_of(*loader_of(dataset, collate, **options))
    assert found.is_of_workers
    assert found.num_threads == options["num_workers"]
    assert found.num_batches == NUM_ITEMS / 3
    assert found.num_samples == NUM_ITEMS
    assert found.num_frames == 4 * NUM_ITEMS
    with GulpDirectory(folder) as directory:
        items = map(directory.item, directory.merged_meta_dict)
        total = sum(item.num_bytes for item in items)
    assert total / 4 < found.num_bytes < total
    assert found.storage_seconds > 0
    assert found.decode_seconds > 0
    assert found.collate_seconds > 0
    text = str(found)
    for word in ("workers", "storage", "decode", "transform", "collate", "for data"):
        assert word in text
    assert text.endswith(f"change first: {found.advice}")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["alone", "outside", "inside"])
def test_batches_and_counts_are_what_they_are_without(folder, workers, how):
    damage(folder, [2, 5])
    dataset, collate = clips_of(folder), default_collate
    wanted: list[Any] = []
    if how == "alone":
        dataset = dataset.get_subset([0, 1, 3, 4, 6])
    else:
        dataset = TolerantDataset(dataset, on_corrupt="substitute")
        collate = TolerantCollate(collate)
    sampler, loader = loader_of(dataset, collate, num_workers=workers)
    wanted = [(*batch, sampler.state_dict()) for batch in sampler.track(loader)]
    timed: Any = TimedCollate(collate)
    if how == "inside":
        timed = TolerantCollate(TimedCollate(default_collate))
    sampler, loader = loader_of(dataset, timed, num_workers=workers)
    for (clips, names, state), batch in zip(wanted, sampler.track(loader), strict=True):
        assert batch[0].equal(clips)
        assert batch[1] == names
        assert sampler.state_dict() == state
    assert sampler.profile().num_samples == len(dataset)


def test_batches_are_pinned_as_others_are(folder):
    import torch

    sampler, loader = loader_of(clips_of(folder), pin_memory=True)
    with warnings.catch_warnings():
        # Without a device, which is where it matters, torch says so and pins nothing.
        warnings.simplefilter("ignore", UserWarning)
        for clips, _ in sampler.track(loader):
            assert clips.is_pinned() == torch.cuda.is_available()
    assert sampler.profile().num_samples == NUM_ITEMS


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_transform_is_told(folder, workers, monkeypatch):
    monkeypatch.setattr(profile, "usable_cores", lambda: workers)

    def transform(clip):
        time.sleep(NAP)
        return clip

    found = profile_of(
        *loader_of(clips_of(folder, transform=transform), num_workers=workers)
    )
    assert found.transform_seconds >= NUM_ITEMS * NAP
    assert found.decode_seconds < found.transform_seconds
    assert found.advice.startswith("transform of the dataset: ")


def test_a_pipeline_is_a_transform_but_for_what_it_reads(folder, monkeypatch):
    monkeypatch.setattr(profile, "usable_cores", lambda: 0)
    directory = GulpDirectory(folder)
    read_several = HandlePool.read_several

    def read_slowly(*arguments):
        time.sleep(NAP)
        return read_several(*arguments)

    def read(info):
        time.sleep(NAP / 4)
        return directory.read_clip(info["id"], [0, 3])

    monkeypatch.setattr(HandlePool, "read_several", read_slowly)
    found = profile_of(*loader_of(GulpDataset(folder, pipeline=[read])))
    assert found.num_frames == 2 * NUM_ITEMS
    assert found.storage_seconds >= NUM_ITEMS * NAP
    assert NUM_ITEMS * NAP / 4 <= found.transform_seconds < found.storage_seconds
    assert found.advice.startswith("num_workers: they mostly wait for storage")


def test_other_samples_are_collated_and_no_more(tmp_path):
    del tmp_path

    class Numbers:
        def __len__(self):
            return 6

        def __getitem__(self, index):
            time.sleep(NAP)
            return float(index)

    found = profile_of(*loader_of(Numbers()))
    assert (found.num_samples, found.num_frames) == (6, 0)
    assert 0 < found.collate_seconds < NAP


def test_metadata_and_targets_are_other(folder, monkeypatch):
    monkeypatch.setattr(profile, "usable_cores", lambda: 0)
    dataset = clips_of(folder)

    def target(info):
        time.sleep(NAP)
        return info["id"]

    dataset.target = target
    found = profile_of(*loader_of(dataset))
    assert found.other_seconds >= NUM_ITEMS * NAP
    assert found.advice.startswith("sampler and target of the dataset")


def test_collating_is_told_first(folder, monkeypatch):
    monkeypatch.setattr(profile, "usable_cores", lambda: 64)

    def collate(batch):
        time.sleep(NAP)
        return default_collate(batch)

    found = profile_of(
        *loader_of(clips_of(folder), TimedCollate(collate), num_workers=1)
    )
    assert found.collate_seconds >= NAP * NUM_ITEMS / 3
    assert found.advice.startswith("collate_fn: a RecyclingCollate")
    alone = profile_of(*loader_of(clips_of(folder), TimedCollate(collate)))
    assert alone.advice.startswith("num_workers: collate takes most")  # no such memory


def test_a_slow_consumer_is_told_that_it_sets_the_pace(folder):
    sampler, loader = loader_of(clips_of(folder), num_workers=1, batch_size=1)
    for number, _ in enumerate(sampler.track(loader)):
        time.sleep(NAP)
        if number == 0:  # whose worker had to be started
            sampler.reset_profile()
    found = sampler.profile()
    assert found.num_batches == NUM_ITEMS - 1
    assert found.consumer_seconds >= (NUM_ITEMS - 2) * NAP
    assert found.waiting_for_consumer_seconds > found.decode_seconds


@pytest.mark.parametrize("in_the_middle", [False, True])
def test_a_pause_between_iterations_is_nobodys_waiting(folder, in_the_middle):
    sampler, loader = loader_of(
        clips_of(folder), num_workers=1, batch_size=1, persistent_workers=True
    )
    pause, start = 2.0, time.perf_counter()
    for _ in sampler.track(loader):
        if in_the_middle:
            break
    time.sleep(pause)
    for _ in sampler.track(loader):
        pass
    at_work = time.perf_counter() - start - pause
    found = sampler.profile()
    assert found.waiting_for_consumer_seconds <= at_work
    assert found.seconds <= at_work


def test_without_such_a_collate_it_says_what_to_take(folder):
    sampler, loader = loader_of(clips_of(folder), default_collate)
    found = profile_of(sampler, loader)
    assert (found.num_batches, found.num_samples) == (4, 0)
    assert found.waiting_for_data_seconds > 0
    assert found.advice.startswith("collate_fn: a TimedCollate")
    assert "time of the workers" not in str(found)
    assert not STOPWATCH.is_on


def test_before_anything_was_loaded_there_is_nothing_to_say(folder):
    assert ResumableSampler(clips_of(folder)).profile().advice == (
        "nothing was loaded yet"
    )


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_of_a_sampler_has_measured_nothing(folder, again):
    sampler, loader = loader_of(clips_of(folder))
    profile_of(sampler, loader)
    other = again(sampler)
    assert other.profile().num_batches == other.profile().num_samples == 0
    assert other.state_dict() == sampler.state_dict()
    before = sampler.profile()
    sampler.reset_profile()
    assert before.num_batches == 4
    assert sampler.profile().num_batches == 0


def test_without_track_nobody_would_count(folder):
    _, loader = loader_of(clips_of(folder))
    (batch, *_) = loader
    with pytest.raises(ValueError, match="iterate by the track"):
        iter(batch)


def test_what_collates_is_a_function():
    wrong: Any = 5
    with pytest.raises(TypeError, match="expected a function of samples"):
        TimedCollate(wrong)


def test_nested_transforms_are_counted_once(tmp_path):
    del tmp_path
    from gulpio2.torch.working import WORK, timed_transform

    STOPWATCH.is_on = True

    def inner(data):
        time.sleep(NAP)
        return data

    start = time.perf_counter()
    assert timed_transform(partial(timed_transform, inner), 3) == 3
    elapsed = time.perf_counter() - start
    clock = WORK.end(time.perf_counter(), 0)
    assert NAP <= clock.transform <= elapsed


def test_it_is_off_until_somebody_wants_it(folder):
    with GulpDirectory(folder) as directory:
        directory.read_clip("clip0", [0, 1])
    assert STOPWATCH.take() == (0.0, 0.0, 0, 0)
