"""Of an Ogg file each page of the video has to be there, and sound."""

from __future__ import annotations

import random
import struct

import av
import numpy as np
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.ogg_pages import check_ogg
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage
from tests.written_once import written_once

VIDEO, AUDIO = 7, 0
NUM_FRAMES = 40


def crc(data):
    """Compute the checksum of RFC 3533 bit by bit."""
    sum_ = 0
    for byte in data:
        sum_ ^= byte << 24
        for _ in range(8):
            sum_ = (sum_ << 1 ^ (0x04C11DB7 if sum_ >> 31 else 0)) & 0xFFFFFFFF
    return sum_


def page(content, number=0, *, serial=VIDEO, flags=0, time=1):
    parts = bytes([255] * (len(content) // 255) + [len(content) % 255])
    rest = bytes([len(parts)]) + parts + content
    data = struct.pack("<4sBBqII", b"OggS", 0, flags, time, serial, number)
    return data + struct.pack("<I", crc(data + bytes(4) + rest)) + rest


def begin(content=b"\x80theora", serial=VIDEO):
    return page(content, serial=serial, flags=2, time=0)


def audio(number):
    return page(b"a" * 30, number, serial=AUDIO)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


START = begin() + begin(b"\x01vorbis", AUDIO) + page(b"comment", 1, time=0)
FIRST = page(b"x" * 300, 2)
# Another way to a page of audio: it says that it is longer than all that follows.
LONG = flipped(audio(1)[:26] + b"\xff" + audio(1)[27:], 30)

FILES = [
    pytest.param(START + FIRST + audio(1) + page(b"y", 3), None, id="whole"),
    pytest.param(START + FIRST + b"a note", None, id="text behind"),
    pytest.param(START + FIRST + bytes(500), None, id="zeros behind"),
    pytest.param(START + page(b"x", 900) + page(b"y", 901), None, id="of a station"),
    pytest.param(2 * (START + FIRST + page(b"y", 3)), None, id="joined"),
    pytest.param(
        START + FIRST + begin(serial=8) + page(b"z", 1, serial=8), None, id="chained"
    ),
    pytest.param(START + FIRST + FIRST + page(b"y", 3), None, id="numbered again"),
    pytest.param(
        START + FIRST + flipped(audio(1), 40) + page(b"y", 3), None, id="audio"
    ),
    pytest.param(START + FIRST + LONG + page(b"y", 3), None, id="length of audio"),
    pytest.param(START + FIRST + flipped(audio(1), 40), None, id="last of audio"),
    pytest.param(
        START + FIRST + page(b"z", 4), "pages 3 to 3 are missing", id="missing"
    ),
    pytest.param(
        START + FIRST + LONG + page(b"z", 4), "pages 3 to 3 are missing", id="both"
    ),
]  # fmt: skip


def damage_in(folder, data):
    path = folder / "a.ogv"
    path.write_bytes(data)
    return find_damage(path)


@pytest.mark.parametrize(("data", "message"), FILES)
def test_pages_of_the_video_are_followed(tmp_path, data, message):
    damage = damage_in(tmp_path, data)
    assert (damage is None) == (message is None)
    assert damage is None or message in damage.message


@pytest.mark.parametrize("rest", [page(b"y", 3) + audio(1), b""], ids=["more", "last"])
@pytest.mark.parametrize("at", range(len(page(b"x", 2))))
def test_a_bit_of_any_byte_of_a_page_is_noticed(tmp_path, at, rest):
    data = START + flipped(page(b"x", 2), at) + rest
    damage = damage_in(tmp_path, data)
    assert damage is not None
    if at in {26, 27} and not rest:  # it says that it is longer
        assert "is cut off" in damage.message
    else:
        assert (
            damage.message == f"is damaged: its page at byte {len(START)} is not sound"
        )


@pytest.mark.parametrize("size", [1, 2, 9, 27, 28, 100, 328])
def test_a_page_that_is_cut_is_told_of_as_such(tmp_path, size):
    damage = damage_in(tmp_path, START + page(b"y" * 300, 2)[:size])
    end = len(START) + {1: 27, 2: 27, 9: 27, 27: 29, 28: 284}.get(size, 329)
    assert damage is not None
    assert damage.message.startswith(f"is cut off: its last page ends at byte {end} ")


def test_a_page_is_found_again_behind_a_long_stretch_of_anything(tmp_path):
    for length in range((1 << 16) - 5, (1 << 16) + 5):
        data = START + FIRST + bytes(length) + page(b"z", 4)
        assert "are missing" in damage_in(tmp_path, data).message


@written_once
def write_ogg(path, pictures):
    with av.open(str(path), "w", options={"page_duration": "80000"}) as container:
        stream = container.add_stream("libvpx", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        sound = container.add_stream("libopus", rate=48000)
        for number, image in enumerate(pictures(NUM_FRAMES, 48, 64)):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
            noise = np.random.default_rng(number).normal(0, 0.2, (1, 1920))
            heard = av.AudioFrame.from_ndarray(
                noise.astype(np.float32), format="flt", layout="mono"
            )
            heard.sample_rate = 48000
            container.mux(sound.encode(heard))
        container.mux(stream.encode(None))
        container.mux(sound.encode(None))
    return path


def test_of_real_pages_those_of_audio_may_be_damaged_and_none_of_the_video(
    tmp_path, pictures
):
    if "libopus" not in av.codecs_available:
        pytest.skip("this FFmpeg has no libopus")
    path = write_ogg(tmp_path / "a.ogv", pictures)
    data = path.read_bytes()
    with path.open("rb") as file:
        assert check_ogg(file, len(data)) is None
    starts = [at for at in range(len(data)) if data.startswith(b"OggS", at)]
    first = data.rindex(b"OggS", 0, data.index(b"OVP80"))
    serial_of_video = data[first + 14 : first + 18]
    rng = random.Random(0)
    seen = set()
    # Behind the pages with the headers.
    for start, end in zip(starts[6:], [*starts[7:], len(data)], strict=True):
        is_video = data[start + 14 : start + 18] == serial_of_video
        seen.add(is_video)
        path.write_bytes(flipped(data, rng.randrange(start + 27, end)))
        if is_video:
            with pytest.raises(SourceReadError, match="is not sound"):
                list(VideoFrames(path).stored())
        else:
            assert sum(1 for _ in VideoFrames(path).stored()) == NUM_FRAMES
    assert seen == {True, False}
