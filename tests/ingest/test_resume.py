"""Resuming: what it goes on with, and what it refuses."""

import errno
import os
import re
import time
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import (
    DuplicateIdError,
    IngestError,
    MetaFileError,
    StorageError,
)
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.ingest.journal import RunJournal
from gulpio2.ingest.shard import Shard
from gulpio2.removal import delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.staging import ChunkSession
from gulpio2.storage.local import LocalStore, open_store
from gulpio2.testing import FrameAdapter
from tests.chunks import open_files
from tests.faults.killed import is_killed, is_killed_when
from tests.faults.operations import content, in_child


def ingest(folder, *, resume=False, num_items=6, items_per_chunk=2, **options):
    adapter = FrameAdapter(num_items=num_items, num_frames=2)
    return GulpIngestor(adapter, folder, items_per_chunk, 1, resume=resume, **options)


@pytest.fixture
def interrupted(tmp_path):
    """Make a directory whose ingest was killed when it had one chunk of three."""
    folder = tmp_path / "interrupted"
    assert is_killed_when((folder / "meta_0.gmeta").exists, ingest(folder).run)
    assert len(GulpDirectory(folder)) == 2
    return folder


def test_a_run_without_resume_is_refused_and_spoils_nothing(interrupted, tmp_path):
    before = content(interrupted)
    with pytest.raises(DuplicateIdError, match="was interrupted: resume=True"):
        ingest(interrupted).run()
    assert content(interrupted) == before
    ingest(interrupted, resume=True).run()
    ingest(tmp_path / "whole").run()
    assert content(interrupted) == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_items": 7}, "items was 6 and is 7"),
        ({"items_per_chunk": 3}, "videos_per_chunk was 2 and is 3"),
        ({"on_duplicate": "skip"}, "on_duplicate was 'raise' and is 'skip'"),
        ({"chunk_bytes": 10}, "chunk_bytes was None and is 10"),
    ],
)
def test_other_arguments_are_refused_and_named(interrupted, options, message):
    before = content(interrupted)
    with pytest.raises(IngestError, match=message):
        ingest(interrupted, resume=True, **options).run()
    assert content(interrupted) == before


def test_resuming_what_is_complete_does_nothing(tmp_path):
    ingest(tmp_path).run()
    before = content(tmp_path)
    assert ingest(tmp_path, resume=True).run().items == 0
    assert content(tmp_path) == before


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_chunk_that_was_cut_is_not_passed_over_as_stored(interrupted, is_finished):
    if is_finished:
        ingest(interrupted, resume=True).run()
    number = 1 if is_finished else 0
    data = interrupted / f"data_{number}.gulp"
    os.truncate(data, data.stat().st_size - 1)
    before = content(interrupted)
    with pytest.raises(IngestError, match=rf"data_{number}\.gulp holds.*was cut"):
        ingest(interrupted, resume=True).run()
    with pytest.raises(IngestError, match="was cut"):
        ingest(interrupted, resume=True).left_to_resume()
    assert content(interrupted) == before


@pytest.mark.parametrize("is_map_alone", [False, True])
@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("deleted", [True, False])
def test_a_chunk_that_is_gone_is_not_passed_over_as_stored(
    tmp_path, list_ids, deleted, is_map_alone
):
    def run(**options):
        adapter = FrameAdapter(num_items=6, num_frames=2, list_ids=list_ids)
        return GulpIngestor(adapter, tmp_path, 2, 1, **options)

    run().run()
    if deleted:
        delete_items(tmp_path, ["item0"])
    (tmp_path / "meta_2.gmeta").unlink()
    message = r"data_2\.gulp is there and meta_2\.gmeta is missing"
    if not is_map_alone:
        (tmp_path / "data_2.gulp").unlink()
        message = r"data_2\.gulp and its map are missing"
    before = content(tmp_path)
    for resume in (run(resume=True).run, run(resume=True).left_to_resume):
        with pytest.raises(IngestError, match=message):
            resume()
    assert content(tmp_path) == before


def test_a_map_that_has_lost_items_is_not_passed_over_as_stored(interrupted):
    path = interrupted / "meta_0.gmeta"
    path.write_bytes(dump_gmeta({}))
    before = content(interrupted)
    with pytest.raises(IngestError, match=r"meta_0\.gmeta has 0 items, and 2 were st"):
        ingest(interrupted, resume=True).run()
    assert content(interrupted) == before


