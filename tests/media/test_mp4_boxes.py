"""What the boxes of an MP4 do not lead to is missed, and what is whole is read."""

from __future__ import annotations

import contextlib
import logging
import struct

import av
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage
from tests.written_once import written_once

FRAGMENTS = "frag_keyframe+empty_moov+default_base_moof"
AROUND = {b"moov", b"trak", b"edts", b"mdia", b"minf", b"stbl", b"mvex", b"moof"} | {
    b"traf"
}


@written_once
def write(path, flags, write_video, pictures, codec="libx264", **mux_options):
    return write_video(
        path,
        pictures(20, 48, 64),
        codec=codec,
        options={"g": "5", "bf": "2"} if codec != "mjpeg" else {},
        pix_fmt="yuvj420p" if codec == "mjpeg" else "yuv420p",
        mux_options={"movflags": flags, **mux_options},
    )


@pytest.fixture
def fragments(tmp_path, write_video, pictures):
    return write(tmp_path / "a.mp4", FRAGMENTS, write_video, pictures)


def boxes(data, start=0, end=None):
    """Give all boxes: names, beginnings and lengths."""
    end = len(data) if end is None else end
    while start < end:
        length, name = struct.unpack_from(">I4s", data, start)
        yield name, start, length
        if name in AROUND:
            yield from boxes(data, start + 8, start + length)
        start += length


@pytest.mark.parametrize("flags", ["write_colr", "faststart", FRAGMENTS])
def test_an_index_that_nothing_is_read_by_is_told_of(
    tmp_path, write_video, pictures, caplog, flags
):
    for name, number in (("a.mp4", 20), ("b.mp4", 12)):
        write_video(
            tmp_path / name,
            pictures(number, 48, 64),
            options={"g": "5"},
            mux_options={"movflags": flags},
        )
    one, other = ((tmp_path / name).read_bytes() for name in ("a.mp4", "b.mp4"))
    path = tmp_path / "joined.mp4"

    def told(data):
        path.write_bytes(data)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "gulpio2"):
            num_frames = sum(1 for _ in VideoFrames(path).stored())
        lines = [record.getMessage() for record in caplog.records]
        return num_frames, [line for line in lines if "another index" in line]

    num_frames, lines = told(one + other)
    if flags == FRAGMENTS:  # FFmpeg reads on, and others tell what it leaves out
        assert lines == []
        return
    index = len(one) + next(at for name, at, _ in boxes(other) if name == b"moov")
    assert num_frames == 20
    assert f"{str(path)!r} has another index at byte {index}, as where" in lines[0]
    # One that is there twice leads nowhere else.
    at = places(path, b"moov")[0]
    length = int.from_bytes(one[at : at + 4], "big")
    assert told(one + one[at : at + length]) == (20, [])


def places(path, name):
    return [start for found, start, _ in boxes(path.read_bytes()) if found == name]


def flip(path, place, bit=0):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def assert_no_frame_is_lost(path):
    with contextlib.suppress(SourceReadError):
        assert sum(1 for _ in VideoFrames(path).stored()) == 20


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("number", [0, 2, -1])
@pytest.mark.parametrize("name", [b"moof", b"mfhd", b"traf", b"tfhd", b"tfdt", b"trun"])
def test_a_bit_that_flipped_in_the_header_of_a_box_loses_no_fragment(
    fragments, name, number, at
):
    data = fragments.read_bytes()
    place = places(fragments, name)[number]
    for bit in range(8):
        fragments.write_bytes(data)
        flip(fragments, place + at, bit)
        assert_no_frame_is_lost(fragments)


@pytest.mark.parametrize("number", [0, 1, -1])
def test_neither_does_one_in_the_length_of_media(fragments, number):
    data = fragments.read_bytes()
    place = places(fragments, b"mdat")[number]
    for bit in range(32):
        fragments.write_bytes(data)
        flip(fragments, place + bit // 8, bit % 8)
        assert_no_frame_is_lost(fragments)


@pytest.mark.parametrize("number", [0, 2, -1])
@pytest.mark.parametrize("length", [8, 24, 200])
@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"a"])
def test_a_fragment_that_was_written_over_is_missed(fragments, number, length, byte):
    data = bytearray(fragments.read_bytes())
    place = places(fragments, b"moof")[number]
    data[place : place + length] = byte * length
    fragments.write_bytes(data)
    with pytest.raises(SourceReadError, match="it is damaged: "):
        len(VideoFrames(fragments))


