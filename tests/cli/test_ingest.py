"""``gulp2 ingest``: what is stored, refused and left alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import signal
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


@pytest.mark.parametrize("spelling", ["--frame-size", "--frame_size"])
def test_what_an_adapter_takes_as_an_argument_is_told_its_place(
    gulp2, adapter_file, spelling
):
    adapter_file.write_text(
        adapter_file.read_text() + "\n\nclass Smaller(MyAdapter):\n"
        "    def __init__(self, folder, frame_size: int):\n"
        "        super().__init__(folder)\n"
    )
    name = f"{adapter_file}:Smaller"
    result = gulp2("ingest", name, "s", "out", spelling, 64, status=2)
    said = " ".join(result.stderr.split())
    assert "FRAME_SIZE is an argument, given without its name: " in said
    assert said.endswith("Smaller FOLDER FRAME_SIZE OUTPUT.")
    gulp2("ingest", name, "s", 64, "out")


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_adapter_made_in_another_folder_moves_no_output(
    gulp2, adapter_file, tmp_path, monkeypatch, dry_run
):
    (tmp_path / "elsewhere").mkdir()
    adapter_file.write_text(
        "import os\n" + adapter_file.read_text() + "\n\nclass Moving(MyAdapter):\n"
        "    def __init__(self, folder):\n"
        "        os.chdir(folder)\n"
        '        super().__init__("s")\n'
    )
    words = ["ingest", f"{adapter_file}:Moving", "elsewhere", "out"]
    result = gulp2(*words, *["--dry-run"] * dry_run)
    assert result.stdout.startswith(f"{tmp_path}/out: ")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "out").exists() != dry_run
    if not dry_run:
        monkeypatch.chdir(tmp_path)
        assert "nothing to resume" in gulp2(*words, "--resume").stderr


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--shard", "1/1"]])
def test_nor_does_a_module_that_is_imported_into_another_folder(
    gulp2, adapter_file, tmp_path, options
):
    (tmp_path / "elsewhere").mkdir()
    move = "import os\n\nos.chdir('elsewhere')\n"
    adapter_file.write_text(move + adapter_file.read_text())
    result = gulp2("ingest", f"{adapter_file}:MyAdapter", "s", "out", *options)
    assert result.stdout.startswith(f"{tmp_path}/out")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "out").exists() != ("--dry-run" in options)


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
    assert f"gulp2: error: cannot write {tmp_path}/out/" in err
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
    stop = "            if n == 3: os.kill(self.process, 9) or time.sleep(60)\n"
    adapter_file.write_text(
        "import time\n"
        + text.replace("            frames = ", f"{stop}            frames = ").replace(
            "        self.source, ",
            "        self.process = os.getpid()\n        self.source, ",
        )
    )
    words = ["--num-items", 6, "--videos-per-chunk", 1, "--num-workers", 1]
    process = start("ingest", "my_adapters.py:MyAdapter", "s", "out", *words)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
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


@pytest.mark.parametrize("has_file", [True, False])
def test_shares_that_come_later_go_on_with_the_labels_of_the_output(
    gulp2, tmp_path, make_video, has_file
):
    days = {"monday": ["walk"], "sunday": ["sit"], "tuesday": ["run", "walk"]}
    for day, labels in days.items():
        for label in labels:
            make_video(tmp_path / day / label / f"{day}.mp4", 1)
    gulp2("ingest", "video-folder", "monday", "out")
    gulp2("ingest", "video-folder", "nowhere", "out", "--shard", "1/2", status=1)
    gulp2("ingest", "video-folder", "sunday", "out")
    if not has_file:  # chunks alone were copied
        for name in ("label2idx.json", "gulp.json"):
            Path("out", name).unlink()
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
