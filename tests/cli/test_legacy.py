"""The ten programs: what they print, store, and end with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory, adapters
from gulpio2.cli import legacy
from gulpio2.cli.constructor import constructor_parameters
from gulpio2.errors import DuplicateIdError

INGEST = {
    "gulp2_20bn_json_videos": ["videos.json", "videos-by-id"],
    "gulp2_20bn_csv_webm": ["webm.csv", "webm"],
    "gulp2_20bn_csv_jpeg": ["frames.csv", "frames"],
    "gulp2_activitynet": ["activitynet.json", "activitynet"],
    "gulp2_kinetics": ["kinetics.json", "kinetics"],
    "gulp2_image_folder": ["images"],
    "gulp2_image_list": ["--root_path=images", "images.txt"],
    "gulp2_video_folder": ["videos"],
}


def run(name, *arguments):
    getattr(legacy, name)([str(argument) for argument in arguments])


def ids_in(folder):
    return list(GulpDirectory(folder).merged_meta_dict)


def test_the_package_installs_exactly_these_programs(repository):
    text = (repository / "setup.py").read_text("utf-8")
    assert all(f'"{name}"' in text for name in legacy.__all__)
    assert len(legacy.__all__) == 10
    assert set(INGEST) == set(legacy.SCRIPTS)


@pytest.mark.parametrize("name", INGEST)
def test_it_prints_what_it_understood_and_stores(name, sources, capsys):
    if name == "gulp2_image_list":
        (sources / "images.txt").write_text("walk/1.png,walk\n")
    run(name, "--num_workers", 1, *INGEST[name], "out")
    out, err = capsys.readouterr()
    assert out.startswith("{'--")
    assert "'--num_workers': '1'" in out
    assert "'<output_directory>': 'out'" in out
    assert "Chunks finished" in err
    assert ids_in("out")


def test_options_that_only_ingest_has_are_named_as_its_own(sources, capsys):
    (sources / "images" / "walk" / "2.jpeg").touch()
    run("gulp2_image_folder", "--num_workers", 1, "images", "out")
    assert (
        "Name the endings to take in file_extensions (with `gulp2 ingest` "
        "--file-extensions), or convert the files"
    ) in capsys.readouterr().err


@pytest.mark.parametrize("name", INGEST)
def test_every_option_reaches_a_parameter_that_the_adapter_has(name):
    script = legacy.SCRIPTS[name]
    known = {p.name for p in constructor_parameters(getattr(adapters, script.adapter))}
    told = {o.parameter for o in script.options if o.parameter is not None}
    told |= {parameter for parameter, _ in script.positionals.values()}
    assert told <= known
    assert script.told_output == ("output_folder" in known)


def test_options_change_what_is_stored(sources):
    run("gulp2_20bn_csv_webm", "--frame_size=24", "--frame_rate=6", "--num_workers=1",
        "--videos_per_chunk=1", "webm.csv", "webm", "out")  # fmt: skip
    directory = GulpDirectory("out")
    assert directory.num_chunks == 2
    clip = directory.read_clip("walk")
    assert clip.shape[1:] == (24, 32, 3)
    assert 6 <= len(clip) < 12  # the rate is halved, and FFmpeg's rule adds some
    assert sources.is_dir()


def test_duplicates_are_removed_on_request(sources, capsys):
    (sources / "webm.csv").write_text("walk;W\nwalk;W\n")
    run("gulp2_20bn_csv_webm", "--remove_duplicates", "--num_workers=1",
        "webm.csv", "webm", "out")  # fmt: skip
    assert "Id walk more than once" in capsys.readouterr().out
    assert ids_in("out") == ["walk"]


def test_an_item_that_fails_ends_with_a_traceback_and_1(sources, repository):
    (sources / "webm" / "walk.webm").write_bytes(b"no video")
    code = "from gulpio2.cli.legacy import gulp2_20bn_csv_webm as run; run()"
    result = subprocess.run(
        [sys.executable, "-c", code, "webm.csv", "webm", "out"],
        cwd=sources,
        env={"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "walk.webm" in result.stderr
    assert "gulp2: warning: item 'walk'" in result.stderr
    assert "with `gulp2 ingest` --allow-failures" in result.stderr
    assert ids_in(sources / "out") == ["run"]


def test_what_an_error_advises_is_said_to_be_of_another_program(sources):
    run("gulp2_video_folder", "--num_workers=1", "videos", "out")
    with pytest.raises(DuplicateIdError) as caught:
        run("gulp2_video_folder", "--num_workers=1", "videos", "out")
    assert "with `gulp2 ingest` --on-duplicate skip" in str(caught.value)
    assert "on the command line" not in str(caught.value)
    assert sources.is_dir()


def test_wrong_counts_are_an_error(sources):
    for option in ("--num_workers=0", "--videos_per_chunk=0", "--num_workers=x"):
        with pytest.raises((AssertionError, ValueError)):
            run("gulp2_video_folder", option, "videos", "out")
    assert sources.is_dir()


# ------------------------------------------------------------------ sanity check
def test_the_check_prints_four_tests_of_two_lines(gulped, capsys):
    run("gulp2_sanity_check", gulped)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0] == "Sanity Check: Check for empty meta files"
    assert lines[1::2] == ["Test passed"] * 4


def test_the_check_ends_with_1_when_something_is_wrong(gulped, capsys):
    (gulped / "data_1.gulp").write_bytes(b"")
    with pytest.raises(SystemExit) as caught:
        run("gulp2_sanity_check", gulped)
    assert caught.value.code == 1
    out = capsys.readouterr().out
    assert f"Test failed for: ['{gulped / 'data_1.gulp'}']" in out


def test_the_check_of_no_directory_is_a_message(capsys):
    with pytest.raises(SystemExit, match="there is no directory nowhere"):
        run("gulp2_sanity_check", "nowhere")
    assert capsys.readouterr().out == ""


def test_the_check_of_a_url_is_a_message():
    with pytest.raises(SystemExit, match="cannot check s3://b/x: it is a URL"):
        run("gulp2_sanity_check", "s3://b/x")


def test_registering_a_wrong_name_prints_the_usage(adapter_file):
    assert adapter_file.exists()
    for words in (["my_adapters", "Mine"], ["nowhere", "X"], ["my_adapters.py", "X"]):
        with pytest.raises(SystemExit, match="Usage:"):
            run("gulp2_register_adapter", *words)
    assert sorted(path.name for path in Path().glob("*my*")) == ["my_adapters.py"]
