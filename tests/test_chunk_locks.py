"""One at a time writes to a chunk; a second one is told when it opens it."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import (
    AdapterContractError,
    ChunkMismatchError,
    DuplicateIdError,
    IngestError,
    LockedError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from gulpio2.ingest.resuming import refuse_lost_chunks
from gulpio2.merge import merge_directories
from gulpio2.merge.parts import chunks_of_ids, length_of
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.storage.beside_writers import of_one_state
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.links import link_file
from gulpio2.storage.local import LocalStore, open_store
from gulpio2.storage.local_writer import LocalWriter
from gulpio2.storage.locks import WriterLock
from gulpio2.storage.paths import is_there
from gulpio2.storage.removable import refuse_other_data
from gulpio2.storage.removals_file import read_removals, write_removals
from gulpio2.testing import FrameAdapter, make_gulp_directory
from gulpio2.unfinished import open_settled
from tests.chunks import (
    JPEGS,
    StopError,
    content,
    label,
    labels,
    new_chunk,
    open_files,
    problems,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.usefixtures("_soon_refused"),
    # Python 3.12 and later warn of a fork beside threads, of libraries too; the
    # children here do what is safe.
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]

REFUSED = r"data_0\.gulp(\..*\.partial)? is open for writing already, .* open again"

# Appends an item, says so, and goes on when it is told to.
HOLDER = """
import os, sys, time
import numpy as np
from gulpio2 import GulpChunk
folder, id_, with_child, flag = sys.argv[1:]
chunk = GulpChunk(f"{folder}/data_0.gulp", f"{folder}/meta_0.gmeta")
with chunk.open(flag):
    chunk.append(id_, {}, [np.zeros((4, 6, 3), np.uint8)])
    child = os.fork() if with_child == "True" else None
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def hold(
    tmp_path: Path, python: str, repository: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Give what starts a process that appends an item, and has not ended with it."""
    processes: list[subprocess.Popen[str]] = []
    children: list[int] = []

    def start(
        id_: str = "held", *, with_child: bool = False, flag: str = "ab"
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [python, "-c", HOLDER, str(tmp_path), id_, str(with_child), flag],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=repository,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, "it did not come so far"
        if with_child:
            children.append(int(said))
        return process

    yield start
    for child in children:  # which has the pipes of its parent
        os.kill(child, signal.SIGKILL)
    for process in processes:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> None:
    """Have a process commit, and end."""
    process.communicate("\n", timeout=60)
    assert process.returncode == 0


def assert_refused(folder: Path, flag: str = "ab") -> None:
    """See that a chunk cannot be opened, and that trying leaves all as it is."""
    chunk, before = new_chunk(folder), content(folder)
    ids, files = list(chunk.meta_dict), open_files(folder)
    with pytest.raises(LockedError, match=REFUSED), chunk.open(flag):
        pytest.fail("two of them write")
    assert content(folder) == before
    assert (list(chunk.meta_dict), chunk.fp) == (ids, None)
    assert open_files(folder) == files


# --- a chunk that is there ----------------------------------------------------------


def test_a_second_process_is_refused_when_it_opens_and_not_later(tmp_path, hold):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    holder = hold()
    assert_refused(tmp_path)
    assert new_chunk(tmp_path).read_jpegs("a") == JPEGS[:2]  # reading needs no lock
    end(holder)
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "held", "b"]
    assert problems(tmp_path) == []


def test_a_second_object_of_one_process_is_refused(tmp_path):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    directory = GulpDirectory(tmp_path)
    (chunk,) = directory.chunks()
    with new_chunk(tmp_path).open("ab"):
        assert_refused(tmp_path)
        with pytest.raises(LockedError, match=REFUSED), chunk.open("ab"):
            pytest.fail("two of them append")
        with chunk.open("rb"):
            assert chunk.read_jpegs("a") == JPEGS[:2]
    with chunk.open("ab"):
        chunk.append("b", {}, JPEGS[2:3])
    assert problems(tmp_path) == []


@pytest.mark.parametrize("with_child", [False, True], ids=["alone", "with a child"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_killed_process_is_gone(tmp_path, hold, how, with_child):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    holder = hold(with_child=with_child)
    assert_refused(tmp_path)
    holder.send_signal(how)
    holder.wait()
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    stored = new_chunk(tmp_path, verify=True)
    assert list(stored.meta_dict) == ["a", "b"]
    assert stored.read_jpegs("b") == JPEGS[2:3]
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]
    assert set(problems(tmp_path)) <= {"unreferenced-bytes"}  # what "held" had written


def test_a_child_that_was_forked_in_a_block_does_not_keep_the_lock(tmp_path, hold):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    end_reader, end_writer = os.pipe()
    chunk = new_chunk(tmp_path)
    with chunk.open("ab"):
        child = os.fork()
        if child == 0:
            os.close(end_writer)
            os.read(end_reader, 1)  # until the parent lets go of the pipe
            os._exit(0)
        assert_refused(tmp_path)  # the child has closed its copy, and no more
        chunk.append("b", {}, JPEGS[2:3])
    try:
        end(hold())
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child is alive"
    finally:
        os.close(end_reader)
        os.close(end_writer)
        os.waitpid(child, 0)
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b", "held"]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt])
def test_the_lock_is_let_go_by_an_error(tmp_path, hold, error):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    with pytest.raises(error), new_chunk(tmp_path).open("ab"):
        raise error
    end(hold())
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "held"]


def append_late(folder: Path) -> None:
    """Append an item, and edit one."""
    chunk = new_chunk(folder)
    label(chunk.meta_dict, "a", "edited")
    with chunk.open("ab"):
        chunk.append("late", {"label": "late"}, JPEGS[4:6])


def wait_for_waiting(folder: Path) -> None:
    """Return once a second one waits for the lock of the data file."""
    deadline = time.monotonic() + 10
    # Of the first one there are two: to write by, and of the lock.
    while len([name for name in open_files(folder) if "data_0.gulp" in name]) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_who_is_let_in_within_a_second_takes_in_what_was_appended(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 60.0)
    write(tmp_path, ("a", {"label": "old"}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        with chunk.open("ab"):
            late = threads.submit(append_late, tmp_path)
            wait_for_waiting(tmp_path)
            chunk.append("first", {"label": 1}, JPEGS[2:4])
        late.result()
    assert labels(tmp_path) == {"a": "edited", "first": 1, "late": "late"}
    assert problems(tmp_path) == []


@pytest.fixture
def without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete and compact as where no locks are known, or in another's folder."""
    monkeypatch.setattr("gulpio2.removal.refuse_writers", lambda *_: None)
    monkeypatch.setattr("gulpio2.removal.without_writers", lambda *_: nullcontext())


@pytest.mark.usefixtures("without_asking")
def test_who_waits_while_the_data_file_is_replaced_appends_to_the_new_one(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 60.0)
    items = [(id_, {"label": "old"}, JPEGS[:2]) for id_ in ("a", "gone")]
    write(tmp_path, *items)
    chunk = new_chunk(tmp_path)

    def append_and_compact() -> Any:
        with chunk.open("ab"):
            late = threads.submit(append_late, tmp_path)
            wait_for_waiting(tmp_path)
            delete_items(tmp_path, ["gone"])
            compact_directory(tmp_path)
            waiting.append(late)
            chunk.append("first", {}, JPEGS[2:4])

    waiting: list[Any] = []
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(ChunkMismatchError, match="changed by another program"):
            append_and_compact()
        waiting[0].result()
    assert labels(tmp_path) == {"a": "edited", "late": "late"}
    assert problems(tmp_path) == []


def test_nothing_is_deleted_or_erased_beside_an_append(tmp_path, hold):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "b", "gone")))
    delete_items(tmp_path, ["gone"])
    holder, before = hold(), content(tmp_path)
    for change in (partial(delete_items, ids=["b"]), compact_directory):
        with pytest.raises(LockedError, match=r"data_0\.gulp is open .* and try again"):
            change(tmp_path)
    assert delete_items(tmp_path, ["b"], dry_run=True)
    assert content(tmp_path) == before
    end(holder)
    delete_items(tmp_path, ["b"])
    compact_directory(tmp_path)
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "held"]
    assert problems(tmp_path) == []


