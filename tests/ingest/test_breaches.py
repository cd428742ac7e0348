"""Adapters, tables and folders that break what is agreed cost items, never the run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import ImageFolderAdapter, TableAdapter
from gulpio2.children import hold_interrupts
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import (
    AdapterContractError,
    DuplicateIdError,
    IngestSettingError,
    SourceReadError,
)
from gulpio2.ingest.estimate import LONG_RUN, estimate
from gulpio2.ingest.items import place_items
from gulpio2.ingest.shard import Shard
from gulpio2.ingest.survey import survey
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames


class Mislisted(FrameAdapter):
    """Items whose ids are not those that are listed: i0, i1 and i2 again and again."""

    def item_ids(self):
        return [f"z{number}" for number in range(len(self))]

    def iter_data(self, slice_element=None):
        numbers = range(len(self))[slice_element or slice(None)]
        items = super().iter_data(slice_element)
        for number, item in zip(numbers, items, strict=True):
            yield {**item, "id": f"i{number % 3}" if number != 4 else "z4"}


class Noted(FrameAdapter):
    """Items with this metadata."""

    def __init__(self, meta):
        super().__init__(num_items=2, num_frames=1)
        self.meta = meta

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": self.meta if item["id"] == "item1" else {}}


class WordlessError(Exception):
    """An error whose message is one itself."""

    def __str__(self):
        raise ValueError


class Speechless(FrameAdapter):
    """Items of which one fails with such an error."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1":
                raise WordlessError
            yield item


def ingest(adapter, folder, workers=1, **options):
    return GulpIngestor(
        adapter, folder, 2, workers, allow_failures=True, **options
    ).run()


@pytest.mark.parametrize("workers", [1, 2])
def test_ids_that_were_not_listed_are_not_stored(tmp_path, workers):
    report = ingest(Mislisted(num_items=6, num_frames=2), tmp_path, workers)
    assert report.items == 1
    assert len(report.failures) == 5
    assert "'i0', which its item_ids() does not list" in str(report.failures[0])
    assert set(GulpDirectory(tmp_path).merged_meta_dict) == {"z4"}


def test_a_further_run_cannot_store_an_id_twice_by_listing_others(tmp_path):
    ingest(FrameAdapter(num_items=3, num_frames=2), tmp_path)

    class Again(FrameAdapter):
        def item_ids(self):
            return [f"new{number}" for number in range(len(self))]

    assert len(ingest(Again(num_items=3, num_frames=2), tmp_path).failures) == 3
    assert len(GulpDirectory(tmp_path)) == 3


@pytest.mark.parametrize(
    ("meta", "stored"),
    [
        ({"x": np.longdouble("1.5")}, {"x": 1.5}),
        ({"x": np.ones(2, np.longdouble)}, {"x": [1.0, 1.0]}),
        ({1: 2, None: 3, 2.5: 4}, {"1": 2, "null": 3, "2.5": 4}),
        ({True: 5}, {"true": 5}),
    ],
)
def test_metadata_is_stored_as_json_has_it(tmp_path, meta, stored):
    assert ingest(Noted(meta), tmp_path).failures == []
    assert GulpDirectory(tmp_path)["item1"][1] == stored
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("meta", [{1: 2, "1": 3}, {"x": 10**5000}])
def test_metadata_that_json_cannot_hold_costs_its_item(tmp_path, meta):
    report = ingest(Noted(meta), tmp_path)
    assert [failure.id for failure in report.failures] == ["item1"]
    assert set(GulpDirectory(tmp_path).merged_meta_dict) == {"item0"}
    assert check_directory(tmp_path, deep=True).problems == []


def test_an_error_that_cannot_be_shown_costs_its_item(tmp_path):
    report = ingest(Speechless(num_items=3, num_frames=1), tmp_path)
    assert [failure.error for failure in report.failures] == ["WordlessError"]
    assert report.items == 2


def test_a_link_that_leads_in_a_circle_costs_its_item(tmp_path):
    folder = tmp_path / "images" / "walk"
    folder.mkdir(parents=True)
    jpeg = encode_frame(make_frames(1, 24, 32)[0], EncoderSettings())
    (folder / "1.jpg").write_bytes(jpeg)
    (folder / "2.jpg").symlink_to(folder / "2.jpg")
    adapter = ImageFolderAdapter(str(tmp_path / "images"), str(tmp_path / "out"))
    report = ingest(adapter, tmp_path / "out")
    assert [failure.id for failure in report.failures] == ["walk-2.jpg"]
    assert report.items == 1


