"""Metadata as typed columns, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.layout import INDEX_NAME
from gulpio2.storage.index import typed
from gulpio2.storage.index.building import columns_of_map
from gulpio2.storage.index.keeping import build_index, check_index
from gulpio2.storage.index.typed import json_text, typed_columns


def columns_of(*metas: Any) -> dict[str, Any]:
    """Give the typed columns of items with this metadata."""
    meta_dict = {
        f"i{n}": {"frame_info": [], "meta_data": [] if meta is None else [meta]}
        for n, meta in enumerate(metas)
    }
    columns = typed_columns(columns_of_map(dump_gmeta(meta_dict), 0, where="map"))
    return {key: column.array for key, column in columns.items()}


def write_indexed(folder, values):
    """Write a directory of items with these values of a key, and its index."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, value in enumerate(values):
            chunk.append(f"i{number}", {"k": value}, [])
    build_index(folder)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], pa.int64()),
        ([1, None], pa.int64()),
        ([2**62, 1], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([float("inf"), float("nan")], pa.float64()),
        ([True, False], pa.bool_()),
        (["a", "ü"], pa.string()),
        ([None, None], pa.null()),
        ([[1, 2], []], pa.list_(pa.int64())),
        ([[0.5], [1]], pa.list_(pa.float64())),
        ([["a"], None], pa.list_(pa.string())),
        ([[True], [None]], pa.list_(pa.bool_())),
    ],
    ids=str,
)
def test_values_of_one_kind_are_a_column_of_it(values, kind):
    column = columns_of(*({"k": value} for value in values))["k"]
    assert column.type == kind
    np.testing.assert_equal(column.to_pylist(), values)


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [True, 1],
        [{"x": 1}, {}],
        [[1], [[2]]],
        [[1], ["a"]],
        [[1], 2],
        [2**63, 1],
        [2**60, 0.5],
        ["\ud800", "a"],
        [[{"x": 1}], []],
    ],
    ids=ascii,
)
def test_values_of_several_kinds_are_a_column_of_json(values):
    column = columns_of(*({"k": value} for value in values))["k"]
    assert column.type == pa.string()
    assert [json.loads(text) for text in column.to_pylist()] == values


def test_a_column_of_json_can_be_searched_for_other_letters_than_ascii(tmp_path):
    values: list[Any] = ["café", {"wo": "über 3 €"}, 3, "\ud800é"]
    write_indexed(tmp_path, values)
    for indexed in (False, True):
        directory = GulpDirectory(tmp_path, indexed=indexed)
        assert directory.query("k.contains('fé')").ids == ["i0"]
        assert directory.query("k.contains('über 3 €')").ids == ["i1"]
        assert [json.loads(text) for text in directory.table["k"].to_pylist()] == values
    assert check_index(tmp_path) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_a_text_that_no_json_is_cannot_be_looked_for_in_a_column_of_json(
    indexed, tmp_path
):
    write_indexed(tmp_path, ["walk", 7, None, {"x": 1}, False])
    directory = GulpDirectory(tmp_path, indexed=indexed)
    walk = """ == '"walk"'"""
    for condition, advice in (
        ("k == 'walk'", walk),
        ("'walk' == k", walk),
        ("`k` != 'walk'", walk),
        ("k in ['7', 'walk']", walk),
        ("k not in ['walk']", walk),
        ("k.startswith('wa')", """.startswith('"wa')"""),
        ("k.endswith('lk')", """.endswith('lk"')"""),
        ("k.startswith('nu')", """.startswith('"nu')"""),
        ("k.endswith('ll')", """.endswith('ll"')"""),
        ("num_frames == 0 and not (k == 'walk' or k is None)", walk),
    ):
        for asked in (directory, directory.view(["i4", "i3", "i0"])):
            with pytest.raises(ValueError, match="is a column of JSON text") as told:
                asked.query(condition)
            name = "`k`" if "`" in condition else "k"
            assert str(told.value).endswith(f"as in {name}{advice}")
    for condition, ids in (
        ("""k == '"walk"'""", ["i0"]),
        ("""k in ['"walk"', '7']""", ["i0", "i1"]),
        ("k.contains('walk')", ["i0"]),
        ("""k.startswith('"wa') or k.startswith('fal')""", ["i0", "i4"]),
        ("k.endswith('}') or k.endswith('lse')", ["i3", "i4"]),
        ("k.startswith('') and k.endswith('')", ["i0", "i1", "i3", "i4"]),
        (f"k == '{'[' * 5000 + ']' * 5000}'", []),
        ("id == 'walk'", []),
    ):
        assert directory.query(condition).ids == ids


