"""Measuring a loader beside the codec: what there is to measure, and what is not."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from functools import partial

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import CorruptFrameError, GulpError
from gulpio2.order import RepeatedOrder
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader
from gulpio2.torch.limit import decode_for
from gulpio2.torch.measure import jpegs_of_loader, measure_loader


@pytest.fixture
def dataset(make_directory):
    """Make a dataset of three items of eight frames."""
    return GulpClipDataset(
        make_directory(counts=(8,) * 3), partial(sample_window, clip_length=4)
    )


def load(dataset, **options):
    return GulpLoader(dataset, threads=1, output="numpy", **options)


def test_an_epoch_without_a_batch_is_refused(dataset):
    loader = load(dataset, batch_size=4, drop_last=True)
    with pytest.raises(
        ValueError, match=r"has no batch: it has 3 samples .*batch_size"
    ):
        measure_loader(loader, seconds=0.05)


def test_an_epoch_whose_rest_makes_no_batch_is_left(dataset):
    loader = load(dataset, batch_size=2, drop_last=True)
    state = loader.state_dict()
    loader.load_state_dict({**state, "position": 2})
    assert not loader.batches_left
    assert measure_loader(loader, seconds=0.05, rounds=1).loader_median > 0


def test_a_batch_of_which_all_samples_are_left_out_has_no_frames(make_directory):
    # The codec is measured with the first 1024 frames, which are whole.
    path = make_directory(counts=(8,) * 129)
    with GulpDirectory(path) as directory:
        chunk = directory.chunk_lookup["clip128"]
        frames = directory.merged_meta_dict["clip128"]["frame_info"]
    with (path / f"data_{chunk}.gulp").open("r+b") as file:
        for loc, _, _ in frames:
            file.seek(loc)
            file.write(b"\0" * 20)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=8))
    loader = load(dataset, batch_size=1, on_corrupt="skip", shuffle=False)
    measured = measure_loader(loader, seconds=1, rounds=1)
    assert loader.num_skipped
    assert measured.loader_median > 0


def chosen_by_the_codec(loader):
    return [int(place.rsplit(" ", 1)[1]) for place, _ in jpegs_of_loader(loader)]


def test_the_codec_gets_the_frames_that_the_loader_chooses(make_directory):
    path = make_directory(counts=(8,))
    sampler = partial(sample_window, clip_length=2)
    for test_mode in (True, False):
        dataset = GulpClipDataset(path, sampler, test_mode=test_mode)
        for seed in range(5):
            loader = load(dataset, batch_size=1, seed=seed)
            chosen = chosen_by_the_codec(loader)
            (batch,) = loader
            assert chosen == batch.frame_indices[0].tolist()


def test_an_item_without_frames_is_named(make_directory):
    dataset = GulpClipDataset(
        make_directory(counts=(0,)), partial(sample_window, clip_length=2)
    )
    with pytest.raises(ValueError, match="'clip0' has no frames: leave it out in"):
        jpegs_of_loader(load(dataset, batch_size=1))


# ---------------------------------------------------------------- worker processes
def workers_over(dataset, **options):
    from gulpio2.torch.workers import WorkersLoader

    order = RepeatedOrder([20] * len(dataset))
    return WorkersLoader(
        dataset, order, **{"batch_size": 1, "num_workers": 2, "prefetch": 2, **options}
    )


@pytest.mark.torch
def test_the_profile_of_workers_is_of_what_they_gave_after_their_first(make_directory):
    path = make_directory(counts=(8,) * 3)
    loader = workers_over(GulpClipDataset(path, partial(sample_window, clip_length=4)))
    assert loader.batches_left == 60
    counts = list(itertools.islice(loader, 12))
    assert counts == [4] * 12
    made = loader.profile()
    assert (made.num_batches, made.num_frames) == (10, 40)  # two had to be waited for
    assert made.starting_seconds == 0
    children = multiprocessing.active_children()
    loader.close()
    assert not set(children) & set(multiprocessing.active_children())


@pytest.mark.torch
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CorruptFrameError("item 'a', frame 3: damaged"), "item 'a', frame 3: damaged"),
        (KeyError("what"), "'what'"),
        (ValueError("one: two\nthree: four"), "one: two\nthree: four"),
        (OSError(28, "no room"), "[Errno 28] no room"),
        (ValueError("cannot:\n  one\n  two"), "cannot:\n  one\n  two"),
        (ValueError(), "ValueError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_a_worker_cannot_make_is_told_without_its_traceback(
    make_directory, error, told
):
    def sampler(num_frames, *, rng):
        raise error

    loader = workers_over(GulpClipDataset(make_directory(), sampler))
    with pytest.raises(GulpError) as caught:
        next(iter(loader))
    assert str(caught.value) == told


@pytest.mark.torch
def test_a_worker_that_is_killed_is_told_in_a_line(make_directory):
    def sampler(num_frames, *, rng):
        os.kill(os.getpid(), signal.SIGKILL)

    loader = workers_over(GulpClipDataset(make_directory(), sampler), num_workers=1)
    with pytest.raises(GulpError, match="It was killed, perhaps") as caught:
        next(iter(loader))
    assert len(str(caught.value).splitlines()) == 1


def test_threads_that_the_system_refuses_leave_none_waiting(dataset, monkeypatch):
    jpegs = [jpeg for _, jpeg in jpegs_of_loader(load(dataset, batch_size=2))]
    start = threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        decode_for(jpegs, 0.01, 3)
    assert not started[0].is_alive()
