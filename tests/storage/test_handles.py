"""Open files for reading: few, shared, and gone when nobody needs them."""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import resource
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ReadRangeError, StorageError
from gulpio2.format.plan import Read
from gulpio2.storage import descriptors, handles
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.index.composing import map_states, read_map
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.loading import load_index
from gulpio2.storage.local import LocalStore
from gulpio2.storage.reads import read_fully
from gulpio2.testing import make_gulp_directory
from tests.forking import forked, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Python 3.12 and later warn of a fork beside threads, of libraries too; the children
# here do what is safe.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Write files that begin with their own number."""
    names = [tmp_path / f"{number}" for number in range(8)]
    for number, path in enumerate(names):
        path.write_bytes(bytes([number]) + bytes(range(1, 100)))
    return [str(path) for path in names]


def open_paths(folder: Path) -> list[str]:
    """Give the files below a folder that this process has open, one per handle."""
    targets = []
    for fd in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names are numbers
        try:
            targets.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115  # a link
        except FileNotFoundError:  # of the listing itself
            continue
    return sorted(target for target in targets if target.startswith(str(folder)))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@contextmanager
def limited(more: int) -> Iterator[int]:
    """Let this process open only so many files more; gives the limit."""
    limit = 0
    while more or is_open(limit):
        more -= not is_open(limit)
        limit += 1
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_exactly_the_bytes_asked_for_are_read(paths):
    pool = HandlePool()
    assert pool.read_at(paths[3], 0, 4) == b"\x03\x01\x02\x03"
    assert pool.read_at(paths[3], 99, 1) == b"\x63"
    assert pool.read_at(paths[3], 50, 0) == b""


def test_a_file_is_opened_once_and_stays_open(paths, tmp_path):
    pool = HandlePool()
    for _ in range(3):
        pool.read_at(paths[0], 0, 1)
    assert open_paths(tmp_path) == [paths[0]]
    pool.close()
    assert open_paths(tmp_path) == []
    assert pool.read_at(paths[0], 0, 1) == b"\0"


def test_the_file_that_was_not_read_for_longest_is_closed_first(paths, tmp_path):
    pool = HandlePool(max_open=3)
    for number in (0, 1, 2, 0, 3):
        pool.read_at(paths[number], 0, 1)
    assert open_paths(tmp_path) == [paths[0], paths[2], paths[3]]
    assert pool.read_at(paths[1], 0, 1) == b"\x01"
    assert open_paths(tmp_path) == [paths[0], paths[1], paths[3]]


def test_nothing_stays_open_when_the_pool_is_dropped(paths, tmp_path):
    pool = HandlePool()
    pool.read_at(paths[0], 0, 1)
    del pool
    assert open_paths(tmp_path) == []


def test_a_read_past_the_end_is_named_and_leaves_nothing_wrong(paths):
    pool = HandlePool()
    message = (
        rf"{paths[0]} ends at byte 100, but bytes 90 to 110 are wanted: it was cut"
    )
    with pytest.raises(ReadRangeError, match=message):
        pool.read_at(paths[0], 90, 20)
    with pytest.raises(ReadRangeError):
        pool.read_at(paths[0], 10**12, 1)
    assert pool.read_at(paths[0], 98, 2) == b"\x62\x63"


def test_a_missing_file_is_a_file_not_found(tmp_path):
    path, pool = tmp_path / "missing", HandlePool()
    told = rf"cannot open {path}: No such file .*Put the file back"
    with pytest.raises(FileNotFoundError, match=told) as caught:
        pool.read_at(str(path), 0, 1)
    assert isinstance(caught.value, StorageError)
    with pytest.raises(StorageError, match=told):
        pool.read_into(str(path), 0, 1, bytearray(1))


def test_a_link_that_leads_to_nothing_is_named_with_what_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(FileNotFoundError, match="it is a link to gone, which is not"):
        HandlePool().read_at(str(tmp_path / "link"), 0, 1)


