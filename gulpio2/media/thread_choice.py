"""Which videos may be decoded by several threads, and are better so."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING, Any

from gulpio2.errors import SourceReadError
from gulpio2.media.threaded import REORDERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.media.decode import OpenVideo

__all__ = ["notices_damage", "suits_threads"]

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
# Smaller frames two threads decode no faster than one, for two fifths more of the
# processors' time: H.264 of 340x256 to 854x480, ingested by two cores at a smaller
# size, took 0.81 to 0.94 of the time with one. Of 1280x720 it took 0.93 to 1.11.
_PIXELS_FOR_TWO = 1 << 19
# From one frame to the next, in the shortest of such steps. In a longer one a frame may
# be missing.
_GAP = 1.5


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
        return _is_even(_in_order(video.packets(), may_be_reordered=not early))
    except (SourceReadError, _UnsuitedError):
        return False


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
        if len(waiting) > 2 * REORDERED:
            yield heapq.heappop(waiting)
    yield from sorted(waiting)


def _is_even(times: Iterable[int]) -> bool:
    """Tell whether no step from one time to the next is much longer than another."""
    shortest, longest = math.inf, 1
    for time, after in itertools.pairwise(times):
        shortest, longest = min(shortest, after - time), max(longest, after - time)
    return longest <= _GAP * shortest
