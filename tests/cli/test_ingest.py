"""``gulp2 ingest``: what is stored, reported, refused and left alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory
from gulpio2.adapters import VideoFrames


def ids_in(folder):
    return list(GulpDirectory(folder).merged_meta_dict)


# ------------------------------------------------------------------ what it stores
def test_a_folder_of_videos_is_stored_and_summed_up(gulp2, tmp_path, make_video):
    make_video(tmp_path / "videos" / "walk" / "1.mp4")
    make_video(tmp_path / "videos" / "run" / "2.mp4", 9)
    result = gulp2("ingest", "video-folder", "videos", "out", "--frame-size", 24)
    assert re.match(r"out: 2 items, 15 frames, .* in 1 chunk; ", result.stdout)
    directory = GulpDirectory("out")
    assert list(directory.merged_meta_dict) == ["run-2.mp4", "walk-1.mp4"]
    assert directory.read_clip("run-2.mp4").shape == (9, 24, 32, 3)
    assert json.loads(Path("out/label2idx.json").read_text()) == {"run": 0, "walk": 1}
    (run,) = directory.manifest.runs
    assert run.adapter == "VideoFolderAdapter"
    assert run.options["frame_size"] == 24
    assert run.options["file_extensions"] == [".mp4", ".webm"]


def test_options_of_the_store_reach_it(gulp2, adapter_file):
    name = f"{adapter_file}:MyAdapter"
    gulp2("ingest", name, "s", "out", "--quality", 30, "--videos-per-chunk", 2)
    directory = GulpDirectory("out")
    assert directory.num_chunks == 2
    assert directory.manifest.runs[0].encoder["quality"] == 30
    gulp2("ingest", name, "s", "bytes", "--chunk-bytes", "1kB", "--subsampling", "420")
    directory = GulpDirectory("bytes")
    assert directory.num_chunks == 1
    assert directory.manifest.runs[0].encoder["subsampling"] == "420"


def test_an_option_that_the_adapter_has_too_is_given_under_another_name(
    gulp2, adapter_file
):
    name = f"{adapter_file}:MyAdapter"
    gulp2("ingest", name, "s", "out", "--adapter-quality", "fine", "--num_items", 1)
    assert GulpDirectory("out")["ramp0"][1]["quality"] == "fine"


def test_an_adapter_out_of_a_file_works_in_forked_processes(gulp2, adapter_file):
    name, counts = f"{adapter_file}:MyAdapter", ("--num-items", 8)
    gulp2("ingest", name, "s", "out", *counts, "--num-workers", 2,
          "--videos-per-chunk", 1)  # fmt: skip
    directory = GulpDirectory("out")
    processes = {directory.item(id_).meta["process"] for id_ in directory.chunk_lookup}
    assert len(directory) == 8
    assert os.getpid() not in processes


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_an_adapter_out_of_a_file_works_in_processes_that_are_not_forked(
    method, adapter_file, repository
):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    code = (
        "import multiprocessing, sys\n"
        "from gulpio2.cli.main import gulp2\n"
        "if __name__ == '__main__':\n"
        f"    multiprocessing.set_start_method({method!r})\n"
        "    gulp2.main(sys.argv[1:], prog_name='gulp2')\n"
    )
    program = adapter_file.parent / "bin" / "program.py"
    program.parent.mkdir()
    program.write_text(code)
    result = subprocess.run(
        [sys.executable, program, "ingest", "../my_adapters.py:MyAdapter", "s", "out",
         "--num-workers", "2", "--videos-per-chunk", "1"],
        cwd=program.parent,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert ids_in(program.parent / "out") == ["ramp0", "ramp1", "ramp2"]


# ------------------------------------------------------------------ what it reports
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


# ------------------------------------------------------------------ bad input
def test_help_of_an_adapter_shows_its_own_options_with_its_own_words(gulp2):
    text = gulp2("ingest", "video-folder", "--help").stdout
    assert "gulp2 ingest video-folder [OPTIONS] FOLDER OUTPUT" in text
    assert "Where to look, at any depth" in text
    assert "--frame-rate" in text
    assert "--shm-dir-path" not in text
    assert text.index("Options of the adapter:") < text.index("--videos-per-chunk")


def test_an_adapter_may_be_spelled_with_underscores(gulp2, sources):
    assert sources.is_dir()
    gulp2("ingest", "image_folder", "images", "out", "--file_extensions", ".png")
    assert len(ids_in("out")) == 2


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["vido-folder", "videos", "out"], 2, "Did you mean video-folder"),
        (["video-folder", "videos"], 2, "Missing argument 'OUTPUT'"),
        (["video-folder", "v", "out", "--frame-size", "big"], 2, "--frame-size"),
        (["video-folder", "v", "out", "--quality", "101"], 2, "1<=x<=100"),
        (["video-folder", "v", "out", "--num-workers", "0"], 2, "1<=x<=4096"),
        (["video-folder", "v", "out", "--chunk-bytes", "big"], 2, "is no size"),
        (["image-folder", "i", "o", "--id-rule", "x"], 2, "'label-name', 'path'"),
        (["my_adapters.py:Mine", "s", "out"], 2, "There is: MyAdapter"),
        (["video-folder", "nowhere", "out"], 1, "nowhere"),
        (["video-folder", "empty", "out"], 1, "items"),
        (["table", "clips.csv", "out"], 1, "'id'"),
        (
            ["table", "clips.csv", "out"],
            1,
            "Name the right one in --id-column, or none",
        ),
        (["table", "clips.csv", "out", "--id-column", "nam"], 1, "name"),
        (["table", "nowhere.csv", "out"], 1, "nowhere.csv"),
        (["20bn-json-videos", "clips.csv", "v", "out"], 1, "Wrong data file format"),
        (["activitynet", "videos.json", "activitynet", "out"], 1, "database"),
        (["image-list", "images.txt", "clips.csv"], 2, "'clips.csv' is a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_a_message_and_an_exit_status(
    gulp2, sources, words, status, message
):
    (sources / "empty").mkdir()
    result = gulp2("ingest", *words, status=status)
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    if status == 1:
        assert result.stderr.count("gulp2: error: ") == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_read_only_output_is_a_message_that_says_what_to_do(
    gulp2, adapter_file, read_only, workers
):
    words = ("ingest", f"{adapter_file}:MyAdapter", "s", "--num-workers", workers)
    for output, refused in (
        (read_only / "out", f"cannot create the folder {read_only / 'out'}"),
        (read_only, f"cannot open for writing {read_only}"),
    ):
        result = gulp2(*words, output, status=1)
        assert refused in result.stderr
        assert "Permission denied. Make the folder writable" in result.stderr
        assert "What was committed before is intact" in result.stderr
        assert list(read_only.iterdir()) == []


def test_what_is_in_a_read_only_directory_stays_as_it_is(
    gulp2, adapter_file, read_only
):
    read_only.chmod(0o755)
    gulp2("ingest", f"{adapter_file}:MyAdapter", "s", read_only, "--quiet")
    read_only.chmod(0o555)
    before = {path.name: path.read_bytes() for path in read_only.iterdir()}
    more = ("--num-items", 5, "--on-duplicate", "skip")
    for words in (
        ("ingest", f"{adapter_file}:MyAdapter", "s", read_only, *more),
        ("delete", read_only, "ramp0"),
        ("index", read_only),
    ):
        assert "Permission denied. Make the" in gulp2(*words, status=1).stderr
    assert {path.name: path.read_bytes() for path in read_only.iterdir()} == before
    gulp2("check", "--deep", read_only)


@pytest.mark.parametrize("command", [["ingest", "video-folder"], ["repair"], ["merge"]])
def test_an_empty_output_is_wrong_usage(gulp2, tmp_path, command):
    (tmp_path / "in").mkdir()
    assert "It is empty" in gulp2(*command, "in", "", status=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_output_that_cannot_be_made_is_a_message(gulp2, adapter_file, tmp_path):
    (tmp_path / "file").write_text("")
    result = gulp2("ingest", f"{adapter_file}:MyAdapter", "s", "file/out", status=1)
    assert "gulp2: error: " in result.stderr
    assert "file" in result.stderr


def test_a_full_disk_is_a_message_and_what_was_stored_is_intact(
    gulp2, start, adapter_file, tmp_path
):
    words = [f"{adapter_file}:MyAdapter", "s", "out", "--num-workers", "1"]
    gulp2("ingest", *words, "--num-items", 2)
    text = adapter_file.read_text().replace("ramp{n}", "more{n}")
    adapter_file.write_text(text.replace("(8, 12)", "(800, 1200)"))
    process = start(
        "ingest", *words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)),
    )  # fmt: skip
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "gulp2: error: cannot write out/" in err
    assert "--resume goes on with the rest" in err
    assert out == ""
    assert ids_in("out") == ["ramp0", "ramp1"]
    process = start("ingest", *words, "--resume")
    assert process.communicate(timeout=60)[1] == ""
    assert ids_in("out") == ["ramp0", "ramp1", "more0", "more1", "more2"]
    gulp2("check", "--deep", tmp_path / "out")


def test_a_cluster_without_its_extra_says_what_to_install(repository, sources):
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "from gulpio2.cli.main import gulp2; gulp2(sys.argv[1:])"
    )
    words = ["ingest", "image-folder", "images", "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--scheduler", "tcp://host:8786"],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error: distributed is needed for this and cannot be" in done.stderr
    assert "pip install 'gulpio2[distributed]'" in done.stderr


def test_an_interrupted_run_is_gone_on_with(gulp2, start, adapter_file):
    text = adapter_file.read_text()
    stop = text.replace(
        "            frames = ",
        "            if n == 3: os._exit(1)\n            frames = ",
    )
    adapter_file.write_text(stop)
    words = ["--num-items", 6, "--videos-per-chunk", 1, "--num-workers", 1]
    process = start("ingest", "my_adapters.py:MyAdapter", "s", "out", *words)
    process.communicate(timeout=60)
    assert process.returncode == 1
    adapter_file.write_text(text)
    gulp2("ingest", "my_adapters.py:MyAdapter", "s", "out", *words, "--resume")
    assert ids_in("out") == [f"ramp{n}" for n in range(6)]
    gulp2("check", "--deep", "out")


def test_a_setting_that_the_adapter_refuses_is_wrong_usage(gulp2, tmp_path):
    (tmp_path / "videos").mkdir()
    words = ["ingest", "video-folder", tmp_path / "videos", tmp_path / "out"]
    result = gulp2(*words, "--frame-rate", "foo", status=2)
    assert "frame_rate is 'foo'; give frames per second" in result.stderr


@pytest.mark.parametrize("rate", ["7.5", "15/2", "8", ""])
def test_a_rate_that_is_a_whole_number_by_default_may_be_another(
    gulp2, tmp_path, make_video, rate
):
    path = make_video(tmp_path / "videos" / "a" / "1.mp4", 30)
    (tmp_path / "list.json").write_text('[{"id": "a", "template": "walk"}]')
    words = ["20bn-json-videos", "list.json", "videos", "out", "--frame-rate", rate]
    gulp2("ingest", *words)
    frames, _ = GulpDirectory("out")["a"]
    assert len(frames) == len(VideoFrames(path, frame_rate=rate))


def test_where_an_adapter_failed_is_told_when_everything_is(gulp2, tmp_path):
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
    error = gulp2("-vv", *words, "--num-workers", 1, status=1).stderr
    assert 'failing_adapter.py", line 8, in iter_data' in error


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


def test_shares_that_come_later_go_on_with_the_labels_of_the_output(
    gulp2, tmp_path, make_video
):
    days = {"monday": ["walk"], "sunday": ["sit"], "tuesday": ["run", "walk"]}
    for day, labels in days.items():
        for label in labels:
            make_video(tmp_path / day / label / f"{day}.mp4", 1)
    gulp2("ingest", "video-folder", "monday", "out")
    gulp2("ingest", "video-folder", "nowhere", "out", "--shard", "1/2", status=1)
    gulp2("ingest", "video-folder", "sunday", "out")
    words = ["ingest", "video-folder", "tuesday", "out", "--videos-per-chunk", 1]
    gulp2(*words, "--shard", "2/2", "--dry-run")
    assert not list(Path("out").glob("shard_2*"))
    shares = [f"out/shard_{number}_of_2" for number in (1, 2)]
    for number in (1, 2):
        gulp2(*words, "--shard", f"{number}/2")
    gulp2("merge", *shares, "out")
    entries = GulpDirectory("out").merged_meta_dict.values()
    metas = [entry["meta_data"][0] for entry in entries]
    assert len(metas) == 4
    numbers = {meta["label"]: meta["idx"] for meta in metas}
    assert numbers == {"walk": 0, "sit": 1, "run": 2}
    assert numbers == json.loads(Path("out/label2idx.json").read_text())


def test_more_workers_than_can_be_started_are_wrong_usage(gulp2, adapter_file):
    words = ("ingest", f"{adapter_file}:MyAdapter", "source", "out")
    said = gulp2(*words, "--num-workers", 100_000, status=2).stderr
    assert "--num-workers" in said
    assert not Path("out").exists()


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


def test_a_parameter_called_help_leaves_the_help_of_the_command(gulp2, tmp_path):
    (tmp_path / "helpful.py").write_text(
        """
from gulpio2.testing import FrameAdapter

class Helpful(FrameAdapter):
    def __init__(self, help=2):
        super().__init__(num_items=help)
"""
    )
    assert "--adapter-help" in gulp2("ingest", "helpful.py:Helpful", "--help").stdout
    told = gulp2("ingest", "helpful.py:Helpful", "out", "--adapter-help", "3").stdout
    assert "out: 3 items" in told


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
