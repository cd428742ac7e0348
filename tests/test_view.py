"""A part of a directory reads like a directory, nests, and is small to send."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import ItemNotFoundError, MetaFileError
from gulpio2.removal import delete_items
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames, make_gulp_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write twelve items, of four frames each, in six chunks."""
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=12, num_frames=4)
    return path


@pytest.fixture(params=[False, True], ids=["maps", "index"])
def directory(request: Any, folder: Path) -> GulpDirectory:
    """Open it in both ways."""
    return GulpDirectory(folder, indexed=request.param)


def test_a_query_gives_a_view_of_the_items_that_meet_it(directory):
    view = directory.query("number >= 9 and num_frames == 4")
    assert view.ids == ["item9", "item10", "item11"]
    assert len(view) == 3
    assert ("item9" in view, "item3" in view, "nobody" in view) == (True, False, False)
    assert repr(view) == f"GulpView({str(directory.output_dir)!r}, 3 items)"


def test_it_reads_like_the_directory(directory):
    view = directory.query("number < 3")
    for id_ in view.ids:
        frames, meta = view[id_, 1:3]
        wanted, wanted_meta = directory[id_, 1:3]
        assert meta == wanted_meta
        np.testing.assert_array_equal(np.stack(frames), np.stack(wanted))
        np.testing.assert_array_equal(view.read_clip(id_), directory.read_clip(id_))
        assert view.read_jpegs(id_) == directory.read_jpegs(id_)
        assert view.item(id_).num_frames == 4
        assert len(view.read_frames(id_)[0]) == 4
    requests = [("item0", [0, 1]), ("item2", [2, 3])]
    np.testing.assert_array_equal(
        view.read_clips(requests, scale=2), directory.read_clips(requests, scale=2)
    )
    out = np.zeros((1, 24, 32, 3), np.uint8)
    assert view.read_clip("item1", 0, out=out) is out


def test_items_outside_are_not_found(directory):
    view = directory.query("number < 3")
    for read in (view.item, view.read_frames, view.read_clip, view.read_jpegs):
        with pytest.raises(ItemNotFoundError, match=r"no item 'item5' in a view of 3"):
            read("item5")
    with pytest.raises(KeyError) as caught:
        view["item5"]
    assert caught.value.args == ("item5",)
    with pytest.raises(ItemNotFoundError):
        view.read_clips([("item0", 0), ("item5", 0)])


def test_its_chunks_have_its_items_alone(directory):
    view = directory.view(["item7", "item1", "item6", "item0", "item11"])
    assert view.num_chunks == len(list(view)) == len(list(view.chunks())) == 3
    assert [list(chunk.meta_dict) for chunk in view] == [
        ["item1", "item0"],
        ["item7", "item6"],
        ["item11"],
    ]
    read = [meta["number"] for chunk in view for _, meta in chunk]
    assert read == [1, 0, 7, 6, 11]
    (first, *_) = view
    assert "item1" in first
    assert "item2" not in first
    assert first.read_clip("item0").shape == (4, 24, 32, 3)
    for id_ in ("item2", "item7", "nobody"):
        with pytest.raises(ItemNotFoundError):
            first[id_]
    first.meta_dict["item0"]["meta_data"][0]["edited"] = 1
    assert directory["item0"][1] == {"number": 0, "edited": 1}
    assert len(directory.query("number > 99").query("number > 3").ids) == 0
    assert list(directory.query("number > 99")) == []


def test_its_mappings_are_parts_of_the_directorys(directory):
    view = directory.view(["item7", "item1", "item7"])
    assert list(view.merged_meta_dict) == view.ids == ["item7", "item1"]
    assert dict(view.chunk_lookup) == {"item7": 3, "item1": 0}
    entry = view.merged_meta_dict["item7"]
    assert entry is directory.merged_meta_dict["item7"]
    entry["meta_data"][0]["edited"] = 1
    assert view["item7"][1] == directory["item7"][1] == {"number": 7, "edited": 1}
    assert "item2" not in view.merged_meta_dict
    with pytest.raises(KeyError):
        view.merged_meta_dict["item2"]
    assert view.output_dir == directory.output_dir
    assert view.metainfo == directory.metainfo
    assert view.manifest == directory.manifest


def test_views_nest_and_keep_the_order(directory):
    view = directory.view([f"item{n}" for n in (9, 1, 5, 3)])
    inner = view.query("number > 2")
    assert inner.ids == ["item9", "item5", "item3"]
    assert inner.query([True, False, True]).ids == ["item9", "item3"]
    assert inner.query("number == 1").ids == []
    assert len(inner.query("number == 1").query("number == 9")) == 0
    with pytest.raises(ValueError, match="a mask of 12 values"):
        inner.query([True] * 12)


