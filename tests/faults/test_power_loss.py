"""The power fails: whatever the disk kept, what was committed is there and whole.

States of the disk are drawn, of sets that are too large to go through all of them, as
test_power_states.py does. ``bin/faults`` sets ``GULPIO2_FAULTS=long``: every operation
as the moment of the cut, many states of each.
"""

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.removal import delete_items
from gulpio2.storage.local import LocalStore
from gulpio2.testing import FrameAdapter, make_gulp_directory
from tests.chunks import items_of
from tests.faults.cuts import CHANGES, LONG, committed, put
from tests.faults.operations import content
from tests.faults.power import record_operations, state_after_cut
from tests.ingest.in_one_process import InOneProcess

MODES: dict[str, dict[str, Any]] = {
    "count": {},
    "bytes": {"chunk_bytes": 3000},
    "unlisted": {},
    "pieces": {},  # of one chunk, as for three workers
}


pytestmark = pytest.mark.usefixtures("_fast_disk")


def ingest(folder, mode, *, resume=False):
    adapter = FrameAdapter(
        num_items=5, num_frames=2, bad=[3], list_ids=mode != "unlisted"
    )
    if mode == "pieces":
        return InOneProcess(adapter, folder, 5, 3, resume=resume).run()
    return GulpIngestor(adapter, folder, 2, 1, resume=resume, **MODES[mode]).run()


def states(recording, seed, sample):
    """Cuts, and states of the disk after them."""
    rng = random.Random(seed)
    total = len(recording.operations)
    if LONG:
        cases = [(cut, turn) for cut in range(total + 1) for turn in range(12)]
    else:
        cases = [(rng.randrange(total + 1), turn) for turn in range(sample)]
    for cut, turn in cases:
        keep = (0.0, 1.0, 0.5, 0.5, 0.9, 0.1)[turn % 6]
        page = (512, 4096)[turn // 6 % 2]
        yield cut, state_after_cut(recording, cut, rng, keep=keep, page=page)


@pytest.mark.parametrize("mode", MODES)
def test_an_ingest_keeps_what_it_committed_and_can_be_resumed(tmp_path, mode):
    with record_operations(tmp_path / "whole") as recording:
        ingest(tmp_path / "whole", mode)
    expected = content(tmp_path / "whole")
    clips = items_of(tmp_path / "whole")
    with GulpDirectory(tmp_path / "whole") as directory:
        chunk_of = dict(directory.chunk_lookup)
    for number, (cut, state) in enumerate(states(recording, 1, 60)):
        put(tmp_path / "cut", state)
        found = items_of(tmp_path / "cut")
        assert found == {id_: clips[id_] for id_ in found}, number
        kept = committed(recording, cut)
        assert {id_ for id_ in clips if chunk_of[id_] in kept} <= set(found), number
        ingest(tmp_path / "cut", mode, resume=True)
        assert content(tmp_path / "cut") == expected, number


@pytest.mark.parametrize("mode", MODES)
def test_journals_that_are_ahead_of_their_data_are_not_believed(tmp_path, mode):
    with record_operations(tmp_path / "whole") as recording:
        ingest(tmp_path / "whole", mode)
    expected = content(tmp_path / "whole")
    journals = {
        operation.file
        for operation in recording.operations
        if operation.kind == "create" and "journal" in operation.name
    }

    def keep(operation):
        is_content = operation.kind in ("write", "truncate")
        return 1.0 if operation.file in journals or not is_content else 0.0

    for cut in range(0, len(recording.operations) + 1, 1 if LONG else 3):
        state = state_after_cut(recording, cut, random.Random(cut), keep=keep, page=512)
        for grown in (False, True):
            put(tmp_path / "cut", state)
            if grown:  # the file's length came to the disk, its bytes did not
                done = recording.operations[:cut]
                synced = {op.file for op in done if op.kind == "sync"}
                for op in done:
                    path = tmp_path / "cut" / op.name
                    is_data = op.kind == "create" and ".gulp." in op.name
                    if is_data and op.file not in synced and path.exists():
                        with path.open("ab") as file:
                            file.write(bytes(5000))
            ingest(tmp_path / "cut", mode, resume=True)
            assert content(tmp_path / "cut") == expected, cut


def test_the_recording_has_every_change(tmp_path):
    for keep in (0.0, 1.0):
        folder = tmp_path / str(keep)
        with record_operations(folder) as recording:
            ingest(folder, "count")
            delete_items(folder, ["item1"])
            LocalStore(folder).sync_names()
        cut = len(recording.operations)
        state = state_after_cut(recording, cut, random.Random(0), keep=keep, page=512)
        assert state == content(folder)
    kinds = {operation.kind for operation in recording.operations}
    assert {"create", "write", "sync", "rename", "remove", "sync names"} <= kinds


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_directory_leaves_every_item_whole_or_not_there(tmp_path, name):
    make_gulp_directory(tmp_path / "whole", num_items=4, num_frames=2).close()
    before = items_of(tmp_path / "whole")
    with record_operations(tmp_path / "whole") as recording:
        CHANGES[name](tmp_path / "whole", lambda: None)
    after = items_of(tmp_path / "whole")
    for number, (cut, state) in enumerate(states(recording, 2, 80)):
        put(tmp_path / "cut", state)
        found = items_of(tmp_path / "cut")
        allowed = {**before, **after}
        assert found == {id_: allowed[id_] for id_ in found}, number
        assert before.keys() & after.keys() <= found.keys(), number
        if cut == 0:
            assert found == before
        if cut == len(recording.operations):
            assert found == after


def test_a_clip_read_after_a_cut_has_the_right_pixels(tmp_path):
    with record_operations(tmp_path / "whole") as recording:
        ingest(tmp_path / "whole", "count")
    whole = GulpDirectory(tmp_path / "whole")
    for _, state in states(recording, 3, 12):
        put(tmp_path / "cut", state)
        with GulpDirectory(tmp_path / "cut") as directory:
            for id_ in directory.chunk_lookup:
                assert np.array_equal(directory.read_clip(id_), whole.read_clip(id_))


def test_the_model_keeps_what_was_synced_and_tears_the_rest():
    from tests.faults.power import Operation, Recording

    recording = Recording(Path("x"), {"old": b"abc"})
    recording.operations += [
        Operation("create", file=1, name="new"),
        Operation("write", file=1, data=b"x" * 1000),
        Operation("sync", file=1),
        Operation("sync names"),
        Operation("write", file=1, offset=1000, data=b"y" * 2000),
        Operation("rename", file=1, name="old", source="new"),
    ]
    seen = set()
    for seed in range(200):
        state = state_after_cut(recording, 6, random.Random(seed), keep=0.5, page=512)
        data = state.get("new", state["old"])
        assert data[:1000] == b"x" * 1000
        assert ("new" in state) == (state["old"] == b"abc")
        edges = [0, 24, 536, 1048, 1560, 2000]
        for start, stop in itertools.pairwise(edges):
            assert data[1000 + start : 1000 + stop].strip(b"y") in (
                b"",
                bytes(len(data[1000 + start : 1000 + stop])),
            )
        seen.add(data)
    assert len(seen) > 20
