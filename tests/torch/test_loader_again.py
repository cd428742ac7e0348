"""A loader that is iterated again: what stays valid, and what it needs to go on."""

from __future__ import annotations

import copy
import itertools
import logging
import pickle
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk
from gulpio2.errors import CorruptFrameError, FrameIndexError, MapChangedError
from gulpio2.format.layout import data_name, meta_name
from gulpio2.order import PlainOrder, RepeatedOrder
from gulpio2.sampling import ClipIndices, frames_at, sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import (
    CenterCrop,
    GulpClipDataset,
    GulpLoader,
    ResumableSampler,
    SampleIndex,
    default_collate,
)
from gulpio2.torch.prefetch import Prefetcher
from tests.torch.troubles import status_of_child_while_held

window = partial(sample_window, clip_length=2)


@pytest.fixture
def folder(tmp_path):
    """Make a directory of six items of 8 frames."""
    return make_gulp_directory(tmp_path / "gulped", num_items=6, num_frames=8)


def damage(folder, id_, frame):
    """Overwrite the beginning of a stored frame."""
    item = folder.item(id_)
    ((offset, _),) = item.record.spans([frame])
    with Path(item.data_path).open("r+b") as file:
        file.seek(offset)
        file.write(b"\0" * 16)


def ids_of(loader):
    return [list(batch.targets) for batch in loader]


@pytest.mark.parametrize(
    "options", [{"threads": 0}, {"threads": 2}, {"num_workers": 1}]
)
@pytest.mark.parametrize("view", [None, CenterCrop(16)], ids=["whole", "cropped"])
def test_a_chunk_that_was_written_anew_is_told_as_by_the_dataset(folder, options, view):
    dataset = GulpClipDataset(folder, window, target="id")
    assert len(dataset) == 6
    path = Path(folder.output_dir)
    chunk = GulpChunk(path / data_name(0), path / meta_name(0))
    frames = {id_: chunk.item(id_).read_jpegs(None) for id_ in chunk.meta_dict}
    with chunk.open("wb"):
        for id_ in reversed(frames):
            chunk.append(id_, {}, frames[id_])
    with pytest.raises(MapChangedError, match="written anew since"):
        dataset[0]
    loader = GulpLoader(
        dataset, batch_size=2, shuffle=False, output="numpy", view=view, **options
    )
    with loader, pytest.raises(MapChangedError, match="written anew since"):
        ids_of(loader)


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))],
    ids=["copied", "pickled"],
)
def test_a_copy_goes_on_from_the_same_place_on_its_own(folder, copied):
    dataset = GulpClipDataset(folder, window, target="id")
    loader = GulpLoader(dataset, batch_size=2, seed=1, output="numpy", threads=1)
    all_ids = ids_of(loader)
    loader.set_epoch(0)
    batches = iter(loader)
    assert list(next(batches).targets) == all_ids[0]
    other = copied(loader)
    assert (other.batches_left, other.state_dict()) == (2, loader.state_dict())
    assert other.profile().num_batches == 0
    assert ids_of(other) == all_ids[1:]
    assert [list(batch.targets) for batch in batches] == all_ids[1:]
    assert loader.state_dict() == other.state_dict()


def test_of_two_threads_that_begin_at_once_one_goes_on(folder, monkeypatch):
    begun = threading.Event()

    def begin_slowly(*arguments):
        begun.set()
        time.sleep(0.2)
        return Prefetcher(*arguments)

    monkeypatch.setattr("gulpio2.torch.loader.Prefetcher", begin_slowly)
    dataset = GulpClipDataset(folder, window, target="id")
    loader = GulpLoader(dataset, batch_size=1, output="numpy", threads=1)
    given: list[int] = []
    ended: list[str] = []

    def iterate():
        try:
            for batch in loader:
                given.extend(batch.positions.tolist())
                time.sleep(0.05)
        except RuntimeError as error:
            ended.append(str(error))

    other = threading.Thread(target=iterate)
    other.start()
    assert begun.wait(10)
    iterate()
    other.join(10)
    assert sorted(given) == list(range(6))  # each once
    assert [text[:34] for text in ended] == ["this iteration over the loader has"]
    assert (loader.epoch, loader.state_dict()["position"]) == (1, 0)


