"""What the scans of a JPEG need: components and tables that stand before them.

The codec cannot decode a scan without. Only what makes it give up is looked for here.
"""

from __future__ import annotations

from gulpio2.format.jpeg_markers import COMMON, PROGRESSIVE

__all__ = ["Tables", "goes_on"]

_DHT, _DQT = 0xC4, 0xDB
# Class and number of those that every decoder has for a sequential image, as the frames
# of motion JPEG leave them out: two for means and two for the rest.
_DEFAULTS = frozenset({0x00, 0x01, 0x10, 0x11})
_PRECISE = 0x10
# The bits of the code that ends a block, in the tables that are left out so: T.81, K.3.
_DEFAULT_ENDS = {0x10: "1010", 0x11: "00"}
# A code has up to 16 bits, behind which up to 7 fill a byte.
_MOST_BYTES = 3
# Of a picture that was taken, values of the highest frequency vanish in such steps.
_COARSE = 8


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
        self._quantisation: dict[int, int] = {}
        """Number of a table to its step of the highest frequency."""
        self._huffman: dict[int, int] = {}
        """Class and number of a table to where it begins."""
        self._last: tuple[int, int] | None = None
        """Of the last component of a sequential scan: the tables that its blocks need
        for what is no mean, and of quantisation."""
        self._is_complete = False
        """Whether a scan of a sequential image had all of its components."""

    def frame(self, marker: int, position: int, length: int) -> None:
        """Note a frame header, at its length.

        Raises
        ------
        ValueError
            It is not the first one.
        """
        if self._kind in COMMON:
            raise ValueError(f"the frame header at byte {position} is a second one")
        part = self._data[position + 8 : position + length]
        self._kind = marker
        self._components = dict(zip(part[::3], part[2::3], strict=False))

    def tables(self, marker: int, position: int, length: int) -> None:
        """Note a segment of tables, at its length."""
        at, end = position + 2, position + length
        if marker == _DQT:
            while at < end:
                number, size = self._data[at], 1 + (self._data[at] >= _PRECISE)
                at += 1 + 64 * size
                step = int.from_bytes(self._data[at - size : at], "big")
                self._quantisation[number & 0xF] = step
        elif marker == _DHT:
            while at < end:
                self._huffman[self._data[at]] = at
                at += 17 + sum(self._data[at + 1 : at + 17])

    def scan(self, position: int, length: int) -> None:
        """Check the header of a scan, at its length.

        Raises
        ------
        ValueError
            It needs something that does not stand before it.
        """
        self._last = None
        part = self._data[position + 2 : position + length]
        # Of other kinds the tables differ.
        if self._kind not in COMMON or len(part) < 4 or len(part) < 4 + 2 * part[0]:
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
        if self._kind != PROGRESSIVE:
            needed = {table >> 4 for table in tables}
            needed |= {0x10 | table & 0xF for table in tables}
            needed -= _DEFAULTS
            if ids:
                last = self._components[ids[-1]]
                self._last = 0x10 | tables[-1] & 0xF, last
            self._is_complete = part[0] == len(self._components)
        elif first:
            needed = {0x10 | table & 0xF for table in tables}
        elif not refines:
            needed = {table >> 4 for table in tables}
        if missing := needed - self._huffman.keys():
            raise ValueError(f"{place} has no Huffman table {min(missing) & 0xF}")

    def ending(self) -> str:
        """Give the bits that end a block of the latest scan's last component.

        Nothing where they are not known, or need not be there.
        """
        if self._last is None:
            return ""
        table, quantisation = self._last
        return (
            self._code_of_end(table)
            if self._quantisation[quantisation] >= _COARSE
            else ""
        )

    def _code_of_end(self, table: int) -> str:
        """Give the bits of the code that ends a block; none where there is no table.

        Codes are numbered by length, and those of a length one after the other: T.81,
        annex C.
        """
        if table not in self._huffman:
            return _DEFAULT_ENDS.get(table, "")
        at = self._huffman[table] + 1
        code, symbol = 0, at + 16
        for length, count in enumerate(self._data[at : at + 16], 1):
            end = self._data.find(0, symbol, symbol + count)
            if end >= 0:
                return f"{code + end - symbol:0{length}b}"
            code, symbol = 2 * (code + count), symbol + count
        return ""


def goes_on(before: bytes, ending: str) -> bool:
    """Tell whether the data of a scan cannot end before a byte that is a zero.

    Parameters
    ----------
    before : bytes
        What stands before that byte.
    ending : str
        See `Tables.ending`.

    Returns
    -------
    bool
        False where it is not known.

    Notes
    -----
    In a sequential scan the last block ends with a code for that, unless its value of
    the highest frequency is not zero, and bits that are all ones or, of some programs,
    all zeros fill the last byte: T.81, F.1.2.2 and F.1.2.3.
    """
    if not ending:
        return False
    # More than is needed, as each FF of the data has a 0 behind it.
    values = before[-2 * _MOST_BYTES :].replace(b"\xff\0", b"\xff")[-_MOST_BYTES:]
    bits = "".join(f"{value:08b}" for value in values)
    ends = (ending + fill * count for fill in "01" for count in range(8))
    return not bits.endswith(tuple(ends))
