"""Another frame rate, by the rule of FFmpeg's ``-r``: frames are repeated or dropped.

``ffmpeg -i in -r 8 out`` does not use the ``fps`` filter. It places each frame on a
grid of output ticks and lets the grid drift by up to 1.1 ticks before it drops or
repeats one, so that the first frames of a clip come out closer together than the rest:
140 frames at 30/s become 39 at 8/s, where the filter gives 38. GulpIO2 0.0.4 called
``ffmpeg -r``, so its rule is kept here, as ``video_sync_process`` in FFmpeg's
``fftools/ffmpeg_filter.c`` (versions 7 to 9) has it.

A first frame that comes late is shown from the start of the file on, unless its stream
is the only one there (``vscfr`` in FFmpeg): then nothing has to keep in step with it.
In AVI each video with B-frames begins late, by the frames that its decoder holds back.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

__all__ = ["ConstantRate", "Placement", "rescale"]

# Ticks by which the grid may be off before a frame is dropped or repeated (FFmpeg).
_DRIFT = 1.1
# Output ticks by which a first frame is late (FFmpeg).
_LATE = 0.5
# Frames. One source frame that would be shown for longer than an hour at 30/s has a
# wrong time, and repeating it would fill the disk. FFmpeg's own bound is higher.
_MAX_REPEATS = 108_000


def rescale(ticks: int, source: Fraction, target: Fraction) -> int:
    """Convert ticks of one time base into another, halves away from zero.

    As ``av_rescale_q``.

    Examples
    --------
    >>> rescale(36, Fraction(1, 1000), Fraction(1, 125)), rescale(-1, Fraction(1), 2)
    (5, -1)
    """
    exact = abs(ticks) * source / target
    rounded = math.floor(exact + Fraction(1, 2))
    return rounded if ticks >= 0 else -rounded


def _llrintf(value: float) -> int:
    """Round as C does in single precision, where 1.4999999999999998 is 1.5."""
    return round(float(np.float32(value)))


class Placement(NamedTuple):
    """How often a frame is shown, and the one before it once more."""

    previous: int
    """Times that the frame before this one is repeated first."""
    current: int
    """Times that this frame is shown; 0 drops it."""


class ConstantRate:
    """The grid of output frames; told one source frame at a time, in order.

    Parameters
    ----------
    rate : Fraction
        Output frames per second.
    time_base : Fraction
        Seconds per tick of the source's times.
    start : int
        Start of the source in its ticks, where output frame 0 is.
    is_alone : bool
        Whether the file has no other stream: then the first frame is not repeated for
        being late.

    Examples
    --------
    >>> grid = ConstantRate(Fraction(2), time_base=Fraction(1, 4))
    >>> [grid.place(pts, 1).current for pts in range(8)]
    [1, 1, 1, 1, 0, 1, 0, 1]
    """

    def __init__(
        self,
        rate: Fraction,
        *,
        time_base: Fraction,
        start: int = 0,
        is_alone: bool = False,
    ) -> None:
        self._tick = 1 / rate
        self._time_base = time_base
        # FFmpeg compares at a finer tick, so that rounding does not add up.
        extra = min(max(29 - int(math.log2(self._tick.denominator)), 0), 16)
        self._scale = 1 << extra
        self._fine = self._tick / self._scale
        self._start = start
        self._is_alone = is_alone
        self._next = 0
        self._repeats = [0, 0, 0]

    def place(self, pts: int, duration: int) -> Placement:
        """Say how often the next source frame is shown.

        Parameters
        ----------
        pts, duration : int
            Time and duration of the frame in ticks of the source.

        Returns
        -------
        Placement
            For this frame and the one before it.

        Raises
        ------
        ValueError
            The frame's time is so late that an hour of repeats would fill the gap.
        """
        position = self._position(pts)
        if self._is_alone and self._next == 0 and position >= _LATE:
            self._next, position = round(position), float(round(position))
        drift = position - self._next
        # In FFmpeg's order of operations: the bounds below are met exactly at times.
        end = drift + duration * float(self._time_base) / float(self._tick)
        if drift < 0 < end:
            drift = 0.0  # a frame that has begun is shown from now on
        previous, shown = 0, 1
        if end < -_DRIFT:
            shown = 0
        elif end > _DRIFT:
            shown = _llrintf(end)
            if drift > _DRIFT:
                previous = _llrintf(drift - 0.6)
        if shown > _MAX_REPEATS:
            raise ValueError(
                f"a frame would have to be repeated {shown} times to reach its end"
            )
        self._remember(previous, shown)
        return Placement(previous, shown - previous)

    def finish(self) -> int:
        """Say how often the last frame is repeated at the end."""
        repeats = sorted(self._repeats)[1]
        self._remember(repeats, repeats)
        return repeats

    def _position(self, pts: int) -> float:
        """Give a time in output ticks from the start."""
        fine = rescale(pts - self._start, self._time_base, self._fine)
        position = fine / self._scale
        if fine % self._scale:
            # FFmpeg steps off exact midpoints, which round differently elsewhere.
            position += math.copysign(1 / (1 << 17), position)
        return position

    def _remember(self, previous: int, shown: int) -> None:
        self._next += shown
        self._repeats = [previous, *self._repeats[:2]]
