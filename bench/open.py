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
import base64
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zlib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import Report
from peers import python_of

if TYPE_CHECKING:
    from collections.abc import Sequence

FRAMES, VIDEOS = 300, 100  # of a video, of a chunk
LABELS = 400
WORKERS = 8
EPOCHS = 3
MANY_ITEMS = 1_000_000
KINDS = 64  # different JPEGs
SOURCE = {"width": 340, "height": 256, "codec": "h264", "frame_rate": [25, 1]}


# ------------------------------------------------------------------ directories
def make_directory(
    folder: Path,
    num_frames: int,
    *,
    per_item: int = FRAMES,
    per_chunk: int = VIDEOS,
    extras: bool = True,
) -> int:
    """Write a directory; give the number of its items.

    Every chunk has the same records under other ids, so that one data file does for
    all of them.
    """
    from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
    from gulpio2.format.entry import verify_entry
    from gulpio2.format.gmeta import dump_gmeta, load_gmeta
    from gulpio2.testing import make_frames

    folder.mkdir(parents=True)
    num_items = num_frames // per_item
    jpegs = [
        encode_frame(frame, EncoderSettings()) for frame in make_frames(KINDS, 256, 340)
    ]
    first = folder / "data_0.gulp"
    starts = _write_data(first, jpegs, per_chunk * per_item)
    for number in range(-(-num_items // per_chunk)):
        ids = range(number * per_chunk, min((number + 1) * per_chunk, num_items))
        entries = [
            _entry(item, place * per_item, per_item, jpegs, starts, extras=extras)
            for place, item in enumerate(ids)
        ]
        text = "{" + ", ".join(entries) + "}"
        if number == 0:
            as_written = dump_gmeta(load_gmeta(text.encode(), where="the first map"))
            for id_, entry in json.loads(text).items():
                verify_entry(id_, entry, where="the first map")
            if as_written != text.encode("ascii"):
                sys.exit("the maps are not those that the package writes")
        else:
            os.link(first, folder / f"data_{number}.gulp")
        (folder / f"meta_{number}.gmeta").write_text(text, "ascii")
    return num_items


def item_id(number: int) -> str:
    """Name an item, as datasets of actions do."""
    return f"class_{number % LABELS:03}/clip_{number:08}"


def _write_data(path: Path, jpegs: Sequence[bytes], count: int) -> list[int]:
    """Write the records; give the offset of each, and the end."""
    starts = [0]
    with path.open("wb") as file:
        for number in range(count):
            jpeg = jpegs[number % KINDS]
            padded = jpeg + bytes(-len(jpeg) % 4)
            file.write(padded)
            starts.append(starts[-1] + len(padded))
    return starts


_SPANS: dict[tuple[int, int], tuple[str, str]] = {}


def _entry(
    item: int,
    first: int,
    count: int,
    jpegs: Sequence[bytes],
    starts: Sequence[int],
    *,
    extras: bool,
) -> str:
    """Write an entry of a map, with its id."""
    if (first, count) not in _SPANS:
        infos = []
        crc32 = b""
        for place in range(first, first + count):
            jpeg = jpegs[place % KINDS]
            length = starts[place + 1] - starts[place]
            infos.append([starts[place], length - len(jpeg), length])
            crc32 += zlib.crc32(jpeg).to_bytes(4, "little")
        packed = base64.b64encode(crc32).decode("ascii")
        _SPANS[first, count] = json.dumps(infos), packed
    spans, packed = _SPANS[first, count]
    meta = {"label": f"label_{item % LABELS}", "fps": 25.0, "number": item}
    entry = f'{{"frame_info": {spans}, "meta_data": [{json.dumps(meta)}]'
    id_ = json.dumps(item_id(item))
    if not extras:
        return f"{id_}: {entry}}}"
    entry += (
        f', "gulp2": {{"crc32": "{packed}", "time_base": [1, 12800], '
        f'"pts": [[0, 512, {count}]], "source": {json.dumps(SOURCE)}'
    )
    check = zlib.crc32(f"[{id_}, {entry}}}}}]".encode("ascii"))
    return f'{id_}: {entry}, "check": "{check:08x}"}}}}'


# ------------------------------------------------------------------ in fresh processes
# Runs in this package's Python and in that of GulpIO2 0.0.4.
OPEN = """
import json, os, sys, time
sys.dont_write_bytecode = True
import gulpio2
from gulpio2 import GulpDirectory

def memory():
    found = dict.fromkeys(("Private_Clean", "Private_Dirty", "Anonymous", "Rss"), 0)
    with open("/proc/self/smaps_rollup") as lines:
        for line in lines:
            key, _, rest = line.partition(":")
            if key in found:
                found[key] = int(rest.split()[0]) * 1024
    return found

def first_bytes(directory, id_):
    if hasattr(directory, "read_jpegs"):
        return directory.read_jpegs(id_, [0])[0]
    return directory[id_, [0]][0][0]

folder, id_ = sys.argv[1:3]
decoder = {} if hasattr(GulpDirectory, "read_jpegs") else {"jpeg_decoder": bytes}
if "--wait" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
before = memory()
began = time.perf_counter()
directory = GulpDirectory(folder, **decoder)
opened = time.perf_counter()
jpeg = first_bytes(directory, id_)
seconds = time.perf_counter() - began
assert jpeg[:2] == b"\\xff\\xd8" and jpeg.rstrip(b"\\0")[-2:] == b"\\xff\\xd9"
after = memory()
result = {"seconds": seconds, "opening": opened - began}
for key in after:
    result[key] = after[key] - before[key]
result["private"] = result["Private_Clean"] + result["Private_Dirty"]
"""

EPOCHS_CODE = (
    """
import sys
import numpy as np
num_items, share, of, epochs = map(int, sys.argv[3:7])
# What the programs hold themselves is there before anything is measured.
orders = [np.random.default_rng(n).permutation(num_items) for n in range(epochs)]
orders = [order[share::of].copy() for order in orders]
"""
    + OPEN
    + """
result["epochs"] = []
for order in orders:
    began = time.perf_counter()
    for place in order:
        id_ = f"class_{place % 400:03}/clip_{place:08}"
        if len(directory.read_jpegs(id_, [int(place % 300)])) != 1:
            sys.exit("no frame")
    seconds = time.perf_counter() - began
    found = memory()  # of the whole process
    found["private"] = found["Private_Clean"] + found["Private_Dirty"]
    found["seconds_per_item"] = seconds / len(order)
    result["epochs"].append(found)
"""
)

LOOK_UP = (
    OPEN
    + """
import random, timeit
ids = [line.rstrip() for line in open(sys.argv[3])]
some = random.Random(1).sample(ids, 100_000)
ways = {
    "in directory": lambda: [id_ in directory for id_ in some],
    "chunk_lookup[id]": lambda: [directory.chunk_lookup[id_] for id_ in some],
    "directory.item(id)": lambda: [directory.item(id_) for id_ in some],
}
for name, way in ways.items():
    way()
    result[name] = min(timeit.repeat(way, number=1, repeat=5)) / len(some)
import pyarrow.compute, pyarrow.dataset
text = "label == 'label_7' and num_frames >= 2"
def filtered():
    began = time.perf_counter()
    found = len(directory.query(text))
    assert found == len(ids) // 400, found
    return time.perf_counter() - began
result["first filter"] = filtered()
result["filter"] = min(filtered() for _ in range(7))
"""
)

BUILD = """
import json, resource, sys, time
import pyarrow
from gulpio2.storage.index.ahead import MapsAhead
from gulpio2.storage.index.replacing import replace_index
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder, chunks = sys.argv[1], int(sys.argv[2])
began = time.perf_counter()
# As an ingest does, which reads maps while its workers are busy.
maps = MapsAhead(folder)
for number in range(chunks):
    maps.add(number)
while maps.read_next():
    pass
read = time.perf_counter()
if len(maps.parts) != chunks:
    sys.exit(f"{len(maps.parts)} of {chunks} maps were read")
summary = replace_index(folder, ahead=maps.parts)
ended = time.perf_counter()
result = {
    "seconds": ended - began,
    "at_end": ended - read,
    "peak": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
    "num_bytes": summary.num_bytes,
    "frames": summary.frames,
}
"""
# The others are measured as well before one ends, and its pages are theirs alone.
TELL = "\nprint(json.dumps(result), flush=True); sys.stdin.read()\n"


def start(code: str, *arguments: Any, python: Path | None = None) -> Any:
    """Start a fresh process."""
    environment = dict(os.environ)
    if python is not None:
        environment.pop("PYTHONPATH", None)  # else it would find this package
    return subprocess.Popen(  # noqa: S603  # this very file's programs
        [str(python or sys.executable), "-c", code + TELL, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        cwd="/",
    )


def finish(process: Any) -> dict[str, Any]:
    """Wait for what a process measured."""
    text = process.stdout.readline()
    if not text:
        sys.exit("a measuring process failed")
    found: dict[str, Any] = json.loads(text)
    return found


def end(process: Any) -> None:
    """Let a process go that has told what it measured."""
    process.communicate()
    if process.returncode:
        sys.exit("a measuring process failed")


def measure(code: str, *arguments: Any, python: Path | None = None) -> dict[str, Any]:
    """Run a program to its end, and take what it tells."""
    process = start(code, *arguments, python=python)
    found = finish(process)
    end(process)
    return found


def measure_together(code: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run a process for each of several lists of arguments, begun at one moment."""
    processes = [start(code, *each, "--wait") for each in arguments]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [finish(process) for process in processes]
    for process in processes:
        end(process)
    return found


# ------------------------------------------------------------------ cases
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
