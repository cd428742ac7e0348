"""Frames from a time on, decoded from a key frame before it where that is exact.

An index leads to a key frame near a time, but nothing in a file says that what is
decoded from there is what decoding from the beginning gives: the container's times may
go back, an edit list may leave out what is decoded, a decoder may need more than the
key frame. So each step is looked at, and where one is not as it has to be, or anything
fails, whoever asked decodes from the beginning and gets what that gives, errors too.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

import av

from gulpio2.errors import SourceReadError
from gulpio2.media.counting import AVI, AVI_HEADER, MATROSKA, MOV
from gulpio2.media.edit_lists import has_several_parts
from gulpio2.media.random_access import is_random_access_point
from gulpio2.media.threaded import REORDERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from av.index import IndexEntries

    from gulpio2.media.clock import Shown
    from gulpio2.media.decode import OpenVideo

__all__ = ["NotExactError", "frames_by_index"]

# Containers with an index of key frames, whose packets have the times that they have
# when everything is read. MP4 is one of those of QuickTime.
_INDEXED = frozenset({MOV, MATROSKA, AVI})
# Key frames that are tried, from the last one before a time on.
_ATTEMPTS = 8


class NotExactError(Exception):
    """It is not known that decoding from a key frame gives what it should."""


def frames_by_index(video: OpenVideo, tick: int) -> Iterator[tuple[Any, Shown]]:
    """Decode the frames from a time on, and no more of those before than it takes.

    Parameters
    ----------
    video : OpenVideo
        Whose first frame has been decoded, and nothing since then.
    tick : int
        The time.

    Yields
    ------
    frame, shown
        As of `OpenVideo.frames`. Also those between the key frame and the time.

    Raises
    ------
    NotExactError
        Other frames could come, from here on, where everything is decoded. Those that
        were given so far are right.
    """
    if video.format not in _INDEXED or video.is_doubtful:
        raise NotExactError("there is no index, or not all of the file")
    try:
        if video.format == MOV and has_several_parts(video.path):
            raise NotExactError("an edit list has several parts")
        point, packets = _point_before(video, tick)
        yield from _frames_from(video, point, packets)
    except (av.FFmpegError, OSError, ValueError, SourceReadError) as cause:
        raise NotExactError(str(cause)) from cause


def _point_before(video: OpenVideo, tick: int) -> tuple[Any, Iterator[Any]]:
    """Find a key frame to decode from; give its packet, and those behind it."""
    target, codec = tick, video.stream.codec_context
    for _ in range(_ATTEMPTS):
        video.seek(target)
        packets = video.packets()
        point = next(packets, None)
        if point is None or point.pts is None:
            raise NotExactError("there is no packet with a time")
        if video.format == AVI:
            _check_avi(video, point)
        if point.pts <= tick and is_random_access_point(point, codec):
            return point, packets
        # An index has the times of presentation, or those of decoding.
        times = [target, point.pts, point.dts]
        target = min(time for time in times if time is not None) - 1
    raise NotExactError("no key frame is one to begin at")


def _check_avi(video: OpenVideo, packet: Any) -> None:
    """Compare an index with the file: in AVI, times are numbers of its entries."""
    entries: IndexEntries = video.stream.index_entries
    # Frames that were dropped have a number and no entry.
    count = entries[len(entries) - 1].timestamp + 1 if len(entries) else 0
    if count != video.stream.frames:
        raise NotExactError("the index does not count the frames of the file")
    found = entries[entries.search_timestamp(packet.pts, any_frame=True)]
    if found.timestamp != packet.pts or found.pos + AVI_HEADER != packet.pos:
        raise NotExactError("the index leads elsewhere")


def _frames_from(
    video: OpenVideo, point: Any, packets: Iterator[Any]
) -> Iterator[tuple[Any, Shown]]:
    """Decode from a key frame on; at least its own frame comes, or an error."""
    tell = video.clock().tell
    last: int | None = None
    due = video.due
    decoded = _decoded(video, itertools.chain([point], packets))
    for frame in video.coloured(decoded):
        if frame.pts is None:
            raise NotExactError("a frame has no time")
        if last is None:
            if frame.pts < point.pts:
                continue  # of an open group, whose beginning is not there
            if frame.pts != point.pts or not frame.key_frame:
                raise NotExactError("the key frame does not come")
        elif frame.pts <= last:
            raise NotExactError(f"a frame at {frame.pts} comes after {last}")
        if frame.is_corrupt or not video.is_allowed(frame):
            raise NotExactError("a frame is damaged, or too large")
        due.see_frame(frame.pts)
        if due.is_overdue:
            raise NotExactError(f"a packet before {frame.pts} gave no frame")
        shown = tell(frame.pts, frame.dts, frame.duration or 0)
        if shown.pts != frame.pts:
            raise NotExactError(f"a frame at {frame.pts} is shown at {shown.pts}")
        last = frame.pts
        yield frame, shown
    if last is None or due.number:
        raise NotExactError("a frame does not come")


def _decoded(video: OpenVideo, packets: Iterable[Any]) -> Iterator[Any]:
    """Decode packets to the end of the file, if they are as they have to be."""
    codec = video.stream.codec_context
    last: int | None = None
    for packet in _seen_ahead(packets, codec.reorder_depth):
        # AVI has none where frames are reordered: those depend on what a decoder holds.
        if packet.pts is None:
            raise NotExactError("a packet has no time")
        if packet.is_discard:
            raise NotExactError("an edit list leaves something out")
        if video.promise.is_astray:
            raise NotExactError("a packet is not where the index says")
        if packet.dts is not None and video.format != MATROSKA:  # which has none
            if last is not None and packet.dts <= last:
                raise NotExactError("times of decoding go back")
            last = packet.dts
        video.due.see_packet(packet.pts)
        yield from codec.decode(packet)
    if video.format == MOV:
        entries = video.stream.index_entries
        if not len(entries) or entries[len(entries) - 1].timestamp != last:
            raise NotExactError("the file ends before its index does")
    if video.promise.is_open:
        raise NotExactError("the file ends before its index does")
    yield from codec.decode(None)


def _seen_ahead(packets: Iterable[Any], reorder_depth: int) -> Iterator[Any]:
    """Give packets, if frames come out of the decoder in the order of their times.

    Raises
    ------
    NotExactError
        Before a packet is given from which on that may not be so.
    """
    ahead = _not_late(packets, reorder_depth)
    waiting = deque(itertools.islice(ahead, REORDERED))
    # As of MP4 without a table of the differences.
    if reorder_depth and all(packet.pts == packet.dts for packet in waiting):
        raise NotExactError("there are only times of decoding")
    for packet in ahead:
        waiting.append(packet)
        yield waiting.popleft()
    yield from waiting


def _not_late(packets: Iterable[Any], reorder_depth: int) -> Iterator[Any]:
    """Give packets, if the decoder holds back as many frames as their times need.

    Of H.264 a file need not say how many those are. A decoder that finds one more drops
    a frame, and holds back more from then on; here it has seen less of the file than
    where everything is decoded.
    """
    recent: deque[int] = deque(maxlen=REORDERED)
    for packet in packets:
        if packet.pts is not None:
            if sum(pts > packet.pts for pts in recent) > reorder_depth:
                raise NotExactError("a frame comes later than the decoder waits for it")
            recent.append(packet.pts)
        yield packet
