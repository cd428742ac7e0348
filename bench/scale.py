"""Compute the tables of docs/scale.md from what ``bin/bench ingest`` measured.

    bin/bench ingest long overhead --json docs/performance/ingest.json
    bin/bench open
    bin/bench scale
    bin/bench scale --check      change nothing; status 1 if it would

The tables are between comments that name them; the text around is for people.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CLIPS, CLIP_FRAMES, PER_CHUNK = 1_000_000, 250, 100
WORKERS = (1, 2, 8, 32, 100, 300, 1000)
# Of the directories that are opened.
_LARGEST = "100 M"
# Bytes per second of what is written to: a disk, a network file system.
STORAGES = {
    "A disk of 1 GB/s is busy": 1e9,
    "a network file system of 10 GB/s": 1e10,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured on one machine."""

    rate: float
    """Frames a second of one core, decoded, encoded and stored."""
    frame_bytes: float
    alone: float
    """Core milliseconds of a chunk beside its frames, in one process."""
    processes: float
    """The same, in two local worker processes and their parent."""
    dask: float
    """Milliseconds that pass for a chunk on Dask, with two workers."""
    parent: float
    """Core milliseconds of a chunk in the process with client and scheduler."""
    index: float
    """Core milliseconds of a chunk's map in that process, while workers are busy."""
    index_at_end: float
    """Seconds at the end of the run, for what is left of the index."""
    date: str
    machine: str

    @classmethod
    def read(cls, folder: Path) -> Facts:
        """Read the figures of runs."""
        path = folder / "ingest.json"
        kept = json.loads(path.read_text("utf-8"))

        def median(name: str) -> float:
            case: dict[str, Any] | None = kept["cases"].get(name)
            if case is None:
                sys.exit(f"{path} has no {name!r}: bin/bench ingest long overhead")
            return float(case["median"])

        chunk = "a chunk of one tiny frame"
        machine = kept["machine"]
        whole, at_end = _index_of_a_million(folder / "open.json")
        return cls(
            rate=median("one video of 10 minutes: 1 core"),
            frame_bytes=median("one video of 10 minutes: bytes per frame"),
            alone=median(f"{chunk}: one process"),
            processes=median(f"{chunk}: 2 processes"),
            dask=median(f"{chunk}: Dask, 2 workers, passed"),
            parent=median(f"{chunk}: Dask, 2 workers, in the parent"),
            index=(whole - at_end) * PER_CHUNK * CLIP_FRAMES / 1e3,
            index_at_end=at_end * CLIPS * CLIP_FRAMES / 1e6,
            date=kept["date"],
            machine=f"{machine['cores']} cores, {machine['processor']}",
        )


def _index_of_a_million(path: Path) -> tuple[float, float]:
    """Give the seconds for a million frames of the largest index: all, at the end."""
    cases = json.loads(path.read_text("utf-8"))["cases"]
    found = []
    for part in (
        "building the index, per million frames",
        "of that, at the end of an ingest",
    ):
        name = f"{_LARGEST} frames: {part}"
        if name not in cases:
            sys.exit(f"{path} has no {name!r}: bin/bench open")
        found.append(float(cases[name]["median"]))
    return found[0], found[1]


