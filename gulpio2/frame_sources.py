"""What comes with the frames of an item: each in the form in which it is stored."""

from __future__ import annotations

import numbers
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from gulpio2.arguments import whole_number
from gulpio2.errors import (
    AdapterContractError,
    SourceReadError,
    StorageError,
    with_article,
)
from gulpio2.format.metadata import plain_metadata
from gulpio2.types import StoredFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gulpio2.types import FrameSource, JsonValue

__all__ = ["SourceFacts", "facts_of", "is_source", "stored_frames", "whole_ticks"]


def is_source(frames: Any) -> TypeGuard[FrameSource]:
    """Tell a frame source by its class: asking the object could open its file."""
    return callable(getattr(type(frames), "stored", None))


def _is_image(frames: Any) -> bool:
    """Tell one picture from the frames of a clip: rows are no frames."""
    shape: tuple[int, ...] = getattr(frames, "shape", ())
    return len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))


def stored_frames(
    frames: Iterable[Any], *, is_deferred: Callable[[], bool] | None = None
) -> Iterator[StoredFrame]:
    """Give frames one at a time in the form in which they are stored.

    Parameters
    ----------
    frames : iterable
        As `ChunkAppender.append` takes them.
    is_deferred : callable, optional
        Says, frame by frame, whether a `DeferredImage` is wanted, where the source can
        give it. Default: it is not.

    Raises
    ------
    SourceReadError
        A storage refused to give a source's bytes. As a `StorageError` it would pass
        for a fault of the storage that is written to, which ends a run.
    """
    try:
        if is_source(frames):
            later = getattr(type(frames), "deferred", None)
            if later is None or is_deferred is None:
                given = frames.stored()
            else:
                given = later(frames, is_deferred)
            try:
                for frame in given:
                    _require_stored(frame, frames)
                    yield frame
            finally:  # it may have a file open
                if (close := getattr(given, "close", None)) is not None:
                    close()
            return
        if isinstance(frames, bytes) or _is_image(frames):
            raise AdapterContractError(
                "its frames are a single image, not a list of images: put it in a list"
            )
        try:
            images = iter(frames)
        except TypeError as cause:
            raise AdapterContractError(
                f"its frames are {frames!r}, {with_article(type(frames).__name__)}; "
                "they must be an iterable of images or a source as VideoFrames(path), "
                "and of an item that an adapter gives are found under 'frames'"
            ) from cause
        for frame in images:
            yield frame if isinstance(frame, StoredFrame) else StoredFrame(frame)
    except StorageError as cause:
        raise SourceReadError(f"the frames cannot be read: {cause}") from cause


def _require_stored(frame: Any, source: Any) -> None:
    if isinstance(frame, StoredFrame) or (
        hasattr(frame, "image") and hasattr(frame, "pts")
    ):
        return
    raise AdapterContractError(
        f"{type(source).__name__}.stored() gives "
        f"{with_article(type(frame).__name__)}; it must give a StoredFrame(image, pts) "
        "for each frame"
    )


class SourceFacts(NamedTuple):
    """What a source says of all its frames."""

    time_base: Fraction | None = None
    """Seconds per tick; None where frames have no times."""
    source: Mapping[str, JsonValue] | None = None
    """Facts of the source file."""


def facts_of(frames: Any, id_: str, *, is_new: bool = True) -> SourceFacts:
    """Ask a source for what it says of all its frames; nothing else says anything.

    What the source of an item is, is that of its first frames: asked of a new one.

    Raises
    ------
    AdapterContractError
        It is nothing that could be stored.
    SourceReadError
        A storage refused to give it.
    """
    if not is_source(frames):
        return SourceFacts()
    try:
        base: Any = frames.time_base
        source: Any = dict(frames.source_info() or {}) if is_new else None
    except StorageError as cause:
        raise SourceReadError(f"the source cannot be read: {cause}") from cause
    is_one = isinstance(base, numbers.Rational) and int(base.numerator) > 0
    if base is not None and not is_one:
        raise AdapterContractError(
            f"item {id_!r}: the time_base of its frames is {base!r}; it must be "
            "seconds per tick as a Fraction above 0, or None"
        )
    return SourceFacts(
        None if base is None else Fraction(int(base.numerator), int(base.denominator)),
        source and plain_metadata(source, f"the source_info() of item {id_!r}"),
    )


def whole_ticks(times: Sequence[Any], id_: str) -> list[int | None]:
    """Give the times of frames as they are stored: whole ticks, or None.

    Raises
    ------
    AdapterContractError
        One is no whole number.
    """
    ticks: list[int | None] = []
    for number, time in enumerate(times):
        try:
            ticks.append(None if time is None else whole_number("pts", time))
        except TypeError:
            raise AdapterContractError(
                f"item {id_!r}, frame {number}: its pts is {time!r}; it must be a "
                "whole number of ticks of the time_base, or None"
            ) from None
    return ticks
