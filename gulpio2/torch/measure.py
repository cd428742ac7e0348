"""How fast a loader is, beside what the codec alone can do at the same time."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import FormatError, MetaFileError
from gulpio2.format.wording import counted
from gulpio2.memory import free_memory
from gulpio2.order import RepeatedOrder
from gulpio2.sampling import sample_window
from gulpio2.torch.clips import GulpClipDataset
from gulpio2.torch.limit import decode_for
from gulpio2.torch.loader import GulpLoader
from gulpio2.torch.seeding import places_of
from gulpio2.torch.views import RandomResizedCrop
from gulpio2.torch.workers import WorkersLoader
from gulpio2.torch.wrappers import find_sample

if TYPE_CHECKING:
    from gulpio2.directory import GulpDirectory
    from gulpio2.torch.batch import Batch
    from gulpio2.torch.profile import LoaderProfile
    from gulpio2.view import GulpView

__all__ = [
    "LoaderMeasurement",
    "jpegs_of_loader",
    "loader_to_measure",
    "measure_loader",
]

# Frames that the codec alone is measured with: enough to be a fair sample of sizes, and
# like a loader's not in the processor's caches.
_NUM_CODEC_FRAMES = 1024
# Samples of an epoch, at least: else its end would be measured, not its middle.
_EPOCH_SAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class LoaderMeasurement:
    """Frames per second in turn: the codec, the loader, the codec, ..."""

    loader: tuple[float, ...]
    """Frames per second of the loader, one per round."""
    codec: tuple[float, ...]
    """Those of the codec alone: as many threads, JPEGs in memory, into memory that is
    used again, whole frames."""
    profile: LoaderProfile
    """Of all rounds of the loader; of workers, of the last."""

    @property
    def loader_median(self) -> float:
        """Median of the loader's rounds."""
        return statistics.median(self.loader)

    @property
    def codec_median(self) -> float:
        """Median of the codec's rounds."""
        return statistics.median(self.codec)

    @property
    def ratio(self) -> float:
        """Median of the loader's rounds, each to the codec's of the same time."""
        return statistics.median(
            loader / codec
            for loader, codec in zip(self.loader, self.codec, strict=True)
        )