def test_a_quote_that_nobody_closes_is_refused(tmp_path):
    table = tmp_path / "clips.csv"
    table.write_text('id,path,note\n1,a.mp4,ok\n2,b.mp4,"a 5 inch cup\n3,c.mp4,x\n')
    with pytest.raises(SourceReadError, match="line 4: unexpected end of data"):
        TableAdapter(str(table))


def test_a_delimiter_is_one_character(tmp_path):
    table = tmp_path / "clips.csv"
    table.write_text("id,path\n1,a.mp4\n")
    with pytest.raises(IngestSettingError, match="must be one character"):
        TableAdapter(str(table), delimiter=";;")


def test_a_tab_may_be_written_as_a_shell_gives_it(tmp_path):
    table = tmp_path / "clips.txt"
    table.write_text("id\tpath\n1\ta.mp4\n")
    assert len(TableAdapter(str(table), delimiter="\\t")) == 1


# Each tells one thread. Of a process, the kernel chooses the thread that is told, and
# where that is not the one at work, it may be so late that the test is over.
def tell_this_thread():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@contextlib.contextmanager
def another_thread():
    begin, told = threading.Event(), threading.Event()

    def wait_and_tell():
        begin.wait()
        tell_this_thread()
        told.set()

    def tell():
        begin.set()
        assert told.wait(30)

    # Started here, since a thread inherits what is put off.
    threading.Thread(target=wait_and_tell, daemon=True).start()
    yield tell


@pytest.mark.parametrize(
    "interrupting",
    [lambda: contextlib.nullcontext(tell_this_thread), another_thread],
    ids=["this thread", "another thread"],
)
def test_an_interrupt_is_put_off_until_the_process_is_forked(interrupting):
    reached = []

    def interrupt(tell):
        with hold_interrupts():
            tell()
            reached.append(True)

    with interrupting() as tell, pytest.raises(KeyboardInterrupt):
        interrupt(tell)
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Cutting(FrameAdapter):
    """Leaves in itself what it was asked for, as one of 0.0.4 does."""

    def __init__(self, **options):
        super().__init__(**options)
        self.numbers = list(range(len(self)))

    def item_ids(self):
        return None

    def iter_data(self, slice_element=None):
        self.numbers = self.numbers[slice_element or slice(None)]
        for number in self.numbers:
            if number == self.fails_at:
                raise ValueError("this one cannot be read")
            yield from super().iter_data(slice(number, number + 1))

    fails_at = None


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fails_at", [None, 4])
def test_what_an_adapter_does_to_itself_costs_no_item(tmp_path, workers, fails_at):
    adapter = Cutting(num_items=10, num_frames=1)
    adapter.fails_at = fails_at
    report = GulpIngestor(adapter, tmp_path, 3, workers).run()
    assert report.items == 10 - (fails_at is not None)
    assert [failure.position for failure in report.failures] == [4] * (
        fails_at is not None
    )
    assert adapter.numbers == list(range(10))


def test_an_adapter_that_closes_what_it_has_is_not_copied(tmp_path):
    class Closing(FrameAdapter):
        def __init__(self, **options):
            super().__init__(**options)
            self.closed = []

        def iter_data(self, slice_element=None):
            assert not self.closed
            yield from super().iter_data(slice_element)

        def __del__(self):
            self.closed.append(True)

    adapter = Closing(num_items=4, num_frames=1)
    assert GulpIngestor(adapter, tmp_path, 1, 1).run().items == 4


class Exiting(FrameAdapter):
    """Ends the program where it should give an item, or its frames."""

    where = "item"

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1":
                if self.where == "item":
                    sys.exit(0)
                item = {**item, "frames": self._exit()}
            yield item

    def _exit(self):
        yield from make_frames(1)
        sys.exit(0)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["item", "frames"])
