"""The memory of worker processes: it does not grow, however many items there are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gulpio2.testing import make_gulp_directory

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/smaps_rollup").exists(), reason="no smaps_rollup here"
    ),
]

# Eight workers; prints the private memory of each and of the trainer at the end of each
# epoch, in KiB. A worker is a fork of the trainer, whose pages it gets copies of as it
# first writes to them, which it does to reference counts: that takes some hundred
# batches to come to its end, of which an epoch has eighty for each worker.
PROGRAM = """
import gc, os, sys, warnings
warnings.simplefilter("ignore")
from functools import partial
from torch.utils.data import DataLoader
from gulpio2 import GulpDirectory
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    GulpClipDataset, RecyclingCollate, ResumableSampler, default_collate
)

def private():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(l.split()[1]) for l in file if l.startswith("Private_"))

def measured(info):
    return os.getpid(), private()

dataset = GulpClipDataset(
    GulpDirectory(sys.argv[1], indexed=True),
    partial(sample_window, clip_length=8),
    target=measured,
)
collate = {"plain": default_collate, "recycling": RecyclingCollate()}[sys.argv[2]]
sampler = ResumableSampler(dataset)
loader = DataLoader(
    dataset, 4, sampler=sampler, num_workers=8, collate_fn=collate,
    persistent_workers=True,
)
for epoch in range(6):
    sizes = {}
    for _, (processes, found) in sampler.track(loader):
        sizes.update(zip(processes.tolist(), found.tolist()))
    gc.collect()
    sizes[os.getpid()] = private()
    print(*(sizes[process] for process in sorted(sizes)))
"""


@pytest.mark.parametrize("collate", ["plain", "recycling"])
def test_private_memory_of_eight_workers_is_flat(tmp_path, repository, python, collate):
    pytest.importorskip("pyarrow")
    path = tmp_path / "items"
    size = {"num_frames": 12, "height": 64, "width": 96}
    make_gulp_directory(path, num_items=2560, **size).close()
    done = subprocess.run(
        [python, "-c", PROGRAM, path, collate],
        env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    epochs = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [len(sizes) for sizes in epochs] == [9] * 6
    for before, after in zip(epochs[2], epochs[5], strict=True):
        assert after <= 1.02 * before, epochs
    assert sum(epochs[5]) <= 1.02 * sum(epochs[2]), epochs
