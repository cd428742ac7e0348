"""``gulp2 ingest --dry-run``: what it tells, and that it tells what the run does."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

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
    assert "1 of 4 items has an id that is taken" in plan["refused"]
    gulp2(*words, "--on-duplicate", "skip")
    before = sorted(Path("out").iterdir())
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    assert (plan["items"], plan["chunks"], plan["already_stored"]) == (0, 0, 3)
    text = gulp2(*words, "--dry-run", status=1).stdout
    assert "would be refused: 4 of 4 items" in text
    assert sorted(Path("out").iterdir()) == before


def test_a_dry_run_finds_each_item_that_will_fail_where_it_is_to_read_all(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "0.mp4", 1)
    for n in range(1, 60):
        shutil.copy(tmp_path / "videos" / "0.mp4", tmp_path / "videos" / f"{n}.mp4")
    for n in (7, 31, 58):
        (tmp_path / "videos" / f"{n}.mp4").write_bytes(b"none")
    words = ["ingest", "video-folder", "videos", "out", "--dry-run", "--json"]
    sampled = json.loads(gulp2(*words, "--allow-failures").stdout)["estimate"]
    assert sampled["sampled"] < 60
    words += ["--sample-share", "1"]
    found = json.loads(gulp2(*words, status=1).stdout)["estimate"]
    assert found["sampled"] == 60
    (oddity,) = found["oddities"]
    assert (oddity["sampled"], oddity["expected"]) == (3, 3)
    for n in (7, 31, 58):
        assert any(f"/{n}.mp4" in each for each in oddity["examples"])


@pytest.mark.parametrize(
    "words",
    [
        ["--dry-run", "--sample-share", "0"],
        ["--dry-run", "--sample-share", "nan"],
        ["--sample-share", "1"],
    ],
)
def test_a_share_of_no_sample_is_wrong_usage(gulp2, tmp_path, words):
    (tmp_path / "videos").mkdir()
    result = gulp2("ingest", "video-folder", "videos", "out", *words, status=2)
    assert "--sample-share" in result.stderr


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


def test_a_dry_run_that_finds_an_item_that_will_fail_ends_as_the_run_does(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "1.mp4", 1)
    (tmp_path / "videos" / "2.mp4").write_bytes(b"none")
    words = ["ingest", "video-folder", "videos", "out"]
    for more in ((), ("--json",)):
        gulp2(*words, "--dry-run", *more, status=1)
        gulp2(*words, "--dry-run", *more, "--allow-failures")
    gulp2(*words, status=1)
    (tmp_path / "videos" / "2.mp4").unlink()
    gulp2(*words, "--dry-run", "--on-duplicate", "skip")


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
        assert not (tmp_path / "out").exists()


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


def test_a_dry_run_of_resuming_ends_as_resuming_does_where_items_have_failed(
    gulp2, tmp_path, monkeypatch
):
    (tmp_path / "failing.py").write_text(
        """
import os
from gulpio2.testing import FrameAdapter

class Failing(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=6, bad=(1,))

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == os.environ.get("ENDS_AT"):
                raise KeyboardInterrupt
            yield item
