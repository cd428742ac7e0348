"""Memory for frames: where it begins, and that it changes nothing but the speed."""

from __future__ import annotations

import numpy as np
import pytest
import simplejpeg

from gulpio2.codecs.output import empty_frames
from gulpio2.testing import make_frames, make_gulp_directory
from gulpio2.torch.ring import make_slots

SMALL, LARGE = (256, 340, 3), (720, 1280, 3)


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("lead", [(), (1,), (16,), (2, 16)])
def test_frames_of_a_small_size_begin_at_odd_addresses(lead):
    array = empty_frames((*lead, *SMALL))
    assert array.shape == (*lead, *SMALL)
    assert array.dtype == np.uint8
    assert array.flags.c_contiguous
    assert array.flags.writeable
    frames = array.reshape(-1, *SMALL)
    assert all(address(row) % 2 for frame in frames for row in frame)


def test_frames_of_a_large_size_begin_where_memory_does():
    assert address(empty_frames((2, *LARGE))) % 16 == 0


@pytest.mark.parametrize("shape", [(0, *SMALL), (0, 0, 3), (3, 0, 4, 1)])
def test_there_may_be_none(shape):
    assert empty_frames(shape).shape == shape


@pytest.mark.parametrize("subsampling", ["420", "422", "444", "Gray"])
@pytest.mark.parametrize("width", [64, 65, 340])
@pytest.mark.parametrize("fancy", [False, True])
def test_pixels_are_the_same_wherever_the_memory_begins(width, subsampling, fancy):
    (frame,) = make_frames(1, 48, width, seed=width)
    space = "RGB"
    if subsampling == "Gray":
        frame, space = np.ascontiguousarray(frame[..., :1]), "GRAY"
    data = simplejpeg.encode_jpeg(frame, 90, space, subsampling)
    found = []
    for offset in (0, 1, 2, 16, 33):
        memory = np.zeros(frame.size + 64, np.uint8)
        start = (offset - address(memory)) % 32
        out = memory[start : start + frame.size].reshape(frame.shape)
        simplejpeg.decode_jpeg(
            data, space, fastdct=True, fastupsample=not fancy, buffer=out
        )
        assert not memory[:start].any()
        assert not memory[start + frame.size :].any()
        found.append(out)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_clips_and_batches_lie_in_such_memory(tmp_path):
    with make_gulp_directory(tmp_path, num_items=2, num_frames=4) as directory:
        clip = directory.read_clip("item0")
        clips = directory.read_clips([("item0", None), ("item1", None)])
    (slot,) = make_slots(1, (2, 4, *SMALL), tensor=False, pinned=False)
    for array in (clip, clips, slot.array):
        assert address(array) % 2
