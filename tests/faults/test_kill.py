"""Kill -9 of an ingest, anywhere: nothing committed is lost, and it can be resumed."""

import contextlib
import ctypes
import fcntl
import functools
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gulpio2
from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import IngestError, MetaFileError
from gulpio2.ingest import workers as workers_module
from gulpio2.ingest.task import Job, Task
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
from gulpio2.testing.faults import content, in_child, kill_at_operation

# Number of the system call.
READ = {"x86_64": "0", "aarch64": "63"}.get(platform.machine())
LONG = os.environ.get("GULPIO2_FAULTS") == "long"
MODES: dict[str, dict[str, Any]] = {
    "count": {"options": {}, "list_ids": True},
    "bytes": {"options": {"chunk_bytes": 3000}, "list_ids": True},
    "unlisted": {"options": {}, "list_ids": False},
}


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    """Do not wait for the disk: a killed process loses nothing that it had written."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def ingest(folder, *, mode="count", workers=1, resume=False, num_items=5, **more):
    adapter = FrameAdapter(
        num_items=num_items, num_frames=2, bad=[3], list_ids=MODES[mode]["list_ids"]
    )
    return GulpIngestor(
        adapter, folder, 2, workers, resume=resume, **MODES[mode]["options"], **more
    ).run()


def committed_jpegs(folder):
    """Open the directory, which must work, and give the bytes of each frame."""
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_jpegs(id_) for id_ in directory.chunk_lookup}


def committed_items(folder):
    """Open the directory, which must work, and read everything that it says it has."""
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_clip(id_) for id_ in directory.chunk_lookup}


@pytest.mark.parametrize("mode", MODES)
def test_killed_at_every_operation_and_resumed_gives_the_undisturbed_bytes(
    tmp_path, mode
):
    ingest(tmp_path / "whole", mode=mode)
    expected = content(tmp_path / "whole")
    pixels = committed_items(tmp_path / "whole")
    # The quick form takes every operation for the plain way of cutting chunks.
    for number in range(1, 1000, 1 if LONG or mode == "count" else 3):
        folder = tmp_path / str(number)

        def killed(folder=folder, number=number):
            kill_at_operation(number)
            ingest(folder, mode=mode)

        status = in_child(killed)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        for id_, clip in committed_items(folder).items():
            assert np.array_equal(clip, pixels[id_])
        ingest(folder, mode=mode, resume=True)
        assert content(folder) == expected, number
    assert number > 40  # the operations were really counted


@pytest.mark.parametrize("where", ["parent", "worker"])
def test_parent_or_worker_killed_at_every_operation_and_resumed(tmp_path, where):
    ingest(tmp_path / "whole", workers=2)
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    kills = 0
    for number in range(1, 1000, 1 if LONG else 2):
        folder = tmp_path / str(number)

        def killed(folder=folder, number=number):
            kill_at_operation(number, where=where)
            try:
                ingest(folder, workers=2)
            except IngestError as error:
                if "run again with resume=True" not in str(error):
                    raise
                os._exit(7)

        status = in_child(killed)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) in ((0,) if where == "parent" else (0, 7))
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            break
        kills += 1
        assert jpegs.items() >= committed_jpegs(folder).items()
        ingest(folder, workers=2, resume=True)
        assert content(folder) == expected, number
    assert kills > 10


@pytest.mark.parametrize("mode", MODES if LONG else ["count"])
def test_killed_at_every_operation_of_resuming_and_resumed_again(tmp_path, mode):
    ingest(tmp_path / "whole", mode=mode)
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    kills = 0
    for first in range(4, 90, 6 if LONG else 40):
        begun = tmp_path / f"begun{first}"

        def killed(begun=begun, first=first):
            kill_at_operation(first)
            ingest(begun, mode=mode)

        if os.WIFEXITED(in_child(killed)):
            break
        for number in range(1, 1000):
            folder = tmp_path / f"{first} {number}"
            shutil.copytree(begun, folder)
            committed = committed_jpegs(folder)

            def killed_again(folder=folder, number=number):
                kill_at_operation(number)
                ingest(folder, mode=mode, resume=True)

            status = in_child(killed_again)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                assert content(folder) == expected
                break
            kills += 1
            found = committed_jpegs(folder)
            assert committed.items() <= found.items() <= jpegs.items()
            ingest(folder, mode=mode, resume=True)
            assert content(folder) == expected, (first, number)
            shutil.rmtree(folder)
    assert kills > 60


def test_killed_again_and_again_while_resuming_it_still_gets_there(tmp_path):
    ingest(tmp_path / "whole")
    folder = tmp_path / "killed"
    for attempt in range(300):

        def killed(attempt=attempt):
            # Far enough, now and then, to come from one lasting step to the next.
            kill_at_operation(12 + attempt % 29)
            ingest(folder, resume=attempt > 0)

        status = in_child(killed)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
    assert 3 < attempt < 299
    assert content(folder) == content(tmp_path / "whole")


def test_items_that_were_stored_are_not_read_again(tmp_path):
    def killed():
        kill_at_operation(38)
        ingest(tmp_path, num_items=9)

    assert os.WIFSIGNALED(in_child(killed))
    lost = 9 - 1  # one item cannot be read
    report = ingest(tmp_path, resume=True, num_items=9)
    assert report.items == lost
    assert 2 <= report.resumed < lost


@pytest.mark.parametrize(
    "kind", ["ingest.journal", "chunk_*.journal.*", "chunk_*.gulp.*"]
)
def test_a_changed_byte_in_what_an_interrupted_run_left_costs_no_right_byte(
    tmp_path, kind
):
    ingest(tmp_path / "whole", num_items=9)
    expected = content(tmp_path / "whole")

    def killed():
        kill_at_operation(46)
        ingest(tmp_path / "begun", num_items=9)

    assert os.WIFSIGNALED(in_child(killed))
    (path,) = (tmp_path / "begun").glob(kind)
    data = path.read_bytes()
    assert len(data) > 300
    rng = random.Random(7)
    right = refused = tried = 0
    folder = tmp_path / "resumed"
    for at in range(len(data)) if LONG else rng.sample(range(len(data)), 40):
        shutil.copytree(tmp_path / "begun", folder)
        damaged = bytearray(data)
        damaged[at] ^= rng.choice([1, 16, 128, 255])
        (folder / path.name).write_bytes(damaged)
        tried += 1
        try:
            ingest(folder, num_items=9, resume=True)
        except MetaFileError as error:
            refused += "ingest.journal is damaged" in str(error)
        else:
            assert content(folder) == expected, at
            right += 1
        shutil.rmtree(folder)
    assert right + refused == tried
    assert refused == 0 or kind == "ingest.journal"


SCRIPT = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
adapter = FrameAdapter(num_items=150, num_frames=20, height=64, width=96, bad=(7,))
GulpIngestor(adapter, sys.argv[1], 4, int(sys.argv[2]), resume="-r" in sys.argv).run()
"""


