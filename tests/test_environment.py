"""``bin/environment``: made once, and again where what is there cannot be right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

# Makes an environment whose Python is this program again, and installs nothing.
PYTHON = f"""#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo venv >>"$CALLS"
elif [ "$1 $2" = "-m pip" ]; then
    echo pip >>"$CALLS"
else
    exec "{sys.executable}" "$@"
fi
"""


class Checkout:
    """A copy of what the program needs, in a path with a space in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "a checkout"
        self.calls = tmp_path / "calls"
        self.python = tmp_path / "python"
        self.python.write_text(PYTHON)
        self.python.chmod(0o755)
        for name in ("bin", "constraints.txt", "setup.py", "gulpio2/__version__.py"):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
            copy(REPOSITORY / name, target)

    def run(self, program: str = "environment", **environ: str) -> tuple[str, int]:
        """Run a program of bin; give what it prints, and how much was made for it."""
        self.calls.write_text("")
        done = subprocess.run(
            [f"bin/{program}"],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHON": str(self.python),
                "CALLS": str(self.calls),
                "TORCH": "0",
                **environ,
            },
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout, len(self.calls.read_text().splitlines())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Make a checkout without an environment."""
    return Checkout(tmp_path)


def test_it_is_made_once(checkout):
    said = f"{checkout.root}/.venv/bin/python\n"
    assert checkout.run() == (said, 2)
    assert checkout.run() == (said, 0)


def test_of_a_moved_or_copied_checkout_it_is_made_anew(checkout, tmp_path):
    checkout.run()
    moved = tmp_path / "moved"
    shutil.copytree(checkout.root, moved)
    checkout.root = moved
    said = f"{moved}/.venv/bin/python\n"
    assert checkout.run() == (said, 2)
    assert checkout.run() == (said, 0)


def test_without_a_python_that_starts_it_is_made_anew(checkout):
    checkout.run()
    shutil.rmtree(checkout.root / ".venv" / "bin")
    assert checkout.run()[1] == 2
    python = checkout.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("nowhere")
    assert checkout.run()[1] == 2
    assert checkout.run()[1] == 0


def test_it_is_found_whatever_cdpath_says(checkout, tmp_path):
    (tmp_path / "elsewhere" / "bin").mkdir(parents=True)
    said, _ = checkout.run(CDPATH=str(tmp_path / "elsewhere"))
    assert said == f"{checkout.root}/.venv/bin/python\n"
