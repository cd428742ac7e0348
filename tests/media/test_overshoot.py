"""Luma above white and below black: colours are those of the exact conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.media.colour import Matrix, PlaneColour, PlaneConversion, to_rgb
from gulpio2.media.overshoot import _Range
from gulpio2.media.video import VideoFrames
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    from pathlib import Path

av = pytest.importorskip("av")

MATRICES = [
    Matrix("bt601", 0.299, 0.114),
    Matrix("bt709", 0.2126, 0.0722),
    Matrix("bt2020nc", 0.2627, 0.0593),
]
# Of luma and chroma: how many rows and columns one sample of chroma has.
SUBSAMPLINGS = {"420": (2, 2), "422": (1, 2), "444": (1, 1)}


def scene(low, high, shape=(96, 128), seed=0):
    """Make RGB that goes from `low` to `high`, of warm and of cold colours."""
    rng = np.random.default_rng(seed)
    coarse = rng.random((6, 8, 3)).astype(np.float32)
    smooth = cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC)
    ramp = np.linspace(low, high, shape[1], dtype=np.float32)[None, :, None]
    return ramp * (0.75 + 0.4 * smooth)


def planes_of(rgb, matrix, subsampling="420", depth=8):
    """Store RGB, which may be above 1 and below 0, as limited-range planes."""
    ycc = rgb.astype(float) @ np.linalg.inv(matrix.to_rgb()).T
    unit = 2 ** (depth - 8)
    down, right = SUBSAMPLINGS[subsampling]
    rows, columns = rgb.shape[0] // down, rgb.shape[1] // right
    small = ycc[..., 1:].reshape(rows, down, columns, right, 2).mean((1, 3))
    stored = (
        219 * ycc[..., 0] + 16,
        224 * small[..., 0] + 128,
        224 * small[..., 1] + 128,
    )
    dtype = np.uint8 if depth == 8 else np.uint16
    top = 2**depth - 1
    return [np.clip(np.rint(unit * each), 0, top).astype(dtype) for each in stored]


def exact(planes, matrix, depth=8):
    """Convert planes into RGB of 0 to 255, each pixel cut there at last."""
    y, u, v = (plane.astype(float) / 2 ** (depth - 8) for plane in planes)
    down, right = y.shape[0] // u.shape[0], y.shape[1] // u.shape[1]
    u, v = (plane.repeat(down, 0).repeat(right, 1) for plane in (u, v))
    ycc = np.stack([(y - 16) / 219, (u - 128) / 224, (v - 128) / 224], -1)
    return np.clip(255 * ycc @ matrix.to_rgb().T, 0, 255)


def decoded(jpeg):
    """Decode with smooth chroma, as exactly as OpenCV does."""
    bgr = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    return np.asarray(bgr)[..., ::-1].astype(float)


def psnr(one, other):
    return 10 * np.log10(255**2 / np.mean((one - other) ** 2))


SCENES = {"bright": (0.5, 1.5), "dark": (-0.2, 0.4), "all": (-0.1, 1.3)}


@pytest.mark.parametrize("levels", SCENES.values(), ids=SCENES)
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: matrix.name)
def test_stored_frames_are_within_a_decibel_of_the_exact_conversion(
    matrix, depth, subsampling, levels
):
    planes = planes_of(scene(*levels), matrix, subsampling, depth)
    wanted = exact(planes, matrix, depth)
    convert = PlaneConversion(PlaneColour(matrix, depth=depth))
    stored = decoded(encode_frame(convert(*planes), EncoderSettings(90)))
    settings = EncoderSettings(90, subsampling)
    best = decoded(encode_frame(np.rint(wanted).astype(np.uint8), settings))
    assert psnr(stored, wanted) > psnr(best, wanted) - 1
    assert np.abs((stored - wanted).mean((0, 1))).max() < 1


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize("height", [48, 96, 128, 144, 160])
def test_highlights_of_a_part_of_a_small_frame_are_noticed(height, depth, subsampling):
    # Rows that are 16 apart miss its last ones.
    first = height - height // 8 + 2
    levels = np.full((height, 128), 0.5, np.float32)
    levels[first:] = 1.4
    rgb = levels[..., None] * np.array([1, 0.75, 0.5], np.float32)
    planes = planes_of(rgb, MATRICES[0], subsampling, depth)
    wanted = exact(planes, MATRICES[0], depth)[first:]
    convert = PlaneConversion(PlaneColour(MATRICES[0], depth=depth))
    stored = to_rgb(convert(*planes))[first:]
    assert np.abs((stored - wanted).mean((0, 1))).max() < 2


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: matrix.name)
def test_chroma_that_is_too_strong_is_cut_where_players_cut_it(
    matrix, depth, subsampling
):
    down, right = SUBSAMPLINGS[subsampling]
    small = np.linspace(0, 1, 96 // down)[:, None] + np.zeros(128 // right)
    luma = 120 + 60 * np.linspace(0, 1, 128) + np.zeros((96, 1))
    unit, dtype = 2 ** (depth - 8), np.uint8 if depth == 8 else np.uint16
    planes = [
        np.rint(unit * plane).astype(dtype)
        for plane in (luma, 110 + 30 * small, 242 + 13 * small)
    ]
    wanted = exact(planes, matrix, depth)
    convert = PlaneConversion(PlaneColour(matrix, depth=depth))
    stored = decoded(encode_frame(convert(*planes), EncoderSettings(90)))
    settings = EncoderSettings(90, subsampling)
    best = decoded(encode_frame(np.rint(wanted).astype(np.uint8), settings))
    assert psnr(stored, wanted) > psnr(best, wanted) - 1


def test_it_matters_where_luma_alone_would_be_cut():
    planes = planes_of(scene(0.5, 1.5), MATRICES[0])
    convert = PlaneConversion(PlaneColour(MATRICES[0]))
    wanted = exact(planes, MATRICES[0])
    convert._overshoot = None
    without = to_rgb(convert(*planes)).astype(float)
    assert np.abs((without - wanted).mean((0, 1))).max() > 3


@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize(
    ("levels", "matters"),
    [
        *(((13, 200, 200), True), ((14, 200, 200), False)),
        *(((237, 200, 200), False), ((238, 200, 200), True)),
        *(((120, 13, 128), True), ((120, 14, 128), False)),
        *(((120, 242, 128), False), ((120, 243, 128), True)),
        *(((120, 128, 13), True), ((120, 128, 14), False)),
        *(((120, 128, 242), False), ((120, 128, 243), True)),
    ],
)
def test_two_levels_outside_of_the_range_are_passed_over(depth, levels, matters):
    shift = depth - 8
    dtype = np.uint16 if shift else np.uint8
    # Rows are padded, as a decoder's are.
    y, u, v = (
        np.full((rows, 128), level << shift, dtype)[:, :columns]
        for level, rows, columns in zip(levels, (64, 32, 32), (96, 48, 48), strict=True)
    )
    overshoot = PlaneConversion(PlaneColour(depth=depth))._overshoot
    assert overshoot is not None
    assert overshoot.matters(y, u, v) is matters


@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize("num_outside", [0, 1, 10, 11])
@pytest.mark.parametrize("level", [13, 14, 237, 238])
def test_values_are_counted_that_are_more_than_two_levels_outside(
    depth, num_outside, level
):
    unit = 1 << (depth - 8)
    dtype = np.uint8 if depth == 8 else np.uint16
    counted = _Range(16 * unit, 219 * unit, depth=depth)
    # Rows of a larger plane, as `Overshoot` gives them: 10 of 10,000 may be outside.
    values = np.full((1600, 100), 100 * unit, dtype)[::16]
    values[3, :num_outside] = level * unit
    is_outside = level in (13, 238)
    assert counted.is_left(values) == (is_outside and num_outside > 10)


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: matrix.name)
@pytest.mark.parametrize("depth", [8, 10])
def test_frames_inside_of_the_range_and_grey_ones_are_converted_plane_by_plane(
    matrix, depth
):
    convert = PlaneConversion(PlaneColour(matrix, depth=depth))
    overshoot = convert._overshoot
    assert overshoot is not None
    y, u, v = planes_of(scene(0.1, 0.85), matrix, depth=depth)
    assert not overshoot.matters(y, u, v)
    rims = y.copy()  # as sharpening leaves some
    rims[3, :4], rims[16, 16:20] = np.iinfo(y.dtype).max, 0
    assert not overshoot.matters(rims, u, v)
    grey = np.full_like(u, 128 << (depth - 8))
    white = np.full_like(y, np.iinfo(y.dtype).max)
    assert not overshoot.matters(white, grey, grey)
    assert overshoot.matters(white, u, v)


@pytest.mark.parametrize("shape", [(95, 127), (1, 1), (1, 2), (3, 5)])
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_odd_sizes_keep_their_shapes(shape, subsampling):
    down, right = SUBSAMPLINGS[subsampling]
    small = (-(-shape[0] // down), -(-shape[1] // right))
    luma, warm = np.full(shape, 250, np.uint8), np.full(small, 90, np.uint8)
    frame = PlaneConversion(PlaneColour(MATRICES[1]))(luma, warm, warm)
    assert (frame.y.shape, frame.u.shape, frame.v.shape) == (shape, small, small)
    assert isinstance(frame, YuvFrame)
    assert np.ptp(frame.y) == np.ptp(frame.u) == np.ptp(frame.v) == 0


@pytest.mark.parametrize("size", [-1, 64])
def test_a_video_with_highlights_has_its_colours(tmp_path, size):
    path, matrix = tmp_path / "bright.mkv", MATRICES[1]
    planes = planes_of(scene(0.5, 1.5), matrix)
    _write(path, planes)
    (frame,) = VideoFrames(path, frame_size=size).stored()
    wanted = exact(planes, matrix)
    if size > 0:
        shape = frame.image.y.shape[::-1]
        wanted = cv2.resize(wanted, shape, interpolation=cv2.INTER_AREA)
    got = decoded(encode_frame(frame.image, EncoderSettings(90)))
    assert np.abs((got - wanted).mean((0, 1))).max() < 1


def _write(path: Path, planes: list[np.ndarray]) -> None:
    """Write a video of one frame without loss, BT.709 in limited range."""
    height, width = planes[0].shape
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        flat = np.concatenate([plane.ravel() for plane in planes])
        frame = av.VideoFrame.from_ndarray(flat.reshape(-1, width), "yuv420p")
        frame.color_range, frame.colorspace = 1, 1
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
