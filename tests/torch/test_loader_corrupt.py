"""What the loader does about damaged samples, and what it counts."""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import CorruptFrameError, StorageError
from gulpio2.sampling import ClipIndices, sample_window
from gulpio2.testing import make_frames
from gulpio2.torch import (
    CenterCrop,
    ConcatDataset,
    GulpClipDataset,
    GulpImageDataset,
    GulpLoader,
)
from gulpio2.torch.ahead import ReadAhead
from gulpio2.torch.filling import SampleMaker
from tests.torch.troubles import damage, fail_reads

BAD = (1, 4)
NUM_ITEMS = 9


@pytest.fixture
def damaged(make_directory):
    """Make a dataset of nine items, of which the second and the fifth are damaged."""
    path = make_directory(counts=(8,) * NUM_ITEMS)
    damage(path, BAD)
    return GulpClipDataset(path, partial(sample_window, clip_length=4), target="id")


def load(dataset, how, **options: Any):
    arguments: dict[str, Any] = {"batch_size": 2, "threads": 2, "output": "numpy"}
    return GulpLoader(dataset, on_corrupt=how, **{**arguments, **options})


def test_raise_names_the_item_after_the_batches_before_it(damaged):
    loader = load(damaged, "raise", shuffle=False, prefetch=4)
    batches = iter(loader)
    with pytest.raises(CorruptFrameError, match=r"item 'clip1' of .*gulp2 check"):
        next(batches)
    assert loader.state_dict()["position"] == 0
    loader = load(damaged.get_subset([0, 2, 3, 4]), "raise", shuffle=False, prefetch=4)
    batches = iter(loader)
    assert next(batches).targets == ["clip0", "clip2"]
    with pytest.raises(CorruptFrameError, match="'clip4'"):
        next(batches)
    assert loader.state_dict()["position"] == 2


def test_skip_leaves_them_out_and_nothing_else(damaged, item_numbers, caplog):
    loader = load(damaged, "skip", shuffle=False)
    with caplog.at_level(logging.WARNING, logger="gulpio2"):
        found = [
            (batch.targets, item_numbers(np.moveaxis(batch.clips, -1, -3)))
            for batch in loader
        ]
    kept = [["clip0"], ["clip2", "clip3"], ["clip5"], ["clip6", "clip7"], ["clip8"]]
    assert [targets for targets, _ in found] == kept
    for targets, numbers in found:
        assert numbers == [[int(name.removeprefix("clip"))] * 4 for name in targets]
    assert (loader.num_skipped, loader.num_substituted) == (2, 0)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert any("position 4: sample left out: item 'clip4'" in text for text in warnings)


def test_what_stands_in_for_damage_may_be_longer(make_directory, monkeypatch):
    # Nothing is read ahead where storage is slow: then a thread has one piece of memory
    # for what it reads, to which the error about the damage refers.
    monkeypatch.setattr(ReadAhead, "read", lambda *_: False)
    path = make_directory(counts=(2, 64))
    offset, _, length = GulpDirectory(path).merged_meta_dict["clip0"]["frame_info"][1]
    data = bytearray((path / "data_0.gulp").read_bytes())
    data[offset : offset + length] = bytes(length)
    (path / "data_0.gulp").write_bytes(data)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=64), target="id")
    loader = load(dataset, "substitute", batch_size=1, shuffle=False, threads=1)
    assert [batch.targets for batch in loader] == [["clip1"], ["clip1"]]
    assert loader.num_substituted == 1


@pytest.mark.parametrize("view", [None, CenterCrop(8)])
def test_an_empty_record_in_the_first_sample_is_put_up_with(make_directory, view):
    path = make_directory("empty", (8, 8, 8))
    map_path = path / "meta_0.gmeta"
    entries = json.loads(map_path.read_text())
    del entries["empty0"]["gulp2"]  # its own check
    entries["empty0"]["frame_info"][2][1:] = [0, 0]
    map_path.write_text(json.dumps(entries))
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=8))
    options = {"batch_size": 1, "shuffle": False, "view": view, "output": "numpy"}
    with GulpLoader(dataset, **options, on_corrupt="skip") as loader:
        assert [len(batch) for batch in loader] == [0, 1, 1]
    with pytest.raises(CorruptFrameError, match="frame 2: the record is empty"):
        next(iter(GulpLoader(dataset, **options)))


def test_a_batch_of_which_all_is_damaged_is_empty(make_directory):
    path = make_directory(counts=(8,) * 4)
    damage(path, (0, 1))
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4))
    loader = load(dataset, "skip", shuffle=False)
    shapes = []
    # The size of the frames comes from the first that can be read.
    for batch in loader:
        shapes.append(batch.clips.shape)
        assert repr(batch)
        assert batch.frame_indices.shape == batch.valid.shape == (len(batch), 4)
    assert shapes == [(0, 4, 8, 12, 3), (2, 4, 8, 12, 3)]
    assert loader.num_skipped == 2


