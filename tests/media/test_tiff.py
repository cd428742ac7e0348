"""TIFF as other images: values as they are stored, or a refusal."""

from __future__ import annotations

import contextlib
import io
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import (
    AdapterContractError,
    ImageNotFoundError,
    SourceReadError,
)
from gulpio2.media.image_files import read_image
from gulpio2.media.images import ImageFrames
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


def test_colours_that_were_multiplied_are_as_they_were_before(tmp_path, drawn):
    path, colours = tmp_path / "a.tif", np.asarray(drawn)
    opaque = np.random.default_rng(0).integers(0, 256, (30, 40, 1))
    opaque[0] = 255
    opaque[1] = 0
    multiplied = np.concatenate([colours * opaque // 255, opaque], axis=2)
    Image.fromarray(multiplied.astype(np.uint8), "RGBA").save(path)
    data = bytearray(path.read_bytes())
    place = data.index(struct.pack("<HHI", 338, 3, 1)) + 8
    assert data[place] == 2
    data[place] = 1
    path.write_bytes(data)
    found = read_image(path)
    with Image.open(path) as shown:
        expected = np.asarray(shown.convert("RGB"), int)
    assert np.abs(found - expected).max() <= 1
    assert np.array_equal(found[0], colours[0])
    assert not found[1].any()
    seen = np.broadcast_to(opaque > 128, colours.shape)
    assert np.abs(found - colours.astype(int))[seen].max() <= 2


@pytest.mark.parametrize("value", [0, 1, 12_850, 65_535])
def test_multiplied_colours_of_sixteen_bits_are_divided(tmp_path, value):
    path = tmp_path / "a.tif"
    pixels = np.full((4, 6, 4), 0x4040, np.uint16)
    pixels[..., 0] = value
    write_tiff(path, {258: (16,) * 4, 262: 2, 277: 4, 338: 1}, pixels.astype("<u2"))
    found = read_image(path)
    assert np.array_equal(found[..., 1:], np.full((4, 6, 2), 255))
    assert found[0, 0, 0] == min(255, round(value / 0x4040 * 255))


@pytest.mark.parametrize("options", [{}, {"tiffinfo": {278: 7}}])
@pytest.mark.parametrize("mode", ["RGB", "L", "1", "RGBA"])
@pytest.mark.parametrize("change", [-8, 8])
def test_deflate_of_other_bytes_than_the_width_says_is_an_error(
    tmp_path, drawn, options, mode, change
):
    path = tmp_path / "a.tif"
    drawn.convert(mode).save(path, compression="tiff_adobe_deflate", **options)
    assert read_image(path).shape[:2] == (30, 40)
    data = bytearray(path.read_bytes())
    place = next(
        place
        for place in range(8, len(data), 2)
        if data[place : place + 2] == b"\0\1" and data[place + 2] in (3, 4)
    )
    assert data[place + 8] == 40
    data[place + 8] += change
    path.write_bytes(data)
    with pytest.raises(ImageNotFoundError, match="damaged TIFF: a part of it has"):
        read_image(path)


@pytest.mark.parametrize("num_bytes", [160, 319, 320, 321])
def test_the_last_part_may_be_as_long_as_the_others(tmp_path, num_bytes):
    path = tmp_path / "a.tif"
    strip = np.frombuffer(zlib.compress(bytes(num_bytes)), np.uint8)
    # Two strips of 8 rows for 12 rows, which are the same bytes.
    sizes = {256: 40, 257: 12, 258: 8, 259: 8, 262: 1, 277: 1, 278: 8}
    entries = {**sizes, 273: (0, 0), 279: (strip.size, strip.size)}
    write_tiff(path, entries, strip.reshape(1, -1))
    if num_bytes == 320:
        assert read_image(path).shape == (12, 40)
    else:
        with pytest.raises(ImageNotFoundError, match=f"has {num_bytes} bytes"):
            read_image(path)


@pytest.mark.parametrize("options", [{}, {"tiffinfo": {278: 7}}, {"big_tiff": True}])
def test_damage_inside_of_deflate_is_an_error(tmp_path, drawn, options):
    path = tmp_path / "a.tif"
    drawn.save(path, compression="tiff_adobe_deflate", **options)
    assert np.array_equal(read_image(path), np.asarray(drawn))
    data = bytearray(path.read_bytes())
    with Image.open(path) as image:
        tags: dict[int, tuple[int, ...]] = dict(getattr(image, "tag_v2"))  # noqa: B009  # its type has no such attribute
    for start, length in zip(tags[273], tags[279], strict=True):
        damaged = bytearray(data)
        damaged[start + length // 2] ^= 8
        path.write_bytes(damaged)
        with pytest.raises(ImageNotFoundError, match="damaged TIFF"):
            read_image(path)


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


def write_tiff(path, entries, pixels, *, big=False):
    """Write a TIFF of one strip; entries are tag to value, or to several of 16 bits."""
    order, place = ("<", "Q") if big else ("<", "I")
    room = struct.calcsize(place)
    start = 16 if big else 8
    entries = {256: pixels.shape[1], 257: pixels.shape[0], 259: 1, 278: pixels.shape[0],
               273: 0, 279: pixels.nbytes, **entries}  # fmt: skip
    behind = start + (8 if big else 2) + (4 + 2 * room) * len(entries) + room
    parts, rest = [], b""
    for tag, value in sorted(entries.items()):
        several = value if isinstance(value, tuple) else (value,)
        packed = struct.pack(f"{order}{len(several)}H", *several)
        if tag == 273:
            packed = struct.pack(f"{order}H", behind + 8) * len(several)
        if len(packed) > room:
            rest = packed
            packed = struct.pack(f"{order}{place}", behind)
        parts.append(struct.pack(f"{order}HH{place}", tag, 3, len(several)))
        parts.append(packed.ljust(room, b"\0"))
    head = b"II" + (
        struct.pack("<HHHQQ", 43, 8, 0, start, len(entries))
        if big
        else struct.pack("<HIH", 42, start, len(entries))
    )
    data = head + b"".join(parts) + bytes(room) + rest.ljust(8, b"\0")
    path.write_bytes(data + pixels.tobytes())
    return path


RGBA = {258: (8, 8, 8, 8), 262: 2, 277: 4, 338: 2}


@pytest.mark.parametrize("big", [False, True], ids=["tiff", "bigtiff"])
@pytest.mark.parametrize("turned", [1, 6])
def test_a_bigtiff_is_read_as_a_tiff_is(tmp_path, big, turned):
    pixels = np.arange(128, dtype=np.uint8).reshape(4, 8, 4)
    path = write_tiff(tmp_path / "a.tif", {**RGBA, 274: turned}, pixels, big=big)
    assert np.array_equal(read_image(path), pixels[..., :3])


@pytest.mark.parametrize("kind", [1, 4, 6, 8, 9])
def test_numbers_of_any_kind_are_those_that_libtiff_takes(tmp_path, kind):
    pixels = np.arange(128, dtype=np.uint8).reshape(4, 8, 4)
    path = write_tiff(tmp_path / "a.tif", {**RGBA, 274: 6}, pixels)
    data = path.read_bytes()
    for tag in (274, 338):
        entry = struct.pack("<HHI", tag, 3, 1)
        assert data.count(entry) == 1
        data = data.replace(entry, struct.pack("<HHI", tag, kind, 1))
    path.write_bytes(data)
    assert np.array_equal(read_image(path), pixels[..., :3])


def test_deflate_that_ends_before_its_checksum_is_an_error(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50), np.uint8)
    packed = np.frombuffer(zlib.compress(pixels.tobytes()), np.uint8)[np.newaxis]
    shape = {256: 50, 257: 40, 258: 8, 259: 8, 262: 1, 277: 1, 278: 40}
    path = write_tiff(tmp_path / "a.tif", shape, packed)
    assert np.array_equal(read_image(path), pixels)
    for length in (packed.size // 2, packed.size - 4, packed.size - 1, 0):
        write_tiff(path, {**shape, 279: length}, packed)
        with pytest.raises(ImageNotFoundError, match="ends before its checksum"):
            read_image(path)


def overlapping_pages():
    """Give many pages that share most of their entries."""
    pages = 3000
    places = [8 + 16 * number for number in range(pages)]
    data = bytearray(8 + 16 * pages + 12 * 20_000)
    data[:8] = struct.pack("<2sHI", b"II", 42, 8)
    for place in places:
        data[place : place + 2] = struct.pack("<H", 20_000)
        after = place + 2 + 12 * 20_000
        data[after : after + 4] = struct.pack("<I", place + 16)
    return bytes(data)


def overlapping_strips():
    """Give many strips in one place, of which nothing comes."""
    strips = 8000
    empty = b"\x78\x01" + b"\0\0\0\xff\xff" * 100_000
    lists = struct.pack(f"<{strips}I", *[8 + 12 * 9 + 6] * strips)
    lengths = struct.pack(f"<{strips}I", *range(len(empty) - strips, len(empty)))
    places = 8 + 12 * 9 + 6 + len(empty)
    entries = [
        *((tag, 3, 1, value) for tag, value in ((256, 99), (257, 8000), (258, 8))),
        *((tag, 3, 1, value) for tag, value in ((259, 8), (262, 1), (277, 1))),
        (278, 3, 1, 1),
        (273, 4, strips, places),
        (279, 4, strips, places + len(lists)),
    ]
    parts = [struct.pack("<2sHIH", b"II", 42, 8, len(entries))]
    parts += [struct.pack("<HHII", *entry) for entry in sorted(entries)]
    return b"".join([*parts, bytes(4), empty, lists, lengths])


@pytest.mark.parametrize("make", [overlapping_pages, overlapping_strips])
def test_what_lies_on_one_another_takes_no_long_time(make):
    data = make()
    began = time.monotonic()
    with pytest.raises((ValueError, SourceReadError, AdapterContractError)):
        as_stored(data)
    assert time.monotonic() - began < 5


def test_several_pages_of_a_bigtiff_are_refused(tmp_path):
    pixels = np.arange(128, dtype=np.uint8).reshape(4, 8, 4)
    path = write_tiff(tmp_path / "a.tif", RGBA, pixels, big=True)
    data = path.read_bytes()
    end = 24 + 20 * int.from_bytes(data[16:24], "little")
    # The same page again, at the end.
    following = len(data).to_bytes(8, "little")
    path.write_bytes(data[:end] + following + data[end + 8 :] + data[16:end] + bytes(8))
    with pytest.raises(SourceReadError, match=r"a\.tif.*2 pages"):
        read_image(path)


def test_a_compression_that_nothing_decodes_is_no_black_image(tmp_path):
    pixels = np.arange(96, dtype=np.uint8).reshape(4, 8, 3)
    entries = {258: (8, 8, 8), 259: 34712, 262: 2, 277: 3}  # JPEG 2000
    path = write_tiff(tmp_path / "a.tif", entries, pixels)
    with pytest.raises(SourceReadError, match=r"a\.tif.*compression 34712"):
        read_image(path)


@pytest.mark.parametrize(
    ("entries", "shape", "taken", "refused", "why"),
    [
        ({258: 16, 277: 1}, (4, 8), {262: 1}, {262: 0}, "0 is white.*negative"),
        (
            {258: (16, 16, 16), 262: 2, 277: 3},
            (4, 8, 3),
            {284: 1},
            {284: 2},
            "plane for each colour",
        ),
    ],
    ids=["white is zero", "planes apart"],
)
def test_sixteen_bits_are_read_as_what_they_are(
    tmp_path, entries, shape, taken, refused, why
):
    pixels = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape) * 600
    path = write_tiff(tmp_path / "a.tif", {**entries, **taken}, pixels)
    assert np.array_equal(read_image(path), np.rint(pixels / 257))
    path = write_tiff(tmp_path / "b.tif", {**entries, **refused}, pixels)
    with pytest.raises(SourceReadError, match=rf"b\.tif.*{why}"):
        read_image(path)


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate"])
def test_any_bytes_are_taken(drawn, compression):
    file = io.BytesIO()
    drawn.save(file, "TIFF", compression=compression)
    data = file.getvalue()
    rng = np.random.default_rng(0)
    for _ in range(300):
        cut = bytearray(data[: rng.integers(4, len(data))])
        for place in rng.integers(4, len(cut) + 1, 3):
            cut[place - 1] = rng.integers(256)
        with contextlib.suppress(ValueError):
            assert len(as_stored(bytes(cut))) == len(cut)


def test_two_colours_of_a_palette_stay_colours(tmp_path):
    colours = np.array([[10, 30, 50], [20, 40, 60]], np.uint8)
    dots = np.eye(16, dtype=np.uint8)
    path = tmp_path / "a.tif"
    shades = tuple((colours.T.astype(int) * 257).ravel().tolist())
    Image.fromarray(dots == 1).save(path, tiffinfo={258: 1, 277: 1, 320: shades})
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<HHI", 262, 3, 1)) + 8] = 3  # a palette
    path.write_bytes(data)
    assert np.array_equal(read_image(path), colours[dots])


@pytest.mark.parametrize("width", [32, 24])
def test_grey_with_transparency_in_tiles_is_read_right_or_refused(tmp_path, width):
    grey = np.tile(np.arange(width, dtype=np.uint8) * 7, (16, 1))
    padded = np.full((16, 32, 2), 200, np.uint8)
    padded[:, :width, 0] = grey
    tiles = [zlib.compress(padded[:, x : x + 16].tobytes()) for x in (0, 16)]
    data, lengths = b"".join(tiles), [*map(len, tiles)]
    starts, lists = [8, 8 + lengths[0]], 8 + len(data)
    entries = [
        (256, 3, 1, width), (257, 3, 1, 16), (258, 3, 2, 8 | 8 << 16), (259, 3, 1, 8),
        (262, 3, 1, 1), (277, 3, 1, 2), (284, 3, 1, 1), (322, 3, 1, 16),
        (323, 3, 1, 16), (324, 4, 2, lists), (325, 4, 2, lists + 8), (338, 3, 1, 2),
    ]  # fmt: skip
    path = tmp_path / "a.tif"
    path.write_bytes(
        b"II*\0" + struct.pack("<I", lists + 16) + data
        + struct.pack("<4I", *starts, *lengths) + struct.pack("<H", len(entries))
        + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    )  # fmt: skip
    if width % 16:
        with pytest.raises(SourceReadError, match="write it in strips"):
            list(ImageFrames([path]))
    else:
        (frame,) = ImageFrames([path])
        np.testing.assert_array_equal(np.squeeze(frame), grey)