class Described(FrameAdapter):
    """Tells an option that is no number, which is not equal to itself."""

    def describe(self):
        return {"scale": float("nan")}


def test_a_run_is_known_again_by_options_that_are_not_equal_to_themselves(tmp_path):
    GulpIngestor(Described(num_items=4), tmp_path / "a", 2, 1).run()
    again = GulpIngestor(Described(num_items=4), tmp_path / "a", 2, 1, resume=True)
    assert again.run().items == 0
    for number in (1, 2):
        shard = Shard(number, 2)
        GulpIngestor(Described(num_items=4), tmp_path / "b", 2, 1, shard=shard).run()
    with GulpDirectory(tmp_path / "b") as directory:
        assert len(directory.manifest.runs) == 1


def test_what_is_complete_tells_what_failed(tmp_path):
    adapter = FrameAdapter(num_items=4, num_frames=2, bad=[1])
    first = GulpIngestor(adapter, tmp_path, 2, 1).run()
    again = GulpIngestor(adapter, tmp_path, 2, 1, resume=True).run()
    assert (again.items, again.failures) == (0, first.failures)
    with pytest.raises(IngestError, match="position 1"):
        GulpIngestor(adapter, tmp_path, 2, 1, resume=True)()


def test_an_interrupted_run_is_not_given_up_for_another_without_a_word(
    interrupted, caplog
):
    ingest(interrupted, on_duplicate="skip").run()
    assert not caplog.records  # the same, and all of it
    journal = RunJournal(open_store(interrupted), {"adapter": "Other", "items": 9})
    journal.begin(3, "plan", 1)
    journal.close()
    ingest(interrupted, on_duplicate="skip").run()
    (record,) = caplog.records
    assert "is given up for this one" in record.getMessage()
    assert "adapter was 'Other' and is 'FrameAdapter'" in record.getMessage()
    assert not (interrupted / "ingest.journal").exists()


def test_a_run_that_begins_anew_says_that_it_could_have_gone_on(tmp_path, caplog):
    assert is_killed(30, ingest(tmp_path).run)
    assert (tmp_path / "ingest.journal").exists()
    assert not len(GulpDirectory(tmp_path))
    ingest(tmp_path).run()
    (record,) = caplog.records
    assert "begins anew" in record.getMessage()
    assert "--resume" in record.getMessage()


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({}, {"tags": ["x"]}, "tags was not given and is ['x']"),
        ({"tags": ["x"]}, {}, "tags was ['x'] and is not given"),
    ],
)
def test_an_option_that_only_one_run_was_given_is_named(tmp_path, before, now, said):
    store = open_store(tmp_path)
    journal = RunJournal(store, {"options": before})
    journal.begin(0, "plan", 1)
    journal.close()
    journal = RunJournal(store, {"options": now})
    with pytest.raises(IngestError, match=re.escape(f"options.{said}")):
        journal.read()


def test_the_advice_about_a_chunk_that_was_cut_leads_to_a_whole_directory(tmp_path):
    ingest(tmp_path / "cut").run()
    os.truncate(tmp_path / "cut" / "data_1.gulp", 100)
    assert not repair_directory(tmp_path / "cut", tmp_path / "mended").ok
    report = ingest(tmp_path / "mended", on_duplicate="skip").run()
    assert (report.items, report.skipped) == (2, 4)
    assert check_directory(tmp_path / "mended", deep=True).ok
    ids = FrameAdapter(num_items=6, num_frames=2).item_ids()
    assert ids is not None
    assert {*ids} <= {*GulpDirectory(tmp_path / "mended").merged_meta_dict}


def test_resuming_where_nothing_was_begun_is_a_run(tmp_path):
    assert ingest(tmp_path, resume=True).run().items == 6


def test_a_damaged_journal_is_named_and_the_rest_can_be_done_anew(interrupted):
    path = interrupted / "ingest.journal"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(MetaFileError, match=r"ingest.journal is damaged.*done again"):
        ingest(interrupted, resume=True).run()
    ingest(interrupted, on_duplicate="skip").run()
    assert len(GulpDirectory(interrupted)) == 6
    assert not path.exists()


