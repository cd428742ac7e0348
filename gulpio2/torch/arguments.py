"""What loaders and samplers are given, checked: dataset, view, order, batches."""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.errors import GulpWarning, with_article
from gulpio2.format.wording import counted
from gulpio2.order import PlainOrder, derive_seed
from gulpio2.torch.base import BaseDataset
from gulpio2.torch.clips import GulpClipDataset, GulpImageDataset
from gulpio2.torch.damaged import TolerantDataset
from gulpio2.torch.wrappers import DatasetWrapper, leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.order import Order

__all__ = [
    "default_order",
    "order_over",
    "plain_datasets",
    "require_order",
    "require_own_seed",
    "require_taken",
    "require_view",
    "settings_of",
    "warn_of_lost_places",
]


class LoaderSettings(NamedTuple):
    """What a ``torch.utils.data.DataLoader`` does with the samples of its sampler."""

    batch_size: int
    """Samples that a batch consumes; an epoch's last one may have fewer."""
    least_left: int
    """Samples that there have to be for another batch."""
    least_missing: int
    """Samples of which it may not end without a batch: fewer it may have dropped."""
    num_workers: int
    """Worker processes."""
    workers_persist: bool
    """Whether they go on from one iteration to the next."""
    are_single: bool
    """Whether it gives samples by themselves, and no batches."""


def plain_datasets(dataset: Any) -> list[Any]:
    """Give the datasets inside of wrappers, each of which must make plain clips.

    Parameters
    ----------
    dataset : dataset or wrapper
        The outermost one.

    Returns
    -------
    list of GulpClipDataset or GulpImageDataset
        The innermost ones.

    Raises
    ------
    TypeError
        One is of another class, or makes its samples in a way of its own.
    ValueError
        One has a transform or a pipeline.
    """
    leaves = list(leaves_of(dataset))
    for leaf in leaves:
        _require_plain(leaf)
    return leaves


def _require_plain(dataset: Any) -> None:
    if isinstance(dataset, TolerantDataset):
        raise TypeError(
            "the dataset is a TolerantDataset, which is for torch.utils.data."
            "DataLoader: give the loader the dataset inside, and on_corrupt"
        )
    is_wrapper = isinstance(dataset, DatasetWrapper)
    if not is_wrapper and not isinstance(dataset, (GulpClipDataset, GulpImageDataset)):
        raise TypeError(
            f"dataset is {with_article(type(dataset).__name__)}, expected a "
            "GulpClipDataset, a GulpImageDataset or a wrapper of such. For other "
            "datasets there is torch.utils.data.DataLoader with a ResumableSampler"
        )
    if is_wrapper or dataset._makes_its_own_samples:
        raise TypeError(
            f"{type(dataset).__name__} overrides __getitem__ or prepare_data, which a "
            "loader of whole batches does not call. Override choose_frames or "
            "target_of, give the loader a view, or use torch.utils.data.DataLoader "
            "with a ResumableSampler"
        )
    if dataset.transform is not None or dataset.pipeline.transforms:
        raise ValueError(
            "the dataset has a transform or a pipeline, which a loader of whole "
            "batches cannot apply. Give the loader a view, do the rest to the batch, "
            "or use torch.utils.data.DataLoader with a ResumableSampler"
        )


def require_view(view: Any) -> None:
    """Make sure that it is a view, and not its class or its size.

    Raises
    ------
    TypeError
        It is none.
    """
    if view is None:
        return
    if isinstance(view, type) or not callable(getattr(view, "choose", None)):
        raise TypeError(
            f"view is {view!r}, expected one such as CenterCrop(224) or "
            "RandomResizedCrop(224)"
        )
    try:
        good = min(operator.index(edge) for edge in view.shape) > 0
        good = good and len(view.shape) == 2
    except (AttributeError, TypeError, ValueError):
        good = False
    if not good:
        raise TypeError(
            f"the shape of the view {view!r} is {getattr(view, 'shape', 'missing')}, "
            "expected height and width of its frames"
        )


def require_order(order: Any, num_samples: int) -> None:
    """Make sure that it is an order over so many samples.

    Raises
    ------
    TypeError
        It is no order.
    ValueError
        It is one over more samples, or fewer.
    """
    if not hasattr(order, "num_items"):
        raise TypeError(
            f"order is {with_article(type(order).__name__)}, expected one of "
            "gulpio2.order, such as MixedOrder"
        )
    if order.num_items != num_samples:
        raise ValueError(
            f"the order draws from {counted(order.num_items, 'sample')}, and the "
            f"dataset has {num_samples}: build the order from this dataset"
        )


def default_order(dataset: Any, seed: int, *, shuffle: bool) -> PlainOrder:
    """Give the order that goes through a dataset once an epoch.

    Parameters
    ----------
    dataset : sized
        Initialised.
    seed : int
        Of the order.
    shuffle : bool
        Whether it is shuffled.
    """
    count = len(dataset)
    return PlainOrder(count, seed=seed, shuffle=shuffle, items_key=_rule_of(dataset))


def _rule_of(dataset: Any) -> int:
    """Combine what wrappers say of how they choose samples; 0 where none says it."""
    if not isinstance(dataset, DatasetWrapper):
        return 0
    own, inside = dataset._rule(), [_rule_of(member) for member in dataset._members]
    if not own and len(inside) == 1:
        return inside[0]
    return derive_seed(own, *inside) if own or any(inside) else 0


