"""Whatever is done to a directory, and killed: it is what a dictionary says."""

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import IngestError
from gulpio2.format.layout import list_chunks, meta_name
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import open_store
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import in_child, kill_at_operation

REFUSED = 17
"""Exit status of a process whose work was refused, as it may be."""
LONG = os.environ.get("GULPIO2_FAULTS") == "long"


def drawn(number):
    """Give the frames of an item, by the number in its id."""
    return make_frames(1 + number % 3, 16, 16, seed=number)


def stored(number):
    return [encode_frame(frame, EncoderSettings()) for frame in drawn(number)]


class Items(FrameAdapter):
    """Items of these numbers."""

    def __init__(self, numbers, *, list_ids=True):
        super().__init__(num_items=len(numbers), list_ids=list_ids)
        self.numbers = numbers

    @property
    def ids(self):
        return [f"item{number}" for number in self.numbers]

    def item_ids(self):
        return self.ids if self.list_ids else None

    def iter_data(self, slice_element=None):
        for number in self.numbers[slice_element or slice(None)]:
            yield {
                "meta": {"n": number},
                "frames": drawn(number),
                "id": f"item{number}",
            }


class Directory(RuleBasedStateMachine):
    """The dictionary is `items`: ids that are there; what is in them their ids tell."""

    def __init__(self):
        super().__init__()
        # Killing a process needs no disk, and waiting for it takes most of the time.
        self.fast = mock.patch.object(os, "fsync", return_value=None)
        self.fast.start()
        logging.getLogger("gulpio2").setLevel(logging.ERROR)
        self.root = Path(tempfile.mkdtemp(prefix="machine"))
        self.folder = self.root / "gulped"
        self.items: set[str] = set()
        self.next = 0
        self.interrupted: Any = None
        self.has_others = False  # chunks beside those of the interrupted run
        self.parts: dict[Path, set[str]] = {}

    def new_items(self, count, *, list_ids=True):
        numbers = list(range(self.next, self.next + count))
        self.next += count
        return Items(numbers, list_ids=list_ids)

    def present(self):
        with GulpDirectory(self.folder) as directory:
            return set(directory.chunk_lookup)

    def leave_merge_unfinished(self):
        """Do as all advise that are refused since a merge was interrupted."""
        journal = self.folder / "ingest.journal"
        if journal.exists() and b'"merge"' in journal.read_bytes():
            message = "a merge into this folder was not"
            with pytest.raises(IngestError, match=message):
                GulpIngestor(self.new_items(1), self.folder, 1, 1).run()
            with pytest.raises(IngestError, match=message):
                delete_items(self.folder, self.items)
            with pytest.raises(IngestError, match=message):
                compact_directory(self.folder)
            journal.unlink()

    @rule(count=st.integers(1, 5), per_chunk=st.integers(1, 3))
    def ingest(self, count, per_chunk):
        self.leave_merge_unfinished()
        adapter = self.new_items(count)
        GulpIngestor(adapter, self.folder, per_chunk, 1).run()
        self.items |= set(adapter.ids)
        self.interrupted = None  # its files were swept

    @rule(
        count=st.integers(1, 5),
        moment=st.integers(1, 60),
        list_ids=st.booleans(),
        chunk_bytes=st.sampled_from([None, 2500]),
    )
    def ingest_and_be_killed(self, count, moment, list_ids, chunk_bytes):
        self.leave_merge_unfinished()
        # Each way numbers its chunks, and tells what is there already, in its own way.
        adapter = self.new_items(count, list_ids=list_ids)
        options = {"chunk_bytes": chunk_bytes}
        ingestor = GulpIngestor(adapter, self.folder, 2, 1, **options)
        ids = set(adapter.ids)
        if not is_killed(moment, ingestor.run):
            self.items |= ids
            self.interrupted = None
            return
        present = self.present()
        assert self.items <= present <= self.items | ids
        self.items = present
        journal = self.folder / "ingest.journal"
        if not journal.exists():
            self.interrupted = None
        elif f'"numbers": {adapter.numbers}' in journal.read_text():
            self.interrupted, self.options = adapter, options
            self.visible = present & ids
            self.has_others = False

    @precondition(lambda self: self.interrupted is not None)
    @rule(killed_at=st.none() | st.integers(1, 40))
    def resume(self, killed_at):
        ids = set(self.interrupted.ids)
        missing = self.visible - self.items  # deleted in between
        others = self.present() - ids

        def work():
            GulpIngestor(
                self.interrupted, self.folder, 2, 1, resume=True, **self.options
            ).run()

        def is_taken_number(error):
            # A chunk may have the number, or all items of ours have been replaced.
            told = str(error)
            return (self.has_others and "is there, and is not what" in told) or (
                bool(self.has_others or missing)
                and "is there, and holds none of" in told
            )

        is_whole = self.change(work, killed_at, may_refuse=is_taken_number)
        present = self.present()
        assert others | (self.items & ids) <= present <= others | (ids - missing)
        if is_whole:
            assert present == others | (ids - missing)
        self.items = present
        self.visible |= present & ids
        if not (self.folder / "ingest.journal").exists():
            self.interrupted = None

    @rule(count=st.integers(1, 2), killed_at=st.none() | st.integers(1, 12))
    def write_a_chunk(self, count, killed_at):
        adapter = self.new_items(count)

        def write():
            self.folder.mkdir(exist_ok=True)
            with GulpDirectory(self.folder) as directory:
                (chunk,) = directory.new_chunks(1)
            with chunk.open("wb"):
                for item in adapter.iter_data():
                    chunk.append(item["id"], item["meta"], item["frames"])

        self.has_others = True
        is_whole = self.change(write, killed_at)
        self.came(set(adapter.ids), is_whole=is_whole)

    @precondition(lambda self: self.folder.exists())
    @rule(count=st.integers(1, 3), killed_at=st.none() | st.integers(1, 25))
    def merge(self, count, killed_at):
        part = self.root / f"part{len(self.parts)}"
        adapter = self.new_items(count)
        GulpIngestor(adapter, part, 2, 1).run()
        ids = set(adapter.ids)
        self.parts[part] = ids

        def is_unfinished(error):
            is_there = (self.folder / "ingest.journal").exists()
            return "was not finished" in str(error) and is_there

        is_whole = self.change(
            lambda: merge_directories([part], self.folder), killed_at, is_unfinished
        )
        self.came(ids, is_whole=is_whole)

    def came(self, ids, *, is_whole):
        """Take notice of what there is after items were added, or not quite."""
        present = self.present()
        assert self.items <= present <= self.items | ids
        assert not is_whole or ids <= present
        self.items = present

    @precondition(lambda self: self.items)
    @rule(data=st.data(), count=st.integers(1, 2))
    def append_to_a_chunk(self, data, count):
        numbers = list_chunks(open_store(self.folder).names()).chunks
        number = data.draw(st.sampled_from(numbers))
        chunk = GulpChunk(
            self.folder / f"data_{number}.gulp", self.folder / f"meta_{number}.gmeta"
        )
        with chunk.open("ab"):
            for item in self.new_items(count).iter_data():
                chunk.append(item["id"], item["meta"], item["frames"])
                self.items.add(item["id"])

    @precondition(lambda self: self.items)
    @rule(data=st.data(), killed_at=st.none() | st.integers(1, 12))
    def delete(self, data, killed_at):
        ids = data.draw(st.sets(st.sampled_from(sorted(self.items)), min_size=1))
        self.leave_merge_unfinished()
        self.change(lambda: delete_items(self.folder, ids), killed_at)
        present = self.present()
        assert self.items - ids <= present <= self.items
        if killed_at is None:
            assert present == self.items - ids
        self.items = present

    @precondition(lambda self: self.folder.exists())
    @rule(killed_at=st.none() | st.integers(1, 12))
    def compact(self, killed_at):
        self.leave_merge_unfinished()
        self.change(lambda: compact_directory(self.folder), killed_at)

    def change(self, work, killed_at, may_refuse=lambda error: False):
        """Do something, here or in a process that is killed; tell whether all of it."""

        def done():
            try:
                work()
            except IngestError as error:
                if not may_refuse(error):
                    raise
                return False
            return True

        if killed_at is None:
            return done()

        def killed():
            kill_at_operation(killed_at)
            if not done():
                os._exit(REFUSED)

        status = in_child(killed)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) in {0, REFUSED}
        return status == 0

    @precondition(lambda self: self.items)
    @rule()
    def repair(self):
        target = self.root / "repaired"
        report = repair_directory(self.folder, target)
        # A kill between two renames leaves data without a map, which could be lost.
        bare = list_chunks(open_store(self.folder).names()).data_only
        assert {loss.file for loss in report.lost} == {meta_name(n) for n in bare}
        assert report.items == len(self.items)
        if not report.salvaged:
            assert check_directory(target, deep=True).problems == []
        shutil.rmtree(target, ignore_errors=True)

    @precondition(lambda self: self.items)
    @rule(killed_at=st.none() | st.integers(1, 8))
    def index(self, killed_at):
        self.change(lambda: build_index(self.folder), killed_at)

    @precondition(lambda self: self.items)
    @rule()
    def check(self):
        for part, ids in self.parts.items():  # may share data files with the directory
            assert check_directory(part, deep=True).problems == []
            with GulpDirectory(part) as directory:
                assert set(directory.chunk_lookup) == ids
        problems = check_directory(self.folder, deep=True).problems
        # A kill on the way may concern deleted items, and leave files behind.
        concerned = {problem.item for problem in problems}
        assert not concerned & self.items, [*map(str, problems)]
        left_by_a_kill = {"partial-file", "unfinished-ingest", "data-without-map"}
        left_by_a_kill |= {"unreferenced-bytes", "data-too-long", "not-erased"}
        left_by_a_kill |= {"empty-data-file", "data-too-short"}
        left_by_a_kill |= {"unfinished-compaction"}
        codes = {problem.code for problem in problems if problem.item is None}
        assert codes <= left_by_a_kill, [*map(str, problems)]

    @invariant()
    def everything_that_should_be_there_is_and_is_right(self):
        has_index = (self.folder / "index.arrow").exists()
        with GulpDirectory(self.folder, indexed=has_index) as directory:
            assert set(directory.chunk_lookup) == self.items
            for id_ in self.items:
                number = int(id_[4:])
                assert directory.read_jpegs(id_) == stored(number)
                assert directory.item(id_).meta == {"n": number}

    def teardown(self):
        self.fast.stop()
        logging.getLogger("gulpio2").setLevel(logging.NOTSET)
        shutil.rmtree(self.root)


TestDirectory = Directory.TestCase
TestDirectory.settings = settings(
    max_examples=500 if LONG else 20, stateful_step_count=30 if LONG else 15
)
