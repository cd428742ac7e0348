"""Checking a directory that others change meanwhile, as they may."""

import threading
from contextlib import ExitStack

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.index import keeping
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.locks import WriterLock
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory


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


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("is_listed", [False, True])
def test_the_map_of_a_chunk_that_is_written_anew_is_waited_for(
    tmp_path, is_listed, is_link
):
    folder, away = tmp_path / "all", tmp_path / "away"
    make_gulp_directory(folder, num_items=4, num_frames=2).close()
    map_ = folder / "meta_1.gmeta"
    if is_link:
        map_ = map_.rename(tmp_path / map_.name)
        (folder / map_.name).symlink_to(map_)
    ends = ExitStack()

    def end():
        away.rename(map_)
        ends.close()

    later = threading.Timer(0.2, end)

    def begin():
        ends.enter_context(WriterLock()).take(folder / "data_1.gulp")
        map_.rename(away)
        later.start()

    if not is_listed:
        begin()
    report = check_directory(folder, progress=_Once(begin) if is_listed else None)
    later.join()
    assert [*map(str, report.problems)] == []
    assert report.items == 4


def test_a_map_that_nobody_stores_for_a_second_is_told_as_missing(tmp_path):
    make_gulp_directory(tmp_path, num_items=4, num_frames=2).close()
    (tmp_path / "meta_1.gmeta").unlink()
    with WriterLock() as lock:
        lock.take(tmp_path / "data_1.gulp")
        report = check_directory(tmp_path)
    assert [each.code for each in report.problems] == ["data-without-map"]
    assert report.items == 2


@pytest.mark.parametrize("times", [1, 5])
def test_an_index_is_no_worse_for_a_map_that_is_written_meanwhile(
    tmp_path, monkeypatch, times
):
    make_gulp_directory(tmp_path, num_items=4, num_frames=2)
    build_index(tmp_path)
    compare, left = keeping.check_index, [times]

    def append_and_compare(folder):
        if left[0]:
            left[0] -= 1
            chunk = GulpDirectory(tmp_path).chunk_objs_lookup[0]
            with chunk.open("ab"):
                chunk.append(f"new{left[0]}", {}, make_frames(1))
        return compare(folder)

    monkeypatch.setattr(keeping, "check_index", append_and_compare)
    report = check_directory(tmp_path, deep=True)
    assert [p.code for p in report.problems] == []
    assert "stale-index" in {note.code for note in report.notes}


def test_an_entry_that_had_rotted_before_it_was_deleted_is_to_be_erased(tmp_path):
    make_gulp_directory(tmp_path, num_items=3, num_frames=2)
    path = tmp_path / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"number": 0', b'"number": 4'))
    delete_items(tmp_path, ["item0"])
    (problem,) = check_directory(tmp_path, deep=True).problems
    assert (problem.code, problem.file) == ("entry-check", "deleted.json")
    assert "`gulp2 compact` erases it" in problem.message
    assert "gulp2 delete" not in problem.message
    compact_directory(tmp_path)
    assert check_directory(tmp_path, deep=True).problems == []
