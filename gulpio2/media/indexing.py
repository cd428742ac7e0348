"""Frames by index, of sources that give them one after the other."""

from __future__ import annotations

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
        """
        if isinstance(index, slice) or index < 0:
            return list(self)[index]
        for frame in islice(self, index, None):
            return frame
        raise IndexError(f"frame {index} of fewer")
