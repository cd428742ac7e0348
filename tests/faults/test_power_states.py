"""The power fails: every state of the disk that is legal then, not only some.

Sets so small that all combinations of what had not been synced can be gone through:
names changed or not, each page of 512 bytes written or not, files cut or grown or not.
What tears at 4,096 bytes is among them. The quick form is the smallest sets,
``bin/faults`` takes larger ones, and resumes from many moments.
"""

import random

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_gulp_directory
from tests.chunks import items_of
from tests.faults.cuts import CHANGES, LONG, committed, put
from tests.faults.operations import content
from tests.faults.power import (
    Operation,
    all_states,
    record_operations,
    state_after_cut,
)

PAGE = 512
RECORDED = "states of the disk after a loss of power"


pytestmark = pytest.mark.usefixtures("_fast_disk")


def every_state(recording, page=PAGE):
    """Give each state that some cut can leave, with the first and last such cut."""
    found: dict[frozenset[tuple[str, bytes]], tuple[int, int]] = {}
    for cut in range(len(recording.operations) + 1):
        for state in all_states(recording, cut, page=page):
            key = frozenset(state.items())
            first, _ = found.get(key, (cut, cut))
            found[key] = first, cut
    for key, (first, last) in found.items():
        yield dict(key), first, last


def join_writes(recording, marks):
    """Take writes that follow each other for one.

    Arrow writes a file of ten pages in forty pieces, which are more combinations than
    can be gone through. Its pages still are there or not in any combination.
    """
    joined: list[Operation] = []
    for operation in recording.operations:
        before = joined[-1] if joined else operation
        end = before.offset + len(before.data)
        where = (before.kind, before.file, end)
        if joined and where == ("write", operation.file, operation.offset):
            joined[-1] = before._replace(data=before.data + operation.data)
            marks[:] = [mark - (mark > len(joined) - 1) for mark in marks]
        else:
            joined.append(operation)
    recording.operations[:] = joined


