"""What an adapter raises behind its last item, as a check of its own does, counts."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import AdapterContractError
from gulpio2.format.journal import load_lines
from gulpio2.ingest.shard import Shard
from gulpio2.testing import FrameAdapter


class Archive(FrameAdapter):
    """One that looks at the end of its archive, or of each slice."""

    def __init__(
        self,
        *,
        num_items=6,
        broken=None,
        each_slice=False,
        error="the archive was cut",
        **options,
    ):
        super().__init__(num_items=num_items, num_frames=1, **options)
        self.broken = broken
        self.each_slice = each_slice
        self._error = error  # no option, which a run that resumes would compare

    def item_ids(self):  # else those of a base class do not count
        return super().item_ids()

    def iter_data(self, slice_element=None):
        part = range(len(self))[slice_element or slice(None)]
        for position in part:
            if position == self.broken:
                raise ValueError("an item is bad")
            yield from super().iter_data(slice(position, position + 1))
        if self.each_slice or part.stop == len(self):
            error = self._error
            if isinstance(error, str):
                error = OSError(error.format(stop=part.stop))
            raise error


@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("each_slice", [True, False])
@pytest.mark.parametrize("items_per_chunk", [2, 3, 6])
@pytest.mark.parametrize("bad", [0, 1, 4, 5])
def test_after_a_bad_item_the_end_costs_no_other(
    tmp_path, bad, items_per_chunk, each_slice, list_ids
):
    adapter = Archive(broken=bad, each_slice=each_slice, list_ids=list_ids)
    report = GulpIngestor(adapter, tmp_path, items_per_chunk, 1).run()
    assert [each.position for each in report.failures] == [bad]
    assert (report.items, report.not_given) == (5, 0)
    num_slices = 6 // items_per_chunk if each_slice else 1
    # The last item of a slice, where it is bad, hides what is behind it.
    ends = {n * items_per_chunk - 1 for n in range(1, 7)} if each_slice else {5}
    assert report.raised_behind == num_slices - (bad in ends)
    with GulpDirectory(tmp_path) as directory:
        assert len(directory) == 5


class Repeated(Archive):
    """Its last item has the id of its first one."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            is_last = item["meta"]["number"] == len(self) - 1
            yield {**item, "id": "item0"} if is_last else item