def test_an_adapter_that_ends_the_program_loses_its_item_only(tmp_path, workers, where):
    adapter = Exiting(num_items=3, num_frames=2)
    adapter.where = where
    report = GulpIngestor(adapter, tmp_path, 3, workers).run()
    (failure,) = report.failures
    assert failure.position == 1
    assert "the adapter ended the program: sys.exit(0)" in failure.message
    assert list(GulpDirectory(tmp_path).merged_meta_dict) == ["item0", "item2"]


class PanicError(BaseException):
    """What a decoder that is written in Rust may raise: no Exception."""


class Raising(FrameAdapter):
    """One item, or a frame of it, raises this."""

    def __init__(self, error, where, num_items=3):
        super().__init__(num_items=num_items, num_frames=2)
        self.error, self.where = error, where

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1" and self.where == "item":
                raise self.error
            if item["id"] == "item1" and self.where == "frames":
                item = {**item, "frames": self._raised()}
            yield item

    def _raised(self):
        yield from make_frames(1)
        raise self.error


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["item", "frames"])
@pytest.mark.parametrize(
    "error", [PanicError("no"), asyncio.CancelledError("no"), GeneratorExit("no")]
)
def test_so_does_one_that_raises_what_is_no_exception(tmp_path, workers, where, error):
    adapter = Raising(error, where)
    report = GulpIngestor(adapter, tmp_path, 3, workers).run()
    (failure,) = report.failures
    assert failure.position == 1
    assert failure.message == f"{type(error).__name__}: no"
    assert failure.error == "IngestError"  # nothing may have been read
    assert list(GulpDirectory(tmp_path).merged_meta_dict) == ["item0", "item2"]


@pytest.mark.parametrize("where", ["item", "frames"])
@pytest.mark.parametrize("error", [PanicError, GeneratorExit])
def test_nor_does_a_look_at_such_an_item_end_a_long_run(where, error):
    adapter = Raising(error(), where, num_items=LONG_RUN)
    assert estimate(adapter, EncoderSettings(), sample=LONG_RUN).sampled == LONG_RUN
    (oddity,) = survey(adapter, EncoderSettings(), least=LONG_RUN).oddities
    assert error.__name__ in oddity.examples[0]


@pytest.mark.parametrize("where", ["item", "frames"])
def test_an_interrupt_within_an_item_ends_the_run(tmp_path, where):
    adapter = Raising(KeyboardInterrupt, where)
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(adapter, tmp_path, 3, 1).run()
    adapter.where = "nowhere"
    assert GulpIngestor(adapter, tmp_path, 3, 1, resume=True).run().items == 3


@pytest.mark.parametrize("first", [None, 0], ids=["at once", "one by one"])
def test_items_that_nobody_asks_for_any_more_are_not_asked_for(first):
    asked = []

    class Asked(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                if item["meta"]["number"] == first:
                    raise ValueError
                asked.append(item["id"])
                yield item

    with contextlib.closing(place_items(Asked(num_items=4), 0, 4)) as items:  # type: ignore[type-var]  # a generator
        ids = [next(items).id_, next(items).id_]
    assert ids == (["item0", "item1"] if first is None else [None, "item1"])
    assert asked == ["item0", "item1"][-2 if first is None else -1 :]


class Signalled(FrameAdapter):
    """The program is told to end while an item is made, or one behind a bad one."""

    where = "nowhere"

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item0" and self.where == "after an error":
                raise ValueError
            if item["id"] == "item1" and self.where in ("item", "after an error"):
                signal.raise_signal(signal.SIGTERM)
            if item["id"] == "item1" and self.where == "frames":
                item = {**item, "frames": self._told()}
            yield item

    def _told(self):
        yield from make_frames(1)
        signal.raise_signal(signal.SIGTERM)

    def item_source(self, position):
        if self.where == "source":
            signal.raise_signal(signal.SIGTERM)


def panic(_number, _frame):
    raise PanicError


def test_a_handler_may_end_it_by_what_is_no_exception(tmp_path):
    adapter = Signalled(num_items=4, num_frames=2)
    adapter.where = "frames"
    before = signal.signal(signal.SIGTERM, panic)
    try:
        with pytest.raises(PanicError):
            GulpIngestor(adapter, tmp_path, 4, 1).run()
    finally:
        signal.signal(signal.SIGTERM, before)


class Ending:
    """A handler that is an object."""

    def __call__(self, number, frame):
        sys.exit(number)


@pytest.mark.parametrize(
    "handler",
    [lambda number, _frame: sys.exit(number), Ending()],
    ids=["def", "object"],
)
@pytest.mark.parametrize("where", ["item", "frames", "after an error", "source"])
def test_a_program_that_is_told_to_end_does_so(tmp_path, handler, where):
    adapter = Signalled(num_items=4, num_frames=2, bad=[0] * (where == "source"))
    adapter.where = where
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit, match=str(int(signal.SIGTERM))):
            GulpIngestor(adapter, tmp_path, 4, 1).run()
    finally:
        signal.signal(signal.SIGTERM, before)
    adapter.where = "nowhere"
    report = GulpIngestor(adapter, tmp_path, 4, 1, resume=True).run()
    assert not any("sys.exit" in each.message for each in report.failures)
    assert report.items == 4 - (where in ("source", "after an error"))


