"""What the scans of a JPEG need: components and tables that stand before them.

The codec cannot decode a scan without. Only what makes it give up is looked for here.
"""

from __future__ import annotations

__all__ = ["Tables"]

_DHT, _DQT = 0xC4, 0xDB
_PROGRESSIVE = 0xC2
# Baseline, extended sequential and progressive: of others the tables differ.
_COMMON = (0xC0, 0xC1, 0xC2)
# Class and number of those that every decoder has for a sequential image, as the frames
# of motion JPEG leave them out: two for means and two for the rest.
_DEFAULTS = frozenset({0x00, 0x01, 0x10, 0x11})
_PRECISE = 0x10


class Tables:
    """The tables and components that there are, as a JPEG is walked through.

    Parameters
    ----------
    data : bytes
        The JPEG.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._kind = 0
        self._components: dict[int, int] = {}
        """Number of a component to that of its table of quantisation."""
        self._quantisation: set[int] = set()
        self._huffman: set[int] = set()
        self._is_complete = False
        """Whether a scan of a sequential image had all of its components."""

    def frame(self, marker: int, position: int, length: int) -> None:
        """Note a frame header, at its length."""
        part = self._data[position + 8 : position + length]
        self._kind = marker
        self._components = dict(zip(part[::3], part[2::3], strict=False))

    def tables(self, marker: int, position: int, length: int) -> None:
        """Note a segment of tables, at its length."""
        at, end = position + 2, position + length
        if marker == _DQT:
            while at < end:
                self._quantisation.add(self._data[at] & 0xF)
                at += 129 if self._data[at] >= _PRECISE else 65
        elif marker == _DHT:
            while at < end:
                self._huffman.add(self._data[at])
                at += 17 + sum(self._data[at + 1 : at + 17])

    def scan(self, position: int, length: int) -> None:
        """Check the header of a scan, at its length.

        Raises
        ------
        ValueError
            It needs something that does not stand before it.
        """
        part = self._data[position + 2 : position + length]
        if self._kind not in _COMMON or len(part) < 4 or len(part) < 4 + 2 * part[0]:
            return
        place = f"the scan at byte {position}"
        if self._is_complete:
            raise ValueError(f"{place} comes behind one that has the whole image")
        ids, tables = part[1 : 1 + 2 * part[0] : 2], part[2 : 2 + 2 * part[0] : 2]
        for id_ in ids:
            if id_ not in self._components:
                raise ValueError(
                    f"{place} is of component {id_}, which its header has not"
                )
            number = self._components[id_]
            if number not in self._quantisation:
                raise ValueError(f"{place} has no table of quantisation {number}")
        first, refines = part[1 + 2 * part[0]], part[3 + 2 * part[0]] >> 4
        needed: set[int] = set()
        if self._kind != _PROGRESSIVE:
            needed = {table >> 4 for table in tables}
            needed |= {0x10 | table & 0xF for table in tables}
            needed -= _DEFAULTS
            self._is_complete = part[0] == len(self._components)
        elif first:
            needed = {0x10 | table & 0xF for table in tables}
        elif not refines:
            needed = {table >> 4 for table in tables}
        if missing := needed - self._huffman:
            raise ValueError(f"{place} has no Huffman table {min(missing) & 0xF}")
