"""Maps that a serializer of a client writes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import StorageError
from gulpio2.removal import delete_items
from gulpio2.serializers import (
    AbstractSerializer,
    JSONSerializer,
    json_serializer,
    pickle_serializer,
)
from tests.chunks import JPEGS, content, label, labels, new_chunk, problems, write

LEFT = "meta_0.gmeta.0123456789ab.partial"


class ByName(AbstractSerializer):
    """A serializer of a client that looks at the name, and at what is beside it."""

    def load(self, file_name: Any) -> Any:
        assert Path(file_name).name == "meta_0.gmeta"
        return JSONSerializer().load(file_name)

    def dump(self, thing: Any, file_name: Any) -> None:
        path = Path(file_name)
        assert path.name == "meta_0.gmeta"
        assert not list(path.parent.iterdir())
        path.with_suffix(".tmp").write_text(json.dumps(thing))
        path.with_suffix(".tmp").rename(path)
        path.with_suffix(".log").touch()


def test_a_serializer_of_ones_own_is_given_the_name_of_the_map(tmp_path):
    for flag, id_ in (("wb", "a"), ("ab", "b")):
        chunk = new_chunk(tmp_path, serializer=ByName())
        with chunk.open(flag):
            chunk.append(id_, {}, JPEGS[:1])
            chunk.flush()
    write(tmp_path, ("c", {}, JPEGS[:1]), flag="ab")  # the map is another one now
    with chunk.open("ab"):
        chunk.append("d", {}, [])
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b", "c", "d"]
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]


def test_a_map_that_a_killed_serializer_was_writing_is_a_leftover(tmp_path):
    write(tmp_path, ("a", {}, JPEGS[:1]), ("b", {}, JPEGS[:1]))
    (tmp_path / LEFT).mkdir()
    (tmp_path / LEFT / "meta_0.gmeta").write_text("half")
    assert problems(tmp_path) == ["partial-file"]
    write(tmp_path, ("c", {}, JPEGS[:1]), flag="ab")
    delete_items(tmp_path, ["b"])
    assert sorted(content(tmp_path)) == ["data_0.gulp", "deleted.json", "meta_0.gmeta"]


def test_a_map_may_have_the_name_of_its_data_file_and_more(tmp_path):
    (tmp_path / "a.map.0123456789ab.partial").mkdir()
    chunk = GulpChunk(tmp_path / "a", tmp_path / "a.map")
    with chunk.open("wb"):
        chunk.append("x", {}, JPEGS[:1])
    assert chunk.read_jpegs("x") == JPEGS[:1]


def dump(thing: Any, file_name: Any) -> None:
    """Write JSON in lines."""
    Path(file_name).write_text(json.dumps(thing, indent=1))


class Static:
    """A serializer of a client that is a class."""

    load = staticmethod(JSONSerializer().load)
    dump = staticmethod(dump)


@pytest.mark.parametrize(
    "serializer",
    [Static(), Static, SimpleNamespace(load=JSONSerializer().load, dump=dump)],
    ids=["static", "class", "namespace"],
)
def test_a_serializer_may_be_anything_that_has_both_functions(tmp_path, serializer):
    for flag, id_ in (("wb", "a"), ("ab", "b")):
        chunk = new_chunk(tmp_path, serializer=serializer)
        with chunk.open(flag):
            chunk.append(id_, {}, JPEGS[:1])
        assert (tmp_path / "meta_0.gmeta").read_text().startswith("{\n")
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b"]


def test_a_serializer_that_writes_nothing_is_named(tmp_path):
    before = content(tmp_path)
    chunk = new_chunk(tmp_path, serializer=Mock(name="mine"))
    message = r"Mock name='mine'.* has written no map: .* a file meta_0\.gmeta"
    with pytest.raises(StorageError, match=message), chunk.open("wb"):
        chunk.append("a", {}, JPEGS[:1])
    assert content(tmp_path) == before


@pytest.mark.parametrize("indexed", [False, True])
def test_an_assigned_serializer_writes_the_whole_map(tmp_path, indexed):
    write(tmp_path, *((id_, {"label": "old"}, JPEGS[:2]) for id_ in "abc"))
    with GulpDirectory(tmp_path, indexed=indexed) as directory:
        chunk = directory.chunk_objs_lookup[0]
        label(chunk.meta_dict, "a")
        del chunk.meta_dict["b"]
        chunk.serializer = pickle_serializer
        for id_ in ("d", "e"):
            with chunk.open("ab"):
                chunk.append(id_, {"s": {1}}, JPEGS[2:3])
    again = new_chunk(tmp_path, serializer=pickle_serializer, verify=True)
    assert list(again.meta_dict) == ["a", "c", "d", "e"]
    assert again["a", []][1] == {"label": "new"}
    assert again.read_jpegs("e") == JPEGS[2:3]

    again.serializer = json_serializer
    for id_ in "de":
        del again.meta_dict[id_]
    with again.open("ab"):
        again.append("f", {}, [])
    assert labels(tmp_path) == {"a": "new", "c": "old", "f": None}
    assert new_chunk(tmp_path, verify=True).read_jpegs("c") == JPEGS[:2]


@pytest.mark.parametrize("assigned", [None, json_serializer])
@pytest.mark.parametrize("grown", [False, True])
def test_a_map_of_ones_own_may_have_been_moved(tmp_path, grown, assigned):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    chunk = new_chunk(old, serializer=pickle_serializer)
    with chunk.open("wb"):
        chunk.append("a", {}, JPEGS[:1])
    old.rename(new)
    if grown:
        other = new_chunk(new, serializer=pickle_serializer)
        with other.open("ab"):
            other.append("other", {}, [])
    chunk.data_file_path = new / "data_0.gulp"
    chunk.meta_file_path = new / "meta_0.gmeta"
    chunk.serializer = assigned or pickle_serializer
    with chunk.open("ab"):
        chunk.append("b", {}, JPEGS[:1])
    again = new_chunk(new, serializer=chunk.serializer, verify=True)
    assert set(again.meta_dict) == {"a", "b"} | ({"other"} if grown else set())
    assert not old.exists()


@pytest.mark.parametrize("inside", [False, True])
def test_a_serializer_may_be_assigned_with_another_path(tmp_path, inside):
    chunk = write(tmp_path, ("a", {}, JPEGS[:1]))
    before = content(tmp_path)["meta_0.gmeta"]
    new = {
        "serializer": pickle_serializer,
        "meta_file_path": str(tmp_path / "map.pickle"),
    }
    if not inside:
        vars(chunk).update(new)
    with chunk.open("ab"):
        chunk.append("b", {}, JPEGS[1:2])
        vars(chunk).update(new)
    assert list(pickle_serializer.load(tmp_path / "map.pickle")) == ["a", "b"]
    assert content(tmp_path)["meta_0.gmeta"] == before
    assert chunk.read_jpegs("b") == JPEGS[1:2]


def test_what_cannot_be_pickled_leaves_the_file_as_it_is(tmp_path):
    path = tmp_path / "a.pickle"
    pickle_serializer.dump({"a": 1}, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle_serializer.dump({"a": lambda: 0}, path)
    assert pickle_serializer.load(path) == {"a": 1}


def test_none_is_json_and_the_decoder_of_the_package(tmp_path):
    paths = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"
    chunk = GulpChunk(*paths, None, None)
    with chunk.open("wb"):
        chunk.append("a", {"label": 1}, JPEGS)
    assert chunk.serializer is json_serializer
    (first, *_), meta = GulpDirectory(tmp_path, None)["a"]
    assert (first.ndim, meta) == (3, {"label": 1})


@pytest.mark.parametrize("name", ["serializer", "jpeg_decoder"])
def test_what_does_not_read_is_refused_where_it_is_given(name, tmp_path):
    paths = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"
    wrong: dict[str, Any] = {name: 3}
    with pytest.raises(TypeError, match=f"{name} is 3, expected"):
        GulpChunk(*paths, **wrong)
    if name == "jpeg_decoder":
        with pytest.raises(TypeError, match=f"{name} is 3, expected"):
            GulpDirectory(tmp_path, **wrong)
