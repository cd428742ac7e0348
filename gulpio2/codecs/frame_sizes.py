"""The sizes of the frames of an item, which one array or one clip cannot have apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.codecs.first_frame import look_at_first
from gulpio2.errors import CorruptFrameError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ItemSizes", "Size", "SizeReader", "describe_sizes"]

Size = tuple[int, int]
"""Height and width in pixels."""

# Sizes of an item that are named.
_NAMED = 4


class SizeReader:
    """Tells the sizes of JPEGs, one after the other.

    Of one that begins as the last one did nothing is read again.
    """

    def __init__(self) -> None:
        self.prefix = b""
        """How those begin that have the size of the last one."""
        self._size: Size = (0, 0)

    def size_of(self, jpeg: bytes | memoryview) -> Size | None:
        """Give the size of a frame; None where its header cannot be read."""
        prefix = self.prefix
        if prefix and jpeg[: len(prefix)] == prefix:
            return self._size
        try:
            first = look_at_first(bytes(jpeg))
        except CorruptFrameError:
            return None
        self.prefix = first.prefix
        self._size = (first.header.height, first.header.width)
        return self._size


class ItemSizes:
    """The sizes of the frames of an item, one after the other.

    Parameters
    ----------
    reader : SizeReader
        Kept from item to item.

    Attributes
    ----------
    first : dict of (int, int) to int
        Each size, and the first frame that has it; empty for an item of one frame, of
        which nothing is read.
    """

    def __init__(self, reader: SizeReader) -> None:
        self.first: dict[Size, int] = {}
        self._reader = reader
        self._number = 0
        self._waits = b""
        self._prefix = b"\0"  # as no JPEG begins

    def add(self, jpeg: bytes) -> None:
        """Look at the next frame."""
        number = self._number
        self._number = number + 1
        if jpeg.startswith(self._prefix):  # for each frame of an ingest, mostly
            return
        if number == 0:
            self._waits = jpeg
            return
        if number == 1:
            self._note(self._waits, 0)
            self._waits = b""
        self._note(jpeg, number)

    def _note(self, jpeg: bytes, number: int) -> None:
        size = self._reader.size_of(jpeg)
        if size is not None:
            self.first.setdefault(size, number)
            self._prefix = self._reader.prefix


def describe_sizes(sizes: Mapping[Size, int]) -> str:
    """Name the sizes of an item's frames.

    Parameters
    ----------
    sizes : mapping of (int, int) to int
        Each size, and the first frame that has it.

    Examples
    --------
    >>> describe_sizes({(120, 160): 0, (120, 90): 5})
    '2 sizes (width x height): frame 0 is 160x120, frame 5 90x120'
    """
    first = sorted((frame, width, height) for (height, width), frame in sizes.items())
    named = [f"frame {frame} is {w}x{h}" for frame, w, h in first[:1]]
    named += [f"frame {frame} {w}x{h}" for frame, w, h in first[1:_NAMED]]
    if more := len(first[_NAMED:]):
        named.append(f"and {more:,} more")
    return f"{len(first):,} sizes (width x height): {', '.join(named)}"
