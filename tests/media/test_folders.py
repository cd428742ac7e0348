"""Finding source files by literal paths."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from gulpio2.errors import NotOneVideoError, SourceReadError
from gulpio2.media.folders import (
    find_files,
    find_images_in_folder,
    get_single_video_path,
)

GLOB_NAMES = ["plain", "g[1]", "what?", "star*", "[!a]", "{a,b}"]


def touch(root, *names):
    """Make empty files below a folder."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


@pytest.mark.parametrize("name", GLOB_NAMES)
def test_images_are_found_in_a_folder_of_any_name(tmp_path, name):
    folder = touch(tmp_path / name, "b.jpg", "a.jpg", "c.png")
    found = [str(folder / "a.jpg"), str(folder / "b.jpg")]
    assert find_images_in_folder(folder) == found
    assert find_images_in_folder(f"{folder}/") == found


def test_images_of_all_formats_come_sorted_together(tmp_path):
    touch(tmp_path, "b.jpg", "a.png", "c.jpeg", "d.JPG", "e.gif")
    names = [
        Path(path).name
        for path in find_images_in_folder(tmp_path, formats={"jpg", "jpeg", "png"})
    ]
    assert names == ["a.png", "b.jpg", "c.jpeg"]


def test_one_format_may_be_given_as_it_is(tmp_path):
    touch(tmp_path, "b.jpg", "a.png")
    assert find_images_in_folder(str(tmp_path), "png") == [str(tmp_path / "a.png")]


def test_images_of_a_missing_folder_are_none(tmp_path):
    assert find_images_in_folder(tmp_path / "missing") == []


def test_hidden_files_folders_and_deeper_images_are_left_out(tmp_path):
    touch(tmp_path, ".hidden.jpg", "deep/a.jpg", "folder.jpg/x.txt", "b.jpg")
    assert find_images_in_folder(tmp_path) == [str(tmp_path / "b.jpg")]


def test_a_folder_relative_to_the_current_one(tmp_path, monkeypatch):
    touch(tmp_path, "in/b.jpg")
    monkeypatch.chdir(tmp_path)
    assert find_images_in_folder("in") == ["in/b.jpg"]
    monkeypatch.chdir(tmp_path / "in")
    assert find_images_in_folder("") == ["b.jpg"]


@pytest.mark.parametrize("name", GLOB_NAMES)
def test_the_single_video_of_a_folder(tmp_path, name):
    folder = touch(tmp_path / name, "x.mp4", "x.webm")
    assert get_single_video_path(str(folder)) == str(folder / "x.mp4")
    assert get_single_video_path(folder, format_="webm") == str(folder / "x.webm")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.txt"], r"no file \*\.mp4;"),
        (["a.mp4", "b.mp4"], r"2 files \*\.mp4"),
        ([], "there is no such folder"),
    ],
    ids=["none", "two", "no folder"],
)
def test_not_exactly_one_video_says_what_there_is(tmp_path, names, message):
    folder = touch(tmp_path / "v", *names)
    with pytest.raises(NotOneVideoError, match=message) as caught:
        get_single_video_path(folder)
    assert str(folder) in str(caught.value)
    assert isinstance(caught.value, AssertionError | SourceReadError)


def test_files_are_found_at_any_depth_sorted_by_path(tmp_path):
    touch(tmp_path / "in", "b/2.jpg", "b/c/1.jpg", "a.jpg", "b.jpg", "b/.x.jpg")
    root = str(tmp_path / "in")
    assert find_files(f"{root}/") == [
        (root, "a.jpg"),
        (root, "b.jpg"),
        (f"{root}/b", "2.jpg"),
        (f"{root}/b/c", "1.jpg"),
    ]


def test_files_are_found_in_more_folders_than_python_has_room_for_calls(tmp_path):
    touch(tmp_path, "/".join("d" * 150) + "/a.mp4")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        ((_, name),) = find_files(tmp_path)
    finally:
        sys.setrecursionlimit(before)
    assert name == "a.mp4"


def test_files_below_a_depth_are_left_out(tmp_path):
    touch(tmp_path, "a.mp4", "b/c.mp4", "b/d/e.mp4")
    names = [name for _, name in find_files(tmp_path, max_depth=1)]
    assert names == ["a.mp4", "c.mp4"]
    assert [name for _, name in find_files(tmp_path, max_depth=0)] == ["a.mp4"]


def test_neighbours_with_the_same_beginning_are_not_found(tmp_path):
    touch(tmp_path, "images/a.jpg", "images2/b.jpg")
    assert find_files(tmp_path / "images") == [(str(tmp_path / "images"), "a.jpg")]


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path):
    touch(tmp_path, "in/a.jpg", "elsewhere/b.jpg")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "in")
    assert [name for _, name in find_files(tmp_path / "in")] == [
        "a.jpg",
        "b.jpg",
    ]


def test_a_link_without_a_target_is_listed_so_that_its_item_fails(tmp_path):
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere")
    assert find_files(tmp_path) == [(str(tmp_path), "gone.jpg")]
    assert find_images_in_folder(tmp_path) == [str(tmp_path / "gone.jpg")]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SourceReadError, match="missing' cannot be listed"):
        find_files(tmp_path / "missing")


@pytest.mark.usefixtures("permissions")
@pytest.mark.parametrize("name", ["lost+found", "."])
def test_a_folder_that_may_not_be_read_is_named_with_what_helps(tmp_path, name):
    closed = touch(tmp_path, "a.jpg") / name
    closed.mkdir(exist_ok=True)
    closed.chmod(0)
    try:
        with pytest.raises(SourceReadError) as caught:
            find_files(tmp_path)
    finally:
        closed.chmod(0o700)
    assert str(caught.value) == (
        f"The folder {str(closed)!r} cannot be listed (Permission denied). "
        "Mend that, or move it away."
    )


def test_the_current_folder_may_be_searched(tmp_path, monkeypatch):
    touch(tmp_path, "a/b.jpg")
    monkeypatch.chdir(tmp_path)
    assert find_files(".") == [("./a", "b.jpg")]
    assert find_files("") == [("./a", "b.jpg")]


def test_a_format_may_be_a_pattern_of_endings(tmp_path):
    for name in ("a.jpg", "b.JPG", "c.jpeg", "d.png", ".e.jpg"):
        (tmp_path / name).touch()

    def names(formats):
        found = find_images_in_folder(tmp_path, formats)
        return [Path(path).name for path in found]

    assert names("[jJ][pP][gG]") == ["a.jpg", "b.JPG"]
    assert names(["jp*g", "png"]) == ["a.jpg", "c.jpeg", "d.png"]
    assert names("*") == ["a.jpg", "b.JPG", "c.jpeg", "d.png"]
    assert Path(get_single_video_path(tmp_path, "pn?")).name == "d.png"