def test_json_that_is_written_otherwise_cannot_be_looked_for_in_a_column_of_json(
    tmp_path,
):
    values = ["ü", 7, None, {"x": 1}, [1, 2], 'a"b\nc', 1e15, True]
    write_indexed(tmp_path, values)
    directory = GulpDirectory(tmp_path)
    for condition, advice in (
        ("k == '[1,2]'", "== '[1, 2]'"),
        ("k in ['7', '{\"x\":1}']", """== '{"x": 1}'"""),
        ("k not in [' 7']", "== '7'"),
        ("'1e15' != k", "== '1000000000000000.0'"),
        (r"""k == '"\\u00fc"'""", """== '"ü"'"""),
        ("k != 'null'", "is None"),
        (r"k.contains('b\nc')", r".contains('b\\nc')"),
        (r"k.startswith('\"a\tb')", r""".startswith('"a\\tb')"""),
        ("""k.contains('a"b')""", r""".contains('a\\"b')"""),
        (r"k.contains('C:\\d')", r".contains('C:\\\\d')"),
        (r"""k.startswith('"a"b')""", r""".startswith('"\\"a\\"b')"""),
        ("k.startswith('[1,2')", ".startswith('[1, 2')"),
        ("""k.contains('{"x":1')""", """.contains('{"x": 1')"""),
        ("k == 7", "== '7'"),
        ("True == k", "== 'true'"),
        ("k in [7, 8]", "== '7'"),
    ):
        with pytest.raises(ValueError, match="is a column of JSON text") as told:
            directory.query(condition)
        assert str(told.value).endswith(f"k{advice}" if "(" in advice else advice)
    for condition, ids in (
        ("k == '[1, 2]'", ["i4"]),
        ("""k in ['7', '{"x": 1}', '"ü"', 'true']""", ["i0", "i1", "i3", "i7"]),
        (r"k.contains('b\\nc')", ["i5"]),
        (r"""k.contains('a\\"b')""", ["i5"]),
        ("""k.contains('"x": ') or k.endswith('"')""", ["i0", "i3", "i5"]),
        ("k > '[1]'", ["i3", "i7"]),  # an order of texts, in which any can stand
        ("k < '[1,2]'", ["i0", "i1", "i4", "i5", "i6"]),
    ):
        assert directory.query(condition).ids == ids


def test_a_column_of_json_is_not_compared_with_one_of_texts(tmp_path):
    index_items(tmp_path, [{"k": "walk", "s": "walk", "j": 7}, {"k": 7, "s": "7"}, {}])
    for indexed in (False, True):
        directory = GulpDirectory(tmp_path, indexed=indexed)
        for condition in (
            "k == s",
            "s != k",
            "k < id",
            "`id` == k",
            "j > 6 and s == k",
        ):
            for asked in (directory, directory.view(["i1", "i0"])):
                with pytest.raises(ValueError, match="never those of the second"):
                    asked.query(condition)
        assert directory.query("k == k").ids == ["i0", "i1"]
        assert directory.query("s != id").ids == ["i0", "i1"]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_column_of_nothing_but_null_meets_no_condition(indexed, tmp_path):
    index_items(tmp_path, [{"k": None, "s": "a", "n": 1}, {"n": 2}])
    directory = GulpDirectory(tmp_path, indexed=indexed)
    for condition in (
        *("k == 'a'", "k != 1", "k in ['a']", "k in [1]", "k in []", "k", "not k"),
        *("k.startswith('a')", "not k.contains('a')", "k == k", "s == k", "n > k"),
    ):
        assert directory.query(condition).ids == []
    for condition in ("k not in ['a']", "k is None", "n == 1 or n == 2 or k"):
        assert directory.query(condition).ids == ["i0", "i1"]
    assert directory.query("s == 'a' or k.endswith('x')").ids == ["i0"]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("k == no", "no column 'no'"),
        ("no < k", "no column 'no'"),
        ("k == None", "write name is None"),
        ("k == n + 1", r"'n \+ 1' stands where a number"),
        ("len(s) > k", r"'len\(s\)' stands where a number"),
        ("k == s.t", "'s.t' stands where a number"),
        ("k == -'a'", "stands where a number"),
    ],
)
def test_a_mistake_beside_a_column_of_nothing_but_null_is_one(
    indexed, condition, told, tmp_path
):
    index_items(tmp_path, [{"k": None, "s": "a", "n": 1}])
    with pytest.raises(ValueError, match=f"^in the condition .*{told}"):
        GulpDirectory(tmp_path, indexed=indexed).query(condition)


