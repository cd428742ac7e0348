"""PGM, PPM and PAM: values of any range, in the right order."""

from __future__ import annotations

import io
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import ImageNotFoundError
from gulpio2.media.image_files import read_image


def pam(depth, most, kind, values):
    return (
        f"P7\nWIDTH 8\nHEIGHT 4\n# by hand\nDEPTH {depth}\nMAXVAL {most}\n"
        f"TUPLTYPE {kind}\nENDHDR\n"
    ).encode() + 32 * values


def wide(*values):
    return b"".join(value.to_bytes(2, "big") for value in values)


FILES = [
    (b"P5 8 4 100\n" + 32 * b"\x64", 255),
    (b"P5 8 4 1\n" + 32 * b"\x01", 255),
    (b"P5 8 0000000004 0000000000100\n" + 32 * b"\x64", 255),
    (b"P5 8 4 255\n" + 32 * b"\x0a", 10),
    (b"P5\n# by hand\n8 4\n#\n1023\n" + 32 * wide(1023), 255),
    (b"P5 8 4\n255\n" + 32 * b"#", 35),
    (b"P5 8 4 65535\n" + 32 * wide(129), 1),
    (b"P6 8 4 4095\n" + 32 * wide(4095, 2048, 0), [255, 128, 0]),
    (b"P6 8 4 100\n" + 32 * bytes([100, 50, 0]), [255, 128, 0]),
    (b"P2 8 4 1023\n" + 32 * b"1023 ", 255),
    (b"P2 8 4 100\n# half\n" + 32 * b"50\n", 128),
    (b"P3 8 4 1023\n" + 32 * b"1023 512 0\n", [255, 128, 0]),
    (pam(3, 255, "RGB", bytes([255, 100, 0])), [255, 100, 0]),
    (pam(4, 255, "RGB_ALPHA", bytes([255, 100, 0, 9])), [255, 100, 0]),
    (pam(3, 1023, "RGB", wide(1023, 512, 0)), [255, 128, 0]),
    (pam(1, 255, "GRAYSCALE", b"\x0a"), 10),
    (pam(2, 255, "GRAYSCALE_ALPHA", b"\x0a\x63"), 10),
    (pam(1, 1, "BLACKANDWHITE", b"\x01"), 255),
]


@pytest.mark.parametrize(("data", "expected"), FILES)
def test_values_are_scaled_to_255_in_the_order_of_rgb(tmp_path, data, expected):
    path = tmp_path / "a.pnm"
    path.write_bytes(data)
    pixels = read_image(path)
    assert pixels.shape[:2] == (4, 8)
    assert pixels.ndim == (3 if isinstance(expected, list) else 2)
    assert (pixels == expected).all()
    assert pixels.flags.writeable


@pytest.mark.parametrize("mode", ["L", "RGB", "1"])
def test_files_of_pillow_are_read_as_they_were_written(tmp_path, pictures, mode):
    image = Image.fromarray(pictures(1, 30, 40)[0]).convert(mode)
    file = io.BytesIO()
    image.save(file, "PPM")
    (tmp_path / "a.pnm").write_bytes(file.getvalue())
    expected = np.asarray(image.convert("L") if mode == "1" else image)
    assert np.array_equal(read_image(tmp_path / "a.pnm"), expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"P5 8 4 255\n" + bytes(31), "cut off: it has 31 of 32 values"),
        (b"P2 8 4 255\n" + b"1 " * 31, "cut off: it has 31 of 32 values"),
        (b"P5 8 4 70000\n" + bytes(64), "header is damaged"),
        (b"P5 0 4 255\n" + bytes(64), "header is damaged"),
        (b"P5 2 1 255#c\n" + bytes(64), "header is damaged"),
        (b"P5 2 1 99999999999\n" + bytes(64), "header is damaged"),
        (b"P6 2", "header is damaged"),
        (b"P2 2 1 255\n1 x", "cannot be decoded"),
        (b"P7\nWIDTH 8\nENDHDR\n" + bytes(64), "header is damaged"),
        (b"P7\nWIDTH 8\n", "header is damaged"),
        (b"P5 900000000 900000000 255\n" + bytes(64), "above the limit"),
    ],
)
def test_damaged_files_are_refused(tmp_path, data, message):
    (tmp_path / "a.pnm").write_bytes(data)
    with pytest.raises(ImageNotFoundError, match=message):
        read_image(tmp_path / "a.pnm")


COMMENTS = 200_000 * b"#\n"
PAM = b"WIDTH 2\nHEIGHT 2\nDEPTH 1\nMAXVAL 255\n"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"P5\n" + COMMENTS + b"2 2 255 abcd", None),
        (b"P4\n" + COMMENTS + b"8 1\n\xff", None),
        (b"P2 2 2 255\n" + COMMENTS + b"1 2 3 4", "more than 100,000 comments"),
        (b"P7\n" + 20_000 * PAM + b"ENDHDR\nabcd", None),
    ],
    ids=["header", "bitmap", "values", "lines of a PAM"],
)
def test_a_long_header_takes_no_memory_of_its_own(tmp_path, data, error):
    path = tmp_path / "a.pnm"
    path.write_bytes(data)
    expected = (
        pytest.raises(ImageNotFoundError, match=error) if error else nullcontext()
    )
    tracemalloc.start()
    try:
        with expected:
            read_image(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(data)
