"""The deliberate breaks fit the package; ``bin/mutate`` makes them."""

from pathlib import Path

import pytest

import gulpio2
from tests.faults.mutations import MUTATIONS, main

PACKAGE = Path(gulpio2.__file__).parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.name for m in MUTATIONS])
def test_what_is_broken_is_there_once(mutation):
    text = (PACKAGE / mutation.file).read_text("utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.old != mutation.new
    compile(text.replace(mutation.old, mutation.new), mutation.file, "exec")


def test_a_break_that_does_not_exist_is_not_found(capsys):
    assert main(["no such break"]) == 2
    assert "there is no break 'no such break'" in capsys.readouterr().err