def test_a_list_is_told_as_the_text_that_finds_it_in_a_column_of_json(tmp_path):
    write_indexed(tmp_path, [[1, 2], {}, 1])
    directory = GulpDirectory(tmp_path)
    for condition, told, id_ in (
        ("k == [1, 2]", r": lists are texts in it, as in k == '\[1, 2\]'$", "i0"),
        ("k in [[1, 2]]", r": lists are texts in it, as in k == '\[1, ", "i0"),
        ("k in [1]", ": numbers and booleans are texts in it, as in k == '1'$", "i2"),
        ("1 == k", ": numbers and booleans are texts in it, as in k == '1'$", "i2"),
    ):
        with pytest.raises(ValueError, match=told) as refused:
            directory.query(condition)
        advised = str(refused.value).rpartition("as in ")[2]
        assert directory.query(advised).ids == [id_]


def test_the_message_about_json_text_is_short(tmp_path):
    write_indexed(tmp_path, ["walk", 7])
    with pytest.raises(ValueError, match="column of JSON text") as told:
        GulpDirectory(tmp_path).query(f"k == '{'x' * 5000}'")
    assert len(str(told.value)) < 500


def test_any_text_can_be_looked_for_among_texts(tmp_path):
    write_indexed(tmp_path, ["walk", "7", '"walk"'])
    for indexed in (False, True):
        directory = GulpDirectory(tmp_path, indexed=indexed)
        assert directory.query("k == 'walk'").ids == ["i0"]
        assert directory.query("k == 'nobody'").ids == []


def test_items_without_a_key_have_null():
    columns = columns_of({"a": 1}, {}, None, {"b": {"c": 1}})
    assert columns["a"].to_pylist() == [1, None, None, None]
    assert columns["b"].to_pylist() == [None, None, None, '{"c": 1}']


def test_none_among_values_of_several_kinds_is_null(tmp_path):
    values: list[Any] = [{"x": 1}, None, "a", [None]]
    write_indexed(tmp_path, values)
    for indexed in (False, True):
        directory = GulpDirectory(tmp_path, indexed=indexed)
        column = directory.table["k"].to_pylist()
        assert column == ['{"x": 1}', None, '"a"', "[null]"]
        assert directory.query("k is None").ids == ["i1"]
    assert check_index(tmp_path) == []


@pytest.mark.parametrize("keys", [("id", "meta.id"), ("meta.id", "id")])
def test_a_key_that_stands_aside_takes_no_name_of_another(tmp_path, keys):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {key: f"value of {key}" for key in keys}, [])
    build_index(tmp_path)
    for indexed in (False, True):
        table = GulpDirectory(tmp_path, indexed=indexed).table
        assert table["id"].to_pylist() == ["a"]
        assert table["meta.id"].to_pylist() == ["value of meta.id"]
        assert table["meta.meta.id"].to_pylist() == ["value of id"]
    assert check_index(tmp_path) == []


