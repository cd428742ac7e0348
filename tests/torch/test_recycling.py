"""Batches in memory that is used again: what they are, and for how long."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gulpio2.sampling import NO_FRAME, ClipIndices, sample_window, spaced_windows
from gulpio2.testing import make_frames, make_gulp_directory
from gulpio2.torch import (
    ConcatDataset,
    GulpClipDataset,
    GulpDataset,
    GulpImageDataset,
    RecyclingCollate,
    RepeatDataset,
    ResumableSampler,
    default_collate,
)
from gulpio2.torch.shared import SharedSlots, borrow
from tests.forking import forked, status_of

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]
torch = pytest.importorskip("torch")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # looked into, never written to
SIZE = 1 << 20


class Pair(NamedTuple):
    """A sample with names."""

    clip: Any
    more: Any


class Numbered:
    """Samples that are large tensors, filled with their number, and other things."""

    def __init__(self, length=24, *, nested=False):
        self.length = length
        self.nested = nested

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        clip = torch.full((4, 3, 64, 64), index, dtype=torch.uint8)
        if not self.nested:
            return clip
        more = {
            "number": index,
            "name": f"n{index}",
            "none": None,
            "half": torch.full((5,), index, dtype=torch.float16),
            "brain": torch.full((40_000,), index, dtype=torch.bfloat16),
            "quarter": torch.full((5,), index).to(torch.float8_e5m2),
            "array": np.full((300, 300), index, np.float32),
            "moved": torch.full((4, 64, 64, 3), index).movedim(-1, -3),
            "turned": torch.arange(40_000).reshape(200, 200).T + index,
        }
        return Pair(clip, more)


def loader_of(dataset, collate, **options: Any):
    from torch.utils.data import DataLoader

    arguments: dict[str, Any] = {"batch_size": 4, "num_workers": 2, **options}
    return DataLoader(dataset, collate_fn=collate, **arguments)


def assert_same(first, second):
    """Compare batches, at any depth, with types and the order of their memory."""
    assert type(first) is type(second)
    if isinstance(first, torch.Tensor):
        assert (first.dtype, first.stride()) == (second.dtype, second.stride())
        assert torch.equal(first, second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            assert_same(first[key], second[key])
    elif isinstance(first, (list, tuple)):
        assert len(first) == len(second)
        for one, two in zip(first, second, strict=True):
            assert_same(one, two)
    else:
        assert first == second


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_what_they_are_without(workers):
    dataset = Numbered(10, nested=True)
    plain = list(loader_of(dataset, default_collate, num_workers=workers))
    mine = list(loader_of(dataset, RecyclingCollate(), num_workers=workers))
    assert len(mine) == 3
    assert_same(mine, plain)


class Alike:
    """Samples that a function makes."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.ones(3, requires_grad=True), "requires grad"),
        (lambda: torch.ones(90_000, requires_grad=True), "requires grad"),
        (lambda: torch.eye(3).to_sparse(), "sparse tensors are not .* supported"),
    ],
    ids=["small", "large", "sparse"],
)
def test_what_cannot_be_sent_is_refused_as_without(make, message):
    for collate in (default_collate, RecyclingCollate()):
        with pytest.raises(RuntimeError, match=message):
            list(loader_of(Alike(make), collate, num_workers=1, timeout=60))


@pytest.mark.parametrize("num_slots", [1, 3, 32])
def test_a_batch_stays_as_it_is_for_as_long_as_it_is_kept(num_slots):
    collate = RecyclingCollate(num_slots=num_slots, slot_bytes=SIZE)
    kept: list[Any] = []
    for epoch in range(3):
        for number, batch in enumerate(loader_of(Numbered(), collate)):
            if number % 2 == epoch % 2:
                kept.append((number, batch[1:3, :, 0]))  # a part keeps it too
            for numbers, part in kept:
                wanted = [4 * numbers + 1, 4 * numbers + 2]
                assert part.flatten(1).unique(dim=1).flatten().tolist() == wanted


def test_memory_is_used_again_once_nobody_has_it():
    collate = RecyclingCollate(num_slots=32, slot_bytes=SIZE)
    addresses = set()
    for _ in range(6):
        for batch in loader_of(Numbered(), collate):
            addresses.add(batch.data_ptr())
    # Two workers with two batches ahead each, and the one in hand.
    assert len(addresses) <= 7


