"""What image files say of their size."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from gulpio2.media.declared import declared_depth, declared_size

SIZE = (70, 30)


@pytest.mark.parametrize(
    ("format_", "mode", "options"),
    [
        ("PNG", "RGB", {}),
        ("GIF", "P", {}),
        ("BMP", "RGB", {}),
        ("WEBP", "RGB", {}),
        ("WEBP", "RGB", {"lossless": True}),
        ("WEBP", "RGBA", {"quality": 50}),
        ("TIFF", "RGB", {}),
        ("PPM", "1", {}),
        ("JPEG2000", "RGB", {}),
        ("JPEG2000", "RGB", {"no_jp2": True}),
    ],
)
def test_the_size_is_that_of_the_image(format_, mode, options):
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE[::-1], 4), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, format_, **options)
    assert declared_size(file.getvalue()) == SIZE


@pytest.mark.parametrize("long", [False, True])
def test_a_codestream_of_jpeg_2000_is_not_one_that_a_box_before_it_has(long):
    codestream = b"\xff\x4f\xff\x51" + struct.pack(">HH8I", 41, 0, *SIZE, *[0] * 6)
    codestream += struct.pack(">HBBB", 1, 9, 1, 1)
    other = b"\xff\x4f\xff\x51" + struct.pack(">HH8I", 41, 0, 5, 5, *[0] * 6)
    other += struct.pack(">HBBB", 1, 15, 1, 1)
    note = struct.pack(">I", 8 + len(other)) + b"xml " + other
    if long:
        note = struct.pack(">I4sQ", 1, b"xml ", 16 + len(other)) + other
    data = b"\0\0\0\x0cjP  \r\n\x87\n" + note + b"\0\0\0\0jp2c" + codestream
    assert declared_size(data) == SIZE
    assert declared_depth(data) == 10
    for end in range(len(data)):
        assert declared_size(data[:end]) <= SIZE


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"BM" + bytes(12) + struct.pack("<IiiHH", 40, 70, -30, 1, 24),
            id="bmp, down",
        ),
        pytest.param(
            b"BM" + bytes(12) + struct.pack("<IHHHH", 12, 70, 30, 1, 24), id="bmp, os/2"
        ),
        pytest.param(
            b"\0\0\0\x14ftypavif"
            + b"".join(
                b"\0\0\0\x14ispe" + struct.pack(">III", 0, *size)
                for size in ((8, 8), SIZE, (16, 30))
            ),
            id="avif",
        ),
        pytest.param(b"P4 # a\n70\n# b\n30\n", id="pbm"),
        pytest.param(
            b"\xff\x4f\xff\x51" + struct.pack(">HH4I", 47, 0, 75, 33, 5, 3), id="j2k"
        ),
    ],
)
def test_rarer_forms_are_known(data):
    assert declared_size(data) == SIZE


@pytest.mark.parametrize(
    "start",
    [b"", b"text", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF1234WEBPVP8L", b"P4 9",
     b"II*\0", b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ", b"1234ftypispe",
     b"1234ftypav1C"],
)  # fmt: skip
def test_a_cut_one_has_none_or_little(start):
    assert max(declared_size(start)) <= 1
    assert declared_depth(start) == 0
