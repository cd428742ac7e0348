"""Kill -9 of an ingest before any operation on the disk: nothing committed is lost.

And it can be resumed, and killed while it is.
"""

import mmap
import os
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gulpio2 import GulpIngestor
from gulpio2.errors import IngestError, MetaFileError
from gulpio2.testing import FrameAdapter
from tests.faults.killed import committed_jpegs, is_killed, kill_until_done
from tests.faults.operations import content, in_child, kill_at_operation

LONG = os.environ.get("GULPIO2_FAULTS") == "long"
MODES: dict[str, dict[str, Any]] = {
    "count": {"options": {}, "list_ids": True},
    "bytes": {"options": {"chunk_bytes": 3000}, "list_ids": True},
    "unlisted": {"options": {}, "list_ids": False},
}


pytestmark = pytest.mark.usefixtures("_fast_disk")


def ingest(folder, *, mode="count", workers=1, resume=False, num_items=5, **more):
    adapter = FrameAdapter(
        num_items=num_items, num_frames=2, bad=[3], list_ids=MODES[mode]["list_ids"]
    )
    return GulpIngestor(
        adapter, folder, 2, workers, resume=resume, **MODES[mode]["options"], **more
    ).run()


@pytest.mark.parametrize("mode", MODES)
def test_killed_at_every_operation_and_resumed_gives_the_undisturbed_bytes(
    tmp_path, mode
):
    ingest(tmp_path / "whole", mode=mode)
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    # The quick form takes more of them for the plain way of cutting chunks.
    for number in range(1, 1000, 1 if LONG else 2 if mode == "count" else 4):
        folder = tmp_path / str(number)
        if not is_killed(number, ingest, folder, mode=mode):
            break
        assert jpegs.items() >= committed_jpegs(folder).items()
        ingest(folder, mode=mode, resume=True)
        assert content(folder) == expected, number
    assert number > 40  # the operations were really counted


@pytest.mark.parametrize("where", ["parent", "worker"])
def test_parent_or_worker_killed_at_every_operation_and_resumed(tmp_path, where):
    ingest(tmp_path / "whole", workers=2)
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    kills, ends = 0, set()
    before = nameless_memory()
    for number in range(1, 1000, 1 if LONG else 3):
        folder = tmp_path / str(number)

        was_killed = mmap.mmap(-1, 1)

        def killed(folder=folder, number=number, was_killed=was_killed):
            kill_at_operation(number, where=where, killed=was_killed)
            try:
                ingest(folder, workers=2)
            except IngestError as error:
                if "run again with resume=True" not in str(error):
                    raise
                os._exit(7)

        status = in_child(killed)
        if not was_killed[0]:
            assert status == 0
            break
        kills += 1
        if where == "parent":
            assert os.WTERMSIG(status) == signal.SIGKILL
        else:  # the run goes on by itself
            ends.add(os.waitstatus_to_exitcode(status))
            assert status or content(folder) == expected
        assert jpegs.items() >= committed_jpegs(folder).items()
        ingest(folder, workers=2, resume=True)
        assert content(folder) == expected, number
    assert kills > (10 if LONG else 5)
    assert ends == (set() if where == "parent" else {0})
    assert nameless_memory() <= before


def nameless_memory():
    """Name files of memory that Python gives no name for longer than a moment."""
    return {path.name for path in Path("/dev/shm").glob("pym-*")}  # noqa: S108  # the folder of POSIX shared memory


@pytest.mark.parametrize("mode", MODES if LONG else ["count"])
def test_killed_at_every_operation_of_resuming_and_resumed_again(tmp_path, mode):
    ingest(tmp_path / "whole", mode=mode)
    expected = content(tmp_path / "whole")
    jpegs = committed_jpegs(tmp_path / "whole")
    kills = 0
    for first in range(4, 90, 6 if LONG else 40):
        begun = tmp_path / f"begun{first}"
        if not is_killed(first, ingest, begun, mode=mode):
            break
        for number in range(1, 1000, 1 if LONG else 3):
            folder = tmp_path / f"{first} {number}"
            shutil.copytree(begun, folder)
            committed = committed_jpegs(folder)
            if not is_killed(number, ingest, folder, mode=mode, resume=True):
                assert content(folder) == expected
                break
            kills += 1
            found = committed_jpegs(folder)
            assert committed.items() <= found.items() <= jpegs.items()
            ingest(folder, mode=mode, resume=True)
            assert content(folder) == expected, (first, number)
            shutil.rmtree(folder)
    assert kills > (60 if LONG else 20)


def test_killed_again_and_again_while_resuming_it_still_gets_there(tmp_path):
    ingest(tmp_path / "whole")
    folder = tmp_path / "killed"
    assert kill_until_done(partial(ingest, folder), range(12, 41)) > 3
    assert content(folder) == content(tmp_path / "whole")


def test_items_that_were_stored_are_not_read_again(tmp_path):
    assert is_killed(38, ingest, tmp_path, num_items=9)
    lost = 9 - 1  # one item cannot be read
    report = ingest(tmp_path, resume=True, num_items=9)
    assert report.items == lost
    assert 2 <= report.resumed < lost


class Slow(FrameAdapter):
    """Small items that take their time; kill -9 may come in the place of the last."""

    is_killed = False

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if self.is_killed and item["id"] == "item11":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.06)
            yield item


def test_of_small_items_only_the_last_twentieth_of_a_second_is_done_again(tmp_path):
    adapter = Slow(num_items=12)

    def killed():
        adapter.is_killed = True
        GulpIngestor(adapter, tmp_path, 12, 1).run()

    assert os.WIFSIGNALED(in_child(killed))
    report = GulpIngestor(adapter, tmp_path, 12, 1, resume=True).run()
    # The journal has an item once the adapter has gone on to the next one, and what
    # waits together then is written after 0.05 s.
    assert (report.items, report.resumed) == (12, 10)


@pytest.mark.parametrize(
    "kind", ["ingest.journal", "chunk_*.journal.*", "chunk_*.gulp.*"]
)
def test_a_changed_byte_in_what_an_interrupted_run_left_costs_no_right_byte(
    tmp_path, kind
):
    ingest(tmp_path / "whole", num_items=9)
    expected = content(tmp_path / "whole")

    # The first moment, after some chunks, at which such a file has something in it.
    for number in range(40, 80):
        shutil.rmtree(tmp_path / "begun", ignore_errors=True)
        assert is_killed(number, ingest, tmp_path / "begun", num_items=9)
        found = list((tmp_path / "begun").glob(kind))
        if len(found) == 1 and found[0].stat().st_size > 300:
            break
    (path,) = found
    data = path.read_bytes()
    assert len(data) > 300
    rng = random.Random(7)
    right = refused = tried = 0
    folder = tmp_path / "resumed"
    for at in range(len(data)) if LONG else rng.sample(range(len(data)), 40):
        shutil.copytree(tmp_path / "begun", folder)
        damaged = bytearray(data)
        damaged[at] ^= rng.choice([1, 16, 128, 255])
        (folder / path.name).write_bytes(damaged)
        tried += 1
        try:
            ingest(folder, num_items=9, resume=True)
        except MetaFileError as error:
            refused += "ingest.journal is damaged" in str(error)
        else:
            assert content(folder) == expected, at
            right += 1
        shutil.rmtree(folder)
    assert right + refused == tried
    assert refused == 0 or kind == "ingest.journal"
