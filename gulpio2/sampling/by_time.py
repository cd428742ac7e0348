"""Clips chosen by seconds: pure functions of the frames' times and a generator.

The functions mirror those by frame number; each wants its frames at certain times and
takes the frames that are there. Frame ``i`` is shown from its time to that of the next,
the last one for as long as the frames before it were (the median).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import require_choice, require_number
from gulpio2.sampling.clips import FURTHEST, Border, ClipIndices, apply_border

__all__ = [
    "TimeMode",
    "dense_windows_by_time",
    "frames_at",
    "sample_segments_by_time",
    "sample_window_by_time",
    "spaced_windows_by_time",
    "window_around_time",
]

TimeMode: TypeAlias = Literal["before", "nearest"]
Times: TypeAlias = npt.NDArray[np.float64]

# Two times that differ by less are one: below the tick of every usual time base
# (1/90000 s) and above the rounding of seconds since 1970 in a double.
_SAME_TIME_SECONDS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Timeline:
    """The times of an item's frames, checked, with the time that one frame takes."""

    times: Times
    gap: float

    @classmethod
    def of(cls, times: npt.ArrayLike) -> _Timeline:
        seconds = np.asarray(times, dtype=np.float64)
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
        return float(self.times[0])

    @property
    def last(self) -> float:
        return float(self.times[-1])

    @property
    def seconds(self) -> float:
        """Seconds that the item is shown."""
        return self.last + self.gap - self.first


