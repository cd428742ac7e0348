"""A cut file says so itself, where its container says how long it is."""

from __future__ import annotations

import re
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage
from tests.written_once import written_once

CONTAINERS = {
    "mp4": ("libx264", "clip.mp4", {}),
    "index first": ("libx264", "clip.mp4", {"movflags": "faststart"}),
    "fragments": ("libx264", "clip.mp4", {"movflags": "frag_keyframe+empty_moov"}),
    "mov": ("libx264", "clip.mov", {}),
    "mkv": ("libx264", "clip.mkv", {}),
    "webm": ("libvpx", "clip.webm", {}),
    "live webm": ("libvpx", "clip.webm", {"live": "1"}),
    "avi": ("mpeg4", "clip.avi", {}),
    "gif": ("gif", "clip.gif", {}),
    "y4m": ("wrapped_avframe", "clip.y4m", {}),
    "ivf": ("libvpx", "clip.ivf", {}),
    "ogg": ("libvpx", "clip.ogv", {"page_duration": "80000"}),
    "mxf": ("mpeg2video", "clip.mxf", {}),
    "apng": ("apng", "clip.apng", {}),
}
# Bytes of which a file is a number.
UNITS: dict[str, tuple[str, str, dict[str, str], int, int]] = {
    "ts": ("libx264", "clip.ts", {}, 188, 0),
    "hevc ts": ("libx265", "clip.ts", {}, 188, 0),
    "m2ts": ("mpeg2video", "clip.m2ts", {}, 192, 4),
    "dv": ("dvvideo", "clip.dv", {}, 144_000, 0),
}


def assert_damage(folder, data, message, *, excusable=False):
    """Look at a file of these bytes; it is whole where there is no message."""
    path = folder / "a"
    path.write_bytes(data)
    damage = find_damage(path)
    if message is None:
        assert damage is None
    else:
        assert damage is not None
        assert message in damage.message
        assert damage.excusable is excusable


@written_once
def write_whole(path, kind, write_video, pictures):
    codec, name, mux_options = CONTAINERS.get(kind) or UNITS[kind][:3]
    pix_fmt = {"gif": "rgb8", "apng": "rgb24"}.get(codec, "yuv420p")
    return write_video(
        path,
        pictures(3, 576, 720) if codec == "dvvideo" else pictures(12, 48, 64),
        codec=codec,
        pix_fmt=pix_fmt,
        options={"g": "4"},
        mux_options=mux_options,
        with_audio=name.endswith(("mp4", "mkv")),
    )


@pytest.fixture(params=CONTAINERS)
def whole(request, tmp_path, write_video, pictures):
    kind = request.param
    return write_whole(tmp_path / CONTAINERS[kind][1], kind, write_video, pictures)


def test_a_whole_file_is_whole(whole):
    assert find_damage(whole) is None


@pytest.mark.parametrize("part", [0.3, 0.5, 0.8, 0.95, 0.99, -1])
def test_a_cut_file_is_damaged(whole, part):
    data = whole.read_bytes()
    size = int(len(data) * part) if part > 0 else len(data) + part
    whole.write_bytes(data[:size])
    damage = find_damage(whole)
    assert damage is not None
    assert "cut off" in damage.message


@pytest.mark.parametrize("kind", UNITS)
def test_a_file_that_ends_inside_of_a_packet_or_a_frame_is_damaged(
    tmp_path, kind, write_video, pictures
):
    _, name, _, num_bytes, hidden = UNITS[kind]
    data = write_whole(tmp_path / name, kind, write_video, pictures).read_bytes()
    assert len(data) % num_bytes == 0
    assert_damage(tmp_path, data, None)
    assert_damage(tmp_path, data + bytes(1000), None)  # which is no packet
    assert_damage(tmp_path, data + b"TAG of a player", None)
    assert_damage(tmp_path, data + b"G", None)
    for more in (hidden + 4, hidden + 40, num_bytes - 1):
        size = len(data) // 2 // num_bytes * num_bytes
        assert_damage(tmp_path, data[:size], None)  # which nothing tells
        assert_damage(tmp_path, data[: size + more], "is cut off: its last")
    (tmp_path / name).write_bytes(data[:-20])
    with pytest.raises(SourceReadError, match="is cut off: its last"):
        list(VideoFrames(tmp_path / name))


