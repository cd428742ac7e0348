"""Real videos through the whole ingest: what a directory holds of them afterwards."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
from gulpio2.sanity import check_directory
from tests.media.quality import ENDINGS, compare

# Frames, and every how many of them are compared; drawings are not held to 37 dB.
VIDEOS = {
    "arm_wrestling_h264_28fps.mp4": (280, 14),
    "pancake_h264_audio.mkv": (310, 15),
    "nasa_six_streams.mp4": (390, 30),
    "mpeg4_audio_25fps.avi": (164, 8),
    "vp8_audio_30fps.webm": (140, 7),
    "h264_6fps.mp4": (57, 3),
    "rotated_90.mov": (3, 1),
    "odd_width_vp9.mp4": (25, 3),
    "odd_width_vp9_10bit.mp4": (25, 3),
    "bt709_full_range.mp4": (30, 10),
}
DRAWN = {"odd_width_vp9.mp4", "odd_width_vp9_10bit.mp4", "bt709_full_range.mp4"}


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """Ingest the folder once; give the report and the directory."""
    made: dict[str, Any] = {}

    def ingest(folder):
        if not made:
            out = tmp_path_factory.mktemp("real") / "out"
            adapter = VideoFolderAdapter(folder, out, file_extensions=ENDINGS)
            made["report"] = GulpIngestor(adapter, out, 3, 2).run()
            made["directory"] = GulpDirectory(out)
        return made["report"], made["directory"]

    return ingest


def test_all_but_the_damaged_one_are_stored_and_it_is_named(shared_videos, ingested):
    report, directory = ingested(shared_videos)
    assert set(directory.merged_meta_dict) == {f"videos-{name}" for name in VIDEOS}
    (failure,) = report.failures
    assert failure.id == "videos-corrupted.mp4"
    assert failure.source == str(shared_videos / "corrupted.mp4")
    line = json.loads((directory.output_dir / "failures.jsonl").read_text())
    assert "corrupted.mp4" in line["message"]
    assert check_directory(directory.output_dir, deep=True).problems == []


@pytest.mark.parametrize("name", VIDEOS)
def test_every_frame_is_there_at_its_time(shared_videos, ingested, decode_all, name):
    _, directory = ingested(shared_videos)
    item = directory.item(f"videos-{name}")
    frames = decode_all(shared_videos / name)
    assert item.num_frames == len(frames) == VIDEOS[name][0]
    assert item.extras.time_base == frames[0].time_base
    if name.endswith(".avi"):  # it has no presentation times: one tick a frame
        assert item.extras.time_base == Fraction(1, 25)
        assert np.diff(item.extras.pts).tolist() == [1] * 163
    else:
        assert list(item.extras.pts) == [frame.pts for frame in frames]
    height, width, _ = item.frame_shape
    turned = frames[0].rotation % 180 != 0
    shown = (frames[0].height, frames[0].width)
    assert (height, width) == (shown[::-1] if turned else shown)


@pytest.mark.parametrize("name", VIDEOS)
def test_stored_frames_are_as_good_as_the_exact_ones_encoded(
    shared_videos, ingested, decode_all, name
):
    _, directory = ingested(shared_videos)
    jpegs = directory.read_jpegs(f"videos-{name}")
    found = compare(decode_all(shared_videos / name), jpegs, every=VIDEOS[name][1])
    assert found.stored > found.encoded - 1
    assert found.shift <= 1
    if name not in DRAWN:
        assert found.stored >= 37