def order_over(dataset: Any, order: Order | None, seed: int, *, shuffle: bool) -> Order:
    """Give the order of a loader: the one that it is given, or the default.

    Parameters
    ----------
    dataset : sized
        Initialised.
    order : Order or None
        The one that is given.
    seed, shuffle : int, bool
        Of the default order.
    """
    if order is None:
        return default_order(dataset, seed, shuffle=shuffle)
    require_order(order, len(dataset))
    require_own_seed(order, seed, shuffle=shuffle)
    return order


def require_own_seed(order: Any, seed: int, *, shuffle: bool) -> None:
    """Refuse a seed beside an order that has another.

    Raises
    ------
    ValueError
        One is given that differs, or not to shuffle what is shuffled.
    """
    shuffles = bool(getattr(order, "shuffle", True))
    if seed not in (0, order.seed) or shuffle not in (True, shuffles):
        raise ValueError(
            f"seed={seed} and shuffle={shuffle} are of the order that goes through a "
            f"dataset, and {order!r} has its own: give them to that"
        )


def settings_of(loader: Any, sampler: object) -> LoaderSettings:
    """Give what a loader does with the samples of its sampler.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        Or what is iterated like one.
    sampler : object
        The one that it has to have.

    Raises
    ------
    ValueError
        It has another, gives batches in any order, or of a size that nobody says.
    """
    batch_sampler = getattr(loader, "batch_sampler", None)
    own = getattr(loader, "sampler", None)
    if getattr(batch_sampler, "sampler", own) is not sampler:
        raise ValueError("the loader has another sampler: DataLoader(sampler=...)")
    if not getattr(loader, "in_order", True) and loader.num_workers:
        raise ValueError(
            "the loader gives whichever batch is ready first, so that nobody knows "
            "which were consumed: leave in_order=False away"
        )
    size = 1 if batch_sampler is None else _size_of_batches(batch_sampler)
    return LoaderSettings(
        size,
        least_left=size if getattr(batch_sampler, "drop_last", False) else 1,
        # One that does not say so may drop the last batch, too.
        least_missing=size if getattr(batch_sampler, "drop_last", True) else 1,
        num_workers=getattr(loader, "num_workers", 0),
        workers_persist=getattr(loader, "persistent_workers", False),
        are_single=batch_sampler is None,
    )


def _size_of_batches(batch_sampler: Any) -> int:
    size = getattr(batch_sampler, "batch_size", None)
    if not isinstance(size, int):
        raise ValueError(
            f"{type(batch_sampler).__name__} has no batch_size, so that nobody knows "
            "how many samples a batch consumes. Give it one, or the loader batch_size="
        )
    return size


def require_taken(num_samples: int, num_open: int) -> None:
    """Make sure that a batch can have as many samples as are counted for it.

    Parameters
    ----------
    num_samples : int
        What is counted: its size, as the batch sampler says it, or what is left.
    num_open : int
        Samples that the loader took, and that are not counted yet.

    Raises
    ------
    ValueError
        It took fewer, or none is left for this batch.
    """
    if not 0 < num_samples <= num_open:
        raise ValueError(
            f"a batch came that is to have {counted(num_samples, 'sample')}, and the "
            "loader has "
            f"taken {num_open}: its batch sampler makes batches of other sizes than "
            "its batch_size, so that nobody knows which samples were consumed. Make "
            "all of one size, but for the last"
        )


# Wrappers of other packages that give the dataset inside a plain number for an index.
_LOSES_PLACES = {
    "torch.utils.data": ("Subset", "ConcatDataset"),
    "mmengine.dataset": ("ConcatDataset", "RepeatDataset", "ClassBalancedDataset"),
}


def warn_of_lost_places(dataset: Any) -> None:
    """Warn where another package's wrapper gives a dataset of ours plain numbers."""
    kinds = (type(each) for each in _all_inside(dataset) if _loses_places(each))
    kind = next(kinds, None)
    if kind is not None:
        warnings.warn(
            f"{kind.__module__}.{kind.__name__} hands plain numbers on to the dataset "
            "inside, without their places in the run: a resumed run has the same "
            "samples, but other random frames and transforms. Take get_subset, or the "
            "wrappers of gulpio2.torch",
            GulpWarning,
            stacklevel=3,
        )


def _loses_places(dataset: Any) -> bool:
    """Tell whether it is such a wrapper before a dataset of ours that minds."""
    kind = type(dataset)
    names = (
        names
        for module, names in _LOSES_PLACES.items()
        if kind.__module__.startswith(module)
    )
    return kind.__name__ in next(names, ()) and any(
        isinstance(each, BaseDataset) and not each.test_mode
        for each in _all_inside(dataset)
    )


def _all_inside(dataset: Any) -> Iterator[Any]:
    """Give a dataset and those inside of any package's wrappers, down to ours."""
    waiting, seen = [dataset], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:  # the names may mean something else there
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseDataset):
            continue
        one, several = (getattr(each, name, None) for name in ("dataset", "datasets"))
        if isinstance(several, dict):  # a StackDataset may name them
            several = list(several.values())
        inside = [one, *(several if isinstance(several, (list, tuple)) else ())]
        waiting += [each for each in inside if each is not None]
