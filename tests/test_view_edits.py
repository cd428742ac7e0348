"""What was changed in the mappings of a directory, in a view and in its copies."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ItemNotFoundError
from gulpio2.testing import make_gulp_directory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[False, True], ids=["maps", "index"])
def directory(request: Any, tmp_path: Path) -> GulpDirectory:
    """Write six items in three chunks, and open them in both ways."""
    make_gulp_directory(tmp_path, num_items=6, num_frames=4)
    return GulpDirectory(tmp_path, indexed=request.param)


def chunk_of(directory, id_):
    return directory.chunk_objs_lookup[directory.chunk_lookup[id_]]


def other(directory, id_):
    spans = list(directory.merged_meta_dict[id_]["frame_info"])[:2]
    return {"frame_info": spans, "meta_data": [{"label": "edited"}]}


def assign_in_chunk(directory):
    chunk_of(directory, "item1").meta_dict["item1"] = other(directory, "item1")


def assign_after_extending(directory):
    chunk = chunk_of(directory, "item1")
    entry = other(directory, "item1")
    with chunk.open("ab"):
        chunk.append("new", {}, [])
    chunk.meta_dict["item1"] = entry


def delete_in_chunk(directory):
    del chunk_of(directory, "item1").meta_dict["item1"]


def delete_in_lookup(directory):
    del directory.chunk_lookup["item1"]


def assign_in_all(directory):
    directory.merged_meta_dict["item1"] = other(directory, "item1")


def delete_in_all(directory):
    del directory.merged_meta_dict["item1"]


def move_in_lookup(directory):
    directory.chunk_lookup["item1"] = directory.chunk_lookup["item4"]


def delete_chunk_object(directory):
    del directory.chunk_objs_lookup[directory.chunk_lookup["item1"]]


def put_into_other_chunk(directory):
    other_chunk = chunk_of(directory, "item4")
    entry = dict(other_chunk.meta_dict["item5"])
    other_chunk.meta_dict["item1"] = {**entry, "meta_data": [{"label": "edited"}]}
    directory.chunk_lookup["item1"] = directory.chunk_lookup["item4"]


def change_in_place(directory):
    entry = directory.merged_meta_dict["item1"]
    entry["meta_data"][0] = {"label": "edited"}
    entry["frame_info"] = list(entry["frame_info"])[:3]


def answers(source):
    """Give what a directory or a view says of an item, in every way."""
    found = []
    for ask in (
        lambda: source.merged_meta_dict["item1"]["meta_data"][0],
        lambda: source.chunk_lookup["item1"],
        lambda: [len(part) for part in source["item1"]],
        lambda: source.read_clip("item1").shape,
        lambda: source.item("item1").meta,
    ):
        try:
            found.append(ask())
        except KeyError as error:
            found.append(type(error).__name__)
    return found


EDITS = [
    assign_in_chunk,
    assign_after_extending,
    delete_in_chunk,
    delete_in_lookup,
    assign_in_all,
    delete_in_all,
    move_in_lookup,
    delete_chunk_object,
    put_into_other_chunk,
    change_in_place,
]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))]
)
def test_a_copy_of_a_view_has_the_changes_made_so_far(directory, edit, copied):
    view = directory.view(["item1", "item4", "item2"])
    before = answers(view)
    edit(directory)
    wanted = answers(view)
    assert wanted != before
    made = copied(view)
    assert answers(made) == wanted
    assert answers(made.directory) == answers(directory)
    assert made["item4"][1] == {"number": 4}


@pytest.mark.parametrize("edit", EDITS)
def test_changes_of_other_items_do_not_go_along(directory, edit):
    if edit in (assign_after_extending, delete_chunk_object):
        pytest.skip("it changes the map itself, or no item's entry")
    view = directory.view(["item4"])
    before = pickle.dumps(view)
    edit(directory)
    copied = pickle.loads(pickle.dumps(view))
    assert copied["item4"][1] == {"number": 4}
    assert len(pickle.dumps(view)) == len(before)


@pytest.mark.parametrize("edit", [assign_in_chunk, delete_in_chunk, change_in_place])
def test_chunks_of_a_view_have_the_entries_of_the_directory(directory, edit):
    view = directory.view(["item2", "item1", "item0"])
    edit(directory)
    wanted = {
        (meta.get("number"), len(frames))
        for chunk in directory
        for frames, meta in chunk
        if meta.get("number") not in {3, 4, 5}
    }
    for chunks in (view, view.chunks(), view.chunk_objs_lookup.values()):
        found = {
            (meta.get("number"), len(frames))
            for part in chunks
            for frames, meta in part
        }
        assert found == wanted
    (entries,) = [part for part in view.all_meta_dicts if "item0" in part]
    assert ("item1" in entries) == (edit is not delete_in_chunk)


def test_an_item_that_was_taken_out_is_not_found_in_a_copy(directory):
    view = directory.view(["item1", "item4"])
    del directory.chunk_lookup["item1"]
    for source in (view, pickle.loads(pickle.dumps(view))):
        with pytest.raises(ItemNotFoundError):
            source.read_clip("item1")


def test_a_copy_of_a_view_has_an_item_that_was_edited_and_taken_out(directory):
    view = directory.view(["item1", "item4"])
    directory.merged_meta_dict["item1"]["meta_data"][0]["label"] = "edited"
    del directory.chunk_lookup["item1"]
    for made in (copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert made.merged_meta_dict["item1"]["meta_data"][0]["label"] == "edited"
        assert made.read_clip("item4").shape[0] == 4
        with pytest.raises(ItemNotFoundError):
            made.read_clip("item1")
