"""Many readers while a writer commits, writers against each other, and no leaks."""

import gc
import logging
import os
import pickle
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import gulpio2
from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import LockedError
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.forking import forked

LONG = os.environ.get("GULPIO2_FAULTS") == "long"
READERS, READS = (8, 10_000) if LONG else (3, 200)
PROGRAM = Path(__file__).with_name("reading_program.py")
read_many = runpy.run_path(str(PROGRAM))["read_many"]


class Additions(FrameAdapter):
    """Items ``new<n>`` that look as their number says, and one to be deleted."""

    def __init__(self, first):
        super().__init__(num_items=3)
        self.first = first

    def item_ids(self):
        return [item["id"] for item in self.iter_data()]

    def iter_data(self, slice_element=None):
        for number in range(self.first, self.first + 3)[slice_element or slice(None)]:
            name = "temp" if number == self.first else "new_"
            frames = make_frames(3, seed=number)
            yield {"meta": {}, "frames": frames, "id": f"{name}{number}"}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=6, num_frames=3).close()
    return path


@pytest.fixture(params=[False, True], ids=["maps", "index"])
def indexed(request, caplog):
    """Read by the maps, and by an index that is made while it is read."""
    caplog.set_level(logging.ERROR, "gulpio2")
    return request.param


def write_while(folder, going_on):
    """Append, add chunks, delete and compact, until the readers are done."""
    rounds = 0
    while going_on() or rounds < 3:
        first = 100 + 3 * rounds
        GulpIngestor(Additions(first), folder, 2, 1).run()
        chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
        with chunk.open("ab"):
            number = 5000 + rounds
            chunk.append(f"more{number}", {}, make_frames(3, seed=number))
        delete_items(folder, [f"temp{first}"])
        compact_directory(folder)
        rounds += 1
        time.sleep(0.05 if rounds < 100 else 1)  # not without end in the long form
    return rounds


def test_threads_read_right_pixels_while_a_writer_commits(folder, indexed):
    errors: list[BaseException] = []

    def reading(seed):
        try:
            read_many(directory, READS, seed)
        except BaseException as error:
            errors.append(error)
            raise

    with GulpDirectory(folder, indexed=indexed) as directory:
        directory.read_clip("item0")
        threads = [threading.Thread(target=reading, args=(n,)) for n in range(READERS)]
        for thread in threads:
            thread.start()
        write_while(folder, lambda: any(thread.is_alive() for thread in threads))
        for thread in threads:
            thread.join()
    assert errors == []


def test_forked_readers_share_the_parents_handles_while_a_writer_commits(
    folder, indexed
):
    directory = GulpDirectory(folder, indexed=indexed)
    directory.read_clip("item0")
    children = [
        forked(partial(read_many, directory, READS, seed)) for seed in range(READERS)
    ]
    ended: dict[int, int] = {}

    def going_on():
        for pid in set(children) - ended.keys():
            if (done := os.waitpid(pid, os.WNOHANG))[0]:
                ended[pid] = os.waitstatus_to_exitcode(done[1])
        return len(ended) < len(children)

    write_while(folder, going_on)
    while going_on():
        time.sleep(0.01)
    assert set(ended.values()) == {0}


def test_spawned_readers_take_a_pickled_directory_while_a_writer_commits(
    folder, tmp_path, indexed
):
    with GulpDirectory(folder, indexed=indexed) as directory:
        directory.read_clip("item0")
        (tmp_path / "pickle").write_bytes(pickle.dumps(directory))
    arguments = [sys.executable, str(PROGRAM), str(tmp_path / "pickle"), str(READS)]
    package = Path(gulpio2.__path__[0]).parent  # the one that is tested here
    environment = {**os.environ, "PYTHONPATH": str(package)}
    readers = [
        subprocess.Popen(
            [*arguments, str(seed)], stderr=subprocess.PIPE, env=environment
        )
        for seed in range(READERS)
    ]
    write_while(folder, lambda: any(reader.poll() is None for reader in readers))
    for reader in readers:
        _, errors = reader.communicate()
        assert (reader.returncode, errors) == (0, b"")


WRITER = """
import sys, time
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter
class Slow(FrameAdapter):
    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            print("begun", flush=True)
            time.sleep(60)
            yield item
GulpIngestor(Slow(list_ids=False), sys.argv[1], 2, int(sys.argv[2])).run()
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_writer_is_refused_and_a_killed_one_leaves_nothing_locked(
    folder, tmp_path, workers
):
    delete_items(folder, ["item5"])
    before = temporary_files()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(workers)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline().startswith(b"begun")
        for write in (
            lambda: GulpIngestor(Additions(100), folder, 2, 1).run(),
            lambda: delete_items(folder, ["item1"]),
            lambda: compact_directory(folder),
            lambda: repair_directory(folder, tmp_path / "repaired"),
        ):
            with pytest.raises(LockedError, match="another process is writing to"):
                write()
        assert len(GulpDirectory(folder)) == 5  # a reader is not kept out
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    GulpIngestor(Additions(100), folder, 2, 1).run()
    assert len(GulpDirectory(folder)) == 8
    assert left_since(before) == set()


def temporary_files():
    """Name what may be of this package where programs leave things behind."""
    folders = [Path(tempfile.gettempdir()), Path("/dev/shm")]  # noqa: S108 - looked at only
    paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    return {path.name for path in paths if "gulp" in path.name or "sem" in path.name}


def left_since(before):
    """Name what is there now and stays; what others have there for a time goes away."""
    end = time.monotonic() + 60
    left = temporary_files() - before
    while left and time.monotonic() < end:
        time.sleep(0.2)
        left &= temporary_files()  # other tests make new ones all the time
    return left


def state_of_process():
    """Open files and threads; mappings, and memory of its own in kB."""
    gc.collect()
    # Pages of files are private when nobody else has them mapped: other programs that
    # begin and end would be taken for growth.
    status = Path("/proc/self/smaps_rollup").read_text()
    (own,) = (
        int(line.split()[1])
        for line in status.splitlines()
        if line.startswith("Anonymous:")
    )
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    mappings = len(Path("/proc/self/maps").read_text().splitlines())
    return (files, threading.active_count()), mappings, own


def test_a_thousand_rounds_of_open_read_close_leave_nothing_behind(folder, indexed):
    def round_(number):
        directory = GulpDirectory(folder, indexed=indexed)
        frames, _ = directory[f"item{number % 6}"]
        directory.read_clip(f"item{number % 6}", slice(0, 2))
        if number % 2:
            directory.close()
        del directory, frames

    for number in range(200):
        round_(number)
    files = temporary_files()
    before, mappings_before, own_before = state_of_process()
    for number in range(1000):
        round_(number)
    after, mappings_after, own_after = state_of_process()
    assert after == before
    assert mappings_after - mappings_before < 100
    assert own_after - own_before < 1024  # kB: a kB a round would be a leak
    assert left_since(files) == set()


def test_ingests_leave_no_file_and_no_thread_open(tmp_path):
    GulpIngestor(FrameAdapter(), tmp_path / "warm", 2, 2).run()
    files = temporary_files()
    before, *_ = state_of_process()
    for number in range(20):
        GulpIngestor(FrameAdapter(), tmp_path / str(number), 2, 1 + number % 2).run()
    after, *_ = state_of_process()
    assert after == before
    assert left_since(files) == set()
