"""Readers tell of entries that have changed on the disk."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import CorruptFrameError, MetaFileError
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index, remove_index
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.rot import rot

if TYPE_CHECKING:
    from pathlib import Path


def write_items(folder: Path) -> None:
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_, label in (("one", "push"), ("two", "pull")):
            chunk.append(id_, {"label": label}, make_frames(2, 24, 32))


def change_label(folder: Path) -> None:
    """Change a byte, and nothing that size or time of the map tell of."""
    rot(folder / "meta_0.gmeta", b"push", b"pusi")


@pytest.mark.parametrize("indexed", [False, True])
def test_a_label_that_has_changed_is_warned_of_until_it_counts(
    tmp_path, caplog, indexed
):
    def warnings(verify="frames"):
        caplog.clear()
        with GulpDirectory(tmp_path, indexed=indexed, verify=verify) as directory:
            directory.read_clip("one")
        return [record.getMessage() for record in caplog.records]

    write_items(tmp_path)
    assert warnings() == warnings(verify=True) == []
    change_label(tmp_path)
    (warned,) = warnings()
    assert "the entry of item 'one' is not what its check says" in warned
    # In the place of the file, a repair would not find there what the label was.
    assert "gulp2 index" not in warned
    if indexed:
        index = (tmp_path / "index.arrow").read_bytes()
        with pytest.raises(MetaFileError, match="as they were written, and `gulp2 rep"):
            build_index(tmp_path, thorough=True)
        assert (tmp_path / "index.arrow").read_bytes() == index
        remove_index(tmp_path)
        caplog.clear()
        build_index(tmp_path, thorough=True)
        (record,) = caplog.records
        (warned,) = warnings()
        assert warned == record.getMessage()
        assert warned.startswith(f"{tmp_path}: the entry of item 'one' is not what ")
    assert warnings(verify=False) == []
    with pytest.raises(MetaFileError, match="its check is not that of its content"):
        warnings(verify=True)

    for chunk in GulpDirectory(tmp_path, verify=False).chunks():
        for entry in chunk.meta_dict.values():
            entry["gulp2"].pop("check")
        with chunk.open("ab"):
            pass
    assert warnings() == warnings(verify=True) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_an_item_that_0_0_4_extended_is_as_it_was_where_other_edits_come_to_count(
    tmp_path, indexed
):
    """Its checksums are of its first frames, and its check of what it was before."""
    write_items(tmp_path)
    path = tmp_path / "meta_0.gmeta"
    map_ = json.loads(path.read_bytes())
    # GulpIO2 0.0.4 appends frames and metadata, and knows nothing of the extras.
    map_["two"]["frame_info"].append(map_["one"]["frame_info"].pop())
    map_["two"]["meta_data"].append({})
    path.write_text(json.dumps(map_))
    (chunk,) = GulpDirectory(tmp_path, indexed=indexed, verify=False).chunks()
    for entry in chunk.meta_dict.values():
        entry["gulp2"].pop("check")
    with chunk.open("ab"):
        pass
    assert json.loads(path.read_bytes())["two"] == map_["two"]


def test_no_condition_goes_by_a_label_that_has_changed_where_it_is_to_be_an_error(
    tmp_path,
):
    write_items(tmp_path)
    change_label(tmp_path)
    with GulpDirectory(tmp_path, indexed=True, verify=True) as directory:
        for ask in (
            lambda: directory.query("label == 'push'"),
            lambda: directory.view(["two"]).query([True]),
            lambda: directory.table,
        ):
            with pytest.raises(MetaFileError, match="the entry of item 'one' is not"):
                ask()
        assert directory.view(["two"])["two"][1] == {"label": "pull"}
    with GulpDirectory(tmp_path, indexed=True) as directory:
        assert directory.query("label == 'pusi'").ids == ["one"]


@pytest.mark.parametrize("indexed", [False, True])
def test_those_of_all_maps_are_told_of_once_and_not_in_each_worker(
    tmp_path, caplog, indexed
):
    GulpIngestor(FrameAdapter(num_items=6), tmp_path, 2, 1).run()
    for path in tmp_path.glob("*.gmeta"):
        map_ = json.loads(path.read_bytes())
        for entry in map_.values():
            entry["meta_data"][0]["number"] = 77
        path.write_text(json.dumps(map_))
    directory = GulpDirectory(tmp_path, indexed=indexed)
    make, arguments = directory._reopening(["item0"])
    for copy in (pickle.loads(pickle.dumps(directory)), make(*arguments)):
        assert copy.item("item0").meta == {"number": 77}
    (record,) = caplog.records
    assert "the entry of item 'item0' (and of 5 others) is not" in record.getMessage()


@pytest.mark.parametrize("indexed", [False, True])
def test_frames_that_another_program_has_put_into_another_order_are_read_in_it(
    tmp_path, indexed
):
    write_items(tmp_path)
    with GulpDirectory(tmp_path, indexed=indexed) as directory:
        wanted = directory.read_clip("one", [1, 0])
        kept = directory.read_clip("two")
    path = tmp_path / "meta_0.gmeta"
    map_ = json.loads(path.read_bytes())
    map_["one"]["frame_info"].reverse()
    path.write_text(json.dumps(map_))
    with GulpDirectory(tmp_path, indexed=indexed) as directory:
        np.testing.assert_array_equal(directory.read_clip("one"), wanted)
        np.testing.assert_array_equal(directory.read_clip("two"), kept)
    # What is damaged is told from that.
    data = bytearray((tmp_path / "data_0.gulp").read_bytes())
    data[300] ^= 1
    (tmp_path / "data_0.gulp").write_bytes(data)
    with (
        GulpDirectory(tmp_path, indexed=indexed) as directory,
        pytest.raises(CorruptFrameError, match="its checksum is"),
    ):
        directory.read_clip("one")


@pytest.mark.parametrize("times", [1, 2])
def test_frames_that_are_added_to_a_rotted_entry_do_not_make_it_sound(tmp_path, times):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("v", {"label": "cat"}, make_frames(2))
        chunk.append("w", {"label": "cat"}, make_frames(2))
    path = tmp_path / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b"cat", b"bat", 1))
    (found,) = check_directory(tmp_path, deep=True).problems
    for number in range(times):
        chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
        with chunk.open("ab"):
            chunk.append("v", {"part": number}, make_frames(1, seed=number))
            chunk.append("w", {"part": number}, make_frames(1, seed=number))
    assert check_directory(tmp_path, deep=True).problems == [found]
    directory = GulpDirectory(tmp_path)
    assert len(directory["v"][0]) == len(directory["w"][0]) == 2 + times
    # Whoever takes the check out says that what is there is to count.
    del directory.merged_meta_dict["v"]["gulp2"]["check"]
    with directory.chunk_objs_lookup[0].open("ab"):
        pass
    assert check_directory(tmp_path, deep=True).problems == []


def rotted(folder):
    """Give a chunk of one item whose label has changed on the disk."""
    paths = folder / "data_0.gulp", folder / "meta_0.gmeta"
    chunk = GulpChunk(*paths)
    with chunk.open("wb"):
        chunk.append("v", {"label": "cat"}, make_frames(2))
    paths[1].write_bytes(paths[1].read_bytes().replace(b"cat", b"bat", 1))
    return GulpChunk(*paths)


def codes(folder):
    return {problem.code for problem in check_directory(folder, deep=True).problems}


def test_an_item_that_is_appended_anew_in_place_of_a_rotted_one_is_sound(tmp_path):
    chunk = rotted(tmp_path)
    with chunk.open("ab"):
        chunk.append("v", {}, make_frames(1))
        del chunk.meta_dict["v"]
        chunk.append("v", {"label": "new"}, make_frames(2))
    assert "entry-check" not in codes(tmp_path)


def test_a_check_that_is_taken_out_meanwhile_is_made_anew(tmp_path):
    chunk = rotted(tmp_path)
    with chunk.open("ab"):
        chunk.append("v", {}, make_frames(1))
        chunk.flush()
        assert codes(tmp_path) == {"entry-check"}
        del chunk.meta_dict["v"]["gulp2"]["check"]
    assert codes(tmp_path) == set()


def test_an_entry_that_lost_its_check_gets_one_with_more_frames(tmp_path):
    chunk = rotted(tmp_path)
    path = tmp_path / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    del entries["v"]["gulp2"]["check"]
    path.write_text(json.dumps(entries))
    chunk = GulpChunk(tmp_path / "data_0.gulp", path)
    with chunk.open("ab"):
        chunk.append("v", {}, make_frames(1))
    assert isinstance(json.loads(path.read_bytes())["v"]["gulp2"]["check"], str)
    assert codes(tmp_path) == set()


def test_rot_stays_rot_also_where_0_0_4_has_added_frames(tmp_path):
    chunk = rotted(tmp_path)
    path = tmp_path / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    entries["v"]["frame_info"].append(entries["v"]["frame_info"][-1])
    entries["v"]["meta_data"].append({"of": "0.0.4"})
    path.write_text(json.dumps(entries))
    assert "entry-check" in codes(tmp_path)
    chunk = GulpChunk(tmp_path / "data_0.gulp", path)
    with chunk.open("ab"):
        chunk.append("v", {}, make_frames(1))
    assert "entry-check" in codes(tmp_path)