def test_the_frames_of_an_append_are_not_told_as_lost_by_a_dry_run(tmp_path, hold):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "gone")))
    delete_items(tmp_path, ["gone"])
    holder = hold()
    with pytest.raises(LockedError, match=r"data_0\.gulp is open .* and try again"):
        compact_directory(tmp_path, dry_run=True)  # as the command does at first
    end(holder)
    assert [each.items for each in compact_directory(tmp_path, dry_run=True)] == [1]


def test_nothing_is_appended_while_a_compaction_looks_for_bytes_of_nobody(
    tmp_path, monkeypatch
):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "gone")))
    delete_items(tmp_path, ["gone"])

    def append_and_look(*args: Any) -> None:
        chunk = new_chunk(tmp_path)
        with chunk.open("ab"):
            chunk.append("b", {}, JPEGS[2:3])
            refuse_other_data(*args)

    def look_beside_an_append(*args: Any) -> None:
        with pytest.raises(LockedError):
            append_and_look(*args)
        refuse_other_data(*args)

    monkeypatch.setattr("gulpio2.removal.refuse_other_data", look_beside_an_append)
    assert [each.items for each in compact_directory(tmp_path)] == [1]
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b"]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("change", [delete_items, compact_directory])
@pytest.mark.parametrize("is_open", [False, True])
def test_what_is_appended_while_items_are_deleted_is_not_lost(
    tmp_path, monkeypatch, request, change, is_open
):
    if is_open:
        request.getfixturevalue("without_asking")
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "b", "gone")))
    delete_items(tmp_path, ["gone"])
    chunk, sync = new_chunk(tmp_path), LocalWriter.sync
    chunk_file = "meta_0.gmeta." if change is delete_items else "data_0.gulp."

    def append(writer: LocalWriter) -> None:
        if writer.path.name.startswith(chunk_file):  # the new one is about to come
            monkeypatch.setattr(LocalWriter, "sync", sync)
            if is_open:
                chunk.append("late", {}, JPEGS[3:5])
                chunk.flush()
            else:
                assert_refused_beside(chunk)
        sync(writer)

    def run() -> None:
        monkeypatch.setattr(LocalWriter, "sync", append)
        if change is delete_items:
            delete_items(tmp_path, ["b"])
        else:
            compact_directory(tmp_path)

    with chunk.open("ab") if is_open else nullcontext():
        if is_open:
            with pytest.raises(LockedError, match="meanwhile by another process"):
                run()
        else:
            run()
    ids = (
        ["a", "b", "late"] if is_open else ["a"] + ["b"] * (change is not delete_items)
    )
    assert list(new_chunk(tmp_path).meta_dict) == ids
    assert problems(tmp_path) == []


def test_frames_that_are_appended_to_an_item_while_it_is_deleted_go_with_it(
    tmp_path, monkeypatch
):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "gone")))

    def note(*arguments: Any) -> None:
        monkeypatch.undo()
        write_removals(*arguments)
        write(tmp_path, ("gone", {}, JPEGS[2:4]), ("b", {}, JPEGS[4:5]), flag="ab")

    monkeypatch.setattr("gulpio2.removal.write_removals", note)
    delete_items(tmp_path, ["gone"])
    assert problems(tmp_path) == []
    compact_directory(tmp_path)
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b"]
    assert problems(tmp_path) == []


def test_a_chunk_that_is_written_anew_while_its_item_is_deleted_has_the_bytes_noted(
    tmp_path, monkeypatch
):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("gone", "a")))

    def note(*arguments: Any) -> None:
        monkeypatch.undo()
        # Where the deletion has looked already, and has nothing noted yet.
        write(tmp_path, ("b", {}, JPEGS[:3]), ("gone", {}, JPEGS[3:4]), flag="wb")
        write_removals(*arguments)

    monkeypatch.setattr("gulpio2.removal.write_removals", note)
    delete_items(tmp_path, ["gone"])
    assert list(new_chunk(tmp_path).meta_dict) == ["b"]
    assert problems(tmp_path) == []
    assert [done.items for done in compact_directory(tmp_path)] == [1]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("with_other", [False, True])
def test_a_chunk_that_is_written_anew_without_an_item_that_is_deleted_has_no_note_of_it(
    tmp_path, monkeypatch, with_other
):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("gone", "a", "other")))
    other: tuple[str, dict[str, Any], list[Any]] = ("other", {}, JPEGS[4:5])

    def note(*arguments: Any) -> None:
        monkeypatch.undo()
        write(tmp_path, ("b", {}, JPEGS[2:4]), *[other] * with_other, flag="wb")
        write_removals(*arguments)

    monkeypatch.setattr("gulpio2.removal.write_removals", note)
    delete_items(tmp_path, ["gone", "other"])
    assert list(new_chunk(tmp_path).meta_dict) == ["b"]
    assert problems(tmp_path) == []
    assert [done.items for done in compact_directory(tmp_path)] == [1] * with_other
    assert problems(tmp_path) == []


