"""Reading the tables that list items."""

from __future__ import annotations

import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.adapters.cells import parse_column
from gulpio2.adapters.tables import (
    Table,
    read_delimited,
    read_json_file,
    read_table,
)
from gulpio2.errors import SourceFormatError, SourceReadError


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", " 30 "], [1, -2, 30]),
        (["1", "", "3"], [1, None, 3]),
        (["1", "2.5", "1e3", ".5"], [1.0, 2.5, 1000.0, 0.5]),
        (["1.0", "inf", "-inf", ""], [1.0, math.inf, -math.inf, None]),
        (["1e400", "2"], ["1e400", "2"]),
        (["-1e400", "inf", "2"], ["-1e400", "inf", "2"]),
        (["9007199254740993", "1.5"], ["9007199254740993", "1.5"]),
        (["1234567890123456789", "nan"], ["1234567890123456789", "nan"]),
        (["9007199254740992", "1.5"], [9007199254740992.0, 1.5]),
        (["1e-400", "1.5"], ["1e-400", "1.5"]),
        (["0.0e7", "-0", "1.5"], [0.0, 0.0, 1.5]),
        (["True", "false", ""], [True, False, None]),
        (["007", "12"], ["007", "12"]),
        (["+49", "12"], ["+49", "12"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["nan", "nan"], ["nan", "nan"]),
        (["a", " 1", ""], ["a", " 1", ""]),
        (["", " "], ["", " "]),
        (["0x10", "1"], ["0x10", "1"]),
        (["1", "true"], ["1", "true"]),
        ([], []),
    ],
    ids=str,
)
def test_a_column_gets_the_type_that_all_its_cells_have(cells, expected):
    parsed = parse_column(cells)
    assert parsed == expected
    assert [type(value) for value in parsed] == [type(value) for value in expected]


@given(st.lists(st.integers()))
def test_integers_written_as_text_come_back(values):
    assert parse_column([str(value) for value in values]) == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_decimal_numbers_written_as_text_come_back(values):
    parsed = parse_column([repr(value) for value in values])
    assert parsed == values


@given(st.lists(st.text()), st.text("xyz-", min_size=1))
def test_a_column_with_one_text_is_a_column_of_texts(values, text):
    assert parse_column([*values, text]) == [*values, text]


@given(st.lists(st.text()))
def test_any_text_is_either_kept_or_becomes_a_number_or_boolean(values):
    for text, value in zip(values, parse_column(values), strict=True):
        assert value == text or value is None or not isinstance(value, str)


CONTENT = {
    "t.csv": 'id,n,note\na,1,"x, y"\nb,2,\n',
    "t.tsv": "id\tn\tnote\na\t1\tx, y\nb\t2\t\n",
    "t.json": json.dumps(
        [{"id": "a", "n": 1, "note": "x, y"}, {"id": "b", "n": 2, "note": ""}]
    ),
    "t.jsonl": '{"id": "a", "n": 1, "note": "x, y"}\n\n'
    '{"id": "b", "n": 2, "note": ""}\n',
}


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_gives_the_same_rows(tmp_path, name, compressed):
    path = tmp_path / (f"{name}.gz" if compressed else name)
    data = CONTENT[name].encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    table = read_table(path)
    assert list(table) == [
        {"id": "a", "n": 1, "note": "x, y"},
        {"id": "b", "n": 2, "note": ""},
    ]
    assert list(table[0]) == ["id", "n", "note"]


def test_a_byte_order_mark_and_windows_lines_are_no_part_of_the_table(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,n\r\na,1\r\n")
    assert list(read_table(tmp_path / "t.csv")) == [{"id": "a", "n": 1}]


def test_values_may_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text("id,n\na,1\n")
    assert read_table(tmp_path / "t.csv", parse_values=False)[0] == {
        "id": "a",
        "n": "1",
    }


def test_a_delimiter_may_be_given(tmp_path):
    (tmp_path / "t.txt").write_text("id;n\na;1\n")
    assert list(read_table(tmp_path / "t.txt", delimiter=";")) == [{"id": "a", "n": 1}]


def test_rows_of_json_may_lack_a_column_that_nobody_needs(tmp_path):
    (tmp_path / "t.json").write_text('[{"id": 1}, {"id": 2, "x": null}]')
    table = read_table(tmp_path / "t.json")
    assert list(table) == [{"id": 1}, {"id": 2, "x": None}]
    with pytest.raises(SourceReadError, match=r"t\.json: row 1 has no 'x'"):
        table.column("x")


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    (tmp_path / "t.csv").write_text("id,n\na,1\n")
    with pytest.raises(
        SourceReadError, match=r"t\.csv has no column 'path'; it has \['id', 'n'\]"
    ):
        read_table(tmp_path / "t.csv").column("path")


def test_a_table_is_a_sequence_of_fresh_rows():
    table = Table({"id": ["a", "b", "c"]}, name="t")
    table[0]["id"] = "changed"
    assert table[0] == {"id": "a"}
    assert table[-1] == {"id": "c"}
    assert table[1:] == [{"id": "b"}, {"id": "c"}]
    assert repr(table) == "Table('t', 3 rows, columns ['id'])"
    with pytest.raises(IndexError):
        table[3]


def test_columns_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="different lengths"):
        Table({"a": [1], "b": []}, name="t")


