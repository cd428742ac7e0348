"""Copies of directories and views: shallow ones share, deep and pickled ones do not."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.copies import reopening
from gulpio2.errors import MetaFileError
from gulpio2.testing import make_gulp_directory
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from pathlib import Path

    from gulpio2.types import Progress

# Python 3.12 and later warn of a fork beside threads; readers are made for it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.parametrize("indexed", [False, True], ids=["maps", "index"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write six items of five frames, in three chunks."""
    path = tmp_path / "out"
    make_gulp_directory(path, num_items=6, num_frames=5).close()
    return path


def sent(thing: Any) -> Any:
    """Give what another process gets."""
    return pickle.loads(pickle.dumps(thing))


def ids_of(directory: Any) -> tuple[Any, ...]:
    """Give what there is, by every mapping."""
    maps = [list(entries) for entries in directory.all_meta_dicts]
    return list(directory.merged_meta_dict), dict(directory.chunk_lookup), maps


def state_of(directory: Any) -> tuple[Any, ...]:
    """Give what there is, and the metadata that is read."""
    ids = ids_of(directory)
    return *ids, [directory[id_][1] for id_ in ids[0]]


# --- shallow ------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_a_shallow_copy_shares_every_edit_in_both_directions(folder, indexed, closed):
    directory = GulpDirectory(folder, indexed=indexed)
    directory["item1"]
    del directory.merged_meta_dict["item5"]
    if closed:
        directory.close()
    other = copy.copy(directory)
    for one in (directory, other):
        one.merged_meta_dict["item1"]["meta_data"][0][f"of {one is other}"] = 1
        one.merged_meta_dict[f"new {one is other}"] = {"frame_info": []}
        del one.merged_meta_dict["item2" if one is other else "item3"]
        del one.chunk_objs_lookup[2].meta_dict["item4" if one is other else "item5"]
        assert ids_of(other) == ids_of(directory)
        assert len(other.merged_meta_dict) == len(list(directory.merged_meta_dict))
    assert other["item1"][1] == {"number": 1, "of False": 1, "of True": 1}
    assert list(other.merged_meta_dict) == list(directory.merged_meta_dict)
    assert "item2" not in directory.merged_meta_dict
    assert "item3" not in other.merged_meta_dict


