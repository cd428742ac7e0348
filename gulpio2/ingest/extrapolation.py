"""What a survey has seen of some items, and how much that says of all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from gulpio2.ingest.sample_plan import SamplePlan

__all__ = ["Look", "Seen", "Total", "Varied", "take_sample"]

# The sample grows until the standard error of the bytes is this share of them.
_GOOD_ERROR = 0.03
# By how much it grows, as a part of its first size. The error is an estimate too: if it
# were asked for after every look, it would soon be small by chance.
_STEP = 0.5
# The sizes of files are left out of account where the error without them is less than
# this part of the error with them, as for the frames of images. By chance it is often
# somewhat smaller.
_FAR_BETTER = 0.7
# Logarithm of the ratio up to which sizes count as alike. Beyond it, items may differ
# for a reason and not by chance.
_ALIKE = math.log(2)
# Chance that a sample misses all items of a kind, for the share that `unmet` gives.
_MISSED = 0.05


@dataclass(slots=True)
class Varied:
    """Some frames of an item that were encoded with other settings too."""

    frames: int = 0
    num_bytes: int = 0
    as_asked: int = 0
    """Their bytes with the settings of the run."""

    def add(self, num_bytes: int, as_asked: int) -> None:
        """Add a frame."""
        self.frames += 1
        self.num_bytes += num_bytes
        self.as_asked += as_asked


@dataclass(slots=True)
class Look:
    """What was seen of one item; zeros for one that would not be stored."""

    id_: str | None = None
    frames: int = 0
    frame_bytes: float = 0.0
    """Of the frames in a data file."""
    num_bytes: float = 0.0
    """Of these and of the map."""
    variance: float = 0.0
    """Of `num_bytes`, an estimate where not all frames were encoded."""
    seconds: float = 0.0
    others: dict[int, Varied] = field(default_factory=dict)
    """Some frames encoded with other settings, by the number of these."""
    resized: set[int] = field(default_factory=set)
    """Those of other settings at which a frame got another size."""
    kept: dict[int, list[bytes]] = field(default_factory=dict)
    """Some JPEGs as they were encoded, by the number of settings: 0 for the run's."""
    odd: dict[str, list[str]] = field(default_factory=dict)
    """What is unusual about it, by kind."""

    def keep(self, number: int, jpeg: bytes) -> None:
        """Keep a JPEG of these settings."""
        self.kept.setdefault(number, []).append(jpeg)

    def note(self, kind: str, text: str) -> None:
        """Note something unusual."""
        self.odd.setdefault(kind, []).append(text)


class Total(NamedTuple):
    """A sum over all items of a run, estimated."""

    value: float
    error: float
    """Standard error, as a share of it."""
    curable: float
    """The part of the error that looking at more items makes smaller."""
    shares: npt.NDArray[np.float64]
    """What each item that was looked at stands for, in the order of `Seen.looks`."""


