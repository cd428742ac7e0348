"""What a loader leaves behind: no thread, no process, no shared memory, no growth."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader
from tests.forking import forked, status_of
from tests.torch.troubles import status_of_child_while_held

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # looked into, never written to
PROGRAM = """
import os, sys, threading, time
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader

dataset = GulpClipDataset(sys.argv[1], partial(sample_window, clip_length=4))
loader = GulpLoader(dataset, batch_size=2, threads=3, prefetch=3, output="numpy")
"""


def names():
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("gulpio2-loader")
    ]


@pytest.fixture
def path(make_directory):
    return make_directory(counts=(8,) * 12)


@pytest.fixture
def loader(path):
    dataset = GulpClipDataset(path, partial(sample_window, clip_length=4))
    return GulpLoader(dataset, batch_size=2, threads=3, prefetch=3, output="numpy")


def test_no_thread_before_and_after_an_epoch(loader):
    assert names() == []
    seen = set()
    for _ in loader:
        seen.update(names())
    assert seen
    assert seen <= {f"gulpio2-loader-{number}" for number in range(3)}
    assert names() == []


def test_no_thread_after_a_break_or_an_exception(loader):
    for _ in loader:
        break
    assert names() == []

    def train():
        for _ in loader:
            raise OverflowError

    with pytest.raises(OverflowError) as caught:
        train()
    del caught
    gc.collect()
    assert names() == []


def test_close_and_with_end_it_at_once(loader):
    batches = iter(loader)
    next(batches)
    assert names()
    loader.close()
    assert names() == []
    with loader:
        held = iter(loader)
        next(held)
        assert names()
    assert names() == []


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("for _ in loader: pass", 0, ""),
        ("held = iter(loader); next(held)", 0, ""),
        ("held = iter(loader); next(held); raise KeyError('mine')", 1, "mine"),
        ("for _ in loader: raise KeyError('mine')", 1, "mine"),
        ("for _ in loader: sys.exit(3)", 3, ""),
        ("for _ in loader: os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("for _ in loader: os.kill(os.getpid(), 2)", -signal.SIGINT, "Interrupt"),
    ],
    ids=["end", "held", "held-error", "error", "exit", "kill", "interrupt"],
)
def test_a_program_leaves_nothing_behind(path, repository, python, end, status, said):
    before = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else set()
    process = subprocess.Popen(
        [python, "-W", "error", "-c", PROGRAM + end, path],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    assert said in errors
    if not said:
        assert errors == ""
    # Nothing is left in its process group, and no memory has a name.
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    left = set(SHARED_MEMORY.iterdir()) - before if SHARED_MEMORY.is_dir() else set()
    mine = [entry for entry in left if "gulp" in entry.name]
    assert mine == []


def go_on(batches):
    """Ask for a batch; give 7 where it is refused as it is to be in a fork."""
    try:
        next(batches)
    except RuntimeError as error:
        return 7 if "begun in another process" in str(error) else 9
    return 8


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_of_the_trainer_says_that_the_threads_are_not_there(loader):
    batches = iter(loader)
    next(batches)
    assert status_of(forked(partial(go_on, batches))) == 7
    assert len(list(batches)) == 5
    assert names() == []


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_beside_a_thread_that_has_the_lock_is_told_so_too(loader):
    batches = iter(loader)
    next(batches)
    status = status_of_child_while_held(loader._active._lock, partial(go_on, batches))
    assert status == 7
    batches.close()


def test_an_iteration_that_one_of_its_threads_collects_ends(loader, monkeypatch):
    class CollectingDeque(deque):
        """Collects garbage as any allocation may, with the lock held."""

        def popleft(self):
            if self and threading.current_thread().name in names() and armed.is_set():
                armed.clear()
                gc.collect()
            return super().popleft()

    armed = threading.Event()
    monkeypatch.setattr("gulpio2.torch.prefetch.deque", CollectingDeque)
    gc.disable()
    try:
        batches = iter(loader)
        next(batches)
        next(batches)
        cycle = [batches]
        cycle.append(cycle)  # nobody's but its own
        del batches, cycle
        prefetcher = loader._active
        armed.set()
        prefetcher.release(loader._given[0])  # which one of the threads takes
        for thread in prefetcher._threads:
            thread.join(10)
    finally:
        gc.enable()
    assert not armed.is_set()
    assert names() == []


def test_an_iteration_that_is_collected_while_it_is_ended_holds_up_nobody(path):
    def target(info):
        """Collect garbage as any allocation may, in a thread that is being ended."""
        calls.append(info)
        if len(calls) == 2:
            is_dropped.wait(20)
            time.sleep(0.3)  # the one who ends it waits by now
            gc.collect()
        return 0

    calls: list[dict[str, Any]] = []
    is_dropped = threading.Event()
    window = partial(sample_window, clip_length=4)
    dataset = GulpClipDataset(path, window, target=target)
    loader = GulpLoader(dataset, batch_size=1, threads=1, output="numpy")
    gc.disable()
    try:
        batches = iter(loader)
        next(batches)
        cycle: list[Any] = [batches]
        cycle.append(cycle)  # nobody's but its own
        del batches, cycle
        closing = threading.Thread(target=loader.close, daemon=True)
        closing.start()
        is_dropped.set()
        closing.join(20)
    finally:
        gc.enable()
    assert not closing.is_alive()
    assert names() == []


def test_an_interrupt_while_a_thread_is_started_comes_out_as_one(loader, monkeypatch):
    begin, says_that_it_began = threading.Lock(), threading.Event.set
    trainer = threading.get_ident()

    def say_so_later(event):
        if begin.locked() and threading.get_ident() != trainer:
            signal.pthread_kill(trainer, signal.SIGINT)  # for this thread it waits
            # Told just before it waits, it would not look before it is told again.
            while not begin.acquire(timeout=0.1):
                signal.pthread_kill(trainer, signal.SIGURG)
            begin.release()
        says_that_it_began(event)

    before = signal.signal(signal.SIGURG, lambda number, frame: None)
    monkeypatch.setattr(threading.Event, "set", say_so_later)
    with begin, pytest.raises(KeyboardInterrupt):
        next(iter(loader))
    assert len(list(loader)) == 6
    assert names() == []
    signal.signal(signal.SIGURG, before)


MEMORY = (
    PROGRAM
    + """
def private():  # but for pages of libraries, which come from and go to other programs
    with open("/proc/self/smaps_rollup") as file:
        return sum(
            int(line.split()[1]) for line in file if line.startswith("Private_Dirty")
        )

sizes = []
for epoch in range(12):
    for batch in loader:
        pass
    sizes.append(private())
print(*sizes)
"""
)


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="no smaps_rollup here"
)
def test_memory_is_flat_over_epochs(path, repository, python):
    done = subprocess.run(
        [python, "-c", MEMORY.replace("threads=3", "threads=8"), path],
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    sizes = [int(size) for size in done.stdout.split()]
    assert len(sizes) == 12
    assert max(sizes[3:]) <= 1.02 * sizes[2], sizes