def test_a_batch_that_does_not_fit_comes_as_usual():
    collate = RecyclingCollate(slot_bytes=4096)
    batches = list(loader_of(Numbered(8), collate))
    assert_same(batches, list(loader_of(Numbered(8), default_collate)))


def test_an_early_end_and_two_iterations_at_once_disturb_nothing():
    loader = loader_of(Numbered(), RecyclingCollate(num_slots=8, slot_bytes=SIZE))
    for _ in range(4):
        batch = next(iter(loader))
        first, second = iter(loader), iter(loader)
        pairs = [(next(first), next(second)) for _ in range(5)]
        for number, (one, two) in enumerate(pairs):
            assert one[:, 0, 0, 0, 0].tolist() == list(
                range(4 * number, 4 * number + 4)
            )
            assert_same(one, two)
        assert batch.unique().tolist() == [0, 1, 2, 3]
        del first, second, pairs, one, two
        gc.collect()


def test_workers_that_persist_use_it_epoch_after_epoch():
    collate = RecyclingCollate(num_slots=16, slot_bytes=SIZE)
    loader = loader_of(Numbered(), collate, persistent_workers=True)
    addresses = set()
    for epoch in range(4):
        for number, batch in enumerate(loader):
            addresses.add(batch.data_ptr())
            assert batch[:, 0, 0, 0, 0].tolist() == list(
                range(4 * number, 4 * number + 4)
            )
            if epoch == 1 and number == 2:
                break
    assert len(addresses) <= 8


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_that_are_started_anew_have_the_memory_too(make_directory, start):
    path = make_directory(counts=(8,) * 6)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4))
    sampler = partial(ResumableSampler, dataset, seed=3)
    options: dict[str, Any] = {"batch_size": 2}
    plain = list(loader_of(dataset, default_collate, sampler=sampler(), **options))
    options["multiprocessing_context"] = start
    mine = list(loader_of(dataset, RecyclingCollate(), sampler=sampler(), **options))
    assert len(mine) == 3
    assert_same(mine, plain)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_has_memory_of_its_own(again):
    loader = loader_of(Numbered(8), RecyclingCollate(num_slots=8, slot_bytes=SIZE))
    before = set(threading.enumerate())
    other = again(loader.collate_fn)
    assert set(threading.enumerate()) <= before
    kept = [*loader, *loader_of(Numbered(8), other)]
    assert len({batch.data_ptr() for batch in kept}) == len(kept)
    assert [batch[0, 0, 0, 0, 0].item() for batch in kept] == [0, 4, 0, 4]
    del other, kept
    gc.collect()
    # What arrives goes by a name, which the copy is not to take along.
    assert [batch[0, 0, 0, 0, 0].item() for batch in loader] == [0, 4]


@pytest.fixture
def large(tmp_path):
    """Make a dataset whose batches are large enough to be sent in slots."""
    make_gulp_directory(
        tmp_path / "large", num_items=10, num_frames=9, height=64, width=96
    ).close()
    sampler = partial(sample_window, clip_length=6)
    return GulpClipDataset(tmp_path / "large", sampler, target="id")


def numbered(loader):
    return [(targets, clips.clone(), clips.data_ptr()) for clips, targets in loader]