def test_a_batch_that_is_ready_does_not_count_once_its_iteration_was_ended(folder):
    dataset = GulpClipDataset(folder, window)
    loader = GulpLoader(dataset, batch_size=2, output="numpy", threads=1)
    batches, ended = iter(loader), []
    next(batches)
    waited = loader.profile().waiting_for_data_seconds

    def ask():
        try:
            next(batches)
        except RuntimeError as error:
            ended.append(str(error))

    other = threading.Thread(target=ask)
    with loader._turn.lock:  # in which the other thread has its batch, and no more
        other.start()
        while other.is_alive() and (
            loader.profile().waiting_for_data_seconds == waited
        ):
            time.sleep(0.001)
        loader.set_epoch(3)
    other.join(10)
    assert [text[:34] for text in ended] == ["this iteration over the loader has"]
    assert (loader.epoch, loader.state_dict()["position"]) == (3, 0)


@pytest.mark.parametrize(
    "end",
    [
        GulpLoader.close,
        lambda loader: loader.set_epoch(3),
        lambda loader: loader.load_state_dict(loader.state_dict()),
        lambda loader: next(iter(loader)),
    ],
    ids=["close", "epoch", "state", "again"],
)
def test_a_target_may_ask_for_the_state_while_its_iteration_is_ended(folder, end):
    seen: list[threading.Thread] = []
    asked = threading.Event()

    def target(info):
        seen.append(threading.current_thread())
        if len(seen) == 1 or seen[-1] is not seen[0]:
            return 0
        asked.set()
        while loader._turn.lock.acquire(blocking=False):  # until who ends it has it
            loader._turn.lock.release()
            time.sleep(0.001)
        return loader.state_dict()["position"]

    dataset = GulpClipDataset(folder, window, target=target)
    loader = GulpLoader(dataset, batch_size=1, threads=1, prefetch=4, output="numpy")
    batches = iter(loader)
    next(batches)
    assert asked.wait(10)
    other = threading.Thread(target=end, args=(loader,), daemon=True)
    other.start()
    other.join(10)
    assert not other.is_alive()
    loader.close()


# --- memory --------------------------------------------------------------------------


@pytest.mark.parametrize("leave", ["at the end", "in the middle"])
def test_kept_batches_stay_valid_in_the_next_iteration(folder, leave):
    dataset = GulpClipDataset(folder, window)
    loader = GulpLoader(dataset, batch_size=2, keep=3, threads=2, output="numpy")
    batches = iter(loader)
    one, two = next(batches), next(batches)
    if leave == "at the end":
        one, two = two, next(batches)
        assert next(batches, None) is None
    expected = one.clips.copy(), two.clips.copy()
    again = iter(loader)
    next(again)
    time.sleep(0.3)  # all that can be made ahead is
    assert np.array_equal(one.clips, expected[0])
    assert np.array_equal(two.clips, expected[1])


def test_each_slot_is_told_that_it_is_released_before_it_is_used_again(folder):
    dataset = GulpClipDataset(folder, window)
    loader = GulpLoader(dataset, batch_size=2, keep=2, threads=0, output="numpy")
    left = iter(loader)  # it stays there, in its middle
    next(left)
    released: list[object] = []
    for slot in loader._memory.slots:
        slot.released = partial(released.append, slot)  # type: ignore[method-assign]
    used = list(loader._given)
    next(iter(loader))
    assert used
    assert all(slot in released for slot in used)


def samples_in_child_while_held(loader, lock):
    """Count what a loader gives a forked child while another thread has the lock."""
    return status_of_child_while_held(lock, lambda: sum(map(len, loader)))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_is_not_held_up_by_a_thread_of_its_parent(folder):
    dataset = GulpClipDataset(folder, window)
    loader = GulpLoader(dataset, batch_size=2, threads=1, output="numpy")
    next(iter(loader))
    loader.close()
    assert (
        samples_in_child_while_held(loader, loader._memory.own_maker._ahead._lock) == 4
    )


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_has_its_turn_whatever_a_thread_of_its_parent_does(folder):
    loader = GulpLoader(GulpClipDataset(folder, window), batch_size=4, output="numpy")
    assert samples_in_child_while_held(loader, loader._turn.lock) == 6


