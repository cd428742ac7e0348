"""Ctrl-C ends an ingest soon, wherever it comes, and the ingest can be resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gulpio2
from tests.faults.operations import content

ADAPTER = """
import time
from pathlib import Path
from gulpio2.testing import FrameAdapter

class Frames(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=16, num_frames=6, height=240, width=320)

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if Path(__file__).with_name("slow").exists():
                time.sleep(0.5)  # nothing ends because the work does
            yield item
"""


SWALLOWING = """
import os, time
from gulpio2.testing import FrameAdapter

class AtFirst(FrameAdapter):
    def __init__(self):
        swallow()
        super().__init__()

class Later(FrameAdapter):
    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1":
                swallow()
            yield item

def swallow():
    try:
        os.mkdir("begun")
        # Not one long call: an interrupt just before it would be seen after it.
        for _ in range(600):
            time.sleep(0.1)
    except KeyboardInterrupt:
        pass
"""


@pytest.fixture
def gulp2():
    """Start the command as a user does; end it where the test did not."""
    package = Path(gulpio2.__path__[0]).parent  # the one that is tested here
    started = []

    def start(*arguments, folder=None):
        process = subprocess.Popen(
            [sys.executable, "-m", "gulpio2.cli.main", *arguments],
            env={**os.environ, "PYTHONPATH": str(package)},
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_within_two_seconds_and_can_be_resumed(tmp_path, gulp2, workers):
    (tmp_path / "frames.py").write_text(ADAPTER)
    (tmp_path / "slow").touch()
    ingesting = ["ingest", f"{tmp_path}/frames.py:Frames", "--videos-per-chunk", "8"]
    ingesting += ["--num-workers", workers, "--quiet"]
    folder = tmp_path / "stopped"
    process = gulp2(*ingesting, str(folder))
    while not list(folder.glob("chunk_*.gulp.*.partial")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1)  # in the middle of it, with an item stored
    stopped = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, messages = process.communicate(timeout=30)
    assert time.monotonic() - stopped < 2
    assert process.returncode == 130
    (tmp_path / "slow").unlink()
    assert "what was stored is intact; --resume goes on with the rest" in messages
    assert "Traceback" not in messages
    for arguments in (["--resume", str(folder)], [str(tmp_path / "whole")]):
        process = gulp2(*ingesting, *arguments)
        assert (process.communicate(timeout=60), process.returncode)[1] == 0
    assert content(folder) == content(tmp_path / "whole")


def test_ctrl_c_several_times_ends_it_as_once_does(tmp_path, gulp2):
    (tmp_path / "frames.py").write_text(ADAPTER)
    (tmp_path / "slow").touch()
    ingesting = ["ingest", f"{tmp_path}/frames.py:Frames", "--videos-per-chunk", "2"]
    folder = tmp_path / "stopped"
    process = gulp2(*ingesting, "--num-workers", "4", "--quiet", str(folder))
    while len(list(folder.glob("chunk_*.gulp.*.partial"))) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    stopped = time.monotonic()
    while process.poll() is None and time.monotonic() - stopped < 0.9:
        os.killpg(process.pid, signal.SIGINT)  # to the very end of the process
        time.sleep(0.002)
    _, messages = process.communicate(timeout=30)
    assert time.monotonic() - stopped < 2
    assert process.returncode == 130
    assert "what was stored is intact; --resume goes on with the rest" in messages
    assert "Traceback" not in messages


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("adapter", ["AtFirst", "Later"])
def test_an_interrupt_that_an_import_or_an_adapter_swallows_ends_it_all_the_same(
    tmp_path, gulp2, adapter, workers
):
    (tmp_path / "frames.py").write_text(SWALLOWING)
    process = gulp2(
        *("ingest", f"frames.py:{adapter}", "out", "--num-workers", workers),
        folder=tmp_path,
    )
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "what was stored is intact; --resume goes on with the rest" in messages
    assert "Traceback" not in messages
