"""A fault in a decoder ends its process: that costs the item, and not the run."""

import ctypes
import functools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import IngestError
from gulpio2.ingest.crashes import WorkerSlots
from gulpio2.ingest.estimate import estimate
from gulpio2.ingest.items import place_items
from gulpio2.ingest.survey import survey
from gulpio2.ingest.telling import NOTHING, telling_here
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter
from tests.faults.operations import content, in_child

CRASHING = (3, 8)


class Crashing(FrameAdapter):
    """Items of three frames; the second one of some cannot be read by anybody."""

    def __init__(self, *, list_ids=True, num_items=10):
        super().__init__(num_items=num_items, num_frames=3, list_ids=list_ids)

    def _frames(self, number):
        for index, frame in enumerate(super()._frames(number)):
            if number in CRASHING and index == 1:
                fault()
            yield frame


class CrashingEagerly(FrameAdapter):
    """The adapter itself ends the process, at the item and whenever it is asked."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item2":
                fault()
            yield item


class CrashingEverywhere(FrameAdapter):
    """One that ends the process at its end, where no item is."""

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
        fault()


def fault():
    """Do what a decoder with a wrong pointer does."""
    ctypes.string_at(0)


@pytest.fixture(autouse=True)
def _quiet():
    """Leave no message of a fault that is meant."""
    import faulthandler

    was_enabled = faulthandler.is_enabled()
    faulthandler.disable()
    yield
    if was_enabled:
        faulthandler.enable()


def chunks(folder):
    return {
        name: data
        for name, data in content(folder).items()
        if name.startswith(("data_", "meta_"))
    }


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"chunk_bytes": 4000}], ids=["count", "bytes"])
@pytest.mark.parametrize("list_ids", [True, False], ids=["listed", "unlisted"])
def test_a_fault_in_a_worker_costs_its_item_and_is_told(
    tmp_path, workers, options: Any, list_ids
):
    adapter = Crashing(list_ids=list_ids)
    told: list[Any] = []
    report = GulpIngestor(
        adapter,
        tmp_path / "out",
        4,
        workers,
        on_failure=told.append,
        apart=True,
        **options,
    ).run()
    assert [(failure.position, failure.id) for failure in report.failures] == [
        (number, f"item{number}") for number in CRASHING
    ]
    assert all("SIGSEGV" in failure.message for failure in report.failures)
    assert sorted(failure.position for failure in told) == list(CRASHING)
    assert (report.items, report.resumed) == (8, 0)
    assert (tmp_path / "out" / "failures.jsonl").stat().st_size > 0
    # As if these items had been no more than unreadable.
    unreadable = FrameAdapter(
        num_items=10, num_frames=3, bad=CRASHING, list_ids=list_ids
    )
    GulpIngestor(unreadable, tmp_path / "expected", 4, 1, **options).run()
    assert chunks(tmp_path / "out") == chunks(tmp_path / "expected")
    assert check_directory(tmp_path / "out", deep=True).problems == []


def test_a_fault_in_the_adapter_itself_costs_that_item_too(tmp_path):
    report = GulpIngestor(CrashingEagerly(num_items=5), tmp_path, 5, 2).run()
    assert [(failure.position, failure.id) for failure in report.failures] == [
        (2, None)
    ]
    with GulpDirectory(tmp_path) as directory:
        assert sorted(directory.chunk_lookup) == ["item0", "item1", "item3", "item4"]


def test_a_fault_that_is_of_no_item_ends_the_run_and_keeps_what_was_stored(tmp_path):
    GulpIngestor(FrameAdapter(num_items=2), tmp_path, 2, 1).run()
    before = chunks(tmp_path)
    adapter = CrashingEverywhere(num_items=4)
    with pytest.raises(IngestError, match="ended without a word"):
        GulpIngestor(adapter, tmp_path, 2, 2, on_duplicate="skip").run()
    assert before.items() <= chunks(tmp_path).items()


class Killed(FrameAdapter):
    """Items at which the process is killed, as where memory runs out.

    Parameters
    ----------
    times : dict
        How many times at each, by its number; counted in files of `folder`.
    """

    def __init__(self, folder, times, *, num_items=10):
        super().__init__(num_items=num_items, num_frames=3)
        self.folder, self.times = folder, times

    def _frames(self, number):
        for frame in super()._frames(number):
            for time in range(self.times.get(number, 0)):
                mark = self.folder / f"killed_{number}_{time}"
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            yield frame


def test_a_worker_that_is_killed_costs_nothing_the_first_time(tmp_path, caplog):
    report = GulpIngestor(
        Killed(tmp_path, {3: 1, 8: 1}), tmp_path / "out", 4, 2, allow_failures=True
    ).run()
    assert (report.items, report.failures) == (10, [])
    told = [record.getMessage() for record in caplog.records]
    # One of them may have been ended with the other.
    assert {text.partition(", perhaps")[0] for text in told} & {
        "a worker was killed while it was at item 'item3' (position 3)",
        "a worker was killed while it was at item 'item8' (position 8)",
    }
    assert len(told) <= 2
    GulpIngestor(FrameAdapter(num_items=10, num_frames=3), tmp_path / "whole", 4, 1)()
    assert chunks(tmp_path / "out") == chunks(tmp_path / "whole")
    assert check_directory(tmp_path / "out", deep=True).problems == []


def test_an_item_at_which_a_worker_is_killed_twice_is_left_out_and_told(tmp_path):
    report = GulpIngestor(
        Killed(tmp_path, {3: 9, 8: 1}), tmp_path / "out", 4, 2, allow_failures=True
    ).run()
    (failure,) = report.failures
    assert (failure.position, failure.id) == (3, "item3")
    assert "was killed twice (SIGKILL)" in failure.message
    assert report.items == 9
    with GulpDirectory(tmp_path / "out") as directory:
        assert "item3" not in directory
        assert "item8" in directory


class Exiting(Killed):
    """Items at which the process exits, as a library has it that gives up."""

    def __init__(self, folder, times, status, **options):
        super().__init__(folder, times, **options)
        self.status = status

    def _frames(self, number):
        for frame in FrameAdapter._frames(self, number):
            for time in range(self.times.get(number, 0)):
                mark = self.folder / f"killed_{number}_{time}"
                if not mark.exists():
                    mark.touch()
                    os._exit(self.status)
            yield frame


@pytest.mark.parametrize("status", [0, 1, 255])
def test_an_item_at_which_a_worker_exits_twice_is_left_out_and_told(
    tmp_path, caplog, status
):
    adapter = Exiting(tmp_path, {3: 9, 8: 1}, status)
    report = GulpIngestor(adapter, tmp_path / "out", 4, 2, allow_failures=True).run()
    (failure,) = report.failures
    assert (failure.position, failure.id, report.items) == (3, "item3", 9)
    assert f"ended the process twice (exit status {status})" in failure.message
    told = [record.getMessage() for record in caplog.records]
    assert f"a worker ended itself (exit status {status}) while it was at item " in (
        "".join(told)
    )
    assert not any("memory" in text for text in told)
    with GulpDirectory(tmp_path / "out") as directory:
        assert "item8" in directory
    assert check_directory(tmp_path / "out", deep=True).problems == []
    resumed = GulpIngestor(adapter, tmp_path / "out", 4, 2, resume=True).run()
    assert (resumed.items, len(resumed.failures)) == (0, 1)


class KilledAtTheEnd(FrameAdapter):
    """The process is killed at the end of a slice, where no item is, a few times."""

    def __init__(self, folder, times):
        super().__init__(num_items=10, num_frames=3)
        self.folder, self.times = folder, times

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
        for time in range(self.times):
            mark = self.folder / f"killed_{time}"
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_at_no_item_costs_nothing(tmp_path, caplog):
    report = GulpIngestor(KilledAtTheEnd(tmp_path, 1), tmp_path / "out", 4, 2).run()
    assert (report.items, report.resumed, report.failures) == (10, 0, [])
    (record,) = caplog.records
    assert "killed while it was at no item" in record.getMessage()
    GulpIngestor(FrameAdapter(num_items=10, num_frames=3), tmp_path / "whole", 4, 1)()
    assert chunks(tmp_path / "out") == chunks(tmp_path / "whole")


def test_workers_that_are_killed_at_no_item_again_and_again_end_the_run(tmp_path):
    with pytest.raises(IngestError, match="ended without a word: killed"):
        GulpIngestor(KilledAtTheEnd(tmp_path, 99), tmp_path / "out", 4, 2).run()
    assert len(list(tmp_path.glob("killed_*"))) < 10


@pytest.mark.parametrize("bad", [None, 1], ids=["at once", "one by one"])
def test_after_the_last_item_of_a_slice_a_worker_is_at_none(bad):
    class Refusing(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                if item["id"] == f"item{bad}":
                    raise ValueError
                yield item

    told = []
    with telling_here(lambda *at: told.append(at)):
        assert len(list(place_items(Refusing(num_items=4), 0, 3))) == 3
    assert told[-2:] == [(2, "item2"), (NOTHING, None)]


def test_workers_that_are_killed_at_one_item_after_the_other_end_the_run(
    tmp_path, caplog
):
    """Whoever kills them means it, or something else has no memory left."""
    adapter = Killed(tmp_path, dict.fromkeys(range(10), 1))
    with pytest.raises(
        IngestError, match=r"ended without a word at item 'item\d' \(position \d\)"
    ):
        GulpIngestor(adapter, tmp_path / "out", 4, 2).run()
    assert len(list(tmp_path.glob("killed_*"))) < 10
    # What ends the run is not said to be tried once more.
    assert len([r for r in caplog.records if "once more" in r.getMessage()]) <= 2
    for mark in range(10):
        (tmp_path / f"killed_{mark}_0").touch()
    report = GulpIngestor(adapter, tmp_path / "out", 4, 2, resume=True).run()
    assert (report.items, report.failures) == (10, [])


def test_without_workers_it_ends_the_process_and_workers_resume_past_it(tmp_path):
    folder = tmp_path / "out"

    def alone(*, resume):
        GulpIngestor(Crashing(), folder, 4, 1, resume=resume).run()

    for resume in (False, True, True):
        status = in_child(functools.partial(alone, resume=resume))
        assert os.WTERMSIG(status) == signal.SIGSEGV
    GulpDirectory(folder).close()
    report = GulpIngestor(Crashing(), folder, 4, 2, resume=True).run()
    assert [failure.position for failure in report.failures] == list(CRASHING)
    assert report.items == 8
    assert report.resumed > 0
    assert check_directory(folder, deep=True).problems == []


PROGRAM = """
import ctypes
import os
from gulpio2.testing import FrameAdapter

