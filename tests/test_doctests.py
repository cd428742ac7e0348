"""Every module imports, and the examples in its docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import gulpio2.errors

PACKAGE = Path(gulpio2.errors.__file__).parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> list[object]:
    """List the modules by dotted name, with the marker of what they need."""
    found: list[object] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = [PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]
        name = ".".join(part for part in parts if part != "__init__")
        marks = [pytest.mark.torch] if parts[1] == "torch" else []
        found.append(pytest.param(name, marks=marks, id=name))
    return found


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_are_true(name, tmp_path, monkeypatch):
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(module, optionflags=OPTIONS)
    assert result.failed == 0, "the differences are in the captured output"