@pytest.mark.parametrize(
    "change",
    ["plain", "transform", "several", "image", "wrapped", "mask", "view"],
)
def test_clips_have_the_same_pixels_and_targets(large, change):
    dataset: Any = large
    path = large.source.readers[0].output_dir
    if change == "transform":
        dataset = GulpClipDataset(
            path, large.sampler, transform=lambda c: c.float() / 255, target="id"
        )
    elif change == "several":
        sampler = partial(spaced_windows, clip_length=3, num_windows=2)
        dataset = GulpClipDataset(path, sampler, target="id")
    elif change == "image":
        dataset = GulpImageDataset(path, frame="random", target="id")
    elif change == "wrapped":
        dataset = ConcatDataset([large.get_subset(4), large])
    elif change == "mask":
        sampler = partial(sample_window, clip_length=12, border="mask")
        dataset = GulpClipDataset(path, sampler, target="id")
    elif change == "view":
        view = large.source.readers[0].query("number > 2")
        dataset = GulpClipDataset(view, large.sampler, target="id")

    def run(collate):
        sampler = ResumableSampler(dataset, seed=5)
        loader = loader_of(dataset, collate, sampler=sampler, batch_size=3)
        return [numbered(sampler.track(loader)) for _ in range(3)]

    for mine, plain in zip(run(RecyclingCollate()), run(default_collate), strict=True):
        assert len(mine) == len(plain)
        for (names, clips, _), (other_names, other, _) in zip(mine, plain, strict=True):
            assert list(names) == list(other_names)
            assert torch.equal(clips, other)
            assert clips.stride() == other.stride()


def sometimes_masked(num_frames, rng):
    """Choose two frames, of which the second is missing half of the time."""
    found = np.array([True, rng.random() < 0.5])
    return ClipIndices(np.where(found, [0, 1], NO_FRAME), found)


def sometimes_short(num_frames, rng):
    """Choose one window, or two."""
    count = 1 if rng.random() < 0.5 else 2
    return spaced_windows(num_frames, clip_length=2, num_windows=count)


@pytest.mark.parametrize("sampler", [sometimes_masked, sometimes_short])
def test_a_clip_that_does_not_fit_is_not_chosen_anew(large, sampler):
    """By indices without a seed: what is random goes on from sample to sample."""
    dataset = GulpClipDataset(large.source.readers[0].output_dir, sampler)

    def run(collate):
        seed = torch.Generator().manual_seed(5)
        loader = loader_of(
            RepeatDataset(dataset, 4),
            collate,
            batch_size=1 if sampler is sometimes_short else 4,
            num_workers=1,
            generator=seed,
        )
        return [clips.clone() for clips in loader]

    mine, plain = run(RecyclingCollate()), run(default_collate)
    assert len({tuple(clips.shape[:2]) for clips in plain} - {(4, 2)}) in (0, 2)
    assert len(mine) == len(plain)
    for clips, other in zip(mine, plain, strict=True):
        assert torch.equal(clips, other)


class Inverted(GulpClipDataset):
    """A dataset that does something to its samples."""

    def __getitem__(self, idx):
        clip, target = super().__getitem__(idx)
        return 255 - clip, target


class Doubled(ConcatDataset):
    """A wrapper that does something to its samples."""

    def __getitem__(self, idx):
        clip, target = super().__getitem__(idx)
        return clip // 2, target


def test_what_a_subclass_does_to_a_sample_is_done(large):
    path = large.source.readers[0].output_dir
    inverted = Inverted(path, large.sampler, target="id")
    for dataset in (inverted, ConcatDataset([inverted]), Doubled([large])):
        sampler = partial(ResumableSampler, dataset, seed=5)
        batches = [
            numbered(loader_of(dataset, collate, sampler=sampler(), num_workers=1))
            for collate in (RecyclingCollate(), default_collate)
        ]
        for (_, clips, _), (_, other, _) in zip(*batches, strict=True):
            assert torch.equal(clips, other)


def test_items_of_several_sizes_are_refused_as_without(tmp_path):
    from gulpio2.chunk import GulpChunk

    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(6):
            size = (64, 96) if number < 5 else (96, 64)
            chunk.append(f"v{number}", {}, make_frames(6, *size, seed=number))
    dataset = GulpClipDataset(tmp_path, partial(sample_window, clip_length=5))
    for collate in (default_collate, RecyclingCollate()):
        loader = loader_of(dataset, collate, batch_size=2, num_workers=1)
        batches = iter(loader)
        assert len(next(batches)) == len(next(batches)) == 2
        with pytest.raises(RuntimeError, match=r"of shapes .* needs one"):
            next(batches)


class Split:
    """A dataset that takes a part of each batch from another one."""

    def __init__(self, first, second, is_first):
        self.first, self.second, self.is_first = first, second, is_first

    def __len__(self):
        return len(self.first)

    def __getitems__(self, indices):
        firsts = [index for index in indices if self.is_first(index)]
        seconds = [index for index in indices if not self.is_first(index)]
        return self.first.__getitems__(firsts) + self.second.__getitems__(seconds)


