"""An item that takes very long is told of, by whatever works at it."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from types import SimpleNamespace

import pytest

from gulpio2 import GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.ingest.crashes import AtWork
from gulpio2.ingest.estimate import LONG_RUN, refuse_what_cannot_fit
from gulpio2.ingest.lingering import Lingering
from gulpio2.ingest.survey import survey
from gulpio2.ingest.telling import NOTHING, tell_of
from gulpio2.ingest.workers import in_worker_processes
from gulpio2.testing import FrameAdapter
from gulpio2.types import no_progress

TEXT = "item 'item2' (position 2) has been worked on for"
WAYS = {"here": (1, False), "apart": (1, True), "two": (2, False)}


class Waiting(FrameAdapter):
    """The frames of an item do not end before a file is there."""

    def __init__(self, path, number=2, num_items=4):
        super().__init__(num_items=num_items, num_frames=2)
        self.path, self.number = path, number

    def _frames(self, number):
        frame, *_ = super()._frames(number)
        yield frame
        waited_until = time.monotonic() + 60  # and then the test fails
        if number == self.number:
            while not self.path.exists() and time.monotonic() < waited_until:
                yield frame
                time.sleep(0.01)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Have items told of at once; the path of a file that is there once one is."""
    monkeypatch.setattr("gulpio2.ingest.lingering._LONG_SECONDS", 0.3)
    monkeypatch.setattr("gulpio2.ingest.lingering._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("gulpio2.ingest.workers._LOOK_SECONDS", 0.05)
    path = tmp_path / "told"

    class Touching(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "has been worked on for" in record.getMessage():
                path.touch()

    handler = Touching()
    logging.getLogger("gulpio2").addHandler(handler)
    yield path
    logging.getLogger("gulpio2").removeHandler(handler)


@pytest.mark.parametrize("way", WAYS)
def test_an_item_that_does_not_end_is_told_of_once_and_the_run_goes_on(
    tmp_path, told, caplog, way
):
    num_workers, apart = WAYS[way]
    adapter = Waiting(told)
    report = GulpIngestor(adapter, tmp_path / "out", 2, num_workers, apart=apart).run()
    assert told.exists()
    assert len([text for text in caplog.messages if TEXT in text]) == 1
    assert (report.items, report.failures) == (4, [])


@pytest.mark.parametrize("way", ["apart", "two"])
def test_a_handler_that_fails_then_ends_the_run(tmp_path, told, way):
    """And not the thread that reads what workers tell, who wait for it."""

    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "has been worked on for" in record.getMessage():
                raise OSError("the log is full")

    handler = Failing()
    logging.getLogger("gulpio2").addHandler(handler)
    num_workers, apart = WAYS[way]
    ingestor = GulpIngestor(
        Waiting(told), tmp_path / "out", 2, num_workers, apart=apart
    )
    try:
        with pytest.raises(OSError, match="the log is full"):
            ingestor.run()
    finally:
        logging.getLogger("gulpio2").removeHandler(handler)


@pytest.mark.parametrize("way", WAYS)
def test_so_it_is_in_a_dry_run(told, caplog, monkeypatch, way):
    monkeypatch.setattr("gulpio2.ingest.survey.usable_cores", lambda: 2)
    num_workers, apart = WAYS[way]
    found = survey(
        Waiting(told), EncoderSettings(), num_workers=num_workers, apart=apart
    )
    assert told.exists()
    assert len([text for text in caplog.messages if TEXT in text]) == 1
    assert found.sampled == 4


def test_so_it_is_in_the_estimate_before_a_long_run(tmp_path, told):
    adapter = Waiting(told, number=12, num_items=LONG_RUN)
    positions = range(LONG_RUN)
    encoder = EncoderSettings()
    refuse_what_cannot_fit(adapter, encoder, tmp_path, positions, apart=False, freed=0)
    assert told.exists()


class HangingAtFirst(FrameAdapter):
    """Who asks for an item first waits for long, and may not heed SIGTERM."""

    def __init__(self, mark, *, is_deaf):
        super().__init__(num_items=LONG_RUN, num_frames=1)
        self.mark, self.is_deaf = mark, is_deaf

    def _frames(self, number):
        if not self.mark.exists():
            self.mark.touch()
            if self.is_deaf:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(20)
            self.mark.write_text("waited")
        return super()._frames(number)


@pytest.mark.parametrize("is_deaf", [False, True])
def test_an_estimate_in_another_process_is_not_waited_for_for_ever(
    tmp_path, monkeypatch, caplog, is_deaf
):
    monkeypatch.setattr("gulpio2.ingest.estimate._MOST_SECONDS", 2.0)
    adapter = HangingAtFirst(tmp_path / "mark", is_deaf=is_deaf)
    assert GulpIngestor(adapter, tmp_path / "out", 100, 2).run().items == LONG_RUN
    assert "no estimate of the space came" in caplog.text
    assert adapter.mark.read_text() == ""


@pytest.fixture
def clock(monkeypatch):
    """Give the time that `Lingering` sees, in seconds; the item may be set."""
    seconds = [1000.0]
    now = SimpleNamespace(monotonic=lambda: seconds[0])
    monkeypatch.setattr("gulpio2.ingest.lingering.time", now)
    return seconds


def told_at(clock, caplog, positions, *, step=60):
    """Look every minute at what two workers are at; give what is told, and when."""
    lingering, said = Lingering(), []
    for number, (first, second) in enumerate(positions):
        caplog.clear()
        lingering.look({1: AtWork(first, f"i{first}"), 2: AtWork(second, None)})
        said += [(number, each.partition(",")[0]) for each in caplog.messages]
        clock[0] += step
    return said


def test_it_is_told_after_minutes_and_once_for_each_item(clock, caplog):
    positions = [(0, 1)] + [(0, 2)] * 9 + [(3, NOTHING)] * 3
    assert told_at(clock, caplog, positions) == [
        (5, "item 'i0' (position 0) has been worked on for 5 minutes"),
        (6, "item (position 2) has been worked on for 5 minutes"),
    ]


def test_who_is_at_no_item_is_at_none_for_long(clock, caplog):
    positions = [(0, 1)] + [(NOTHING, NOTHING)] * 20
    assert told_at(clock, caplog, positions) == []


def test_where_all_items_take_long_it_is_not_told_of_each(clock, caplog):
    positions = [(number, NOTHING) for number in range(20) for _ in range(10)]
    positions += [(20, NOTHING)] * 60
    assert told_at(clock, caplog, positions) == [
        (5, "item 'i0' (position 0) has been worked on for 5 minutes"),
        (230, "item 'i20' (position 20) has been worked on for 30 minutes"),
    ]


def _leave_in_the_middle(_job, _task, _progress, **_options):
    tell_of(5, "item5")


def test_a_worker_without_a_task_is_at_no_item(caplog):
    caplog.set_level(logging.INFO)
    job = SimpleNamespace(adapter=None)
    workers = in_worker_processes(1, job, no_progress, {}, _leave_in_the_middle)
    with contextlib.suppress(KeyboardInterrupt), workers as submit:
        submit(None).result()
        raise KeyboardInterrupt
    assert "the workers were at" not in caplog.text