def frames_at(
    times: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    mode: TimeMode = "nearest",
    tolerance_seconds: float | None = None,
    border: Border = "clamp",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Find the frames at the wanted times.

    Parameters
    ----------
    times : array_like of float
        ``(num_frames,)`` seconds of the item's frames, ascending.
    seconds : array_like of float
        ``(frames,)`` or ``(clips, frames)`` wanted times, on the same clock.
    mode : {"before", "nearest"}, default "nearest"
        The frame whose time is nearest (the earlier one of two), or the one that is
        on the screen: the last that began.
    tolerance_seconds : float, optional
        A frame further away than this is not valid, which finds gaps in a recording.
        Default: any frame will do inside of the item.
    border : {"clamp", "loop", "mask", "repeat"}, default "clamp"
        What stands in where there is no valid frame, see `BORDERS`. For ``"loop"``
        the frames go on at their median distance beyond the ends.
    rng : numpy.random.Generator, optional
        Taken and not used, so that all samplers are called alike.

    Returns
    -------
    ClipIndices
        Of the shape of `seconds`.

    Raises
    ------
    ValueError
        Times are not finite, not ascending or none, the tolerance is below 0 or no
        number, or there is no such mode.

    Examples
    --------
    >>> frames_at([0.0, 0.5, 1.0], [0.2, 0.3, 9.0]).indices.tolist()
    [0, 1, 2]
    """
    wanted = np.asarray(seconds, np.float64)
    if wanted.ndim not in (1, 2) or not np.isfinite(wanted).all():
        shapes = "(frames,) or (clips, frames)"
        raise ValueError(f"seconds is {seconds!r}, expected finite times, {shapes}")
    return _frames_at(_Timeline.of(times), wanted, mode, tolerance_seconds, border)


def sample_segments_by_time(
    times: npt.ArrayLike,
    num_segments: int,
    *,
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take the frame shown at one moment of each of equally long segments of time.

    Parameters
    ----------
    times : array_like of float
        ``(num_frames,)`` seconds of the item's frames, ascending.
    num_segments : int
        Segments, and so frames of the clip.
    rng : numpy.random.Generator, optional
        A moment at random in each segment. Default: its centre.

    Returns
    -------
    ClipIndices
        Shape ``(num_segments,)``, all valid.

    Examples
    --------
    >>> sample_segments_by_time([0.0, 0.1, 0.2, 0.3, 2.0], 2).indices.tolist()
    [3, 3]
    """
    line = _Timeline.of(times)
    require_number("num_segments", num_segments, 1)
    inside = np.full(num_segments, 0.5) if rng is None else rng.random(num_segments)
    moments = (np.arange(num_segments) + inside) * (line.seconds / num_segments)
    return _frames_at(line, line.first + moments, "before", None, "clamp")


def sample_window_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    *,
    period_seconds: float,
    mode: TimeMode = "nearest",
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take one window of frames that are a fixed time apart.

    Parameters
    ----------
    times : array_like of float
        ``(num_frames,)`` seconds of the item's frames, ascending.
    clip_length : int
        Frames of the clip.
    period_seconds : float
        Seconds between two frames of the clip; ``1 / 8`` for eight a second.
    mode : {"before", "nearest"}, default "nearest"
        Which frame is at a time, see `frames_at`.
    border : {"clamp", "loop", "mask", "repeat"}, default "repeat"
        What stands in where the item is too short, see `BORDERS`.
    rng : numpy.random.Generator, optional
        Any time at which the window fits. Default: the middle.

    Returns
    -------
    ClipIndices
        Shape ``(clip_length,)``.

    Examples
    --------
    >>> times = np.arange(9) / 10
    >>> sample_window_by_time(times, 3, period_seconds=0.2).indices.tolist()
    [2, 4, 6]
    """
    line = _Timeline.of(times)
    window = _window_seconds(clip_length, period_seconds)
    slack = _slack(line, window)
    start = slack / 2 if rng is None else rng.random() * slack
    return _frames_at(line, line.first + start + window, mode, None, border)


def spaced_windows_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    num_windows: int,
    *,
    period_seconds: float,
    mode: TimeMode = "nearest",
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take several windows, evenly spaced from the first frame to the last.

    Parameters
    ----------
    times, clip_length, period_seconds, mode, border
        As in `sample_window_by_time`.
    num_windows : int
        Windows; they overlap where the item is too short for all of them.
    rng : numpy.random.Generator, optional
        Independent random windows instead, in the order in which they were drawn.

    Returns
    -------
    ClipIndices
        Shape ``(num_windows, clip_length)``.
    """
    line = _Timeline.of(times)
    require_number("num_windows", num_windows, 1)
    window = _window_seconds(clip_length, period_seconds)
    slack = _slack(line, window)
    if rng is not None:
        starts = rng.random(num_windows) * slack
    elif num_windows == 1:
        starts = np.array([slack / 2])
    else:
        starts = np.linspace(0.0, slack, num_windows)
    wanted = line.first + starts[:, np.newaxis] + window
    return _frames_at(line, wanted, mode, None, border)


def dense_windows_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    *,
    period_seconds: float,
    step_seconds: float | None = None,
    partial: bool = True,
    mode: TimeMode = "nearest",
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Slide a window over the whole item.

    Parameters
    ----------
    times, clip_length, period_seconds, mode, border
        As in `sample_window_by_time`.
    step_seconds : float, optional
        From one window to the next. Default: ``clip_length`` periods, side by side.
    partial : bool, default True
        Keep a last window that reaches past the end. False: only windows that fit.
    rng : numpy.random.Generator, optional
        Taken and not used, so that all samplers are called alike.

    Returns
    -------
    ClipIndices
        Shape ``(windows, clip_length)``.
    """
    line = _Timeline.of(times)
    window = _window_seconds(clip_length, period_seconds)
    step = len(window) * float(period_seconds)
    if step_seconds is not None:
        step = _positive("step_seconds", step_seconds)
    past_first = line.last - line.first - float(window[-1])
    steps = (past_first - _SAME_TIME_SECONDS) / step
    if partial:
        count = 1 + max(0, int(np.ceil(steps)))
    else:
        count = max(0, int((past_first + _SAME_TIME_SECONDS) // step) + 1)
    starts = step * np.arange(count)[:, np.newaxis]
    chosen = _frames_at(line, line.first + starts + window, mode, None, border)
    empty = count > 1 and not chosen.valid[-1].any()  # it begins behind the last frame
    return ClipIndices(chosen.indices[:-1], chosen.valid[:-1]) if empty else chosen


def window_around_time(
    times: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    period_seconds: float,
    history: int = 0,
    future: int = 0,
    mode: TimeMode = "nearest",
    tolerance_seconds: float | None = None,
    border: Border = "clamp",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take the frame at a time with those before it and those after it.

    Parameters
    ----------
    times : array_like of float
        ``(num_frames,)`` seconds of the item's frames, ascending.
    seconds : float or sequence of float
        The time in question; several give a clip each.
    period_seconds : float
        Seconds between two frames of the clip.
    history, future : int, default 0
        Frames before and after it.
    mode, tolerance_seconds, border
        As in `frames_at`.
    rng : numpy.random.Generator, optional
        Taken and not used, so that all samplers are called alike.

    Returns
    -------
    ClipIndices
        Shape ``(history + 1 + future,)``, with a leading axis for several times.

    Examples
    --------
    >>> clip = window_around_time(
    ...     [0.0, 0.1, 0.2], 0.1, period_seconds=0.1, history=2, border="mask"
    ... )
    >>> clip.indices.tolist(), clip.valid.tolist()
    ([-1, 0, 1], [False, True, True])
    """
    history = require_number("history", history, 0)
    future = require_number("future", future, 0)
    line = _Timeline.of(times)
    period = _positive("period_seconds", period_seconds)
    centre = np.asarray(seconds, dtype=np.float64)
    if centre.ndim > 1 or not np.isfinite(centre).all():
        raise ValueError(f"seconds is {seconds!r}, expected finite times, one or a row")
    wanted = centre[..., np.newaxis] + period * np.arange(-history, future + 1)
    return _frames_at(line, wanted, mode, tolerance_seconds, border)


def _frames_at(
    line: _Timeline,
    wanted: Times,
    mode: TimeMode,
    tolerance: float | None,
    border: Border,
) -> ClipIndices:
    times = line.times
    require_choice("mode", mode, TimeMode)
    if mode == "nearest":
        before = after = line.gap / 2
        middles = (times[1:] + times[:-1]) / 2
        found = np.searchsorted(middles, wanted - _SAME_TIME_SECONDS, side="left")
    else:  # the last one before
        before, after = 0.0, line.gap
        found = np.searchsorted(times, wanted + _SAME_TIME_SECONDS, side="right") - 1
    found = np.maximum(found, 0)
    too_early = line.first - before - wanted > _SAME_TIME_SECONDS
    too_late = wanted - line.last - after > _SAME_TIME_SECONDS
    valid = ~(too_early | too_late)
    if tolerance is not None:
        if not tolerance >= 0:  # what is not a number, too
            raise ValueError(f"tolerance_seconds is {tolerance!r}, expected 0 or more")
        distance = np.abs(times[found] - wanted)
        valid &= distance <= tolerance + _SAME_TIME_SECONDS
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


def _positive(name: str, seconds: float) -> float:
    if not 0 < seconds < np.inf:
        raise ValueError(f"{name} is {seconds!r}, expected more than 0 and finite")
    return float(seconds)


def _window_seconds(clip_length: int, period_seconds: float) -> Times:
    period = _positive("period_seconds", period_seconds)
    places = np.arange(require_number("clip_length", clip_length, 1), dtype=np.float64)
    return period * places


def _slack(line: _Timeline, window: Times) -> float:
    """Seconds by which a window can be moved with all its frames in the item."""
    return max(0.0, line.last - line.first - float(window[-1]))
