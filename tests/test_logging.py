"""What the package warns of is seen by who has set up nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gulpio2 import GulpDirectory

PROGRAM = """
import sys
from gulpio2.adapters import ImageFolderAdapter
ImageFolderAdapter(sys.argv[1], sys.argv[2], file_extensions=[".jpg"])
"""

FAILING = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter
adapter = FrameAdapter(num_items=3, bad=[1])
GulpIngestor(adapter, sys.argv[1], 1, 1, allow_failures=True)()
"""


def test_a_warning_is_printed_without_settings_of_logging(tmp_path):
    for name in ("1.jpg", "2.png"):
        path = tmp_path / "images" / "walk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    words = [sys.executable, "-c", PROGRAM, tmp_path / "images", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "left out for their endings: .png (1)" in done.stderr


def test_a_failed_item_is_told_on_a_line_without_the_bar(tmp_path):
    words = [sys.executable, "-c", FAILING, tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, check=True)
    (line,) = (told for told in done.stderr.split(b"\n") if b"item1" in told)
    before, _, seen = line.rpartition(b"\r")
    assert seen.startswith(b"item 'item1' (position 1): ")
    assert b"Chunks finished: " in before  # which was there, and was taken away


def test_a_failed_item_costs_no_run_where_stderr_cannot_be_written(tmp_path):
    words = [sys.executable, "-c", FAILING, tmp_path / "out"]
    with Path("/dev/full").open("wb") as full:
        subprocess.run(words, stderr=full, check=False)
    assert list(GulpDirectory(tmp_path / "out").merged_meta_dict) == ["item0", "item2"]
