"""Frames as JPEG."""

from __future__ import annotations

import dataclasses
import inspect
import io
import json

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gulpio2.codecs import jpeg as codec
from gulpio2.codecs.jpeg import (
    EncoderSettings,
    check_jpeg,
    decode_frame,
    encode_frame,
    img_to_jpeg_bytes,
    jpeg_bytes_to_img,
    read_header,
)
from gulpio2.codecs.whole_jpeg import WholeJpeg
from gulpio2.errors import AdapterContractError, CorruptFrameError
from gulpio2.testing import make_frames
from gulpio2.types import YuvFrame

DEFAULT = EncoderSettings()
# Levels. Quality 90 and the fast DCT keep a smooth picture this close.
CLOSE = 8


def colour() -> np.ndarray:
    """Give a smooth coloured frame of 24 x 32."""
    return make_frames(1)[0]


def grey() -> np.ndarray:
    """Give a smooth grey frame of 24 x 32."""
    return make_frames(1, grey=True)[0]


def distance(one: np.ndarray, two: np.ndarray) -> int:
    """Give the largest difference in levels."""
    return int(np.abs(one.astype(int) - two.astype(int)).max())


# --- settings -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quality": 0}, "quality is 0; it must be 1 to 100"),
        ({"quality": 101}, "quality is 101"),
        ({"subsampling": "411"}, "subsampling is '411'; it must be one of source, 444"),
    ],
)
def test_settings_that_the_encoder_does_not_have_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        EncoderSettings(**settings)


def test_settings_do_not_change_and_describe_themselves():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT.quality = 3  # type: ignore[misc]  # on purpose
    assert EncoderSettings(quality=75, subsampling="420").describe() == {
        "codec": "jpeg",
        "quality": 75,
        "subsampling": "420",
        "simplejpeg": simplejpeg.__version__,
    }


# --- encoding arrays ----------------------------------------------------------------


def test_a_colour_frame_is_stored_in_444_and_comes_back_close():
    data = encode_frame(colour(), DEFAULT)
    assert read_header(data) == (24, 32, "YCbCr", "444")
    frame = decode_frame(data)
    assert frame.shape == (24, 32, 3)
    assert frame.dtype == np.uint8
    assert distance(frame, colour()) <= CLOSE


@pytest.mark.parametrize("shape", [(24, 32), (24, 32, 1)])
def test_a_grey_frame_is_stored_in_one_component_and_comes_back_flat(shape):
    data = encode_frame(grey().reshape(shape), DEFAULT)
    assert read_header(data) == (24, 32, "Gray", "Gray")
    frame = decode_frame(data)
    assert frame.shape == (24, 32)
    assert distance(frame, grey()) <= CLOSE


def test_the_bytes_are_those_of_the_original():
    # 0.0.4 encodes with these arguments; tests/compat compares with 0.0.4 itself.
    assert encode_frame(colour(), DEFAULT) == simplejpeg.encode_jpeg(
        colour(), quality=90, colorspace="RGB", colorsubsampling="444", fastdct=True
    )


@given(
    hnp.arrays(
        np.uint8,
        st.tuples(st.integers(1, 40), st.integers(1, 40))
        | st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3)),
    )
)
def test_a_frame_of_any_size_comes_back_in_its_size(frame):
    data = encode_frame(frame, DEFAULT)
    assert decode_frame(data).shape == frame.shape
    assert check_jpeg(data).shape == frame.shape


def test_a_quality_is_a_whole_number_as_the_manifest_has_it():
    settings = EncoderSettings(quality=np.int64(75))  # type: ignore[arg-type]  # on purpose
    assert json.loads(json.dumps(settings.describe()))["quality"] == 75
    for quality in (90.5, "90"):
        with pytest.raises(TypeError, match=r"quality is .*, expected a whole"):
            EncoderSettings(quality=quality)  # type: ignore[arg-type]  # on purpose