def span(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> span(30), span(300), span(36000)
    ('30 s', '5.0 min', '10.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:,.1f} h"


def measured(facts: Facts) -> list[str]:
    """Give the table of what was measured."""
    rows = [
        ("frames a second of one core, decoded, encoded, stored", f"{facts.rate:,.0f}"),
        ("bytes per stored frame", f"{facts.frame_bytes:,.0f}"),
        (
            "core time of a chunk beside its frames, one process",
            f"{facts.alone:.1f} ms",
        ),
        ("the same, two local worker processes", f"{facts.processes:.1f} ms"),
        ("time that passes for one on Dask with two workers", f"{facts.dask:.1f} ms"),
        (
            "core time of one in the process with client and scheduler",
            f"{facts.parent:.1f} ms",
        ),
        (
            "time of the same to read the map of a chunk, for the index",
            f"{facts.index:.1f} ms",
        ),
        (
            "what is left of the index at the end, for all clips",
            span(facts.index_at_end),
        ),
    ]
    return [
        f"Measured on {facts.date} ({facts.machine}). A clip has {CLIP_FRAMES} frames.",
        "",
        "| figure | value |",
        "| --- | ---: |",
        *(f"| {name} | {value} |" for name, value in rows),
    ]


def follows(facts: Facts) -> list[str]:
    """Give the table of what follows for more workers."""
    work = CLIPS * CLIP_FRAMES / facts.rate
    tail = PER_CHUNK * CLIP_FRAMES / facts.rate
    chunks = CLIPS / PER_CHUNK
    parent = chunks * facts.parent / 1e3
    maps = chunks * facts.index / 1e3
    lines = [
        "| workers | work | tail at most | core hours | written | parent, of it "
        "| index at the end |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for workers in WORKERS:
        seconds = work / workers
        written = workers * facts.rate * facts.frame_bytes / 1e9
        share = 100 * parent / seconds
        # One worker is the parent itself, which reads no map before the end.
        leisure = seconds - parent if workers > 1 else 0.0
        index = facts.index_at_end + max(0.0, maps - leisure)
        lines.append(
            f"| {workers:,} | {span(seconds)} | {span(tail) if workers > 1 else ''} "
            f"| {work / 3600:.0f} | {written:.2f} GB/s | {share:.2g} % "
            f"| {span(index)} |"
        )
    return lines


def limits(facts: Facts) -> list[str]:
    """Give where something else than the cores becomes the limit."""
    speed = facts.rate * facts.frame_bytes
    chunk = CLIP_FRAMES / facts.rate
    total = CLIPS * CLIP_FRAMES * facts.frame_bytes / 1e12
    many = 1e3 / facts.parent
    full = ", ".join(
        f"{name} with {size / speed:,.0f}" for name, size in STORAGES.items()
    )
    at_most = many * chunk
    tail = PER_CHUNK * chunk
    maps = CLIPS / PER_CHUNK * facts.index / 1e3
    points = (
        f"* **Storage first.** The result has {total:.1f} TB. {full}. More workers "
        "than that wait.",
        f"* **Then the tail.** One chunk of {PER_CHUNK} clips takes {span(tail)}, "
        f"which is {1000 * tail / (CLIPS * chunk):.0%} of the run of 1,000 workers. "
        "Give fewer clips to a chunk (`--videos-per-chunk`). On one machine the tail "
        "costs little: the workers share the last chunks out.",
        f"* **Then the scheduler.** At {many:,.0f} chunks a second it keeps "
        f"{at_most * PER_CHUNK:,.0f} workers busy with chunks of {PER_CHUNK} clips, "
        f"and {at_most:,.0f} with chunks of a single clip. Larger chunks, or "
        "`--shard`, take that limit away: shares have no parent in common, and "
        "`gulp2 merge` links chunks without reading their frames.",
        f"* **And the index.** To read the maps of all clips takes one core "
        f"{span(maps)}, mostly while workers are busy, and {span(facts.index_at_end)} "
        f"are left at the end; `gulp2 merge` takes both. A directory without an index "
        "is whole, and `gulp2 index` makes one later.",
    )
    return [
        line
        for point in points
        for line in textwrap.wrap(
            point, 88, subsequent_indent="  ", break_on_hyphens=False
        )
    ]


def filled(text: str, facts: Facts) -> str:
    """Put the tables into the page."""
    for table in (measured, follows, limits):
        name = table.__name__
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        content = "\n".join(table(facts))
        if not re.search(pattern, text, re.DOTALL):
            sys.exit(f"the page has no place for {name!r}")
        text = re.sub(pattern, rf"\g<1>{content}\n\g<2>", text, flags=re.DOTALL)
    return text


def main() -> None:
    """Rewrite the page, or say that it is behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    facts = Facts.read(ROOT / "docs" / "performance")
    page = ROOT / "docs" / "scale.md"
    before = page.read_text("utf-8")
    after = filled(before, facts)
    if given.check:
        sys.exit(before != after)
    page.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
