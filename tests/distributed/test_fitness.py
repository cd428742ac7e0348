"""Workers that lack what a run needs, at its start and later."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gulpio2 import GulpIngestor
from gulpio2.errors import GulpError, IngestError
from gulpio2.ingest.cluster import client_of, connect, count_threads
from gulpio2.testing import FrameAdapter
from tests.distributed.clusters import (
    SlowAdapter,
    begun,
    cluster,
    start_worker,
    wait_for,
)

pytest.importorskip("distributed", reason="the extra distributed is not installed")


NO_MODULE = "raise ModuleNotFoundError('there is no such module')"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"gulpio2/__init__.py": NO_MODULE},
            r"the worker tcp://\S+ has none \(there is no such module\)",
            id="no package",
        ),
        pytest.param(
            {"gulpio2/__init__.py": "raise OSError('stale file handle')"},
            r"the worker tcp://\S+ does not answer: stale file handle",
            id="no answer",
        ),
        pytest.param(
            {
                "gulpio2/__init__.py": "",
                "gulpio2/__version__.py": "__version__ = '0.9.1'",
            },
            r"the worker tcp://\S+ has version 0\.9\.1",
            id="another version",
        ),
        pytest.param(
            {"the_adapter.py": NO_MODULE},
            r"cannot make the adapter.*ModuleNotFoundError.*PYTHONPATH",
            id="no adapter",
        ),
        pytest.param(
            {
                "the_adapter.py": "from gulpio2.testing import FrameAdapter\n"
                "class Own(FrameAdapter):\n"
                "    def iter_data(self, slice_element=None):\n"
                "        yield from super().iter_data(slice_element)"
            },
            r"tcp://\S+ has another version of the_adapter\.Own\.iter_data than",
            id="another adapter",
        ),
    ],
)
def test_workers_that_cannot_do_the_work_are_told_of_and_not_waited_for(
    tmp_path, monkeypatch, files, message
):
    for name, text in files.items():
        path = tmp_path / "modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "the_adapter.py").write_text(
        "from gulpio2.testing import FrameAdapter\nclass Own(FrameAdapter): pass"
    )
    (tmp_path / "dask").mkdir()
    with cluster(tmp_path / "dask", modules=[tmp_path / "modules"]) as address:
        monkeypatch.syspath_prepend(tmp_path / "ours")
        monkeypatch.delitem(sys.modules, "the_adapter", raising=False)
        adapter = importlib.import_module("the_adapter").Own(num_items=4)
        with connect(address) as (executor, num_workers):
            ingestor = GulpIngestor(
                adapter, tmp_path / "out", 2, num_workers, executor=executor
            )
            with pytest.raises(GulpError, match=message):
                ingestor.run()
    assert GulpIngestor(adapter, tmp_path / "out", 2, 1).run().items == 4


_SCRIPT = """
import sys
from distributed import Client
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter

class Own(FrameAdapter):
    pass

if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        executor = client.get_executor()
        GulpIngestor(Own(num_items=2), sys.argv[2], 1, 1, executor=executor).run()
"""


def test_an_adapter_of_the_script_itself_is_to_be_moved_to_a_module(tmp_path):
    (tmp_path / "dask").mkdir()
    (tmp_path / "script.py").write_text(_SCRIPT)
    with cluster(tmp_path / "dask") as address:
        command = [sys.executable, tmp_path / "script.py", address, tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot make the adapter" in done.stderr
    assert "of the script or notebook that began the run" in done.stderr
    assert not (tmp_path / "out").exists()


class FromFiles(SlowAdapter):
    """Has a file for each item, and cannot make the item without it."""

    def __init__(self, notes, folder, **options):
        super().__init__(notes, **options)
        self.folder = folder

    def item_source(self, position):
        return os.path.join(self.folder, str(position))  # noqa: PTH118  # as it is given

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            with open(self.item_source(item["meta"]["n"])):  # noqa: PTH123  # the same
                yield item


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Make the folders of a run, and stand where its relative paths begin."""
    for name in ("dask", "notes", "elsewhere", "sources"):
        (tmp_path / name).mkdir()
    for n in range(60):
        (tmp_path / "sources" / str(n)).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_worker_that_does_not_see_the_sources_is_named_before_anything_is_begun(
    folders,
):
    adapter = FromFiles(folders / "notes", "sources", seconds=0)
    currents = [folders, folders / "elsewhere"]
    with (
        cluster(folders / "dask", 2, currents=currents) as address,
        connect(address) as (executor, _),
    ):
        ingestor = GulpIngestor(adapter, "out", 3, 2, executor=executor)
        message = r"tcp://\S+ does not see 'sources/0'.*relative.*absolute paths"
        with pytest.raises(IngestError, match=message):
            ingestor.run()
        assert not begun(folders / "notes")
        assert not (folders / "out").exists()
        adapter.folder = str(folders / "sources")
        assert ingestor.run().items == 12


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_a_path_that_is_another_one_there_is_told_of_as_such(folders):
    # An absolute path that every process has something else at.
    adapter = FromFiles(folders / "notes", "/dev/fd", num_items=900)
    with (folders / "sources" / "0").open() as file:
        os.dup2(file.fileno(), 899)
    try:
        with (
            cluster(folders / "dask", 1) as address,
            connect(address) as (executor, _),
            pytest.raises(IngestError, match=r"does not see '/dev/fd/899'.*mount the"),
        ):
            GulpIngestor(adapter, "out", 300, 2, executor=executor).run()
    finally:
        os.close(899)


