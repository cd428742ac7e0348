"""``gulp2 ingest``: what it reports of a run, and with which status it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory


def ids_in(folder):
    return list(GulpDirectory(folder).merged_meta_dict)


def test_a_damaged_video_costs_that_item_and_the_exit_status(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "1.mp4")
    whole = make_video(tmp_path / "videos" / "2.mp4").read_bytes()
    (tmp_path / "videos" / "2.mp4").write_bytes(b"no video at all" + whole[:50])
    result = gulp2("ingest", "video-folder", "videos", "out", status=1)
    assert result.stdout.startswith("out: 1 item, 6 frames")
    assert "warning: item 'videos-2.mp4' (position 1): SourceReadError" in result.stderr
    assert "videos/2.mp4" in result.stderr
    assert "1 item failed; out/failures.jsonl lists it\n" in result.stderr
    assert "-vv" not in result.stderr
    assert "Traceback" not in result.stderr
    (line,) = Path("out/failures.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "videos-2.mp4"
    assert ids_in("out") == ["videos-1.mp4"]


def test_the_real_damaged_video_is_reported(gulp2, tmp_path, shared_videos):
    (tmp_path / "videos").mkdir()
    for name in ("corrupted.mp4", "rotated_90.mov"):
        shutil.copy(shared_videos / name, tmp_path / "videos")
    result = gulp2("ingest", "video-folder", "videos", "out",
                   "--file-extensions", ".mp4,.mov", status=1)  # fmt: skip
    assert "corrupted.mp4' cannot be read at frame" in result.stderr
    assert ids_in("out") == ["videos-rotated_90.mov"]


@pytest.mark.parametrize(("num_items", "shown"), [(19, 19), (20, 20), (23, 20)])
@pytest.mark.parametrize("num_workers", [1, 2])
def test_only_the_first_20_failures_are_told_and_all_are_listed(
    gulp2, tmp_path, num_items, shown, num_workers
):
    for number in range(num_items):
        (tmp_path / "images" / "x").mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / "x" / f"{number:02}.png").write_bytes(b"no image")
    words = ["ingest", "image-folder", "images", "out", "--videos-per-chunk", 2]
    words += ["--num-workers", num_workers, "--json"]
    result = gulp2(*words, status=1)
    told = [line for line in result.stderr.splitlines() if ": warning: item" in line]
    assert len(told) == shown
    further = "more than 20 items have failed; the others are not told here"
    assert result.stderr.count(further) == (num_items > shown)
    assert result.stderr.count("out/failures.jsonl lists") == 1 + (num_items > shown)
    names = [f"x-{number:02}.png" for number in range(num_items)]
    assert [item["id"] for item in json.loads(result.stdout)["failures"]] == names
    lines = Path("out/failures.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == names


def test_every_failure_is_told_where_everything_is_to_be(gulp2, tmp_path):
    (tmp_path / "images" / "x").mkdir(parents=True)
    for number in range(23):
        (tmp_path / "images" / "x" / f"{number:02}.png").write_bytes(b"no image")
    words = ["ingest", "image-folder", "images", "out", "--num-workers", 1, "-vv"]
    stderr = gulp2(*words, status=1).stderr
    assert all(f"item 'x-{number:02}.png' (" in stderr for number in range(23))


def test_failures_can_be_allowed(gulp2, adapter_file):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out", "--bad", 1]
    result = gulp2(*words, "--allow-failures")
    assert "item 'ramp1' (position 1): AdapterContractError" in result.stderr
    assert ids_in("out") == ["ramp0", "ramp2"]


def test_the_report_can_be_read_by_a_program(gulp2, adapter_file):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out", "--bad", 1]
    report = json.loads(gulp2(*words, "--json", status=1).stdout)
    assert (report["output"], report["items"], report["frames"]) == ("out", 2, 2)
    assert report["chunks"] == [0]
    assert report["failures"][0]["id"] == "ramp1"


def test_what_a_constructor_prints_is_no_part_of_the_report(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "a" / "1.mp4", 3)
    row = {"id": "a", "template": "walk"}
    (tmp_path / "list.json").write_text(json.dumps([row, row]))
    words = ["20bn-json-videos", "list.json", "videos", "out"]
    result = gulp2("ingest", *words, "--remove-duplicate-ids", "--json")
    assert json.loads(result.stdout)["items"] == 1
    assert "Id a more than once in json file, I skip it!" in result.stderr


def test_duplicates_are_refused_skipped_or_reported(gulp2, adapter_file):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out"]
    gulp2(*words)
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    refused = gulp2(*words, status=1)
    assert "ramp0" in refused.stderr
    assert "skip such items (--on-duplicate skip)" in refused.stderr
    assert "on_duplicate" not in refused.stderr
    for name, content in before.items():
        assert (Path("out") / name).read_bytes() == content
    more = [*words, "--num-items", 5]
    assert ", 3 skipped;" in gulp2(*more, "--on-duplicate", "skip").stdout
    reported = gulp2(*more, "--on-duplicate", "report", status=1)
    assert "5 items failed" in reported.stderr
    assert ids_in("out") == [f"ramp{n}" for n in range(5)]


def test_a_bar_is_shown_for_longer_work(start, adapter_file):
    slow = adapter_file.read_text().replace(
        "            frames = ", "            import time; time.sleep(0.6)\n"
        "            frames = ",
    )  # fmt: skip
    adapter_file.write_text(slow)
    process = start("ingest", "my_adapters.py:MyAdapter", "s", "out")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "3/3 items" in err
    assert "frames/s" in err
    assert "items" not in out.replace("3 items, 3 frames", "")


def test_where_an_adapter_failed_is_told_when_everything_is(gulp2, start, tmp_path):
    (tmp_path / "failing_adapter.py").write_text(
        "from gulpio2.testing import FrameAdapter\n\n"
        "class Failing(FrameAdapter):\n"
        "    def __init__(self):\n"
        "        super().__init__(num_items=1)\n\n"
        "    def iter_data(self, slice_element=None):\n"
        "        raise RuntimeError('boom')\n"
    )
    words = ["ingest", f"{tmp_path}/failing_adapter.py:Failing", tmp_path / "out"]
    error = gulp2(*words, status=1).stderr
    assert "RuntimeError: boom" in error
    assert "Traceback" not in error
    assert "-vv shows the lines of code that raised" in error
    # What a worker tells comes from another process.
    _, error = start("-vv", *words, "--num-workers", 1).communicate(timeout=60)
    assert 'failing_adapter.py", line 8, in iter_data' in error
    assert "-vv shows" not in error


def test_nothing_to_resume_is_said(gulp2, tmp_path, images):
    words = ["ingest", "image-folder", images, tmp_path / "out"]
    gulp2(*words)
    again = gulp2(*words, "--resume")
    assert again.stdout == ""
    assert "nothing to resume: " in again.stderr
    assert "is complete" in again.stderr


def test_a_shard_without_a_chunk_is_explained(gulp2, tmp_path, images):
    words = ["ingest", "image-folder", images, tmp_path / "out", "--shard", "1/500"]
    assert "there are fewer chunks than shards" in gulp2(*words).stderr
    words[-2:] = ["--shard", "2/500", "-q"]
    assert gulp2(*words).output == ""


def test_resuming_what_is_complete_but_for_failures_is_no_success(
    gulp2, tmp_path, make_video
):
    make_video(tmp_path / "videos" / "a" / "1.mp4", 1)
    (tmp_path / "videos" / "a" / "2.mp4").write_bytes(b"none")
    words = ["ingest", "video-folder", "videos", "out"]
    gulp2(*words, status=1)
    told = gulp2(*words, "--resume", status=1).stderr
    assert "nothing to resume: out is complete, but for what failed" in told
    assert "1 item failed" in told
    gulp2(*words, "--resume", "--allow-failures")
    make_video(tmp_path / "videos" / "a" / "2.mp4", 1)
    assert "ingest with --on-duplicate skip in the place of --resume" in told
    gulp2(*words, "--on-duplicate", "skip")
    assert "complete" in gulp2(*words, "--resume").stderr


def test_an_adapter_that_gives_fewer_items_than_it_counts_is_no_success(
    gulp2, tmp_path
):
    (tmp_path / "fewer.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Fewer(FrameAdapter):\n"
        "    'Gives all but one.'\n"
        "    def __init__(self): super().__init__(num_items=3)\n"
        "    def iter_data(self, slice_element=None):\n"
        "        for item in super().iter_data(slice_element):\n"
        "            if item['id'] != 'item1': yield item\n"
    )
    words = ["ingest", "fewer.py:Fewer", "out", "--num-workers", 1]
    assert "counts 3 items and gave 2" in gulp2(*words, status=1).stderr
    gulp2(*words[:2], "again", "--allow-failures")


@pytest.mark.parametrize("allowed", [(), ("--allow-failures",)], ids=["no", "allowed"])
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "if item['id'] != 'item1': yield item",
            "gulp2: the adapter counts 1 item that it did not give\n",
        ),
        (
            "yield item\n        raise OSError('cut\\x1b[2J')",
            "gulp2: behind its last item the adapter raised OSError: cut\\x1b[2J\n",
        ),
    ],
    ids=["not given", "raised behind"],
)
def test_why_the_status_is_1_is_told_where_nothing_but_errors_is(
    gulp2, start, tmp_path, body, told, allowed
):
    (tmp_path / "lacking.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Lacking(FrameAdapter):\n"
        "    'Lacks something at the end.'\n"
        "    def __init__(self): super().__init__(num_items=3)\n"
        "    def iter_data(self, slice_element=None):\n"
        "        for item in super().iter_data(slice_element):\n"
        f"            {body}\n"
    )
    words = ["ingest", "lacking.py:Lacking", "out", "--num-workers", 1, "-q", *allowed]
    assert gulp2(*words, status=int(not allowed)).output == told
    # Else the warning of the items that are missing is enough.
    _, again = start(*words[:2], "again", *words[3:5]).communicate(timeout=60)
    assert "gulp2: warning: the adapter" in again
    assert "that it did not give" not in again


@pytest.mark.parametrize("num_workers", [1, 2])
def test_what_an_adapter_raised_behind_is_told_at_the_end(gulp2, tmp_path, num_workers):
    (tmp_path / "cut.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Cut(FrameAdapter):\n"
        "    'Raises at the end of each slice.'\n"
        "    def __init__(self): super().__init__(num_items=4)\n"
        "    def iter_data(self, slice_element=None):\n"
        "        yield from super().iter_data(slice_element)\n"
        "        raise OSError(f'cut at {slice_element.stop}')\n"
    )
    words = ["ingest", "cut.py:Cut", "out", "--videos-per-chunk", 2]
    result = gulp2(*words, "--num-workers", num_workers, "--json", status=1)
    end = (
        "gulp2: behind the last item of 2 slices the adapter raised OSError: cut at 2\n"
    )
    assert result.stderr.endswith(end)
    report = json.loads(result.stdout)
    assert (report["raised_behind"], report["error_behind"]) == (
        *(2, "OSError: cut at 2"),
    )


@pytest.mark.parametrize("shard", [(), ("--shard", "2/2")])
def test_skipping_repeated_ids_is_told_with_what_keeps_them(
    gulp2, tmp_path, make_video, shard
):
    for folder in ("a", "b"):
        make_video(tmp_path / "videos" / folder / "x" / "1.mp4", 1)
    make_video(tmp_path / "videos" / "b" / "y" / "2.mp4", 1)
    words = ["ingest", "video-folder", "videos", "out", "--videos-per-chunk", 1]
    assert "an id of its own (--id-rule path), or" in gulp2(*words, status=1).stderr
    told = " ".join(gulp2(*words, "--on-duplicate", "skip", *shard).stderr.split())
    if shard:
        assert "skipped and not stored" not in told  # it is of the other share
        return
    assert "1 item skipped and not stored" in told
    assert "'x-1.mp4' is that of position 0 (videos/a/x/1.mp4) and of" in told
    assert "--id-rule path" in told
    again = gulp2(*words, "--on-duplicate", "skip").stderr
    assert "skipped and not stored" not in again, "one of the id is there"
    gulp2(*words[:3], "all", "--id-rule", "path")
    assert GulpDirectory("all").num_chunks == 1


PRINTING = """
import ctypes, os, sys
from gulpio2.testing import FrameAdapter

print("loading labels", file=sys.__stdout__)
ctypes.CDLL(None).printf(b"as a library of C does\\n")

class Printing(FrameAdapter):
    def __init__(self):
        print("in the constructor")
        super().__init__(num_items=4)

    def __len__(self):
        print("counted")
        return 4

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            print("an item", file=sys.__stdout__)
            os.write(1, b"out of a worker\\n")
            yield item
"""


@pytest.mark.parametrize(
    "options", [["--num-workers", "1"], ["--num-workers", "2"], ["--dry-run"]], ids=str
)
def test_what_an_adapter_prints_is_not_in_the_report(tmp_path, options):
    (tmp_path / "printing.py").write_text(PRINTING)
    program = [sys.executable, "-m", "gulpio2.cli.main", "ingest"]
    done = subprocess.run(
        [*program, "printing.py:Printing", "out", "--json", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={
            **{k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    found = json.loads(done.stdout)
    assert found["items"] == 4
    for printed in ("loading labels", "library of C", "in the constructor", "worker"):
        assert printed in done.stderr
