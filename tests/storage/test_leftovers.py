"""What is left behind is removed, and never what another may be writing."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import ExitStack
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import LockedError, StorageError
from gulpio2.format.layout import JOURNAL_NAME
from gulpio2.removal import delete_items
from gulpio2.storage import leftovers
from gulpio2.storage.leftovers import made_and_locked, remove_partials
from gulpio2.storage.local import LocalStore
from gulpio2.storage.locks import WriterLock
from tests.chunks import JPEGS, new_chunk, open_files, problems, write


def fail(monkeypatch: pytest.MonkeyPatch, call: str, end: str, code: int) -> None:
    """Have a call of the system fail for paths that end so."""
    system = getattr(os, call)

    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        if os.fspath(path).endswith(end):
            raise OSError(code, os.strerror(code), path)
        return system(path, *arguments, **options)

    monkeypatch.setattr(os, call, refuse)


@pytest.mark.usefixtures("permissions")
def test_an_unfinished_file_that_may_not_be_opened_stays(tmp_path, caplog):
    # As another user's, who lets nobody read it, in a folder for all.
    write(tmp_path, ("a", {}, JPEGS[:2]), ("gone", {}, JPEGS[:1]))
    chunk = new_chunk(tmp_path, 7)
    with chunk.open("wb"):
        chunk.append("theirs", {}, JPEGS[2:4])
        (partial,) = tmp_path.glob("*.partial")
        partial.chmod(0)
        delete_items(tmp_path, ["gone"])
        assert partial.exists()
        partial.chmod(0o644)
    with GulpDirectory(tmp_path) as directory:
        assert list(directory.merged_meta_dict) == ["a", "theirs"]
    assert problems(tmp_path) == []
    (said,) = caplog.messages
    assert said.endswith(
        "Permission denied. The unfinished files of this chunk stay; "
        "remove them if none is"
    )


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOMEM])
def test_an_unfinished_file_that_fails_to_open_stays(
    tmp_path, monkeypatch, caplog, code
):
    map_too = tmp_path / "meta_7.gmeta.0123456789ab.partial"
    map_too.touch()
    chunk = new_chunk(tmp_path, 7)
    with chunk.open("wb"):
        chunk.append("theirs", {}, JPEGS[2:4])
        with monkeypatch.context() as patch:
            fail(patch, "open", ".partial", code)
            remove_partials(LocalStore(tmp_path))
        assert map_too.exists()
    assert list(new_chunk(tmp_path, 7).meta_dict) == ["theirs"]
    (said,) = caplog.messages  # once for all files of the chunk
    assert os.strerror(code) in said
    remove_partials(LocalStore(tmp_path))
    assert not map_too.exists()


def test_a_chunk_that_gets_its_name_meanwhile_keeps_its_map(tmp_path, monkeypatch):
    chunk, whole = new_chunk(tmp_path, 7), tmp_path / "data_7.gulp"
    map_file = tmp_path / "meta_7.gmeta.0123456789ab.partial"
    map_file.touch()
    is_in_use = leftovers._is_in_use

    def asking(path: str, lock: WriterLock) -> bool:
        found = is_in_use(path, lock)
        if not whole.exists():  # its writer commits between two questions
            partial.rename(whole)
        return found

    with chunk.open("wb"):
        chunk.append("theirs", {}, JPEGS[2:4])
        (partial,) = tmp_path.glob("data_7.*.partial")
        monkeypatch.setattr(leftovers, "_is_in_use", asking)
        remove_partials(LocalStore(tmp_path))
        assert map_file.exists()
        whole.rename(partial)


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_a_file_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path, monkeypatch, flag
):
    write(tmp_path, ("a", {}, JPEGS[:2]))

    def clear_away(*_: Any) -> None:
        monkeypatch.undo()
        assert list(tmp_path.glob("data_7.gulp.*.partial"))
        remove_partials(LocalStore(tmp_path))

    monkeypatch.setattr("gulpio2.staging.withhold", clear_away)
    with (chunk := new_chunk(tmp_path, 7)).open(flag):
        chunk.append("b", {}, JPEGS[2:4])
    with GulpDirectory(tmp_path) as directory:
        assert list(directory.merged_meta_dict) == ["a", "b"]
    assert open_files(tmp_path) == []
    assert problems(tmp_path) == []


def test_who_begins_a_chunk_does_not_lock_what_is_just_removed(tmp_path, monkeypatch):
    partial = tmp_path / "data_7.gulp.0123456789ab.partial"
    partial.touch()
    remove, seen = LocalStore.remove, []

    def try_to_lock(store: LocalStore, name: str) -> None:
        with WriterLock() as lock, pytest.raises(LockedError):
            lock.take(partial, at_once=True)
        seen.append(name)
        remove(store, name)

    monkeypatch.setattr(LocalStore, "remove", try_to_lock)
    remove_partials(LocalStore(tmp_path))
    assert seen == [partial.name]


def test_a_folder_in_the_place_of_a_data_file_keeps_nothing(tmp_path, caplog):
    (tmp_path / "data_7.gulp").mkdir()
    left = tmp_path / "data_7.gulp.0123456789ab.partial"
    left.touch()
    remove_partials(LocalStore(tmp_path))
    assert not left.exists()
    assert caplog.messages == []


def test_folders_above_one_that_cannot_be_made_are_gone_again(tmp_path):
    folder = tmp_path / "new" / ("x" * 300)
    with pytest.raises(StorageError), made_and_locked(LocalStore(folder), folder):
        pytest.fail("there is no such folder")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_locked_is_gone_again(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "one"

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(StorageError, match="must support flock"),
        made_and_locked(LocalStore(folder), folder),
    ):
        pytest.fail("nothing keeps others away")
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_that_another_has_locked_stays(tmp_path, monkeypatch):
    folder, make = tmp_path / "new", LocalStore.make

    with ExitStack() as another:

        def make_for_another(store: LocalStore) -> None:
            make(store)
            another.enter_context(LocalStore(folder).lock())

        monkeypatch.setattr(LocalStore, "make", make_for_another)
        with pytest.raises(LockedError), made_and_locked(LocalStore(folder), folder):
            pytest.fail("another is writing to it")
        assert folder.exists()


def refused(folder: Any) -> str:
    """Give what is said where a folder with a journal cannot be written to."""
    store = LocalStore(folder)
    with pytest.raises(StorageError) as info, made_and_locked(store, folder):
        pytest.fail("another may be writing to it")
    assert (folder / JOURNAL_NAME).exists()
    return str(info.value.strerror)


@pytest.mark.usefixtures("permissions")
def test_a_journal_that_may_not_be_opened_is_not_taken_for_a_free_one(tmp_path):
    journal = tmp_path / JOURNAL_NAME
    journal.touch(0)
    said = refused(tmp_path)
    assert said.startswith(
        f"cannot open {journal}: Permission denied. Make it readable"
    )


@pytest.mark.parametrize("call", ["lstat", "open"])
def test_a_journal_that_fails_to_open_is_not_taken_for_a_free_one(
    tmp_path, monkeypatch, call
):
    (tmp_path / JOURNAL_NAME).touch()
    fail(monkeypatch, call, JOURNAL_NAME, errno.ESTALE)
    assert os.strerror(errno.ESTALE) in refused(tmp_path)
