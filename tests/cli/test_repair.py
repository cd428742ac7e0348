"""``gulp2 repair``."""

from __future__ import annotations

import json

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.testing import make_frames
from tests.faults.operations import content


def test_a_sound_directory_is_moved_and_the_exit_status_is_0(gulp2, gulped, tmp_path):
    result = gulp2("repair", gulped, tmp_path / "out")
    assert "whole items copied" in result.stdout
    assert len(GulpDirectory(tmp_path / "out")) == len(GulpDirectory(gulped))


def test_losses_are_listed_first_by_a_dry_run(gulp2, gulped, tmp_path):
    (gulped / "meta_0.gmeta").unlink()
    before = content(gulped)
    dry = gulp2("repair", gulped, tmp_path / "out", "--dry-run", status=1)
    assert "can be copied" in dry.stdout
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


@pytest.mark.usefixtures("permissions")
@pytest.mark.parametrize("whole_map", [True, False])
def test_frames_that_may_not_be_read_are_not_called_damaged(
    gulp2, gulped, tmp_path, whole_map
):
    if not whole_map:
        (gulped / "meta_0.gmeta").write_bytes(b"")
    (gulped / "data_0.gulp").chmod(0)
    done = gulp2("repair", gulped, tmp_path / "out", "--dry-run", "--json", status=1)
    lost = json.loads(done.stdout)["lost"]
    reasons = {loss["reason"] for loss in lost if loss["file"] == "data_0.gulp"}
    why = f"cannot open {gulped}/data_0.gulp: Permission denied."
    assert len(reasons) == 1
    assert reasons.pop().startswith(f"cannot be read: {why}")


def make_items(folder, num_items):
    """Make a directory of one chunk of items with a frame each."""
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(num_items):
            chunk.append(f"i{number}", {}, make_frames(1, 8, 8))


def test_of_many_losses_the_first_are_listed_and_all_counted(gulp2, tmp_path):
    make_items(tmp_path / "gulped", 103)
    (tmp_path / "gulped" / "data_0.gulp").write_bytes(b"")
    words = ["repair", "gulped", "out", "--dry-run"]
    report = json.loads(gulp2(*words, "--json", status=1).stdout)
    assert len(report["lost"]) == 103
    lines = gulp2(*words, status=1).stdout.splitlines()
    lost = [line for line in lines if line.startswith("lost: ")]
    assert len(lost) == 101
    assert lost[99].startswith("lost: data_0.gulp, item 'i99'")
    assert lost[100] == "lost: and 3 more: --limit 0 or --json gives all of them"
    assert lines[-1].endswith("; 103 losses")
    whole = gulp2(*words, "--limit", "0", status=1).stdout
    assert whole.count("lost: data_0.gulp, item") == 103
    assert "more:" not in whole


def test_each_kind_has_the_limit(gulp2, gulped, tmp_path):
    for name in ("meta_0.gmeta", "meta_1.gmeta"):
        (gulped / name).unlink()
    words = ["repair", gulped, tmp_path / "out", "--limit", "1"]
    lines = gulp2(*words, status=1).stdout.splitlines()
    kinds = [line.partition(": ")[::2] for line in lines]
    rest = "and 1 more: --limit 0 or --json gives all of them"
    for kind in ("lost", "salvaged"):
        texts = [text for each, text in kinds if each == kind]
        assert texts[1:] == [rest]


@pytest.mark.usefixtures("_drawn_at_once")
def test_the_bar_ends_with_all_that_there_was_to_do(gulp2, gulped, tmp_path):
    gulp2("delete", gulped, "item1")
    for options in (["--dry-run"], []):
        told = gulp2("repair", gulped, tmp_path / "out", *options).stderr.splitlines()
        done, total = told[-1].partition("B [")[0].split("/")
        assert done == total


@pytest.mark.usefixtures("_drawn_at_once")
def test_the_bar_goes_on_while_the_mended_files_are_written(
    gulp2, gulped, tmp_path, monkeypatch
):
    from gulpio2.cli import progress

    monkeypatch.setattr(progress, "_FILE_SECONDS", 0.0)
    looked = gulp2("repair", gulped, tmp_path / "out", "--dry-run").stderr.splitlines()
    told = gulp2("repair", gulped, tmp_path / "out").stderr.splitlines()
    assert len(told) == len(looked) + 24, "a line for each frame that is written"
    shares = [line.partition("B [")[0].split("/") for line in told]
    assert all(done != total for done, total in shares[:-2])


@pytest.mark.usefixtures("_drawn_at_once")
def test_there_is_no_bar_where_no_data_file_is_left(gulp2, gulped, tmp_path):
    for path in gulped.glob("data_*.gulp"):
        path.unlink()
    said = gulp2("repair", gulped, tmp_path / "out", "--dry-run", status=1).stderr
    assert "/0" not in said


def test_a_target_with_something_in_it_is_refused(gulp2, gulped):
    result = gulp2("repair", gulped, gulped, status=1)
    assert "gulp2: error: " in result.stderr


@pytest.mark.parametrize(
    "command",
    ["info {0}", "ls {0}", "repair {0} {1}", "merge {0} {2} {1}", "delete {0} item0"],
)
def test_what_to_rename_is_said_where_no_chunk_has_the_name_of_one(
    gulp2, gulped, tmp_path, command
):
    padded = tmp_path / "padded"
    padded.mkdir()
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (padded / name.replace("_", "_0")).write_bytes((gulped / name).read_bytes())
    arguments = command.format(padded, tmp_path / "out", gulped).split()
    result = gulp2(*arguments, status=1)
    assert "padded is no gulp directory" in result.stderr
    assert "data_00.gulp and 1 other file are named almost" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_repair_says_which_files_it_left_behind_for_their_names(
    gulp2, gulped, tmp_path
):
    (gulped / "data_1 (copy).gulp").write_bytes(b"x")
    result = gulp2("repair", gulped, tmp_path / "out")
    assert "data_1 (copy).gulp: left behind" in result.stdout


def test_swapped_data_files_are_noted_and_lost_bytes_are_a_loss(
    gulp2, gulped, tmp_path
):
    one, two = gulped / "data_0.gulp", gulped / "data_1.gulp"
    before = one.read_bytes(), two.read_bytes()
    one.write_bytes(before[1])
    two.write_bytes(before[0])
    done = gulp2("repair", gulped, tmp_path / "out")
    assert "note: meta_0.gmeta: 12 frames not at the place" in done.stdout
    assert "4 whole items copied, 24 frames" in done.stdout
    mended = [tmp_path / "out" / f"data_{number}.gulp" for number in (0, 1)]
    assert tuple(path.read_bytes() for path in mended) == before
    two.write_bytes(before[0][100:])
    done = gulp2("repair", gulped, tmp_path / "again", status=1)
    assert "lost: data_0.gulp, item 'item0', frame 0: " in done.stdout
    assert "salvaged: salvaged_1_" in done.stdout
    assert "5 frames of item 'item0'" in done.stdout
