"""Deleting items: hidden at once, erased when their chunk is compacted."""

import functools
import os
import shutil
import signal
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor, removal
from gulpio2.errors import (
    AdapterContractError,
    ChunkMismatchError,
    CorruptFrameError,
    FormatError,
    ItemNotFoundError,
    LockedError,
    MapChangedError,
    MetaFileError,
    StorageError,
)
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage import base
from gulpio2.storage.index import opening, replacing
from gulpio2.storage.index.composing import compose
from gulpio2.storage.index.keeping import build_index, index_state
from gulpio2.storage.local import LocalStore, open_store
from gulpio2.storage.local_writer import LocalWriter
from gulpio2.storage.removals_file import read_removals, write_removals
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.faults.killed import is_killed
from tests.faults.operations import content, in_child
from tests.faults.power import record_operations


@pytest.fixture
def folder(tmp_path):
    """Make a directory of six items in three chunks."""
    path = tmp_path / "gulped"
    GulpIngestor(FrameAdapter(num_items=6, num_frames=3), path, 2, 1).run()
    return path


def states(folder):
    """Give what every change of a file would change."""
    found = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (state.st_ino, state.st_mtime_ns) for name, state in found.items()}


def jpegs(folder):
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_jpegs(id_) for id_ in directory.chunk_lookup}


def test_a_deleted_item_is_hidden_at_once_and_the_rest_is_as_before(folder):
    before = jpegs(folder)
    (deletion,) = delete_items(folder, ["item2"])
    assert (deletion.id, deletion.chunk, deletion.frames) == ("item2", 1, 3)
    gone = before.pop("item2")
    assert jpegs(folder) == before
    assert gone[0] in (folder / "data_1.gulp").read_bytes()
    assert check_directory(folder, deep=True).problems == []


@pytest.mark.parametrize("ids", [["item0"], ["item1"], ["item0", "item1"], ["item3"]])
def test_no_byte_of_a_deleted_frame_is_left_after_compacting(folder, ids):
    before = jpegs(folder)
    untouched = content(folder)
    delete_items(folder, ids)
    compactions = compact_directory(folder)
    number = compactions[0].chunk
    everything = b"".join(content(folder).values())
    for id_ in ids:
        for jpeg in before.pop(id_):
            # Headers are the same in all frames; what follows them is not.
            assert jpeg[-64:] not in everything
    assert jpegs(folder) == before
    assert check_directory(folder, deep=True).problems == []
    for name, data in untouched.items():
        if name.startswith("data_") and name != f"data_{number}.gulp":
            assert (folder / name).read_bytes() == data


def test_frames_that_stay_keep_their_offsets_so_that_an_open_reader_goes_on(folder):
    with GulpDirectory(folder) as early, GulpDirectory(folder) as late:
        expected = early.read_clip("item3")  # has the old data file open
        delete_items(folder, ["item2"])
        compact_directory(folder)
        assert np.array_equal(early.read_clip("item3"), expected)
        assert np.array_equal(late.read_clip("item3"), expected)  # opens the new one


def test_what_was_erased_must_be_zero(folder):
    delete_items(folder, ["item2"])
    compact_directory(folder)
    data = bytearray((folder / "data_1.gulp").read_bytes())
    assert data[100] == 0
    data[100] = 1
    (folder / "data_1.gulp").write_bytes(data)
    (problem,) = check_directory(folder, deep=True).problems
    assert (problem.code, problem.file, problem.offset) == (
        "not-erased",
        "data_1.gulp",
        100,
    )


def test_a_flipped_byte_in_a_deleted_item_is_found_and_named(folder):
    delete_items(folder, ["item2"])
    data = bytearray((folder / "data_1.gulp").read_bytes())
    data[300] ^= 1
    (folder / "data_1.gulp").write_bytes(data)
    (problem,) = check_directory(folder, deep=True).problems
    assert (problem.code, problem.item) == ("crc-mismatch", "item2")
    assert "Its item is deleted: `gulp2 compact` erases" in problem.message
    assert "ingest it again" not in problem.message


def test_every_flipped_byte_of_the_list_of_deletions_is_found(folder):
    delete_items(folder, ["item2"])
    path = folder / "deleted.json"
    data = path.read_bytes()
    for offset in range(0, len(data), 7):
        flipped = bytearray(data)
        flipped[offset] ^= 1
        path.write_bytes(flipped)
        assert "bad-removals" in {p.code for p in check_directory(folder).problems}


def test_an_id_can_be_given_again_after_it_was_deleted(folder):
    delete_items(folder, ["item0", "item1", "item2", "item3", "item4", "item5"])
    GulpIngestor(FrameAdapter(num_items=3, num_frames=3), folder, 3, 1).run()
    delete_items(folder, ["item1"])
    assert sorted(jpegs(folder)) == ["item0", "item2"]
    assert check_directory(folder, deep=True).problems == []
    compact_directory(folder)
    assert sorted(jpegs(folder)) == ["item0", "item2"]


def test_an_id_can_be_given_again_in_its_own_chunk(folder):
    for seed in (7, 8):
        delete_items(folder, ["item0"])
        chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
        with chunk.open("ab"):
            chunk.append("item0", {}, make_frames(2, seed=seed))
        assert check_directory(folder, deep=True).problems == []
    compact_directory(folder)
    assert check_directory(folder, deep=True).problems == []


