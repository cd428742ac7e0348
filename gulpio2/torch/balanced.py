"""A dataset whose rare categories come more often."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from gulpio2.errors import with_article
from gulpio2.order import repeat_counts
from gulpio2.torch.registry import register
from gulpio2.torch.selection import sample_position
from gulpio2.torch.wrappers import DatasetWrapper, as_dataset, parts_of

__all__ = ["ClassBalancedDataset"]


@register
class ClassBalancedDataset(DatasetWrapper):
    """A dataset whose samples of rare categories come several times.

    Parameters
    ----------
    dataset : dataset or config
        It says the categories of a sample by ``get_cat_ids``, and these are the same in
        each epoch: a `MixtureDataset` is no such dataset, but may be made of these.
    oversample_thr : float
        Samples of a category that less than this share of the samples has are
        repeated, see `gulpio2.order.repeat_factors`. At least 0, and finite.
    lazy_init : bool, default False
        True: initialise nothing yet.

    Attributes
    ----------
    repeat_indices : list of int
        Sample of the dataset inside for each sample of this one.

    Raises
    ------
    ValueError
        There is a `MixtureDataset` inside.
    """

    def __init__(
        self,
        dataset: Any,
        oversample_thr: float,
        lazy_init: bool = False,  # noqa: FBT001, FBT002  the interface
    ) -> None:
        self.dataset = as_dataset(dataset)
        for part in parts_of([self.dataset]):
            if part._goes_by_epoch:
                name = type(part).__name__
                raise ValueError(
                    f"there is {with_article(name)} inside, whose samples are others "
                    "in each epoch: which categories are rare cannot be told once for "
                    f"all. Balance the datasets inside of the {name}"
                )
        self.oversample_thr = oversample_thr
        self.repeat_indices: list[int] = []
        super().__init__([self.dataset], lazy_init=lazy_init)

    def _prepare(self) -> None:
        categories = [
            self.dataset.get_cat_ids(position) for position in range(len(self.dataset))
        ]
        counts = repeat_counts(categories, self.oversample_thr)
        self.repeat_indices = np.repeat(np.arange(len(counts)), counts).tolist()

    def _rule(self) -> int:
        return zlib.crc32(np.array(self.repeat_indices, "<i8").tobytes())

    def _count(self) -> int:
        return len(self.repeat_indices)

    def _locate(self, idx: int) -> tuple[int, int]:
        return 0, self.repeat_indices[sample_position(idx, self._count())]
