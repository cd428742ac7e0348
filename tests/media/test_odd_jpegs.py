"""JPEGs whose headers other programs pass over, and of many scans or rare grids."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import ImageNotFoundError
from gulpio2.format.jpeg_outline import outline_jpeg
from gulpio2.media.image_files import read_image
from gulpio2.media.images import ImageFrames


@pytest.fixture
def drawn(pictures):
    return Image.fromarray(pictures(1, 60, 80)[0])


def jpeg_of(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95, **options)
    return file.getvalue()


def stored(path, frame_size=-1):
    (frame,) = ImageFrames([path], frame_size=frame_size).stored()
    return frame.image


def with_frequencies(jpeg, numbers):
    """Change the last three bytes of the header of the first scan."""
    end = jpeg.index(b"\xff\xda") + 2
    end += int.from_bytes(jpeg[end : end + 2], "big")
    return jpeg[: end - 3] + bytes(numbers) + jpeg[end:]


def with_adobe(jpeg, transform):
    """Put the segment of Adobe's programs in the place of that of JFIF."""
    assert jpeg[6:10] == b"JFIF"
    return jpeg[:2] + b"\xff\xee\0\x0eAdobe\0d\0\0\0\0" + bytes([transform]) + jpeg[20:]


@pytest.mark.parametrize("numbers", [(0, 0, 0), (0, 63, 1), (1, 63, 0), (63, 0, 0)])
def test_frequencies_that_a_sequential_scan_has_not_are_passed_over(
    tmp_path, drawn, numbers
):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn)
    path.write_bytes(with_frequencies(usual, numbers))
    assert stored(path) == usual
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))
    assert stored(path, frame_size=30).shape == (30, 40, 3)


def test_frequencies_of_a_progressive_scan_are_kept(tmp_path, drawn):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg_of(drawn, progressive=True))
    assert stored(path) == path.read_bytes()


@pytest.mark.parametrize("transform", [2, 3, 255])
@pytest.mark.parametrize(("mode", "right"), [("RGB", 1), ("CMYK", 2)])
def test_a_transform_that_adobe_has_not_is_the_usual_one(
    tmp_path, drawn, mode, right, transform
):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn)
    if mode == "CMYK":  # Pillow writes the segment itself, with 0
        usual = jpeg_of(drawn.convert("CMYK"))
        at = usual.index(b"Adobe") + 11
        path.write_bytes(usual[:at] + bytes([transform]) + usual[at + 1 :])
    else:
        path.write_bytes(with_adobe(usual, transform))
        assert stored(path) == with_adobe(usual, right)
        assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))
    with Image.open(path) as shown:
        expected = np.asarray(shown.convert("RGB"), int)
    assert np.abs(read_image(path) - expected).max() <= 1


def test_rgb_of_adobe_stays_rgb(tmp_path, drawn):
    path = tmp_path / "a.jpg"
    path.write_bytes(with_adobe(jpeg_of(drawn), 0))
    assert stored(path) == path.read_bytes()


@pytest.mark.parametrize("place", ["behind JFIF", "of grey", "behind a scan"])
def test_a_transform_that_nobody_asks_for_is_kept(tmp_path, drawn, place):
    path = tmp_path / "a.jpg"
    usual = jpeg_of(drawn.convert("L") if place == "of grey" else drawn)
    odd = with_adobe(usual, 2)
    if place == "behind JFIF":
        odd = usual[:20] + odd[2:18] + usual[20:]
    elif place == "behind a scan":
        usual = jpeg_of(drawn, progressive=True)
        last = usual.rindex(b"\xff\xda")
        odd = usual[:2] + usual[20:last] + odd[2:18] + usual[last:]
    path.write_bytes(odd)
    assert stored(path) == odd
    assert np.array_equal(decode_frame(odd), decode_frame(usual))


def test_the_transform_that_counts_is_that_before_the_first_scan(tmp_path, drawn):
    path = tmp_path / "a.jpg"
    usual = jpeg_of(drawn, progressive=True)
    last = usual.rindex(b"\xff\xda")
    rest = usual[20:last] + with_adobe(usual, 0)[2:18] + usual[last:]
    path.write_bytes(with_adobe(usual, 2)[:18] + rest)
    assert stored(path) == with_adobe(usual, 1)[:18] + rest
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))


@pytest.mark.parametrize("before", ["a comment", "another one"])
def test_an_unknown_revision_of_jfif_is_passed_over_wherever_it_is(
    tmp_path, drawn, before
):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn)
    first = usual[2:20] if before == "another one" else b"\xff\xfe\0\4ab"
    path.write_bytes(usual[:2] + first + usual[2:11] + b"\2\1" + usual[13:])
    assert stored(path) == usual[:2] + first + usual[2:]


