"""Samples that a thread of the loader makes together."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.codecs.decode import FrameDecoder
from gulpio2.errors import CorruptFrameError
from gulpio2.format.plan import plan_apart
from gulpio2.sampling import ClipIndices, sample_window
from gulpio2.torch import GulpClipDataset, GulpImageDataset, GulpLoader, ahead, stored
from gulpio2.torch.prefetch import share_of_thread
from gulpio2.torch.ring import Slot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gulpio2.torch.substitutes import OnCorrupt

NUM_ITEMS = 24
WINDOW = partial(sample_window, clip_length=4)


def scattered(num_frames: int, rng: np.random.Generator | None = None) -> ClipIndices:
    """Choose four frames in any order, one perhaps twice, or none for one."""
    assert rng is not None
    indices = rng.integers(-1, num_frames, size=4)
    indices[0] = max(indices[0], 0)  # not none at all
    return ClipIndices(indices, indices >= 0)


@pytest.fixture
def plain_calls(monkeypatch):
    """Give a list with an entry for each sample that took nothing but decoding."""
    calls: list[FrameDecoder] = []
    decode_plain = FrameDecoder.decode_plain

    def counted(self: FrameDecoder, frames: Any) -> None:
        calls.append(self)
        decode_plain(self, frames)

    monkeypatch.setattr(FrameDecoder, "decode_plain", counted)
    # However slow this machine is: what storage brings slowly is not read ahead.
    monkeypatch.setattr(ahead, "_SLOW_READ", 60)
    return calls


@pytest.fixture(params=["one read", "a read for each frame"])
def reads(request, monkeypatch):
    """Let the frames of a clip come with one read, or with one each."""
    if request.param != "one read":
        monkeypatch.setattr(stored, "cover_neighbours", lambda _: None)
        monkeypatch.setattr(stored, "plan_apart", partial(plan_apart, max_gap=0))


def cut(path: Path, number: int, frame: int) -> None:
    """End the JPEG of a frame in its middle, where its header does not show it."""
    with GulpDirectory(path) as directory:
        entry = directory.merged_meta_dict[f"clip{number}"]
        chunk = directory.chunk_lookup[f"clip{number}"]
    offset, padding, length = entry["frame_info"][frame]
    length -= padding
    with (path / f"data_{chunk}.gulp").open("r+b") as file:
        jpeg = os.pread(file.fileno(), length, offset)
        scan = jpeg.index(b"\xff\xda") + 14
        at = (scan + length) // 2
        file.seek(offset + at)
        file.write(b"\xff\xd9" + bytes(length - at - 2))


@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("threads", [0, 1, 2, 5])
@pytest.mark.parametrize("sampler", [WINDOW, scattered], ids=["window", "scattered"])
def test_every_sample_is_what_is_stored(make_directory, plain_calls, threads, sampler):
    path = make_directory(counts=(8,) * NUM_ITEMS)
    dataset = GulpClipDataset(path, sampler, target="id")
    loader = GulpLoader(dataset, batch_size=7, threads=threads, output="numpy")
    seen: list[str] = []
    with GulpDirectory(path) as directory:
        for batch in loader:
            seen += batch.targets
            for id_, chosen, frames in zip(
                batch.targets, batch.frame_indices, batch.clips, strict=True
            ):
                for index, frame in zip(chosen.tolist(), frames, strict=True):
                    if index < 0:
                        assert not frame.any()
                    else:
                        (expected,) = directory.read_clip(id_, [index])
                        assert np.array_equal(frame, expected)
    assert sorted(seen) == sorted(f"clip{number}" for number in range(NUM_ITEMS))
    profile = loader.profile()
    assert profile.num_samples == NUM_ITEMS
    if sampler is WINDOW:
        assert len(plain_calls) == NUM_ITEMS
        assert profile.num_frames == 4 * NUM_ITEMS
    else:
        assert 0 < len(plain_calls) < NUM_ITEMS


@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("threads", [0, 1, 2, 5])
@pytest.mark.parametrize("verify", [False, "frames"])
def test_a_frame_that_is_cut_concerns_its_own_sample(
    make_directory, plain_calls, threads, verify
):
    path = make_directory(counts=(8,) * NUM_ITEMS)
    bad = 15, 16, 20
    for number, frame in zip(bad, (0, 5, 7), strict=True):
        cut(path, number, frame)
    sampler = partial(sample_window, clip_length=8)
    dataset = GulpClipDataset(GulpDirectory(path, verify=verify), sampler, target="id")

    def load(how: OnCorrupt) -> GulpLoader:
        options: dict[str, Any] = {"batch_size": 12, "shuffle": False}
        return GulpLoader(
            dataset, threads=threads, output="numpy", on_corrupt=how, **options
        )

    loader = load("skip")
    kept = [number for number in range(NUM_ITEMS) if number not in bad]
    with GulpDirectory(path) as directory:
        for batch, expected in zip(loader, (kept[:12], kept[12:]), strict=True):
            assert batch.targets == [f"clip{number}" for number in expected]
            clips = directory.read_clips([(id_, None) for id_ in batch.targets])
            assert np.array_equal(batch.clips, clips)
    assert loader.num_skipped == 3
    # What is not what was stored is not decoded at all.
    assert len(plain_calls) == NUM_ITEMS - (3 if verify else 0)

    loader = load("substitute")
    targets = [target for batch in loader for target in batch.targets]
    assert len(targets) == NUM_ITEMS
    assert not set(targets) & {f"clip{number}" for number in bad}
    assert loader.num_substituted == 3

    batches = iter(load("raise"))
    assert next(batches).targets == [f"clip{number}" for number in range(12)]
    with pytest.raises(CorruptFrameError, match=r"item 'clip15' of .*, frame 0: "):
        next(batches)


def test_what_a_target_raises_comes_with_its_batch(make_directory):
    path = make_directory(counts=(8,) * NUM_ITEMS)

    def target(info: Mapping[str, Any]) -> str:
        if info["id"] == "clip14":
            raise KeyError("no label")
        return str(info["id"])

    dataset = GulpClipDataset(path, WINDOW, target=target)
    options: dict[str, Any] = {"batch_size": 6, "shuffle": False, "output": "numpy"}
    batches = iter(GulpLoader(dataset, **options))
    for first in (0, 6):
        ids = [f"clip{number}" for number in range(first, first + 6)]
        assert next(batches).targets == ids
    with pytest.raises(KeyError, match="no label"):
        next(batches)


@pytest.mark.parametrize(
    ("batch_size", "num_slots", "threads", "expected"),
    [
        (8, 3, 2, 2),  # of 4 MB each: two are eight
        (8, 3, 8, 1),  # else some threads would have none
        (1, 3, 1, 1),
        (8, 3, 0, 2),
        (128, 3, 2, 2),
    ],
)
def test_a_thread_takes_few_samples_and_leaves_some(
    batch_size, num_slots, threads, expected
):
    slot = Slot((batch_size, 1, 1, 1, 4 << 20), tensor=False, pinned=False)
    assert share_of_thread([slot] * num_slots, threads) == expected


def test_single_frames_are_many_of_a_batch(make_directory, plain_calls):
    path = make_directory(counts=(3,) * NUM_ITEMS)
    dataset = GulpImageDataset(path, frame="random", target="id")
    loader = GulpLoader(dataset, batch_size=8, output="numpy", threads=2)
    with GulpDirectory(path) as directory:
        for batch in loader:
            for id_, index, frame in zip(
                batch.targets, batch.frame_indices, batch.clips, strict=True
            ):
                (expected,) = directory.read_clip(id_, [index.item()])
                assert np.array_equal(frame, expected)
    assert len(plain_calls) == NUM_ITEMS
