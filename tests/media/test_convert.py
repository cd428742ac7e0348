"""From a decoded frame to the frame that is stored."""

from __future__ import annotations

import logging
from typing import Any

import av
import numpy as np
import pytest

from gulpio2.media.convert import FrameConverter, Picture
from gulpio2.media.resize import resized_shape
from gulpio2.types import YuvFrame


def convert(frame, short_edge=-1) -> Any:
    return FrameConverter(short_edge).convert(frame)


@pytest.fixture
def frame_of(pictures):
    def make(name, height=48, width=64, *, full_range=None, matrix=None):
        image = pictures(1, height, width)[0]
        range_ = {None: 0, False: 1, True: 2}[full_range]
        frame = av.VideoFrame.from_ndarray(image, "rgb24").reformat(
            format=name, dst_color_range=range_ or None, dst_colorspace=matrix
        )
        frame.color_range = range_
        if matrix is not None:
            frame.colorspace = matrix
        return frame

    return make


@pytest.mark.parametrize(
    ("name", "full_range", "expected"),
    [
        ("yuv420p", None, False),
        ("yuv420p", False, False),
        ("yuv420p", True, True),
        ("yuvj420p", None, True),
        ("gray", None, True),
        ("gray", False, False),
        ("rgb24", None, True),
        ("rgb24", False, True),
    ],
)
def test_range_is_the_declared_one_and_else_that_of_the_format(
    frame_of, name, full_range, expected
):
    frame = av.VideoFrame(16, 16, name)
    frame.color_range = {None: 0, False: 1, True: 2}[full_range]
    assert Picture.of(frame).full_range is expected


@pytest.mark.parametrize("short_edge", [-1, 0, 24, 48, 100])
@pytest.mark.parametrize(
    "name",
    [
        "yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv411p", "nv12", "gray",
        "rgb24", "gbrp10le", "gray12le",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [(48, 64), (47, 63), (64, 48), (50, 50)])
def test_the_short_edge_has_the_length_asked_for(frame_of, name, size, short_edge):
    frame = frame_of(name, *size)
    image = convert(frame, short_edge)
    shape = image.y.shape if isinstance(image, YuvFrame) else image.shape[:2]
    height, width = size
    assert shape == resized_shape(height, width, short_edge)


def test_chroma_follows_the_source(frame_of):
    kinds = {"yuv420p": "420", "yuv422p": "422", "yuv444p": "444", "yuv411p": "422"}
    for name, subsampling in kinds.items():
        for short_edge in (-1, 20, 90):
            image = convert(frame_of(name), short_edge)
            assert image.subsampling == subsampling


def test_grey_becomes_planes_without_colour(frame_of):
    frame = frame_of("gray")
    image = convert(frame)
    assert image.subsampling == "420"
    assert np.array_equal(image.y, frame.to_ndarray())
    assert np.unique(image.u).tolist() == np.unique(image.v).tolist() == [128]


def test_grey_declared_limited_is_stretched():
    frame = av.VideoFrame(16, 16, "gray")
    frame.planes[0].update(bytes([16, 235] * (frame.planes[0].buffer_size // 2)))
    frame.color_range = 1
    assert np.unique(convert(frame).y).tolist() == [0, 255]


def test_rgb_stays_rgb(frame_of):
    frame = frame_of("gbrp")
    image = convert(frame)
    assert np.array_equal(image, frame.to_ndarray(format="rgb24"))


def test_jpeg_planes_are_not_copied(frame_of):
    frame = frame_of("yuvj420p")
    image = convert(frame)
    assert np.shares_memory(image.y, np.frombuffer(frame.planes[0], np.uint8))
    assert not image.y.flags.writeable


def test_frames_that_are_kept_do_not_change(frame_of):
    converter: Any = FrameConverter(24)
    kept = [converter.convert(frame_of("yuv420p")) for _ in range(3)]
    before = [image.y.copy() for image in kept]
    for _ in range(5):
        converter.convert(av.VideoFrame(64, 48, "yuv420p"))
    for image, copy in zip(kept, before, strict=True):
        assert np.array_equal(image.y, copy)


def test_a_new_size_in_the_middle_is_brought_to_the_first_one(frame_of, caplog):
    converter: Any = FrameConverter()
    first = converter.convert(frame_of("yuv420p", 48, 64))
    with caplog.at_level(logging.WARNING, "gulpio2"):
        for size in ((96, 128), (24, 32), (30, 200)):
            later = converter.convert(frame_of("yuv420p", *size))
            assert later.y.shape == first.y.shape
            assert later.u.shape == first.u.shape
    assert "changes its size from 64x48 to 128x96" in caplog.text


def test_colour_that_changes_in_the_middle_is_followed(frame_of, psnr):
    from gulpio2.media.colour import to_rgb

    converter: Any = FrameConverter()
    images = [
        to_rgb(converter.convert(frame_of("yuv444p", full_range=full, matrix=matrix)))
        for full in (False, True)
        for matrix in (1, 6)
    ]
    for image in images[1:]:
        assert psnr(images[0], image) > 45


@pytest.mark.parametrize("matrix", [11, 12, 14, 15, 16, 17])
def test_a_matrix_that_is_not_known_is_told_once(frame_of, caplog, matrix):
    plain, declared = (frame_of("yuv420p", full_range=False) for _ in range(2))
    declared.colorspace = matrix
    converter: Any = FrameConverter(name="a.mkv")
    with caplog.at_level(logging.WARNING, "gulpio2"):
        first = converter.convert(declared)
        converter.convert(plain)
        converter.convert(declared)
    (told,) = caplog.messages
    assert "'a.mkv' declares colours" in told
    assert f"matrix coefficients {matrix}, " in told
    wanted = convert(plain)
    for one, other in zip(
        (first.y, first.u, first.v), (wanted.y, wanted.u, wanted.v), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("matrix", [*range(18)])
@pytest.mark.parametrize(
    ("packed", "apart"),
    [
        ("nv12", "yuv420p"),
        ("yuyv422", "yuv422p"),
        ("yuv420p10be", "yuv420p10le"),
        ("p010le", "yuv420p10le"),
    ],
)
def test_a_frame_that_is_taken_apart_has_any_matrix(frame_of, packed, apart, matrix):
    planes = frame_of(apart, full_range=False)
    frame = planes.reformat(format=packed)
    frame.colorspace = planes.colorspace = matrix
    stored, wanted = convert(frame), convert(planes)
    for plane in ("y", "u", "v"):
        assert np.array_equal(getattr(stored, plane), getattr(wanted, plane))


@pytest.mark.parametrize("matrix", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
def test_nothing_is_told_of_a_matrix_that_is_known_or_not_said(
    frame_of, caplog, matrix
):
    for name in ("yuv420p", "gray", "rgb24"):
        frame = frame_of(name)
        frame.colorspace = matrix
        with caplog.at_level(logging.WARNING, "gulpio2"):
            convert(frame)
    assert not caplog.messages


def test_an_unknown_chroma_grid_is_named():
    class Format:
        name = "yuv3x3"
        is_rgb = has_palette = False
        components = [av.VideoFormat("yuv420p", 16, 16).components[0]] * 3

        def chroma_width(self, luma):
            return luma // 3

        chroma_height = chroma_width

    from gulpio2.media.planes import layout_of

    with pytest.raises(ValueError, match="'yuv3x3'"):
        layout_of(Format())
