"""The packets of one stream, to the end of the file, and what they say of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import av

from gulpio2.errors import SourceReadError
from gulpio2.media.clock import Shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.media.clock import Clock

__all__ = ["ASTRAY", "packet_times", "packets_of"]

# So much of what is no packet FFmpeg passes over at a time in MPEG-TS, and then wants
# to be asked again (MAX_RESYNC_SIZE in ``libavformat/mpegts.c``).
ASTRAY = 1 << 16


def packets_of(container: Any, stream: Any) -> Iterator[Any]:
    """Read the packets of a stream, and at last PyAV's empty one, which has no times.

    Parameters
    ----------
    container : av.container.InputContainer
        Read from where it is.
    stream : av.stream.Stream
        Of the container.

    Raises
    ------
    av.FFmpegError
        The file cannot be read on.
    """
    # Where it would be asked more often than there is something to pass over, something
    # else is wrong.
    times_left = container.size // ASTRAY + 2
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
        except av.BlockingIOError:
            if not times_left:
                raise
            times_left -= 1
            packets = container.demux(stream)
            continue
        # At the end PyAV gives an empty packet of each stream that FFmpeg knows of by
        # then, but has none of those that began late, as of the script at the end of an
        # FLV. Streams that it has are before those.
        except (StopIteration, IndexError):
            return
        yield packet


def packet_times(packets: Iterable[Any], clock: Clock) -> list[Shown] | None:
    """Read when all frames are shown without decoding them, to the end of the file.

    Parameters
    ----------
    packets : iterable of av.Packet
        Of a container that has times.
    clock : Clock
        Of the video.

    Returns
    -------
    list of Shown or None
        In the order in which they are shown; None where a packet does not say it,
        where two say the same, or where the file cannot be read.
    """
    found: list[Shown] = []
    try:
        for packet in packets:
            if packet.pts is None or packet.is_discard:
                return None
            found.append(Shown(packet.pts, clock.lasting(packet.duration)))
    except SourceReadError:
        return None
    if len({shown.pts for shown in found}) < len(found):
        return None
    return sorted(found)
