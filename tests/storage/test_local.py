"""A folder of this machine."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import re
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gulpio2.errors import LockedError, StorageError, StorageExistsError
from gulpio2.storage import open_store
from gulpio2.storage.base import WRITTEN_AT_ONCE
from gulpio2.storage.local import LocalStore, new_token
from gulpio2.storage.locks import WriterLock


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """Give the store of a new folder."""
    return LocalStore(tmp_path / "out")


def make(store: LocalStore, **files: bytes) -> None:
    """Write files as they are given."""
    store.make()
    for name, data in files.items():
        (store.folder / name).write_bytes(data)


def fail_at(monkeypatch, name, number=errno.ENOSPC):
    """Let a function of the operating system fail."""

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, fail)


def no_links(*_):
    raise PermissionError(errno.EPERM, "Operation not permitted")


def copy_as_link(source, target):
    with target.open("xb") as file:
        file.write(source.read_bytes())


# --- listing and reading ------------------------------------------------------------


def test_a_missing_folder_holds_nothing_and_is_not_made(store):
    assert store.names() == []
    assert not store.folder.exists()


def test_names_are_those_of_the_folder(store):
    make(store, b=b"", a=b"1")
    assert sorted(store.names()) == ["a", "b"]


def test_a_file_as_folder_cannot_be_listed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=rf"cannot list {tmp_path / 'file'}"):
        LocalStore(tmp_path / "file").names()


def test_files_are_read_whole_and_in_part(store):
    make(store, a=b"0123456789")
    assert store.read("a") == b"0123456789"
    assert store.read_at("a", 2, 3) == b"234"
    assert store.size("a") == 10
    assert store.path("a") == str(store.folder / "a")


@pytest.mark.parametrize("verb", ["read", "size"])
def test_a_missing_file_is_a_file_not_found(store, verb):
    store.make()
    with pytest.raises(FileNotFoundError):
        getattr(store, verb)("a")


def test_what_cannot_be_read_is_a_storage_error(store):
    store.make()
    (store.folder / "a").mkdir()
    with pytest.raises(StorageError, match=r"cannot read .*out/a: not a regular file"):
        store.read("a")


@pytest.mark.parametrize(
    "read",
    [lambda s: s.read("a"), lambda s: s.read_at("a", 0, 1), lambda s: s.size("a")],
)
def test_a_pipe_is_refused_and_not_waited_for(store, read):
    store.make()
    os.mkfifo(store.folder / "a")
    with pytest.raises(StorageError, match="not a regular file"):
        read(store)


# --- writing ------------------------------------------------------------------------


def test_the_folder_is_made_with_its_parents_and_again(tmp_path):
    store = open_store(tmp_path / "a" / "b")
    store.make()
    store.make()
    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"cannot create the folder .*file/b: Not a"):
        LocalStore(tmp_path / "file" / "b").make()


def test_a_file_is_written_from_its_beginning(store):
    store.make()
    writer = store.create("a")
    assert writer.tell() == 0
    writer.write(b"0123")
    writer.write(memoryview(b"4567"))
    assert writer.tell() == 8
    writer.truncate(5)
    writer.write(b"x")
    writer.sync()
    writer.close()
    writer.close()
    assert store.read("a") == b"01234x"


def test_what_is_on_the_disk_is_not_synced_again(store, monkeypatch):
    make(store, a=b"0123")
    fsync, synced = os.fsync, []

    def note_sync(fd):
        synced.append(store.read("a"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note_sync)
    writer = store.extend("a")
    for change in (
        lambda: None,  # what is there, another may just have written
        lambda: writer.write(b"4"),
        lambda: writer.truncate(2),
        lambda: writer.write(b"abc"),
    ):
        change()
        writer.sync()
        writer.sync()
    assert synced == [b"0123", b"01234", b"01", b"01abc"]
    writer.write(b"d")
    with monkeypatch.context() as patch:
        fail_at(patch, "fsync")
        with pytest.raises(StorageError, match="cannot sync"):
            writer.sync()
    writer.sync()  # which has failed
    writer.close()
    assert synced[4:] == [b"01abcd"]


def test_a_file_is_gone_on_with_at_its_end(store):
    make(store, a=b"0123")
    writer = store.extend("a")
    assert writer.tell() == 4
    writer.write(b"4")
    writer.close()
    assert store.read("a") == b"01234"


def test_a_file_that_is_there_is_never_begun_anew(store):
    make(store, a=b"0123")
    with pytest.raises(StorageError, match=r"cannot open for writing .*: File exists"):
        store.create("a")
    assert store.read("a") == b"0123"


def test_a_closed_writer_says_so(store):
    store.make()
    writer = store.create("a")
    writer.close()
    with pytest.raises(StorageError, match="out/a is closed already"):
        writer.write(b"1")


def test_what_is_written_at_once_ends_at_a_whole_block(store, monkeypatch):
    write, sizes = os.write, []

    def note(file, data):
        sizes.append(len(data))
        return write(file, data)

    content = bytes(range(256)) * 1000
    store.make()
    writer = store.create("data_0.gulp")
    monkeypatch.setattr(os, "write", note)
    for part in (content[:100], content[100:]):
        writer.write(part)
    assert sizes[:2] == [100, WRITTEN_AT_ONCE - 100]
    assert set(sizes[2:-1]) == {WRITTEN_AT_ONCE}
    assert sum(sizes) == len(content)
    writer.close()
    assert store.read("data_0.gulp") == content


def test_a_short_write_of_the_system_is_gone_on_with(store, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    store.make()
    writer = store.create("a")
    writer.write(b"0123456789")
    writer.close()
    assert store.read("a") == b"0123456789"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("write", lambda writer: writer.write(b"1")),
        ("ftruncate", lambda writer: writer.truncate(0)),
        ("fsync", lambda writer: writer.sync()),
    ],
)
def test_a_full_disk_is_a_storage_error_with_its_number(store, monkeypatch, name, call):
    store.make()
    writer = store.create("a")
    with monkeypatch.context() as patch:
        fail_at(patch, name)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            call(writer)
    writer.close()
    assert caught.value.errno == errno.ENOSPC
    assert "Make room there" in str(caught.value)
    assert "What was committed before is intact" in str(caught.value)


def test_what_cannot_be_read_is_said_with_what_to_do(store, monkeypatch):
    make(store, a=b"1")
    fail_at(monkeypatch, "open", errno.EACCES)
    with pytest.raises(StorageError, match="Permission denied") as caught:
        store.read("a")
    assert str(store.folder / "a") in str(caught.value)
    assert "Make it readable" in str(caught.value)
    assert "committed" not in str(caught.value)  # nothing was being written


@pytest.mark.parametrize(
    ("begin", "advice"),
    [
        (lambda store: store.extend("a"), "Make the file writable for you"),
        (lambda store: store.create("b"), "Make the folder writable for you"),
    ],
)
def test_what_may_not_be_written_to_is_said_of_the_file_or_the_folder(
    store, monkeypatch, begin, advice
):
    make(store, a=b"1")
    fail_at(monkeypatch, "open", errno.EACCES)
    with pytest.raises(StorageError, match="Permission denied") as caught:
        begin(store)
    assert advice in str(caught.value)
    assert "What was committed before is intact" in str(caught.value)


def test_a_rename_replaces_what_had_the_name(store):
    make(store, a=b"new", b=b"old")
    store.rename("a", "b")
    store.sync_names()
    assert store.names() == ["b"]
    assert store.read("b") == b"new"


def test_a_rename_of_what_is_new_replaces_nothing(store):
    make(store, a=b"new", b=b"old")
    with pytest.raises(StorageExistsError, match=r"cannot rename to b .*out/a"):
        store.rename("a", "b", is_new=True)
    assert [store.read(name) for name in "ab"] == [b"new", b"old"]
    store.rename("a", "c", is_new=True)
    assert sorted(store.names()) == ["b", "c"]
    assert store.read("c") == b"new"


def test_a_rename_of_what_is_new_is_one_where_there_are_no_hard_links(
    store, monkeypatch
):
    make(store, a=b"new")
    monkeypatch.setattr(os, "link", no_links)
    store.rename("a", "b", is_new=True)
    assert store.names() == ["b"]
    make(store, c=b"late", **{"b.naming.partial": b""})  # of one that was killed
    with pytest.raises(StorageExistsError, match=r"cannot rename to b .*out/c"):
        store.rename("c", "b", is_new=True)
    assert [store.read(name) for name in sorted(store.names())] == [b"new", b"late"]


@pytest.mark.parametrize("num_times", range(10))
def test_of_two_renames_of_what_is_new_at_once_one_is_refused_without_hard_links(
    store, monkeypatch, num_times
):
    make(store, a=b"first", b=b"second")
    both, real = threading.Barrier(2), Path.replace

    def link(*_):
        both.wait()
        no_links()

    def replace(file, target):
        time.sleep(0.05)  # so that the other would find the name free
        real(file, target)

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(Path, "replace", replace)
    with ThreadPoolExecutor(2) as threads:
        renames = [
            threads.submit(store.rename, name, "c", is_new=True) for name in ("a", "b")
        ]
    refused = [isinstance(each.exception(), StorageExistsError) for each in renames]
    assert sorted(refused) == [False, True]
    assert store.read("c") == [b"first", b"second"][refused.index(False)]
    assert sorted(store.names()) == [["a", "b"][refused.index(True)], "c"]


@pytest.mark.parametrize("refusal", [errno.ENOSYS, errno.ENOLCK, errno.ENOSPC])
def test_a_rename_of_what_is_new_needs_no_lock_where_there_is_none(
    store, monkeypatch, refusal
):
    make(store, a=b"new", b=b"late")
    monkeypatch.setattr(os, "link", no_links)
    real = os.open

    def refuse_new(path, flags, *rest):
        if refusal == errno.ENOSPC and flags & os.O_CREAT:
            raise OSError(refusal, os.strerror(refusal), path)
        return real(path, flags, *rest)

    def refuse(*_):
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(os, "open", refuse_new)
    monkeypatch.setattr(fcntl, "flock", refuse)
    store.rename("a", "c", is_new=True)
    with pytest.raises(StorageExistsError, match="cannot rename to c"):
        store.rename("b", "c", is_new=True)
    assert sorted(store.names()) == ["b", "c"]


def test_a_rename_of_what_is_new_keeps_the_file_that_is_locked(store, monkeypatch):
    make(store, a=b"new", c=b"late")
    # By FUSE a second name has no lock of the first, as a copy has none.
    monkeypatch.setattr(os, "link", copy_as_link)
    before = (store.folder / "a").stat()
    with WriterLock() as lock:
        lock.take(store.path("a"))
        store.rename("a", "b", is_new=True)
        assert os.path.samestat(before, (store.folder / "b").stat())
        with WriterLock() as other, pytest.raises(LockedError):
            other.take(store.path("b"), at_once=True)
    with pytest.raises(StorageExistsError):
        store.rename("c", "b", is_new=True)
    assert sorted(store.names()) == ["b", "c"]


def test_a_rename_of_what_is_new_waits_for_no_other_that_hangs(store, monkeypatch):
    make(store, a=b"new")
    monkeypatch.setattr(os, "link", no_links)
    with WriterLock() as lock:
        make(store, **{"b.naming.partial": b""})
        lock.take(store.path("b.naming.partial"))
        with pytest.raises(LockedError, match=r"b\.naming\.partial is open for wri"):
            store.rename("a", "b", is_new=True)
    assert sorted(store.names()) == ["a", "b.naming.partial"]


def test_a_rename_of_what_is_new_takes_no_lock_on_what_another_has_removed(
    store, monkeypatch
):
    make(store, a=b"new")
    monkeypatch.setattr(os, "link", no_links)
    real, rename = WriterLock.take, Path.replace
    removed: list[Path] = []

    def take(lock, path, **options):
        if not removed:  # by one that was renaming until now
            path.unlink()
            removed.append(path)
        return real(lock, path, **options)

    def replace(file, name):
        with WriterLock() as other, pytest.raises(LockedError):
            real(other, removed[0], at_once=True)
        rename(file, name)

    monkeypatch.setattr(WriterLock, "take", take)
    monkeypatch.setattr(Path, "replace", replace)
    store.rename("a", "b", is_new=True)
    assert store.names() == ["b"]


def test_a_rename_of_what_is_new_that_was_done_already_is_no_error(store, monkeypatch):
    make(store, a=b"new")
    real = os.link

    def link(source, target):  # as by NFS, where an answer was lost
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    store.rename("a", "b", is_new=True)
    assert store.names() == ["b"]


def test_a_rename_of_nothing_is_a_storage_error(store):
    store.make()
    with pytest.raises(StorageError, match=r"cannot rename to b .*out/a"):
        store.rename("a", "b")


def test_removing_what_is_not_there_is_no_error(store):
    make(store, a=b"")
    store.remove("a")
    store.remove("a")
    assert store.names() == []


# --- whole files --------------------------------------------------------------------


def test_a_small_file_is_put_in_place_whole(store):
    make(store, a=b"old")
    store.write_atomically("a", b"new")
    assert store.read("a") == b"new"
    assert store.names() == ["a"]


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(
    store, monkeypatch
):
    store.make()
    calls = []
    fsync, replace = os.fsync, os.replace

    def note_sync(fd):
        calls.append(("sync", os.readlink(f"/proc/self/fd/{fd}")))  # noqa: PTH115  # as the store calls it
        fsync(fd)

    def note_replace(source, target, **_):
        calls.append(("rename", str(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    monkeypatch.setattr(
        type(store.folder), "replace", lambda self, target: note_replace(self, target)
    )
    store.write_atomically("a", b"new")
    partial, renamed, folder = calls
    assert partial[0] == "sync"
    assert partial[1].endswith(".partial")
    assert renamed == ("rename", str(store.folder / "a"))
    assert folder == ("sync", str(store.folder))


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_what_fails_leaves_the_old_file_and_nothing_else(store, monkeypatch, name):
    make(store, a=b"old")
    with monkeypatch.context() as patch:
        fail_at(patch, name)
        with pytest.raises(StorageError):
            store.write_atomically("a", b"new")
    assert store.names() == ["a"]
    assert store.read("a") == b"old"


def test_what_fails_first_is_told_where_the_file_cannot_be_closed_either(store):
    make(store, a=b"old")

    def fail():
        with store.replacing("a") as writer:
            os.close(writer._fd)  # as where a disk refuses the last bytes
            raise OSError(errno.EIO, "the first of all")

    with pytest.raises(OSError, match="the first of all"):
        fail()
    assert store.names() == ["a"]
    assert store.read("a") == b"old"


def test_what_fails_first_is_told_where_the_file_cannot_be_removed_either(store):
    store.make()

    def fail():
        with store.replacing("a"):
            (partial,) = store.folder.iterdir()
            partial.unlink()
            partial.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()


def test_a_reader_of_the_old_file_keeps_it(store):
    make(store, a=b"old")
    with (store.folder / "a").open("rb") as file:
        store.write_atomically("a", b"new")
        assert file.read() == b"old"


# --- lifetime -----------------------------------------------------------------------


def test_tokens_are_lower_case_letters_and_digits_and_differ():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("[0-9a-z]+", token) for token in tokens)


def test_a_store_is_pickled_without_its_open_files(store):
    make(store, a=b"0123")
    store.read_at("a", 0, 1)
    copy = pickle.loads(pickle.dumps(store))
    assert copy.read_at("a", 1, 2) == b"12"
    assert repr(copy) == f"LocalStore({str(store.folder)!r})"


def test_closing_lets_go_of_files_and_reading_reopens(store):
    make(store, a=b"old")
    assert store.read_at("a", 0, 3) == b"old"
    store.write_atomically("a", b"new")
    store.close()
    assert store.read_at("a", 0, 3) == b"new"


def test_what_python_refuses_to_read_is_not_left_open(store, monkeypatch):
    # As where the system does not say what it is, which Python asks for once more.
    make(store, a=b"0123")
    opened: list[int] = []

    def open_folder(_: str) -> int:
        opened.append(os.open(store.folder, os.O_RDONLY))
        return opened[-1]

    monkeypatch.setattr("gulpio2.storage.local.open_regular", open_folder)
    with pytest.raises(StorageError, match=r"cannot read .*a: Is a directory"):
        store.read("a")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_a_folder_that_is_synced_and_fails_to_close_is_synced(store, monkeypatch):
    system, closed = os.close, []

    def close(fd: int) -> None:
        system(fd)
        closed.append(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    make(store, a=b"0123")
    monkeypatch.setattr(os, "close", close)
    store.sync_names()
    assert len(closed) == 1


def test_a_folder_that_cannot_be_synced_is_written_to_all_the_same(store, monkeypatch):
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))  # as of /proc
        real(fd)

    store.make()
    monkeypatch.setattr(os, "fsync", fsync)
    store.write_atomically("a", b"1")
    assert store.read("a") == b"1"
    fail_at(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(StorageError, match="cannot sync the folder"):
        store.sync_names()
