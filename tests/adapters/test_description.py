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


def test_no_argument_hides_another_of_its_name():
    def init(self, first, /, *args, **options):
        pass

    given = constructor_arguments(init, (1, 2, 3), {"args": 9, "first": 8, "b": 7})
    assert given == {
        "first": 1,
        "args": [2, 3],
        "options.args": 9,
        "options.first": 8,
        "b": 7,
    }


def test_the_longest_complex_number_keeps_both_parts():
    assert to_json_value(np.clongdouble(1 + 2j)) == to_json_value(1 + 2j) == "(1+2j)"
    assert to_json_value(np.longdouble(0.5)) == 0.5


class Unspeakable:
    """Its representation is an error."""

    def __repr__(self):
        raise ValueError("no words")


def test_no_argument_keeps_an_adapter_from_being_described():
    within: list = []
    within.append(within)
    assert json.dumps(to_json_value({"a": within})).count("list of 1 elements") == 1
    assert to_json_value(Unspeakable()) == f"{__name__}.Unspeakable"


@pytest.mark.parametrize(
    "name",
    [
        *("password", "db_password", "api_key", "apikey", "Token", "auth_token"),
        *("secret", "accessToken", "dbPassword", "X-Api-Key", "Authorization", "pwd"),
        *("tokens", "password1", "aws_secret_access_key"),
    ],
)
def test_of_a_secret_there_is_only_that_it_was_given(name):
    def init(self, **options):
        pass

    given = constructor_arguments(init, (), {name: "hunter2", "other": {name: ["x"]}})
    assert given == {name: "not recorded", "other": {name: "not recorded"}}
    assert constructor_arguments(init, (), {name: None}) == {name: None}


@pytest.mark.parametrize("name", ["token_length", "num_token", "use_token", "secret"])
@pytest.mark.parametrize("value", [3, True, 0.5])
def test_numbers_are_no_secrets(name, value):
    def init(self, **options):
        pass

    assert constructor_arguments(init, (), {name: value}) == {name: value}


@pytest.mark.parametrize("name", ["keys", "passes", "tokenizer", "key", "author"])
def test_names_that_only_resemble_those_of_secrets_are_recorded(name):
    def init(self, **options):
        pass

    assert constructor_arguments(init, (), {name: "a"}) == {name: "a"}


@pytest.mark.parametrize(
    "name",
    [
        *("pwd", "passwd", "passphrase", "auth", "access_key", "private_key", "sig"),
        *("key", "secret_key", "X-Amz-Signature", "X-Amz-Credential", "sas_token"),
        *("X-Goog-Signature", "X-Amz-Security-Token", "client_secret", "apikey"),
    ],
)
def test_a_secret_in_the_query_of_a_url_is_not_recorded(name):
    for before in ("?", "?a=b&", "?a=b;", "#"):
        url = f"https://h/v{before}{name}=hunter2&n=1"
        assert to_json_value(url) == f"https://h/v{before}{name}=(not recorded)&n=1"


@pytest.mark.parametrize("name", ["author", "monkey", "keys", "design", "tokenizer"])
def test_all_else_in_the_query_of_a_url_is_recorded(name):
    assert to_json_value(f"https://h/v?{name}=a") == f"https://h/v?{name}=a"


def test_the_password_of_a_url_is_not_recorded():
    assert to_json_value("s3://me:hunter2@host/videos?a=b") == (
        "s3://me:(not recorded)@host/videos?a=b"
    )
    assert "hunter2" not in str(to_json_value([{"a": ("ftp://:hunter2@host",)}]))
    assert "hunter2" not in str(
        to_json_value(functools.partial(print, "http://me:hunter2@host"))
    )
    assert to_json_value("http://host:80/me@home") == "http://host:80/me@home"
    assert (
        to_json_value("https://me:h@nter@host/v") == "https://me:(not recorded)@host/v"
    )
    assert to_json_value("https://h/v?Token=hunter2&n=1#x") == (
        "https://h/v?Token=(not recorded)&n=1#x"
    )
    assert to_json_value("https://hunter2@h/v") == "https://(not recorded)@h/v"
    assert to_json_value("ssh://git@host/v") == "ssh://git@host/v"
    assert "hunter2" not in str(to_json_value({"https://me:hunter2@host": 1}))
    assert "hunter2" not in str(to_json_value(Path("https://me:hunter2@host")))
