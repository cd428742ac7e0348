"""When a decoded frame is shown: the container's time, or the best guess at it.

Containers are not always sure of their own times: AVI keeps only the order of decoding,
raw streams keep nothing, and a spliced transport stream starts over in the middle. The
rules are FFmpeg's (``guess_correct_pts`` in ``libavcodec/decode.c``, then
``packet_decode`` and ``video_frame_process`` in ``fftools/ffmpeg_dec.c``), with one
more for times that go back: frames are stored in the order in which they are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gulpio2.media.frame_rate import rescale

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["Clock", "Shown"]


class Shown(NamedTuple):
    """When a frame is shown, in ticks of its stream."""

    pts: int
    """Presentation time; never before that of the frame before it."""
    duration: int
    """How long it is shown; 0 where nobody knows."""


class Clock:
    """Presentation times of one stream; told one frame at a time, in output order.

    Parameters
    ----------
    time_base : Fraction
        Seconds per tick.
    rate : Fraction, optional
        Frames per second as far as the container knows.
    has_times : bool
        Whether times are in the file. Those of a raw stream are made up by FFmpeg, and
        begin as late as the decoder holds frames back: they are not used.
    has_durations : bool
        Whether durations are. MP4 and MOV have the time from one packet to the next
        in the order of decoding: where frames are reordered, that of another frame.

    Notes
    -----
    1. A frame has the presentation time that the container gave it.
    2. Where there is none, or where presentation times have gone back more often than
       decoding times, it has the decoding time of the packet that released it.
    3. Where there is neither, or where the time went back, it follows the frame before
       it by that frame's duration. The first frame is then at 0.

    Examples
    --------
    >>> from fractions import Fraction
    >>> clock = Clock(Fraction(1, 25), rate=Fraction(25))
    >>> [clock.tell(pts, None, 0).pts for pts in (3, 4, None, 2)]
    [3, 4, 5, 6]
    """

    def __init__(
        self,
        time_base: Fraction,
        *,
        rate: Fraction | None = None,
        has_times: bool = True,
        has_durations: bool = True,
    ) -> None:
        self._has_times = has_times
        self._has_durations = has_durations
        self._by_rate = rescale(1, 1 / rate, time_base) if rate else 0
        self._wrong_pts = self._wrong_dts = 0
        self._last_pts: int | None = None
        self._last_dts: int | None = None
        self._last_time: int | None = None
        self._estimate = 0

    def tell(self, pts: int | None, dts: int | None, duration: int) -> Shown:
        """Say when the next frame is shown.

        Parameters
        ----------
        pts, dts : int or None
            What the decoder says: presentation time, and decoding time of the packet
            that released the frame.
        duration : int
            What the decoder says; 0 for nothing.
        """
        duration = duration if self._has_durations else 0
        time = self._best_effort(pts, dts) if self._has_times else None
        last = self._last_time
        if last is None:
            time = time or 0
        elif time is None or time < last:
            time = last + self._estimate
        step = 0 if last is None else time - last
        self._last_time = time
        # Asked for every frame: most say how long they last.
        self._estimate = duration if duration > 1 else self._estimated(duration, step)
        return Shown(time, duration or self._by_rate)

    def lasting(self, duration: int | None) -> int:
        """Say how long a frame is shown of which a packet says this."""
        return (self._has_durations and duration) or self._by_rate

    def _best_effort(self, pts: int | None, dts: int | None) -> int | None:
        if dts is not None:
            self._wrong_dts += self._last_dts is not None and dts <= self._last_dts
            self._last_dts = dts
        elif pts is not None:
            self._last_dts = pts
        if pts is not None:
            self._wrong_pts += self._last_pts is not None and pts <= self._last_pts
            self._last_pts = pts
        elif dts is not None:
            self._last_pts = dts
        if pts is not None and (self._wrong_pts <= self._wrong_dts or dts is None):
            return pts
        return dts

    def _estimated(self, duration: int, step: int) -> int:
        """Guess how long a frame lasts, for the one after it that has no time."""
        # A duration of one tick is usually made up where the steps are longer.
        if duration > 0 and not (duration == 1 and step > 2):
            return duration
        return max(step or duration or self._by_rate or self._estimate, 1)
