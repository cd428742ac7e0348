"""``docs/format.md`` against the code: rules that are named exist, codes are listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import gulpio2.errors

PACKAGE = Path(gulpio2.errors.__file__).parent
RULE = re.compile(r"^\*\*(\d+)\.\*\*", re.MULTILINE)
MENTION = re.compile(r"[Rr]ules?\s+(\d+)(?:\s+(?:to|and)\s+(\d+))?")
CODE = re.compile(r"^\| `([a-z-]+)` \|", re.MULTILINE)


def codes_in(path: Path) -> set[str]:
    """Give the codes of the problems and notes that a module makes."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        place = {"Problem": 0, "report": 0, "_at": 1}.get(name)
        code = None if place is None else node.args[place]
        if isinstance(code, ast.Constant):
            found.add(str(code.value))
    return found


def test_each_rule_has_a_number_of_its_own_and_none_is_left_out(repository):
    text = (repository / "docs/format.md").read_text("utf-8")
    # A rule keeps its number: a new one is the last, wherever in the text it stands.
    numbers = [int(number) for number in RULE.findall(text)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(numbers) > 20


def test_every_rule_that_is_named_exists(repository):
    specification = repository / "docs/format.md"
    last = len(RULE.findall(specification.read_text("utf-8")))
    files = [
        specification,
        *(PACKAGE / "format").glob("*.py"),
        *(repository / "tests/format").glob("*.py"),
    ]
    mentions = [
        (path.name, int(number))
        for path in files
        for match in MENTION.findall(path.read_text("utf-8"))
        for number in match
        if number
    ]
    assert len(mentions) > 20
    assert [mention for mention in mentions if not 1 <= mention[1] <= last] == []


def test_every_code_of_the_checker_is_in_the_specification_and_none_else(repository):
    text = (repository / "docs/format.md").read_text("utf-8")
    modules = [
        PACKAGE / "format/changed_places.py",
        PACKAGE / "format/checks.py",
        PACKAGE / "format/label_checks.py",
        PACKAGE / "format/map_checks.py",
        PACKAGE / "format/times_back.py",
        *(PACKAGE / "sanity").glob("*.py"),
    ]
    made = set().union(*map(codes_in, modules))
    listed = CODE.findall(text)
    assert sorted(listed) == sorted(made)
