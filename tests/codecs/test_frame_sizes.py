"""`gulpio2.codecs.frame_sizes`: the sizes of JPEGs."""

import pytest

from gulpio2.codecs.frame_sizes import SizeReader, describe_sizes
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.testing import make_frames


def jpeg_of(height, width):
    return encode_frame(make_frames(1, height, width)[0], EncoderSettings())


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_each_has_its_own_size(kind):
    reader = SizeReader()
    sizes = [(24, 32), (24, 32), (24, 18), (24, 32), (16, 16), (16, 16)]
    assert [reader.size_of(kind(jpeg_of(*size))) for size in sizes] == sizes


def test_what_has_no_header_has_no_size():
    reader = SizeReader()
    assert reader.size_of(b"nothing") is None
    assert reader.size_of(jpeg_of(24, 32)) == (24, 32)
    assert reader.size_of(b"") is None
    assert reader.size_of(jpeg_of(24, 32)[:40]) is None


def test_sizes_are_told_in_the_order_of_their_frames():
    sizes = {(9, 8): 7, (2, 3): 0, (5, 4): 2}
    assert describe_sizes(sizes) == (
        "3 sizes (width x height): frame 0 is 3x2, frame 2 4x5, frame 7 8x9"
    )
