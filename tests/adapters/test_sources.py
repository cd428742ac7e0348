"""Frame sources that look for their files when they are iterated, not before."""

from __future__ import annotations

import numpy as np
import pytest

from gulpio2.adapters.image_folders import folder_frames
from gulpio2.adapters.sources import (
    DeferredFrames,
    image_frames,
    single_video_frames,
    video_frames,
)
from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from gulpio2.types import FrameSource


def brightness(frames):
    """Give the mean of each frame, rounded."""
    return [round(float(np.asarray(frame).mean())) for frame in frames]


def test_a_deferred_source_is_found_once_and_late(make_jpeg, tmp_path):
    calls = []

    def find():
        calls.append(1)
        return image_frames([make_jpeg(tmp_path / "a.jpg", 50)])

    source = DeferredFrames(find)
    assert calls == []
    assert brightness(source) == brightness(source) == [50]
    assert len(source) == 1
    assert source.time_base is None
    assert [frame.pts for frame in source.stored()] == [None]
    assert isinstance(source.source_info(), dict)
    assert isinstance(source, FrameSource)
    assert calls == [1]


def test_a_folder_of_images_comes_sorted_by_name(make_jpeg, tmp_path):
    for name, value in [("b.jpg", 90), ("a.jpg", 10), ("c.png", 0)]:
        make_jpeg(tmp_path / "in" / name, value)
    assert brightness(folder_frames(tmp_path / "in")) == [10, 90]


@pytest.mark.parametrize(
    "names",
    [
        ["1.jpg", "2.jpg", "10.jpg", "100.jpg"],
        ["f_99998.jpg", "f_99999.jpg", "f_100000.jpg"],  # of a pattern such as f_%05d
        ["cam2-9.jpg", "cam2-10.jpg", "cam10-1.jpg"],
        ["12.25.jpg", "12.5.jpg", "100.125.jpg"],  # seconds
        ["1.05.jpg", "1.1.jpg", "1.25.jpg", "1.5.jpg", "10.00.jpg"],
        ["cam1.1.jpg", "cam1.2.jpg", "cam1.9.jpg", "cam1.10.jpg", "cam1.11.jpg"],
        ["cam1.8.jpg", "cam1.9.jpg", "cam1.10.jpg", "cam1.11.jpg"],
        ["v2.98.png.jpg", "v2.99.png.jpg", "v2.100.png.jpg", "v2.101.png.jpg"],
        ["1.5.jpg", "2.25.jpg", "2.5.jpg", "2.75.jpg"],
        ["v1.1.0.jpg", "v1.1.9.jpg", "v1.1.10.jpg", "v1.2.0.jpg", "v1.2.00.jpg"],
        ["a-1.jpg", "a.jpg", "a1.jpg", "a_1.jpg"],  # as by name
        ["01.jpg", "1.jpg"],
    ],
)
def test_images_of_a_folder_come_by_their_numbers(make_jpeg, tmp_path, names):
    for position, name in enumerate(names):
        make_jpeg(tmp_path / "in7" / name, 40 * position)
    expected = [40 * position for position in range(len(names))]
    assert brightness(folder_frames(tmp_path / "in7")) == expected


def test_images_may_be_resized(make_jpeg, tmp_path):
    path = make_jpeg(tmp_path / "a.jpg", height=48, width=64)
    assert [f.shape for f in image_frames([path], frame_size=24)] == [(24, 32, 3)]


def test_the_only_video_of_a_folder(make_video, tmp_path):
    make_video(tmp_path / "v" / "x.mp4", 6)
    source = single_video_frames(tmp_path / "v", frame_size=24)
    assert [frame.shape for frame in source] == [(24, 32, 3)] * 6


@pytest.mark.parametrize("frame_rate", [12, 12.0, "12"])
def test_a_video_may_be_resampled(make_video, tmp_path, frame_rate):
    path = make_video(tmp_path / "x.mp4", 48, frame_rate=24)
    source = video_frames(path, frame_rate=frame_rate)
    assert isinstance(source, VideoFrames)
    assert source.frame_rate == 12
    # FFmpeg's rule repeats a frame or two at the beginning.
    assert len(list(source)) == pytest.approx(24, abs=2)


