"""What safety costs: the journal of an ingest, and verified reads.

``python tests/faults/costs.py`` prints both, in processor time, so that other work on
the machine matters less. Frames are 256 x 340, drawn smooth with noise, some 20 kB.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.ingest import task
from gulpio2.ingest.journal import RunJournal
from gulpio2.testing import FrameAdapter, make_frames


class NoisyAdapter(FrameAdapter):
    """Frames that compress as pictures do."""

    def _frames(self, number: int) -> Any:
        noise = np.random.default_rng(number).integers(0, 24, (256, 340, 3), np.uint8)
        for frame in make_frames(self.num_frames, 256, 340, seed=number):
            yield np.minimum(frame, 230) + noise


def journal_share(folder: Path) -> float:
    """Give the share of an ingest that goes into its journals, syncs included."""
    spent = 0.0
    depth = 0

    def timed(function: Any) -> Any:
        def measured(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent, depth
            depth += 1
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                depth -= 1
                if not depth:
                    spent += time.perf_counter() - began

        return measured

    run = task._TaskRun
    run._write_journal = timed(run._write_journal)  # type: ignore[method-assign]  # restored by the end of the process
    for name in ("begin", "finish_task", "remove"):
        setattr(RunJournal, name, timed(getattr(RunJournal, name)))
    adapter = NoisyAdapter(num_items=40, num_frames=100)
    began = time.perf_counter()
    GulpIngestor(adapter, folder, 10, 1).run()
    return spent / (time.perf_counter() - began)


def verify_share(folder: Path) -> float:
    """Give how much longer clips of eight frames take when they are verified."""
    plain = GulpDirectory(folder, threads=1)
    checked = GulpDirectory(folder, threads=1, verify=True)
    rng = np.random.default_rng(0)
    ids = list(plain.chunk_lookup)
    out = np.empty((8, 256, 340, 3), np.uint8)
    ratios = []
    for _ in range(15):
        requests = [(ids[rng.integers(40)], int(rng.integers(92))) for _ in range(60)]
        spent = []
        for directory in (plain, checked, checked, plain):
            began = time.process_time()
            for id_, start in requests:
                directory.read_clip(id_, slice(start, start + 8), out=out)
            spent.append(time.process_time() - began)
        ratios.append((spent[1] + spent[2]) / (spent[0] + spent[3]) - 1)
    return statistics.median(ratios)


def main() -> None:
    """Run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"journal: {journal_share(folder):.2%} of the ingest")  # noqa: T201
        print(f"verify: {verify_share(folder):.2%} of reading")  # noqa: T201
        size = sum(path.stat().st_size for path in folder.glob("*.gulp"))
        print(f"frames: {size / 4000 / 1000:.1f} kB on average")  # noqa: T201


if __name__ == "__main__":
    main()
