"""Datasets made of other datasets: one after the other, or repeated.

A wrapper is no subclass of `BaseDataset`. It maps an index to one of a dataset inside
and leaves everything else, fetching another sample too, to that one. Wrappers nest.
"""

from __future__ import annotations

import bisect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias, TypeVar

from gulpio2.arguments import require_number
from gulpio2.errors import with_article
from gulpio2.torch.lazy import force_full_init, warn_lazy
from gulpio2.torch.metainfo import require_equal_metainfo
from gulpio2.torch.recycling import get_samples
from gulpio2.torch.registry import build, register
from gulpio2.torch.seeding import SampleIndex
from gulpio2.torch.selection import sample_position

if TYPE_CHECKING:  # for whom a loader of torch takes nothing else; torch itself does
    from torch.utils.data import Dataset

    _Base: TypeAlias = Dataset[Any]
else:
    _Base = object

__all__ = [
    "ConcatDataset",
    "DatasetWrapper",
    "MapDataset",
    "RepeatDataset",
    "as_dataset",
    "as_datasets",
    "find_sample",
    "leaves_of",
    "parts_of",
]


Index = TypeVar("Index", bound=int)

_DATASET_METHODS = ("full_init", "get_data_info", "__getitem__", "__len__")


def as_dataset(dataset: Any) -> Any:
    """Take a dataset as it is, or build the one that a config describes.

    Raises
    ------
    TypeError
        It is neither, or the config builds something else.
    """
    built = build(dataset) if isinstance(dataset, Mapping) else dataset
    missing = [name for name in _DATASET_METHODS if not hasattr(type(built), name)]
    if missing:
        raise TypeError(
            f"{built!r} is no dataset, it has no {', '.join(missing)}: expected a "
            "dataset or a config of one"
        )
    return built


def as_datasets(datasets: Any) -> list[Any]:
    """Take, or build, the datasets that are to go together.

    Raises
    ------
    TypeError
        It is no sequence of datasets and configs.
    ValueError
        It is empty.
    """
    if not isinstance(datasets, Sequence) or isinstance(datasets, str):
        raise TypeError(f"datasets are {datasets!r}, expected a sequence of them")
    if not datasets:
        raise ValueError("datasets is empty: expected at least one to begin with")
    return [as_dataset(dataset) for dataset in datasets]


class MapDataset(_Base):
    """A dataset whose samples have numbers, as those of torch, without torch."""

    def __iter__(self) -> Iterator[Any]:
        """Make every sample; an ``IndexError`` of a transform does not end it."""
        numbered: Any = self  # its subclasses say how many there are, and make them
        return (numbered[position] for position in range(len(numbered)))

    def __add__(self, other: Any) -> ConcatDataset:
        """Join two datasets, the other one behind this; see `ConcatDataset`.

        One of another kind, such as torch's own, is left to whoever can join them.
        """
        try:
            datasets = as_datasets([self, other])
        except TypeError:
            of_torch = getattr(super(), "__add__", None)
            return NotImplemented if of_torch is None else of_torch(other)
        return ConcatDataset(datasets)


class DatasetWrapper(ABC, MapDataset):
    """What all wrappers do alike; one method says where an index leads.

    Parameters
    ----------
    datasets : sequence of dataset
        Those inside.
    lazy_init : bool
        True: initialise nothing before `full_init`, or before it is needed.
    """

    _fully_initialized: bool = False
    # Whether only the loader may be given it.
    _is_outermost: ClassVar[bool] = False
    # Whether a sample is another one in each epoch.
    _goes_by_epoch: ClassVar[bool] = False

    def __init__(self, datasets: Sequence[Any], *, lazy_init: bool) -> None:
        self._members = list(datasets)
        for part in parts_of(self._members):
            if part._is_outermost:
                name = type(part).__name__
                raise TypeError(
                    f"there is a {name} inside of this {type(self).__name__}: wrap the "
                    f"outermost dataset only in {with_article(name)}"
                )
        if not lazy_init:
            self.full_init()

    @abstractmethod
    def _locate(self, idx: int) -> tuple[int, int]:
        """Give number and sample of the dataset inside; out of range: an error."""

    def _prepare(self) -> None:
        """Find out what depends on the datasets inside, which are initialised."""

    @abstractmethod
    def _count(self) -> int:
        """Count the samples, once prepared."""

    def _rule(self) -> int:
        """Give a number that differs where sample numbers lead to other samples inside.

        0 where the lengths of the datasets inside decide where they lead.
        """
        return 0

    @property
    def metainfo(self) -> dict[str, Any]:
        """A copy of the metadata, as far as the datasets inside are initialised."""
        metainfo: dict[str, Any] = self._members[0].metainfo
        return metainfo

    def full_init(self) -> None:
        """Initialise the datasets inside, then this; does nothing twice."""
        if self._fully_initialized:
            return
        for member in self._members:
            member.full_init()
        self._prepare()
        self._fully_initialized = True

    @force_full_init
    def __len__(self) -> int:
        """Count the samples."""
        return self._count()

    @force_full_init
    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Give what the dataset inside knows of a sample."""
        dataset, place = self.locate(idx)
        info: dict[str, Any] = dataset.get_data_info(place)
        return info

    @force_full_init
    def get_cat_ids(self, idx: int) -> list[int]:
        """Give the categories of a sample."""
        dataset, place = self.locate(idx)
        categories: list[int] = dataset.get_cat_ids(place)
        return categories

    def locate(self, idx: Index) -> tuple[Any, Index]:
        """Give the dataset inside that has a sample, and the sample's index there."""
        if not self._fully_initialized:  # not by the decorator: it is asked per sample
            warn_lazy(self, "locate")
            self.full_init()
        member, local = self._locate(idx)
        # Of the same type: one with a place in the run keeps that.
        place: Any = idx.at(local) if isinstance(idx, SampleIndex) else local
        return self._members[member], place

    @force_full_init
    def __getitem__(self, idx: int) -> Any:
        """Make a sample; if it has to be replaced, by one of the same inner dataset."""
        dataset, place = self.locate(idx)
        return dataset[place]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Make the samples of a batch, see `gulpio2.torch.recycling`."""
        return get_samples(self, indices, _find_maker)

    def get_subset(self, indices: Any) -> NoReturn:
        """Refuse: which samples would be left inside is not defined.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no subsets: take one of the dataset inside, "
            "then wrap that"
        )

    get_subset_ = get_subset


