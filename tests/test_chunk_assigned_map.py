"""Items that were deleted in memory, from a map that the chunk has not read itself."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import AdapterContractError
from gulpio2.format.layout import INDEX_NAME
from tests.chunks import JPEGS, label, labels, new_chunk, problems, rename, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEFT = {"unreferenced-bytes"}  # by what was deleted in memory
VIEWED = ["c", "b"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write items "a" to "d"."""
    write(tmp_path, *((id_, {"label": "old"}, JPEGS[:2]) for id_ in "abcd"))
    return tmp_path


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def directory(folder: Path, request: Any) -> Iterator[GulpDirectory]:
    """Open it, without an index and with one."""
    with GulpDirectory(folder, indexed=request.param) as directory:
        yield directory


@pytest.fixture(params=["whole", "view"])
def chunk(directory: GulpDirectory, request: Any) -> GulpChunk:
    """Give its chunk, and the part of it that a view has."""
    (chunk,) = directory if request.param == "whole" else directory.view(VIEWED)
    return chunk


def delete(chunk: GulpChunk) -> None:
    del chunk.meta_dict["b"]


def without(chunk: GulpChunk) -> OrderedDict[str, Any]:
    """Give the map without an item."""
    return OrderedDict(item for item in chunk.meta_dict.items() if item[0] != "b")


def assign(chunk: GulpChunk) -> None:
    chunk.meta_dict = without(chunk)


def assign_a_dict(chunk: GulpChunk) -> None:
    chunk.meta_dict = dict(without(chunk))  # type: ignore[assignment]


def assign_a_deep_copy(chunk: GulpChunk) -> None:
    chunk.meta_dict = copy.deepcopy(without(chunk))


def assign_json(chunk: GulpChunk) -> None:
    text = json.dumps(without(chunk))
    chunk.meta_dict = json.loads(text, object_pairs_hook=OrderedDict)


def delete_and_assign(chunk: GulpChunk) -> None:
    del chunk.meta_dict["b"]
    chunk.meta_dict = OrderedDict(chunk.meta_dict)


WAYS = [
    delete,
    assign,
    assign_a_dict,
    assign_a_deep_copy,
    assign_json,
    delete_and_assign,
]
all_ways = pytest.mark.parametrize("remove", WAYS)


@all_ways
def test_what_is_deleted_in_memory_stays_deleted(folder, chunk, remove):
    remove(chunk)
    label(chunk.meta_dict, "c")
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:1])
    expected = {"a": "old", "c": "new", "d": "old", "new": None}
    assert labels(folder) == expected
    assert list(chunk.meta_dict) == list(expected)
    with chunk.open("ab"):
        del chunk.meta_dict["d"]
    assert list(labels(folder)) == ["a", "c", "new"]
    # With an index it is known which items the bytes were that are left.
    known = {"lost-item"} if (folder / INDEX_NAME).exists() else set()
    assert set(problems(folder)) == LEFT | known
    for indexed in (False, True):
        with GulpDirectory(folder, indexed=indexed, verify=True) as again:
            assert list(again.merged_meta_dict) == ["a", "c", "new"]
            assert again.read_jpegs("c") == JPEGS[:2]


@all_ways
def test_what_others_append_to_other_items_brings_nothing_back(folder, chunk, remove):
    remove(chunk)
    write(folder, ("other", {}, JPEGS[:1]), ("a", {}, JPEGS[3:4]), flag="ab")
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:1])
    assert list(labels(folder)) == ["a", "c", "d", "other", "new"]
    assert new_chunk(folder).read_jpegs("a") == [*JPEGS[:2], JPEGS[3]]


@all_ways
def test_what_has_got_frames_meanwhile_comes_back(folder, chunk, remove):
    remove(chunk)
    write(folder, ("b", {}, JPEGS[3:4]), flag="ab")
    with chunk.open("ab"):
        pass
    assert set(labels(folder)) == set("abcd")
    assert new_chunk(folder).read_jpegs("b") == [*JPEGS[:2], JPEGS[3]]


@all_ways
def test_what_others_have_deleted_is_deleted_too(folder, chunk, remove):
    remove(chunk)
    other = new_chunk(folder)
    with other.open("ab"):
        del other.meta_dict["c"]
    with chunk.open("ab"):
        pass
    assert list(labels(folder)) == ["a", "d"]


@all_ways
def test_a_block_that_fails_leaves_the_map_as_it_was_put_there(folder, chunk, remove):
    remove(chunk)
    before, ids = chunk.meta_dict, list(chunk.meta_dict)
    with pytest.raises(AdapterContractError), chunk.open("ab"):
        chunk.append("new", {}, [*JPEGS[:1], None])
    assert chunk.meta_dict is before
    assert list(before) == ids
    assert set(labels(folder)) == set("abcd")
    with chunk.open("ab"):
        pass
    assert list(labels(folder)) == ["a", "c", "d"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda it: pickle.loads(pickle.dumps(it))],
                         ids=["copy", "deepcopy", "pickle"])  # fmt: skip
@all_ways
def test_it_stays_deleted_in_a_copy_of_the_chunk(
    folder, chunk, remove: Callable[[GulpChunk], None], copied
):
    remove(chunk)
    chunk = copied(chunk)
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:1])
    assert list(labels(folder)) == ["a", "c", "d", "new"]


def test_a_copy_may_be_what_it_is_deleted_from(folder, chunk):
    chunk = pickle.loads(pickle.dumps(chunk))
    assign(chunk)
    with chunk.open("ab"):
        pass
    assert list(labels(folder)) == ["a", "c", "d"]


def test_an_empty_map_may_be_assigned(folder, directory):
    (chunk,) = directory.view(VIEWED)
    chunk.meta_dict = OrderedDict()
    with chunk.open("ab"):
        pass
    assert list(labels(folder)) == ["a", "d"]
    (chunk,) = directory
    chunk.meta_dict = OrderedDict()
    with chunk.open("ab"):
        pass
    assert labels(folder) == {}


def test_the_items_of_a_whole_chunk_are_in_the_order_of_the_map_assigned(directory):
    (chunk,) = directory
    chunk.meta_dict = OrderedDict(reversed(chunk.meta_dict.items()))
    with chunk.open("ab"):
        pass
    assert list(labels(directory.output_dir)) == ["d", "c", "b", "a"]


def test_an_item_that_is_renamed_in_an_assigned_map_is_there_once(folder, chunk):
    chunk.meta_dict = OrderedDict(chunk.meta_dict)
    rename(chunk.meta_dict, "b", "B")
    with chunk.open("ab"):
        pass
    assert sorted(labels(folder)) == ["B", "a", "c", "d"]
    assert problems(folder) == []