def test_an_mxf_is_cut_off_where_its_footer_is_missing(tmp_path, write_video, pictures):
    whole = write_whole(tmp_path / "clip.mxf", "mxf", write_video, pictures)
    data = whole.read_bytes()
    key = bytes.fromhex("060e2b34020501010d01020101")
    footer = data.rfind(key + b"\x04")
    assert footer > len(data) // 2
    assert_damage(tmp_path, data[:footer], "before its footer ends at byte")


def test_trailing_bytes_do_no_harm(whole):
    live = b"\x18\x53\x80\x67\x01\xff" in whole.read_bytes()[:200]
    whole.write_bytes(whole.read_bytes() + b"\0" * 1000)
    # Without a length there is no telling what is part of the file.
    assert (find_damage(whole) is None) == (not live)


def ebml(id_, content, *, length=None):
    """Write an element with a size of eight bytes."""
    size = len(content) if length is None else length
    return bytes.fromhex(id_) + struct.pack(">Q", (1 << 56) | size) + content


UNKNOWN = (1 << 56) - 1
HEADER = ebml("1A45DFA3", b"\x42\x86\x81\x01")
# Of track 1, at no time, with no flags.
BLOCK = ebml("A3", b"\x81\0\0\0" + b"x" * 50)
GROUP = ebml("A0", ebml("A1", b"\x81\0\0\0" + b"y" * 300) + ebml("9B", b"\1"))
BLOCKS = ebml("E7", b"\0") + BLOCK + GROUP
INFO = ebml("1549A966", b"")
CUES = ebml("1C53BB6B", b"")

SEGMENTS = [
    pytest.param(ebml("18538067", INFO + ebml("1F43B675", BLOCKS)), None, id="known"),
    pytest.param(
        ebml("18538067", INFO + ebml("1F43B675", BLOCKS, length=UNKNOWN) * 2 + CUES,
             length=UNKNOWN),
        None, id="unknown lengths",
    ),
    pytest.param(
        ebml("18538067", INFO, length=100), "segment ends at byte", id="short segment"
    ),
    pytest.param(
        ebml("18538067", ebml("1F43B675", BLOCKS, length=999), length=UNKNOWN),
        "an element ends", id="short cluster",
    ),
    pytest.param(
        ebml("18538067", ebml("1F43B675", BLOCKS[:-9], length=UNKNOWN), length=UNKNOWN),
        "a block ends", id="short block",
    ),
    pytest.param(
        ebml("18538067", ebml("1F43B675", BLOCK + ebml("55AA", b"z" * 9))),
        "no Matroska element", id="not a block",
    ),
    pytest.param(
        ebml("18538067", INFO + b"\0" * 30), "no Matroska element", id="zeros"
    ),
    pytest.param(
        ebml("18538067", ebml("1F43B675", b"\0" * 30)), "no Matroska element",
        id="zeros in a cluster",
    ),
    pytest.param(
        ebml("18538067", ebml("EC", b"", length=UNKNOWN)), "no Matroska element",
        id="no length",
    ),
    pytest.param(ebml("A3", b""), "no Matroska segment", id="no segment"),
    pytest.param(b"", "no Matroska segment", id="header only"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), SEGMENTS)
def test_matroska_is_walked_block_by_block(tmp_path, content, message):
    assert_damage(tmp_path, HEADER + content, message)


def box(name, content=b"", *, length=None):
    return struct.pack(">I", 8 + len(content) if length is None else length) + (
        name + content
    )


