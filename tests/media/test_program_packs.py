"""An MPEG program stream that is cut inside of a packet is damaged."""

from __future__ import annotations

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage


@pytest.fixture(params=["mpeg1video", "mpeg2video"])
def whole(request, tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / ("a.mpg" if request.param == "mpeg1video" else "a.vob"),
        pictures(30, 96, 128),
        codec=request.param,
    )
    assert find_damage(path) is None
    return path


def test_a_cut_inside_of_a_packet_is_noticed(whole):
    data = whole.read_bytes()
    for size in range(2048 + 700, len(data), 2048):
        whole.write_bytes(data[:size])
        with pytest.raises(SourceReadError, match="is cut off: its last packet"):
            list(VideoFrames(whole))


def test_what_is_between_and_behind_packets_does_no_harm(whole):
    data = whole.read_bytes()
    for odd in (data + bytes(3000), data + b"TAG of a player", 2 * data):
        whole.write_bytes(odd)
        assert find_damage(whole) is None
    whole.write_bytes(data[:2048] + b"x" * 99 + data[2048:])
    assert find_damage(whole) is None
