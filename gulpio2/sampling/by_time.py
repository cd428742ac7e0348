"""Clips chosen by seconds: pure functions of the frames' times and a generator.

The functions mirror those by frame number; each wants its frames at certain times and
takes the frames that are there. Frame ``i`` is shown from its time to that of the next,
the last one for as long as the frames before it were (the median).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import as_number, require_number
from gulpio2.sampling.clips import Border, ClipIndices, given_numbers
from gulpio2.sampling.timeline import (
    SAME_TIME_SECONDS,
    Timeline,
    TimeMode,
    Times,
    frames_on,
)

__all__ = [
    "dense_windows_by_time",
    "frames_at",
    "sample_segments_by_time",
    "sample_window_by_time",
    "spaced_windows_by_time",
    "window_around_time",
]


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
        on the screen: the last that began, until it is over.
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
    TypeError
        Times are no numbers: texts, booleans and dates are none.
    ValueError
        Times are not finite, not ascending or none, the tolerance is below 0 or no
        number, or there is no such mode.

    Examples
    --------
    >>> frames_at([0.0, 0.5, 1.0], [0.2, 0.3, 9.0]).indices.tolist()
    [0, 1, 2]
    """
    expected = "finite times, (frames,) or (clips, frames)"
    wanted = given_numbers("seconds", seconds, expected).astype(np.float64)
    if wanted.ndim not in (1, 2) or not np.isfinite(wanted).all():
        raise ValueError(f"seconds is {seconds!r}, expected {expected}")
    return frames_on(Timeline.of(times), wanted, mode, tolerance_seconds, border)


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
    line = Timeline.of(times)
    num_segments = require_number("num_segments", num_segments, 1)
    inside = np.full(num_segments, 0.5) if rng is None else rng.random(num_segments)
    moments = (np.arange(num_segments) + inside) * (line.seconds / num_segments)
    return frames_on(line, line.first + moments, "before", None, "clamp")


def sample_window_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    *,
    period_seconds: float,
    mode: TimeMode = "nearest",
    tolerance_seconds: float | None = None,
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
    tolerance_seconds : float, optional
        A frame further away than this is not valid, see `frames_at`.
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
    line = Timeline.of(times)
    window = _window_seconds(clip_length, period_seconds)
    if rng is None:
        start = _slack(line, window) / 2
    else:
        start = rng.random() * _slack(line, window, mode)
    wanted = line.first + start + window
    return frames_on(line, wanted, mode, tolerance_seconds, border)


def spaced_windows_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    num_windows: int,
    *,
    period_seconds: float,
    mode: TimeMode = "nearest",
    tolerance_seconds: float | None = None,
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take several windows, evenly spaced from the first frame to the last.

    Parameters
    ----------
    times, clip_length, period_seconds, mode, tolerance_seconds, border
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
    line = Timeline.of(times)
    num_windows = require_number("num_windows", num_windows, 1)
    window = _window_seconds(clip_length, period_seconds)
    slack = _slack(line, window)
    if rng is not None:
        starts = rng.random(num_windows) * _slack(line, window, mode)
    elif num_windows == 1:
        starts = np.array([slack / 2])
    else:
        starts = np.linspace(0.0, slack, num_windows)
    wanted = line.first + starts[:, np.newaxis] + window
    return frames_on(line, wanted, mode, tolerance_seconds, border)


def dense_windows_by_time(
    times: npt.ArrayLike,
    clip_length: int,
    *,
    period_seconds: float,
    step_seconds: float | None = None,
    partial: bool = True,
    mode: TimeMode = "nearest",
    tolerance_seconds: float | None = None,
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Slide a window over the whole item.

    Parameters
    ----------
    times, clip_length, period_seconds, mode, tolerance_seconds, border
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
    line = Timeline.of(times)
    window = _window_seconds(clip_length, period_seconds)
    step = len(window) * float(period_seconds)
    if step_seconds is not None:
        step = _positive("step_seconds", step_seconds)
    past_first = line.last - line.first - float(window[-1])
    # Those that end before the last frame is over.
    count = max(0, int((past_first + line.after(mode)) // step) + 1)
    if partial:
        steps = (past_first - SAME_TIME_SECONDS) / step
        count = max(count, 1 + max(0, int(np.ceil(steps))))
    starts = step * np.arange(count)[:, np.newaxis]
    wanted = line.first + starts + window
    chosen = frames_on(line, wanted, mode, tolerance_seconds, border)
    # The last one may begin behind the last frame.
    empty = count > 1 and not frames_on(line, wanted[-1, :1], mode, None, border).valid
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
    line = Timeline.of(times)
    period = _positive("period_seconds", period_seconds)
    expected = "finite times, one or a row"
    centre = given_numbers("seconds", seconds, expected).astype(np.float64)
    if centre.ndim > 1 or not np.isfinite(centre).all():
        raise ValueError(f"seconds is {seconds!r}, expected {expected}")
    wanted = centre[..., np.newaxis] + period * np.arange(-history, future + 1)
    return frames_on(line, wanted, mode, tolerance_seconds, border)


def _positive(name: str, seconds: float) -> float:
    if not 0 < as_number(seconds) < np.inf:
        raise ValueError(f"{name} is {seconds!r}, expected more than 0 and finite")
    return float(seconds)


def _window_seconds(clip_length: int, period_seconds: float) -> Times:
    period = _positive("period_seconds", period_seconds)
    places = np.arange(require_number("clip_length", clip_length, 1), dtype=np.float64)
    return period * places


def _slack(line: Timeline, window: Times, mode: TimeMode = "nearest") -> float:
    """Seconds by which a window can be moved with all its frames in the item.

    Frames may be wanted from the first frame's time to the last one's. In the mode
    "before" they may be wanted until the last one is over, which would never be drawn
    otherwise.
    """
    past_first = line.last - line.first - float(window[-1])
    if mode == "before":
        # A little less than to the end: sums of seconds are rounded.
        past_first += max(0.0, line.after(mode) - SAME_TIME_SECONDS)
    return max(0.0, past_first)