def test_a_higher_quality_is_closer_and_longer():
    frames = [encode_frame(colour(), EncoderSettings(quality=q)) for q in (1, 50, 100)]
    errors = [
        np.abs(decode_frame(data) - colour().astype(int)).mean() for data in frames
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 2
    assert sorted(frames, key=len) == frames


@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
def test_chroma_of_arrays_can_be_set(subsampling):
    settings = EncoderSettings(subsampling=subsampling)
    header = read_header(encode_frame(colour(), settings))
    assert header.subsampling == subsampling
    assert read_header(encode_frame(grey(), settings)).subsampling == "Gray"


@pytest.mark.parametrize(
    "view",
    [
        lambda frame: frame[::-1],
        lambda frame: frame[:, ::-1],
        lambda frame: frame[2:20, 3:31],
        lambda frame: np.asfortranarray(frame),
        lambda frame: frame[..., ::-1],
        lambda frame: frame.transpose(1, 0, 2),
    ],
    ids=["flipped", "mirrored", "cropped", "fortran", "bgr", "turned"],
)
def test_views_are_stored_as_what_they_show(view):
    shown = view(colour())
    assert encode_frame(shown, DEFAULT) == encode_frame(shown.copy("C"), DEFAULT)


def test_a_boolean_frame_is_stored_as_bytes_of_0_and_1():
    mask = grey() > 128
    expected = encode_frame(mask.astype(np.uint8), DEFAULT)
    assert encode_frame(mask, DEFAULT) == expected


def test_a_pil_image_is_stored_as_its_pixels():
    pil = pytest.importorskip("PIL.Image")
    for frame in (colour(), grey()):
        image = pil.fromarray(frame)
        assert encode_frame(image, DEFAULT) == encode_frame(frame, DEFAULT)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.zeros((4, 4, 2), np.uint8), r"shape \(4, 4, 2\)"),
        (np.zeros((2, 4, 4, 3), np.uint8), r"shape \(2, 4, 4, 3\)"),
        (np.zeros(4, np.uint8), r"shape \(4,\)"),
        (np.zeros((4, 4), np.float32), "float32"),
        (np.zeros((4, 4, 3), np.uint16), "uint16"),
        (np.zeros((4, 4, 3), np.int64), "int64"),
        ("a picture", "a str"),
        (None, "a NoneType"),
        (3, r"shape \(\)"),
    ],
    ids=lambda value: f"{getattr(value, 'shape', value)}",
)
def test_what_is_no_image_is_refused_and_named(frame, message):
    with pytest.raises(AdapterContractError, match=message):
        encode_frame(frame, DEFAULT)


# --- planes -------------------------------------------------------------------------


def planes(height: int, width: int, subsampling: str) -> YuvFrame:
    """Give planes that are grey but for a smooth change."""
    rows, columns = np.mgrid[0:height, 0:width]
    down = 2 if subsampling == "420" else 1
    across = 1 if subsampling == "444" else 2
    chroma = (rows + columns)[::down, ::across]
    return YuvFrame(
        (rows * 3 + columns).astype(np.uint8),
        (100 + chroma).astype(np.uint8),
        (150 - chroma).astype(np.uint8),
    )


@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
@pytest.mark.parametrize(("height", "width"), [(24, 32), (23, 31), (1, 1), (16, 17)])
def test_planes_keep_their_chroma_and_go_without_rgb(height, width, subsampling):
    frame = planes(height, width, subsampling)
    data = encode_frame(frame, EncoderSettings(quality=100))
    header = check_jpeg(data)
    assert header.shape == (height, width, 3)
    luma = simplejpeg.decode_jpeg(data, "GRAY")[..., 0]
    assert distance(luma, frame.y) <= 2
    if min(height, width) > 1:  # one pixel has one chroma sample in each of them
        assert header.subsampling == subsampling


@pytest.mark.parametrize("have", ["444", "422", "420"])
@pytest.mark.parametrize("want", ["444", "422", "420"])
def test_chroma_of_planes_can_be_set(have, want):
    frame = planes(24, 32, have)
    data = encode_frame(frame, EncoderSettings(quality=100, subsampling=want))
    assert read_header(data).subsampling == want
    as_it_is = decode_frame(encode_frame(frame, EncoderSettings(quality=100)))
    assert distance(decode_frame(data), as_it_is) <= 8


def test_planes_with_padded_rows_are_stored_as_what_they_show():
    frame = planes(24, 32, "420")
    wide = [np.zeros((p.shape[0], p.shape[1] + 5), np.uint8) for p in
            (frame.y, frame.u, frame.v)]  # fmt: skip
    for target, plane in zip(wide, (frame.y, frame.u, frame.v), strict=True):
        target[:, : plane.shape[1]] = plane
    views = YuvFrame(wide[0][:, :32], wide[1][:, :16], wide[2][:, :16])
    assert encode_frame(views, DEFAULT) == encode_frame(frame, DEFAULT)


# --- bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_jpeg_given_as_bytes_is_stored_byte_for_byte(kind):
    data = simplejpeg.encode_jpeg(colour(), quality=37)
    assert encode_frame(kind(data), DEFAULT) == data


