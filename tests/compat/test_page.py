"""``docs/compatibility.md`` says what the tests show."""

from __future__ import annotations

import re
from pathlib import Path

from gulpio2 import GulpChunk, GulpDirectory, fileio

HERE = Path(__file__).parent


def page(repository: Path) -> str:
    """Give the text of the page."""
    return (repository / "docs" / "compatibility.md").read_text("utf-8")


def test_every_defect_of_the_page_has_a_test_and_every_test_a_row(repository):
    rows = re.findall(r"^\| (\d+) \|", page(repository), flags=re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 34))
    tested: set[int] = set()
    for path in HERE.glob("test_defects_*.py"):
        names = re.findall(r"^def test_defect_(\d\d)_", path.read_text("utf-8"), re.M)
        tested.update(map(int, names))
    assert tested == set(range(1, 34))


def test_what_the_page_calls_not_kept_is_not_there(repository):
    text = page(repository).split("## Not kept")[1].split("\n## ")[0]
    helpers = set(re.findall(r"`(_\w+)`", text))
    there = {
        name
        for name in helpers
        for kind in (GulpChunk, GulpDirectory)
        if hasattr(kind, name)
    }
    assert len(helpers) > len(there)
    assert there == {"_get_or_create_dict", "_load_label_dict"}
    assert not hasattr(fileio, "ProcessPoolExecutor")


def test_the_files_that_the_page_names_exist(repository):
    for name in re.findall(r"`((?:tests|bin)/[\w./*]+)`", page(repository)):
        assert list(repository.glob(name)), name
