"""The transforms of torchvision's v2, the real ones, as the transform of a dataset."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gulpio2.sampling import sample_window, spaced_windows
from gulpio2.torch import (
    GulpClipDataset,
    GulpImageDataset,
    ResumableSampler,
    default_collate,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # few cores here
    # Python 3.12 on: torch has threads, and its loader forks.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]


@pytest.fixture
def augment():
    """Make a usual transform of training, with random parts."""
    try:
        from torchvision.transforms import v2
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError as error:
        pytest.skip(f"torchvision is not of the build of torch that is here: {error}")
    import torch

    return v2.Compose(
        [
            v2.RandomResizedCrop(12, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(brightness=0.4),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.5] * 3, std=[0.25] * 3),
        ]
    )


def clips_of(path, augment, **options: Any):
    sampler = partial(sample_window, clip_length=4)
    return GulpClipDataset(path, sampler, transform=augment, **options)


def batches_of(dataset, workers, state=None):
    from torch.utils.data import DataLoader

    sampler = ResumableSampler(dataset, seed=3)
    if state is not None:
        sampler.load_state_dict(state)
    loader: Any = DataLoader(
        dataset,
        batch_size=2,
        sampler=sampler,
        num_workers=workers,
        collate_fn=default_collate,
    )
    return [(batch, sampler.state_dict()) for batch in sampler.track(loader)]


def test_all_frames_of_a_clip_are_transformed_alike(make_directory, augment):
    import torch

    # A window of one frame, which comes four times.
    dataset = clips_of(make_directory(counts=(1,)), augment)
    clip = dataset[0]
    assert clip.shape == (4, 3, 12, 12)
    assert clip.dtype == torch.float32
    assert all(frame.equal(clip[0]) for frame in clip)
    assert not dataset[0].equal(clip)  # at random


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_has_the_same_pixels_in_any_worker_and_after_a_resume(
    make_directory, augment, workers
):
    dataset = clips_of(make_directory(counts=(8,) * 6), augment)
    wanted = batches_of(dataset, 1)
    found = batches_of(dataset, workers)
    rest = batches_of(dataset, workers, state=wanted[0][1])
    assert len(wanted) == 3
    for (mine, state), (theirs, other) in zip(
        [*found, *rest], [*wanted, *wanted[1:]], strict=True
    ):
        assert mine.shape == (2, 4, 3, 12, 12)
        assert mine.equal(theirs)
        assert state == other


def test_each_of_several_clips_is_transformed_by_itself(make_directory, augment):
    sampler = partial(spaced_windows, num_windows=3, clip_length=2)
    dataset = GulpClipDataset(
        make_directory(counts=(1,)), sampler, transform=augment
    )  # thrice the same frame
    clips = dataset[0]
    assert clips.shape == (3, 2, 3, 12, 12)
    assert not clips[0].equal(clips[1])


def test_an_image_is_transformed_too(make_directory, augment):
    image = GulpImageDataset(make_directory(), transform=augment)[1]
    assert image.shape == (3, 12, 12)
