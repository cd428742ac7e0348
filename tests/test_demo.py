"""The demo runs from beginning to end, and leaves a picture."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cv2
import pytest


def run_demo(python, repository, *arguments):
    if not Path(python).with_name("gulp2").is_file():
        pytest.skip("gulpio2 is not installed beside this interpreter")
    return subprocess.run(
        [python, str(repository / "examples" / "demo.py"), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_demo_gulps_checks_reads_and_draws(python, repository, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / ".made-by-demo").touch()
    (output / "of_the_last_run").touch()
    result = run_demo(python, repository, "--output", output, "--seconds", "0.1")
    assert result.returncode == 0, result.stderr
    assert not (output / "of_the_last_run").exists()
    assert "gulped   6 items, 731 frames" in result.stdout
    assert str(output / "contact_sheet.png") in result.stdout
    picture = cv2.imread(str(output / "contact_sheet.png"))
    assert picture is not None
    assert picture.std() > 20, "the picture shows something"


def test_the_demo_leaves_a_folder_alone_that_it_did_not_make(
    python, repository, tmp_path
):
    (tmp_path / "mine.txt").write_text("mine")
    result = run_demo(python, repository, "--output", tmp_path)
    assert result.returncode == 1
    assert "the demo did not make" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("inside", [".", "videos"])
def test_the_demo_does_not_remove_the_videos_it_is_given(
    python, repository, tmp_path, inside
):
    video = tmp_path / "videos" / "circle" / "1.mp4"
    video.parent.mkdir(parents=True)
    video.touch()
    (tmp_path / ".made-by-demo").touch()
    (tmp_path / "link").symlink_to(tmp_path / inside)
    for videos in (tmp_path / inside, tmp_path / "link"):
        result = run_demo(python, repository, videos, "--output", tmp_path)
        assert result.returncode == 1
        assert f"{videos} is inside of {tmp_path}" in result.stderr
        assert video.exists()