def index_items(folder, metas):
    """Write an item without frames for each metadata, and a sound index."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, meta in enumerate(metas):
            chunk.append(f"i{number}", meta, [])
    build_index(folder)
    assert check_index(folder) == []


def test_a_key_that_is_no_text_has_no_column(tmp_path):
    metas: list[dict[str, Any]] = [
        {"\udcff.wav": 1, "a": 2},
        {"b\ud800": {"c\udcff": 3}, "a": 4},
    ]
    assert list(columns_of(*metas)) == ["a"]
    index_items(tmp_path, metas)
    directory = GulpDirectory(tmp_path, indexed=True)
    assert [directory.item(f"i{number}").meta for number in range(2)] == metas
    assert directory.query("a == 4").ids == ["i1"]


def test_many_keys_do_not_become_as_many_columns(monkeypatch):
    monkeypatch.setattr(typed, "MAX_COLUMNS", 3)
    columns = columns_of(*({f"k{n}": n, "same": n} for n in range(9)))
    assert list(columns) == ["k0", "same", "k1"]
    assert columns["same"].to_pylist() == list(range(9))


def test_items_are_taken_in_parts(monkeypatch):
    monkeypatch.setattr(typed, "_BLOCK", 4)
    columns = columns_of(*({"n": n} for n in range(11)))
    assert columns["n"].to_pylist() == list(range(11))


def test_more_text_than_32_bits_can_tell_is_in_large_columns(tmp_path, monkeypatch):
    metas: list[dict[str, Any]] = [
        {"text": "aü", "list": ["x", "y"], "boxes": [{"x": 1}], "n": 1, "some": None},
        {"text": "", "list": [], "boxes": 2, "n": 2, "some": "b"},
    ]
    monkeypatch.setattr(typed, "_BLOCK", 1)
    small = columns_of(*metas)
    monkeypatch.setattr(typed, "_MOST_TEXT", 100)
    large = columns_of(*metas)
    assert {key: column.type for key, column in large.items()} == {
        "text": pa.large_string(),
        "list": pa.large_list(pa.large_string()),
        "boxes": pa.large_string(),
        "n": pa.int64(),
        "some": pa.large_string(),
    }
    for key, column in large.items():
        column.validate(full=True)
        assert column.to_pylist() == small[key].to_pylist()

    index_items(tmp_path, metas)
    for indexed in (True, False):
        directory = GulpDirectory(tmp_path, indexed=indexed)
        assert directory.table.schema.field("text").type == pa.large_string()
        for text, ids in (
            ("text == 'aü'", ["i0"]),
            ("text in ['aü', 'b'] or some in ['b']", ["i0", "i1"]),
            ("text.contains('ü') and some is None", ["i0"]),
            ("boxes.contains('x') and n < 2.5", ["i0"]),
        ):
            assert directory.query(text).ids == ids
            assert directory.view(["i1", "i0"]).query(text).ids == ids[::-1]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), values), max_size=5))
def test_any_metadata_becomes_columns(metas):
    columns = columns_of(*metas)
    assert set(columns) == {key for meta in metas for key in meta}
    for key, column in columns.items():
        wanted = [meta.get(key) for meta in metas]
        found = column.to_pylist()
        if column.type == pa.string() and not all(
            value is None or isinstance(value, str) for value in wanted
        ):
            found = [None if text is None else json.loads(text) for text in found]
        np.testing.assert_equal(found, wanted)


def test_half_a_character_leaves_the_others_of_a_value_as_they_are():
    value = {"t": "caf\u00e9", "file": "\ud800.mp4", "more": ["\udfff\u4e2d"]}
    text = json_text(value)
    assert text is not None
    assert "caf\u00e9" in text
    assert "\\ud800.mp4" in text
    assert "\\udfff\u4e2d" in text
    assert json.loads(text) == value


@pytest.mark.parametrize("verify", ["frames", True])
def test_a_mark_of_json_text_that_is_lost_is_no_column_of_texts(
    tmp_path, caplog, verify
):
    write_indexed(tmp_path, ["walk", 7, "run"])
    path = tmp_path / INDEX_NAME
    data = bytearray(path.read_bytes())
    for at in {data.index(b"JSON text"), data.rindex(b"JSON text")}:
        data[at] ^= 1
    path.unlink()
    path.write_bytes(data)
    assert check_index(tmp_path) == ["its columns of metadata are damaged"]
    directory = GulpDirectory(tmp_path, indexed=True, verify=verify)
    with pytest.raises(ValueError, match="is a column of JSON text"):
        directory.query("k == 'walk'")
    assert directory.query("""k == '"walk"'""").ids == ["i0"]
    assert "columns of its table are damaged" in caplog.text
