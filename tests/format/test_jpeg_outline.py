"""What a JPEG is, by its markers."""

from __future__ import annotations

import io

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gulpio2.format import jpeg_outline
from gulpio2.format.jpeg_outline import outline_jpeg

RGB = np.random.default_rng(0).integers(0, 256, (30, 50, 3)).astype(np.uint8)
BASELINE = simplejpeg.encode_jpeg(RGB, quality=90)


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


COLOUR = Image.fromarray(RGB)
KINDS = [
    pytest.param(saved(COLOUR), 3, True, id="baseline"),
    pytest.param(saved(COLOUR, progressive=True), 3, True, id="progressive"),
    pytest.param(saved(COLOUR, optimize=True), 3, True, id="optimised"),
    pytest.param(saved(COLOUR, keep_rgb=True), 3, True, id="rgb"),
    pytest.param(saved(COLOUR, restart_marker_blocks=2), 3, True, id="restarts"),
    pytest.param(saved(COLOUR, comment=b"\xff\xd9 no end"), 3, True, id="comment"),
    pytest.param(saved(COLOUR.convert("L")), 1, True, id="grey"),
    pytest.param(saved(COLOUR.convert("CMYK")), 4, False, id="cmyk"),
]


@pytest.mark.parametrize(("data", "components", "storable"), KINDS)
def test_size_kind_and_end_are_found(data, components, storable):
    outline = outline_jpeg(data)
    assert (outline.height, outline.width) == (30, 50)
    assert outline.num_components == components
    assert outline.precision == 8
    assert outline.common
    assert outline.end == len(data)
    assert outline.storable == storable


@pytest.mark.parametrize("behind", [b"\0" * 7, b"\xff\xd9", BASELINE, b"\xff\xff\xff"])
def test_what_follows_the_image_is_not_part_of_it(behind):
    assert outline_jpeg(BASELINE + behind).end == len(BASELINE)


def test_a_preview_in_the_header_is_not_the_image():
    preview = BASELINE
    segment = b"\xff\xe1" + (len(preview) + 2).to_bytes(2, "big") + preview
    large = saved(Image.new("RGB", (70, 90)))
    outline = outline_jpeg(large[:2] + segment + large[2:])
    assert (outline.width, outline.height) == (70, 90)


@pytest.mark.parametrize(
    ("marker", "precision"), [(0xC3, 8), (0xC9, 8), (0xCB, 8), (0xC0, 12)]
)
def test_lossless_arithmetic_and_deep_ones_are_not_stored(marker, precision):
    data = bytearray(BASELINE)
    place = data.index(b"\xff\xc0")
    data[place + 1], data[place + 4] = marker, precision
    outline = outline_jpeg(bytes(data))
    assert not outline.storable
    assert outline.common == (marker == 0xC0)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.3, 0.6, 0.9, 0.999])
def test_a_cut_one_is_refused(part):
    with pytest.raises(ValueError, match=r"cut off|does not begin"):
        outline_jpeg(BASELINE[: int(len(BASELINE) * part)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin"),
        (b"\x89PNG", "does not begin"),
        (b"\xff\xd8\xff\xd9", "no image"),
        (b"\xff\xd8\xff\xc0\0\1\xff\xd9", "cut off or damaged at byte 4"),
        (b"\xff\xd8\xff\xc0\0\3\x08\xff\xd9", "cut off or damaged"),
        (b"\xff\xd8\xff\xe0\xff\xff", "cut off or damaged"),
        (BASELINE.replace(b"\0\x1e\0\x32", b"\0\x1e\0\0", 1), "0x30 pixels large"),
        (BASELINE.replace(b"\0\x1e\0\x32", b"\0\0\0\x32", 1), "50x0 pixels large"),
    ],
)
def test_what_is_no_jpeg_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        outline_jpeg(data)


@given(
    st.binary(max_size=60),
    st.integers(0, len(BASELINE)),
    st.integers(0, len(BASELINE)),
)
def test_no_bytes_make_it_stumble(inserted, start, stop):
    data = BASELINE[:start] + inserted + BASELINE[stop:]
    try:
        outline = outline_jpeg(data)
    except ValueError:
        return
    assert data[outline.end - 2 : outline.end] == b"\xff\xd9"


def test_real_images_end_where_their_files_do(shared_images):
    paths = sorted(shared_images.glob("*.jpg"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        outline = outline_jpeg(data)
        assert outline.end == len(data), path.name
        assert outline.storable == (path.name != "cmyk.jpg")


def outline_or_error(data):
    try:
        return outline_jpeg(data)
    except ValueError as error:
        return str(error)


def outline_alone(data):
    jpeg_outline._RECENT.clear()
    return outline_or_error(data)


def _start_of_data(jpeg):
    at = jpeg.index(b"\xff\xda") + 2
    return at + int.from_bytes(jpeg[at : at + 2], "big")


HEADS = [kind.values[0] for kind in KINDS]
HEADS.append(BASELINE[:2] + b"\0\0" + BASELINE[2:])  # zeros, but not of the data


@pytest.mark.parametrize("head", HEADS)
@given(st.data())
def test_an_image_that_begins_as_the_one_before_it_is_outlined_as_any(head, data):
    start = data.draw(st.integers(len(head) - 40, len(head)))
    ends = [b"\xff\xd9", b"\0", b"\xff", b"\0\xff\xd9", b"\xff\xda\0\x08", b"\xd0"]
    behind = data.draw(
        st.lists(st.one_of(st.binary(max_size=3), st.sampled_from(ends)))
    )
    other = head[:start] + b"".join(behind)
    alone = outline_alone(other)
    assert outline_alone(head) == outline_or_error(head)
    assert outline_or_error(other) == alone
    assert outline_or_error(head) == outline_alone(head)


def test_an_image_that_begins_as_the_one_before_it_is_not_walked_through(monkeypatch):
    outline_alone(BASELINE)
    monkeypatch.setattr(jpeg_outline, "_walked", None)
    assert outline_jpeg(BASELINE + b"\0").end == len(BASELINE)


DATA = bytes.fromhex("12 ff00 ffd0 ffd7 ffff00 00 d8")  # no marker is in it
LENGTHS = [0, 1, 4093, 4094, 4095, 4096, 8192, 65_535, 65_536, 65_537]
ENDINGS = [
    b"\xff\xd9",
    b"\xff\xd9\0\xff\xd9",
    b"\xff\xff\xd9",
    b"\xff\xfe\0\2\xff\xd9",
    b"\xff",
]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_data_of_any_length_behind_a_known_header_end_where_they_do(length, ending):
    head = BASELINE[: _start_of_data(BASELINE)]
    data = (DATA * (length // len(DATA) + 1))[:length].rstrip(b"\xff")
    other = head + data + ending
    alone = outline_alone(other)
    assert isinstance(alone, str) == (ending == b"\xff")
    outline_alone(BASELINE)
    assert outline_or_error(other) == alone


@pytest.mark.parametrize("length", [4095, 4096])
def test_the_end_of_a_large_image_is_looked_for_with_numpy_alone(monkeypatch, length):
    head = BASELINE[: _start_of_data(BASELINE)]
    outline_alone(BASELINE)
    slower = "end_of_next_marker" if length >= 4096 else "end_of_far_marker"
    monkeypatch.setattr(jpeg_outline, slower, None)
    other = head + b"\x12" * (length - 2) + b"\xff\xd9"
    assert outline_jpeg(other).end == len(other)


def test_what_a_camera_adds_is_not_kept():
    large = saved(COLOUR, comment=bytes(10_000))
    outline_alone(large)
    assert not jpeg_outline._RECENT
