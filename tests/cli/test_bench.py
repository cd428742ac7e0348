"""``gulp2 bench``: the figures, the advice, and what it cannot measure."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gulpio2 import GulpDirectory
from gulpio2.chunk import GulpChunk
from gulpio2.testing import make_frames


def test_it_measures_the_loader_beside_the_codec(gulp2, gulped):
    lines = gulp2("bench", gulped, "--seconds", 0.3).stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["loader", "codec", "ratio"]
    assert lines[0].endswith(" frames/s")
    assert any("waiting for data" in line for line in lines)
    assert lines[-1].startswith("change first: ")


def test_the_json_has_figures_that_go_together(gulp2, gulped):
    arguments = ("--clip-length", 3, "--batch-size", 2, "--threads", 1)
    result = gulp2("bench", gulped, *arguments, "--seconds", 0.3, "--json")
    figures = json.loads(result.stdout)
    assert figures["directory"] == str(gulped)
    assert figures["loader_frames_per_second"] > 0
    assert figures["codec_frames_per_second"] > 0
    assert 0.01 < figures["ratio"] < 3
    profile = figures["profile"]
    assert profile["num_threads"] == 1
    assert profile["num_frames"] == 3 * profile["num_samples"] > 0
    assert figures["change_first"]


@pytest.mark.torch
def test_a_data_loader_is_measured_too(gulp2, gulped):
    arguments = ("--clip-length", 3, "--batch-size", 2, "--workers", 2)
    result = gulp2("bench", gulped, *arguments, "--seconds", 1, "--json")
    figures = json.loads(result.stdout)
    assert figures["loader_frames_per_second"] > 0
    assert 0.001 < figures["ratio"] < 3
    # What the codec was measured with was read in this process, and not by workers.
    with GulpDirectory(gulped) as directory:
        items = map(directory.item, directory.merged_meta_dict)
        most = max(item.num_bytes / item.num_frames for item in items)
    assert figures["profile"]["num_bytes"] < most * figures["profile"]["num_frames"]
    profile = figures["profile"]
    assert profile["is_of_workers"] is True
    assert profile["num_threads"] == 2
    assert profile["num_frames"] == 3 * profile["num_samples"] > 0
    assert profile["num_samples"] == 2 * profile["num_batches"]
    text = gulp2("bench", gulped, *arguments, "--seconds", 0.3).stdout
    assert "time of the workers (2)" in text


def test_processes_are_measured_too(gulp2, gulped):
    arguments = ("--clip-length", 3, "--batch-size", 2, "--size", 16)
    result = gulp2("bench", gulped, *arguments, "--processes", 2, "--json")
    figures = json.loads(result.stdout)
    assert figures["loader_frames_per_second"] > 0
    profile = figures["profile"]
    assert (profile["num_threads"], profile["are_processes"]) == (2, True)
    assert profile["is_of_workers"] is False
    assert profile["num_frames"] == 3 * profile["num_samples"] > 0
    both = ("--processes", 2, "--threads", 2)
    said = gulp2("bench", gulped, *both, status=2).stderr
    assert "--threads and --processes: give one of them" in said


@pytest.mark.parametrize(
    "other", [("--threads", 2), ("--size", 16), ("--processes", 1)]
)
def test_a_data_loader_has_neither_threads_nor_size(gulp2, gulped, other):
    said = gulp2("bench", gulped, "--workers", 2, *other, status=2).stderr
    assert "--workers is of a DataLoader" in said


def test_a_data_loader_needs_torch(gulp2, gulped, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.utils.data", None)
    said = gulp2("bench", gulped, "--workers", 1, status=1).stderr
    assert "pip install 'gulpio2[torch]'" in said


@pytest.fixture
def of_several_sizes(tmp_path):
    """Make a directory with an upright item, a lying one, and an empty one."""
    folder = tmp_path / "sizes"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, make_frames(4, 20, 30))
        chunk.append("b", {}, make_frames(4, 30, 20))
        chunk.append("c", {}, [])
    return folder


def test_items_of_several_sizes_need_a_size_and_empty_ones_are_left_out(
    gulp2, of_several_sizes
):
    result = gulp2("bench", of_several_sizes, "--seconds", 0.1, status=1)
    assert "Give the loader a view" in result.stderr
    result = gulp2("bench", of_several_sizes, "--seconds", 0.1, "--size", 16)
    assert "frames/s" in result.stdout


def test_ids_of_files_whose_names_are_no_utf8_are_measured_too(start, tmp_path):
    folder = tmp_path / "of\udcff"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("clip\udcff.mp4", {}, make_frames(4))
    for words, shown in (([], "frames/s"), (["--json"], r'"of\udcff"')):
        program = start("bench", "of\udcff", "--seconds", 0.1, *words)
        out, err = program.communicate(timeout=60)
        assert (program.returncode, err) == (0, "")
        assert shown in out


@pytest.mark.torch
def test_a_worker_tells_of_several_sizes_in_a_line(gulp2, of_several_sizes):
    arguments = ("--workers", 1, "--seconds", 0.1)
    said = gulp2("bench", of_several_sizes, *arguments, status=1).stderr
    assert "(GulpLoader with a view)" in said
    assert len(said.splitlines()) == 1
    advised = said.partition("on the command line ")[2].split()[:2]
    assert said.partition(" in place of ")[2].startswith(arguments[0])
    gulp2("bench", of_several_sizes, *advised, *arguments[2:])


@pytest.mark.parametrize("part", ["header", "scan"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_damaged_frame_is_named(part, threads, gulped):
    with GulpDirectory(gulped) as directory:
        frames = directory.merged_meta_dict["item2"]["frame_info"]
        data = gulped / f"data_{directory.chunk_lookup['item2']}.gulp"
    with data.open("r+b") as file:
        for loc, pad, length in frames:  # its beginning, or its middle
            file.seek(loc if part == "header" else loc + (length - pad) // 2)
            file.write(b"\0" * 20 if part == "header" else b"\xff\xd9" * 10)
    # In a process of its own: what is wrong here may never end.
    command = [sys.executable, "-m", "gulpio2.cli.main", "bench", str(gulped)]
    result = subprocess.run(
        [*command, "--seconds", "1", "--clip-length", "2", "--threads", str(threads)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert "item 'item2', frame " in result.stderr
    assert "its checksum is " in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_a_directory_without_frames_is_refused(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [])
    assert "no samples to load" in gulp2("bench", tmp_path, status=1).stderr


def test_it_needs_no_torch(gulp2, gulped, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "frames/s" in gulp2("bench", gulped, "--seconds", 0.1).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "nan"),
        ("--seconds", "inf"),
        ("--seconds", "1e9"),
        ("--clip-length", 10**30),
        ("--stride", 10**30),
        ("--batch-size", 10**30),
        ("--size", 10**9),
        ("--threads", 10**8),
        ("--prefetch", 10**9),
    ],
)
def test_what_would_never_end_or_fit_is_wrong_usage(gulp2, gulped, arguments):
    result = gulp2("bench", gulped, *arguments, status=2)
    assert arguments[0] in result.stderr


@pytest.mark.parametrize(
    "sizes",
    [
        ("--size", 65535, "--batch-size", 100000),
        ("--size", 65535, "--clip-length", 100000, "--processes", 2),
        ("--clip-length", 100000, "--batch-size", 100000),
        pytest.param(
            ("--clip-length", 100000, "--batch-size", 100000, "--workers", 2),
            marks=pytest.mark.torch,
        ),
    ],
)
def test_what_does_not_fit_into_memory_is_told_in_a_line(gulp2, gulped, sizes):
    said = gulp2("bench", gulped, *sizes, "--seconds", 0.1, status=1).stderr
    assert said.startswith("gulp2: error: there is not enough memory. The batches of ")
    assert "GB are free. Take shorter clips, fewer of them in a batch" in said
    assert said.count("\n") == 1
