"""A chunk whose map is to be written elsewhere: another `meta_file_path`."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import ChunkMismatchError, GulpError
from tests.chunks import (
    JPEGS,
    BrokenError,
    content,
    label,
    make_labelled_items,
    new_chunk,
    problems,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write items "a", "b" and "c"."""
    (tmp_path / "out").mkdir()
    return make_labelled_items(tmp_path / "out")


@pytest.fixture(params=["alone", "directory", "indexed"])
def chunk(folder: Path, request: Any) -> Iterator[GulpChunk]:
    """Give the chunk."""
    if request.param == "alone":
        yield new_chunk(folder)
        return
    with GulpDirectory(folder, indexed=request.param == "indexed") as directory:
        yield directory.chunk_objs_lookup[0]


def broken() -> Iterator[bytes]:
    """Give a frame, then fail."""
    yield JPEGS[0]
    raise BrokenError


def moved(chunk: GulpChunk, folder: Path) -> Path:
    """Assign another path."""
    path = folder.parent / "other.gmeta"
    chunk.meta_file_path = str(path)
    return path


def read(folder: Path, path: Path) -> dict[str, Any]:
    """Give the labels of the map there, whose entries must be sound."""
    chunk = GulpChunk(folder / "data_0.gulp", path, verify=True)
    return {id_: chunk[id_][1].get("label") for id_ in json.loads(path.read_bytes())}


@pytest.mark.parametrize("there", [None, b"{}", b'{"old": {"frame_info": [[0, 1, 4]], '
                                   b'"meta_data": [{}]}}'])  # fmt: skip
def test_the_whole_map_is_written_to_the_path_that_is_assigned(chunk, folder, there):
    before = content(folder)
    path = moved(chunk, folder)
    if there is not None:
        path.write_bytes(there)
    with chunk.open("ab"):
        chunk.append("new", {"label": "n"}, JPEGS[:2])
    expected = {"a": "old", "b": "old", "c": None, "new": "n"}
    assert read(folder, path) == expected
    assert list(chunk.meta_dict) == list(expected)
    assert (folder / "meta_0.gmeta").read_bytes() == before["meta_0.gmeta"]
    with chunk.open("ab"):
        chunk.append("more", {}, [])
    assert read(folder, path) == {**expected, "more": None}


def test_what_was_edited_and_deleted_before_is_written_there(chunk, folder):
    label(chunk.meta_dict, "a")
    del chunk.meta_dict["b"]
    path = moved(chunk, folder)
    with chunk.open("ab"):
        pass
    assert read(folder, path) == {"a": "new", "c": None}


def test_what_others_have_appended_to_the_map_before_is_taken_along(chunk, folder):
    label(chunk.meta_dict, "a")
    write(folder, ("other", {}, JPEGS[:2]), flag="ab")
    path = moved(chunk, folder)
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    expected = {"a": "new", "b": "old", "c": None, "other": None, "new": None}
    assert read(folder, path) == expected


def test_the_path_may_be_assigned_inside_of_the_block(chunk, folder):
    before = content(folder)
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
        path = moved(chunk, folder)
    assert list(read(folder, path)) == ["a", "b", "c", "new"]
    assert (folder / "meta_0.gmeta").read_bytes() == before["meta_0.gmeta"]


def test_a_block_that_fails_writes_nothing_anywhere(chunk, folder):
    before = content(folder)
    path = moved(chunk, folder)
    with pytest.raises(BrokenError), chunk.open("ab"):
        chunk.append("new", {}, broken())
    assert not path.exists()
    assert content(folder) == before
    assert list(chunk.meta_dict) == ["a", "b", "c"]
    chunk.meta_file_path = folder / "meta_0.gmeta"
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    assert list(new_chunk(folder).meta_dict) == ["a", "b", "c", "new"]


def test_frames_are_read_whatever_path_is_assigned(chunk, folder):
    moved(chunk, folder)
    assert chunk.read_jpegs("b") == JPEGS[3:5]


def test_both_files_may_have_been_moved(folder):
    chunk = new_chunk(folder)
    label(chunk.meta_dict, "a")
    folder = folder.rename(folder.parent / "elsewhere")
    chunk.data_file_path = folder / "data_0.gulp"
    chunk.meta_file_path = folder / "meta_0.gmeta"
    write(folder, ("other", {}, JPEGS[:2]), flag="ab")
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    assert list(new_chunk(folder).meta_dict) == ["a", "b", "c", "other", "new"]
    assert problems(folder) == []


def test_a_copy_of_the_data_file_gets_the_map_and_more(chunk, folder, tmp_path):
    shutil.copy(folder / "data_0.gulp", tmp_path / "data_0.gulp")
    chunk.data_file_path = tmp_path / "data_0.gulp"
    chunk.meta_file_path = tmp_path / "meta_0.gmeta"
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b", "c", "new"]
    assert new_chunk(tmp_path).read_jpegs("new") == JPEGS[:2]


def test_a_map_that_is_gone_is_written_from_memory_or_not_at_all(chunk, folder):
    path = moved(chunk, folder)
    (folder / "meta_0.gmeta").unlink()
    expected = ["a", "b", "c", "new"]
    try:
        with chunk.open("ab"):
            chunk.append("new", {}, JPEGS[:2])
    except GulpError:  # an index has no entries without the map
        assert not path.exists()
        del expected[3]
    else:
        assert list(read(folder, path)) == expected
    assert list(chunk.meta_dict) == expected


def test_a_map_that_was_removed_is_written_anew(chunk, folder):
    path, before = folder / "meta_0.gmeta", content(folder)
    label(chunk.meta_dict, "a")
    path.unlink()
    expected = {"a": "new", "b": "old", "c": None, "new": None}
    try:
        with chunk.open("ab"):
            chunk.append("new", {}, JPEGS[:2])
    except GulpError:  # as above
        path.write_bytes(before["meta_0.gmeta"])
        assert content(folder) == before
        with chunk.open("ab"):
            chunk.append("new", {}, JPEGS[:2])
    assert read(folder, path) == expected
    assert list(chunk.meta_dict) == list(expected)
    assert problems(folder) == []


@pytest.mark.parametrize("frame", [0, -1])
def test_a_map_that_was_removed_is_written_anew_over_a_damaged_frame(folder, frame):
    chunk = new_chunk(folder)
    loc, pad, length = chunk.meta_dict["a"]["frame_info"][frame]
    data = bytearray((folder / "data_0.gulp").read_bytes())
    data[loc + (length - pad) // 2] ^= 1
    (folder / "data_0.gulp").write_bytes(data)
    (folder / "meta_0.gmeta").unlink()
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    assert list(new_chunk(folder).meta_dict) == ["a", "b", "c", "new"]


def test_a_map_is_not_written_for_a_data_file_that_was_cut(folder):
    chunk = new_chunk(folder)
    (folder / "meta_0.gmeta").unlink()
    os.truncate(folder / "data_0.gulp", 100)
    with pytest.raises(ChunkMismatchError, match="ends at byte 100"), chunk.open("ab"):
        pass
    assert list(content(folder)) == ["data_0.gulp"]


def test_a_chunk_that_was_removed_is_begun_anew(folder):
    chunk = new_chunk(folder)
    for path in folder.iterdir():
        path.unlink()
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:2])
    assert list(new_chunk(folder).meta_dict) == ["new"]
