"""True in the place of a number is a mistake, and no 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gulpio2 import EncoderSettings, GulpDirectory, GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
from gulpio2.errors import IngestSettingError
from gulpio2.ingest.shard import Shard
from gulpio2.sampling import sample_segments, sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.utils import resize_by_short_edge


@pytest.fixture
def opened(tmp_path):
    make_gulp_directory(tmp_path / "made", num_items=2, num_frames=2)
    with GulpDirectory(tmp_path / "made") as directory:
        yield directory


@pytest.mark.parametrize("flag", [True, False, np.True_])
def test_a_flag_is_no_setting_of_numbers(flag, tmp_path):
    for call in (
        lambda: EncoderSettings(flag),
        lambda: sample_window(20, flag),
        lambda: sample_segments(flag, 1),
        lambda: GulpDirectory(tmp_path, threads=flag),
    ):
        with pytest.raises(TypeError, match=r"is \S+, expected a whole"):
            call()
    with pytest.raises(IngestSettingError, match="expected a whole number"):
        Shard(1, flag)


@pytest.mark.parametrize("flag", [True, np.True_])
def test_a_flag_is_no_number_of_pixels(flag, opened):
    for option in ({"min_size": flag}, {"scale": flag}, {"crop": (0, 0, flag, flag)}):
        with pytest.raises(TypeError, match=r"is .*True.*; it must be"):
            opened.read_clip("item0", [0], **option)
    with pytest.raises(TypeError, match="size is True"):
        resize_by_short_edge(np.zeros((4, 4, 3), np.uint8), size=True)


def test_a_mask_of_frames_stays_one(opened):
    frames, _ = opened["item0", [True, False]]
    assert len(frames) == 1


def test_a_flag_is_no_size_that_adapters_store(tmp_path):
    (tmp_path / "videos").mkdir()
    flags: list[Any] = [True, np.True_]
    for flag in flags:
        with pytest.raises(IngestSettingError, match=r"frame_size is .*True.*; give"):
            VideoFolderAdapter(tmp_path / "videos", tmp_path / "out", frame_size=flag)
    assert VideoFolderAdapter(tmp_path, "out", frame_size=False).frame_size == 0
    as_text: Any = "8"
    assert VideoFolderAdapter(tmp_path, "out", frame_size=as_text).frame_size == 8


def test_a_flag_is_no_number_of_bytes(tmp_path):
    adapter = VideoFolderAdapter(tmp_path, tmp_path / "out")
    with pytest.raises(IngestSettingError, match="chunk_bytes is True"):
        GulpIngestor(adapter, tmp_path / "out", 1, 1, chunk_bytes=True)


def test_a_flag_is_no_size_of_a_view():
    torch_part = pytest.importorskip("gulpio2.torch")
    with pytest.raises(TypeError, match="size is True"):
        torch_part.CenterCrop(True)