def test_a_length_that_leads_past_the_end_of_bytes_is_refused():
    usual = simplejpeg.encode_jpeg(make_frames(1)[0])
    damaged = usual[:-2] + b"\xff\xfe\xff\xf0" + usual[-2:]
    assert check_jpeg(damaged)
    with pytest.raises(AdapterContractError, match=r"damaged at byte \d+"):
        encode_frame(damaged, EncoderSettings())
    # Of one that is moved, nothing is changed and nothing refused, nor is it copied.
    moved = WholeJpeg(damaged)
    assert encode_frame(moved, EncoderSettings()) is moved


def test_bytes_are_as_readers_need_them():
    usual = simplejpeg.encode_jpeg(make_frames(1)[0])
    odd = usual[:11] + b"\5" + usual[12:-2] + bytes(99) + usual[-2:]
    assert usual[6:10] == b"JFIF"
    assert encode_frame(odd, EncoderSettings()) == usual
    assert encode_frame(usual + usual, EncoderSettings()) == usual + usual


def test_bytes_of_twelve_bits_are_refused():
    usual = bytearray(simplejpeg.encode_jpeg(make_frames(1)[0]))
    usual[usual.index(b"\xff\xc0") + 4] = 12
    with pytest.raises(AdapterContractError, match="12 bits, and only those of 8"):
        encode_frame(bytes(usual), EncoderSettings())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes cannot be stored: not a JPEG"),
        (
            b"\x89PNG\r\n\x1a\n",
            "8 bytes cannot be stored: not a JPEG: it does not begin",
        ),
        (simplejpeg.encode_jpeg(make_frames(1)[0])[:-2], "a cut JPEG: it does not end"),
        (b"\xff\xd8\xff\xd9", "not a readable JPEG"),
        (b"\xff\xd8\xff\xe0\xff\xf0\xff\xd9", "cut off or damaged at byte 4"),
    ],
)
def test_bytes_that_are_no_whole_jpeg_are_refused(data, message):
    with pytest.raises(AdapterContractError, match=message):
        encode_frame(data, DEFAULT)


