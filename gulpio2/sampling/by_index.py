"""Clips chosen by frame number: pure functions of a count and a generator.

With a generator (`rng`) a function gives the random choice of training; without one
it gives the centred or evenly spaced choice of testing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import require_number
from gulpio2.format.wording import counted
from gulpio2.sampling.clips import (
    BORDERS,
    FURTHEST,
    Border,
    ClipIndices,
    all_valid,
    apply_border,
    given_numbers,
    in_steps,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "dense_windows",
    "sample_segments",
    "sample_window",
    "spaced_windows",
    "window_around",
]


def sample_segments(
    num_frames: int, num_segments: int, *, rng: np.random.Generator | None = None
) -> ClipIndices:
    """Take one frame out of each of equally long segments of the item.

    Parameters
    ----------
    num_frames : int
        Frames of the item.
    num_segments : int
        Segments, and so frames of the clip.
    rng : numpy.random.Generator, optional
        A frame at random inside of each segment. Default: the one at its centre.

    Returns
    -------
    ClipIndices
        Shape ``(num_segments,)``, all valid. An item shorter than the number of
        segments gives some frames more than once, evenly spread.

    Notes
    -----
    The sampling of Wang et al., "Temporal Segment Networks", ECCV 2016, on segments
    ``[k * n / s, (k + 1) * n / s)`` of real length, in whole numbers throughout.

    Examples
    --------
    >>> sample_segments(10, 5).indices.tolist()
    [1, 3, 5, 7, 9]
    """
    num_frames = require_number("num_frames", num_frames, 1)
    num_segments = require_number("num_segments", num_segments, 1)
    segment = np.arange(num_segments, dtype=np.int64)
    if rng is None:
        indices = (2 * segment + 1) * num_frames // (2 * num_segments)
    else:
        low = segment * num_frames
        indices = rng.integers(low, low + num_frames) // num_segments
    return all_valid(indices)


def sample_window(
    num_frames: int,
    clip_length: int,
    *,
    stride: int = 1,
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take one window of frames at a stride.

    Parameters
    ----------
    num_frames : int
        Frames of the item.
    clip_length : int
        Frames of the clip.
    stride : int, default 1
        Distance between two frames of the clip.
    border : {"clamp", "loop", "mask", "repeat"}, default "repeat"
        What stands in where the item is too short, see `BORDERS`.
    rng : numpy.random.Generator, optional
        Any place at which the window fits, all equally likely. Default: the middle.

    Returns
    -------
    ClipIndices
        Shape ``(clip_length,)``. An item that is too short is used from its beginning.

    Examples
    --------
    >>> sample_window(20, 4, stride=2).indices.tolist()
    [6, 8, 10, 12]
    """
    num_frames = require_number("num_frames", num_frames, 1)
    clip_length, stride, span = _window_of(clip_length, stride)
    slack = max(0, num_frames - span)
    start = slack // 2 if rng is None else int(rng.integers(slack + 1))
    if span <= num_frames and border in BORDERS:  # as mostly
        return in_steps(range(start, start + span, stride))
    window = _windows(np.array(start), clip_length, stride)
    return apply_border(window, num_frames, border)


