"""What holds for every folder of dataset adapters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gulpio2.adapters

FOLDER = Path(gulpio2.adapters.__file__).parents[2] / "adapters"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/adapter.py"))
# What the documentation offers to those who write adapters.
PUBLIC = {"gulpio2.adapters", "gulpio2.errors", "gulpio2.types"}


def test_there_are_the_four_that_are_promised():
    promised = {"epic_kitchens_100", "hmdb51", "something_something_v2", "ucf101"}
    assert promised <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_imports_public_names_only(name):
    tree = ast.parse((FOLDER / name / "adapter.py").read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    used = {
        node.module: {alias.name for alias in node.names}
        for node in imports
        if (node.module or "").startswith("gulpio2")
    }
    assert set(used) <= PUBLIC
    assert used["gulpio2.adapters"] <= set(gulpio2.adapters.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_has_a_readme_that_shows_how_it_is_called(name):
    readme = (FOLDER / name / "README.md").read_text("utf-8")
    assert f"gulp2 ingest adapters/{name}/adapter.py:" in readme