def test_a_relative_path_is_missing_in_the_folder_where_it_begins(
    tmp_path, monkeypatch
):
    (tmp_path / "now").mkdir()
    (tmp_path / "there").write_bytes(b"abc")
    monkeypatch.chdir(tmp_path)
    pool = HandlePool()
    assert pool.read_at("there", 0, 3) == b"abc"
    pool.close()
    monkeypatch.chdir(tmp_path / "now")
    message = rf"cannot open there: No such .* in {tmp_path}/now, where this path begin"
    with pytest.raises(StorageError, match=message):
        pool.read_at("there", 0, 3)
    (tmp_path / "now").rmdir()
    with pytest.raises(StorageError, match="where this path begins is gone"):
        pool.read_at("there", 0, 3)


def test_what_cannot_be_read_is_a_storage_error_that_names_it(tmp_path):
    with pytest.raises(StorageError, match=rf"cannot open {tmp_path}: not a regular"):
        HandlePool().read_at(str(tmp_path), 0, 1)


def test_a_file_whose_folder_is_none_is_a_storage_error(paths):
    with pytest.raises(StorageError, match=rf"cannot open {paths[0]}/x"):
        HandlePool().read_at(f"{paths[0]}/x", 0, 1)


def test_a_short_read_of_the_system_is_gone_on_with(paths, monkeypatch):
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: pread(fd, min(n, 7), at))
    assert HandlePool().read_at(paths[2], 0, 60) == b"\x02" + bytes(range(1, 60))


def test_an_io_error_keeps_its_number(paths, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(StorageError, match="at byte 3: Input/output error") as caught:
        HandlePool().read_at(paths[2], 3, 1)
    assert caught.value.errno == 5


def test_a_file_whose_length_cannot_be_asked_for_is_named(paths, monkeypatch):
    pool, system = HandlePool(), os.fstat
    with pytest.raises(ReadRangeError):
        pool.read_at(paths[2], 0, 1000)  # it is open, and may have grown since

    def fail(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    reads = [
        lambda: pool.read_at(paths[2], 0, 1000),
        lambda: pool.read_into(paths[2], 0, 1000, bytearray()),
        lambda: pool.read_several(paths[2], [Read(0, 1000, ())], bytearray(1000)),
    ]
    for read in reads:
        monkeypatch.setattr(os, "fstat", fail)
        with pytest.raises(StorageError) as caught:
            read()
        monkeypatch.setattr(os, "fstat", system)
        said = f"cannot read {paths[2]}: {os.strerror(errno.ESTALE)}"
        assert (caught.value.errno, caught.value.strerror) == (errno.ESTALE, said)


@pytest.mark.parametrize("read", ["read", "read_at"])
def test_what_cannot_be_looked_at_is_not_left_open(paths, tmp_path, monkeypatch, read):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = LocalStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fail)
        with pytest.raises(StorageError, match=f"cannot (open|read) {paths[3]}: Input"):
            store.read("3") if read == "read" else store.read_at("3", 0, 1)
    assert open_paths(tmp_path) == []


def test_a_file_that_fails_to_close_is_no_matter_of_who_has_read(paths, monkeypatch):
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    pool = HandlePool()
    pool.read_at(paths[0], 0, 1)
    os.close(pool._handles[paths[0]].fd)
    pool.close()
    assert said == []


def test_memory_is_read_into_and_used_again(paths):
    pool, memory = HandlePool(), bytearray(b"xxxxxx")
    pool.read_into(paths[3], 0, 4, memory)
    assert memory == b"\x03\x01\x02\x03xx"
    pool.read_into(paths[2], 90, 10, memory)
    assert memory == bytes(range(90, 100))
    with pytest.raises(ReadRangeError, match="it was cut"):
        pool.read_into(paths[2], 0, 10**12, memory)
    assert len(memory) == 10


def test_memory_that_is_referred_to_is_not_made_longer(paths):
    pool, memory = HandlePool(), bytearray(4)
    with memoryview(memory) as view:
        assert pool.read_into(paths[2], 90, 10, memory) == bytes(range(90, 100))
        assert bytes(view) == bytes(4)
        assert pool.read_into(paths[3], 0, 4, memory) is memory
        assert bytes(view) == b"\x03\x01\x02\x03"
    assert pool.read_into(paths[2], 90, 10, memory) is memory


def test_several_reads_lie_in_memory_one_after_the_other(paths):
    pool, memory = HandlePool(), bytearray(b"." * 12)
    pool.read_several(
        paths[2], [Read(90, 4, ()), Read(2, 3, ()), Read(91, 2, ())], memory
    )
    assert memory == bytes([90, 91, 92, 93, 2, 3, 4, 91, 92]) + b"..."
    with pytest.raises(ReadRangeError, match=r"ends at byte 100, but bytes 99 to 103"):
        pool.read_several(paths[2], [Read(0, 4, ()), Read(99, 4, ())], memory)


def test_a_short_read_into_memory_is_gone_on_with(paths, monkeypatch):
    preadv, memory = os.preadv, bytearray()
    monkeypatch.setattr(
        os, "preadv", lambda fd, parts, at: preadv(fd, [parts[0][:7]], at)
    )
    HandlePool().read_into(paths[2], 0, 60, memory)
    assert memory == b"\x02" + bytes(range(1, 60))
    monkeypatch.setattr(os, "preadv", lambda *_: 0)
    with pytest.raises(ReadRangeError, match="it was cut"):
        HandlePool().read_into(paths[2], 0, 60, memory)

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(StorageError, match="at byte 3: Input/output error"):
        HandlePool().read_into(paths[2], 3, 1, memory)


def test_threads_share_files_while_others_are_closed(paths):
    # Two may be open and eight are read: handles go while threads read from others.
    pool = HandlePool(max_open=2)

    def read(number: int) -> bool:
        return all(
            pool.read_at(paths[(number + k) % 8], 0, 1)[0] == (number + k) % 8
            for k in range(300)
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))