@pytest.mark.parametrize("frame_rate", [None, 0])
def test_no_frame_rate_gives_all_frames(make_video, tmp_path, frame_rate):
    path = make_video(tmp_path / "x.mp4", 24, frame_rate=24)
    assert len(list(video_frames(path, frame_rate=frame_rate))) == 24


def test_images_of_a_folder_that_have_another_ending_are_told(
    make_jpeg, tmp_path, caplog
):
    for name in ("1.jpg", "2.JPG", "3.jpeg", "4.jpeg", "5.gif", "a.png", "notes.txt"):
        make_jpeg(tmp_path / "both" / name)
    assert len(list(folder_frames(tmp_path / "both"))) == 1
    (record,) = caplog.records
    assert record.getMessage() == (
        f"files in {tmp_path / 'both'} are left out for their endings: .JPG (1), .gif "
        "(1), .jpeg (2). Rename or convert them, or take them out of the folder"
    )
    make_jpeg(tmp_path / "other" / "1.JPG")
    with pytest.raises(SourceReadError, match=r"no \*\.jpg \(but \.JPG \(1\)\)\. Put"):
        list(folder_frames(tmp_path / "other"))
    make_jpeg(tmp_path / "mask" / "mask.png")
    with pytest.raises(SourceReadError, match=r"no \*\.jpg \(but \.png \(1\)\)\. Put"):
        list(folder_frames(tmp_path / "mask"))


def test_of_many_folders_with_other_endings_only_some_are_told(
    make_jpeg, tmp_path, caplog
):
    for number in range(25):
        for name in ("1.jpg", "preview.gif"):
            make_jpeg(tmp_path / f"item{number}" / name)
        assert len(list(folder_frames(tmp_path / f"item{number}"))) == 1
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 21
    assert "item19 are left out for their endings: .gif (1)" in told[19]
    assert told[20] == (
        f"files are left out for their endings in more than 20 folders of {tmp_path}; "
        "the others are not told"
    )


def test_of_many_folders_with_several_series_only_some_are_told(
    tmp_path, make_jpeg, caplog
):
    names = ("100%s_1.jpg", "100%s_2.jpg", "flow_1.jpg", "flow_1.gif")
    for number in range(25):
        for name in names:
            make_jpeg(tmp_path / f"item{number}" / name)
        assert len(list(folder_frames(tmp_path / f"item{number}"))) == 3
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 42  # those of the endings are counted by themselves
    assert f"{tmp_path}/item0 are named in several ways, *%s_*.jpg (2)" in told[1]
    assert told[41].startswith("images are named in several ways in more than 20")


def test_images_that_a_pattern_takes_are_not_told_to_be_left_out(
    make_jpeg, tmp_path, caplog
):
    for name in ("1.gif", "2.seg.jpe", "3.jpe"):
        make_jpeg(tmp_path / name)
    assert len(list(folder_frames(tmp_path, formats=["seg.jpe", "[gG]if"]))) == 2
    (record,) = caplog.records
    assert "are left out for their endings: .jpe (1). Rename" in record.getMessage()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: video_frames(path / "x.mp4"), r"x\.mp4"),
        (lambda path: image_frames([path / "x.jpg"]), r"x\.jpg"),
        (lambda path: folder_frames(path / "missing"), "there is no such folder"),
        (lambda path: folder_frames(path), r"holds no \*\.jpg\. Put"),
        (lambda path: single_video_frames(path), r"holds no file \*\.mp4"),
    ],
    ids=["video", "image", "no folder", "empty folder", "no single video"],
)
def test_what_is_missing_raises_when_it_is_iterated(tmp_path, make, message):
    source = make(tmp_path)
    with pytest.raises(SourceReadError, match=message):
        list(source)
    with pytest.raises(SourceReadError, match=message):
        list(source.stored())
