"""Appending to a data file that is not as its map says, or does not stay so."""

from __future__ import annotations

import pytest

from gulpio2.errors import ChunkMismatchError
from tests.chunks import JPEGS, content, new_chunk, write

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
