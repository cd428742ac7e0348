"""How files are called that ``gulp2 extract`` writes."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from gulpio2 import GulpChunk
from gulpio2.cli.export import file_name
from gulpio2.testing import make_frames
from tests.cli.extracted import decoded, files_below, make_items


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
    # What stands before the digest is in no name of an id that was not cut.
    assert "%%" in file_name("x" * 300)
    assert "%%" not in file_name("%%")


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
