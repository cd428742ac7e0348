"""Conditions are parsed and never run, and mean what they say."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.query import parse_condition, select_rows
from gulpio2.storage.index.plain_names import with_plain_names

ITEMS: list[dict[str, Any]] = [
    {"label": "waving", "n": 3, "fps": 25.0, "ok": True, "my key": "a", "x": None},
    {"label": "jump", "n": 16, "fps": 30.0, "ok": False, "my key": "b", "x": 1},
    {"label": "waving", "n": 40, "fps": None, "ok": None, "my key": "c", "x": 2},
    {"label": None, "n": -2, "fps": 12.5, "ok": True, "my key": "and", "x": 3},
]
TABLE = pa.Table.from_pylist(ITEMS)


def rows(condition: Any) -> list[int]:
    """Give the rows that meet a condition."""
    return list(select_rows(TABLE, condition))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label == 'waving' and n >= 16", [2]),
        ("label == 'waving' or n == 16", [0, 1, 2]),
        ("n > 3", [1, 2]),
        ("n < 3", [3]),
        ("n <= 3", [0, 3]),
        ("n != 3", [1, 2, 3]),
        ("3 < n <= 40", [1, 2]),
        ("16 == n", [1]),
        ("n == -2", [3]),
        ("n in [3, 40]", [0, 2]),
        ("n not in (3, 40)", [1, 3]),
        ("label in {'jump'}", [1]),
        # Null meets no comparison, and is in no list; docs/reading.md says so.
        ("label != 'jump'", [0, 2]),
        ("not label == 'jump'", [0, 2]),
        ("not label.startswith('j')", [0, 2]),
        ("label not in ['jump']", [0, 2, 3]),
        ("not label in ['jump']", [0, 2, 3]),
        ("label not in ['jump'] and label is not None", [0, 2]),
        ("label is None", [3]),
        ("label is not None", [0, 1, 2]),
        ("not n == 3", [1, 2, 3]),
        ("not (n == 3 or n == 16)", [2, 3]),
        ("ok", [0, 3]),
        ("not ok", [1]),
        ("ok == True", [0, 3]),
        ("fps > 20", [0, 1]),
        ("fps == 25", [0]),
        ("x == n", []),
        ("label.startswith('wav')", [0, 2]),
        ("label.endswith('mp')", [1]),
        ("label.contains('vi') and n > 3", [2]),
        ("`my key` == 'c'", [2]),
        ("`my key` == 'and' and n < 0", [3]),
        ("  n == 3\n", [0]),
        ("n == 3 and n == 4 or n == 16", [1]),
    ],
)
def test_a_text_selects_what_it_says(text, expected):
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be parsed"),
        ("n ==", "cannot be parsed"),
        ("label == '''a\r\nb'''", "a carriage return is in it: write it as"),
        ("label == '\udcff'", r": '\\udcff' is half a character, .* \\\\udcff$"),
        (r"label in ['a', '\ud83d']", r": '\\ud83d' is half a character, as bytes"),
        (r"label.contains('\ud83d')", r": '\\ud83d' is half a character, as bytes"),
        ("n = 3", "cannot be parsed: .*; equal is =="),
        ("label == walk", "no column 'walk'; there are .* stands in quotes: 'walk'"),
        ("'label' != 'x'", "'label' is a text, .* without quotes: label, n, "),
        ("'q' == 'label' or n == 3", "'q' is a text"),
        ("3 == 'label'", "'label' is a text"),
        ("'n' >= 3", "'n' is a text, .* without quotes: label, n, "),
        ("'label' in ['x']", "'label' is a text"),
        ("'label' is not None", "'label' is a text"),
        ("'label'.startswith('w')", "'label' is a text"),
        ("import os", "cannot be parsed"),
        ("n == 2026-05-01", r"stands in quotes, as '2026-05-01'\."),
        ("n == 007", r"stands in quotes, as '007'\."),
        ("label == 2026/05/01", r"stands in quotes, as '2026/05/01'\."),
        ("label == 01.05.2026", r"stands in quotes, as '01\.05\.2026'\."),
        ("label in [10:30, 05:30]", r"stands in quotes, as '10:30'\."),
        ("label == 00a7", r"stands in quotes, as '00a7'\."),
        ("n == 00 or fps == 1e-05 or n = 3", "invalid syntax; equal is =="),
        ("`my 007` == 0.05 and n = 3", "invalid syntax; equal is =="),
        ("n == -01", r"for octal integers\. Write"),
        ("n == 1" + "-1" * 100_000, "cannot be parsed"),
        ("label >= 2026-10-12", "stands in quotes, as '2026-10-12'$"),
        ("label in ['x', 2026/10/12]", "stands in quotes, as '2026/10/12'$"),
        ("(" * 300 + "n" + ")" * 300, "cannot be parsed"),
        ("ok == 9223372036854775808", "too large"),
        ("nothing == 3", "no column 'nothing'; there are label, n, fps"),
        ("`no such` == 3", "no column 'no such'"),
        ("n + 1 == 4", "'n \\+ 1' stands where a number, .* of them is needed$"),
        ("x.kind == 1", r"'x.kind' stands .* needed. Objects are columns of JSON text"),
        ("x['a']['b'] == 1", r"""JSON text: x.contains\('"b": "x"'\) where b is a"""),
        ("no.kind == 1", r"'no.kind' stands where a number, .* of them is needed$"),
        ("x[0] == 1", r"'x\[0\]' stands where a number, .* of them is needed$"),
        ("x[n] == 1", r"'x\[n\]' stands where a number, .* of them is needed$"),
        ("n == +3", r"'\+3' stands where a number, .* of them is needed$"),
        ("n == ~3", "'~3' stands where a number, .* of them is needed$"),
        ("__import__('os').system('true')", "no condition that is understood"),
        ("label.upper() == 'X'", "'label.upper\\(\\)' stands where"),
        ("label.__class__", "no condition that is understood"),
        ("(lambda: True)()", "no condition that is understood"),
        ("[n for n in [1]]", "no condition that is understood"),
        ("n if ok else n", "no condition that is understood"),
        ("(x := 3) == 3", "stands where"),
        ("f'{n}' == '3'", "stands where"),
        ("n == b'3'", "stands where a number, a string"),
        ("n == 3j", "stands where a number, a string"),
        ("n == ...", "stands where a number, a string"),
        ("n is 3", "'3' stands where None is needed"),
        ("n == None", "null is compared with nothing: write name is None"),
        ("n in [3, None]", "null is compared with nothing: write name is None"),
        ("ok == true", "no column 'true'; .* It is written True"),
        ("label == NULL", "no column 'NULL'; .* It is written None"),
        ("n in 3", "'3' stands where a list .or name.contains.'x'.. is needed"),
        ("n in label", "stands where a number"),
        ("label.startswith(n)", "stands where"),
        ("label.startswith('a', 'b')", "no condition that is understood"),
        ("label.startswith(prefix='a')", "no condition that is understood"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        rows(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n == 'x'", "in n == 'x', n is a column of type int64 and 'x' is a string"),
        (
            "n > 1 and label > 3.5",
            "in label > 3.5, label is a column of type string and 3.5 is a number",
        ),
        (
            "1 < n < `my key`",
            "in n < `my key`, n is a column of type int64 and `my key` is a column of "
            "type string",
        ),
        (
            "n == True",
            "in n == True, n is a column of type int64 and True is a boolean",
        ),
        (
            "n in ['a', 'b']",
            "in n in ['a', 'b'], n is a column of type int64 and ['a', 'b'] is a list "
            "that holds a string",
        ),
        (
            "n not in ['3', '4']",
            "in n not in ['3', '4'], n is a column of type int64 and ['3', '4'] is a "
            "list that holds a string",
        ),
        (
            "n in [True]",
            "in n in [True], n is a column of type int64 and [True] is a list that "
            "holds a boolean",
        ),
        (
            "ok in [0.5]",
            "in ok in [0.5], ok is a column of type bool and [0.5] is a list that "
            "holds a number",
        ),
        (
            "ok in ['1']",
            "in ok in ['1'], ok is a column of type bool and ['1'] is a list that "
            "holds a string",
        ),
        (
            "label == [-1]",
            "in label == [-1], label is a column of type string and [-1] is a list "
            "that holds a number",
        ),
        (
            "label in {['a']}",
            "in label in {['a']}, label is a column of type string and {['a']} is a "
            "list that holds a list that holds a string",
        ),
        ("n", "n is a column of type int64, and no condition"),
        ("ok and not label", "label is a column of type string, and no condition"),
        (
            "n.startswith('3')",
            "in n.startswith('3'), n is a column of type int64, and not of strings",
        ),
    ],
)
def test_what_does_not_fit_the_columns_is_named_with_their_types(text, told):
    with pytest.raises(ValueError, match="does not fit the columns") as caught:
        rows(text)
    assert str(caught.value) == f"the condition does not fit the columns: {told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "n in [1, 'a']",
            "[1, 'a'] is a list that holds a number and a string; its values must be "
            "of one type",
        ),
        (
            "label not in ('a', True)",
            "('a', True) is a list that holds a boolean and a string; its values must "
            "be of one type",
        ),
        (
            "label in {['a'], 1}",
            "{['a'], 1} is a list that holds a list that holds a string and a number; "
            "its values must be of one type",
        ),
        (
            "label > ['a', 1]",
            "['a', 1] is a list that holds a number and a string; its values must be "
            "of one type",
        ),
        (
            f"label == {10**23}",
            f"{10**23} is a number, too large for a column that is not of numbers",
        ),
        (
            f"label in [{10**23}]",
            f"[{10**23}] is a list that holds a number, too large for a column that is "
            "not of numbers",
        ),
    ],
)
def test_a_value_that_arrow_does_not_take_is_told_in_words_of_ours(text, told):
    with pytest.raises(ValueError, match="in the condition") as caught:
        rows(text)
    assert str(caught.value) == f"in the condition {text!r}: {told}"


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_a_value_error(text):
    try:
        found = rows(text)
    except ValueError:
        return
    assert set(found) <= {0, 1, 2, 3}


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_a_condition_means_what_it_means_in_python(low, high):
    text = f"{low} <= n < {high} or not n != {high}"
    expected = [k for k, item in enumerate(ITEMS) if low <= item["n"] < high
                or item["n"] == high]  # fmt: skip
    assert rows(text) == expected


def test_an_arrow_expression_is_taken_as_it_is():
    assert rows((pc.field("n") > 3) & pc.field("label").is_valid()) == [1, 2]
    with pytest.raises(ValueError, match="does not fit the columns"):
        rows(pc.field("nothing") == 3)


@pytest.mark.parametrize(
    "mask",
    [
        [True, False, True, False],
        np.array([True, False, True, False]),
        pa.array([True, False, True, None]),
        pa.chunked_array([[True, False], [True, None]]),
        np.array([True, None, True, False], object),
    ],
    ids=["list", "numpy", "arrow", "chunked", "objects"],
)
def test_a_mask_has_a_value_per_item(mask):
    assert rows(mask) == [0, 2]


def test_a_mask_of_pandas_is_one():
    pandas = pytest.importorskip("pandas")
    assert rows(pandas.Series([True, False, True, False])) == [0, 2]
    for dtype in ("boolean", object):
        assert rows(pandas.Series([True, pandas.NA, True, False], dtype=dtype)) == [
            0,
            2,
        ]


def test_a_mask_of_pandas_in_another_order_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ITEMS).sort_values("n")
    for mask in (frame["n"] > 3, frame.set_index("my key")["n"] > 3):
        with pytest.raises(
            ValueError, match=r"order of the directory, or its \.to_numpy"
        ):
            rows(mask)
    assert rows((frame["n"].sort_index() > 3).to_numpy()) == [1, 2]


def test_a_mask_of_objects_is_of_booleans():
    assert rows(np.array([np.True_, None, True, np.False_], object)) == [0, 2]
    for value in (1, "a", float("nan"), [True]):
        mask = np.array([True, None, True, None], object)
        mask[1] = value
        with pytest.raises(TypeError, match="boolean mask with one value per item"):
            rows(mask)
    with pytest.raises(TypeError, match="cannot select items by None"):
        rows(None)
    with pytest.raises(TypeError, match=r"cannot select items by \[\[True\], \[Tr"):
        rows([[True], [True, False]])


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_ids_are_refused_shortly_and_with_what_takes_them(make):
    ids = make([f"item{number}" for number in range(100_000)])
    with pytest.raises(TypeError, match=r"(?s)item1.* view\(ids\) takes ids") as caught:
        rows(ids)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label == 'a `b` c'", [0]),
        ('label == "a `b` c"', [0]),
        ("label in ['`', 'x']", [1]),
        ("label == '`' or `my key` == 3", [1, 2]),
        ("label.contains('`b`')", [0, 3]),
        (r"label == 'it\'s `b`'", [3]),
        ("`it's` == 4", [3]),
        ("_quoted_0_ == 1 and `my key` == 1", [0]),
        ("label == '''a `b` c'''", [0]),
    ],
)
def test_a_backtick_in_a_string_is_a_backtick(text, expected):
    names = {"my key": [1, 2, 3, 4], "it's": [1, 2, 3, 4], "_quoted_0_": [1, 0, 0, 0]}
    labels = ["a `b` c", "`", "b", "it's `b`"]
    table = pa.table({"label": labels, **names})
    assert list(select_rows(table, text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n > 2.5", [0, 1, 2]),
        ("n > 16777216.0", [1, 2]),
        ("n == 16777217.0", [1]),
        ("2.5 < n < 2e7", [0, 1]),
        ("n in [3, 2.5]", [0]),
        ("fps > 2", [1]),
        ("fps == 2", [0]),
        ("n in []", []),
        ("label in []", []),
        ("label not in [] and n > 3", [1, 2]),
    ],
)
def test_numbers_of_both_kinds_and_empty_lists_are_compared(text, expected):
    columns = {"n": [3, 16_777_217, 20_000_001], "fps": [2.0, 2.5, None]}
    table = pa.table({**columns, "label": ["a", None, "b"]})
    assert list(select_rows(table, text)) == expected


@pytest.mark.parametrize("word", ["or", "and"])
def test_a_thousand_comparisons_are_understood_and_more_refused(word):
    texts = [f"n != {k + 100}" for k in range(1001)]
    found: list[Any] = []

    def select() -> None:
        found.append(rows(f" {word} ".join(texts[:1000])))

    # In a thread, which has less room than a process.
    size = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=select)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert found == [[0, 1, 2, 3]]
    message = (
        r"\.\.\.': there are more than 1,000 comparisons; .* id in \[.*view\(ids\)"
    )
    for text in (
        f" {word} ".join(texts),
        "n" + " < 3" * 1001,
        " or ".join(["ok"] * 1001),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            rows(text)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True], ValueError),
        ([1, 0, 1, 0], TypeError),
        (np.ones((4, 1), bool), TypeError),
        (3, TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_mask_is_refused(mask, error):
    with pytest.raises(error):
        rows(mask)


@pytest.mark.parametrize(
    "numbers", [pa.array([1, None, 0, 1]), pa.chunked_array([["a", None, "b", "c"]])]
)
def test_an_arrow_array_of_no_booleans_is_refused_like_any_other(numbers):
    with pytest.raises(TypeError, match="boolean mask with one value per item"):
        rows(numbers)


def test_an_arrow_array_of_nulls_selects_nothing():
    assert rows(pa.nulls(4)) == []


def test_an_expression_is_about_the_rows_of_a_view_alone():
    table = pa.table({"label": ["7", "walk", "12", "3"], "n": [1, 0, 2, 0]})
    number = pc.field("label").cast(pa.int64())
    numeric = np.array([2, 3, 0])
    assert list(select_rows(table, number > 6, numeric)) == [2, 0]
    share = pc.scalar(8) / pc.field(1)
    assert list(select_rows(table, share > 4, numeric[::2])) == [0]
    for some in (None, np.array([0, 1])):
        with pytest.raises(ValueError, match="does not fit the columns"):
            select_rows(table, number > 6, some)
    with pytest.raises(ValueError, match="No match for FieldRef"):
        select_rows(table, pc.field("nobody") > 6, numeric)


@pytest.mark.parametrize("kind", [bool, object])
def test_what_is_masked_out_of_a_mask_counts_as_false(kind):
    values = np.array([True, True, False, True], kind)
    assert rows(np.ma.array(values, mask=[True, False, False, False])) == [1, 3]
    assert rows(np.ma.array(values)) == [0, 1, 3]
    with pytest.raises(TypeError, match="boolean mask"):
        rows(np.ma.array([1, 0, 1, 1], mask=[True, False, False, False]))


@pytest.mark.parametrize("mask", [[], np.zeros(0, bool), pa.array([], pa.bool_())])
def test_an_empty_mask_selects_from_no_items_only(mask):
    assert list(select_rows(TABLE.slice(0, 0), mask)) == []
    with pytest.raises(ValueError, match="a mask of 0 values cannot select from 4"):
        rows(mask)


def test_a_parsed_condition_is_an_arrow_expression():
    assert isinstance(parse_condition("n > 3", ["n"]), pc.Expression)


def test_a_scalar_of_arrow_is_no_mask():
    with pytest.raises(TypeError, match="boolean mask with one value per item"):
        rows(pa.scalar(True))


@pytest.mark.parametrize("key", ["µm", "ﬁ", "größe", "e\u0301", "क्षि", "m²"])
def test_a_name_is_the_column_that_is_spelt_so(key):
    # Python takes the micro sign for a Greek letter, and a ligature for two letters.
    other = {"µm": "μm", "e\u0301": "é"}.get(key, "fi")
    table = pa.table({other: [1, 2], key: [2, 1], "text": [key, other]})
    assert list(select_rows(table, f"{key} == 1")) == [1]
    assert list(select_rows(table, f"text == '{key}'")) == [0]
    assert list(select_rows(table, f"{other} == 1 and text != {other!r}")) == [0]
    with pytest.raises(ValueError, match=r"cannot be parsed: invalid .*U\+2265"):
        select_rows(table, f"{key}≥1")


def test_a_key_that_is_empty_stands_in_backticks_as_well():
    table = pa.Table.from_pylist([{"": 1, "a": "``"}, {"": 2, "a": "x"}])
    assert list(select_rows(table, "`` == 2 or a == '``'")) == [0, 1]
    assert list(select_rows(table, "not `` in [1]")) == [1]
    with pytest.raises(ValueError, match="there is no column ''"):
        select_rows(TABLE, "`` == 2")


def test_a_column_that_is_a_word_of_python_is_told_to_stand_in_backticks():
    table = pa.table({"class": ["a", "b"], "is": [1, 2]})
    assert list(select_rows(table, "`class` == 'b' and `is` == 2")) == [1]
    for text in ("class == 'b'", "`is` == 2 and class in ['b']"):
        with pytest.raises(ValueError, match="the column class stands in backticks"):
            select_rows(table, text)
    with pytest.raises(ValueError, match=r"invalid syntax; equal is =="):
        select_rows(table, "`class` = 'b'")
    for text in ("class=='b'", "n > 1 and class == 'b'"):
        with pytest.raises(ValueError, match="there is no column class, which would"):
            select_rows(pa.table({"n": [1], "label": ["b"]}), text)
    with pytest.raises(ValueError, match=r"invalid syntax; equal is =="):
        select_rows(table, "`class` = 'for all'")


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("n == 3 # and label is None", "# and label is None"),
        ("label == a#b or n == 3", "#b or n == 3"),
        ("(label == 'a#b' # x\n or n == 3)", "# x"),
        ("#", "#"),
        ("`my#key` == 'a' #x", "#x"),
    ],
)
def test_a_comment_is_refused_as_a_part_that_would_count_for_nothing(text, comment):
    with pytest.raises(ValueError, match="none: a text with a # in") as got:
        rows(text)
    assert f": {comment!r} would be a comment" in str(got.value)


def test_a_hash_in_quotes_is_a_letter():
    table = pa.table({"my#key": ["a#b", "#"], "n": [1, 2]})
    assert list(select_rows(table, "`my#key` == 'a#b'")) == [0]
    assert list(select_rows(table, '`my#key`.startswith("#") and n in [2]')) == [1]
    assert list(select_rows(table, r"`my#key` != '\'#' and n == 2")) == [1]
    for text in ("`my#key` == 'a # b", "n == 1 or `my#key == 'a'"):
        with pytest.raises(ValueError, match="cannot be parsed"):
            select_rows(table, text)


def test_rows_are_asked_for_in_their_order():
    only = np.array([3, 1, 0])
    for condition in ("n > 1", pc.field("n") > 1, [False, True, True]):
        assert list(select_rows(TABLE, condition, only)) == [1, 0]


def test_that_keys_may_be_no_columns_is_said_where_there_are_many():
    table = pa.table({f"k{number}": [number] for number in range(259)})
    with pytest.raises(ValueError, match="of the metadata, 256 keys at most are col"):
        select_rows(table, "k400 == 1")


@pytest.mark.parametrize("text", ["n == f", "f < n", "label == 'x' and 0 < n <= f"])
@pytest.mark.parametrize("large", [2**53 + 1, -(2**60)])
def test_an_integer_that_is_no_float_is_named_with_its_key_and_item(text, large):
    table = pa.table(
        {
            "id": pa.array(["small", "large"], pa.large_string()),
            "label": ["a", "b"],
            "n": [2**53, large],
            "f": [0.5, None],
        }
    )
    with pytest.raises(ValueError, match="does not fit the columns") as caught:
        select_rows(table, text)
    assert f" of item 'large' is {large}: integers beyond 2**53" in str(caught.value)
    assert select_rows(table, text, np.array([0])) is not None  # the others fit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not`my key` == 'a'", [1, 2, 3]),
        ("n == 3 or`my key`in ['b']or`my key`== 'c'", [0, 1, 2]),
        ("(`my key`not in('a', 'b'))", [2, 3]),
        ("`lab\rel` == 'x' and`my key`is not None", [1]),
    ],
)
def test_a_name_in_backticks_ends_where_they_do(text, expected):
    values = [{**item, "lab\rel": "x" if item["n"] == 16 else "y"} for item in ITEMS]
    assert list(select_rows(pa.Table.from_pylist(values), text)) == expected


def test_names_that_stand_side_by_side_are_no_name():
    with pytest.raises(ValueError, match="cannot be parsed"):
        rows("`my key``n` == 'a'")


@pytest.mark.parametrize(
    "text", ['x\\"' * 100_000, "s == '" + "\\'" * 100_000], ids=["open", "in a text"]
)
def test_escaped_quotes_without_end_take_no_long_time(text):
    began = time.monotonic()
    with_plain_names(text)
    assert time.monotonic() - began < 5
