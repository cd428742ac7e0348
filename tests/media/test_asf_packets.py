"""An ASF of which parts of frames are missing, or belong to others, is damaged."""

from __future__ import annotations

import random

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from gulpio2.media.wholeness import find_damage

NUM_FRAMES = 30
DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")


@pytest.fixture(params=["1000", "3200"])
def whole(request, tmp_path, write_video, pictures):
    return write_video(
        tmp_path / "a.wmv",
        pictures(NUM_FRAMES, 96, 128),
        codec="wmv2",
        options={"g": "6"},
        mux_options={"packet_size": request.param},
        with_audio=request.param == "1000",
    )


def test_a_whole_file_is_whole(whole):
    assert find_damage(whole) is None
    assert sum(1 for _ in VideoFrames(whole).stored()) == NUM_FRAMES


@pytest.mark.parametrize("with_zeros", [False, True])
def test_damage_costs_no_frame_without_a_word(whole, with_zeros):
    data = whole.read_bytes()
    rng = random.Random(0)
    start = data.index(DATA) + 50
    for _ in range(150):
        damaged = bytearray(data)
        at = rng.randrange(start + 3, len(data) - 200)
        if with_zeros:
            damaged[at : at + 16] = bytes(16)
        else:
            damaged[at] ^= 1 << rng.randrange(8)
        whole.write_bytes(damaged)
        try:
            found = sum(1 for _ in VideoFrames(whole).stored())
        except SourceReadError:
            continue
        assert found == NUM_FRAMES


@pytest.mark.parametrize(
    ("field", "bit"), [("stream", 2), ("number", 1), ("offset", 4), ("size", 1)]
)
def test_a_damaged_header_of_a_part_is_noticed(whole, field, bit):
    data = bytearray(whole.read_bytes())
    start = data.index(DATA) + 50
    start = data.index(data[start : start + 3], start + 900)  # the second packet
    # Behind the correction of errors, flags, padding and times.
    flags = data[start + 3]
    at = start + 5 + (flags >> 3 & 3) + 6 + (flags & 1)
    data[at + {"stream": 0, "number": 1, "offset": 2, "size": 7}[field]] ^= bit
    whole.write_bytes(data)
    damage = find_damage(whole)
    assert damage is not None
    assert "parts of frames are missing" in damage.message


def test_sound_that_is_missing_costs_no_video(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "a.wmv",
        pictures(NUM_FRAMES, 96, 128),
        codec="wmv2",
        mux_options={"packet_size": "1000"},
        with_audio=True,
    )
    data = bytearray(path.read_bytes())
    first = data.index(DATA) + 50
    changed = 0
    for start in range(first, len(data) - 1000, 1000):
        flags = data[start + 3]
        at = start + 5 + (flags >> 3 & 3) + 6 + (flags & 1)
        if data[at] & 0x7F == 2:  # the stream of sound
            data[at + 1] ^= 1  # the number of the object
            changed += 1
    assert changed
    path.write_bytes(data)
    assert find_damage(path) is None
    assert sum(1 for _ in VideoFrames(path).stored()) == NUM_FRAMES
