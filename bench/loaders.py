"""A program that loads batches for as long as it is told: one process per loader.

    python bench/loaders.py KIND FACTS

KIND is a key of `LOADERS` or "codec", FACTS the clips as JSON. It answers one line of
JSON to each line of standard input, the seconds that it is to go on, with the frames
that it loaded and the seconds that it took. Each loads shuffled batches of 8 clips of
16 frames, uint8 tensors, with two workers or threads; nobody consumes them. It runs in
the environments of the programs that are compared, and so needs the standard library,
numpy and torch.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Facts = dict[str, Any]

CLIP_LENGTH, BATCH_SIZE, WORKERS = 16, 8, 2
CODEC = "codec"
# The same into memory as this package makes it, where it is faster: docs/decisions.md.
CODEC_AT_ODD = "codec, odd addresses"
# Windows of each clip that the codec decodes.
_PARTS = 8
# Samples of an epoch: so many that none ends while it is measured.
EPOCH_SAMPLES = 200_000
# Batches at the beginning of a turn that do not count: those that were ready.
_NUM_WARM = 8


def _start(rng: np.random.Generator, facts: Facts) -> int:
    return int(rng.integers(facts["num_frames"] - CLIP_LENGTH + 1))


def _decode(jpeg: bytes) -> Any:
    """Decode as fast as the codec can, as this package does."""
    import simplejpeg

    return simplejpeg.decode_jpeg(jpeg, fastdct=True, fastupsample=True)


class _Clips:
    """A map-style dataset of random clips; the subclasses say how one is read."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.opened: Any = None

    def __len__(self) -> int:
        return EPOCH_SAMPLES

    def __getitem__(self, index: int) -> Any:
        import torch

        if self.opened is None:  # in each worker
            self.opened = self.open()
        rng = np.random.default_rng(index)
        number = index % len(self.facts["ids"])
        clip = self.read(number, _start(rng, self.facts))
        return torch.from_numpy(clip) if isinstance(clip, np.ndarray) else clip

    def open(self) -> Any:
        return True

    def read(self, number: int, start: int) -> Any:
        raise NotImplementedError


class _Original(_Clips):
    def open(self) -> Any:
        from gulpio2 import GulpDirectory

        return GulpDirectory(self.facts["original"])

    def read(self, number: int, start: int) -> Any:
        id_ = self.facts["ids"][number]
        frames, _ = self.opened[id_, slice(start, start + CLIP_LENGTH)]
        return np.stack(frames)


class _TorchCodec(_Clips):
    def open(self) -> Any:
        from torchcodec.decoders import VideoDecoder

        make = partial(
            VideoDecoder,
            num_ffmpeg_threads=1,
            seek_mode="approximate",
            dimension_order="NHWC",
        )
        return [make(path) for path in self.facts["video_paths"]]

    def read(self, number: int, start: int) -> Any:
        batch = self.opened[number].get_frames_in_range(start, start + CLIP_LENGTH)
        return batch.data


class _Files(_Clips):
    def read(self, number: int, start: int) -> Any:
        folder = Path(self.facts["jpegs"], self.facts["ids"][number])
        names = [f"{index:05d}.jpg" for index in range(start, start + CLIP_LENGTH)]
        return np.stack([_decode((folder / name).read_bytes()) for name in names])


def _data_loader(dataset: Any, *, workers: int = WORKERS, **options: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=BATCH_SIZE, num_workers=workers, **options)


def _shuffled(kind: type[_Clips], facts: Facts) -> Any:
    return _data_loader(kind(facts), shuffle=True)


def _stack(jpegs: list[bytes]) -> Any:
    import torch

    return torch.from_numpy(np.stack([_decode(jpeg) for jpeg in jpegs]))


def _from_pickle(sample: dict[str, Any]) -> Any:
    return _stack(sample["frames.pickle"])