FTYP = box(b"ftyp", b"isom")

BOXES = [
    pytest.param(FTYP + box(b"moov") + box(b"mdat", b"x" * 9), None, id="whole"),
    pytest.param(FTYP + box(b"mdat", b"x" * 9, length=0), None, id="up to the end"),
    pytest.param(
        FTYP + struct.pack(">I4sQ", 1, b"mdat", 20) + b"1234", None, id="64 bits"
    ),
    pytest.param(
        FTYP + struct.pack(">I4sQ", 1, b"mdat", 2**40), (2**40 + 12, True),
        id="64 bits, cut",
    ),
    pytest.param(FTYP + box(b"mdat", length=99), (111, True), id="media cut"),
    pytest.param(FTYP + box(b"moov", length=99), (111, False), id="index cut"),
    pytest.param(FTYP + box(b"moof", length=99), (111, False), id="fragment cut"),
    pytest.param(FTYP + box(b"moov") + b"some text at the end", None, id="text behind"),
    pytest.param(FTYP + box(b"moov") + b"\0\0\0", None, id="padding"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), BOXES)
def test_the_boxes_of_an_mp4_are_followed(tmp_path, data, expected):
    end, excusable = expected or (None, False)
    message = end and f"ends at byte {end} and the file at {len(data)}"
    assert_damage(tmp_path, data, message, excusable=excusable)


RIFFS = [
    pytest.param(struct.pack("<4sI4s", b"RIFF", 4, b"AVI "), None, id="whole"),
    pytest.param(struct.pack("<4sI4s", b"RIFF", 0, b"AVI "), None, id="switched off"),
    pytest.param(struct.pack("<4sI4s", b"RIFF", 40, b"AVI "), 48, id="cut"),
    pytest.param(
        struct.pack("<4sI4s", b"RIFF", 5, b"AVI ") + b"x\0"
        + struct.pack("<4sI4s", b"RIFF", 90, b"AVIX"),
        112, id="second part cut",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "end"), RIFFS)
def test_the_parts_of_an_avi_are_followed(tmp_path, data, end):
    assert_damage(tmp_path, data, end and f"ends at byte {end} ", excusable=True)


@pytest.fixture
def wmv(tmp_path, write_video, pictures):
    return write_video(
        tmp_path / "a.wmv", pictures(12, 48, 64), codec="wmv2", options={"g": "4"}
    )


@pytest.mark.parametrize("part", [0.05, 0.3, 0.6, 0.9])
def test_a_cut_wmv_is_damaged_and_never_just_shorter(wmv, part):
    assert find_damage(wmv) is None
    assert sum(1 for _ in VideoFrames(wmv).stored()) == 12
    data = wmv.read_bytes()
    wmv.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(
        SourceReadError, match=r"a\.wmv' .* is cut off: its (data|header)"
    ):
        list(VideoFrames(wmv).stored())


def test_a_wmv_of_a_broadcast_and_one_without_properties_say_nothing(wmv):
    data = bytearray(wmv.read_bytes())
    place = data.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    half = len(data) // 2
    wmv.write_bytes(data[:half])
    assert find_damage(wmv) is not None
    data[place + 88] |= 1
    wmv.write_bytes(data[:half])
    assert find_damage(wmv) is None
    data[place] ^= 1
    wmv.write_bytes(data[:half])
    assert find_damage(wmv) is None