def test_a_run_that_ended_before_a_full_chunk_was_closed_closes_it(
    tmp_path, monkeypatch
):
    adapter = FrameAdapter(num_items=6, num_frames=3)
    GulpIngestor(adapter, tmp_path / "whole", 6, 1, chunk_bytes=4000).run()

    def stop(*_):
        raise KeyboardInterrupt

    ingestor = GulpIngestor(adapter, tmp_path / "cut", 6, 1, chunk_bytes=4000)
    with monkeypatch.context() as patch:
        patch.setattr(ChunkSession, "stage", stop)
        with pytest.raises(KeyboardInterrupt):
            ingestor.run()
    report = GulpIngestor(
        adapter, tmp_path / "cut", 6, 1, chunk_bytes=4000, resume=True
    ).run()
    assert 0 < report.resumed < 6
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


class Files(FrameAdapter):
    """Items with the names of files, of which some may come and go."""

    def __init__(self, names):
        super().__init__(num_items=len(names), num_frames=2)
        self.names = names

    def describe(self):
        return {}

    def item_ids(self):
        return list(self.names)

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": self.names[item["meta"]["number"]]}


NAMES = [f"v{number:02}" for number in range(12)]


@pytest.mark.parametrize(
    "names",
    [[*NAMES[1:], "z00"], ["a00", *NAMES[:-1]], list(reversed(NAMES))],
    ids=["first became last", "last became first", "another order"],
)
def test_other_items_than_those_of_the_interrupted_run_are_refused(tmp_path, names):
    assert is_killed(64, GulpIngestor(Files(NAMES), tmp_path, 4, 1).run)
    before = content(tmp_path)
    assert "ingest.journal" in before
    with pytest.raises(IngestError, match="no longer those of the run that was inter"):
        GulpIngestor(Files(names), tmp_path, 4, 1, resume=True).run()
    assert content(tmp_path) == before
    assert GulpIngestor(Files(NAMES), tmp_path, 4, 1, resume=True).run().items == 12


def test_items_deleted_while_a_run_was_interrupted_are_noticed(tmp_path):
    GulpIngestor(Files(NAMES[:2]), tmp_path, 4, 1).run()
    assert is_killed(
        61, GulpIngestor(Files(NAMES), tmp_path, 4, 1, on_duplicate="skip").run
    )
    delete_items(tmp_path, ["v00"])
    again = GulpIngestor(Files(NAMES), tmp_path, 4, 1, on_duplicate="skip", resume=True)
    with pytest.raises(IngestError, match="or deleted here"):
        again.run()


def test_a_run_whose_dataset_has_grown_is_not_complete(tmp_path):
    GulpIngestor(Files(NAMES[:4]), tmp_path, 4, 1).run()
    options: Any = {"resume": True, "on_duplicate": "skip"}
    assert GulpIngestor(Files(NAMES[:4]), tmp_path, 4, 1, **options).run().items == 0
    report = GulpIngestor(Files(NAMES), tmp_path, 4, 1, **options).run()
    assert (report.items, report.skipped) == (8, 4)


def test_a_complete_run_with_a_failed_item_is_complete(tmp_path):
    adapter = FrameAdapter(num_items=4, bad=[2])
    assert len(GulpIngestor(adapter, tmp_path, 2, 1).run().failures) == 1
    before = content(tmp_path)
    assert GulpIngestor(adapter, tmp_path, 2, 1, resume=True).run().items == 0
    assert content(tmp_path) == before


def test_another_item_in_the_place_of_one_that_failed_is_stored(tmp_path):
    class Failing(Files):
        def item_ids(self):
            return list(self.names)

        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": []} if item["id"] == "bad" else item

    options: Any = {"resume": True, "on_duplicate": "skip"}
    GulpIngestor(Failing(["a", "bad", "c", "d"]), tmp_path, 2, 1).run()
    mended = Failing(["a", "best", "c", "d"])
    report = GulpIngestor(mended, tmp_path, 2, 1, **options).run()
    assert (report.items, report.skipped) == (1, 3)
    assert sorted(GulpDirectory(tmp_path).chunk_lookup) == ["a", "best", "c", "d"]
    assert GulpIngestor(mended, tmp_path, 2, 1, **options).run().skipped == 0


def test_an_item_that_failed_for_an_id_that_is_not_listed_is_no_new_one(tmp_path):
    class Renaming(Files):
        def item_ids(self):
            return list(self.names)

        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "id": "x"} if item["id"] == "b" else item

    adapter = Renaming(["a", "b", "c"])
    first = GulpIngestor(adapter, tmp_path, 2, 1).run()
    assert len(first.failures) == 1
    again = GulpIngestor(adapter, tmp_path, 2, 1, resume=True).run()
    assert (again.items, again.failures) == (0, first.failures)