def test_a_header_without_rows_is_an_empty_table(tmp_path):
    (tmp_path / "t.csv").write_text("id,n\n")
    table = read_table(tmp_path / "t.csv")
    assert (len(table), list(table.columns)) == (0, ["id", "n"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", r"t\.csv' is empty"),
        ("t.csv", b"a,a\n1,2\n", "names a column twice: .* Rename one of them"),
        ("t.csv", b"a;b\n1,5;2\n", r"no ',' between .* Give delimiter=';'"),
        ("t.tsv", b"a,b\n1,2\n", r"Give delimiter=','"),
        ("t.csv", b"a,b\n1,2\n\n1,2,3\n", r"line 4: 3 cells for 2 columns .* Quote a"),
        ("t.csv", b"a,b\n1,2\n\n1\n", r"line 4: 1 cell for 2 columns .* Add those"),
        ("t.csv", b"a,b\n\xff,1\n", "is not UTF-8"),
        (
            "t.csv",
            b"a,b\n" + b"x" * 200_000 + b",1\n",
            "field larger.* Save it as .jsonl",
        ),
        ("t.json", b"{", r"t\.json' is no JSON"),
        ("t.json", b'{"a": 1}', "not a list of objects"),
        ("t.json", b'[{"a": 1}, 7]', "row 2 is not an object but 7"),
        ("t.jsonl", b'{"a": 1}\n{\n', "line 2, is no JSON"),
        ("t.xlsx", b"", "no ending of a table.* Rename it or save it as one of these"),
        ("t.csv.gz", b"no gzip", r"t\.csv\.gz' cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceReadError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"), [("t.json", b"[{}, {}]"), ("t.jsonl", b"{}\n{}\n")]
)
def test_rows_without_values_are_rows(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    table = read_table(tmp_path / name)
    assert (len(table), table[1]) == (2, {})
    with pytest.raises(SourceReadError, match="has no column 'path'"):
        table.column("path")


def test_a_missing_file_is_named(tmp_path):
    why = r"t\.csv' cannot be read \(No such file or directory\)\. Give"
    with pytest.raises(SourceReadError, match=why):
        read_table(tmp_path / "t.csv")
    with pytest.raises(SourceReadError, match=r"t\.json' cannot be read"):
        read_json_file(tmp_path / "t.json")


def test_rows_of_a_delimited_file_come_with_their_lines(tmp_path):
    (tmp_path / "t.csv").write_text('a;b\n\n;\n"x\ny";z\n')
    assert list(read_delimited(tmp_path / "t.csv", ";")) == [
        (1, ["a", "b"]),
        (5, ["x\ny", "z"]),
    ]


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", f'[{{"n": {LONG}}}]'),
        ("a.jsonl", f'{{"n": {LONG}}}\n'),
        ("a.json", "[" * 100_000),
        ("a.jsonl", "[" * 100_000),
    ],
)
def test_json_that_python_does_not_take_is_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceFormatError, match=f"{name}.* is no JSON"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_key_that_comes_twice_is_refused(tmp_path, name):
    row = '{"id": "a", "label": "run", "more": {"x": 1}, "label": "jump"}'
    (tmp_path / name).write_text(f"[{row}]" if name == "a.json" else f"{row}\n")
    told = f"{name}.* the key 'label' is there 2 times in one object"
    with pytest.raises(SourceFormatError, match=told):
        read_table(tmp_path / name)


def test_a_number_of_json_that_no_float_can_be_is_a_text(tmp_path):
    row = '{"id": "a", "n": 1e400, "list": [-2.5E+999, 2.5], "no": Infinity}'
    (tmp_path / "a.json").write_text(f"[{row}]")
    (tmp_path / "a.jsonl").write_text(f"{row}\n")
    for name in ("a.json", "a.jsonl"):
        (read,) = read_table(tmp_path / name)
        assert read == {
            "id": "a",
            "n": "1e400",
            "list": ["-2.5E+999", 2.5],
            "no": math.inf,
        }


def test_a_number_of_thousands_of_digits_is_a_text():
    assert parse_column([LONG, "3"]) == [LONG, "3"]
    assert parse_column(["9" * 4000, "3"]) == [int("9" * 4000), 3]
