"""Colours that the container declares, and the frames do not."""

from __future__ import annotations

import av
import numpy as np
import pytest

from gulpio2.media.video import VideoFrames

# Of a ProRes frame, from its name on: primaries, transfer and matrix.
COLOURS = slice(18, 21)


@pytest.fixture
def prores(tmp_path, write_video, pictures):
    """Write a MOV, and one whose frames leave their colours unspecified."""
    whole = write_video(
        tmp_path / "whole.mov",
        pictures(3, 48, 64),
        codec="prores_ks",
        pix_fmt="yuv422p10le",
        matrix=1,
        full_range=False,
        options={},
        mux_options={"movflags": "write_colr"},
    )
    data = bytearray(whole.read_bytes())
    assert b"colrnclc\0\2\0\2\0\1" in data
    place = data.find(b"icpf")
    while place >= 0:
        header = data[place : place + 21]
        assert bytes(header[COLOURS]) == b"\2\2\1"
        data[place + COLOURS.stop - 1] = 2
        place = data.find(b"icpf", place + 1)
    silent = tmp_path / "silent.mov"
    silent.write_bytes(data)
    return whole, silent


@pytest.mark.parametrize("options", [{}, {"frame_rate": 5}, {"threads": 2}], ids=str)
def test_a_matrix_that_only_the_container_declares_counts(prores, options):
    whole, silent = prores
    with av.open(str(silent)) as container:
        frame = next(container.decode(video=0))
        assert int(frame.colorspace) == 2
    assert VideoFrames(silent, **options).source_info()["matrix"] == "bt709"
    assert np.array_equal(
        list(VideoFrames(silent, **options)), list(VideoFrames(whole, **options))
    )


def test_a_matrix_in_the_frames_counts_more(prores):
    whole, _ = prores
    data = whole.read_bytes()
    other = data.replace(b"colrnclc\0\2\0\2\0\1", b"colrnclc\0\2\0\2\0\6")
    whole.write_bytes(other)
    assert other != data
    assert VideoFrames(whole).source_info()["matrix"] == "bt709"