def parts_of(datasets: Iterable[Any]) -> Iterator[DatasetWrapper]:
    """Give the wrappers among datasets, and all that are inside of them."""
    for dataset in datasets:
        if isinstance(dataset, DatasetWrapper):
            yield dataset
            yield from parts_of(dataset._members)


def only_finds(dataset: Any) -> bool:
    """Tell whether it is a wrapper that does no more than to find samples."""
    return (
        isinstance(dataset, DatasetWrapper)
        and type(dataset).__getitem__ is DatasetWrapper.__getitem__
    )


def find_sample(dataset: Any, place: Index) -> tuple[Any, Index]:
    """Look through wrappers for the dataset that makes a sample.

    Parameters
    ----------
    dataset : dataset or wrapper
        The outermost one.
    place : int
        A sample of it; a `SampleIndex` for one that keeps its place in the run.

    Returns
    -------
    dataset
        The innermost one, or a wrapper that makes samples in a way of its own.
    place : int
        The sample's index there.
    """
    while only_finds(dataset):
        dataset, place = dataset.locate(place)
    return dataset, place


def _find_maker(dataset: Any, place: Index) -> tuple[Any, Index] | None:
    """Find as `find_sample` does; None for a wrapper that makes samples its own way."""
    leaf, place = find_sample(dataset, place)
    return None if isinstance(leaf, DatasetWrapper) else (leaf, place)


def leaves_of(dataset: Any) -> Iterator[Any]:
    """Give all datasets that `find_sample` may find, in their order."""
    if not only_finds(dataset):
        yield dataset
        return
    for member in dataset._members:
        yield from leaves_of(member)


@register
class ConcatDataset(DatasetWrapper):
    """Several datasets, one after the other.

    Parameters
    ----------
    datasets : sequence of dataset or config
        At least one.
    lazy_init : bool, default False
        True: initialise nothing yet.
    ignore_keys : str or list of str, optional
        Keys of the metadata that may differ.

    Attributes
    ----------
    datasets : list
        The datasets.
    cumulative_sizes : list of int
        Where each of them ends.

    Raises
    ------
    TypeError
        No dataset or config, or the type of a metadata value differs.
    ValueError
        No datasets at all, or the metadata differs.
    """

    def __init__(
        self,
        datasets: Sequence[Any],
        lazy_init: bool = False,  # noqa: FBT001, FBT002  the interface
        ignore_keys: str | list[str] | None = None,
    ) -> None:
        self.ignore_keys = _key_set(ignore_keys)
        self.datasets = as_datasets(datasets)
        self.cumulative_sizes: list[int] = []
        self._require_equal_metainfo(
            [
                number
                for number, dataset in enumerate(self.datasets)
                if getattr(dataset, "_fully_initialized", True)
            ]
        )
        super().__init__(self.datasets, lazy_init=lazy_init)

    def _prepare(self) -> None:
        self._require_equal_metainfo(range(len(self.datasets)))
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def _require_equal_metainfo(self, numbers: Sequence[int]) -> None:
        """Compare those that know their metadata, which lazy ones do not yet."""
        first = self.datasets[numbers[0]].metainfo if numbers[1:] else {}  # a copy
        for number in numbers[1:]:
            require_equal_metainfo(
                first,
                self.datasets[number].metainfo,
                (numbers[0], number),
                self.ignore_keys,
            )

    def _count(self) -> int:
        return self.cumulative_sizes[-1]

    def _locate(self, idx: int) -> tuple[int, int]:
        position = sample_position(idx, self._count())
        member = bisect.bisect_right(self.cumulative_sizes, position)
        return member, position - (self.cumulative_sizes[member - 1] if member else 0)


@register
class RepeatDataset(DatasetWrapper):
    """A dataset several times over, to make epochs longer.

    Parameters
    ----------
    dataset : dataset or config
        What to repeat.
    times : int
        How often, at least once.
    lazy_init : bool, default False
        True: initialise nothing yet.
    """

    def __init__(
        self,
        dataset: Any,
        times: int,
        lazy_init: bool = False,  # noqa: FBT001, FBT002  the interface
    ) -> None:
        self.dataset = as_dataset(dataset)
        self.times = require_number("times", times, 1)
        super().__init__([self.dataset], lazy_init=lazy_init)

    def _prepare(self) -> None:
        self._inner_length = len(self.dataset)

    def _count(self) -> int:
        return self.times * self._inner_length

    def _locate(self, idx: int) -> tuple[int, int]:
        return 0, sample_position(idx, self._count()) % self._inner_length


def _key_set(keys: Any) -> frozenset[str]:
    if keys is None:
        return frozenset()
    if isinstance(keys, str):
        return frozenset({keys})
    if isinstance(keys, list) and all(isinstance(key, str) for key in keys):
        return frozenset(keys)
    raise TypeError(f"ignore_keys is {keys!r}, expected a str, a list of str or None")