def test_frames_added_to_an_item_whose_deletion_was_interrupted_are_sound(folder):
    path = folder / "meta_0.gmeta"
    before = path.read_bytes()
    delete_items(folder, ["item0"])
    path.write_bytes(before)
    chunk = GulpChunk(folder / "data_0.gulp", path)
    with chunk.open("ab"):
        chunk.append("item0", {}, make_frames(2, seed=7))
    assert check_directory(folder, deep=True).problems == []


def test_an_unknown_id_changes_nothing(folder):
    before = content(folder)
    with pytest.raises(ItemNotFoundError, match="no item 'nobody' in"):
        delete_items(folder, ["item1", "nobody"])
    assert content(folder) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_item_whose_data_file_is_missing_is_not_called_unknown(folder, dry_run):
    (folder / "data_1.gulp").unlink()
    before = content(folder)
    with pytest.raises(ChunkMismatchError, match=r"'item2' is in .*meta_1\.gmeta"):
        delete_items(folder, ["item0", "item2"], dry_run=dry_run)
    with pytest.raises(ItemNotFoundError, match="no item 'nobody' in"):
        delete_items(folder, ["nobody"], dry_run=dry_run)
    assert content(folder) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_item_whose_data_file_is_a_link_to_nothing_is_not_deleted(folder, dry_run):
    (folder / "data_1.gulp").unlink()
    (folder / "data_1.gulp").symlink_to("gone")
    before = states(folder)
    message = r"'item2' is in .*/meta_1.gmeta, .* is a link to gone, .*Bring what it"
    with pytest.raises(ChunkMismatchError, match=message):
        delete_items(folder, ["item0", "item2"], dry_run=dry_run)
    assert states(folder) == before


def test_a_dry_run_changes_nothing(folder):
    before = content(folder)
    assert [d.id for d in delete_items(folder, ["item1"], dry_run=True)] == ["item1"]
    assert content(folder) == before
    delete_items(folder, ["item1"])
    before = content(folder)
    assert [c.items for c in compact_directory(folder, dry_run=True)] == [1]
    assert content(folder) == before


def test_a_writer_at_work_is_not_disturbed(folder):
    refused = pytest.raises(LockedError)
    with open_store(folder).lock(), refused:
        delete_items(folder, ["item1"])


def test_a_data_file_with_a_second_name_is_not_changed_under_it(folder, tmp_path):
    os.link(folder / "data_1.gulp", tmp_path / "other.gulp")
    data = (tmp_path / "other.gulp").read_bytes()
    delete_items(folder, ["item2"])
    compact_directory(folder)
    assert (tmp_path / "other.gulp").read_bytes() == data


@pytest.mark.parametrize("step", ["delete", "compact", "compact together"])
def test_killed_at_every_operation_nothing_else_is_lost(tmp_path, step, monkeypatch):
    if step == "compact together":
        monkeypatch.setattr("gulpio2.removal._NOTES", 1)
    adapter = FrameAdapter(num_items=4, num_frames=2)
    told = set()
    for number in range(1, 100):
        folder = tmp_path / str(number)
        GulpIngestor(adapter, folder, 2, 1).run()
        kept = jpegs(folder)
        del kept["item0"], kept["item3"]
        if step != "delete":
            delete_items(folder, ["item0", "item3"])

        if step == "delete":
            ended = not is_killed(number, delete_items, folder, ["item0", "item3"])
        else:
            ended = not is_killed(number, compact_directory, folder)
        found = jpegs(folder)
        assert {id_: found[id_] for id_ in kept} == kept
        # Nothing is said to be damaged, for nothing is.
        codes = {p.code for p in check_directory(folder, deep=True).problems}
        assert codes <= {"partial-file", "unfinished-compaction"}
        told |= codes
        rest = [id_ for id_ in ("item0", "item3") if id_ in found]
        if rest:
            delete_items(folder, rest)
        compact_directory(folder)
        assert jpegs(folder) == kept
        assert check_directory(folder, deep=True).problems == []
        if ended:
            break
    assert number > 10
    assert ("unfinished-compaction" in told) == (step != "delete")


def test_what_a_check_finds_beside_a_commit_may_be_a_writer_at_work(
    tmp_path, monkeypatch
):
    found, rename = [], LocalStore.rename

    def note(store, source, target, **options):
        if target == "meta_0.gmeta":
            found.extend(check_directory(tmp_path, deep=True).problems)
        rename(store, source, target, **options)

    monkeypatch.setattr(LocalStore, "rename", note)
    (chunk,) = GulpDirectory(tmp_path).new_chunks(1)
    with chunk.open("wb"):
        chunk.append("item", {}, make_frames(1))
    (problem,) = (each for each in found if each.code == "data-without-map")
    assert "it is being stored, was never committed, or the map" in problem.message
    assert "If no writer is at work, put the map back" in problem.message


def test_what_a_check_finds_beside_a_compaction_may_be_one_at_work(folder, monkeypatch):
    delete_items(folder, ["item0"])
    found = []

    def write(*arguments):
        found.extend(check_directory(folder, deep=True).problems)
        write_removals(*arguments)

    monkeypatch.setattr("gulpio2.removal.write_removals", write)
    compact_directory(folder)
    (problem,) = found
    assert problem.code == "unfinished-compaction"
    assert "that is at work, or was interrupted" in problem.message
    assert "If none is at work, run `gulp2 compact` (again)" in problem.message


