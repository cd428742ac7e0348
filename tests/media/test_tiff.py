"""TIFF as other images: values as they are stored, or a refusal."""

from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import AdapterContractError, SourceReadError
from gulpio2.media.image_files import read_image
from gulpio2.media.tiff import as_stored


@pytest.fixture
def drawn(pictures):
    return Image.fromarray(pictures(1, 30, 40)[0])


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate"])
def test_transparency_is_dropped_and_not_multiplied_in(tmp_path, drawn, compression):
    drawn.putalpha(64)
    path = tmp_path / "a.tif"
    drawn.save(path, compression=compression)
    assert np.array_equal(read_image(path), np.asarray(drawn)[..., :3])


@pytest.mark.parametrize(("order", "mark"), [("<", b"II"), (">", b"MM")])
def test_numbers_in_either_order_of_bytes_are_understood(tmp_path, order, mark):
    shorts = {256: 8, 257: 4, 259: 1, 262: 2, 274: 3, 277: 4, 278: 4, 338: 2}
    end = 8 + 2 + 12 * 11 + 4
    entries = [
        struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0)
        for tag, value in shorts.items()
    ]
    entries += [
        struct.pack(f"{order}HHII", tag, kind, num_values, value)
        for tag, kind, num_values, value in (
            (258, 3, 4, end),
            (273, 4, 1, end + 8),
            (279, 4, 1, 128),
        )
    ]
    entries.sort(key=lambda entry: struct.unpack(f"{order}H", entry[:2]))
    pixels = np.arange(128, dtype=np.uint8).reshape(4, 8, 4)
    parts = [
        mark,
        struct.pack(f"{order}HIH", 42, 8, len(entries)),
        *entries,
        struct.pack(f"{order}I4H", 0, 8, 8, 8, 8),
        pixels.tobytes(),
    ]
    (tmp_path / "a.tif").write_bytes(b"".join(parts))
    assert np.array_equal(read_image(tmp_path / "a.tif"), pixels[..., :3])


@pytest.mark.parametrize("turned", range(1, 9))
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_the_orientation_is_not_applied(tmp_path, drawn, turned, mode):
    exif = Image.Exif()
    exif[274] = turned
    image = drawn.convert(mode)
    image.save(tmp_path / "a.tif", exif=exif)
    expected = np.asarray(image)
    assert np.array_equal(
        read_image(tmp_path / "a.tif"),
        expected[..., :3] if mode == "RGBA" else expected,
    )


def test_several_pages_are_refused(tmp_path, drawn):
    path = tmp_path / "a.tif"
    drawn.save(path, save_all=True, append_images=[drawn, drawn])
    with pytest.raises(SourceReadError, match=r"a\.tif.*3 pages.*file of its own"):
        read_image(path)


def test_a_page_that_is_a_smaller_copy_does_not_count(tmp_path, drawn):
    small = drawn.resize((8, 6))
    small.encoderinfo = {"tiffinfo": {254: 1}}
    path = tmp_path / "a.tif"
    drawn.save(path, save_all=True, append_images=[small])
    assert np.array_equal(read_image(path), np.asarray(drawn))


def test_lab_is_refused(tmp_path):
    path = tmp_path / "a.tif"
    Image.new("RGB", (8, 8), (200, 30, 60)).convert("LAB").save(path)
    with pytest.raises(SourceReadError, match=r"a\.tif.*Lab colours; convert"):
        read_image(path)


def test_any_bytes_are_taken(drawn):
    file = io.BytesIO()
    drawn.save(file, "TIFF")
    data = file.getvalue()
    rng = np.random.default_rng(0)
    for _ in range(300):
        cut = bytearray(data[: rng.integers(4, len(data))])
        for place in rng.integers(4, len(cut) + 1, 3):
            cut[place - 1] = rng.integers(256)
        with contextlib.suppress(AdapterContractError):
            assert len(as_stored(bytes(cut))) == len(cut)
