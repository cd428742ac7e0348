"""Whatever is an image becomes RGB or grey bytes, or is refused with a reason."""

from __future__ import annotations

import subprocess

import cv2
import numpy as np
import pytest
import simplejpeg
from PIL import Image

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.codecs.pixels import (
    cmyk_to_rgb,
    resample_plane,
    to_eight_bits,
    to_storable,
)
from gulpio2.errors import AdapterContractError
from gulpio2.media.colour import to_rgb
from gulpio2.types import YuvFrame

RGB = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
GREY = RGB[..., 0].copy()


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        pytest.param(RGB, RGB, id="rgb"),
        pytest.param(GREY, GREY, id="grey"),
        pytest.param(GREY[..., None], GREY, id="one channel"),
        pytest.param(np.dstack([RGB, GREY]), RGB, id="rgba"),
        pytest.param(RGB[::-1, ::2], RGB[::-1, ::2], id="flipped"),
        pytest.param(RGB[..., ::-1], RGB[..., ::-1], id="bgr"),
        pytest.param(RGB.transpose(1, 0, 2), RGB.transpose(1, 0, 2), id="transposed"),
        pytest.param(RGB[1:4, 2:5], RGB[1:4, 2:5], id="cropped"),
        pytest.param(GREY > 99, (GREY > 99).astype(np.uint8), id="bool"),
        pytest.param(np.asfortranarray(GREY), GREY, id="fortran"),
        pytest.param(memoryview(GREY.data), GREY, id="buffer"),
    ],
)
def test_arrays_become_rgb_or_grey(frame, expected):
    stored = to_storable(frame)
    assert np.array_equal(stored, expected)
    assert stored.dtype == np.uint8
    assert stored.flags.c_contiguous


def test_an_array_that_is_ready_is_not_copied():
    assert to_storable(RGB) is RGB


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        pytest.param(RGB / 255, r"\(6, 8, 3\) and type float64", id="float"),
        pytest.param(RGB.astype(np.float32), "type float32", id="float32"),
        pytest.param(RGB.astype(np.int64), "type int64", id="int64"),
        pytest.param(RGB.astype(np.uint16), "type uint16", id="uint16"),
        pytest.param([[1, 2], [3, 4]], "type int64", id="list"),
        pytest.param(RGB[..., :2], r"\(6, 8, 2\) is no image", id="two channels"),
        pytest.param(RGB[None], r"\(1, 6, 8, 3\) is no image", id="batch"),
        pytest.param(GREY[0], r"\(8,\) is no image", id="row"),
        pytest.param(RGB[:0], "no pixels", id="no rows"),
        pytest.param(GREY[:, :0], "no pixels", id="no columns"),
        pytest.param("text", "a str is no frame", id="text"),
        pytest.param(None, "a NoneType is no frame", id="none"),
    ],
)
def test_what_is_no_image_is_refused_with_shape_and_type(frame, message):
    with pytest.raises(AdapterContractError, match=message):
        to_storable(frame)
    with pytest.raises(ValueError, match=message):
        to_storable(frame)


def pil(mode):
    image = Image.fromarray(RGB)
    if mode in ("PA", "La"):
        return image.convert({"PA": "P", "La": "LA"}[mode]).convert(mode)
    if mode == "RGBa":
        return image.convert("RGBA").convert(mode)
    return image.convert(mode)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "RGBX", "RGBa"])
def test_pil_colours_are_kept(mode):
    assert np.array_equal(to_storable(pil(mode)), RGB)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV"])
def test_pil_images_of_other_colour_spaces_become_rgb(mode):
    stored = to_storable(pil(mode))
    assert stored.shape == RGB.shape
    assert np.abs(stored.astype(int) - RGB).mean() < 4


def test_a_palette_becomes_its_colours():
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    for mode in ("P", "PA"):
        stored = to_storable(image.convert(mode))
        assert stored.tolist() == [[[255, 0, 0], [0, 0, 255]]]


def test_transparency_is_dropped_and_never_blended():
    rgba = np.dstack([RGB, np.zeros_like(GREY)])
    assert np.array_equal(to_storable(Image.fromarray(rgba)), RGB)
    grey = Image.merge("LA", [Image.fromarray(GREY), Image.new("L", (8, 6), 0)])
    assert np.array_equal(to_storable(grey), GREY)


@pytest.mark.parametrize("mode", ["L", "LA", "La"])
def test_pil_greys_stay_grey(mode):
    stored = to_storable(pil(mode))
    assert np.array_equal(stored, np.asarray(pil("L")))


