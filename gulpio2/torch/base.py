"""The dataset that computer-vision toolboxes agree on, over an annotation file.

The interface is that of MMEngine's ``BaseDataset``. Torch is not needed: an object with
``__len__`` and ``__getitem__`` is all that a ``torch.utils.data.DataLoader`` asks for.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gulpio2.arguments import require_number
from gulpio2.errors import CorruptFrameError, EmptySampleError, StorageError
from gulpio2.torch.annotations import join_prefixes, load_annotations
from gulpio2.torch.damage import note_sample
from gulpio2.torch.lazy import force_full_init, warn_lazy
from gulpio2.torch.metainfo import given_metainfo
from gulpio2.torch.packing import pack_samples, take_packed, unpack_sample
from gulpio2.torch.pipeline import Compose
from gulpio2.torch.registry import register
from gulpio2.torch.seeding import SampleIndex, seeded, substitute_index
from gulpio2.torch.selection import sample_position, select_samples
from gulpio2.torch.working import timed_sample, timed_transform
from gulpio2.torch.wrappers import MapDataset

__all__ = ["BaseDataset"]

_URL_STARTS = ("http://", "https://", "s3://")
_IMG_PATH: Mapping[str, str] = MappingProxyType({"img_path": ""})


@register
class BaseDataset(MapDataset):
    """Samples of an annotation file, each a dict that goes through a pipeline.

    Subclasses override `parse_data_info`, `filter_data`, `load_data_list` or
    `get_cat_ids`; nothing else is needed for another dataset.

    Parameters
    ----------
    ann_file : str, optional
        Annotation file, see `gulpio2.torch.annotations.load_annotations`.
    metainfo : mapping, optional
        Metadata of the dataset; wins over ``METAINFO`` of the class, which wins over
        the annotation file. A string that is the path of a text file becomes the list
        of its lines.
    data_root : str, optional
        Joined before `ann_file` and `data_prefix` where these are relative.
    data_prefix : mapping of str, optional
        Key of a sample to what is joined before its value.
    filter_cfg : mapping, optional
        For `filter_data`.
    indices : int or sequence of int, optional
        Only these samples, see `gulpio2.torch.selection.select_samples`.
    serialize_data : bool, default True
        Keep the samples as bytes, which forked workers share.
    pipeline : sequence of callable or config, optional
        Transforms, see `Compose`; the first gets what `get_data_info` gives.
    test_mode : bool, default False
        True: a pipeline that gives None is an error.
    lazy_init : bool, default False
        True: read nothing before `full_init`.
    max_refetch : int, default 1000
        How often another sample may stand in for one whose pipeline gives None.

    Attributes
    ----------
    data_list : list of dict
        The samples; empty where they are serialised.
    data_bytes, data_address : numpy.ndarray
        The serialised samples, and where each ends.

    Examples
    --------
    >>> import json, pathlib
    >>> content = {"metainfo": {"classes": ["cat"]}, "data_list": [{"img_path": "a"}]}
    >>> _ = pathlib.Path("train.json").write_text(json.dumps(content))
    >>> dataset = BaseDataset("train.json", data_prefix={"img_path": "images"})
    >>> dataset[0], dataset.metainfo
    ({'img_path': 'images/a', 'sample_idx': 0}, {'classes': ['cat']})
    """

    METAINFO: ClassVar[dict[str, Any]] = {}
    """Metadata that all datasets of the class have."""

    # What came of a sample that is none.
    _NOTHING: ClassVar[str] = "the pipeline gave None"
    _fully_initialized: bool = False
    # Left out of the deep copies that get_subset makes: the samples, of which it takes
    # a part, and what subclasses share.
    _NOT_COPIED: ClassVar[frozenset[str]] = frozenset(
        {"data_list", "data_bytes", "data_address"}
    )

    def __init__(
        self,
        ann_file: str | os.PathLike[str] | None = "",
        metainfo: Mapping[str, Any] | None = None,
        data_root: str | os.PathLike[str] | None = "",
        data_prefix: Mapping[str, str] = _IMG_PATH,
        filter_cfg: Mapping[str, Any] | None = None,
        indices: int | Sequence[int] | npt.NDArray[np.integer] | None = None,
        serialize_data: bool = True,  # noqa: FBT001, FBT002  the interface
        pipeline: Sequence[Callable[[Any], Any] | Mapping[str, Any]] | None = (),
        test_mode: bool = False,  # noqa: FBT001, FBT002  the interface
        lazy_init: bool = False,  # noqa: FBT001, FBT002  the interface
        max_refetch: int = 1000,
    ) -> None:
        self.ann_file = os.fspath(ann_file) if ann_file else ""
        self.data_root = os.fspath(data_root) if data_root else ""
        if not isinstance(data_prefix, Mapping):
            raise TypeError(f"data_prefix is {data_prefix!r}, expected a mapping")
        self.data_prefix = dict(data_prefix)
        self.filter_cfg: Any = copy.deepcopy(filter_cfg)
        self.serialize_data = serialize_data
        self.test_mode = test_mode
        self.max_refetch = require_number("max_refetch", max_refetch, 0)
        self.data_list: list[dict[str, Any]] = []
        self.data_bytes: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.data_address: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._indices = copy.deepcopy(indices)
        self._metainfo = given_metainfo(self.METAINFO, metainfo)
        self._join_paths()
        self.pipeline = self._build_pipeline(pipeline)
        if not lazy_init:
            self.full_init()

    # --- initialisation ----------------------------------------------------------

    @property
    def metainfo(self) -> dict[str, Any]:
        """A copy of the dataset's metadata; the file's part comes with `full_init`."""
        return copy.deepcopy(self._metainfo)

    def full_init(self) -> None:
        """Load, filter, select and serialise the samples; does nothing twice."""
        if self._fully_initialized:
            return
        self.data_list = self.load_data_list()
        self.data_list = self.filter_data()
        if self._indices is not None:
            positions = select_samples(self._indices, len(self.data_list))
            self.data_list = [
                copy.deepcopy(self.data_list[position]) for position in positions
            ]
        if self.serialize_data:
            self.data_bytes, self.data_address = pack_samples(self.data_list)
            self.data_list = []
        self._fully_initialized = True

    def load_data_list(self) -> list[dict[str, Any]]:
        """Load the samples and the metadata of the annotation file.

        Returns
        -------
        list of dict
            Each entry of the file through `parse_data_info`.

        Raises
        ------
        TypeError
            `parse_data_info` gave neither a dict nor a list of dicts; or see
            `gulpio2.torch.annotations.load_annotations`.
        """
        metainfo, entries = load_annotations(self.ann_file)
        self._add_metainfo(metainfo)
        return self._parse_all(entries)

    def parse_data_info(
        self, raw_data_info: dict[str, Any]
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Turn an entry of the annotation file into a sample, or into several.

        Parameters
        ----------
        raw_data_info : dict
            One entry; it is not changed.

        Returns
        -------
        dict or list of dict
            Here: the entry with every prefix joined before its value.

        Raises
        ------
        AnnotationError
            It is no dict, lacks a key of ``data_prefix``, or has no path there.
        """
        return join_prefixes(raw_data_info, self.data_prefix, self.ann_file)

    def filter_data(self) -> list[dict[str, Any]]:
        """Choose samples out of ``data_list`` by ``filter_cfg``; here: all of them."""
        return self.data_list

    def _build_pipeline(self, transforms: Any) -> Compose:
        """Build the pipeline; a toolbox has transforms, and a class, of its own."""
        return Compose(transforms)

    def _parse_all(self, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        samples: list[dict[str, Any]] = []
        for entry in entries:
            parsed = self.parse_data_info(entry)
            several = parsed if isinstance(parsed, list) else [parsed]
            for sample in several:
                if not isinstance(sample, dict):
                    raise TypeError(
                        "parse_data_info must give a dict or a list of dicts, and gave "
                        f"{parsed!r}"
                    )
            samples += several
        return samples

    def _add_metainfo(self, metainfo: Mapping[str, Any]) -> None:
        """Take in metadata of the lowest priority: only keys that are not there yet."""
        for key, value in metainfo.items():
            self._metainfo.setdefault(key, value)

    def _join_paths(self) -> None:
        if self.ann_file and self.data_root:
            self.ann_file = _join(self.data_root, self.ann_file)
        for key, prefix in self.data_prefix.items():
            if not isinstance(prefix, str):
                raise TypeError(f"data_prefix[{key!r}] is {prefix!r}, expected a str")
            if self.data_root:
                self.data_prefix[key] = _join(self.data_root, prefix)

    # --- access ------------------------------------------------------------------

    @force_full_init
    def __len__(self) -> int:
        """Count the samples, after filtering and selection."""
        return self._num_samples()

    @force_full_init
    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Give what is known of a sample, as a new dict.

        Parameters
        ----------
        idx : int
            Counted from the end if negative.

        Returns
        -------
        dict
            With ``sample_idx``, its position counted from the beginning.

        Raises
        ------
        SampleIndexError
            There is no such sample; also an ``IndexError``.
        """
        position = sample_position(idx, len(self))
        data_info = self._sample_at(position)
        data_info["sample_idx"] = position
        return data_info

    def _num_samples(self) -> int:
        return len(self.data_address if self.serialize_data else self.data_list)

    def _sample_at(self, position: int) -> dict[str, Any]:
        """Make a new copy of what is known of the sample at this position."""
        if self.serialize_data:
            return unpack_sample(self.data_bytes, self.data_address, position)
        return copy.deepcopy(self.data_list[position])

    def get_cat_ids(self, idx: int) -> list[int]:
        """Give the categories of a sample; for subclasses to say.

        Raises
        ------
        NotImplementedError
            Here.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say which categories a sample has: "
            "override get_cat_ids"
        )

    def prepare_data(self, idx: int) -> Any:
        """Send a sample through the pipeline, once."""
        return timed_transform(self.pipeline, self.get_data_info(idx))

    def __getitem__(self, idx: int) -> Any:
        """Make a sample, or another one where its pipeline gives None.

        Parameters
        ----------
        idx : int
            Counted from the end if negative. Randomness follows the place of a
            `gulpio2.torch.SampleIndex`.

        Raises
        ------
        SampleIndexError
            There is no such sample; also an ``IndexError``.
        EmptySampleError
            The pipeline gave None in test mode, or ``max_refetch`` times too often.
        """
        if not self._fully_initialized:
            warn_lazy(self, "__getitem__")
            self.full_init()
        return timed_sample(self._make, idx)

    def _make(self, idx: int, prepare: Callable[[int], Any] | None = None) -> Any:
        """Make a sample, or another one, by `prepare_data` or in another way."""
        asked, attempts = idx, 1 if self.test_mode else self.max_refetch + 1
        for attempt in range(1, attempts + 1):
            try:
                with seeded(idx):
                    sample = (prepare or self.prepare_data)(idx)
            except (CorruptFrameError, StorageError) as error:
                note_sample(error, self, idx)
                raise
            if sample is not None:
                return sample
            if isinstance(asked, SampleIndex):
                idx = substitute_index(asked, attempt, len(self))
            else:
                idx = self._rand_another()
        if self.test_mode:
            raise EmptySampleError(
                f"{self._NOTHING} for sample {asked} in test mode, where every "
                "sample counts: it must not return None"
            )
        raise EmptySampleError(
            f"{self._NOTHING} for sample {asked} and for {self.max_refetch} "
            "others in its place (max_refetch)"
        )

    def _rand_another(self) -> int:
        return int(np.random.randint(0, len(self)))  # noqa: NPY002  what workers seed

    # --- parts -------------------------------------------------------------------

    @force_full_init
    def get_subset(self, indices: int | Sequence[int] | npt.NDArray[np.integer]) -> Any:
        """Give a part of the samples as a dataset of its own.

        Parameters
        ----------
        indices : int, sequence of int or integer array
            See `gulpio2.torch.selection.select_samples`.

        Returns
        -------
        BaseDataset
            Of the same class, initialised; the two share nothing that changes.
        """
        subset = self._copy_without_samples()
        subset._take(self, select_samples(indices, len(self)))
        subset._fully_initialized = True
        return subset

    @force_full_init
    def get_subset_(
        self, indices: int | Sequence[int] | npt.NDArray[np.integer]
    ) -> None:
        """Keep a part of the samples only, see `get_subset`."""
        self._take(self, select_samples(indices, len(self)))

    def _take(self, source: BaseDataset, positions: npt.NDArray[np.int64]) -> None:
        if source.serialize_data:
            self.data_list = []
            self.data_bytes, self.data_address = take_packed(
                source.data_bytes, source.data_address, positions
            )
        else:
            self.data_list = [
                copy.deepcopy(source.data_list[position]) for position in positions
            ]

    def _copy_without_samples(self) -> BaseDataset:
        other = type(self).__new__(type(self))
        kept = self._NOT_COPIED & self.__dict__.keys()
        # What refers back to this one, as a method that is a transform does, follows.
        memo: dict[int, Any] = {id(self): other}
        memo |= {id(self.__dict__[name]): self.__dict__[name] for name in kept}
        for name, value in self.__dict__.items():
            other.__dict__[name] = copy.deepcopy(value, memo)
        return other


def _join(root: str, path: str) -> str:
    """Join as text: nothing is normalised, and an empty path gives ``root/``."""
    # An absolute path stays as it is; of a URL only this knows that it is absolute.
    return path if path.startswith(_URL_STARTS) else os.path.join(root, path)  # noqa: PTH118  # as text, see above