# The module is in its place before the package is imported.
OTHER_VERSION = """
import sys, types
own = sys.modules["gulpio2.__version__"] = types.ModuleType("gulpio2.__version__")
own.__version__ = "0.9.1"
"""


@pytest.mark.parametrize(
    ("current", "program", "message"),
    [
        pytest.param("elsewhere", "", r"does not see 'sources/0'", id="no sources"),
        pytest.param(".", OTHER_VERSION, r"has version 0\.9\.1", id="another version"),
    ],
)
def test_one_that_comes_later_ends_the_run_and_costs_no_item(
    folders, current, program, message
):
    (folders / "elsewhere" / "sitecustomize.py").write_text(program)
    adapter = FromFiles(folders / "notes", "sources", num_items=60, seconds=0.5)
    processes: list[Any] = []

    def join():
        wait_for(lambda: len(begun(folders / "notes")) >= 4)
        modules = [folders / "elsewhere"] if program else []
        processes.append(start_worker(folders / "dask", modules, folders / current))

    with (
        cluster(folders / "dask", 1, processes, currents=[folders]) as address,
        connect(address) as (executor, _),
    ):
        thread = threading.Thread(target=join)
        thread.start()
        message = rf"worker tcp://\S+ {message}.*run again with resume=True"
        with pytest.raises(IngestError, match=message):
            GulpIngestor(adapter, "out", 1, 1, executor=executor).run()
        thread.join()
    assert list((folders / "out").glob("data_*.gulp"))
    adapter.seconds = 0
    report = GulpIngestor(adapter, "out", 1, 2, resume=True).run()
    assert (report.items, report.failures) == (60, [])
    assert report.resumed > 0


MOUNTED = {
    "another folder": "mount -t tmpfs none {}",
    "for reading only": "mount --bind {0} {0} && mount -o remount,ro,bind {0}",
}


@pytest.fixture(params=[*MOUNTED])
def mounted(request, folders):
    """Give a word of the message, and what to do before a worker is started."""
    (folders / "out").mkdir()
    after = MOUNTED[request.param].format(folders / "out")
    try:
        words = ["unshare", "-m", "sh", "-c", after]
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as cause:
        pytest.skip(f"nothing can be mounted here: {cause}")
    return request.param, after


def test_a_worker_with_another_output_folder_is_named_before_anything_is_begun(
    folders, mounted
):
    message, after = mounted
    adapter = SlowAdapter(folders / "notes", seconds=0)
    processes: list[Any] = []
    with cluster(folders / "dask", 1, processes) as address:
        processes.append(start_worker(folders / "dask", after=after))
        with connect(address) as (executor, _):
            wait_for(lambda: count_threads(client_of(executor)) == 2)
            ingestor = GulpIngestor(adapter, "out", 3, 2, executor=executor)
            with pytest.raises(IngestError, match=rf"worker tcp://\S+ .*{message}"):
                ingestor.run()
            assert not begun(folders / "notes")
            assert not list((folders / "out").iterdir())
            processes[-1].kill()
            wait_for(lambda: count_threads(client_of(executor)) == 1)
            assert ingestor.run().items == 12


def test_one_that_comes_later_with_another_output_folder_ends_the_run(folders, mounted):
    _, after = mounted
    adapter = SlowAdapter(folders / "notes", num_items=60, seconds=0.3)
    processes: list[Any] = []

    def join():
        wait_for(lambda: len(begun(folders / "notes")) >= 4)
        processes.append(start_worker(folders / "dask", after=after))

    with (
        cluster(folders / "dask", 1, processes) as address,
        connect(address) as (executor, _),
    ):
        thread = threading.Thread(target=join)
        thread.start()
        with pytest.raises(GulpError, match=r"the worker tcp://\S+"):
            GulpIngestor(adapter, "out", 1, 1, executor=executor).run()
        thread.join()
    adapter.seconds = 0
    report = GulpIngestor(adapter, "out", 1, 2, resume=True).run()
    assert (report.items, report.failures) == (60, [])


def test_workers_that_end_while_they_are_asked_are_gone(folders):
    processes: list[Any] = []
    with (
        cluster(folders / "dask", 2, processes) as address,
        connect(address) as (executor, _),
    ):
        victim = processes[2]
        os.kill(victim.pid, signal.SIGSTOP)  # it takes the question, and is silent
        timer = threading.Timer(1, victim.kill)
        timer.start()
        began = time.monotonic()
        adapter = FrameAdapter(num_items=4)
        report = GulpIngestor(adapter, "out", 2, 1, executor=executor).run()
        timer.join()
    assert time.monotonic() - began >= 1
    assert report.items == 4
