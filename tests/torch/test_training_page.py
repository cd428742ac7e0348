"""The code in ``docs/training.md`` runs."""

from __future__ import annotations

import re
import subprocess

import pytest

from gulpio2 import sampling

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.torch
@pytest.mark.parametrize("num_items", [8, pytest.param(11, marks=pytest.mark.slow)])
def test_the_program_of_the_page_runs(repository, python, tmp_path, num_items):
    page = (repository / "docs" / "training.md").read_text("utf-8")
    program = "\n".join(BLOCK.findall(page)).replace("return 8", f"return {num_items}")
    done = subprocess.run(
        [python, "-W", "error", "-c", program],
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
