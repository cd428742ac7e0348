"""A repair takes what a damaged or lost map said from the index, where there is one."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import ChunkMismatchError, DuplicateIdError
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import RepairReport, repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index, check_index
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.faults.operations import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Items = dict[str, tuple[list[bytes], Any]]


def indexed(folder: Path, **more: int) -> Path:
    make_gulp_directory(folder, **{"num_items": 6, "num_frames": 3, **more}).close()
    assert build_index(folder) is not None
    return folder


def items_of(folder: Path) -> Items:
    with GulpDirectory(folder) as directory:
        return {
            id_: (directory.read_jpegs(id_), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        }


def repaired(source: Path, target: Path) -> RepairReport:
    before = content(source)
    report = repair_directory(source, target)
    assert content(source) == before
    assert check_directory(target, deep=True).problems == []
    return report


def damaged(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file as a disk does, which notes no time."""
    state = path.stat()
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def without_checksums(folder: Path) -> None:
    """Make maps what GulpIO2 0.0.4 would have written."""
    for path in folder.glob("*.gmeta"):
        entries = json.loads(path.read_bytes())
        for entry in entries.values():
            del entry["gulp2"]
        path.write_text(json.dumps(entries))


@pytest.mark.parametrize(
    ("change", "old"),
    [
        (lambda data: bytes(len(data)), False),
        (lambda data: data[:40] + b"\xff" + data[41:], False),
        (lambda data: data.replace(b'"number": 2', b'"number": 7'), False),
        (lambda data: data.replace(b'"item2"', b'"item7"'), False),
        (lambda data: data.replace(b'"frame_info": ', b'"frame_infn": ', 1), False),
        (lambda data: bytes(len(data)), True),
        (lambda data: data.replace(b'"frame_info": ', b'"frame_infn": ', 1), True),
    ],
    ids=["zeros", "no text", "metadata", "id", "no entry", "zeros, old", "entry, old"],
)
def test_a_map_that_rotted_is_had_back_as_a_whole(
    tmp_path: Path, change: Callable[[bytes], bytes], old: bool
) -> None:
    GulpIngestor(FrameAdapter(num_items=6), tmp_path / "in", 2, 1).run()
    source = tmp_path / "in"
    if old:
        without_checksums(source)
    build_index(source)
    path = source / "meta_1.gmeta"
    whole = path.read_bytes()
    damaged(path, change)
    assert path.read_bytes() != whole
    expected = json.loads(whole)
    report = repaired(source, tmp_path / "out")
    assert (report.ok, report.items, report.lost) == (True, 6, [])
    (note,) = report.notes
    assert note.startswith("meta_1.gmeta: ")
    assert note.endswith(". index.arrow has all of it")
    found = json.loads((tmp_path / "out" / "meta_1.gmeta").read_bytes())
    if old:
        for entry in found.values():
            del entry["gulp2"]
    assert found == expected
    assert list(found) == list(expected)
    # A run of which all is there is complete.
    manifests = [folder / "gulp.json" for folder in (source, tmp_path / "out")]
    assert manifests[0].read_bytes() == manifests[1].read_bytes()


def lose(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-60])


def test_an_entry_of_which_two_keys_rotted_is_had_back(tmp_path: Path) -> None:
    source = indexed(tmp_path / "in")
    before = items_of(source)
    damaged(
        source / "meta_0.gmeta",
        lambda data: data.replace(b"gulp2", b"gulp3", 1).replace(b"check", b"chgck", 1),
    )
    report = repaired(source, tmp_path / "out")
    assert report.ok
    assert report.notes == ["meta_0.gmeta: damaged. index.arrow has all of it"]
    assert items_of(tmp_path / "out") == before