def test_real_jpegs_are_stored_byte_for_byte_and_read(shared_images):
    paths = sorted(shared_images.glob("*.jpg"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        if data.endswith(b"\xff\xd9"):
            assert encode_frame(data, DEFAULT) == data, path.name
        frame = decode_frame(data)
        assert frame.shape == read_header(data).shape, path.name
        assert frame.ndim == (2 if read_header(data).colorspace == "Gray" else 3)


# --- decoding -----------------------------------------------------------------------


def test_a_decoded_frame_is_the_callers_own():
    frame = decode_frame(encode_frame(colour(), DEFAULT))
    assert frame.flags.c_contiguous
    assert frame.flags.owndata
    assert frame.flags.writeable


def test_the_decoders_flags_are_those_of_the_original():
    data = simplejpeg.encode_jpeg(colour(), quality=90, colorsubsampling="420")
    expected = simplejpeg.decode_jpeg(data, "RGB", fastdct=True, fastupsample=True)
    assert np.array_equal(decode_frame(data), expected)


def test_a_jpeg_of_three_rgb_components_is_rgb():
    pil = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pil.fromarray(colour()).save(file, "JPEG", quality=95, keep_rgb=True)
    data = file.getvalue()
    assert read_header(data).colorspace == "RGB"
    assert distance(decode_frame(data), colour()) <= CLOSE


def test_cmyk_is_decoded_to_rgb():
    pil = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    red = pil.new("CMYK", (16, 16), (0, 255, 255, 0))
    red.save(file, "JPEG", quality=95)
    data = file.getvalue()
    assert read_header(data).colorspace in ("CMYK", "YCCK")
    assert read_header(data).shape == (16, 16, 3)
    frame = decode_frame(data)
    assert frame.shape == (16, 16, 3)
    assert distance(frame, np.broadcast_to((255, 0, 0), (16, 16, 3))) <= CLOSE


def test_441_is_read_though_the_codec_has_no_name_for_it():
    # Four blocks beside each other in 4:1:1 are four blocks one below the other in
    # 4:4:1, and a frame of one unit has the same data in both.
    wide = np.repeat(np.array([10, 80, 150, 220], np.uint8), 8)
    wide = np.broadcast_to(wide[None, :, None], (8, 32, 3))
    jpeg = bytearray(simplejpeg.encode_jpeg(wide.copy(), colorsubsampling="411"))
    at = jpeg.index(b"\xff\xc0")
    assert jpeg[at + 11] == 0x41
    jpeg[at + 5 : at + 9] = (32).to_bytes(2, "big") + (8).to_bytes(2, "big")
    jpeg[at + 11] = 0x14
    data = bytes(jpeg)
    assert read_header(data) == (32, 8, "YCbCr", "441")
    assert distance(decode_frame(data), wide.transpose(1, 0, 2)) <= CLOSE
    with pytest.raises(CorruptFrameError, match="not a readable JPEG"):
        read_header(data[: at + 12])


def test_bytes_after_the_end_are_ignored():
    data = encode_frame(colour(), DEFAULT)
    assert np.array_equal(decode_frame(data + b"\0\0\0"), decode_frame(data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"GIF89a",
        encode_frame(make_frames(1)[0], DEFAULT)[:20],
        encode_frame(make_frames(1)[0], DEFAULT)[:-40],
    ],
    ids=["empty", "zeros", "gif", "header cut", "cut"],
)
def test_what_cannot_be_decoded_is_a_corrupt_frame_and_a_value_error(data):
    for decode in (decode_frame, jpeg_bytes_to_img):
        with pytest.raises(CorruptFrameError):
            decode(data)
        with pytest.raises(ValueError):  # noqa: PT011  # which is what 0.0.4 raised
            decode(data)


@given(st.binary(max_size=60), st.integers(0, 600), st.integers(0, 255))
def test_damaged_bytes_decode_or_are_a_corrupt_frame(garbage, place, value):
    data = bytearray(encode_frame(colour(), DEFAULT))
    data[place % len(data)] = value
    for damaged in (bytes(data), b"\xff\xd8" + garbage):
        try:
            frame = decode_frame(damaged)
        except CorruptFrameError:
            continue
        assert frame.shape == read_header(damaged).shape


def test_a_declared_size_is_refused_before_memory_is_set_aside():
    data = bytearray(encode_frame(colour(), DEFAULT))
    place = data.index(b"\xff\xc0") + 5
    data[place : place + 4] = (65500).to_bytes(2, "big") * 2
    message = r"65500x65500 pixels is above the limit of 134217728; raise max_pixels"
    with pytest.raises(CorruptFrameError, match=message):
        decode_frame(bytes(data))


def test_bytes_are_not_stored_that_readers_would_refuse_for_their_size():
    data = bytearray(encode_frame(colour(), DEFAULT))
    place = data.index(b"\xff\xc0") + 5
    data[place : place + 4] = (20000).to_bytes(2, "big") * 2
    with pytest.raises(AdapterContractError, match="pixels, which readers refuse"):
        encode_frame(bytes(data), DEFAULT)


def test_the_limit_can_be_set():
    data = encode_frame(colour(), DEFAULT)
    assert decode_frame(data, max_pixels=24 * 32).shape == (24, 32, 3)
    with pytest.raises(CorruptFrameError, match="above the limit of 767"):
        decode_frame(data, max_pixels=24 * 32 - 1)


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((12_000, 12_000), np.uint8),
        YuvFrame(
            np.zeros((12_000, 12_000), np.uint8),
            np.zeros((6_000, 6_000), np.uint8),
            np.zeros((6_000, 6_000), np.uint8),
        ),
    ],
    ids=["array", "planes"],
)
def test_what_readers_would_refuse_is_not_encoded(frame):
    with pytest.raises(AdapterContractError, match=r"12000x12000 .* readers refuse"):
        encode_frame(frame, DEFAULT)


# --- the names of the original ------------------------------------------------------


def test_the_originals_encoder_takes_its_quality_from_a_module_variable(monkeypatch):
    assert img_to_jpeg_bytes(colour()) == encode_frame(colour(), DEFAULT)
    monkeypatch.setattr(codec, "DEFAULT_QUALITY", 100)
    expected = encode_frame(colour(), EncoderSettings(quality=100))
    assert img_to_jpeg_bytes(colour()) == expected


def test_the_originals_decoder_is_the_decoder():
    data = encode_frame(colour(), DEFAULT)
    assert np.array_equal(jpeg_bytes_to_img(data), decode_frame(data))
    assert list(inspect.signature(jpeg_bytes_to_img).parameters) == ["jpeg_bytes"]


def test_an_edge_that_no_jpeg_can_have_is_refused_by_its_length():
    encode_frame(np.zeros((1, 65_500), np.uint8), EncoderSettings())
    with pytest.raises(AdapterContractError, match=r"1x65501 .* above 65500 pixels"):
        encode_frame(np.zeros((1, 65_501), np.uint8), EncoderSettings())
