"""Files that are nested so deeply that Python reads them, and shows no part of them."""

import json
from contextlib import suppress

import pytest

from gulpio2.errors import GulpError
from tests.faults.fuzz import is_json, places, with_part
from tests.faults.parsers import PARSERS, seeds

_MARK = '"in its place"'
# Of what is no JSON, as JPEGs and lines of a journal, there are no parts to replace.
_READERS_OF_JSON = sorted(
    name for name in PARSERS if any(is_json(seed) for seed in seeds()[name])
)
_DEEP = ["[" * 900 + "]" * 900, '{"a":' * 600 + "0" + "}" * 600]


@pytest.mark.parametrize("deep", _DEEP, ids=["list", "object"])
@pytest.mark.parametrize("parser", _READERS_OF_JSON)
def test_no_part_that_is_nested_deeply_makes_a_parser_fail_in_another_way(parser, deep):
    tried = 0
    for value in [json.loads(seed) for seed in seeds()[parser] if is_json(seed)]:
        for path in places(value):
            text = json.dumps(with_part(value, path, json.loads(_MARK)))
            tried += 1
            with suppress(GulpError):  # any other error fails
                PARSERS[parser](text.replace(_MARK, deep).encode())
    assert tried > 0
