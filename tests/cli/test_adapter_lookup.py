"""Adapters by their names."""

from __future__ import annotations

import sys

import click
import pytest

from gulpio2 import adapters
from gulpio2.cli.adapter_lookup import BUILT_IN, find_adapter


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_adapter_is_found_by_its_name(name):
    assert find_adapter(name) is getattr(adapters, BUILT_IN[name])


def test_every_adapter_of_the_package_has_a_name():
    concrete = {n for n in adapters.__all__ if n.endswith("Adapter")}
    assert concrete - {"AbstractDatasetAdapter"} == set(BUILT_IN.values())


def test_a_class_is_found_in_a_file_by_a_name_that_other_processes_know(adapter_file):
    cls = find_adapter(f"{adapter_file}:MyAdapter")
    assert cls.__module__ == "my_adapters"
    assert str(adapter_file.parent) in sys.path
    assert find_adapter("my_adapters.py:MyAdapter") is cls


def test_a_class_is_found_in_a_module_of_the_working_directory(adapter_file):
    assert adapter_file.exists()
    assert find_adapter("my_adapters:MyAdapter").__name__ == "MyAdapter"
    assert find_adapter("gulpio2.adapters:TableAdapter") is adapters.TableAdapter


def test_a_file_whose_name_is_taken_is_found_all_the_same(tmp_path, adapter_file):
    folder = tmp_path / "other"
    folder.mkdir()
    for name in ("json.py", "two-parts.py", "my_adapters.py"):
        (folder / name).write_text(adapter_file.read_text())
    first = find_adapter(f"{adapter_file}:MyAdapter")
    for name in ("json.py", "two-parts.py", "my_adapters.py"):
        cls = find_adapter(f"other/{name}:MyAdapter")
        assert cls is not first
        assert sys.modules[cls.__module__].__file__ == str(folder / name)
        assert sys.modules[cls.__module__].MyAdapter is cls
    assert sys.modules["json"].__name__ == "json"
    assert hasattr(sys.modules["json"], "dumps")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vido-folder", "Did you mean video-folder"),
        ("nonsense", "Built in are video-folder, frame-folder"),
        ("no_such_module:X", "No module 'no_such_module'"),
        ("no.such.module:X", r"No module 'no\.such\.module'"),
        ("nowhere.py:X", r"No file 'nowhere\.py'"),
        ("nowhere.py", r"No file 'nowhere\.py'"),
        (
            "my_adapters.py",
            r"name the class in it as well: my_adapters\.py:MyAdapter\. There is: ",
        ),
        ("gulpio2.adapters:TabelAdapter", r"There is: TableAdapter"),
        ("gulpio2.adapters:Qqq", r"There is: .*KineticsAdapter.*VideoFolderAdapter"),
        ("my_adapters.py:MyAdaptor", r"No class 'MyAdaptor' .*There is: MyAdapter"),
        ("my_adapters.py:os", r"No class 'os' in my_adapters\.py"),
        ("json:Nothing", r"none has iter_data\(\)"),
        (":X", "No module ''"),
    ],
)
def test_what_is_not_there_is_wrong_usage_with_a_hint(adapter_file, name, message):
    assert adapter_file.exists()
    with pytest.raises(click.UsageError, match=message):
        find_adapter(name)


def test_a_file_without_an_adapter_says_so(tmp_path):
    (tmp_path / "plain.py").write_text("class Thing:\n    pass\n")
    with pytest.raises(click.UsageError, match=r"plain\.py has no adapter"):
        find_adapter("plain.py")


def test_a_module_that_lacks_something_itself_says_so(tmp_path):
    (tmp_path / "needy.py").write_text("import no_such_thing_at_all\n")
    with pytest.raises(click.ClickException, match="no_such_thing_at_all"):
        find_adapter("needy:X")


@pytest.mark.parametrize(
    "source",
    ["int('no number')\n", "raise ModuleNotFoundError('install what is needed')\n"],
)
def test_a_module_that_raises_is_not_said_to_be_missing(tmp_path, source):
    name = f"raising_{len(source)}"
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(click.ClickException, match="cannot be imported") as caught:
        find_adapter(f"{name}:X")
    assert f'{name}.py", line 1' in caught.value.message


@pytest.mark.parametrize("name", ["json:JSONDecoder", "unfinished.py:Unfinished"])
def test_a_class_that_is_no_adapter_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "unfinished.py").write_text(
        "from gulpio2.adapters import AbstractDatasetAdapter\n"
        "class Unfinished(AbstractDatasetAdapter): pass\n"
    )
    message = f"'{name}' is no adapter: it has no __len__ and no iter_data"
    with pytest.raises(click.UsageError, match=message):
        find_adapter(name)


@pytest.mark.parametrize(
    ("source", "last"),
    [
        ("import nowhere_to_be_found\n", "ModuleNotFoundError"),
        ("def x(:\n", "SyntaxError"),
        ("def f():\n    raise RuntimeError('boom')\nf()\n", "RuntimeError: boom"),
        ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
    ],
)
@pytest.mark.parametrize("class_name", [":Mine", ""])
def test_an_error_in_the_users_file_is_told_from_there_on(
    gulp2, tmp_path, source, last, class_name
):
    (tmp_path / "faulty_adapter.py").write_text(source)
    place = f"{tmp_path}/faulty_adapter.py{class_name}"
    error = gulp2("ingest", place, "a", "b", status=1).stderr
    assert "faulty_adapter.py cannot be imported:" in error
    assert last in error.strip().splitlines()[-1]
    assert 'faulty_adapter.py", line' in error
    assert "click" not in error
    assert "importlib" not in error


def test_an_interrupt_while_the_users_file_makes_a_class_is_one(gulp2, tmp_path):
    (tmp_path / "interrupted_adapter.py").write_text(
        "class Interrupting:\n"
        "    def __set_name__(self, owner, name):\n"
        "        raise KeyboardInterrupt\n"
        "class Mine:\n"
        "    field = Interrupting()\n"
    )
    place = tmp_path / "interrupted_adapter.py:Mine"
    result = gulp2("ingest", place, "a", status=130)
    assert result.stderr == "\ngulp2: interrupted\n"
