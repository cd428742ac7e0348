"""Which datasets a loader can make batches of: those whose samples are plain clips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.errors import with_article
from gulpio2.torch.clips import GulpClipDataset, GulpImageDataset
from gulpio2.torch.damaged import TolerantDataset
from gulpio2.torch.wrappers import DatasetWrapper, only_finds

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["plain_datasets"]


def plain_datasets(dataset: Any) -> Iterator[Any]:
    """Give the datasets inside of wrappers, each of which must make plain clips.

    Parameters
    ----------
    dataset : dataset or wrapper
        The outermost one.

    Yields
    ------
    GulpClipDataset or GulpImageDataset
        The innermost ones.

    Raises
    ------
    TypeError
        One is of another class, or makes its samples in a way of its own.
    ValueError
        One has a transform or a pipeline.
    """
    if isinstance(dataset, TolerantDataset):
        raise TypeError(
            "the dataset is a TolerantDataset, which is for torch.utils.data."
            "DataLoader: give the loader the dataset inside, and on_corrupt"
        )
    if isinstance(dataset, DatasetWrapper):
        if not only_finds(dataset):
            raise TypeError(_own_way(dataset))
        for member in dataset._members:
            yield from plain_datasets(member)
        return
    if not isinstance(dataset, (GulpClipDataset, GulpImageDataset)):
        raise TypeError(
            f"dataset is {with_article(type(dataset).__name__)}, expected a "
            "GulpClipDataset, a GulpImageDataset or a wrapper of such. For other "
            "datasets there is torch.utils.data.DataLoader with a ResumableSampler"
        )
    if dataset._makes_its_own_samples:
        raise TypeError(_own_way(dataset))
    if dataset.transform is not None or dataset.pipeline.transforms:
        raise ValueError(
            "the dataset has a transform or a pipeline, which a loader of whole "
            "batches cannot apply. Give the loader a view, do the rest to the batch, "
            "or use torch.utils.data.DataLoader with a ResumableSampler"
        )
    yield dataset


def _own_way(dataset: Any) -> str:
    return (
        f"{type(dataset).__name__} overrides __getitem__ or prepare_data, which a "
        "loader of whole batches does not call. Override choose_frames or target_of, "
        "give the loader a view, or use torch.utils.data.DataLoader with a "
        "ResumableSampler"
    )
