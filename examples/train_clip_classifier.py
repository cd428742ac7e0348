"""Train a small classifier of motions on videos that this program makes.

It draws moving shapes, encodes them as videos, gulps those, and trains a network to say
how a shape moves, which no single frame shows. Run it as one process or several::

    python examples/train_clip_classifier.py
    torchrun --nproc-per-node 2 examples/train_clip_classifier.py

Killed, it goes on with ``--resume`` where it last saved, and computes the same losses
to the last digit; with another number of processes, the order of the clips goes on.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn

from gulpio2 import GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
from gulpio2.sampling import sample_window
from gulpio2.torch import CenterCrop, GulpClipDataset, GulpLoader, RandomResizedCrop

CLASSES = ["down", "grow", "left", "right", "shrink", "up"]
EDGE, NUM_FRAMES = 64, 20  # of the videos
SIZE, CLIP_LENGTH, STRIDE = 48, 8, 2  # of what the network sees


# ---------------------------------------------------------------- videos
def draw_video(motion: str, rng: np.random.Generator) -> list[npt.NDArray[np.uint8]]:
    """Draw a shape that moves in one way, before a background of its own."""
    background = rng.integers(0, 120, (4, 4, 3)).astype(np.uint8)
    background = np.asarray(
        cv2.resize(background, (EDGE, EDGE), interpolation=cv2.INTER_CUBIC), np.uint8
    )
    colour = [int(value) for value in rng.integers(140, 256, 3)]
    round_one = bool(rng.random() < 0.5)
    way, radius = rng.uniform(16, 24), rng.uniform(5, 9)
    x, y = rng.uniform(22, EDGE - 22, 2)
    frames = []
    for number in range(NUM_FRAMES):
        done = number / (NUM_FRAMES - 1) - 0.5
        along = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
        dx, dy = along.get(motion, (0, 0))
        size = radius * {"grow": 1.4**done, "shrink": 1.4**-done}.get(motion, 1.0) ** 3
        at = round(x + dx * done * way), round(y + dy * done * way)
        frame = background.copy()
        if round_one:
            cv2.circle(frame, at, round(size), colour, -1, cv2.LINE_AA)
        else:
            low = at[0] - round(size), at[1] - round(size)
            high = at[0] + round(size), at[1] + round(size)
            cv2.rectangle(frame, low, high, colour, -1)
        frames.append(frame)
    return frames


def make_videos(folder: Path, per_class: int, seed: int) -> None:
    """Encode videos as ``folder/<motion>/<number>.mp4``."""
    for label, motion in enumerate(CLASSES):
        (folder / motion).mkdir(parents=True, exist_ok=True)
        for number in range(per_class):
            rng = np.random.default_rng((seed, label, number))
            with av.open(str(folder / motion / f"{number}.mp4"), "w") as container:
                stream: Any = container.add_stream("mpeg4", rate=10)
                stream.width = stream.height = EDGE
                stream.pix_fmt, stream.bit_rate = "yuv420p", 400_000
                for pixels in draw_video(motion, rng):
                    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                    container.mux(stream.encode(frame))
                container.mux(stream.encode())


def prepare(data: Path, per_class: int) -> None:
    """Make and gulp the two sets, unless an earlier run has."""
    for part, count, seed in (
        ("train", per_class, 1),
        ("test", max(1, per_class // 3), 2),
    ):
        gulped = data / part
        if (gulped / "gulp.json").exists():  # the manifest, which a run writes last
            continue
        videos = data / f"{part}-videos"
        make_videos(videos, count, seed)
        # Under its own name only when it is whole: a run may be killed meanwhile.
        unfinished = data / f"{part}-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        adapter = VideoFolderAdapter(str(videos), str(unfinished))
        GulpIngestor(adapter, str(unfinished), videos_per_chunk=100, num_workers=1)()
        unfinished.rename(gulped)


def make_loader(
    folder: Path, *, train: bool, options: argparse.Namespace
) -> GulpLoader:
    """Make the loader of a set: random clips and regions, or those in the middle."""
    dataset = GulpClipDataset(
        folder,
        partial(sample_window, clip_length=CLIP_LENGTH, stride=STRIDE),
        target=lambda info: CLASSES.index(info["label"]),
        test_mode=not train,
    )
    # Not mirrored: left would become right.
    random_view = RandomResizedCrop(SIZE, area=(0.6, 1.0), mirrored=0)
    return GulpLoader(
        dataset,
        batch_size=options.batch_size,
        view=random_view if train else CenterCrop(SIZE),
        seed=options.seed,
        shuffle=train,
        threads=options.threads,
        layout="TCHW",
        pin_memory=options.device == "cuda",
    )


# ---------------------------------------------------------------- network
def make_network() -> nn.Module:
    """Make a small 3D convolutional network; it normalises each clip on its own."""

    def block(inputs: int, outputs: int, stride: tuple[int, int, int]) -> nn.Module:
        return nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, stride=stride, padding=1),
            nn.GroupNorm(4, outputs),
            nn.ReLU(),
        )

    return nn.Sequential(
        block(3, 16, (1, 2, 2)),
        block(16, 32, (1, 2, 2)),
        block(32, 64, (2, 2, 2)),
        block(64, 64, (2, 2, 2)),
        # Where in the frame something is tells nothing: only how it changes.
        nn.AdaptiveAvgPool3d((2, 1, 1)),
        nn.Flatten(),
        nn.Linear(2 * 64, len(CLASSES)),
    )


def to_input(clips: Any, device: str) -> Any:
    """Bring ``(B, T, C, H, W)`` uint8 to ``(B, C, T, H, W)`` around zero."""
    clips = clips.to(device, non_blocking=True)
    return (clips.float() / 127.5 - 1).transpose(1, 2).contiguous()


# ---------------------------------------------------------------- training
def save(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint; whoever is killed meanwhile has the one before."""
    partial_path = path.with_suffix(".partial")
    torch.save(state, partial_path)
    partial_path.replace(path)


