"""The sizes of the frames of an item, which one array or one clip cannot have apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.codecs.first_frame import look_at_first
from gulpio2.errors import CorruptFrameError
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "ItemSizes",
    "Size",
    "SizeReader",
    "describe_sizes",
    "differ_in_size",
    "why_not_alike",
]

Size = tuple[int, ...]
"""Height and width in pixels, and 3 where a frame is not grey: that of its array."""

# Sizes of an item that are named.
_NAMED = 4


class SizeReader:
    """Tells the sizes of JPEGs, one after the other.

    Of one that begins as the last one did nothing is read again.
    """

    def __init__(self) -> None:
        self.prefix = b""
        """How those begin that have the size of the last one."""
        self._size: Size = ()

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
        self._size = first.header.shape
        return self._size


class ItemSizes:
    """The sizes of the frames of an item, one after the other.

    Parameters
    ----------
    reader : SizeReader
        Kept from item to item.

    Attributes
    ----------
    first : dict of tuple of int to int
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
    """Name the sizes of an item's frames, and whether some are grey and others not.

    Parameters
    ----------
    sizes : mapping of tuple of int to int
        Each size, and the first frame that has it.

    Examples
    --------
    >>> describe_sizes({(120, 160, 3): 0, (120, 90, 3): 5})
    '2 sizes (width x height): frame 0 is 160x120, frame 5 90x120'
    >>> describe_sizes({(120, 160, 3): 0, (120, 160): 5})
    '1 size (width x height), grey and not: frame 0 is 160x120, frame 5 160x120 grey'
    """
    both = len({len(size) for size in sizes}) > 1
    first = sorted((frame, size) for size, frame in sizes.items())
    named = [
        f"{size[1]}x{size[0]}{' grey' if both and len(size) == 2 else ''}"
        for _, size in first[:_NAMED]
    ]
    frames = [f"frame {frame}" for frame, _ in first]
    frames[0] += " is"
    told = [" ".join(pair) for pair in zip(frames, named, strict=False)]
    if more := len(first[_NAMED:]):
        told.append(f"and {more:,} more")
    number = counted(len({size[:2] for size in sizes}), "size", spec=",")
    kinds = ", grey and not" if both else ""
    return f"{number} (width x height){kinds}: {', '.join(told)}"


def differ_in_size(sizes: Iterable[Size]) -> bool:
    """Tell whether it is the size in which they differ, and not in being grey alone."""
    return len({size[:2] for size in sizes}) > 1


def why_not_alike(sizes: Mapping[Size, int]) -> str:
    """Say what cannot be done with an item of frames of these sizes."""
    if differ_in_size(sizes):
        return "a clip with two of them cannot be an array, nor part of a batch"
    return (
        "a clip with grey frames and others is refused, unless colorspace='rgb' or "
        "'gray' makes them alike"
    )