def test_compacting_many_chunks_writes_the_list_of_deletions_few_times(tmp_path):
    adapter = FrameAdapter(num_items=70, num_frames=1)
    GulpIngestor(adapter, tmp_path, 1, 1).run()
    delete_items(tmp_path, [f"item{n}" for n in range(69)])
    with record_operations(tmp_path) as recording:
        assert len(compact_directory(tmp_path)) == 69
    names = [done.name for done in recording.operations if done.kind == "rename"]
    assert names.count("data_7.gulp") == 1
    assert names.count("deleted.json") == 23  # each time of three chunks
    assert read_removals(open_store(tmp_path)).deleted == {}
    assert check_directory(tmp_path, deep=True).problems == []


def test_an_interrupted_compaction_notes_what_it_has_erased(folder, monkeypatch):
    monkeypatch.setattr("gulpio2.removal._NOTES", 1)
    delete_items(folder, ["item0", "item2", "item4"])
    copied = []

    def progress(num_bytes=0, **_):
        copied.append(num_bytes)
        if len(copied) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact_directory(folder, progress=progress)
    assert check_directory(folder, deep=True).problems == []
    assert [each.chunk for each in compact_directory(folder)] == [2]


def test_deleting_does_not_hold_all_maps_in_memory(tmp_path, monkeypatch):
    make_gulp_directory(tmp_path, num_items=24)
    loaded, alive = [], []

    def load(*args, **options):
        entries = load_gmeta(*args, **options)
        loaded.append(weakref.ref(entries))
        alive.append(sum(each() is not None for each in loaded))
        return entries

    for module in (removal, base):
        monkeypatch.setattr(module, "load_gmeta", load)
    delete_items(tmp_path, [f"item{n}" for n in range(0, 24, 2)])
    # Counted, as bytes are those of whatever else is at work in this process.
    assert len(loaded) == 2 * 12
    assert max(alive) <= 2


def test_deleting_again_after_a_crash_half_way_accounts_for_the_bytes_once(tmp_path):
    make_gulp_directory(tmp_path, num_items=2).close()
    before = (tmp_path / "meta_0.gmeta").read_bytes()
    delete_items(tmp_path, ["item0"])
    (tmp_path / "meta_0.gmeta").write_bytes(before)  # as if the map had not come
    delete_items(tmp_path, ["item0"])
    assert check_directory(tmp_path, deep=True).problems == []


def test_the_same_deletion_again_ends_one_that_was_interrupted(tmp_path):
    ids = ["item0", "item3", "item5"]
    for operation in range(1, 100):
        folder = tmp_path / str(operation)
        make_gulp_directory(folder, num_items=6, items_per_chunk=2).close()
        if not is_killed(operation, delete_items, folder, ids):
            break
        with GulpDirectory(folder) as directory:
            left = set(ids) & set(directory.chunk_lookup)
        if left:
            deleted = delete_items(folder, ids)
            assert {deletion.id for deletion in deleted} == left
        else:
            with pytest.raises(ItemNotFoundError, match="nor 2 others: deleted alr"):
                delete_items(folder, ids)
        with GulpDirectory(folder) as directory:
            assert list(directory.chunk_lookup) == ["item1", "item2", "item4"]
        with pytest.raises(ItemNotFoundError, match="no item 'nobody' in"):
            delete_items(folder, [*ids, "nobody", "item1"])
        assert check_directory(folder, deep=True).problems == []
    assert operation > 10


def assert_sound_after_killed_compactions(folder, then):
    """Kill a compaction at each operation, do something, and look what is said."""
    told = set()
    for operation in range(1, 40):
        copy = folder.parent / str(operation)
        shutil.copytree(folder, copy)
        if not is_killed(operation, compact_directory, copy):
            break
        then(copy)
        codes = {problem.code for problem in check_directory(copy, deep=True).problems}
        assert codes <= {"partial-file", "unfinished-compaction"}
        told |= codes
        compact_directory(copy)
        assert check_directory(copy, deep=True).problems == []
    assert "unfinished-compaction" in told


def append_two(folder):
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("new", {}, make_frames(3, seed=9))
        chunk.append("newer", {}, make_frames(2, seed=8))


@pytest.mark.parametrize("deleted", [[], ["new"], ["newer"], ["new", "newer"]])
@pytest.mark.parametrize("ids", [["item0", "item1"], ["item1"], ["item0"]])
def test_what_comes_after_an_interrupted_compaction_is_called_sound(
    folder, ids, deleted
):
    def append_and_delete(copy):
        append_two(copy)
        if deleted:
            delete_items(copy, deleted)

    delete_items(folder, ids)
    assert_sound_after_killed_compactions(folder, append_and_delete)


@pytest.mark.parametrize("then", [lambda _folder: None, append_two])
def test_an_interrupted_compaction_may_end_a_file_before_noted_holes(folder, then):
    delete_items(folder, ["item0"])
    compact_directory(folder)
    delete_items(folder, ["item1"])
    assert_sound_after_killed_compactions(folder, then)