"""
    )
    words = ["ingest", "failing.py:Failing", "out"]
    words += ["--videos-per-chunk", "2", "--num-workers", "1"]
    monkeypatch.setenv("ENDS_AT", "item4")
    gulp2(*words, status=130)
    monkeypatch.delenv("ENDS_AT")
    words += ["--resume"]
    shown = gulp2(*words, "--dry-run", status=1).stdout
    assert "failed before    1, which resuming does not try again" in shown
    gulp2(*words, "--dry-run", "--allow-failures")
    gulp2(*words, status=1)  # what is left is stored
    shown = gulp2(*words, "--dry-run", status=1).stdout
    assert "nothing to resume: it is complete, but for what failed\n" in shown
    gulp2(*words, status=1)


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
    assert text in gulp2(*other, "--dry-run").stdout.splitlines()[-1]
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
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "strange").mkdir()
    for name in ("data_00.gulp", "meta_00.gmeta"):
        (tmp_path / "strange" / name).write_bytes(b"")
    for output, told in (
        ("file/out", "file: Not a directory"),
        ("link", "or a link that leads nowhere"),
        ("merging", "a merge into this folder was not finished"),
        ("strange", "data_00.gulp"),
    ):
        words = ["ingest", "video-folder", "videos", output]
        plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
        assert told in plan["refused"]
        gulp2(*words, status=1)


@pytest.fixture
def free_blocks(monkeypatch):
    """Leave so many kilobytes free, as the system tells it; the list may be changed."""
    real, blocks = os.statvfs, [20]

    def statvfs(path):
        values = list(real(path))
        values[:5] = [1024, 1024, 1000 if blocks[0] else 0, blocks[0], blocks[0]]
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return blocks


def test_a_dry_run_is_refused_where_the_run_has_no_room(
    gulp2, adapter_file, free_blocks
):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "deep/out"]
    words += ["--num-items", "200", "--num-workers", "1"]
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    assert (plan["fits"], plan["free_bytes"]) == (False, 20 * 1024)
    told = r"deep/out has 0\.0 MB free, and the run needs about 0\.\d MB and 200 frames"
    assert re.match(told, plan["refused"])
    assert plan["estimate"]["num_bytes"] > 20 * 1024
    text = gulp2(*words, "--dry-run", status=1).stdout
    assert f"as it stands, it would be refused: {plan['refused']}" in text
    assert "--ignore-space begins all the same" in plan["refused"]
    assert not Path("deep").exists()
    assert re.search(told, gulp2(*words, status=1).stderr)
    assert list(Path("deep/out").glob("*.gulp")) == []
    # Which is a reason less where one insists.
    words.append("--ignore-space")
    plan = json.loads(gulp2(*words, "--dry-run", "--json").stdout)
    assert (plan["fits"], plan["refused"]) == (False, None)
    assert "it would run out of space" in gulp2(*words, "--dry-run").stdout
    gulp2(*words)


def test_a_short_run_is_not_refused_but_would_end_for_lack_of_room(
    gulp2, adapter_file, free_blocks
):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out", "--num-items", 199]
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    assert (plan["fits"], plan["refused"]) == (False, None)
    text = gulp2(*words, "--dry-run", status=1).stdout
    assert "it would run out of space: out has 20.5 kB free" in text
    gulp2(*words, "--dry-run", "--ignore-space")
    # Unfinished files make room, or are there already.
    Path("out").mkdir()
    Path("out/data_0.gulp.x.partial").write_bytes(bytes(1 << 20))
    plan = json.loads(gulp2(*words, "--dry-run", "--json").stdout)
    assert (plan["fits"], plan["free_bytes"]) == (True, 20 * 1024 + (1 << 20))


def test_nothing_is_said_of_room_that_nobody_knows(gulp2, adapter_file, free_blocks):
    free_blocks[0] = 0
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out", "--num-items", 200]
    plan = json.loads(gulp2(*words, "--dry-run", "--json").stdout)
    assert (plan["fits"], plan["free_bytes"], plan["refused"]) == (None, None, None)
    assert "free" not in gulp2(*words, "--dry-run").stdout


def test_the_bar_of_a_dry_run_grows_with_what_is_looked_at(gulp2, tmp_path):
    (tmp_path / "slow.py").write_text(
        """
import time
from gulpio2.testing import FrameAdapter

class Slow(FrameAdapter):
    def __init__(self, source):
        super().__init__(num_items=300, num_frames=40)

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            time.sleep(0.02)
            number = item["meta"]["number"]
            yield {**item, "frames": [*item["frames"]][: 1 + number**2 % 40]}
"""
    )
    result = gulp2("ingest", "slow.py:Slow", "source", "out", "--dry-run")
    (looked_at,) = re.findall(r"judged by +(\d+) items", result.stdout)
    assert int(looked_at) > 40
    *_, last = re.findall(r"(\d+)/(\d+) items", result.stderr)
    assert last == (looked_at, looked_at)


def _write_turned(path, turn, order):
    exif = Image.Exif()
    exif.endian = order
    exif[271] = "Camera"
    exif[274] = turn
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (turn, 90, 30)).save(path, exif=exif)


@pytest.mark.parametrize("size", [(), ("--img-size", 20)])
def test_a_dry_run_lists_images_that_exif_would_turn(gulp2, tmp_path, size):
    for turn in range(1, 9):
        path = tmp_path / "images" / "x" / f"{turn}.jpg"
        _write_turned(path, turn, "<>"[turn % 2])
    Image.new("RGB", (40, 30)).save(tmp_path / "images" / "x" / "none.jpg")
    words = ["ingest", "image-folder", "images", "out", *size]
    text = gulp2(*words, "--dry-run").stdout
    assert (
        "stored as it lies in the file, where EXIF turns it: 7 of the sample, so about "
        "7 items to be expected"
    ) in text
    assert "item 'x-2.jpg', frame 0: mirrored, left and right" in text
    assert "item 'x-3.jpg', frame 0: by 180 degrees" in text
    plan = json.loads(gulp2(*words, "--dry-run", "--json").stdout)
    assert [odd["fails"] for odd in plan["estimate"]["oddities"]] == [False]


def test_one_line_tells_of_all_frames_that_exif_would_turn(gulp2, tmp_path):
    for turn in (1, 6, 8, 1):
        number = len([*(tmp_path).rglob("*.jpg")])
        _write_turned(tmp_path / "frames" / f"{number}.jpg", turn, "<")
    (tmp_path / "t.csv").write_text("path,id\nframes,a\n")
    text = gulp2("ingest", "table", "t.csv", "out", "--dry-run").stdout
    assert "where EXIF turns it: 1 of the sample" in text
    note = "item 'a', frame 1: by 90 degrees clockwise, and 1 more of its frames"
    assert note in text


@pytest.fixture
def telling(tmp_path):
    """Make a module whose adapter tells what the test wants it to."""
    (tmp_path / "telling.py").write_text(
        """
