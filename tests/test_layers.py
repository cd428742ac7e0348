"""Imports point down: a module needs lower layers and its own subpackage only.

The imports are read, not run, so one inside a function counts like one at the top. So
does one under ``TYPE_CHECKING``: a name that is needed only to annotate is still a
thing that the module knows about, and a Protocol in ``types.py`` is the way to say it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import gulpio2.errors

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(gulpio2.errors.__file__).parent

# The parts of the package, named by the first name below gulpio2, from the bottom up.
LAYERS = (
    (
        *("__version__", "types", "arguments", "errors", "grouping"),
        *("_optional", "forks", "passage"),
    ),
    ("format",),
    ("codecs", "sampling", "order", "media"),
    ("storage",),
    (
        "request",
        "serializers",
        "memory",
        "children",
        "threads",
        "stopwatch",
        "blocks",
        "jobs",
        "reading",
        "gathering",
        "frame_sources",
        "appending",
        "staging",
        "record",
        "item",
        "verbs",
        "rewritten",
        "chunk",
        "query",
        "view",
        "copies",
        "directory",
        "all_items",
        "unfinished",
        "tolerant",
    ),
    ("removal", "repair", "merge", "ingest", "adapters", "sanity"),
    ("torch", "cli", "testing"),
    # The names of 0.0.4, and what `import gulpio2` gives: above everything, so that
    # no module of the package comes in through them.
    ("utils", "sanity_utils", "fileio", "__init__", "__main__"),
)
LAYER_OF = {part: number for number, parts in enumerate(LAYERS) for part in parts}

# Layers of single modules that build on each other: each may import those before it.
IN_ORDER = {0, 4, 7}

# Else a neighbour is imported for a reason only.
SIDEWAYS = {
    ("media", "codecs"): "a JPEG that needs no change is recognised by its header",
    ("ingest", "adapters"): "the label file: one module knows it, one writes it",
    ("merge", "adapters"): "the label file, again",
    ("testing", "ingest"): "makes directories to test with",
    ("cli", "torch"): "gulp2 bench measures the loader",
    ("testing", "adapters"): "the suite that every adapter has to pass",
}

# A module from outside -> the only parts of the package that may name it.
ONLY_IN = {
    "torch": {"torch"},
    "click": {"cli"},
    "tqdm": {"cli", "ingest"},  # GulpIngestor's bar over chunks is 0.0.4's
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
        names[1] in LAYER_OF
        or (package / names[1]).is_dir()
        or (package / f"{names[1]}.py").is_file()
    ):
        return names[1]
    return "__init__"


def may_import(own: str, part: str) -> bool:
    """Say whether one part of the package may import another."""
    if own == part or (own, part) in SIDEWAYS:
        return True
    if LAYER_OF[part] == LAYER_OF[own] and LAYER_OF[own] in IN_ORDER:
        layer = LAYERS[LAYER_OF[own]]
        return layer.index(part) < layer.index(own)
    return LAYER_OF[part] < LAYER_OF[own]


def violations(package: Path) -> list[str]:
    """List each import that breaks the rule, as ``file:line: what``."""
    found = []
    for path in sorted(package.rglob("*.py")):
        own = module_parts(path, package)[1]
        for _, line, target in imports_of(path, package):
            where = f"{path.relative_to(package.parent)}:{line}"
            top = target.partition(".")[0]
            if top in ONLY_IN and own not in ONLY_IN[top]:
                found.append(f"{where}: {own} imports {top}")
            if top != package.name:
                continue
            part = part_of(target, package)
            if own not in LAYER_OF or part not in LAYER_OF:
                found.append(f"{where}: {own} or {part} has no layer in this test")
            elif not may_import(own, part):
                found.append(
                    f"{where}: {own} (layer {LAYER_OF[own]}) imports {target} "
                    f"(layer {LAYER_OF[part]})"
                )
    return found


def test_imports_point_down():
    assert violations(PACKAGE) == []


def test_every_module_has_a_layer():
    parts = {module_parts(path, PACKAGE)[1] for path in PACKAGE.rglob("*.py")}
    assert parts - LAYER_OF.keys() == set()


def test_the_page_for_contributors_shows_the_same_layers(repository):
    text = (repository / "docs" / "contributing.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d|top|compat) \|([^|]*)\|", text, re.M)
    shown = {row: re.findall(r"`(\w+)/?`", parts) for row, parts in rows}
    *numbered, highest = [
        [part for part in parts if part not in ("__version__", "__init__")]
        for parts in LAYERS
    ]
    assert {row: parts for row, parts in shown.items() if row.isdigit()} == {
        str(number): parts for number, parts in enumerate(numbered)
    }
    assert shown["compat"] + shown["top"] == highest


def module_files(package: Path) -> dict[str, Path]:
    """Give the files of a package by the dotted names of their modules."""
    files = {}
    for path in sorted(package.rglob("*.py")):
        parts = module_parts(path, package)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def cycles(package: Path) -> list[tuple[str, ...]]:
    """List the groups of modules that import each other, on whichever way round."""
    modules = module_files(package)
    needs: dict[str, set[str]] = {}
    for name, path in modules.items():
        needs[name] = set()
        for _, _, target in imports_of(path, package):
            while target and target not in modules:
                target = target.rpartition(".")[0]  # a name in that module
            needs[name] |= {target} - {"", name}

    def within_reach(name: str) -> set[str]:
        reached: set[str] = set()
        ahead = [name]
        while ahead:
            new = needs[ahead.pop()] - reached
            reached |= new
            ahead += new
        return reached

    reach = {name: within_reach(name) for name in modules}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in modules
    }
    return sorted(groups - {()})


# Modules that import each other -> why they may.
CYCLES = {
    (
        "gulpio2.ingest.ingestor",
        "gulpio2.ingest.preflight",
    ): "the settings of a run "
    "are the ingestor's attributes, and so its name stands for them, to annotate only",
}


def test_no_modules_import_each_other_without_a_reason():
    found = cycles(PACKAGE)
    assert [group for group in found if group not in CYCLES] == []
    assert CYCLES.keys() - set(found) == set(), "undone: take it off the list"


def test_modules_that_import_each_other_are_found(tmp_path):
    sources = {
        "codecs/__init__.py": "",
        "codecs/jpeg.py": "from gulpio2.codecs import raw",
        "codecs/raw.py": "from gulpio2.codecs.png import decode\nimport gulpio2.chunk",
        "codecs/png.py": "def decode():\n    from .jpeg import read",
        "format/plan.py": "from gulpio2.format import Read",
        "format/__init__.py": "from gulpio2.format.plan import Read",
    }
    png, jpeg, raw = (f"gulpio2.codecs.{name}" for name in ("png", "jpeg", "raw"))
    assert cycles(make_package(tmp_path, sources)) == [
        (jpeg, png, raw),
        ("gulpio2.format", "gulpio2.format.plan"),
    ]


def listed_names(path: Path) -> set[str]:
    """Read what may be imported of a module: ``__all__``, and aliases of types.

    Those under ``TYPE_CHECKING`` are not there when the program runs, and so cannot be
    in ``__all__``.
    """
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            assigned = [each for each in node.body if isinstance(each, ast.Assign)]
            names |= {ast.unparse(each.targets[0]) for each in assigned}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if ast.unparse(target) == "__all__" and node.value is not None:
                names |= set(ast.literal_eval(node.value))
    return names


def unlisted(package: Path) -> list[str]:
    """List each import of a name that its module does not list, private ones apart."""
    modules = module_files(package)
    listed = {name: listed_names(path) for name, path in modules.items()}
    return [
        f"{path.relative_to(package.parent)}:{line}: {target}"
        for path in modules.values()
        for _, line, target in imports_of(path, package)
        for module, _, name in [target.rpartition(".")]
        if module in modules and target not in modules
        if not name.startswith("_") and name not in listed[module]
    ]


def test_what_one_module_imports_the_other_lists():
    assert unlisted(PACKAGE) == []


def test_an_import_of_what_is_not_listed_is_found(tmp_path):
    raw = '__all__ = ["read"]\nif TYPE_CHECKING:\n    Bytes = bytes | bytearray\n'
    sources = {
        "codecs/__init__.py": "",
        "codecs/raw.py": raw,
        "codecs/jpeg.py": "from gulpio2.codecs import raw\n"
        "from gulpio2.codecs.raw import Bytes, _inside, read\nfrom .raw import write",
    }
    assert unlisted(make_package(tmp_path, sources)) == [
        "gulpio2/codecs/jpeg.py:3: gulpio2.codecs.raw.write"
    ]


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


# Module -> why it is longer than a sitting. A new one needs a reason as good.
LONG = {
    "directory.py": "one class, half of it documentation: the interface of 0.0.4",
    "ingest/ingestor.py": "one run from its settings to its end; the steps it calls "
    "are in modules of their own",
}


def test_no_module_is_longer_than_400_lines_without_a_reason():
    roots = (PACKAGE, *(PACKAGE.parent / name for name in ("bench", "examples")))
    lengths = {
        path.relative_to(root).as_posix(): len(path.read_text("utf-8").splitlines())
        for root in roots
        for path in root.rglob("*.py")
    }
    assert {"directory.py", "ingest_parts.py"} <= lengths.keys()
    too_long = {name for name, length in lengths.items() if length > 400}
    assert too_long - LONG.keys() == set()


def unnamed_modules(package: Path) -> list[str]:
    """List the modules that the map of their part, its docstring, does not name."""
    missing = []
    for init in sorted(package.rglob("*/__init__.py")):
        described = ast.get_docstring(ast.parse(init.read_text("utf-8"))) or ""
        named = set(re.findall(r"`(?:[\w.]+\.)?(\w+)`", described))
        own = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        part = init.parent.relative_to(package).as_posix()
        missing += [f"{part}/{name}.py" for name in sorted(own - named)]
    return missing


def test_the_map_of_each_part_names_its_modules():
    assert unnamed_modules(PACKAGE) == []


def test_a_module_that_a_map_leaves_out_is_found(tmp_path):
    sources = {
        "codecs/__init__.py": '"""Codecs: `jpeg`, `gulpio2.codecs.raw`."""',
        "codecs/jpeg.py": "",
        "codecs/raw.py": "",
        "codecs/png.py": "",
    }
    assert unnamed_modules(make_package(tmp_path, sources)) == ["codecs/png.py"]