class Crashing(FrameAdapter):
    def __init__(self, mark="", **options):
        super().__init__(num_items=300, num_frames=2)
        self.mark = mark

    def _frames(self, number):
        if number in (0, 150):
            ctypes.string_at(0)  # in the estimate as well
        return super()._frames(number)
"""


@pytest.mark.parametrize("more", [(), ("--dry-run", "--sample-share", "1")])
def test_on_the_command_line_one_worker_names_such_items(tmp_path, more):
    (tmp_path / "crashing.py").write_text(PROGRAM)
    words = ["ingest", "crashing.py:Crashing", "out", "--num-workers", "1", *more]
    done = subprocess.run(
        [sys.executable, "-m", "gulpio2", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1, done.stderr
    told = done.stdout if more else (tmp_path / "out/failures.jsonl").read_text()
    assert told.count("reading it ended the process by SIGSEGV") == 2
    for position in (0, 150):
        assert re.search(rf"position\W+{position}\b", told)
    if not more:
        assert len(GulpDirectory(tmp_path / "out")) == 298


def test_an_item_that_ends_a_look_of_one_process_is_named():
    found = survey(Crashing(), EncoderSettings(), share=1, apart=True)
    (oddity,) = found.oddities
    assert (oddity.kind, oddity.sampled, found.sampled) == ("unreadable", 2, 10)


def test_a_run_that_crashed_on_an_item_and_was_killed_can_be_resumed(tmp_path):
    folder = tmp_path / "out"

    def killed():
        def stop(_failure):
            os.kill(os.getpid(), signal.SIGKILL)

        GulpIngestor(Crashing(), folder, 4, 2, on_failure=stop).run()

    assert os.WTERMSIG(in_child(killed)) == signal.SIGKILL
    report = GulpIngestor(Crashing(), folder, 4, 2, resume=True).run()
    assert [failure.position for failure in report.failures] == list(CRASHING)
    with GulpDirectory(folder) as directory:
        assert len(directory.chunk_lookup) == 8


class CrashingAtTheBorder(FrameAdapter):
    """One that ends the process where its first slice ends, once it gave the last."""

    def item_ids(self):
        return super().item_ids()

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
        if slice_element == slice(0, 4):
            fault()


def test_a_fault_behind_a_slice_is_blamed_on_no_item(tmp_path):
    adapter = CrashingAtTheBorder(num_items=12)
    with pytest.raises(IngestError, match="ended without a word"):
        GulpIngestor(adapter, tmp_path, 4, 2).run()
    # Mended, it gives everything.
    sound = FrameAdapter(num_items=12)
    sound.__class__ = type("CrashingAtTheBorder", (FrameAdapter,), {})
    report = GulpIngestor(sound, tmp_path, 4, 2, resume=True).run()
    assert (report.items, report.failures) == (12, [])
    assert len(GulpDirectory(tmp_path)) == 12


def test_the_estimate_of_a_long_run_survives_a_fault(tmp_path):
    sampled = 75  # the third of eight, spread evenly over 240
    adapter = CrashingAt(sampled, num_items=240, num_frames=2)

    def estimate_here():
        estimate(adapter, EncoderSettings())

    assert os.WTERMSIG(in_child(estimate_here)) == signal.SIGSEGV
    report = GulpIngestor(adapter, tmp_path, 60, 2).run()
    assert [failure.position for failure in report.failures] == [sampled]
    assert report.items == 239


class CrashingAt(FrameAdapter):
    """One item cannot be read by anybody."""

    def __init__(self, crashing, **options):
        super().__init__(**options)
        self.crashing = crashing

    def _frames(self, number):
        if number == self.crashing:
            fault()
        return super()._frames(number)


class LongIds(CrashingAt):
    """Items whose ids have many characters."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"{item['id']}{'x' * 600}"}


def test_half_an_id_is_not_told(tmp_path):
    adapter = LongIds(1, num_items=4, list_ids=False)
    (failure,) = GulpIngestor(adapter, tmp_path, 2, 2).run().failures
    assert (failure.position, failure.id) == (1, None)


@pytest.mark.parametrize(
    ("id_", "told"),
    [
        ("b\udce9.mp4", "b\udce9.mp4"),
        ("\u00e4", "\u00e4"),
        ("x" * 600, None),
        (None, None),
    ],
)
def test_an_item_at_work_is_told_by_its_very_id(id_, told):
    slots = WorkerSlots(multiprocessing.get_context("fork"), 1)
    try:
        slots.claim()(7, id_)
        assert [*slots.at_work().values()] == [(7, told)]
    finally:
        slots.close()
