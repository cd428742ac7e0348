"""Damaged samples of a run, each counted once, where its batches are given out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gulpio2.errors import CorruptFrameError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Damage", "DamageCount"]


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged sample; one that stood in for another may be one, too."""

    dataset: int
    """A number of the dataset that it is of, the same all the time."""
    index: int
    """The sample there."""
    message: str
    """What is wrong with it."""


class DamageCount:
    """The damaged samples that a run met, each counted once.

    Those of batches that were given out: what is made ahead, by however many threads or
    workers, does not decide at which step a run ends.

    Parameters
    ----------
    max_corrupt : int
        So many are put up with.
    """

    def __init__(self, max_corrupt: int) -> None:
        self.max_corrupt = max_corrupt
        self._damaged: set[tuple[int, int]] = set()

    def add(self, damages: Iterable[Damage]) -> None:
        """Count those of a batch.

        Raises
        ------
        CorruptFrameError
            More samples are damaged than are put up with.
        """
        for damage in damages:
            self._damaged.add((damage.dataset, damage.index))
            if len(self._damaged) > self.max_corrupt:
                raise CorruptFrameError(
                    f"{damage.message}. More than {self.max_corrupt} samples are "
                    "damaged (max_corrupt), so it is not a few items that are wrong"
                )
