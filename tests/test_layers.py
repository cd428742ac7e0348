"""Imports point down: a module needs lower layers and its own subpackage only.

The imports are read, not run, so one inside a function counts like one at the top. So
does one under ``TYPE_CHECKING``: a name that is needed only to annotate is still a
thing that the module knows about, and a Protocol in ``types.py`` is the way to say it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import gulpio2.errors

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(gulpio2.errors.__file__).parent

# The first name below gulpio2 -> its layer.
LAYERS = {
    "__version__": 0,
    "errors": 0,
    "types": 0,
    "_optional": 0,
    "format": 1,
    "codecs": 2,
    "sampling": 2,
    "order": 2,
    "media": 2,
    "storage": 3,
    "index": 3,
    "chunk": 4,
    "directory": 4,
    "ingest": 5,
    "adapters": 5,
    "sanity": 5,
    "testing": 5,
    "torch": 6,
    "cli": 6,
    # The names of 0.0.4, and what `import gulpio2` gives: above everything, so that
    # no module of the package comes in through them.
    "fileio": 7,
    "utils": 7,
    "sanity_utils": 7,
    "__init__": 7,
}

# Neighbours in one layer of which the first may import the second, and why.
SIDEWAYS = {
    ("_optional", "errors"): "says what is missing with the package's own error",
    ("types", "errors"): "values that check themselves",
    ("directory", "chunk"): "a directory is a set of chunks",
    ("index", "storage"): "an index is read from files",
    ("media", "codecs"): "a JPEG that needs no change is recognised by its header",
    ("adapters", "ingest"): "no adapter runs itself, but 0.0.4 let writers be shared",
    ("testing", "ingest"): "makes directories to test with",
    ("testing", "adapters"): "the suite that every adapter has to pass",
    ("fileio", "utils"): "0.0.4 had the names of one in the other",
    ("__init__", "fileio"): "the public names are those of 0.0.4 and more",
}

# A module from outside -> the only parts of the package that may name it.
ONLY_IN = {
    "torch": {"torch"},
    "click": {"cli"},
    "tqdm": {"cli"},
    "av": {"media", "cli"},
}

# What would let time, chance or a disk into the pure layer.
IMPURE = {
    "datetime", "io", "os", "pathlib", "random", "secrets", "shutil", "socket",
    "subprocess", "tempfile", "time",
}  # fmt: skip


class Import(NamedTuple):
    """One name that a source file imports."""

    path: Path
    line: int
    target: str
    """Dotted and absolute, with the imported name where that may be a module."""


def module_parts(path: Path, package: Path) -> tuple[str, ...]:
    """Give ``('gulpio2', 'format', 'plan')`` for a source file of the package."""
    return (package.name, *path.relative_to(package).with_suffix("").parts)


def imports_of(path: Path, package: Path) -> Iterator[Import]:
    """Read the imports of one file, relative ones made absolute."""
    parts = module_parts(path, package)
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(path, node.lineno, f"{stem}.{alias.name}")
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(("import_module", "require"))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield Import(path, node.lineno, str(node.args[0].value))


def part_of(target: str, package: Path) -> str:
    """Give the part of the package that an imported name belongs to."""
    names = target.split(".")
    if len(names) > 1 and (
        names[1] in LAYERS
        or (package / names[1]).is_dir()
        or (package / f"{names[1]}.py").is_file()
    ):
        return names[1]
    return "__init__"


def violations(package: Path) -> list[str]:
    """List each import that breaks the rule, as ``file:line: what``."""
    found = []
    for path in sorted(package.rglob("*.py")):
        own = module_parts(path, package)[1]
        for path_, line, target in imports_of(path, package):
            where = f"{path_.relative_to(package.parent)}:{line}"
            top = target.partition(".")[0]
            if top in ONLY_IN and own not in ONLY_IN[top]:
                found.append(f"{where}: {own} imports {top}")
            if top != package.name:
                continue
            part = part_of(target, package)
            if part == own or (own, part) in SIDEWAYS:
                continue
            if own not in LAYERS or part not in LAYERS:
                found.append(f"{where}: {own} or {part} has no layer in this test")
            elif LAYERS[part] >= LAYERS[own]:
                found.append(
                    f"{where}: {own} (layer {LAYERS[own]}) imports {target} "
                    f"(layer {LAYERS[part]})"
                )
    return found


def test_imports_point_down():
    assert violations(PACKAGE) == []


def test_every_module_has_a_layer():
    parts = {module_parts(path, PACKAGE)[1] for path in PACKAGE.rglob("*.py")}
    assert parts - LAYERS.keys() == set()


def test_every_folder_of_the_package_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    without = [folder for folder in folders if not (folder / "__init__.py").is_file()]
    assert without == [], "a folder without __init__.py is left out of the wheel"


def test_the_format_layer_needs_no_file_clock_or_chance():
    files = sorted((PACKAGE / "format").rglob("*.py"))
    impure = [
        f"{path.name}:{line}: imports {target}"
        for file in files
        for path, line, target in imports_of(file, PACKAGE)
        if target.partition(".")[0] in IMPURE
    ]
    opened = [
        f"{path.name}:{node.lineno}: opens a file"
        for path in files
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "open"
    ]
    assert impure + opened == []


def test_the_errors_import_nothing():
    names = [item.target for item in imports_of(PACKAGE / "errors.py", PACKAGE)]
    assert names == ["__future__.annotations"]


def make_package(folder: Path, sources: dict[str, str]) -> Path:
    """Write a package of the given sources, to try the rule on."""
    package = folder / "gulpio2"
    for name in ("errors.py", "format/__init__.py", "cli/__init__.py", "chunk.py"):
        sources.setdefault(name, "")
    for name, text in sources.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return package


def test_an_upward_import_is_named_with_file_and_line(tmp_path):
    source = "import json\n\nfrom gulpio2.cli import main\n"
    package = make_package(tmp_path, {"format/plan.py": source})
    assert violations(package) == [
        "gulpio2/format/plan.py:3: format (layer 1) imports gulpio2.cli.main (layer 6)"
    ]


def test_every_way_of_importing_is_seen(tmp_path):
    ways = {
        "a.py": "import gulpio2.cli",
        "b.py": "from gulpio2 import cli",
        "c.py": "from .. import cli",
        "d.py": "from ..cli import main",
        "e.py": "def f():\n    from gulpio2.cli import main",
        "f.py": "if TYPE_CHECKING:\n    from gulpio2.cli import main",
        "g.py": "import importlib\nimportlib.import_module('gulpio2.cli')",
        "h.py": "from gulpio2 import GulpDirectory",
    }
    sources = {f"format/{name}": text for name, text in ways.items()}
    found = violations(make_package(tmp_path, sources))
    assert [line.partition(":")[0][-4:] for line in found] == sorted(ways)


def test_downward_and_own_imports_are_allowed(tmp_path):
    sources = {
        "format/plan.py": "from gulpio2.errors import X\nfrom . import records",
        "chunk.py": "from gulpio2 import errors\nfrom gulpio2.format import plan",
    }
    assert violations(make_package(tmp_path, sources)) == []
