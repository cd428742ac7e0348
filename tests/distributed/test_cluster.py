"""A real Dask scheduler with worker processes of its own."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.errors import GulpError, IngestError
from gulpio2.ingest.cluster import connect
from gulpio2.testing import FrameAdapter, make_frames
from gulpio2.testing.faults import content

pytest.importorskip("distributed", reason="the extra distributed is not installed")


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
    with contextlib.suppress(FileNotFoundError):
        lines = (notes / "begun").read_text().splitlines()
        return [tuple(map(int, line.split())) for line in lines]
    return []


def start(folder, program, *words, modules=()):
    quiet = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}
    path = os.pathsep.join([*map(str, modules), *sys.path])
    environment = {**os.environ, **quiet, "PYTHONPATH": path}
    module = f"distributed.cli.{program}"
    command = [sys.executable, "-m", module, "--no-dashboard", *words]
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log
        )


def start_worker(folder, modules=()):
    words = ["--nthreads", "1", "--nworkers", "1", "--no-nanny"]
    words += ["--scheduler-file", str(folder / "scheduler.json")]
    words += ["--local-directory", str(folder)]
    return start(folder, "dask_worker", *words, modules=modules)


@contextlib.contextmanager
def cluster(folder, num_workers=2, processes=None, modules=()):
    """Start a scheduler and workers as anybody would; give the address.

    What was started is put into `processes`: the scheduler, then the workers. These
    look for modules in the folders `modules` first.
    """
    file = folder / "scheduler.json"
    processes = [] if processes is None else processes
    try:
        words = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        processes.append(start(folder, "dask_scheduler", *words))
        for _ in range(num_workers):
            processes.append(start_worker(folder, modules))
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


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.mark.parametrize("options", [{}, {"chunk_bytes": 4000}], ids=["count", "bytes"])
@pytest.mark.parametrize("list_ids", [True, False])
def test_the_bytes_are_those_of_a_local_run(tmp_path, address, options, list_ids):
    adapter = FrameAdapter(num_items=13, bad=[5], list_ids=list_ids)
    GulpIngestor(adapter, tmp_path / "local", 3, 1, **options).run()
    counts = []
    with connect(address) as (executor, num_workers):
        assert num_workers == 2
        report = GulpIngestor(
            adapter,
            tmp_path / "cluster",
            3,
            num_workers,
            executor=executor,
            progress=lambda **given: counts.append(given),
            **options,
        ).run()
    assert content(tmp_path / "cluster") == content(tmp_path / "local")
    assert [failure.id for failure in report.failures] == ["item5"]
    assert sum(given.get("items", 0) for given in counts) == 12
    assert sum(given.get("failures", 0) for given in counts) == 1
    assert sum(given.get("frames", 0) for given in counts) == report.frames


def test_the_executor_of_a_users_own_client_works_too(tmp_path, address):
    import distributed

    adapter = FrameAdapter(num_items=5)
    with distributed.Client(address, set_as_default=False) as client:
        report = GulpIngestor(
            adapter, tmp_path / "out", 2, 2, executor=client.get_executor()
        ).run()
    assert report.items == 5


def test_a_worker_that_is_killed_costs_nothing(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    adapter = SlowAdapter(notes)
    GulpIngestor(SlowAdapter(notes, seconds=0), tmp_path / "local", 3, 1).run()
    (notes / "begun").unlink()
    (tmp_path / "dask").mkdir()
    killed = []

    def kill():
        _wait_for(lambda: len(begun(notes)) >= 4)
        victim = begun(notes)[-1][0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    with cluster(tmp_path / "dask") as address, connect(address) as (executor, _):
        thread = threading.Thread(target=kill)
        thread.start()
        report = GulpIngestor(
            adapter, tmp_path / "cluster", 3, 2, executor=executor
        ).run()
        thread.join()
    assert killed
    workers = {pid for pid, _ in begun(notes)}
    assert len(workers) == 2
    again = [n for _, n in begun(notes)]
    assert len(again) > len(set(again)), "what the dead worker had begun is done again"
    assert report.items == 12
    ours = content(tmp_path / "cluster")
    theirs = content(tmp_path / "local")
    del ours["gulp.json"], theirs["gulp.json"]  # the adapters differ in `seconds`
    assert ours == theirs
    with GulpDirectory(tmp_path / "cluster") as directory:
        assert len(directory) == 12


@pytest.fixture
def lost(tmp_path):
    """Give a function that ingests while some processes of a cluster are killed."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "dask").mkdir()

    def lost(victims, then=lambda: None):
        processes: list[subprocess.Popen[bytes]] = []

        def kill():
            _wait_for(lambda: len(begun(notes)) >= 4)
            for process in processes[victims]:
                process.kill()
            for process in processes[victims]:
                process.wait()
            then_started = then()
            if then_started is not None:
                processes.append(then_started)

        adapter = SlowAdapter(notes)
        with cluster(tmp_path / "dask", 2, processes) as address:
            thread = threading.Thread(target=kill)
            thread.start()
            try:
                with connect(address) as (executor, _):
                    return GulpIngestor(
                        adapter, tmp_path / "out", 3, 2, executor=executor
                    ).run()
            finally:
                thread.join()

    return lost