class Harmless(Archive):
    """Raises once between two items as well, and goes on when it is asked again."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1" and slice_element.start == 0:
                raise OSError("of no account")
            yield item


def warnings_in(caplog):
    return [
        record.getMessage().partition(" after it had")[0]
        for record in caplog.records
        if record.levelno == logging.WARNING
    ]


def test_what_is_raised_behind_the_last_item_is_told_whatever_came_before(
    tmp_path, caplog
):
    report = GulpIngestor(Harmless(), tmp_path, 3, 1).run()
    assert (report.items, report.raised_behind) == (6, 1)
    assert warnings_in(caplog) == [
        "the adapter raised OSError: of no account",
        "the adapter raised OSError: the archive was cut",
    ]


@pytest.mark.parametrize(("text", "told"), [("cut", 1), ("cut at {stop}", 20)])
def test_errors_of_as_many_chunks_are_told_as_somebody_reads(
    tmp_path, caplog, text, told
):
    adapter = Archive(num_items=50, each_slice=True, error=text)
    report = GulpIngestor(adapter, tmp_path, 2, 1).run()
    assert report.raised_behind == 25
    assert len(warnings_in(caplog)) == told


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_was_raised_behind_elsewhere_is_in_the_report(tmp_path, method):
    context = multiprocessing.get_context(method)
    adapter = Archive(each_slice=True, error="cut at {stop}")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        ingestor = GulpIngestor(adapter, tmp_path, 2, 2, executor=executor)
        message = r"its last item \(OSError: cut at 2\)\. 6 items are stored"
        with pytest.raises(AdapterContractError, match=message):
            ingestor()
    report = ingestor.report
    assert report is not None
    assert report.raised_behind == 3
    assert report.to_json()["error_behind"] == "OSError: cut at 2"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError("x" * 10_000), "OSError: " + "x" * 491 + "..."),
        (SystemExit(3), "AdapterContractError: the adapter ended the program: "),
        (KeyError(), "KeyError: KeyError()"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_behind_is_told_in_short(tmp_path, error, text):
    report = GulpIngestor(Archive(error=error), tmp_path, 6, 1).run()
    assert report.error_behind is not None
    assert report.error_behind.startswith(text)
    assert len(report.error_behind) <= 503


def test_a_run_that_resumes_has_what_was_raised_before(tmp_path, monkeypatch):
    adapter = Archive(each_slice=True, error="cut at {stop}")
    monkeypatch.setattr("gulpio2.ingest.ingestor.write_records", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(adapter, tmp_path, 2, 1).run()
    monkeypatch.undo()
    ingestor = GulpIngestor(adapter, tmp_path, 2, 1, resume=True)
    message = r"had given its last item \(OSError: cut at 2\)\. 6 items"
    with pytest.raises(AdapterContractError, match=message):
        ingestor()
    assert ingestor.report is not None
    assert (ingestor.report.resumed, ingestor.report.raised_behind) == (6, 3)


LAST_ONES = {
    "stored": Archive(),
    "failed": Archive(bad=[5]),
    "stored, unlisted": Archive(list_ids=False),
    "failed, unlisted": Archive(bad=[5], list_ids=False),
    "skipped, unlisted": Repeated(),
}


def ingestor_of(adapter, folder, *, resume=False):
    return GulpIngestor(
        adapter, folder, 6, 1, resume=resume, on_duplicate="skip", shard=Shard(1, 1)
    )


@pytest.mark.parametrize("last", LAST_ONES)
def test_a_run_that_ends_while_the_adapter_looks_at_its_end_asks_for_that_again(
    tmp_path, monkeypatch, last
):
    adapter = LAST_ONES[last]
    monkeypatch.setattr(adapter, "_error", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        ingestor_of(adapter, tmp_path).run()
    monkeypatch.undo()
    report = ingestor_of(adapter, tmp_path, resume=True).run()
    assert report.raised_behind == 1
    assert report.error_behind == "OSError: the archive was cut"
    assert report.items == 5 + last.startswith("stored")
    assert len(report.failures) == last.startswith("failed")


@pytest.mark.parametrize("last", LAST_ONES)
@pytest.mark.parametrize("raises", [True, False])
def test_wherever_a_run_was_killed_the_end_counts_once(
    tmp_path, monkeypatch, last, raises
):
    adapter = LAST_ONES[last]
    if not raises:
        monkeypatch.setattr(type(adapter), "iter_data", _without_end(adapter))
    with monkeypatch.context() as patch:
        patch.setattr("gulpio2.ingest.task._TaskRun.stage", _interrupt_written)
        with pytest.raises(KeyboardInterrupt):
            ingestor_of(adapter, tmp_path / "killed").run()
    (journal,) = (tmp_path / "killed").glob("chunk_0.journal.*")
    _, ends = load_lines(journal.read_bytes())
    for end in [0, *ends]:
        folder = tmp_path / f"cut-at-{end}"
        shutil.copytree(tmp_path / "killed", folder)
        os.truncate(folder / journal.name, end)
        report = ingestor_of(adapter, folder, resume=True).run()
        assert report.raised_behind == raises, f"of {ends} cut at {end}"


def _without_end(adapter):
    iter_data = type(adapter).iter_data

    def give(self, slice_element=None):
        with contextlib.suppress(OSError):
            yield from iter_data(self, slice_element)

    return give


def test_an_adapter_that_came_to_its_end_is_not_asked_for_it_again(
    tmp_path, monkeypatch
):
    """As one would be that counts what it gives, and finds but one item."""
    adapter = Archive(bad=[5])
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "iter_data", _without_end(adapter))
        patch.setattr("gulpio2.ingest.task._TaskRun.stage", _interrupt_written)
        with pytest.raises(KeyboardInterrupt):
            ingestor_of(adapter, tmp_path).run()
    report = ingestor_of(adapter, tmp_path, resume=True).run()
    assert (report.resumed, report.raised_behind) == (5, 0)


def test_a_last_item_that_may_end_the_process_is_not_asked_for_its_end(
    tmp_path, monkeypatch
):
    adapter = Archive(broken=5)
    monkeypatch.setattr("gulpio2.ingest.task._TaskRun.stage", _interrupt_written)
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(adapter, tmp_path, 6, 1).run()
    monkeypatch.undo()
    (journal,) = tmp_path.glob("chunk_0.journal.*")
    lines, ends = load_lines(journal.read_bytes())
    (failed,) = (n for n, line in enumerate(lines) if "failed" in line)
    os.truncate(journal, ends[failed])
    monkeypatch.setattr(Archive, "iter_data", _interrupt)  # of no item
    report = GulpIngestor(adapter, tmp_path, 6, 1, resume=True).run()
    assert (report.items, len(report.failures), report.raised_behind) == (5, 1, 0)


def _interrupt(*_):
    raise KeyboardInterrupt


def _interrupt_written(run):
    run._write_entries()
    raise KeyboardInterrupt