@pytest.fixture(params=[False, True], ids=["with checksums", "of 0.0.4"])
def sharing(folder, request):
    """Have "part" and "twin" share frames with "item0", as 0.0.4 lets items."""
    path = folder / "meta_0.gmeta"
    entries = load_gmeta(path.read_bytes(), where="")
    infos = entries["item0"]["frame_info"]
    for id_, shared in (("part", infos[1:2]), ("twin", infos)):
        entries[id_] = {"frame_info": shared, "meta_data": [{}]}
    if request.param:
        for entry in entries.values():
            entry.pop("gulp2", None)
    path.write_bytes(dump_gmeta(entries))
    return folder


@pytest.mark.parametrize(
    "ids", [["part", "twin"], ["item0", "part"], ["item0", "part", "twin"]]
)
def test_deleting_items_that_share_frames_is_no_interrupted_compaction(sharing, ids):
    delete_items(sharing, ids)
    left = jpegs(sharing)
    assert check_directory(sharing, deep=True).problems == []
    compact_directory(sharing)
    assert jpegs(sharing) == left
    assert check_directory(sharing, deep=True).problems == []


def test_an_interrupted_compaction_of_shared_frames_is_told(sharing):
    delete_items(sharing, ["item0", "twin"])
    assert_sound_after_killed_compactions(sharing, lambda _folder: None)


