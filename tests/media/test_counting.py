"""Videos that were cut without encoding them: what is left out, and what is lost."""

from __future__ import annotations

import logging
import struct

import av
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames


def boxes(data, start, end):
    while start + 8 <= end:
        length = int.from_bytes(data[start : start + 4], "big")
        yield data[start + 4 : start + 8], start, length
        start += length


def find(data, *names):
    """Give start and length of a box by the names of those around it and its own."""
    start, end = 0, len(data)
    for name in names:
        start, length = next(
            (at, length)
            for found, at, length in boxes(data, start, end)
            if found == name
        )
        start, end = start + 8, start + length
    return start - 8, length


def edit(path, *entries, rate=1 << 16):
    """Replace the edit list of an MP4 file: durations and starts, in ticks."""
    data = bytearray(path.read_bytes())
    body = struct.pack(">II", 0, len(entries))
    body += b"".join(struct.pack(">IiI", *entry, rate) for entry in entries)
    new = struct.pack(">I4sI4s", 16 + len(body), b"edts", 8 + len(body), b"elst") + body
    at, length = find(data, b"moov", b"trak", b"edts")
    outer = [find(data, b"moov"), find(data, b"moov", b"trak")]
    data[at : at + length] = new
    grown = len(new) - length
    for start, size in outer:
        data[start : start + 4] = struct.pack(">I", size + grown)
    media, _ = find(data, b"mdat")
    if media > at:  # the index is first: chunks have moved
        start, _ = find(data, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stco")
        count = int.from_bytes(data[start + 12 : start + 16], "big")
        for place in range(start + 16, start + 16 + 4 * count, 4):
            moved = int.from_bytes(data[place : place + 4], "big") + grown
            data[place : place + 4] = moved.to_bytes(4, "big")
    path.write_bytes(data)
    return path


@pytest.fixture
def clip(tmp_path, write_video, pictures):
    def make(name="a.mp4", num=50, **mux_options):
        return write_video(
            tmp_path / name,
            pictures(num, 48, 64),
            options={"qp": "20", "g": "10", "bf": "2"},
            mux_options=mux_options,
        )

    return make


def read(path):
    return sum(1 for _ in VideoFrames(path).stored())


# Durations are in thousandths of a second, starts in ticks of 1/12800 s: 512 a frame.
EDITS = [
    pytest.param([(2000, 1024)], 50, id="whole"),
    pytest.param([(1000, 1024)], 25, id="end"),
    pytest.param([(1400, 1024 + 15 * 512)], 35, id="start"),
    pytest.param([(400, 1024), (800, 1024 + 30 * 512)], 30, id="middle"),
]


@pytest.mark.parametrize("flags", [{}, {"movflags": "faststart"}])
@pytest.mark.parametrize(("entries", "num"), EDITS)
def test_what_an_edit_list_leaves_out_was_not_promised(clip, entries, num, flags):
    path = edit(clip(**flags), *entries)
    with av.open(str(path)) as container:
        assert container.streams.video[0].frames == 50
        assert sum(1 for _ in container.decode(video=0)) == num
    assert read(path) == num


@pytest.mark.parametrize("part", [0.4, 0.6, 0.8, 0.95])
@pytest.mark.parametrize(("entries", "num"), EDITS)
def test_a_cut_file_with_an_edit_list_is_an_error(clip, entries, num, part):
    path = edit(clip(movflags="faststart"), *entries)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        needed = max(
            (packet.pos or 0) + packet.size
            for packet in container.demux(stream)
            if packet.size
        )
    data = path.read_bytes()
    path.write_bytes(data[: int(needed * part)])
    with pytest.raises(SourceReadError, match=r"a\.mp4"):
        read(path)


def test_samples_that_are_missing_without_an_edit_list_stay_an_error(clip):
    path = clip()
    data = bytearray(path.read_bytes())
    start, _ = find(data, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsc")
    # The number of samples in each chunk: half of them are in none.
    count = int.from_bytes(data[start + 20 : start + 24], "big")
    data[start + 20 : start + 24] = (count // 2).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match=r"a\.mp4"):
        read(path)


def test_a_sample_of_no_bytes_counts_as_one(tmp_path, write_video, pictures):
    path = write_video(tmp_path / "a.mp4", pictures(10, 48, 64), codec="mpeg4")
    data = bytearray(path.read_bytes())
    start, _ = find(data, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsz")
    last = start + 20 + 4 * 9
    data[last : last + 4] = bytes(4)
    path.write_bytes(data)
    assert read(path) == 9


def copy_from(path, target, first):
    """Copy the packets of a video from one of them on."""
    with av.open(str(path)) as source, av.open(str(target), "w") as container:
        stream = container.add_stream_from_template(source.streams.video[0])
        packets = [packet for packet in source.demux(video=0) if packet.size]
        for packet in packets[first:]:
            packet.stream = stream
            container.mux(packet)
    return target


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
@pytest.mark.parametrize("frame_rate", [None, 5])
@pytest.mark.parametrize("first", [3, 10])
def test_frames_that_a_cut_between_key_frames_costs_are_told(
    tmp_path, write_video, pictures, caplog, ending, frame_rate, first
):
    whole = write_video(
        tmp_path / f"whole.{ending}",
        pictures(60, 48, 64),
        options={
            "qp": "10",
            "bf": "3",
            "x264-params": "open-gop=1:keyint=10:min-keyint=10:scenecut=0",
        },
    )
    cut = copy_from(whole, tmp_path / f"cut.{ending}", first)
    with av.open(str(cut)) as container:
        num_decoded = sum(1 for _ in container.decode(video=0))
    lost = 60 - first - num_decoded
    assert lost > 0
    with caplog.at_level(logging.WARNING, "gulpio2"):
        read(whole)
        assert not caplog.records
        frames = list(VideoFrames(cut, frame_rate=frame_rate).stored())
    assert frame_rate or len(frames) == num_decoded
    (record,) = caplog.records
    assert str(cut) in record.getMessage()
    assert f"{lost} of its {60 - first} packets" in record.getMessage()


WHOLE = [
    ("libx264", "a.mp4", {"bf": "3"}),
    ("libx264", "a.avi", {"bf": "0"}),
    ("libx265", "a.mkv", {"x265-params": "log-level=none"}),
    ("libvpx", "a.webm", {"auto-alt-ref": "1", "lag-in-frames": "8"}),
    ("libvpx-vp9", "a.mp4", {"auto-alt-ref": "1", "lag-in-frames": "8"}),
    ("libsvtav1", "a.mp4", {"preset": "12"}),
    ("mpeg4", "a.avi", {"bf": "2"}),
    ("mpeg2video", "a.mov", {"bf": "2"}),
    ("mpeg2video", "a.ts", {"bf": "2"}),
]


@pytest.mark.parametrize(("codec", "name", "options"), WHOLE)
@pytest.mark.parametrize("frame_rate", [None, 5])
def test_of_a_whole_video_nothing_is_told(
    tmp_path, write_video, pictures, caplog, codec, name, options, frame_rate
):
    if codec not in av.codecs_available:
        pytest.skip(f"this FFmpeg has no {codec}")
    path = write_video(
        tmp_path / name, pictures(40, 64, 64), codec=codec, options=options
    )
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert list(VideoFrames(path, frame_rate=frame_rate).stored())
    assert not caplog.records


@pytest.mark.parametrize(("entries", "num"), EDITS)
def test_what_an_edit_list_leaves_out_is_not_lost(clip, caplog, entries, num):
    path = edit(clip(), *entries)
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert read(path) == num
    assert not caplog.records


@pytest.mark.parametrize("times", [{}, {"frame_rate": 5}, {"start": 0}])
@pytest.mark.parametrize(
    ("entries", "rate", "odd"),
    [
        ([(500, 0), (500, -1), (500, 5120)], 1 << 16, "a pause between its parts"),
        ([(1000, 1024)], 1 << 17, "a part of another speed"),
        ([(1000, 1024)], 1 << 15, "a part of another speed"),
        ([(500, -1), (1000, 1024)], 1 << 16, None),
        ([(500, 1024), (500, 10240)], 1 << 16, None),
    ],
)
def test_what_ffmpeg_makes_of_an_odd_edit_list_is_told_once(
    clip, caplog, entries, rate, odd, times
):
    path = edit(clip(), *entries, rate=rate)
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert list(VideoFrames(path, **times).stored())
    told = [record.getMessage() for record in caplog.records]
    assert [repr(str(path)) in line and odd in line for line in told] == [True] * bool(
        odd
    )
