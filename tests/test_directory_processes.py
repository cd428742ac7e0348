"""One directory read by threads, by forked and by spawned processes, and by pickle."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import signal
import sys
import threading
import time
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.storage.data_file import open_data_file
from gulpio2.testing import make_gulp_directory
from tests.forking import forked, status_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Python 3.12 and later warn of a fork beside threads; readers are made for it.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

NUM_ITEMS, NUM_FRAMES = 6, 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write items in three chunks."""
    path = tmp_path / "out"
    make_gulp_directory(path, num_items=NUM_ITEMS, num_frames=NUM_FRAMES).close()
    return path


def sums_of(directory: GulpDirectory) -> dict[str, list[int]]:
    """Give a number for every frame of every item."""
    return {
        id_: [int(frame.sum()) for frame in directory[id_][0]]
        for id_ in directory.merged_meta_dict
    }


def read_at_random(
    directory: GulpDirectory, seed: int, expected: dict[str, list[int]], count: int
) -> int:
    """Read frames at random; give how many were wrong."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(count):
        id_ = f"item{rng.integers(NUM_ITEMS)}"
        picks = [int(index) for index in rng.integers(NUM_FRAMES, size=2)]
        frames, meta = directory[id_, picks]
        right = [expected[id_][index] for index in picks]
        wrong += [int(frame.sum()) for frame in frames] != right
        wrong += meta != {"number": int(id_[4:])}
    return wrong


@pytest.mark.parametrize("fresh", [False, True])
def test_eight_threads_read_one_directory(folder, fresh):
    directory = GulpDirectory(folder)
    expected = sums_of(directory)
    if fresh:  # so that all of them open files at once
        directory = GulpDirectory(folder)
    with ThreadPoolExecutor(8) as threads:
        jobs = [
            threads.submit(read_at_random, directory, seed, expected, 100)
            for seed in range(8)
        ]
        assert [job.result() for job in jobs] == [0] * 8


def test_threads_read_while_another_one_closes_the_directory(folder):
    directory = GulpDirectory(folder)
    expected = sums_of(directory)
    done = threading.Event()

    def keep_closing() -> None:
        while not done.is_set():
            directory.close()

    closer = threading.Thread(target=keep_closing)
    closer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            jobs = [
                threads.submit(read_at_random, directory, seed, expected, 50)
                for seed in range(4)
            ]
            assert [job.result() for job in jobs] == [0] * 4
    finally:
        done.set()
        closer.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("read_before", [False, True])
def test_processes_read_a_directory_that_they_were_given(folder, method, read_before):
    directory = GulpDirectory(folder)
    expected = sums_of(GulpDirectory(folder))
    if read_before:
        assert sums_of(directory) == expected
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as processes:
        jobs = [
            processes.submit(read_at_random, directory, seed, expected, 50)
            for seed in range(4)
        ]
        assert read_at_random(directory, 9, expected, 50) == 0
        assert [job.result() for job in jobs] == [0] * 4


@pytest.mark.parametrize("read_before", [False, True])
def test_a_forked_child_reads_with_the_files_of_its_parent(folder, read_before):
    directory = GulpDirectory(folder)
    expected = sums_of(directory if read_before else GulpDirectory(folder))
    children = [
        forked(partial(read_at_random, directory, seed, expected, 100))
        for seed in range(3)
    ]
    assert read_at_random(directory, 9, expected, 100) == 0
    assert [status_of(child) for child in children] == [0, 0, 0]


def test_a_child_forked_while_threads_read_does_not_hang(folder):
    directory = GulpDirectory(folder)
    expected = sums_of(directory)
    with ThreadPoolExecutor(4) as threads:
        jobs = [
            threads.submit(read_at_random, directory, seed, expected, 100)
            for seed in range(4)
        ]
        children = [
            forked(partial(read_at_random, directory, seed, expected, 20))
            for seed in range(5)
        ]
        assert [status_of(child) for child in children] == [0] * 5
        assert [job.result() for job in jobs] == [0] * 4


@pytest.mark.parametrize("read_before", [False, True])
def test_a_directory_is_pickled_before_and_after_reading(folder, read_before):
    directory = GulpDirectory(folder)
    if read_before:
        sums_of(directory)
    for clone in (pickle.loads(pickle.dumps(directory)), copy.deepcopy(directory)):
        assert clone.chunk_lookup == directory.chunk_lookup
        assert clone.merged_meta_dict == directory.merged_meta_dict
        assert sums_of(clone) == sums_of(directory)
        entry = clone.merged_meta_dict["item0"]
        assert entry is clone.chunk_objs_lookup[0].meta_dict["item0"]


def test_a_directory_is_pickled_while_a_thread_asks_for_entries_and_chunks(tmp_path):
    for number in range(200):
        paths = tmp_path / f"data_{number}.gulp", tmp_path / f"meta_{number}.gmeta"
        chunk = GulpChunk(*paths)
        with chunk.open("wb"):
            chunk.append(number, {}, [])

    def let_others_run(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)  # as what closes a file does, in the middle of making a list

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 5, 5)
    gc.callbacks.append(let_others_run)
    try:
        for _ in range(10):
            directory = GulpDirectory(tmp_path, indexed=True)

            def ask(directory: GulpDirectory = directory) -> None:
                for number, chunk in directory.chunk_objs_lookup.items():
                    assert str(number) in chunk.meta_dict
                    assert directory.merged_meta_dict[str(number)]

            thread = threading.Thread(target=ask)
            thread.start()
            while thread.is_alive():
                pickle.dumps(directory)
    finally:
        gc.callbacks.remove(let_others_run)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def test_changes_to_metadata_go_along_with_the_pickle(folder):
    directory = GulpDirectory(folder)
    directory.merged_meta_dict["item0"]["meta_data"][0]["new"] = 1
    clone = pickle.loads(pickle.dumps(directory))
    assert clone["item0"][1] == {"number": 0, "new": 1}


def test_a_pickle_holds_maps_and_no_frames(folder):
    directory = GulpDirectory(folder)
    before = len(pickle.dumps(directory))
    sums_of(directory)
    assert len(pickle.dumps(directory)) == before
    maps = sum(path.stat().st_size for path in folder.glob("*.gmeta"))
    assert before < 3 * maps + 2000


def test_a_writer_in_another_process_is_seen_when_the_directory_is_opened_anew(folder):
    directory = GulpDirectory(folder)
    expected = sums_of(directory)

    def write() -> None:
        (chunk,) = GulpDirectory(folder).new_chunks(1)
        with chunk.open("wb"):
            chunk.append("new", {}, directory["item0"][0])

    child = forked(write)
    assert read_at_random(directory, 1, expected, 100) == 0
    assert status_of(child) == 0
    assert "new" not in directory
    assert len(GulpDirectory(folder)["new"][0]) == NUM_FRAMES


class Held(OrderedDict[int, GulpChunk]):
    """Chunks in whose values a thread stays until it is let go."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.inside, self.go_on = threading.Event(), threading.Event()

    def values(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.inside.set()
            self.go_on.wait(30)
        return super().values()


def child_ends(act: Callable[[], object]) -> bool:
    """Do something in a forked child; tell whether it was done in ten seconds."""

    def in_time() -> None:
        signal.alarm(10)
        act()

    return status_of(forked(in_time)) == 0


def test_a_child_forked_while_the_maps_are_listed_does_not_hang(folder):
    directory = GulpDirectory(folder)
    held = Held(directory.chunk_objs_lookup)
    directory.chunk_objs_lookup = held
    thread = threading.Thread(target=lambda: directory.all_meta_dicts)
    thread.start()
    assert held.inside.wait(10)
    try:
        assert child_ends(lambda: directory.all_meta_dicts)
    finally:
        held.go_on.set()
        thread.join()
    assert [*directory.all_meta_dicts[0]] == ["item0", "item1"]


def test_a_child_forked_while_a_chunk_is_opened_does_not_hang(folder, monkeypatch):
    chunk = GulpDirectory(folder).chunk_objs_lookup[0]
    waits, go_on = threading.Event(), threading.Event()

    def opened(path: Any) -> Any:
        """Open it, but in a thread only once it is let go."""
        if threading.current_thread() is not threading.main_thread():
            waits.set()
            go_on.wait(30)
        return open_data_file(path)

    def open_it() -> None:
        with chunk.open("rb"):
            pass

    monkeypatch.setattr("gulpio2.chunk.open_data_file", opened)
    thread = threading.Thread(target=open_it)
    thread.start()
    assert waits.wait(10)
    assert chunk._lock.locked()
    try:
        assert child_ends(open_it)
    finally:
        go_on.set()
        thread.join()
    with chunk.open("rb"):
        assert len(chunk["item0"][0]) == NUM_FRAMES
