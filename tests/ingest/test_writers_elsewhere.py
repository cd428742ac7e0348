"""Writers of other machines, where by NFS the lock on a folder does not hold."""

import fcntl
import shutil
from pathlib import Path

import pytest

from gulpio2 import GulpIngestor
from gulpio2.errors import LockedError
from gulpio2.merge import merge_directories
from gulpio2.merge.parts import begin_merge
from gulpio2.storage.local import open_store
from gulpio2.testing import FrameAdapter, make_gulp_directory
from tests.faults.operations import content

NAME = "ingest.journal"


class Interrupted(FrameAdapter):
    """Its second chunk of two items is not finished at first."""

    is_first = True

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item3" and self.is_first:
                raise KeyboardInterrupt
            yield item


@pytest.fixture
def folder(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(Interrupted(num_items=5), tmp_path / "gulped", 2, 1).run()
    return tmp_path / "gulped"


def is_locked(path):
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.mark.parametrize(
    "options", [{}, {"resume": True}, {"on_duplicate": "skip"}], ids=str
)
def test_an_ingest_beside_one_is_refused_and_leaves_its_files(folder, options):
    before = content(folder)
    ingestor = GulpIngestor(FrameAdapter(num_items=5), folder, 2, 1, **options)
    with (folder / NAME).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = "another process is writing to .*gulped, perhaps on another machine"
        with pytest.raises(LockedError, match=message):
            ingestor.run()
    assert content(folder) == before


def test_a_merge_beside_one_is_refused(tmp_path):
    make_gulp_directory(tmp_path / "part", num_items=2)
    target = tmp_path / "all"
    target.mkdir()
    begin_merge(open_store(target), [str(tmp_path / "part")])
    with (target / NAME).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match=r"writing to .*all, perhaps on another"):
            merge_directories([tmp_path / "part"], target)
    assert list(content(target)) == [NAME]


def test_a_merge_holds_its_journal_until_it_ends(tmp_path):
    make_gulp_directory(tmp_path / "part", num_items=2)
    journal, locked = tmp_path / "all" / NAME, []
    merge_directories(
        [tmp_path / "part"],
        tmp_path / "all",
        progress=lambda **_: locked.append(is_locked(journal)),
    )
    assert locked
    assert all(locked)
    assert not journal.exists()


def test_a_copy_in_its_place_frees_a_journal_of_a_machine_that_is_gone(folder):
    adapter = Interrupted(num_items=5)
    adapter.is_first = False
    with (folder / NAME).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        shutil.copyfile(folder / NAME, folder / "copy")
        (folder / "copy").replace(folder / NAME)
        report = GulpIngestor(adapter, folder, 2, 1, resume=True).run()
    assert (report.items, report.resumed > 0) == (5, True)


@pytest.mark.parametrize("resume", [False, True])
def test_an_ingest_holds_its_journal_until_it_ends(folder, resume):
    locked = []

    def look(**_):
        locked.append(is_locked(folder / NAME))

    options = {"resume": True} if resume else {"on_duplicate": "skip"}
    adapter = Interrupted(num_items=5)
    adapter.is_first = False
    GulpIngestor(adapter, folder, 2, 1, progress=look, **options).run()
    assert locked
    assert all(locked)
    assert not (folder / NAME).exists()


class Replaced(FrameAdapter):
    """While it is ingested another machine begins a run in the same instant."""

    folder = Path()

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item2":
                (self.folder / "other").write_bytes(b"")
                (self.folder / "other").replace(self.folder / NAME)
            yield item


def test_a_run_whose_journal_another_has_replaced_ends(tmp_path):
    adapter = Replaced(num_items=5)
    adapter.folder = tmp_path / "gulped"
    message = "was replaced or removed while this run was at work"
    with pytest.raises(LockedError, match=message):
        GulpIngestor(adapter, adapter.folder, 2, 1).run()
    assert sorted(path.name for path in adapter.folder.glob("*.gmeta")) == [
        "meta_0.gmeta"
    ]
    assert (adapter.folder / NAME).read_bytes() == b""