class Others(FrameAdapter):
    """Items of other ids, which a directory may have before."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"other {item['id']}"}

    def item_ids(self):
        return [f"other {id_}" for id_ in super().item_ids() or ()]


class Set:
    """A small set and the way in which it is ingested.

    Parameters
    ----------
    items, per_chunk, frames : int
        How much; each frame is of 8x8 pixels.
    bad : list of int, optional
        Positions whose frames cannot be read.
    **options
        Of the ingestor, or ``list_ids``, or ``into_others``: into a directory that has
        items.
    """

    def __init__(self, items, per_chunk, frames, bad=(), **options):
        self.adapter = FrameAdapter(
            num_items=items,
            num_frames=frames,
            height=8,
            width=8,
            bad=bad,
            list_ids=options.pop("list_ids", True),
        )
        self.per_chunk = per_chunk
        self.into_others = options.pop("into_others", False)
        self.options = options

    def record(self, folder):
        """Ingest it for the first time, and give what was done."""
        if self.into_others:
            others = Others(num_items=1, num_frames=1, height=8, width=8)
            GulpIngestor(others, folder, 1, 1).run()
        with record_operations(folder) as recording:
            self.ingest(folder)
        return recording

    def ingest(self, folder, *, resume=False):
        """Ingest it in this process."""
        GulpIngestor(
            self.adapter, folder, self.per_chunk, 1, resume=resume, **self.options
        ).run()

    def check_every_state(self, recording, folder, whole):
        """See that each state opens, has what was committed, and can be resumed.

        Returns
        -------
        int
            How many they were.
        """
        expected, clips = content(whole), items_of(whole)
        with GulpDirectory(whole) as directory:
            chunk_of = dict(directory.chunk_lookup)
        count = 0
        for state, _, cut in every_state(recording):
            put(folder, state)
            found = items_of(folder)
            assert found == {id_: clips[id_] for id_ in found}, (cut, state.keys())
            kept = committed(recording, cut)
            assert {id_ for id_ in clips if chunk_of[id_] in kept} <= found.keys()
            self.ingest(folder, resume=True)
            assert content(folder) == expected, (cut, state.keys())
            count += 1
        return count


SMALLEST = {"one item": Set(1, 1, 1)}
SETS = {
    "a chunk for each item, one fails": Set(3, 1, 1, [1]),
    "by bytes": Set(2, 1, 1, [1], chunk_bytes=1),
    "ids not known before": Set(2, 1, 1, [1], list_ids=False),
    "into a directory": Set(2, 1, 1, [1], into_others=True),
    "two frames": Set(3, 2, 2, [1]),
    "two frames, by bytes": Set(3, 2, 2, [1], chunk_bytes=2000),
    "two frames, ids not known": Set(3, 2, 2, [1], list_ids=False),
    "two items in one chunk": Set(2, 2, 2),
    "two items in one chunk, by bytes": Set(2, 2, 2, chunk_bytes=4000),
    "two items in one chunk, ids not known": Set(2, 2, 2, list_ids=False),
}


@pytest.mark.parametrize("name", [*SMALLEST, *(SETS if LONG else ())])
def test_an_ingest_keeps_what_it_committed_and_can_be_resumed(
    tmp_path, name, record_property
):
    kind = {**SMALLEST, **SETS}[name]
    recording = kind.record(tmp_path / "whole")
    count = kind.check_every_state(recording, tmp_path / "cut", tmp_path / "whole")
    assert count > 300
    record_property(RECORDED, count)


@pytest.mark.parametrize(
    "kind",
    [Set(2, 1, 1, [1]), Set(2, 2, 1)] if LONG else [Set(1, 1, 1)],
    ids=["a chunk for each", "one chunk"] if LONG else ["one item"],
)
def test_resuming_keeps_it_too_and_can_be_resumed_again(
    tmp_path, kind, record_property
):
    whole = tmp_path / "whole"
    recording = kind.record(whole)
    starts = {}
    for cut in range(len(recording.operations) + 1):
        for keep in (0.0, 1.0):
            state = state_after_cut(
                recording, cut, random.Random(0), keep=keep, page=PAGE
            )
            starts[frozenset(state.items())] = state
    count = 0
    for state in list(starts.values())[:: 1 if LONG else 8]:
        put(tmp_path / "begun", state)
        with record_operations(tmp_path / "begun") as resuming:
            kind.ingest(tmp_path / "begun", resume=True)
        count += kind.check_every_state(resuming, tmp_path / "cut", whole)
    assert count > 200
    record_property(RECORDED, count)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_leaves_the_old_or_the_new_and_can_be_done_again(
    tmp_path, name, record_property
):
    folder = tmp_path / "whole"
    make_gulp_directory(
        folder, num_items=4, num_frames=2 if LONG else 1, height=8, width=8
    ).close()
    stages = [items_of(folder)]
    marks = [0]

    def is_done():
        stages.append(items_of(folder))
        marks.append(len(recording.operations))

    with record_operations(folder) as recording:
        CHANGES[name](folder, is_done)
    is_done()
    if name == "index and delete":
        join_writes(recording, marks)
    if name == "replace a chunk":  # rule 23: for an instant neither is there
        stages.insert(1, {id_: stages[0][id_] for id_ in ("item2", "item3")})
        marks.insert(1, marks[1])
    count = 0
    # The index is of many pages; the rest is of a few bytes.
    page = PAGE if LONG or name != "index and delete" else 4096
    for state, first, last in every_state(recording, page):
        put(tmp_path / "cut", state)
        found = items_of(tmp_path / "cut")
        # Not older than what had lasted before the last of the cuts that leave this
        # state, and not newer than what was under way at the first of them.
        oldest = max(at for at, mark in enumerate(marks) if mark <= last)
        newest = min(at for at, mark in enumerate(marks) if mark >= first)
        while newest + 1 < len(marks) and marks[newest + 1] == marks[newest]:
            newest += 1
        assert found in stages[oldest : newest + 1], (first, last, state.keys())
        CHANGES[name](tmp_path / "cut", lambda: None)
        assert items_of(tmp_path / "cut") == stages[-1], (first, last, state.keys())
        problems = check_directory(tmp_path / "cut", deep=True).problems
        # What was not committed may be left behind, and what follows it is sound.
        left = {"partial-file", "unreferenced-bytes"}
        assert {problem.code for problem in problems} <= left
        count += 1
    assert count > 15
    record_property(RECORDED, count)


def test_every_state_that_is_drawn_or_torn_at_larger_pages_is_among_them(tmp_path):
    recording = Set(2, 2, 2 if LONG else 1).record(tmp_path / "whole")
    for cut in range(len(recording.operations) + 1):
        found = {frozenset(s.items()) for s in all_states(recording, cut, page=PAGE)}
        torn = {frozenset(s.items()) for s in all_states(recording, cut, page=4096)}
        assert torn <= found
        rng = random.Random(cut)
        for turn in range(40):
            state = state_after_cut(
                recording,
                cut,
                rng,
                keep=(0.2, 0.5, 0.9)[turn % 3],
                page=(512, 4096)[turn % 2],
            )
            assert frozenset(state.items()) in found
