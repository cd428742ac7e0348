"""What ``docs/reading.md`` shows works, on the directory of the quickstart."""

from __future__ import annotations

import re
import subprocess

import pytest

from gulpio2 import errors

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def page(repository):
    """Give the text of the page."""
    return (repository / "docs" / "reading.md").read_text("utf-8")


def test_every_block_of_the_page_runs(
    gulp2, tmp_path, make_video, repository, python, page
):
    for label in ("walk", "run"):
        make_video(tmp_path / "videos" / label / "1.mp4", 24)
    gulp2("ingest", "video-folder", "videos", "gulped", "--frame-size", 128)
    program = tmp_path / "page.py"  # a file, which spawned processes import
    program.write_text("\n".join(BLOCK.findall(page)), "utf-8")
    done = subprocess.run(
        [python, "-W", "error", program.name],
        cwd=tmp_path,
        env={"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "2 True ['run-1.mp4', 'walk-1.mp4']"
    assert lines[-1] == "8 0 damaged frames in 0 items"


def test_every_error_of_the_page_is_one_of_the_package(page):
    table = page.split("## Errors to catch")[1]
    names = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert len(names) == 10
    assert all(issubclass(getattr(errors, name), errors.GulpError) for name in names)
