"""The markers of a JPEG that tell its parts apart: ITU-T T.81, table B.1."""

from __future__ import annotations

import re

import numpy as np

__all__ = [
    "COMMON",
    "EOI",
    "PROGRESSIVE",
    "SEQUENTIAL",
    "SOI",
    "START_OF_FRAME",
    "START_OF_SCAN",
    "end_of_far_marker",
    "end_of_next_marker",
]

SOI = b"\xff\xd8"
"""Start of image: the first two bytes."""
EOI = b"\xff\xd9"
"""End of image."""
# C4, C8 and CC in between mean tables and the reserved JPG.
START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Second bytes of frame headers, SOF0 to SOF15: they have the size and components."""
SEQUENTIAL = frozenset({0xC0, 0xC1})
"""Of those, baseline and extended sequential with Huffman coding: rows in order."""
PROGRESSIVE = 0xC2
"""Progressive with Huffman coding."""
COMMON = SEQUENTIAL | {PROGRESSIVE}
"""What every decoder has. The others are lossless, hierarchical or arithmetic."""
START_OF_SCAN = 0xDA
"""Second byte: entropy-coded data follow."""
# Not `\xff+`: where a long run of FF is followed by none of these, each of its bytes
# would be the beginning of a search to its end.
_NEXT = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
# Bytes that are searched so. It stops at every FF 00, of which entropy-coded data has
# one in a hundred bytes: numpy takes a tenth of its time there, but for each window as
# long as this does for some thousands. The scans of a progressive image are small.
_NEAR, _WINDOW = 1 << 12, 1 << 16
_RESTART, _OF_RESTART = 0xD0, 0xF8


def end_of_next_marker(data: bytes, position: int) -> int | None:
    """Find a marker that ends entropy-coded data.

    That is neither a stuffed FF 00, nor a restart, nor an FF that fills the room before
    another one.

    Parameters
    ----------
    data : bytes
        Of a JPEG, or anything else.
    position : int
        Where its first byte may be.

    Returns
    -------
    int or None
        The offset behind its second byte; None where there is none.

    Examples
    --------
    >>> end_of_next_marker(bytes.fromhex("1f ff00 ffd3 2c ffff ffd9"), 0)
    10
    """
    if near := _NEXT.search(data, position, position + _NEAR):
        return near.end()
    # Its first byte may have been the last one of those.
    return end_of_far_marker(data, position + _NEAR - 1)


def end_of_far_marker(data: bytes, position: int) -> int | None:
    """Find what `end_of_next_marker` does; quicker where it is thousands of bytes off.

    Examples
    --------
    >>> end_of_far_marker(bytes.fromhex("1f ff00 ffd3 2c ffff ffd9"), 0)
    10
    """
    values = np.frombuffer(data, np.uint8)
    for start in range(position, len(data) - 1, _WINDOW):
        seconds = values[start + 1 : start + 1 + _WINDOW]
        found = values[start : start + len(seconds)] == 0xFF
        found &= seconds + 1 > 1  # of FF this is 0
        at = int(found.argmax())
        if found[at] and seconds[at] & _OF_RESTART == _RESTART:
            found &= seconds & _OF_RESTART != _RESTART
            at = int(found.argmax())
        if found[at]:
            return start + at + 2
    return None
