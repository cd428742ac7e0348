"""Constructor arguments as JSON values."""

from __future__ import annotations

import enum
import functools
import json
import math
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from gulpio2.adapters.description import constructor_arguments, to_json_value


class Colour(str, enum.Enum):
    """A string that is more than a string."""

    RED = "red"


class Plain:
    """A class whose repr is the default one, with an address."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("a", "a"),
        (Path("a/b"), "a/b"),
        ((1, "a"), [1, "a"]),
        ({"b", "a"}, ["a", "b"]),
        ({1: Path("x")}, {"1": "x"}),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (Colour.RED, "red"),
        (math.floor, "math.floor"),
        (Colour, f"{__name__}.Colour"),
        (date(2020, 1, 2), "datetime.date(2020, 1, 2)"),
        (list(range(1001)), "list of 1001 elements"),
        ([[0] * 2000], ["list of 2000 elements"]),
    ],
)
def test_a_value_becomes_what_json_holds(value, expected):
    converted = to_json_value(value)
    assert converted == expected
    assert type(converted) is type(expected)
    json.dumps(converted)


def test_equal_calls_are_described_alike_whatever_the_addresses():
    first, second = Plain(), Plain()
    assert to_json_value(first) == to_json_value(second)
    assert "0x" not in str(to_json_value(functools.partial(print, first)))


def test_a_long_repr_is_cut():
    assert len(str(to_json_value(np.arange(500)))) <= 203


def test_a_call_that_does_not_fit_is_not_described():
    def init(self, a):
        """Take one argument."""

    assert constructor_arguments(init, (), {}) == {}
    assert constructor_arguments(init, (1,), {}) == {"a": 1}


class Unspeakable:
    """Its representation is an error."""

    def __repr__(self):
        raise ValueError("no words")


def test_no_argument_keeps_an_adapter_from_being_described():
    within: list = []
    within.append(within)
    assert json.dumps(to_json_value({"a": within})).count("list of 1 elements") == 1
    assert to_json_value(Unspeakable()) == f"{__name__}.Unspeakable"