def test_closing_one_of_two_leaves_the_other_to_read(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    expected = state_of(directory)
    with copy.copy(directory) as other:
        assert state_of(other) == expected
    assert state_of(directory) == expected
    directory.close()
    assert state_of(other) == expected
    del directory
    assert state_of(other) == expected
    assert len(other.query("number >= 4")) == 2


def grey(level: int) -> list[Any]:
    """Make frames of a level, all JPEGs of the same length."""
    return [np.full((16, 16, 3), level, np.uint8)] * 3


def write_levels(folder: Path, *levels: tuple[str, int]) -> None:
    """Write a chunk anew, without the directory."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_, level in levels:
            chunk.append(id_, {}, grey(level))


@pytest.mark.parametrize("kept", ["original", "copy", "copy of it", "deep", "sent"])
def test_a_chunk_that_is_written_anew_is_noticed_by_whoever_is_left(
    tmp_path, indexed, kept
):
    write_levels(tmp_path, ("a", 0), ("b", 200))
    directory = GulpDirectory(tmp_path, indexed=indexed)
    first = copy.copy(directory)
    others = {
        "original": directory,
        "copy": first,
        "copy of it": copy.copy(first),
        "deep": copy.deepcopy(first),
        "sent": sent(first),
    }
    left = others.pop(kept)
    del directory, first, others
    gc.collect()
    write_levels(tmp_path, ("b", 200), ("a", 0))
    with pytest.raises(MetaFileError, match="written anew"):
        left["a"]


def test_what_copies_share_is_let_go_of_with_the_last(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    other = copy.copy(directory)
    other["item1"]
    watched = weakref.ref(directory), weakref.ref(directory._handles)
    gc.collect()
    gc.disable()
    try:
        del directory
        other["item2"]
        del other
        assert [each() for each in watched] == [None, None]
    finally:
        gc.enable()


class Own(GulpDirectory):
    """A program's own, with what it needs besides."""

    def __init__(self, path: Path, extra: Any, **options: Any) -> None:
        self.extra = extra
        super().__init__(path, **options)


def test_a_subclass_stays_one(folder, indexed):
    directory = Own(folder, ["x"], indexed=indexed)
    directory.mine = 1  # type: ignore[attr-defined]
    for make in (copy.copy, copy.deepcopy, sent):
        other = make(directory)
        assert (type(other), other.extra, vars(other)["mine"]) == (Own, ["x"], 1)
        assert (other.extra is directory.extra) == (make is copy.copy)
        assert state_of(other) == state_of(directory)


def test_a_shallow_copy_of_a_view_is_of_the_same_directory(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    view = directory.query("number >= 2")
    other = copy.copy(view)
    assert other.directory is directory
    assert list(other.ids) == list(view.ids)
    other.merged_meta_dict["item2"]["meta_data"][0]["k"] = 1
    assert view["item2"][1] == directory["item2"][1] == {"number": 2, "k": 1}
    view.close()
    np.testing.assert_array_equal(other.read_clip("item3"), view.read_clip("item3"))
    assert list(other.query("number == 4").ids) == ["item4"]


# --- deep, and pickled --------------------------------------------------------------


@pytest.mark.parametrize("make", [copy.deepcopy, sent])
@pytest.mark.parametrize("of", ["directory", "copy", "view"])
def test_other_copies_have_the_edits_so_far_and_share_none(folder, indexed, make, of):
    directory = GulpDirectory(folder, indexed=indexed)
    directory.merged_meta_dict["item1"]["meta_data"][0]["k"] = 1
    source: Any = directory
    if of == "copy":
        source = copy.copy(directory)
    elif of == "view":
        source = directory.query("number >= 1")
    expected = state_of(source)
    other = make(source)
    assert state_of(other) == expected
    other.merged_meta_dict["item1"]["meta_data"][0]["k"] = 2
    other.merged_meta_dict["item2"]["meta_data"][0]["k"] = 2
    source.merged_meta_dict["item3"]["meta_data"][0]["k"] = 3
    assert [other[f"item{n}"][1].get("k") for n in (1, 2, 3)] == [2, 2, None]
    assert [source[f"item{n}"][1].get("k") for n in (1, 2, 3)] == [1, None, 3]


def test_a_pickled_copy_does_not_take_the_original_along(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    assert len(pickle.dumps(copy.copy(directory))) == len(pickle.dumps(directory))


class Unopened(GulpDirectory):
    """A directory that knows what it was asked for, and nothing of the folder."""

    def _open(self, progress: Progress = no_progress) -> None:
        self._index = None

    def _warn_of_altered(self) -> None:
        pass


def test_what_a_copy_makes_anew_does_not_travel(folder, indexed):
    asked_for = vars(Unopened(folder)).keys() - {"_index"}
    with GulpDirectory(folder, indexed=indexed) as directory:
        whole = directory.__getstate__()
        _, (_, some) = reopening(directory, ["item1"])
    assert some.keys() == asked_for | {"_edits"}
    # Without an index the maps go along, and what belongs to them.
    assert (whole.keys() == some.keys()) == indexed
    assert sent(directory)._is_settled


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, sent])
def test_mappings_that_a_program_has_put_in_place_go_along(folder, indexed, make):
    directory = GulpDirectory(folder, indexed=indexed)
    entries = directory.merged_meta_dict
    directory.merged_meta_dict = {id_: entries[id_] for id_ in ("item1", "item2")}
    directory.chunk_lookup = {"item1": 0, "item2": 1}
    directory.merged_meta_dict["item1"]["meta_data"][0]["k"] = 1
    for other in (make(directory), make(make(directory))):
        assert list(other.merged_meta_dict) == ["item1", "item2"]
        assert (len(other), "item3" in other) == (2, False)
        assert other["item1"][1] == {"number": 1, "k": 1}


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, sent])
def test_one_mapping_alone_may_have_been_replaced(folder, indexed, make):
    directory = GulpDirectory(folder, indexed=indexed)
    directory.merged_meta_dict = dict(directory.merged_meta_dict)
    del directory.chunk_lookup["item3"]
    other = make(directory)
    assert type(other.merged_meta_dict) is dict
    assert len(other.merged_meta_dict) == 6
    assert "item3" not in other


def read_copies(thing: Any, id_: str) -> list[Any]:
    """Read by a thing, and by copies of it."""
    shallow, deep = copy.copy(thing), copy.deepcopy(thing)
    thing.close()
    copies = (thing, shallow, deep, sent(thing))
    return [[one[id_][1], one.read_clip(id_).tolist()] for one in copies]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("of", ["directory", "copy", "view", "copied view"])
