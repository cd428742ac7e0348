"""Packets that are missing from an MPEG transport stream, by their counters.

FFmpeg counts too, and marks the packet of a frame of which some are missing. But its
parsers of H.264 and HEVC lose the mark where the gap is in the first frame or where the
second one begins, and may lose it where it has to look for the next packet.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gulpio2.media.cut import read_at
from gulpio2.media.part_walks import transport_packet

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.media.part_walks import Unit

__all__ = ["JOINT", "missing_packets"]

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
            place = None if unit is None else _first_gap(file, unit, pid)
    except OSError:
        return None
    if place is None:
        return None
    return f"packets of it are missing, or are there twice, before byte {place}{JOINT}"


def _first_gap(file: IO[bytes], unit: Unit, pid: int) -> int | None:
    position, last = 0, -1
    while data := read_at(file, position, _AT_A_TIME * unit.num_bytes):
        packets = np.frombuffer(data, np.uint8)
        packets = packets[: len(data) // unit.num_bytes * unit.num_bytes]
        packets = packets.reshape(-1, unit.num_bytes)[:, unit.at :]
        astray = np.flatnonzero(packets[:, :1] != _SYNC)
        if astray.size:
            packets = packets[: astray[0]]
        gap, last = _gap_in(packets, pid, last)
        if gap is not None:
            return position + gap * unit.num_bytes
        position += len(packets) * unit.num_bytes
        if astray.size or not len(packets):
            found = _found_again(data, len(packets) * unit.num_bytes, unit)
            position += found
            if not found:
                return None
    return None


def _gap_in(
    packets: npt.NDArray[np.uint8], pid: int, last: int
) -> tuple[int | None, int]:
    """Give the first packet behind a gap, and the last counter; -1 before the first."""
    ids = (packets[:, 1] & 0x1F).astype(np.int32) << 8 | packets[:, 2]
    own = np.flatnonzero(ids == pid)
    begins = packets[own, 1] & 0x40 != 0
    if last < 0:  # what is before the first frame that begins is of none
        own = own[np.argmax(begins) :] if begins.any() else own[:0]
    if not own.size:
        return None, last
    fields, counters = packets[own, 3], (packets[own, 3] & 0xF).astype(np.int32)
    previous: npt.NDArray[Any] = np.concatenate([[last], counters[:-1]])
    # One without a payload does not count.
    expected = previous + (fields & 0x10 != 0) & 0xF
    is_told = (fields & 0x20 != 0) & (packets[own, 4] > 0) & (packets[own, 5] >> 7 != 0)
    gaps = (counters != expected) & ~is_told & (previous >= 0)
    found = np.flatnonzero(gaps)
    return (int(own[found[0]]) if found.size else None), int(counters[-1])


def _found_again(data: bytes, start: int, unit: Unit) -> int:
    """Give how many bytes further packets begin again; 0 for not in these bytes."""
    step = unit.num_bytes
    place = data.find(_SYNC, start + 1 + unit.at)
    while place >= 0:
        starts = data[place : place + _TO_FIND * step : step]
        if starts == bytes([_SYNC]) * len(starts):
            return place - unit.at - start
        place = data.find(_SYNC, place + 1)
    return 0