def test_a_view_gives_a_view_of_its_own_items_alone(directory):
    view = directory.query("number < 9")
    part = view.view(["item5", "item2", "item5"])
    assert part.ids == ["item5", "item2"]
    assert part.query("number > 2").view(["item5"]).ids == ["item5"]
    assert view.view(iter(())).ids == []
    for gone in ("item10", "nobody"):
        with pytest.raises(ItemNotFoundError, match=f"no item '{gone}' in"):
            view.view(["item1", gone])
    with pytest.raises(TypeError, match="which is one; give a list of ids"):
        view.view("item1")


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("way", ["ids", "mask"])
def test_a_view_has_the_items_asked_for_although_maps_change_meanwhile(
    tmp_path, indexed, way
):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(6):
            chunk.append(number, {"number": number}, [])
    build_index(tmp_path)
    directory = GulpDirectory(tmp_path, indexed=indexed)

    def change() -> None:
        directory.close()
        delete_items(tmp_path, ["0"])

    def ids() -> Iterator[int]:
        yield 3
        change()
        yield 5

    class Mask:
        def __array__(self, *_: Any, **__: Any) -> Any:
            change()
            return np.isin(np.arange(6), [3, 5])

    view = directory.view(ids()) if way == "ids" else directory.query(Mask())
    assert view.ids == ["3", "5"]
    assert [view[id_][1]["number"] for id_ in view.ids] == [3, 5]


