"""A check of a directory of which the system once refuses to read something."""

import errno
import os
import sys

import pytest

from gulpio2 import GulpChunk
from gulpio2.errors import StorageError
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import make_frames, make_gulp_directory
from tests.storage.index.test_loading import LASTING, fail

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path):
    """Write a directory with an older map in the place of the one that was indexed."""
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=4, items_per_chunk=2).close()
    older = (path / "meta_1.gmeta").read_bytes()
    chunk = GulpChunk(path / "data_1.gulp", path / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("new", {}, make_frames(2, seed=90))
    build_index(path)
    (path / "meta_1.gmeta").write_bytes(older)
    return path


def refuse(patch, method, name):
    """Have the search for lost items fail once to read a file."""
    real, left = getattr(LocalStore, method), [1]
    readers = ("lost.py", "base.py", "data_file.py")

    def refusing(self, asked, *rest):
        caller = sys._getframe(1).f_code.co_filename
        if left[0] and asked == name and caller.endswith(readers):
            left[0] = 0
            raise StorageError(errno.EIO, f"cannot read {asked}: Input/output error")
        return real(self, asked, *rest)

    patch.setattr(LocalStore, method, refusing)


@pytest.mark.parametrize(
    ("method", "name"),
    [("read", "meta_1.gmeta"), ("read_at", "data_1.gulp")],
)
def test_what_hides_a_lost_item_is_named_and_the_index_kept(
    folder, monkeypatch, method, name
):
    with monkeypatch.context() as patch:
        refuse(patch, method, name)
        report = check_directory(folder, deep=True)
    (unread,) = (p for p in report.problems if p.code == "unreadable-file")
    assert unread.file == name
    assert unread.message.endswith("Input/output error. Check again")
    (note,) = (note for note in report.notes if note.code == "stale-index")
    assert "let it be, and check again" in note.message
    assert "gulp2 index" not in note.message
    codes = [p.code for p in check_directory(folder, deep=True).problems]
    assert "lost-item" in codes
    assert "unreadable-file" not in codes


def test_what_was_deleted_and_cannot_be_read_is_named(folder, monkeypatch):
    (folder / "deleted.json").write_text("{}")
    fail(monkeypatch, "open", "deleted.json", times=LASTING)
    report = check_directory(folder, deep=True)
    (unread,) = (p for p in report.problems if p.code == "unreadable-file")
    assert unread.file == "deleted.json"
    (note,) = (note for note in report.notes if note.code == "stale-index")
    assert "let it be, and check again" in note.message


def test_a_data_file_that_is_gone_or_cut_is_no_file_that_cannot_be_read(folder):
    data = folder / "data_1.gulp"
    data.write_bytes(data.read_bytes()[:-4])
    codes = {p.code for p in check_directory(folder, deep=True).problems}
    assert "unreadable-file" not in codes
    data.unlink()
    codes = {p.code for p in check_directory(folder, deep=True).problems}
    assert "lost-item" not in codes
    assert "unreadable-file" not in codes


@pytest.mark.parametrize("name", ["index.arrow", "meta_0.gmeta"])
@pytest.mark.parametrize("function", ["open", "fstat", "stat"])
def test_no_index_is_called_wrong_for_an_error_that_passes(
    tmp_path, monkeypatch, name, function
):
    make_gulp_directory(tmp_path, num_items=4, items_per_chunk=2).close()
    build_index(tmp_path)
    for path in tmp_path.glob("meta_*"):  # so that each is compared
        os.utime(path, (1, 1))
    for number in range(12):
        with monkeypatch.context() as patch:
            fail(patch, function, name, after=number)
            report = check_directory(tmp_path, deep=True)
        assert {p.code for p in report.problems} <= {"unreadable-file"}, number
        assert all(p.message.count("again") <= 1 for p in report.problems)
        assert [p.file for p in report.problems] in ([], [name], ["index.arrow"])
        assert report.notes == [], number
    assert check_directory(tmp_path, deep=True).ok