def test_a_copy_by_pickle_has_the_settings_and_no_files(paths, tmp_path):
    pool = HandlePool(max_open=5)
    pool.read_at(paths[0], 0, 1)
    data = pickle.dumps(pool)
    pool.close()
    copy = pickle.loads(data)
    assert copy.max_open == 5
    assert open_paths(tmp_path) == []
    assert copy.read_at(paths[1], 0, 1) == b"\x01"


def test_a_child_reads_although_a_thread_held_the_locks_at_the_fork(paths):
    pool = HandlePool()
    pool.read_at(paths[0], 0, 1)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._lock, descriptors._pools_lock:
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)

    def read() -> int:
        both = pool.read_at(paths[0], 0, 1) + HandlePool().read_at(paths[5], 0, 1)
        return both != b"\0\x05"

    child = forked(read)
    done.set()
    thread.join()
    assert status_of(child) == 0


def test_a_child_reads_although_a_thread_closed_files_at_the_fork(paths):
    pool = HandlePool()
    for path in paths:
        pool.read_at(path, 0, 1)
    closing, done = threading.Event(), threading.Event()

    class Slow(handles._Handle):
        """Takes its time to be closed, as a file of a network may."""

        def __del__(self) -> None:
            if not done.is_set():
                closing.set()
                done.wait(30)
            super().__del__()

    first = next(iter(pool._handles))
    pool._handles[first] = Slow(first)
    thread = threading.Thread(target=pool.close)
    thread.start()
    closing.wait(30)

    def read() -> int:
        done.set()
        found = [pool.read_at(path, 0, 1) for path in reversed(paths)]
        return found != [bytes([number]) for number in reversed(range(8))]

    child = forked(read)
    done.set()
    thread.join()
    assert status_of(child) == 0


def test_what_becomes_a_pipe_after_a_look_at_it_is_not_waited_for(paths, tmp_path):
    pipe, look_at = str(tmp_path / "pipe"), os.stat
    os.mkfifo(pipe)

    def read() -> int:
        signal.alarm(10)
        os.stat = lambda path, **how: look_at(paths[0] if path == pipe else path, **how)
        with pytest.raises(StorageError, match="not a regular file"):
            HandlePool().read_at(pipe, 0, 1)
        return 0

    assert status_of(forked(read)) == 0


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_is_no_file_and_not_left_closed(paths, closed):
    def read() -> int:
        os.close(closed)
        pool = HandlePool()
        pool.read_at(paths[1], 0, 1)
        stream = Path(f"/proc/self/fd/{closed}")
        return pool._handles[paths[1]].fd <= 2 or not stream.samefile(os.devnull)

    assert status_of(forked(read)) == 0


