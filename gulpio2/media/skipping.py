"""Frames that a lower rate drops, known before any of them is decoded.

Times are in the packets. Where all of them have one, the rule of the frame rate can be
applied first, and the decoder be told to leave out what will not be shown. It does so
only with frames that no other is predicted from, so the others are decoded as ever.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from gulpio2.media.clock import Shown
    from gulpio2.media.decode import OpenVideo
    from gulpio2.media.frame_rate import ConstantRate

__all__ = ["NotAsPlacedError", "PlacedFrames"]

# Decoders that leave out frames which none is predicted from, when told to.
_CODECS = frozenset({"h264", "hevc", "mpeg2video", "mpeg4", "vp8"})
# Source frames to one that is shown; below, reading the times costs what is saved.
_WORTH_IT = 1.5


class NotAsPlacedError(Exception):
    """The decoder gave other frames than the packets promised."""


class _Place(NamedTuple):
    """A frame of the source, and how often it is shown."""

    pts: int
    previous: int
    """Times that the frame before this one is repeated first."""
    current: int
    """Times that this frame is shown then."""
    needed: bool
    """Whether it is shown at all, here or as a repeat later on."""


class PlacedFrames:
    """The frames of a video on the grid of a lower rate.

    Parameters
    ----------
    times : sequence of Shown
        Of all frames, in the order in which they are shown.
    grid : ConstantRate
        Not told of any of them yet.

    Raises
    ------
    ValueError
        A time is so late that an hour of repeats would fill the gap.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from gulpio2.media.clock import Shown
    >>> from gulpio2.media.frame_rate import ConstantRate
    >>> times = [Shown(tick, 1) for tick in range(8)]
    >>> placed = PlacedFrames(
    ...     times, ConstantRate(Fraction(2), time_base=Fraction(1, 4))
    ... )
    >>> sorted(placed.dropped)
    [4, 6]
    """

    def __init__(self, times: Sequence[Shown], grid: ConstantRate) -> None:
        placements = [grid.place(shown.pts, shown.duration) for shown in times]
        self._at_end = grid.finish()
        shown_later = [placement.previous > 0 for placement in placements[1:]]
        shown_later.append(self._at_end > 0)
        self._places = [
            _Place(shown.pts, *placement, placement.current > 0 or later)
            for shown, placement, later in zip(
                times, placements, shown_later, strict=True
            )
        ]
        # It stands for the one before it, where it is repeated itself.
        self._places[:1] = [first._replace(needed=True) for first in self._places[:1]]

    @classmethod
    def of(cls, video: OpenVideo, rate: Fraction) -> PlacedFrames | None:
        """Place the frames of a video that was opened for it; it is read to its end.

        Returns
        -------
        PlacedFrames or None
            None where it would not pay, where not all times are in the packets, or
            where the video cannot be read.
        """
        source_rate = video.frame_rate
        if (
            video.stream.codec.canonical_name not in _CODECS
            or source_rate is None
            or source_rate < _WORTH_IT * rate
        ):
            return None
        times = video.packet_times()
        if not times:
            return None
        try:
            return cls(times, video.grid(rate))
        except ValueError:
            return None

    @property
    def dropped(self) -> frozenset[int]:
        """Times of the frames that are not shown."""
        return frozenset(place.pts for place in self._places if not place.needed)

    def shown(self, video: OpenVideo) -> Iterator[tuple[Any, int]]:
        """Decode a video, and give its frames and their times as often as shown.

        Raises
        ------
        NotAsPlacedError
            The decoder gave others; those that were given so far are right.
        SourceReadError
            As `OpenVideo.frames`.
        """
        decoded = video.frames(dropped=self.dropped)
        previous: tuple[Any, int] | None = None
        following: tuple[Any, Shown] | None = None
        for place in self._places:
            if following is None:
                following = next(decoded, None)
            frame: Any = None
            if following is not None and following[1].pts == place.pts:
                frame, following = following[0], None
            elif place.needed:
                raise NotAsPlacedError(f"no frame came for time {place.pts}")
            timed = frame, place.pts
            yield from repeat(previous or timed, place.previous)
            yield from repeat(timed, place.current)
            previous = timed
        if following is not None or next(decoded, None) is not None:
            raise NotAsPlacedError("frames came that were not placed")
        if previous is not None:
            yield from repeat(previous, self._at_end)
