"""A program that trains on a GPU for as long as it is told: one process per way.

    python bench/trainers.py KIND FACTS

As `bench/loaders.py`: to each line of standard input, the seconds that it is to go on,
it answers the frames that went through it. Batches are of 32 clips of 16 frames of
224x224. The network is one of 3D convolutions in bfloat16, forward, backward and step;
its time is for the GPU alone what a batch on the device, used again, tells.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Any

from loaders import answer_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCH_SIZE, CLIP_LENGTH, SIZE = 32, 16, 224
# What is compared, and with what.
DEVICE_KINDS: dict[str, str | None] = {
    "training alone, one batch on the device": None,
    "loading alone": None,
    "loading by processes alone": None,
    "loading and copying": "loading alone",
    "loading and training": "training alone, one batch on the device",
    "loading and training, not pinned": "training alone, one batch on the device",
    "loading by 8 threads and training": "training alone, one batch on the device",
    "loading by processes and training": "training alone, one batch on the device",
    "training, DataLoader": "training alone, one batch on the device",
    "small network alone, one batch on the device": None,
    "loading and training a small network": "loading alone",
}


def loader_of(kind: str, facts: dict[str, Any]) -> Any:
    """Make this package's loader: random clips, regions of random sizes.

    It has a thread, or a process, for each core; 8 threads are what it has by default.
    """
    from gulpio2.order import RepeatedOrder
    from gulpio2.sampling import sample_window
    from gulpio2.torch import GulpClipDataset, GulpLoader, RandomResizedCrop

    window = partial(sample_window, clip_length=CLIP_LENGTH)
    dataset = GulpClipDataset(facts["gulped"], window)
    count = 8 if "by 8 threads" in kind else facts["workers"]
    return GulpLoader(
        dataset,
        batch_size=BATCH_SIZE,
        **{"num_workers" if "by processes" in kind else "threads": count},
        order=RepeatedOrder([10_000] * len(dataset)),
        view=RandomResizedCrop(SIZE),
        layout="TCHW",
        pin_memory="not pinned" not in kind,
    )


def torch_loader_of(facts: dict[str, Any]) -> Any:
    """Make torch's DataLoader of the same clips; they are cropped on the device."""
    from torch.utils.data import DataLoader

    from gulpio2.order import RepeatedOrder
    from gulpio2.sampling import sample_window
    from gulpio2.torch import GulpClipDataset, ResumableSampler

    window = partial(sample_window, clip_length=CLIP_LENGTH)
    dataset = GulpClipDataset(facts["gulped"], window)
    return DataLoader(
        dataset,
        batch_size=BATCH_SIZE,
        sampler=ResumableSampler(RepeatedOrder([10_000] * len(dataset))),
        num_workers=facts["workers"],
        pin_memory=True,
    )


def make_network(width: int) -> Any:
    """Make blocks of 3D convolutions, so many channels in the first."""
    from torch import nn

    sizes = (3, width, 2 * width, 4 * width, 4 * width)
    blocks = [
        nn.Sequential(
            nn.Conv3d(before, after, 3, stride=(1, 2, 2), padding=1),
            nn.GroupNorm(4, after),
            nn.ReLU(),
        )
        for before, after in pairwise(sizes)
    ]
    head = (nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(sizes[-1], 400))
    return nn.Sequential(*blocks, *head)


class Training:
    """A network, and a step of it."""

    def __init__(self, width: int) -> None:
        import torch

        self.torch = torch
        self.network = make_network(width).to("cuda", memory_format=_LAST(torch))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3)
        self.targets = torch.zeros(BATCH_SIZE, dtype=torch.long, device="cuda")

    def step(self, clips: Any) -> None:
        """Take a step on ``(B, T, C, H, W)`` uint8 clips on the device."""
        torch = self.torch
        inputs = (clips.to(torch.bfloat16) / 127.5 - 1).transpose(1, 2)
        with torch.autocast("cuda", torch.bfloat16):
            scores = self.network(inputs.contiguous(memory_format=_LAST(torch)))
        loss = torch.nn.functional.cross_entropy(scores.float(), self.targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def _LAST(torch: Any) -> Any:  # noqa: N802  # a constant of a module loaded late
    return torch.channels_last_3d


def runs_of(kind: str, facts: dict[str, Any]) -> Callable[[float], dict[str, float]]:
    """Give what goes on for so many seconds."""
    import torch

    training = (
        Training(8 if "small" in kind else 48)
        if "training" in kind or ("small" in kind)
        else None
    )
    batches: Iterator[Any]
    if "alone, one batch" in kind:
        shape = (BATCH_SIZE, CLIP_LENGTH, 3, SIZE, SIZE)
        ready = torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
        batches = repeat(ready)
    elif "DataLoader" in kind:
        batches = iter(torch_loader_of(facts))
    else:
        batches = chain.from_iterable(repeat(loader_of(kind, facts)))

    def run(seconds: float) -> dict[str, float]:
        for _ in range(4):
            clips = _clips_of(next(batches))
        torch.cuda.synchronize()
        frames, start = 0, time.perf_counter()
        events: list[Any] = []
        while time.perf_counter() - start < seconds:
            clips = _clips_of(next(batches))
            if not kind.endswith(" alone"):
                clips = clips.to("cuda", non_blocking=True)
            if "DataLoader" in kind:
                clips = clips[..., 16:240, 58:282]
            if training is not None:
                training.step(clips)
                # As a program that reads the loss now and then: two steps ahead.
                events.append(torch.cuda.current_stream().record_event())
                if len(events) > 2:
                    events.pop(0).synchronize()
            frames += BATCH_SIZE * CLIP_LENGTH
        torch.cuda.synchronize()
        return {"frames": frames, "seconds": time.perf_counter() - start}

    return run


def _clips_of(batch: Any) -> Any:
    clips = getattr(batch, "clips", batch)
    return clips[0] if isinstance(clips, (list, tuple)) else clips


def main() -> None:
    """Answer one line after the other."""
    kind, facts = sys.argv[1], json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    answer_lines(lambda: runs_of(kind, facts), {})


if __name__ == "__main__":
    main()
