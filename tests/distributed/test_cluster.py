"""A real Dask scheduler with worker processes of its own."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import IngestError, IngestSettingError
from gulpio2.ingest.cluster import client_of, connect
from gulpio2.testing import FrameAdapter
from tests.distributed.clusters import (
    SlowAdapter,
    begun,
    cluster,
    start_worker,
    wait_for,
)
from tests.faults.operations import content

pytest.importorskip("distributed", reason="the extra distributed is not installed")


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
        wait_for(lambda: len(begun(notes)) >= 4)
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
            wait_for(lambda: len(begun(notes)) >= 4)
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
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]  # as a terminal would show it
    log = logging.getLogger("distributed.client")
    log.addHandler(handler)
    with pytest.raises(IngestError, match=r"scheduler ended.*resume=True"):
        lost(slice(0, 1))
    log.removeHandler(handler)
    assert told == [], "the error says it"
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


def test_an_interrupt_cancels_the_tasks(tmp_path, address):
    notes = tmp_path / "notes"
    notes.mkdir()
    adapter = SlowAdapter(notes, num_items=60, seconds=0.1)

    def interrupt_later():
        wait_for(lambda: len(begun(notes)) >= 3)
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


def test_what_is_done_while_it_is_cancelled_is_no_news(address, caplog):
    from distributed.cfexecutor import _cascade_future

    def fail():
        raise LookupError("something else")

    with connect(address) as (executor, _):
        client: Any = client_of(executor)
        future = client.submit(os.getpid, pure=False)
        future.result()
        cancelled: Future[int] = Future()
        cancelled.cancel()
        cancelled.set_running_or_notify_cancel()
        client.loop.add_callback(_cascade_future, future, cancelled)
        client.loop.add_callback(fail)
        wait_for(lambda: caplog.records)
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert told == ["something else"]


def test_an_address_where_nothing_answers_is_told_of_soon_and_named(
    monkeypatch, caplog
):
    monkeypatch.setattr("gulpio2.ingest.cluster._CONNECT_SECONDS", 1)
    monkeypatch.setattr("gulpio2.ingest.cluster._SILENT_SECONDS", 0.1)
    with (
        pytest.raises(IngestError, match=r"127\.0\.0\.1:9"),
        connect("tcp://127.0.0.1:9"),
    ):
        pass
    assert [r.message for r in caplog.records if r.name.startswith("gulpio2")] == [
        "no Dask scheduler answers at tcp://127.0.0.1:9 so far; trying for 1 s"
    ]


@pytest.mark.parametrize(
    "address",
    ["nonsense", "", "tcp://host", "host 8786", "http://127.0.0.1:9", "TCP://a.b:9"],
)
def test_what_is_no_address_is_refused_at_once(address):
    began = time.monotonic()
    with pytest.raises(IngestSettingError, match="no address of a Dask scheduler"):
        connect(address).__enter__()
    assert time.monotonic() - began < 10


def command(folder, address, *more):
    """Run the command in a process of its own."""
    words = ["ingest", "gulpio2.testing:FrameAdapter", "out", "--scheduler", address]
    return subprocess.run(
        [sys.executable, "-m", "gulpio2.cli.main", *words, *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


@pytest.mark.parametrize("more", [(), ("--num-workers", "3")])
def test_the_command_stores_what_a_local_run_stores(tmp_path, address, more):
    done = command(tmp_path, address, "--num-items", "7", *more)
    assert done.returncode == 0, done.stderr
    GulpIngestor(FrameAdapter(num_items=7), tmp_path / "local", 100, 1).run()
    names = sorted(path.name for path in (tmp_path / "local").glob("*_*.g*"))
    assert names == ["data_0.gulp", "meta_0.gmeta"]
    for name in names:
        stored = (tmp_path / "out" / name).read_bytes()
        assert stored == (tmp_path / "local" / name).read_bytes()
    said = "gulp2: warning: --num-workers is not used: a cluster has its own"
    assert done.stderr.count(said) == bool(more)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_the_command_takes_it_for_wrong_usage(tmp_path, more):
    done = command(tmp_path, "http://127.0.0.1:8786", *more)
    assert done.returncode == 2, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "--scheduler: 'http://127.0.0.1:8786' is no address" in last
    assert not (tmp_path / "out").exists()
