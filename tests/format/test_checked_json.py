"""The form of the small JSON files, which is written without json's own indents."""

from __future__ import annotations

import json
import sys
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from gulpio2.format.checked_json import dump_checked, has_own_form

keys = st.text() | st.integers() | st.booleans() | st.none() | st.floats()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner)
    ),
    max_leaves=30,
)


@given(values)
def test_the_form_is_that_of_json_with_an_indent(value: Any):
    written = dump_checked({"a": value})
    check = json.loads(written)["check"]
    whole = {"a": value, "check": check}
    assert written == (json.dumps(whole, indent=1) + "\n").encode("ascii")


def test_it_goes_as_deep_as_json_does():
    value: Any = "deep"
    for _ in range(sys.getrecursionlimit() // 2 + 50):
        value = {"a": value}
    assert has_own_form(dump_checked(value))


def test_no_part_of_it_is_written_by_the_slow_encoder(monkeypatch):
    def refuse(*args: Any, **kwargs: Any):
        raise AssertionError("json writes an indent in Python")

    monkeypatch.setattr(json.encoder, "_make_iterencode", refuse)
    entry = {"frame_info": [[0, 1, 8]], "meta_data": [{"x": 1.5, "y": None}]}
    assert has_own_form(dump_checked({"deleted": {"0": [["a", entry]]}}))
