"""Writing one chunk, apart from who writes it."""

import pytest

from gulpio2.errors import StorageError
from gulpio2.staging import ChunkSession
from gulpio2.storage.local import LocalStore
from tests.faults.operations import open_files


def test_a_session_that_cannot_go_on_leaves_no_file_open(tmp_path):
    partial = tmp_path / "chunk_0.gulp.0.partial"
    partial.write_bytes(b"frames")
    store, resume = LocalStore(tmp_path), (partial.name, -1)
    with pytest.raises(StorageError, match="truncate"):  # refused, as by a bad disk
        ChunkSession(store, "chunk_0.gulp", {}, None, resume=resume)
    assert str(partial) not in open_files()