def train(options: argparse.Namespace, rank: int, num_ranks: int) -> float:
    """Train, and give the accuracy on the test set."""
    checkpoint, losses = options.output / "checkpoint.pt", options.output / "losses.txt"
    loader = make_loader(options.data / "train", train=True, options=options)
    torch.manual_seed(options.seed)
    network = make_network().to(options.device)
    wrapped = network
    if num_ranks > 1:
        # In a group of its own: torch keeps the one of a wrapped network until the end,
        # and a thread of gloo that drops a tensor then ends the process with SIGABRT.
        # The default group, in which `test` sums, is gone with all of its threads.
        wrapped = nn.parallel.DistributedDataParallel(
            network, process_group=dist.new_group()
        )
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.rate)
    step, lines = 0, []
    if checkpoint.exists() and not options.resume:
        raise SystemExit(
            f"[{rank}] {checkpoint} is there from an earlier run: --resume goes on "
            "with it; or give another --output"
        )
    if options.resume and not checkpoint.exists():
        print(f"[{rank}] no {checkpoint} to go on from: begins anew", flush=True)
    if options.resume and checkpoint.exists():
        state = torch.load(checkpoint, map_location=options.device, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        step = state["step"]
        # What was logged after the checkpoint is about to be computed again.
        lines = losses.read_text().splitlines(keepends=True)[:step]
        print(f"[{rank}] goes on at step {step}, epoch {loader.epoch}", flush=True)
    start = time.perf_counter()
    if rank == 0:
        losses.write_text("".join(lines))
    last_step = math.inf if options.steps is None else options.steps
    while loader.epoch < options.epochs and step < last_step:
        for clips, targets in loader:
            place = loader.state_dict()
            done = place["epoch"] + place["position"] / place["epoch_length"]
            factor = 0.5 + 0.5 * math.cos(math.pi * min(1.0, done / options.epochs))
            optimizer.param_groups[0]["lr"] = options.rate * factor
            scores = wrapped(to_input(clips, options.device))
            loss = nn.functional.cross_entropy(scores, targets.to(options.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value, step = loss.item(), step + 1
            if rank == 0:
                with losses.open("a") as file:
                    file.write(f"{step} {value!r}\n")
                is_last = step >= last_step or done >= options.epochs
                if is_last or step % options.save_every == 0:
                    state = {
                        "network": network.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": loader.state_dict(),
                        "step": step,
                    }
                    save(checkpoint, state)
            if step >= last_step:
                break
        if rank == 0:
            seconds = time.perf_counter() - start
            print(f"step {step}: {seconds:.1f} s, loss {value:.4f}", flush=True)
    if rank == 0:
        print(loader.profile(), flush=True)
    return test(network, options, num_ranks)


def test(network: nn.Module, options: argparse.Namespace, num_ranks: int) -> float:
    """Give the accuracy on the test set, each clip of it counted once."""
    loader = make_loader(options.data / "test", train=False, options=options)
    counts = torch.zeros(2)
    network.eval()
    with torch.no_grad():
        for batch in loader:
            # Past the end: clips that come again so that ranks have equally many.
            counted = torch.from_numpy(batch.positions < len(loader.dataset))
            answers = network(to_input(batch.clips, options.device)).argmax(1).cpu()
            right = (answers == batch.targets) & counted
            counts += torch.tensor([right.sum(), counted.sum()])
    if num_ranks > 1:
        counts = counts.to(options.device)
        dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def positive(text: str) -> int:
    """Read a number that is at least 1; argparse names the option of any other."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, default=Path("motions"), help="where the videos are made"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("motions/run"),
        help="of the checkpoint and the losses",
    )
    parser.add_argument("--videos-per-class", type=positive, default=40)
    parser.add_argument("--epochs", type=positive, default=10)
    parser.add_argument(
        "--steps", type=int, help="stop after so many, counted from the first"
    )
    parser.add_argument(
        "--batch-size", type=positive, default=8, help="of each process"
    )
    parser.add_argument(
        "--rate", type=float, default=2e-3, help="of learning, at first"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of the loader of each process")
    parser.add_argument(
        "--save-every",
        type=positive,
        default=20,
        metavar="STEPS",
        help="write a checkpoint after so many, and after the last",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where it was saved"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"])
    return parser.parse_args()


def main() -> None:
    """Prepare the data, train and test; as one of several processes under torchrun."""
    options = parse()
    if options.device is None:
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    num_ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if num_ranks > 1:
        if options.device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    try:
        rank = dist.get_rank() if num_ranks > 1 else 0
        if rank == 0:
            options.output.mkdir(parents=True, exist_ok=True)
            prepare(options.data, options.videos_per_class)
        if num_ranks > 1:
            dist.barrier()
        # The same sums in the same order each time, so that a resumed run is the same.
        torch.use_deterministic_algorithms(mode=True, warn_only=True)
        accuracy = train(options, rank, num_ranks)
        if rank == 0:
            print(f"accuracy on the test set: {accuracy:.1%}")
    finally:
        if num_ranks > 1:
            with suppress(ValueError):
                dist.destroy_process_group()


if __name__ == "__main__":
    main()