def test_an_empty_batch_of_single_frames_goes_with_the_others(make_directory):
    path = make_directory(counts=(8,) * 4)
    damage(path, (0, 1))
    batches = list(load(GulpImageDataset(path, frame=3), "skip", shuffle=False))
    assert [len(batch) for batch in batches] == [0, 2]
    joined = np.concatenate([batch.frame_indices for batch in batches])
    assert joined.tolist() == [[3], [3]]
    assert np.concatenate([batch.valid for batch in batches]).all()


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_substitutes_are_the_same_whoever_makes_them(damaged, threads):
    def run(threads, stop=None):
        loader = load(damaged, "substitute", seed=6, threads=threads)
        found = []
        for number, batch in enumerate(loader):
            found += list(zip(batch.positions.tolist(), batch.targets, strict=True))
            if stop == number:
                break
        return found, loader.state_dict()

    wanted, state = run(1)
    assert [position for position, _ in wanted] == list(range(NUM_ITEMS))
    assert not {"clip1", "clip4"} & {target for _, target in wanted}
    assert (state["substituted"], state["skipped"]) == (2, 0)
    assert run(threads) == (wanted, state)
    order = list(load(damaged, "substitute", seed=6).cursor.pending())
    for draw, (_, target) in zip(order, wanted, strict=True):
        if draw.index not in BAD:
            assert target == f"clip{draw.index}"
    begun, middle = run(threads, stop=1)
    assert begun == wanted[:4]
    assert middle["substituted"] == sum(draw.index in BAD for draw in order[:4])


def test_counts_are_of_what_was_given_out_and_go_on_after_a_resume(damaged):
    loader = load(damaged, "skip", shuffle=False, prefetch=4)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    assert (state["position"], state["skipped"]) == (2, 1)  # the threads are further
    loader.close()
    resumed = load(damaged, "skip", shuffle=False)
    resumed.load_state_dict(state)
    assert len(list(resumed)) == 4
    assert resumed.state_dict()["skipped"] == 2


def test_substitutes_come_from_the_same_inner_dataset(make_directory):
    sampler = partial(sample_window, clip_length=4)
    first, second = (
        make_directory(name, counts=(8,) * 3) for name in ("first", "second")
    )
    damage(second, (0, 1), name="second")
    joined = ConcatDataset(
        [GulpClipDataset(path, sampler, target="id") for path in (first, second)]
    )
    (batch,) = load(joined, "substitute", batch_size=6, shuffle=False)
    assert batch.targets == ["first0", "first1", "first2", *["second2"] * 3]
    assert batch.num_substituted == 2


def test_it_gives_up_where_nothing_can_stand_in(make_directory):
    path = make_directory(counts=(8, 8))
    damage(path, (0, 1))
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4))
    with pytest.raises(CorruptFrameError):
        list(load(dataset, "substitute"))


def test_many_damaged_samples_are_no_few_damaged_samples(damaged):
    loader = load(damaged, "skip", max_corrupt=2)
    for _ in range(3):  # the same two each epoch
        assert sum(map(len, loader)) == 7
    with pytest.raises(CorruptFrameError, match=r"More than 1 sample is .*max_corrupt"):
        list(load(damaged, "skip", max_corrupt=1))


def test_too_many_are_told_in_the_turn_of_the_batch_that_has_the_last(
    damaged, monkeypatch
):
    # Whichever was come upon first: a run ends at the same step each time.
    make = SampleMaker._make

    def make_late(self, draw, *rest):
        if draw == BAD[0]:
            time.sleep(0.3)
        return make(self, draw, *rest)

    monkeypatch.setattr(SampleMaker, "_make", make_late)
    loader = load(damaged, "skip", shuffle=False, max_corrupt=1, prefetch=6)
    batches = iter(loader)
    assert next(batches).targets == ["clip0"]
    assert next(batches).targets == ["clip2", "clip3"]
    with pytest.raises(CorruptFrameError, match=r"'clip4' .*More than 1 sample is"):
        next(batches)
    assert loader.state_dict()["position"] == 4
    assert loader.num_skipped == 1


def test_a_disk_that_refuses_everything_is_no_damage(damaged):
    class Reader(GulpDirectory):
        def read_jpegs(self, id_, slice_=None):
            raise StorageError(errno.EACCES, "no permission")

    path = damaged.source.readers[0].output_dir
    dataset = GulpClipDataset(Reader(path), partial(sample_window, clip_length=4))
    with pytest.raises(StorageError, match="no permission"):
        list(load(dataset, "skip"))


