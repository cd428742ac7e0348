"""The programs that ``gulp2_register_adapter`` writes."""

from __future__ import annotations

import ast
import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory
from gulpio2.cli import legacy
from gulpio2.cli.register import program_name

MODULE = '''
import numpy as np

from gulpio2.adapters import AbstractDatasetAdapter

PLACE = object()


class {name}(AbstractDatasetAdapter):
    """An adapter of a client, with a sentence about it that is so long that it has
    to be wrapped, 100% of it, "quoted" and 'quoted'.

    Parameters
    ----------
    first : str
        The "first", 50% of it, and it is explained at such length that the line of the
        program that says so has to be broken, more than once even, in the end.
    """

    def __init__(self, {parameters}):
        self.seen = {{k: v for k, v in locals().items() if k not in ("self", "place")}}
        self.seen.pop("__class__", None)

    def __len__(self):
        return 1

    def iter_data(self, slice_element=None):
        yield {{"meta": self.seen, "frames": [np.zeros((8, 8), np.uint8)], "id": "x"}}
'''


@pytest.fixture
def register(tmp_path, capsys):
    """Register an adapter with these parameters and give the program's path."""

    def make(parameters, name="TheirAdapter"):
        text = MODULE.format(name=name, parameters=parameters)
        (tmp_path / "their_module.py").write_text(text)
        sys.modules.pop("their_module", None)
        legacy.gulp2_register_adapter(["their_module", name])
        path = tmp_path / program_name(name)
        assert capsys.readouterr().out == path.read_text()
        return path

    return make


