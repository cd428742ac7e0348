"""Crafted videos: each costs its item at most, in short time and with little memory."""

import functools
import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import av
import pytest

import gulpio2
from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.errors import GulpError, SourceReadError
from gulpio2.media.images import ImageFrames
from gulpio2.media.video import VideoFrames
from gulpio2.testing import make_frames
from tests.faults.operations import end_of_small_child

LONG = os.environ.get("GULPIO2_FAULTS") == "long"


class Files(AbstractDatasetAdapter):
    """One item, of a video file."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 1

    def iter_data(self, slice_element=None):
        frames = VideoFrames(self.path, frame_rate=8, frame_size=32)
        yield from [{"meta": {}, "frames": frames, "id": "x"}][
            slice_element or slice(None)
        ]


def ingest(path, folder):
    """Ingest a video; what comes of it must be an item or a failure of it."""
    report = GulpIngestor(Files(path), folder, 1, 1).run()
    assert report.items + len(report.failures) == 1
    with GulpDirectory(folder) as directory:
        for id_ in directory.chunk_lookup:
            directory.read_clip(id_, slice(0, 3))


def write_video(path, codec, *, num_streams=1, size=(64, 48), pix_fmt="yuv420p"):
    """Write a small video in a container by the name of the file."""
    with av.open(str(path), "w") as container:
        streams = [container.add_stream(codec, rate=25) for _ in range(num_streams)]
        for stream in streams:
            stream.width, stream.height = size
            stream.pix_fmt = pix_fmt
        for pixels in make_frames(12, size[1], size[0]):
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            for packet in streams[0].encode(frame):
                container.mux(packet)
        for packet in streams[0].encode(None):
            container.mux(packet)
    return path.read_bytes()


@pytest.fixture(scope="module")
def mp4(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("videos") / "sound.mp4", "mpeg4")


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """Load what an ingest loads, so that it does not count."""
    folder = tmp_path_factory.mktemp("warm")
    write_video(folder / "sound.mp4", "mpeg4")
    ingest(folder / "sound.mp4", folder / "out")


def box(data, name, at=0):
    """Find the content of a box of an MP4, by its name."""
    return data.index(name, at) + 4


def put(data, at, layout, *values):
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, *values)
    return bytes(changed)


def crafted(data):
    """Give sound videos with absurd claims."""
    sample = box(data, b"mp4v")
    yield "sizes of the sample entry", put(data, sample + 24, ">HH", 65535, 65535)
    yield "sizes of the track", put(data, box(data, b"tkhd") + 76, ">II", 2**32 - 1, 1)
    media = box(data, b"mdhd")
    yield "no time scale", put(data, media + 12, ">I", 0)
    yield "a time scale of 2^32", put(data, media + 12, ">I", 2**32 - 1)
    yield "a time scale of 1", put(data, media + 12, ">I", 1)
    yield "a duration of 2^32", put(data, media + 16, ">I", 2**32 - 1)
    times = box(data, b"stts")
    yield "frames of days", put(data, times + 12, ">I", 2**31 - 1)
    yield "frames without duration", put(data, times + 12, ">I", 0)
    yield "times of 2^32 frames", put(data, times + 8, ">I", 2**32 - 1)
    yield "2^32 entries of times", put(data, times + 4, ">I", 2**32 - 1)
    sizes = box(data, b"stsz")
    yield "2^32 samples", put(data, sizes + 8, ">I", 2**32 - 1)
    yield "2^24 samples of one size", put(data, sizes + 4, ">II", 100, 2**24)
    yield "samples of 2 GB", put(data, sizes + 12, ">I", 2**31 - 1)
    chunks = box(data, b"stsc")
    yield "2^32 samples to a chunk", put(data, chunks + 12, ">I", 2**32 - 1)
    yield "a box that holds itself", put(data, box(data, b"moov") - 8, ">I", 2**31 - 1)
    yield "a box of no size", put(data, box(data, b"trak") - 8, ">I", 0)


NAMES = [
    name
    for name, _ in crafted(
        bytes(4000)
        + b"".join(
            n + bytes(200)
            for n in (
                b"moov",
                b"trak",
                b"mp4v",
                b"tkhd",
                b"mdhd",
                b"stts",
                b"stsz",
                b"stsc",
            )
        )
    )
]


@pytest.mark.parametrize("name", NAMES)
def test_an_mp4_with_an_absurd_claim_costs_its_item_at_most(tmp_path, mp4, name):
    (tmp_path / "x.mp4").write_bytes(dict(crafted(mp4))[name])
    assert end_of_small_child(lambda: ingest(tmp_path / "x.mp4", tmp_path / "out")) == 0


# Where a codec, or its container, declares the size of frames, and how.
SIZES = {
    "raw pixels": (".avi", "rawvideo", "yuv420p", b"strf", 8, "<ii"),
    "JPEGs, by the container": (".avi", "mjpeg", "yuvj420p", b"strf", 8, "<ii"),
    "JPEGs": (".mkv", "mjpeg", "yuvj420p", b"\xff\xc0\x00\x11", 5, ">HH"),
    "PNGs": (".mov", "png", "rgb24", b"IHDR", 4, ">II"),
}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("side", [8192, 30_000, 2**16 - 1])
def test_frames_of_huge_declared_size_cost_the_item_and_no_memory(tmp_path, kind, side):
    suffix, codec, pix_fmt, find, offset, layout = SIZES[kind]
    path = tmp_path / f"x{suffix}"
    data = write_video(path, codec, pix_fmt=pix_fmt)
    at = data.index(find)
    while at >= 0:
        data = put(data, at + offset, layout, side, side)
        at = data.find(find, at + 4)
    path.write_bytes(data)
    assert end_of_small_child(lambda: ingest(path, tmp_path / "out")) == 0


@pytest.mark.parametrize("suffix", [".mkv", ".ts"])
def test_a_video_of_hundreds_of_streams_is_read_or_refused(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write_video(path, "mpeg2video", num_streams=400 if suffix == ".mkv" else 200)
    assert end_of_small_child(lambda: ingest(path, tmp_path / "out")) == 0


def test_random_changes_and_cuts_of_videos_cost_the_item_at_most(tmp_path, mp4):
    rng = random.Random(6)
    path = tmp_path / "x.mp4"
    for number in range(2000 if LONG else 60):
        data = bytearray(mp4)
        for _ in range(rng.randrange(1, 12)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
        folder = tmp_path / f"out{number}"
        assert end_of_small_child(functools.partial(ingest, path, folder)) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 5000,
        b"\0\0\0\x20ftypisom" + b"\xff" * 100,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nx.mp4\n",
        b"ffconcat version 1.0\n" + b"file x.mp4\n" * 1000,
        b"RIFF\xff\xff\xff\xffAVI LIST\xff\xff\xff\xffhdrl",
        b"\x1aE\xdf\xa3" + b"\x01" + b"\xff" * 7 + bytes(100),
        b"GIF89a\xff\xff\xff\xff\xf7\0\0" + bytes(800),
        b"Y4M",
        b"YUV4MPEG2 W30000 H30000 F1000000000:1 C444\nFRAME\n",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_hardly_a_video_costs_its_item(tmp_path, data):
    (tmp_path / "x.mp4").write_bytes(data)
    assert end_of_small_child(lambda: ingest(tmp_path / "x.mp4", tmp_path / "out")) == 0


@pytest.mark.parametrize(
    "text",
    [
        "ffconcat version 1.0\nfile {name}\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{name}\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
        "<?xml version='1.0'?><MPD><Period><AdaptationSet><Representation>"
        "<BaseURL>{name}</BaseURL></Representation></AdaptationSet></Period></MPD>",
    ],
    ids=["concat", "hls", "sdp", "dash"],
)
@pytest.mark.parametrize("name", ["x.mp4", "sound.mp4"])
def test_a_file_that_names_others_opens_none_of_them(tmp_path, mp4, text, name):
    (tmp_path / "sound.mp4").write_bytes(mp4)
    (tmp_path / "x.mp4").write_text(text.format(name=name))
    with pytest.raises(SourceReadError, match="cannot be opened"):
        next(iter(VideoFrames(tmp_path / "x.mp4")))


@pytest.mark.parametrize("source", [VideoFrames, lambda path: ImageFrames([path])])
def test_a_pipe_in_place_of_a_source_is_not_waited_for(tmp_path, source):
    os.mkfifo(tmp_path / "x.mp4")

    def attempt():
        signal.alarm(10)
        with pytest.raises(SourceReadError, match="not a regular file"):
            next(iter(source(tmp_path / "x.mp4")))

    assert end_of_small_child(attempt) == 0


def test_the_ceiling_of_pixels_can_be_raised(tmp_path):
    write_video(tmp_path / "x.mp4", "mpeg4", size=(640, 480))
    with pytest.raises(GulpError):
        next(iter(VideoFrames(tmp_path / "x.mp4", max_pixels=640 * 480 - 1)))
    frames = VideoFrames(tmp_path / "x.mp4", max_pixels=640 * 480)
    assert next(iter(frames)).shape == (480, 640, 3)


@pytest.mark.parametrize(
    ("value", "factor", "is_wrong"),
    [
        ("", 1, False),
        ("1000", 1, False),
        ("x", 1, True),
        ("0", 1, True),
        ("-5", 1, True),
        ("1" * 5000, 1, True),
        (str(2**28), 2, False),
    ],
)
def test_the_environment_raises_every_ceiling(value, factor, is_wrong):
    code = (
        "from gulpio2.codecs.jpeg import MAX_PIXELS\n"
        "from gulpio2.media.limits import MAX_VIDEO_PIXELS\n"
        "print(MAX_PIXELS, MAX_VIDEO_PIXELS)"
    )
    package = Path(gulpio2.__path__[0]).parent  # the one that is tested here
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(package), "GULPIO2_MAX_PIXELS": value},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [factor * 2**27, factor * factor * 2**26]
    assert list(map(int, done.stdout.split())) == expected
    told = f"GULPIO2_MAX_PIXELS is {value!r}, which is no number of pixels above 0"
    assert done.stderr.count("GULPIO2_MAX_PIXELS") == done.stderr.count(told)
    assert done.stderr.count(told) == is_wrong  # once, for all ceilings
