"""What is known of a sample before its frames are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.format.wording import counted
from gulpio2.order import Purpose, derive_seed
from gulpio2.sampling.clips import ClipIndices, require_chosen
from gulpio2.torch.seeding import rng_of
from gulpio2.torch.stored import StoredClip, locate_clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from gulpio2.torch.seeding import SampleIndex

__all__ = ["Plan", "Sample", "plan_sample"]


class Sample(NamedTuple):
    """What a batch has of a sample beside its frames."""

    info: dict[str, Any]
    """What the dataset knows of it."""
    target: Any
    """As the dataset's ``target`` says; None without one."""
    chosen: ClipIndices
    """The frames, by their index in the item."""
    region: Any = None
    """What the view has chosen: a `Region`, or a tuple of one for each clip where it
    chose for each. None without a view, and for what has no frames."""
    substituted: bool = False
    """Whether it stands in for a damaged one."""


class Plan(NamedTuple):
    """What there is to do for a sample."""

    leaf: Any
    """The dataset that it is of."""
    info: dict[str, Any]
    """What that knows of it."""
    chosen: ClipIndices
    """The frames, by their index in the item."""
    shape: tuple[int, ...]
    """Of its frames: none for a single one, (frames,), or (clips, frames)."""
    reader: Any
    """From where they are read."""
    id_: str
    """The item's id there."""
    indices: Sequence[int]
    """The frames to read, each once."""
    rows: Sequence[int]
    """Where in the sample each of them is to be."""
    again: list[tuple[int, int]]
    """Rows of frames that come again, and where they are the first time."""
    empty: list[int]
    """Rows for which there is no frame."""
    located: StoredClip | None
    """Where the bytes are, if that is known."""
    rng: np.random.Generator | None
    """From which a view chooses its region; None in test mode."""
    parts: Sequence[Plan] = ()
    """Its clips, where a view chooses a region for each of them."""


def plan_sample(
    leaf: Any, place: SampleIndex, *, random_view: bool, each_clip: bool = False
) -> Plan:
    """Find out all that can be known of a sample before its frames are read.

    Parameters
    ----------
    leaf : GulpClipDataset or GulpImageDataset
        The dataset that it is of.
    place : SampleIndex
        Which one.
    random_view : bool
        Whether there is a view that may want a generator.
    each_clip : bool, default False
        Whether it chooses a region for each clip; in test mode one does for all.
    """
    info: dict[str, Any]
    chosen: ClipIndices
    info, chosen = leaf.choose(place)  # just as for a DataLoader
    steps = chosen.steps if type(chosen) is ClipIndices else None
    shape: tuple[int, ...]
    indices: Sequence[int]
    if steps is not None:  # frames of which none is missing, and none comes again
        shape, indices = (len(steps),), steps
    else:
        shape, indices = chosen.indices.shape, chosen.indices.ravel().tolist()
        if not indices:
            raise ValueError(
                f"the sampler found no clip in item {info['id']!r}, which has "
                f"{counted(info['num_frames'], 'frame')}: leave it out (filter_data, "
                "indices, a query), or take a sampler that goes past an item's end"
            )
    rng = None
    if random_view and not leaf.test_mode:
        rng = rng_of(derive_seed(place.seed, Purpose.VIEW))
    has_parts = each_clip and rng is not None and len(shape) > 1
    rows: Sequence[int] = range(len(indices))
    again: list[tuple[int, int]] = []
    empty: list[int] = []
    if steps is None and not has_parts:
        indices, rows, again, empty = _each_once(indices, rows)
    reader, id_ = leaf.source.find(info)
    is_located = bool(indices) and not has_parts
    plan = Plan(
        leaf,
        info,
        chosen,
        () if leaf.single_frame else shape,
        reader,
        id_,
        indices,
        rows,
        again,
        empty,
        locate_clip(reader, id_, indices, rows) if is_located else None,
        rng,
    )
    return _with_parts(plan) if has_parts else plan


def _with_parts(plan: Plan) -> Plan:
    """Plan each clip of a sample by itself; they draw from one generator in turn."""
    length = plan.shape[-1]
    parts = []
    for start in range(0, len(plan.indices), length):
        stop = start + length
        indices, rows, again, empty = _each_once(
            plan.indices[start:stop], range(start, stop)
        )
        plan.again.extend(again)
        plan.empty.extend(empty)
        located = None
        if indices:
            located = locate_clip(plan.reader, plan.id_, indices, rows)
        parts.append(plan._replace(indices=indices, rows=rows, located=located))
    return plan._replace(parts=parts)


def _each_once(
    indices: Sequence[int], rows: Sequence[int]
) -> tuple[Sequence[int], Sequence[int], list[tuple[int, int]], list[int]]:
    """Leave out frames that come again, and those that there are not.

    Returns
    -------
    indices, rows, again, empty
        As in `Plan`.
    """
    again: list[tuple[int, int]] = []
    empty: list[int] = []
    if min(indices) >= 0 and len(set(indices)) == len(indices):
        return indices, rows, again, empty
    require_chosen(indices)
    first: dict[int, int] = {}
    for row, index in zip(rows, indices, strict=True):
        if index < 0:
            empty.append(row)
        elif (earlier := first.setdefault(index, row)) != row:
            again.append((row, earlier))
    return list(first), list(first.values()), again, empty