def test_copies_are_made_and_read_in_worker_processes(folder, indexed, method, of):
    directory = GulpDirectory(folder, indexed=indexed)
    directory.merged_meta_dict["item2"]["meta_data"][0]["k"] = 1
    expected = [directory["item2"][1], directory.read_clip("item2").tolist()]
    thing: Any = directory.query("number >= 1") if "view" in of else directory
    thing = copy.copy(thing) if "cop" in of else thing
    directory.close()
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as processes:
        found = processes.submit(read_copies, thing, "item2").result()
    assert found == [expected] * 4


@pytest.mark.parametrize("copied", [sent, copy.deepcopy])
def test_what_is_changed_in_a_chunk_after_it_was_saved_goes_along(
    folder, indexed, copied
):
    directory = GulpDirectory(folder, indexed=indexed)
    chunk = directory.chunk_objs_lookup[0]
    edited, gone = list(chunk.meta_dict)
    with chunk.open("ab"):
        chunk.meta_dict[edited]["meta_data"][0]["saved"] = True
    chunk.meta_dict[edited]["meta_data"][0]["later"] = True
    chunk.meta_dict["put"] = chunk.meta_dict.pop(gone)
    assert copied(directory).chunk_objs_lookup[0].meta_dict == chunk.meta_dict
    chunk.meta_dict[edited] = {**chunk.meta_dict[edited], "meta_data": [{"new": 1}]}
    other = copied(directory).chunk_objs_lookup[0].meta_dict
    assert list(other) == [edited, "put"]
    assert other == chunk.meta_dict


def take_out(directory: GulpDirectory) -> None:
    """Take out a chunk that nobody has asked for, and one that was read."""
    del directory.chunk_objs_lookup[1]
    assert len(directory.chunk_objs_lookup.pop(2)["item4"][0]) == 5


def keep_others(directory: GulpDirectory) -> None:
    """Have another lookup, of the chunks that are wanted."""
    lookup = directory.chunk_objs_lookup
    directory.chunk_objs_lookup = OrderedDict({0: lookup[0]})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, sent])
@pytest.mark.parametrize("choose", [take_out, keep_others])
def test_chunks_that_are_taken_out_or_put_in_are_so_in_a_copy(
    folder, tmp_path, indexed, copied, choose
):
    make_gulp_directory(tmp_path / "twin", num_items=1, num_frames=4).close()
    with GulpDirectory(folder, indexed=indexed) as directory:
        choose(directory)
        for one in (directory, copied(directory)):
            assert len(one["item0", 1:][0]) == 4
            for id_ in ("item2", "item3", "item4"):
                with pytest.raises(KeyError, match=id_):
                    one[id_]
            assert [len(list(chunk)) for chunk in one] == [2]
        (twin,) = GulpDirectory(tmp_path / "twin").chunks()
        directory.chunk_objs_lookup[1] = twin
        directory.chunk_lookup["item0"] = 1
        other = copied(directory)
        for one in (directory, other):
            assert len(one["item0"][0]) == 4
            assert sorted(one.chunk_objs_lookup) == [0, 1]
            assert [len(list(chunk)) for chunk in one] == [2, 1]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, sent])
def test_what_is_assigned_to_chunks_is_in_a_copy(folder, tmp_path, indexed, copied):
    twin = make_gulp_directory(tmp_path / "twin", num_items=6, num_frames=5)
    twin.close()
    directory = GulpDirectory(folder, indexed=indexed)
    directory.chunk_objs_lookup[0].jpeg_decoder = len
    moved = str(tmp_path / "twin" / "data_1.gulp")
    directory.chunk_objs_lookup[1].data_file_path = moved
    vars(directory.chunk_objs_lookup[2]).update(note=["x"], verify=False)
    other = copied(directory)
    (folder / "data_1.gulp").unlink()
    for one in (directory, other):
        sizes = [len(jpeg) for jpeg in one.read_jpegs("item1")]
        assert one["item1"][0] == sizes
        assert [frames for frames, _ in one.chunk_objs_lookup[0]][1] == sizes
        assert one["item2", 0][0][0].shape == (24, 32, 3)
        last = one.chunk_objs_lookup[2]
        assert (vars(last)["note"], last.verify, last.threads) == (["x"], False, None)
    assert other.chunk_objs_lookup[1].data_file_path == moved