def _webdataset(facts: Facts) -> Any:
    """Read shards of clips of 16 frames, which have been cut beforehand."""
    import webdataset as wds

    # An endless stream: shards are drawn again and again.
    dataset = (
        wds.WebDataset(sorted(facts["shards"]), resampled=True, shardshuffle=False)
        .shuffle(64)
        .decode()
        .map(_from_pickle)
    )
    return _data_loader(dataset)


def _streaming(facts: Facts) -> Any:
    """Read shards of clips of 16 frames, which have been cut beforehand."""
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    class Clips(StreamingDataset):
        def __getitem__(self, index: int) -> Any:
            return _stack(pickle.loads(super().__getitem__(index)["frames"]))  # noqa: S301  # ours

    clean_stale_shared_memory()
    dataset = Clips(
        local=facts["mds"],
        shuffle=True,
        batch_size=BATCH_SIZE,
        num_canonical_nodes=1,
        epoch_size=EPOCH_SAMPLES // 10,
    )
    return _data_loader(dataset)


def _our_dataset(facts: Facts) -> Any:
    from gulpio2.sampling import sample_window
    from gulpio2.torch import GulpClipDataset

    return GulpClipDataset(
        facts["gulped"], partial(sample_window, clip_length=CLIP_LENGTH)
    )


