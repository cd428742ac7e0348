"""An excerpt of a video: the frames from one time on and before another.

Times are seconds from the first frame, the first that can be decoded, by the times that
the container has. A frame is in the excerpt if its time is; one that is still shown at
the start, and began before it, is not.
"""

from __future__ import annotations

import itertools
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

from gulpio2.errors import SourceReadError
from gulpio2.format.times import first_tick
from gulpio2.media.seeking import NotExactError, frames_by_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from fractions import Fraction

    from gulpio2.media.clock import Shown
    from gulpio2.media.decode import OpenVideo

__all__ = ["Excerpt", "ExcerptFrames"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Where an excerpt begins and ends."""

    name: str
    """The video, for messages."""
    start: SupportsFloat | None
    """Seconds from the first frame on; None for all from there."""
    end: SupportsFloat | None
    """Seconds too, of what is no more in it; None for the end of the video."""

    def check(self) -> None:
        """Refuse times between which nothing can be.

        Raises
        ------
        SourceReadError
            A time is negative or none, or the end is not after the start.
        """
        for what, value in (("start", self.start), ("end", self.end)):
            if value is not None and not 0 <= _as_float(value) < math.inf:
                raise self._error(
                    f"the {what} is {value}, where seconds from its first frame are "
                    "needed"
                )
        start = self.start or 0
        if self.end is not None and not float(start) < float(self.end):
            raise self._error("the end must be after the start")

    def nothing(self, seen: str) -> SourceReadError:
        """Give the error of an excerpt without frames; `seen` tells why."""
        return self._error(f"no frame has a time in it; {seen}")

    def other_frames(self) -> SourceReadError:
        """Give the error of a video that gave others when it was decoded anew."""
        return SourceReadError(
            f"Video {self.name!r} has other frames from a key frame on than from its "
            "beginning: its times contradict each other. Encode it anew, or leave the "
            "excerpt out."
        )

    def _error(self, cause: str) -> SourceReadError:
        start = 0 if self.start is None else self.start
        end = "the end" if self.end is None else f"{self.end} s"
        return SourceReadError(
            f"Video {self.name!r} has no excerpt from {start} s to {end}: {cause}. "
            "Correct the times, or leave it out."
        )


def _as_float(seconds: SupportsFloat) -> float:
    try:
        return float(seconds)
    except OverflowError:
        return math.inf


class ExcerptFrames:
    """The frames of an excerpt, once the first frame of its video is known.

    Parameters
    ----------
    excerpt : Excerpt
        Which they are.
    video : OpenVideo
        Opened for this, with one thread.
    reopen : callable
        Opens the video anew.

    Attributes
    ----------
    start : int
        First tick of the excerpt, on the timeline of the video.

    Raises
    ------
    SourceReadError
        As `Excerpt.check`, and where not even the first frame can be had.
    """

    def __init__(
        self,
        excerpt: Excerpt,
        video: OpenVideo,
        reopen: Callable[[], AbstractContextManager[OpenVideo]],
    ) -> None:
        excerpt.check()
        self._excerpt, self._video, self._reopen = excerpt, video, reopen
        self._frames = video.frames()
        self._first = next(self._frames)
        video.first_frame = self._first[0]
        self._origin = self._first[1].pts
        base = video.time_base
        self.start = self._origin + first_tick(excerpt.start or 0, base)
        self._stop = (
            None
            if excerpt.end is None
            else self._origin + first_tick(excerpt.end, base)
        )

    def __iter__(self) -> Iterator[tuple[Any, Shown]]:
        """Decode them, once: as `OpenVideo.frames`.

        Each lasts no longer than the excerpt.

        Raises
        ------
        SourceReadError
            As `OpenVideo.frames`, of what is decoded for them; there are none.
        """
        given: list[int] = []
        if self.start > self._origin:
            try:
                found = frames_by_index(self._video, self.start)
                for timed in self._within(found, self._video):
                    yield timed
                    given.append(timed[1].pts)
            except NotExactError as cause:
                name = self._excerpt.name
                _log.debug("%s: %s; once more, from the beginning", name, cause)
            else:
                return
            with self._reopen() as again:
                frames = self._within(again.frames(), again)
                skipped = itertools.islice(frames, len(given))
                if [shown.pts for _, shown in skipped] != given:
                    raise self._excerpt.other_frames()
                yield from frames
            return
        frames = itertools.chain([self._first], self._frames)
        yield from self._within(frames, self._video)

    def _within(
        self, frames: Iterator[tuple[Any, Shown]], video: OpenVideo
    ) -> Iterator[tuple[Any, Shown]]:
        stop = self._stop
        before: Shown | None = None
        last: tuple[Any, Shown] | None = None
        is_any = False
        newest = 0
        for frame, shown in frames:
            if stop is not None and shown.pts >= stop:
                if not is_any:
                    raise self._nothing(before, shown)
                if last is not None:  # shown to the end, whatever it says
                    lasting = stop - last[1].pts
                    yield last[0], last[1]._replace(duration=lasting)
                    last = None
                # Those before may be predicted from frames that come later, and are
                # known to be sound when these have come. What may be missing from the
                # file only its end tells.
                if not video.due.is_awaited(newest) and not video.is_doubtful:
                    return
            elif shown.pts >= self.start:
                if last is not None:
                    yield last
                is_any, last = True, (frame, self._ended(shown))
                newest = max(newest, video.due.latest)
            else:
                before = shown
        if last is not None:
            yield last
        if not is_any:
            raise self._nothing(before, None)

    def _ended(self, shown: Shown) -> Shown:
        if self._stop is None or shown.duration <= self._stop - shown.pts:
            return shown
        return shown._replace(duration=self._stop - shown.pts)

    def _nothing(self, before: Shown | None, after: Shown | None) -> SourceReadError:
        base: Fraction = self._video.time_base
        at = [
            f"{round(float((shown.pts - self._origin) * base), 6)} s"
            for shown in (before, after)
            if shown is not None
        ]
        seen = f"its last one is at {at[0]}" if at else "it has none"
        if after is not None:
            seen = f"those around are at {' and '.join(at)}"
        return self._excerpt.nothing(seen)
