"""Loading the adapters at the top of the repository, as their users do: by path."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def load(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Give a function that loads ``adapters/<name>/adapter.py`` as a module."""

    def load_module(name: str) -> Any:
        path = repository / "adapters" / name / "adapter.py"
        module_name = f"dataset_adapter_{name}"
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Pickle finds a class by the name of its module.
        monkeypatch.setitem(sys.modules, module_name, module)
        spec.loader.exec_module(module)
        return module

    return load_module
