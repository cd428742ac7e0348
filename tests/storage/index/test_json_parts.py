"""Parts of JSON are told from what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.storage.index.json_parts import may_be_part
from gulpio2.storage.index.typed import json_text

LETTERS = st.text(st.sampled_from('ab ",:[]{}\\/\n\t\x00\x7fé😀\ud800'), max_size=6)
SCALARS = st.one_of(st.booleans(), st.integers(), st.floats(), LETTERS)
VALUES = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(LETTERS, inner),
    max_leaves=6,
)


@given(value=VALUES, ends=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_every_part_of_json_may_be_one(value: Any, ends: tuple[int, int]) -> None:
    text = json_text(value) or "7"
    first, last = sorted(end % (len(text) + 1) for end in ends)
    assert may_be_part(text[:last], "startswith")
    assert may_be_part(text[first:], "endswith")
    assert may_be_part(text[first:last], "contains")


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ('a"b', ""),
        ('say "hi"', ""),
        ('say "', "endswith contains"),
        ('"say', "startswith contains"),
        ('"k":"v"', ""),
        ('"k": "v', "startswith contains"),
        (r"a\d", ""),
        (r"\d", "contains"),
        (r"\u00e9", "contains"),
        (r"a\u00E9", ""),
        ("tru", "startswith contains"),
        ("nul", "contains"),
        ("ll", "contains"),
        ("1]", "startswith endswith contains"),  # not counted
        ("[1 ", "contains"),
        ("a\nb", ""),
        ("", "startswith endswith contains"),
    ],
)
def test_what_can_be_no_part_is_told(text, tests):
    for test in ("startswith", "endswith", "contains"):
        assert may_be_part(text, test) == (test in tests.split()), test
