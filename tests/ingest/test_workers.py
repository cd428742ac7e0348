"""The processes of an ingest: what they tell, what they inherit, how they end."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import IngestError
from gulpio2.testing import FrameAdapter
from tests.faults.operations import in_child

NUM_ITEMS = 400


class ShutsDown(FrameAdapter):
    """Has an executor shut down while its own items are stored."""

    def __init__(self, at, *, cancel):
        super().__init__(num_items=20, num_frames=1)
        self.at, self.cancel = at, cancel

    def _frames(self, number):
        if number == self.at:
            POOLS[-1].shutdown(wait=False, cancel_futures=self.cancel)
        yield from super()._frames(number)


# Found by adapters, which executors get as bytes.
POOLS: list[ThreadPoolExecutor] = []


class Slow(FrameAdapter):
    """Says that it is at work, and takes long."""

    def __init__(self, sign):
        super().__init__(num_items=4)
        self.sign = sign

    def _frames(self, number):
        self.sign.write_text("at work")
        for frame in super()._frames(number):
            time.sleep(20)
            yield frame


def test_an_error_of_the_one_that_is_told_ends_the_run(tmp_path):
    def refuse(**_counts):
        raise BrokenPipeError("nobody reads the bar")

    def run():
        with pytest.raises(BrokenPipeError, match="nobody reads the bar"):
            GulpIngestor(
                FrameAdapter(num_items=NUM_ITEMS, num_frames=1),
                *(tmp_path, 1, 2),
                progress=refuse,
                ignore_space=True,
            ).run()

    assert in_child(run) == 0
    # What was stored by then is there, and the rest can be resumed.
    report = GulpIngestor(
        FrameAdapter(num_items=NUM_ITEMS, num_frames=1), tmp_path, 1, 2, resume=True
    ).run()
    assert (report.items, len(GulpDirectory(tmp_path))) == (NUM_ITEMS, NUM_ITEMS)


class Noting(FrameAdapter):
    """Notes the items that it is asked for, and takes a while for each."""

    def __init__(self, notes):
        super().__init__(num_items=150, num_frames=1, list_ids=False)  # in one task
        self.notes, self.seconds = notes, 0.02

    def _frames(self, number):
        with self.notes.open("a") as notes:
            notes.write(f"{number}\n")
        time.sleep(self.seconds)
        yield from super()._frames(number)


@pytest.mark.parametrize(("workers", "apart"), [(1, True), (2, False)])
def test_it_does_so_in_the_middle_of_a_chunk(tmp_path, workers, apart):
    def refuse(**_counts):
        raise BrokenPipeError("nobody reads the bar")

    adapter = Noting(tmp_path / "notes")
    given = (adapter, tmp_path / "out", 150, workers)
    with pytest.raises(BrokenPipeError, match="nobody reads the bar"):
        GulpIngestor(*given, progress=refuse, apart=apart).run()
    assert len(adapter.notes.read_text().splitlines()) < 150
    adapter.seconds = 0
    report = GulpIngestor(*given, resume=True).run()
    assert report.items == 150
    assert report.resumed > 0


@pytest.mark.parametrize("cancel", [True, False], ids=["cancelled", "refused"])
@pytest.mark.parametrize("at", [0, 7])
def test_an_executor_that_is_shut_down_ends_the_run(tmp_path, at, cancel):
    adapter = ShutsDown(at, cancel=cancel)

    def run():
        POOLS.append(ThreadPoolExecutor(1))
        with pytest.raises(IngestError, match=r"it was shut down.*resume"):
            GulpIngestor(adapter, tmp_path, 1, 4, executor=POOLS[-1]).run()

    assert in_child(run) == 0
    adapter.at = -1
    report = GulpIngestor(adapter, tmp_path, 1, 1, resume=True).run()
    assert (report.items, len(GulpDirectory(tmp_path))) == (20, 20)
    assert report.resumed >= at


@pytest.mark.parametrize("num_items", [1, 8])
def test_it_ends_a_run_on_an_executor_too(tmp_path, num_items):
    def refuse(**_counts):
        raise BrokenPipeError("nobody reads the bar")

    adapter = FrameAdapter(num_items=num_items, num_frames=1)
    with ThreadPoolExecutor(1) as executor:
        run = GulpIngestor(
            adapter, tmp_path, 1, 1, executor=executor, progress=refuse
        ).run
        with pytest.raises(BrokenPipeError, match="nobody reads the bar"):
            run()
    GulpIngestor(adapter, tmp_path, 1, 1, resume=True).run()
    assert len(GulpDirectory(tmp_path)) == num_items


def test_a_process_that_the_program_forks_meanwhile_is_not_waited_for(tmp_path):
    begun = threading.Event()
    stranger: list[Any] = []

    def fork(**_counts):
        if not stranger:
            process = multiprocessing.get_context("fork").Process(
                target=time.sleep, args=(60,)
            )
            process.start()
            stranger.append(process)
            begun.set()

    began = time.monotonic()
    GulpIngestor(FrameAdapter(num_items=40), tmp_path, 4, 2, progress=fork).run()
    assert begun.is_set()
    assert stranger[0].is_alive()
    assert time.monotonic() - began < 40
    assert len(GulpDirectory(tmp_path)) == 40
    stranger[0].kill()
    stranger[0].join()


def test_workers_do_not_keep_the_programs_handler_of_sigterm(tmp_path):
    sign = tmp_path / "sign"

    def run():
        signal.signal(signal.SIGTERM, lambda *_args: None)  # as batch jobs have one
        timer = threading.Timer(0, interrupt, [sign, os.getpid()])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            GulpIngestor(Slow(sign), tmp_path / "out", 1, 2).run()

    began = time.monotonic()
    assert in_child(run) == 0
    assert time.monotonic() - began < 15


def interrupt(sign, pid):
    """Do as Ctrl-C does, once there is work."""
    deadline = time.monotonic() + 30
    while not sign.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(pid, signal.SIGINT)
