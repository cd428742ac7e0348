"""Numbers are compared with columns as Python compares them, whatever their size."""

from __future__ import annotations

import math
import operator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.query import select_rows
from gulpio2.storage.index.exact import is_number_type

SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EXACT = 2**53
COLUMNS: dict[str, Any] = {
    "long": pa.array(
        [0, 1, -1, EXACT, EXACT + 1, -EXACT - 1, 2**63 - 1, -(2**63), None]
    ),
    "short": pa.array([0, 1, -1, 2**31 - 1, -(2**31), 5, 6, 7, None], pa.int32()),
    "real": pa.array(
        [0.0, -0.0, 1.5, 2.0**53, 2.0**63, math.inf, -math.inf, math.nan, None]
    ),
}
TABLE = pa.table(COLUMNS)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.builds(
        operator.add,
        st.sampled_from([0, EXACT, -EXACT, 2**31, -(2**31), 2**63, -(2**63), 10**400]),
        st.integers(-3, 3),
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2.0**53, 2.0**63, -(2.0**63), 1.5, -0.0]),
)


@given(name=st.sampled_from(sorted(COLUMNS)), sign=st.sampled_from([*SIGNS]), n=NUMBERS)
def test_a_comparison_is_that_of_python(name, sign, n):
    values = COLUMNS[name].to_pylist()
    there = [row for row, value in enumerate(values) if value is not None]
    wanted = [row for row in there if SIGNS[sign](values[row], n)]
    assert select_rows(TABLE, f"{name} {sign} {n!r}").tolist() == wanted
    others = [row for row in there if row not in wanted]
    assert select_rows(TABLE, f"not {name} {sign} {n!r}").tolist() == others
    turned = [row for row in there if SIGNS[sign](n, values[row])]
    assert select_rows(TABLE, f"{n!r} {sign} {name}").tolist() == turned


@given(name=st.sampled_from(sorted(COLUMNS)), numbers=st.lists(NUMBERS, max_size=4))
def test_a_list_holds_what_a_list_of_python_holds(name, numbers):
    values = COLUMNS[name].to_pylist()
    wanted = [row for row, value in enumerate(values) if value in numbers]
    assert select_rows(TABLE, f"{name} in {numbers!r}").tolist() == wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("real in [0]", [0, 1]),
        ("real == 9007199254740993", []),
        ("real < 9007199254740993", [0, 1, 2, 3, 6]),
        ("long < 9223372036854775808", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("long == 1e400", []),
        ("1e308 > long", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("short in [5, 1e12, 4294967296]", [5]),
    ],
)
def test_numbers_that_a_column_cannot_hold_are_compared_all_the_same(text, expected):
    assert select_rows(TABLE, text).tolist() == expected


def test_other_columns_are_left_to_arrow():
    assert not is_number_type(pa.bool_())
    with pytest.raises(ValueError, match="does not fit the columns"):
        select_rows(pa.table({"ok": [True]}), "ok < 3")