def test_one_bit_becomes_black_and_white():
    image = Image.new("1", (3, 1))
    image.putpixel((1, 0), 1)
    assert to_storable(image).tolist() == [[0, 255, 0]]


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I;16L", "I"])
def test_sixteen_bits_are_scaled(mode):
    image = Image.new(mode, (2, 1), 0)
    image.putpixel((1, 0), 65535)
    assert to_storable(image).tolist() == [[0, 255]]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        pytest.param(Image.new("F", (2, 2)), "mode 'F'", id="float"),
        pytest.param(Image.new("I", (2, 2), 70000), "65535", id="too large"),
        pytest.param(Image.new("I", (2, 2), -1), "from -1", id="negative"),
    ],
)
def test_pil_images_without_a_scale_are_refused(image, message):
    with pytest.raises(AdapterContractError, match=message):
        to_storable(image)


def test_sixteen_bits_are_rounded_to_eight():
    values = np.arange(65536, dtype=np.uint16)
    exact = values * (255 / 65535)
    assert np.abs(to_eight_bits(values, 0xFFFF) - exact).max() <= 0.5


def test_inverted_cmyk_is_ink_times_black():
    cmyk = np.array([[[255, 255, 255, 255], [0, 255, 255, 255], [255, 128, 0, 128]]])
    expected = [[[255, 255, 255], [0, 255, 255], [128, 64, 0]]]
    assert cmyk_to_rgb(cmyk.astype(np.uint8)).tolist() == expected


def samples(count, luma):
    """Give the values of a slope at chroma samples for so many pixels, or for each."""
    places = np.arange(count) * (1 if count == luma else 2) + (count != luma) * 0.5
    return 20 + 6 * places


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("edge", [30, 31, 1, 2])
@pytest.mark.parametrize("grows", [True, False])
def test_a_chroma_sample_stays_at_its_place_in_another_subsampling(axis, edge, grows):
    half = (edge + 1) // 2
    have, want = (half, edge) if grows else (edge, half)
    line = np.rint(samples(have, edge)).astype(np.uint8)
    plane = np.repeat(line[:, None], 6, 1) if axis == 0 else np.repeat(line[None], 6, 0)
    shape = (want, 6) if axis == 0 else (6, want)
    resampled = resample_plane(plane, shape)
    assert resampled.shape == shape
    assert resampled.dtype == np.uint8
    off = np.abs(resampled.mean(1 - axis) - samples(want, edge))
    # At the ends there is nothing to lie between, or nothing to average with.
    assert off[1:-1].max(initial=0) <= 0.5
    assert off.max() <= 3


def test_chroma_that_is_halved_keeps_its_mean():
    plane = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(np.uint8)
    for shape in ((64, 32), (32, 64)):
        assert abs(resample_plane(plane, shape).mean() - plane.mean()) < 0.05


@pytest.mark.parametrize("size", [(95, 127), (96, 128), (34, 53)])
@pytest.mark.parametrize(
    ("have", "want"),
    [("420", "444"), ("420", "422"), ("422", "444"), ("422", "420"), ("444", "422"),
     ("444", "420")],
)  # fmt: skip
def test_another_subsampling_is_as_good_as_that_of_the_exact_picture(have, want, size):
    y, x = np.mgrid[: size[0], : size[1]]
    image = np.stack(
        [
            128 + 90 * np.sin(6.3 * x / size[1]),
            128 + 90 * np.cos(6.3 * y / size[0]),
            128 + 90 * np.sin(6.3 * (x / size[1] + y / size[0])),
        ],
        -1,
    )
    exactly = {"fastdct": False, "fastupsample": False}
    settings = {"quality": 90, "colorsubsampling": want}
    frame = planes_of(image, have)
    exact = to_rgb(frame).astype(float)
    best = simplejpeg.decode_jpeg(
        simplejpeg.encode_jpeg(exact.astype(np.uint8), **settings), **exactly
    )
    stored = simplejpeg.decode_jpeg(
        encode_frame(frame, EncoderSettings(quality=90, subsampling=want)), **exactly
    )
    noise, least = (np.mean((one - exact) ** 2) for one in (stored, best))
    assert 10 * np.log10(noise / least) < 1
    assert np.abs((stored - exact).mean((0, 1))).max() < 1


def planes_of(rgb, subsampling):
    """Convert RGB to planes; chroma is the mean of the pixels that it stands for."""
    ycc = cv2.cvtColor(np.rint(rgb).astype(np.uint8), cv2.COLOR_RGB2YCrCb)
    y, v, u = (np.ascontiguousarray(ycc[..., i]) for i in range(3))
    down = 2 if subsampling == "420" else 1
    across = 1 if subsampling == "444" else 2
    height, width = y.shape
    u, v = (
        np.rint(
            np.pad(c, ((0, height % down), (0, width % across)), "edge")
            .reshape(-(-height // down), down, -(-width // across), across)
            .mean((1, 3))
        ).astype(np.uint8)
        for c in (u, v)
    )
    return YuvFrame(y, u, v)


def test_pillow_and_opencv_are_not_imported(python):
    code = (
        "import sys, numpy, gulpio2.codecs.pixels as p, gulpio2.media.resize; "
        "p.to_storable(numpy.zeros((2, 2), numpy.uint8)); "
        "print([m for m in ('PIL', 'cv2', 'av') if m in sys.modules])"
    )
    result = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
