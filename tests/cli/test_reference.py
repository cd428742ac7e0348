"""``docs/cli.md`` is what the help texts say."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest

from gulpio2.cli import legacy
from gulpio2.cli.reference import reference


def test_the_reference_is_up_to_date(repository):
    constraints = (repository / "constraints.txt").read_text("utf-8")
    pinned = re.search(r"^click==(\S+)", constraints, re.M)
    assert pinned is not None
    if version("click") != pinned[1]:
        pytest.skip(f"made with click {pinned[1]}, whose layout is its own")
    page = (repository / "docs" / "cli.md").read_text("utf-8")
    assert page == reference(), (
        "stale; run: python -m gulpio2.cli.reference > docs/cli.md"
    )


def test_the_reference_has_every_program():
    text = reference()
    for name in legacy.__all__:
        assert f"### {name}\n" in text
    for name in ("ingest", "check", "info", "ls", "extract", "sheet", "ingest table"):
        assert f"## gulp2 {name}\n" in text


def test_the_reference_does_not_depend_on_the_machine(monkeypatch):
    before = reference()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("os.cpu_count", lambda: 999)
    assert reference() == before
