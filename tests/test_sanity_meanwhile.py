"""Checking a directory that others change meanwhile, as they may."""

import pytest

from gulpio2 import GulpIngestor
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_gulp_directory


class _Once:
    """The progress of a check, at whose first item something else happens."""

    def __init__(self, work):
        self.work = work

    def __call__(self, items=0, **_):
        if items and self.work is not None:
            work, self.work = self.work, None
            work()


@pytest.mark.parametrize("deep", [False, True])
def test_chunks_that_an_ingest_commits_meanwhile_are_not_missing(tmp_path, deep):
    make_gulp_directory(tmp_path, num_items=1, num_frames=2).close()

    def ingest():
        adapter = FrameAdapter(num_items=9)
        GulpIngestor(adapter, tmp_path, 2, 1, on_duplicate="skip").run()

    report = check_directory(tmp_path, deep=deep, progress=_Once(ingest))
    assert (report.problems, report.notes) == ([], [])


@pytest.mark.parametrize("compacted", [False, True])
def test_items_that_are_deleted_meanwhile_leave_no_problem(tmp_path, compacted):
    make_gulp_directory(tmp_path, num_items=4, num_frames=2).close()

    def delete():
        delete_items(tmp_path, ["item2", "item3"])
        if compacted:
            compact_directory(tmp_path)

    report = check_directory(tmp_path, deep=True, progress=_Once(delete))
    assert (report.problems, report.notes) == ([], [])
    assert report.items == 2