def assert_refused_beside(chunk: GulpChunk) -> None:
    with pytest.raises(LockedError, match=REFUSED), chunk.open("ab"):
        pytest.fail("it appends to what is about to be replaced")


@pytest.mark.parametrize("is_new", [True, False])
def test_unfinished_files_of_a_writer_at_work_are_no_leftovers(tmp_path, is_new):
    write(tmp_path, ("a", {}, JPEGS[:2]), ("gone", {}, JPEGS[:1]))
    other = GulpChunk(tmp_path / "data_1.gulp", tmp_path / "meta_1.gmeta")
    if not is_new:
        with other.open("wb"):
            other.append("old", {}, JPEGS[2:3])
    left = tmp_path / "data_0.gulp.0123456789ab.partial"
    left.touch()
    with other.open("wb"):
        other.append("b", {}, JPEGS[3:5])
        delete_items(tmp_path, ["gone"])
        compact_directory(tmp_path)
    assert not left.exists()
    with GulpDirectory(tmp_path) as directory:
        assert list(directory.merged_meta_dict) == ["a", "b"]
    assert problems(tmp_path) == []


MANY = """
import sys, time
import numpy as np
from gulpio2 import GulpChunk
from gulpio2.errors import LockedError
folder, name = sys.argv[1:]
for number in range(8):
    chunk = GulpChunk(f"{folder}/data_0.gulp", f"{folder}/meta_0.gmeta")
    while True:
        try:
            with chunk.open("ab"):
                chunk.append(f"{name}{number}", {}, [np.zeros((4, 6, 3), np.uint8)])
            break
        except LockedError:
            time.sleep(0.001)
"""


def test_what_many_processes_append_is_all_there(tmp_path, python, repository):
    processes = [
        subprocess.Popen([python, "-c", MANY, str(tmp_path), name], cwd=repository)
        for name in "xyz"
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    expected = {f"{name}{number}" for name in "xyz" for number in range(8)}
    assert set(new_chunk(tmp_path).meta_dict) == expected
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]
    assert problems(tmp_path) == []


