"""Users' metadata, as JSON can hold it."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import AdapterContractError
from gulpio2.format.metadata import plain_metadata

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Colour(enum.IntEnum):
    RED = 3


class Name(enum.Enum):
    FIRST = "first"


class Label(str, enum.Enum):  # StrEnum is of Python 3.11
    WALK = "walk"


class Odd(int):
    """Says of itself another number than it is."""

    def __int__(self):
        return 7

    def __str__(self):
        return "seven"


class Half(float):
    """Says of itself another number than it is."""

    def __float__(self):
        return 7.0


class Text(str):
    """As some libraries give their strings."""

    __slots__ = ()


@given(st.dictionaries(st.text(), values))
def test_plain_values_come_through_as_they_are(meta):
    plain = plain_metadata(meta, "metadata")
    assert plain == meta
    assert json.loads(json.dumps(plain)) == meta
    assert list(plain) == list(meta)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.uint8(255), 255),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([1, 2]), [1, 2]),
        (np.array([[0.5]], np.float32), [[0.5]]),
        (np.array(7), 7),
        (np.array([]), []),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([True]), [True]),
        (np.array(["a", None], object), ["a", None]),  # as pandas gives lists of texts
        (np.array([["a", 1], [np.int8(2), True]], object), [["a", 1], [2, True]]),
        (np.array([np.array([1.5]), {"b": (1,)}], object), [[1.5], {"b": [1]}]),
        (np.array("a", object), "a"),
        (np.array([], object), []),
        ((1, (2, 3)), [1, [2, 3]]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        ({"deep": {"er": [np.int8(1)]}}, {"deep": {"er": [1]}}),
        (Colour.RED, 3),
        (Text("a"), "a"),
        (Label.WALK, "walk"),
        (Odd(3), 3),
        (Half(0.5), 0.5),
        (10**30, 10**30),
        (math.inf, math.inf),
    ],
    ids=repr,
)
def test_what_stands_for_a_plain_value_becomes_it(value, plain):
    got = plain_metadata({"x": value}, "metadata")["x"]
    assert got == plain
    assert type(got) is type(plain)
    assert json.loads(json.dumps(got)) == plain


def test_nan_comes_through():
    assert math.isnan(plain_metadata({"x": np.float32("nan")}, "metadata")["x"])


def test_keys_that_json_turns_into_strings_are_let_through():
    plain = plain_metadata(
        {np.int64(2): "b", None: "c", True: "d", 0.5: "e"}, "metadata"
    )
    assert json.dumps(plain) == '{"2": "b", "null": "c", "true": "d", "0.5": "e"}'


def test_the_copy_shares_nothing_that_can_change():
    meta: dict[str, Any] = {"inner": {"a": [1]}}
    plain = plain_metadata(meta, "metadata")
    meta["inner"]["a"].append(2)
    assert plain == {"inner": {"a": [1]}}


def circular() -> dict[str, Any]:
    meta: dict[str, Any] = {}
    meta["self"] = meta
    return meta


def circular_array() -> dict[str, Any]:
    array = np.array([None], object)
    array[0] = array
    return {"x": array}


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"x": b"a"}, r"b'a' is a bytes \(at `\$\.x`\)"),
        ({"x": {1, 2}}, r"is a set \(at `\$\.x`\)"),
        ({"x": 1j}, r"is a complex \(at `\$\.x`\)"),
        ({"x": np.complex64(1)}, r"at `\$\.x`"),
        ({"x": np.array([1j])}, r"is a ndarray"),
        ({"x": np.array([b"a"])}, r"is a ndarray"),
        ({"x": np.array([["a", {1}]], object)}, r"a set \(at `\$\.x\[0\]\[1\]`\)"),
        (circular_array(), r"nested too deeply, or in itself"),
        ({"x": np.datetime64("2020-01-01")}, r"is a datetime64"),
        ({"x": datetime(2020, 1, 1, tzinfo=timezone.utc)}, r"is a datetime"),
        ({"x": Path("a")}, r"PosixPath \(at `\$\.x`\)"),
        ({"x": Name.FIRST}, r"is a Name"),
        ({"x": [{"y": (0, object())}]}, r"\(at `\$\.x\[0\]\.y\[1\]`\)"),
        ({"x": object()}, r"is an object \(at `\$\.x`\)"),
        ({("a", "b"): 1}, r"is a tuple as a key \(at `\$`\)"),
        ({"x": {b"k": 1}}, r"b'k' is a bytes as a key \(at `\$\.x`\)"),
        (circular(), r"nested too deeply, or in itself"),
    ],
)
def test_what_json_cannot_hold_is_named_with_item_and_place(meta, message):
    with pytest.raises(AdapterContractError, match=message) as caught:
        plain_metadata(meta, "the metadata of item 'v7'")
    assert str(caught.value).startswith("the metadata of item 'v7' cannot be stored")


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(AdapterContractError) as caught:
        plain_metadata({"x": b"a" * 10_000}, "the metadata of item 'v7'")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("meta", [None, [], "a", 3, [("a", 1)]])
def test_metadata_that_is_no_mapping_is_refused(meta):
    with pytest.raises(AdapterContractError, match=r"item 'v7' is .* must be a dict"):
        plain_metadata(meta, "the metadata of item 'v7'")


def test_two_keys_that_are_one_in_json_are_told_to_be_renamed():
    with pytest.raises(AdapterContractError, match=r"the key '1' once .*Rename"):
        plain_metadata({1: "a", "1": "b"}, "the metadata")