def test_samples_behind_the_end_of_the_file_are_missed(fragments):
    flip(fragments, places(fragments, b"trun")[1] + 16, 6)  # where they begin
    with pytest.raises(SourceReadError, match="promises 20 frames and has 5"):
        len(VideoFrames(fragments))


def test_fragments_whose_times_go_back_are_told_of(fragments, caplog):
    flip(fragments, places(fragments, b"tfdt")[1] + 14, 4)
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert len(VideoFrames(fragments)) == 15
    (record,) = caplog.records
    assert "5 of its packets are left out" in record.getMessage()


@pytest.mark.parametrize("flags", ["faststart", FRAGMENTS])
@pytest.mark.parametrize("suffix", [".mp4", ".mov"])
def test_a_bit_that_flipped_in_a_name_of_the_index_loses_no_frame(
    tmp_path, write_video, pictures, flags, suffix
):
    path = write(tmp_path / f"a{suffix}", flags, write_video, pictures)
    data = path.read_bytes()
    known = {*AROUND, b"mvhd", b"tkhd", b"mdhd", b"hdlr", b"elst", b"trex"}
    found = 0
    for name, start, _ in boxes(data):
        if name not in known and name[:2] not in {b"st", b"ct"}:
            continue
        found += 1
        for bit in range(0, 32, 5):
            path.write_bytes(data)
            flip(path, start + 4 + bit // 8, bit % 8)
            # The optional tables may be of another name, where that shows.
            assert_no_frame_is_lost(path)
    assert found > 15


def box(name, content=b""):
    return struct.pack(">I4s", 8 + len(content), name) + content


@pytest.mark.parametrize(
    "name", [b"uuid", b"prft", b"emsg", b"styp", b"sidx", b"free", b"abcd", b"\xa9nam"]
)
def test_boxes_between_fragments_do_no_harm(fragments, name):
    data = fragments.read_bytes()
    place = places(fragments, b"moof")[-1]
    fragments.write_bytes(data[:place] + box(name, bytes(50)) + data[place:])
    assert find_damage(fragments) is None


@pytest.mark.parametrize("name", [b"senc", b"saiz", b"sbgp", b"subs", b"uuid", b"abcd"])
def test_other_boxes_in_fragments_do_no_harm(fragments, name):
    data = bytearray(fragments.read_bytes())
    more = box(name, bytes(50))
    traf = places(fragments, b"traf")[0]
    (length,) = struct.unpack_from(">I", data, traf)
    data[traf + length : traf + length] = more
    for place in (places(fragments, b"moof")[0], traf):
        (length,) = struct.unpack_from(">I", data, place)
        struct.pack_into(">I", data, place, length + len(more))
    fragments.write_bytes(data)
    assert find_damage(fragments) is None


@pytest.mark.parametrize("rest", [bytes(3), bytes(3000), b"some text\n" * 20, b"\xff"])
@pytest.mark.parametrize("flags", ["faststart", FRAGMENTS, FRAGMENTS + "+skip_trailer"])
def test_what_is_behind_all_boxes_does_no_harm(
    tmp_path, write_video, pictures, flags, rest
):
    path = write(tmp_path / "a.mp4", flags, write_video, pictures)
    path.write_bytes(path.read_bytes() + rest)
    assert len(VideoFrames(path)) == 20


WHOLE = [
    "", "faststart", "negative_cts_offsets", "frag_keyframe", "rtphint",
    "frag_keyframe+empty_moov", "frag_every_frame+empty_moov",
    "frag_keyframe+delay_moov", "dash+frag_keyframe",
    "frag_keyframe+separate_moof+empty_moov", "frag_keyframe+empty_moov+skip_trailer",
    "cmaf+frag_keyframe", "hybrid_fragmented", "hybrid_fragmented+frag_keyframe",
    "isml+frag_keyframe",
]  # fmt: skip


@pytest.mark.parametrize("flags", WHOLE)
@pytest.mark.parametrize(
    ("codec", "suffix"),
    [
        *(("libx264", suffix) for suffix in (".mp4", ".mov", ".m4v", ".3gp")),
        *(("mpeg2video", ".mov"), ("mjpeg", ".mov"), ("mpeg4", ".mp4")),
    ],
)
def test_a_whole_file_is_read_whole(
    tmp_path, write_video, pictures, decode_all, caplog, flags, codec, suffix
):
    try:
        path = write(tmp_path / f"a{suffix}", flags, write_video, pictures, codec=codec)
    except (av.FFmpegError, ValueError):
        pytest.skip("this FFmpeg does not write it")
    assert find_damage(path) is None
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert len(VideoFrames(path)) == len(decode_all(path)) == 20
    assert not caplog.records
