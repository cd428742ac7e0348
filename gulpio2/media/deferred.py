"""A frame source that is looked for when its frames are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.errors import AdapterContractError, with_article
from gulpio2.media.indexing import FramesByIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from gulpio2.types import FrameSource, JsonValue, StoredFrame

__all__ = ["DeferredFrames"]


class DeferredFrames(FramesByIndex):
    """Frames of a source that is found when they are first needed.

    Parameters
    ----------
    find : callable
        Takes nothing and gives the frame source, or raises. Not called again once it
        has given one.
    """

    def __init__(self, find: Callable[[], FrameSource]) -> None:
        self._find = find
        self._found: FrameSource | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield each frame as an array; see `gulpio2.types.FrameSource`."""
        return iter(self.found())

    def __len__(self) -> int:
        """Count the frames; finds the source, and may have to read it."""
        return len(self.found())

    def stored(self) -> Iterator[StoredFrame]:
        """Yield each frame in the form in which it is best stored."""
        return self.found().stored()

    def deferred(
        self, is_wanted: Callable[[], bool] | None = None
    ) -> Iterator[StoredFrame]:
        """Yield what `stored` does, but for what another thread can do as well."""
        source = self.found()
        if not hasattr(source, "deferred"):
            return source.stored()
        frames: Iterator[StoredFrame] = source.deferred(is_wanted)
        return frames

    @property
    def time_base(self) -> Fraction | None:
        """Seconds per tick; None where frames have no times."""
        return self.found().time_base

    def source_info(self) -> dict[str, JsonValue]:
        """Facts of the source file for the map."""
        return self.found().source_info()

    def found(self) -> FrameSource:
        """Give the source; what finding it raises comes through."""
        if self._found is None:
            found = self._find()
            if not callable(getattr(type(found), "stored", None)):
                raise AdapterContractError(
                    f"what was found for a DeferredFrames is "
                    f"{with_article(type(found).__name__)}; it must be a source, such "
                    "as VideoFrames(path) or ImageFrames(paths)"
                )
            self._found = found
        return self._found
