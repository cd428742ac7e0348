"""Clusters that get workers, and lose them, while there is work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from gulpio2 import GulpIngestor
from gulpio2.errors import IngestError
from gulpio2.ingest.cluster import connect
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter
from tests.distributed.clusters import (
    SlowAdapter,
    begun,
    cluster,
    start_worker,
    wait_for,
)

distributed = pytest.importorskip(
    "distributed", reason="the extra distributed is not installed"
)
cfexecutor = pytest.importorskip("distributed.cfexecutor")


class TogetherAdapter(FrameAdapter):
    """Gives no item before so many processes are at work at once."""

    def __init__(self, notes, num_processes, **options):
        super().__init__(**options)
        self.notes = notes
        self.num_processes = num_processes
        self.until = time.monotonic() + 40

    def iter_data(self, slice_element=None):
        (self.notes / str(os.getpid())).touch()
        while len(list(self.notes.iterdir())) < self.num_processes:
            if time.monotonic() > self.until:
                raise TimeoutError("the other workers have no work")
            time.sleep(0.05)
        yield from super().iter_data(slice_element)


@pytest.fixture
def dask(tmp_path):
    (tmp_path / "dask").mkdir()
    return tmp_path / "dask"


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def test_workers_that_come_later_are_given_work(tmp_path, dask, notes):
    processes: list[Any] = []

    def join():
        wait_for(lambda: any(notes.iterdir()))
        processes.extend(start_worker(dask) for _ in range(3))

    adapter = TogetherAdapter(notes, 4, num_items=12)
    with (
        cluster(dask, 1, processes) as address,
        connect(address) as (executor, num_workers),
    ):
        thread = threading.Thread(target=join)
        thread.start()
        report = GulpIngestor(
            adapter, tmp_path / "out", 1, num_workers, executor=executor
        ).run()
        thread.join()
    assert (report.items, report.failures) == (12, [])


def test_the_threads_of_a_cluster_count_and_not_the_number_that_is_given(
    tmp_path, dask, notes
):
    adapter = TogetherAdapter(notes, 4, num_items=12)
    with (
        cluster(dask, 4) as address,
        distributed.Client(address, set_as_default=False) as client,
    ):
        report = GulpIngestor(
            adapter, tmp_path / "out", 1, 1, executor=client.get_executor()
        ).run()
    assert (report.items, report.failures) == (12, [])


@contextlib.contextmanager
def without_workers(dask, notes, caplog, monkeypatch, then):
    """Give an executor whose workers are killed; then is called when that was told."""
    monkeypatch.setattr("gulpio2.ingest.dispatch._EMPTY_SECONDS", 1)
    processes: list[Any] = []

    def kill():
        wait_for(lambda: len(begun(notes)) >= 4)
        for process in processes[1:]:
            process.kill()
        wait_for(lambda: "has no workers" in caplog.text)
        time.sleep(2)  # it is told of once
        then(processes)

    with cluster(dask, 2, processes) as address, connect(address) as (executor, _):
        thread = threading.Thread(target=kill)
        thread.start()
        yield executor
        thread.join()


@pytest.mark.skipif(
    tuple(map(int, distributed.__version__.split(".")[:2])) < (2024, 8),
    reason="the scheduler loses tasks that wait for a worker",
)
def test_the_loss_of_all_workers_is_told_of_once_and_their_return(
    tmp_path, dask, notes, caplog, monkeypatch
):
    def then(processes):
        processes.append(start_worker(dask))

    # So many that the run does not end before it has looked for workers again.
    adapter = SlowAdapter(notes, num_items=40)
    with without_workers(dask, notes, caplog, monkeypatch, then) as executor:
        report = GulpIngestor(adapter, tmp_path / "out", 3, 1, executor=executor).run()
    assert report.items == 40
    lost, back = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("gulpio2")
    ]
    assert "has no workers; the run waits for some. Start them with 'dask wo" in lost
    assert "has workers again" in back


class DroppingExecutor(ThreadPoolExecutor):
    """Loses the worker of its first task when the result is there, as Dask sees it."""

    def __init__(self):
        super().__init__(2)
        self.dropped = []

    def submit(self, work, /, *sent, **named):
        future = super().submit(work, *sent, **named)
        if self.dropped:
            return future
        result = future.result()

        class OfLostWorker:
            status = "lost"

            async def _result(self, raiseit):
                return result

        async def hand_over():
            await cfexecutor._cascade_future(OfLostWorker(), given)

        given: Future[Any] = Future()
        self.dropped.append(given)
        asyncio.run(hand_over())
        return given


def test_a_result_that_dask_drops_with_its_worker_is_made_again(tmp_path):
    GulpIngestor(FrameAdapter(num_items=6), tmp_path / "local", 2, 1).run()
    with DroppingExecutor() as executor:
        report = GulpIngestor(
            FrameAdapter(num_items=6), tmp_path / "out", 2, 2, executor=executor
        ).run()
    (dropped,) = executor.dropped
    assert isinstance(dropped.exception(), TypeError)
    assert (report.items, report.failures) == (6, [])
    for name in ("data_0.gulp", "meta_0.gmeta", "data_2.gulp", "meta_2.gmeta"):
        path = tmp_path / "out" / name
        assert path.read_bytes() == (tmp_path / "local" / name).read_bytes()
    assert check_directory(tmp_path / "out", deep=True).problems == []
    assert not list((tmp_path / "out").glob("*.partial"))


def test_a_run_that_waits_for_workers_can_be_interrupted(
    tmp_path, dask, notes, caplog, monkeypatch
):
    pressed = []

    def then(_processes):
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    adapter = SlowAdapter(notes)
    with without_workers(dask, notes, caplog, monkeypatch, then) as executor:
        ingestor = GulpIngestor(adapter, tmp_path / "out", 3, 1, executor=executor)
        with pytest.raises(KeyboardInterrupt):
            ingestor.run()
    assert time.monotonic() - pressed[0] < 10
    report = GulpIngestor(adapter, tmp_path / "out", 3, 1, resume=True).run()
    assert report.items == 12


def test_the_first_worker_is_waited_for(tmp_path, dask, caplog):
    processes: list[Any] = []

    def join():
        wait_for(lambda: "waiting 60 s for the first one" in caplog.text)
        processes.append(start_worker(dask))

    with cluster(dask, 0, processes) as address:
        thread = threading.Thread(target=join)
        thread.start()
        with connect(address) as (executor, num_workers):
            assert num_workers == 1
            adapter = FrameAdapter(num_items=4)
            report = GulpIngestor(
                adapter, tmp_path / "out", 2, 1, executor=executor
            ).run()
        thread.join()
    assert report.items == 4


def test_a_cluster_that_stays_without_workers_is_refused(dask, caplog, monkeypatch):
    monkeypatch.setattr("gulpio2.ingest.cluster._FIRST_WORKER_SECONDS", 1)
    with (
        cluster(dask, 0) as address,
        pytest.raises(IngestError, match="no workers"),
        connect(address),
    ):
        pass
    assert "has no workers; waiting 1 s for the first one" in caplog.text


def test_a_cluster_that_has_workers_only_for_work_gets_some(tmp_path, notes, caplog):
    adapter = TogetherAdapter(notes, 2, num_items=12)
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, local_directory=tmp_path, **quiet
    ) as local:
        local.adapt(minimum=0, maximum=2, interval="100 ms", target_duration="1 s")
        with connect(local.scheduler_address) as (executor, num_workers):
            assert num_workers == 1
            report = GulpIngestor(
                adapter, tmp_path / "out", 1, 1, executor=executor
            ).run()
    assert (report.items, report.failures) == (12, [])
    assert "waiting 60 s for the first one" in caplog.text
