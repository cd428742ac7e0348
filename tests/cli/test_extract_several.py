"""``gulp2 extract`` of several items, by ids or by a condition."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory
from tests.cli.extracted import files_below, make_items


def test_several_items_each_have_a_folder_or_a_video(gulp2, gulped):
    result = gulp2("extract", gulped, "item2", "item0", "item2", "--frames", "1:3")
    assert result.stdout == "item2: 2 frames\nitem0: 2 frames\n"
    assert files_below(Path("item0")) == ["000001.jpg", "000002.jpg"]
    assert files_below(Path("item2")) == ["000001.jpg", "000002.jpg"]
    result = gulp2("extract", gulped, "item0", "item1", "--format", "mp4", "-o", "out")
    assert result.stdout == "out/item0.mp4: 6 frames\nout/item1.mp4: 6 frames\n"
    told = "of item 'item0' have no ascending times; 25 frames per second are taken for"
    assert result.stderr.count(told) == 1
    assert "item1" not in result.stderr
    assert files_below(Path("out")) == ["item0.mp4", "item1.mp4"]


def test_a_condition_chooses_items(gulp2, gulped):
    words = ["extract", gulped, "--where", "number >= 2 and num_frames == 6"]
    told = "out/item2: 1 frame\nout/item3: 1 frame\n"
    words += ["--frames", "-1", "-o", "out"]
    would = gulp2(*words, "--dry-run").stdout
    assert would == told.replace("out/", "would write out/")
    assert not Path("out").exists()
    assert gulp2(*words).stdout == told
    assert files_below(Path("out")) == ["item2/000005.jpg", "item3/000005.jpg"]


def test_of_ids_those_are_written_that_meet_the_condition(gulp2, gulped):
    words = ["extract", gulped, "item3", "item0", "item2", "-o", "out", "--dry-run"]
    assert gulp2(*words, "--where", "number >= 2").stdout.splitlines() == [
        "would write out/item3: 6 frames",
        "would write out/item2: 6 frames",
    ]
    result = gulp2(*words, "nobody", "--where", "number >= 2", status=1)
    assert "no item 'nobody'" in result.stderr


def test_a_condition_that_no_item_meets_is_exit_status_1(gulp2, gulped):
    result = gulp2("extract", gulped, "--where", "number > 9", "-o", "out", status=1)
    assert result.stdout == ""
    assert result.stderr == (
        "gulp2: no item meets the condition; all items are listed by: gulp2 ls "
        f"{gulped}\n"
    )
    result = gulp2("extract", gulped, "item0", "--where", "number > 0", status=1)
    assert "no item has one of these ids and meets the condition; all" in result.stderr
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "It is empty: perhaps a variable of the shell is not set"),
        ("number == 1 # and num_frames < 2", "would be a comment"),
        ("label == 'x'", "there is no column 'label'; there are id, chunk, num_frames"),
    ],
)
def test_a_condition_that_is_none_is_wrong_usage(gulp2, gulped, condition, message):
    result = gulp2("extract", gulped, "item0", "--where", condition, status=2)
    assert message in " ".join(result.stderr.split())
    assert not Path("item0").exists()


def test_neither_ids_nor_a_condition_is_wrong_usage(gulp2, gulped):
    said = gulp2("extract", gulped, status=2).stderr
    assert "Missing argument 'ID...'. Name items, or give a condition" in said


def test_nothing_of_several_items_is_written_where_one_cannot_be(gulp2, gulped):
    Path("out/item3").mkdir(parents=True)
    Path("out/item3/000003.jpg").write_text("mine")
    words = ["extract", gulped, "--where", "number > 0", "-o", "out"]
    said = gulp2(*words, status=1).stderr
    assert "out/item3/000003.jpg is there already; --overwrite replaces it" in said
    said = gulp2(*words, "--overwrite", "--frames", "6", status=1).stderr
    assert "item 'item1': frame index 6 is outside" in said
    assert files_below(Path("out")) == ["item3/000003.jpg"]
    told = gulp2(*words, "--overwrite").stdout.splitlines()
    assert told == [
        "out/item1: 6 frames",
        "out/item2: 6 frames",
        "out/item3: 6 frames, replacing 1 file",
    ]


@pytest.mark.parametrize("format_", ["jpg", "mp4"])
def test_of_several_items_those_that_are_not_damaged_are_written(
    gulp2, gulped, format_
):
    offset, length = GulpDirectory(gulped).item("item1").record.spans([2])[0]
    with (gulped / "data_0.gulp").open("r+b") as file:
        file.seek(offset + length - 10)
        file.write(b"\0\0\0\0")
    ids = ["item0", "item1", "item3"]
    result = gulp2("extract", gulped, *ids, "--format", format_, "-o", "out", status=1)
    ending = "" if format_ == "jpg" else ".mp4"
    assert result.stdout.splitlines() == [
        f"out/item0{ending}: 6 frames",
        f"out/item3{ending}: 6 frames",
    ]
    assert "gulp2: error: " in result.stderr
    assert "item1" in result.stderr
    assert "GulpDirectory" not in result.stderr
    assert result.stderr.endswith("gulp2: 1 of 3 items could not be written\n")
    written = {name.partition("/")[0] for name in files_below(Path("out"))}
    assert written == {f"item0{ending}", f"item3{ending}"}


@pytest.mark.parametrize("format_", ["jpg", "mp4"])
def test_items_of_a_data_file_that_cannot_be_opened_are_named(
    gulp2, gulped, unopenable, format_
):
    text = unopenable(gulped / "data_0.gulp")  # of the first two items
    words = ["extract", gulped, "--where", "number < 4", "--format", format_]
    result = gulp2(*words, "-o", "out", status=1)
    ending = "" if format_ == "jpg" else ".mp4"
    assert result.stdout.splitlines() == [
        f"out/item2{ending}: 6 frames",
        f"out/item3{ending}: 6 frames",
    ]
    lines = [line for line in result.stderr.splitlines() if "gulp2: error: " in line]
    assert len(lines) == 2
    for id_, line in zip(("item0", "item1"), lines, strict=True):
        assert line.startswith(f"gulp2: error: item {id_!r}: cannot open {gulped}")
        assert text in line
    assert result.stderr.endswith("gulp2: 2 of 4 items could not be written\n")
    written = {name.partition("/")[0] for name in files_below(Path("out"))}
    assert written == {f"item2{ending}", f"item3{ending}"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_file_that_cannot_be_written_ends_it_also_beside_unopenable_ones(
    gulp2, gulped, unopenable, monkeypatch, number
):
    unopenable(gulped / "data_0.gulp")

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    words = ["extract", gulped, "item0", "item2", "item3", "-o", "out"]
    result = gulp2(*words, status=1)
    assert result.stdout == ""
    told = result.stderr.splitlines()
    assert len(told) == 2
    assert told[0].startswith("gulp2: error: item 'item0': cannot open")
    assert told[1].startswith("gulp2: error: cannot write out/item2/000000.jpg: ")


def test_what_is_wrong_with_all_items_is_told_once(gulp2, gulped, read_only):
    words = ["extract", gulped, "--where", "number < 3", "--out", read_only]
    error = gulp2(*words, status=1).stderr
    assert error.count("gulp2: ") == 1
    assert "Permission denied. Make the folder writable for you" in error


def test_lines_of_many_items_are_limited(gulp2, tmp_path):
    make_items(tmp_path / "gulp", *(f"i{n}" for n in range(103)))
    words = ["extract", "gulp", "--where", "num_frames == 1", "--dry-run"]
    lines = gulp2(*words).stdout.splitlines()
    assert len(lines) == 101
    assert lines[99:] == [
        "would write i99: 1 frame",
        "and 3 more: --limit 0 gives all of them",
    ]
    assert len(gulp2(*words, "--limit", "0").stdout.splitlines()) == 103
    assert gulp2(*words, "--limit", "102").stdout.endswith(
        "and 1 more: --limit 0 gives all of them\n"
    )
