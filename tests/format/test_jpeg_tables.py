"""Scans of a JPEG without what they need."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError, ImageNotFoundError
from gulpio2.format.jpeg_outline import outline_jpeg
from gulpio2.media.images import ImageFrames

RGB = np.random.default_rng(0).integers(0, 256, (30, 50, 3)).astype(np.uint8)


def jpeg_of(**options):
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "JPEG", **options)
    return file.getvalue()


BASELINE, PROGRESSIVE = jpeg_of(), jpeg_of(progressive=True)


def segments(jpeg):
    """Split a JPEG before each of its markers with a length, and before its end."""
    return re.split(rb"(?=\xff[\xc0-\xc4\xda-\xfe\xd9])", jpeg)


def without(jpeg, marker, which=slice(None)):
    """Leave segments of a kind out."""
    parts = segments(jpeg)
    found = [i for i, part in enumerate(parts) if part[1:2] == bytes([marker])]
    left_out = set(found[which])
    return b"".join(part for i, part in enumerate(parts) if i not in left_out)


def with_component(jpeg, number):
    """Change the first component of the first scan."""
    at = jpeg.index(b"\xff\xda") + 5
    return jpeg[:at] + bytes([number]) + jpeg[at + 1 :]


def with_table(jpeg, numbers):
    """Change the Huffman tables of the first component of the first scan."""
    at = jpeg.index(b"\xff\xda") + 6
    return jpeg[:at] + bytes([numbers]) + jpeg[at + 1 :]


SECOND = BASELINE[:-2] + BASELINE[BASELINE.index(b"\xff\xda") :]


@pytest.mark.parametrize(
    ("jpeg", "message"),
    [
        pytest.param(without(BASELINE, 0xDB), "quantisation 0", id="no DQT"),
        pytest.param(
            without(BASELINE, 0xDB, slice(1, None)), "quantisation 1", id="one DQT"
        ),
        pytest.param(
            without(PROGRESSIVE, 0xDB), "quantisation 0", id="no DQT, progressive"
        ),
        pytest.param(without(PROGRESSIVE, 0xC4), "Huffman table 0", id="no DHT"),
        pytest.param(
            without(PROGRESSIVE, 0xC4, slice(2)), "Huffman table 0", id="no first DHT"
        ),
        pytest.param(
            without(PROGRESSIVE, 0xC4, slice(2, None)), "Huffman table", id="no other"
        ),
        pytest.param(with_table(BASELINE, 0x30), "Huffman table 3", id="third means"),
        pytest.param(with_table(BASELINE, 0x02), "Huffman table 2", id="second rest"),
        pytest.param(with_component(BASELINE, 9), "component 9", id="component"),
        pytest.param(SECOND, "has the whole image", id="second scan"),
    ],
)
def test_a_scan_that_nobody_could_decode_is_refused(tmp_path, jpeg, message):
    assert len(segments(jpeg)) > 4
    require_refused(jpeg, f"scan at byte .* {message}", tmp_path)


def require_refused(jpeg, message, folder):
    """Require that nobody decodes it, and that its outline says why."""
    with pytest.raises(CorruptFrameError):
        decode_frame(jpeg)
    with pytest.raises(ValueError, match=message):
        outline_jpeg(jpeg)
    path = folder / "a.jpg"
    path.write_bytes(jpeg)
    with pytest.raises(ImageNotFoundError, match=message):
        list(ImageFrames([path]).stored())


@pytest.mark.parametrize("jpeg", [BASELINE, PROGRESSIVE])
@pytest.mark.parametrize("size", [None, 20_000])
def test_a_second_frame_header_is_refused(tmp_path, jpeg, size):
    """The last one has a size that may be stored, and the codec goes by the first."""
    (header,) = [part for part in segments(jpeg) if part[1:2] in (b"\xc0", b"\xc2")]
    first = header
    if size is not None:
        first = header[:5] + 2 * size.to_bytes(2, "big") + header[9:]
    two = jpeg[:-2].replace(header, first) + header + jpeg[-2:]
    require_refused(two, "frame header at byte .* is a second one", tmp_path)


@pytest.mark.parametrize("restarts", [0, 3])
def test_frames_of_motion_jpeg_need_no_huffman_tables(restarts):
    usual = jpeg_of(restart_marker_blocks=restarts)
    short = without(usual, 0xC4)
    assert len(short) < len(usual) - 400
    outline_jpeg(short)
    assert np.array_equal(decode_frame(short), decode_frame(usual))


@pytest.mark.parametrize("options", [{"optimize": True}, {"progressive": True}, {}])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("together", [False, True])
def test_tables_in_one_segment_or_in_several_are_found(mode, options, together):
    file = io.BytesIO()
    Image.fromarray(RGB).convert(mode).save(file, "JPEG", **options)
    jpeg = file.getvalue()
    if together and not options:
        tables = [part for part in segments(jpeg) if part[1:2] == b"\xc4"]
        content = b"".join(part[4:] for part in tables)
        joined = b"\xff\xc4" + (len(content) + 2).to_bytes(2, "big") + content
        jpeg = jpeg.replace(b"".join(tables), joined)
    assert outline_jpeg(jpeg).end == len(jpeg)
    assert decode_frame(jpeg).shape[:2] == (30, 50)


def test_a_table_behind_all_scans_comes_too_late():
    short = without(PROGRESSIVE, 0xDB, slice(1, None))
    (table,) = [p for p in segments(PROGRESSIVE) if p[1:2] == b"\xdb"][1:]
    with pytest.raises(ValueError, match="quantisation 1"):
        outline_jpeg(short[:-2] + table + short[-2:])


def bytes_that_end_in_a_zero(**options):
    """Give JPEGs whose data end in one zero: as one in eight does without colours."""
    found = []
    for seed in range(100):
        grey = np.random.default_rng(seed).integers(0, 256, (16, 24), np.uint8)
        file = io.BytesIO()
        Image.fromarray(grey).convert("RGB").save(file, "JPEG", **options)
        jpeg = file.getvalue()
        if jpeg[-3] == 0 and jpeg[-4] not in {0, 0xFF}:
            found.append(jpeg)
    assert len(found) > 3
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"subsampling": "4:2:0"},
        {"subsampling": "4:4:4", "quality": 50},
        {"subsampling": "4:2:0", "restart_marker_rows": 1},
    ],
)
def test_a_zero_of_the_data_is_known_without_decoding(options):
    found = bytes_that_end_in_a_zero(**options)
    known = [jpeg for jpeg in found if not outline_jpeg(jpeg).zeros]
    assert len(known) > len(found) / 2
    for jpeg in known:
        assert outline_jpeg(jpeg).zeros == ()
        more = jpeg[:-2] + b"\0" + jpeg[-2:]
        assert outline_jpeg(more).zeros == ((len(jpeg) - 3, len(jpeg) - 1),)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_zero_behind_the_data_is_looked_at(mode, optimize):
    for seed in range(60):
        pixels = np.random.default_rng(seed).integers(100, 120, (16, 24, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(file, "JPEG", optimize=optimize)
        data, end = file.getvalue()[:-2], file.getvalue()[-2:]
        if data[-1] == 0:
            continue  # which may be of the data
        place = ((len(data), len(data) + 1),)
        assert outline_jpeg(data + b"\0" + end).zeros == place
        if not optimize and data[-1] & 0b111:  # as of who fills bytes with zeros
            data = data[:-1] + bytes([data[-1] & data[-1] + 1])
            assert decode_frame(data + end).shape[:2] == (16, 24)
            if data[-1]:
                assert outline_jpeg(data + b"\0" + end).zeros == place


def test_where_values_may_end_a_block_zeros_are_looked_at():
    for jpeg in bytes_that_end_in_a_zero(quality=98, subsampling="4:2:0"):
        assert outline_jpeg(jpeg).zeros == ((len(jpeg) - 3, len(jpeg) - 2),)


def test_a_scan_of_no_component_is_left_to_the_codec():
    at = BASELINE.index(b"\xff\xda") + 4
    jpeg = BASELINE[:at] + b"\0" + BASELINE[at + 1 : -2] + b"\0" + BASELINE[-2:]
    assert outline_jpeg(jpeg).zeros
    with pytest.raises(CorruptFrameError):
        decode_frame(jpeg)
