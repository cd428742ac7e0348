"""Measure the loader beside the codec's own limit and beside a DataLoader.

    python bench/loader.py VIDEO [--seconds 30]

The video is gulped a few times over into a temporary directory; then, in turn and
several times, clips of 16 frames are loaded in shuffled batches of 8, and JPEGs are
decoded from memory by as many threads. What else the machine does falls on all of them,
so the ratios of a round are what counts; the medians of those are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from gulpio2 import GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
from gulpio2.order import RepeatedOrder
from gulpio2.sampling import sample_window
from gulpio2.torch import (
    GulpClipDataset,
    GulpLoader,
    RandomResizedCrop,
    ResumableSampler,
    default_collate,
)
from gulpio2.torch.measure import measure_loader

NUM_COPIES, CLIP_LENGTH, BATCH_SIZE = 12, 16, 8
_EPOCH_SAMPLES = 100_000  # so that no epoch ends while it is measured


def gulp(video: Path, folder: Path) -> Path:
    """Gulp a video several times over."""
    for number in range(NUM_COPIES):
        link = folder / "videos" / "clip" / f"{number}{video.suffix}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(video.resolve())
    adapter = VideoFolderAdapter(str(folder / "videos"), str(folder / "gulped"))
    GulpIngestor(adapter, str(folder / "gulped"), 4, 2)()
    return folder / "gulped"


def data_loader(dataset: GulpClipDataset, order: RepeatedOrder, workers: int) -> Any:
    """Make torch's DataLoader with the samplers and the collate of this package."""
    from torch.utils.data import DataLoader

    return DataLoader(
        dataset,
        batch_size=BATCH_SIZE,
        sampler=ResumableSampler(order),
        collate_fn=default_collate,
        num_workers=workers,
    )


def frames_per_second(batches: Any, seconds: float) -> float:
    """Take batches for so long, the first one not counted."""
    iterator = iter(batches)
    next(iterator)
    start = stop = time.perf_counter()
    frames = 0
    while stop - start < seconds:
        frames += len(next(iterator)) * CLIP_LENGTH
        stop = time.perf_counter()
    return frames / (stop - start)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("video", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0, help="of all together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # that two workers are many for this machine
    each = options.seconds / options.rounds / 4
    found: dict[str, list[float]] = {"loader": [], "cropped": [], "data_loader": []}
    limits = []
    with tempfile.TemporaryDirectory() as folder:
        path = gulp(options.video, Path(folder))
        dataset = GulpClipDataset(path, partial(sample_window, clip_length=CLIP_LENGTH))
        order = RepeatedOrder([_EPOCH_SAMPLES // len(dataset)] * len(dataset))
        arguments: dict[str, Any] = {
            "batch_size": BATCH_SIZE,
            "order": order,
            "threads": options.threads,
        }
        loaders = {
            "loader": GulpLoader(dataset, **arguments),
            "cropped": GulpLoader(dataset, view=RandomResizedCrop(224), **arguments),
        }
        for _ in range(options.rounds):
            for name, loader in loaders.items():
                measured = measure_loader(loader, seconds=2 * each, rounds=1)
                found[name].append(measured.ratio)
                limits.append(measured.codec_median)
            other = data_loader(dataset, order, options.threads)
            speed = frames_per_second(other, each)
            found["data_loader"].append(speed / limits[-1])
    medians = {name: statistics.median(ratios) for name, ratios in found.items()}
    spread = {name: [min(ratios), max(ratios)] for name, ratios in found.items()}
    result = {
        "codec_frames_per_second": statistics.median(limits),
        "ratio_to_codec": medians,
        "least_and_largest": spread,
        "threads_or_workers": options.threads,
        "rounds": options.rounds,
        "load_average": os.getloadavg()[0],
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