def segment(marker, content):
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def part_of_profile(number, count, content=b"profile"):
    return segment(0xE2, b"ICC_PROFILE\0" + bytes([number, count]) + content)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize(
    "parts",
    [
        [(1, 1), (1, 1)],
        [(0, 1)],
        [(0, 0)],
        [(1, 2)],
        [(2, 1)],
        [(1, 2), (2, 3)],
        [(0, 2), (1, 2)],
        [(1, 1), (1, 2), (2, 2)],
        [(1, 2), (2, 2), (2, 2)],
        [(1, 1, b"")],
    ],
    ids=str,
)
def test_a_profile_that_is_none_is_passed_over(tmp_path, drawn, parts, progressive):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn, progressive=progressive)
    profile = b"".join(part_of_profile(*part) for part in parts)
    path.write_bytes(usual[:20] + profile + usual[20:])
    expected = profile.replace(b"ICC_PROFILE", b"icc_profile")
    assert stored(path) == usual[:20] + expected + usual[20:]
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))
    assert stored(path, frame_size=30).shape == (30, 40, 3)


@pytest.mark.parametrize(
    "parts",
    [
        [(1, 1)],
        [(1, 2), (2, 2)],
        [(2, 2), (1, 2)],
        [(1, 2, b""), (2, 2)],
        [(n, 255) for n in range(1, 256)],
    ],
    ids=["one", "two", "turned", "one empty", "all"],
)
def test_a_profile_is_kept(tmp_path, drawn, parts):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn)
    profile = b"".join(part_of_profile(*part) for part in parts)
    # One that is too short for numbers is none, and said nothing of.
    profile += segment(0xE2, b"ICC_PROFILE\0\1")
    path.write_bytes(usual[:20] + profile + usual[20:])
    assert stored(path) == path.read_bytes()
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))


def test_a_profile_behind_a_scan_is_kept(tmp_path, drawn):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn, progressive=True)
    last = usual.rindex(b"\xff\xda")
    path.write_bytes(usual[:last] + part_of_profile(0, 0) + usual[last:])
    assert stored(path) == path.read_bytes()
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))


@pytest.mark.parametrize("num_zeros", [1, 5, 6, 16, 700])
@pytest.mark.parametrize("filled", [b"", b"\xff\xff"])
@pytest.mark.parametrize("mode", ["RGB", "L", "progressive"])
def test_zeros_before_the_end_are_left_out_where_they_are_in_the_way(
    tmp_path, drawn, mode, filled, num_zeros
):
    path = tmp_path / "a.jpg"
    progressive = mode == "progressive"
    usual = jpeg_of(
        drawn if progressive else drawn.convert(mode), progressive=progressive
    )
    padded = usual[:-2] + bytes(num_zeros) + filled + usual[-2:]
    path.write_bytes(padded + b"\0what a camera adds")
    assert stored(path) in (padded, usual[:-2] + filled + usual[-2:])
    assert num_zeros < 9 or stored(path) != padded
    assert np.array_equal(decode_frame(stored(path)), decode_frame(usual))
    path.with_suffix(".usual").write_bytes(usual)
    assert np.array_equal(read_image(path), read_image(path.with_suffix(".usual")))
    assert stored(path, frame_size=30).shape[:2] == (30, 40)


def test_zeros_between_scans_are_left_out(tmp_path, drawn):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn, progressive=True)
    first = usual.index(b"\xff\xda")
    parts = usual[first:].split(b"\xff\xc4")
    padded = usual[:first] + (bytes(20) + b"\xff\xc4").join(parts)
    path.write_bytes(padded)
    assert len(parts) > 3
    assert stored(path) == usual
    path.with_suffix(".usual").write_bytes(usual)
    assert np.array_equal(read_image(path), read_image(path.with_suffix(".usual")))


def ends_in_a_zero():
    """Give a JPEG whose last bits are zeros, and fill a byte."""
    for size in range(8, 400):
        for value in range(0, 256, 5):
            image = Image.new("RGB", (size, 8), (value, value, value))
            jpeg = jpeg_of(image)
            if jpeg[-3] == 0 and jpeg[-4] not in (0, 0xFF):
                return jpeg
    raise AssertionError("there is none")


