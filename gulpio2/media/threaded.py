"""Decoding by several threads, where that gives what one thread gives.

With several threads FFmpeg sees damage late, and some of it never: a frame is handed
out before the thread that decodes one it is predicted from has found the fault, frames
that are missing are made up from others, and PyAV drops an error that comes while the
decoder is emptied. So only videos without a gap are decoded so, by stricter rules: what
could be mended is an error, each packet has to give its frame, and frames are held back
until those decoded before them are known to be sound. After an error the rest comes
from one thread. What is told of a file, and what is stored, never depends on threads.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

from gulpio2.errors import SourceReadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.media.decode import OpenVideo

__all__ = [
    "awaited",
    "held_back",
    "notices_damage",
    "set_threads",
    "suits_threads",
    "with_last",
]

# Decoders that have a thread for each frame, and notice damage: of those that do not,
# such as HEVC, VP8, FFV1, Ut Video, JPEG 2000 and DNxHD, flipped bits look otherwise
# with threads.
_CODECS = frozenset(
    {"av1", "h264", "huffyuv", "mjpeg", "mpeg4", "png", "prores", "vp9"}
)
# Decoders that hand out a frame that they kept back while another thread is still at
# it, so that it is not yet known to be damaged. Of H.264 with B-frames of 1280x720
# every fourth frame with flipped bits passed for a whole one so; of MPEG-4, which keeps
# back frames as well, none.
_HANDED_OUT_EARLY = frozenset({"h264"})
# An error where a frame would else be mended, and where something can be checked.
_STRICT = "crccheck+bitstream+buffer+explode"
# Smaller frames two threads decode no faster than one, for two fifths more of the
# processors' time: H.264 of 340x256 to 854x480, ingested by two cores at a smaller
# size, took 0.81 to 0.94 of the time with one. Of 1280x720 it took 0.93 to 1.11.
_PIXELS_FOR_TWO = 1 << 19
# Threads at most where FFmpeg chooses how many.
_MOST = 16
# From one frame to the next, in the shortest of such steps. In a longer one a frame may
# be missing.
_GAP = 1.5
# So many frames at most come before one that was decoded before them; fewer where they
# are large (ITU-T H.264, table A-1, level 5.2: pixels of all together).
_REORDERED, _REORDERED_PIXELS = 16, 184_320 * 256


def notices_damage(video: OpenVideo) -> bool:
    """Tell whether the decoder of a video notices damage.

    One that does not leaves in a damaged frame what was in its memory before, so that
    its pixels depend on which frames are kept, and for how long.
    """
    return video.stream.codec.canonical_name in _CODECS


def suits_threads(video: OpenVideo, threads: int) -> bool:
    """Tell whether a video may be decoded by several threads, and is better so.

    Parameters
    ----------
    video : OpenVideo
        Opened for this; it is read to its end, and not decoded.
    threads : int
        How many they would be.
    """
    size = video.stream.codec_context.width * video.stream.codec_context.height
    if threads == 2 and size < _PIXELS_FOR_TWO:
        return False
    if not notices_damage(video):
        return False
    early = video.stream.codec.canonical_name in _HANDED_OUT_EARLY
    if early and video.stream.codec_context.has_b_frames:
        return False
    try:
        steps = _shortest_and_longest(
            _in_order(video.packets(), may_be_reordered=not early)
        )
    except (SourceReadError, _UnsuitedError):
        return False
    return not steps or 0 < max(steps) <= _GAP * min(steps)


class _UnsuitedError(Exception):
    """A packet does not say when its frame is shown, or comes where it must not."""


def _in_order(packets: Iterable[Any], *, may_be_reordered: bool) -> Iterator[int]:
    """Give the times of packets in the order of the frames; few are held at a time."""
    waiting: list[int] = []
    latest: int | None = None
    for number, packet in enumerate(packets):
        if packet.pts is None or packet.is_discard:
            raise _UnsuitedError
        if number == 0 and not packet.is_keyframe:  # what it is predicted from is gone
            raise _UnsuitedError
        if latest is not None and packet.pts < latest and not may_be_reordered:
            raise _UnsuitedError
        latest = packet.pts
        heapq.heappush(waiting, packet.pts)
        if len(waiting) > 2 * _REORDERED:
            yield heapq.heappop(waiting)
    yield from sorted(waiting)


def _shortest_and_longest(times: Iterable[int]) -> tuple[int, ...]:
    """Give the shortest and the longest step; nothing for a single time."""
    steps = (after - time for time, after in itertools.pairwise(times))
    shortest = longest = next(steps, None)
    if shortest is None or longest is None:
        return ()
    for step in steps:
        shortest, longest = min(shortest, step), max(longest, step)
    return shortest, longest


def set_threads(codec: Any, threads: int) -> int:
    """Have a decoder use so many threads.

    Parameters
    ----------
    codec : av.VideoCodecContext
        Not open yet.
    threads : int
        0 for as many as there are cores.

    Returns
    -------
    int
        How many there may be.
    """
    codec.thread_count = threads
    if threads == 1:
        codec.thread_type = "NONE"
        return 1
    codec.thread_type = "FRAME"
    codec.options = {**codec.options, "err_detect": _STRICT}
    return threads or _MOST


@contextlib.contextmanager
def awaited(codec: Any, threads: int) -> Iterator[None]:
    """Wait at the end of the block for what a decoder's threads have begun.

    PyAV does so too when it frees a decoder, but holds the interpreter's lock then.
    Where a program has the messages of FFmpeg logged, a thread that has one to tell
    waits for that lock, and both for ever.

    Parameters
    ----------
    codec : av.VideoCodecContext
        Used in the block.
    threads : int
        How many it may have.
    """
    try:
        yield
    finally:
        if threads > 1:
            codec.flush_buffers()


def with_last(packets: Iterable[Any], number: int) -> Iterator[tuple[Any, bool]]:
    """Say of each packet whether it is among the last of them.

    Examples
    --------
    >>> list(with_last("abc", 2))
    [('a', False), ('b', True), ('c', True)]
    """
    waiting: deque[Any] = deque()
    for packet in packets:
        waiting.append(packet)
        if len(waiting) > number:
            yield waiting.popleft(), False
    for packet in waiting:
        yield packet, True


def held_back(frames: Iterable[Any]) -> Iterator[Any]:
    """Give frames once those that they may be predicted from have come too."""
    waiting: deque[Any] = deque()
    for frame in frames:
        waiting.append(frame)
        most = _REORDERED_PIXELS // (frame.width * frame.height)
        if len(waiting) > min(_REORDERED, most):
            yield waiting.popleft()
    yield from waiting