def test_of_two_threads_one_is_refused_and_takes_nothing_from_the_other(tmp_path):
    is_begun, may_go_on, is_refused = (threading.Event() for _ in range(3))

    class Slow(GulpChunk):
        """Gives another thread time to open it, too."""

        def _take_in(self, undo: Any) -> Any:
            is_begun.set()
            may_go_on.wait(30)
            return super()._take_in(undo)

    write(tmp_path, ("a", {}, JPEGS[:2]))
    chunk = Slow(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    write(tmp_path, ("b", {}, JPEGS[2:4]), flag="ab")

    def append() -> None:
        with chunk.open("ab"):
            chunk.append("c", {}, JPEGS[4:6])
            is_refused.wait(30)
            chunk.append("d", {}, JPEGS[6:8])

    def open_too() -> None:
        try:
            with chunk.open("wb"):
                pytest.fail("opened twice")
        finally:
            is_refused.set()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(append)
        assert is_begun.wait(30)
        other = pool.submit(open_too)
        is_refused.wait(0.2)  # at once, or while it waits for the other
        may_go_on.set()
        with pytest.raises(StorageError, match="is open already"):
            other.result(30)
        one.result(30)
    assert list(new_chunk(tmp_path).meta_dict) == [*"abcd"]
    assert list(chunk.meta_dict) == [*"abcd"]
    assert problems(tmp_path) == []


@pytest.mark.parametrize("flag", ["ab", "wb"])
def test_an_interrupt_while_a_chunk_is_opened_does_not_leave_it_open(tmp_path, flag):
    chunk = write(tmp_path, ("a", {}, JPEGS[:2]))
    steps, line = 0, 0

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps, line
        if frame.f_code.co_name != "_opened_for_writing":
            return None
        if "session" in frame.f_locals:  # it is open
            return interrupt
        # Of an error that is raised here in a comprehension, where a line is begun
        # again, the `with` around it is not told by Python 3.12 and later.
        steps -= event == "line" and frame.f_lineno != line
        line = frame.f_lineno
        if steps == 0:
            raise KeyboardInterrupt
        return interrupt

    for last in range(1, 100):
        steps, before = last, sys.gettrace()
        sys.settrace(interrupt)
        try:
            with chunk.open(flag):
                sys.settrace(before)
        except KeyboardInterrupt:
            sys.settrace(before)
        else:
            break
        with chunk.open("ab"):
            pass
    assert last > 10


def test_a_chunk_whose_file_fails_to_close_can_be_opened_again(tmp_path):
    chunk = write(tmp_path, ("a", {}, JPEGS[:2]))
    with pytest.raises(StorageError), chunk.open("ab"):
        os.close(chunk.fp._descriptor())  # type: ignore[union-attr]  # a `LocalWriter`
    assert chunk.read_jpegs("a") == JPEGS[:2]
    with chunk.open("ab"):
        chunk.append("b", {}, JPEGS[2:4])
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b"]


# --- a chunk that is new ------------------------------------------------------------


def test_a_new_chunk_is_begun_by_one_alone(tmp_path, hold):
    holder = hold()
    before = sorted(content(tmp_path))
    message = r"data_0\.gulp\..*\.partial is open for writing already"
    with pytest.raises(LockedError, match=message), new_chunk(tmp_path).open("ab"):
        pytest.fail("two of them begin")
    assert sorted(content(tmp_path)) == before  # which is the first one's
    with new_chunk(tmp_path, 1).open("ab"):  # another chunk
        pass
    end(holder)
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    assert list(new_chunk(tmp_path).meta_dict) == ["held", "b"]
    assert problems(tmp_path) == []


def test_what_a_killed_process_has_begun_is_no_hindrance(tmp_path, hold):
    holder = hold()
    holder.kill()
    holder.wait()
    assert len(content(tmp_path)) == 1  # its partial file
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    assert list(new_chunk(tmp_path).meta_dict) == ["b"]


def test_a_chunk_that_another_has_just_begun_is_not_begun_again(tmp_path):
    # In the instant after the data file was looked for, and the map was read.
    class Slow(GulpChunk):
        """Gives others time to begin, too."""

        def _take_in(self, undo: Any) -> Any:
            found = super()._take_in(undo)
            write(tmp_path, ("first", {}, JPEGS[:2]), flag="ab")
            return found

    chunk = Slow(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with (
        pytest.raises(LockedError, match=r"has just begun .*data_0\.gulp\. Open it"),
        chunk.open("ab"),
    ):
        pytest.fail("opened")
    assert list(chunk.meta_dict) == []
    assert open_files(tmp_path) == []
    with new_chunk(tmp_path).open("ab"):
        pass
    assert list(new_chunk(tmp_path).meta_dict) == ["first"]


@pytest.mark.parametrize("is_fuse", [False, True])
def test_a_new_chunk_stays_locked_after_a_flush(tmp_path, monkeypatch, is_fuse):
    if is_fuse:  # where a second name has a lock of its own, as a copy has
        monkeypatch.setattr(os, "link", shutil.copyfile)
    chunk = new_chunk(tmp_path)
    with chunk.open("ab"):
        chunk.append("a", {}, JPEGS[:2])
        chunk.flush()
        assert_refused(tmp_path)
        chunk.append("b", {}, JPEGS[2:3])
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b"]


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_new_number_that_another_has_taken_is_refused(tmp_path, is_sent):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    (first,), (second,) = (GulpDirectory(tmp_path).new_chunks(1) for _ in range(2))
    with first.open("wb"):
        first.append("first", {}, JPEGS[:2])
    before = content(tmp_path)
    second = pickle.loads(pickle.dumps(second)) if is_sent else second
    with (
        pytest.raises(StorageExistsError, match=r"data_1\.gulp is there, and was not"),
        second.open("wb"),
    ):
        pytest.fail("opened")
    assert content(tmp_path) == before
    assert list(second.meta_dict) == []
    assert open_files(tmp_path) == []
    (third,) = GulpDirectory(tmp_path).new_chunks(1)
    with third.open("wb"):
        third.append("second", {}, JPEGS[2:3])
    with second.open("ab"):  # takes in what is there, as of any chunk
        second.append("third", {}, JPEGS[3:4])
    assert list(GulpDirectory(tmp_path).chunk_lookup.items()) == [
        ("a", 0),
        ("first", 1),
        ("third", 1),
        ("second", 2),
    ]
    with new_chunk(tmp_path, 1).open("wb"):  # replaces what is there, as it is to
        pass
    assert problems(tmp_path) == []


def test_a_new_number_is_written_to_as_often_as_its_program_likes(tmp_path):
    (chunk,) = GulpDirectory(tmp_path).new_chunks(1)
    with pytest.raises(KeyError), chunk.open("wb"):
        raise KeyError
    for id_ in ("a", "b"):
        with chunk.open("wb"):
            chunk.append(id_, {}, JPEGS[:2])
            chunk.flush()
            chunk.append(f"{id_}2", {}, JPEGS[:2])
    assert list(GulpDirectory(tmp_path).chunk_lookup) == ["b", "b2"]
    assert problems(tmp_path) == []


def test_a_number_whose_chunk_was_not_stored_is_still_a_new_one(tmp_path):
    chunk, other = (next(GulpDirectory(tmp_path).new_chunks(1)) for _ in range(2))
    with pytest.raises(AdapterContractError), chunk.open("wb"):
        chunk.meta_dict["a"] = {1, 2}  # which the end of the block cannot store
    with other.open("wb"):
        other.append("b", {}, JPEGS[:2])
    with pytest.raises(StorageExistsError), chunk.open("wb"):
        pytest.fail("opened")
    assert list(GulpDirectory(tmp_path).chunk_lookup) == ["b"]


@pytest.mark.parametrize("how", ["new chunk", "ingest", "merge"])
def test_a_chunk_that_is_stored_in_the_last_instant_is_not_written_over(
    tmp_path, monkeypatch, how
):
    folder, part = tmp_path / "all", tmp_path / "part"
    make_gulp_directory(part, num_items=1)
    folder.mkdir()
    real, other = LocalStore._permit, new_chunk(folder)

    def permit(store: LocalStore, source: str, target: str, *args: Any) -> None:
        if target == "data_0.gulp":  # where nothing had this name when it was asked
            monkeypatch.undo()
            beside = tmp_path / "beside"
            beside.mkdir()
            write(beside, ("other", {}, JPEGS[:2]))
            for name in ("data_0.gulp", "meta_0.gmeta"):
                (beside / name).rename(folder / name)
        real(store, source, target, *args)

    monkeypatch.setattr(LocalStore, "_permit", permit)
    if how == "merge":
        assert merge_directories([part], folder).chunks == [1]
    elif how == "ingest":
        with pytest.raises(
            IngestError, match=r"data_0\.gulp is there, and is not what"
        ):
            GulpIngestor(FrameAdapter(num_items=2), folder, 2, 1).run()
    else:
        with (
            pytest.raises(
                StorageExistsError, match=r"data_0\.gulp is there, .* was open"
            ),
            other.open("wb"),
        ):
            other.append("own", {}, JPEGS[2:4])
    assert GulpDirectory(folder).chunk_lookup["other"] == 0
    assert list(new_chunk(folder).meta_dict) == ["other"]
    GulpIngestor(FrameAdapter(num_items=1), folder, 2, 1, on_duplicate="skip").run()
    assert problems(folder) == []


def write_anew_beside(
    folder: Path,
    id_: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    target: str,
    is_shared: bool,
    refused: Callable[[], object],
    waiting: Callable[[], object],
) -> None:
    """Write chunk 0 anew; just before a file gets its name, others act.

    There is no map then. Who does not wait long is refused, and who does waits.
    """
    for number, each in enumerate([id_, "other"]):
        chunk = new_chunk(folder, number)
        with chunk.open("wb"):
            chunk.append(each, {}, JPEGS[:2])
    if is_shared:
        link_file(folder / "data_0.gulp", folder.with_name("shared"))
    build_index(folder)
    real = LocalStore.rename
    acts: list[Future[Any]] = []

    def rename(store: LocalStore, source: str, name: str, **options: Any) -> None:
        if name == target:
            monkeypatch.undo()
            assert "meta_0.gmeta" not in store.names()
            monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 0.1)
            with pytest.raises(LockedError, match=r"data_0\.gulp is open .* try again"):
                refused()
            # More than it needs, on a machine that is slow.
            monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 60.0)
            acts.append(pool.submit(waiting))
            time.sleep(0.1)  # it waits meanwhile
        real(store, source, name, **options)

    chunk = new_chunk(folder)
    with ThreadPoolExecutor() as pool:
        with chunk.open("wb"):
            chunk.append(id_, {}, JPEGS[2:4])
            monkeypatch.setattr(LocalStore, "rename", rename)
        acts[0].result()


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("target", ["data_0.gulp", "meta_0.gmeta"])
@pytest.mark.parametrize(
    "copy", [repair_directory, lambda a, b: merge_directories([a], b)]
)
def test_a_chunk_that_has_no_map_while_it_is_written_anew_is_not_left_out_of_a_copy(
    tmp_path, monkeypatch, target, copy, is_shared
):
    folder = tmp_path / "all"
    folder.mkdir()
    write_anew_beside(
        folder,
        "item",
        monkeypatch,
        target=target,
        is_shared=is_shared,
        refused=lambda: copy(folder, tmp_path / "refused"),
        waiting=lambda: copy(folder, tmp_path / "copy"),
    )
    with GulpDirectory(tmp_path / "copy") as directory:
        assert list(directory.chunk_lookup) == ["item", "other"]
        assert directory.read_jpegs("item") == JPEGS[2:4]
    assert problems(tmp_path / "copy") == []


