"""Chunks that several processes store together are as if one had stored them."""

import contextlib
import json
import os
import random
import time
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import DuplicateIdError, SourceReadError
from gulpio2.ingest.jobs import Job, Task, TaskResult
from gulpio2.ingest.pieces import CutTasks, Piece
from gulpio2.ingest.task import run_task
from gulpio2.storage import locks
from gulpio2.storage.local import open_store
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed, kill_until_done
from tests.faults.operations import content, in_child
from tests.ingest.in_one_process import InOneProcess

if TYPE_CHECKING:
    from gulpio2.ingest.report import ItemFailure


class Uneven(FrameAdapter):
    """Items of 1 to 5 frames, some of which cannot be read."""

    def _frames(self, number):
        for index, frame in enumerate(make_frames(1 + number % 5, 24, 32, seed=number)):
            if number in self.bad and index == number % 5:
                raise SourceReadError(f"item{number} was made to fail")
            yield frame


def task_of(start, stop, left_out=()):
    ids = frozenset(f"item{n}" for n in range(start, stop) if n not in left_out)
    return Task(0, start, stop, frozenset(left_out), ids=ids)


# --- cutting -----------------------------------------------------------------------
@pytest.mark.parametrize("num_workers", [2, 3, 8, 64])
@pytest.mark.parametrize("num_tasks", [1, 2, 5])
def test_the_pieces_of_a_task_have_each_of_its_positions_once(
    tmp_path, num_workers, num_tasks
):
    rng = random.Random(num_workers)
    ids = [f"item{n}" for n in range(1000)]
    for count in (1, 2, 3, 7, 40, 101):
        tasks, start = [], 5
        for index in range(num_tasks):
            span = range(start, start + count)
            left_out = frozenset(rng.sample(span[1:-1], count // 5))
            own = frozenset(ids[n] for n in span if n not in left_out)
            tasks.append(Task(index, span.start, span.stop, left_out, ids=own))
            start = span.stop
        cuts = CutTasks(tasks, ids, num_workers)
        handed = cuts.hand_out(tasks, open_store(tmp_path), resume=False)
        by_task = {
            task.index: sorted(
                (each for each in handed if each.index == task.index),
                key=lambda each: each.start,
            )
            for task in tasks
        }
        for task in tasks:
            pieces = by_task[task.index]
            positions = [n for piece in pieces for n in piece.positions()]
            assert positions == task.positions()
            assert (pieces[0].start, pieces[-1].stop) == (task.start, task.stop)
            assert [each.stop for each in pieces[:-1]] == [p.start for p in pieces[1:]]
            assert all(
                piece.ids == frozenset(ids[n] for n in piece.positions())
                for piece in pieces
            )
            assert len({piece.name for piece in pieces}) == len(pieces)
            assert pieces[0].name == task.name
            # Only the last ones, one to a worker, and only where there is what to cut.
            is_cut = num_tasks - task.index <= num_workers and len(pieces) > 1
            assert [each.piece for each in pieces] == (
                ["first"] + ["later"] * (len(pieces) - 1) if is_cut else [""]
            )
        if count > num_workers > num_tasks:
            assert len(handed) >= num_workers  # all of them have something to do


def test_nothing_is_cut_for_one_worker_or_without_a_list_of_ids(tmp_path):
    tasks = [task_of(0, 50)]
    ids = [f"item{n}" for n in range(50)]
    for known, workers in ((ids, 1), (None, 4), (ids, 0)):
        cuts = CutTasks(tasks, known, workers)
        assert cuts.hand_out(tasks, open_store(tmp_path), resume=False) == tasks


def test_the_task_comes_after_its_last_piece_and_takes_over_the_later_ones(tmp_path):
    def result_of(piece):
        return TaskResult(piece, given=piece.stop - piece.start)

    task, store = task_of(0, 20), open_store(tmp_path)
    cuts = CutTasks([task], [f"item{n}" for n in range(20)], 2)
    first, *later = cuts.hand_out([task], store, resume=False)
    for piece in later:
        assert cuts.take(result_of(piece), store) is None
    closing = cuts.take(result_of(first), store)
    assert closing is not None
    assert (closing.start, closing.stop, closing.piece) == (0, 20, "")
    assert closing.later_spans == tuple(range(p.start, p.stop) for p in later)
    assert cuts.settle(TaskResult(closing)) == task


# --- what is stored ----------------------------------------------------------------
def told_of(report):
    told = asdict(report)
    del told["seconds"], told["resumed"]
    return told


@pytest.mark.parametrize("per_chunk", [1, 2, 7, 16, 100])
@pytest.mark.parametrize("workers", [2, 3, 7])
def test_bytes_and_report_are_those_of_one_process(tmp_path, per_chunk, workers):
    adapter = Uneven(num_items=33, bad=(0, 12, 13, 20, 32))
    one = GulpIngestor(adapter, tmp_path / "one", per_chunk, 1).run()
    several = InOneProcess(adapter, tmp_path / "several", per_chunk, workers).run()
    assert content(tmp_path / "several") == content(tmp_path / "one")
    assert told_of(several) == told_of(one)
    assert not list((tmp_path / "several").glob("chunk_*"))


def test_failures_are_told_once_and_progress_counts_each_item_once(tmp_path):
    told: dict[str, int] = {}
    failures: list[ItemFailure] = []

    def progress(**counts):
        for name, count in counts.items():
            told[name] = told.get(name, 0) + count

    report = InOneProcess(
        Uneven(num_items=33, bad=(0, 12, 13, 20, 32)),
        tmp_path,
        100,
        4,
        progress=progress,
        on_failure=failures.append,
    ).run()
    assert (report.items, len(report.failures)) == (28, 5)
    assert sorted(each.position for each in failures) == [0, 12, 13, 20, 32]
    wanted = {"items": 28, "failures": 5, "frames": report.frames}
    assert {**told, **wanted} == told
    assert told["num_bytes"] == report.num_bytes


def test_ids_that_are_taken_are_left_out_of_every_piece(tmp_path):
    for name, ingestor in (("one", GulpIngestor), ("several", InOneProcess)):
        folder = tmp_path / name
        GulpIngestor(Uneven(num_items=9), folder, 100, 1).run()
        adapter = Uneven(num_items=40, bad=(30,))
        report = ingestor(adapter, folder, 100, 3, on_duplicate="skip").run()
        assert (report.items, report.skipped) == (30, 9)
    assert content(tmp_path / "one") == content(tmp_path / "several")


def test_real_processes_share_one_chunk(tmp_path):
    adapter = Uneven(num_items=60, bad=(3, 59))
    GulpIngestor(adapter, tmp_path / "one", 100, 1).run()
    GulpIngestor(adapter, tmp_path / "several", 100, 3).run()
    assert content(tmp_path / "several") == content(tmp_path / "one")


class Noting(Uneven):
    """Notes which process was asked for which items, in a file, and takes its time."""

    notes: ClassVar[Path]
    item_ids = Uneven.item_ids  # an inherited list is not that of a new iter_data

    def iter_data(self, slice_element=None):
        with self.notes.open("a") as file:
            file.write(f"{os.getpid()} {slice_element.start} {slice_element.stop}\n")
        for item in super().iter_data(slice_element):
            time.sleep(0.001)
            yield item


def notes_in(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def test_the_items_of_one_chunk_are_made_by_more_than_one_process(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Noting, "notes", tmp_path / "asked", raising=False)
    # Space is estimated by asking for some of them.
    GulpIngestor(
        Noting(num_items=200), tmp_path / "out", 200, 2, ignore_space=True
    ).run()
    asked = notes_in(tmp_path / "asked")
    assert len({pid for pid, _, _ in asked}) == 2
    positions = sorted(n for _, start, stop in asked for n in range(start, stop))
    assert positions == list(range(200))  # each is asked for once


# --- adapters that do not keep to what they say -----------------------------------
class Shuffled(Uneven):
    """Lists its ids in another order than it gives them."""

    def item_ids(self):
        return Uneven.item_ids(self)[::-1]  # type: ignore[index]  # it lists them


class Shorter(Uneven):
    """Gives nothing behind its 25th item."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] < 25:
                yield item


class Holes(Uneven):
    """Leaves every fourth item out without a word."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] % 4:
                yield item


class Twice(Uneven):
    """Gives an id a second time, in place of the one that it lists."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": "item3"} if item["id"] == "item20" else item


class All(Uneven):
    """Gives all its items, whichever are asked for."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        del slice_element
        return super().iter_data()


class More(Uneven):
    """Gives two items more than it is asked for."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        start, stop = slice_element.start, slice_element.stop
        return super().iter_data(slice(start, stop + 2))


@pytest.mark.parametrize("kind", [Shuffled, Shorter, Holes, Twice, All, More])
@pytest.mark.parametrize("on_duplicate", ["raise", "skip", "report"])
@pytest.mark.parametrize("workers", [2, 5])
def test_adapters_that_break_the_contract_are_taken_as_by_one_process(
    tmp_path, kind, on_duplicate, workers
):
    ends = []
    for name, ingestor, number in (
        ("one", GulpIngestor, 1),
        ("several", InOneProcess, workers),
    ):
        told: Counter[str] = Counter()
        try:
            report = ingestor(
                kind(num_items=30, bad=(4, 26)),
                tmp_path / name,
                100,
                number,
                on_duplicate=on_duplicate,
                progress=lambda told=told, **counts: told.update(counts),
            ).run()
        except DuplicateIdError as error:
            ends.append(str(error).replace(name, ""))
            continue
        ends.append(told_of(report))
        assert told["items"] == report.items
        assert told["failures"] == len(report.failures)
    assert ends[0] == ends[1]
    folders = (tmp_path / "one", tmp_path / "several")
    # Of a run that was refused before it stored anything there is no folder.
    one, several = (content(each) if each.exists() else None for each in folders)
    assert one == several


class OneDict(Uneven):
    """Fills one dict again and again, instead of giving each item its own."""

    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        meta: dict[str, int] = {}
        for item in super().iter_data(slice_element):
            meta["number"] = item["meta"]["number"]
            yield {**item, "meta": meta}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_items_that_share_a_dict_have_what_was_in_it_when_they_came(tmp_path, workers):
    adapter = OneDict(num_items=30, bad=(4, 26))
    ingestor = InOneProcess if workers > 1 else GulpIngestor
    ingestor(adapter, tmp_path / "gulped", 12, workers).run()
    for id_, entry in GulpDirectory(tmp_path / "gulped").merged_meta_dict.items():
        assert f"item{entry['meta_data'][0]['number']}" == id_


@pytest.mark.parametrize("is_held", [False, True])
def test_the_first_of_a_slice_keeps_its_metadata_where_the_next_one_fails(
    tmp_path, is_held
):
    held: dict[str, int] = {}

    class Second(FrameAdapter):
        def iter_data(self, slice_element=None):
            meta = held if is_held else {}
            for item in super().iter_data(slice_element):
                meta.update(item["meta"])
                if meta["number"] == 1:
                    raise SourceReadError("it is not there")
                yield {**item, "meta": meta}

    GulpIngestor(Second(num_items=4), tmp_path / "gulped", 4, 1).run()
    entries = GulpDirectory(tmp_path / "gulped").merged_meta_dict.values()
    assert [entry["meta_data"][0]["number"] for entry in entries] == [0, 2, 3]


def test_what_is_added_to_metadata_before_the_next_item_fails_is_stored(tmp_path):
    class Late(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                if item["meta"]["number"] == 1:
                    raise SourceReadError("it is not there")
                yield item
                item["meta"]["late"] = True

    GulpIngestor(Late(num_items=3), tmp_path / "gulped", 3, 1).run()
    entries = GulpDirectory(tmp_path / "gulped").merged_meta_dict.values()
    assert [entry["meta_data"][0] for entry in entries] == [
        {"number": 0, "late": True},
        {"number": 2, "late": True},
    ]


@pytest.mark.parametrize("is_told", [False, True])
def test_a_shared_dict_is_not_that_of_an_item_which_is_never_given(tmp_path, is_told):
    class Gone(FrameAdapter):
        def iter_data(self, slice_element=None):
            meta: dict[str, int] = {}
            for item in super().iter_data(slice_element):
                meta["number"] = item["meta"]["number"]
                if meta["number"] not in (2, 5):
                    yield {**item, "meta": meta}
                elif is_told:
                    raise SourceReadError("it is not there")

    GulpIngestor(Gone(num_items=6), tmp_path / "gulped", 6, 1).run()
    entries = GulpDirectory(tmp_path / "gulped").merged_meta_dict.values()
    assert [entry["meta_data"][0]["number"] for entry in entries] == [0, 1, 3, 4]


class Filling(FrameAdapter):
    """Fills one dict for some of its items; one of them fails the first time."""

    def __init__(self, given, *, flaky=False, lists=True):
        super().__init__(num_items=4)
        self.given, self.flaky, self.lists = given, [flaky], lists

    def item_ids(self):
        return super().item_ids() if self.lists else None

    def iter_data(self, slice_element=None):
        meta: dict[str, int] = {}
        for item in super().iter_data(slice_element):
            number = item["meta"]["number"]
            if number in self.given:
                meta["number"] = number
                if number == 1 and self.flaky[0]:
                    self.flaky[0] = False
                    raise SourceReadError("it is not there for the moment")
                yield {**item, "meta": meta}


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize(("given", "flaky"), [({0, 2, 3}, False), ({0, 1, 2}, True)])
def test_the_first_item_keeps_its_metadata_whatever_becomes_of_the_next(
    tmp_path, given, flaky, lists
):
    adapter = Filling(given, flaky=flaky, lists=lists)
    GulpIngestor(adapter, tmp_path / "gulped", 4, 1).run()
    entries = GulpDirectory(tmp_path / "gulped").merged_meta_dict
    numbers = {id_: entry["meta_data"][0]["number"] for id_, entry in entries.items()}
    assert numbers == {f"item{number}": number for number in given}


def test_an_item_keeps_its_metadata_where_the_next_one_is_stored_already(tmp_path):
    GulpIngestor(Filling({1}), tmp_path / "gulped", 4, 1).run()
    adapter = Filling({0, 1})
    GulpIngestor(adapter, tmp_path / "gulped", 4, 1, on_duplicate="skip").run()
    entries = GulpDirectory(tmp_path / "gulped").merged_meta_dict
    numbers = {id_: entry["meta_data"][0]["number"] for id_, entry in entries.items()}
    assert numbers == {"item0": 0, "item1": 1}


class Crashing(Uneven):
    """Ends its process where some items are made."""

    parent = os.getpid()
    item_ids = Uneven.item_ids

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] in (3, 22, 37) and os.getpid() != self.parent:
                os.abort()
            yield item


def test_items_that_crash_a_worker_cost_themselves_and_all_is_told_once(tmp_path):
    adapter = Crashing(num_items=40, bad=(0, 5, 25, 38))
    adapter.parent = os.getpid()
    told: Counter[str] = Counter()
    failures: list[int] = []
    report = GulpIngestor(
        adapter,
        tmp_path,
        100,
        4,
        ignore_space=True,
        progress=lambda **counts: told.update(counts),
        on_failure=lambda failure: failures.append(failure.position),
    ).run()
    assert sorted(failures) == [0, 3, 5, 22, 25, 37, 38]
    assert [each.position for each in report.failures] == sorted(failures)
    assert (told["items"], told["failures"]) == (33, 7) == (report.items, 7)
    names = json.loads((tmp_path / "meta_0.gmeta").read_text())
    assert list(names) == [f"item{n}" for n in range(40) if n not in failures]


# --- interrupted --------------------------------------------------------------------
def ingest_in_pieces(folder, *, resume=False, workers=3, in_one_process=True):
    adapter = Uneven(num_items=14, bad=(2, 9))
    ingestor = InOneProcess if in_one_process else GulpIngestor
    return ingestor(adapter, folder, 14, workers, resume=resume).run()


def test_killed_at_every_operation_and_resumed_it_is_the_same_chunk(
    tmp_path, monkeypatch, kill_step
):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    ingest_in_pieces(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    most = 0
    for number in range(1, 1000, kill_step):
        folder = tmp_path / str(number)
        if not is_killed(number, ingest_in_pieces, folder):
            break
        # Whatever number of workers goes on with it, and in whatever way.
        is_complete = (folder / "gulp.json").exists()
        report = ingest_in_pieces(
            folder,
            resume=True,
            workers=1 + number % 4,
            in_one_process=number % 10 > 0,
        )
        assert content(folder) == expected, number
        assert report.items == 12 or is_complete
        assert report.resumed <= report.items
        most = max(most, report.resumed)
    assert number > 80
    assert most == 12


def test_a_piece_that_one_takes_over_is_left_to_that_by_another(tmp_path, monkeypatch):
    """As by a worker that outlives its run, which is resumed meanwhile."""
    monkeypatch.setattr(locks, "_PATIENCE", -1)
    adapter, store = FrameAdapter(num_items=9), open_store(tmp_path)
    job = Job(adapter, str(tmp_path), EncoderSettings(), "raise", None, frozenset())
    task = task_of(0, 9)
    cuts = CutTasks([task], [f"item{n}" for n in range(9)], 2)
    _, later, *_ = cuts.hand_out([task], store, resume=False)
    run_task(job, later, lambda **_: None)
    span = range(later.start, later.stop)
    with contextlib.closing(Piece(store, task, span)) as piece:
        with contextlib.closing(Piece(store, task, span)) as other:
            assert other.ids_from(0) == []
            other.remove()
        assert piece.ids_from(0) == [f"item{n}" for n in span]
    with contextlib.closing(Piece(store, task, span)) as again:
        assert again.ids_from(0) == piece.ids_from(0)


def test_killed_again_while_resuming_it_still_gets_there(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    ingest_in_pieces(tmp_path / "whole")
    folder = tmp_path / "killed"
    assert kill_until_done(partial(ingest_in_pieces, folder), range(30, 127)) > 3
    assert content(folder) == content(tmp_path / "whole")


def test_what_pieces_had_stored_is_not_asked_for_again(tmp_path, monkeypatch):
    """Also where the chunk was being closed: then nothing is asked for at all."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    adapter = Noting(num_items=40, bad=(7, 20, 21, 22, 23, 24))

    folder = tmp_path / "out"
    removed = []

    def die_at_third(piece):
        removed.append(piece)
        if len(removed) == 3:
            os._exit(9)
        original(piece)

    original = Piece.remove

    def begin():
        monkeypatch.setattr(Piece, "remove", die_at_third)
        InOneProcess(adapter, folder, 100, 2).run()

    monkeypatch.setattr(Noting, "notes", tmp_path / "before", raising=False)

    assert os.WEXITSTATUS(in_child(begin)) == 9
    told: dict[str, int] = {}

    def count(**counts):
        for name, number in counts.items():
            told[name] = told.get(name, 0) + number

    monkeypatch.setattr(Noting, "notes", tmp_path / "after")
    again = InOneProcess(
        adapter,
        folder,
        100,
        2,
        resume=True,
        progress=count,
        ignore_space=True,
    ).run()
    assert (again.items, again.resumed, len(again.failures)) == (34, 34, 6)
    assert (told["items"], told["failures"]) == (34, 6)
    assert sum(stop - start for _, start, stop in notes_in(tmp_path / "before")) >= 40
    assert notes_in(tmp_path / "after") == []
    GulpIngestor(adapter, tmp_path / "whole", 100, 1).run()
    assert content(folder) == content(tmp_path / "whole")


@pytest.mark.parametrize("kind", ["chunk_0-*.journal.*", "chunk_0-*.gulp.*"])
def test_a_changed_byte_in_a_piece_costs_no_right_byte(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    ingest_in_pieces(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    rng = np.random.default_rng(3)
    tried = 0
    for number in range(60, 110, 2):
        folder = tmp_path / f"{kind[-4:-2]}{number}"
        if not is_killed(number, ingest_in_pieces, folder):
            break
        for path in folder.glob(kind):
            data = bytearray(path.read_bytes())
            if data:
                data[rng.integers(len(data))] ^= 0x55
                path.write_bytes(data)
                tried += 1
        ingest_in_pieces(folder, resume=True)
        assert content(folder) == expected, number
    assert tried > 10