def start(path, *arguments):
    """Run a program as its user does."""
    repository = str(Path(__file__).resolve().parents[2])
    bin_ = str(Path(sys.executable).parent)
    return subprocess.run(
        [f"./{path.name}", *map(str, arguments)],
        cwd=path.parent,
        env={"PYTHONPATH": repository, "PATH": f"{bin_}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def seen_by(path, *arguments):
    """Run a program and give what its adapter was made with."""
    result = start(path, *arguments)
    assert result.returncode == 0, result.stderr
    return GulpDirectory(path.parent / "out")["x"][1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MyGreatAdapter", "my_great_adapter"),
        ("Custom20BNX", "custom20_b_n_x"),
        ("lower", "lower"),
    ],
)
def test_the_program_is_named_after_the_class(name, expected):
    assert program_name(name) == expected


@pytest.mark.parametrize(
    ("parameters", "arguments", "seen"),
    [
        ("first, second", ["1", "2", "out"], {"first": "1", "second": "2"}),
        (
            "first, output_folder, second",
            ["1", "out", "2"],
            {"first": "1", "output_folder": "out", "second": "2"},
        ),
        (
            "first, shuffle=False, parse=True, size=-1, label='', more=None",
            ["1", "out"],
            {"first": "1", "shuffle": False, "parse": True, "size": -1, "label": "",
             "more": None},
        ),
        (
            "first, shuffle=False, parse=True, size=-1, label='', more=None",
            ["--shuffle", "--no-parse", "1", "--size", "-7", "--label=-x", "out"],
            {"first": "1", "shuffle": True, "parse": False, "size": -7, "label": "-x",
             "more": None},
        ),
        ("first: int, flag: bool", ["3", "True", "out"], {"first": 3, "flag": True}),
        ("either: 'bool | None' = None", ["out"], {"either": None}),
        ("either: 'bool | None' = None", ["out", "--no-either"], {"either": False}),
        (
            "first='it\\'s \"so\"', ends=('.a', '.b'), numbers: 'list[int]' = None",
            ["--numbers", "1,2", "out"],
            {"first": "it's \"so\"", "ends": [".a", ".b"], "numbers": [1, 2]},
        ),
        ("first, /, *rest, last=0", ["1", "2", "3", "out"],
         {"first": "1", "rest": ["2", "3"], "last": 0}),
        ("first, place=PLACE, *, key=2", ["1", "out", "--key", "5"],
         {"first": "1", "key": 5}),
        ("level: 'Literal[1, 2]' = 1, rate: 'Literal[0.5, \"auto\"]' = 'auto', "
         "flip: 'Literal[True, False]' = True, which: 'list[Literal[1, \"a\"]]' = (),"
         "flags: 'list[bool]' = ()",
         ["out", "--level", "2", "--rate=0.5", "--no-flip", "--which", "1,a",
          "--flags", "true,False"],
         {"level": 2, "rate": 0.5, "flip": False, "which": [1, "a"],
          "flags": [True, False]}),
        ("rate: 'Literal[0.5, \"auto\"]' = 0.5", ["out", "--rate", "auto"],
         {"rate": "auto"}),
        ("longest=float('inf'), bounds=(0.5, float('-inf'))", ["out"],
         {"longest": math.inf, "bounds": [0.5, -math.inf]}),
        ("", ["out"], {}),
        ("first, help='', h=1", ["1", "out", "--help", "me"],
         {"first": "1", "help": "me", "h": 1}),
        ("output_folder, num_workers=2, videos_per_chunk=7",
         ["out", "--videos_per_chunk", "3"],
         {"output_folder": "out", "num_workers": 2, "videos_per_chunk": 3}),
    ],
)  # fmt: skip
def test_the_constructor_gets_what_the_user_gives(
    register, parameters, arguments, seen
):
    assert seen_by(register(parameters), *arguments) == seen


def test_defaults_and_what_is_given_are_of_the_kind_of_the_default(register):
    path = register(
        "size=(8, 8), names=frozenset({'a'}), ends=['.a'], which={3}, "
        "real='tuple', kinds=None"
    )
    program = path.read_text()
    assert "default=tuple([8, 8])" in program
    made = 'lambda text: tuple([int(part) for part in text.split(",")])'
    assert made in program
    assert 'default=frozenset(["a"])' in program
    assert 'frozenset(text.split(","))' in program
    assert 'default=[".a"]' in program
    assert "set([int(part)" in program


def test_the_program_is_executable_python_in_short_lines(register):
    path = register("first, ends=('.a', '.b'), rate: 'float | None' = None")
    text = path.read_text()
    assert path.stat().st_mode & stat.S_IXUSR
    assert path.stat().st_mode & stat.S_IXOTH
    assert text.startswith("#!/usr/bin/env python3\n")
    assert max(map(len, text.splitlines())) < 80
    tree = ast.parse(text, feature_version=(3, 10))
    assert ast.get_docstring(tree)
    last = tree.body[-1]
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"


def test_the_program_passes_the_linter(register):
    path = register("first, output_folder, ends=('.a',), parse=True, more='\"'")
    rules = ["--isolated", "--line-length", "79", "--select", "E,W,F,D,N,UP,B"]
    result = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, "--ignore", "D203,D213", path],
        capture_output=True,
        text=True,
    )
    if "No module named ruff" in result.stderr:
        pytest.skip("ruff is not installed")
    assert result.returncode == 0, result.stdout


def test_help_shows_the_words_of_the_docstring(register):
    result = start(register("first, size=-1"), "--help")
    assert result.returncode == 0
    words = " ".join(result.stdout.split())
    assert "100% of it, \"quoted\" and 'quoted'." in words
    assert 'The "first", 50% of it' in words


def test_a_parameter_that_is_called_help_leaves_the_short_option_for_help(register):
    result = start(register("first, help=''"), "-h")
    assert result.returncode == 0
    assert "An adapter of a client" in result.stdout


def test_wrong_usage_and_failures_end_nonzero(register):
    path = register("first: int")
    assert "usage" in start(path, "--nonsense").stderr
    assert start(path, "x", "out").returncode == 2
    (path.parent / "out").write_text("a file")
    assert start(path, "1", "out").returncode == 1


