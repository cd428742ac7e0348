"""`gulpio2.codecs.frame_sizes`: the sizes of JPEGs."""

import pytest

from gulpio2.codecs.frame_sizes import Size, SizeReader, describe_sizes, why_not_alike
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.testing import make_frames


def jpeg_of(height, width):
    return encode_frame(make_frames(1, height, width)[0], EncoderSettings())


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_each_has_its_own_size(kind):
    reader = SizeReader()
    sizes = [(24, 32), (24, 32), (24, 18), (24, 32), (16, 16), (16, 16)]
    found = [reader.size_of(kind(jpeg_of(*size))) for size in sizes]
    assert found == [(*size, 3) for size in sizes]


def test_a_grey_one_is_told_apart():
    colour = make_frames(1, 24, 32)[0]
    jpegs = [
        encode_frame(image, EncoderSettings()) for image in (colour, colour[..., 0])
    ]
    reader = SizeReader()
    found = [reader.size_of(jpeg) for jpeg in jpegs * 2]
    assert found == [(24, 32, 3), (24, 32)] * 2


def test_what_has_no_header_has_no_size():
    reader = SizeReader()
    assert reader.size_of(b"nothing") is None
    assert reader.size_of(jpeg_of(24, 32)) == (24, 32, 3)
    assert reader.size_of(b"") is None
    assert reader.size_of(jpeg_of(24, 32)[:40]) is None


def test_sizes_are_told_in_the_order_of_their_frames():
    sizes: dict[Size, int] = {(9, 8, 3): 7, (2, 3, 3): 0, (5, 4, 3): 2}
    assert describe_sizes(sizes) == (
        "3 sizes (width x height): frame 0 is 3x2, frame 2 4x5, frame 7 8x9"
    )


def test_grey_frames_are_named_where_others_are_not():
    assert describe_sizes({(2, 3): 0, (4, 5): 1}) == (
        "2 sizes (width x height): frame 0 is 3x2, frame 1 5x4"
    )
    sizes: dict[Size, int] = {(2, 3): 1, (2, 3, 3): 0, (4, 5): 7}
    assert describe_sizes(sizes) == (
        "2 sizes (width x height), grey and not: "
        "frame 0 is 3x2, frame 1 3x2 grey, frame 7 5x4 grey"
    )
    assert "cannot be an array" in why_not_alike(sizes)
    assert "colorspace='rgb'" in why_not_alike({(2, 3): 1, (2, 3, 3): 0})