def test_an_interrupt_at_any_line_leaves_no_file_open_and_is_not_lost(paths):
    pool, before = HandlePool(max_open=1), open_descriptors()
    around = {"__init__", "__del__", "_open", "letting_go", "keep_to_share"}
    around |= {"open_regular", "open_descriptor", "<lambda>"}
    around |= {"_watched", "has", "close"}
    files = {handles.__file__, descriptors.__file__}
    for line in itertools.count():
        lines_left = line

        def interrupt(frame, event, arg):
            nonlocal lines_left
            code = frame.f_code
            # Not where a lock is let go of: there is no signal before it is.
            if code.co_filename in files and code.co_name in around:
                lines_left -= 1
                if lines_left == -1:
                    raise KeyboardInterrupt
            return interrupt

        before_it = sys.gettrace()
        sys.settrace(interrupt)
        try:
            for path in paths[:3]:  # each drops the one before it
                pool.read_at(path, 0, 1)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(before_it)
        pool.close()
        assert open_descriptors() == before, line
    assert lines_left >= 0  # each interrupt before was heard of
    assert line > 30


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_descriptor_is_read_wherever_its_offset_is(paths):
    fd = os.open(paths[1], os.O_RDONLY)
    try:
        os.lseek(fd, 80, os.SEEK_SET)
        assert read_fully(fd, paths[1], 0, 3) == b"\x01\x01\x02"
        assert os.lseek(fd, 0, os.SEEK_CUR) == 80
    finally:
        os.close(fd)


# --- several at once ------------------------------------------------------------------


