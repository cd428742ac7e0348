"""Images that OpenCV reads nothing of, with the reason."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from gulpio2.errors import SourceReadError
from gulpio2.media.image_files import read_image
from gulpio2.media.images import ImageFrames

RGB = np.random.default_rng(0).integers(0, 256, (30, 50, 3)).astype(np.uint8)


def jpeg_of_bits(bits):
    data = bytearray(simplejpeg.encode_jpeg(RGB))
    data[data.index(b"\xff\xc0") + 1] = 0xC1
    data[data.index(b"\xff\xc1") + 4] = bits
    return bytes(data)


def jpeg_ls():
    header = struct.pack(">HBHHB", 11, 8, 30, 50, 1) + b"\1\x11\0"
    return b"\xff\xd8\xff\xf7" + header + b"\xff\xda\0\x08\1\1\0\0\0\0data\xff\xd9"


def tiff_of(compression):
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "TIFF")
    data = bytearray(file.getvalue())
    place = data.index(struct.pack("<HHI", 259, 3, 1)) + 8
    data[place : place + 2] = struct.pack("<H", compression)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (jpeg_of_bits(12), "a JPEG of 12 bits, and only those of 8"),
        (jpeg_of_bits(16), "a JPEG of 16 bits, and only those of 8"),
        (jpeg_ls(), "JPEG-LS, which is not read here"),
        (tiff_of(34925), "TIFF with the compression LZMA"),
        (tiff_of(50000), "TIFF with the compression ZSTD"),
    ],
    ids=["12", "16", "JPEG-LS", "LZMA", "ZSTD"],
)
def test_the_reason_is_given(tmp_path, data, message):
    path = tmp_path / "a.image"
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match=rf"a\.image': it is .*{message}"):
        read_image(path)
    with pytest.raises(SourceReadError, match=message):
        list(ImageFrames([path]).stored())


@pytest.mark.parametrize("no_jp2", [False, True])
def test_jpeg_2000_of_grey_and_transparency_is_grey(tmp_path, no_jp2):
    path = tmp_path / "a.jp2"
    Image.fromarray(RGB[..., :2], "LA").save(path, "JPEG2000", no_jp2=no_jp2)
    assert np.array_equal(read_image(path), RGB[..., 0])
