"""Nothing of a damaged file reaches Arrow, which would read wherever it points."""

from __future__ import annotations

import logging
import os

import pytest

from gulpio2 import GulpDirectory
from gulpio2.storage.index.file import map_index
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.table import make_table


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
