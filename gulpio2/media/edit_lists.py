"""Whether an MP4 or MOV shows several parts of its media, one behind the other.

What is decoded for one part and not shown has times among those of another, and then a
time does not tell which frame is meant.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_several_parts"]

# ISO/IEC 14496-12: the boxes on the way to an edit list (8.6.6), which has a version, a
# number of entries, and of each its length and where it begins; -1 for showing nothing.
_AROUND = {b"moov", b"trak", b"edts"}
_LENGTHS = {0: struct.Struct(">Ii"), 1: struct.Struct(">Qq")}
_RATE, _NOTHING = 4, -1


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
        return any(count > 1 for count in _parts(file, 0, file.seek(0, 2)))


def _parts(file: IO[bytes], position: int, end: int, depth: int = 0) -> Iterator[int]:
    """Count the parts of each edit list."""
    while position + 8 <= end:
        file.seek(position)
        header = file.read(16)
        length, name = int.from_bytes(header[:4], "big"), header[4:8]
        begin = position + 8
        if length == 1:
            length, begin = int.from_bytes(header[8:], "big"), position + 16
        if length == 0:  # up to the end
            length = end - position
        if length < begin - position:
            return
        position += length
        if name in _AROUND and depth < len(_AROUND):
            yield from _parts(file, begin, min(position, end), depth + 1)
        elif name == b"elst":
            file.seek(begin)
            yield _count(file.read(min(position, end) - begin))


def _count(table: bytes) -> int:
    entry = _LENGTHS.get(table[0] if table else 0)
    if entry is None:  # of a version that is not known: who knows what is shown
        return 2
    places = range(8, len(table) - entry.size - _RATE + 1, entry.size + _RATE)
    begins = [entry.unpack_from(table, place)[1] for place in places]
    return sum(begin != _NOTHING for begin in begins)
