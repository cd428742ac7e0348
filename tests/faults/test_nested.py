"""Files that are nested so deeply that Python reads them, and shows no part of them."""

import json
from contextlib import suppress

import pytest

from gulpio2.errors import GulpError
from tests.faults.fuzz import is_json, places, with_part
from tests.faults.parsers import PARSERS, seeds

_MARK = '"in its place"'
_DEEP = ["[" * 900 + "]" * 900, '{"a":' * 600 + "0" + "}" * 600]


@pytest.mark.parametrize("deep", _DEEP, ids=["list", "object"])
@pytest.mark.parametrize("parser", sorted(PARSERS))
def test_no_part_that_is_nested_deeply_makes_a_parser_fail_in_another_way(parser, deep):
    for value in [json.loads(seed) for seed in seeds()[parser] if is_json(seed)]:
        for path in places(value):
            text = json.dumps(with_part(value, path, json.loads(_MARK)))
            with suppress(GulpError):
                PARSERS[parser](text.replace(_MARK, deep).encode())
