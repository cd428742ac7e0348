"""Images that OpenCV would read otherwise than they are stored."""

from __future__ import annotations

import struct
from typing import Any

import av
import cv2
import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import SourceReadError
from gulpio2.media.image_files import read_image
from gulpio2.media.misread import with_map_of_grey, without_transparency


@pytest.fixture
def drawn(pictures):
    return pictures(1, 20, 31)[0]


def bitmap(header, bits, pixels, *, behind=b""):
    """Give the bytes of a BMP: rows from the bottom up, each of full words."""
    rows = pixels[::-1].reshape(len(pixels), -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4))).tobytes()
    height, width = pixels.shape[:2]
    kind = "<HH" if header == 12 else "<ii"
    facts = struct.pack("<I", header) + struct.pack(kind, width, height)
    facts += struct.pack("<HH", 1, bits)
    if header > 12:
        facts += struct.pack("<IIiiII", 3 if bits == 32 else 0, len(rows), 0, 0, 0, 0)
    start = 14 + len(facts) + len(behind)
    return struct.pack("<2sIII", b"BM", start + len(rows), 0, start) + (
        facts + behind + rows
    )


@pytest.mark.parametrize(
    "masks", [(), (0x7C00, 0x3E0, 0x1F), (0xF800, 0x7E0, 0x1F)], ids=["none", *"56"]
)
def test_white_of_a_bitmap_of_sixteen_bits_is_white(tmp_path, masks):
    most = 0xFFFF if 0x7E0 in masks else 0x7FFF
    values = np.linspace(0, most, 4 * 32).astype(np.uint16).reshape(4, 32)
    data = bytearray(bitmap(40, 16, values.view(np.uint8).reshape(4, 64)))
    data[18:22] = struct.pack("<i", 32)  # pixels of two bytes
    if masks:
        data[30:34] = struct.pack("<I", 3)
        data[54:54] = struct.pack("<3I", *masks)
        data[10:14] = struct.pack("<I", 66)
    path = tmp_path / "a.bmp"
    path.write_bytes(data)
    pixels = read_image(path)
    with Image.open(path) as image:
        expected = np.asarray(image.convert("RGB"))
    assert np.abs(pixels.astype(int) - expected).max() <= 1
    assert pixels.max(axis=(0, 1)).tolist() == expected.max(axis=(0, 1)).tolist()
    assert (pixels[-1, -1] == 255).all()
    assert (pixels[0, 0] == 0).all()


def test_a_bitmap_of_os2_keeps_its_colours(tmp_path, drawn):
    path = tmp_path / "a.bmp"
    path.write_bytes(bitmap(12, 24, drawn[..., ::-1]))
    assert np.array_equal(read_image(path), drawn)
    palette = np.random.default_rng(0).integers(0, 256, (256, 3), np.uint8)
    numbers = drawn[..., 0]
    path.write_bytes(bitmap(12, 8, numbers, behind=palette[:, ::-1].tobytes()))
    assert np.array_equal(read_image(path), palette[numbers])


def test_a_bitmap_of_exchanged_colours_is_refused(tmp_path, drawn):
    path = tmp_path / "a.bmp"
    pixels = np.dstack([drawn, drawn[..., 0]])
    blue_first = struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)
    path.write_bytes(bitmap(40, 32, pixels[..., [2, 1, 0, 3]], behind=blue_first))
    assert np.array_equal(read_image(path), drawn)
    red_first = struct.pack("<III", 0xFF, 0xFF00, 0xFF0000)
    path.write_bytes(bitmap(40, 32, pixels, behind=red_first))
    with pytest.raises(
        SourceReadError, match=r"a\.bmp': it is a BMP whose colours lie"
    ):
        read_image(path)


@pytest.mark.parametrize("options", [{}, {"comment": b"x" * 300}, {"interlace": 0}])
def test_a_transparent_pixel_of_a_gif_keeps_its_colour(tmp_path, drawn, options):
    image = Image.fromarray(drawn).quantize(16)
    path = tmp_path / "a.gif"
    image.save(path, transparency=5, **options)
    if not cv2.haveImageReader(str(path)):
        pytest.skip("an OpenCV that reads no GIF")
    with Image.open(path) as saved:
        numbers, colours = np.asarray(saved), saved.getpalette()
    assert colours is not None
    assert (numbers == 5).any()
    assert np.array_equal(read_image(path), np.reshape(colours, (-1, 3))[numbers])


def test_any_beginning_of_a_gif_is_taken(tmp_path, drawn):
    path = tmp_path / "a.gif"
    Image.fromarray(drawn).quantize(16).save(path, transparency=5, comment=b"x")
    data = path.read_bytes()
    for end in range(100):
        assert len(without_transparency(data[:end])) == end


@pytest.mark.parametrize(
    ("pix_fmt", "is_refused"), [("yuv444p", True), ("rgb24", False)]
)
def test_a_jpeg_2000_of_sycc_is_refused(tmp_path, drawn, pix_fmt, is_refused):
    frame: Any = av.VideoFrame.from_ndarray(drawn, format="rgb24")
    path = str(tmp_path / "a.jp2")
    with av.open(path, "w", format="image2") as file:
        stream = file.add_stream("jpeg2000", rate=1)
        stream.width, stream.height, stream.pix_fmt = 31, 20, pix_fmt
        stream.codec_context.options = {"format": "jp2", "pred": "dwt53"}
        for part in (frame.reformat(format=pix_fmt), None):
            file.mux(stream.encode(part))
    if is_refused:
        with pytest.raises(SourceReadError, match="JPEG 2000 of sYCC"):
            read_image(path)
    else:
        assert np.abs(read_image(path) - drawn.astype(float)).max() <= 1


def test_a_gif_of_very_many_blocks_is_copied_once():
    # One copy for each of them would take minutes.
    block = b"!\xf9\x04\x01\0\0\0\0"
    data = b"GIF89a" + bytes(7) + block * 250_000
    assert without_transparency(data) == data.replace(b"\x04\x01", b"\x04\x00")


@pytest.mark.parametrize("bits", [1, 8])
def test_a_sun_raster_without_a_map_is_grey(tmp_path, drawn, bits):
    path = tmp_path / "a.ras"
    grey = drawn[:, :16, 0]  # rows are of two bytes each
    rows = grey if bits == 8 else np.packbits(grey > 127, axis=1)
    header = struct.pack(">8I", 0x59A66A95, 16, len(grey), bits, rows.size, 1, 0, 0)
    path.write_bytes(header + rows.tobytes())
    expected = grey if bits == 8 else np.where(grey > 127, 0, 255)
    pixels = read_image(path)
    assert np.array_equal(
        pixels, expected if pixels.ndim == 2 else np.dstack([expected] * 3)
    )


def test_a_sun_raster_with_a_map_keeps_it(tmp_path, drawn):
    path = tmp_path / "a.ras"
    numbers, palette = drawn[:, :16, 0], drawn.reshape(-1)[:768].reshape(3, 256)
    header = struct.pack(
        ">8I", 0x59A66A95, 16, len(numbers), 8, numbers.size, 1, 1, 768
    )
    path.write_bytes(header + palette.tobytes() + numbers.tobytes())
    assert np.array_equal(read_image(path), palette.T[numbers])


@pytest.mark.parametrize("length", range(0, 33, 4))
def test_a_cut_sun_raster_comes_back(length):
    data = struct.pack(">8I", 0x59A66A95, 16, 4, 24, 0, 1, 0, 0)[:length]
    assert with_map_of_grey(data) == data
