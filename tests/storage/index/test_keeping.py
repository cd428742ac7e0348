"""The file of the index is kept up to date by whoever changes a directory."""

from __future__ import annotations

import json
import logging
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import MapChangedError, StorageError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index import replacing
from gulpio2.storage.index.keeping import (
    build_index,
    check_index,
    index_state,
    refresh_index,
    remove_index,
)
from gulpio2.storage.local import LocalStore
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.storage.index.conftest import assert_same, plain, write_chunks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_ingest_makes_the_index_and_the_next_one_brings_it_up_to_date(
    tmp_path, workers
):
    for num_items in (5, 10):
        adapter = FrameAdapter(num_items=num_items)
        GulpIngestor(adapter, tmp_path / "out", 2, workers, on_duplicate="skip").run()
        assert index_state(tmp_path / "out").is_fresh
        assert check_index(tmp_path / "out") == []
        directory = GulpDirectory(tmp_path / "out")
        assert directory._index is not None
        assert_same(directory, plain(tmp_path / "out"))
    assert len(directory) == 10


def test_an_ingest_of_few_items_makes_none(tmp_path):
    GulpIngestor(FrameAdapter(num_items=5), tmp_path / "out", 2, 1).run()
    assert not (tmp_path / "out" / "index.arrow").exists()


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), TypeError("whatever")]
)
def test_an_index_that_cannot_be_made_fails_no_ingest(
    tmp_path, monkeypatch, caplog, error
):
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(replacing, "write_index", refuse)
    GulpIngestor(FrameAdapter(num_items=2), tmp_path / "out", 2, 1).run()
    assert f"no index that is up to date: {error}" in caplog.text
    assert len(plain(tmp_path / "out")) == 2


@pytest.mark.usefixtures("all_are_large")
def test_a_merge_makes_the_index_of_what_it_gave(tmp_path):
    parts = [write_chunks(tmp_path / f"part{n}", first=10 * n) for n in range(2)]
    merge_directories(parts, tmp_path / "all")
    assert check_index(tmp_path / "all") == []
    assert_same(GulpDirectory(tmp_path / "all"), plain(tmp_path / "all"))


def change_by_appending(folder: Path) -> None:
    """Append to a chunk as GulpIO2 does, item by item."""
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("item 0/2", {"again": 1}, make_frames(2, 16, 24))
        chunk.append("more", {}, make_frames(1, 16, 24))


def change_by_writing_anew(folder: Path) -> None:
    """Write a chunk anew under its number."""
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("wb"):
        chunk.append("item 0/2", {"new": 1}, make_frames(3, 16, 24, seed=7))


def change_by_deleting(folder: Path) -> None:
    """Delete items, and erase their frames."""
    delete_items(folder, ["item 0/1", "item 0/3"])


def change_by_compacting(folder: Path) -> None:
    """Delete items, and erase their frames."""
    delete_items(folder, ["item 0/1", "item 0/3"])
    build_index(folder)
    compact_directory(folder)


def change_by_taking_away(folder: Path) -> None:
    """Remove a chunk."""
    (folder / "data_0.gulp").unlink()
    (folder / "meta_0.gmeta").unlink()


def change_by_merging(folder: Path) -> None:
    """Bring another directory's chunks in."""
    merge_directories([write_chunks(folder.parent / "other", first=30)], folder)


def change_by_ingesting(folder: Path) -> None:
    """Ingest more items."""
    GulpIngestor(FrameAdapter(num_items=3), folder, 2, 1).run()