def spaced_windows(
    num_frames: int,
    clip_length: int,
    num_windows: int,
    *,
    stride: int = 1,
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take several windows, evenly spaced from the first frame to the last.

    Parameters
    ----------
    num_frames, clip_length, stride, border
        As in `sample_window`.
    num_windows : int
        Windows; they overlap where the item is too short for all of them.
    rng : numpy.random.Generator, optional
        Independent random windows instead, in the order in which they were drawn.

    Returns
    -------
    ClipIndices
        Shape ``(num_windows, clip_length)``.

    Examples
    --------
    >>> spaced_windows(10, 4, 3).indices.tolist()
    [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    """
    num_frames = require_number("num_frames", num_frames, 1)
    num_windows = require_number("num_windows", num_windows, 1)
    clip_length, stride, span = _window_of(clip_length, stride)
    slack = max(0, num_frames - span)
    if rng is not None:
        starts = rng.integers(slack + 1, size=num_windows)
    elif num_windows == 1:
        starts = np.array([slack // 2])
    else:
        starts = np.arange(num_windows, dtype=np.int64) * slack // (num_windows - 1)
    return apply_border(_windows(starts, clip_length, stride), num_frames, border)


def dense_windows(
    num_frames: int,
    clip_length: int,
    *,
    stride: int = 1,
    step: int | None = None,
    partial: bool = True,
    border: Border = "repeat",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Slide a window over the whole item.

    Parameters
    ----------
    num_frames, clip_length, stride, border
        As in `sample_window`.
    step : int, optional
        Frames from one window to the next. Default: the frames that a window spans,
        so that the windows lie side by side.
    partial : bool, default True
        Keep a last window that reaches past the end, so that the windows reach every
        part of the item. False: only windows that fit, perhaps none.
    rng : numpy.random.Generator, optional
        Taken and not used, so that all samplers are called alike.

    Returns
    -------
    ClipIndices
        Shape ``(windows, clip_length)``.

    Examples
    --------
    >>> dense_windows(7, 3).indices.tolist()
    [[0, 1, 2], [3, 4, 5], [6, 6, 6]]
    >>> dense_windows(7, 3, step=2, partial=False).indices.tolist()
    [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    """
    num_frames = require_number("num_frames", num_frames, 1)
    clip_length, stride, span = _window_of(clip_length, stride)
    step = span if step is None else require_number("step", step, 1)
    _require_near("step", step, 1)
    past_first = num_frames - span
    if partial:
        # None that begins past the end, as one may where the step is larger.
        count = min(1 + max(0, -(-past_first // step)), -(-num_frames // step))
    else:
        count = max(0, past_first // step + 1)
    starts = np.arange(count, dtype=np.int64) * step
    return apply_border(_windows(starts, clip_length, stride), num_frames, border)


def window_around(
    num_frames: int,
    index: int | Sequence[int] | npt.NDArray[np.integer],
    *,
    history: int = 0,
    future: int = 0,
    stride: int = 1,
    border: Border = "clamp",
    rng: np.random.Generator | None = None,
) -> ClipIndices:
    """Take a frame with those before it and those after it.

    Parameters
    ----------
    num_frames : int
        Frames of the item.
    index : int or sequence of int
        The frame in question, in ``[0, num_frames)``; several give a clip each.
    history, future : int, default 0
        Frames before and after it.
    stride : int, default 1
        Distance between two frames of the clip.
    border : {"clamp", "loop", "mask", "repeat"}, default "clamp"
        What stands in for frames that the item does not have, see `BORDERS`.
    rng : numpy.random.Generator, optional
        Taken and not used, so that all samplers are called alike.

    Returns
    -------
    ClipIndices
        Shape ``(history + 1 + future,)``, with a leading axis for several indices;
        the frame in question is at ``[..., history]``.

    Raises
    ------
    TypeError
        The index is no whole number: booleans and texts are none.
    ValueError
        It is outside of the item.

    Examples
    --------
    >>> clip = window_around(10, 8, history=2, future=2, border="mask")
    >>> clip.indices.tolist(), clip.valid.tolist()
    ([6, 7, 8, 9, -1], [True, True, True, True, False])
    """
    history = require_number("history", history, 0)
    future = require_number("future", future, 0)
    stride = require_number("stride", stride, 1)
    num_frames = require_number("num_frames", num_frames, 1)
    _require_near("stride", stride, max(1, history, future))
    expected = "an int or a sequence of ints"
    centre = given_numbers("index", index, expected, whole=True)
    if centre.ndim > 1:
        raise TypeError(f"index is {index!r}, expected {expected}")
    outside = centre[(centre < 0) | (centre >= num_frames)]
    if outside.size:
        raise ValueError(
            f"index {int(outside.flat[0])} is outside of an item of "
            f"{counted(num_frames, 'frame')}"
        )
    starts = centre.astype(np.int64) - history * stride
    wanted = _windows(starts, history + 1 + future, stride)
    return apply_border(wanted, num_frames, border)


def _window_of(clip_length: int, stride: int) -> tuple[int, int, int]:
    """Give both as ints, and the frames from a window's first to its last, included."""
    # As ints, since those of numpy may be of few bits, and wrap around.
    length = require_number("clip_length", clip_length, 1)
    stride = require_number("stride", stride, 1)
    _require_near("stride", stride, length)
    return length, stride, (length - 1) * stride + 1


def _require_near(name: str, step: int, count: int) -> None:
    """Refuse steps of which so many lead further than any number of frames."""
    if step * count > FURTHEST:
        raise ValueError(f"{name} is {step}, expected at most {FURTHEST // count}")


def _windows(
    starts: npt.NDArray[np.int64], clip_length: int, stride: int
) -> npt.NDArray[np.int64]:
    """Give the frames of a window from each start on, in one more axis."""
    return starts[..., np.newaxis] + stride * np.arange(clip_length, dtype=np.int64)
