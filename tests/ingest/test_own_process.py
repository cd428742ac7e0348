"""One worker in a process of its own, and where it is this process all the same."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
from contextlib import suppress
from functools import partial

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import GulpError
from gulpio2.ingest.survey import survey
from gulpio2.testing import FrameAdapter
from tests.faults.operations import in_child


class Telling(FrameAdapter):
    """The metadata say which process has made an item."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": {"process": os.getpid()}}


def makers(folder, **options):
    """Ingest; give whether each item was made by this process."""
    GulpIngestor(Telling(num_items=4), folder, 2, 1, **options).run()
    with GulpDirectory(folder) as directory:
        metas = [directory[id_, [0]][1] for id_ in directory.chunk_lookup]
    return {meta["process"] == os.getpid() for meta in metas}


def test_it_is_this_process_but_where_another_one_is_asked_for(tmp_path):
    assert makers(tmp_path / "here") == {True}
    assert makers(tmp_path / "apart", apart=True) == {False}


def test_a_debugger_that_looks_on_sees_what_an_adapter_does(tmp_path):
    before = sys.gettrace()
    sys.settrace(lambda *_event: None)
    try:
        assert makers(tmp_path / "out", apart=True) == {True}
    finally:
        sys.settrace(before)


SPAWNING = """
import multiprocessing, os, sys
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter

class Unsendable(FrameAdapter):
    def __init__(self):
        super().__init__(num_items=3)
        self.made_by = lambda: os.getpid()

multiprocessing.set_start_method(sys.argv[2])
print(GulpIngestor(Unsendable(), sys.argv[1], 2, 1, apart=True).run().items)
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_program_that_does_not_fork_needs_neither_a_guard_nor_a_pickle(
    tmp_path, start
):
    (tmp_path / "spawning.py").write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, "spawning.py", "out", start],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "3\n"


def test_where_the_system_has_no_other_process_it_is_this_one(tmp_path):
    """The limit of open files is put behind every number, until a run has enough."""
    makers(tmp_path / "before", apart=True)  # what is imported at the first need

    def run(num_workers, *, apart):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
        said = ""
        try:
            adapter = FrameAdapter(num_items=6)
            GulpIngestor(adapter, folder, 2, num_workers, apart=apart).run()
        except GulpError as error:
            said = str(error)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        (tmp_path / "said").write_text(said)

    for number in range(3, 500):
        folder = tmp_path / f"{number}"
        assert in_child(partial(run, 1, apart=True)) == 0
        if not (tmp_path / "said").read_text():
            break
    assert len(GulpDirectory(folder)) == 6
    folder = tmp_path / "two"
    assert in_child(partial(run, 2, apart=False)) == 0
    assert "worker processes cannot be started" in (tmp_path / "said").read_text()


def test_what_such_a_process_stores_are_the_same_bytes(tmp_path):
    for name in ("here", "apart"):
        adapter = FrameAdapter(num_items=9, num_frames=5, bad=[3])
        GulpIngestor(adapter, tmp_path / name, 4, 1, apart=name == "apart").run()
    for path in (tmp_path / "here").iterdir():
        if path.suffix in {".gulp", ".gmeta", ".jsonl"}:
            assert (tmp_path / "apart" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("apart", [True, False])
def test_a_look_at_items_finds_the_same(apart):
    adapter = FrameAdapter(num_items=9, num_frames=5, bad=[3])
    found = survey(adapter, EncoderSettings(), apart=apart)
    assert (found.sampled, found.frames) == (9, 40)
    assert [each.sampled for each in found.oddities] == [1]


STOPPING = """
from gulpio2.testing import FrameAdapter

class Stopping(FrameAdapter):
    def __init__(self, output_folder=None):
        super().__init__(num_items=1)

    def iter_data(self, slice_element=None):
        breakpoint()
        yield from super().iter_data(slice_element)
"""


def test_a_breakpoint_of_an_adapter_has_the_terminal(tmp_path, repository, python):
    (tmp_path / "stopping.py").write_text(STOPPING)
    words = ["ingest", "stopping:Stopping", str(tmp_path / "out"), "--num-workers", "1"]
    terminal, end = pty.openpty()
    path = os.pathsep.join([str(repository), str(tmp_path)])
    process = subprocess.Popen(
        [python, "-m", "gulpio2", *words],
        env={**os.environ, "PYTHONPATH": path},
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    told = b""
    with suppress(OSError):  # EIO at its end
        while part := os.read(terminal, 4096):
            told += part
            if told.endswith(b"(Pdb) "):
                os.write(terminal, b"continue\n")
    os.close(terminal)
    assert process.wait(60) == 0, told
    assert b"(Pdb) " in told
    assert list(GulpDirectory(tmp_path / "out").chunk_lookup) == ["item0"]