# --- damage --------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["skip", "substitute"])
def test_a_run_goes_on_where_all_that_is_left_of_the_epoch_is_damaged(folder, policy):
    last = PlainOrder(6, seed=1).indices(0, np.array([5])).tolist()[0]
    for frame in range(8):
        damage(folder, f"item{last}", frame)
    dataset = GulpClipDataset(folder, window, target="id")
    make = partial(
        GulpLoader, dataset, batch_size=5, seed=1, on_corrupt=policy, output="numpy"
    )
    whole = make()
    batches = iter(whole)
    next(batches)
    state = whole.state_dict()
    expected = [list(batch.targets) for batch in batches]
    resumed = make()
    resumed.load_state_dict(state)
    assert ids_of(resumed) == expected


def test_a_frame_that_no_clip_needs_may_be_damaged(folder):
    first = PlainOrder(6, seed=1).indices(0, np.array([0])).tolist()[0]
    damage(folder, f"item{first}", 0)

    def last_two(num_frames, rng=None):
        return ClipIndices(np.array([6, 7]), np.ones(2, np.bool_))

    dataset = GulpClipDataset(folder, last_two, target="id")
    loader = GulpLoader(dataset, batch_size=3, seed=1, output="numpy")
    assert sum(map(len, ids_of(loader))) == 6


def test_damage_of_the_first_sample_is_told_with_its_place(folder):
    first = PlainOrder(6, seed=1).indices(0, np.array([0])).tolist()[0]
    for frame in range(8):
        damage(folder, f"item{first}", frame)
    dataset = GulpClipDataset(folder, partial(sample_window, clip_length=8))
    loader = GulpLoader(dataset, batch_size=3, seed=1, output="numpy")
    with pytest.raises(CorruptFrameError, match=f"'item{first}'.*frame 0.*--deep"):
        list(loader)


def test_a_frame_that_an_item_lacks_is_named_as_by_the_dataset(folder):
    def beyond(num_frames, rng=None):
        return ClipIndices(np.array([0, num_frames]), np.ones(2, np.bool_))

    dataset = GulpClipDataset(folder, beyond)
    loader = GulpLoader(dataset, batch_size=3, output="numpy")
    with pytest.raises(FrameIndexError, match="frame index 8 is outside"):
        list(loader)


# --- the sampler ---------------------------------------------------------------------


class Batches:
    """As much of a DataLoader as `ResumableSampler.track` looks at, and no more."""

    def __init__(self, sampler, size):
        self.sampler, self.batch_size = sampler, size

    def __iter__(self):
        places = list(self.sampler)
        for start in range(0, len(places), self.batch_size):
            yield places[start : start + self.batch_size]


def test_a_tracked_iteration_ends_where_the_sampler_was_set():
    torch = pytest.importorskip("torch")
    for change in (
        lambda sampler: sampler.set_epoch(5),
        lambda sampler: sampler.load_state_dict(
            ResumableSampler(range(8)).state_dict()
        ),
    ):
        sampler = ResumableSampler(range(8))
        loader = torch.utils.data.DataLoader(range(8), batch_size=2, sampler=sampler)
        batches = sampler.track(loader)
        next(batches)
        change(sampler)
        state = sampler.state_dict()
        with pytest.raises(RuntimeError, match="begin a new one"):
            next(batches)
        assert sampler.state_dict() == state


def test_of_two_tracked_iterations_the_first_ends():
    torch = pytest.importorskip("torch")
    sampler = ResumableSampler(range(12))
    loader = torch.utils.data.DataLoader(range(12), batch_size=2, sampler=sampler)
    first, second = sampler.track(loader), sampler.track(loader)
    next(first)
    next(second)
    with pytest.raises(RuntimeError, match="another was begun"):
        next(first)


def test_batches_of_a_size_that_nobody_says_are_refused():
    torch = pytest.importorskip("torch")
    sampler = ResumableSampler(range(8))
    own = Batches(sampler, 2)
    del own.batch_size
    loader = torch.utils.data.DataLoader(range(8), batch_sampler=own)
    with pytest.raises(ValueError, match="Batches has no batch_size"):
        next(sampler.track(loader))


# --- targets, times, arguments -------------------------------------------------------


def test_none_among_numbers_is_a_list_wherever_it_stands():
    pytest.importorskip("torch")
    assert default_collate([None, 1]) == [None, 1]
    assert default_collate([1, None]) == [1, None]


