"""What FFmpeg passes over in Matroska is damage, what is odd but whole is none."""

from __future__ import annotations

import contextlib
import struct

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage
from tests.written_once import written_once

NUM_FRAMES = 15
# Kind -> codec, ending, pixel format, options of the container. The blocks of alpha are
# in groups, the others are simple ones.
KINDS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "h264": ("libx264", ".mkv", "yuv420p", {}),
    "vp8": ("libvpx", ".webm", "yuv420p", {}),
    "small clusters": ("libvpx", ".webm", "yuv420p", {"cluster_time_limit": "100"}),
    "live": ("libx264", ".mkv", "yuv420p", {"live": "1"}),
    "space for an index": ("libx264", ".mkv", "yuv420p", {"cues_to_front": "1"}),
    "alpha": ("libvpx", ".webm", "yuva420p", {}),
    "alpha, live": ("libvpx", ".webm", "yuva420p", {"live": "1"}),
}


@written_once
def write_whole(path, kind, write_video, pictures):
    codec, _, pix_fmt, mux_options = KINDS[kind]
    return write_video(
        path,
        pictures(NUM_FRAMES, 48, 64),
        codec=codec,
        pix_fmt=pix_fmt,
        options={"g": "5", "auto-alt-ref": "0"} if codec == "libvpx" else {"g": "5"},
        mux_options=mux_options,
        with_audio=path.suffix == ".mkv",
    )


@pytest.fixture
def whole(request, tmp_path, write_video, pictures):
    path = tmp_path / f"clip{KINDS[request.param][1]}"
    return write_whole(path, request.param, write_video, pictures)


def read(path):
    return sum(1 for _ in VideoFrames(path).stored())


def vint_length(first):
    return 9 - first.bit_length()


def header_at(data, position):
    """Give the id, and where size and content begin."""
    size = position + vint_length(data[position])
    return data[position:size].hex(), size, size + vint_length(data[size])


def children(data, start, end):
    """Give the elements between: id, position, and where content begins and ends."""
    while start < end:
        id_, size, content = header_at(data, start)
        mask = (1 << 7 * (content - size)) - 1
        length = int.from_bytes(data[size:content], "big") & mask
        stop = end if length == mask else content + length
        if length == mask and id_ == "1f43b675":  # up to the next one
            following = data.find(bytes.fromhex(id_), content)
            stop = end if following < 0 else following
        yield id_, start, content, min(stop, end)
        start = stop


def blocks(data):
    """Give where all blocks, their groups and their contents begin."""
    found = []
    for id_, _, top, top_end in children(data, 0, len(data)):
        if id_ != "18538067":
            continue
        for cluster, _, start, end in children(data, top, top_end):
            if cluster != "1f43b675":
                continue
            for child, position, content, child_end in children(data, start, end):
                if child == "a3":
                    found.append((position, content))
                elif child == "a0":
                    # Its block is the first in it.
                    _, _, inner = header_at(data, content)
                    found.append((content, inner))
                    assert inner < child_end
    return found


@pytest.mark.parametrize("whole", KINDS, indirect=True)
def test_a_whole_file_is_read(whole):
    assert find_damage(whole) is None
    assert read(whole) == NUM_FRAMES
    assert len(blocks(whole.read_bytes())) >= NUM_FRAMES


# Where in a block a bit is changed: from its id on, or from its content on.
BITS = [
    *(pytest.param(0, 1 << bit, id=f"id {bit}") for bit in range(8)),
    *(pytest.param("content", 1 << bit, id=f"track {bit}") for bit in range(8)),
    pytest.param("flags", 2, id="lacing 1"),
    pytest.param("flags", 4, id="lacing 2"),
]


