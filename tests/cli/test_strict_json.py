"""``--json``: what other parsers than Python's take."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

import pytest

from gulpio2 import GulpChunk
from gulpio2.cli import main
from gulpio2.cli.strict_json import json_text
from gulpio2.format.manifest import Manifest, Run, dump_manifest

INFINITY = float("inf")


def parse(text: str) -> Any:
    """Parse as others do: Python's own words for numbers are refused."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def odd(tmp_path):
    """Make a directory whose metadata and manifest hold what JSON has no word for."""
    folder = tmp_path / "odd"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        meta = {"label": math.nan, "box": [1.5, INFINITY, {"low": -INFINITY}]}
        chunk.append("a", meta, [])
        chunk.append("b", {"label": "NaN"}, [])
    run = Run("A", {"rate": math.nan}, {}, "0", chunks=(0,))
    manifest = Manifest((run,), {"mean": [0.25, INFINITY]})
    (folder / "gulp.json").write_bytes(dump_manifest(manifest))
    return folder


def test_a_list_of_items_has_null_for_what_is_no_number(gulp2, odd):
    rows = [parse(line) for line in gulp2("ls", odd, "--json").stdout.splitlines()]
    assert [row["meta"] for row in rows] == [
        {"label": None, "box": [1.5, None, {"low": None}]},
        {"label": "NaN"},
    ]
    assert "NaN" in gulp2("ls", odd, "--long").stdout, "people are shown what is there"


def test_what_a_directory_was_made_with_has_null_as_well(gulp2, odd):
    told = parse(gulp2("info", odd, "--json").stdout)
    assert told["runs"][0]["options"] == {"rate": None}
    assert told["metainfo"] == {"mean": [0.25, None]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, -0.0, 1e300, None, "NaN"), '[1, -0.0, 1e+300, null, "NaN"]'),
        ({"a": (INFINITY, [math.nan])}, '{"a": [null, [null]]}'),
        (-INFINITY, "null"),
        ({"ü": "\x1b"}, r'{"\u00fc": "\u001b"}'),
    ],
)
def test_only_what_json_lacks_is_replaced(value, text):
    assert json_text(value) == text


def test_every_command_with_the_option_writes_it_in_this_way(repository):
    for name in main.COMMANDS:
        source = (repository / "gulpio2" / "cli" / f"{name}.py").read_text("utf-8")
        names = {
            node.id
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Name)
        }
        if "json_option" in names:
            assert names & {"write_json", "json_text"}, name


def test_a_value_that_is_not_finite_may_lie_deep():
    depth = 800
    text = json_text(json.loads("[" * depth + "NaN" + "]" * depth))
    assert text == "[" * depth + "null" + "]" * depth
