"""Which frames make a clip: pure functions over counts or times.

- `gulpio2.sampling.clips`: `ClipIndices`, which all of them return, and the borders.
- `gulpio2.sampling.by_index`: by frame number.
- `gulpio2.sampling.by_time`: by seconds, for items whose frames have times;
  `timeline`: which frame is at a time.
"""

from __future__ import annotations

from gulpio2.sampling.by_index import (
    dense_windows,
    sample_segments,
    sample_window,
    spaced_windows,
    window_around,
)
from gulpio2.sampling.by_time import (
    dense_windows_by_time,
    frames_at,
    sample_segments_by_time,
    sample_window_by_time,
    spaced_windows_by_time,
    window_around_time,
)
from gulpio2.sampling.clips import BORDERS, NO_FRAME, Border, ClipIndices, apply_border
from gulpio2.sampling.timeline import TimeMode

__all__ = [
    "BORDERS",
    "NO_FRAME",
    "Border",
    "ClipIndices",
    "TimeMode",
    "apply_border",
    "dense_windows",
    "dense_windows_by_time",
    "frames_at",
    "sample_segments",
    "sample_segments_by_time",
    "sample_window",
    "sample_window_by_time",
    "spaced_windows",
    "spaced_windows_by_time",
    "window_around",
    "window_around_time",
]