class Fewer(FrameAdapter):
    """One that leaves an item out, and counts it."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] != "item3":
                time.sleep(0.06)  # so that small items are not written together
                yield item


@pytest.mark.parametrize("number", [26, 31, 36])
def test_an_adapter_that_gives_fewer_items_than_it_counts_is_resumed(tmp_path, number):
    adapter = Fewer(num_items=12, num_frames=3, list_ids=False)
    GulpIngestor(adapter, tmp_path / "expected", 12, 1).run()
    assert is_killed(number, GulpIngestor(adapter, tmp_path / "out", 12, 1).run)
    report = GulpIngestor(adapter, tmp_path / "out", 12, 1, resume=True).run()
    assert (report.items, report.not_given) == (11, 1)
    assert 3 < report.resumed < 11
    assert content(tmp_path / "out") == content(tmp_path / "expected")


def test_a_journal_that_cannot_be_cut_leaves_nothing_open(interrupted, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(StorageError, match="cannot truncate"):
            ingest(interrupted, resume=True).run()
    assert open_files(interrupted) == []
    assert ingest(interrupted, resume=True).run().items == 6


class StoppedError(BaseException):
    """What ends a run after some items, also out of an adapter."""


def stop_after(count):
    """Give a progress that ends the run behind so many items."""

    def stop(**counts):
        nonlocal count
        count -= counts.get("items", 0) + counts.get("failures", 0)
        if count < 0:
            raise StoppedError

    return stop


@pytest.mark.parametrize("count", [2, 5, 7])
@pytest.mark.parametrize("bad", [[1, 4], [3, 6], [7, 8]], ids=str)
@pytest.mark.parametrize("per_chunk", [4, 12])
def test_so_is_one_of_which_items_fail_as_well(tmp_path, per_chunk, bad, count):
    def run(folder, **options):
        adapter = Gaps(num_items=12, num_frames=1, bad=bad, list_ids=False)
        return GulpIngestor(adapter, tmp_path / folder, per_chunk, 1, **options).run()

    expected = run("expected")
    with pytest.raises(StoppedError):
        run("out", progress=stop_after(count))
    report = run("out", resume=True)
    assert report.failures == expected.failures
    assert (report.items, report.not_given) == (expected.items, expected.not_given)
    assert content(tmp_path / "out") == content(tmp_path / "expected")


class Gaps(FrameAdapter):
    """One that leaves some items out, and counts them."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] not in {"item0", "item5"}:
                yield item


