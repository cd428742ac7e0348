"""``gulp2 extract``: images, videos, and no file outside of the folder."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import signal
import time
from fractions import Fraction
from pathlib import Path

import av
import cv2
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.export import file_name, new_file
from gulpio2.cli.video_export import frame_times, write_video
from gulpio2.errors import FormatError, StorageError
from gulpio2.testing import make_frames
from tests.faults.operations import in_child


def files_below(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def decoded(path):
    """Give the frames of a video and their times."""
    with av.open(str(path)) as container:
        frames = list(container.decode(container.streams.video[0]))
        return [f.to_ndarray(format="rgb24") for f in frames], [f.time for f in frames]


# ------------------------------------------------------------------ images
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


# ------------------------------------------------------------------ several items
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


# ------------------------------------------------------------------ names
@pytest.mark.parametrize(
    "id_",
    ["../../up", "/etc/passwd", "..", ".", "", "a\x00b\n\x1b[2J", "-x", "x" * 400, "~"],
)
def test_no_id_writes_outside_of_the_folder(gulp2, tmp_path, id_):
    folder = tmp_path / "deep" / "gulp"
    folder.mkdir(parents=True)
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append(id_, {}, make_frames(1))
    before = set(files_below(tmp_path))
    out = tmp_path / "deep" / "out"
    for format_ in ("jpg", "mp4"):
        gulp2("extract", "--out", out, "--format", format_, "--", folder, id_)
    new = set(files_below(tmp_path)) - before
    assert len(new) == 2
    for name in new:
        assert name.startswith("deep/out/")
        assert name.isprintable()


@hypothesis.given(st.text(), st.text())
def test_different_ids_have_different_names_that_every_file_system_takes(one, two):
    names = [file_name(one), file_name(two)]
    assert (names[0] == names[1]) == (one == two)
    for name in names:
        assert name not in ("", ".", "..")
        assert "/" not in name
        assert "\0" not in name
        assert len(name.encode()) <= 200


def test_long_ids_that_begin_alike_have_different_names():
    assert file_name("x" * 300 + "a") != file_name("x" * 300 + "b")


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "a.mp4"],
        ["a.mp4", "a.mp4.mp4"],
        ["a", "a.mp4", "a.mp4.mp4"],
        ["a", "a.mp4.mp4"],
        ["a/b", "a/b.mp4", "a%2Fb.mp4"],
        ["", "%", ".mp4"],
        ["x" * 196, "x" * 196 + ".mp4", "x" * 200, "x" * 200 + ".mp4"],
    ],
)
@pytest.mark.parametrize("format_", ["jpg", "png", "mp4"])
def test_no_two_items_of_a_directory_are_written_to_the_same_file(
    gulp2, tmp_path, ids, format_
):
    folder = tmp_path / "gulp"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_ in ids:
            chunk.append(id_, {}, make_frames(1))
    for id_ in ids:
        gulp2("extract", "-o", "out", "--format", format_, "--", folder, id_)
    assert len(files_below(Path("out"))) == len(ids)


def make_items(folder, *ids):
    """Make a directory of items with a frame each."""
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_ in ids:
            chunk.append(id_, {}, make_frames(1))


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["a.mp4"], ["a.mp4"]),
        (["a.MP4", "b.webm"], ["a.MP4.mp4", "b.webm.mp4"]),
        (["a", "a.mp4"], ["a.mp4", "a.mp4.mp4"]),
        (["a.mp4", "a.mp4.mp4"], ["a.mp4", "a.mp4.mp4.mp4"]),
        (["a.mp4", "b"], ["a.mp4", "b.mp4"]),
        ([".mp4", ""], ["%2Emp4.mp4", "%.mp4"]),
        (["x" * 196 + ".mp4"], ["x" * 196 + ".mp4"]),
    ],
)
def test_an_id_that_ends_so_is_not_given_the_ending_of_a_video_twice(
    gulp2, tmp_path, ids, names
):
    make_items(tmp_path / "gulp", *ids)
    for id_, name in zip(ids, names, strict=True):
        words = ["extract", "gulp", "-o", "out", "--format", "mp4", "-q"]
        assert gulp2(*words, "--dry-run", "--", id_).stdout == (
            f"would write out/{name}: 1 frame\n"
        )
        gulp2(*words, "--", id_)
        assert len(decoded(f"out/{name}")[0]) == 1
    assert files_below(Path("out")) == sorted(names)


def test_a_video_lies_beside_the_images_of_an_id_that_is_a_file_name(gulp2, tmp_path):
    make_items(tmp_path / "gulp", "clip.mp4")
    for format_ in ("jpg", "mp4"):
        gulp2("extract", "gulp", "clip.mp4", "--format", format_, "-o", "out")
    assert files_below(Path("out")) == ["clip.mp4.mp4", "clip.mp4/000000.jpg"]


def test_images_are_refused_where_the_video_has_the_name_of_their_folder(
    gulp2, tmp_path
):
    make_items(tmp_path / "gulp", "clip.mp4")
    gulp2("extract", "gulp", "clip.mp4", "--format", "mp4", "-o", "out")
    for more in ([], ["--overwrite"], ["--dry-run"]):
        said = gulp2("extract", "gulp", "clip.mp4", "-o", "out", *more, status=1).stderr
        assert "cannot make the folder out/clip.mp4: File exists. A file has" in said
        assert len(decoded("out/clip.mp4")[0]) == 1


@pytest.mark.parametrize("words", [[], ["--overwrite"], ["--dry-run"]])
def test_a_folder_in_the_place_of_a_video_is_refused(gulp2, gulped, words):
    Path("item0.mp4").mkdir()
    result = gulp2("extract", gulped, "item0", "--format", "mp4", *words, status=1)
    assert "item0.mp4 is a folder" in result.stderr
    assert "(--out)" in result.stderr


# ------------------------------------------------------------------ videos
def test_a_video_has_the_frames_and_plays_at_the_rate(gulp2, gulped):
    result = gulp2("extract", gulped, "item0", "--format", "mp4", "--rate", "12")
    assert result.stdout == "item0.mp4: 6 frames\n"
    frames, times = decoded("item0.mp4")
    assert times == pytest.approx([n / 12 for n in range(6)])
    for frame, stored in zip(frames, GulpDirectory(gulped)["item0"][0], strict=True):
        error = np.abs(frame.astype(int) - stored.astype(int))
        assert error.mean() < 4


def test_without_times_the_rate_is_25_and_that_is_said(gulp2, gulped):
    result = gulp2("extract", gulped, "item0", "--format", "mp4", "--frames", "1:4")
    assert "25 frames per second are taken (--rate sets it)" in result.stderr
    assert decoded("item0.mp4")[1] == pytest.approx([0, 0.04, 0.08])


def test_the_stored_times_are_kept_exactly_also_where_they_vary(
    gulp2, shared_videos, tmp_path
):
    (tmp_path / "videos").mkdir()
    name = "vp8_audio_30fps.webm"
    (tmp_path / "videos" / name).symlink_to(shared_videos / name)
    gulp2("ingest", "video-folder", "videos", "gulped")
    gulp2("extract", "gulped", f"videos-{name}", "--format", "mp4", "--frames", "5:60")
    item = GulpDirectory("gulped").item(f"videos-{name}")
    expected = frame_times(item, range(5, 60))
    assert expected is not None
    assert len({b - a for a, b in itertools.pairwise(expected)}) > 1
    with av.open(f"videos-{name}.mp4") as container:
        stream = container.streams.video[0]
        ticks = [frame.pts or 0 for frame in container.decode(stream)]
        times = [tick * (stream.time_base or 0) for tick in ticks]
    assert times == expected


def test_odd_and_grey_frames_can_be_shown(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("odd", {}, make_frames(3, 23, 31))
        chunk.append("grey", {}, make_frames(3, 24, 32, grey=True))
        chunk.append("one", {}, make_frames(1))
    for id_, shape in (("odd", (24, 32)), ("grey", (24, 32)), ("one", (24, 32))):
        gulp2("extract", tmp_path, id_, "--format", "mp4")
        frames, _ = decoded(f"{id_}.mp4")
        assert frames[0].shape[:2] == shape


def test_frames_of_different_sizes_are_an_error_and_leave_no_file(gulp2, tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [*make_frames(1), *make_frames(1, 48, 32)])
    result = gulp2("extract", folder, "a", "--format", "mp4", "--out", "o", status=1)
    assert "differ in size" in result.stderr
    assert files_below(Path("o")) == []


def test_a_video_is_not_overwritten_without_being_asked(gulp2, gulped):
    Path("item0.mp4").write_text("mine")
    gulp2("extract", gulped, "item0", "--format", "mp4", status=1)
    assert Path("item0.mp4").read_text() == "mine"
    gulp2("extract", gulped, "item0", "--format", "mp4", "--overwrite", "-q")
    assert len(decoded("item0.mp4")[0]) == 6


def test_frames_that_a_rate_has_repeated_are_evenly_spaced(gulp2, make_video, tmp_path):
    make_video(tmp_path / "videos" / "a.mp4", num_frames=6, rate=12)
    gulp2("ingest", "video-folder", "videos", "gulped24", "--frame-rate", "24", "-q")
    (id_,) = (directory := GulpDirectory("gulped24")).chunk_lookup
    item = directory.item(id_)
    # Those that are repeated are the same moment of the source, asked for by time too.
    assert len(set(item.extras.pts)) == 6 < item.num_frames
    time_base = item.extras.time_base or Fraction(0)
    shown = [float(pts * time_base) for pts in item.extras.pts]
    assert sorted(set(shown)) == pytest.approx([n / 12 for n in range(6)])
    (index,) = item.frame_indices_at(3 / 12, "nearest")
    assert shown[index] == pytest.approx(3 / 12)
    result = gulp2("extract", "gulped24", id_, "--format", "mp4", "-o", "out")
    assert not result.stderr
    frames, times = decoded(f"out/{id_}")
    assert len(frames) == item.num_frames
    step = (5 / 12) / (item.num_frames - 1)
    assert times == pytest.approx([n * step for n in range(len(frames))], abs=1e-4)


def test_mpeg4_takes_over_where_there_is_no_h264(gulped, tmp_path, monkeypatch):
    monkeypatch.setattr("gulpio2.cli.video_export._ENCODERS", ("mpeg4",))
    times = [Fraction(0), Fraction(1, 90000), Fraction(1, 3)]
    item = GulpDirectory(gulped).item("item0")
    write_video(item, range(3), tmp_path / "x.mp4", times, overwrite=False)
    frames, shown = decoded(tmp_path / "x.mp4")
    assert len(frames) == 3
    assert shown == pytest.approx([float(time) for time in times], abs=1e-4)


@pytest.mark.parametrize("folder", ["12:30", "file:x", "pipe:", "http:"])
def test_a_video_is_written_into_a_folder_with_a_colon(gulp2, gulped, folder):
    gulp2("extract", gulped, "item0", "--format", "mp4", "--out", folder)
    assert len(decoded(Path(folder, "item0.mp4").absolute())[0]) == 6


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, Fraction(1, 200_000), Fraction(1, 100_000)], "too close"),
        ([0, 5 * Fraction(1, 10**9), 10 * Fraction(1, 10**9)], "too close"),
        ([0, 10**6, 2 * 10**6], "too far apart"),
        # Only from the file itself: FFmpeg writes these, and they wrap around.
        ([0, 131_072], "too far apart"),
        ([0, 31_536_000], "too far apart"),
        ([0, 1, 131_072, 131_073], "too far apart"),
        ([0, 10**18, 2 * 10**18], "too far apart"),
        ([0, 2**70, 2**71], "too far apart"),
    ],
)
def test_times_that_no_video_has_are_an_error_and_leave_no_file(
    gulped, tmp_path, times, message
):
    item = GulpDirectory(gulped).item("item0")
    out = tmp_path / "o"
    out.mkdir()
    with pytest.raises(FormatError, match=f"'item0' .*{message}.*--rate"):
        write_video(
            item,
            range(len(times)),
            out / "x.mp4",
            [*map(Fraction, times)],
            overwrite=False,
        )
    assert files_below(out) == []


def test_frames_that_are_too_large_for_a_video_are_an_error(gulp2, tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("wide", {}, make_frames(2, 2, 20_000))
    words = ["extract", folder, "wide", "--format", "mp4", "--out", "o", "-q"]
    assert "'wide' cannot be written as a video" in gulp2(*words, status=1).stderr
    assert files_below(Path("o")) == []


@pytest.mark.parametrize(
    "rate", ["0", "-1", "fast", "1/0", "1e30", "1e-99999999", "nan", "", "."]
)
def test_what_is_no_rate_is_wrong_usage(gulp2, gulped, rate):
    words = ["extract", gulped, "item0", "--format", "mp4", f"--rate={rate}"]
    assert "is not a frame rate" in gulp2(*words, status=2).stderr


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
    assert lines == [*wanted, wanted[-1]]


def test_an_empty_out_is_no_folder(gulp2, gulped, tmp_path):
    said = gulp2("extract", gulped, "item0", "--out", "", status=2).stderr
    assert "perhaps a variable of the shell is not set" in said
    assert not (tmp_path / "item0").exists(), "the current folder"
