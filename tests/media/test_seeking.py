"""From which key frames decoding is exact, and what is noticed where it is not."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.decode import open_video
from gulpio2.media.edit_lists import has_several_parts
from gulpio2.media.random_access import _has_exact_recovery, is_random_access_point
from gulpio2.media.seeking import NotExactError, frames_by_index
from tests.media.test_excerpts import Whole, encode, stored, write

if TYPE_CHECKING:
    from pathlib import Path


def entries_of(path: Path) -> tuple[int, int]:
    """Count the key frames of a file, and those of them to begin at."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        keys = [p for p in container.demux(stream) if p.size and p.is_keyframe]
        codec: Any = stream.codec_context
        return len(keys), sum(is_random_access_point(packet, codec) for packet in keys)


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


class _Bits:
    """Reads numbers as H.264 writes them."""

    def __init__(self, data: bytes) -> None:
        plain = data.replace(b"\0\0\3", b"\0\0")
        self.all = "".join(f"{byte:08b}" for byte in plain)
        self.place = 0

    def fixed(self, length: int) -> int:
        self.place += length
        return int(self.all[self.place - length : self.place], 2)

    def golomb(self) -> int:
        zeros = self.all.index("1", self.place) - self.place
        self.place += zeros
        return self.fixed(zeros + 1) - 1


def without_usability(sps: bytes) -> bytes:
    """Leave out what a sequence may say of itself: how far frames are reordered."""
    bits = _Bits(sps)
    bits.fixed(4 * 8)  # kind, profile (high), level
    for _ in range(4):  # id, sampling, two depths
        bits.golomb()
    bits.fixed(2)
    bits.golomb()
    if bits.golomb() == 0:
        bits.golomb()
    bits.golomb()
    bits.fixed(1)
    bits.golomb(), bits.golomb()
    assert bits.fixed(1) == 1, "interlaced"
    bits.fixed(1)
    if bits.fixed(1):
        for _ in range(4):
            bits.golomb()
    kept = bits.all[: bits.place] + "01"  # nothing more, and the end
    kept = kept.ljust(-(-len(kept) // 8) * 8, "0")
    data = int(kept, 2).to_bytes(len(kept) // 8, "big")
    for low in range(4):
        assert bytes([0, 0, low]) not in data
    return data.ljust(len(sps), b"\0")


def test_frames_are_there_whose_order_a_decoder_has_to_learn(tmp_path):
    """H.264 that does not say how far it is reordered, and is so only later on."""
    path = tmp_path / "a.mkv"
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    settings = "keyint=25:min-keyint=25:scenecut=0:bframes=3:b-adapt=0"
    options = {"x264-params": f"{settings}:b-pyramid=normal"}
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(150):
            moved = np.roll(picture, (number, 2 * number), axis=(0, 1))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(moved))
            frame = frame.reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            if number < 50:
                frame.pict_type = av.video.frame.PictureType.P
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with av.open(str(path)) as container:
        header = container.streams.video[0].codec_context.extradata
    assert header is not None
    length = int.from_bytes(header[6:8], "big")
    sps = header[8 : 8 + length]
    path.write_bytes(path.read_bytes().replace(sps, without_usability(sps)))
    whole = Whole(path)
    assert len(whole.frames) >= 149  # FFmpeg drops one when it learns
    for number in (75, 76, 90, 100, 101, 125):
        whole.check(Fraction(number, 25), Fraction(number + 12, 25))


@pytest.mark.parametrize("name", ["h264", "h264 open", "hevc", "mpeg4 b", "mpeg2"])
def test_times_of_decoding_alone_lead_to_no_key_frame(tmp_path, name):
    path = write(tmp_path / "a", name, ".mp4")
    path.write_bytes(path.read_bytes().replace(b"ctts", b"free"))
    whole = Whole(path)
    for number in range(1, len(whole.times) - 5, 3):
        whole.check(whole.times[number], whole.times[number + 5])


def test_frames_that_are_others_from_the_beginning_are_not_stored(tmp_path):
    """Times of presentation that are those of other frames, two further on."""
    path = write(tmp_path / "a", "mpeg4 b", ".mp4")
    data = bytearray(path.read_bytes())
    second = data.index(b"ctts") + 12 + 8
    (count,) = struct.unpack_from(">I", data, second)
    struct.pack_into(">I", data, second, count + 2)
    path.write_bytes(data)
    start, end = Fraction(22, 25), Fraction(37, 25)
    with pytest.raises(SourceReadError, match="other frames from a key frame on"):
        stored(path, start=start, end=end)
    assert len(Whole(path).between(start, end)) == 15  # by times of decoding


@pytest.mark.parametrize("name", ["mpeg4", "vp8", "mjpeg"])
@pytest.mark.parametrize("damage", ["lost", "moved", "all lost"])
def test_an_index_of_avi_that_is_damaged_leads_to_no_other_frames(
    tmp_path, name, damage
):
    path = write(tmp_path / "a", name, ".avi")
    data = bytearray(path.read_bytes())
    entries = data.rindex(b"idx1") + 8
    for number in range(60):
        entry = entries + 16 * number
        if damage == "lost" and number == 5:
            data[entry : entry + 4] = b"JUNK"
        if damage == "moved":
            (place,) = struct.unpack_from("<I", data, entry + 8)
            struct.pack_into("<I", data, entry + 8, place + 2 * (number > 0))
    if damage == "all lost":
        data[entries - 8 : entries - 4] = b"JUNK"
    path.write_bytes(data)
    whole = Whole(path)
    assert len(whole.frames) == 60
    for number in (1, 20, 40, 56):
        whole.check(whole.times[number], whole.times[number + 3])


@pytest.mark.parametrize(
    ("bits", "is_exact"), [(0xC0, True), (0xDF, True), (0xE0, False), (0x80, False)]
)
def test_a_recovery_point_is_exact_and_breaks_no_link(bits, is_exact):
    assert _has_exact_recovery(bytes([6, 6, 1, bits, 0x80])) is is_exact


def test_boxes_in_boxes_without_end_are_no_edit_list(tmp_path):
    path = tmp_path / "a.mp4"
    sizes = range(8 * 5000, 0, -8)
    path.write_bytes(b"".join(size.to_bytes(4, "big") + b"moov" for size in sizes))
    assert has_several_parts(str(path)) is False
