"""The checksum that an index file has of itself: of every byte, for the deep check."""

from __future__ import annotations

import re
from typing import Any

from gulpio2.format.checksum import crc32_of
from gulpio2.storage.index.arrow_file import read_layout

__all__ = ["NO_SUM", "ArrowSink", "SummingFile", "is_whole"]

NO_SUM = "0" * 8
# Bytes whose checksum is computed at once.
_BLOCK = 16 << 20
# The end of what the schema says of the index. Keys of metadata, which stand in the
# schema as well, may look like a part of it.
_END = re.compile(r'"check": [0-9]+, "whole": "[0-9a-f]{8}"\}\Z')


class ArrowSink:
    """What Arrow asks of a file that it writes, beside ``tell`` and ``write``."""

    closed = False

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing."""

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True


class SummingFile(ArrowSink):
    """A file of which only the checksum is kept."""

    def __init__(self) -> None:
        self.crc32 = 0
        self._position = 0

    def tell(self) -> int:
        """Give the bytes written."""
        return self._position

    def write(self, data: Any) -> int:
        """Take bytes."""
        view = memoryview(data).cast("B")
        self.crc32 = crc32_of(view, self.crc32)
        self._position += len(view)
        return len(view)


def is_whole(data: memoryview) -> bool:
    """Compare every byte of an index file with the checksum that it has of itself."""
    layout = read_layout(data)
    end = _END.search(layout.metadata.get("gulp2", ""))
    if end is None:
        return False
    # The schema comes before the columns, and stands once more behind them.
    same = re.compile(re.escape(end[0]).encode("ascii"))
    start = min((start for start, _ in layout.buffers), default=0)
    stop = max((start + length for start, length in layout.buffers), default=0)
    head, tail = same.search(data, 0, start), list(same.finditer(data, stop))
    if head is None or not tail:
        return False
    first, last = (match.end() - len('00000000"}') for match in (head, tail[-1]))
    crc32, at = 0, 0
    for place in (first, last):
        crc32 = crc32_of(NO_SUM.encode("ascii"), _crc32_of_part(data, at, place, crc32))
        at = place + 8
    crc32 = _crc32_of_part(data, at, len(data), crc32)
    stored = data[first : first + 8], data[last : last + 8]
    return all(part == f"{crc32:08x}".encode("ascii") for part in stored)


def _crc32_of_part(data: memoryview, at: int, stop: int, crc32: int) -> int:
    """Go on with a CRC-32; between two blocks Ctrl-C is heard."""
    for start in range(at, stop, _BLOCK):
        crc32 = crc32_of(data[start : min(start + _BLOCK, stop)], crc32)
    return crc32
