"""Errors of sources and directories are also the kinds that GulpIO2 0.0.4 raised.

Each row was measured with it: a program that catches that kind goes on doing so.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.adapters import (
    ActivitynetAdapter,
    Custom20BNCsvJpegAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
    ImageFolderAdapter,
    ImageListAdapter,
    KineticsAdapter,
    VideoFolderAdapter,
    read_table,
)
from gulpio2.errors import (
    GulpError,
    SourceFieldError,
    SourceFormatError,
    SourceNotFoundError,
    SourceReadError,
)
from gulpio2.testing import FrameAdapter, make_gulp_directory


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, text):
    """Write a file, and give its name."""
    Path(name).write_text(text, "utf-8")
    return name


def json_videos(text, **more):
    return Custom20BNJsonVideoAdapter(write("a.json", text), "v", "o", **more)


SOURCES = {
    "no json": (
        FileNotFoundError,
        lambda: Custom20BNJsonVideoAdapter("a.json", "v", "o"),
    ),
    "no json.gz": (
        FileNotFoundError,
        lambda: Custom20BNJsonVideoAdapter("a.json.gz", "v", "o"),
    ),
    "no csv": (FileNotFoundError, lambda: Custom20BNCsvWebmAdapter("a.csv", "v", "o")),
    "no csv of images": (
        FileNotFoundError,
        lambda: Custom20BNCsvJpegAdapter("a.csv", "v", "o"),
    ),
    "no list": (FileNotFoundError, lambda: ImageListAdapter("a.txt", "o")),
    "no database file": (FileNotFoundError, lambda: ActivitynetAdapter("a.json", "v")),
    "no records": (FileNotFoundError, lambda: KineticsAdapter("a.json", "v")),
    "no folder": (
        FileNotFoundError,
        lambda: ActivitynetAdapter(write("a.json", '{"database": {}}'), "v"),
    ),
    "no folder of clips": (
        FileNotFoundError,
        lambda: KineticsAdapter(write("a.json", "{}"), "v"),
    ),
    "no folder of videos": (FileNotFoundError, lambda: VideoFolderAdapter("v", "o")),
    "no folder of images": (FileNotFoundError, lambda: ImageFolderAdapter("v", "o")),
    "no label": (KeyError, lambda: json_videos('[{"id": 1}]')),
    "no such label": (
        KeyError,
        lambda: json_videos('[{"id": 1, "template": "a"}]', label_name="other"),
    ),
    "no id": (KeyError, lambda: json_videos('[{"template": "a"}]')),
    "no key database": (KeyError, lambda: ActivitynetAdapter(write("a", "{}"), ".")),
    "one column": (
        IndexError,
        lambda: Custom20BNCsvJpegAdapter(write("a.csv", "1\n"), "v", "o"),
    ),
    "no json at all": (ValueError, lambda: json_videos("{")),
    "no json of records": (ValueError, lambda: KineticsAdapter(write("a", "{"), ".")),
    "no label in a list": (
        ValueError,
        lambda: ImageListAdapter(write("a.txt", "x.jpg\n"), "o"),
    ),
}


@pytest.mark.parametrize(("kind", "make"), SOURCES.values(), ids=SOURCES)
def test_a_source_that_cannot_be_used_is_the_built_in_kind_too(kind, make):
    with pytest.raises(SourceReadError) as caught:
        make()
    assert isinstance(caught.value, kind)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value)
    # A sentence, and no repr or number as these kinds show it.
    assert str(copy) == str(caught.value) == caught.value.args[0]


def test_what_is_there_and_cannot_be_read_is_not_said_to_be_missing(tmp_path):
    write("v", "a file")
    with pytest.raises(SourceReadError, match="Not a directory") as caught:
        VideoFolderAdapter("v", "o")
    assert not isinstance(caught.value, SourceNotFoundError)
    with pytest.raises(SourceReadError, match="Is a directory") as caught:
        ImageListAdapter(tmp_path, "o")
    assert not isinstance(caught.value, SourceNotFoundError)


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        (SourceNotFoundError, "a.csv", None),
        (SourceFormatError, "a.csv", "a,b\n1\n"),
        (SourceFormatError, "a.jsonl", "{"),
        (SourceFormatError, "a.json", "7"),
        (SourceFormatError, "a.json", "[7]"),
    ],
)
def test_a_table_that_cannot_be_used_says_of_which_kind_that_is(kind, name, text):
    if text is not None:
        write(name, text)
    with pytest.raises(kind):
        read_table(name)


def test_a_column_that_is_missing_is_a_key_error():
    table = read_table(write("a.jsonl", '{"a": 1}\n{"b": 2}\n'))
    for name in ("a", "c"):
        with pytest.raises(SourceFieldError) as caught:
            table.column(name)
        assert isinstance(caught.value, KeyError)


# --- directories --------------------------------------------------------------------


def test_a_chunk_in_a_missing_folder_is_a_file_not_found():
    chunk = GulpChunk("none/data_0.gulp", "none/meta_0.gmeta")
    with pytest.raises(FileNotFoundError) as caught, chunk.open("wb"):
        pass
    assert isinstance(caught.value, GulpError)


def test_a_file_in_the_place_of_the_output_is_a_file_that_exists():
    write("out", "")
    with pytest.raises(FileExistsError) as caught:
        GulpIngestor(FrameAdapter(), "out", 1, 1)()
    assert isinstance(caught.value, GulpError)


def test_a_file_on_the_way_to_the_output_is_no_folder():
    write("file", "")
    with pytest.raises(NotADirectoryError) as caught:
        GulpIngestor(FrameAdapter(), "file/out", 1, 1)()
    assert isinstance(caught.value, GulpError)


def test_a_frame_that_is_cut_is_a_value_error(tmp_path):
    make_gulp_directory(tmp_path / "out", num_items=1).close()
    os.truncate(tmp_path / "out" / "data_0.gulp", 100)
    with GulpDirectory("out") as directory, pytest.raises(ValueError, match="was cut"):
        directory["item0"]
