"""Kill -9 of an ingest, anywhere: nothing committed is lost, and it can be resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.testing import FrameAdapter
from gulpio2.testing.faults import content, in_child, kill_at_operation

MODES: dict[str, dict[str, Any]] = {
    "count": {"options": {}, "list_ids": True},
    "bytes": {"options": {"chunk_bytes": 3000}, "list_ids": True},
    "unlisted": {"options": {}, "list_ids": False},
}


def ingest(folder, *, mode="count", workers=1, resume=False, num_items=5, **more):
    adapter = FrameAdapter(
        num_items=num_items, num_frames=2, bad=[3], list_ids=MODES[mode]["list_ids"]
    )
    return GulpIngestor(
        adapter, folder, 2, workers, resume=resume, **MODES[mode]["options"], **more
    ).run()


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
    for number in range(1, 1000):
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


SCRIPT = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter
adapter = FrameAdapter(num_items=150, num_frames=20, height=64, width=96, bad=(7,))
GulpIngestor(adapter, sys.argv[1], 4, int(sys.argv[2]), resume="-r" in sys.argv).run()
"""


def start(folder, workers, *more, script=SCRIPT):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(workers), *more],
        start_new_session=True,
    )


def children_of(process):
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_killed_at_a_random_moment_with_workers_and_resumed(tmp_path, victim):
    whole = start(tmp_path / "whole", 2)
    assert whole.wait() == 0
    rng = np.random.default_rng(5)
    folder = tmp_path / victim
    kills = 0
    for attempt in range(4):
        process = start(folder, 2, *(["-r"] if attempt else []))
        deadline = time.monotonic() + 20
        while not children_of(process) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(rng.uniform(0.02, 0.2))
        try:
            pid = process.pid if victim == "parent" else children_of(process)[0]
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError, IndexError):
            pass
        if process.wait(timeout=30) == 0:
            break
        kills += 1
        committed_items(folder)
    assert kills
    assert start(folder, 2, "-r").wait() == 0
    assert content(folder) == content(tmp_path / "whole")


def test_workers_end_with_a_killed_parent(tmp_path):
    process = start(tmp_path, 2)
    workers: list[int] = []
    deadline = time.monotonic() + 20
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = children_of(process)
        assert process.poll() is None
    process.kill()
    process.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_within_two_seconds_and_can_be_resumed(tmp_path, workers):
    # Two tasks of some seconds each: nothing ends because a task does.
    script = (
        SCRIPT.replace("sys.argv[1], 4", "sys.argv[1], 12")
        .replace("num_items=150, num_frames=20", "num_items=24, num_frames=60")
        .replace("height=64, width=96", "height=240, width=320")
    )
    folder = tmp_path / "stopped"
    process = start(folder, workers, script=script)
    while not list(folder.glob("chunk_*.gulp.*.partial")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    stopped = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    assert process.wait(timeout=30) != 0
    assert time.monotonic() - stopped < 2
    assert start(folder, 2, "-r", script=script).wait() == 0
    assert start(tmp_path / "whole", 2, script=script).wait() == 0
    assert content(folder) == content(tmp_path / "whole")