import os
from gulpio2.testing import FrameAdapter

class Telling(FrameAdapter):
    def __init__(self, name, number=0, edition=1, lists_ids=True):
        super().__init__(num_items=4)
        self.name, self.number, self.lists_ids = name, number, lists_ids
        self.metainfo = {"edition": edition}

    def item_ids(self):
        return [self.name_of(n) for n in range(4)] if self.lists_ids else None

    def name_of(self, n):
        name = f"{self.name}{n}"
        return name + "\\udcff" if self.name == "odd" and n % 2 else name

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            id_ = self.name_of(item["meta"]["number"])
            if id_ == os.environ.get("ENDS_AT"):
                raise KeyboardInterrupt
            yield {**item, "id": id_}

    def label_mapping(self):
        return {"a": self.number}

    def describe(self):
        return {}
"""
    )
    return "telling.py:Telling"


def test_a_dry_run_is_refused_for_labels_as_the_run_is(gulp2, telling):
    gulp2("ingest", telling, "one", "out")
    other = ["ingest", telling, "two", "out", "--number", "1"]
    told = "out has 'a' as 0, this run as 1"
    plan = json.loads(gulp2(*other, "--dry-run", "--json", status=1).stdout)
    assert told in plan["refused"]
    assert told in gulp2(*other, status=1).stderr


def test_a_dry_run_warns_of_what_the_run_warns_of(gulp2, telling):
    gulp2("ingest", telling, "one", "out")
    words = ["ingest", telling, "odd", "out", "--edition", "2"]
    for more in (["--dry-run"], ["--dry-run", "--json"], []):
        warnings = gulp2(*words, *more).stderr
        assert "warning: 2 ids are no text in UTF-8" in warnings
        assert "another 'edition' in its metainfo" in warnings


def test_a_dry_run_warns_where_the_run_gives_an_interrupted_one_up(gulp2, telling):
    words = ["ingest", telling, "one", "out", "--videos-per-chunk"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENDS_AT", "one2")
        gulp2(*words, "1", "--num-workers", "1", status=130)
    words = [*words, "2", "--on-duplicate", "skip"]
    for more in (["--dry-run"], []):
        warnings = gulp2(*words, *more).stderr
        assert "an ingest that was interrupted is given up for this one" in warnings


@pytest.mark.parametrize(
    ("choice", "status", "told"),
    [
        ("raise", 1, "it would be refused: item 'one0' has an id that is taken"),
        ("skip", 0, "about 4 items will be skipped"),
        ("report", 1, "about 4 items will fail"),
    ],
)
def test_a_dry_run_ends_as_the_run_does_where_it_meets_ids_that_are_taken(
    gulp2, telling, choice, status, told
):
    words = ["ingest", telling, "one", "out", "--no-lists-ids"]
    gulp2(*words)
    words += ["--on-duplicate", choice]
    assert told in gulp2(*words, "--dry-run", status=status).stdout
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=status).stdout)
    assert (plan["refused"] is not None) == (choice == "raise")
    gulp2(*words, status=status)


def test_a_dry_run_finds_ids_that_are_no_utf_8_also_where_none_are_listed(
    gulp2, telling
):
    words = ["ingest", telling, "odd", "out", "--no-lists-ids"]
    text = gulp2(*words, "--dry-run").stdout
    assert "id that is no text in UTF-8: 2 of the sample, so about 2 items" in text
    listed = gulp2(*words[:-1], "--dry-run").stdout
    assert "UTF-8" not in listed, "there the warning tells of all"


def test_a_dry_run_is_refused_where_an_id_is_given_twice_that_is_listed_once(
    gulp2, tmp_path
):
    (tmp_path / "twice.py").write_text(
        """
from gulpio2.testing import FrameAdapter