def skip_what_is_there(folder: Path) -> None:
    GulpIngestor(FrameAdapter(num_items=2), folder, 2, 1, on_duplicate="skip").run()


def merge_the_same(folder: Path) -> None:
    part = folder.with_name("part")
    if not part.exists():
        GulpIngestor(FrameAdapter(num_items=1), part, 2, 1).run()
    with suppress(DuplicateIdError):
        merge_directories([part], folder)


@pytest.mark.parametrize(
    ("act", "left"),
    [
        (lambda folder: delete_items(folder, ["item0"]), ["other"]),
        (build_index, ["item0", "other"]),
        (skip_what_is_there, ["item0", "other", "item1"]),
        (merge_the_same, ["item0", "other"]),
    ],
    ids=["delete", "index", "ingest", "merge"],
)
@pytest.mark.parametrize("target", ["data_0.gulp", "meta_0.gmeta"])
def test_a_chunk_that_has_no_map_while_it_is_written_anew_is_waited_for(
    tmp_path, monkeypatch, act, left, target
):
    folder = tmp_path / "all"
    folder.mkdir()
    write_anew_beside(
        folder,
        "item0",
        monkeypatch,
        target=target,
        is_shared=target
        == "data_0.gulp",  # until then it is no other's lock that tells
        refused=lambda: act(folder),
        waiting=lambda: act(folder),
    )
    with GulpDirectory(folder) as directory:
        assert list(directory.chunk_lookup) == left
        if "item0" in left:
            assert directory.read_jpegs("item0") == JPEGS[2:4]
    assert problems(folder) == []


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_chunk_that_loses_its_map_after_it_was_listed_is_looked_for_again(
    tmp_path, monkeypatch, is_indexed, caplog
):
    for number, id_ in enumerate(["first", "other"]):
        with (chunk := new_chunk(tmp_path, number)).open("wb"):
            chunk.append(id_, {}, JPEGS[:2])
    if is_indexed:
        build_index(tmp_path)
    map_, away = tmp_path / "meta_0.gmeta", tmp_path / "away"
    real, times = LocalStore.names, 1

    def names(store: LocalStore) -> list[str]:
        nonlocal times
        if away.exists():
            away.rename(map_)
        listed = real(store)
        if times > 0:
            map_.rename(away)
            times -= 1
        return listed

    monkeypatch.setattr(LocalStore, "names", names)
    with open_settled(tmp_path) as directory:
        assert list(directory.chunk_lookup) == ["first", "other"]
    times = 1
    with GulpDirectory(tmp_path, indexed=is_indexed) as directory:
        assert list(directory.chunk_lookup) == ["first", "other"]
    assert not caplog.messages
    times = 1000
    with pytest.raises(LockedError, match=r"anew again and again .* try again"):
        open_settled(tmp_path)
    caplog.clear()
    with GulpDirectory(tmp_path, indexed=is_indexed) as directory:
        assert list(directory.chunk_lookup) == ["other"]
    assert "data_0.gulp has no map and is left out" in caplog.text


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_reader_waits_for_the_map_of_a_chunk_that_is_written_anew(
    tmp_path, is_indexed, caplog, monkeypatch
):
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 60.0)
    for number, id_ in enumerate(["first", "other"]):
        with (chunk := new_chunk(tmp_path, number)).open("wb"):
            chunk.append(id_, {}, JPEGS[:2])
    if is_indexed:
        build_index(tmp_path)
    with GulpDirectory(tmp_path, indexed=is_indexed) as directory:
        pickled = pickle.dumps(directory)
    map_, away = tmp_path / "meta_0.gmeta", tmp_path / "away"
    map_.rename(away)
    with ThreadPoolExecutor(2) as pool:
        with WriterLock() as lock:
            lock.take(tmp_path / "data_0.gulp")
            opened = pool.submit(GulpDirectory, tmp_path, indexed=is_indexed)
            restored = pool.submit(pickle.loads, pickled)
            time.sleep(0.1)
            assert not opened.done()
            assert restored.done() != is_indexed  # else it has its maps with it
            away.rename(map_)
        for directory in (opened.result(), restored.result()):
            with directory:
                assert list(directory.chunk_lookup) == ["first", "other"]
                assert directory.read_jpegs("first") == JPEGS[:2]
    assert not caplog.messages
    map_.rename(away)
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 0.1)
    with WriterLock() as lock:  # for longer than anybody waits
        lock.take(tmp_path / "data_0.gulp")
        with GulpDirectory(tmp_path, indexed=is_indexed) as directory:
            assert list(directory.chunk_lookup) == ["other"]
    assert "data_0.gulp has no map and is left out" in caplog.text


@pytest.mark.parametrize(
    "opened",
    [
        lambda folder: [*GulpDirectory(folder, indexed=False).chunk_lookup],
        lambda folder: [*GulpDirectory(folder, indexed=True).chunk_lookup],
        lambda folder: [build_index(folder) is None],
        lambda folder: [
            merge_directories([folder], folder.with_name("copy")).items,
        ],
    ],
    ids=["maps", "index", "building", "merge"],
)
def test_the_map_of_a_chunk_behind_links_is_waited_for_too(
    tmp_path, opened, monkeypatch
):
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 60.0)
    folder, far = tmp_path / "all", tmp_path / "far"
    folder.mkdir()
    far.mkdir()
    with new_chunk(folder).open("wb"):
        pass
    with (chunk := new_chunk(folder)).open("wb"):
        chunk.append("first", {}, JPEGS[:2])
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (folder / name).rename(far / name)
        (folder / name).symlink_to(far / name)
    expected = opened(folder)
    shutil.rmtree(folder.with_name("copy"), ignore_errors=True)
    (folder / "index.arrow").unlink(missing_ok=True)
    map_, away = far / "meta_0.gmeta", far / "away"
    map_.rename(away)
    with ThreadPoolExecutor(1) as pool, WriterLock() as lock:
        lock.take(far / "data_0.gulp")
        late = pool.submit(opened, folder)
        time.sleep(0.1)
        assert not late.done()
        away.rename(map_)
    assert late.result() == expected


