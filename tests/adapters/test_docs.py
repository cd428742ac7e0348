"""The code in ``docs/adapters.md`` runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2 import adapters as adapters_module
from gulpio2.types import FrameSource

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def script(repository, tmp_path, make_video):
    """Write all blocks of the page into one program, beside the clips it speaks of."""
    make_video(tmp_path / "clips" / "a1.mp4", 10)
    make_video(tmp_path / "clips" / "b1.mp4", 10)
    page = (repository / "docs" / "adapters.md").read_text("utf-8")
    path = tmp_path / "test_page.py"
    path.write_text("\n".join(BLOCK.findall(page)))
    return path


def test_the_program_of_the_page_gulps_the_clips(script, python, repository):
    subprocess.run(
        [python, script.name],
        cwd=script.parent,
        env={"PYTHONPATH": str(repository)},
        check=True,
        timeout=120,
    )
    directory = GulpDirectory(script.parent / "gulp" / "clips")
    assert list(directory.merged_meta_dict) == ["a1", "b1"]
    assert directory["b1"][1] == {"camera": "b"}
    assert len(directory["b1"][0]) == 10


def test_pictures_of_a_log_are_found_by_their_times(repository, tmp_path):
    page = (repository / "docs" / "adapters.md").read_text("utf-8")
    (block,) = (block for block in BLOCK.findall(page) if "class Logged" in block)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102  # the page is what is tested
    pictures = [np.full((8, 8), 60 * number, np.uint8) for number in range(4)]
    logged = names["Logged"](pictures, [10, 40_000, 85_000, 300_000])
    assert isinstance(logged, FrameSource)
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, logged)
    frames, _ = GulpDirectory(tmp_path).read_frames_at("a", [0.05, 0.25])
    assert [round(frame.mean() / 60) for frame in frames] == [1, 3]


def test_the_suite_of_the_page_passes(script, python, repository):
    result = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", script.name],
        cwd=script.parent,
        env={"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"1[0-9] passed", result.stdout)


def test_every_adapter_is_on_the_page(repository):
    page = (repository / "docs" / "adapters.md").read_text("utf-8")
    names = [name for name in adapters_module.__all__ if name.endswith("Adapter")]
    names.remove("AbstractDatasetAdapter")
    assert [name for name in names if f"`{name}(" not in page] == []
    folders = Path(repository / "adapters").glob("*/adapter.py")
    assert len(list(folders)) >= 4
