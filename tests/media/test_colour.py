"""Colours: from video planes to JPEG planes, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.media.colour import PlaneColour, PlaneConversion, matrix_of, to_rgb
from gulpio2.types import YuvFrame

# Name, FFmpeg's number, and R, G, B out of Y, Cb, Cr as ITU-T H.273 (8.3) has them.
MATRICES = [
    ("bt601", 6, 0.299, 0.114),
    ("bt709", 1, 0.2126, 0.0722),
    ("fcc", 4, 0.30, 0.11),
    ("smpte240m", 7, 0.212, 0.087),
    ("bt2020nc", 9, 0.2627, 0.0593),
]
NUMBERS = [pytest.param(*row[1:], id=row[0]) for row in MATRICES]


def rgb_from(y, cb, cr, red, blue):
    """Decode in floating point; luma in [0, 1], chroma in [-0.5, 0.5]."""
    r, b = y + 2 * (1 - red) * cr, y + 2 * (1 - blue) * cb
    return np.stack([r, (y - red * r - blue * b) / (1 - red - blue), b], -1)


def ycc_from(rgb, red, blue):
    r, g, b = np.moveaxis(np.asarray(rgb, float), -1, 0)
    y = red * r + (1 - red - blue) * g + blue * b
    return y, (b - y) / (2 * (1 - blue)), (r - y) / (2 * (1 - red))


def quantised(ycc, *, full_range, depth):
    """Store Y, Cb, Cr as numbers, by H.273, 8.3, equations 23 to 33."""
    unit, top = 2 ** (depth - 8), 2**depth - 1
    y, cb, cr = ycc
    if full_range:
        stored = [y * top, cb * top + 128 * unit, cr * top + 128 * unit]
    else:
        stored = [(219 * y + 16) * unit, (224 * cb + 128) * unit]
        stored.append((224 * cr + 128) * unit)
    dtype = np.uint8 if depth == 8 else np.uint16
    return [np.clip(np.rint(plane), 0, top).astype(dtype) for plane in stored]


def values(planes, *, full_range, depth):
    """Undo `quantised`, without the rounding."""
    unit, top = 2 ** (depth - 8), 2**depth - 1
    y, cb, cr = (plane.astype(float) for plane in planes)
    if full_range:
        return y / top, (cb - 128 * unit) / top, (cr - 128 * unit) / top
    return (
        (y / unit - 16) / 219,
        (cb / unit - 128) / 224,
        (cr / unit - 128) / 224,
    )


def random_planes(red, blue, *, full_range, depth, shape=(64, 64), seed=0):
    rgb = np.random.default_rng(seed).random((*shape, 3))
    return quantised(ycc_from(rgb, red, blue), full_range=full_range, depth=depth)


@pytest.mark.parametrize("depth", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("full_range", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize(("number", "red", "blue"), NUMBERS)
def test_planes_are_those_of_the_exact_conversion(number, red, blue, full_range, depth):
    planes = random_planes(red, blue, full_range=full_range, depth=depth)
    colour = PlaneColour(matrix_of(number), full_range, depth)
    frame = PlaneConversion(colour)(*planes)

    y, cb, cr = values(planes, full_range=full_range, depth=depth)
    y, cb, cr = ycc_from(rgb_from(y, cb, cr, red, blue), 0.299, 0.114)
    exact = [255 * y, 255 * cb + 128, 255 * cr + 128]
    same = number == 6
    # Half a level is rounding; luma of another matrix is rounded up to three times.
    allowed = [0.51 if same else 0.7 if depth == 8 else 1.25, 0.51, 0.51]
    stored = (frame.y, frame.u, frame.v)
    for plane, wanted, limit in zip(stored, exact, allowed, strict=True):
        error = plane - np.clip(wanted, 0, 255)
        assert np.abs(error).max() <= limit
        assert abs(error.mean()) < 0.03


def test_limited_range_is_converted_as_a_table_of_256_rounded_values_would():
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    grey = np.full_like(values, 128)  # luma outside of the range has no colour to keep
    convert = PlaneConversion(PlaneColour(full_range=False))
    frame, coloured = convert(values, grey, grey), convert(grey, values, values)
    every = np.arange(256.0).reshape(16, 16)
    luma = np.clip(np.rint((every - 16) * 255 / 219), 0, 255)
    chroma = np.clip(np.rint((every - 128) * 255 / 224 + 128), 0, 255)
    assert np.array_equal(frame.y, luma)
    assert np.array_equal(coloured.u, chroma)
    assert np.array_equal(coloured.v, chroma)


@pytest.mark.parametrize("depth", [10, 12, 16])
@pytest.mark.parametrize("full_range", [False, True], ids=["limited", "full"])
def test_every_value_of_a_deeper_plane_is_rounded_and_cut(full_range, depth):
    size = 2 ** (depth // 2)
    values = np.arange(2**depth, dtype=np.uint16).reshape(size, size)
    grey = np.full_like(values, 128 << (depth - 8))
    convert = PlaneConversion(PlaneColour(full_range=full_range, depth=depth))
    frame, coloured = convert(values, grey, grey), convert(grey, values, values)
    unit, top = 2 ** (depth - 8), 2**depth - 1
    black, luma, reach = (0, top, top) if full_range else (16, 219, 224)
    scale = 1 if full_range else unit
    exact_y = (values - float(black * scale)) * 255 / (luma * scale)
    exact_c = (values - 128.0 * unit) * 255 / (reach * scale) + 128
    assert np.abs(frame.y - np.clip(exact_y, 0, 255)).max() <= 0.51
    assert np.abs(coloured.u - np.clip(exact_c, 0, 255)).max() <= 0.51


@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
@pytest.mark.parametrize("shape", [(4, 1), (7, 1), (8, 1), (1, 4), (3, 1), (1, 1)])
def test_deeper_planes_of_one_column_are_converted(shape, subsampling):
    height, width = shape
    rows = -(-height // 2) if subsampling == "420" else height
    columns = width if subsampling == "444" else -(-width // 2)
    luma = np.linspace(64, 940, height * width).astype(np.uint16).reshape(shape)
    chroma = np.linspace(300, 600, rows * columns).astype(np.uint16)
    chroma = chroma.reshape(rows, columns)
    frame = PlaneConversion(PlaneColour(depth=10))(luma, chroma, chroma)
    assert np.abs(frame.y - (luma / 4 - 16) * 255 / 219).max() <= 0.51
    assert np.abs(frame.u - ((chroma / 4 - 128) * 255 / 224 + 128)).max() <= 0.51


def test_planes_of_a_jpeg_are_taken_as_they_are():
    planes = random_planes(0.299, 0.114, full_range=True, depth=8)
    frame = PlaneConversion(PlaneColour(full_range=True))(*planes)
    assert all(
        np.shares_memory(a, b)
        for a, b in zip((frame.y, frame.u, frame.v), planes, strict=True)
    )


@pytest.mark.parametrize("shape", [(48, 64), (47, 63), (1, 1), (2, 1), (1, 5)])
@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
@pytest.mark.parametrize("number", [1, 6])
def test_any_size_and_subsampling_is_kept(shape, subsampling, number):
    height, width = shape
    chroma = (
        (height + 1) // 2 if subsampling == "420" else height,
        width if subsampling == "444" else (width + 1) // 2,
    )
    rng = np.random.default_rng(0)
    # Rows are padded, as in a decoder's frame.
    y, u, v = (
        rng.integers(16, 236, (h, w + 11)).astype(np.uint8)[:, :w]
        for h, w in (shape, chroma, chroma)
    )
    frame = PlaneConversion(PlaneColour(matrix_of(number)))(y, u, v)
    assert frame.y.shape == shape
    assert frame.u.shape == frame.v.shape == chroma


def test_chroma_of_another_matrix_lights_the_pixels_that_it_belongs_to():
    y = np.full((5, 5), 128, np.uint8)
    u, v = (np.full((3, 3), 128, np.uint8) for _ in range(2))
    v[1, 2] = 250  # the pixels of rows 2 and 3, column 4
    frame = PlaneConversion(PlaneColour(matrix_of(1), full_range=True))(y, u, v)
    lit = np.argwhere(frame.y != 128).tolist()
    assert lit == [[2, 4], [3, 4]]


@pytest.mark.parametrize(
    ("number", "primaries", "name"),
    [
        *((number, 2, name) for name, number, _, _ in MATRICES),
        (2, 2, "bt601"),
        (2, 1, "bt601"),
        (5, 2, "bt601"),
        (8, 2, "ycgco"),
        (10, 9, "bt2020nc"),
        (12, 1, "bt709"),
        (12, 9, "bt2020nc"),
        (13, 6, "bt601"),
        (99, 2, "bt601"),
    ],
)
def test_the_matrix_is_the_declared_one_and_else_bt601(number, primaries, name):
    assert matrix_of(number, primaries).name == name


@given(seed=st.integers(0, 2**32 - 1), full_range=st.booleans())
def test_ycgco_gives_the_colours_that_were_put_in(seed, full_range):
    rgb = np.random.default_rng(seed).random((8, 8, 3))
    r, g, b = np.moveaxis(rgb, -1, 0)
    ycc = ((r + 2 * g + b) / 4, (2 * g - r - b) / 4, (r - b) / 2)
    planes = quantised(ycc, full_range=full_range, depth=8)
    frame = PlaneConversion(PlaneColour(matrix_of(8), full_range))(*planes)
    assert np.abs(to_rgb(frame) - 255 * rgb).max() < 4


@pytest.mark.parametrize("full_range", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize(("number", "red", "blue"), NUMBERS)
def test_a_grey_stays_grey(number, red, blue, full_range):
    grey = np.repeat(np.linspace(0, 1, 64)[:, None, None], 3, axis=2)
    planes = quantised(ycc_from(grey, red, blue), full_range=full_range, depth=8)
    frame = PlaneConversion(PlaneColour(matrix_of(number), full_range))(*planes)
    assert np.unique(frame.u).tolist() == np.unique(frame.v).tolist() == [128]
    # Half a step of the source, which may be 255/219 levels, and half a level.
    assert np.abs(frame.y - 255 * grey[..., 0]).max() <= 1.1


def test_rgb_is_what_an_exact_decoder_gives():
    rng = np.random.default_rng(0)
    y, u, v = rng.integers(0, 256, (3, 64, 64)).astype(np.uint8)
    exact = rgb_from(y / 255, (u - 128.0) / 255, (v - 128.0) / 255, 0.299, 0.114)
    error = to_rgb(YuvFrame(y, u, v)) - np.clip(255 * exact, 0, 255)
    assert np.abs(error).max() <= 0.6


@pytest.mark.parametrize("subsampling", ["422", "420"])
def test_rgb_has_chroma_linear_between_its_samples(subsampling):
    y = np.full((5, 7), 100, np.uint8)
    rows = 3 if subsampling == "420" else 5
    u = np.full((rows, 4), 128, np.uint8)
    v = np.tile(np.array([128, 148, 168, 188], np.uint8), (rows, 1))
    red = to_rgb(YuvFrame(y, u, v))[0, :, 0]
    steps = np.array([0, 5, 15, 25, 35, 45, 55]) * 1.402
    assert np.abs(red - (100 + steps)).max() <= 1