def start(folder, workers, *more, script=SCRIPT):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(workers), *more],
        start_new_session=True,
    )


def children_of(pid):
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found.split()]


class Larger(FrameAdapter):
    """150 items of 20 frames, one of which cannot be read; some 6 MB."""

    def __init__(self):
        super().__init__(num_items=150, num_frames=20, height=64, width=96, bad=(7,))


def run_larger(folder, *, resume=False):
    """Ingest, in this process and two workers."""
    try:
        GulpIngestor(Larger(), folder, 4, 2, resume=resume).run()
    except IngestError as error:
        if "run again with resume=True" not in str(error):
            raise
        os._exit(7)


def kill_at_a_moment(work, victim, moment):
    """Kill a forked process, or a worker of it, so many seconds after its beginning.

    Returns
    -------
    bool
        Whether it was in time.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            work()
            status = 0
        finally:
            os._exit(status)
    time.sleep(moment)
    target = pid
    if victim == "worker":
        workers = children_of(pid)
        target = workers[int(1e6 * moment) % len(workers)] if workers else 0
    if target:
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) in (0, 7)
        return os.WEXITSTATUS(status) == 7
    return True


@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_killed_at_random_moments_and_while_resuming(tmp_path, victim):
    began = time.monotonic()
    run_larger(tmp_path / "whole")
    duration = time.monotonic() - began
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    rng = np.random.default_rng(5)
    wanted = int(os.environ.get("GULPIO2_KILLS", 200)) if LONG else 3
    trials = kills = kills_while_resuming = kept = 0
    while min(kills, kills_while_resuming) < wanted:
        folder = tmp_path / f"killed {kills} {kills_while_resuming} {trials}"
        trials += 1
        moment = rng.uniform(0, duration)
        begin = functools.partial(run_larger, folder)
        kills += kill_at_a_moment(begin, victim, moment)
        committed = committed_jpegs(folder)
        assert committed.items() <= jpegs.items()
        kept += len(committed)
        moment = rng.uniform(0, duration * (1 - len(committed) / len(jpegs)) + 0.01)
        go_on = functools.partial(run_larger, folder, resume=True)
        kills_while_resuming += kill_at_a_moment(go_on, victim, moment)
        found = committed_jpegs(folder)
        assert committed.items() <= found.items() <= jpegs.items()
        run_larger(folder, resume=True)
        assert content(folder) == expected
        shutil.rmtree(folder, ignore_errors=True)
    assert kept > kills  # not all of them came before there was anything to lose


def test_workers_end_with_a_killed_parent(tmp_path):
    process = start(tmp_path, 2)
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
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        sys.setswitchinterval(1000)  # no other thread comes in between
        library = ctypes.PyDLL(None)

        def slow(fd, data):
            own = os.open(gate, os.O_RDONLY)
            copy = bytes(data)
            if ".gulp." in str(Path(f"/proc/self/fd/{fd}").readlink()):
                library.flock(own, fcntl.LOCK_SH)
            written = library.write(fd, copy, len(copy))
            os.close(own)
            return written

        os.write = slow
        ingest_slowly(folder)
        os._exit(1)
    while not has_stored_an_item(folder):
        time.sleep(0.01)
    fcntl.flock(closed, fcntl.LOCK_EX)
    time.sleep(0.3)  # until they have come to a write
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
    monkeypatch.setattr(workers_module, "_END_SECONDS", 0.5)
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


ADAPTER = """
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames

