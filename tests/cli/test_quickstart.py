"""What ``docs/quickstart.md`` tells people to do works, in its order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import cv2

from gulpio2 import GulpDirectory


def test_every_block_of_the_quickstart_runs(
    gulp2, tmp_path, make_video, repository, capsys
):
    for label in ("walk", "run"):
        make_video(tmp_path / "videos" / label / "1.mp4", 24)
    page = (repository / "docs" / "quickstart.md").read_text("utf-8")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.M | re.S)
    names: dict[str, object] = {}
    outputs = []
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, "quickstart.md", "exec"), names)  # noqa: S102  # our page
            continue
        for line in text.splitlines():
            words = shlex.split(line)
            assert words[0] == "gulp2"
            outputs.append(gulp2(*words[1:]).stdout)
    assert len(outputs) == 19
    assert outputs[1].startswith("elsewhere: 2 items of VideoFolderAdapter would be")
    heading = "quality  short edge  size        frames/s read by one thread\n"
    assert f"\n  {heading}" in outputs[1]
    assert f"\n    {heading}" in page
    assert not Path("elsewhere").exists()
    printed = capsys.readouterr().out
    assert "run-1.mp4 run 4 (128, 170, 3)" in printed
    assert "(8, 128, 170, 3)" in printed
    assert "walk-1.mp4\n" in outputs
    assert cv2.imread("contact_sheet.png") is not None
    assert len(list(Path("pictures/walk-1.mp4").iterdir())) == 4
    assert Path("walk-1.mp4").is_file()
    assert len(list(Path("first-frames/walk-1.mp4").iterdir())) == 1
    assert GulpDirectory("from-table")["second"][1]["fold"] == 2
    assert len(GulpDirectory("ramps")) == 3
    assert set(GulpDirectory("repaired").merged_meta_dict) == {
        "walk-1.mp4",
        "run-1.mp4",
    }
