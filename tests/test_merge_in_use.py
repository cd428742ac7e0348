"""Merging while something else is at work on a part."""

import contextlib
import errno
import os
import threading

import pytest

import gulpio2.merge.data
import gulpio2.merge.parts
import gulpio2.storage.links
import gulpio2.storage.locks
from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import (
    ChunkMismatchError,
    DuplicateIdError,
    FormatError,
    IngestError,
    LockedError,
    StorageError,
)
from gulpio2.format.gmeta import refuse_cut_data
from gulpio2.format.layout import JOURNAL_NAME, list_chunks
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.local import open_store
from gulpio2.storage.locks import WriterLock
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.faults.killed import is_killed
from tests.faults.operations import content


def make(folder, num_items=2, per_chunk=2):
    GulpIngestor(FrameAdapter(num_items=num_items), folder, per_chunk, 1).run()
    return folder


def append_to(folder, *ids, number=0):
    chunk = GulpChunk(folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta")
    with chunk.open("ab"):
        for id_ in ids:
            chunk.append(id_, {}, make_frames(2))


@pytest.fixture
def at_copy(monkeypatch):
    """Give a function that has something done before and after each copy."""

    def at_copy(action):
        real = gulpio2.storage.links.copy_file

        def copy_file(*args, **kwargs):
            action()
            real(*args, **kwargs)
            action()

        monkeypatch.setattr(gulpio2.merge.data, "copy_file", copy_file)

    return at_copy


def test_what_is_appended_while_a_part_is_copied_is_left_out(tmp_path, at_copy):
    part = make(tmp_path / "part")
    new = iter("abcdef")
    at_copy(lambda: append_to(part, next(new)))
    report = merge_directories([part], tmp_path / "out", link=False)
    assert (report.items, report.copied) == (2, 1)
    assert check_directory(tmp_path / "out", deep=True).problems == []
    with GulpDirectory(tmp_path / "out", verify=True) as directory:
        for id_ in directory.chunk_lookup:
            directory.read_clip(id_)


def test_what_is_appended_by_who_has_a_part_open_does_not_come_by_a_link(tmp_path):
    part, out = make(tmp_path / "part"), tmp_path / "out"
    chunk = GulpChunk(part / "data_0.gulp", part / "meta_0.gmeta")
    with chunk.open("ab"):
        report = merge_directories([part], out)
        chunk.append("later", {}, make_frames(2))
    assert (report.linked, report.copied) == (0, 1)
    assert check_directory(out, deep=True).problems == []
    delete_items(out, ["item0"])
    assert [done.items for done in compact_directory(out)] == [1]
    assert list(GulpDirectory(part).chunk_lookup) == ["item0", "item1", "later"]
    report = merge_directories([part], tmp_path / "closed")
    assert (report.linked, report.copied) == (1, 0)


def test_a_part_whose_data_files_cannot_be_locked_is_copied(tmp_path, monkeypatch):
    part, real = make(tmp_path / "part"), gulpio2.storage.locks.lock_file

    def lock_file(fd, **options):  # as by NFS one that may only be read
        if os.path.samestat(os.fstat(fd), (part / "data_0.gulp").stat()):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return real(fd, **options)

    monkeypatch.setattr("gulpio2.storage.locks.lock_file", lock_file)
    report = merge_directories([part], tmp_path / "out")
    assert (report.linked, report.copied) == (0, 1)


def test_a_chunk_that_is_stored_in_a_part_once_it_was_listed_is_brought(
    tmp_path, monkeypatch
):
    part, out = make(tmp_path / "part"), tmp_path / "out"

    def store(names):
        monkeypatch.undo()
        (chunk,) = GulpDirectory(part).new_chunks(1)
        with chunk.open("wb"):
            chunk.append("new", {}, make_frames(2))
        return list_chunks(names)

    monkeypatch.setattr("gulpio2.storage.beside_writers.list_chunks", store)
    assert merge_directories([part], out).items == 3
    assert list(GulpDirectory(out).chunk_lookup) == ["item0", "item1", "new"]
    assert check_directory(out, deep=True).problems == []


def test_a_chunk_that_is_stored_in_the_target_meanwhile_stays(tmp_path, at_copy):
    part, out = make(tmp_path / "part", 4), tmp_path / "out"
    new = iter("abcd")

    def store():
        (chunk,) = GulpDirectory(out).new_chunks(1)
        with chunk.open("wb"):
            chunk.append(next(new), {}, make_frames(2))

    at_copy(store)
    assert merge_directories([part], out, link=False).chunks == [2, 5]
    assert list(GulpDirectory(out).chunk_lookup.items()) == [
        ("a", 0),
        ("b", 1),
        ("item0", 2),
        ("item1", 2),
        ("c", 3),
        ("d", 4),
        ("item2", 5),
        ("item3", 5),
    ]
    assert merge_directories([part], out, link=False).present == 2
    assert check_directory(out, deep=True).problems == []


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_chunk_of_a_part_that_is_written_anew_meanwhile_is_not_brought(
    tmp_path, monkeypatch, link
):
    part, out = make(tmp_path / "part", 4), tmp_path / "out"

    def write_anew(*args):  # once the map was read
        monkeypatch.undo()
        refuse_cut_data(*args)
        chunk = GulpChunk(part / "data_0.gulp", part / "meta_0.gmeta")
        with chunk.open("wb"):
            chunk.append("item0", {}, make_frames(20))

    monkeypatch.setattr("gulpio2.merge.data.refuse_cut_data", write_anew)
    with pytest.raises(ChunkMismatchError, match=r"written anew .* merge again"):
        merge_directories([part], out, link=link)
    assert list(out.glob("*.partial")) == list(out.glob("*.g*")) == []
    assert merge_directories([part], out, link=link).items == 3
    assert check_directory(out, deep=True).problems == []


@pytest.mark.parametrize("is_brought", [False, True])
def test_the_map_of_a_part_that_is_written_anew_is_waited_for(tmp_path, is_brought):
    part, out = make(tmp_path / "part", 4), tmp_path / "out"
    map_, away = part / "meta_1.gmeta", tmp_path / "away"
    if is_brought:
        merge_directories([part], out)
    ends = contextlib.ExitStack()

    def end():
        away.rename(map_)
        ends.close()

    later = threading.Timer(0.2, end)
    look = gulpio2.merge.parts.chunks_of_ids

    def begin(target):  # the parts are listed by then
        ends.enter_context(WriterLock()).take(part / "data_1.gulp")
        map_.rename(away)
        later.start()
        return look(target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gulpio2.merge.directories.chunks_of_ids", begin)
        report = merge_directories([part], out)
    later.join()
    assert report.present == (2 if is_brought else 0)
    assert check_directory(out, deep=True).items == 4


def test_what_gets_bytes_of_its_own_while_it_is_merged_is_brought(tmp_path, at_copy):
    part, out = make(tmp_path / "part"), tmp_path / "out"
    merge_directories([part], tmp_path / "linked")
    new = iter("ab")
    at_copy(lambda: append_to(part, next(new)))
    assert merge_directories([part], out, link=False).items == 2
    assert check_directory(out, deep=True).problems == []


def test_bytes_that_no_map_knows_are_not_brought(tmp_path):
    part = make(tmp_path / "part")
    with (part / "data_0.gulp").open("ab") as file:
        file.write(bytes(64))
    report = merge_directories([part], tmp_path / "out")
    assert (report.linked, report.copied) == (0, 1)
    assert check_directory(tmp_path / "out", deep=True).problems == []
    assert merge_directories([part], tmp_path / "out").present == 1


def test_such_a_merge_that_is_killed_is_finished_by_merging_again(tmp_path):
    part = make(tmp_path / "part")
    with (part / "data_0.gulp").open("ab") as file:
        file.write(bytes(64))
    merge_directories([part], tmp_path / "whole")
    for number in range(1, 100):
        target = tmp_path / f"killed{number}"
        if not is_killed(number, merge_directories, [part], target):
            break
        merge_directories([part], target)
        assert content(target) == content(tmp_path / "whole")
    assert number > 5


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_merge_that_is_killed_is_finished_where_the_part_has_grown(tmp_path, link):
    part = make(tmp_path / "part", num_items=4)
    for number in range(1, 100):
        target = tmp_path / f"killed{number}"
        if not is_killed(number, merge_directories, [part], target, link=link):
            break
        listing = list_chunks(open_store(target).names())
        if listing.data_only == (1,):
            append_to(part, f"more{number}", number=1)
            merge_directories([part], target, link=link)
            assert check_directory(target, deep=True).problems == []
            assert f"more{number}" in GulpDirectory(target)
            break
    assert listing.data_only == (1,)


def test_a_data_file_that_is_no_beginning_of_a_part_is_left_alone(tmp_path):
    part = make(tmp_path / "part")
    (tmp_path / "out").mkdir()
    data = (part / "data_0.gulp").read_bytes()
    (tmp_path / "out" / "data_0.gulp").write_bytes(b"\xff" + data[:64])
    (tmp_path / "out" / "data_1.gulp").write_bytes(b"")
    assert merge_directories([part], tmp_path / "out").chunks == [2]
    assert (tmp_path / "out" / "data_0.gulp").read_bytes() == b"\xff" + data[:64]


def test_ids_are_those_of_the_map_that_is_brought(tmp_path, at_copy):
    part = make(tmp_path / "part", num_items=4)
    done: list[None] = []

    def append():  # to the chunk that is yet to come
        if not done:
            done.append(None)
            append_to(part, "new", number=1)

    at_copy(append)
    report = merge_directories([part], tmp_path / "out", link=False)
    assert (report.items, len(GulpDirectory(tmp_path / "out"))) == (5, 5)


def test_an_id_that_comes_while_parts_are_merged_is_refused(tmp_path, at_copy):
    parts = [make(tmp_path / "a", num_items=4), tmp_path / "b"]
    append_to_new(parts[1], "other")
    done: list[None] = []

    def append():
        if not done:
            done.append(None)
            append_to(parts[0], "other", number=1)

    at_copy(append)
    with pytest.raises(DuplicateIdError, match="'other' is in"):
        merge_directories(parts, tmp_path / "out", link=False)
    (problem,) = check_directory(tmp_path / "out", deep=True).problems
    assert problem.code == "unfinished-ingest"
    with pytest.raises(IngestError, match=r"the merge into .* was not finished"):
        merge_directories([tmp_path / "out"], tmp_path / "further")


def append_to_new(folder, id_):
    folder.mkdir()
    (chunk,) = GulpDirectory(folder).new_chunks(1)
    with chunk.open("wb"):
        chunk.append(id_, {}, make_frames(2))


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
@pytest.mark.parametrize("is_relative", [True, False], ids=["relative", "absolute"])
def test_a_data_file_behind_a_symbolic_link_is_merged(tmp_path, link, is_relative):
    part, elsewhere = make(tmp_path / "part"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (part / "data_0.gulp").rename(elsewhere / "frames")
    to = "../elsewhere/frames" if is_relative else elsewhere / "frames"
    (part / "data_0.gulp").symlink_to(to)
    target = tmp_path / "far" / "away" / "out"
    report = merge_directories([part], target, link=link)
    assert (report.linked, report.copied) == (link, not link)
    assert not (target / "data_0.gulp").is_symlink()
    assert check_directory(target, deep=True).problems == []
    with GulpDirectory(target, verify=True) as directory:
        directory.read_clip("item0")
    assert merge_directories([part], target).present == 1


def test_a_part_is_locked_before_it_is_looked_at(tmp_path, monkeypatch):
    part = make(tmp_path / "part")
    store = type(open_store(part))
    real = store.lock

    @contextlib.contextmanager
    def lock(self, **options):
        if str(part) in self.path(""):  # another has just begun here, and was killed
            (part / JOURNAL_NAME).write_bytes(b"")
        with real(self, **options):
            yield

    monkeypatch.setattr(store, "lock", lock)
    with pytest.raises(IngestError, match="was not finished"):
        merge_directories([part], tmp_path / "out")


def test_a_part_that_another_writes_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 0.01)
    part = make(tmp_path / "part")
    with open_store(part).lock(), pytest.raises(LockedError):
        merge_directories([part], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_whose_data_file_was_cut_is_refused(tmp_path):
    make_gulp_directory(tmp_path / "part", num_items=2, num_frames=3)
    data = tmp_path / "part" / "data_0.gulp"
    data.write_bytes(data.read_bytes()[:-8])
    with pytest.raises(FormatError, match=r"data_0\.gulp ends at byte .* are lost"):
        merge_directories([tmp_path / "part"], tmp_path / "all")
    assert not list((tmp_path / "all").glob("*.gmeta"))


def test_a_data_file_that_cannot_be_read_is_named_and_not_the_target(
    tmp_path, monkeypatch
):
    part = make(tmp_path / "part")
    data = str(part / "data_0.gulp")

    def copyfile(source, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(source))

    monkeypatch.setattr("gulpio2.storage.links.shutil.copyfile", copyfile)
    with pytest.raises(StorageError) as caught:
        merge_directories([part], tmp_path / "out", link=False)
    assert caught.value.strerror == (
        f"cannot read {data}: Permission denied. Make it readable for you (chmod), or "
        "ask its owner to"
    )
