"""What a GPU still copies is not written over, however a program goes on."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import FormatError
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import (
    GulpClipDataset,
    GulpLoader,
    RecyclingCollate,
    ResumableSampler,
)

pytestmark = pytest.mark.gpu
# Cycles of the device's clock, some hundredths of a second: a copy has to wait so long.
DELAY = 60_000_000
CLIP, BATCH = 4, 4


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Give clips of some size, so that memory of batches is memory of its own."""
    path = tmp_path_factory.mktemp("gulped")
    make_gulp_directory(path, num_items=24, num_frames=8, height=96, width=128)
    return path


@pytest.fixture
def dataset(directory):
    return GulpClipDataset(directory, partial(sample_window, clip_length=CLIP))


def make_loader(dataset, **options) -> GulpLoader:
    return GulpLoader(
        dataset, batch_size=BATCH, pin_memory=True, prefetch=1, seed=3, **options
    )


@pytest.fixture
def wanted(dataset):
    """Give the batches of two epochs, as the processor has them."""
    loader = GulpLoader(dataset, batch_size=BATCH, seed=3)
    return [batch.clips.clone() for _ in range(2) for batch in loader]


def all_equal(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(
        one.cpu().equal(other) for one, other in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("options", [{}, {"keep": 2}, {"threads": 0}])
def test_copies_on_the_current_stream(dataset, wanted, options):
    import torch

    loader, found = make_loader(dataset, **options), []
    for _ in range(2):
        for batch in loader:
            torch.cuda._sleep(DELAY)
            found.append(batch.clips.to("cuda", non_blocking=True))
    assert all_equal(found, wanted)


def test_copies_on_a_stream_of_their_own(dataset, wanted):
    import torch

    loader, found = make_loader(dataset), []
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(2):
            for batch in loader:
                torch.cuda._sleep(DELAY)
                found.append(batch.clips.to("cuda", non_blocking=True))
    torch.cuda.synchronize()
    assert all_equal(found, wanted)


def test_views_of_a_batch_may_be_copied(dataset, wanted):
    import torch

    loader, found = make_loader(dataset, layout="TCHW"), []
    for _ in range(2):
        for batch in loader:
            torch.cuda._sleep(DELAY)
            halves = batch.clips.split(BATCH // 2)
            found.append([half.to("cuda", non_blocking=True) for half in halves])
    joined = [torch.cat(halves).movedim(-3, -1) for halves in found]
    assert all_equal(joined, wanted)


@pytest.mark.parametrize("first", [0, 1])
def test_memory_of_a_loader_that_is_gone(dataset, wanted, first):
    import torch

    loader = make_loader(dataset)
    batch = next(iter(loader))
    size = batch.clips.shape
    torch.cuda._sleep(5 * DELAY)
    copied = batch.clips[first:].to("cuda", non_blocking=True)
    loader.close()
    del batch, loader
    gc.collect()
    # Whoever asks for as much page-locked memory next must not be given that one yet.
    for _ in range(8):
        torch.full(size, 255, dtype=torch.uint8).pin_memory()
    assert copied.cpu().equal(wanted[0][first:])


def test_batches_of_worker_processes_are_pinned_by_torch(dataset):
    import torch

    def batches(**options: Any) -> list[Any]:
        loader = torch.utils.data.DataLoader(
            dataset,
            batch_size=BATCH,
            sampler=ResumableSampler(dataset, seed=3),
            num_workers=2,
            **options,
        )
        found = []
        for batch in loader:
            clips = batch[0] if isinstance(batch, (tuple, list)) else batch
            assert clips.is_pinned() == bool(options)
            if options:
                torch.cuda._sleep(DELAY)
            found.append(clips.to("cuda", non_blocking=True))
            del batch, clips
        return [clips.cpu() for clips in found]

    plain = batches()
    recycled = batches(pin_memory=True, collate_fn=RecyclingCollate(num_slots=2))
    assert len(plain) == 6
    assert all_equal(recycled, plain)


def test_memory_of_a_device_is_no_out(directory):
    import torch

    opened = GulpDirectory(directory)
    shape = opened.read_clip("item0", [0, 1]).shape
    out = torch.zeros(shape, dtype=torch.uint8, device="cuda")
    with pytest.raises(FormatError, match="out is a Tensor: can't convert cuda:0"):
        opened.read_clip("item0", [0, 1], out=out)
    with pytest.raises(FormatError, match="out is a Tensor: can't convert cuda:0"):
        opened.read_clips([("item0", [0, 1])], out=out)
    assert not out.any()
    pinned = torch.zeros(shape, dtype=torch.uint8, pin_memory=True)
    opened.read_clip("item0", [0, 1], out=pinned)
    np.testing.assert_array_equal(pinned, opened.read_clip("item0", [0, 1]))
