"""Nothing of a damaged file reaches Arrow, which would read wherever it points."""

from __future__ import annotations

import logging
import os

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import MetaFileError
from gulpio2.merge import merge_directories
from gulpio2.storage.index.file import map_index
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.table import make_table
from gulpio2.testing import make_frames


@pytest.mark.parametrize("byte", [0, 1, 4, 7])
@pytest.mark.parametrize("row", [0, 1, 3, 5])
def test_bounds_of_frames_that_are_none_are_made_anew(folder, row, byte, caplog):
    caplog.set_level(logging.ERROR)
    build_index(folder)
    path = folder / "index.arrow"
    data = bytearray(path.read_bytes())
    place = data.find(map_index(os.fspath(path)).columns.frame_bounds.tobytes())
    assert make_table(map_index(os.fspath(path))) is not None
    data[place + 8 * row + byte] ^= 0x10
    path.write_bytes(data)
    assert make_table(map_index(os.fspath(path))) is None
    wanted = GulpDirectory(folder, indexed=False).table
    directory = GulpDirectory(folder, indexed=True)
    for table in (directory.query("num_frames >= 0").table, directory.table):
        # By repr, NaN equals NaN.
        assert repr(table.to_pylist()) == repr(wanted.to_pylist())


def test_a_number_beyond_a_table_is_told_with_what_gives_a_smaller_one(tmp_path):
    folder, number = tmp_path / "far", 2**31
    folder.mkdir()
    chunk = GulpChunk(folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta")
    with chunk.open("wb"):
        chunk.append("one", {"label": "walk"}, make_frames(1))
    assert len(GulpDirectory(folder)["one"][0]) == 1
    with pytest.raises(MetaFileError, match=r"above 2147483647.*gulp2 merge"):
        GulpDirectory(folder).query("label == 'walk'")
    merge_directories([folder], tmp_path / "near")
    near = GulpDirectory(tmp_path / "near").query("label == 'walk'")
    assert list(near.ids) == ["one"]
