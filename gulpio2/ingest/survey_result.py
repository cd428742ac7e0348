"""What a look at a sample of items says of the whole run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gulpio2.types import JsonValue

__all__ = ["ID_TAKEN", "NOT_GIVEN", "Oddity", "Survey", "Variant"]

ID_TAKEN = "id taken"  # the `Oddity.kind` of items that a run may be told to skip
NOT_GIVEN = "not given"  # that of items which an adapter counts and does not give


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that a user may want to know of some items before the run."""

    kind: str
    """"unreadable", "no video stream", "no frames", "not given", "id taken", "variable
    frame rate", "rotated", "mirrored", "odd length", "id that is no text in UTF-8",
    "stored as it is, and not readable", "frames of several sizes, of which no clip or
    batch can be made" or "stored as it lies in the file, where EXIF turns it"."""
    sampled: int
    """How many items of the sample."""
    expected: int
    """How many of the run, if the sample is like it."""
    fails: bool
    """Whether such items are not stored."""
    examples: tuple[str, ...]
    """All of the sample, in the adapter's order, with what is said of them."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What the run would give with some settings of quality and size."""

    quality: int
    short_edge: int | None
    """Of all frames, pixels; None for the size that was asked for."""
    num_bytes: int
    """Of the whole run, estimated."""
    read_frames_per_second: float
    """Decoded by one thread of this machine, measured on the sample."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a sample says of a run."""

    items: int
    sampled: int
    frames: int
    """Frames of the whole run, estimated."""
    num_bytes: int
    """Bytes of data files and maps of the whole run, estimated."""
    error: float
    """Standard error of `num_bytes`, as a share of it, where no item is of a kind that
    the sample has not met."""
    seconds: float
    """Time that one core of this machine needs for the whole run, estimated."""
    variants: tuple[Variant, ...]
    """What was asked for, two other qualities, and two sizes where they are smaller
    and change anything."""
    oddities: tuple[Oddity, ...] = ()
    unmet: float = 0.0
    """Share of the items that may be of a kind which the sample has missed (one sample
    in twenty misses so large a share); 0 where the sizes of files are known, or all
    items were looked at. Such items may be far larger; `error` does not count them."""
    unfinished: bool = False
    """Whether it was interrupted. Then it tells of the items that were looked at until
    then, which are the first ones in the order of the adapter for the most part."""

    def to_json(self) -> dict[str, JsonValue]:
        """Give it as JSON values."""
        return asdict(self)