@pytest.mark.parametrize("is_held", [False, True])
def test_a_map_that_goes_after_it_was_listed_is_waited_for_by_a_deletion(
    tmp_path, monkeypatch, is_held
):
    with (chunk := new_chunk(tmp_path)).open("wb"):
        chunk.append("item", {}, JPEGS[:2])
    map_, away = tmp_path / "meta_0.gmeta", tmp_path / "away"
    real = LocalStore.read

    def read(store: LocalStore, name: str) -> bytes:
        if name == map_.name and not away.exists():
            map_.rename(away)
            if is_held:
                lock.take(tmp_path / "data_0.gulp")
            with pytest.raises(StorageNotFoundError):
                real(store, name)
            if not is_held:  # it is there again by the time that is told
                shutil.copy(away, map_)
            raise StorageNotFoundError(errno.ENOENT, "gone")
        return real(store, name)

    monkeypatch.setattr(LocalStore, "read", read)
    refused = pytest.raises(LockedError, match=r"data_0\.gulp is open .* try again")
    with WriterLock() as lock, refused if is_held else nullcontext():
        delete_items(tmp_path, ["item"])
    assert is_held or len(GulpDirectory(tmp_path)) == 0


def test_a_merge_knows_the_items_of_the_only_chunk_of_its_target_without_a_map(
    tmp_path, monkeypatch
):
    with (chunk := new_chunk(tmp_path)).open("wb"):
        chunk.append("item", {}, JPEGS[:2])
    map_, away = tmp_path / "meta_0.gmeta", tmp_path / "away"
    real, count = LocalStore.names, 0

    def names(store: LocalStore) -> list[str]:
        nonlocal count
        count += 1
        listed = real(store)
        if count == 2:
            map_.rename(away)
        if count == 3:
            away.rename(map_)
        return listed

    monkeypatch.setattr(LocalStore, "names", names)
    assert chunks_of_ids(tmp_path) == {"item": 0}
    map_.rename(away)
    with WriterLock() as lock:
        lock.take(tmp_path / "data_0.gulp")
        with pytest.raises(LockedError, match=r"data_0\.gulp is open .* try again"):
            chunks_of_ids(tmp_path)


def test_a_whole_ingest_that_is_resumed_while_a_chunk_is_written_anew_lacks_nothing(
    tmp_path,
):
    def resume() -> None:
        GulpIngestor(FrameAdapter(num_items=2), tmp_path, 1, 1, resume=True).run()

    resume()
    map_, away = tmp_path / "meta_0.gmeta", tmp_path / "away"
    map_.rename(away)
    with WriterLock() as lock:
        lock.take(tmp_path / "data_0.gulp")
        with pytest.raises(LockedError, match=r"data_0\.gulp is open .* try again"):
            resume()
    with pytest.raises(IngestError, match="Put the whole file back"):
        resume()
    away.rename(map_)
    resume()


@pytest.mark.parametrize("flag", ["ab", "wb"])
def test_a_chunk_that_is_written_to_while_it_is_repaired_is_not_called_damaged(
    tmp_path, monkeypatch, flag
):
    folder = tmp_path / "all"
    folder.mkdir()
    chunk = new_chunk(folder)
    with chunk.open("wb"):
        chunk.append("old", {}, JPEGS[:2])
    real = LocalStore.read

    def read(store: LocalStore, name: str) -> bytes:
        if name == "meta_0.gmeta":  # its data file was looked at just now
            monkeypatch.undo()
            with chunk.open(flag):
                chunk.append("new", {}, JPEGS[1:4])
        return real(store, name)

    monkeypatch.setattr(LocalStore, "read", read)
    report = repair_directory(folder, tmp_path / "copy")
    assert report.lost == []
    with GulpDirectory(tmp_path / "copy") as directory:
        assert list(directory.chunk_lookup) == [*chunk.meta_dict]
        assert directory.read_jpegs("new") == JPEGS[1:4]
    assert problems(tmp_path / "copy") == []


def test_a_chunk_is_not_looked_at_without_its_map_nor_for_ever(tmp_path):
    with (chunk := new_chunk(tmp_path)).open("wb"):
        chunk.append("item", {}, JPEGS[:2])
    data, map_ = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"

    def replace() -> None:
        shutil.copy(data, tmp_path / "other")
        (tmp_path / "other").replace(data)

    store = open_store(tmp_path)
    with pytest.raises(LockedError, match=r"anew again and again .* try again"):
        of_one_state(store, 0, replace)
    map_.unlink()
    with WriterLock() as lock:
        lock.take(data)
        with pytest.raises(LockedError, match=r"data_0\.gulp is open .* try again"):
            of_one_state(store, 0, lambda: None)


def test_a_chunk_that_is_written_anew_and_is_shorter_is_not_called_cut(tmp_path):
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("old", {}, JPEGS[:4])
    with GulpDirectory(tmp_path) as directory:
        with chunk.open("wb"):
            chunk.append("new", {}, JPEGS[:1])
        refuse_lost_chunks(directory)  # an ingest that goes on beside it
        os.truncate(tmp_path / "data_0.gulp", 8)
        with pytest.raises(IngestError, match="it was cut"):
            refuse_lost_chunks(directory)


def test_a_chunk_of_a_part_that_is_written_anew_and_is_shorter_is_not_called_cut(
    tmp_path, monkeypatch
):
    part = tmp_path / "part"
    part.mkdir()
    chunk = new_chunk(part)
    with chunk.open("wb"):
        chunk.append("old", {}, JPEGS[:4])

    def length_then(*args: Any) -> int:  # of the map, which was read just now
        with chunk.open("wb"):
            chunk.append("new", {}, JPEGS[:1])
        return length_of(*args)

    monkeypatch.setattr("gulpio2.merge.data.length_of", length_then)
    with pytest.raises(ChunkMismatchError, match=r"written anew .*: merge again"):
        merge_directories([part], tmp_path / "all")