def test_a_chunk_behind_a_link_is_not_compacted(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere.gulp"
    (folder / "data_1.gulp").rename(elsewhere)
    (folder / "data_1.gulp").symlink_to(elsewhere)
    delete_items(folder, ["item2"])
    before = content(folder)
    with pytest.raises(FormatError, match="is a link, and the deleted frames would"):
        compact_directory(folder)
    assert content(folder) == before
    elsewhere.replace(folder / "data_1.gulp")
    assert len(compact_directory(folder)) == 1
    assert check_directory(folder, deep=True).problems == []


def test_a_chunk_behind_a_link_to_itself_is_not_compacted(folder):
    delete_items(folder, ["item2"])
    (folder / "data_1.gulp").unlink()
    (folder / "data_1.gulp").symlink_to("data_1.gulp")
    with pytest.raises(FormatError, match="is a link, and the deleted frames would"):
        compact_directory(folder)


def test_a_chunk_of_no_frames_is_compacted_like_any_other(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("empty", {}, [])
    delete_items(tmp_path, ["empty"])
    compact_directory(tmp_path)
    assert (tmp_path / "data_0.gulp").read_bytes() == b""
    assert read_removals(open_store(tmp_path)).deleted == {}
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("name", ["data_1.gulp", "meta_1.gmeta"])
def test_compacting_a_chunk_that_is_gone_says_so(folder, name):
    delete_items(folder, ["item2"])
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"{name} is missing"):
        compact_directory(folder)


@pytest.mark.parametrize("ids", [["item1"], ["item0", "item1"]])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("was_read", [False, True])
def test_a_reader_of_a_deleted_item_gets_no_frame_of_a_later_one(
    folder, ids, indexed, was_read
):
    reader = GulpDirectory(folder, indexed=indexed)
    before = reader.read_clip("item1")
    if not was_read:
        reader = GulpDirectory(folder, indexed=indexed)
    delete_items(folder, ids)
    compact_directory(folder)
    append_two(folder)
    for selection in ([0], [2], slice(None)):
        try:
            found = reader.read_clip("item1", selection)
        except CorruptFrameError:
            assert not was_read
        else:  # of the file that it has open
            np.testing.assert_array_equal(found, before[selection])
            assert was_read
    assert check_directory(folder, deep=True).problems == []
    with GulpDirectory(folder) as directory:
        assert len(directory["new"][0]) == 3


def test_offsets_are_not_given_again_after_a_failed_append_either(folder):
    size = (folder / "data_0.gulp").stat().st_size
    delete_items(folder, ["item1"])
    compact_directory(folder)
    assert (folder / "data_0.gulp").stat().st_size == size
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with pytest.raises(AdapterContractError), chunk.open("ab"):
        chunk.append("new", {}, [*make_frames(3, seed=9), "no frame"])
    assert check_directory(folder, deep=True).problems == []
    append_two(folder)
    with GulpDirectory(folder) as directory:
        assert directory.item("new").entry["frame_info"][0][0] == size


def test_compacting_again_and_repairing_know_the_erased_end(folder, tmp_path):
    for id_ in ("item1", "new", "newer", "item0"):
        delete_items(folder, [id_])
        compact_directory(folder)
        assert check_directory(folder, deep=True).problems == []
        if id_ == "item1":
            append_two(folder)
    size = (folder / "data_0.gulp").stat().st_size
    assert read_removals(open_store(folder)).erased[0] == [(0, size)]
    report = repair_directory(folder, tmp_path / "repaired")
    assert (report.ok, report.items) == (True, 4)


def test_an_erased_end_that_was_cut_is_named(folder):
    path = folder / "data_0.gulp"
    delete_items(folder, ["item1"])
    compact_directory(folder)
    ((start, stop),) = read_removals(open_store(folder)).erased[0]
    for size in (start, start + 1, stop - 1):
        os.truncate(path, size)
        for deep in (False, True):
            (problem,) = check_directory(folder, deep=deep).problems
            assert (problem.code, problem.offset) == ("data-too-short", size)
    os.truncate(path, stop)
    assert check_directory(folder, deep=True).problems == []
    with path.open("ab") as file:
        file.write(b"more")
    (problem,) = check_directory(folder).problems
    assert (problem.code, problem.offset) == ("data-too-long", start)


def test_a_file_that_was_cut_in_a_hole_before_frames_is_called_too_short_once(folder):
    delete_items(folder, ["item0"])
    compact_directory(folder)
    os.truncate(folder / "data_0.gulp", 100)
    problems = check_directory(folder).problems
    found = [problem for problem in problems if problem.code == "data-too-short"]
    assert len(found) == 1
    assert "Put the whole file back" in found[0].message


def test_the_index_forgets_what_is_deleted(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(3):
            meta = {"name": f"SECRET{number}"}
            chunk.append(f"item{number}", meta, make_frames(2, seed=number))
    build_index(tmp_path)
    delete_items(tmp_path, ["item1"])
    compact_directory(tmp_path)
    for path in tmp_path.iterdir():
        assert b"SECRET1" not in path.read_bytes(), path.name
    assert b"SECRET2" in (tmp_path / "index.arrow").read_bytes()
    assert index_state(tmp_path).is_fresh
    delete_items(tmp_path, ["item0", "item2"])
    assert not (tmp_path / "index.arrow").exists()


def write_secrets(folder: Path, *names: str) -> None:
    """Append items whose metadata nobody is to find once they are deleted."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        for name in names:
            chunk.append(name, {"name": f"SECRET-{name}"}, make_frames(1))


def assert_forgotten(folder: Path, name: str) -> None:
    """Look for the metadata in every file."""
    for path in folder.iterdir():
        assert f"SECRET-{name}".encode() not in path.read_bytes(), path.name


@contextmanager
def deleting_at(moment, folder, monkeypatch, *, composed_in):
    """Delete an item, and compact, at a moment of the making of an index."""

    def delete() -> None:
        patches.undo()
        delete_items(folder, ["gone"])
        compact_directory(folder)

    with monkeypatch.context() as patches:
        if moment == "begun":
            patches.setattr(LocalStore, "create", then(LocalStore.create, delete))
        elif moment == "written":
            patches.setattr(LocalWriter, "sync", then(LocalWriter.sync, delete))
        else:
            patches.setattr(composed_in, "compose", then(compose, delete))
        yield


@pytest.mark.parametrize("had_index", [False, True])
@pytest.mark.parametrize("moment", ["composed", "begun", "written"])
def test_an_index_that_a_reader_makes_does_not_bring_back_what_is_deleted(
    tmp_path, monkeypatch, had_index, moment
):
    # By another process, while a reader writes the index of maps that it has read.
    write_secrets(tmp_path, "stays", "gone")
    if had_index:
        build_index(tmp_path)
        write_secrets(tmp_path, "late")
    with (
        deleting_at(moment, tmp_path, monkeypatch, composed_in=opening),
        GulpDirectory(tmp_path, indexed=True) as directory,
    ):
        assert "gone" in directory  # as when it was opened
        assert "gone" not in GulpDirectory(tmp_path)
    assert_forgotten(tmp_path, "gone")
    with GulpDirectory(tmp_path, indexed=True):
        assert index_state(tmp_path).is_fresh


@pytest.mark.parametrize("moment", ["composed", "begun", "written"])
@pytest.mark.parametrize("had_index", [False, True])
def test_an_index_that_is_asked_for_is_made_again_where_something_is_deleted(
    tmp_path, monkeypatch, had_index, moment
):
    # As by `gulp2 index`, which does not ask for the lock of the folder.
    write_secrets(tmp_path, "stays", "gone")
    if had_index:
        build_index(tmp_path)
        write_secrets(tmp_path, "late")
    with deleting_at(moment, tmp_path, monkeypatch, composed_in=replacing):
        summary = build_index(tmp_path, thorough=True)
    assert summary is not None
    assert summary.items == 1 + had_index
    assert_forgotten(tmp_path, "gone")
    assert index_state(tmp_path).is_fresh
    assert list(tmp_path.glob("*.partial")) == []


def test_an_index_of_maps_that_go_on_changing_is_refused(tmp_path, monkeypatch):
    def append() -> None:
        write_secrets(tmp_path, f"{len(GulpDirectory(tmp_path))}")

    write_secrets(tmp_path, "a")
    monkeypatch.setattr(replacing, "compose", then(compose, append))
    with pytest.raises(MapChangedError, match="has changed while an index was made"):
        build_index(tmp_path)
    assert list(tmp_path.glob("index*")) == []


@pytest.mark.parametrize("had_index", [False, True])
def test_nor_does_one_that_is_begun_before_the_map_is_changed(
    tmp_path, monkeypatch, had_index
):
    write_secrets(tmp_path, "stays", "gone")
    if had_index:
        build_index(tmp_path)
        write_secrets(tmp_path, "late")
    begun, deleted = threading.Event(), threading.Event()
    sync = LocalWriter.sync

    def wait(writer: LocalWriter) -> None:
        sync(writer)
        if writer.path.name.startswith("index.arrow") and not begun.is_set():
            begun.set()
            assert deleted.wait(10)

    def note(*args: Any) -> None:
        write_removals(*args)
        if reader.ident is None:  # it is not begun yet
            reader.start()
            assert begun.wait(10)

    reader = threading.Thread(
        target=lambda: GulpDirectory(tmp_path, indexed=True).close()
    )
    monkeypatch.setattr(LocalWriter, "sync", wait)
    monkeypatch.setattr(removal, "write_removals", note)
    delete_items(tmp_path, ["gone"])
    deleted.set()
    reader.join(10)
    assert "SECRET-gone" not in (tmp_path / "meta_0.gmeta").read_text()
    index = tmp_path / "index.arrow"
    assert not index.exists() or b"SECRET-gone" not in index.read_bytes()
    compact_directory(tmp_path)
    assert_forgotten(tmp_path, "gone")


def then(function: Any, more: Any) -> Any:
    """Do something more when a function has ended."""

    @functools.wraps(function)
    def both(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        more()
        return result

    return both


def test_what_an_interrupted_deletion_left_visible_is_not_told_as_erased(tmp_path):
    make_gulp_directory(tmp_path, num_items=4, num_frames=3)
    maps = {path: path.read_bytes() for path in tmp_path.glob("*.gmeta")}
    delete_items(tmp_path, ["item0"])
    (first, *_) = sorted(maps)
    first.write_bytes(maps[first])
    assert compact_directory(tmp_path, dry_run=True) == []
    assert compact_directory(tmp_path) == []
    assert "item0" in GulpDirectory(tmp_path)
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_chunk_that_is_written_anew_has_no_deleted_items(tmp_path, compacted):
    folder = tmp_path / "in"
    make_gulp_directory(folder, num_items=4, num_frames=3)
    delete_items(folder, ["item0"])
    if compacted:
        compact_directory(folder)
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(2):
            chunk.append(f"new{number}", {}, make_frames(4, seed=50 + number))
    assert check_directory(folder, deep=True).problems == []
    (folder / "meta_0.gmeta").unlink()
    report = repair_directory(folder, tmp_path / "out")
    assert report.frames >= 8


def test_a_damaged_note_of_deleted_items_does_not_stop_a_writer(tmp_path):
    make_gulp_directory(tmp_path, num_items=2, num_frames=3)
    (tmp_path / "deleted.json").write_bytes(b"no JSON")
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("new", {}, make_frames(2))
    assert (tmp_path / "deleted.json").read_bytes() == b"no JSON"


def test_files_that_an_editor_has_given_another_form_are_used_as_they_are(tmp_path):
    folder = tmp_path / "out"
    GulpIngestor(FrameAdapter(num_items=4), folder, 2, 1).run()
    delete_items(folder, ["item1"])
    for name in ("gulp.json", "deleted.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with GulpDirectory(folder) as directory:
        assert len(directory.manifest.runs) == 1
    found = check_directory(folder, deep=True).problems
    assert [problem.code for problem in found] == ["bad-removals", "bad-manifest"]
    delete_items(folder, ["item2"])
    compact_directory(folder)
    GulpIngestor(FrameAdapter(num_items=6), folder, 2, 1, on_duplicate="skip").run()
    assert check_directory(folder, deep=True).problems == []
    assert len(GulpDirectory(folder).manifest.runs) == 2


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("lost", ["all", "one"])
def test_frames_that_a_map_has_lost_are_not_erased(tmp_path, lost, dry_run):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3)
    delete_items(tmp_path, ["item0", "item3"])
    path = tmp_path / "meta_0.gmeta"
    entries = load_gmeta(path.read_bytes(), where="")
    for id_ in list(entries)[: None if lost == "all" else 1]:
        del entries[id_]
    path.write_bytes(dump_gmeta(entries))
    before = content(tmp_path)
    with pytest.raises(
        FormatError, match=r"data_0\.gulp holds bytes .* would be erased"
    ):
        compact_directory(tmp_path, dry_run=dry_run)
    assert content(tmp_path) == before


def swap(one, other):
    contents = one.read_bytes(), other.read_bytes()
    for path, data in zip((other, one), contents, strict=True):
        path.write_bytes(data)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("old", [False, True], ids=["", "no checksums"])
@pytest.mark.parametrize(
    "ids", [["item0"], ["item3", "item5"], ["item0", "item1", "item2"]]
)
def test_a_data_file_that_is_another_is_not_compacted(tmp_path, ids, old, dry_run):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3)
    if old:
        for path in tmp_path.glob("*.gmeta"):
            entries = load_gmeta(path.read_bytes(), where="")
            for entry in entries.values():
                del entry["gulp2"]
            path.write_bytes(dump_gmeta(entries))
    delete_items(tmp_path, ids)
    swap(tmp_path / "data_0.gulp", tmp_path / "data_1.gulp")
    before = content(tmp_path)
    with pytest.raises(FormatError, match=r"is not the data file|are lost") as caught:
        compact_directory(tmp_path, dry_run=dry_run)
    assert "Nothing was changed" in str(caught.value)
    assert content(tmp_path) == before
    swap(tmp_path / "data_0.gulp", tmp_path / "data_1.gulp")
    compact_directory(tmp_path)
    assert check_directory(tmp_path, deep=True).problems == []


def test_a_data_file_that_was_cut_is_not_compacted_and_nor_are_others(folder):
    delete_items(folder, ["item0", "item2", "item4"])
    os.truncate(folder / "data_1.gulp", 4000)
    before = content(folder)
    with pytest.raises(
        FormatError, match=r"data_1\.gulp ends at byte 4000, .*are lost"
    ):
        compact_directory(folder)
    assert content(folder) == before


@pytest.mark.parametrize("ids", [["item0"], ["item0", "item1"]])
def test_a_damaged_frame_does_not_hinder_compacting(tmp_path, ids):
    make_gulp_directory(tmp_path, num_items=2, num_frames=1)
    delete_items(tmp_path, ids)
    path = tmp_path / "data_0.gulp"
    path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    (done,) = compact_directory(tmp_path)
    assert done.items == len(ids)


@pytest.mark.parametrize("appended_again", [True, False])
def test_what_a_killed_append_left_is_not_erased_but_left_out_of_a_copy(
    tmp_path, appended_again
):
    folder, copy = tmp_path / "in", tmp_path / "out"
    make_gulp_directory(folder, num_items=3)
    paths = str(folder / "data_0.gulp"), str(folder / "meta_0.gmeta")

    def append(id_, *, killed):
        chunk = GulpChunk(*paths)
        with chunk.open("ab"):
            chunk.append(id_, {}, make_frames(3, seed=9))
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(lambda: append("killed", killed=True)) == signal.SIGKILL
    if appended_again:
        append("more", killed=False)
    delete_items(folder, ["item0"])
    before = content(folder)
    with pytest.raises(FormatError, match="holds bytes") as caught:
        compact_directory(folder)
    # Between records it may be anything; at the end of the file it may be this.
    assert "or what an append left that was killed" in str(caught.value)
    assert "or have 'gulp2 repair' copy what is left" in str(caught.value)
    assert content(folder) == before
    repair_directory(folder, copy)
    assert jpegs(copy) == jpegs(folder)
    assert check_directory(copy, deep=True).problems == []


def test_a_reader_that_was_open_before_says_that_an_item_may_be_gone(tmp_path):
    make_gulp_directory(tmp_path, num_items=4)
    directory = GulpDirectory(tmp_path)
    delete_items(tmp_path, ["item1"])
    compact_directory(tmp_path)
    with pytest.raises(CorruptFrameError, match="deleted and compacted since the dir"):
        directory.read_clip("item1", [0, 1])
    assert directory.read_clip("item0").shape[0] == 6


@pytest.fixture
def emptied(tmp_path):
    """Make a directory whose last chunk was emptied, and its files removed."""
    path = tmp_path / "emptied"
    make_gulp_directory(path, num_items=4)
    delete_items(path, ["item2", "item3"])
    compact_directory(path)
    (path / "data_1.gulp").unlink()
    (path / "meta_1.gmeta").unlink()
    return path


@pytest.mark.parametrize("way", ["merge", "ingest", "new chunk"])
def test_what_was_erased_is_not_told_of_a_chunk_that_comes_later(
    emptied, tmp_path, way
):
    adapter = FrameAdapter(num_items=6)
    if way == "merge":
        part = tmp_path / "part"
        GulpIngestor(adapter, part, 2, 1).run()
        delete_items(part, ["item0", "item1"])
        repair_directory(part, tmp_path / "whole")
        merge_directories([tmp_path / "whole"], emptied)
    elif way == "ingest":
        GulpIngestor(adapter, emptied, 2, 1, on_duplicate="skip").run()
    else:
        (chunk,) = GulpDirectory(emptied).new_chunks(1)
        with chunk.open("wb"):
            for number in range(2, 6):
                chunk.append(f"item{number}", {}, make_frames(3))
    assert len(jpegs(emptied)) == 6
    assert check_directory(emptied, deep=True).problems == []
    delete_items(emptied, ["item4"])
    assert len(compact_directory(emptied)) == 1
    assert check_directory(emptied, deep=True).problems == []


def test_items_that_were_deleted_and_come_again_are_named(tmp_path, caplog):
    make_gulp_directory(tmp_path, num_items=6)
    delete_items(tmp_path, ["item1", "item4"])
    again = GulpIngestor(FrameAdapter(num_items=7), tmp_path, 2, 1, on_duplicate="skip")
    again.run()
    told = [text for text in caplog.messages if "deleted" in text]
    assert told == [
        f"2 items are stored again that were deleted from {tmp_path}: 'item1', "
        "'item4'. To keep them out, take them out of the source as well"
    ]
    caplog.clear()
    again.run()  # all are there
    delete_items(tmp_path, ["item4"])
    compact_directory(tmp_path)  # of what is erased nothing is known
    again.run()
    GulpIngestor(FrameAdapter(num_items=7), tmp_path / "new", 2, 1).run()
    assert [text for text in caplog.messages if "deleted" in text] == []
    delete_items(tmp_path, ["item5"])
    GulpIngestor(FrameAdapter(num_items=8), tmp_path, 2, 1, on_duplicate="skip").run()
    assert "1 item is stored again that was deleted from " in caplog.text
    assert "'item5'. To keep it out, take it out of the source" in caplog.text


def test_items_are_named_where_all_were_deleted_that_come_again(tmp_path, caplog):
    make_gulp_directory(tmp_path, num_items=5)
    delete_items(tmp_path, [f"item{n}" for n in range(5)])
    GulpIngestor(FrameAdapter(num_items=5), tmp_path, 2, 1).run()
    assert (
        f"5 items are stored again that were deleted from {tmp_path}: 'item0', "
        "'item1', 'item2' and 2 more. To keep them out"
    ) in caplog.text


def test_an_ingest_beside_a_damaged_list_of_deleted_items_goes_on(tmp_path, caplog):
    make_gulp_directory(tmp_path, num_items=2)
    delete_items(tmp_path, ["item1"])
    (tmp_path / "deleted.json").write_text("{")
    GulpIngestor(FrameAdapter(num_items=2), tmp_path, 2, 1, on_duplicate="skip").run()
    assert not caplog.messages
    codes = {each.code for each in check_directory(tmp_path).problems}
    assert "bad-removals" in codes


def test_a_chunk_that_is_put_back_is_still_known_to_be_erased(tmp_path):
    make_gulp_directory(tmp_path, num_items=4)
    delete_items(tmp_path, ["item2", "item3"])
    compact_directory(tmp_path)
    away = content(tmp_path)
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (tmp_path / name).unlink()
    adapter = FrameAdapter(num_items=4)
    GulpIngestor(adapter, tmp_path, 2, 1, on_duplicate="skip").run()
    assert {"data_2.gulp", "meta_2.gmeta"} <= content(tmp_path).keys()
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (tmp_path / name).write_bytes(away[name])
    assert check_directory(tmp_path, deep=True).problems == []


def test_only_maps_that_may_have_an_item_are_parsed(folder, monkeypatch):
    parsed = []

    def noted(data, *, where):
        parsed.append(Path(where).name)
        return load_gmeta(data, where=where)

    monkeypatch.setattr(removal, "load_gmeta", noted)
    (deletion,) = delete_items(folder, ["item3"], dry_run=True)
    assert (deletion.id, parsed) == ("item3", ["meta_1.gmeta"])
    delete_items(folder, ["item3"])
    assert set(parsed) == {"meta_1.gmeta"}


def test_an_id_is_deleted_however_its_map_has_it(folder):
    path = folder / "meta_1.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"item3"', b'"\\u0069tem3"'))
    (deletion,) = delete_items(folder, ["item3"])
    assert (deletion.id, deletion.chunk) == ("item3", 1)
    assert "item3" not in jpegs(folder)


def test_a_damaged_map_is_in_the_way_only_where_it_may_have_the_item(folder):
    path = folder / "meta_0.gmeta"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MetaFileError, match="meta_0"):
        delete_items(folder, ["item3", "item1"])
    assert not (folder / "deleted.json").exists()
    (deletion,) = delete_items(folder, ["item3"])
    assert deletion.id == "item3"
    assert b"item3" not in (folder / "meta_1.gmeta").read_bytes()


def ingest_more(folder):
    adapter = FrameAdapter(num_items=9)
    GulpIngestor(adapter, folder, 2, 1, on_duplicate="skip").run()


@pytest.mark.parametrize("name", ["deleted.json", "gulp.json"])
@pytest.mark.parametrize(
    "change",
    [
        lambda folder, _: delete_items(folder, ["item2"]),
        lambda folder, _: compact_directory(folder),
        lambda folder, part: merge_directories([part], folder),
        lambda folder, part: merge_directories([folder], part.parent / "new"),
        lambda folder, _: ingest_more(folder),
        lambda folder, _: list(GulpDirectory(folder).new_chunks(1)),
    ],
    ids=["delete", "compact", "merge into", "merge", "ingest", "new chunk"],
)
def test_a_link_that_leads_nowhere_is_not_taken_for_no_file(tmp_path, name, change):
    folder = tmp_path / "gulped"
    GulpIngestor(FrameAdapter(), folder, 2, 1).run()
    make_gulp_directory(tmp_path / "part", num_items=1)
    delete_items(folder, ["item0"])
    compact_directory(folder)
    (folder / name).rename(tmp_path / "away")
    (folder / name).symlink_to("gone")
    before = states(folder)
    with pytest.raises(StorageError, match=f"{name}: it is a link to gone, which is"):
        change(folder, tmp_path / "part")
    assert states(folder) == before


@pytest.mark.parametrize("ids", ["item1", "12", b"12", 1])
def test_one_id_is_no_list_of_them(folder, ids):
    before = content(folder)
    with pytest.raises(TypeError, match="which is one; give a list of ids"):
        delete_items(folder, ids)
    assert content(folder) == before


def test_what_a_chunk_written_anew_had_is_not_said_to_be_erased(tmp_path):
    make_gulp_directory(tmp_path, num_items=2, num_frames=2)
    delete_items(tmp_path, ["item0"])
    hidden = (tmp_path / "deleted.json").read_bytes()
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("new", {}, make_frames(9, seed=9))
    # GulpIO2 0.0.4, that writes a chunk anew, knows nothing of this file.
    (tmp_path / "deleted.json").write_bytes(hidden)
    before = jpegs(tmp_path)
    for dry_run in (True, False):
        (done,) = compact_directory(tmp_path, dry_run=dry_run)
        assert (done.items, done.num_bytes) == (1, 0)
    assert jpegs(tmp_path) == before