@pytest.mark.parametrize("wanted", [[float("nan"), 0.5], [float("inf")]])
def test_a_time_that_is_none_has_no_frame(wanted):
    with pytest.raises(ValueError, match="expected finite times"):
        frames_at([0.0, 1.0, 2.0], wanted)


def test_leaving_does_not_wait_for_all_that_could_be_planned(folder):
    begun, calls = threading.Event(), []

    def slow(num_frames, rng=None):
        calls.append(num_frames)
        if len(calls) == 3:  # the first is looked at for its size, before the threads
            begun.set()
        time.sleep(0.05)
        return sample_window(num_frames, 2, rng=rng)

    dataset = GulpClipDataset(folder, slow)
    order = RepeatedOrder([20] * 6)
    loader = GulpLoader(dataset, batch_size=1, order=order, threads=1, output="numpy")
    errors = []

    def begin():
        try:
            next(iter(loader))
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=begin)
    thread.start()
    begun.wait(60)
    loader.close()
    thread.join()
    assert len(errors) == 1
    assert len(calls) < 10  # of 32


class OwnView:
    """A view of somebody's own, whose shape is none."""

    def __init__(self, shape):
        self.shape = shape

    def choose(self, height, width, rng):
        raise AssertionError("it is refused before")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dataset": [1, 2]}, TypeError, "dataset is a list, expected"),
        ({"order": [1, 2]}, TypeError, "order is a list, expected"),
        ({"view": 224}, TypeError, "view is 224, expected one such as"),
        ({"view": OwnView(8)}, TypeError, "the shape of the view .* is 8, exp"),
        ({"view": OwnView((8, 0))}, TypeError, r"the shape of the view .* is \(8, 0\)"),
        ({"view": CenterCrop}, TypeError, "view is <class .*expected one such as"),
        ({"batch_size": "4"}, TypeError, "batch_size is '4', expected a whole number"),
        ({"batch_size": 2.5}, TypeError, "batch_size is 2.5, expected a whole number"),
        ({"max_corrupt": -1}, ValueError, "max_corrupt is -1, expected at least 0"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_given(
    folder, options, error, message
):
    dataset = options.pop("dataset", None) or GulpClipDataset(folder, window)
    with pytest.raises(error, match=message):
        GulpLoader(dataset, **{"batch_size": 2, "output": "numpy", **options})


def test_a_state_is_of_plain_integers_wherever_it_was_kept(folder):
    dataset = GulpClipDataset(folder, window)
    for made in (GulpLoader(dataset, batch_size=2), ResumableSampler(dataset)):
        state = made.state_dict()
        # As a checkpoint that holds arrays only gives them back.
        kept: Any = {name: np.array(value) for name, value in state.items()}
        made.load_state_dict(kept)
        assert made.state_dict() == state
        assert {type(value) for value in made.state_dict().values()} == {int}


def test_a_state_whose_counts_are_none_changes_nothing(folder):
    dataset = GulpClipDataset(folder, window)
    for made in (GulpLoader(dataset, batch_size=2), ResumableSampler(dataset)):
        state = made.state_dict()
        with pytest.raises(TypeError, match="the state's skipped is None, expected"):
            made.load_state_dict({**state, "position": 4, "skipped": None})
        assert made.state_dict() == state


@pytest.mark.parametrize("threads", [0, 1])
def test_what_is_refused_ends_no_iteration(folder, threads):
    dataset = GulpClipDataset(folder, window, target="id")
    settings = {"threads": threads, "shuffle": False, "output": "numpy"}
    loader = GulpLoader(dataset, batch_size=2, **settings)
    seen = []
    for batch in loader:
        seen += batch.targets
        with pytest.raises(ValueError, match="along another order: seed 5, here 0"):
            loader.load_state_dict({**loader.state_dict(), "seed": 5})
        with pytest.raises(ValueError, match="epoch is -1"):
            loader.set_epoch(-1)
    assert seen == list(folder.merged_meta_dict)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_a_place_in_the_run_of_its_own(folder, copied):
    dataset = GulpClipDataset(folder, partial(sample_window, clip_length=2))
    loader = GulpLoader(dataset, batch_size=1, seed=1, output="numpy")
    next(iter(loader))
    state = loader.state_dict()
    other = copied(loader)
    assert other.state_dict() == state
    assert sum(1 for _ in other) == len(dataset) - 1
    assert loader.state_dict() == state


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (-3, r"the sampler chose frame -3: .* from 0"),
        (-1, r"the sampler chose frame -1 and calls it valid: .* from 0"),
    ],
)
def test_an_index_counted_from_the_end_is_refused(folder, threads, index, message):
    def sampler(num_frames, rng=None):
        return ClipIndices(np.array([0, index]), np.ones(2, bool))

    dataset = GulpClipDataset(folder, sampler)
    with pytest.raises(ValueError, match=message):
        dataset[0]
    loader = GulpLoader(dataset, batch_size=1, threads=threads, output="numpy")
    with pytest.raises(ValueError, match=message):
        next(iter(loader))


