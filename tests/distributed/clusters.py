"""A Dask scheduler and workers, started as anybody would start them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from itertools import cycle

from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.testing import make_frames

__all__ = ["SlowAdapter", "begun", "cluster", "start_worker", "wait_for"]


class SlowAdapter(AbstractDatasetAdapter):
    """Takes its time, and leaves a note of who began an item."""

    def __init__(self, notes, num_items=12, seconds=0.1):
        self.notes = notes
        self.num_items = num_items
        self.seconds = seconds

    def __len__(self):
        return self.num_items

    def item_ids(self):
        return [f"item{n}" for n in range(self.num_items)]

    def iter_data(self, slice_element=None):
        for n in range(*(slice_element or slice(None)).indices(self.num_items)):
            with (self.notes / "begun").open("a") as notes:
                notes.write(f"{os.getpid()} {n}\n")
            time.sleep(self.seconds)
            frames = make_frames(3)
            yield {"meta": {"n": n}, "frames": frames, "id": f"item{n}"}


def begun(notes):
    """List the process and the position of each item that was begun."""
    with contextlib.suppress(FileNotFoundError):
        lines = (notes / "begun").read_text().splitlines()
        return [tuple(map(int, line.split())) for line in lines]
    return []


def wait_for(condition):
    """Wait until something holds; a minute at most."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def start(folder, program, *words, modules=(), current=None, after=""):
    quiet = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}
    path = os.pathsep.join([*map(str, modules), *sys.path])
    environment = {**os.environ, **quiet, "PYTHONPATH": path}
    module = f"distributed.cli.{program}"
    command = [sys.executable, "-m", module, "--no-dashboard", *words]
    if after:  # in a view of the file systems that is its own
        command = ["unshare", "-m", "sh", "-c", f'{after} && exec "$@"', "sh", *command]
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=current or folder, env=environment, stdout=log, stderr=log
        )


def start_worker(folder, modules=(), current=None, after=""):
    """Start a worker of the cluster in a folder.

    It looks for modules in the folders `modules` first, and its current folder is
    `current`, or that of the cluster. Where there are commands `after` which it is to
    be started, what they mount is there for it alone.
    """
    words = ["--nthreads", "1", "--nworkers", "1", "--no-nanny"]
    words += ["--scheduler-file", str(folder / "scheduler.json")]
    words += ["--local-directory", str(folder)]
    return start(
        folder, "dask_worker", *words, modules=modules, current=current, after=after
    )


@contextlib.contextmanager
def cluster(folder, num_workers=2, processes=None, modules=(), currents=(None,)):
    """Start a scheduler and workers; give the address.

    What was started is put into `processes`, the scheduler, then the workers, and all
    that is in there at the end is killed. The workers have the folders `currents` in
    turn.
    """
    file = folder / "scheduler.json"
    processes = [] if processes is None else processes
    try:
        words = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        processes.append(start(folder, "dask_scheduler", *words))
        for _, current in zip(range(num_workers), cycle(currents), strict=False):
            processes.append(start_worker(folder, modules, current))
        import distributed

        deadline = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(file), timeout=60) as client:
            if num_workers:
                client.wait_for_workers(num_workers, timeout=60)
            address = client.scheduler.address
        yield address
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
