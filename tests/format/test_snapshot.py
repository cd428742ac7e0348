"""Entries as they were, to go back to."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest

from gulpio2.format import snapshot
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.snapshot import Snapshot

METAS = [
    [{"label": "walk", "n": 1, "x": 0.5, "none": None, "yes": True}],
    [OrderedDict([("b", 1), ("a", "two")])],
    [{}],
    [],
    [{"nested": {"deep": [1, {"a": 2}]}}],
    [OrderedDict(boxes=[[1, 2], [3, 4]])],
    [{"one": 1}, {"two": 2}],
    [None],
    [{1: "a number for a key"}],
]


@pytest.mark.parametrize("metas", METAS, ids=repr)
def test_what_is_edited_comes_back_as_it_was_of_its_type(metas):
    entries = {"a": {"frame_info": [[0, 1, 4]], "meta_data": copy.deepcopy(metas)}}
    kept = Snapshot(entries)
    entry = entries["a"]
    for meta in entry["meta_data"]:
        if meta is not None:
            for value in meta.values():
                if isinstance(value, (dict, list)):
                    value.clear()
            meta["new"] = "edit"
    entry["meta_data"].append({"another": 1})
    kept.restore(entries)
    assert entry is entries["a"]
    assert entry["meta_data"] == metas
    assert [type(meta) for meta in entry["meta_data"]] == [type(m) for m in metas]


def test_no_flat_metadata_is_copied_in_depth(monkeypatch):
    copied = []

    def noted(value):
        copied.append(value)
        return copy.deepcopy(value)

    monkeypatch.setattr(snapshot, "deepcopy", noted)
    flat = {f"i{n}": {"meta_data": [OrderedDict(label=n)]} for n in range(5)}
    Snapshot({**flat, "deep": {"meta_data": [{"boxes": [1]}]}})
    assert copied == [[{"boxes": [1]}]]


def test_metadata_as_a_map_is_read_are_written_as_they_are():
    ordered = OrderedDict([("b", 1), ("a", None)])
    plain = plain_metadata(ordered, "it")
    assert type(plain) is dict
    assert list(plain.items()) == list(ordered.items())
    plain["b"] = 2
    assert ordered["b"] == 1
