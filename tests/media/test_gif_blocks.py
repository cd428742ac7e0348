"""Bytes that are missing from a GIF take no frame with them without a word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage

NUM_FRAMES = 8


@pytest.fixture
def whole(tmp_path, write_video):
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 256, (48, 64, 3), np.uint8) for _ in range(NUM_FRAMES)]
    return write_video(
        tmp_path / "a.gif", noise, codec="gif", pix_fmt="rgb8", options={"g": "4"}
    )


def images_of(data):
    """Give for each image its first byte and those of its blocks."""
    at = 13 + (3 << ((data[10] & 7) + 1) if data[10] & 0x80 else 0)
    while data[at : at + 1] != b";":
        start, is_image = at, data[at : at + 1] == b","
        at += 2
        if is_image:
            flags = data[start + 9]
            at = start + 11 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
        blocks = []
        while data[at]:
            blocks.append(at)
            at += data[at] + 1
        at += 1
        if is_image:
            yield start, blocks, at


def shortened(data, longest):
    """Write the blocks of all images with fewer bytes."""
    done, result = 0, b""
    for _, blocks, end in images_of(data):
        content = b"".join(data[at + 1 : at + 1 + data[at]] for at in blocks)
        result += data[done : blocks[0]]
        while content:
            count = longest()
            part, content = content[:count], content[count:]
            result += bytes([len(part)]) + part
        done = end - 1
    return result + data[done:]


def test_bytes_that_are_missing_or_too_many_are_noticed(whole):
    data = whole.read_bytes()
    assert find_damage(whole) is None
    rng = random.Random(0)
    for _ in range(200):
        at, count = rng.randrange(800, len(data)), rng.choice([1, 4, 16, 64, 512, 1500])
        more = rng.random() < 0.3
        rest = data[at:] if more else data[at + count :]
        whole.write_bytes(data[:at] + data[at : at + count] * more + rest)
        try:
            found = sum(1 for _ in VideoFrames(whole).stored())
        except SourceReadError:
            continue
        assert found == NUM_FRAMES


def test_blocks_of_other_lengths_are_whole(whole):
    data = whole.read_bytes()
    rng = random.Random(0)
    for longest in (lambda: 254, lambda: 1, lambda: rng.randrange(1, 256)):
        whole.write_bytes(shortened(data, longest))
        assert find_damage(whole) is None
        assert sum(1 for _ in VideoFrames(whole).stored()) == NUM_FRAMES


def test_a_damaged_control_block_is_noticed(whole):
    data = bytearray(whole.read_bytes())
    place = data.index(b"!\xf9\x04", len(data) // 2)
    data[place + 2] = 5
    whole.write_bytes(data)
    damage = find_damage(whole)
    assert damage is not None
    assert f"control block at byte {place}" in damage.message


def test_a_frame_in_another_block_is_noticed_in_any_file(whole):
    """Where no image has several blocks to compare with."""
    data = whole.read_bytes()
    rng = random.Random(0)
    data = shortened(data, lambda: rng.randrange(100, 256))
    (_, _, first), (_, blocks, second), *_ = images_of(data)
    inside = data[first:second]
    content = inside + b"x" * (255 - len(inside) % 255)
    cut = blocks[1]
    parts = [content[at : at + 255] for at in range(0, len(content), 255)]
    whole.write_bytes(
        data[:cut] + b"".join(bytes([len(part)]) + part for part in parts) + data[cut:]
    )
    damage = find_damage(whole)
    assert damage is not None
    assert "a frame is lost" in damage.message