@pytest.mark.parametrize(("at", "bit"), BITS)
@pytest.mark.parametrize("whole", KINDS, indirect=True)
def test_no_bit_before_a_frame_makes_frames_miss_silently(whole, at, bit):
    data = whole.read_bytes()
    for position, content in blocks(data)[1:12:5]:
        place = {0: position, "content": content, "flags": content + 3}[at]
        damaged = bytearray(data)
        damaged[place] ^= bit
        whole.write_bytes(damaged)
        with contextlib.suppress(SourceReadError):
            assert read(whole) == NUM_FRAMES


REAL = [
    pytest.param("pancake_h264_audio.mkv", 34136, "34133 is of track 17", id="video"),
    pytest.param("pancake_h264_audio.mkv", 37035, "37032 is of track 18", id="audio"),
    pytest.param("pancake_h264_audio.mkv", 167625, "of track 18", id="audio, later"),
    pytest.param("vp8_audio_30fps.webm", 14184, "14181 is of track 18", id="WebM"),
]


@pytest.mark.parametrize(("name", "place", "message"), REAL)
def test_a_block_of_no_track_is_damage(tmp_path, shared_videos, name, place, message):
    data = bytearray((shared_videos / name).read_bytes())
    data[place] ^= 16
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match=message):
        read(path)


def ebml(id_, content, *, length=None):
    """Write an element with a size of eight bytes."""
    size = len(content) if length is None else length
    return bytes.fromhex(id_) + struct.pack(">Q", (1 << 56) | size) + content


UNKNOWN = (1 << 56) - 1
HEADER = ebml("1A45DFA3", b"\x42\x86\x81\x01")


def tracks(*numbers, more=b""):
    entries = (ebml("D7", number) + ebml("83", b"\1") + more for number in numbers)
    return ebml("1654AE6B", b"".join(ebml("AE", entry) for entry in entries))


def block(track=b"\x81", *, flags=0, data=b"frame", id_="A3"):
    return ebml(id_, track + b"\0\0" + bytes([flags]) + data)


def group(*more, id_="A0"):
    return ebml(id_, b"".join(more))


def cluster(*more, id_="1F43B675"):
    return ebml(id_, ebml("E7", b"\0") + b"".join(more))


BLOCK = block(id_="A1")
UNLACED = ebml("9C", b"\0")
ALPHA = ebml("75A1", ebml("A6", ebml("EE", b"\1") + ebml("A5", b"alpha")))
JOINED = HEADER + ebml("18538067", tracks(b"\2") + cluster(block(b"\x82")))

WHOLE = [
    pytest.param(cluster(block(b"\x85")), id="no tracks"),
    pytest.param(tracks(b"\1") + cluster(block()), id="a track"),
    pytest.param(cluster(block(b"\x82")) + tracks(b"\2"), id="tracks at the end"),
    pytest.param(
        tracks(b"\1") + cluster(block(), block(b"\x82")) + tracks(b"\2"),
        id="tracks in two places",
    ),
    pytest.param(
        tracks(b"\1", more=ebml("E0", ebml("B0", b"@") + ebml("55FA", bytes(12)))),
        id="new in a track",
    ),
    pytest.param(tracks(b"\x4e\x20") + cluster(block(b"\x20\x4e\x20")), id="20000"),
    pytest.param(tracks(b"\0\0\1") + cluster(block()), id="zeros before the number"),
    pytest.param(cluster(block(flags=2, data=b"\2\1\1abc")), id="Xiph lacing"),
    pytest.param(
        cluster(block(flags=2, data=b"\1\xff\x2d" + b"x" * 301)), id="Xiph lacing, long"
    ),
    pytest.param(cluster(block(flags=4, data=b"\2aabbcc")), id="fixed lacing"),
    pytest.param(cluster(block(flags=6, data=b"\2\x81\xc0abbccccc")), id="EBML lacing"),
    pytest.param(
        tracks(b"\1") + cluster(block(flags=4, data=b"\1aabb")), id="may be laced"
    ),
    pytest.param(cluster(group(BLOCK)), id="a group"),
    pytest.param(
        cluster(group(ebml("9B", b"\1"), BLOCK, ebml("FB", b"\xff"), ALPHA)), id="alpha"
    ),
    pytest.param(
        cluster(group(BLOCK, ebml("EC", bytes(9)), ebml("5FAB", b"new"))),
        id="new in a group",
    ),
    pytest.param(cluster(block()) + ebml("1FABCDEF", b"\1\2\3"), id="new in a segment"),
    pytest.param(
        ebml("EC", bytes(99)) + cluster(ebml("A7", bytes(8)), ebml("AB", b"\x99")),
        id="numbers",
    ),
    pytest.param(
        ebml("1F43B675", ebml("E7", b"\x8b\xb2\xc9\x70\0") + block()),
        id="ten minutes in nanoseconds",
    ),
]


