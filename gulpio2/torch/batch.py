"""What a loader gives for a step of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require
from gulpio2.torch.collate import array_collate, default_collate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from gulpio2.torch.prefetch import Job

__all__ = ["Batch", "make_batch"]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples of one step; unpacks as ``clips, targets = batch``."""

    clips: Any
    """``(B, T, H, W, C)``, or ``(B, T, C, H, W)`` where the loader says so, uint8,
    [0, 255], RGB; without T for single frames, ``(B, clips, T, ...)`` for several
    clips an item. It is the loader's memory: valid for as long as `GulpLoader` says."""
    targets: Any
    """Stacked, or a list where they cannot be; None without targets."""
    infos: list[dict[str, Any]]
    """What the dataset knows of each sample."""
    frame_indices: Any
    """``(B, T)`` int64: the frames, by their index in the item."""
    valid: Any
    """``(B, T)`` bool: whether the wanted frame was there, see `ClipIndices`."""
    indices: npt.NDArray[np.int64]
    """``(B,)``: the samples that the order asked for."""
    positions: npt.NDArray[np.int64]
    """``(B,)``: their places in the epoch; past its end for padding."""
    seeds: npt.NDArray[np.uint64]
    """``(B,)``: for what else is random about each, the same after a resume."""
    epoch: int
    """From 0."""
    num_skipped: int
    """Damaged samples that were left out of it."""
    num_substituted: int
    """Samples in it that stand in for damaged ones."""

    def __iter__(self) -> Iterator[Any]:
        """Give clips and targets."""
        return iter((self.clips, self.targets))

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.positions)

    def __repr__(self) -> str:
        """Show shape and place, never the pixels."""
        first = self.positions[0] if len(self) else "nowhere"
        return (
            f"Batch(clips={tuple(self.clips.shape)}, epoch={self.epoch}, "
            f"from position {first})"
        )


def make_batch(job: Job, *, channels_first: bool, has_targets: bool) -> Batch:
    """Put together what the threads made.

    Parameters
    ----------
    job : Job
        A batch that is ready.
    channels_first : bool
        Whether clips are ``(..., C, H, W)``, a view of the same memory.
    has_targets : bool
        Whether the datasets have targets.
    """
    array, tensor = job.slot.array, job.slot.tensor
    made = [
        (row, draw, sample)
        for row, (draw, sample) in enumerate(zip(job.draws, job.samples, strict=True))
        if sample is not None
    ]
    for place, (row, _, _) in enumerate(made):
        if place != row:  # one before it was left out
            array[place] = array[row]
    clips: Any = (array if tensor is None else tensor)[: len(made)]
    samples = [sample for _, _, sample in made]
    inner = samples[0].chosen.indices.shape if samples else ()
    chosen = np.empty((len(samples), *inner), np.int64)
    valid = np.empty((len(samples), *inner), np.bool_)
    for place, sample in enumerate(samples):
        chosen[place], valid[place] = sample.chosen.indices, sample.chosen.valid
    targets: Any = [sample.target for sample in samples] if has_targets else None
    if tensor is not None:
        torch = require("torch", extra="torch")
        if channels_first:
            clips = clips.movedim(-1, -3)
        if targets:
            targets = default_collate(targets)
        frame_indices, valid_mask = torch.from_numpy(chosen), torch.from_numpy(valid)
    else:
        if channels_first:
            clips = np.moveaxis(clips, -1, -3)
        if targets:
            targets = array_collate(targets)
        frame_indices, valid_mask = chosen, valid
    return Batch(
        clips=clips,
        targets=targets,
        infos=[sample.info for sample in samples],
        frame_indices=frame_indices,
        valid=valid_mask,
        indices=np.array([draw.index for _, draw, _ in made], np.int64),
        positions=np.array([draw.position for _, draw, _ in made], np.int64),
        seeds=np.array([draw.seed for _, draw, _ in made], np.uint64),
        epoch=job.draws[0].epoch,
        num_skipped=len(job.draws) - len(made),
        num_substituted=sum(sample.substituted for sample in samples),
    )
