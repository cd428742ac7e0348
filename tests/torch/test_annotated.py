"""Programs with annotations: mypy, which goes through tests too, has no complaint."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import ConcatDataset, GulpClipDataset, ResumableSampler

pytestmark = pytest.mark.torch


def number_of(info: dict[str, Any]) -> int:
    """Give a target, of what `get_data_info` gives."""
    return int(info["id"].removeprefix("item"))


def test_datasets_are_those_of_a_loader_of_torch(tmp_path):
    from torch.utils.data import DataLoader, Dataset

    make_gulp_directory(tmp_path / "train", num_items=3, num_frames=4)
    clips = GulpClipDataset(
        tmp_path / "train", partial(sample_window, clip_length=2), target=number_of
    )
    dataset: Dataset[Any] = ConcatDataset([clips, clips])
    for inner, count in ((clips, 3), (dataset, 6)):
        loader: DataLoader[Any] = DataLoader(
            inner, batch_size=3, sampler=ResumableSampler(range(count), shuffle=False)
        )
        targets = [target for _, targets in loader for target in targets.tolist()]
        assert targets == [0, 1, 2] * (count // 3)
    assert not isinstance(clips, Dataset)  # torch is not needed


def test_a_clip_is_of_the_type_of_its_memory(tmp_path):
    import torch

    make_gulp_directory(tmp_path / "train", num_items=1, num_frames=4)
    with GulpDirectory(tmp_path / "train") as directory:
        clip = directory.read_clip("item0")
        memory = torch.empty(clip.shape, dtype=torch.uint8)
        same: torch.Tensor = directory.read_clip("item0", out=memory)
        both = directory.read_clips([("item0", [0, 1])])
    assert same is memory
    assert np.array_equal(clip, memory.numpy())
    assert np.array_equal(both[0], clip[:2])
