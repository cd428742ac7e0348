"""The times of an item's frames, and which frame is at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import as_number, require_choice
from gulpio2.sampling.clips import (
    FURTHEST,
    Border,
    ClipIndices,
    apply_border,
    given_numbers,
)

__all__ = ["SAME_TIME_SECONDS", "TimeMode", "Timeline", "Times", "frames_on"]

TimeMode: TypeAlias = Literal["before", "nearest"]
Times: TypeAlias = npt.NDArray[np.float64]

# Two times that differ by less are one: below the tick of every usual time base
# (1/90000 s) and above the rounding of seconds since 1970 in a double.
SAME_TIME_SECONDS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The times of an item's frames, checked, with the time that one frame takes."""

    times: Times
    gap: float

    @classmethod
    def of(cls, times: npt.ArrayLike) -> Timeline:
        """Check times: ascending and finite seconds, at least one."""
        seconds = given_numbers("times", times, "seconds").astype(np.float64)
        if seconds.ndim == 0:
            raise ValueError(
                f"times are {times!r}: expected the time of each frame, in seconds; "
                "their number is what the functions by index take"
            )
        if seconds.ndim != 1 or seconds.size == 0:
            raise ValueError(
                f"times of shape {seconds.shape}: expected (num_frames,), at least one"
            )
        gaps = np.diff(seconds)
        if not (np.isfinite(seconds).all() and (gaps >= 0).all()):
            raise ValueError("times must be finite and in ascending order")
        moving = gaps[gaps > 0]
        return cls(seconds, float(np.median(moving)) if moving.size else 0.0)

    @property
    def first(self) -> float:
        """Time of the first frame."""
        return float(self.times[0])

    @property
    def last(self) -> float:
        """Time of the last frame."""
        return float(self.times[-1])

    @property
    def seconds(self) -> float:
        """Seconds that the item is shown, until its last frame is over."""
        return self.last + self.gap - self.first

    def after(self, mode: TimeMode) -> float:
        """Seconds behind the last frame's time that are still its own."""
        if mode == "nearest":
            return self.gap / 2 + SAME_TIME_SECONDS
        # The moment at which it is over is not its own: a next frame would begin there.
        return max(self.gap - SAME_TIME_SECONDS, SAME_TIME_SECONDS)


def frames_on(
    line: Timeline,
    wanted: Times,
    mode: TimeMode,
    tolerance: float | None,
    border: Border,
) -> ClipIndices:
    """Find the frames at wanted times, as `gulpio2.sampling.frames_at` has it."""
    times = line.times
    require_choice("mode", mode, TimeMode)
    if mode == "nearest":
        before = line.gap / 2
        middles = (times[1:] + times[:-1]) / 2
        found = np.searchsorted(middles, wanted - SAME_TIME_SECONDS, side="left")
    else:  # the last one before
        before = 0.0
        found = np.searchsorted(times, wanted + SAME_TIME_SECONDS, side="right") - 1
    found = np.maximum(found, 0)
    too_early = line.first - before - wanted > SAME_TIME_SECONDS
    too_late = wanted - line.last > line.after(mode)
    valid = ~(too_early | too_late)
    if tolerance is not None:
        if not as_number(tolerance) >= 0:  # what is not a number, too
            raise ValueError(f"tolerance_seconds is {tolerance!r}, expected 0 or more")
        distance = np.abs(times[found] - wanted)
        valid &= distance <= float(tolerance) + SAME_TIME_SECONDS
    # Past the ends, count on at the median distance, for the border to work with.
    gap = line.gap or np.inf
    early = np.minimum(-1, _steps(wanted - line.first, gap))
    late = np.maximum(1, _steps(wanted - line.last, gap))
    indices = np.where(
        too_early, early, np.where(too_late, times.size - 1 + late, found)
    )
    return apply_border(indices, times.size, border, valid=valid)


def _steps(seconds: Times, gap: float) -> npt.NDArray[np.int64]:
    """Count the gaps in so many seconds, within what an index can be."""
    with np.errstate(over="ignore"):
        return np.clip(np.rint(seconds / gap), -FURTHEST, FURTHEST).astype(np.int64)
