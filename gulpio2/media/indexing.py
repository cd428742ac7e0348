"""Frames by index, of sources that give them one after the other."""

from __future__ import annotations

import operator
import reprlib
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FramesByIndex"]


class FramesByIndex:
    """Indexing as of the lists of frames that GulpIO2 0.0.4 gave.

    Every access begins at the first frame again: for a look at one, not for a loop.
    """

    @overload
    def __getitem__(self: Iterable[Any], index: int) -> Any: ...

    @overload
    def __getitem__(self: Iterable[Any], index: slice) -> list[Any]: ...

    def __getitem__(self: Iterable[Any], index: int | slice) -> Any:
        """Give a frame, or a list of them, as from a list of all.

        Raises
        ------
        IndexError
            There is no such frame.
        TypeError
            It is no index.
        """
        if isinstance(index, slice):
            return list(self)[index]
        name = type(self).__name__
        try:
            place = operator.index(index)
        except TypeError:
            raise TypeError(
                f"{name} has no frame {reprlib.repr(index)}: give a whole number, from "
                "the end if negative, or a slice"
            ) from None
        if place < 0:
            frames = list(self)
            if place >= -len(frames):
                return frames[place]
        elif place <= sys.maxsize:
            for frame in islice(self, place, None):
                return frame
        raise IndexError(f"{name} has no frame {place}: it has fewer")
