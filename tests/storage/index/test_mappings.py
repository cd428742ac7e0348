"""The dictionaries of 0.0.4 over an index: like those that they stand for."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.removal import delete_items
from gulpio2.storage.index.entries import IndexedEntry
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.lazy import LazyDict
from gulpio2.testing import make_frames
from tests.storage.index.conftest import as_json, write_chunks


@pytest.fixture
def plain(folder) -> GulpDirectory:
    """Open without an index."""
    return GulpDirectory(folder, indexed=False)


@pytest.fixture
def lazy(folder) -> GulpDirectory:
    """Open with one."""
    return GulpDirectory(folder, indexed=True)


def mappings(directory: GulpDirectory) -> list[Any]:
    """Give every mapping of a directory that has plain values."""
    (first, *_) = directory.all_meta_dicts
    return [directory.merged_meta_dict, first, directory.chunk_lookup]


def test_they_are_dictionaries_and_equal_those_that_they_stand_for(lazy, plain):
    # NaN is in the metadata of one item, which equals nothing, itself included.
    for directory in (lazy, plain):
        directory.merged_meta_dict["item 0/2"]["meta_data"][0]["fps"] = 0.5
    for one, other in zip(mappings(lazy), mappings(plain), strict=True):
        assert isinstance(one, dict)
        assert one == other
        assert other == one
        assert (one != other, other != one) == (False, False)
        assert one == dict(other)
        assert dict(other) == one
        assert OrderedDict(other) == one
        assert one != {**other, "more": 1}
        assert one != {**other, "item 0/2": 7}
        assert one != {}
    assert lazy.all_meta_dicts == plain.all_meta_dicts
    assert isinstance(lazy.all_meta_dicts, list)
    assert isinstance(lazy.chunk_objs_lookup, OrderedDict)
    assert lazy.chunk_objs_lookup.keys() == plain.chunk_objs_lookup.keys()


def test_keys_come_in_order_and_every_way_of_looking_agrees(lazy, plain):
    for one, other in zip(mappings(lazy), mappings(plain), strict=True):
        assert list(one) == list(one.keys()) == list(other)
        assert list(reversed(one)) == list(reversed(other))
        assert len(one) == len(other)
        assert bool(one)
        assert [key for key, _ in one.items()] == list(other)
        assert len(one.values()) == len(other)
        assert one.keys() & {"item 0/1", "nobody"} == {"item 0/1"}
        assert sorted(one) == sorted(other)
        for key in ("nobody", "", 7, None, ("item 0/1",)):
            assert key not in one
            assert one.get(key) is None
            assert one.get(key, 3) == 3
            with pytest.raises(KeyError):
                one[key]
        with pytest.raises(TypeError, match="unhashable"):
            one[[]]


def test_json_and_copies_hold_all_of_it(lazy, plain):
    for one, other in zip(mappings(lazy), mappings(plain), strict=True):
        text = as_json(other)
        assert as_json(one) == text
        assert json.dumps(one, indent=1) == json.dumps(other, indent=1)
        copies = [
            dict(one),
            {**one},
            one.copy(),
            copy.copy(one),
            copy.deepcopy(one),
            pickle.loads(pickle.dumps(one)),
            one | {},
            {} | one,
            OrderedDict(one),
        ]
        for made in copies:
            assert not isinstance(made, LazyDict)
            assert as_json(made) == text
    assert as_json(GulpDirectory(lazy.output_dir, indexed=True).merged_meta_dict)


def test_an_entry_is_the_same_object_wherever_it_is_looked_up(lazy):
    for number, chunk in lazy.chunk_objs_lookup.items():
        assert lazy.chunk_objs_lookup[number] is chunk
        for id_, entry in chunk.meta_dict.items():
            assert lazy.merged_meta_dict[id_] is entry
            assert lazy.merged_meta_dict.get(id_) is entry
    assert [c.meta_dict for c in lazy] == lazy.all_meta_dicts
    assert lazy.all_meta_dicts is lazy.all_meta_dicts


def test_edits_stick_and_show_in_later_reads(lazy):
    meta = lazy.merged_meta_dict["item 0/1"]["meta_data"][0]
    meta["label"] = "edited"
    del meta["tags"]
    assert lazy["item 0/1"][1] == {"label": "edited", "fps": 30, "n": 1}
    assert lazy.item("item 0/1").meta == lazy["item 0/1", 0][1]
    (chunk, *_) = lazy
    assert chunk["item 0/1"][1]["label"] == "edited"
    assert lazy.all_meta_dicts[0]["item 0/1"]["meta_data"][0] is meta
    lazy["item 0/1"][1]["label"] = "a copy"
    assert lazy["item 0/1"][1]["label"] == "edited"


def test_a_part_of_an_entry_is_taken_out_as_out_of_any_mapping(lazy, plain):
    for directory in (lazy, plain):
        entry = directory.merged_meta_dict["item 0/4"]
        assert entry.pop("nothing", 1) == entry.pop("nothing", default=1) == 1
        assert entry.pop("meta_data", default=None) == [{}]
        with pytest.raises(KeyError):
            entry.pop("meta_data")


def test_spans_are_a_list_that_is_made_on_demand(lazy, plain):
    spans = lazy.merged_meta_dict["item 0/4"]["frame_info"]
    want = plain.merged_meta_dict["item 0/4"]["frame_info"]
    assert (spans == want, want == spans, spans != want) == (True, True, False)
    assert spans != want[:1]
    assert (len(spans), list(spans), spans[1:3], spans[-1]) == (
        len(want),
        want,
        want[1:3],
        want[-1],
    )
    assert repr(spans) == repr(want)
    assert spans + [[1, 2, 3]] == [*want, [1, 2, 3]]  # noqa: RUF005  # what is tested
    assert spans.index(want[2]) == 2
    assert sum([spans, spans], []) == want * 2  # noqa: RUF017  # as clients do
    assert (spans * 2, 2 * spans) == (want * 2, want * 2)
    assert (spans < want[:1], want[:1] < spans, spans <= want, spans >= spans) == (
        *(False, True),
        *(True, True),
    )
    own = spans.copy()
    own.pop()
    assert (type(own), len(spans)) == (list, len(want))
    assert copy.deepcopy(spans) == want
    assert pickle.loads(pickle.dumps(spans)) == want
    with pytest.raises(IndexError):
        spans[4]


def test_sorted_spans_are_what_is_read(lazy, plain):
    want, _ = plain["item 0/4"]
    lazy.merged_meta_dict["item 0/4"]["frame_info"].sort(reverse=True)
    frames, _ = lazy["item 0/4"]
    for frame, expected in zip(frames, want[::-1], strict=True):
        assert (frame == expected).all()


def test_views_of_keys_and_new_dictionaries_are_those_of_a_dictionary(lazy, plain):
    for one, other in zip(mappings(lazy), mappings(plain), strict=True):
        for view in ("keys", "values", "items"):
            looked_at = getattr(one, view)().mapping
            assert looked_at == one
            with pytest.raises(TypeError):
                looked_at["new"] = 1
        assert one.fromkeys("ab", 3) == other.fromkeys("ab", 3) == {"a": 3, "b": 3}


def test_changed_spans_are_what_is_read(lazy, plain):
    want, _ = plain["item 0/4", [3, 1]]
    spans = lazy.merged_meta_dict["item 0/4"]["frame_info"]
    del spans[0]
    spans[0], spans[1] = spans[2], spans[0]
    spans.pop()
    frames, _ = lazy["item 0/4"]
    assert len(frames) == lazy.item("item 0/4").num_frames == 2
    for frame, expected in zip(frames, want, strict=True):
        assert (frame == expected).all()


def test_a_triplet_that_is_changed_is_what_is_read(lazy, plain):
    want, _ = plain["item 0/4", [2, 1, 3]]
    spans = lazy.merged_meta_dict["item 0/4"]["frame_info"]
    kept = spans[0]
    for at, value in enumerate(spans[2]):  # one by one: the list is kept at the first
        kept[at] = value
    for triplet in spans[2:3]:
        triplet[:] = spans[3]
    del spans[3]
    frames, _ = lazy["item 0/4"]
    for frame, expected in zip(frames, want, strict=True):
        assert (frame == expected).all()
    again = pickle.loads(pickle.dumps(lazy)).merged_meta_dict["item 0/4"]["frame_info"]
    assert list(again) == list(spans)
    assert json.loads(json.dumps(list(spans))) == list(spans)


def test_a_triplet_that_is_in_its_list_no_more_changes_nothing_there(lazy, plain):
    for directory in (lazy, plain):
        spans = directory.merged_meta_dict["item 0/4"]["frame_info"]
        first, last = spans[0], spans[-1]
        spans[0] = [8, 0, 8]
        first[0] = -1
        del spans[2:]
        last[0] = -1
    assert spans[0] == [8, 0, 8]
    assert lazy.merged_meta_dict["item 0/4"]["frame_info"] == spans


def test_a_triplet_is_a_list_of_its_own_where_it_is_copied(lazy, plain):
    spans = lazy.merged_meta_dict["item 0/4"]["frame_info"]
    want = plain.merged_meta_dict["item 0/4"]["frame_info"]
    (copied, pickled) = copy.deepcopy(spans[0]), pickle.loads(pickle.dumps(spans[0]))
    assert copied == pickled == want[0]
    assert (type(copied), type(pickled)) == (list, list)
    copied[0] = pickled[0] = -1
    assert spans == want


def test_assigned_and_deleted_keys_are_those_of_a_dictionary(lazy, plain):
    for one, other in zip(mappings(lazy), mappings(plain), strict=True):
        for mapping in (one, other):
            mapping["new"] = 1
            mapping["item 0/0"] = 2
            del mapping["item 0/1"]
            mapping.update({"newer": 3}, newest=4)
            assert mapping.pop("newer") == 3
            assert mapping.pop("nobody", None) is None
            assert mapping.setdefault("new", 9) == 1
            assert mapping.setdefault("other", 9) == 9
            assert mapping.popitem() == ("other", 9)
            mapping |= {"item 0/0": 5}
            with pytest.raises(KeyError):
                mapping.pop("item 0/1")
            with pytest.raises(KeyError):
                del mapping["item 0/1"]
            assert mapping.get("item 0/1") is None
        assert list(one) == list(other)
        assert len(one) == len(other)
        assert one["item 0/0"] == 5
    assert isinstance(lazy.chunk_lookup, LazyDict)


def test_an_ordinary_dictionary_may_be_put_in_the_place_of_one(lazy, plain):
    want, _ = plain["item 0/4"]
    for name in ("chunk_lookup", "chunk_objs_lookup"):
        setattr(lazy, name, OrderedDict(getattr(lazy, name)))
        np.testing.assert_array_equal(lazy.read_clip("item 0/4"), want)
        np.testing.assert_array_equal(lazy.read_clips([("item 0/4", None)])[0], want)


def test_an_entry_assigned_to_a_chunk_is_what_is_read(lazy):
    (chunk, *_) = lazy
    chunk.meta_dict["mine"] = copy.deepcopy(chunk.meta_dict["item 0/1"])
    chunk.meta_dict["mine"]["meta_data"] = [{"of": "mine"}]
    assert chunk["mine"][1] == {"of": "mine"}
    assert "mine" in chunk
    del chunk.meta_dict["item 0/1"]
    with pytest.raises(KeyError):
        chunk["item 0/1"]


def test_changes_travel_with_a_pickled_directory_and_nothing_else_does(lazy):
    size = len(pickle.dumps(lazy))
    assert size < 1000
    assert len(dict(lazy.merged_meta_dict)) == 5
    for entry in lazy.merged_meta_dict.values():
        assert entry["meta_data"] is not None
    assert len(pickle.dumps(lazy)) == size, "looking is no change"
    lazy.merged_meta_dict["item 0/3"]["meta_data"][0]["x"] = float("nan")
    lazy.merged_meta_dict["item 0/4"]["frame_info"].pop()
    del lazy.merged_meta_dict["item 0/1"]
    del lazy.all_meta_dicts[1]["item 0/2"]
    lazy.chunk_lookup["more"] = 1
    clone = pickle.loads(pickle.dumps(lazy))
    assert "x" in clone["item 0/3"][1]
    assert clone.item("item 0/4").num_frames == 3
    assert "item 0/1" not in clone.merged_meta_dict
    assert "item 0/2" not in clone.chunk_objs_lookup[1].meta_dict
    assert clone.chunk_lookup["more"] == 1
    assert (
        clone.merged_meta_dict["item 0/3"]
        is (clone.chunk_objs_lookup[1].meta_dict["item 0/3"])
    )
    assert len(pickle.dumps(lazy)) < size + 2000


@pytest.mark.parametrize(
    ("here", "there"),
    [(["item 0/0"], ["item 0/0"]), (["item 0/0"], ["item 0/1"]),
     (["item 0/0", "item 0/1"], ["item 0/1", "item 0/2"])],
    ids=["the same", "another", "some the same"],
)  # fmt: skip
def test_what_is_deleted_in_memory_and_on_the_disk_is_counted_once(
    folder, lazy, here, there
):
    left = [id_ for id_ in lazy.chunk_lookup if id_ not in {*here, *there}]
    in_first = [id_ for id_ in lazy.all_meta_dicts[0] if id_ in left]
    for id_ in here:
        for mapping in mappings(lazy):
            del mapping[id_]
    delete_items(folder, there)
    build_index(folder)
    lazy.close()  # what is asked for now is loaded again
    for mapping, ids in zip(mappings(lazy), (left, in_first, left), strict=True):
        assert (len(mapping), list(mapping)) == (len(ids), ids)
        assert [id_ for id_ in (*here, *there) if id_ in mapping] == []
        mapping[there[0]] = 1
        assert mapping.pop(there[0]) == 1
        assert len(mapping) == len(ids)
    assert len(lazy) == len(left)
    copied = pickle.loads(pickle.dumps(lazy))
    assert (len(copied), list(copied.chunk_lookup)) == (len(left), left)


def test_what_is_assigned_in_memory_meets_what_changes_on_the_disk(folder, lazy):
    lookup = lazy.chunk_lookup
    lookup["item 0/1"] = 8
    lookup["more"] = 9
    delete_items(folder, ["item 0/1"])
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("more", {}, make_frames(1, 16, 24))
    build_index(folder)
    lazy.close()
    ids = list(GulpDirectory(folder).chunk_lookup)
    assert "more" in ids
    assert sorted(lookup) == sorted(ids)
    assert len(lookup) == len(ids)
    assert lookup.get("item 0/1") is None
    assert lookup["more"] == 9
    del lookup["more"]
    assert "more" not in lookup
    assert len(lookup) == len(list(lookup)) == len(ids) - 1


def test_a_repr_is_short(lazy):
    assert repr(lazy.merged_meta_dict) == (
        "<Entries of 5: 'item 0/0', 'item 0/1', 'item 0/2', ...>"
    )
    assert repr(lazy.chunk_objs_lookup).startswith("<ChunkObjects of 3: 0, 1, 2>")


KEYS = st.sampled_from(["item 0/0", "item 0/1", "item 0/4", "a", "b"])


class LikeADictionary(RuleBasedStateMachine):
    """Whatever is done to a mapping over an index is done to a dictionary as well."""

    def __init__(self, folder):
        super().__init__()
        self.one = GulpDirectory(folder, indexed=True).chunk_lookup
        self.other = dict(GulpDirectory(folder, indexed=False).chunk_lookup)

    @rule(key=KEYS, value=st.integers())
    def assign(self, key, value):
        self.one[key] = self.other[key] = value

    @rule(key=KEYS)
    def delete(self, key):
        for mapping in (self.one, self.other):
            if key in self.other or key in mapping:
                mapping.pop(key, None)

    @rule()
    def pop_last(self):
        if self.other:
            assert self.one.popitem() == self.other.popitem()

    @rule()
    def clear(self):
        self.one.clear()
        self.other.clear()

    @rule(key=KEYS, value=st.integers())
    def default(self, key, value):
        assert self.one.setdefault(key, value) == self.other.setdefault(key, value)

    @invariant()
    def they_are_the_same(self):
        assert self.one == self.other
        assert len(self.one) == len(self.other)
        assert set(self.one) == set(self.other)
        assert json.dumps(self.one, sort_keys=True) == json.dumps(
            self.other, sort_keys=True
        )


def test_whatever_is_done_a_mapping_stays_like_a_dictionary(tmp_path):
    folder = write_chunks(tmp_path / "gulped")
    run_state_machine_as_test(
        lambda: LikeADictionary(folder),  # type: ignore[arg-type]  # any maker
        settings=settings(max_examples=20, stateful_step_count=15),
    )


@pytest.mark.parametrize("where", ["merged", "chunk"])
def test_an_entry_that_was_emptied_is_read_as_it_is(folder, where):
    for indexed in (True, False):
        directory = GulpDirectory(folder, indexed=indexed)
        number = directory.chunk_lookup["item 0/1"]
        mapping = directory.merged_meta_dict
        if where == "chunk":
            mapping = directory.chunk_objs_lookup[number].meta_dict
        mapping["item 0/1"].clear()
        with pytest.raises(KeyError, match="frame_info"):
            directory["item 0/1"]


@pytest.mark.parametrize("way", ["clear", "delete"])
def test_what_is_deleted_is_not_made_for_it(lazy, way):
    def made() -> int:
        # By its type: torch has objects that warn who asks them what they are.
        return sum(type(each) is IndexedEntry for each in gc.get_objects())

    before = made()
    for mapping in mappings(lazy):
        if way == "clear":
            mapping.clear()
        else:
            for key in list(mapping):
                del mapping[key]
        assert (len(mapping), list(mapping), made()) == (0, [], before)


@pytest.mark.parametrize("travels", [False, True])
def test_what_was_deleted_comes_back_only_where_the_disk_has_changed(folder, travels):
    lazy = GulpDirectory(folder, indexed=True)
    lazy.all_meta_dicts[0].clear()
    other = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with other.open("ab"):
        other.meta_dict["item 0/1"]["meta_data"][0]["label"] = "changed"
    build_index(folder)
    if travels:
        lazy = pickle.loads(pickle.dumps(lazy))
    lazy.close()  # what is asked for now is loaded again
    chunk = lazy.chunk_objs_lookup[0]
    with chunk.open("ab"):
        pass
    assert list(chunk.meta_dict) == ["item 0/1"]
    assert GulpDirectory(folder)["item 0/1"][1]["label"] == "changed"
    assert "item 0/0" not in GulpDirectory(folder)


@pytest.mark.parametrize("where", ["merged", "chunk"])
@pytest.mark.parametrize("way", ["assigned", "updated"])
def test_an_entry_that_is_assigned_to_where_it_was_is_no_change(
    folder, lazy, where, way
):
    size = len(pickle.dumps(lazy))
    mapping = lazy.merged_meta_dict if where == "merged" else lazy.all_meta_dicts[0]
    if way == "updated":
        mapping.update(mapping)
    else:
        for key in mapping:
            mapping[key] = mapping[key]
    assert len(pickle.dumps(lazy)) == size
    copied = pickle.dumps(lazy)
    other = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with other.open("ab"):
        other.meta_dict["item 0/1"]["meta_data"][0]["label"] = "of the disk"
    clone = pickle.loads(copied)
    for entries in (clone.merged_meta_dict, clone.all_meta_dicts[0]):
        assert entries["item 0/1"]["meta_data"][0]["label"] == "of the disk"
    assert clone["item 0/1"][1]["label"] == "of the disk"
    # One that was edited in place is carried as it is, once.
    mapping["item 0/0"]["meta_data"][0]["label"] = "edited"
    mapping["item 0/0"] = mapping["item 0/0"]
    clone = pickle.loads(pickle.dumps(lazy))
    assert clone["item 0/0"][1]["label"] == "edited"
    # And an entry that was put back in the place of another is.
    kept = mapping["item 0/1"]
    mapping["item 0/1"] = {"frame_info": [], "meta_data": [{}]}
    mapping["item 0/1"] = kept
    assert mapping["item 0/1"] is kept
    del mapping["item 0/1"]
    mapping["item 0/1"] = kept
    assert list(mapping)[-1] == "item 0/1"
