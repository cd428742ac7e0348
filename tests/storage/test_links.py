"""`gulpio2.storage.links`: what a copy of a data file takes of the disk."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from gulpio2 import GulpChunk
from gulpio2.errors import StorageError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.links import _copy_with_holes, copy_file, is_beginning
from gulpio2.testing import make_frames
from tests.forking import forked, status_of

HOLE = 8 << 20
BLOCK = 1 << 20  # bytes that are compared at a time


@pytest.fixture
def sparse(tmp_path):
    """Write a file of some bytes, a hole, some bytes and another hole."""
    path = tmp_path / "data_0.gulp"
    with path.open("wb") as file:
        file.write(b"begins")
        file.seek(HOLE + 3)
        file.write(b"goes on")
        file.truncate(2 * HOLE + 5)
    if room_of(path) > HOLE:
        pytest.skip("the file system knows no sparse files")
    return path


def room_of(path):
    return path.stat().st_blocks * 512


def test_holes_of_a_file_are_holes_of_its_copy(sparse, tmp_path):
    copy_file(sparse, tmp_path, "copy")
    assert (tmp_path / "copy").read_bytes() == sparse.read_bytes()
    assert room_of(tmp_path / "copy") < 1 << 20


@pytest.mark.parametrize("length", [0, 6, HOLE, HOLE + 10, HOLE + (1 << 16), 2 * HOLE])
def test_a_copy_with_holes_is_cut_where_it_is_to_end(sparse, tmp_path, length):
    copy_file(sparse, tmp_path, "copy", length)
    assert (tmp_path / "copy").read_bytes() == sparse.read_bytes()[:length]


@pytest.mark.parametrize("ending", [0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1])
def test_what_lies_behind_the_last_hole_is_copied(sparse, tmp_path, ending):
    with sparse.open("ab") as file:
        file.write(b"\xff" * ending)
    copy_file(sparse, tmp_path, "copy")
    assert (tmp_path / "copy").read_bytes() == sparse.read_bytes()


@pytest.mark.parametrize("limit", [1, HOLE, HOLE + 9, 2 * HOLE])
def test_a_copy_with_holes_that_has_no_room_leaves_nothing(sparse, tmp_path, limit):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(StorageError, match=r"cannot copy .*copy.* File too large"):
            copy_file(sparse, tmp_path, "copy")

    assert status_of(forked(limited)) == 0
    assert [path.name for path in tmp_path.iterdir()] == [sparse.name]


def test_a_beginning_is_compared_to_its_last_byte(tmp_path):
    source, path = tmp_path / "source", tmp_path / "path"
    blocks = [bytes([number]) * BLOCK for number in range(1, 4)]
    source.write_bytes(b"".join(blocks))
    one, two, _ = blocks
    for content, is_one in [
        (one + two, True),
        (one + one, False),
        (two + two, False),
        (one + two[:-1], False),
        (one + two[:-1] + b"\0", False),
        (source.read_bytes(), False),  # as far as asked for, and more
    ]:
        path.write_bytes(content)
        assert is_beginning(path, source, 2 * BLOCK) is is_one
    assert not is_beginning(tmp_path, source, tmp_path.stat().st_size)


def test_a_path_that_cannot_be_read_is_told_of_as_it_was_given(tmp_path, monkeypatch):
    # Some file systems have a folder take no room, as a file of nothing but holes.
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(StorageError, match=r"cannot read \./folder: Is a dir"):
        copy_file("./folder", tmp_path, "copy")
    with pytest.raises(IsADirectoryError) as raised:
        _copy_with_holes("./folder", tmp_path / "copy")
    assert raised.value.filename == "./folder"


def test_what_fails_is_told_where_the_copy_cannot_be_removed_either(tmp_path):
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"bytes")
    copy.mkdir()
    with pytest.raises(StorageError, match=r"cannot copy .*: Is a directory"):
        copy_file(source, tmp_path, "copy")


def test_a_source_that_is_gone_is_told_of_as_such(tmp_path):
    with pytest.raises(StorageError, match="cannot read"):
        copy_file(tmp_path / "gone", tmp_path, "copy")


def test_what_was_compacted_takes_no_more_room_where_it_is_merged(tmp_path):
    noise = default_rng(0).integers(0, 256, (4, 512, 512, 3), np.uint8)
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("gone", {}, list(noise))
        chunk.append("kept", {}, make_frames(2))
    delete_items(tmp_path, ["gone"])
    compact_directory(tmp_path)
    merge_directories([tmp_path], tmp_path / "merged", link=False)
    before, copy = (tmp_path / name / "data_0.gulp" for name in ("", "merged"))
    if room_of(before) > 1 << 18:
        pytest.skip("the file system knows no sparse files")
    assert copy.stat().st_size == before.stat().st_size > 1 << 20
    assert room_of(copy) < 1 << 18
    assert check_directory(tmp_path / "merged", deep=True).ok