class Threaded:
    """A dataset that has several others make their samples at once."""

    def __init__(self, *datasets):
        self.datasets = datasets

    def __len__(self):
        return len(self.datasets[0])

    def __getitems__(self, indices):
        with ThreadPoolExecutor(len(self.datasets)) as pool:
            parts = pool.map(lambda each: each.__getitems__(indices), self.datasets)
            return list(zip(*parts, strict=True))


def last_backwards(num_frames, *, rng):
    indices = np.arange(num_frames - 1, num_frames - 7, -1)
    return ClipIndices(indices, np.ones(6, np.bool_))


def stacked(first, second):
    return torch.utils.data.StackDataset(first, second)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "combine",
    [
        stacked,
        lambda first, second: torch.utils.data.StackDataset(rgb=first, flow=second),
        lambda first, second: stacked(first, stacked(second, first)),
        lambda first, second: stacked(ConcatDataset([first]), second),
        lambda first, second: Split(first, second, lambda index: index % 2 == 0),
        lambda first, second: Split(first, second, lambda index: index < 2),
        Threaded,
    ],
    ids=["tuple", "dict", "nested", "wrapped", "split", "one", "threads"],
)
def test_clips_of_several_datasets_are_those_of_each(large, combine, workers):
    path = large.source.readers[0].output_dir
    other = GulpClipDataset(path, last_backwards, target="number")

    def run(collate):
        dataset = combine(large, other)
        sampler = ResumableSampler(dataset, seed=5, shuffle=False)
        options = {"num_workers": workers, "batch_size": 2, "sampler": sampler}
        return list(loader_of(dataset, collate, **options))

    mine, plain = run(RecyclingCollate()), run(default_collate)
    assert len(mine) == 5
    assert_same(mine, plain)


class FirstFrames:
    """A transform that reads the frames of an item by itself."""

    def __init__(self, dataset):
        self.source = dataset.source

    def __call__(self, info):
        clip = self.source.readers[0].read_clip(info["id"], slice(6))
        return torch.from_numpy(clip).movedim(-1, -3), info["id"]


@pytest.mark.parametrize("is_first", [True, False])
def test_clips_may_be_beside_samples_that_a_pipeline_makes(large, is_first):
    path = large.source.readers[0].output_dir
    others = GulpDataset(path, pipeline=[FirstFrames(large)])
    both = ConcatDataset([large, others] if is_first else [others, large])

    def run(collate):
        sampler = ResumableSampler(both, seed=5)
        options = {"num_workers": 1, "batch_size": 4, "sampler": sampler}
        return list(loader_of(both, collate, **options))

    assert_same(run(RecyclingCollate()), run(default_collate))


def test_two_leaves_of_a_batch_do_not_share_memory(large):
    dataset = torch.utils.data.StackDataset(large, large)
    for (one, _), (other, _) in loader_of(dataset, RecyclingCollate(), num_workers=1):
        wanted = other.clone()
        one.zero_()
        assert torch.equal(other, wanted)


# --- the slots -----------------------------------------------------------------------


@pytest.fixture
def slots():
    return SharedSlots(2, 4096)


def in_child(work):
    """Run in a fork, and give its exit status."""
    return status_of(forked(work))


def send(slots, values):
    """Claim a slot and fill it in a fork that then ends; give what arrives."""
    read, write = os.pipe()

    def fill():
        lease = slots.claim()
        lease.take((len(values),), np.int64)[:] = values
        os.write(write, f"{lease.slot} {lease.turn}".encode())

    assert in_child(fill) == 0
    os.close(write)
    with open(read, "rb") as pipe:  # noqa: PTH123  # a descriptor
        slot, turn = map(int, pipe.read().split())
    return slots.name, slot, turn, 0, (len(values),), "<i8"


