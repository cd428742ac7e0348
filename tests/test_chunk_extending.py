"""Appending to a data file that is not as its map says, or does not stay so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gulpio2 import GulpChunk
from gulpio2.errors import AdapterContractError, ChunkMismatchError
from gulpio2.removal import delete_items
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames
from tests.chunks import JPEGS, StopError, content, entry_of, new_chunk, write

if TYPE_CHECKING:
    from pathlib import Path


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


# --- another program in the middle of a block ---------------------------------------


def forget(folder: Path) -> None:
    """Write the map without "a", as a program does that looks for no lock."""
    entries = json.loads((folder / "meta_0.gmeta").read_bytes())
    del entries["a"]
    (folder / "meta_0.gmeta").write_text(json.dumps(entries))


def append(folder: Path) -> None:
    """Append "d" as GulpIO2 0.0.4 does, which looks for no lock."""
    entries = json.loads((folder / "meta_0.gmeta").read_bytes())
    infos = []
    with (folder / "data_0.gulp").open("ab") as file:
        for jpeg in JPEGS[6:8]:
            pad = -len(jpeg) % 4
            infos.append([file.tell(), pad, len(jpeg) + pad])
            file.write(jpeg + bytes(pad))
    entries["d"] = {"frame_info": infos, "meta_data": [{}]}
    (folder / "meta_0.gmeta").write_text(json.dumps(entries))


def replace_data(folder: Path) -> None:
    """Put a copy in the place of the data file."""
    data = (folder / "data_0.gulp").read_bytes()
    (folder / "copy").write_bytes(data)
    (folder / "copy").replace(folder / "data_0.gulp")


def remove_data(folder: Path) -> None:
    """Remove the data file."""
    (folder / "data_0.gulp").unlink()


@pytest.mark.parametrize(
    ("do", "changed"),
    [
        (forget, "meta_0.gmeta"),
        (append, "meta_0.gmeta"),
        (replace_data, "data_0.gulp"),
        (remove_data, "data_0.gulp"),
    ],
)
@pytest.mark.parametrize("flushed", [False, True])
def test_what_another_program_did_inside_of_a_block_is_not_undone(
    tmp_path, do, changed, flushed
):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "b", "gone")))
    delete_items(tmp_path, ["gone"])
    chunk = new_chunk(tmp_path)
    ids = list(chunk.meta_dict)
    expected = {}

    def write_meanwhile() -> None:
        with chunk.open("ab"):
            if flushed:
                chunk.append("c", {}, JPEGS[3:4])
                chunk.flush()
            do(tmp_path)
            expected.update(content(tmp_path))
            chunk.append("e", {}, JPEGS[4:6] if do is not append else [])

    with pytest.raises(ChunkMismatchError, match=rf"{changed} was changed .* again"):
        write_meanwhile()
    assert content(tmp_path) == expected
    assert list(chunk.meta_dict) == ids
    if do is not remove_data:
        with chunk.open("ab"):
            chunk.append("e", {}, JPEGS[4:6])
        assert chunk.read_jpegs("e") == JPEGS[4:6]
        assert ("a" in chunk) == (do is not forget)


@pytest.mark.parametrize("fails", [False, True], ids=["committing", "failing"])
def test_records_that_another_program_has_appended_are_not_cut_off(tmp_path, fails):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)

    def write_meanwhile() -> None:
        with chunk.open("ab"):
            chunk.append("b", {}, JPEGS[2:4])
            append(tmp_path)
            if fails:
                raise StopError

    with pytest.raises(StopError if fails else ChunkMismatchError):
        write_meanwhile()
    stored = new_chunk(tmp_path, verify=True)
    assert list(stored.meta_dict) == ["a", "d"]
    assert stored.read_jpegs("d") == JPEGS[6:8]


def test_an_edit_that_is_written_already_is_no_change_of_another(tmp_path):
    write(tmp_path, ("a", {"label": 1}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    other = new_chunk(copy)
    other.meta_dict["a"]["meta_data"][0]["label"] = 2
    with other.open("ab"):
        pass
    with chunk.open("ab"):
        chunk.meta_dict["a"]["meta_data"][0]["label"] = 2
        (copy / "meta_0.gmeta").replace(tmp_path / "meta_0.gmeta")
    assert new_chunk(tmp_path)["a"][1] == {"label": 2}


def test_a_chunk_that_was_emptied_meanwhile_is_extended_from_there(tmp_path):
    paths = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"
    held = GulpChunk(*paths)
    with held.open("wb"):
        held.append("a", {}, make_frames(4))
    with GulpChunk(*paths).open("wb"):
        pass
    with held.open("ab"):
        held.append("n", {}, make_frames(2))
    assert list(GulpChunk(*paths).meta_dict) == list(held.meta_dict) == ["n"]
    assert check_directory(tmp_path, deep=True).problems == []
