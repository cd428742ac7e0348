"""A NUT whose packets do not lead to its end is damaged."""

from __future__ import annotations

import random

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage

NUM_FRAMES = 24
POINT = bytes.fromhex("4e4be4adeeca4569")
INDEX = bytes.fromhex("4e58dd672f23e64e")


@pytest.fixture(params=["libx264", "mpeg4", "ffv1", "mpeg2video"])
def whole(request, tmp_path, write_video, pictures):
    return write_video(
        tmp_path / "a.nut",
        pictures(NUM_FRAMES, 96, 128),
        codec=request.param,
        options={"g": "6"},
        with_audio=request.param != "ffv1",
    )


def read(path):
    return sum(1 for _ in VideoFrames(path).stored())


def test_a_whole_file_is_whole(whole):
    assert find_damage(whole) is None
    assert read(whole) == NUM_FRAMES
    data = whole.read_bytes()
    whole.write_bytes(data + b"what a player wrote")  # behind the index
    assert find_damage(whole) is None
    whole.write_bytes(data[: data.index(INDEX)])  # as a recorder that was killed
    assert find_damage(whole) is None


def test_what_is_missing_or_too_much_is_noticed(whole):
    data = whole.read_bytes()
    rng = random.Random(0)
    for _ in range(100):
        at, count = rng.randrange(400, len(data)), rng.choice([4, 64, 512, 1500])
        damaged = data[:at]
        kind = rng.randrange(3)
        if kind == 0:
            damaged += data[at + count :]
        elif kind == 1:
            damaged += data[at : at + count] + data[at:]
        elif kind == 2:
            damaged += bytes(min(count, len(data) - at)) + data[at + count :]
        whole.write_bytes(damaged)
        try:
            found = read(whole)
        except SourceReadError:
            continue
        assert found == NUM_FRAMES


def test_a_cut_inside_of_a_packet_is_noticed(whole):
    data = whole.read_bytes()
    noticed = 0
    for size in range(600, len(data), 97):
        whole.write_bytes(data[:size])
        damage = find_damage(whole)
        noticed += damage is not None
        assert damage is None or "is cut off: its last packet" in damage.message
    # The few others are between two frames.
    assert noticed > 0.9 * len(range(600, len(data), 97))


def test_a_part_between_two_points_that_is_missing_is_noticed(whole):
    data = whole.read_bytes()
    places = [at for at in range(len(data)) if data[at : at + 8] == POINT]
    assert len(places) > 2
    whole.write_bytes(data[: places[1]] + data[places[2] :])
    with pytest.raises(SourceReadError, match="its index lists other packets"):
        read(whole)