@pytest.mark.parametrize(
    "id_",
    [
        *(None, b"a", float("nan"), np.float64("nan")),
        *(np.float32("nan"), np.datetime64("NaT")),
    ],
)
def test_what_nobody_can_have_meant_for_an_id_is_refused(tmp_path, id_):
    class Odd(FrameAdapter):
        def item_ids(self):
            return None

        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "id": id_ if item["id"] == "item1" else item["id"]}

    report = GulpIngestor(Odd(num_items=3, num_frames=1), tmp_path, 3, 1).run()
    (failure,) = report.failures
    assert "it must be a string or an integer" in failure.message
    assert report.items == 2


@pytest.mark.parametrize(
    "frames",
    [
        make_frames(1)[0],
        make_frames(1)[0][..., 0],
        encode_frame(make_frames(1)[0], EncoderSettings()),
    ],
)
def test_one_image_in_the_place_of_a_list_is_refused(tmp_path, frames):
    class Single(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": frames} if item["id"] == "item1" else item

        def item_ids(self):
            return super().item_ids()

    report = GulpIngestor(Single(num_items=2, num_frames=1), tmp_path, 2, 1).run()
    (failure,) = report.failures
    assert "a single image, not a list of images" in failure.message
    assert report.items == 1


@pytest.mark.parametrize(
    ("frames", "advice"),
    [
        ("a.mp4", "files are given as VideoFrames(path) or ImageFrames(paths)"),
        ([Path("a.jpg")], "files are given as VideoFrames(path) or ImageFrames(paths)"),
        (Path("a.mp4"), "an iterable of images or a source as VideoFrames(path)"),
    ],
)
def test_a_path_in_the_place_of_frames_is_told_what_reads_it(tmp_path, frames, advice):
    class Named(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": frames}

    report = GulpIngestor(Named(num_items=1), tmp_path, 2, 1).run()
    (failure,) = report.failures
    assert advice in failure.message


def test_what_is_given_in_the_place_of_an_item_is_named(tmp_path):
    class Numbers(FrameAdapter):
        def iter_data(self, slice_element=None):
            yield 7

    report = GulpIngestor(Numbers(num_items=1), tmp_path, 2, 1).run()
    (failure,) = report.failures
    assert "item at position 0 is an int; it must be a dict" in failure.message


class Sourceless(FrameAdapter):
    """One that cannot say where its items come from."""

    def __init__(self, cause):
        super().__init__(num_items=3)
        self.cause = cause

    def item_ids(self):
        return ["a", "a", "b"]

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": self.item_ids()[item["meta"]["number"]]}

    def item_source(self, position):
        raise self.cause


@pytest.mark.parametrize("cause", [RuntimeError("no idea"), SystemExit(3)], ids=repr)
def test_repeated_ids_are_told_where_nobody_says_what_they_come_from(tmp_path, cause):
    adapter = Sourceless(cause)
    with pytest.raises(DuplicateIdError, match=r"'a' is that of another .*position 1"):
        GulpIngestor(adapter, tmp_path, 2, 1).run()
    report = GulpIngestor(adapter, tmp_path, 2, 1, on_duplicate="report").run()
    (failure,) = report.failures
    assert (report.items, failure.position, failure.source) == (2, 1, None)


class Counting(FrameAdapter):
    """One that gives these counts, the last of them from then on."""

    def __init__(self, counts, **options):
        super().__init__(num_items=4, **options)
        self.counts = list(counts)

    def describe(self):
        return {}

    def __len__(self):
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]


@pytest.mark.parametrize("call", [GulpIngestor.run, GulpIngestor.__call__])
@pytest.mark.parametrize("shard", [None, Shard(1, 2)], ids=["whole", "share"])
@pytest.mark.parametrize("counts", [(4, 2), (2, 4), (4, 4, 2)], ids=str)
def test_an_adapter_that_counts_otherwise_the_next_time_is_refused(
    tmp_path, call, shard, counts
):
    adapter = Counting(counts, list_ids=False)
    with pytest.raises(
        AdapterContractError,
        match=f"Counting counted {counts[0]} items, and then {counts[-1]}",
    ):
        call(GulpIngestor(adapter, tmp_path, 1, 1, shard=shard))
    assert not [path.name for path in tmp_path.iterdir() if "gulp" in path.name]


class RaisesBehind(FrameAdapter):
    """Raises after it has given an item, where the slice has it."""

    def __init__(self, behind):
        super().__init__(num_items=4, num_frames=1)
        self.behind = behind

    def iter_data(self, slice_element=None):
        last = None
        for item in super().iter_data(slice_element):
            if self.behind == "once" and item["id"] == "item1" and last == "item0":
                raise RuntimeError("of once")
            yield item
            last = item["id"]
            if self.behind == "one" and last == "item1":
                raise RuntimeError("of one")
        if self.behind == "all":
            raise RuntimeError("of all")


@pytest.mark.parametrize("behind", ["one", "all"])
@pytest.mark.parametrize("allow_failures", [True, False])
def test_a_call_raises_where_the_adapter_raised_behind_its_last_item(
    tmp_path, behind, allow_failures
):
    adapter = RaisesBehind(behind)
    ingestor = GulpIngestor(adapter, tmp_path, 4, 1, allow_failures=allow_failures)
    is_raised = behind == "all" and not allow_failures
    fine = contextlib.nullcontext()
    message = "RaisesBehind raised an error after it had given its last item"
    with pytest.raises(AdapterContractError, match=message) if is_raised else fine:
        ingestor()
    with GulpDirectory(tmp_path) as directory:
        assert len(directory) == 4


class RaisesAtTheEnd(FrameAdapter):
    """Raises behind the last of all items."""

    def iter_data(self, slice_element=None):
        last = None
        for item in super().iter_data(slice_element):
            yield item
            last = item["id"]
        if last == f"item{len(self) - 1}":
            raise RuntimeError("of the end")


@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_raised_behind_pieces_of_a_task_counts(
    tmp_path, monkeypatch, workers, list_ids
):
    adapter = RaisesAtTheEnd(num_items=40, num_frames=1)
    if list_ids:  # only then are tasks cut
        ids = [f"item{i}" for i in range(40)]
        monkeypatch.setattr(RaisesAtTheEnd, "item_ids", lambda _: ids)
    assert GulpIngestor(adapter, tmp_path, 20, workers).run().raised_behind == 1


def test_a_run_that_resumes_counts_what_was_raised_before(tmp_path, monkeypatch):
    adapter = RaisesAtTheEnd(num_items=4, num_frames=1)
    monkeypatch.setattr("gulpio2.ingest.task._TaskRun.stage", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(adapter, tmp_path, 4, 1).run()
    monkeypatch.undo()
    report = GulpIngestor(adapter, tmp_path, 4, 1, resume=True).run()
    assert (report.resumed, report.raised_behind) == (4, 1)


def _interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("behind", ["one", "all", "once"])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_an_adapter_raises_behind_an_item_is_told(
    tmp_path, monkeypatch, caplog, behind, workers
):
    monkeypatch.setattr("gulpio2.ingest.adapter_errors._warned", set())
    report = GulpIngestor(RaisesBehind(behind), tmp_path, 4, workers).run()
    assert (report.items, report.failures) == (4, [])
    assert report.raised_behind == (behind == "all")
    told = [r.getMessage() for r in caplog.records if "the adapter raised" in r.msg]
    if workers == 1:
        (message,) = told
        assert f"RuntimeError: of {behind} after it had given the item at" in message