class Gate:
    """Keeps whoever comes to it until it is open; takes the place of ``os.open``."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.came = threading.Semaphore(0)
        self.is_open = threading.Event()
        self.really_open = os.open

    def __call__(self, path: Any, flags: int, mode: int = 0o777) -> int:
        self.look(path)
        return self.really_open(path, flags, mode)

    def look(self, path: Any, _: object = None) -> bool:
        """Keep who opens one of the paths; as `HandlePool.on_open`."""
        if path in self.paths:
            self.came.release()
            assert self.is_open.wait(30)
        return True


def test_what_is_open_is_read_while_another_thread_opens_a_file(paths, monkeypatch):
    pool, gate = HandlePool(), Gate(paths[1])
    pool.read_at(paths[0], 0, 1)
    monkeypatch.setattr(os, "open", gate)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(pool.read_at, paths[1], 0, 1)
        assert gate.came.acquire(timeout=30)
        try:
            assert threads.submit(pool.read_at, paths[0], 0, 1).result(10) == b"\0"
            pool.close()
            assert threads.submit(pool.read_at, paths[2], 0, 1).result(10) == b"\x02"
            assert not slow.done()
        finally:
            gate.is_open.set()
        assert slow.result() == b"\x01"


def test_as_many_files_are_opened_at_once_as_there_are_threads(paths, monkeypatch):
    pool, gate = HandlePool(), Gate(*paths)
    monkeypatch.setattr(os, "open", gate)
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(pool.read_at, path, 0, 1) for path in paths]
        try:
            for _ in paths:
                assert gate.came.acquire(timeout=10)
        finally:
            gate.is_open.set()
        assert [each.result()[0] for each in found] == list(range(8))


def test_a_file_is_opened_once_for_all_threads_that_want_it(
    paths, tmp_path, monkeypatch
):
    pool, gate = HandlePool(), Gate(paths[3])
    monkeypatch.setattr(os, "open", gate)
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(pool.read_at, paths[3], n, 1) for n in range(8)]
        assert gate.came.acquire(timeout=30)
        assert not gate.came.acquire(timeout=0.2)  # the others have begun by then
        gate.is_open.set()
        assert b"".join(each.result() for each in found) == b"\x03\1\2\3\4\5\6\7"
    assert not gate.came.acquire(blocking=False)
    assert open_paths(tmp_path) == [paths[3]]
    assert pool._openings == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, StorageError])
def test_who_waited_for_an_open_that_failed_opens_the_file(
    paths, tmp_path, monkeypatch, error
):
    pool, gate, first = HandlePool(), Gate(paths[3]), threading.Event()

    def fail_once(path: str, fd: int) -> bool:
        gate.look(path)
        if not first.is_set():
            first.set()
            raise error
        return True

    pool.on_open = fail_once
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(pool.read_at, paths[3], 0, 1) for _ in range(2)]
        assert gate.came.acquire(timeout=30)
        assert not gate.came.acquire(timeout=0.2)  # the other waits
        gate.is_open.set()
        assert {type(each.exception()) for each in found} == {error, type(None)}
    del found  # the error has the file by its traceback
    assert open_paths(tmp_path) == [paths[3]]
    assert pool._openings == {}


def test_what_is_opened_beside_a_close_does_not_stay_open(paths, tmp_path, monkeypatch):
    pool, gate = HandlePool(), Gate(paths[3])
    monkeypatch.setattr(os, "open", gate)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(pool.read_at, paths[3], 0, 1)
        assert gate.came.acquire(timeout=30)
        pool.close()
        gate.is_open.set()
        assert found.result() == b"\x03"
    assert open_paths(tmp_path) == []


def test_a_child_that_is_forked_while_a_thread_opens_has_nothing_of_it(paths, tmp_path):
    pool, gate = HandlePool(), Gate(paths[3])
    pool.read_at(paths[0], 0, 1)
    pool.on_open = gate.look  # the file is open then
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(pool.read_at, paths[3], 0, 1)
        assert gate.came.acquire(timeout=30)

        def read() -> int:
            signal.alarm(20)
            gate.is_open.set()
            assert open_paths(tmp_path) == [paths[0]]
            assert pool.read_at(paths[3], 0, 1) == b"\x03"
            assert open_paths(tmp_path) == [paths[0], paths[3]]
            return 0

        status = status_of(forked(read))
        gate.is_open.set()
        assert found.result() == b"\x03"
    assert status == 0


def test_a_child_keeps_a_file_that_a_thread_has_just_put_into_the_pool(paths):
    pool, gate = HandlePool(), Gate(paths[3])

    class Slow(dict[str, Any]):
        """Takes its time to forget that a file is being opened."""

        def pop(self, path: str, default: object = None) -> Any:
            gate.look(path)
            return super().pop(path, default)

    pool._openings = Slow()
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(pool.read_at, paths[3], 0, 1)
        assert gate.came.acquire(timeout=30)
        child = forked(lambda: pool.read_at(paths[3], 0, 1) != b"\x03")
        gate.is_open.set()
        assert found.result() == b"\x03"
    assert status_of(child) == 0


def test_a_child_of_who_opens_a_file_goes_on_with_it(paths):
    pool = HandlePool()
    parent, children = os.getpid(), list[int]()

    def fork(path: str, fd: int) -> bool:  # as a program may, on a signal
        if os.getpid() == parent and not children:
            children.append(os.fork())
        return True

    pool.on_open = fork
    status = 255
    try:
        assert pool.read_at(paths[3], 0, 1) == b"\x03"
        assert pool.read_at(paths[3], 1, 1) == b"\x01"
        status = 0
    finally:
        if os.getpid() != parent:
            os._exit(status)
    assert status_of(children[0]) == 0


# --- too many open files ------------------------------------------------------------


def test_many_pools_do_with_the_files_that_a_process_may_have_open(paths, tmp_path):
    pools = [HandlePool() for _ in range(20)]
    with limited(40) as limit:
        for _ in range(3):
            for pool in pools:
                for number, path in enumerate(paths):
                    assert pool.read_at(path, 0, 1)[0] == number
                    # The rest is for the program: sockets, videos, its own files.
                    assert len(open_paths(tmp_path)) <= limit // 4 + 1


def test_many_directories_do_with_the_files_that_a_process_may_have_open(tmp_path):
    make_gulp_directory(
        tmp_path / "gulped", num_items=24, num_frames=1, items_per_chunk=1
    ).close()
    directories = [GulpDirectory(tmp_path / "gulped", threads=1) for _ in range(4)]
    with limited(24):
        for directory in directories:
            for id_ in directory.merged_meta_dict:
                assert len(directory[id_][0]) == 1


def test_files_that_a_program_needs_are_let_go_of_by_all_pools(paths, tmp_path):
    pools = [HandlePool() for _ in range(2)]
    for path in paths[:4]:
        pools[0].read_at(path, 0, 1)
    store = LocalStore(tmp_path / "out")
    store.make()
    with limited(0):  # but for those of the first pool
        assert pools[1].read_at(paths[5], 0, 1) == b"\x05"
        assert open_paths(tmp_path) == [paths[5]]
        with store.lock():
            pools[0].read_at(paths[0], 0, 1)
            store.write_atomically("a", b"1")
            assert store.read("a") == b"1"


@pytest.mark.parametrize(
    "look",
    [
        lambda folder: len(LocalStore(folder).names()) >= 4,
        lambda folder: len(GulpDirectory(folder, indexed=False)) == 4,
        lambda folder: len(map_states(str(folder), [0, 1])) == 2,
        lambda folder: read_map(str(folder), 1)[1][0] == 1,
        lambda folder: load_index(str(folder))[0] is not None,
        lambda folder: len(GulpDirectory(folder, indexed=True)) == 4,
    ],
    ids=["names", "open", "states", "map", "mapping", "index"],
)
def test_files_that_opening_a_directory_needs_are_let_go_of(
    paths, tmp_path, look, caplog
):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "gulped"
    make_gulp_directory(folder, num_items=4, num_frames=1).close()
    build_index(folder)
    assert look(folder)  # what is imported for it needs files as well
    pool = HandlePool()
    for path in paths:
        pool.read_at(path, 0, 1)
    with limited(0):  # but for those of the pool
        assert look(folder)
    assert not caplog.records


def test_where_the_program_has_all_files_open_no_folder_can_be_listed(tmp_path):
    with limited(0), pytest.raises(StorageError, match="Raise the limit") as caught:
        LocalStore(tmp_path).names()
    assert caught.value.errno == errno.EMFILE


def test_where_the_program_has_all_files_open_the_limit_is_named(paths):
    pool = HandlePool()
    with limited(0), pytest.raises(StorageError, match="Raise the limit") as caught:
        pool.read_at(paths[0], 0, 1)
    assert caught.value.errno == errno.EMFILE


def test_who_can_open_nothing_waits_for_those_who_are_opening(paths, monkeypatch):
    # As many threads as they are may be opening at once, and have all that there are.
    pool, gate, refusals = HandlePool(), Gate(*paths[:2]), threading.Semaphore(0)

    def counted(path: Any, flags: int, mode: int = 0o777) -> int:
        try:
            return gate.really_open(path, flags, mode)
        except OSError:
            refusals.release()
            raise

    pool.on_open = gate.look
    with limited(2), ThreadPoolExecutor(3) as threads:
        found = [threads.submit(pool.read_at, path, 0, 1) for path in paths[:2]]
        for _ in found:
            assert gate.came.acquire(timeout=30)
        monkeypatch.setattr(os, "open", counted)
        found.append(threads.submit(pool.read_at, paths[2], 0, 1))
        for _ in range(4):  # as often as is tried
            assert refusals.acquire(timeout=30)
        gate.is_open.set()
        assert [each.result()[0] for each in found] == [0, 1, 2]


@pytest.mark.parametrize(
    ("limit", "number"), [(256, 64), (1024, 128), (2048, 256), (10**6, 512)]
)
def test_more_files_stay_open_where_a_process_may_have_more(limit, number, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert HandlePool().max_open == number
    assert HandlePool(7).max_open == 7


def test_a_file_that_a_thread_reads_from_is_not_closed_under_it(paths, monkeypatch):
    reading, go_on = threading.Event(), threading.Event()
    pread = os.pread

    def slow(fd, *rest):
        if threading.current_thread() is thread:
            reading.set()
            go_on.wait(30)
        return pread(fd, *rest)

    busy, other, found = HandlePool(), HandlePool(), []
    thread = threading.Thread(target=lambda: found.append(busy.read_at(paths[3], 0, 2)))
    monkeypatch.setattr(os, "pread", slow)
    with limited(2):
        thread.start()
        reading.wait(30)
        for number, path in enumerate(paths):  # each would take its number
            assert other.read_at(path, 0, 1)[0] == number
        go_on.set()
        thread.join()
    assert found == [b"\x03\x01"]


def test_threads_with_pools_of_their_own_wait_for_no_other(paths):
    # Each of them lets go of the files of all others again and again.
    def read(number: int) -> bool:
        pool = HandlePool()
        return all(
            pool.read_at(paths[(number + k) % 8], 0, 1)[0] == (number + k) % 8
            for k in range(300)
        )

    with limited(12), ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))


def test_where_there_is_no_limit_nothing_is_let_go_of(paths, tmp_path, monkeypatch):
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    pool = HandlePool()
    for path in paths:
        pool.read_at(path, 0, 1)
    assert open_paths(tmp_path) == paths