def _our_order(dataset: Any) -> Any:
    from gulpio2.order import RepeatedOrder

    return RepeatedOrder([EPOCH_SAMPLES // len(dataset)] * len(dataset))


def _gulp_loader(
    facts: Facts, *, size: int | None = None, by_processes: bool = False
) -> Any:
    from gulpio2.torch import GulpLoader, RandomResizedCrop

    dataset, workers = _our_dataset(facts), facts.get("workers", WORKERS)
    by: dict[str, int] = {"num_workers" if by_processes else "threads": workers}
    return GulpLoader(
        dataset,
        batch_size=BATCH_SIZE,
        **by,
        order=_our_order(dataset),
        view=None if size is None else RandomResizedCrop(size),
    )


def _single_frames(facts: Facts) -> Any:
    from gulpio2.torch import GulpImageDataset, GulpLoader

    dataset = GulpImageDataset(facts["gulped"], frame="random")
    return GulpLoader(
        dataset,
        batch_size=BATCH_SIZE * CLIP_LENGTH,
        threads=WORKERS,
        order=_our_order(dataset),
    )


def _our_sampler(facts: Facts, *, recycling: bool) -> Any:
    from gulpio2.torch import RecyclingCollate, ResumableSampler, default_collate

    dataset = _our_dataset(facts)
    sampler = ResumableSampler(_our_order(dataset))
    collate = RecyclingCollate() if recycling else default_collate
    workers = facts.get("workers", WORKERS)
    return _data_loader(dataset, workers=workers, sampler=sampler, collate_fn=collate)


LOADERS: dict[str, Callable[[Facts], Any]] = {
    "GulpLoader": _gulp_loader,
    "GulpLoader, cropped to 224": partial(_gulp_loader, size=224),
    "GulpLoader, processes": partial(_gulp_loader, by_processes=True),
    "GulpLoader, processes, cropped to 224": partial(
        _gulp_loader, size=224, by_processes=True
    ),
    "GulpLoader, single frames": _single_frames,
    "DataLoader, recycling": partial(_our_sampler, recycling=True),
    "DataLoader, our sampler": partial(_our_sampler, recycling=False),
    "original": partial(_shuffled, _Original),
    "torchcodec": partial(_shuffled, _TorchCodec),
    "files": partial(_shuffled, _Files),
    "webdataset": _webdataset,
    "streaming": _streaming,
}


def cut(facts: Facts) -> list[list[bytes]]:
    """Cut every clip into clips of 16 frames, in an order that mixes them."""
    folder = Path(facts["jpegs"])
    parts = []
    for id_ in facts["ids"]:
        jpegs = [path.read_bytes() for path in sorted((folder / id_).iterdir())]
        starts = range(0, len(jpegs) - CLIP_LENGTH + 1, CLIP_LENGTH)
        parts += [jpegs[start : start + CLIP_LENGTH] for start in starts]
    np.random.default_rng(1).shuffle(parts)  # type: ignore[arg-type]  # a list
    return parts


def write_shards(folder: Path, facts: Facts) -> None:
    """Write what WebDataset reads."""
    import webdataset as wds

    folder.mkdir(parents=True)
    with wds.ShardWriter(f"{folder}/%04d.tar", maxcount=50, verbose=0) as writer:
        for number, jpegs in enumerate(cut(facts)):
            data = pickle.dumps(jpegs)
            writer.write({"__key__": f"{number:06d}", "frames.pickle": data})


def write_mds(folder: Path, facts: Facts) -> None:
    """Write what MosaicML's streaming reads."""
    from streaming import MDSWriter

    with MDSWriter(out=str(folder), columns={"frames": "bytes"}) as writer:
        for jpegs in cut(facts):
            writer.write({"frames": pickle.dumps(jpegs)})


def _count(batch: Any) -> int:
    clips = batch[0] if isinstance(batch, (list, tuple)) else batch
    shape = tuple(getattr(clips, "clips", clips).shape)
    frames = BATCH_SIZE * CLIP_LENGTH
    if shape[:-3] not in ((BATCH_SIZE, CLIP_LENGTH), (frames,)):
        raise ValueError(f"a batch of shape {shape}")
    return frames


def _load(batches: Iterator[Any], seconds: float) -> dict[str, float]:
    for _ in range(_NUM_WARM):
        _count(next(batches))
    frames, start = 0, time.perf_counter()
    stop = start
    while stop - start < seconds:
        frames += _count(next(batches))
        stop = time.perf_counter()
    return {"frames": frames, "seconds": stop - start}


def _jpegs(facts: Facts) -> list[bytes]:
    """Read windows of all clips, evenly spaced: of the sizes of random ones.

    They are the middles of equal parts of where a window can begin. The first and the
    last one would count for more than they do in random ones.
    """
    last = facts["num_frames"] - CLIP_LENGTH
    starts = [(2 * part + 1) * last // (2 * _PARTS) for part in range(_PARTS)]
    windows = [(id_, start) for id_ in facts["ids"] for start in starts]
    mixed = np.random.default_rng(1).permutation(len(windows))
    return [
        Path(
            facts["jpegs"], windows[place][0], f"{windows[place][1] + number:05d}.jpg"
        ).read_bytes()
        for place in mixed.tolist()
        for number in range(CLIP_LENGTH)
    ]


def _runs_of(kind: str, facts: Facts) -> Callable[[float], dict[str, float]]:
    """Give what loads, or decodes, for so many seconds."""
    if kind not in (CODEC, CODEC_AT_ODD):
        return partial(_load, iter(LOADERS[kind](facts)))
    from gulpio2.torch.limit import decode_for

    jpegs = _jpegs(facts)

    def decode(seconds: float) -> dict[str, float]:
        odd = kind == CODEC_AT_ODD
        rate = decode_for(jpegs, seconds, WORKERS, at_odd_addresses=odd)
        return {"frames": rate, "seconds": 1.0}

    return decode


def _versions() -> dict[str, str]:
    found = {}
    for name in ("torch", "torchcodec", "webdataset", "mosaicml-streaming"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def answer_lines(
    make_run: Callable[[], Callable[[float], dict[str, float]]],
    versions: dict[str, str],
) -> None:
    """Answer each line of input, seconds, with what was done in them."""
    # What is made may print.
    answers, sys.stdout = sys.stdout, sys.stderr
    run = make_run()
    answers.write(json.dumps(versions) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(run(float(line))) + "\n")
        answers.flush()


def main() -> None:
    """Answer one line after the other."""
    kind, facts = sys.argv[1], json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    if kind == "write shards":
        write_shards(Path(facts["to"]), facts)
        return
    if kind == "write mds":
        write_mds(Path(facts["to"]), facts)
        return
    answer_lines(lambda: _runs_of(kind, facts), _versions())


if __name__ == "__main__":
    main()
