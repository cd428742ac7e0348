"""What the package warns of is seen by who has set up nothing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from gulpio2.adapters import ImageFolderAdapter
ImageFolderAdapter(sys.argv[1], sys.argv[2], file_extensions=[".jpg"])
"""


def test_a_warning_is_printed_without_settings_of_logging(tmp_path):
    for name in ("1.jpg", "2.png"):
        path = tmp_path / "images" / "walk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    words = [sys.executable, "-c", PROGRAM, tmp_path / "images", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "left out for their endings: .png (1)" in done.stderr