class Stopping(FrameAdapter):
    """One that gives nothing more of a slice behind some items."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] in {"item1", "item5"}:
                return
            yield item


def test_one_that_stops_before_the_end_of_a_slice_has_not_changed(tmp_path):
    """Asked for the last item of the slice alone, it gives that."""

    def run(folder, **options):
        adapter = Stopping(num_items=12, num_frames=1, list_ids=False)
        return GulpIngestor(adapter, tmp_path / folder, 3, 1, **options).run()

    expected = run("expected")
    assert (expected.items, expected.not_given) == (9, 3)
    with pytest.raises(StoppedError):
        run("out", progress=stop_after(4))
    report = run("out", resume=True)
    assert (report.items, report.not_given) == (9, 3)
    assert content(tmp_path / "out") == content(tmp_path / "expected")


@pytest.mark.parametrize("per_chunk", [3, 12])
def test_items_that_were_passed_over_before_an_interrupt_are_missed_all_the_same(
    tmp_path, per_chunk
):
    class Raising(Gaps):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                if item["id"] == "item2":
                    raise ValueError("nothing can be read, and the rest one by one")
                yield item

    def run(folder, **options):
        adapter = Raising(num_items=12, num_frames=1, list_ids=False)
        return GulpIngestor(adapter, tmp_path / folder, per_chunk, 1, **options).run()

    assert run("expected").not_given == 2
    with pytest.raises(StoppedError):
        run("out", progress=stop_after(7))
    assert run("out", resume=True).not_given == 2
    assert content(tmp_path / "out") == content(tmp_path / "expected")


class Unlisted(FrameAdapter):
    """Items of these names, which are not listed."""

    def __init__(self, names, **options):
        super().__init__(num_items=len(names), **options)
        self.names = list(names)

    def describe(self):
        return {}

    def item_ids(self):
        return None

    def iter_data(self, slice_element=None):
        for number in range(len(self))[slice_element or slice(None)]:
            (item,) = super().iter_data(slice(number, number + 1))
            yield {**item, "id": self.names[number]}


@pytest.mark.parametrize("bad", [[], [1]], ids=["stored", "failed"])
def test_an_id_that_comes_again_where_a_run_was_interrupted_is_not_lost(
    tmp_path, monkeypatch, bad
):
    def run(folder, **options):
        adapter = Unlisted("abbc", num_frames=1, bad=bad)
        options["on_duplicate"] = "report"
        return GulpIngestor(adapter, tmp_path / folder, 4, 1, **options).run()

    def stop(_adapter, position):
        if position == 2:  # before it is noted that it has failed
            raise StoppedError

    expected = run("expected")
    monkeypatch.setattr(Unlisted, "item_source", stop)
    with pytest.raises(StoppedError):
        run("out", progress=stop_after(2))
    monkeypatch.undo()
    report = run("out", resume=True)
    assert (report.failures, report.not_given) == (expected.failures, 0)
    assert content(tmp_path / "out") == content(tmp_path / "expected")


@pytest.mark.parametrize("per_chunk", [4, 12], ids=["finished", "under way"])
@pytest.mark.parametrize(
    "change",
    [lambda names: [*names[1:], "z"], lambda names: ["_", *names[:-1]], sorted],
    ids=["first renamed", "last renamed", "the same"],
)
def test_other_items_are_noticed_where_none_are_listed(tmp_path, per_chunk, change):
    names = [f"v{number:02}" for number in range(12)]

    def run(given, **options):
        adapter = Unlisted(given, num_frames=1)
        return GulpIngestor(adapter, tmp_path, per_chunk, 1, **options).run()

    def end():
        done = 0

        def stop(**counts):
            nonlocal done
            done += counts.get("items", 0)
            time.sleep(0.15)  # so that each item is noted
            if done >= 9:
                os._exit(7)

        run(names, progress=stop)

    assert os.waitstatus_to_exitcode(in_child(end)) == 7
    changed = change(names)
    if changed == names:
        assert run(names, resume=True).resumed > 0
        assert list(GulpDirectory(tmp_path).merged_meta_dict) == names
        return
    with pytest.raises(IngestError, match="which the interrupted run has not stored"):
        run(changed, resume=True)


def test_a_run_that_its_progress_has_ended_is_gone_on_with_in_the_same_process(
    tmp_path,
):
    stored = []

    def progress(items=0, **_):
        stored.append(items)
        if sum(stored) >= 6:
            raise KeyboardInterrupt  # and again, when what waits is written

    adapter = FrameAdapter(num_items=9)
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(adapter, tmp_path, 9, 1, progress=progress).run()
    report = GulpIngestor(adapter, tmp_path, 9, 1, resume=True).run()
    assert report.items == 9
    assert report.resumed > 0


def test_a_run_that_is_refused_late_leaves_the_directory_unfinished(tmp_path):
    def make(**options):
        adapter = FrameAdapter(num_items=12, num_frames=2, list_ids=False)
        return GulpIngestor(adapter, tmp_path, 2, 1, **options)

    assert is_killed(68, make().run)
    stored = len(GulpDirectory(tmp_path))
    assert 0 < stored < 12
    with pytest.raises(DuplicateIdError, match=r"was interrupted before: .* skip"):
        make().run()
    problems = check_directory(tmp_path, deep=True).problems
    assert "unfinished-ingest" in [problem.code for problem in problems]
    assert len(GulpDirectory(tmp_path)) == stored
    assert make(on_duplicate="skip").run().items == 12 - stored
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("num_workers", [1, 2])
def test_the_folder_is_not_listed_for_each_task_that_was_not_begun(
    tmp_path, monkeypatch, num_workers
):
    folder, whole = tmp_path / "out", tmp_path / "whole"
    assert is_killed(68, ingest(folder, num_items=60).run)
    listings = tmp_path / "listings"
    names = LocalStore.names

    def counting(store):
        with listings.open("a") as file:  # of workers, too
            file.write("1")
        return names(store)

    monkeypatch.setattr(LocalStore, "names", counting)
    adapter = FrameAdapter(num_items=60, num_frames=2)
    report = GulpIngestor(adapter, folder, 2, num_workers, resume=True).run()
    assert report.items == 60
    assert len(listings.read_text()) < 20  # of 30 tasks
    monkeypatch.undo()
    ingest(whole, num_items=60).run()
    assert content(folder) == content(whole)
