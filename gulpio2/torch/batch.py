"""What a loader gives for a step of training."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require
from gulpio2.torch.collate import collate_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from gulpio2.torch.job import Job
    from gulpio2.torch.plan import Sample
    from gulpio2.torch.seeding import SampleIndex

__all__ = ["Batch", "make_batch"]


class Batch:
    """Samples of one step; unpacks as ``clips, targets = batch``.

    Attributes
    ----------
    clips : torch.Tensor or numpy.ndarray
        ``(B, T, H, W, C)``, or ``(B, T, C, H, W)`` where the loader says so, uint8,
        [0, 255], RGB; without T for single frames, ``(B, clips, T, ...)`` for several
        clips an item. It is the loader's memory: valid for as long as `GulpLoader`
        says.
    targets
        Those of the samples, stacked; lists of ``n`` numbers become ``(B, n)``. A list
        where they cannot be stacked, as in a batch without samples. None where the
        datasets have no targets.
    epoch : int
        From 0.
    num_skipped : int
        Damaged samples that were left out of it.
    num_substituted : int
        Samples in it that stand in for damaged ones.

    Notes
    -----
    What else is known of the samples is made when it is asked for: `infos`,
    `frame_indices`, `valid`, `regions`, `indices`, `positions` and `seeds`.
    """

    # Most trainers never look at the properties below, so each is made when it is asked
    # for, and the loader's threads have the processor meanwhile.

    def __init__(
        self, clips: Any, targets: Any, made: list[tuple[SampleIndex, Sample]], job: Job
    ) -> None:
        self.clips = clips
        self.targets = targets
        self.epoch = job.draws[0].epoch
        self.num_skipped = len(job.draws) - len(made)
        self.num_substituted = sum([sample.substituted for _, sample in made])
        self._made = made
        self._as_tensors = job.slot.gives_tensors
        # A single frame has no axis of its own in the clips, but one index.
        self._sample_shape = job.slot.places[0].shape or (1,)

    @cached_property
    def infos(self) -> list[dict[str, Any]]:
        """What the dataset knows of each sample."""
        return [sample.info for _, sample in self._made]

    @cached_property
    def frame_indices(self) -> Any:
        """``(B, T)`` int64: the frames, by their index in the item."""
        chosen = [sample.chosen.indices for _, sample in self._made]
        return self._stacked(chosen, np.int64)

    @cached_property
    def valid(self) -> Any:
        """``(B, T)`` bool: whether the wanted frame was there, see `ClipIndices`."""
        valid = [sample.chosen.valid for _, sample in self._made]
        return self._stacked(valid, np.bool_)

    @cached_property
    def regions(self) -> list[Any]:
        """What the view shows of each sample's frames, in pixels of the stored ones.

        A `Region` each. Where the view chose one for each clip (a true ``each_clip``,
        and no test mode), a tuple of these. None without a view, and in the place of
        what has no frames.
        """
        return [sample.region for _, sample in self._made]

    @cached_property
    def indices(self) -> npt.NDArray[np.int64]:
        """``(B,)``: the samples that the order asked for."""
        return np.array([int(draw) for draw, _ in self._made], np.int64)

    @cached_property
    def positions(self) -> npt.NDArray[np.int64]:
        """``(B,)``: their places in the epoch; past its end for padding."""
        return np.array([draw.position for draw, _ in self._made], np.int64)

    @cached_property
    def seeds(self) -> npt.NDArray[np.uint64]:
        """``(B,)``: for what else is random about each, the same after a resume."""
        return np.array([draw.seed for draw, _ in self._made], np.uint64)

    def _stacked(self, parts: list[npt.NDArray[Any]], kind: type) -> Any:
        stacked = np.stack(parts) if parts else np.empty((0, *self._sample_shape))
        stacked = stacked.astype(kind, copy=False)  # a sampler may have another one
        if self._as_tensors:
            return require("torch", extra="torch").from_numpy(stacked)
        return stacked

    def __iter__(self) -> Iterator[Any]:
        """Give clips and targets."""
        return iter((self.clips, self.targets))

    def __len__(self) -> int:
        """Count the samples."""
        return len(self._made)

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
    slot = job.slot
    made: Any = list(zip(job.draws, job.samples, strict=True))
    if None in job.samples:
        rows = [row for row, sample in enumerate(job.samples) if sample is not None]
        for place, row in enumerate(rows):
            if place != row:  # one before it was left out
                slot.array[place] = slot.array[row]
        made = [made[row] for row in rows]
    clips = slot.beginning(len(made))
    tensors = slot.gives_tensors
    if channels_first:
        clips = clips.movedim(-1, -3) if tensors else np.moveaxis(clips, -1, -3)
    targets: Any = [sample.target for _, sample in made] if has_targets else None
    if targets:
        targets = collate_targets(targets, tensors=tensors)
    return Batch(clips, targets, made, job)
