"""Sizes by the short edge, exactly those of GulpIO2 0.0.4."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gulpio2.codecs.jpeg import MAX_PIXELS
from gulpio2.errors import (
    AdapterContractError,
    ImageNotFoundError,
    IngestSettingError,
)
from gulpio2.media.resize import (
    resize_by_short_edge,
    resize_images,
    resize_pixels,
    resized_shape,
)

SIZES = [
    ((480, 640), 256, (256, 341)),
    ((240, 427), 256, (256, 455)),
    ((427, 240), 256, (455, 256)),
    ((3, 1000), 1, (1, 333)),
    ((100, 100), 64, (64, 64)),
    ((100, 100), 200, (200, 200)),
    ((480, 640), 0, (480, 640)),
    ((480, 640), -1, (480, 640)),
    ((720, 1280), 256, (256, 455)),
    ((1080, 1920), 256, (256, 455)),
    ((49, 100), 7, (7, 14)),
]


@pytest.mark.parametrize(("shape", "size", "expected"), SIZES)
def test_the_long_edge_is_cut_to_a_whole_number(shape, size, expected):
    height, width = shape
    assert resized_shape(height, width, size) == expected


@given(
    height=st.integers(1, 5000), width=st.integers(1, 5000), size=st.integers(1, 3000)
)
def test_the_short_edge_is_always_the_size(height, width, size):
    longer, shorter = max(height, width), min(height, width)
    if size * int(size * (longer / shorter)) > MAX_PIXELS:
        with pytest.raises(IngestSettingError, match="more than 134217728 pixels"):
            resized_shape(height, width, size)
        return
    new = resized_shape(height, width, size)
    assert min(new) == size
    assert (new[0] < new[1]) <= (height < width)
    assert resized_shape(width, height, size) == new[::-1]


@pytest.mark.parametrize(("shape", "size", "expected"), SIZES)
@pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "rgb"])
def test_images_have_these_sizes(shape, size, expected, channels):
    image = np.zeros((*shape, *channels), np.uint8)
    assert resize_by_short_edge(image, size).shape == (*expected, *channels)


def test_shrinking_averages_areas():
    checks = np.indices((64, 64)).sum(0) % 2 * 255
    small = resize_pixels(checks.astype(np.uint8), (16, 16))
    assert np.unique(small).tolist() in ([127], [128])


def test_growing_is_linear():
    large = resize_pixels(np.array([[0, 100]], np.uint8), (1, 4))
    assert large.tolist() == [[0, 25, 75, 100]]


def test_an_image_of_that_size_is_not_copied():
    image = np.zeros((4, 6, 3), np.uint8)
    assert resize_pixels(image, (4, 6)) is image
    assert resize_by_short_edge(image, -1) is image


@pytest.fixture
def drawn(pictures):
    return pictures(1, 60, 80)[0]


@pytest.mark.parametrize("given_as", ["array", "pil", "str", "path"])
def test_arrays_images_and_paths_are_taken(tmp_path, drawn, given_as):
    path = tmp_path / "a.png"
    Image.fromarray(drawn).save(path)
    image = {
        "array": drawn, "pil": Image.fromarray(drawn), "str": str(path), "path": path,
    }[given_as]  # fmt: skip
    assert np.array_equal(resize_by_short_edge(image, -1), drawn)
    expected = resize_pixels(drawn, (30, 40))
    assert np.array_equal(resize_by_short_edge(image, 30), expected)


def test_pixels_are_near_those_of_pillow(drawn, psnr):
    ours = resize_by_short_edge(drawn, 24)
    pillow = Image.fromarray(drawn).resize((32, 24), Image.Resampling.BILINEAR)
    assert psnr(ours, np.asarray(pillow)) > 34


@pytest.mark.parametrize("kind", [str, Path])
def test_a_missing_file_is_not_found(tmp_path, kind):
    path = kind(tmp_path / "none.jpg")
    with pytest.raises(FileNotFoundError, match=r"none\.jpg' does not exist"):
        resize_by_short_edge(path, 10)
    with pytest.raises(ImageNotFoundError):
        resize_by_short_edge(path, -1)


@pytest.mark.parametrize(
    "image", [None, 7, np.zeros((2, 2, 3)), np.zeros((2, 2), np.complex64)]
)
def test_what_is_neither_image_nor_path_is_refused(image):
    with pytest.raises(AdapterContractError):
        resize_by_short_edge(image, 10)


def test_images_are_read_one_by_one_as_they_are_asked_for(tmp_path, drawn):
    asked = []

    def paths():
        for name in ("a.png", "b.png", "none.png"):
            asked.append(name)
            yield str(tmp_path / name)

    for name in ("a.png", "b.png"):
        Image.fromarray(drawn).save(tmp_path / name)
    images = resize_images(paths(), 30)
    assert asked == []
    assert next(images).shape == (30, 40, 3)
    assert asked == ["a.png"]
    next(images)
    with pytest.raises(FileNotFoundError):
        next(images)


def test_without_a_size_images_are_read_as_they_are(tmp_path, drawn):
    Image.fromarray(drawn).save(tmp_path / "a.png")
    (image,) = resize_images(map(str, [tmp_path / "a.png"]))
    assert np.array_equal(image, drawn)


def test_a_size_that_no_memory_holds_is_refused_and_not_tried(tmp_path):
    image = tmp_path / "wide.png"
    Image.fromarray(np.zeros((2, 3000, 3), np.uint8)).save(image)
    with pytest.raises(IngestSettingError, match=r"2x3000 .* one of 1000x1500000 with"):
        resize_by_short_edge(image, 1000)


@pytest.mark.parametrize(
    "kind", ["bool", "uint16", "int16", "int32", "int64", "float16", "float32"]
)
def test_depth_and_masks_are_resized_in_their_own_type(kind):
    image = np.zeros((8, 16), kind)
    image[:, 8:] = 1
    smaller = resize_by_short_edge(image, 4)
    assert smaller.dtype == kind
    assert np.array_equal(
        smaller, np.repeat(np.array([[0, 1]], kind), 4, 1).repeat(4, 0)
    )
    assert resize_by_short_edge(image, -1).dtype == kind


@pytest.mark.parametrize("channels", [2, 4])
def test_flow_and_transparency_keep_their_channels(channels):
    image = np.arange(8 * 16 * channels, dtype=np.uint8).reshape(8, 16, channels)
    assert resize_by_short_edge(image, 4).shape == (4, 8, channels)
    assert np.array_equal(resize_by_short_edge(image, -1), image)


def test_images_of_an_archive_are_read_where_they_are_open(tmp_path):
    paths = [tmp_path / "a.png", tmp_path / "b.jpg"]
    for k, path in enumerate(paths):
        Image.fromarray(np.full((20, 30, 3), 90 * k, np.uint8)).save(path)
    with zipfile.ZipFile(tmp_path / "frames.zip", "w") as archive:
        for path in paths:
            archive.write(path, path.name)
    with zipfile.ZipFile(tmp_path / "frames.zip") as archive:
        members = map(archive.open, archive.namelist())
        found = list(resize_images(members, 10))
    for one, expected in zip(found, resize_images(paths, 10), strict=True):
        np.testing.assert_array_equal(one, expected)
    in_memory = io.BytesIO(paths[0].read_bytes())
    in_memory.seek(0, io.SEEK_END)  # as after writing; Pillow begins at 0 too
    assert resize_by_short_edge(in_memory, -1).shape == (20, 30, 3)


@pytest.mark.parametrize("buffering", [-1, 0])
def test_an_image_out_of_a_pipe_is_read_from_where_it_is(tmp_path, buffering):
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / "a.png")
    reader, writer = os.pipe()
    with open(reader, "rb", buffering) as file:  # noqa: PTH123  # a descriptor
        with open(writer, "wb") as out:  # noqa: PTH123  # a descriptor
            out.write((tmp_path / "a.png").read_bytes())
        assert resize_by_short_edge(file, 10).shape == (10, 15, 3)


def test_an_open_file_that_holds_no_image_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no image")
    with (
        path.open("rb") as file,
        pytest.raises(ImageNotFoundError, match=r"notes\.txt' cannot be decoded"),
    ):
        resize_by_short_edge(file, 10)
    with (
        path.open(encoding="utf-8") as file,
        pytest.raises(AdapterContractError, match=r"notes\.txt' is open as text"),
    ):
        resize_by_short_edge(file, 10)


@pytest.mark.parametrize("size", [10.5, 10.0, np.float32(10)])
def test_a_size_that_is_no_whole_number_is_a_type_error(size):
    with pytest.raises(TypeError, match=r"size is .*, expected a whole number"):
        resize_by_short_edge(np.zeros((20, 30), np.uint8), size)
    assert resize_by_short_edge(np.zeros((20, 30), np.uint8), -size).shape == (20, 30)
