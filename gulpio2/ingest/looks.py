"""What a survey has seen of some items, and how much that says of all."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["LEAST_LOOKS", "Look", "Seen", "error_of"]

# Items of a part, from which on it is said how much they differ.
LEAST_LOOKS = 4


@dataclass(slots=True)
class Look:
    """What was seen of one item."""

    frames: int = 0
    num_bytes: float = 0.0
    variance: float = 0.0
    """Of `num_bytes`, since not all frames were encoded."""
    seconds: float = 0.0


@dataclass(slots=True)
class Seen:
    """What was seen of items that are alike enough to be judged by some of them."""

    num_items: int
    count: int = 0
    """Items that were looked at."""
    share: float = 0.0
    """Of the whole, that they are."""
    looks: dict[str, Look] = field(default_factory=dict)
    """By id."""
    odd: dict[str, list[str]] = field(default_factory=dict)
    source_bytes: list[int] = field(default_factory=list)

    def total(self, what: str) -> float:
        """Estimate a sum over all items."""
        seen: float = sum(getattr(look, what) for look in self.looks.values())
        return seen / (self.share or 1)

    def error(self) -> float:
        """Give the relative standard error of the bytes."""
        return _standard_error(self.looks.values(), self.count, self.num_items)

    def uncertainty(self) -> float:
        """Give the standard error of the bytes; unknown where few items were seen."""
        if self.count < min(LEAST_LOOKS, self.num_items):
            return math.inf
        return self.total("num_bytes") * self.error()

    def lengths(self) -> dict[str, int]:
        """Give the frames of each item."""
        return {name: look.frames for name, look in self.looks.items()}


def error_of(parts: Collection[Seen]) -> float:
    """Give the relative standard error of the bytes of all parts together."""
    total = sum(part.total("num_bytes") for part in parts)
    return math.hypot(*(part.total("num_bytes") * part.error() for part in parts)) / (
        total or 1
    )


def _standard_error(looks: Collection[Look], sampled: int, num_items: int) -> float:
    """Give the relative standard error of the total, for items and frames not seen."""
    values = [look.num_bytes for look in looks]
    values += [0.0] * (sampled - len(looks))
    if not sum(values):
        return 0.0
    # Of the mean of an item: items differ, and so do the frames in each.
    variance = sum(look.variance for look in looks) / (sampled * num_items)
    if 1 < sampled < num_items:
        left = 1 - sampled / num_items
        variance += statistics.variance(values) / sampled * left
    return math.sqrt(variance) / statistics.fmean(values)
