"""``gulp2 repair``."""

from __future__ import annotations

import json

from gulpio2 import GulpDirectory
from gulpio2.testing.faults import content


def test_a_sound_directory_is_moved_and_the_exit_status_is_0(gulp2, gulped, tmp_path):
    result = gulp2("repair", gulped, tmp_path / "out")
    assert "whole items moved" in result.stdout
    assert len(GulpDirectory(tmp_path / "out")) == len(GulpDirectory(gulped))


def test_losses_are_listed_first_by_a_dry_run(gulp2, gulped, tmp_path):
    (gulped / "meta_0.gmeta").unlink()
    before = content(gulped)
    dry = gulp2("repair", gulped, tmp_path / "out", "--dry-run", status=1)
    assert "can be moved" in dry.stdout
    assert "lost: meta_0.gmeta" in dry.stdout
    assert "salvaged: salvaged_0_0: " in dry.stdout
    assert not (tmp_path / "out").exists()
    done = gulp2("repair", gulped, tmp_path / "out", "--json", status=1)
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert report["salvaged"][0]["id"] == "salvaged_0_0"
    assert report["lost"][0]["file"] == "meta_0.gmeta"
    assert content(gulped) == before
    gulp2("check", "--deep", tmp_path / "out")


def test_a_target_with_something_in_it_is_refused(gulp2, gulped):
    result = gulp2("repair", gulped, gulped, status=1)
    assert "gulp2: error: " in result.stderr