def test_a_program_needs_the_folder_that_its_adapter_can_do_without(register):
    path = register("first, output_folder=None")
    result = start(path, "1")
    assert result.returncode == 2
    assert "required: --output_folder" in result.stderr
    seen = {"first": "1", "output_folder": "out"}
    assert seen_by(path, "1", "--output_folder", "out") == seen


def test_a_file_that_is_not_ours_is_not_replaced(register, tmp_path):
    (tmp_path / "their_adapter").write_text("mine")
    with pytest.raises(SystemExit, match="their_adapter is there already"):
        register("first")
    assert (tmp_path / "their_adapter").read_text() == "mine"
    (tmp_path / "their_adapter").unlink()
    register("first")
    assert "'second'" not in register("second").read_text()
    assert '"second"' in (tmp_path / "their_adapter").read_text()


def test_an_error_in_the_adapters_module_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    with pytest.raises(SystemExit, match="broken_module cannot be imported") as caught:
        legacy.gulp2_register_adapter(["broken_module", "Mine"])
    assert "ZeroDivisionError" in str(caught.value.code)


def test_a_folder_of_the_name_is_said_without_a_traceback(tmp_path):
    (tmp_path / "their_module.py").write_text(
        MODULE.format(name="TheirAdapter", parameters="first")
    )
    (tmp_path / "their_adapter").mkdir()
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from gulpio2.cli import legacy; legacy.gulp2_register_adapter()",
            "their_module",
            "TheirAdapter",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "'their_adapter', the name of the program, is a folder here" in result.stderr
    assert "Traceback" not in result.stderr
    assert list((tmp_path / "their_adapter").iterdir()) == []


def test_what_it_wrote_is_json_that_others_read(register):
    path = register("first")
    seen_by(path, "1", "out")
    assert json.loads((path.parent / "out" / "meta_0.gmeta").read_text())["x"]


def test_a_parameter_that_is_a_path_gets_one(register, monkeypatch):
    path = register("folder: \"__import__('pathlib').Path\", *more")
    monkeypatch.syspath_prepend(path.parent)
    program: dict[str, object] = {"__name__": "program"}
    exec(compile(path.read_text(), path, "exec"), program)  # noqa: S102  # our own
    monkeypatch.setattr(sys, "argv", [str(path), "some/folder", "out"])
    arguments = program["parse_arguments"]()  # type: ignore[operator]  # a function
    assert arguments.folder == Path("some/folder")


ENUMERATIONS = """
import enum
from pathlib import Path
from gulpio2.testing import FrameAdapter

import shades

class Color(enum.Enum):
    RED = "r"
    BLUE = "b"

class Painted(FrameAdapter):
    def __init__(
        self, first: Color, folder=Path("videos"), color=Color.RED, key=len,
        shade=shades.Color.DARK,
    ):
        super().__init__(num_items=1)
        self.given = f"{first!r} {folder!r} {color!r} {key!r} {shade!r}"

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": {"given": self.given}}
"""


def test_paths_and_members_of_enumerations_are_taken(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("painting", "shades"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "shades.py").write_text(
        "import enum\nclass Color(enum.Enum):\n    DARK = 1\n    BLUE = 2\n"
    )
    (tmp_path / "painting.py").write_text(ENUMERATIONS)
    legacy.gulp2_register_adapter(["painting", "Painted"])
    assert "it does not take key, whose default is no plain" in capsys.readouterr().err
    path = tmp_path / "painted"
    for words, folder, color in (
        ([], "videos", "<Color.RED: 'r'>"),
        (["--color", "BLUE", "--folder", "x"], "x", "<Color.BLUE: 'b'>"),
    ):
        out = tmp_path / folder
        result = start(path, "BLUE", out, *words)
        assert result.returncode == 0, result.stderr
        given = GulpDirectory(out)["item0"][1]["given"]
        expected = (
            f"<Color.BLUE: 'b'> PosixPath('{folder}') {color} {len!r} <Color.DARK: 1>"
        )
        assert given == expected
    for value in ("r", "Color.RED", "GREEN"):
        assert start(path, value, "out").returncode == 2