@pytest.mark.parametrize("added", [0, 1, 9, 300])
def test_zeros_of_the_data_stay(tmp_path, added):
    path, usual = tmp_path / "a.jpg", ends_in_a_zero()
    path.write_bytes(usual[:-2] + bytes(added) + usual[-2:])
    kept = stored(path)
    assert kept == usual or (added == 1 and len(kept) == len(usual) + 1)
    assert np.array_equal(decode_frame(kept), decode_frame(usual))


def test_a_stuffed_zero_is_none_that_may_go(drawn):
    usual = jpeg_of(drawn)
    assert outline_jpeg(usual[:-2] + b"\xff\0\xff\xd9").zeros == ()
    more = usual[:-2] + b"\xff\0\0\0\xff\xff\xd9"
    assert outline_jpeg(more).zeros == ((len(usual), len(usual) + 2),)


@pytest.mark.parametrize("frame_size", [-1, 30])
def test_other_bytes_among_the_zeros_are_refused(tmp_path, drawn, frame_size):
    path, usual = tmp_path / "a.jpg", jpeg_of(drawn)
    path.write_bytes(usual[:-2] + b"\1\2\3\4\5\6\7\x08\t\n" * 3 + bytes(2) + usual[-2:])
    with pytest.raises(ImageNotFoundError, match=r"a\.jpg'.* behind the data .* 0xd9"):
        stored(path, frame_size=frame_size)


def in_blocks(factors, height, width):
    """Write a JPEG of flat blocks by chance, with these factors of subsampling."""
    rng = np.random.default_rng(0)
    numbers = range(len(factors))
    header = struct.pack(">BHHB", 8, height, width, len(factors))
    header += b"".join(bytes([i, h << 4 | v, 0]) for i, (h, v) in enumerate(factors))
    # Twelve codes of four bits for the means, and one of a bit: nothing else.
    means = b"\0" + bytes([0, 0, 0, 12, *[0] * 12]) + bytes(range(12))
    no_more = b"\x10" + bytes([1, *[0] * 15]) + b"\0"
    across = -(-width // (8 * max(h for h, _ in factors)))
    down = -(-height // (8 * max(v for _, v in factors)))
    bits, last = "", [0] * len(factors)
    for _ in range(across * down):
        for i, (h, v) in enumerate(factors):
            for _ in range(h * v):
                mean = int(rng.integers(-40, 40))
                step, last[i] = mean - last[i], mean
                length = abs(step).bit_length()
                bits += f"{length:04b}"
                if length:
                    bits += (
                        f"{step if step > 0 else step + (1 << length) - 1:0{length}b}"
                    )
                bits += "0"
    bits += "1" * (-len(bits) % 8)
    coded = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    scan = bytes([len(factors)]) + b"".join(bytes([i, 0]) for i in numbers)
    return b"".join(
        [
            b"\xff\xd8",
            segment(0xDB, b"\0" + bytes([8] * 64)),
            segment(0xC0, header),
            segment(0xC4, means),
            segment(0xC4, no_more),
            segment(0xDA, scan + b"\0\x3f\0"),
            coded,
            b"\xff\xd9",
        ]
    )


@pytest.mark.parametrize(
    "factors",
    [
        [(3, 1), (1, 1), (1, 1)],
        [(4, 2), (1, 1), (1, 1)],
        [(2, 2), (2, 1), (1, 1)],
        [(1, 1), (2, 2), (2, 2)],
        [(2, 1), (1, 1), (1, 1), (1, 1)],
    ],
    ids=str,
)
def test_rare_grids_of_chroma_are_decoded(tmp_path, factors):
    path = tmp_path / "a.jpg"
    path.write_bytes(in_blocks(factors, 50, 70))
    with Image.open(path) as shown:
        expected = np.asarray(shown.convert("RGB"), int)
    assert np.abs(stored(path) - expected).max() <= 1
    assert np.array_equal(stored(path), read_image(path))
    assert stored(path, frame_size=25).shape == (25, 35, 3)


def test_more_scans_than_anybody_needs_are_refused(tmp_path, drawn):
    path = tmp_path / "a.jpg"
    usual = jpeg_of(drawn, progressive=True)
    last = usual[usual.rindex(b"\xff\xda") : -2]
    most = 500 - usual.count(b"\xff\xda")
    path.write_bytes(usual[:-2] + most * last + b"\xff\xd9")
    assert outline_jpeg(path.read_bytes()).end == path.stat().st_size
    path.write_bytes(usual[:-2] + (most + 1) * last + b"\xff\xd9")
    with pytest.raises(ImageNotFoundError, match=r"a\.jpg' .* more than 500 scans"):
        stored(path)