def test_a_wmv_of_which_nobody_knew_the_length_is_read(wmv):
    data = bytearray(wmv.read_bytes())
    place = data.index(bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")) + 16
    data[place : place + 8] = b"\xff" * 8
    wmv.write_bytes(data)
    assert sum(1 for _ in VideoFrames(wmv).stored()) == 12


def test_a_gif_with_an_unknown_block_is_damaged(tmp_path):
    data = b"GIF89a" + b"\1\0\1\0\0\0\0" + b"?"
    assert_damage(tmp_path, data, "damaged at byte 13")


Y4MS = [
    pytest.param(b"C420jpeg", 15 + 2 * 6, id="420"),
    pytest.param(b"C422p10 XYSCSS=422P10", 2 * (15 + 2 * 10), id="422, 10 bits"),
    pytest.param(b"C411", 15 + 2 * 5, id="411"),
    pytest.param(b"C444alpha", 4 * 15, id="alpha"),
    pytest.param(b"Cmono16", 2 * 15, id="grey, 16 bits"),
    pytest.param(b"Ip A1:1", 15 + 2 * 6, id="not named"),
]


@pytest.mark.parametrize(("words", "length"), Y4MS)
def test_the_frames_of_a_y4m_are_counted(tmp_path, words, length):
    data = b"YUV4MPEG2 W3 H5 F25:1 " + words + b"\n"
    data += b"FRAME\n" + bytes(length) + b"FRAME Ip\n" + bytes(length)
    assert_damage(tmp_path, data, None)
    for cut in (1, length, length + 5):
        assert_damage(tmp_path, data[:-cut], "its last frame ends at byte")


@pytest.mark.parametrize("words", [b"Cnew", b"XYSCSS=410", b"H-5", b"W0"])
def test_a_y4m_of_unknown_pixels_is_taken_as_whole(tmp_path, words):
    assert_damage(tmp_path, b"YUV4MPEG2 W3 H5 " + words + b"\nFRAME\n123", None)


def png_chunk(name, content=b""):
    crc = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)


def test_a_bit_of_a_png_that_moves_costs_no_frame_silently(
    tmp_path, write_video, pictures
):
    path = write_whole(tmp_path / "clip.apng", "apng", write_video, pictures)
    data = path.read_bytes()
    names = [
        place.start() for place in re.finditer(rb"IHDR|acTL|fcTL|fdAT|IDAT|IEND", data)
    ]
    assert len(names) > 24
    for at in names:
        for byte in (0, 2, 3, 8):
            damaged = bytearray(data)
            damaged[min(at + byte, len(data) - 1)] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(SourceReadError, match=r"is (damaged|cut off)"):
                list(VideoFrames(path).stored())


@pytest.mark.parametrize("name", [b"acTL", b"fcTL", b"fdAT"])
def test_of_a_png_that_moves_all_checksums_are_compared(tmp_path, name):
    start = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", bytes(13))
    text = bytearray(png_chunk(b"tEXt", b"a note"))
    text[9] ^= 1
    end = png_chunk(b"IDAT", b"pixels") + png_chunk(b"IEND")
    moving = png_chunk(name, b"1")
    assert_damage(tmp_path, start + moving + end + b"more", None)
    message = f"the checksum of its chunk at byte {len(start)} is wrong"
    assert_damage(tmp_path, start + text + moving + end, message)
    assert_damage(tmp_path, start + text + end, None)  # a picture


@pytest.mark.parametrize("data", [b"", b"text", b"RIFF\4\0\0\0WAVE", b"\x47" * 188])
def test_what_does_not_say_how_long_it_is_is_taken_as_whole(tmp_path, data):
    assert_damage(tmp_path, data, None)


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        find_damage(tmp_path / "none.mp4")


@given(
    start=st.sampled_from(
        [
            *(HEADER, FTYP, RIFFS[0].values[0], b"GIF89a", b"OggS", b""),
            *(b"YUV4MPEG2 W1 H1 ", bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")),
        ]
    ),
    rest=st.binary(max_size=200),
)
def test_no_bytes_make_it_stumble(tmp_path_factory, start, rest):
    path = tmp_path_factory.mktemp("bytes") / "a"
    path.write_bytes(start + rest)
    damage = find_damage(path)
    assert damage is None or damage.message


def test_real_videos_are_whole(shared_videos):
    paths = sorted(shared_videos.iterdir())
    assert paths
    for path in paths:
        assert find_damage(path) is None, path.name
