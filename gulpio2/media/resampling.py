"""Decoded frames as often as another frame rate shows them."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

from gulpio2.errors import SourceReadError
from gulpio2.media.skipping import NotAsPlacedError, PlacedFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from fractions import Fraction

    from gulpio2.media.clock import Shown
    from gulpio2.media.decode import OpenVideo
    from gulpio2.media.frame_rate import ConstantRate

__all__ = ["placed_one_by_one", "resampled"]

_log = logging.getLogger(__name__)


def resampled(
    video: OpenVideo,
    rate: Fraction,
    reopen: Callable[[int], AbstractContextManager[OpenVideo]],
) -> Iterator[tuple[Any, int]]:
    """Give frames of a whole video as often as shown; decode no more than it takes.

    Parameters
    ----------
    video : OpenVideo
        Opened for this.
    rate : Fraction
        Frames per second to be.
    reopen : callable
        Opens the video anew, for so many threads.

    Yields
    ------
    frame : av.VideoFrame
        The same object where it is repeated.
    pts : int
        That of the frame in the video.
    """
    with reopen(1) as looked_at:
        placed = PlacedFrames.of(looked_at, rate)
    if placed is None:
        grid = video.grid(rate)
        yield from placed_one_by_one(video.frames(), grid, name=video.path)
        return
    given = 0
    try:
        for timed in placed.shown(video):
            yield timed
            given += 1
    except (NotAsPlacedError, SourceReadError) as cause:
        if video.threads > 1 and isinstance(cause, SourceReadError):
            raise
        _log.debug("%s: %s; once more, with every frame", video.path, cause)
    else:
        return
    with reopen(video.threads) as again:
        grid = again.grid(rate)
        frames = placed_one_by_one(again.frames(), grid, name=video.path)
        yield from itertools.islice(frames, given, None)


def placed_one_by_one(
    frames: Iterable[tuple[Any, Shown]], grid: ConstantRate, *, name: str
) -> Iterator[tuple[Any, int]]:
    """Give frames as often as a grid shows them.

    Parameters
    ----------
    frames : iterable of av.VideoFrame and Shown
        As they are decoded.
    grid : ConstantRate
        Told of each.
    name : str
        The video, for messages.
    """
    previous: tuple[Any, int] | None = None
    for frame, shown in frames:
        try:
            placement = grid.place(shown.pts, shown.duration)
        except ValueError as cause:
            raise SourceReadError(
                f"Video {name!r} has a gap in its times: {cause}. Take its frames as "
                "they are, without frame_rate."
            ) from cause
        timed = frame, shown.pts
        yield from itertools.repeat(previous or timed, placement.previous)
        yield from itertools.repeat(timed, placement.current)
        previous = timed
    if previous is not None:
        yield from itertools.repeat(previous, grid.finish())