def test_when_all_workers_that_had_the_adapter_are_killed_others_go_on(tmp_path, lost):
    report = lost(slice(1, None), then=lambda: start_worker(tmp_path / "dask"))
    assert report.items == 12
    with GulpDirectory(tmp_path / "out") as directory:
        assert len(directory) == 12


def test_a_scheduler_that_is_killed_ends_the_run_so_that_it_can_be_resumed(
    tmp_path, lost
):
    with pytest.raises(IngestError, match=r"scheduler ended.*resume=True"):
        lost(slice(0, 1))
    adapter = SlowAdapter(tmp_path / "notes")
    report = GulpIngestor(adapter, tmp_path / "out", 3, 1, resume=True).run()
    assert report.items == 12


class CrashingAdapter(FrameAdapter):
    """One item ends the process that reads it."""

    def item_ids(self):
        return super().item_ids()

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item4":
                faulthandler.disable()  # no message of a fault that is meant
                ctypes.string_at(0)
            yield item


def test_an_item_that_costs_all_workers_is_gone_past_on_one_machine(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    (tmp_path / "dask").mkdir()
    adapter = CrashingAdapter(num_items=8)
    with (
        cluster(tmp_path / "dask") as address,
        connect(address) as (executor, _),
        pytest.raises(IngestError, match=r"several workers.*On one machine.*names it"),
    ):
        GulpIngestor(adapter, tmp_path / "out", 2, 2, executor=executor).run()
    report = GulpIngestor(adapter, tmp_path / "out", 2, 2, resume=True).run()
    assert [failure.position for failure in report.failures] == [4]
    assert report.items == 7


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


def test_an_interrupt_cancels_the_tasks(tmp_path, address):
    notes = tmp_path / "notes"
    notes.mkdir()
    adapter = SlowAdapter(notes, num_items=60, seconds=0.1)

    def interrupt_later():
        _wait_for(lambda: len(begun(notes)) >= 3)
        os.kill(os.getpid(), signal.SIGINT)

    with connect(address) as (executor, _):
        ingestor = GulpIngestor(adapter, tmp_path / "out", 30, 2, executor=executor)
        timer = threading.Thread(target=interrupt_later)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ingestor.run()
        timer.join()
        time.sleep(0.5)
        at_rest = len(begun(notes))
        time.sleep(0.5)
        assert len(begun(notes)) == at_rest < 60
    assert not list((tmp_path / "out").glob("data_*.gulp"))
    report = GulpIngestor(adapter, tmp_path / "out", 30, 2, resume=True).run()
    assert report.items == 60


def _wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_an_address_where_nothing_answers_is_named(monkeypatch):
    monkeypatch.setattr("gulpio2.ingest.cluster._CONNECT_SECONDS", 1)
    with (
        pytest.raises(IngestError, match=r"127\.0\.0\.1:9"),
        connect("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize("address", ["nonsense", "", "tcp://host", "host 8786"])
def test_what_is_no_address_is_refused_at_once(address):
    with pytest.raises(IngestError, match="no address of a Dask scheduler"):
        connect(address).__enter__()


def test_a_cluster_without_workers_is_refused(tmp_path):
    with (
        cluster(tmp_path, 0) as address,
        pytest.raises(IngestError, match="no workers"),
        connect(address),
    ):
        pass