@pytest.mark.parametrize("flag", ["wb", "ab"])
@pytest.mark.parametrize("how", ["ingest", "resumed", "merge", "linked merge"])
def test_a_chunk_whose_map_is_about_to_be_stored_is_not_opened_to_write(
    tmp_path, monkeypatch, flag, how
):
    folder, part = tmp_path / "all", tmp_path / "part"
    make_gulp_directory(part, num_items=1)
    real, stops = LocalStore.rename, [how == "resumed"]
    refusals: list[object] = []

    def ingest() -> None:
        resume = (folder / "ingest.journal").exists()
        GulpIngestor(FrameAdapter(num_items=1), folder, 2, 1, resume=resume).run()

    def rename(store: LocalStore, source: str, target: str, **options: Any) -> None:
        if target == "meta_0.gmeta" and not refusals:
            assert "data_0.gulp" in store.names()
            if stops.pop():
                raise StopError
            with (
                pytest.raises(LockedError, match=REFUSED) as refusal,
                new_chunk(folder).open(flag),
            ):
                pytest.fail("opened")
            refusals.append(refusal)
        real(store, source, target, **options)

    monkeypatch.setattr(LocalStore, "rename", rename)
    if "merge" in how:
        merge_directories([part], folder, link=how == "linked merge")
    else:
        with pytest.raises(StopError) if stops[0] else nullcontext():
            ingest()
        if how == "resumed":
            stops.append(False)
            ingest()
    assert len(refusals) == 1
    with new_chunk(folder).open("ab"):  # nothing is held any more
        pass
    assert GulpDirectory(folder).chunk_lookup == {"item0": 0}
    assert problems(folder) == []


@pytest.mark.parametrize("how", ["ingest", "merge"])
@pytest.mark.parametrize("is_given", [True, False], ids=["new_chunks", "GulpChunk"])
def test_what_an_ingest_or_a_merge_stores_meanwhile_is_not_written_over(
    tmp_path, how, is_given
):
    folder, part = tmp_path / "all", tmp_path / "part"
    make_gulp_directory(part, num_items=2)
    merge_directories([part], folder)
    delete_items(folder, list(GulpDirectory(folder).chunk_lookup))
    compact_directory(folder)
    if is_given:
        (chunk,) = GulpDirectory(folder).new_chunks(1)
    else:
        chunk = new_chunk(folder, 1)
    stored = {}

    def write_beside():
        with chunk.open("wb"):
            chunk.append("own", {}, JPEGS[:2])
            if how == "ingest":
                GulpIngestor(FrameAdapter(num_items=2), folder, 2, 1).run()
            else:
                merge_directories([part], folder)
            files = content(folder).items()
            stored.update({k: v for k, v in files if not k.endswith(".partial")})

    with pytest.raises(StorageExistsError, match=r"data_1\.gulp is there, .* was open"):
        write_beside()
    if is_given:  # what was refused has not made the number its own
        with (
            pytest.raises(StorageExistsError, match="`new_chunks` gave"),
            chunk.open("wb"),
        ):
            pytest.fail("opened")
    assert content(folder) == stored
    assert list(GulpDirectory(folder).chunk_lookup.values()) == [1, 1]
    assert (list(chunk.meta_dict), open_files(folder)) == ([], [])
    (again,) = GulpDirectory(folder).new_chunks(1)
    with again.open("wb"):
        again.append("own", {}, JPEGS[:2])
    assert GulpDirectory(folder).chunk_lookup["own"] == 2
    assert problems(folder) == []


# --- a chunk that is written anew ---------------------------------------------------


@pytest.mark.parametrize("is_new", [False, True], ids=["there", "new"])
@pytest.mark.parametrize("flags", [("wb", "wb"), ("wb", "ab"), ("ab", "wb")])
def test_one_alone_writes_a_chunk_anew(tmp_path, hold, is_new, flags):
    if not is_new:
        write(tmp_path, ("a", {}, JPEGS[:2]))
    first, second = flags
    holder = hold(flag=first)
    assert_refused(tmp_path, second)
    with new_chunk(tmp_path, 1).open(second):  # another chunk
        pass
    end(holder)
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag=second)
    left = ["b"] if second == "wb" else ["held", "b"]
    assert list(new_chunk(tmp_path).meta_dict) == left
    assert problems(tmp_path) == []


def test_who_deletes_and_who_writes_anew_do_not_undo_each_others_notes(tmp_path):
    write(tmp_path, *((id_, {}, JPEGS[:2]) for id_ in ("a", "gone")))
    delete_items(tmp_path, ["gone"])
    before, chunk = content(tmp_path), new_chunk(tmp_path)
    with open_store(tmp_path).lock():  # as who deletes or compacts in another chunk
        with pytest.raises(LockedError, match="another process is writing to"):
            write(tmp_path, ("b", {}, JPEGS[2:3]))
        assert content(tmp_path) == before
        with new_chunk(tmp_path, 1).open("wb"):  # nothing is noted of it
            pass
    with chunk.open("wb"):
        chunk.append("b", {}, JPEGS[2:3])
    assert read_removals(open_store(tmp_path)).deleted == {}
    assert problems(tmp_path) == []


def test_a_killed_process_that_wrote_anew_is_no_hindrance(tmp_path, hold):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    holder = hold(flag="wb", with_child=True)
    holder.kill()
    holder.wait()
    assert list(new_chunk(tmp_path).meta_dict) == ["a"]
    write(tmp_path, ("b", {}, JPEGS[2:3]))
    assert list(new_chunk(tmp_path).meta_dict) == ["b"]


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_a_chunk_that_was_written_anew_stays_locked_after_a_flush(tmp_path, flag):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("b", {}, JPEGS[2:3])
        chunk.flush()
        assert_refused(tmp_path, flag)
        chunk.append("c", {}, JPEGS[3:4])
    assert list(new_chunk(tmp_path).meta_dict) == ["b", "c"]
    assert open_files(tmp_path) == []


ANEW = """
import sys, time
import numpy as np
from gulpio2 import GulpChunk
from gulpio2.errors import LockedError
folder, name, size = sys.argv[1:]
frame = np.zeros((int(size), 6, 3), np.uint8)
for number in range(10):
    while True:
        chunk = GulpChunk(f"{folder}/data_0.gulp", f"{folder}/meta_0.gmeta")
        try:
            with chunk.open("wb"):
                chunk.append(f"{name}{number}", {}, [frame] * int(size))
            break
        except LockedError:
            time.sleep(0.001)
"""


def test_what_many_processes_write_anew_is_the_chunk_of_one(
    tmp_path, python, repository
):
    processes = [
        subprocess.Popen(
            [python, "-c", ANEW, str(tmp_path), name, str(size)], cwd=repository
        )
        for size, name in enumerate("xyz", 4)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    (id_,) = new_chunk(tmp_path, verify=True).meta_dict
    assert id_[1:] == "9"
    assert len(new_chunk(tmp_path, verify=True).read_jpegs(id_)) == 4 + "xyz".find(
        id_[0]
    )
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]
    assert problems(tmp_path) == []


