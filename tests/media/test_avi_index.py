"""Of an AVI as many packets have to come as its index lists."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import av
import numpy as np
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.counting import Promise
from gulpio2.media.video import VideoFrames
from tests.written_once import written_once

KINDS = {
    "mpeg4": ("mpeg4", "yuv420p", {"g": "8"}),
    "reordered": ("mpeg4", "yuv420p", {"g": "8", "bf": "2"}),
    "h264": ("libx264", "yuv420p", {"g": "8", "bf": "0", "qp": "20"}),
    "mjpeg": ("mjpeg", "yuvj420p", {}),
    "ffv1": ("ffv1", "yuv420p", {}),
    "raw": ("rawvideo", "bgr24", {}),
}
TIMES = {
    "all": list(range(24)),
    "dropped": [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 30],
    "one": [0],
}


@written_once
def write_avi(path, kind, times, pictures):
    codec, pix_fmt, options = KINDS[kind]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pix_fmt
        stream.options = options
        sound: Any = container.add_stream("pcm_s16le", rate=8000)
        for pts, image in zip(times, pictures(len(times), 48, 64), strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame = frame.reformat(format=pix_fmt)
            frame.pts = pts
            container.mux(stream.encode(frame))
            samples = np.full((1, 320), pts, np.int16)
            heard = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            heard.sample_rate = 8000
            container.mux(sound.encode(heard))
        container.mux(stream.encode(None))
        container.mux(sound.encode(None))
    return path


@pytest.fixture
def write(tmp_path, pictures):
    def make(kind, times="all"):
        return write_avi(tmp_path / "a.avi", kind, TIMES[times], pictures)

    return make


def chunks(data):
    """Give where the chunks of an AVI with one RIFF are, by their names."""
    at, end = data.index(b"movi") + 4, data.rindex(b"idx1")
    while at + 8 <= end:
        yield at, data[at : at + 4]
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + length + length % 2


def told(path: Any, **options: Any) -> Any:
    """Give the frames of a file as times and planes; None where it is refused."""
    try:
        frames: Any = list(VideoFrames(path, **options).stored())
    except SourceReadError:
        return None
    return [
        (frame.pts, zlib.crc32(image.tobytes()))
        for frame in frames
        for image in [getattr(frame.image, "y", frame.image)]
    ]


# Bits of the header of a chunk: of its name, which begins with the stream, its length.
BITS = [(0, 1), (1, 2), (2, 4), (4, 2), (4, 3), (5, 0), (6, 3)]


@pytest.mark.parametrize("excerpt", [{}, {"start": 0.3, "end": 0.6}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_bit_in_the_header_of_a_chunk_costs_no_frame_silently(write, kind, excerpt):
    path = write(kind)
    whole, data = told(path, **excerpt), path.read_bytes()
    assert len(whole) == (7 if excerpt else 24)
    refused = set()
    for at, name in list(chunks(data))[4:-4:5]:
        for byte, bit in BITS:
            damaged = bytearray(data)
            damaged[at + byte] ^= 1 << bit
            path.write_bytes(damaged)
            found = told(path, **excerpt)
            if found is None:
                refused.add(name[2:])
            elif byte != 4 or name != b"00dc":  # less of a packet may be decoded
                assert [pts for pts, _ in found] == [pts for pts, _ in whole]
                assert byte >= 4 or found == whole
    assert refused


def test_a_chunk_of_audio_that_says_it_is_longer_is_told_of(write):
    path = write("mpeg4")
    data = bytearray(path.read_bytes())
    at = [at for at, name in chunks(data) if name == b"01wb"][10]
    data[at + 5] ^= 1 << 3  # so that it goes over the next ones
    path.write_bytes(data)
    message = "the container promises 24 frames and has "
    with pytest.raises(SourceReadError, match=message):
        list(VideoFrames(path).stored())


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_read(write, kind, times, has_index):
    path = write(kind, times)
    if not has_index:
        data = path.read_bytes()
        at = data.rindex(b"idx1")
        path.write_bytes(data[:at] + b"JUNK" + data[at + 4 :])
    assert len(told(path)) == len(TIMES[times])


@pytest.mark.parametrize("kind", ["mpeg4", "mjpeg"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_cut_file_is_refused_although_its_index_is_gone(write, kind, part):
    path = write(kind)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(SourceReadError, match="cut off"):
        list(VideoFrames(path).stored())


@pytest.mark.parametrize("num", [0, 3])
def test_entries_of_no_bytes_and_of_one_place_promise_nothing(write, num):
    path = write("mjpeg")
    data = bytearray(path.read_bytes())
    at = data.rindex(b"idx1") + 8
    entries = [at for at in range(at, len(data) - 15, 16) if data[at : at + 2] == b"00"]
    for entry in entries[5 : 5 + num]:
        # Where the chunk is, and how long.
        data[entry + 8 : entry + 16] = data[entries[4] + 8 : entries[4] + 16]
    if not num:
        data[entries[5] + 12 : entries[5] + 16] = struct.pack("<I", 0)
    path.write_bytes(data)
    assert len(told(path)) == 24


def test_a_packet_that_is_left_out_is_known_when_the_next_one_comes():
    promise = Promise(9, [500, 100, 300, 300])
    for pos, is_astray in [(108, False), (508, True)]:
        promise.see_packet(pos)
        assert promise.is_astray is is_astray
    assert promise.missing(2) is not None
    assert promise.missing(3) is None
    promise.restart()
    promise.see_packet(308)
    assert not promise.is_astray
    assert promise.is_open
    promise.see_packet(508)
    promise.see_packet(None)  # more than the index has
    assert not promise.is_astray
    assert not promise.is_open