def segment(content):
    return HEADER + ebml("18538067", content)


def damage_of(folder, data):
    path = folder / "a.mkv"
    path.write_bytes(data)
    return find_damage(path)


@pytest.mark.parametrize("content", WHOLE)
def test_what_is_odd_but_sound_is_whole(tmp_path, content):
    assert damage_of(tmp_path, segment(content)) is None


@pytest.mark.parametrize("content", WHOLE)
def test_nothing_is_taken_for_whole_when_it_is_cut(tmp_path, content):
    data = segment(content)
    assert "cut off" in damage_of(tmp_path, data[:-1]).message


NO_BLOCK, NO_ELEMENT = "there is no Matroska block", "there is no Matroska element"

DAMAGED = [
    pytest.param(tracks(b"\1") + cluster(block(b"\x91")), "of track 17", id="track"),
    pytest.param(tracks(b"\1") + cluster(block(b"\x80")), "of track 0", id="track 0"),
    pytest.param(
        cluster(group(block(b"\x83", id_="A1"))) + tracks(b"\1", b"\2"), "of track 3",
        id="track in a group",
    ),
    pytest.param(cluster(ebml("A3", b"")), NO_BLOCK, id="empty"),
    pytest.param(cluster(ebml("A3", b"\x81\0\0")), NO_BLOCK, id="no flags"),
    pytest.param(cluster(ebml("A3", b"\0" * 20)), NO_BLOCK, id="no track"),
    pytest.param(
        tracks(b"\1", more=UNLACED) + cluster(block(flags=4, data=b"\1aabb")), NO_BLOCK,
        id="lacing where there is none",
    ),
    pytest.param(cluster(block(flags=2, data=b"")), NO_BLOCK, id="no laces"),
    pytest.param(cluster(block(flags=2, data=b"\2\1\3abc")), NO_BLOCK, id="Xiph"),
    pytest.param(cluster(block(flags=4, data=b"\2aabbc")), NO_BLOCK, id="fixed"),
    pytest.param(cluster(block(flags=6, data=b"\2\x81\xc7abb")), NO_BLOCK, id="EBML"),
    pytest.param(cluster(block(flags=6, data=b"\2\x81\0abb")), NO_BLOCK, id="EBML 0"),
    pytest.param(
        cluster(block(flags=6, data=b"\2\x81\x80abb")), NO_BLOCK, id="EBML below 0"
    ),
    pytest.param(cluster(group(ebml("9B", b"\1"))), "no block in the group", id="none"),
    pytest.param(
        cluster(group(block(id_="E1"), ebml("9B", b"\1"))), NO_ELEMENT, id="other id"
    ),
    pytest.param(
        cluster(group(BLOCK, ebml("9B", b"", length=9))), NO_ELEMENT, id="not filled"
    ),
    pytest.param(
        cluster(group(BLOCK, ebml("9B", bytes(9)))), NO_ELEMENT, id="long duration"
    ),
    pytest.param(
        cluster(group(BLOCK, ebml("75A1", ebml("A6", ebml("A5", b"", length=5))))),
        NO_ELEMENT, id="alpha",
    ),
    pytest.param(cluster(block(id_="AB")), NO_ELEMENT, id="a size that is a block"),
    pytest.param(
        cluster(block(id_="A7", data=b"x")), NO_ELEMENT, id="a position that is a block"
    ),
    pytest.param(
        cluster(block(), id_="1F43B674"), NO_ELEMENT, id="a cluster with another id"
    ),
    pytest.param(cluster() + block(), NO_ELEMENT, id="a block behind a cluster"),
    pytest.param(
        ebml("1654AE6B", ebml("AE", b"", length=5)), NO_ELEMENT, id="a broken track"
    ),
    pytest.param(
        tracks(b"\1", more=ebml("E0", ebml("B0", b"@", length=9))), NO_ELEMENT,
        id="a broken width",
    ),
    pytest.param(
        tracks(b"\1", more=ebml("23E383", bytes(12))), NO_ELEMENT, id="a long number"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_what_ffmpeg_passes_over_is_damage(tmp_path, content, message):
    damage = damage_of(tmp_path, segment(content))
    assert damage is not None
    assert message in damage.message


def test_elements_in_each_other_without_end_do_not_end_the_program(tmp_path):
    in_track = in_group = b""
    for _ in range(1500):
        in_track, in_group = ebml("E0", in_track), ebml("75A1", in_group)
    content = tracks(b"\1", more=in_track) + cluster(group(BLOCK, in_group))
    assert damage_of(tmp_path, segment(content)) is None


@pytest.mark.parametrize("length", [None, UNKNOWN])
def test_files_that_were_joined_are_walked_to_the_end(tmp_path, length):
    first = HEADER + ebml("18538067", tracks(b"\1") + cluster(block()), length=length)
    assert damage_of(tmp_path, first + JOINED) is None
    cut = damage_of(tmp_path, first + JOINED[:-9])
    assert "is cut off: its segment ends" in cut.message
    damaged = damage_of(tmp_path, first + segment(cluster(block(b"\x84"))))
    assert "is of track 4" in damaged.message


def test_joined_files_of_unknown_lengths_are_walked_to_the_end(tmp_path):
    live = ebml("1F43B675", ebml("E7", b"\0") + block(), length=UNKNOWN)
    live = HEADER + ebml("18538067", tracks(b"\1") + live, length=UNKNOWN)
    assert damage_of(tmp_path, live * 3) is None
    assert "a block ends" in damage_of(tmp_path, (live * 3)[:-2]).message


@pytest.mark.parametrize("kind", ["h264", "live"])
def test_the_frames_of_joined_files_are_all_read(tmp_path, kind, write_video, pictures):
    path = write_whole(tmp_path / "clip.mkv", kind, write_video, pictures)
    data = path.read_bytes()
    path.write_bytes(data + data)
    assert read(path) == 2 * NUM_FRAMES
    path.write_bytes(data + data[: len(data) // 2])
    with pytest.raises(SourceReadError, match="is cut off"):
        read(path)


@pytest.mark.parametrize("odd", [ebml("EC", bytes(99)), ebml("BF", b"crc.")])
def test_what_may_be_anywhere_may_be_before_the_segment(
    tmp_path, odd, write_video, pictures
):
    path = write_whole(tmp_path / "clip.mkv", "h264", write_video, pictures)
    data = path.read_bytes()
    at = data.index(bytes.fromhex("18538067"))
    path.write_bytes(data[:at] + odd + odd + data[at:])
    assert read(path) == NUM_FRAMES
    path.write_bytes(data[:at] + odd)
    with pytest.raises(SourceReadError, match="no Matroska segment"):
        read(path)


def test_a_first_cluster_may_be_told_to_take_in_the_later_ones(
    tmp_path, write_video, pictures
):
    """So mkvpropedit leaves a live recording."""
    path = write_video(
        tmp_path / "clip.mkv", pictures(NUM_FRAMES, 48, 64), options={"g": "5"},
        mux_options={"live": "1", "cluster_time_limit": "100"},
    )  # fmt: skip
    data = path.read_bytes()
    first, *others = data.split(bytes.fromhex("1f43b675"))
    assert len(others) > 2
    path.write_bytes(edited(first, others, size=b"\xff"))
    assert read(path) == NUM_FRAMES
    path.write_bytes(edited(first, others, size=b"\xff")[:-9])
    with pytest.raises(SourceReadError, match="is cut off"):
        read(path)
    path.write_bytes(edited(first, others))  # FFmpeg would pass over the others
    with pytest.raises(SourceReadError, match="no Matroska element"):
        read(path)


def edited(before, clusters, *, size=None):
    """Have the first cluster take in the others, and those all have this size."""
    named = [
        bytes.fromhex("1f43b675")
        + (cluster if size is None else size + cluster[vint_length(cluster[0]) :])
        for cluster in clusters
    ]
    content = named[0][4 + vint_length(named[0][4]) :] + b"".join(named[1:])
    return before + ebml("1F43B675", content)


def led_behind_its_clusters(data):
    """Let a SeekHead lead to something there, and the first cluster have no size.

    FFmpeg goes there first, and then passes over that cluster.
    """
    at = data.index(bytes.fromhex("18538067"))
    start = at + 4 + vint_length(data[at + 4])
    size = data.index(bytes.fromhex("1f43b675")) + 4
    content = data[start:size] + b"\xff" + data[size + vint_length(data[size]) :]
    # An entry: what is there, and its place in the segment.
    seek = ebml("4DBB", b"\x53\xab\x84\x10\x43\xa7\x70\x53\xac\x88" + bytes(8))
    length = len(ebml("114D9B74", seek))
    seek = seek[:-8] + struct.pack(">Q", length + len(content))
    content = ebml("114D9B74", seek) + content + ebml("1043A770", b"")
    return data[:at] + ebml("18538067", content)


@pytest.fixture
def passed_over(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "clip.mkv", pictures(NUM_FRAMES, 48, 64), options={"g": "5"},
        mux_options={"live": "1", "cluster_time_limit": "100"},
    )  # fmt: skip
    path.write_bytes(led_behind_its_clusters(path.read_bytes()))
    return path


@pytest.mark.parametrize("options", [{}, {"start": 0.2, "end": 0.4}, {"threads": 4}])
def test_a_cluster_that_ffmpeg_passes_over_costs_no_frame_silently(
    passed_over, options
):
    assert find_damage(passed_over) is None
    with pytest.raises(SourceReadError, match="FFmpeg passes over its packets before"):
        list(VideoFrames(passed_over, **options).stored())


def test_blocks_that_ffmpeg_passes_over_are_counted(tmp_path, write_video, pictures):
    """Where it reads nothing at all, there is no first packet that is too late."""
    path = write_whole(tmp_path / "clip.mkv", "live", write_video, pictures)
    data = path.read_bytes()
    assert data.count(bytes.fromhex("1f43b675")) == 1
    path.write_bytes(led_behind_its_clusters(data))
    with pytest.raises(SourceReadError, match="15 packets, and FFmpeg passes over 15"):
        read(path)


def test_empty_blocks_are_no_packets(tmp_path, write_video, pictures):
    """FFmpeg gives none of them."""
    path = write_whole(tmp_path / "clip.mkv", "live", write_video, pictures)
    data = path.read_bytes()
    size = data.index(bytes.fromhex("1f43b675")) + 4
    content = size + vint_length(data[size])
    _, _, _, first = next(children(data, content, len(data)))  # the time
    empty = ebml("A3", b"\x81\0\0\x80")
    path.write_bytes(data[:size] + b"\xff" + data[content:first] + empty + data[first:])
    assert find_damage(path) is None
    assert read(path) == NUM_FRAMES
