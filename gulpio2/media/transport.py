"""What of an MPEG transport stream is missing, by the counters of its packets.

FFmpeg counts too, and marks the packet of a frame of which some are missing. But its
parsers of H.264 and HEVC lose the mark where the gap is in the first frame or where the
second one begins, and may lose it where it has to look for the next packet. Where it
has to look far, it leaves out the rest of a frame, and no mark tells of it.
"""

from __future__ import annotations

import logging
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.media.cut import read_at
from gulpio2.media.demuxing import ASTRAY
from gulpio2.media.part_walks import transport_packet
from gulpio2.media.streams import videos_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from gulpio2.media.part_walks import Unit

__all__ = ["JOINT", "missing_packets", "tell_of_other_parts"]

_log = logging.getLogger(__name__)

# Whether packets were lost there cannot be known: both break the count of packets.
JOINT = (
    ", or transport streams were joined here as by cat, which leaves a jump in the "
    "count of their packets; join them with ffmpeg -f concat -c copy instead"
)
# Packets that are read at a time, and those that have to begin as one does for the
# place to be found again.
_AT_A_TIME, _TO_FIND = 1 << 15, 5
_SYNC = 0x47


def missing_packets(path: str, pid: int) -> str | None:
    """Look for a gap in the counters of a stream, behind its first begun frame.

    Parameters
    ----------
    path : str
        A file.
    pid : int
        Of the stream.

    Returns
    -------
    str or None
        A clause for an error; None where nothing is missing, or this is not known.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # as it is named
            unit = transport_packet(file)
            found = None if unit is None else _first_gap(file, unit, pid)
    except OSError:
        return None
    if found is None:
        return None
    if found.is_cut:
        return (
            f"what is no packet goes through a frame before byte {found.place}, of "
            "which FFmpeg leaves out the rest"
        )
    return (
        f"packets of it are missing, or are there twice, before byte {found.place}"
        f"{JOINT}"
    )


def tell_of_other_parts(path: str, container: Any, stream: Any) -> None:
    """Log which videos are before the first packet of a stream, or behind its last.

    So it is where what is broadcast changes, or files of two programs were joined as
    by cat.

    Parameters
    ----------
    path : str
        A file.
    container : av.container.InputContainer
        It is open.
    stream : av.stream.Stream
        That was decoded.
    """
    others = [video for video in videos_of(container) if video is not stream]
    if not others:  # of most files
        return
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # as it is named
            unit = transport_packet(file)
            spans = {} if unit is None else _spans_of(file, unit)
    except OSError:
        return
    first, last = spans.get(stream.id, (0, 0))
    for other in others:
        begin, end = spans.get(other.id, (first, last))
        if begin > last or end < first:
            _log.warning(
                "video %r is stored from its stream %d alone, and stream %d, which "
                "comes %s it, is left out; VideoFrames(path, stream=%d) gives that",
                path,
                stream.index,
                other.index,
                "behind" if begin > last else "before",
                other.index,
            )


def _spans_of(file: IO[bytes], unit: Unit) -> dict[int, tuple[int, int]]:
    """Tell where the first packet of each stream is, and the last one."""
    spans: dict[int, tuple[int, int]] = {}
    for position, packets in _stretches(file, unit):
        pids = _pids_of(packets)
        for pid in np.unique(pids).tolist():
            own = np.flatnonzero(pids == pid)
            first, last = (position + int(own[i]) * unit.num_bytes for i in (0, -1))
            spans[pid] = spans.get(pid, (first,))[0], last
    return spans


class _Gap(NamedTuple):
    """Something that is missing."""

    place: int
    is_cut: bool
    """Whether all packets are there, but far from each other."""


class _Counter(NamedTuple):
    """What is known of a stream before a place."""

    last: int = -1
    """The last counter; -1 before the first frame."""
    is_cut: bool = False
    """Whether a long stretch that holds no packet has come since its last one."""


def _first_gap(file: IO[bytes], unit: Unit, pid: int) -> _Gap | None:
    counter = _Counter()
    end = 0  # of the last packet
    for position, packets in _stretches(file, unit):
        if _is_far(file, end, position):
            counter = counter._replace(is_cut=True)
        gap, counter = _gap_in(packets, pid, counter)
        if gap is not None:
            return _Gap(position + gap * unit.num_bytes, counter.is_cut)
        end = position + len(packets) * unit.num_bytes
    return None


def _stretches(
    file: IO[bytes], unit: Unit
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Give packets that follow each other, and where they begin."""
    position, step = 0, unit.num_bytes
    while data := read_at(file, position, _AT_A_TIME * step):
        packets = np.frombuffer(data, np.uint8)
        packets = packets[: len(data) // step * step]
        packets = packets.reshape(-1, step)[:, unit.at :]
        astray = np.flatnonzero(packets[:, :1] != _SYNC)
        if astray.size:
            packets = packets[: astray[0]]
        done = len(packets) * step
        if done:
            yield position, packets
            position += done
        if astray.size or not done:
            is_last = len(data) < _AT_A_TIME * step
            found = _found_again(data, done, unit, is_last=is_last)
            position += found
            if not found and is_last:
                return
            if not found and not done:  # nothing in these bytes, but for their end
                position += len(data) - _TO_FIND * step


def _pids_of(packets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    return (packets[:, 1] & 0x1F).astype(np.int32) << 8 | packets[:, 2]


def _is_far(file: IO[bytes], start: int, end: int) -> bool:
    """Tell whether FFmpeg finds nothing between these bytes that might be a packet."""
    while start + ASTRAY <= end:
        place = read_at(file, start, ASTRAY).rfind(_SYNC)
        if place < 0:
            return True
        start += place + 1
    return False


def _gap_in(
    packets: npt.NDArray[np.uint8], pid: int, counter: _Counter
) -> tuple[int | None, _Counter]:
    """Give the first packet behind a gap, and what is known behind all of them."""
    own = np.flatnonzero(_pids_of(packets) == pid)
    begins = packets[own, 1] & 0x40 != 0
    last = counter.last
    if last < 0:  # what is before the first frame that begins is of none
        own = own[np.argmax(begins) :] if begins.any() else own[:0]
    if not own.size:
        return None, counter
    fields, counters = packets[own, 3], (packets[own, 3] & 0xF).astype(np.int32)
    has_payload = fields & 0x10 != 0
    previous: npt.NDArray[Any] = np.concatenate([[last], counters[:-1]])
    # One without a payload does not count.
    expected = previous + has_payload & 0xF
    is_told = (fields & 0x20 != 0) & (packets[own, 4] > 0) & (packets[own, 5] >> 7 != 0)
    gaps = (counters != expected) & ~is_told & (previous >= 0)
    found = np.flatnonzero(gaps)
    first = int(own[found[0]]) if found.size else None
    is_cut = counter.is_cut and last >= 0
    if is_cut and has_payload.any():
        place = own[np.argmax(has_payload)]
        if not packets[place, 1] & 0x40 and (first is None or place < first):
            return int(place), counter
        is_cut = False
    return first, _Counter(int(counters[-1]), is_cut)


def _found_again(data: bytes, start: int, unit: Unit, *, is_last: bool) -> int:
    """Give how many bytes further packets begin again; 0 for not in these bytes."""
    step = unit.num_bytes
    least = 1 if is_last else _TO_FIND  # behind the last bytes of a file are no more
    place = data.find(_SYNC, start + 1 + unit.at)
    while place >= 0:
        starts = data[place : place + _TO_FIND * step : step]
        if len(starts) >= least and starts == bytes([_SYNC]) * len(starts):
            return place - unit.at - start
        place = data.find(_SYNC, place + 1)
    return 0