@pytest.mark.parametrize("damage", [lose, empty, cut])
@pytest.mark.parametrize("old", [False, True], ids=["", "no checksums"])
def test_items_of_a_lost_map_keep_id_and_metadata(
    tmp_path: Path, damage: Callable[[Path], None], old: bool
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    if old:
        without_checksums(source)
        build_index(source)
    damage(source / "meta_1.gmeta")
    report = repaired(source, tmp_path / "out")
    assert report.items == 6
    assert report.salvaged == []
    (loss,) = report.lost  # nobody knows what has changed since
    assert loss.file == "meta_1.gmeta"
    assert "taken from index.arrow" in loss.reason
    assert items_of(tmp_path / "out") == expected
    assert list(items_of(tmp_path / "out")) == list(expected)


def test_what_the_index_alone_knows_is_not_overwritten_before_a_repair(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    lose(source / "meta_1.gmeta")
    before = (source / "index.arrow").read_bytes()
    with GulpDirectory(source, indexed=True) as directory:
        assert list(directory.query("number == 4").ids) == ["item4"]
        assert len(directory.chunk_lookup) == 4
    with pytest.raises(ChunkMismatchError, match=r"data_1\.gulp has no map, .*repair"):
        build_index(source, thorough=True)
    more = FrameAdapter(num_items=7, num_frames=3)
    GulpIngestor(more, source, 2, 1, on_duplicate="skip").run()
    assert "has no index that is up to date: " in caplog.text
    assert (source / "index.arrow").read_bytes() == before
    repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    assert {id_: found[id_] for id_ in expected} == expected


def test_a_deletion_keeps_the_rows_of_a_lost_map_and_none_of_deleted_items(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    lose(source / "meta_1.gmeta")
    for number, change in enumerate(
        [
            lambda: delete_items(source, ["item0"]),
            lambda: compact_directory(source),
            lambda: delete_items(source, ["item1", "item4", "item5"]),
        ]
    ):
        change()
        assert b"item0" not in (source / "index.arrow").read_bytes()
        repaired(source, tmp_path / f"out{number}")
        found = items_of(tmp_path / f"out{number}")
        assert found.keys() >= {"item2", "item3"}
        assert found == {id_: expected[id_] for id_ in found}


def test_a_map_that_was_put_back_is_compared_with_the_rows_that_were_kept(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    lost = source / "meta_1.gmeta"
    lost.rename(tmp_path / "lost")
    delete_items(source, ["item0"])
    chunk = GulpChunk(source / "data_7.gulp", source / "meta_7.gmeta")
    with chunk.open("wb"):
        chunk.append("item2", {}, make_frames(1))
    delete_items(source, ["item4"])
    (tmp_path / "lost").rename(lost)
    with pytest.raises(DuplicateIdError, match="item2"):
        GulpDirectory(source, indexed=True)
    delete_items(source, ["item2"])
    assert check_index(source) == []
    assert list(items_of(source)) == ["item1", "item3", "item5"]


def test_what_was_appended_since_the_index_was_made_gets_a_placeholder(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    with GulpDirectory(source) as directory:
        chunk = directory.chunk_objs_lookup[1]
        with chunk.open("ab"):
            chunk.append("new", {}, make_frames(2))
        frames = directory.read_jpegs("item2")
    with GulpDirectory(source) as directory:
        new = directory.read_jpegs("new")
    lose(source / "meta_1.gmeta")
    report = repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    (part,) = report.salvaged
    assert found.pop(part.id)[0] == new
    assert found == expected
    assert found["item2"][0] == frames


@pytest.mark.parametrize("compact", [False, True])
def test_items_deleted_since_the_index_was_made_stay_deleted(
    tmp_path: Path, compact: bool
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    shutil.copy2(source / "index.arrow", tmp_path / "index.arrow")
    delete_items(source, ["item2"])
    if compact:
        compact_directory(source)
    shutil.copy2(tmp_path / "index.arrow", source / "index.arrow")
    lose(source / "meta_1.gmeta")
    repaired(source, tmp_path / "out")
    expected.pop("item2")
    assert items_of(tmp_path / "out") == expected


def test_where_nothing_tells_what_was_deleted_an_old_index_is_not_believed(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    delete_items(source, ["item3"])
    (source / "deleted.json").write_bytes(b"?")
    lose(source / "meta_1.gmeta")
    report = repaired(source, tmp_path / "out")
    assert report.items == 4
    assert report.salvaged == []


def test_an_index_of_another_data_file_gives_no_id_to_its_frames(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    without_checksums(source)
    build_index(source)
    with GulpDirectory(source) as directory:
        chunk = directory.chunk_objs_lookup[1]
        first = directory.read_jpegs("item2")[0]
        with chunk.open("wb"):  # the first frame has the place that it had
            chunk.append("other", {}, [first, *make_frames(4, height=40)])
    lose(source / "meta_1.gmeta")
    report = repaired(source, tmp_path / "out")
    assert report.items == 4
    assert not {"item2", "item3"} & items_of(tmp_path / "out").keys()
    assert sum(part.frames for part in report.salvaged) == 5


def test_a_map_that_was_edited_is_what_it_is_now(tmp_path: Path) -> None:
    source = indexed(tmp_path / "in")
    path = source / "meta_1.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"number": 2', b'"number": 77'))
    report = repaired(source, tmp_path / "out")
    (part,) = report.salvaged
    _, meta = items_of(tmp_path / "out")[part.id]
    assert meta["salvaged"]["meta_data"] == [{"number": 77}]
    assert report.items == 5


@pytest.mark.parametrize("where", ["end", "middle", "all"])
def test_items_that_an_older_map_has_lost_are_named_and_can_be_had_back(
    tmp_path: Path, where: str
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    path = source / "meta_1.gmeta"
    entries = json.loads(path.read_bytes())
    ids = list(entries)
    gone = {"end": ids[-1:], "middle": ids[:1], "all": ids}[where]
    for id_ in gone:
        del entries[id_]
    path.write_text(json.dumps(entries))
    report = repaired(source, tmp_path / "out")
    assert not report.ok
    named = [loss for loss in report.lost if loss.item]
    assert [(loss.file, loss.item) for loss in named] == [
        ("meta_1.gmeta", id_) for id_ in gone
    ]
    assert "move it away" in str(named[0])
    path.rename(tmp_path / "older")
    report = repaired(source, tmp_path / "again")
    assert report.items == len(expected)
    assert items_of(tmp_path / "again") == expected


def test_items_that_were_deleted_since_the_index_was_made_are_no_loss(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    index = (source / "index.arrow").read_bytes()
    delete_items(source, ["item2"])
    (source / "index.arrow").write_bytes(index)
    report = repaired(source, tmp_path / "out")
    assert (report.lost, report.items) == ([], 5)


def test_an_entry_whose_id_alone_is_damaged_is_not_there_twice(tmp_path: Path) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    path = source / "meta_1.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"item2"', b'"item7"')[:-1])
    report = repaired(source, tmp_path / "out")
    assert report.salvaged == []
    assert items_of(tmp_path / "out") == expected


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_index_gives_nothing_that_was_not_stored(
    tmp_path: Path, seed: int
) -> None:
    source = indexed(tmp_path / "in")
    expected = items_of(source)
    data = bytearray((source / "index.arrow").read_bytes())
    for at in range(seed * 7, len(data), 149):
        data[at] ^= 1 << seed % 8
    (source / "index.arrow").write_bytes(data)
    lose(source / "meta_1.gmeta")
    repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    for id_ in found.keys() & expected.keys():
        assert found[id_] == expected[id_]
    assert {f"item{number}" for number in (0, 1, 4, 5)} <= found.keys()
    frames = [jpeg for jpegs, _ in expected.values() for jpeg in jpegs]
    assert sorted(jpeg for jpegs, _ in found.values() for jpeg in jpegs) == sorted(
        frames
    )


def test_an_index_that_cannot_be_used_is_told_of_where_it_is_needed(
    tmp_path: Path,
) -> None:
    source = indexed(tmp_path / "in")
    (source / "index.arrow").write_bytes(b"no index")
    assert repaired(source, tmp_path / "sound").notes == []
    for number in (1, 2):
        lose(source / f"meta_{number}.gmeta")
    (note,) = repaired(source, tmp_path / "out").notes
    assert note.startswith("index.arrow: cannot be used: ")
