"""Items are matched by id with what an adapter lists, whatever it gives."""

from __future__ import annotations

import os
from typing import ClassVar

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.ingest.items import place_items
from gulpio2.ingest.shard import Shard
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import content

LISTED = {f"item{number}" for number in range(8)}


class Listing(FrameAdapter):
    """Lists item0 to item7, gives those that are there, and knows their files."""

    holes: ClassVar[list[int]] = [2]

    def __init__(self, bad=()):
        super().__init__(num_items=8, num_frames=2, bad=bad)

    def numbers(self, part):
        return range(8)[part]

    def item_ids(self):
        return [f"item{number}" for number in range(8)]

    def item_source(self, position):
        return f"{position}.mp4"

    def iter_data(self, slice_element=None):
        for number in self.numbers(slice_element or slice(None)):
            yield from super().iter_data(slice(number, number + 1))


class Holes(Listing):
    """Passes items over, of each slice those that are not there."""

    def numbers(self, part):
        return [number for number in range(8)[part] if number not in self.holes]


class Filtered(Listing):
    """Gives the slice of a list in which some items are not."""

    def numbers(self, part):
        return [number for number in range(8) if number not in self.holes][part]


class Shuffled(Listing):
    """Gives items in another order than it lists them."""

    holes: ClassVar[list[int]] = []

    def numbers(self, part):
        return [5, 2, 7, 0, 6, 1, 3, 4][part]


def store(folder, numbers):
    """Have these items in the directory already."""

    class Some(FrameAdapter):
        def __len__(self):
            return len(numbers)

        def item_ids(self):
            return None

        def iter_data(self, slice_element=None):
            for number in numbers[slice_element or slice(None)]:
                yield from super().iter_data(slice(number, number + 1))

    if numbers:
        GulpIngestor(Some(num_items=8, num_frames=2), folder, 100, 1).run()


def assert_each_is_itself(folder):
    """Compare frames and metadata with what each id stands for."""
    with GulpDirectory(folder) as directory:
        for id_ in directory.merged_meta_dict:
            frames, meta = directory[id_]
            number = int(id_.removeprefix("item"))
            drawn = make_frames(2, seed=number)
            assert meta["number"] == number
            assert np.abs(frames[0].astype(int) - drawn[0]).mean() < 8
        return set(directory.merged_meta_dict)


@pytest.mark.parametrize("kind", [Holes, Filtered, Shuffled])
@pytest.mark.parametrize("stored", [[], [3], [3, 6], [1, 5]], ids=str)
@pytest.mark.parametrize("on_duplicate", ["raise", "skip", "report"])
@pytest.mark.parametrize("workers", [1, 2])
def test_each_item_is_stored_and_told_of_by_its_id(
    tmp_path, caplog, kind, stored, on_duplicate, workers
):
    stored = [] if on_duplicate == "raise" else stored  # or nothing is asked for
    store(tmp_path, stored)
    report = GulpIngestor(
        kind(bad=(4,)), tmp_path, 100, workers, on_duplicate=on_duplicate
    ).run()
    missing = {f"item{number}" for number in kind.holes}
    there = assert_each_is_itself(tmp_path)
    assert there == LISTED - missing - {"item4"}
    taken = [f"item{number}" for number in stored] if on_duplicate == "report" else []
    assert {failure.id for failure in report.failures} == {"item4", *taken}
    for failure in report.failures:
        position = kind().item_ids().index(failure.id)
        assert (failure.position, failure.source) == (position, f"{position}.mp4")
    assert report.not_given == len(missing)
    counts = report.items, report.skipped, len(report.failures), report.not_given
    assert sum(counts) == 8
    named = [line for line in caplog.messages if "lists 1 item that it did not" in line]
    assert len(named) == len(kind.holes)
    assert all("'item2', position 2 (2.mp4); what it" in line for line in named)


def test_an_item_given_for_another_share_of_the_positions_is_told_of_once(tmp_path):
    report = GulpIngestor(Filtered(), tmp_path, 3, 1).run()
    assert assert_each_is_itself(tmp_path) == {f"item{n}" for n in (0, 1, 4, 5, 7)}
    assert [failure.id for failure in report.failures] == ["item3", "item6"]
    assert report.not_given == 1  # item2 alone: the others were given, and failed


