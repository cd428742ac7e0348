"""A disk that refuses: a clean stop, what was committed stays, resuming works."""

import errno
import os
import resource
import signal

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import StorageError
from gulpio2.testing import FrameAdapter
from gulpio2.testing.faults import content, fail_at_operation, in_child


def ingest(folder, *, workers=1, resume=False):
    adapter = FrameAdapter(num_items=5, num_frames=2, bad=[3])
    return GulpIngestor(adapter, folder, 2, workers, resume=resume).run()


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("name", ["ENOSPC", "EIO", "EDQUOT"])
def test_the_nth_operation_fails(tmp_path, name, for_good):
    ingest(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    failures = 0
    for number in range(1, 1000):
        folder = tmp_path / str(number)

        def failing(folder=folder, number=number):
            fail_at_operation(number, getattr(errno, name), for_good=for_good)
            try:
                ingest(folder)
            except StorageError as error:
                if error.errno != getattr(errno, name):
                    raise
                os._exit(7)

        status = os.waitstatus_to_exitcode(in_child(failing))
        assert status in (0, 7), number
        failures += status == 7
        with GulpDirectory(folder) as directory:
            for id_ in directory.chunk_lookup:
                directory.read_clip(id_)
        ingest(folder, resume=True)
        assert content(folder) == expected, number
        if status == 0 and not for_good and number > 100:
            break
        if status == 0 and for_good:
            break
    assert failures > 40


def test_an_item_that_fails_half_way_leaves_no_byte(tmp_path):
    # Large enough that some of it was on its way to the disk.
    adapter = FrameAdapter(num_items=2, num_frames=300, height=400, width=400, bad=[0])
    GulpIngestor(adapter, tmp_path, 3, 1).run()
    with GulpDirectory(tmp_path) as directory:
        stored = sum(directory.item(id_).num_bytes for id_ in directory.chunk_lookup)
    assert (tmp_path / "data_0.gulp").stat().st_size == stored


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_size_limit_stops_the_run_and_leaves_what_was_committed(
    tmp_path, workers
):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        adapter = FrameAdapter(num_items=6, num_frames=8, height=64, width=64)
        GulpIngestor(adapter, tmp_path / "whole", 1, 1).run()
        sizes = [path.stat().st_size for path in (tmp_path / "whole").iterdir()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) - 1, max(sizes) - 1))
        try:
            GulpIngestor(adapter, tmp_path / "cut", 1, workers).run()
        except StorageError as error:
            if "What was committed before is intact" in str(error):
                os._exit(7)
            raise

    assert os.waitstatus_to_exitcode(in_child(limited)) == 7
    with GulpDirectory(tmp_path / "cut") as directory:
        assert len(directory) < 6
        whole = GulpDirectory(tmp_path / "whole")
        for id_ in directory.chunk_lookup:
            assert np.array_equal(directory.read_clip(id_), whole.read_clip(id_))
    adapter = FrameAdapter(num_items=6, num_frames=8, height=64, width=64)
    GulpIngestor(adapter, tmp_path / "cut", 1, workers, resume=True).run()
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