def loader_to_measure(
    directory: GulpDirectory,
    *,
    clip_length: int,
    stride: int,
    size: int | None,
    batch_size: int,
    threads: int | None,
    processes: int | None,
    workers: int | None,
    prefetch: int,
) -> GulpLoader | WorkersLoader:
    """Make a loader as training would use it: random clips of random items.

    Parameters
    ----------
    directory : GulpDirectory
        Its items without frames are left out.
    clip_length, stride : int
        Frames of a clip, and how far they are apart.
    size : int or None
        Edge that a random crop is resized to. None: whole frames, of one size.
    batch_size, threads, prefetch
        As in `GulpLoader`.
    processes : int or None
        The ``num_workers`` of a `GulpLoader`.
    workers : int or None
        Make a ``DataLoader`` of torch with so many worker processes instead, which has
        neither `threads` nor `size`, and makes `prefetch` batches ahead in each.
    """
    dataset = GulpClipDataset(
        _with_frames(directory),
        partial(sample_window, clip_length=clip_length, stride=stride),
    )
    repeats = -(-_EPOCH_SAMPLES // max(1, len(dataset)))
    order = RepeatedOrder([repeats] * len(dataset))
    if workers is not None:
        return WorkersLoader(
            dataset,
            order,
            batch_size=batch_size,
            num_workers=workers,
            prefetch=prefetch,
        )
    return GulpLoader(
        dataset,
        batch_size=batch_size,
        view=None if size is None else RandomResizedCrop(size),
        order=order,
        threads=threads,
        num_workers=processes or 0,
        prefetch=prefetch,
        output="numpy",
    )


def _with_frames(directory: GulpDirectory) -> GulpDirectory | GulpView:
    """Give the items with frames, or all where none is without."""
    ids = directory.merged_meta_dict
    try:
        with_frames = directory.query("num_frames > 0")
    except MetaFileError:
        # No table, and no view, holds the id of a file whose name is no UTF-8.
        if all(directory.item(id_).num_frames for id_ in ids):
            return directory
        raise
    return directory if len(with_frames) == len(ids) else with_frames


def measure_loader(
    loader: GulpLoader | WorkersLoader, *, seconds: float = 3.0, rounds: int = 3
) -> LoaderMeasurement:
    """Measure a loader without a consumer, and the codec alone, in turn.

    Parameters
    ----------
    loader : GulpLoader or WorkersLoader
        Of gulp directories; its order is advanced, and it is closed at the end.
    seconds : float
        Of all rounds together.
    rounds : int
        In how many parts: what else the machine does then falls on both.

    Raises
    ------
    FormatError
        There are no samples, or none with frames.
    ValueError
        An epoch has no batch.
    CorruptFrameError
        A frame cannot be decoded, by the codec alone or by the loader.
    MemoryError
        The batches of the loader take more memory than is free: the system might end
        this program, or another one, in its midst.
    """
    if not loader.cursor.order.epoch_length:
        raise FormatError("the dataset has no samples to load")
    if not loader.batches_left:  # of the epoch under way
        loader.set_epoch(loader.cursor.epoch + 1)
    if not loader.batches_left:
        raise ValueError(
            f"an epoch of {loader!r} has no batch: it has "
            f"{counted(len(loader.cursor), 'sample')} for this rank. Take a "
            "smaller batch_size, or drop_last=False"
        )
    frames = jpegs_of_loader(loader)
    if not frames:
        raise FormatError("the first samples of the dataset have no frames to decode")
    _require_memory(loader)
    places, jpegs = zip(*frames, strict=True)
    each = seconds / (2 * rounds)
    threads = max(1, loader.num_threads)
    loaded, decoded = [], []
    decode_for(jpegs, each / 10, threads, places=places)
    loader.reset_profile()
    for _ in range(rounds):
        decoded.append(decode_for(jpegs, each, threads, places=places))
        loaded.append(_load_for(loader, each))
    return LoaderMeasurement(tuple(loaded), tuple(decoded), loader.profile())


def _require_memory(loader: GulpLoader | WorkersLoader) -> None:
    """Refuse batches for which there is no room."""
    free = free_memory()
    if isinstance(loader, WorkersLoader):
        num_batches = loader.num_threads * loader.prefetch
        order = loader.cursor.order
        one = GulpLoader(loader.dataset, batch_size=1, order=order, output="numpy")
        shape = one._memory.sample_shape(one.cursor)
    else:
        num_batches = loader._prefetch + loader._keep
        shape = loader._memory.sample_shape(loader.cursor)
    num_samples = num_batches * loader._batch_size
    needed = num_samples * math.prod(shape)
    if free is not None and needed > free:
        sample = "x".join(map(str, shape))
        raise MemoryError(
            f"The batches of this loader are {num_samples:,} samples of {sample} "
            f"bytes: {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free. Take "
            "shorter clips, fewer of them in a batch, fewer batches ahead, or smaller "
            "frames"
        )


def _load_for(loader: GulpLoader | WorkersLoader, seconds: float) -> float:
    """Take batches for so long; the first ones, which are waited for, are free."""
    frames, start, stop = 0, None, perf_counter()
    profile = loader.profile()
    are_started = profile.is_of_workers or profile.are_processes  # for each round
    num_free = loader.num_threads if are_started else 1
    while start is None or stop - start < seconds:
        for batch in loader:
            stop = perf_counter()
            if start is None:
                num_free -= 1
                start = None if num_free else stop
                continue
            frames += _num_frames(batch)
            if stop - start >= seconds:
                break
    loader.close()
    return frames / (stop - start)


def _num_frames(batch: Batch | int) -> int:
    """Count the frames that were decoded for a batch; a `WorkersLoader` says it."""
    if isinstance(batch, int):
        return batch
    indices = np.asarray(batch.frame_indices)  # without rows if all are damaged
    return sum(len(set(sample.ravel().tolist())) for sample in indices)


def jpegs_of_loader(loader: GulpLoader | WorkersLoader) -> list[tuple[str, bytes]]:
    """Read what the first samples of a loader's order need.

    Parameters
    ----------
    loader : GulpLoader or WorkersLoader
        It stays where it is.

    Returns
    -------
    list of (str, bytes)
        JPEGs, each behind its place, as an error names it; enough to be a fair sample.
    """
    jpegs: list[tuple[str, bytes]] = []
    for draw in itertools.islice(places_of(loader.cursor), _NUM_CODEC_FRAMES):
        leaf, place = find_sample(loader.dataset, draw)
        info, chosen = leaf.choose(place)
        reader: Any
        reader, id_ = leaf.source.find(info)
        indices = sorted({int(index) for index in chosen.indices.ravel() if index >= 0})
        jpegs += [
            (f"item {id_!r} of {reader!r}, frame {index}", jpeg)
            for index, jpeg in zip(
                indices, reader.read_jpegs(id_, indices), strict=True
            )
        ]
        if len(jpegs) >= _NUM_CODEC_FRAMES:
            break
    return jpegs
