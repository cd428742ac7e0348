"""One writer per folder, by a lock that dies with its owner."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gulpio2.errors import LockedError, StorageError
from gulpio2.storage import locks
from gulpio2.storage.local import LocalStore
from gulpio2.storage.locks import WriterLock, lock_folder, share_locks
from tests.forking import forked, status_of

# Python 3.12 and later warn of a fork beside threads, of libraries too; the children
# here do what is safe.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

HOLDER = """
import sys, time
from pathlib import Path
from gulpio2.storage.locks import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path, python, repository):
    """Start a process that holds the folder's lock; give it once it does."""
    process = subprocess.Popen(
        [python, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=repository,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def assert_held(folder):
    """See that a second writer is refused, without waiting as long as it would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "_PATIENCE", 0.1)
        with pytest.raises(LockedError), lock_folder(folder):
            pytest.fail("two writers")


def test_the_lock_leaves_nothing_behind(tmp_path):
    with lock_folder(tmp_path):
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_the_lock_can_be_had_again(tmp_path):
    for _ in range(3):
        with LocalStore(tmp_path).lock():
            assert_held(tmp_path)


def test_a_second_writer_of_the_same_process_is_refused(tmp_path):
    message = rf"another process is writing to {tmp_path}\. Wait for it to end"
    with (
        lock_folder(tmp_path),
        pytest.raises(LockedError, match=message),
        lock_folder(tmp_path),
    ):
        pytest.fail("two writers")


def test_those_who_only_copy_are_there_together_and_keep_writers_away(tmp_path):
    copying = rf"another process is copying from {tmp_path}\. Wait for it to end, or"
    with (
        lock_folder(tmp_path, shared=True),
        LocalStore(tmp_path).lock(shared=True),
        pytest.raises(LockedError, match=copying),
        lock_folder(tmp_path),
    ):
        pytest.fail("a writer beside those who copy")
    writing = rf"another process is writing to {tmp_path}\. Wait for it to end$"
    with (
        lock_folder(tmp_path),
        pytest.raises(LockedError, match=writing),
        lock_folder(tmp_path, shared=True),
    ):
        pytest.fail("one who copies beside a writer")
    with lock_folder(tmp_path):
        assert_held(tmp_path)


def test_a_copy_of_a_killed_writers_lock_is_waited_for(tmp_path, python):
    # As a worker has it that was forked just before, and has not run yet.
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    copy = subprocess.Popen(
        [python, "-c", "import time; time.sleep(0.3)"], pass_fds=[fd]
    )
    os.close(fd)
    assert copy.poll() is None
    with lock_folder(tmp_path):
        assert copy.wait() == 0
        assert_held(tmp_path)


def test_folders_are_locked_one_by_one(tmp_path):
    (tmp_path / "a").mkdir()
    with lock_folder(tmp_path):
        with lock_folder(tmp_path / "a"):
            assert_held(tmp_path / "a")
        assert_held(tmp_path)


def test_the_lock_is_let_go_by_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), lock_folder(tmp_path):
        _ = 1 / 0
    with lock_folder(tmp_path):
        assert_held(tmp_path)


def test_a_writer_in_another_process_is_waited_for_by_refusing(tmp_path, holder):
    assert_held(tmp_path)
    assert holder.poll() is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_dies_with_its_owner(tmp_path, holder, how):
    assert_held(tmp_path)
    holder.send_signal(how)
    holder.wait()
    with lock_folder(tmp_path):
        assert_held(tmp_path)


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    stop_reader, stop_writer = os.pipe()
    up_reader, up_writer = os.pipe()
    with lock_folder(tmp_path):
        child = os.fork()
        if child == 0:
            os.close(stop_writer)
            os.write(up_writer, b"1")
            os.read(stop_reader, 1)  # until the parent lets go of the pipe
            os._exit(0)
        os.read(up_reader, 1)
    try:
        with lock_folder(tmp_path):
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child is alive"
    finally:
        for fd in (stop_reader, stop_writer, up_reader, up_writer):
            os.close(fd)
        os.waitpid(child, 0)


def test_a_child_that_is_forked_while_the_lock_is_waited_for_does_not_keep_it(
    tmp_path,
):
    stop_reader, stop_writer = os.pipe()
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    had = threading.Event()

    def wait_for_it() -> None:
        with lock_folder(tmp_path):
            had.set()

    def stay() -> None:
        os.close(stop_writer)
        os.read(stop_reader, 1)

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    time.sleep(0.2)
    child = forked(stay)
    fcntl.flock(other, fcntl.LOCK_UN)
    thread.join()
    try:
        assert had.is_set()
        with lock_folder(tmp_path):
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child is alive"
    finally:
        for fd in (stop_writer, stop_reader, other):
            os.close(fd)
        os.waitpid(child, 0)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_an_interrupt_while_a_lock_is_waited_for_leaves_nothing_open(tmp_path, what):
    store = LocalStore(tmp_path)
    store.create("a.partial").close()
    path = tmp_path if what == "folder" else tmp_path / "a.partial"
    other = os.open(path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def wait_for_it() -> None:
        with store.lock() if what == "folder" else nullcontext():
            store.extend("a.partial", alone=True)

    before = descriptors()
    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_it()
    finally:
        signal.signal(signal.SIGALRM, old)
    assert descriptors() == before
    os.close(other)


def test_a_lock_taken_inside_of_a_fork_is_the_childs_own(tmp_path):
    (tmp_path / "a").mkdir()

    def lock() -> None:
        with lock_folder(tmp_path / "a"):
            pass

    with lock_folder(tmp_path):
        assert status_of(forked(lock)) == 0
        assert_held(tmp_path)  # the child has not let go of the parent's lock


def test_a_missing_folder_cannot_be_locked(tmp_path):
    with (
        pytest.raises(StorageError, match=r"cannot open the folder .*missing: No such"),
        lock_folder(tmp_path / "missing"),
    ):
        pytest.fail("locked nothing")


def test_many_processes_have_the_lock_one_after_the_other(tmp_path, python, repository):
    count = tmp_path / "count"
    count.write_text("0")
    code = """
import sys, time
from pathlib import Path
from gulpio2.errors import LockedError
from gulpio2.storage.locks import lock_folder
count = Path(sys.argv[1], "count")
for _ in range(10):
    while True:
        try:
            with lock_folder(Path(sys.argv[1])):
                count.write_text(str(int(count.read_text()) + 1))
            break
        except LockedError:
            time.sleep(0.001)
"""
    started = time.monotonic()
    processes = [
        subprocess.Popen([python, "-c", code, str(tmp_path)], cwd=repository)
        for _ in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert count.read_text() == "30"
    assert time.monotonic() - started < 60


def test_a_lock_that_fails_to_close_undoes_nothing_that_was_done(tmp_path, monkeypatch):
    system, failed = os.close, []

    def close(fd: int) -> None:
        system(fd)
        failed.append(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "data_0.gulp").touch()
    before = descriptors()
    with (
        monkeypatch.context() as patch,
        lock_folder(tmp_path),
        WriterLock() as lock,
    ):
        assert lock.take(tmp_path / "data_0.gulp")
        patch.setattr(os, "close", close)
    assert len(failed) == 2
    assert descriptors() == before
    with lock_folder(tmp_path), WriterLock() as lock:
        assert lock.take(tmp_path / "data_0.gulp", at_once=True)


def test_a_file_that_cannot_be_looked_at_is_not_told_as_another_writer(
    tmp_path, monkeypatch
):
    path, system = tmp_path / "data_0.gulp", os.stat
    path.touch()

    def fail(name: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if name == path:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
        return system(name, *arguments, **options)

    monkeypatch.setattr(os, "stat", fail)
    with WriterLock() as lock, pytest.raises(StorageError) as info:
        lock.take(path)
    assert not isinstance(info.value, LockedError)
    said = str(info.value.strerror)
    assert said == f"cannot look at {path}: {os.strerror(errno.ESTALE)}"


@pytest.mark.parametrize("is_held", [False, True])
def test_two_names_of_a_file_share_its_lock_and_two_files_do_not(tmp_path, is_held):
    names = [tmp_path / name for name in "abc"]
    names[0].touch()
    names[1].hardlink_to(names[0])
    names[2].touch()
    before = descriptors()
    with WriterLock() as lock:
        if is_held:
            lock.take(names[0])
        assert share_locks(names[0], names[1])
        assert not share_locks(names[0], names[2])
    assert descriptors() == before
    assert share_locks(names[0], tmp_path / "gone")  # nobody knows


@pytest.mark.parametrize("is_link", [True, False])
def test_two_names_are_asked_again_where_another_lets_go_between(
    tmp_path, monkeypatch, is_link
):
    names = [tmp_path / name for name in "ab"]
    names[0].touch()
    if is_link:
        names[1].hardlink_to(names[0])
    else:
        names[1].touch()
    real = locks.lock_file
    with WriterLock() as other:
        other.take(names[0])

        def ask(fd, **options):
            answer = real(fd, **options)
            other.__exit__()
            return answer

        monkeypatch.setattr(locks, "lock_file", ask)
        assert share_locks(*names) is is_link


def test_two_names_share_the_lock_where_there_are_none(tmp_path, monkeypatch):
    names = [tmp_path / name for name in "ab"]
    for name in names:
        name.touch()

    def refuse(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert share_locks(*names)


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.EOPNOTSUPP, "must support flock"), (errno.EIO, "The disk may be failing")],
)
def test_why_a_folder_cannot_be_locked_is_told(tmp_path, monkeypatch, code, advice):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(StorageError, match=f"cannot lock the folder .*{advice}") as info,
        LocalStore(tmp_path).lock(),
    ):
        pytest.fail("nothing keeps others away")
    assert ("flock" in str(info.value)) == (code == errno.EOPNOTSUPP)