def test_a_slot_goes_from_hand_to_hand(slots):
    first = borrow(*send(slots, [1, 2]))
    second = borrow(*send(slots, [3]))
    assert in_child(lambda: slots.claim() is None and 7) == 7
    assert (first.tolist(), second.tolist()) == ([1, 2], [3])
    part = first[1:]
    del first
    gc.collect()
    assert in_child(lambda: slots.claim() is None and 7) == 7
    assert part.tolist() == [2]
    del part
    gc.collect()
    assert borrow(*send(slots, [4])).tolist() == [4]


def test_what_a_dead_worker_sent_is_not_mixed_with_anothers(slots):
    lost = send(slots, [1])
    for _ in range(2):
        send(slots, [2])
    with pytest.raises(RuntimeError, match="a batch was lost"):
        borrow(*lost)


def test_a_fork_of_the_trainer_frees_nothing(slots):
    kept = [borrow(*send(slots, [number])) for number in (1, 2)]

    def drop():
        kept.clear()
        gc.collect()

    assert in_child(drop) == 0
    assert in_child(lambda: slots.claim() is None and 7) == 7
    assert [array.tolist() for array in kept] == [[1], [2]]


def test_a_slot_holds_no_more_than_its_size(slots):
    lease = slots.claim()
    assert lease.take((4000,), np.uint8) is not None
    assert lease.take((65,), np.uint8) is None
    assert lease.take((64,), np.uint8) is not None
    assert lease.take((1,), np.uint8) is None
    slots.give_back(lease)
    assert slots.claim().slot == lease.slot


def test_a_message_in_a_process_without_the_memory_is_refused(slots):
    message = send(slots, [1])
    with pytest.raises(RuntimeError, match="does not have its memory"):
        borrow("0123", *message[1:])


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="num_slots is 0"):
        RecyclingCollate(num_slots=0)
    with pytest.raises(ValueError, match="slot_bytes is -1"):
        RecyclingCollate(slot_bytes=-1)


# --- what is left --------------------------------------------------------------------

PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
from functools import partial
from torch.utils.data import DataLoader
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    GulpClipDataset, RecyclingCollate, ResumableSampler, default_collate
)

def main():
    dataset = GulpClipDataset(sys.argv[1], partial(sample_window, clip_length=6))
    collate = RecyclingCollate() if sys.argv[2] == "recycling" else default_collate
    loader = DataLoader(
        dataset, 2, sampler=ResumableSampler(dataset), num_workers=2,
        collate_fn=collate,
    )
    for number, batch in enumerate(loader):
        if number == 2:
            END

main()
"""


def processes_of(group):
    """List the processes of a group that are not gone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
@pytest.mark.parametrize("collate", ["recycling", "default"])
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("pass", 0),
        ("raise KeyError('mine')", 1),
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
    ids=["end", "error", "kill"],
)
def test_a_trainer_leaves_nothing_behind(
    large, repository, python, tmp_path_factory, collate, end, status
):
    path = large.source.readers[0].output_dir
    # A short name: where it makes that of a socket too long, torch waits for ever.
    temporary = tmp_path_factory.mktemp("t")
    before = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else set()
    process = subprocess.Popen(
        [python, "-c", PROGRAM.replace("END", end), path, collate],
        env={**os.environ, "PYTHONPATH": str(repository), "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Workers hold its end of the pipe too: wait for the process, not for the pipe.
    assert process.wait(timeout=120) == status, process.stderr.read()  # type: ignore[union-attr]  # a pipe
    deadline = time.monotonic() + 30  # workers look for their parent every 5 s
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(process.pid) == []
    process.stderr.close()  # type: ignore[union-attr]  # a pipe
    left = set(SHARED_MEMORY.iterdir()) - before if SHARED_MEMORY.is_dir() else set()
    mine = [
        entry.name
        for entry in left
        if "gulp" in entry.name or entry.name.startswith(f"torch_{process.pid}")
    ]
    assert mine == []


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"num_slots": 0}, ValueError, "num_slots is 0, expected at least 1"),
        ({"slot_bytes": 1.5}, TypeError, "slot_bytes is 1.5, expected a whole number"),
        ({"slot_bytes": "1GB"}, TypeError, "slot_bytes is '1GB'"),
    ],
)
def test_sizes_of_memory_are_numbers_of_at_least_one(arguments, error, told):
    with pytest.raises(error, match=told):
        RecyclingCollate(**arguments)
