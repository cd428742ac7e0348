"""``gulp2 extract``: images, and no file outside of the folder."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.export import new_file
from gulpio2.errors import StorageError
from tests.cli.extracted import decoded, files_below
from tests.faults.operations import in_child


def test_jpg_files_are_the_stored_bytes(gulp2, gulped):
    result = gulp2("extract", gulped, "item1", "--out", "out")
    assert result.stdout == "out/item1: 6 frames\n"
    names = [f"item1/{n:06}.jpg" for n in range(6)]
    assert files_below(Path("out")) == names
    stored = GulpDirectory(gulped).read_jpegs("item1")
    assert [Path("out", name).read_bytes() for name in names] == stored


def test_png_files_are_the_decoded_pixels(gulp2, gulped):
    gulp2("extract", gulped, "item0", "--format", "png", "--frames", "0:6:2")
    assert files_below(Path("item0")) == ["000000.png", "000002.png", "000004.png"]
    for n in (0, 2, 4):
        picture = cv2.imread(f"item0/{n:06}.png")
        assert picture is not None
        stored = GulpDirectory(gulped)["item0", n][0][0]
        assert np.array_equal(picture[..., ::-1], stored)


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ("3", [3]),
        ("-1", [5]),
        ("::-2", [1, 3, 5]),
        ("0,0,4:", [0, 4, 5]),
        (":", range(6)),
    ],
)
def test_frames_keep_their_number_in_the_item(gulp2, gulped, choice, numbers):
    gulp2("extract", gulped, "item0", "--frames", choice)
    assert files_below(Path("item0")) == [f"{n:06}.jpg" for n in numbers]


@pytest.mark.parametrize(
    ("choice", "message"),
    [("6", "frame index 6 is outside"), ("6:", "has 6 frames, and none is chosen")],
)
def test_frames_that_are_not_there_are_an_error(gulp2, gulped, choice, message):
    result = gulp2("extract", gulped, "item0", "--frames", choice, status=1)
    assert message in result.stderr
    assert not Path("item0").exists()


def test_of_an_item_without_frames_it_is_said_that_it_has_none(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [])
    stderr = gulp2("extract", tmp_path, "a", status=1).stderr
    assert "item 'a' has no frames" in stderr
    assert "--frames" not in stderr


def test_nothing_is_overwritten_without_being_asked(gulp2, gulped):
    Path("item0").mkdir()
    Path("item0/000003.jpg").write_text("mine")
    result = gulp2("extract", gulped, "item0", status=1)
    told = "item0/000003.jpg is there already; --overwrite replaces it\n"
    assert result.stderr.endswith(told)
    assert files_below(Path("item0")) == ["000003.jpg"]
    gulp2("extract", gulped, "item0", "--overwrite")
    assert Path("item0/000003.jpg").read_bytes()[:2] == b"\xff\xd8"
    words = ["extract", gulped, "item0", "--frames", "2:4", "--overwrite"]
    told = "item0: 2 frames, replacing 2 files\n"
    assert gulp2(*words, "--dry-run").stdout == f"would write {told}"
    assert gulp2(*words).stdout == told
    result = gulp2("extract", gulped, "item0", status=1)
    told = "item0/000000.jpg is there already, and 5 more; --overwrite replaces them\n"
    assert result.stderr.endswith(told)


@pytest.mark.parametrize("name", ["clip.mp4", "a/frame.JPG"])
def test_a_file_in_the_place_of_the_folder_is_wrong_usage(gulp2, gulped, name):
    result = gulp2("extract", gulped, "item1", "--out", name, status=2)
    assert f"'{name}' is named as a file. Give a folder" in " ".join(
        result.stderr.split()
    )
    assert not Path(name).parent.joinpath("item1").exists()
    assert not Path(name).exists()
    Path(name).mkdir(parents=True)  # then it is meant
    gulp2("extract", gulped, "item1", "--out", name)


def test_a_dry_run_writes_nothing(gulp2, gulped):
    for format_ in ("jpg", "png", "mp4"):
        result = gulp2("extract", gulped, "item0", "--format", format_, "--dry-run")
        assert "would write item0" in result.stdout
    assert files_below(Path()) == sorted(
        f"gulped/{kind}" for kind in
        ("data_0.gulp", "data_1.gulp", "meta_0.gmeta", "meta_1.gmeta")
    )  # fmt: skip


def test_an_unknown_item_is_an_error(gulp2, gulped):
    assert "no item 'x'" in gulp2("extract", gulped, "x", status=1).stderr


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_url_is_no_folder_to_write_to(gulp2, gulped, tmp_path, more):
    result = gulp2("extract", gulped, "item0", "-o", "s3://bucket/x", *more, status=1)
    assert "it is a URL" in result.stderr
    assert not (tmp_path / "s3:").exists()


def test_a_folder_that_cannot_be_made_is_a_message(gulp2, gulped):
    Path("file").write_text("")
    result = gulp2("extract", gulped, "item0", "--out", "file/out", status=1)
    assert "cannot make the folder file/out/item0: Not a dir" in result.stderr
    assert "A part of this path is a file" in result.stderr


@pytest.mark.parametrize("format_", ["jpg", "png", "mp4"])
def test_a_read_only_folder_is_a_message_that_says_what_to_do(
    gulp2, gulped, read_only, format_
):
    words = ["extract", gulped, "item0", "--out", read_only, "--format", format_]
    error = gulp2(*words, status=1).stderr
    assert f"{read_only}/item0" in error, error
    assert "Permission denied. Make the folder writable for you" in error, error


@pytest.mark.parametrize("format_", ["jpg", "png", "mp4"])
def test_a_full_disk_is_a_message_and_leaves_no_part_of_a_file(
    start, gulped, tmp_path, format_
):
    # The system refuses to write more than 100 bytes, as a full disk does.
    process = start(
        "extract", gulped, "item0", "--out", "out", "--format", format_, "--quiet",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )  # fmt: skip
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "gulp2: error: cannot write out/item0" in err, err
    assert err.count("\n") == 1
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [
        (".5", Fraction(2)),
        ("29.97", Fraction(100, 2997)),
        ("30000/1001", Fraction(1001, 30000)),
        ("12.", Fraction(1, 12)),
        (" 25 ", Fraction(1, 25)),
    ],
)
def test_a_rate_may_be_written_in_several_ways(gulp2, gulped, rate, seconds):
    gulp2("extract", gulped, "item0", "--format", "mp4", "--rate", rate)
    times = decoded("item0.mp4")[1]
    assert times == pytest.approx([float(n * seconds) for n in range(6)])


def test_a_file_that_has_come_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "a.mp4"

    def write():
        with new_file(path, overwrite=False) as partial:
            partial.write_bytes(b"mine")
            path.write_bytes(b"of another")

    with pytest.raises(StorageError, match="is there already"):
        write()
    assert path.read_bytes() == b"of another"
    assert files_below(tmp_path) == ["a.mp4"]
    with new_file(path, overwrite=True) as partial:
        partial.write_bytes(b"mine")
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_is_not_complete_is_removed_when_a_signal_ends_the_program(
    tmp_path, number
):
    def write():
        if number == signal.SIGHUP:  # nohup has it ignored
            signal.signal(number, signal.SIG_DFL)
        with new_file(tmp_path / "a.mp4", overwrite=False) as partial:
            partial.write_bytes(b"half")
            os.kill(os.getpid(), number)
            time.sleep(9)

    assert in_child(write) == (256 if number == signal.SIGINT else number)
    assert not files_below(tmp_path)


def test_a_file_that_may_not_be_so_large_is_none_of_chunks(tmp_path):
    too_large = OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    message = "so large there: give another folder"
    with (
        pytest.raises(StorageError, match=message),
        new_file(tmp_path / "a.mp4", overwrite=False),
    ):
        raise too_large


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_folder_cannot_be_below_a_file(gulp2, gulped, options):
    Path("file").touch()
    words = ["extract", gulped, "item0", "--out", "file/below", *options]
    result = gulp2(*words, status=1)
    assert "cannot make the folder file" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("form", ["jpg", "png", "mp4"])
def test_bytes_that_have_changed_are_not_written_as_a_frame(gulp2, gulped, form):
    offset, length = GulpDirectory(gulped).item("item1").record.spans([2])[0]
    data = gulped / "data_0.gulp"
    with data.open("r+b") as file:
        file.seek(offset + length - 10)
        byte = file.read(1)[0]
        file.seek(offset + length - 10)
        file.write(bytes([byte ^ 1]))
    words = ["extract", gulped, "item1", "--format", form, "--out", "out"]
    told = gulp2(*words, status=1).stderr
    assert "frame 2" in told
    assert "checksum" in told
    assert "GulpDirectory" not in told  # nobody can follow that here
    gulp2(*words, "--frames", "0,1,3")


@pytest.mark.usefixtures("_drawn_at_once")
@pytest.mark.parametrize("format_", ["jpg", "png", "mp4"])
def test_what_takes_longer_shows_how_far_it_is(gulp2, gulped, monkeypatch, format_):
    from gulpio2.cli import progress

    monkeypatch.setattr(progress, "_FILE_SECONDS", 0.0)
    number = len(GulpDirectory(gulped)["item1"][0])
    said = gulp2("extract", gulped, "item1", "--format", format_).stderr
    lines = [line.partition(" [")[0] for line in said.splitlines() if "[" in line]
    wanted = [f"{done}/{number} frames" for done in range(1, number + 1)]
    opening = [line for line in lines if line.endswith("B")]  # bytes of the maps
    assert opening
    assert lines == [*opening, *wanted, wanted[-1]]


def test_an_empty_out_is_no_folder(gulp2, gulped, tmp_path):
    said = gulp2("extract", gulped, "item0", "--out", "", status=2).stderr
    assert "perhaps a variable of the shell is not set" in said
    assert not (tmp_path / "item0").exists(), "the current folder"
