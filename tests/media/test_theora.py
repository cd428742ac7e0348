"""Theora whose headers come again, as where files of Ogg follow each other."""

from __future__ import annotations

import struct

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.test_ogg_pages import page

NUM_FRAMES = 10


def packed(*fields):
    """Write numbers by so many bits each, the first one highest."""
    text = "".join(f"{value:0{width}b}" for value, width in fields)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


def headers(width, height, rate, shift):
    """Make the three headers of Theora (its specification, section 6)."""
    video = (
        b"\x80theora\3\2\1"
        + struct.pack(">HH", width // 16, height // 16)
        + width.to_bytes(3, "big")
        + height.to_bytes(3, "big")
        + bytes(2)  # where the picture is
        + struct.pack(">II", rate, 1)
        + bytes(6 + 1 + 3)  # shape of the pixels, colours, bits per second
        + packed((0, 6), (shift, 5), (0, 2), (0, 3))  # quality, ..., 4:2:0
    )
    comments = b"\x81theora" + bytes(8)
    ones = [(1, 1)] * 64
    ranges = [(0, 1), (62, 6), (0, 1)] + [(0, 1)] * 2 + [(0, 1), (1, 1)] * 3
    codes = [(0, 1), (1, 1), (6, 5), (1, 1), (7, 5)] * 80  # two in each of the trees
    matrices = [(1, 9)] + [(16, 8)] * 128
    # No filter; factors of AC and of DC.
    tables = packed((0, 3), (0, 4), *ones, (0, 4), *ones, *matrices, *ranges, *codes)
    return video, comments, b"\x82theora" + tables


def ogg(*, serial=7, width=64, height=48, rate=25, shift=6):
    """Make a file of key frames that hold nothing, so that they are grey."""
    video, comments, tables = headers(width, height, rate, shift)
    pages = [page(video, serial=serial, flags=2, time=0)]
    pages += [page(comments, 1, serial=serial, time=0)]
    pages += [page(tables, 2, serial=serial, time=0)]
    pages += [
        page(bytes(8), 3 + index, serial=serial, time=(1 + index) << shift)
        for index in range(NUM_FRAMES)
    ]
    return b"".join(pages)


@pytest.mark.parametrize("serial", [7, 8])
def test_files_that_follow_each_other_are_all_read(tmp_path, serial, caplog):
    path = tmp_path / "a.ogv"
    path.write_bytes(ogg() + ogg(serial=serial))
    times = [frame.pts for frame in VideoFrames(path).stored()]
    assert times == list(range(2 * NUM_FRAMES))
    assert not caplog.records


def test_the_second_may_have_another_size(tmp_path, caplog):
    path = tmp_path / "a.ogv"
    path.write_bytes(ogg() + ogg(width=96, height=64))
    assert sum(1 for _ in VideoFrames(path).stored()) == 2 * NUM_FRAMES
    assert "changes its size from 64x48 to 96x64" in caplog.text


@pytest.mark.parametrize("other", [{"rate": 50}, {"shift": 5}])
def test_the_second_may_not_have_times_that_ffmpeg_takes_for_others(tmp_path, other):
    path = tmp_path / "a.ogv"
    path.write_bytes(ogg() + ogg(**other))
    with pytest.raises(SourceReadError, match="different rates follow each other"):
        list(VideoFrames(path).stored())


def test_headers_have_no_times(tmp_path):
    path = tmp_path / "a.ogv"
    path.write_bytes(ogg())
    assert VideoFrames(path).source_times() == list(range(NUM_FRAMES))
    path.write_bytes(ogg() + ogg())
    assert VideoFrames(path).source_times() is None  # those of the second are the same
