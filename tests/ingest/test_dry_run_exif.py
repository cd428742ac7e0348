"""How a JPEG says that it is to be turned."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.ingest.oddities import exif_orientation
from gulpio2.ingest.survey import survey
from gulpio2.testing import FrameAdapter


def jpeg_of(turn=None, order="<", **more):
    exif = Image.Exif()
    exif.endian = order
    exif[271] = "Camera"
    if turn is not None:
        exif[274] = turn
    file = io.BytesIO()
    Image.new("RGB", (20, 10)).save(file, "JPEG", exif=exif, **more)
    return file.getvalue()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("turn", range(1, 9))
def test_it_is_read_in_both_byte_orders(turn, order):
    jpeg = jpeg_of(turn, order)
    with Image.open(io.BytesIO(jpeg)) as image:
        assert image.getexif()[274] == turn
    assert exif_orientation(jpeg) == turn


def test_segments_before_it_and_bytes_that_fill_are_passed_over():
    jpeg = jpeg_of(6, comment=b"x" * 60_000)
    start = jpeg.index(b"\xff\xe1")
    between = b"\xff\xe1\0\x0ahttp://x" + b"\xff\xff\xff"
    assert exif_orientation(jpeg[:start] + between + jpeg[start:]) == 6


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(jpeg_of(), id="nothing said"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xd8", id="the first two bytes"),
        pytest.param(b"\xff\xd8\xff\xe1\0\0" * 9, id="segments of no length"),
        pytest.param(b"\xff\xd8\xff\xda" + jpeg_of(6)[2:], id="behind the image"),
        pytest.param(b"\xff\xd8\xff\xd9" + jpeg_of(6)[2:], id="behind the end"),
        pytest.param(b"x" + jpeg_of(6), id="no JPEG"),
        pytest.param(jpeg_of(6).replace(b"II*\0", b"XX*\0"), id="no byte order"),
    ],
)
def test_where_nothing_is_said_it_is_upright(data):
    assert exif_orientation(data) == 1


@given(st.integers(0, 200), st.binary(max_size=40))
def test_a_damaged_header_is_no_error(length, more):
    assert exif_orientation(jpeg_of(6)[:length] + more) in range(1, 9)
    header = b"\xff\xd8\xff\xe1\x7f\xffExif\0\0II*\0"
    assert exif_orientation(header + more) in range(1, 9)


@pytest.mark.parametrize("turn", [0, 9, 255])
def test_a_number_that_means_nothing_is_upright(turn):
    jpeg = jpeg_of(6)
    entry = b"\x12\x01\x03\0\x01\0\0\0"
    changed = jpeg.replace(entry + b"\x06\0", entry + bytes([turn, 0]))
    assert changed != jpeg
    assert exif_orientation(changed) == 1


def test_frames_that_an_adapter_gives_as_jpegs_are_looked_at_too():
    class Turned(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": [jpeg_of(1), jpeg_of(8)]}

    (oddity,) = survey(Turned(num_items=30), EncoderSettings()).oddities
    assert (oddity.sampled, oddity.expected, oddity.fails) == (20, 30, False)
    assert oddity.kind == "stored as it lies in the file, where EXIF turns it"
    assert oddity.examples[0].endswith(", frame 1: by 90 degrees counterclockwise")
