"""What is said of a command that was interrupted."""

from __future__ import annotations

import json
import shutil

import pytest

from gulpio2 import GulpDirectory, removal
from gulpio2.repair import directories
from gulpio2.sanity import check_directory

NO_MORE = "\ngulp2: interrupted\n"


@pytest.fixture
def interrupting(monkeypatch):
    """Have a call of a module's function, by its ordinal, raise an interrupt."""

    def set_up(module, name, ordinal):
        real, calls = getattr(module, name), []

        def interrupted(*arguments, **options):
            calls.append(name)
            if len(calls) == ordinal:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, interrupted)

    return set_up


def test_a_deletion_says_that_the_same_command_goes_on(gulp2, gulped, interrupting):
    interrupting(removal, "_hide", 2)
    said = gulp2("delete", gulped, "item0", "item3", status=130).stderr
    assert said.split("\n") == [
        "gulp2: some of the items may be hidden already; the same command goes on",
        "",  # of click, behind the ^C of a terminal
        "gulp2: interrupted",
        "",
    ]
    assert list(GulpDirectory(gulped).merged_meta_dict) == ["item1", "item2", "item3"]
    gulp2("delete", gulped, "item0", "item3")
    assert list(GulpDirectory(gulped).merged_meta_dict) == ["item1", "item2"]


def test_a_deletion_that_has_begun_nothing_says_no_more(gulp2, gulped, interrupting):
    interrupting(removal, "write_removals", 1)
    assert gulp2("delete", gulped, "item0", status=130).stderr == NO_MORE


def test_an_interrupt_while_a_class_is_made_is_one(gulp2, gulped, monkeypatch):
    class Interrupting:
        def __set_name__(self, _owner, _name):
            raise KeyboardInterrupt

    def make_a_class(*_arguments, **_options):
        type("Made", (), {"field": Interrupting()})

    monkeypatch.setattr(removal, "write_removals", make_a_class)
    assert gulp2("delete", gulped, "item0", status=130).stderr == NO_MORE


def test_a_compaction_says_that_the_same_command_goes_on(gulp2, gulped, interrupting):
    gulp2("delete", gulped, "item0", "item3")
    interrupting(removal, "_compact", 4)  # both chunks are planned before
    said = gulp2("compact", gulped, status=130).stderr
    assert said.split("\n") == [
        "gulp2: what is not erased yet is as it was; the same command goes on",
        "",  # of click, behind the ^C of a terminal
        "gulp2: interrupted",
        "",
    ]
    erased = json.loads(gulp2("compact", gulped, "--json").stdout)
    assert [one["chunk"] for one in erased] == [1]
    assert check_directory(gulped, deep=True).ok


def test_a_repair_says_what_to_do_with_its_target(
    gulp2, gulped, tmp_path, interrupting
):
    interrupting(directories, "take_over_files", 1)
    out = tmp_path / "out"
    said = gulp2("repair", gulped, out, status=130).stderr
    assert said.split("\n") == [
        f"gulp2: {out} is unfinished: remove it, and give the command again",
        "",  # of click, behind the ^C of a terminal
        "gulp2: interrupted",
        "",
    ]
    assert "is not empty" in gulp2("repair", gulped, out, status=1).stderr
    shutil.rmtree(out)
    gulp2("repair", gulped, out)


@pytest.mark.parametrize("name", ["_survey", "open_store"])
def test_a_repair_that_has_begun_nothing_says_no_more(
    gulp2, gulped, tmp_path, interrupting, name
):
    interrupting(directories, name, 1)
    said = gulp2("repair", gulped, tmp_path / "out", status=130).stderr
    assert said == NO_MORE
