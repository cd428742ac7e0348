"""What a user may want to know of some items before they are ingested."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.video import VideoFrames

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from gulpio2.ingest.items import PlacedItem

__all__ = ["note_odd_lengths", "note_oddities"]

# Items so many times longer or shorter than the middle one are odd.
_ODD_LENGTH = 5
# What `source_info` tells of mirroring, by the rotation that it gives.
_MIRRORED: dict[Any, str] = {-180: "left and right", 0: "top and bottom"}


def note_oddities(
    item: PlacedItem, times: Sequence[int | None], odd: dict[str, list[str]]
) -> None:
    """Note what is unusual about an item's frames.

    Parameters
    ----------
    item : PlacedItem
        All of whose frames were taken.
    times : sequence of int or None
        Their presentation times.
    odd : dict
        Gets the notes, by kind.
    """
    name = f"item {item.id_!r}"
    known = [tick for tick in _times_of_source(item.frames, times) if tick is not None]
    steps = np.diff(np.array(known, np.int64))
    # A tick more or less is how a constant rate looks in a coarse time base.
    if len(steps) > 1 and steps.max() - steps.min() > max(1, 0.1 * np.median(steps)):
        odd.setdefault("variable frame rate", []).append(
            f"{name}: {steps.min()} to {steps.max()} ticks between frames"
        )
    tell = getattr(item.frames, "source_info", None)
    info = tell() if tell is not None else {}
    rotation = info.get("rotation")
    if info.get("mirrored"):
        how = _MIRRORED.get(rotation, f"and turned by {rotation} degrees")
        odd.setdefault("mirrored", []).append(f"{name}: {how}")
    elif rotation:
        odd.setdefault("rotated", []).append(f"{name}: by {rotation} degrees")


def _times_of_source(frames: Any, times: Sequence[int | None]) -> Sequence[int | None]:
    """Give the times of all frames in the file, where another rate was asked for.

    What a rate leaves of them is uneven, however even they are.
    """
    video = frames.found() if isinstance(frames, DeferredFrames) else frames
    if isinstance(video, VideoFrames) and video.frame_rate is not None:
        return video.source_times() or ()
    return times


def note_odd_lengths(
    lengths: Mapping[str, int], odd: dict[str, list[str]], *, of: Container[str]
) -> None:
    """Note items that are much longer or shorter than the others.

    Parameters
    ----------
    lengths : mapping
        Frames by id.
    odd : dict
        Gets the notes.
    of : container of str
        The items to tell of.
    """
    if len(lengths) < 3:
        return
    middle = statistics.median(lengths.values())
    for name, length in lengths.items():
        is_odd = not middle / _ODD_LENGTH <= length <= middle * _ODD_LENGTH
        if is_odd and name in of:
            odd.setdefault("odd length", []).append(
                f"item {name!r}: {length} frames, where {middle:.0f} are usual"
            )
