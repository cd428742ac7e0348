"""Appending to a data file that is not as its map says, or does not stay so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gulpio2.errors import AdapterContractError, ChunkMismatchError
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames
from tests.chunks import JPEGS, content, entry_of, new_chunk, write

if TYPE_CHECKING:
    from pathlib import Path


class StopError(Exception):
    """What ends a block of writing."""


# --- a data file that was cut -------------------------------------------------------


@pytest.mark.parametrize("num_bytes", [1, 4])
def test_nothing_is_appended_to_a_data_file_that_was_cut(tmp_path, num_bytes):
    write(tmp_path, ("a", {}, JPEGS[:2]), ("b", {}, JPEGS[2:3]))
    data = tmp_path / "data_0.gulp"
    end = data.stat().st_size
    data.write_bytes(data.read_bytes()[:-num_bytes])
    before = content(tmp_path)
    chunk = new_chunk(tmp_path)
    message = (
        rf"data_0\.gulp ends at byte {end - num_bytes}, and its map speaks of {end}: "
        "frames are lost. Nothing was appended. `gulp2 check` .* `gulp2 repair`"
    )
    with pytest.raises(ChunkMismatchError, match=message), chunk.open("ab"):
        pytest.fail("opened")
    assert content(tmp_path) == before
    assert list(chunk.meta_dict) == ["a", "b"]


def test_items_deleted_in_memory_do_not_make_up_for_a_cut(tmp_path):
    write(tmp_path, ("a", {}, JPEGS[:2]), ("b", {}, JPEGS[2:3]))
    data = tmp_path / "data_0.gulp"
    data.write_bytes(data.read_bytes()[:-4])
    chunk = new_chunk(tmp_path)
    del chunk.meta_dict["b"]  # which readers of the map on the disk have
    with pytest.raises(ChunkMismatchError, match="lost"), chunk.open("ab"):
        pytest.fail("opened")


def test_a_cut_data_file_is_written_anew(tmp_path):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    (tmp_path / "data_0.gulp").write_bytes(b"")
    chunk = write(tmp_path, ("b", {}, JPEGS[2:3]))
    assert chunk.read_jpegs("b") == JPEGS[2:3]


# --- a data file of an odd length ---------------------------------------------------


def write_and_leave(folder: Path, rest: bytes) -> None:
    """Write "a", and behind it what another program leaves."""
    write(folder, ("a", {}, JPEGS[:2]))
    with (folder / "data_0.gulp").open("ab") as file:
        file.write(rest)


@pytest.mark.parametrize("rest", [b"x", b"xy", b"xyz", b"wxyz!", b"\0"])
def test_records_behind_an_odd_end_begin_at_multiples_of_four(tmp_path, rest):
    write_and_leave(tmp_path, rest)
    before = content(tmp_path)["data_0.gulp"]
    chunk = write(tmp_path, ("a", {}, JPEGS[2:3]), ("b", {}, JPEGS[3:5]), flag="ab")
    assert chunk.read_jpegs("a") == JPEGS[:3]
    assert chunk.read_jpegs("b") == JPEGS[3:5]
    first = entry_of(tmp_path, "a")["frame_info"][2][0]
    data = content(tmp_path)["data_0.gulp"]
    assert data[:first] == before + bytes(-len(before) % 4)
    assert (first % 4, len(data) % 4) == (0, 0)
    report = check_directory(tmp_path, deep=True)
    # What was there before is all that is told of.
    assert [problem.code for problem in report.problems] == ["unreferenced-bytes"]


def test_records_behind_a_frame_that_was_not_padded_begin_at_multiples_of_four(
    tmp_path,
):
    jpeg = next(jpeg for jpeg in JPEGS if len(jpeg) % 4)
    entry = {"frame_info": [[0, 0, len(jpeg)]], "meta_data": [{}]}
    (tmp_path / "data_0.gulp").write_bytes(jpeg)
    (tmp_path / "meta_0.gmeta").write_text(json.dumps({"a": entry}))
    chunk = write(tmp_path, ("b", {}, JPEGS[:2]), flag="ab")
    assert (chunk.read_jpegs("a"), chunk.read_jpegs("b")) == ([jpeg], JPEGS[:2])
    found = {(p.code, p.item) for p in check_directory(tmp_path, deep=True).problems}
    assert {code for code, item in found if item != "a"} <= {"unreferenced-bytes"}


def test_a_block_that_fails_leaves_an_odd_end_as_it_was(tmp_path):
    write_and_leave(tmp_path, b"x")
    expected = content(tmp_path)
    chunk = new_chunk(tmp_path)

    def write_and_fail() -> None:
        with chunk.open("ab"):
            chunk.append("b", {}, make_frames(4))
            raise StopError

    with pytest.raises(StopError):
        write_and_fail()
    assert content(tmp_path) == expected


@pytest.mark.parametrize("num_frames", [0, 1, 200], ids=["none", "one", "many"])
def test_an_item_that_fails_leaves_an_odd_end_as_it_was(tmp_path, num_frames):
    write_and_leave(tmp_path, b"x")
    expected = content(tmp_path)
    chunk = new_chunk(tmp_path)
    with chunk.open("ab"):
        chunk.append("empty", {}, [])
        with pytest.raises(AdapterContractError):
            chunk.append("b", {}, [*JPEGS[:1] * num_frames, "no frame"])
        del chunk.meta_dict["empty"]
    assert content(tmp_path) == expected
