"""An FLV whose tags do not lead to its end is damaged."""

from __future__ import annotations

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from gulpio2.media.wholeness import find_damage


@pytest.fixture
def whole(tmp_path, write_video, pictures):
    path = write_video(tmp_path / "a.flv", pictures(12, 48, 64), options={"g": "4"})
    assert find_damage(path) is None
    return path


def tags_of(data):
    """Give where the tags begin, and the end."""
    places = [13]
    while places[-1] < len(data):
        at = places[-1]
        places.append(at + 15 + int.from_bytes(data[at + 1 : at + 4], "big"))
    return places


def test_a_cut_inside_of_a_tag_is_noticed(whole):
    data = whole.read_bytes()
    *tags, end = tags_of(data)
    assert end == len(data)
    for tag in tags[3:]:
        for more in (1, 10, 11, 20):
            whole.write_bytes(data[: tag + more])
            if tag + more < end - 4:
                with pytest.raises(SourceReadError, match="is cut off: its last tag"):
                    list(VideoFrames(whole))
        whole.write_bytes(data[:tag])
        assert find_damage(whole) is None  # which nothing tells


def test_a_damaged_header_of_a_tag_is_noticed(whole):
    data = whole.read_bytes()
    for tag in tags_of(data)[3:-2]:
        for at, bit in ((0, 4), (1, 64), (2, 1), (3, 2), (9, 4)):
            damaged = bytearray(data)
            damaged[tag + at] ^= bit
            whole.write_bytes(damaged)
            with pytest.raises(SourceReadError):
                list(VideoFrames(whole))


def test_zeros_behind_the_last_tag_do_no_harm(whole):
    data = whole.read_bytes()
    whole.write_bytes(data + bytes(3000))
    assert find_damage(whole) is None
    whole.write_bytes(data + bytes(3000) + data[-3000:])
    damage = find_damage(whole)
    assert damage is not None
    assert "no tag begins" in damage.message


def test_one_behind_another_is_noticed(whole):
    whole.write_bytes(2 * whole.read_bytes())
    with pytest.raises(SourceReadError, match="no tag begins"):
        list(VideoFrames(whole))
