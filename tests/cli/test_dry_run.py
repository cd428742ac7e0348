"""``gulp2 ingest --dry-run``: what it tells, and that it tells what the run does."""

import json
import shutil
from pathlib import Path

import pytest

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.format.journal import Copying
from gulpio2.testing import make_frames


def test_a_dry_run_lists_and_writes_nothing(gulp2, tmp_path, make_video):
    for n in range(7):
        make_video(tmp_path / "videos" / f"{n}.mp4", 1)
    words = ["ingest", "video-folder", "videos", "out", "--videos-per-chunk", 2]
    result = gulp2(*words, "--dry-run")
    assert "7 items of VideoFolderAdapter would be ingested into 4 new chunks" in (
        result.stdout
    )
    assert "videos-0.mp4, videos-1.mp4, videos-2.mp4" in result.stdout
    assert "no folder" not in result.output, "the run makes it"
    assert not Path("out").exists()


def test_a_dry_run_counts_repeated_and_stored_ids(gulp2, tmp_path, make_video):
    for folder in ("a", "b"):
        make_video(tmp_path / "videos" / folder / "x" / "1.mp4", 1)
        make_video(tmp_path / "videos" / folder / "x" / f"only_{folder}.mp4", 1)
    words = ["ingest", "video-folder", "videos", "out"]
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    assert (plan["items"], plan["repeated_ids"], plan["already_stored"]) == (3, 1, 0)
    assert "1 of 4 items have an id that is taken" in plan["refused"]
    gulp2(*words, "--on-duplicate", "skip")
    before = sorted(Path("out").iterdir())
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    assert (plan["items"], plan["chunks"], plan["already_stored"]) == (0, 0, 3)
    text = gulp2(*words, "--dry-run", status=1).stdout
    assert "would be refused: 4 of 4 items" in text
    assert sorted(Path("out").iterdir()) == before


def test_a_dry_run_foretells_the_status_of_the_run(gulp2, tmp_path, make_video):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.mp4").write_bytes(b"none")
    make_video(tmp_path / "videos" / "1.mp4", 1)
    gulp2("ingest", "video-folder", "videos", "out")
    again = ["ingest", "video-folder", "videos", "out", "--on-duplicate"]
    for words, status, told in (
        (["ingest", "video-folder", "broken", "new"], 1, "none of them can be stored"),
        ([*again, "report"], 1, "1 item will fail: the id is taken"),
        ([*again, "skip"], 0, "already stored   1"),
    ):
        foretold = gulp2(*words, "--dry-run", status=status).stdout
        assert told in foretold
        gulp2(*words, "--dry-run", "--json", status=status)
        assert not Path("new").exists()
        gulp2(*words, status=status)
        shutil.rmtree("new", ignore_errors=True)
        gulp2(*words, "--dry-run", "--allow-failures")
    taken = gulp2(*again, "report", "--dry-run", "--json", status=1).stdout
    assert json.loads(taken)["taken_ids"] == 1


def test_a_dry_run_names_the_size_that_was_given(gulp2, tmp_path, make_video):
    make_video(tmp_path / "videos" / "1.mp4", 1)
    words = ["ingest", "video-folder", "videos", "out", "--frame-size", 16]
    assert "  90       this run's  " in gulp2(*words, "--dry-run").stdout


@pytest.mark.parametrize("more", [(), ("--json",), ("--resume",)])
def test_a_dry_run_of_nothing_is_refused_as_the_run_is(gulp2, tmp_path, more):
    (tmp_path / "videos").mkdir()
    words = ["ingest", "video-folder", "videos", "out", *more]
    for dry in ((), ("--dry-run",)):
        told = gulp2(*words, *dry, status=1).stderr
        assert "there are no items to ingest: VideoFolderAdapter" in told


