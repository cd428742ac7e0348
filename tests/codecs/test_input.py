"""What lies behind a frame is given to the codec, and changes nothing but its speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simplejpeg

from gulpio2.codecs import decode, jpeg
from gulpio2.codecs.decode import DecodeOptions, FrameDecoder
from gulpio2.codecs.input import NUM_BEHIND, codec_input
from gulpio2.errors import CorruptFrameError
from gulpio2.testing import make_frames

HEIGHT, WIDTH = 60, 90
END = b"\xff\xd9"


def encode(seed: int, subsampling: str = "420") -> bytes:
    (frame,) = make_frames(1, HEIGHT, WIDTH, seed=seed)
    noise = np.random.default_rng(seed).integers(-20, 20, frame.shape)
    frame = np.clip(frame.astype(int) + noise, 0, 255).astype(np.uint8)
    return bytes(
        simplejpeg.encode_jpeg(frame, quality=90, colorsubsampling=subsampling)
    )


JPEG, OTHER = encode(0), encode(1)
BEHIND = {
    "nothing": b"",
    "the padding alone": b"\0\0\0",
    "the next frame": b"\0\0" + OTHER,
    "a frame without its beginning": OTHER[700:],
    "another end": END + OTHER,
    "anything": np.random.default_rng(0).bytes(2 * NUM_BEHIND),
}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_lies_behind_in_the_block_is_given_too(kind):
    behind = bytes(range(256)) * 40
    block = kind(b"##" + JPEG + behind)
    given = codec_input(block, 2, 2 + len(JPEG))
    assert given == JPEG + behind[:NUM_BEHIND]
    assert given.obj is (block.obj if kind is memoryview else block), "copied"


@pytest.mark.parametrize("left", [0, 1, NUM_BEHIND - 1])
def test_zeros_are_given_where_the_block_ends(left):
    given = codec_input(b"##" + JPEG + b"x" * left, 2, 2 + len(JPEG))
    assert given == JPEG + bytes(NUM_BEHIND)


@pytest.mark.parametrize("stop", [1, len(JPEG) // 2, len(JPEG) - 2, len(JPEG) - 1])
def test_nothing_is_given_behind_a_cut_frame(stop):
    assert codec_input(JPEG + OTHER, 0, stop) == JPEG[:stop]


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize("subsampling", ["420", "422", "444", "440", "411", "Gray"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 2},
        {"scale": 8},
        {"colorspace": "gray"},
        {"crop": (0, 0, 20, WIDTH)},
        {"crop": (HEIGHT - 9, 3, 9, 30)},
    ],
    ids=str,
)
def test_pixels_are_those_of_the_frame_alone(options, subsampling, behind, monkeypatch):
    if subsampling == "Gray":
        luma = simplejpeg.decode_jpeg(JPEG, "GRAY")
        data = bytes(simplejpeg.encode_jpeg(luma, 90, "GRAY"))
    else:
        data = encode(0, subsampling)
    decoder = FrameDecoder(data, DecodeOptions(**options))
    found = np.zeros(decoder.shape, np.uint8)
    decoder.decode(b"##" + data + behind, 2, 2 + len(data), found)
    expected = np.ones(decoder.shape, np.uint8)
    alone = lambda block, start, stop: memoryview(block)[start:stop]  # noqa: E731
    monkeypatch.setattr(decode, "codec_input", alone)
    decoder.decode(data, 0, len(data), expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize("missing", [1, 2, 3, 200])
def test_a_frame_without_its_end_is_damaged_whatever_lies_behind(missing, behind):
    stop = len(JPEG) - missing
    decoder = FrameDecoder(JPEG, DecodeOptions())
    out = np.zeros(decoder.shape, np.uint8)
    for block in (JPEG[:stop] + behind, JPEG + behind):  # its record ends too early
        with pytest.raises(CorruptFrameError, match="damaged or cut"):
            decoder.decode(block, 0, stop, out)
        (found,) = decoder.plain_jpegs(block, ((0, stop),), 0) or [memoryview(b"")]
        assert found == JPEG[:stop]


def verdict(decoder: FrameDecoder, block: bytes, stop: int) -> Any:
    out = np.zeros(decoder.shape, np.uint8)
    try:
        decoder.decode(block, 0, stop, out)
    except CorruptFrameError:
        return None
    return out


def test_what_is_found_of_damage_does_not_depend_on_what_lies_behind():
    """Where the codec is at its end: there it may take the one way or the other."""
    rng = np.random.default_rng(0)
    decoder = FrameDecoder(JPEG, DecodeOptions())
    num_damaged = 0
    for _ in range(1000):
        data = bytearray(JPEG)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data) - 300, len(data) - 2)] ^= 1 << rng.integers(8)
        found = [
            verdict(decoder, bytes(data) + behind, len(data))
            for behind in BEHIND.values()
        ]
        try:
            found.append(jpeg.decode_frame(bytes(data)))
        except CorruptFrameError:
            found.append(None)
        num_damaged += found[0] is None
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])
    assert 100 < num_damaged < 900


def test_every_way_to_a_frame_gives_the_codec_what_lies_behind(monkeypatch):
    lengths = []

    def called(data, *arguments, **named):
        lengths.append(len(data))
        return simplejpeg.decode_jpeg(data, *arguments, **named)

    decoder = FrameDecoder(JPEG, DecodeOptions())
    out = np.zeros(decoder.shape, np.uint8)
    monkeypatch.setattr(decode, "_decode_jpeg", called)
    decoder.decode(JPEG + OTHER, 0, len(JPEG), out)
    spans = ((0, len(JPEG)),)
    (found,) = decoder.plain_jpegs(JPEG + OTHER, spans, 0) or [memoryview(b"")]
    decoder.decode_plain([(found, out)])
    assert lengths == [len(JPEG) + NUM_BEHIND] * 2
