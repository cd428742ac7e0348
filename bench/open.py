"""How long a directory takes to open, and how much memory, beside GulpIO2 0.0.4.

    bin/bench open                       1, 10 and 100 million frames
    bin/bench open --millions 1 10       without the last, which takes 5 GB and minutes
    bin/bench open --json FILE           the figures as JSON as well

Directories of 300 frames a video and 100 videos a chunk are made in a temporary
folder: maps as the package writes them, and data files that are one file under many
names (hard links), so that each frame is a real JPEG. What is measured runs in fresh
processes, with warm page cache and after its imports. Private memory is what
``smaps_rollup`` calls private, clean and dirty, grown since the imports; pages of the
mapped index that several processes use are shared, and are told apart.
"""

from __future__ import annotations

import argparse
import mmap
import random
import shutil
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from figures import Report
from open_directories import FRAMES, item_id, make_directory
from open_parts import (
    BUILD,
    EPOCHS_CODE,
    LOOK_UP,
    OPEN,
    measure,
    measure_together,
)
from peers import python_of

WORKERS = 8
EPOCHS = 3
MANY_ITEMS = 1_000_000


def warm(folder: Path) -> None:
    """Have the index in the page cache, as processes that map it leave it there."""
    with (folder / "index.arrow").open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data.madvise(mmap.MADV_RANDOM)
    sum(data[place] for place in range(0, len(data), mmap.PAGESIZE))
    data.close()


def frames_name(num_frames: int) -> str:
    """Say how many frames a directory has."""
    return f"{num_frames // 1_000_000} M frames"


def ids_file(folder: Path, num_items: int) -> Path:
    """Write the ids of a directory beside it."""
    path = folder.with_suffix(".ids")
    if not path.exists():
        path.write_text("".join(f"{item_id(n)}\n" for n in range(num_items)), "ascii")
    return path


def measure_open(
    report: Report, folder: Path, num_items: int, rounds: int, name: str
) -> list[dict[str, Any]]:
    """Open in one fresh process after another, then in eight at once."""
    warm(folder)
    ids = [item_id(random.Random(k).randrange(num_items)) for k in range(rounds)]
    for id_ in ids:  # data files and maps
        measure(OPEN, folder, id_)
    alone = [measure(OPEN, folder, id_) for id_ in ids]
    report.add(
        f"{name}: open to the first frame's bytes",
        [1e3 * found["seconds"] for found in alone],
        "ms",
        "< 50 ms",
    )
    report.add(
        f"{name}: private memory",
        [found["private"] / 1e6 for found in alone],
        "MB",
        "< 16 MB",
    )
    report.add(
        f"{name}: of it pages of files that nobody else maps",
        [found["Private_Clean"] / 1e6 for found in alone],
        "MB",
    )
    seconds, private = [], []
    for k in range(rounds):
        chance = random.Random(rounds + k)
        some = [item_id(chance.randrange(num_items)) for _ in range(WORKERS)]
        measure_together(OPEN, [(folder, id_) for id_ in some])
        together = measure_together(OPEN, [(folder, id_) for id_ in some])
        seconds += [1e3 * found["seconds"] for found in together]
        private += [found["private"] / 1e6 for found in together]
    report.add(
        f"{name}: {WORKERS} processes at once, each: open", seconds, "ms", "< 50 ms"
    )
    report.add(
        f"{name}: {WORKERS} processes at once, each: private memory",
        private,
        "MB",
        "< 16 MB",
    )
    return alone


def measure_epochs(report: Report, folder: Path, num_items: int, name: str) -> None:
    """Read a frame of every item in random order, three times, shared by processes."""
    warm(folder)
    found = measure_together(
        EPOCHS_CODE,
        [
            (folder, item_id(0), num_items, share, WORKERS, EPOCHS)
            for share in range(WORKERS)
        ],
    )
    name = f"{name}, {WORKERS} processes"
    for kind, what in (
        ("private", "private memory"),
        ("Private_Dirty", "of it no pages of files"),
        ("Rss", "with pages that they share"),
    ):
        for epoch in range(EPOCHS):
            report.add(
                f"{name}: {what}, after epoch {epoch + 1}",
                [each["epochs"][epoch][kind] / 1e6 for each in found],
                "MB",
            )
    for kind, what in (("private", "it"), ("Private_Dirty", "no pages of files")):
        growth = [each["epochs"][-1][kind] / each["epochs"][0][kind] for each in found]
        report.add(
            f"{name}: private memory ({what}), last epoch to first",
            growth,
            "times",
            "1 +- 0.02",
        )
    for epoch in (0, EPOCHS - 1):
        report.add(
            f"{name}: a random frame in epoch {epoch + 1}, not decoded",
            [1e6 * each["epochs"][epoch]["seconds_per_item"] for each in found],
            "us",
        )


