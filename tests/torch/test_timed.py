"""Where the time of a DataLoader goes: what is counted, and what is advised."""

from __future__ import annotations

import contextlib
import copy
import pickle
import time
import warnings
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import CorruptFrameError
from gulpio2.sampling import sample_window
from gulpio2.stopwatch import STOPWATCH
from gulpio2.storage.handles import HandlePool
from gulpio2.torch import (
    Compose,
    GulpClipDataset,
    GulpDataset,
    RecyclingCollate,
    RepeatDataset,
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
# On a busy machine all but naps takes longer: there the longer ones have to tell.
NAPS = (NAP, 4 * NAP, 16 * NAP)


@pytest.fixture
def folder(make_directory):
    return make_directory(counts=(8,) * NUM_ITEMS)


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


def with_longer_naps(measure, is_told):
    """Give where the time went with the first naps of which that is told, or the last.

    What is measured wrongly is so with naps of any length.
    """
    for nap in NAPS:
        found = measure(nap)
        if is_told(found):
            break
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


class Numbers:
    """A dataset of another package, as it were."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(NAP)
        return float(index)


@pytest.mark.parametrize("batch_size", [3, None])
def test_of_other_samples_nothing_but_reading_and_collating_is_known(batch_size):
    kind: Any = list if batch_size else float
    collate = TimedCollate(kind)
    found = profile_of(*loader_of(Numbers(), collate, batch_size=batch_size))
    assert found.num_samples == found.num_unmeasured == 6
    assert found.num_frames == 0
    assert 0 < found.collate_seconds < NAP
    assert found.advice.startswith("unknown: ")
    assert "of 6 of 6 samples only reading and collating are known" in str(found)


def test_samples_of_both_kinds_are_told_apart(folder):
    from torch.utils.data import ConcatDataset

    class Own(Numbers):
        def __getitem__(self, index):
            return GulpDirectory(folder).read_clip("clip0", [0, 1]), float(index)

    both: Any = ConcatDataset([Own(), clips_of(folder)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # places are lost, which is known
        found = profile_of(*loader_of(both, TimedCollate(list)))
    assert (found.num_samples, found.num_unmeasured) == (6 + NUM_ITEMS, 6)
    assert found.num_frames == 6 * 2 + NUM_ITEMS * 4


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_by_itself_is_one(folder, workers):
    dataset, collate = clips_of(folder), TimedCollate(tuple)
    options = {"batch_size": None, "num_workers": workers}
    found = profile_of(*loader_of(dataset, collate, **options))
    assert found.num_samples == NUM_ITEMS
    assert (found.num_unmeasured, found.num_frames) == (0, 4 * NUM_ITEMS)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_the_trainer_reads_is_not_its_workers(folder, workers):
    dataset = clips_of(folder)
    sampler, loader = loader_of(dataset, num_workers=workers)
    with GulpDirectory(folder) as directory:
        for _ in range(2):
            dataset[0]
            time.sleep(10 * NAP)
            for _ in sampler.track(loader):
                directory.read_clip("clip1")
                dataset[1]
    found = sampler.profile()
    assert found.num_samples == 2 * NUM_ITEMS
    assert found.num_frames == 2 * 4 * NUM_ITEMS
    at_work = found.seconds * max(1, workers)
    assert found.storage_seconds + found.decode_seconds + found.other_seconds < at_work


class _FailsAt:
    """A transform that is wrong at its n-th call, and fine before and after."""

    def __init__(self, number):
        self.number = number

    def __call__(self, clip):
        self.number -= 1
        if self.number == 0:
            raise KeyError("wrong")
        return clip


class _RaisesLate(RepeatDataset):
    """A wrapper that is wrong once it has its sample."""

    def __getitem__(self, idx):
        sample = super().__getitem__(idx)
        self.left = getattr(self, "left", NUM_ITEMS) - 1
        if self.left == 0:
            raise KeyError("wrong")
        return sample


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("inside", [True, False])
def test_a_pause_after_a_batch_that_came_to_nothing_is_no_work(folder, workers, inside):
    dataset: Any = clips_of(folder)
    if inside:
        dataset.transform = _FailsAt(NUM_ITEMS)  # in the last batch
    else:
        dataset = _RaisesLate(dataset, 1)
    persistent = {"persistent_workers": workers > 0}
    sampler, loader = loader_of(dataset, num_workers=workers, **persistent)
    with pytest.raises(KeyError):
        for _ in sampler.track(loader):
            pass
    pause = 2.0
    time.sleep(pause)
    for _ in sampler.track(loader):
        pass
    assert sampler.epoch == 1
    assert sampler.profile().other_seconds < pause


def test_an_error_that_is_put_up_with_takes_no_time_away(folder):
    damage(folder, [1])
    other = clips_of(folder)

    def target(info):
        with contextlib.suppress(CorruptFrameError):
            other[1]
        time.sleep(NAP)
        return info["id"]

    dataset = clips_of(folder).get_subset([0, 2, 3])
    dataset.target = target
    assert profile_of(*loader_of(dataset)).other_seconds >= 3 * NAP


@pytest.mark.parametrize("how", ["skip", "substitute"])
def test_damaged_samples_are_counted_as_by_the_other_loader(folder, how):
    from gulpio2.torch import GulpLoader

    damage(folder, [2, 5])
    dataset = clips_of(folder)
    other = GulpLoader(dataset, batch_size=3, seed=1, on_corrupt=how)
    for _ in other:
        pass
    wanted = other.profile()
    tolerant = TolerantDataset(dataset, on_corrupt=how)
    found = profile_of(*loader_of(tolerant, TimedCollate(TolerantCollate())))
    assert found.num_samples == wanted.num_samples
    assert found.num_frames == wanted.num_frames


def test_bytes_that_helper_threads_read_are_counted(folder):
    found = []
    for threads in (1, 4):
        directory = GulpDirectory(folder, threads=threads)
        found.append(profile_of(*loader_of(clips_of(directory))))
    assert found[0].num_bytes == found[1].num_bytes > 0


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


class _Own(GulpClipDataset):
    """Calls its pipeline by itself."""

    def prepare_data(self, idx):
        info, chosen = self.choose(idx)
        return self.pipeline(self.source.read(info, chosen))


def test_a_pipeline_that_a_subclass_calls_is_a_transform(folder):
    def transform(clip):
        time.sleep(NAP)
        return clip

    sampler = partial(sample_window, clip_length=4)
    found = profile_of(*loader_of(_Own(folder, sampler, pipeline=[transform])))
    assert found.transform_seconds >= NUM_ITEMS * NAP
    assert found.other_seconds < found.transform_seconds


def test_reading_of_a_collate_function_is_reading(folder):
    directory = GulpDirectory(folder)

    def collate(batch):
        directory.read_clip("clip1")
        return default_collate(batch)

    found = profile_of(*loader_of(clips_of(folder), TimedCollate(collate)))
    assert found.num_frames == 4 * NUM_ITEMS + 8 * NUM_ITEMS / 3


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_are_started_for_each_epoch_are_told(folder, persistent):
    sampler, loader = loader_of(
        clips_of(folder),
        num_workers=1,
        persistent_workers=persistent,
        multiprocessing_context="spawn",
    )
    found = profile_of(sampler, loader)
    assert found.starting_seconds > found.waiting_for_data_seconds / 2
    advised = found.advice.startswith("persistent_workers: ")
    assert advised is not persistent


def test_a_worker_that_waits_for_a_bursty_consumer_wants_more_ahead(folder):
    sampler, loader = loader_of(
        clips_of(folder), num_workers=1, batch_size=1, prefetch_factor=1
    )
    for number, _ in enumerate(sampler.track(loader)):
        if number == 0:
            sampler.reset_profile()
        if number % 4 == 3:
            time.sleep(10 * NAP)
    made = replace(
        sampler.profile(), waiting_for_data_seconds=1.0, consumer_seconds=1.0
    )
    assert made.waiting_for_consumer_seconds > 10 * NAP
    assert replace(made, seconds=2.0).advice.startswith("prefetch_factor: ")


def after_a_first_epoch(sampler, loader):
    """Give where the time of a second one went, with workers that are there."""
    for _ in sampler.track(loader):
        pass
    sampler.reset_profile()
    return profile_of(sampler, loader)


def test_collating_is_told_first(folder, monkeypatch):
    monkeypatch.setattr(profile, "usable_cores", lambda: 64)

    def measure(nap):
        def collate(batch):
            time.sleep(nap)
            return default_collate(batch)

        timed = TimedCollate(collate)
        persistent = {"num_workers": 1, "persistent_workers": True}
        found = after_a_first_epoch(*loader_of(clips_of(folder), timed, **persistent))
        assert found.collate_seconds >= nap * NUM_ITEMS / 3
        alone = profile_of(*loader_of(clips_of(folder), timed))
        assert alone.advice.startswith("num_workers: collate takes most")  # no memory
        return found

    told = "collate_fn: a RecyclingCollate"
    found = with_longer_naps(measure, lambda each: each.advice.startswith(told))
    assert found.advice.startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "transform of the dataset: what it gives is copied"),
        ({"slot_bytes": 1024}, "num_slots and slot_bytes"),
    ],
)
def test_where_memory_is_used_again_collating_has_another_cause(
    tmp_path, monkeypatch, options, told
):
    from gulpio2.testing import make_gulp_directory

    monkeypatch.setattr(profile, "usable_cores", lambda: 1)
    large = tmp_path / "large"  # whose batches are large enough to be sent in slots
    make_gulp_directory(large, num_items=6, num_frames=8, height=64, width=96).close()

    def measure(nap):
        class Slow(RecyclingCollate):
            def __call__(self, batch):
                time.sleep(nap)
                return super().__call__(batch)

        sampler, loader = loader_of(
            clips_of(large, transform=lambda clip: clip.float()),
            TimedCollate(Slow(**options)),
            num_workers=1,
            persistent_workers=True,
        )
        return after_a_first_epoch(sampler, loader)

    found = with_longer_naps(measure, lambda each: each.advice.startswith(told))
    assert found.recycles
    assert found.num_recycled == (0 if options else found.num_batches)
    assert found.advice.startswith(told)


def test_what_a_collate_function_transforms_is_counted_once(folder):
    dataset = clips_of(folder)

    def slow(batch):
        time.sleep(NAP)
        return batch

    compose = Compose([slow])
    mixed = loader_of(dataset, TimedCollate(lambda batch: [*batch, dataset[0]]))
    assert profile_of(*mixed).num_unmeasured == 0  # adds up, too
    found = profile_of(
        *loader_of(dataset, TimedCollate(lambda batch: compose(default_collate(batch))))
    )
    assert found.transform_seconds >= NAP * NUM_ITEMS / 3
    assert found.collate_seconds < found.transform_seconds


def test_a_slow_first_batch_is_not_the_start_of_workers(folder):
    dataset = clips_of(folder)

    def measure(nap):
        dataset.transform = _Slow(nap)
        found = profile_of(*loader_of(dataset, num_workers=2, batch_size=NUM_ITEMS))
        assert found.waiting_for_data_seconds >= NUM_ITEMS * nap
        return found

    found = with_longer_naps(
        measure, lambda each: each.starting_seconds < each.waiting_for_data_seconds / 2
    )
    assert found.starting_seconds < found.waiting_for_data_seconds / 2
    assert not found.advice.startswith("persistent_workers")


class _Slow:
    def __init__(self, nap):
        self.nap = nap

    def __call__(self, clip):
        time.sleep(self.nap)
        return clip


def test_a_slow_consumer_is_told_that_it_sets_the_pace(folder):
    sampler, loader = loader_of(
        clips_of(folder), num_workers=1, batch_size=1, prefetch_factor=4
    )

    def measure(nap):
        for number, _ in enumerate(sampler.track(loader)):
            time.sleep(nap)
            if number == 0:  # whose worker had to be started
                sampler.reset_profile()
        found = sampler.profile()
        assert found.num_batches == NUM_ITEMS - 1
        assert found.consumer_seconds >= (NUM_ITEMS - 2) * nap
        return found

    found = with_longer_naps(
        measure, lambda each: each.consumer_seconds > each.waiting_for_data_seconds
    )
    assert found.waiting_for_consumer_seconds > found.decode_seconds
    assert found.consumer_seconds > found.waiting_for_data_seconds


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
    for use in (iter, len, bool, itemgetter("frames"), itemgetter(0)):
        with pytest.raises(ValueError, match="iterate by the track"):
            use(batch)
    with pytest.raises(AttributeError, match="to: a batch of a TolerantCollate, or"):
        batch.to("cpu")


def test_what_collates_is_a_function():
    wrong: Any = 5
    with pytest.raises(TypeError, match="collate is 5, expected something that can"):
        TimedCollate(wrong)


@pytest.mark.parametrize(
    "inside", [TimedCollate, lambda: TolerantCollate(TimedCollate())]
)
def test_one_of_them_measures(inside):
    with pytest.raises(TypeError, match="there is a TimedCollate inside"):
        TimedCollate(inside())


def test_it_is_off_until_somebody_wants_it(folder):
    with GulpDirectory(folder) as directory:
        directory.read_clip("clip0", [0, 1])
    assert STOPWATCH.take() == (0.0, 0.0, 0, 0)


@pytest.mark.parametrize("how", ["skip", "substitute"])
def test_a_batch_of_which_all_was_left_out_is_not_recycled(tmp_path, how):
    from gulpio2.testing import make_gulp_directory

    large = tmp_path / "large"
    make_gulp_directory(large, num_items=6, num_frames=8, height=64, width=96).close()
    damage(large, [1, 3, 5], name="item")
    dataset = clips_of(large)
    sampler, loader = loader_of(
        TolerantDataset(dataset, on_corrupt=how),
        TimedCollate(TolerantCollate(RecyclingCollate())),
        batch_size=2 if how == "substitute" else 1,
        num_workers=1,
    )
    found = profile_of(sampler, loader)
    num_batches = 6 if how == "skip" else 3
    assert found.num_batches == num_batches
    assert found.num_recycled == 3