class Twice(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=4)

    def item_ids(self):
        return super().item_ids()

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": "item0"} if item["id"] == "item3" else item
"""
    )
    words = ["ingest", "twice.py:Twice", "out"]
    told = gulp2(*words, "--dry-run", "--json", status=1).stdout
    assert "does iter_data give the items of its slice" in json.loads(told)["refused"]
    assert "the id 'item0' (position 3)" in gulp2(*words, status=1).stderr


def test_of_many_items_that_would_fail_some_are_named_and_the_rest_told_of(
    gulp2, tmp_path
):
    (tmp_path / "broken").mkdir()
    for number in range(10, 35):
        (tmp_path / "broken" / f"{number}.mp4").write_bytes(b"none")
    words = ["ingest", "video-folder", "broken", "new", "--dry-run"]
    text = gulp2(*words, status=1).stdout
    named = re.findall(r"^    .*broken/(\d+)\.mp4", text, re.MULTILINE)
    found = json.loads(gulp2(*words, "--json", status=1).stdout)["estimate"]
    (oddity,) = found["oddities"]
    assert len(named) == 3
    assert f"    --json names {found['sampled'] - 3} more\n" in text
    assert len(oddity["examples"]) == found["sampled"] > 20


def test_where_all_items_are_read_all_that_would_fail_are_named(gulp2, tmp_path):
    (tmp_path / "broken").mkdir()
    for number in range(10, 35):
        (tmp_path / "broken" / f"{number}.mp4").write_bytes(b"none")
        _write_turned(tmp_path / "frames" / f"{number}" / "0.jpg", 6, "<")
    words = ["--dry-run", "--sample-share", "1"]
    text = gulp2("ingest", "video-folder", "broken", "new", *words, status=1).stdout
    named = re.findall(r"^    .*broken/(\d+)\.mp4", text, re.MULTILINE)
    assert named == [f"{number}" for number in range(10, 35)]
    assert "more" not in text
    # Of what is stored some are enough.
    text = gulp2("ingest", "frame-folder", "frames", "new", *words).stdout
    assert text.count("\n    item ") == 3
    assert "    --json names 22 more\n" in text


def test_a_dry_run_tells_of_items_that_the_adapter_does_not_give(gulp2, tmp_path):
    (tmp_path / "gaps.py").write_text(
        """
from gulpio2.testing import FrameAdapter


class Gaps(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=6)

    def item_ids(self):
        return None

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] % 3:
                yield item
"""
    )
    words = ["ingest", "gaps.py:Gaps", "out"]
    text = gulp2(*words, "--dry-run", status=1).stdout
    assert "not given: 2 of the sample, so about 2 items will be missing" in text
    assert "\n    position 3: the adapter gives no item" in text
    plan = json.loads(gulp2(*words, "--dry-run", "--json", status=1).stdout)
    (odd,) = plan["estimate"]["oddities"]
    assert (odd["kind"], odd["sampled"], odd["fails"]) == ("not given", 2, True)
    assert "counts 6 items and gave 4" in gulp2(*words, status=1).stderr


INTERRUPTING = """
import os
import signal
from gulpio2.testing import FrameAdapter


class Interrupting(FrameAdapter):
    def __init__(self, at=0):
        super().__init__(num_items=12, bad=(1,))
        self.at, self.process = at, os.getpid()

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] == self.at:
                os.kill(self.process, signal.SIGINT)  # as Ctrl-C
                signal.pause()
            yield item
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("at", [0, 8])
def test_a_dry_run_that_is_interrupted_tells_what_it_has_found(tmp_path, workers, at):
    (tmp_path / "interrupting.py").write_text(INTERRUPTING)
    words = ["ingest", "interrupting.py:Interrupting", "out", "--at", f"{at}"]
    words += ["--dry-run", "--num-workers", workers]

    def done(*more):
        return subprocess.run(
            [sys.executable, "-m", "gulpio2", *words, *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    text, json_text = done(), done("--json")
    assert (text.returncode, json_text.returncode) == (130, 130)
    assert text.stderr.endswith("\ngulp2: interrupted\n")
    pattern = r"\n  INTERRUPTED: (\d+) of 12 items were looked at\. What follows"
    (told,) = re.findall(pattern, text.stdout)
    plan = json.loads(json_text.stdout)
    found = plan["estimate"]
    assert (found["unfinished"], plan["to_look_at"], plan["fits"]) == (True, 12, None)
    for sampled in (int(told), found["sampled"]):
        # A process has two items at a time, which are told of in turn.
        assert at - (2 * int(workers) - 1) <= sampled <= at
    if at:
        assert "unreadable: 1 of the sample" in text.stdout
        assert "position 1" in text.stdout
        assert "position 1" in found["oddities"][0]["examples"][0]
    else:
        assert "can be stored" not in text.stdout
        assert found["oddities"] == []


def test_a_dry_run_that_comes_to_its_end_is_not_said_to_be_interrupted(
    gulp2, adapter_file
):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out", "--dry-run"]
    assert "INTERRUPTED" not in gulp2(*words).stdout
    plan = json.loads(gulp2(*words, "--json").stdout)
    assert (plan["estimate"]["unfinished"], plan["to_look_at"]) == (False, 3)
