"""Frames decoded smaller, in part, or grey: what they are, and how far off."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.codecs import first_frame
from gulpio2.codecs.decode import FrameDecoder
from gulpio2.codecs.jpeg import decode_frame
from gulpio2.codecs.options import DecodeOptions, decode_options
from gulpio2.codecs.recent import decoder_for
from gulpio2.errors import CorruptFrameError
from gulpio2.testing import make_frames

HEIGHT, WIDTH = 121, 163  # odd, so that every rounding shows


def encode(frame: Any, subsampling: str = "420", quality: int = 90) -> bytes:
    """Encode a colour frame, or a grey one."""
    if frame.ndim == 2:
        frame = frame[..., None]
        return bytes(simplejpeg.encode_jpeg(frame, quality, "GRAY"))
    return bytes(
        simplejpeg.encode_jpeg(frame, quality=quality, colorsubsampling=subsampling)
    )


def textured(seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> Any:
    """Draw a frame with edges and some noise."""
    (frame,) = make_frames(1, height, width, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        y, x = rng.integers(0, height - 20), rng.integers(0, width - 20)
        frame[y : y + 20, x : x + 20] = rng.integers(0, 256, 3)
    noisy = frame.astype(int) + rng.integers(-4, 5, frame.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def decode(data: bytes, **options: Any) -> Any:
    """Decode one frame by a decoder made of itself."""
    decoder = FrameDecoder(data, DecodeOptions(**options))
    out = np.full(decoder.shape, 77, np.uint8)
    decoder.decode(data, 0, len(data), out)
    memory = np.full(decoder.shape, 78, np.uint8)
    here = decoder.decode_here(b"##" + data, 2, 2 + len(data), memory)
    np.testing.assert_array_equal(here, out)
    return out


def progressive(frame: Any) -> bytes:
    """Encode with several scans."""
    flags = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 90]
    return cv2.imencode(".jpg", frame[..., ::-1], flags)[1].tobytes()


# ------------------------------------------------------------------ scale
# Mean difference in levels, and that which 99 of 100 values keep, of a frame decoded
# smaller from the full frame with its blocks averaged. The codec averages the chroma of
# 4:2:0 and 4:4:4, and luma, when it decodes smaller; other chroma it does not.
# docs/performance.md states these bounds.
BOUNDS = {"444": (1.5, 5), "420": (1.5, 5), "422": (4, 24), "luma": (1.0, 4)}
# Of the hard edges of `textured`; of photographs less, of others more.
BOUNDS_OF_EDGES = {"422": (8, 75), "440": (8, 75), "411": (15, 95)}


def assert_close(
    small: Any, full: Any, scale: int, bounds: tuple[float, float]
) -> None:
    """Compare with the blocks' means, an incomplete last row and column left out."""
    height, width = full.shape[0] // scale, full.shape[1] // scale
    blocks = full[: height * scale, : width * scale].astype(float)
    mean = blocks.reshape(height, scale, width, scale, -1).mean((1, 3))
    difference = np.abs(small[:height, :width] - mean)
    assert difference.mean() <= bounds[0]
    assert np.quantile(difference, 0.99) <= bounds[1]


