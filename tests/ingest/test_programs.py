"""Whether a worker elsewhere has the same adapter."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from gulpio2.ingest import programs
from gulpio2.ingest.programs import differs, program_of
from gulpio2.testing import FrameAdapter

PROGRAM = '''
import functools
from gulpio2.testing import FrameAdapter

QUALITY = {"high", "low", "best", "worst"}

def size_of(n, names=("a", "b")):
    return n in {"high", "low", "best", "worst", 3} and 20

class Own(FrameAdapter):
    """An adapter."""

    @property
    def breadth(self):
        return 12

    @staticmethod
    def depth():
        return 34

    @functools.lru_cache
    def cached(self):
        return [n + 1 for n in range(5)]

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
'''

OTHERS = {
    "size_of": ("and 20", "and 21"),
    "Own.breadth": ("return 12", "return 13"),
    "Own.depth": ("return 34", "return 3.4"),
    "Own.cached": ("n + 1", "n - 1"),
    "Own.iter_data": ("iter_data(slice_element)\n", "iter_data()\n"),
    "Own.more": (
        "class Own(FrameAdapter):\n",
        "class Own(FrameAdapter):\n    def more(s): 0\n",
    ),
}


def load(text, folder, monkeypatch):
    """Give the program of an adapter that is written so."""
    path = folder / "programs_own.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("programs_own", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "programs_own", module)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return program_of(module.Own(num_items=2))


@pytest.mark.parametrize("name", OTHERS)
def test_a_function_that_does_something_else_is_named(tmp_path, monkeypatch, name):
    ours = load(PROGRAM, tmp_path, monkeypatch)
    old, new = OTHERS[name]
    assert PROGRAM.count(old) == 1
    theirs = load(PROGRAM.replace(old, new), tmp_path, monkeypatch)
    assert differs(ours, theirs) == f"programs_own.{name}"
    assert differs(theirs, ours) == f"programs_own.{name}"


def test_where_it_is_and_what_is_said_about_it_does_not_matter(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    ours = load(PROGRAM, tmp_path, monkeypatch)
    text = "# Made by somebody.\n\n" + PROGRAM.replace("return 12", "return 12  # cm")
    assert differs(ours, load(text, tmp_path / "elsewhere", monkeypatch)) is None


def test_another_process_has_the_same(tmp_path, monkeypatch):
    ours = load(PROGRAM, tmp_path, monkeypatch)
    program = (
        "import json, programs_own; from gulpio2.ingest.programs import program_of; "
        "print(json.dumps(program_of(programs_own.Own(num_items=1))))"
    )
    path = os.pathsep.join([*sys.path, str(tmp_path)])
    for seed in "12":  # sets are in another order
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        )
        assert json.loads(done.stdout) == ours


MAKE_UP = """
from unittest.mock import call

class Late:
    def __getattr__(self, name):
        raise RuntimeError(f"not configured: {name}")

    @property
    def __class__(self):
        raise RuntimeError("not configured")

settings = Late()
"""


def test_objects_that_answer_to_any_name_are_not_asked(tmp_path, monkeypatch):
    ours = load(PROGRAM, tmp_path, monkeypatch)
    theirs = load(PROGRAM + MAKE_UP, tmp_path, monkeypatch)
    new = theirs.keys() - ours.keys()
    assert {name.partition(".")[2] for name in new} == {
        "Late.__getattr__",
        "Late.__class__",
    }


def test_with_another_python_nobody_can_tell(tmp_path, monkeypatch):
    ours = load(PROGRAM, tmp_path, monkeypatch)
    monkeypatch.setattr(programs, "_PYTHON", "3.99")
    assert (
        differs(load(PROGRAM.replace("12", "13"), tmp_path, monkeypatch), ours) is None
    )


class Asserting(FrameAdapter):
    """Is rewritten by pytest, and not in the processes that it starts."""

    def iter_data(self, slice_element=None):
        assert slice_element != 3
        return super().iter_data(slice_element)


def test_what_is_rewritten_to_be_tested_is_passed_over():
    ours = program_of(Asserting(num_items=1))
    name = f"{__name__}.Asserting.iter_data"
    assert name in ours
    assert differs(ours, {**ours, name: 5}) is None
    assert differs({**ours, name: 5}, ours) is None
