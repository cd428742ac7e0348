"""Loading the adapters at the top of the repository, as their users do: by path."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.loading import load as load_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def load(repository: Path) -> Callable[[str], Any]:
    """Give a function that loads ``adapters/<name>/adapter.py`` as a module."""

    def load_adapter(name: str) -> Any:
        path = repository / "adapters" / name / "adapter.py"
        return load_file(path, f"dataset_adapter_{name}")

    return load_adapter


@pytest.fixture
def gulp(repository: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Give a function that gulps with ``gulp2 ingest`` and returns its report."""

    def run(spec: str, *arguments: object) -> dict[str, Any]:
        name, class_name = spec.split(":")
        adapter = f"adapters/{name}/adapter.py:{class_name}"
        code = "from gulpio2.cli.main import main; main()"
        command = [sys.executable, "-c", code, "ingest", adapter, *map(str, arguments)]
        command += [str(tmp_path / "gulp"), "--num-workers", "1", "--json"]
        result = subprocess.run(
            command,
            cwd=repository,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        report: dict[str, Any] = json.loads(result.stdout)
        return report

    return run
