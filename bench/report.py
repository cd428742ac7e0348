"""Write docs/performance.md out of the figures in docs/performance/*.json.

    bin/bench report            the page, and the plots of every benchmark
    bin/bench report read       the page, and the plots of some

Tables are made of the files as they are, by this program alone; the plots beside them
by bench/plot.py in an environment with matplotlib, and are left as they are where that
cannot be had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import written
from peers import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "performance"
PAGE = ROOT / "docs" / "performance.md"
TEXTS = Path(__file__).with_name("report")
# The pages' order, and their titles.
VERBS = {
    "read": "Reading",
    "open": "Opening",
    "ingest": "Ingesting",
    "loader": "Loading",
    "cores": "Many cores",
}


def section(verb: str, found: dict[str, Any]) -> Iterator[str]:
    """Write what one benchmark found."""
    yield f"## {VERBS[verb]}\n"
    text = TEXTS / f"{verb}.md"
    if text.exists():
        yield text.read_text("utf-8")
    versions = ", ".join(f"{name} {value}" for name, value in found["versions"].items())
    machine = found["machine"]
    system = str(machine.get("system", ""))
    if "python" in machine:
        system += f", Python {machine['python']}"
    yield (
        f"Measured on {found['date']} with `bin/bench {verb}`: {machine['processor']}, "
        f"{machine['cores']} cores, {system}. {versions}. The figures: "
        f"[performance/{verb}.json](performance/{verb}.json).\n"
    )
    if (FOLDER / f"{verb}.png").exists():
        yield f"![{VERBS[verb]}](performance/{verb}.png)\n"
    missed = [name for name, case in found["cases"].items() if case["met"] is False]
    aimed = sum(bool(case["target"]) for case in found["cases"].values())
    if missed:
        yield f"Of {aimed} targets, missed: {len(missed)}\n"
        for name in missed:
            case = found["cases"][name]
            middle = f"{written(case['median'])} {case['unit']}"
            yield f"* {name}: {middle}, and it should be {case['target']}"
        yield ""
    elif aimed:
        yield f"All {aimed} targets are met.\n"
    for note in found.get("notes", ()):
        yield f"{note}\n"
    yield from tables(found["cases"])


def tables(cases: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Write a table for each group of figures: those of one name before the colon."""
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for name, case in cases.items():
        group, _, rest = name.rpartition(": ")
        groups.setdefault(group, []).append((rest, case))
    for group, rows in groups.items():
        yield f"### {group[:1].upper()}{group[1:]}\n" if group else ""
        yield "| | median | least to largest | unit | target | |"
        yield "|---|---:|---:|---|---|---|"
        for name, case in rows:
            spread = f"{written(case['least'])} to {written(case['largest'])}"
            met = {True: "met", False: "**missed**"}.get(case["met"], "")
            yield (
                f"| {name} | {written(case['median'])} | {spread} | {case['unit']} "
                f"| {case['target'] or ''} | {met if case['target'] else ''} |"
            )
        yield ""


def figures() -> dict[str, dict[str, Any]]:
    """Load what was kept of each benchmark."""
    return {
        verb: json.loads((FOLDER / f"{verb}.json").read_text("utf-8"))
        for verb in VERBS
        if (FOLDER / f"{verb}.json").exists()
    }


def page(found: dict[str, dict[str, Any]]) -> str:
    """Write the page."""
    lines = [(TEXTS / "head.md").read_text("utf-8")]
    for verb, results in found.items():
        lines += section(verb, results)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page, and the plots where they can be made."""
    wanted, found = sys.argv[1:], figures()
    if unknown := set(wanted) - set(VERBS):
        sys.exit(f"{', '.join(sorted(unknown))}: give some of {', '.join(VERBS)}")
    if not found:
        sys.exit(f"no figures in {FOLDER}: run bin/bench read --json FILE and others")
    python = python_of("plot")
    if python is not None:
        program = str(Path(__file__).with_name("plot.py"))
        verbs = [verb for verb in found if not wanted or verb in wanted]
        subprocess.run([str(python), program, str(FOLDER), *verbs], check=True)  # noqa: S603  # of this repository
    PAGE.write_text(page(found), "utf-8")
    sys.stdout.write(f"{PAGE} is written, of {', '.join(found)}\n")


if __name__ == "__main__":
    main()