def test_a_dry_run_is_of_what_the_run_would_store(gulp2, tmp_path, make_video):
    for n in range(6):
        make_video(tmp_path / "videos" / "a" / f"{n}.mp4", n + 1)
    words = ["ingest", "video-folder", "videos", "out", "--videos-per-chunk", 2]
    words += ["--dry-run", "--json"]
    plan = json.loads(gulp2(*words, "--shard", "2/3").stdout)
    assert (plan["items"], plan["chunks"], plan["refused"]) == (2, 1, None)
    assert plan["first_ids"] == ["a-2.mp4", "a-3.mp4"]
    assert plan["estimate"]["frames"] == 3 + 4
    gulp2(*words[:-2], "--shard", "1/1")
    Path("out/shard_1_of_1").rename("stored")
    make_video(tmp_path / "videos" / "a" / "6.mp4", 9)
    words[3] = "stored"
    plan = json.loads(gulp2(*words, "--on-duplicate", "skip").stdout)
    assert (plan["items"], plan["chunks"], plan["refused"]) == (1, 1, None)
    assert plan["first_ids"] == ["a-6.mp4"]
    assert plan["estimate"]["frames"] == 9


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_dry_run_of_resuming_is_of_what_is_left(
    gulp2, tmp_path, monkeypatch, is_listed
):
    (tmp_path / "ending.py").write_text(
        """
import os
from gulpio2.testing import FrameAdapter

class Ending(FrameAdapter):
    def __init__(self, source):
        super().__init__(num_items=10, list_ids=source == "listed")

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == os.environ.get("ENDS_AT"):
                raise KeyboardInterrupt
            yield item
"""
    )
    words = ["ingest", "ending.py:Ending", "listed" if is_listed else "not", "out"]
    words += ["--videos-per-chunk", "2", "--num-workers", "1"]
    monkeypatch.setenv("ENDS_AT", "item7")
    gulp2(*words, status=130)
    monkeypatch.delenv("ENDS_AT")
    journal = (tmp_path / "out" / "ingest.journal").read_bytes()

    def plan(*more, status=0):
        more = (*more, "--resume", "--dry-run", "--json")
        return json.loads(gulp2(*words, *more, status=status).stdout)

    left = plan()
    assert (left["refused"], left["items"], left["chunks"]) == (None, 4, 2)
    assert left["estimate"]["oddities"] == []
    other = plan("--videos-per-chunk", "3", status=1)
    assert "videos_per_chunk was 2 and is 3" in other["refused"]
    assert (tmp_path / "out" / "ingest.journal").read_bytes() == journal
    gulp2(*words, "--resume")
    assert (plan()["refused"], plan()["items"]) == (None, 0)
    assert "nothing to resume" in gulp2(*words, "--resume", "--dry-run").stdout


def test_other_settings_than_before_are_told_by_a_run_and_its_dry_run(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "a" / "x" / "1.mp4", 1)
    make_video(tmp_path / "b" / "x" / "2.mp4", 1)
    words = ["ingest", "video-folder", "--on-duplicate", "skip"]
    gulp2(*words, "a", "out", "--frame-size", 24)
    for more in ([], ["--dry-run"]):
        same = gulp2(*words, "b", "out", "--frame-size", 24, "--num-workers", 2, *more)
        assert "other settings" not in same.output
    other = [*words, "c", "out", "--quality", 70]
    make_video(tmp_path / "c" / "x" / "3.mp4", 1)
    text = "quality 70 (until now 90), frame_size as in the source (until now 24)"
    assert text in gulp2(*other, "--dry-run").stdout
    plan = json.loads(gulp2(*other, "--dry-run", "--json").stdout)
    assert plan["other_settings"] == [
        {"setting": "quality", "before": [90], "now": 70},
        {"setting": "frame_size", "before": [24], "now": None},
    ]
    result = gulp2(*other)
    assert result.stderr.count(text) == 1
    assert "gulp2: warning: out holds frames" in result.stderr


def test_a_dry_run_says_when_ids_are_not_known(gulp2, adapter_file):
    result = gulp2("ingest", f"{adapter_file}:MyAdapter", "s", "out", "--dry-run")
    assert "ids are known only while ingesting" in result.stdout
    assert not Path("out").exists()


@pytest.mark.parametrize("alone", [True, False])
def test_a_dry_run_tells_of_a_jpeg_that_is_stored_and_cannot_be_read(
    gulp2, tmp_path, alone
):
    (frame,) = make_frames(1, 64, 96)
    jpeg = encode_frame(frame, EncoderSettings())
    folder = tmp_path / "images" / "x"
    folder.mkdir(parents=True)
    (folder / "cut.jpg").write_bytes(jpeg[: len(jpeg) // 2] + b"\xff\xd9")
    if not alone:
        (folder / "good.jpg").write_bytes(jpeg)
    words = ["ingest", "image-folder", "images", "out"]
    told = gulp2(*words, "--dry-run").stdout
    assert "stored as it is, and not readable: 1 of the sample" in told
    assert "item 'x-cut.jpg', frame 0: a damaged or cut JPEG" in told
    assert f"frames           about {2 - alone}" in told
    gulp2(*words)


def test_a_dry_run_is_refused_where_the_place_of_the_run_is(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "1.mp4", 1)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "merging").mkdir()
    journal = Copying("merge", ("a",)).dump()
    (tmp_path / "merging" / "ingest.journal").write_bytes(journal)
    (tmp_path / "strange").mkdir()
    for name in ("data_00.gulp", "meta_00.gmeta"):
        (tmp_path / "strange" / name).write_bytes(b"")
    for output, told in (
        ("file/out", "file: Not a directory"),
        ("merging", "a merge into this folder was not finished"),
        ("strange", "data_00.gulp"),
    ):
        words = ["ingest", "video-folder", "videos", output]
        plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
        assert told in plan["refused"]
        gulp2(*words, status=1)
