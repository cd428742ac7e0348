"""Gulp directories whose frames say which they are."""

from __future__ import annotations

import importlib.util
import json
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gulpio2.chunk import GulpChunk
from gulpio2.format.layout import data_name, meta_name
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset
from gulpio2.types import StoredFrame

if TYPE_CHECKING:
    from pathlib import Path
from typing import Any

# Far enough apart to be told from each other after JPEG.
ITEM_STEP, FRAME_STEP = 30, 12


def draw(item, frame, *, grey=False):
    """Draw a frame of one colour: red is the item, green the frame."""
    if grey:
        return np.full((8, 12), FRAME_STEP * frame, np.uint8)
    colour = (ITEM_STEP * item, FRAME_STEP * frame, 77)
    return np.full((8, 12, 3), colour, np.uint8)


class TimedFrames:
    """A source of frames with times, as a video is."""

    def __init__(self, frames, ticks):
        self.frames = frames
        self.ticks = ticks

    def __iter__(self):
        return iter(self.frames)

    def __len__(self):
        return len(self.frames)

    def stored(self):
        for frame, tick in zip(self.frames, self.ticks, strict=True):
            yield StoredFrame(frame, tick)

    @property
    def time_base(self):
        return Fraction(1, 1000)

    def source_info(self):
        return {}


@pytest.fixture(scope="session", autouse=True)
def _workers_end_at_once():
    """Do not wait five seconds for each worker of a loader that was left in the middle.

    torch joins them so long where its iterator and its queues are collected together,
    as after an exception: the queue is gone then that would tell them.
    """
    if importlib.util.find_spec("torch") is None:
        yield
        return
    from torch.utils.data import _utils

    with pytest.MonkeyPatch.context() as patch:
        for module in (_utils, _utils.worker):
            patch.setattr(module, "MP_STATUS_CHECK_INTERVAL", 0.2)
        yield


@pytest.fixture
def make_directory(tmp_path):
    """Write a directory: items ``name0``, ``name1``, ... of so many frames each."""

    def make(
        name="clip",
        counts=(8, 5, 1),
        *,
        metas=None,
        labels=None,
        ticks=None,
        grey=False,
    ) -> Path:
        folder = tmp_path / f"directory_{name}"
        folder.mkdir()
        for item, count in enumerate(counts):
            number = item // 2
            chunk = GulpChunk(folder / data_name(number), folder / meta_name(number))
            meta = {"idx": item % 2, "label": "ab"[item % 2]}
            if metas is not None:
                meta = metas[item]
            frames: Any = [draw(item, frame, grey=grey) for frame in range(count)]
            if ticks is not None:
                frames = TimedFrames(frames, ticks[:count])
            with chunk.open("ab"):
                chunk.append(f"{name}{item}", meta, frames)
        if labels is not None:
            (folder / "label2idx.json").write_text(json.dumps(labels), "utf-8")
        return folder

    return make


@pytest.fixture
def make_numbered(make_directory):
    """Make a dataset of so many items, whose targets are their numbers."""

    def make(num_items) -> GulpClipDataset:
        return GulpClipDataset(
            make_directory(counts=(4,) * num_items),
            partial(sample_window, clip_length=2),
            target=lambda info: int(info["id"].removeprefix("clip")),
        )

    return make


@pytest.fixture
def frame_numbers():
    """Read off the frames of a ``(..., 3, H, W)`` clip which ones they are."""

    def read(clip):
        green = np.asarray(clip)[..., 1, 4, 6].astype(float)
        return np.rint(green / FRAME_STEP).astype(int).tolist()

    return read


@pytest.fixture
def item_numbers():
    """Read off the frames of a ``(..., 3, H, W)`` clip which item they are of."""

    def read(clip):
        red = np.asarray(clip)[..., 0, 4, 6].astype(float)
        return np.rint(red / ITEM_STEP).astype(int).tolist()

    return read