@pytest.mark.parametrize("copied", [False, True])
def test_a_dataset_may_give_a_sample_another_seed(folder, copied):
    class Reseeding(GulpClipDataset):
        """Takes the same numbers in every epoch."""

        def choose(self, idx):
            """Choose by a seed of the item's own."""
            own = copy.copy(idx) if copied else idx
            own.seed = 7 * int(idx)
            return super().choose(own)

    def first_frames(seed):
        dataset = Reseeding(folder, partial(sample_window, clip_length=1))
        loader = GulpLoader(
            dataset, batch_size=len(dataset), seed=seed, threads=1, output="numpy"
        )
        (batch,) = loader
        found = dict(zip(batch.indices.tolist(), batch.frame_indices, strict=True))
        for index in found:
            place = SampleIndex(index, seed=99, epoch=0, position=0)
            assert dataset.choose(place)[1].indices == found[index]
        return {index: frames.tolist() for index, frames in found.items()}

    assert first_frames(1) == first_frames(2)


def test_an_epoch_without_a_batch_is_told(folder, caplog):
    nothing = GulpClipDataset(folder, window).get_subset(0)
    assert list(GulpLoader(nothing, batch_size=2, output="numpy")) == []
    (record,) = caplog.records
    assert "has no batch: is it the dataset that was meant" in record.getMessage()
    caplog.clear()
    list(GulpLoader(GulpClipDataset(folder, window), batch_size=2, output="numpy"))
    assert not caplog.records


class StopError(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def no_logging():
    """Have none: raised in its midst, an exception leaves its locks taken for good."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


# What is raised in a callback, or in a generator that ends, is lost.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("on_corrupt", ["raise", "skip"])
def test_a_batch_that_an_exception_keeps_from_the_consumer_is_not_counted(
    folder, on_corrupt, no_logging
):
    """The handler of a signal may raise where a function begins, or one of C ends."""
    dataset = GulpClipDataset(folder, window, target="id")
    options: dict[str, Any] = {"batch_size": 2, "threads": 0, "output": "numpy"}
    options |= {"seed": 3, "on_corrupt": on_corrupt}
    whole = [batch.targets for batch in GulpLoader(dataset, **options)]
    if on_corrupt == "skip":
        for frame in range(8):
            damage(folder, whole[1][0], frame)
        dataset = GulpClipDataset(folder, window, target="id")
        whole[1] = whole[1][1:]
    here = sys._getframe()
    for wanted in itertools.count():
        loader = GulpLoader(dataset, **options)
        batches = iter(loader)
        seen = [next(batches).targets]
        left = wanted

        def stop(frame, event, argument):
            nonlocal left
            # Not between a lock's `__enter__` and its block, where Python looks for no
            # signals, and not here, where the batch is the consumer's.
            if (
                frame is not here
                and event in ("call", "c_return")
                and getattr(argument, "__name__", "") != "__enter__"
            ):
                left -= 1
                if left < 0:
                    sys.setprofile(None)
                    raise StopError

        sys.setprofile(stop)
        try:
            seen.append(next(batches).targets)
        except StopError:
            pass
        finally:
            sys.setprofile(None)
        position, skipped = loader.cursor.position, loader.num_skipped
        assert position == 2 * len(seen)
        assert skipped == (len(seen) > 1 and on_corrupt == "skip")
        seen += [batch.targets for batch in loader]
        assert seen == whole
        if len(seen) > 1 and left >= 0:
            break
    assert wanted > 50