def test_one_id_is_no_list_of_its_letters(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_ in ("1", "0", "10"):
            chunk.append(id_, {}, [])
    with pytest.raises(TypeError, match="ids is '10', which is one; give a list"):
        GulpDirectory(tmp_path).view("10")
    assert GulpDirectory(tmp_path).view([10]).ids == ["10"]
    ones: list[Any] = [10, None, b"10", bytearray(b"10"), np.array("10")]
    for one in ones:
        with pytest.raises(TypeError, match=r"ids is .*, which is one; give a list"):
            GulpDirectory(tmp_path).view(one)
    directory = GulpDirectory(tmp_path)
    for source in (directory, directory.view(["1"]), *directory):
        with pytest.raises(TypeError, match="give a list of ids, as the ids of a view"):
            directory.view(source)


def test_an_unknown_item_makes_no_view(directory):
    with pytest.raises(ItemNotFoundError, match="no item 'nobody'") as caught:
        directory.view(["item1", "nobody"])
    assert caught.value.args == ("nobody",)


def test_the_table_has_a_row_per_item(directory):
    table = directory.table
    assert isinstance(table, pa.Table)
    assert table.column_names == ["id", "chunk", "num_frames", "frames", "number"]
    assert table.column("number").to_pylist() == list(range(12))
    assert table.column("chunk").to_pylist() == [n // 2 for n in range(12)]
    view = directory.view(["item4", "item2"])
    assert view.table.drop_columns("frames").to_pylist() == [
        {"id": "item4", "chunk": 2, "num_frames": 4, "number": 4},
        {"id": "item2", "chunk": 1, "num_frames": 4, "number": 2},
    ]
    assert len(view.index) == 2


def test_the_index_is_a_data_frame_where_pandas_is(directory):
    pandas = pytest.importorskip("pandas")
    frame = directory.index
    assert isinstance(frame, pandas.DataFrame)
    assert frame[frame.number > 9].id.tolist() == ["item10", "item11"]
    assert directory.query(frame.number > 9).ids == ["item10", "item11"]
    assert directory.query(frame.number.to_numpy() > 9).ids == ["item10", "item11"]
    assert directory.view(["item3"]).index.number.tolist() == [3]


def test_nothing_of_the_index_is_copied_into_a_table_or_a_frame(directory):
    pytest.importorskip("pandas")
    content = directory._item_index.content
    arrays = {
        "num_frames": content.columns.num_frames,
        "chunk": content.columns.chunk,
        "frames": content.columns.frame_length,
    }
    table, frame = directory.table, directory.index
    for name, array in arrays.items():
        for column in (table.column(name), frame[name].array.__arrow_array__()):
            (chunk,) = getattr(column, "chunks", [column])
            addresses = {part.address for part in chunk.buffers() if part is not None}
            assert array.__array_interface__["data"][0] in addresses
    spans = frame["frames"].iloc[3]
    entry = directory.merged_meta_dict["item3"]
    assert [[s["offset"], s["pad"], s["length"]] for s in spans] == entry["frame_info"]


def test_a_pickle_is_small_and_carries_edits(directory):
    view = directory.query("number != 4")
    directory.merged_meta_dict["item2"]["meta_data"][0]["edited"] = True
    directory.merged_meta_dict["item4"]["meta_data"][0]["edited"] = True
    data = pickle.dumps(view)
    copy = pickle.loads(data)
    assert copy.ids == view.ids
    assert copy["item2"][1] == {"number": 2, "edited": True}
    np.testing.assert_array_equal(copy.read_clip("item7"), view.read_clip("item7"))
    del directory.merged_meta_dict["item2"]["meta_data"][0]["edited"]
    # Of everything but the ids, however many there are.
    for part in (view, directory.query("number < 2"), directory.view([])):
        assert len(pickle.dumps(part)) < 1000 + len(pickle.dumps(part.ids))
    view.close()
    assert view["item0"][1] == {"number": 0}
    with view as same:
        assert same is view


def test_a_view_is_read_in_another_process(directory, python):
    view = directory.query("number in [3, 8]")
    code = (
        "import pickle, sys; view = pickle.load(sys.stdin.buffer); "
        "print(view.ids, view.read_clip('item8').sum())"
    )
    done = subprocess.run(
        [python, "-c", code], input=pickle.dumps(view), capture_output=True, check=True
    )
    expected = directory.read_clip("item8").sum()
    assert done.stdout.decode().strip() == f"['item3', 'item8'] {expected}"


@pytest.mark.parametrize(
    "read",
    [
        lambda view: view["item3"],
        lambda view: view.read_clip("item3"),
        lambda view: view.ids,
        len,
        list,
        lambda view: "item3" in view,
        lambda view: view.query("number == 3"),
        lambda view: view.table,
        lambda view: list(view.merged_meta_dict),
        pickle.dumps,
    ],
)
def test_one_of_which_an_item_is_gone_says_so_when_it_is_read(directory, folder, read):
    data = pickle.dumps(directory.query("number in [3, 8]"))
    delete_items(folder, ["item8"])
    view = pickle.loads(data)
    assert "1 item)" in repr(view)
    with pytest.raises(
        ItemNotFoundError, match=r"no item 'item8' in .*gulped"
    ) as caught:
        read(view)
    assert caught.value.args == ("item8",)


def test_conditions_see_stored_metadata_and_not_what_was_edited(directory):
    directory.merged_meta_dict["item2"]["meta_data"][0]["number"] = 99
    assert directory.query("number == 99").ids == []
    assert directory.query("number == 2")["item2"][1] == {"number": 99}


@pytest.mark.torch
def test_a_dataset_takes_a_view_for_a_directory(directory):
    from gulpio2.torch import GulpImageDataset

    dataset = GulpImageDataset(directory.query("number < 5"), frame=2)
    assert len(dataset) == 5
    frame = directory.read_clip("item4", 2)[0]
    np.testing.assert_array_equal(dataset[4].permute(1, 2, 0).numpy(), frame)


@pytest.mark.torch
def test_datasets_and_a_loader_take_a_view_and_keep_no_entries(directory):
    from gulpio2.sampling import sample_window
    from gulpio2.torch import GulpClipDataset, GulpLoader

    view = directory.query("number >= 2").query("number < 9")
    dataset = GulpClipDataset(
        view, partial(sample_window, clip_length=2), target="number"
    )
    assert len(dataset) == 7
    numbers = [
        number
        for clips, targets in GulpLoader(dataset, batch_size=1)
        for number in targets
        if clips.shape[1:] == (2, 24, 32, 3)
    ]
    assert sorted(map(int, numbers)) == list(range(2, 9))
    copy = pickle.loads(pickle.dumps(dataset))
    assert len(copy) == 7
    if directory._index is not None:
        assert directory._index.entries == {}


def test_an_entry_that_is_looked_at_is_not_kept(directory):
    view = directory.query("number == 3")
    for entries in (directory.merged_meta_dict, view.merged_meta_dict):
        peek = getattr(entries, "peek", entries.__getitem__)
        assert peek("item3")["meta_data"] == [{"number": 3}]
        with pytest.raises(KeyError):
            peek("nobody")
    if directory._index is not None:
        assert directory._index.entries == {}
    directory.merged_meta_dict["item3"]["meta_data"][0]["edited"] = 1
    peek = getattr(view.merged_meta_dict, "peek", None)
    assert peek is not None
    assert peek("item3")["meta_data"] == [{"number": 3, "edited": 1}]


def append_to_first_chunk(folder: Path) -> None:
    """Put an item before those of the other chunks."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("later", {"number": 99}, make_frames(1))


def assert_has_fifth_and_sixth(view: Any) -> None:
    """Check everything by which a view tells which items it has."""
    assert view.ids == ["item5", "item6"]
    assert [id_ in view for id_ in ("item4", *view.ids, "item7")] == [0, 1, 1, 0]
    assert [view[id_][1]["number"] for id_ in view.ids] == [5, 6]
    assert view.table["id"].to_pylist() == view.ids
    assert view.query("number > 5").ids == ["item6"]
    assert [list(chunk.meta_dict) for chunk in view] == [["item5"], ["item6"]]
    assert view.num_chunks == 2
    assert pickle.loads(pickle.dumps(view)).ids == view.ids


@pytest.mark.parametrize(
    "change", [lambda folder: delete_items(folder, ["item1"]), append_to_first_chunk]
)
def test_it_keeps_its_items_when_others_come_or_go_while_it_is_closed(
    directory, folder, change
):
    view = directory.query("number in [5, 6]")
    directory.close()
    change(folder)
    assert_has_fifth_and_sixth(view)
    directory.close()
    assert_has_fifth_and_sixth(view)


@pytest.mark.parametrize("gone", ["item1", "item5"])
def test_it_finds_its_items_in_an_index_that_has_to_be_made_anew(folder, gone):
    build_index(folder)
    path = folder / "index.arrow"
    data = bytearray(path.read_bytes())
    # The first frame of item6, so that its row is not what its map says.
    place = pa.ipc.open_file(pa.py_buffer(data)).get_batch(0)
    lengths = place.column("frames").values.field("length").buffers()[1]
    offset = lengths.address - pa.py_buffer(data).address
    data[offset + 4 * 4 * 6] ^= 1
    path.write_bytes(data)
    directory = GulpDirectory(folder, indexed=True)
    view = directory.view(["item5", "item6"])
    delete_items(folder, [gone])
    assert len(directory["item6"][0]) == 4
    if gone == "item1":
        assert_has_fifth_and_sixth(view)
    else:
        with pytest.raises(ItemNotFoundError, match="no item 'item5'"):
            assert "item6" in view


def test_a_view_of_no_items_takes_a_mask_of_none(directory):
    assert directory.view([]).query([]).ids == []


def edit_and_set_the_time_back(folder: Path) -> None:
    """Give a key of an item in each chunk another name, of the same length."""
    for path in folder.glob("meta_*.gmeta"):
        state, data = path.stat(), path.read_bytes()
        path.write_bytes(data.replace(b'"number"', b'"NUMBER"', 1))
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: delete_items(folder, ["item3"]),
        append_to_first_chunk,
        edit_and_set_the_time_back,
    ],
)
def test_maps_that_were_loaded_and_have_changed_cannot_be_asked(folder, change):
    directory = GulpDirectory(folder, indexed=False)
    asked = GulpDirectory(folder, indexed=False)
    before = asked.table.column("num_frames").to_pylist()
    change(folder)
    for ask in (lambda: directory.table, lambda: directory.view(["item3"])):
        with pytest.raises(MetaFileError, match=r"has changed since it was opened: "):
            ask()
    assert directory.read_clip("item3").shape[0] == 4
    # What was asked before goes on to answer as it did.
    asked.close()
    assert asked.table.column("num_frames").to_pylist() == before
    assert GulpDirectory(folder, indexed=False).query("num_frames == 4")


def test_maps_that_were_loaded_are_asked_beside_an_index_of_others(folder):
    build_index(folder)
    edit_and_set_the_time_back(folder)
    directory = GulpDirectory(folder, indexed=False)
    edited = [
        id_ for id_ in directory.chunk_lookup if "NUMBER" in directory[id_, []][1]
    ]
    assert directory.query("NUMBER is not None").ids == edited != []


def test_a_chunk_that_comes_later_is_not_in_a_view(folder):
    directory = GulpDirectory(folder, indexed=False)
    chunk = next(iter(directory.new_chunks(1)))
    with chunk.open("wb"):
        chunk.append("late", {"number": 99}, make_frames(4))
    view = directory.query("num_frames == 4")
    assert view.ids == list(directory.chunk_lookup)


def test_a_mapped_index_of_loaded_maps_is_not_exchanged_when_it_is_mapped_again(folder):
    build_index(folder)
    directory = GulpDirectory(folder, indexed=False)
    view = directory.query("number in [5, 6]")
    directory.close()
    delete_items(folder, ["item1"])
    assert_has_fifth_and_sixth(view)
    del view
    directory.close()
    with pytest.raises(MetaFileError, match="Open it again"):
        directory.query("number in [5, 6]")


def test_an_expression_names_columns_of_the_table_by_name_or_position(directory):
    table = directory.table
    at = table.column_names.index
    wanted = ["item9", "item10", "item11"]
    late = pc.field(at("number")) >= 9
    assert directory.query(late).ids == wanted
    assert directory.query(late & (pc.field(at("num_frames")) == 4)).ids == wanted
    long = pc.list_value_length(pc.field("frames")) == 4
    assert directory.query(long).ids == table["id"].to_pylist()
    backwards = directory.view(reversed(table["id"].to_pylist()))
    assert backwards.query(late & long).ids == wanted[::-1]


def test_its_mappings_are_dictionaries_to_look_at(directory):
    view = directory.view(["item7", "item1"])
    part = view.merged_meta_dict
    wanted = directory.merged_meta_dict
    expected = {id_: wanted[id_] for id_ in ("item7", "item1")}
    assert part == expected
    assert isinstance(part, OrderedDict)
    assert dict(part) == part.copy() == part | {} == expected
    assert list(reversed(part)) == ["item1", "item7"]
    assert json.loads(json.dumps(part)) == json.loads(json.dumps(expected))
    pickled = pickle.dumps(part)
    assert pickle.loads(pickled) == expected
    assert len(pickled) < len(pickle.dumps(dict(wanted))) / 3
    assert dict(view.chunk_lookup) == {"item7": 3, "item1": 0}
    changes: list[Any] = [
        lambda: part.__setitem__("item1", {}),
        lambda: part.__delitem__("item1"),
        lambda: part.pop("item1"),
        part.popitem,
        part.clear,
        lambda: part.update(item1={}),
        lambda: part.move_to_end("item7"),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="item"):
            change()
    assert list(part) == ["item7", "item1"]


def test_what_is_deleted_in_the_mapping_of_the_directory_is_not_in_that_of_a_view(
    directory,
):
    view = directory.view(["item7", "item1"])
    part = view.merged_meta_dict
    del directory.merged_meta_dict["item7"]
    assert (list(part), len(part), dict(part)) == (
        *(["item1"], 1),
        {"item1": directory.merged_meta_dict["item1"]},
    )
    assert "item7" not in part


def test_it_has_the_names_of_a_directory(directory):
    directory = GulpDirectory(directory.output_dir, threads=2)
    view = directory.view(["item7", "item1"])
    assert [list(entries) for entries in view.all_meta_dicts] == [["item1"], ["item7"]]
    chunks = view.chunk_objs_lookup
    assert {number: list(chunk.meta_dict) for number, chunk in chunks.items()} == {
        0: ["item1"],
        3: ["item7"],
    }
    assert view.jpeg_decoder is directory.jpeg_decoder
    assert view.threads == 2


def test_the_chunks_of_a_view_are_without_what_was_deleted_in_memory(tmp_path):
    make_gulp_directory(tmp_path, num_items=3, num_frames=1, items_per_chunk=3)
    directory = GulpDirectory(tmp_path, indexed=False)
    view = directory.view(["item2", "item0", "item1"])
    del directory.chunk_objs_lookup[0].meta_dict["item0"]
    assert [list(chunk.meta_dict) for chunk in view] == [["item2", "item1"]]


def test_ids_are_listed_once_and_each_has_a_list_of_its_own(directory, monkeypatch):
    view = directory.view(["item5", "item2"])
    mine = view.ids
    mine.reverse()
    assert view.ids == ["item5", "item2"]
    monkeypatch.setattr(type(view._held.columns), "id_at", None)
    assert view.ids == ["item5", "item2"]
    assert len(view.merged_meta_dict) == 2
    assert bool(view.chunk_lookup)


def test_a_view_is_restored_while_another_appends(folder, directory, monkeypatch):
    data = pickle.dumps(directory.view(["item1", "item3"]))
    really_open = GulpDirectory._open
    opened: list[GulpDirectory] = []

    def open_and_append(self: GulpDirectory, *arguments: Any) -> None:
        really_open(self, *arguments)
        if not opened:
            chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
            with chunk.open("ab"):
                chunk.append("more", {}, make_frames(1, 24, 32))
        opened.append(self)

    monkeypatch.setattr(GulpDirectory, "_open", open_and_append)
    view = pickle.loads(data)
    assert view.ids == ["item1", "item3"]
    assert len(view.read_jpegs("item3")) == 4