@pytest.mark.parametrize("subsampling", ["444", "420"])
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_a_scaled_frame_is_close_to_the_full_one_averaged(scale, subsampling):
    data = encode(textured(), subsampling)
    small = decode(data, scale=scale)
    assert small.shape == (-(-HEIGHT // scale), -(-WIDTH // scale), 3)
    assert_close(small, decode(data), scale, BOUNDS[subsampling])


@pytest.mark.parametrize("subsampling", ["444", "420"])
@pytest.mark.parametrize("cell", [8, 13, 40])
@pytest.mark.parametrize(("height", "width"), [(256, 340), (128, 171), (60, 80)])
def test_hard_edges_are_within_the_bounds_wherever_they_are(
    height, width, cell, subsampling
):
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 256, (height // cell + 1, width // cell + 1, 3))
    frame = cells.astype(np.uint8).repeat(cell, 0).repeat(cell, 1)[:height, :width]
    data = encode(np.ascontiguousarray(frame), subsampling)
    for scale in (2, 4, 8):
        assert_close(decode(data, scale=scale), decode(data), scale, BOUNDS["420"])
        grey = decode(data, scale=scale, colorspace="gray")
        assert_close(grey, decode(data, colorspace="gray"), scale, BOUNDS["luma"])


@pytest.mark.parametrize("subsampling", BOUNDS_OF_EDGES)
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_other_chroma_is_within_its_own_bounds_at_hard_edges(scale, subsampling):
    for seed in range(4):
        data = encode(textured(seed), subsampling)
        small, full = decode(data, scale=scale), decode(data)
        assert_close(small, full, scale, BOUNDS_OF_EDGES[subsampling])
        grey = decode(data, scale=scale, colorspace="gray")
        assert_close(grey, decode(data, colorspace="gray"), scale, BOUNDS["luma"])


@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_luma_scaled_is_close_to_the_full_one_averaged(scale, subsampling):
    data = encode(textured(), subsampling)
    small = decode(data, scale=scale, colorspace="gray")
    assert_close(small, decode(data, colorspace="gray"), scale, BOUNDS["luma"])


@pytest.mark.parametrize("scale", [2, 4, 8])
def test_a_smooth_frame_is_scaled_within_three_levels(scale):
    (frame,) = make_frames(1, 128, 160)
    data = encode(frame)
    small = decode(data, scale=scale)
    mean = cv2.resize(
        decode(data), small.shape[1::-1], interpolation=cv2.INTER_AREA
    ).astype(int)
    assert np.abs(small - mean).max() <= 3


@pytest.mark.parametrize("scale", [2, 4, 8])
@pytest.mark.parametrize(
    ("name", "subsampling"), [("cat", "420"), ("zelda", "420"), ("monarch", "422")]
)
def test_real_frames_are_scaled_within_the_stated_bounds(
    shared_images, name, subsampling, scale
):
    data = (shared_images / f"{name}.jpg").read_bytes()
    assert simplejpeg.decode_jpeg_header(data)[3] == subsampling
    small, full = decode(data, scale=scale), decode(data)
    assert_close(small, full, scale, BOUNDS[subsampling])


@pytest.mark.parametrize(
    ("min_size", "scale"),
    [(1, 8), (16, 8), (17, 4), (31, 4), (32, 2), (61, 2), (62, 1), (121, 1), (999, 1)],
)
def test_min_size_takes_the_smallest_that_is_large_enough(min_size, scale):
    data = encode(textured())
    np.testing.assert_array_equal(
        decode(data, min_size=min_size), decode(data, scale=scale)
    )


# ------------------------------------------------------------------ crop
@given(
    st.integers(0, HEIGHT - 1).flatmap(
        lambda top: st.tuples(st.just(top), st.integers(1, HEIGHT - top))
    ),
    st.integers(0, WIDTH - 1).flatmap(
        lambda left: st.tuples(st.just(left), st.integers(1, WIDTH - left))
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["420", "444", "grey", "progressive"]),
)
def test_a_crop_is_that_part_of_the_whole(rows, columns, scale, kind):
    frame = textured()
    if kind == "grey":
        data = encode(np.ascontiguousarray(frame[..., 0]))
    else:
        data = progressive(frame) if kind == "progressive" else encode(frame, kind)
    (top, height), (left, width) = rows, columns
    part = decode(data, crop=(top, left, height, width), scale=scale)
    whole = decode(data, scale=scale)
    bottom, right = -(-(top + height) // scale), -(-(left + width) // scale)
    np.testing.assert_array_equal(
        part, whole[top // scale : bottom, left // scale : right]
    )


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("scale", [1, 2, 4, 8])
def test_a_crop_is_that_part_of_the_whole_also_of_a_tiny_frame(width, scale):
    rng = np.random.default_rng(width)
    for height in range(1, 10):
        data = encode(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        whole = decode(data, scale=scale)
        for top in range(height):
            crop = (top, 0, 1, width)
            part = decode(data, scale=scale, crop=crop)
            rows = slice(top // scale, -(-(top + 1) // scale))
            np.testing.assert_array_equal(part, whole[rows])


def test_rows_below_a_crop_are_not_decoded():
    data = encode(textured())
    damaged = data[:-600] + b"\0" * 598 + data[-2:]  # the last rows
    with pytest.raises(CorruptFrameError):
        decode(damaged)
    np.testing.assert_array_equal(
        decode(damaged, crop=(0, 0, 32, WIDTH)), decode(data)[:32]
    )


def test_damage_in_the_rows_of_a_crop_is_found():
    data = encode(textured())
    with pytest.raises(CorruptFrameError, match="damaged or cut"):
        decode(data[: len(data) // 2], crop=(0, 0, 112, WIDTH))


def test_parts_of_frames_are_looked_at_where_they_are_decoded():
    first, second = (encode(textured(seed)) for seed in (1, 2))
    other = progressive(textured(3))
    decoder = FrameDecoder(first, DecodeOptions(crop=(10, 20, 30, 40)))
    memory = np.zeros(decoder.shape, np.uint8)
    for jpeg, is_like_the_first in ((first, True), (other, False), (second, True)):
        part = decoder.decode_here(jpeg, 0, len(jpeg), memory)
        whole = decode_frame(jpeg)
        np.testing.assert_array_equal(part, whole[10:40, 20:60])
        assert (part is memory) is not is_like_the_first
    cut = first[: len(first) // 4]
    with pytest.raises(CorruptFrameError, match="damaged or cut"):
        decoder.decode_here(cut, 0, len(cut), memory)


@pytest.mark.parametrize("crop", [(0, 0, HEIGHT + 1, 1), (100, 160, 5, 4)])
def test_a_crop_that_reaches_out_is_refused_with_the_size(crop):
    with pytest.raises(ValueError, match=f"frame of {HEIGHT} rows and {WIDTH} columns"):
        decode(encode(textured()), crop=crop)


# ------------------------------------------------------------------ colour
@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
def test_grey_from_colour_is_the_luma_within_two_levels(subsampling):
    frame = textured()
    data = encode(frame, subsampling)
    grey = decode(data, colorspace="gray")
    assert grey.shape == (HEIGHT, WIDTH, 1)
    # Of the full decode, whose colours are rounded and clipped, at the pixels inside
    # the range.
    rgb = decode(data).astype(float)
    luma = rgb @ [0.299, 0.587, 0.114]
    inside = (rgb.min(-1) > 0) & (rgb.max(-1) < 255)
    assert np.abs(grey[..., 0] - luma)[inside].max() <= 2


def test_grey_frames_become_three_channels_where_asked():
    (frame,) = make_frames(1, grey=True)
    rgb = decode(encode(frame), colorspace="rgb")
    grey = decode(encode(frame))
    assert (rgb.shape, grey.shape) == ((24, 32, 3), (24, 32, 1))
    np.testing.assert_array_equal(rgb, np.repeat(grey, 3, 2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 4},
        {"crop": (3, 5, 8, 9)},
        {"crop": (2, 4, 8, 10), "scale": 2},
        {"colorspace": "gray"},
    ],
    ids=str,
)
def test_four_inks_become_colours_with_every_option(shared_images, options):
    data = (shared_images / "cmyk.jpg").read_bytes()
    full = decode_frame(data)
    part = decode(data, **options)
    assert part.shape[2] == (1 if "colorspace" in options else 3)
    if not options:
        np.testing.assert_array_equal(part, full)
    if options == {"crop": (3, 5, 8, 9)}:
        np.testing.assert_array_equal(part, full[3:11, 5:14])
    if "colorspace" in options:
        luma = full @ np.array([0.299, 0.587, 0.114])
        assert np.abs(part[..., 0] - luma).max() <= 1


# ------------------------------------------------------------------ options
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 3}, "scale is 3; it must be one of 1, 2, 4, 8"),
        ({"scale": 2, "min_size": 64}, "min_size is 64 with scale 2"),
        ({"min_size": 0}, "min_size is 0; it must be at least 1 pixel"),
        ({"colorspace": "bgr"}, "'bgr'; it must be one of source, rgb, gray"),
        ({"crop": (0, -1, 4, 4)}, "top, left, height, width"),
        ({"crop": (0, 0, 0, 4)}, "at least 1"),
        ({"crop": (0, 4)}, r"crop is \(0, 4\); it must be \(top, left, height, width"),
        ({"crop": (0, 0, 4, 4, 1)}, "crop is .*; it must be"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DecodeOptions(**options)


def test_what_is_no_crop_and_no_colour_space_is_said_to_be_none():
    make: Any = decode_options
    with pytest.raises(TypeError, match=r"crop is 5; it must be \(top, left"):
        make(1, None, 5, "source")
    for colorspace in (None, ["gray"]):
        with pytest.raises(ValueError, match="it must be one of source, rgb, gray"):
            make(1, None, None, colorspace)


def test_the_same_values_are_the_same_options_also_from_a_list():
    first = decode_options(2, None, [0, 0, 4, 4], "rgb")
    assert first is decode_options(2, None, (0, 0, 4, 4), "rgb")
    assert first == DecodeOptions(2, None, (0, 0, 4, 4), "rgb")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((2.0, None, None), "scale is 2.0; it must be one of 1, 2, 4, 8"),
        ((1, 12.0, None), "min_size is 12.0; it must be a whole number"),
        ((1, None, (2.0, 3, 8, 8)), r"crop is \(2.0, 3, 8, 8\); it must be \(top"),
    ],
    ids=str,
)
def test_a_float_is_refused_and_does_not_become_the_options_of_an_integer(
    options, message
):
    make: Any = decode_options
    with pytest.raises(TypeError, match=message):
        make(*options, "gray")
    scale, min_size, crop = options
    crop = None if crop is None else [np.int64(number) for number in crop]
    min_size = None if min_size is None else np.int32(min_size)
    found = make(np.int64(scale), min_size, crop, "gray")
    assert {type(found.scale), *map(type, found.crop or ())} == {int}
    assert type(found.min_size) in (int, type(None))


def test_a_decoder_is_kept_for_the_next_clip_of_the_same_kind():
    options = DecodeOptions()
    one, two = encode(textured(1)), encode(textured(2))
    other = encode(textured(3, 40, 60))
    first = decoder_for(one, 0, len(one), options)
    assert decoder_for(two, 0, len(two), options) is first
    assert decoder_for(other, 0, len(other), options).shape == (40, 60, 3)


@given(st.data())
def test_a_damaged_header_is_an_error_and_nothing_behind_the_frame_is_written(data):
    jpeg = bytearray(encode(textured(0, 24, 32)))
    known = FrameDecoder(bytes(jpeg), DecodeOptions(crop=(0, 0, 8, 8)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 640))
        jpeg[at] = data.draw(st.integers(0, 255))
    damaged = bytes(jpeg)
    for decoder in (known, None):
        out, size = np.full(64 * 64 * 3, 7, np.uint8), 0
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(first_frame, "MAX_PIXELS", 4096)
                made = decoder or FrameDecoder(damaged, DecodeOptions())
            size = math.prod(made.shape)
            made.decode(damaged, 0, len(damaged), out[:size])
        except ValueError:  # CorruptFrameError among them
            pass
        assert (out[size:] == 7).all()