CHANGES = [
    change_by_appending,
    change_by_writing_anew,
    change_by_deleting,
    change_by_compacting,
    change_by_taking_away,
    change_by_merging,
    change_by_ingesting,
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_stale_index_is_used_after_a_change(folder, change):
    build_index(folder)
    change(folder)
    assert_same(GulpDirectory(folder, indexed=True), plain(folder))
    assert check_index(folder) == []


@pytest.mark.parametrize("change", CHANGES)
def test_nor_one_that_cannot_be_replaced(folder, change, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    build_index(folder)
    old = (folder / "index.arrow").read_bytes()
    change(folder)
    (folder / "index.arrow").write_bytes(old)
    monkeypatch.setattr(os, "access", lambda *_: False)
    directory = GulpDirectory(folder, indexed=True)
    assert_same(directory, plain(folder))
    assert (folder / "index.arrow").read_bytes() == old


def test_a_repair_gives_a_directory_that_is_indexed_by_itself(folder, tmp_path):
    build_index(folder)
    repair_directory(folder, tmp_path / "mended")
    assert_same(GulpDirectory(tmp_path / "mended", indexed=True), plain(folder))


@pytest.mark.parametrize("change", [change_by_deleting, change_by_merging])
def test_an_index_is_made_again_where_another_makes_its_own_meanwhile(
    folder, monkeypatch, caplog, change
):
    build_index(folder)
    rename = LocalStore.rename
    others: list[str] = []

    def meanwhile(self: LocalStore, source: str, target: str, **options: Any) -> None:
        if target == "index.arrow" and not others:
            others.append(source)
            build_index(folder)  # which removes what there is of another
        rename(self, source, target, **options)

    monkeypatch.setattr(LocalStore, "rename", meanwhile)
    change(folder)
    assert others
    assert caplog.text == ""
    assert index_state(folder).is_fresh
    assert check_index(folder) == []


def test_the_state_tells_what_is_amiss(folder):
    assert index_state(folder).num_bytes == 0
    assert not index_state(folder).is_fresh
    build_index(folder)
    assert index_state(folder).is_fresh
    change_by_appending(folder)
    write_chunks(folder, first=7)
    assert index_state(folder).stale == (
        *("meta_1.gmeta", "meta_7.gmeta", "meta_8.gmeta", "meta_9.gmeta"),
    )
    refresh_index(folder)
    assert index_state(folder).is_fresh
    assert (remove_index(folder), remove_index(folder)) == (True, False)
    refresh_index(folder)
    assert index_state(folder).num_bytes == 0, "small, and without one"


def test_readers_that_write_the_index_and_an_ingest_do_not_disturb_each_other(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.CRITICAL)
    # Whatever others are doing: the worst case.
    monkeypatch.setattr("gulpio2.directory.may_write_index", lambda *_: True)
    folder = tmp_path / "out"
    GulpIngestor(FrameAdapter(num_items=2), folder, 1, 1).run()
    seen: dict[str, set[int]] = {}
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                directory = GulpDirectory(folder, indexed=True)
                for id_ in directory.merged_meta_dict:
                    total = sum(int(frame.sum()) for frame in directory[id_][0])
                    seen.setdefault(id_, set()).add(total)
            except BaseException as error:
                failures.append(error)
                raise

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        adapter = FrameAdapter(num_items=30)
        GulpIngestor(adapter, folder, 1, 1, on_duplicate="skip").run()
        for number in range(30):
            change_item(folder, number)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    expected = plain(folder)
    assert_same(GulpDirectory(folder, indexed=True), expected)
    assert check_index(folder) in ([], ["there is no index"])
    for id_, totals in seen.items():
        frames, _ = expected[id_]
        assert totals <= {
            sum(int(frame.sum()) for frame in frames[: len(frames) - more])
            for more in (0, 1)
        }


def change_item(folder: Path, number: int) -> None:
    """Append a frame to the item of a chunk."""
    chunk = GulpChunk(folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta")
    with chunk.open("ab"):
        (id_,) = chunk.meta_dict
        chunk.append(id_, {}, make_frames(1))


def open_indexed(folder: Path) -> None:
    """Open by the index, as a large directory is opened by default."""
    GulpDirectory(folder, indexed=True)


@pytest.mark.parametrize("look", [build_index, open_indexed])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_map_that_is_no_file_is_an_error_of_this_package(folder, look, make):
    (folder / "meta_1.gmeta").unlink()
    make(folder / "meta_1.gmeta")
    with pytest.raises(StorageError, match=r"cannot read .*meta_1\.gmeta: not a reg"):
        look(folder)


def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(folder, caplog):
    os.mkfifo(folder / "index.arrow")
    assert len(GulpDirectory(folder, indexed=True)) == 5
    assert "index.arrow cannot be used and is built anew" in caplog.text
    assert check_index(folder) == []


def test_the_check_tells_maps_that_are_gone_from_those_that_changed(folder):
    build_index(folder)
    chunk = GulpDirectory(folder).chunk_objs_lookup[0]
    with chunk.open("ab"):
        chunk.append("new", {}, make_frames(1))
    for number in (1, 2):
        (folder / f"data_{number}.gulp").unlink()
        (folder / f"meta_{number}.gmeta").unlink()
    notes = check_directory(folder, deep=True).notes
    gone, changed = (note for note in notes if note.code == "stale-index")
    assert "tells of meta_1.gmeta and 1 other map, no longer there" in gone.message
    assert "was made before meta_0.gmeta took" in changed.message


def test_a_check_tells_of_each_map(tmp_path):
    folder = tmp_path / "many"
    make_gulp_directory(folder, num_items=5)
    build_index(folder)
    calls = []
    assert check_index(folder, lambda **done: calls.append(done)) == []
    wanted = []
    for number in range(3):
        data = (folder / f"meta_{number}.gmeta").read_bytes()
        entries = json.loads(data).values()
        frames = sum(len(entry["frame_info"]) for entry in entries)
        wanted.append({"items": len(entries), "frames": frames, "num_bytes": len(data)})
    assert calls == wanted


@pytest.mark.parametrize("key", ['"whole": "deadbeef"', '"check": 1, "whole": "00"}'])
def test_a_key_that_is_written_like_the_checksum_of_the_file_is_no_damage(folder, key):
    chunk = GulpChunk(folder / "data_9.gulp", folder / "meta_9.gmeta")
    with chunk.open("wb"):
        chunk.append("item", {key: 1}, make_frames(1))
    build_index(folder)
    assert check_index(folder) == []
    path = folder / "index.arrow"
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(data)
    assert check_index(folder) != []


def test_an_index_of_which_a_byte_has_changed_is_replaced(folder):
    build_index(folder)
    path = folder / "index.arrow"
    whole = path.read_bytes()
    for at in (6, len(whole) // 2, len(whole) - 300):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        assert check_index(folder) != []
        build_index(folder, thorough=True)
        assert path.read_bytes() == whole


def test_a_map_of_which_the_time_alone_is_another_is_as_it_was_indexed(folder):
    build_index(folder)
    for number in (0, 1, 2):
        os.utime(folder / f"meta_{number}.gmeta", (1, 1))  # as after copying
    assert len(index_state(folder).stale) == 3
    assert index_state(folder, thorough=True).is_fresh
    assert check_index(folder) == []
    report = check_directory(folder, deep=True)
    assert report.ok
    assert "stale-index" not in {note.code for note in report.notes}
    path = folder / "meta_1.gmeta"
    path.write_bytes(path.read_bytes().replace(b"item", b"ITEM"))
    assert index_state(folder, thorough=True).stale == ("meta_1.gmeta",)
    assert check_index(folder) == ["meta_1.gmeta is not as it was indexed"]


def test_an_index_that_others_remove_whenever_it_is_written_is_told_of(
    tmp_path, monkeypatch
):
    write_chunks(tmp_path)
    real = LocalStore.rename

    def rename(store: LocalStore, source: str, *rest: Any, **how: Any) -> None:
        store.remove(source)  # as who deletes items does, to make its own
        real(store, source, *rest, **how)

    monkeypatch.setattr(LocalStore, "rename", rename)
    with pytest.raises(MapChangedError, match="others change the directory"):
        build_index(tmp_path)
    monkeypatch.undo()
    assert build_index(tmp_path) is not None
