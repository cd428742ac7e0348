"""The memory of worker processes: it does not grow, however many items there are."""

from __future__ import annotations

import json
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

# Eight workers; prints what each and the trainer have at the end of each epoch, in KiB:
# private memory that was written to, and all memory that is of no file (anonymous).
#
# A worker is a fork of the trainer, whose pages it gets copies of as it first writes to
# them, which it does to reference counts. Copies count as private and were anonymous
# before. Most of them are made in some hundred batches, of which an epoch has eighty
# for each worker; the last ones take long where the machine is busy, so the three
# epochs that are compared are not the first ones. Private pages that nobody wrote to do
# not count: those are of libraries, and become the trainer's own (``Private_Clean``,
# megabytes of torch's) whenever another program that has torch ends.
PROGRAM = """
import gc, json, os, sys, warnings
warnings.simplefilter("ignore")
from functools import partial
from torch.utils.data import DataLoader
from gulpio2 import GulpDirectory
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    GulpClipDataset, RecyclingCollate, ResumableSampler, default_collate
)

def sizes():
    with open("/proc/self/smaps_rollup") as file:
        found = dict(line.split()[:2] for line in file)
    return int(found["Private_Dirty:"]), int(found["Anonymous:"])

def measured(info):
    return os.getpid(), *sizes()

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
for epoch in range(8):
    found = {}
    for _, (processes, *measured) in sampler.track(loader):
        found.update(zip(processes.tolist(), zip(*(m.tolist() for m in measured))))
    gc.collect()
    found[os.getpid()] = sizes()
    print(json.dumps([found[process] for process in sorted(found)]))
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
    epochs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(processes) for processes in epochs] == [9] * 8
    private, anonymous = zip(
        *(zip(*processes, strict=True) for processes in epochs), strict=True
    )
    for before, after in zip(private[4], private[7], strict=True):
        assert after <= 1.02 * before, private
    assert sum(private[7]) <= 1.02 * sum(private[4]), private
    for before, after in zip(anonymous[0], anonymous[7], strict=True):
        assert after <= 1.01 * before, anonymous
