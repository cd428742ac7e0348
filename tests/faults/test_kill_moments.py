"""Kill -9 of an ingest or of a worker at any moment, also where it hangs or waits."""

import contextlib
import ctypes
import fcntl
import functools
import itertools
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gulpio2 import GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.ingest import pool as pool_module
from gulpio2.ingest import workers as workers_module
from gulpio2.ingest.jobs import Job, Task
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import children_of, committed_jpegs
from tests.faults.operations import content
from tests.forking import forked

# Number of the system call.
READ = {"x86_64": "0", "aarch64": "63"}.get(platform.machine())
LONG = os.environ.get("GULPIO2_FAULTS") == "long"


pytestmark = pytest.mark.usefixtures("_fast_disk")


class Larger(FrameAdapter):
    """150 items of 20 frames, one of which cannot be read; some 6 MB."""

    def __init__(self):
        super().__init__(num_items=150, num_frames=20, height=64, width=96, bad=(7,))


def run_larger(folder, *, resume=False):
    """Ingest, in this process and two workers."""
    GulpIngestor(Larger(), folder, 4, 2, resume=resume).run()


def kill_at_a_moment(work, victim, moment):
    """Kill a forked process, or a worker of it, so many seconds after its beginning.

    Returns
    -------
    bool
        Whether it was in time. A run goes on without a worker that is killed.
    """

    def begin() -> None:
        os.setpgid(0, 0)
        work()

    pid = forked(begin)
    time.sleep(moment)
    target = pid
    if victim == "worker":
        workers = children_of(pid)
        target = workers[int(1e6 * moment) % len(workers)] if workers else 0
    is_hit = False
    if target:
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)
            is_hit = True
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if victim == "parent":  # it may have ended, and waited for that to be seen
        assert ended in (0, -signal.SIGKILL)
        return ended != 0
    assert ended == 0
    return is_hit


class Moments:
    """Random moments of a run whose duration is not known, as other work takes part.

    Parameters
    ----------
    longest : float
        What it may take at first, in seconds.
    """

    def __init__(self, longest):
        self.longest = longest
        self.rng = np.random.default_rng(5)
        self.hits = 0

    def kill(self, work, victim, *, share=1.0):
        """Kill a run of which a share is left to do, at any moment."""
        moment = self.rng.uniform(0, share * self.longest) + 0.01
        is_hit = kill_at_a_moment(work, victim, moment)
        self.hits += is_hit
        # Two of three come in time so.
        self.longest *= 1.05 if is_hit else 0.9


@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_killed_at_random_moments_and_while_resuming(tmp_path, victim):
    began = time.monotonic()
    run_larger(tmp_path / "whole")
    duration = time.monotonic() - began
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    wanted = int(os.environ.get("GULPIO2_KILLS", 200)) if LONG else 3
    first, second = Moments(duration), Moments(duration)
    trials = kept = 0
    while min(first.hits, second.hits) < wanted:
        folder = tmp_path / f"killed {first.hits} {second.hits} {trials}"
        trials += 1
        first.kill(functools.partial(run_larger, folder), "parent")
        committed = committed_jpegs(folder)
        assert committed.items() <= jpegs.items()
        kept += len(committed)
        left = 1 - len(committed) / len(jpegs)
        if left:
            go_on = functools.partial(run_larger, folder, resume=True)
            second.kill(go_on, victim, share=left)
        found = committed_jpegs(folder)
        assert committed.items() <= found.items() <= jpegs.items()
        run_larger(folder, resume=True)
        assert content(folder) == expected
        shutil.rmtree(folder, ignore_errors=True)
    assert kept > first.hits  # not all of them came before there was anything to lose


def test_a_run_goes_on_where_a_worker_is_killed_at_a_random_moment(tmp_path):
    began = time.monotonic()
    run_larger(tmp_path / "whole")
    moments = Moments(time.monotonic() - began)
    expected = content(tmp_path / "whole")
    wanted = int(os.environ.get("GULPIO2_KILLS", 200)) if LONG else 3
    while moments.hits < wanted:
        moments.kill(functools.partial(run_larger, tmp_path / "killed"), "worker")
        assert content(tmp_path / "killed") == expected
        shutil.rmtree(tmp_path / "killed")


