"""Sound frames, decoded with a tail: bytes behind them, which are not theirs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st

from gulpio2 import GulpDirectory, blocks
from gulpio2.codecs import decode
from gulpio2.codecs.decode import FrameDecoder
from gulpio2.codecs.first_frame import TAIL_BYTES
from gulpio2.codecs.frame_header import find_frame_header
from gulpio2.codecs.options import DecodeOptions
from gulpio2.sampling import sample_window
from gulpio2.testing import make_frames, make_gulp_directory
from gulpio2.torch import CenterCrop, GulpClipDataset, GulpLoader, ahead

if TYPE_CHECKING:
    from pathlib import Path

    from gulpio2.codecs.frame_header import FrameHeader

RNG = np.random.default_rng(0)
FIRST, NEXT = (
    bytes(simplejpeg.encode_jpeg(frame, 90, colorsubsampling="422"))
    for frame in RNG.integers(0, 256, (2, 48, 64, 3), np.uint8)
)
HEADER = cast("FrameHeader", find_frame_header(FIRST))
TAILS = {
    "the next frame": NEXT,
    "one that goes on": NEXT[-900:] + NEXT,
    "an end": b"\xff\xd9" * (TAIL_BYTES // 2),
    "zeros": b"",
    "ones": b"\xff" * TAIL_BYTES,
    "noise": RNG.bytes(TAIL_BYTES),
}


def decoded(
    decoder: FrameDecoder, jpeg: bytes, tail: bytes, *, sound: bool
) -> bytes | None:
    """Give the pixels, or None for an error."""
    block = b"##" + jpeg + tail[:TAIL_BYTES].ljust(TAIL_BYTES, b"\0")
    out = np.zeros(decoder.shape, np.uint8)
    try:
        decoder.decode(block, 2, 2 + len(jpeg), out, sound=sound)
    except ValueError:
        return None
    return out.tobytes()


@pytest.fixture
def given_bytes(monkeypatch):
    """Give a list that has the length of each JPEG that the codec gets."""
    lengths: list[int] = []

    def spy(data: memoryview, *args: Any) -> Any:
        lengths.append(len(data))
        return simplejpeg.decode_jpeg(data, *args)

    monkeypatch.setattr(decode, "_decode_jpeg", spy)
    return lengths


# ------------------------------------------------------------------ pixels
@given(
    st.integers(1, 70),
    st.integers(1, 90),
    st.sampled_from([1, 60, 90, 100]),
    st.sampled_from(["444", "422", "420", "440", "411"]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["rgb", "gray"]),
    st.sampled_from(sorted(TAILS)),
)
def test_a_frame_has_the_same_pixels_with_any_tail(
    height, width, quality, subsampling, scale, colorspace, tail
):
    noise = np.random.default_rng(height).integers(0, 256, (height, width, 3))
    jpeg = bytes(
        simplejpeg.encode_jpeg(
            noise.astype(np.uint8), quality, colorsubsampling=subsampling
        )
    )
    decoder = FrameDecoder(jpeg, DecodeOptions(scale, colorspace=colorspace))
    alone = decoded(decoder, jpeg, b"", sound=False)
    assert alone is not None
    assert decoded(decoder, jpeg, TAILS[tail], sound=True) == alone


@given(st.data())
def test_a_frame_whose_header_was_damaged_before_it_was_stored_has_no_tail(data):
    """A length in it could lead the codec into the next frame, without an error."""
    decoder = FrameDecoder(FIRST, DecodeOptions())
    jpeg = bytearray(FIRST)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(2, HEADER.scan_at - 1))
        jpeg[at] = data.draw(st.integers(0, 255))
    tail = TAILS[data.draw(st.sampled_from(sorted(TAILS)))]
    alone = decoded(decoder, bytes(jpeg), tail, sound=False)
    assert decoded(decoder, bytes(jpeg), tail, sound=True) == alone


@given(st.data())
def test_what_a_frame_with_damage_in_it_decodes_to_is_not_up_to_its_tail(data):
    decoder = FrameDecoder(FIRST, DecodeOptions())
    jpeg = bytearray(FIRST)
    for _ in range(data.draw(st.integers(1, 3))):
        # Anywhere, or near the end; any byte, or what may be taken for a marker.
        first = data.draw(st.sampled_from([HEADER.scan_at, len(jpeg) - 40]))
        at = data.draw(st.integers(first, len(jpeg) - 4))
        if data.draw(st.booleans()):
            jpeg[at] = data.draw(st.integers(0, 255))
        else:
            jpeg[at : at + 2] = bytes([0xFF, data.draw(st.integers(0xC0, 0xFE))])
    alone = decoded(decoder, bytes(jpeg), b"", sound=False)
    made = {decoded(decoder, bytes(jpeg), tail, sound=True) for tail in TAILS.values()}
    # A wrong length of a segment behind the scan may be an error with some of them.
    assert len(made - {None}) <= 1
    assert alone is None or None not in made


def test_a_frame_with_damage_in_it_that_the_codec_takes_alone_is_decoded():
    """Near the end of a frame the quick way remarks on what the slow one does not."""
    decoder = FrameDecoder(FIRST, DecodeOptions())
    num_remarked = 0
    for bit in range(8 * 40):
        jpeg = bytearray(FIRST)
        jpeg[-3 - bit // 8] ^= 1 << bit % 8
        alone = decoded(decoder, bytes(jpeg), b"", sound=False)
        if alone is not None:
            assert decoded(decoder, bytes(jpeg), NEXT, sound=True) is not None
            try:
                simplejpeg.decode_jpeg(bytes(jpeg) + NEXT)
            except ValueError:
                num_remarked += 1
    assert num_remarked


# ------------------------------------------------------------------ who has one
OTHER_HEADER = FIRST[: HEADER.scan_at - 1] + b"\1" + FIRST[HEADER.scan_at :]


@pytest.mark.parametrize(
    ("jpeg", "sound", "tail"),
    [
        (FIRST, True, TAIL_BYTES),
        (NEXT, True, TAIL_BYTES),
        (FIRST, False, 0),
        (OTHER_HEADER, True, 0),
        (FIRST[:-2] + bytes(2), True, 0),
    ],
    ids=[
        "the first",
        "one like it",
        "not compared",
        "another header",
        "without an end",
    ],
)
def test_only_a_frame_that_is_known_to_be_sound_has_a_tail(
    jpeg, sound, tail, given_bytes
):
    decoded(FrameDecoder(FIRST, DecodeOptions()), jpeg, NEXT, sound=sound)
    assert given_bytes == [len(jpeg) + tail]
    decoder = FrameDecoder(FIRST, DecodeOptions())
    plain = decoder.plain_jpegs(
        jpeg + bytes(TAIL_BYTES), [(7, len(jpeg))], 7, sound=sound
    )
    assert plain is not None
    assert [len(view) for view in plain] == given_bytes


def test_a_frame_of_several_scans_has_none(given_bytes):
    flags = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]
    jpeg = cv2.imencode(".jpg", make_frames(1, 40, 60)[0], flags)[1].tobytes()
    assert decoded(FrameDecoder(jpeg, DecodeOptions()), jpeg, NEXT, sound=True)
    assert given_bytes == [len(jpeg)]


Way = Literal["clip", "frames", "batch", "loader", "resized"]


def read_all(path: Path, way: Way, *, verify: Literal["frames", False]) -> int:
    """Read frames of each item; say how many were read."""
    directory = GulpDirectory(path, verify=verify, threads=2)
    ids = list(directory.merged_meta_dict)
    if way == "clip":
        return sum(len(directory.read_clip(id_, slice(0, 12, 2))) for id_ in ids)
    if way == "frames":
        return sum(len(directory.read_frames(id_, slice(12))[0]) for id_ in ids)
    if way == "batch":
        shape = directory.read_clips([(id_, range(12)) for id_ in ids]).shape
        return int(shape[0] * shape[1])
    dataset = GulpClipDataset(directory, partial(sample_window, clip_length=8))
    view = CenterCrop(16) if way == "resized" else None
    loader = GulpLoader(dataset, batch_size=2, view=view, output="numpy", threads=1)
    return sum(batch.clips.shape[0] * batch.clips.shape[1] for batch in loader)


@pytest.mark.parametrize("way", ["clip", "frames", "batch", "loader", "resized"])
def test_each_way_to_read_gives_the_codec_all_of_each_tail(
    way, tmp_path, given_bytes, monkeypatch
):
    # Memory as long as is needed, and no longer; read ahead on any machine.
    monkeypatch.setattr(blocks, "_STEP", 1)
    monkeypatch.setattr(blocks, "_kept", blocks._Kept())
    monkeypatch.setattr(ahead, "_STEP", 1)
    monkeypatch.setattr(ahead, "_SLOW_READ", 60)
    # Square, so that the view resizes the whole frame.
    path = tmp_path / "gulped"
    options = {"num_items": 2, "num_frames": 12, "height": 48, "width": 48}
    with make_gulp_directory(path, **options) as directory:
        entries = list(directory.merged_meta_dict.values())
    lengths = {
        length - padding
        for entry in entries
        for _, padding, length in entry["frame_info"]
    }
    num_frames = read_all(path, way, verify="frames")
    assert len(given_bytes) == num_frames > 0
    assert {length - TAIL_BYTES for length in given_bytes} <= lengths
    given_bytes.clear()
    assert read_all(path, way, verify=False) == num_frames
    assert len(given_bytes) == num_frames
    assert set(given_bytes) <= lengths
