"""From which key frames decoding is exact, and what is noticed where it is not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import av
import pytest

from gulpio2.media.decode import open_video
from gulpio2.media.entry_points import is_entry_point
from gulpio2.media.seeking import NotExactError, frames_by_index
from tests.media.test_excerpts import Whole, encode, write

if TYPE_CHECKING:
    from pathlib import Path


def entries_of(path: Path) -> tuple[int, int]:
    """Count the key frames of a file, and those of them to begin at."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        keys = [p for p in container.demux(stream) if p.size and p.is_keyframe]
        codec: Any = stream.codec_context
        return len(keys), sum(is_entry_point(packet, codec) for packet in keys)


@pytest.mark.parametrize("ending", [".mp4", ".mkv"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h264", (4, 4)),
        ("h264 open", (4, 4)),
        ("hevc", (4, 4)),
        ("h264 refresh", (4, 1)),  # of the others the picture is whole only later on
        ("mpeg4 b", (6, 6)),
    ],
)
def test_key_frames_to_begin_at_need_nothing_before_them(
    tmp_path, ending, name, expected
):
    assert entries_of(write(tmp_path / "a", name, ending)) == expected


def test_of_units_without_their_lengths_nothing_is_known(tmp_path):
    assert entries_of(write(tmp_path / "a", "h264", ".ts")) == (4, 0)


def test_of_a_codec_that_is_not_known_nothing_is_known(tmp_path):
    path = encode(tmp_path / "a.avi", "flv", {"g": "15"})
    keys, entries = entries_of(path)
    assert keys >= 4
    assert entries == 0
    Whole(path).check_many()


def edit(path: Path, edits: list[tuple[float, float]]) -> Path:
    """Have an MP4 show parts of what is in it: seconds of their begin and length."""
    data = path.read_bytes()
    place = data.index(b"elst") - 4
    size = int.from_bytes(data[place : place + 4], "big")
    scale = int.from_bytes(data[data.index(b"mdhd") + 16 :][:4], "big")
    header = data.index(b"mvhd") + 16
    movie_scale = int.from_bytes(data[header : header + 4], "big")
    (first,) = struct.unpack(">i", data[place + 20 : place + 24])
    table = b"".join(
        struct.pack(
            ">iihh", int(length * movie_scale), int(begin * scale) + first, 1, 0
        )
        for begin, length in edits
    )
    box = b"elst" + bytes(4) + struct.pack(">I", len(edits)) + table
    box = struct.pack(">I", len(box) + 4) + box
    changed = bytearray(data[:place] + box + data[place + size :])
    for name in (b"moov", b"trak", b"edts"):
        at = changed.index(name) - 4
        length = int.from_bytes(changed[at : at + 4], "big") + len(box) - size
        changed[at : at + 4] = struct.pack(">I", length)
    path.write_bytes(changed)
    return path


@pytest.mark.parametrize("name", ["h264", "h264 open", "hevc", "mpeg4 b", "mjpeg"])
@pytest.mark.parametrize(
    "edits",
    [
        [(0.0, 0.8), (1.0, 1.2)],  # something is left out
        [(0.0, 1.0), (1.48, 0.8)],  # behind a key frame that is not shown
        [(1.2, 0.8), (0.2, 0.8)],  # what came first comes last
        [(0.4, 0.8), (0.4, 0.8)],  # something comes twice
    ],
)
def test_parts_of_an_edit_list_are_where_they_are_shown(tmp_path, name, edits):
    path = edit(write(tmp_path / "a", name, ".mp4"), edits)
    whole = Whole(path)
    assert 30 <= len(whole.frames) <= 60
    whole.check_many()


@pytest.mark.parametrize("ending", [".ts", ".nut", ".h264", ".flv"])
def test_what_has_no_index_is_told(tmp_path, ending):
    path = write(tmp_path / "a", "h264", ending)
    with open_video(path) as video:
        next(video.frames())
        with pytest.raises(NotExactError, match="there is no index"):
            next(frames_by_index(video, 20))
