"""What is refused before the system is asked, and what is said of it."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory
from gulpio2.adapters import (
    ActivitynetAdapter,
    Custom20BNCsvJpegAdapter,
    ImageListAdapter,
    KineticsAdapter,
    TableAdapter,
    VideoFolderAdapter,
)
from gulpio2.errors import StorageError
from gulpio2.merge import merge_directories
from gulpio2.repair import repair_directory
from gulpio2.storage import open_store
from gulpio2.storage.leftovers import missing_folders
from gulpio2.storage.paths import real_path
from gulpio2.storage.refusals import (
    absolute,
    left_without_map,
    local_path,
    nearest_there,
    refused,
)
from gulpio2.testing import make_gulp_directory

URLS = ["s3://bucket/a", "http://host/a", "file:///a", Path("s3://bucket/a")]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("url", URLS, ids=repr)
def test_a_url_is_no_path_of_this_machine(url):
    said = f"cannot write to {os.fspath(url)}: it is a URL, and a folder of this"
    with pytest.raises(StorageError) as caught:
        local_path(url, "write to")
    assert str(caught.value.strerror).startswith(said)


@pytest.mark.parametrize(
    "path", ["a", "/a/b:c", "12:30/a", "a:b", "a:/b", ".", "./s3://a", "/s3:/a"]
)
def test_other_paths_stay_as_they_are(path):
    assert local_path(path, "read") == Path(path)


@pytest.mark.parametrize("indexed", [None, True])
def test_a_directory_of_a_url_is_not_an_empty_one(indexed):
    with pytest.raises(StorageError, match="cannot read s3://b/d: it is a URL"):
        GulpDirectory("s3://b/d", indexed=indexed)


def test_a_folder_may_have_such_a_name(tmp_path):
    (tmp_path / "s3:").mkdir()
    assert local_path("s3:/a", "read") == Path("s3:/a")
    with pytest.raises(StorageError, match="it is a URL"):
        local_path("s3://a", "read")


@pytest.mark.parametrize(
    "write",
    [
        lambda url: open_store(url).make(),
        lambda url: merge_directories(["d"], url),
        lambda url: repair_directory("d", url),
    ],
)
def test_nothing_is_written_to_a_url(tmp_path, write):
    make_gulp_directory("d", num_items=1)
    with pytest.raises(StorageError, match=r"cannot write to s3:/b/d: it is a URL"):
        write("s3://b/d")
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "adapter",
    [
        partial(VideoFolderAdapter, output_folder="out"),
        lambda folder: ActivitynetAdapter("a.json", folder),
        lambda folder: Custom20BNCsvJpegAdapter("a.csv", folder, "out"),
        lambda folder: ImageListAdapter("a.csv", "out", folder),
        partial(KineticsAdapter, "a.json"),
        lambda folder: TableAdapter("t.csv", root_folder=folder),
    ],
)
def test_no_items_are_looked_for_at_a_url(adapter):
    Path("a.json").write_text('{"database": {"a": {"subset": "training"}}}')
    Path("a.csv").write_text("a;x\n")
    Path("t.csv").write_text("id,path\na,a.mp4\n")
    with pytest.raises(StorageError, match=r"cannot read s3://b/v: it is a URL"):
        adapter("s3://b/v")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("data_3.gulp", "write smaller chunks"),
        ("data_3.gulp.1f.partial", "write smaller chunks"),
        ("index.arrow.1f.partial", "give another folder"),
        ("deleted.json.1f.partial", "give another folder"),
    ],
)
def test_a_file_that_is_too_large_is_a_matter_of_chunks_where_it_is_one(name, advice):
    cause = OSError(errno.EFBIG, "File too large")
    for options in ({"writing": True}, {"extending": True}):
        error = refused(cause, "write", f"out/{name}", **options)
        assert advice in str(error)


@pytest.mark.parametrize("writing", [False, True])
def test_what_is_left_without_a_map_is_a_sentence_of_its_own(writing):
    cause = refused(OSError(errno.EPIPE, "Broken pipe"), "sync", "m", writing=writing)
    told = str(left_without_map(cause, "data_0.gulp", is_new=True).strerror)
    assert told.startswith("cannot sync m: Broken pipe. data_0.gulp has the new frames")
    assert told.endswith("salvage the frames. Other chunks are intact")


def test_a_path_is_made_absolute_where_the_current_folder_is_there(
    tmp_path, monkeypatch
):
    assert absolute("a/b") == tmp_path / "a/b"
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert absolute("/a/b") == Path("/a/b")
    for find in (absolute, missing_folders, nearest_there, real_path):
        with pytest.raises(StorageError, match="cannot find a: the current folder is"):
            find("a")
