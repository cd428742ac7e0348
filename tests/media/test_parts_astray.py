"""Bytes that are missing in the middle of ASF, MXF, DV and IVF are noticed."""

from __future__ import annotations

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage

KINDS = {
    "asf": ("mpeg4", "clip.asf", "is damaged: "),
    "mxf": ("mpeg2video", "clip.mxf", "no triplet begins"),
    "dv": ("dvvideo", "clip.dv", "no frame begins"),
}
# Bytes of a frame of DV.
DV_BYTES = 144_000


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def whole(kind, tmp_path, write_video, pictures):
    codec, name, _ = KINDS[kind]
    return write_video(
        tmp_path / name,
        pictures(3, 576, 720) if kind == "dv" else pictures(30, 96, 128),
        codec=codec,
        pix_fmt="yuv420p",
        options={"g": "4"},
    )


@pytest.mark.parametrize("part", [0.4, 0.5, 0.6, 0.7])
@pytest.mark.parametrize("count", [1, 16, 700])
def test_bytes_that_are_missing_are_noticed(whole, kind, part, count):
    data = whole.read_bytes()
    place = int(len(data) * part)
    whole.write_bytes(data[:place] + data[place + count :])
    with pytest.raises(SourceReadError, match=KINDS[kind][2] + "|cut off"):
        list(VideoFrames(whole))


@pytest.mark.parametrize("part", [0.4, 0.5, 0.6])
def test_bytes_that_are_too_many_are_noticed(whole, kind, part):
    data = whole.read_bytes()
    place = int(len(data) * part)
    whole.write_bytes(data[:place] + bytes(100) + data[place:])
    with pytest.raises(SourceReadError, match=KINDS[kind][2]):
        list(VideoFrames(whole))


def test_a_whole_file_with_more_behind_it_is_whole(whole):
    data = whole.read_bytes()
    for more in (b"", bytes(3000), b"TAG of a player"):
        whole.write_bytes(data + more)
        assert find_damage(whole) is None


def test_a_header_of_dv_that_is_damaged_alone_does_no_harm(
    tmp_path, write_video, pictures
):
    """All of the frame may be there: its decoder tells."""
    path = write_video(
        tmp_path / "a.dv", pictures(4, 576, 720), codec="dvvideo", pix_fmt="yuv420p"
    )
    data = bytearray(path.read_bytes())
    data[DV_BYTES] ^= 1
    path.write_bytes(data)
    assert find_damage(path) is None


@pytest.mark.parametrize("count", [12, 90])
def test_zeros_over_a_header_of_ivf_are_noticed(tmp_path, write_video, pictures, count):
    path = write_video(tmp_path / "a.ivf", pictures(12, 96, 128), codec="libvpx")
    data = path.read_bytes()
    place = 32
    for _ in range(6):
        place += 12 + int.from_bytes(data[place : place + 4], "little")
    path.write_bytes(data[:place] + bytes(count) + data[place + count :])
    with pytest.raises(SourceReadError, match="no frame begins"):
        list(VideoFrames(path))