@pytest.mark.parametrize(("times", "count"), [(1, 0), (2, 0), (99, 1)])
@pytest.mark.parametrize("how", ["skip", "substitute"])
@pytest.mark.parametrize("frames", [range(4), [6, 3, 1]], ids=["one read", "apart"])
def test_an_error_of_reading_is_damage_unless_it_passes(
    make_directory, monkeypatch, frames, how, times, count
):
    path = make_directory(counts=(8, 8))
    with GulpDirectory(path) as directory:
        infos = directory.merged_meta_dict["clip0"]["frame_info"]
    # It is read ahead first, which tells nothing, and then for itself.
    of_the_item = range(infos[0][0], infos[-1][0] + 1)

    def sampler(num_frames, rng=None):
        return ClipIndices(np.array(frames), np.ones(len(frames), np.bool_))

    loader = load(GulpClipDataset(path, sampler, target="id"), how)
    fail_reads(monkeypatch, "pread", "preadv", times=times, at=of_the_item)
    names = [name for batch in loader for name in batch.targets]
    assert ("clip0" in names) == (count == 0)
    state = loader.state_dict()
    assert state["skipped"] + state["substituted"] == count


@pytest.mark.parametrize("how", ["skip", "substitute"])
def test_a_file_that_cannot_be_opened_is_no_damage(make_directory, monkeypatch, how):
    path = make_directory(counts=(8,) * 4)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4), target="id")
    loader = load(dataset, how)
    fail_reads(monkeypatch, "open", times=1)
    with pytest.raises(StorageError, match=r"cannot open .*: Input/output error"):
        list(loader)


def test_a_data_file_that_was_cut_is_damage_too(make_directory):
    path = make_directory(counts=(8, 8))
    with (path / "data_0.gulp").open("r+b") as file:
        file.truncate(GulpDirectory(path).item("clip0").num_bytes + 10)
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4), target="id")
    (batch,) = load(dataset, "skip", shuffle=False)
    assert batch.targets == ["clip0"]


@pytest.mark.parametrize("frames", [range(8), [6, 3, 1]], ids=["one read", "apart"])
@pytest.mark.parametrize("view", [None, CenterCrop(8), CenterCrop((64, 32))])
@pytest.mark.parametrize("verify", ["frames", False])
def test_checksums_are_compared(make_directory, view, frames, verify, caplog):
    path = make_directory(counts=(8,) * 6)
    with GulpDirectory(path) as directory:
        loc, _, _ = directory.merged_meta_dict["clip4"]["frame_info"][3]
        number = directory.chunk_lookup["clip4"]
    with (path / f"data_{number}.gulp").open("r+b") as file:
        at = loc + 30  # in the table by which values are divided
        changed = os.pread(file.fileno(), 1, at)[0] ^ 1
        os.pwrite(file.fileno(), bytes([changed]), at)

    def sampler(num_frames, rng=None):
        return ClipIndices(np.array(frames), np.ones(len(frames), np.bool_))

    directory = GulpDirectory(path, verify=verify)
    dataset = GulpClipDataset(directory, sampler, target="id")
    loader = load(dataset, "skip", shuffle=False, view=view, threads=2, batch_size=3)
    with caplog.at_level(logging.WARNING, logger="gulpio2"):
        targets = [target for batch in loader for target in batch.targets]
    left_out = {"clip4"} if verify else set()  # the codec says nothing
    assert targets == [f"clip{n}" for n in range(6) if f"clip{n}" not in left_out]
    assert loader.num_skipped == len(left_out)
    told = [record.getMessage() for record in caplog.records]
    assert [text.count("gulp2 check --deep") for text in told] == [1] * len(left_out)


@pytest.mark.parametrize(
    "view",
    [CenterCrop(8, share=0.5), CenterCrop(32, share=0.5), CenterCrop((64, 32))],
    ids=["smaller", "above", "beside"],
)
def test_damage_outside_of_a_crop_is_found_all_the_same(tmp_path, view):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_ in "abcd":
            chunk.append(id_, {}, make_frames(3, 64, 64))
    offset, length = chunk.item("c").record.spans([1])[0]
    with (tmp_path / "data_0.gulp").open("r+b") as data:
        data.seek(offset + length - 5)
        byte = data.read(1)[0]
        data.seek(offset + length - 5)
        data.write(bytes([byte ^ 0x10]))
    sampler = partial(sample_window, clip_length=3)
    loader = load(GulpClipDataset(tmp_path, sampler, target="id"), "skip", view=view)
    targets = {target for batch in loader for target in batch.targets}
    assert targets == {"a", "b", "d"}
    assert loader.num_skipped == 1
