"""The installed distribution: commands that exist, types that ship, one version."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.resources
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gulpio2.errors
from gulpio2.__version__ import __version__


@pytest.fixture(scope="module")
def distribution() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("gulpio2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gulpio2 runs from the checkout and is not installed")


def test_the_version_of_the_distribution_is_that_of_the_source(distribution):
    assert distribution.version == __version__


def test_every_command_leads_to_a_function(distribution):
    commands = [e for e in distribution.entry_points if e.group == "console_scripts"]
    assert len(commands) == 11
    for command in commands:
        module, _, name = command.value.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), command


def test_the_types_ship_with_the_package():
    assert importlib.resources.files(gulpio2).joinpath("py.typed").is_file()


def test_the_core_needs_no_extra(distribution):
    core = {
        re.split(r"[<>=; ]", line)[0]
        for line in distribution.requires or []
        if "extra ==" not in line
    }
    assert core == {
        "av",
        "click",
        "numpy",
        "opencv-python-headless",
        "pyarrow",
        "simplejpeg",
        "tqdm",
        "zlib-ng",
    }


def test_the_source_archive_has_every_file_that_is_tracked(tmp_path):
    # Its own tests need them: those of bench/ could not even be imported.
    root = Path(__file__).resolve().parents[1]
    pytest.importorskip("setuptools")
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("only a checkout tells which files are tracked")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    tracked = {name for name in listed.split("\0") if name and name[0] != "."}
    subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", tmp_path],
        cwd=root,
        check=True,
        capture_output=True,
    )
    archived = (tmp_path / "gulpio2.egg-info" / "SOURCES.txt").read_text("utf-8")
    assert tracked - set(archived.splitlines()) == set()