SCRIPT = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter
adapter = FrameAdapter(num_items=150, num_frames=20, height=64, width=96)
GulpIngestor(adapter, sys.argv[1], 4, 2).run()
"""


def test_workers_end_with_a_killed_parent(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], start_new_session=True
    )
    workers: list[int] = []
    deadline = time.monotonic() + 20
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = children_of(process.pid)
        assert process.poll() is None
    process.kill()
    process.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_worker_that_outlives_a_killed_run_spoils_nothing_of_the_next(tmp_path):
    # As one does that waits for a slow disk: in a write that cannot be interrupted,
    # which here is one that waits for a lock and keeps Python's own.
    folder, gate = tmp_path / "killed", tmp_path / "gate"
    gate.touch()
    closed = os.open(gate, os.O_RDONLY)
    fcntl.flock(closed, fcntl.LOCK_EX)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        sys.setswitchinterval(1000)  # no other thread comes in between
        library = ctypes.PyDLL(None)
        writes = itertools.count()

        def slow(fd, data):
            own = os.open(gate, os.O_RDONLY)
            copy = bytes(data)
            of_frames = ".gulp." in str(Path(f"/proc/self/fd/{fd}").readlink())
            if of_frames and next(writes) > 20:  # of some 500 in each worker
                library.flock(own, fcntl.LOCK_SH)
            written = library.write(fd, copy, len(copy))
            os.close(own)
            return written

        os.write = slow
        ingest_slowly(folder)
        os._exit(1)
    deadline = time.monotonic() + 60
    while num_waiting_for(gate) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert has_stored_an_item(folder)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not committed_jpegs(folder)  # both were in the middle
    try:
        ingest_slowly(folder, resume=True)
        expected = content(folder)
        assert check_directory(folder, deep=True).problems == []
    finally:
        fcntl.flock(closed, fcntl.LOCK_UN)  # closing is not enough: others have it too
        os.close(closed)
    wait_for_end_of_group(pid)
    found = content(folder)
    assert {name: found[name] for name in expected} == expected


class Changing(FrameAdapter):
    """Frames that are others in each process: what one writes is told from the rest."""

    def _frames(self, number):
        return iter(make_frames(60, 64, 96, seed=1000 * os.getpid() + number))


def ingest_slowly(folder, *, resume=False):
    GulpIngestor(Changing(num_items=100), folder, 50, 2, resume=resume).run()


def num_waiting_for(path):
    """Count the processes that wait for a lock on a file."""
    inode = f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and inode in line for line in lines)


def has_stored_an_item(folder):
    """Tell whether some journal of a task speaks of an item."""
    journals = folder.glob("chunk_*.journal.*.partial")
    return any(b'"at": ' in path.read_bytes() for path in journals)


def wait_for_end_of_group(pid):
    """Wait until no process of a group is left."""
    deadline = time.monotonic() + 20
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(pid, 0)
            time.sleep(0.01)
        raise AssertionError("a process of a killed run does not end")


def test_a_worker_killed_while_it_waits_for_work_does_not_keep_the_run_from_ending(
    tmp_path, monkeypatch
):
    """It takes the lock of the queue with it, which the other one waits for."""
    monkeypatch.setattr(pool_module, "_END_SECONDS", 0.5)
    adapter = FrameAdapter(num_items=4)
    job = Job(adapter, str(tmp_path), EncoderSettings(), "raise", None, frozenset())
    before = set(children_of(os.getpid()))

    def kill_the_reader():
        time.sleep(0.2)  # by then the pool waits for its workers to end
        os.kill(reader, signal.SIGKILL)
        os.kill(other, signal.SIGCONT)

    with workers_module.in_worker_processes(2, job, lambda **_: None) as submit:
        for future in [submit(Task(0, 0, 2)), submit(Task(1, 2, 4))]:
            future.result()
        reader, other = reader_first(set(children_of(os.getpid())) - before)
        for pid in (reader, other):
            os.kill(pid, signal.SIGSTOP)
        killer = threading.Thread(target=kill_the_reader)
        killer.start()
        ended = time.monotonic()
    assert 0.2 < time.monotonic() - ended < 5
    killer.join()


def reader_first(pids):
    """Sort processes: first the one that reads from the queue's pipe."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        reading = [
            pid
            for pid in pids
            if Path(f"/proc/{pid}/syscall").read_text().split()[0] == READ
        ]
        if len(pids) == 2 and len(reading) == 1:
            return reading[0], (pids - set(reading)).pop()
        time.sleep(0.01)
    pytest.skip("this system does not tell which worker reads from the queue")