def test_a_chunk_is_written_anew_beside_one_that_shares_its_data_file(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write(one, ("a", {}, JPEGS[:2]))
    link_file(one / "data_0.gulp", other / "data_0.gulp")
    (other / "meta_0.gmeta").write_bytes((one / "meta_0.gmeta").read_bytes())
    anew = new_chunk(one)
    with anew.open("wb"):
        write(other, ("b", {}, JPEGS[2:3]), flag="ab")
        assert_refused(one, "wb")
        anew.append("c", {}, JPEGS[3:4])
    assert list(new_chunk(one).meta_dict) == ["c"]
    assert list(new_chunk(other).meta_dict) == ["a", "b"]
    for folder in (one, other):
        assert problems(folder) == []


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: delete_items(folder, ["a"]),
        compact_directory,
        lambda folder: new_chunk(folder).open("ab").__enter__(),
    ],
    ids=["delete", "compact", "append"],
)
def test_a_shared_chunk_that_is_written_anew_is_not_changed_meanwhile(tmp_path, act):
    folder = tmp_path / "all"
    folder.mkdir()
    with (chunk := new_chunk(folder)).open("wb"):
        for id_ in "abc":
            chunk.append(id_, {}, JPEGS[:2])
    delete_items(folder, ["b"])
    link_file(folder / "data_0.gulp", tmp_path / "shared")
    with (chunk := new_chunk(folder)).open("wb"):
        chunk.append("a", {}, JPEGS[2:4])
        with pytest.raises(LockedError, match=r"data_0\.gulp\S* is open for writing"):
            act(folder)
    with GulpDirectory(folder) as directory:
        assert directory.read_jpegs("a") == JPEGS[2:4]
    assert problems(folder) == []


@pytest.mark.parametrize(("before", "anew"), [(6, 1), (1, 6), (2, 2)])
def test_a_shared_chunk_that_was_written_anew_while_it_was_waited_for_is_opened_again(
    tmp_path, monkeypatch, before, anew
):
    folder = tmp_path / "all"
    folder.mkdir()
    write(folder, ("a", {}, JPEGS[:before]))
    link_file(folder / "data_0.gulp", tmp_path / "shared")
    ends = ExitStack()
    ends.enter_context((other := new_chunk(folder)).open("wb"))
    other.append("b", {}, JPEGS[:anew])
    wait = WriterLock.refuse_begun

    def wait_for_it(lock: WriterLock, *what: Any) -> None:
        ends.close()
        wait(lock, *what)

    monkeypatch.setattr(WriterLock, "refuse_begun", wait_for_it)
    chunk = new_chunk(folder)
    with pytest.raises(LockedError, match="Open it again"), chunk.open("ab"):
        pytest.fail("its map is another by now")
    with chunk.open("ab"):
        chunk.append("c", {}, JPEGS[2:4])
    assert list(new_chunk(folder).meta_dict) == ["b", "c"]
    assert problems(folder) == []


@pytest.mark.usefixtures("permissions")
@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_data_file_that_may_not_be_written_to_can_be_replaced(tmp_path, mode):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    (tmp_path / "data_0.gulp").chmod(mode)
    write(tmp_path, ("b", {}, JPEGS[2:3]))
    (tmp_path / "data_0.gulp").chmod(0o644)
    assert list(new_chunk(tmp_path).meta_dict) == ["b"]
    assert problems(tmp_path) == []


def test_a_map_that_goes_while_it_is_opened_is_none(tmp_path, monkeypatch):
    # In the instant in which another process replaces the chunk (rule 23).
    write(tmp_path, ("a", {}, JPEGS[:2]))
    asked = []

    def gone(path: Path) -> bool:
        found = is_there(path)
        asked.append(path.name)
        path.unlink()
        return found

    monkeypatch.setattr("gulpio2.storage.map_file.is_there", gone)
    assert list(new_chunk(tmp_path).meta_dict) == []
    assert asked == ["meta_0.gmeta"]


# --- links, and file systems of other kinds -----------------------------------------


def test_a_shared_data_file_is_locked_in_the_directory_that_it_is_appended_in(
    tmp_path,
):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write(one, ("a", {}, JPEGS[:2]))
    link_file(one / "data_0.gulp", other / "data_0.gulp")
    (other / "meta_0.gmeta").write_bytes((one / "meta_0.gmeta").read_bytes())
    chunks = new_chunk(one), new_chunk(other)
    with chunks[0].open("ab"):
        assert_refused(one)
        with chunks[1].open("ab"):
            assert_refused(other)
            chunks[1].append("c", {}, JPEGS[3:4])
        chunks[0].append("b", {}, JPEGS[2:3])
    for folder, ids in ((one, ["a", "b"]), (other, ["a", "c"])):
        assert list(new_chunk(folder).meta_dict) == ids
        assert problems(folder) == []


def test_a_link_and_what_it_leads_to_are_one_file(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write(one, ("a", {}, JPEGS[:2]))
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (other / name).symlink_to(one / name)
    with new_chunk(one).open("ab"):
        assert_refused(other)
    with new_chunk(other).open("ab"):
        assert_refused(one)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.parametrize("is_new", [False, True], ids=["there", "new"])
def test_without_locks_a_chunk_is_appended_to_as_before(
    tmp_path, monkeypatch, code, is_new
):
    if not is_new:
        write(tmp_path, ("a", {}, JPEGS[:2]))

    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    write(tmp_path, ("b", {}, JPEGS[2:3]), flag="ab")
    assert new_chunk(tmp_path).read_jpegs("b") == JPEGS[2:3]
    chunk = new_chunk(tmp_path)
    with (
        pytest.raises(ChunkMismatchError, match="changed by another program"),
        chunk.open("ab"),
    ):
        write(tmp_path, ("c", {}, JPEGS[3:4]), flag="ab")
    assert problems(tmp_path) == []


def test_a_lock_that_fails_is_no_missing_lock(tmp_path, monkeypatch):
    write(tmp_path, ("a", {}, JPEGS[:2]))

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with (
        pytest.raises(StorageError, match=r"cannot lock .*data_0\.gulp: Input/output"),
        new_chunk(tmp_path).open("ab"),
    ):
        pytest.fail("opened")
    assert open_files(tmp_path) == []


@pytest.mark.usefixtures("permissions")
def test_a_folder_that_is_read_only_says_what_it_said_before(tmp_path):
    write(tmp_path, ("a", {}, JPEGS[:2]))
    before = content(tmp_path)
    tmp_path.chmod(0o555)
    try:
        with (
            pytest.raises(StorageError, match=r"meta_0.* Permission denied"),
            new_chunk(tmp_path).open("ab"),
        ):
            pass
        (tmp_path / "data_0.gulp").chmod(0o444)
        with (
            pytest.raises(
                StorageError,
                match=r"cannot open for writing .*Make the file writable for you",
            ),
            new_chunk(tmp_path).open("ab"),
        ):
            pytest.fail("opened")
    finally:
        tmp_path.chmod(0o755)
    assert content(tmp_path) == before