class AndMore(Holes):
    """Gives an item that it does not list in the place of the one that it lists."""

    def item_ids(self):
        return super().item_ids()

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield item
            if item["id"] == "item1":
                yield {**item, "id": "more"}


def test_an_item_that_is_not_listed_does_not_stand_for_one_that_is(tmp_path, caplog):
    report = GulpIngestor(AndMore(), tmp_path, 100, 1).run()
    assert (report.items, report.not_given) == (7, 1)
    assert [failure.id for failure in report.failures] == ["more"]
    assert "'item2', position 2" in caplog.text


@pytest.mark.parametrize("kind", [Holes, Filtered])
def test_shares_tell_what_they_were_not_given(tmp_path, kind):
    reports = [
        GulpIngestor(kind(), tmp_path / str(n), 3, 1, shard=Shard(n, 2)).run()
        for n in (1, 2)
    ]
    told = [
        (report.items, len(report.failures), report.not_given) for report in reports
    ]
    # Positions 0 to 2, and the others; item3 and item6 come where they are not listed.
    assert told == ([(2, 0, 1), (5, 0, 0)] if kind is Holes else [(2, 1, 1), (3, 1, 1)])


@pytest.mark.parametrize("kind", [Holes, Filtered, Shuffled])
def test_killed_at_any_operation_and_resumed_nothing_is_lost(
    tmp_path, monkeypatch, kind, kill_step
):
    monkeypatch.setattr(os, "fsync", lambda fd: None)

    def ingest(folder, **options):
        options = {"on_duplicate": "skip", **options}
        return GulpIngestor(kind(bad=(5,)), folder, 100, 1, **options).run()

    store(tmp_path / "whole", [3])
    expected = ingest(tmp_path / "whole")
    for number in range(1, 1000, kill_step):
        folder = tmp_path / str(number)
        store(folder, [3])
        if not is_killed(number, ingest, folder):
            break
        if (folder / "gulp.json").exists() and not (folder / "ingest.journal").exists():
            continue
        report = ingest(folder, resume=True)
        assert content(folder) == content(tmp_path / "whole"), number
        assert report.not_given == expected.not_given
        assert report.failures == expected.failures
    assert number > 20


class Crashing(Holes):
    """Ends its process where item4 is made."""

    parent = os.getpid()

    def item_ids(self):
        return super().item_ids()

    def iter_data(self, slice_element=None):
        for number in self.numbers(slice_element or slice(None)):
            if number == 4 and os.getpid() != self.parent:
                os.abort()
            yield from super().iter_data(slice(number, number + 1))


def test_an_item_that_crashes_behind_one_that_is_not_given_costs_itself(tmp_path):
    adapter = Crashing()
    adapter.parent = os.getpid()
    report = GulpIngestor(adapter, tmp_path, 100, 2, ignore_space=True).run()
    assert [failure.position for failure in report.failures] == [4]
    assert assert_each_is_itself(tmp_path) == LISTED - {"item2", "item4"}
    assert report.not_given == 1


def test_one_at_a_time_is_asked_for_only_where_an_item_comes_before_its_turn():
    asked = []

    class Noting(Holes):
        def iter_data(self, slice_element=None):
            asked.append((slice_element.start, slice_element.stop))
            return super().iter_data(slice_element)

    adapter = Noting()
    items = list(place_items(adapter, 0, 8, adapter.item_ids()))
    assert [item.position for item in items] == [0, 1, 3, 4, 5, 6, 7]
    assert asked == [(0, 8), *((n, n + 1) for n in range(2, 8))]
    asked.clear()
    list(place_items(adapter, 3, 8, adapter.item_ids()[3:]))
    assert asked == [(3, 8)]


class Repeated(Holes):
    """Lists the item that it does not give once more, at its end."""

    def item_ids(self):
        return [*super().item_ids()[:-1], "item2"]


def test_a_repeat_that_is_reported_does_not_stand_for_the_one_that_did_not_come(
    tmp_path, caplog
):
    report = GulpIngestor(Repeated(), tmp_path, 100, 1, on_duplicate="report").run()
    assert [failure.position for failure in report.failures] == [7]
    assert (report.items, report.not_given) == (6, 1)
    assert "'item2', position 2" in caplog.text
