"""Processes that are not forked import the program first, and may end in that."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gulpio2.testing import make_gulp_directory

# More than the pipe takes that Python writes to a process that it starts.
WORK = {
    "ingest": """
import numpy as np
from gulpio2 import GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter

class Adapter(AbstractDatasetAdapter):
    def __init__(self):
        self.more = bytes(1 << 20)

    def __len__(self):
        return 40

    def iter_data(self, slice_element=None):
        for number in range(40)[slice_element or slice(None)]:
            frames = [np.zeros((16, 16, 3), np.uint8)]
            yield {"meta": {}, "frames": frames, "id": number}

def work():
    GulpIngestor(Adapter(), sys.argv[2], 2, 3)()
""",
    "loader": """
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader

def target(info, more=b""):
    return len(more)

def work():
    dataset = GulpClipDataset(
        sys.argv[2],
        partial(sample_window, clip_length=4),
        target=partial(target, more=bytes(1 << 20)),
    )
    for _ in GulpLoader(dataset, batch_size=2, num_workers=3, output="numpy"):
        pass
""",
}
BEGIN = """
import multiprocessing, os, sys, time
if __name__ == "__mp_main__":
    # In one piece: with PYTHONUNBUFFERED, print writes a line's end on its own.
    os.write(1, b"imported\\n")
    time.sleep(float(sys.argv[3]))
"""
UNGUARDED = "multiprocessing.set_start_method(sys.argv[1], force=True)\nwork()\n"
GUARDED = """
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    work()
"""

each_work = pytest.mark.parametrize("work", WORK)
each_method = pytest.mark.parametrize("method", ["spawn", "forkserver"])


@pytest.fixture
def begin(tmp_path, python, repository):
    """Start a program in a session of its own; what is left of it is killed."""
    begun: list[subprocess.Popen[str]] = []

    def begin(work, text, method, seconds):
        (tmp_path / "program.py").write_text(BEGIN + WORK[work] + text)
        folder = tmp_path / "gulped"
        if work == "loader":
            make_gulp_directory(folder, num_items=13, num_frames=8)
        process = subprocess.Popen(
            [python, tmp_path / "program.py", method, folder, str(seconds)],
            env={**os.environ, "PYTHONPATH": str(repository)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        for number in session(process.pid):
            os.kill(number, signal.SIGKILL)
        process.communicate()


def session(leader: int) -> list[int]:
    """Give the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(of) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def all_end(process: subprocess.Popen[str], seconds: float = 20) -> bool:
    latest = time.monotonic() + seconds
    while session(process.pid) and time.monotonic() < latest:
        time.sleep(0.05)
    return not session(process.pid)


@each_method
@each_work
def test_a_program_without_a_main_guard_ends(begin, work, method):
    process = begin(work, UNGUARDED, method, 0)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    said = {"ingest": "a worker process ended", "loader": "ended with status 1"}
    assert said[work] in errors
    assert all_end(process)


@each_method
@each_work
def test_ctrl_c_while_they_import_is_told_of_once(begin, work, method):
    process = begin(work, GUARDED, method, 1)
    assert process.stdout.readline() == "imported\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert errors.count("Traceback") == 1
    assert all_end(process)
