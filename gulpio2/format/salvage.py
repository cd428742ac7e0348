"""What can still be told of damaged files: entries out of a cut map, frames by markers.

`gulpio2.repair` reads the files and asks these functions. All of them take time
proportional to what they are given, whatever is in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.format.gmeta import validate_entry
from gulpio2.format.jpeg_markers import EOI, SOI, START_OF_SCAN, end_of_next_marker
from gulpio2.format.map_checks import ENTRY_KEYS
from gulpio2.format.records import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FoundFrame", "JpegFinder", "gaps_between", "placeholder_id", "salvage_map"]

_ENTRY = b'": {"frame_info": '
_START = SOI + b"\xff"
# Markers of one JPEG. A progressive one has some dozens; a crafted one could have
# millions, and each of its bytes could begin another.
_MAX_MARKERS = 1000
# Places of a map that look like an entry and are none; damage makes a few of them.
_MAX_FAILURES = 1000


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
    decoder = json.JSONDecoder()
    separator = _ENTRY.decode("ascii")
    found: list[tuple[str, dict[str, Any]]] = []
    position = failures = 0
    while failures < _MAX_FAILURES and (at := text.find(separator, position)) >= 0:
        position = at + len(separator)
        failures += 1
        id_ = _string_before(text, at)
        if id_ is None:
            continue
        try:
            entry, end = decoder.raw_decode(text, text.index("{", at))
        except (ValueError, RecursionError):
            continue
        if validate_entry(entry) is None:
            found += _each_of(id_, entry)
            position = end
            failures -= 1
    return found


def _each_of(id_: str, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give an entry, and those it has swallowed where the brace at its end is lost."""
    entries = [(id_, entry)]
    while entries:
        id_, entry = entries.pop()
        yield id_, entry
        others = [key for key, value in entry.items() if _is_other(key, value)]
        entries += [(key, entry.pop(key)) for key in reversed(others)]


def _is_other(key: str, value: object) -> bool:
    """Tell whether what an entry has under a key is an entry too."""
    if key in ENTRY_KEYS or not isinstance(value, dict):
        return False
    return validate_entry(value) is None


def _string_before(text: str, end: int) -> str | None:
    """Give the string whose closing quote is at `end`."""
    start = end
    while (start := text.rfind('"', 0, start)) >= 0:
        before = start
        while before and text[before - 1] == "\\":
            before -= 1
        if (start - before) % 2 == 0:
            break
        start = before
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
