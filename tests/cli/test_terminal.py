"""Lines for people."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import types

import pytest
from PIL import Image, TiffImagePlugin

from gulpio2.cli.legacy import gulp2_image_folder
from gulpio2.cli.terminal import (
    as_options,
    count,
    escape,
    note,
    size,
    write_lines,
    write_some,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 7/a", "plain 7/a"),
        ("größe 片", "größe 片"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\u202egnp", r"\u202egnp"),
        ("\udc80", r"\udc80"),
        ("a\x85\x9bb\x7f", r"a\x85\x9bb\x7f"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\u200e\u200f\u202a\u2066\u2069", r"\u200e\u200f\u202a\u2066\u2069"),
        ("\u200b\ufeff\xad\U000e0067", r"\u200b\ufeff\xad\U000e0067"),
        ("\ue000\u0378", r"\ue000\u0378"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text, shown):
    assert escape(text) == shown
    assert escape(text).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "a\xa0b",
        "山田\u3000太郎",
        "👩\u200d💻",
        "\u0645\u06cc\u200c\u062e\u0648",
        "a\u2009b\u202fc",
    ],
)
def test_spaces_and_joiners_are_shown_as_they_are(text):
    assert escape(text) == text
    assert escape(f"{text}\x1b") == rf"{text}\x1b"


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (0, "a\nb\nc\n"),
        (3, "a\nb\nc\n"),
        (4, "a\nb\nc\n"),
        (1, "a\nand 2 more: --limit 0 or --json gives all of them\n"),
    ],
)
def test_lines_behind_the_limit_are_counted(capsys, limit, shown):
    write_some(iter("abc"), limit)
    assert capsys.readouterr().out == shown


def test_warnings_advise_options_as_errors_do(gulp2, tmp_path):
    (tmp_path / "twice.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Twice(FrameAdapter):\n"
        "    def __init__(self):\n"
        "        super().__init__(num_items=4, list_ids=False)\n"
        "    def iter_data(self, slice_element=None):\n"
        "        for item in super().iter_data(slice_element):\n"
        "            yield {**item, 'id': 'one'}\n"
    )
    adapter = f"{tmp_path / 'twice.py'}:Twice"
    options = ("--on-duplicate", "report", "--num-workers", "1")
    result = gulp2("ingest", adapter, tmp_path / "out", *options, status=1)
    warnings = [line for line in result.stderr.splitlines() if "warning:" in line]
    assert len(warnings) == 3
    assert all("skip such items (--on-duplicate skip)" in line for line in warnings)


@pytest.fixture
def variable(monkeypatch):
    """Take the variable of OpenCV away, whoever has set it before."""
    monkeypatch.setenv("OPENCV_LOG_LEVEL", "")
    monkeypatch.delenv("OPENCV_LOG_LEVEL")
    return "OPENCV_LOG_LEVEL"


@pytest.mark.parametrize("status", [0, 2], ids=["done", "refused"])
@pytest.mark.parametrize("before", [None, "ERROR"])
def test_a_command_leaves_the_environment_as_it_was(
    gulp2, tmp_path, monkeypatch, variable, before, status
):
    (tmp_path / "seen.py").write_text(
        "import os\n"
        "from gulpio2.testing import FrameAdapter\n"
        "class Seen(FrameAdapter):\n"
        "    def iter_data(self, slice_element=None):\n"
        f"        assert os.environ[{variable!r}] == {before or 'SILENT'!r}\n"
        "        yield from super().iter_data(slice_element)\n"
    )
    if before is not None:
        monkeypatch.setenv(variable, before)
    options = ("--num-workers", "1" if status == 0 else "none")
    gulp2(
        *("ingest", f"{tmp_path / 'seen.py'}:Seen", tmp_path / "out", *options),
        status=status,
    )
    assert os.environ.get(variable) == before


def test_a_program_of_old_leaves_the_environment_as_it_was(tmp_path, variable):
    (tmp_path / "images" / "a").mkdir(parents=True)
    Image.new("RGB", (8, 6)).save(tmp_path / "images" / "a" / "b.png")
    places = (str(tmp_path / "images"), str(tmp_path / "out"))
    gulp2_image_folder(["--num_workers", "1", *places])
    assert (tmp_path / "out" / "meta_0.gmeta").is_file()
    assert variable not in os.environ


@pytest.mark.parametrize(
    ("num_bytes", "shown"),
    [(999, "999 B"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (2.5e12, "2.5 TB")],
)
def test_a_size_has_the_unit_that_fits(num_bytes, shown):
    assert size(num_bytes) == shown


def test_one_thing_is_not_several():
    assert [count(n, "item") for n in (0, 1, 2)] == ["0 items", "1 item", "2 items"]


def test_many_lines_come_out_in_order(capsys):
    write_lines(str(n) for n in range(2500))
    assert capsys.readouterr().out.split() == [str(n) for n in range(2500)]
    write_lines([])
    assert capsys.readouterr().out == ""


def test_a_note_needs_no_bar_that_is_whole(monkeypatch, capsys):
    # As a module is until its last line has run.
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    note("a line")
    assert capsys.readouterr().err == "a line\n"


@pytest.mark.parametrize("part", ["x", "x_", "(x", "x="])
def test_a_message_of_one_long_word_is_looked_through_once(part):
    text = part * 20_000
    began = time.process_time()
    assert as_options(text) == text
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("option", "variable", "is_told"),
    [
        ("-q", None, False),
        ("-v", None, True),
        ("-q", "WARNING", True),
        ("-v", "SILENT", False),
    ],
)
def test_what_opencv_says_of_each_image_is_told_only_where_it_is_asked_for(
    start, tmp_path, monkeypatch, option, variable, is_told
):
    monkeypatch.delenv("OPENCV_LOG_LEVEL", raising=False)  # of a command before this
    private = TiffImagePlugin.ImageFileDirectory_v2()
    private[33550] = (1.0, 1.0, 0.0)  # what each GeoTIFF has
    private.tagtype[33550] = 12
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 6)).save(tmp_path / "images" / "a.tif", tiffinfo=private)
    if variable is not None:
        monkeypatch.setenv("OPENCV_LOG_LEVEL", variable)
    if is_told:
        reads = [sys.executable, "-c", "import cv2; cv2.imread('images/a.tif')"]
        done = subprocess.run(reads, cwd=tmp_path, capture_output=True, check=True)
        if b"Unknown field" not in done.stderr:
            pytest.skip("an OpenCV that says nothing of it by itself")
    options = ("--file-extensions", ".tif", "--num-workers", "1")
    run = start(option, "ingest", "image-folder", "images", "gulped", *options)
    _, told = run.communicate()
    assert run.returncode == 0, told
    assert ("Unknown field with tag 33550" in told) == is_told
