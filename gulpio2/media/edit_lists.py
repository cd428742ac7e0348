"""Whether an MP4 or MOV shows several parts of its media, one behind the other.

What is decoded for one part and not shown has times among those of another, and then a
time does not tell which frame is meant.
"""

from __future__ import annotations

import logging
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gulpio2.media.mp4_boxes import boxes_at, content_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_several_parts", "tell_of_odd_edits"]

_log = logging.getLogger(__name__)

# ISO/IEC 14496-12: an edit list (8.6.6) has a version, a number of entries, and of each
# its length and where it begins; -1 for showing nothing.
_LENGTHS = {0: struct.Struct(">Ii"), 1: struct.Struct(">Qq")}
_RATE, _NOTHING = 4, -1
_ONE = b"\0\1\0\0"
# Where a track says its number, by the version of what does.
_NUMBER_AT = {0: 12, 1: 20}


def has_several_parts(path: str) -> bool:
    """Tell whether an edit list of the file has more than one part that is shown.

    Parameters
    ----------
    path : str
        A file that FFmpeg takes for one of these.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with Path(path).open("rb") as file:
        return any(_count(table) > 1 for _, table in _edit_lists(file))


def tell_of_odd_edits(path: str, track: int) -> None:
    """Log what FFmpeg does not show as an edit list asks for; nothing where it does.

    Parameters
    ----------
    path : str
        A file that FFmpeg takes for MP4 or MOV.
    track : int
        The number of a track in it.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with Path(path).open("rb") as file:
        for number, table in _edit_lists(file):
            if number == track and (odd := _odd_edits(table)):
                _log.warning(
                    "the edit list of video %r has %s, of which FFmpeg makes something "
                    "else than players do; frames are stored as FFmpeg gives them",
                    path,
                    odd,
                )


def _odd_edits(table: bytes) -> str:
    edits = _edits(table)
    if any(begin == _NOTHING for begin, _ in edits[1:]):
        return "a pause between its parts"
    if any(begin != _NOTHING and rate != _ONE for begin, rate in edits):
        return "a part of another speed"
    return ""


def _edit_lists(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Give the edit lists of a file, each with the number of its track."""
    for track in boxes_at(file, b"moov", b"trak"):
        number = 0
        for box in boxes_at(file, b"tkhd", parent=track):
            header = content_of(file, box)
            at = _NUMBER_AT.get(header[0] if header else 0, 0)
            number = int.from_bytes(header[at : at + 4], "big")
        for table in boxes_at(file, b"edts", b"elst", parent=track):
            yield number, content_of(file, table)


def _count(table: bytes) -> int:
    if table[:1] not in {b"", b"\0", b"\1"}:  # who knows what is shown
        return 2
    return sum(begin != _NOTHING for begin, _ in _edits(table))


def _edits(table: bytes) -> list[tuple[int, bytes]]:
    """Give where each part begins, and its rate."""
    entry = _LENGTHS.get(table[0] if table else 0)
    if entry is None:
        return []
    places = range(8, len(table) - entry.size - _RATE + 1, entry.size + _RATE)
    return [
        (
            entry.unpack_from(table, place)[1],
            table[place + entry.size : place + entry.size + _RATE],
        )
        for place in places
    ]
