"""What can still be told of damaged files: entries out of a cut map, frames by markers.

`gulpio2.repair` reads the files and asks these functions. All of them take time
proportional to what they are given, whatever is in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.format.gmeta import validate_entry
from gulpio2.format.jpeg_markers import EOI, SOI, START_OF_SCAN, end_of_next_marker
from gulpio2.format.records import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FoundFrame", "JpegFinder", "gaps_between", "placeholder_id", "salvage_map"]

_ENTRY = b'": {"frame_info": '
_START = SOI + b"\xff"
# Markers of one JPEG. A progressive one has some dozens; a crafted one could have
# millions, and each of its bytes could begin another.
_MAX_MARKERS = 1000
# Places of a map that look like an entry and are none; damage makes a few of them.
_MAX_FAILURES = 1000
_DECODER = json.JSONDecoder()


def placeholder_id(number: int, offset: int) -> str:
    """Name frames whose item is unknown, or is not whole any more.

    Parameters
    ----------
    number : int
        Chunk.
    offset : int
        Of the first of them in the data file, in bytes.

    Examples
    --------
    >>> placeholder_id(3, 4096)
    'salvaged_3_4096'
    """
    return f"salvaged_{number}_{offset}"


def salvage_map(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Read what can be read of a map, one entry at a time.

    Parameters
    ----------
    data : bytes
        A map, damaged or cut anywhere.

    Returns
    -------
    list of (str, dict)
        Id and entry of those that have the form of one, in file order, an id that
        appears twice twice. Whether an entry is still what was written, only its
        own check tells (`gulpio2.format.entry.covered_part`).
    """
    text = data.decode("utf-8", "replace")
    separator = _ENTRY.decode("ascii")
    found = []
    position = failures = 0
    while failures < _MAX_FAILURES and (at := text.find(separator, position)) >= 0:
        position = at + len(separator)
        start, behind = text.index("{", at), text.find(separator, position)
        id_ = _string_before(text, at)
        if id_ is not None and (read := _entry_at(text, start, behind)):
            found.append((id_, read[0]))
            position = start + read[1]
        else:
            failures += 1
    return found


def _entry_at(text: str, start: int, behind: int) -> tuple[dict[str, Any], int] | None:
    """Read the entry that begins at `start`; give it, and its length, if there is one.

    Another one seems to begin behind it: there its id has been, or -1.
    """
    if behind < 0:
        return _read_entry(text, start)
    if read := _read_entry(text[start:behind]):
        return read
    # A brace at its end may be lost, or be another character now. All that follows
    # would be its own, were it read as a whole.
    cut = text[start : _start_of_string(text, behind)].rstrip()
    cut = cut.removesuffix(",").rstrip()
    for closed in (cut + "}", cut[:-1] + "}", cut[:-2] + "}}"):
        if read := _read_entry(closed):
            return read
    return _read_entry(text, start)  # its metadata has what looks like another entry


def _read_entry(text: str, start: int = 0) -> tuple[dict[str, Any], int] | None:
    """Read the entry at a place of a text; give it, and its length, if it is one."""
    try:
        entry, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (entry, end - start) if validate_entry(entry) is None else None


def _start_of_string(text: str, end: int) -> int:
    """Find where the string begins whose closing quote is at `end`, or -1."""
    start = end
    while (start := text.rfind('"', 0, start)) >= 0:
        before = start
        while before and text[before - 1] == "\\":
            before -= 1
        if (start - before) % 2 == 0:
            break
        start = before
    return start


def _string_before(text: str, end: int) -> str | None:
    """Give the string whose closing quote is at `end`."""
    start = _start_of_string(text, end)
    if start < 0:
        return None
    try:
        value = json.loads(text[start : end + 1])
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def gaps_between(spans: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Give what is left of a file between spans, as start and stop.

    Examples
    --------
    >>> gaps_between([(8, 12), (0, 4)], 20)
    [(4, 8), (12, 20)]
    """
    gaps = []
    end = 0
    for start, stop in sorted(spans):
        if start > end < size:
            gaps.append((end, min(start, size)))
        end = max(end, stop)
        if end >= size:
            break
    if end < size:
        gaps.append((end, size))
    return gaps


class FoundFrame(NamedTuple):
    """A JPEG that was found by its markers."""

    start: int
    """Of its first byte, in what was searched."""
    stop: int
    """Behind its last byte, padding left out."""


class JpegFinder:
    """Finds JPEGs in a piece of a data file.

    Parameters
    ----------
    data : bytes
        Begins at a multiple of four of the file: records do (rule 4).
    alignment : int, optional
        JPEGs begin at multiples of as many bytes; 1 where bytes were put in or cut out.
    """

    def __init__(self, data: bytes, alignment: int = ALIGNMENT) -> None:
        self.data = data
        self._alignment = alignment
        # What walks that lead nowhere may cost in all, in markers. Damage needs next
        # to nothing of it; crafted bytes could have every walk go to the end.
        self._budget = 100_000 + len(data) // 64

    def find(self, position: int, limit: int) -> FoundFrame | None:
        """Find the first JPEG that begins from `position` on and before `limit`.

        Whether it can be decoded is for the caller to see.
        """
        while (start := self.data.find(_START, position, limit + 2)) >= 0:
            if start % self._alignment == 0:
                if self._budget < 0:
                    return None
                stop = self._end(start)
                if stop is not None:
                    return FoundFrame(start, stop)
            position = start + 1
        return None

    def _end(self, start: int) -> int | None:
        """Walk the markers to the end of the image; None where there is none."""
        data, position = self.data, start + 2
        scans = cost = 0
        for _ in range(_MAX_MARKERS):
            behind = end_of_next_marker(data, position)
            cost += 1 + ((behind or len(data)) - position) // 256
            if behind is None or data[behind - 1] == SOI[1]:
                break  # an SOI is the next record: this one has lost its end
            marker, position = data[behind - 1], behind
            if marker == EOI[1] and scans:
                return position
            if marker == 0x01:
                continue
            length = int.from_bytes(data[position : position + 2], "big")
            if marker == EOI[1] or length < 2:
                break
            scans += marker == START_OF_SCAN
            position += length
        self._budget -= cost
        return None
