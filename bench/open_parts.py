"""What `bench/open.py` measures, and the fresh processes that do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
