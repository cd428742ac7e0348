"""What the system may refuse of what worker processes need."""

import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import threading
import time

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import GulpError, IngestError
from gulpio2.ingest.estimate import LONG_RUN
from gulpio2.testing import FrameAdapter
from tests.faults.operations import in_child

PROGRAM = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.errors import IngestError
from gulpio2.testing import FrameAdapter
try:
    GulpIngestor(FrameAdapter(num_items=6), sys.argv[1], 2, 2).run()
except IngestError as error:
    print(error)
"""


def ingest(folder, num_workers, **options):
    adapter = FrameAdapter(num_items=6)
    return GulpIngestor(adapter, folder, 2, num_workers, **options).run()


def test_too_few_open_files_are_told_of_wherever_they_end(tmp_path):
    """The limit is put behind every number of files, until a run has enough."""
    ingest(tmp_path / "before", 2)  # what is imported at the first need

    def run():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
        said = ""
        try:
            ingest(folder, 2)
        except GulpError as error:
            said = str(error)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        (tmp_path / "said").write_text(said)
        with pytest.raises(ChildProcessError):  # none of those that could be started
            os.waitpid(-1, os.WNOHANG)

    told = []
    for number in range(3, 500):
        folder = tmp_path / str(number)
        assert in_child(run) == 0
        told.append((tmp_path / "said").read_text())
        if not told[-1]:
            break
    assert len(GulpDirectory(folder)) == 6
    (said, *_) = (text for text in told if "worker processes cannot be" in text)
    assert "the 2 worker processes cannot be started: Too many open files" in said
    assert "Raise the limit of open files" in said
    assert "num_workers=1" in said


def test_too_small_files_are_told_of_with_their_limit(tmp_path):
    """What workers share is such a file."""

    def run():
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit))
        with pytest.raises(IngestError, match=r"File too large. Raise .*ulimit -f"):
            ingest(tmp_path, 2)

    assert in_child(run) == 0
    assert ingest(tmp_path, 2, resume=True).items == 6


@pytest.mark.parametrize("num_items", [6, LONG_RUN])
def test_a_process_that_may_start_none_is_told_to_do_the_work_itself(
    tmp_path, num_items
):
    """As a worker of another pool: with one worker, it does so unasked."""
    adapter = FrameAdapter(num_items=num_items, num_frames=1)

    def run():
        with pytest.raises(IngestError, match=r"daemonic.* with num_workers=1 "):
            GulpIngestor(adapter, tmp_path, 200, 2).run()
        GulpIngestor(adapter, tmp_path, 200, 1, apart=True, resume=True).run()

    context = multiprocessing.get_context("fork")
    process = context.Process(target=run, daemon=True)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert len(GulpDirectory(tmp_path)) == num_items


def test_a_dev_shm_that_takes_nothing_is_told_of(tmp_path):
    """Python's pool has semaphores there."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare program")
    mount = 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"'
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", *program],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "the 2 worker processes cannot be started: Read-only file system. What they "
        "share needs room in /dev/shm, and leave to write there, or take fewer workers"
    )
    # As it says, one worker does without, and the run can be resumed.
    report = ingest(tmp_path, 1, resume=True)
    assert (report.items, len(GulpDirectory(tmp_path))) == (6, 6)


def test_a_pool_that_cannot_start_its_last_thread_is_not_waited_for(
    tmp_path, monkeypatch
):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "QueueFeederThread":
            raise RuntimeError("can't start new thread")
        start(thread)

    def run():
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(IngestError, match=r"could not start a thread.*resume=True"):
            ingest(tmp_path, 2)

    began = time.monotonic()
    assert in_child(run) == 0
    assert time.monotonic() - began < 10
    assert ingest(tmp_path, 2, resume=True).items == 6


UNMADE = """
import multiprocessing, sys
from gulpio2 import GulpIngestor
from gulpio2.errors import AdapterContractError
from gulpio2.testing import FrameAdapter

class Unmade(FrameAdapter):
    def __setstate__(self, state):
        raise RuntimeError("there is no connection here")

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[2])
    try:
        GulpIngestor(Unmade(num_items=6), sys.argv[1], 2, 2).run()
    except AdapterContractError as error:
        print(error)
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_an_adapter_that_cannot_be_made_in_a_worker_is_told_of(tmp_path, start):
    (tmp_path / "unmade.py").write_text(UNMADE)
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "unmade.py", out, start],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(
        "a worker process cannot make the adapter that it was sent: RuntimeError: "
        "there is no connection here"
    )
    assert "Traceback" not in done.stderr
    assert not (out / "ingest.journal").exists()
