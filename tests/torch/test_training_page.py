"""The code in ``docs/training.md`` runs."""

from __future__ import annotations

import re
import subprocess

import pytest

from gulpio2 import sampling
from gulpio2.chunk import GulpChunk
from gulpio2.testing import make_frames

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.torch
def test_the_program_of_the_page_runs(repository, python, tmp_path):
    folder = tmp_path / "gulp" / "train"
    folder.mkdir(parents=True)
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(8):
            meta = {"idx": int(number > 5), "moments": list(range(number % 3))}
            chunk.append(f"v{number}", meta, make_frames(40, seed=number))
    page = (repository / "docs" / "training.md").read_text("utf-8")
    done = subprocess.run(
        [python, "-W", "error", "-c", "\n".join(BLOCK.findall(page))],
        cwd=tmp_path,
        env={"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_every_sampler_is_on_the_page(repository):
    page = (repository / "docs" / "training.md").read_text("utf-8")
    functions = [name for name in sampling.__all__ if name.islower()]
    functions.remove("apply_border")
    assert [name for name in functions if f"`{name}`" not in page] == []
    assert [border for border in sampling.BORDERS if f'`"{border}"`' not in page] == []
