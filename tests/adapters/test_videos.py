"""Videos from a tree of folders."""

from __future__ import annotations

import pytest

from gulpio2.adapters import VideoFolderAdapter
from gulpio2.adapters.sources import VIDEO_FORMATS
from gulpio2.errors import IngestSettingError, SourceReadError
from gulpio2.testing.adapters import AdapterTests


@pytest.fixture
def videos(tmp_path, make_video):
    """Give a folder of videos in class folders, of both default formats."""
    make_video(tmp_path / "videos" / "a" / "1.mp4", 5)
    make_video(tmp_path / "videos" / "b" / "2.webm", 7)
    return tmp_path / "videos"


class TestVideoFolder(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, videos, tmp_path):
        return VideoFolderAdapter(videos, tmp_path / "out")


def test_all_extensions_are_found(videos):
    adapter = VideoFolderAdapter(f"{videos}/", "out")
    assert [item["meta"] for item in adapter.iter_data()] == [
        {"id": "a-1.mp4", "label": "a", "path": str(videos / "a"), "idx": 0},
        {"id": "b-2.webm", "label": "b", "path": str(videos / "b"), "idx": 1},
    ]
    assert [len(list(item["frames"])) for item in adapter.iter_data()] == [5, 7]


def test_videos_of_other_endings_are_spoken_of(videos, caplog):
    (videos / "a" / "3.MOV").write_bytes(b"")
    (videos / "a" / "4.mkv").write_bytes(b"")
    (videos / "a" / "notes.txt").write_bytes(b"")
    assert len(VideoFolderAdapter(videos, "out")) == 2
    (record,) = caplog.records
    assert ".MOV (1), .mkv (1). Name the endings" in record.getMessage()


def test_size_and_rate_can_be_changed(videos):
    adapter = VideoFolderAdapter(videos, "out", [".mp4"], frame_size=24, frame_rate=48)
    (item,) = adapter.iter_data()
    assert {frame.shape for frame in item["frames"]} == {(24, 32, 3)}
    assert item["frames"].frame_rate == 48


def test_a_frame_rate_that_is_none_is_refused_at_once(videos):
    with pytest.raises(IngestSettingError, match="frame_rate is 'fast'"):
        VideoFolderAdapter(videos, "out", frame_rate="fast")


def test_the_frames_of_one_video(videos):
    frames = VideoFolderAdapter(videos, "out").get_bursted_frames(videos / "a/1.mp4")
    assert len(frames) == len(list(frames)) == 5


def test_an_unreadable_video_costs_its_own_item_only(videos):
    (videos / "a" / "1.mp4").write_bytes(b"no video")
    first, second = VideoFolderAdapter(videos, "out").iter_data()
    with pytest.raises(SourceReadError, match=r"a/1\.mp4"):
        list(first["frames"])
    assert len(list(second["frames"])) == 7


def test_every_ending_of_a_video_is_told_where_it_is_left_out(tmp_path, caplog):
    endings = VIDEO_FORMATS | {"asf", "vob", "y4m"}
    for ending in sorted(endings):
        (tmp_path / f"x.{ending}").touch()
    VideoFolderAdapter(tmp_path, tmp_path / "out", file_extensions=[".none"])
    for ending in endings:
        assert f".{ending} (1)" in caplog.text
