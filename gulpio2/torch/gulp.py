"""Datasets over gulp directories: what is known of each item, without its frames."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gulpio2.errors import ItemNotFoundError
from gulpio2.format.wording import some_of
from gulpio2.torch.annotations import load_annotations
from gulpio2.torch.base import BaseDataset
from gulpio2.torch.listing import Listing
from gulpio2.torch.registry import register
from gulpio2.torch.selection import select_samples
from gulpio2.torch.source import GulpSource

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

__all__ = ["GulpDataset"]

# Items that are named where annotations are about none.
_NAMED = 4

_NO_PREFIX: Mapping[str, str] = MappingProxyType({})


@register
class GulpDataset(BaseDataset):
    """The items of gulp directories, each a dict that goes through a pipeline.

    A sample is an item; `parse_data_info` may make several of it. The pipeline reads
    what frames it wants; `GulpClipDataset` and `GulpImageDataset` do it themselves.

    Parameters
    ----------
    source : path, FrameReader, or a sequence of them
        A gulp directory, something that can be read like one, or several.
    ann_file : str, optional
        Annotation file whose samples name items by ``id``, some of them perhaps several
        times; what else an entry has stands before the item's metadata. Default: a
        sample per item, with the metadata that is stored with it.
    metainfo, data_root, data_prefix, filter_cfg, indices, serialize_data, pipeline
        As in `BaseDataset`; `source` is joined to `data_root` too.
    test_mode, lazy_init, max_refetch
        As in `BaseDataset`.

    Notes
    -----
    ``classes`` of the metadata comes from ``label2idx.json`` where neither the
    constructor, the class nor the annotation file says it. No file is open in a
    pickled dataset.

    Of directories that were opened by an index, there is nothing to serialise: where
    no annotation file and no method of a subclass says otherwise, a sample is a number,
    and what `get_data_info` gives is read from the index, which all processes share. A
    number means the same item as when the dataset was made. Where a directory has
    changed, so that it would mean another one in another process, reading raises there.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("train", num_items=3, num_frames=8)
    >>> dataset = GulpDataset("train")
    >>> info = dataset.get_data_info(1)
    >>> info["id"], info["num_frames"], info["sample_idx"]
    ('item1', 8, 1)
    """

    # The directories never change, and subsets read from the same ones.
    _NOT_COPIED: ClassVar[frozenset[str]] = BaseDataset._NOT_COPIED | {
        "_source",
        "_opened",
        "_listing",
        "_numbers",
    }
    # The items that samples are of, where nothing is known of them but the index.
    _listing: Listing | None = None
    _numbers: Sequence[int] | npt.NDArray[np.int64] = ()

    def __init__(
        self,
        source: Any,
        *,
        ann_file: str | os.PathLike[str] | None = "",
        metainfo: Mapping[str, Any] | None = None,
        data_root: str | os.PathLike[str] | None = "",
        data_prefix: Mapping[str, str] = _NO_PREFIX,
        filter_cfg: Mapping[str, Any] | None = None,
        indices: int | Sequence[int] | npt.NDArray[np.integer] | None = None,
        serialize_data: bool = True,
        pipeline: Sequence[Callable[[Any], Any] | Mapping[str, Any]] | None = (),
        test_mode: bool = False,
        lazy_init: bool = False,
        max_refetch: int = 1000,
    ) -> None:
        self._source = source
        self._opened: GulpSource | None = None
        super().__init__(
            ann_file=ann_file,
            metainfo=metainfo,
            data_root=data_root,
            data_prefix=data_prefix,
            filter_cfg=filter_cfg,
            indices=indices,
            serialize_data=serialize_data,
            pipeline=pipeline,
            test_mode=test_mode,
            lazy_init=lazy_init,
            max_refetch=max_refetch,
        )

    @property
    def source(self) -> GulpSource:
        """The directories, whose maps are read when they are first asked for."""
        if self._opened is None:
            self._opened = GulpSource(self._source, self.data_root)
        return self._opened

    def full_init(self) -> None:
        """Load, filter, select and serialise the samples; does nothing twice."""
        if self._fully_initialized:
            return
        listing = self.source.listing() if self._are_items() else None
        if listing is None:
            super().full_init()
            return
        self._listing, self._numbers = listing, range(len(listing))
        self._add_metainfo(self.source.metainfo(known=self._metainfo))
        if self._indices is not None:
            self._numbers = select_samples(self._indices, len(listing))
        self._fully_initialized = True

    def _are_items(self) -> bool:
        """Tell whether the samples are the items, as they are."""
        own, base = type(self), BaseDataset
        return (
            self.serialize_data
            and not self.ann_file
            and not self.data_prefix
            and own.load_data_list is GulpDataset.load_data_list
            and own.parse_data_info is base.parse_data_info
            and own.filter_data is base.filter_data
        )

    def _num_samples(self) -> int:
        return super()._num_samples() if self._listing is None else len(self._numbers)

    def _sample_at(self, position: int) -> dict[str, Any]:
        if self._listing is None:
            return super()._sample_at(position)
        return self.source.describe_item(*self._item_at(position))

    def _item_at(self, position: int) -> tuple[int, str]:
        """Give the number of an item's reader, and its id there."""
        if self._listing is not None:
            return self._listing.find(int(self._numbers[position]))
        return self.source.place_of(self._sample_at(position))

    def _take(self, source: BaseDataset, positions: npt.NDArray[np.int64]) -> None:
        if self._listing is None:
            super()._take(source, positions)
        elif isinstance(source, GulpDataset):
            self._numbers = np.asarray(source._numbers, np.int64)[positions]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the source gives again."""
        state = dict(self.__dict__)
        if self._listing is not None:
            state["_listing"] = self._listing.fingerprints()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the items anew, and that they are the same."""
        known = state.pop("_listing", None)
        self.__dict__.update(state)
        if known is not None:
            self._listing = Listing(self.source.readers, known)

    def load_data_list(self) -> list[dict[str, Any]]:
        """Open the directories and describe their items, or those of the annotations.

        Returns
        -------
        list of dict
            Each item through `parse_data_info`.
        """
        if not self.ann_file:
            samples = self._parse_all(self.source.items())
        else:
            metainfo, entries = load_annotations(self.ann_file)
            self._add_metainfo(metainfo)
            samples = self._parse_all(self._annotated(entries))
        self._add_metainfo(self.source.metainfo(known=self._metainfo))
        return samples

    def _annotated(self, entries: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Describe the items that entries name, or say which there are not."""
        missing: list[ItemNotFoundError] = []
        for entry in entries:
            try:
                described = self.source.describe(entry)
            except ItemNotFoundError as error:
                missing.append(error)
                continue
            if not missing:
                yield described
        if not missing:
            return
        first = missing[0]
        if not missing[1:]:
            raise first
        names = some_of([repr(error.args[0]) for error in missing], _NAMED)
        raise ItemNotFoundError(
            f"{len(missing)} of {len(entries)} annotations in {self.ann_file} name "
            f"items that are not in {self.source!r}: {names}. Take them out of "
            "the file, as those whose 'id' is not in the directory",
            first.args[0],
        )

    def get_cat_ids(self, idx: int) -> list[int]:
        """Give the categories of a sample: ``[idx]`` of its metadata.

        Raises
        ------
        NotImplementedError
            Its metadata has no integer ``idx``.
        """
        category = self.get_data_info(idx).get("idx")
        if isinstance(category, bool) or not isinstance(category, (int, np.integer)):
            raise NotImplementedError(
                f"sample {idx} has no integer 'idx' in its metadata, but {category!r}: "
                "override get_cat_ids"
            )
        return [int(category)]