def measure_build(report: Report, folder: Path, name: str) -> None:
    """Build the index, in a process of its own."""
    found = measure(BUILD, folder, len(list(folder.glob("meta_*.gmeta"))))
    millions = found["frames"] / 1e6
    report.add(
        f"{name}: building the index, per million frames",
        [found["seconds"] / millions],
        "s",
    )
    report.add(
        f"{name}: of that, at the end of an ingest",
        [found["at_end"] / millions],
        "s",
    )
    report.add(f"{name}: memory for building it, at most", [found["peak"] / 1e9], "GB")
    report.add(
        f"{name}: bytes of the index, a frame",
        [found["num_bytes"] / found["frames"]],
        "bytes",
        "<= 20",
    )


def measure_original(
    report: Report, folder: Path, own: Path, num_items: int, rounds: int, name: str
) -> None:
    """Open with GulpIO2 0.0.4, on files as it writes them, in turns with ours."""
    python = python_of("original")
    if python is None:
        return
    seconds, private, ours, theirs, their_memory = [], [], [], [], []
    for k in range(rounds):
        id_ = item_id(random.Random(k).randrange(num_items))
        mine = measure(OPEN, folder, id_)
        other = measure(OPEN, own, id_, python=python)
        ours.append(1e3 * mine["seconds"])
        theirs.append(1e3 * other["seconds"])
        their_memory.append(other["private"] / 1e6)
        seconds.append(other["seconds"] / mine["seconds"])
        private.append(other["private"] / mine["private"])
    report.add(f"{name}: GulpIO2 0.0.4: open", theirs, "ms")
    report.add(f"{name}: GulpIO2 0.0.4: private memory", their_memory, "MB")
    report.add(f"{name}: faster to open than 0.0.4", seconds, "times", ">= 50")
    report.add(f"{name}: less private memory than 0.0.4", private, "times", ">= 50")


def measure_lookup(report: Report, folder: Path, num_items: int) -> None:
    """Find ids, and filter, among many items."""
    name = "1 M items"
    found = measure(LOOK_UP, folder, item_id(7), ids_file(folder, num_items))
    for way, target in (
        ("in directory", "< 5 us"),
        ("chunk_lookup[id]", "< 5 us"),
        ("directory.item(id)", None),
    ):
        report.add(f"{name}: {way}", [1e6 * found[way]], "us", target)
    report.add(f"{name}: the first filter", [1e3 * found["first filter"]], "ms")
    report.add(f"{name}: a filter", [1e3 * found["filter"]], "ms", "< 100 ms")


def versions() -> dict[str, str]:
    """Say with what it was measured."""
    names = ("gulpio2", "numpy", "pyarrow")
    return {name: metadata.version(name) for name in names}


def main() -> None:
    """Make what is missing, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--millions", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--folder", type=Path, help="keep the directories here")
    parser.add_argument(
        "--only",
        nargs="*",
        choices=["make", "build", "open", "epochs", "original", "lookup"],
        help="of what is measured; what is made stays with --folder",
    )
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as made:
        run(options.folder or Path(made), options, report)
    if options.json is not None:
        report.write(options.json, versions())


def run(folder: Path, options: argparse.Namespace, report: Report) -> None:
    """Measure what is asked for."""

    def wanted(step: str) -> bool:
        return not options.only or step in options.only

    def made(name: str, num_frames: int, **settings: Any) -> tuple[Path, int]:
        path = folder / name
        partial = folder / f"{name}.part"
        if not path.exists():
            shutil.rmtree(partial, ignore_errors=True)
            make_directory(partial, num_frames, **settings)
            partial.rename(path)
        return path, num_frames // settings.get("per_item", FRAMES)

    for millions in options.millions:
        name = frames_name(millions * 1_000_000)
        path, num_items = made(f"frames_{millions}", millions * 1_000_000)
        if wanted("build"):
            (path / "index.arrow").unlink(missing_ok=True)
            measure_build(report, path, name)
        if wanted("open"):
            measure_open(report, path, num_items, options.rounds, name)
        if wanted("epochs"):
            measure_epochs(report, path, num_items, name)
        if wanted("original") and millions == 1:
            own, _ = made("original_1", millions * 1_000_000, extras=False)
            measure_original(report, path, own, num_items, options.rounds, name)
    if wanted("lookup"):
        path, num_items = made("items", 2 * MANY_ITEMS, per_item=2, per_chunk=1000)
        measure_lookup(report, path, num_items)


if __name__ == "__main__":
    main()