class Frames(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=16, num_frames=60, height=240, width=320)
"""


def gulp2(*arguments):
    """Start the command as a user does."""
    package = Path(gulpio2.__path__[0]).parent  # the one that is tested here
    return subprocess.Popen(
        [sys.executable, "-m", "gulpio2.cli.main", *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_within_two_seconds_and_can_be_resumed(tmp_path, workers):
    (tmp_path / "frames.py").write_text(ADAPTER)
    # Two tasks of some seconds each: nothing ends because a task does.
    ingesting = ["ingest", f"{tmp_path}/frames.py:Frames", "--videos-per-chunk", "8"]
    ingesting += ["--num-workers", workers, "--quiet"]
    folder = tmp_path / "stopped"
    process = gulp2(*ingesting, str(folder))
    while not list(folder.glob("chunk_*.gulp.*.partial")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    stopped = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, messages = process.communicate(timeout=30)
    assert time.monotonic() - stopped < 2
    assert process.returncode == 130
    assert "what was stored is intact; --resume goes on with the rest" in messages
    assert "Traceback" not in messages
    for arguments in (["--resume", str(folder)], [str(tmp_path / "whole")]):
        process = gulp2(*ingesting, *arguments)
        assert (process.communicate(timeout=60), process.returncode)[1] == 0
    assert content(folder) == content(tmp_path / "whole")
