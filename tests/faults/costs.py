"""What safety costs: the journal of an ingest, its slots, and verified reads.

``python tests/faults/costs.py`` prints them. The journal is timed where it is written,
syncs included; the rest is compared in turns, in processor time, so that other work on
the machine matters less. Frames are 256 x 340, drawn smooth with noise, some 40 kB.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.ingest import items
from gulpio2.ingest.crashes import WorkerSlots
from gulpio2.ingest.journal import RunJournal
from gulpio2.ingest.task_journal import TaskJournal
from gulpio2.testing import FrameAdapter, make_frames

if TYPE_CHECKING:
    from gulpio2.types import Verify


class DrawnAdapter(FrameAdapter):
    """Frames that compress as pictures do, drawn beforehand: no time goes into them."""

    def __init__(self, num_items: int, num_frames: int, size: tuple[int, int]) -> None:
        super().__init__(num_items=num_items, num_frames=num_frames)
        noise = np.random.default_rng(0).integers(0, 24, (*size, 3), np.uint8)
        self.drawn = [np.minimum(f, 230) + noise for f in make_frames(100, *size)]

    def _frames(self, number: int) -> Any:
        for index in range(self.num_frames):
            yield self.drawn[(number + index) % len(self.drawn)]


class Ready(FrameAdapter):
    """Items that take no time at all."""

    def __init__(self, num_items: int) -> None:
        super().__init__(num_items=num_items, num_frames=1)
        (self.item,) = super().iter_data(slice(0, 1))

    def iter_data(self, slice_element: slice | None = None) -> Any:
        """Give the same item again and again."""
        return itertools.repeat(
            self.item, len(range(self.num_items)[slice_element or slice(None)])
        )


class _Clock:
    """Time that goes into some functions, and what asking for the time takes of it."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.calls = 0

    def timed(self, function: Any) -> Any:
        """Wrap a function whose time counts."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.spent += time.perf_counter() - began
                self.calls += 1

        return measured

    def seconds(self) -> float:
        """Give the time without what wrapped functions that do nothing would show."""
        idle = _Clock()
        nothing = idle.timed(lambda *_args: None)
        for number in range(20_000):
            nothing(number, number, number)
        return self.spent - self.calls * idle.spent / idle.calls


def journal_share(adapter: FrameAdapter, folder: Path) -> float:
    """Give the share of an ingest that goes into its journals, syncs included.

    What the ingest needs in any case is not theirs: that frames are gathered and
    written, and that an entry becomes JSON, which the map takes over.
    """
    clock = _Clock()
    methods: dict[type, list[str]] = {
        TaskJournal: ["__init__", "add_item", "write", "write_items", "close"],
        RunJournal: ["begin", "finish_task", "remove"],
    }
    with contextlib.ExitStack() as stack:
        for kind, names in methods.items():
            for name in names:
                method = clock.timed(getattr(kind, name))
                stack.enter_context(mock.patch.object(kind, name, method))
        began = time.perf_counter()
        GulpIngestor(adapter, folder, max(1, len(adapter) // 4), 1).run()
        whole = time.perf_counter() - began
    return clock.seconds() / whole


def journal_shares(adapter: FrameAdapter, folder: Path) -> list[float]:
    """Measure it in five runs, each begun when the disk has nothing else to write.

    The first sync of a run would otherwise wait for what others have left unwritten.
    """
    shares = []
    for turn in range(5):
        os.sync()
        shares.append(journal_share(adapter, folder / str(turn)))
    return sorted(shares)


def slots_seconds(num_items: int = 20_000) -> float:
    """Give how much longer an item takes where a worker tells what it is at."""
    slots = WorkerSlots(multiprocessing.get_context("fork"), 1)
    tell = slots.claim()
    slots.close()
    adapter = Ready(num_items)
    differences = []
    for turn in range(16):
        spent = {}
        for tells in (True, False) if turn % 2 else (False, True):
            with mock.patch.object(items, "_tell", tell if tells else None):
                began = time.process_time()
                given = sum(1 for _ in items.place_items(adapter, 0, num_items))
                spent[tells] = time.process_time() - began
            if given != num_items:
                raise RuntimeError(f"{given} of {num_items} items were given")
        differences.append((spent[True] - spent[False]) / num_items)
    return statistics.median(differences)


def verify_share(folder: Path, seed: int) -> float:
    """Give how much longer clips of eight frames take when they are verified.

    Of each clip the fastest of ten reads of each kind, in turns, is taken: what else
    goes on in a computer makes a read slower and never faster.
    """
    settings: tuple[Verify, ...] = (False, "frames")
    directories = [
        GulpDirectory(folder, threads=1, verify=verify) for verify in settings
    ]
    rng = np.random.default_rng(seed)
    ids = list(directories[0].chunk_lookup)
    out = np.empty((8, 256, 340, 3), np.uint8)
    spent = [0.0, 0.0]
    for _ in range(40):
        id_, start = ids[rng.integers(len(ids))], int(rng.integers(92))
        fastest = [np.inf, np.inf]
        for turn in range(20):
            which = (turn + turn // 2) % 2  # one, other, other, one
            began = time.process_time()
            directories[which].read_clip(id_, slice(start, start + 8), out=out)
            fastest[which] = min(fastest[which], time.process_time() - began)
        spent = [a + b for a, b in zip(spent, fastest, strict=True)]
    return spent[1] / spent[0] - 1


def verify_shares(folder: Path) -> list[float]:
    """Measure it in nine processes: where each has its buffers makes a difference."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        seeds = [(folder, seed) for seed in range(9)]
        return sorted(pool.starmap(verify_share, seeds, chunksize=1))


def main() -> None:
    """Run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = {
            "40 items of 100 frames": DrawnAdapter(40, 100, (256, 340)),
            "4,000 items of a frame": DrawnAdapter(4000, 1, (256, 340)),
            "20,000 items of a frame of 32 x 32": DrawnAdapter(20_000, 1, (32, 32)),
        }
        for what, adapter in sets.items():
            lowest, *_, highest = shares = journal_shares(adapter, folder / what)
            print(
                f"journal: {statistics.median(shares):.2%} of ingesting {what}, "
                f"{lowest:.2%} to {highest:.2%}"
            )
        print(f"slots: {slots_seconds() * 1e6:.2f} us for each item")
        folder = folder / "40 items of 100 frames" / "0"
        lowest, *_, highest = shares = verify_shares(folder)
        print(
            f"verify: {statistics.median(shares):.2%} of reading, "
            f"{lowest:.2%} to {highest:.2%}"
        )
        size = sum(path.stat().st_size for path in folder.glob("*.gulp"))
        print(f"frames: {size / 4000 / 1000:.1f} kB on average")


if __name__ == "__main__":
    main()