class Seen:
    """What was seen of a sample.

    Every other item of the plan is taken to be like the item of the sample whose file
    is of the same kind and nearest in size, and to be as much larger as its file is.
    """

    def __init__(self, plan: SamplePlan) -> None:
        self._plan = plan
        self._by_rank: dict[int, Look] = {}

    def add(self, rank: int, look: Look) -> None:
        """Add the item that has this rank in the plan."""
        self._by_rank[rank] = look

    @property
    def looks(self) -> list[Look]:
        """All looks, by kind and size of the file."""
        return [self._by_rank[rank] for rank in sorted(self._by_rank)]

    @property
    def places(self) -> list[int]:
        """Where the item of each look is among the items of the run."""
        return [int(self._plan.places[rank]) for rank in sorted(self._by_rank)]

    def stand_for(self) -> npt.NDArray[np.int64]:
        """Count the items that each look stands for, its own included.

        Where not all files of the run were asked for their size, only those that were
        are counted.
        """
        return np.diff(self._borders())[: len(self._by_rank)]

    def share(self) -> float:
        """Give the part of the run that `stand_for` counts."""
        return len(self._plan.places) / max(self._plan.num_items, 1)

    def unmet(self) -> float:
        """Give the share of items that may be of a kind which the sample has not met.

        One sample in twenty misses a kind with so large a share. Only items without a
        known file size count: the sizes tell the others apart. If none of them can be
        stored, their files are not there, and what is missing is not large.
        """
        unknown = self._plan.kinds == 0
        met = [look for rank, look in self._by_rank.items() if unknown[rank]]
        are_all_asked = len(self._plan.places) == self._plan.num_items
        are_all_met = are_all_asked and len(met) == unknown.sum()
        if are_all_met or not any(look.frames for look in met):
            return 0.0
        return float(unknown.mean() * (1 - _MISSED ** (1 / len(met))))

    def total(self, what: str) -> Total:
        """Estimate the sum of an attribute of `Look` over all items."""
        looks = self.looks
        if not looks:
            return Total(0.0, 0.0, 0.0, np.zeros(0))
        values = np.array([getattr(look, what) for look in looks], np.float64)
        noise = np.zeros(len(looks))
        if what in ("num_bytes", "frame_bytes"):
            noise = np.array([look.variance for look in looks])
        plan = self._plan
        by_size = self._total(values, noise, plan.sizes, plan.coordinates())
        # The same as if all files had one size, for what does not depend on it.
        everywhere = np.zeros(len(plan.sizes))
        by_count = self._total(values, noise, everywhere + 1, everywhere)
        is_better = by_count.error < _FAR_BETTER * by_size.error
        return by_count if is_better else by_size

    def varied_total(self, number: int) -> float | None:
        """Estimate the bytes of all items with other settings.

        Parameters
        ----------
        number : int
            Of the settings, in `Look.others`.

        Returns
        -------
        float or None
            None where no frame was encoded with them.

        Notes
        -----
        Either each frame is as much larger as those of the sample are, or all are like
        those, as of images of all sizes that are brought to one: whichever fits better.
        """
        frames, bytes_ = self.total("frames"), self.total("frame_bytes")
        known = [
            (look.others[number], share)
            for look, share in zip(self.looks, frames.shares, strict=True)
            if number in look.others
        ]
        if not known:
            return None
        # For how many frames an item stands, and what is known of one of them.
        weights = np.array([share for _, share in known])
        now = np.array([each.as_asked / each.frames for each, _ in known])
        then = np.array([each.num_bytes / each.frames for each, _ in known])
        ratio, mean = (weights @ then) / (weights @ now), weights @ then / weights.sum()
        is_ratio = weights @ (then - ratio * now) ** 2 <= weights @ (then - mean) ** 2
        changed = ratio * bytes_.value if is_ratio else mean * frames.value
        return float(self.total("num_bytes").value - bytes_.value + changed)

    def _borders(self) -> npt.NDArray[np.int64]:
        """Give the ranks at which the items that each stands for begin, and the end."""
        ranks = np.array(sorted(self._by_rank), np.int64)
        before, after = ranks[:-1], ranks[1:]
        coordinates = self._plan.coordinates()
        middle = (coordinates[before] + coordinates[after]) / 2
        # Where two are the same, those between them are as well.
        borders = np.where(
            coordinates[before] == coordinates[after],
            (before + after + 1) // 2,
            np.searchsorted(coordinates, middle),
        )
        borders = np.clip(borders, before + 1, after)
        return np.array([0, *borders, len(coordinates)], np.int64)

    def _total(
        self,
        values: npt.NDArray[np.float64],
        noise: npt.NDArray[np.float64],
        sizes: npt.NDArray[np.float64],
        coordinates: npt.NDArray[np.float64],
    ) -> Total:
        """Estimate a sum, from the values of the sample and the sizes of all.

        Notes
        -----
        The rate of an item is its value by its size. Rates are taken to vary by chance
        around what changes slowly with the size, equally for all sizes: then the error
        follows from the sizes alone, of which all are known, and from how much rates
        differ from one item of the sample to the next (von Neumann's estimate, which
        no slow change disturbs). Each of them weighs as much as it stands for.
        """
        plan, borders = self._plan, self._borders()
        ranks = np.array(sorted(self._by_rank), np.int64)
        own = sizes[ranks]
        stood_for = _sums(sizes, borders)
        squares = _sums(sizes**2, borders)
        rates = values / own
        scale = plan.num_items / len(sizes)
        total = float(rates @ stood_for)
        if not total:  # what there is was not met
            return Total(0.0, 0.0, math.inf, np.zeros(len(ranks)))
        # What is known of the looked at, and what each of the others has by chance.
        left = (stood_for - own) ** 2 + squares - own**2
        unknown = float(left.clip(0).sum())
        variance = unknown * _variance(rates, stood_for, coordinates[ranks])
        variance += float(noise @ (stood_for / own))
        relative, other = variance / total**2, 0.0
        if plan.num_items > len(sizes):
            # They are items by chance, and those of the run have another mean.
            spread = len(sizes) * float(squares @ rates**2) / total**2 - 1
            other = max(spread, 0) * (1 / len(sizes) - 1 / plan.num_items)
        return Total(
            scale * total,
            math.sqrt(relative + other),
            math.sqrt(relative),
            scale * rates * stood_for,
        )


def _sums(
    values: npt.NDArray[np.float64], borders: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Sum what is between each two borders."""
    return np.asarray(np.add.reduceat(values, borders[:-1]), np.float64)


def _variance(
    rates: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    coordinates: npt.NDArray[np.float64],
) -> float:
    """Estimate the variance of rates by their differences, where sizes are alike."""
    pairs = weights[1:] + weights[:-1]
    alike = np.diff(coordinates) <= _ALIKE
    if alike.any():
        pairs = pairs * alike
    return float(pairs @ np.diff(rates) ** 2) / (2 * float(pairs.sum()) or 1)


def take_sample(
    plan: SamplePlan,
    look: Callable[[Sequence[int]], Iterable[Look]],
    *,
    expect: Callable[[int], object] | None = None,
    seen: Seen | None = None,
) -> Seen:
    """Look at as many items of a plan as it takes to estimate the bytes of all.

    Parameters
    ----------
    plan : SamplePlan
        Says which items, in which order.
    look : callable
        Takes the places of items among those of the run, and gives a look at each.
    expect : callable, optional
        Takes the number of items that will be looked at, each time that it grows.
    seen : Seen, optional
        Of this plan: it has what was seen also where an exception ends this. It is
        given back.
    """
    seen = Seen(plan) if seen is None else seen
    done, count = 0, plan.first
    while True:
        if expect is not None:
            expect(count)
        these = sorted(
            (int(plan.places[rank]), int(rank)) for rank in plan.order[done:count]
        )
        places = [place for place, _ in these]
        for (_, rank), found in zip(these, look(places), strict=True):
            seen.add(rank, found)
        done = count
        if count >= plan.most or seen.total("num_bytes").curable <= _GOOD_ERROR:
            return seen
        count = min(plan.most, count + math.ceil(_STEP * plan.first))
