"""Frames by index, as of the lists that GulpIO2 0.0.4 gave."""

import numpy as np
import pytest

from gulpio2.adapters import VideoFolderAdapter
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.indexing import FramesByIndex
from gulpio2.media.video import VideoFrames
from gulpio2.testing import make_frames


class Drawn(FramesByIndex):
    """Five frames, and how many were drawn."""

    def __init__(self):
        self.drawn = 0

    def __iter__(self):
        for frame in make_frames(5):
            self.drawn += 1
            yield frame


@pytest.mark.parametrize("index", [0, 4, -1, -5, slice(1, 3), slice(None, None, -2)])
def test_an_index_gives_what_it_gives_of_a_list(index):
    assert np.array_equal(Drawn()[index], make_frames(5)[index])


@pytest.mark.parametrize("index", [5, -6, 10**30, -(10**30)])
def test_there_is_no_other_frame(index):
    with pytest.raises(IndexError, match=f"Drawn has no frame {index}: it has fewer"):
        Drawn()[index]


@pytest.mark.parametrize("index", ["1", 1.0, None, np.float64(1), [1], ()], ids=repr)
def test_what_is_no_index_is_said_and_no_frame_drawn(index):
    frames = Drawn()
    with pytest.raises(TypeError, match=r"Drawn has no frame .*: give a whole number"):
        frames[index]
    assert not frames.drawn


def test_the_first_frame_costs_one():
    frames = Drawn()
    assert frames[0].shape == (24, 32, 3)
    assert frames.drawn == 1


def test_frames_can_be_stacked():
    assert np.stack(Drawn()).shape == (5, 24, 32, 3)  # type: ignore[call-overload]  # a sequence to it


def test_the_frames_of_adapters_have_indices(write_video, tmp_path):
    video = write_video(tmp_path / "v.mp4", make_frames(3))
    (item,) = VideoFolderAdapter(tmp_path, tmp_path / "out").iter_data(slice(0, 1))
    deferred = DeferredFrames(lambda: VideoFrames(video))
    for frames in (item["frames"], VideoFrames(video), deferred):
        assert np.array_equal(frames[1], list(frames)[1])
        own = f"{type(frames).__name__} has no frame '1'"
        with pytest.raises(TypeError, match=own):
            frames["1"]  # type: ignore[call-overload]  # on purpose
