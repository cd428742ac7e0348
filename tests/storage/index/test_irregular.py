"""Entries that an index has not all of, beside others, when their map is replaced."""

from __future__ import annotations

import copy
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import CorruptFrameError, MapChangedError, MetaFileError
from gulpio2.format.scan import scan_gmeta
from gulpio2.removal import delete_items
from gulpio2.storage.index import texts
from gulpio2.testing import make_gulp_directory

if TYPE_CHECKING:
    from pathlib import Path

NUM_ITEMS = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a chunk of items, of which half have a key of another program."""
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=NUM_ITEMS, items_per_chunk=NUM_ITEMS).close()
    entries = read_map(path)
    for number in range(0, NUM_ITEMS, 2):
        entry = entries[f"item{number}"]
        entries[f"item{number}"] = {"source": "other program", **entry}
        del entries[f"item{number}"]["gulp2"]
    write_map(path, entries)
    return path


def read_map(path: Path) -> dict[str, Any]:
    """Read the map of the first chunk."""
    read: dict[str, Any] = json.loads((path / "meta_0.gmeta").read_text())
    return read


def write_map(path: Path, entries: dict[str, Any]) -> None:
    """Replace the map of the first chunk, later than the one before."""
    time.sleep(0.02)
    (path / "meta_0.gmeta").write_text(json.dumps(entries))


def appended_to(entries: dict[str, Any], id_: str, times: int = 1) -> dict[str, Any]:
    """Append frames and metadata to an item, as GulpIO2 0.0.4 does."""
    changed = copy.deepcopy(entries)
    for _ in range(times):
        changed[id_]["frame_info"].append(changed[id_]["frame_info"][0])
        changed[id_]["meta_data"].append({"more": 1})
    return changed


def test_what_is_deleted_or_edited_leaves_the_other_items_of_the_chunk(folder):
    write_map(folder, appended_to(read_map(folder), "item1"))
    frames = [len(GulpDirectory(folder).read_jpegs(f"item{n}")) for n in range(2, 6)]
    for change in (
        lambda: delete_items(folder, ["item0", "item1"]),
        lambda: write_map(folder, edited(read_map(folder), "item2")),
    ):
        directory = GulpDirectory(folder, indexed=True)
        change()
        now = [len(directory.read_jpegs(f"item{n}")) for n in range(3, 6)]
        assert now == frames[1:]
        directory.close()


def peeked(directory: Any, id_: str) -> Any:
    """Give an entry of which nothing is kept."""
    return directory.merged_meta_dict.peek(id_)


def edited(entries: dict[str, Any], id_: str) -> dict[str, Any]:
    """Give an item other metadata."""
    entries[id_]["meta_data"][0]["label"] = "another"
    return entries


def test_frames_that_are_elsewhere_are_refused_all_the_same(folder):
    directory = GulpDirectory(folder, indexed=True)
    entries = read_map(folder)
    entries["item0"]["frame_info"].reverse()
    write_map(folder, entries)
    with pytest.raises(MapChangedError, match="frames of item 'item0' are others"):
        directory.read_jpegs("item3")


def test_a_map_that_was_replaced_is_looked_through_once(folder, monkeypatch):
    directory = GulpDirectory(folder, indexed=True)
    before = copy.deepcopy(dict(GulpDirectory(folder).merged_meta_dict))
    looked_through = []

    def counting(data: bytes, *, where: str) -> Any:
        looked_through.append(where)
        return scan_gmeta(data, where=where)

    monkeypatch.setattr(texts, "scan_gmeta", counting)
    entries = read_map(folder)
    write_map(folder, {"new": entries["item1"], **entries})
    for _ in range(3):
        for id_ in before:
            assert peeked(directory, id_) == before[id_]
    assert len(looked_through) == 1
    write_map(folder, edited(entries, "item2"))
    assert peeked(directory, "item4") == before["item4"]
    with pytest.raises(MapChangedError, match="entry of 'item2' has changed"):
        peeked(directory, "item2")
    (folder / "meta_0.gmeta").write_text("{")
    with pytest.raises(MapChangedError, match="entry of 'item4' has changed"):
        peeked(directory, "item4")


def test_an_id_that_stands_all_over_a_map_is_found(folder):
    entries = read_map(folder)
    odd = {
        f"{n}": {**entries["item0"], "meta_data": [{"of": "99"}]} for n in range(120)
    }
    write_map(folder, odd)
    directory = GulpDirectory(folder, indexed=True)
    odd["2"]["meta_data"] = [{"of": "none"}]
    write_map(folder, odd)
    assert directory.merged_meta_dict["99"]["meta_data"] == [{"of": "99"}]
    assert len(directory.read_jpegs("7", [0])) == 1


@pytest.mark.parametrize("times", [1, 100, 150])
def test_an_item_that_004_has_appended_to_many_times_is_sound(folder, times):
    entries = read_map(folder)
    write_map(folder, appended_to(entries, "item1", times))
    GulpDirectory(folder, verify=True).close()
    several = copy.deepcopy(entries)
    several["item1"]["meta_data"][0]["label"] = "damaged"
    write_map(folder, appended_to(several, "item1", times))
    with pytest.raises(MetaFileError, match="its check is not that of its content"):
        GulpDirectory(folder, verify=True)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "plain"])
def test_a_frame_that_is_taken_out_twice_is_one(folder, indexed):
    def spans() -> Any:
        directory = GulpDirectory(folder, indexed=indexed)
        return directory.merged_meta_dict["item1"]["frame_info"]

    first = spans()
    one, two = first[0], first[0]
    one[0] = 4
    two[2] = 8
    assert first[0] == [4, one[1], 8]
    second = spans()
    taken = second[1]
    second.insert(0, [0, 0, 4])
    taken[0] = 999
    assert second[2][0] == 999
    assert second[0] == [0, 0, 4]
    third = spans()
    taken = third[1]
    del third[1]
    taken[0] = 999
    assert third == spans()[:1] + spans()[2:]


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "plain"])
def test_a_damaged_frame_is_told_where_the_facts_of_its_source_are_damaged_too(
    folder, indexed
):
    entries = read_map(folder)
    entries["item1"]["gulp2"]["source"] = "no object"
    place = entries["item1"]["frame_info"][1][0]
    write_map(folder, entries)
    with (folder / "data_0.gulp").open("r+b") as file:
        file.seek(place + 300)
        file.write(b"damage")
    directory = GulpDirectory(folder, indexed=indexed)
    assert len(directory.read_jpegs("item1", [0])) == 1
    with pytest.raises(CorruptFrameError, match=r"item 'item1'.*its checksum is"):
        directory.read_jpegs("item1", [1])


def test_maps_that_were_replaced_are_looked_through_once_by_turns(
    tmp_path, monkeypatch
):
    path = tmp_path / "two"
    make_gulp_directory(path, num_items=8, items_per_chunk=4).close()
    for number in range(2):
        file = path / f"meta_{number}.gmeta"
        entries = json.loads(file.read_text())
        file.write_text(json.dumps({k: {"x": 1, **e} for k, e in entries.items()}))
    directory = GulpDirectory(path, indexed=True)
    time.sleep(0.02)
    for number in range(2):
        file = path / f"meta_{number}.gmeta"
        entries = json.loads(file.read_text())
        file.write_text(json.dumps(dict(reversed(entries.items()))))
    looked_through = []

    def counting(data: bytes, *, where: str) -> Any:
        looked_through.append(where)
        return scan_gmeta(data, where=where)

    monkeypatch.setattr(texts, "scan_gmeta", counting)
    for _ in range(2):
        for number in (0, 4, 1, 5, 2, 6):
            assert peeked(directory, f"item{number}")["x"] == 1
    assert len(looked_through) == 2


@pytest.mark.parametrize(
    "change",
    [lambda t: f"{t}9999", lambda t: t[:-4], lambda t: f"!{t[1:]}"],
    ids=["longer", "shorter", "no base64"],
)
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "plain"])
def test_frames_whose_checksums_are_damaged_are_not_given(folder, change, indexed):
    entries = read_map(folder)
    extras = entries["item1"]["gulp2"]
    extras["crc32"] = change(extras["crc32"])
    write_map(folder, entries)
    with GulpDirectory(folder, indexed=indexed) as directory:
        told = r"item 'item1' of .*data_0.gulp: the checksums of its frames are damaged"
        with pytest.raises(CorruptFrameError, match=told):
            directory.read_jpegs("item1", [0])
        assert len(directory.read_jpegs("item3", [0])) == 1
    with GulpDirectory(folder, indexed=indexed, verify=False) as directory:
        assert len(directory.read_jpegs("item1", [0])) == 1
