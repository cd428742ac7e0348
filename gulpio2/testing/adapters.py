"""Prove that an adapter does what the ingest relies on.

Subclass `AdapterTests` in a test module and give it a fixture ``adapter`` that makes a
miniature of the dataset.
"""

# ruff: noqa: S101 - these are tests, which pytest runs for whoever subclasses them

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.format.metadata import plain_metadata
from gulpio2.frame_sources import stored_frames

if TYPE_CHECKING:
    from gulpio2.types import Adapter

__all__ = ["AdapterTests"]

_SLICES = [
    slice(None),
    slice(0, 1),
    slice(1, None),
    slice(-1, None),
    slice(None, None, 2),
    slice(0, 0),
    slice(1, 10**9),
]


class AdapterTests:
    """Tests of one adapter, which a fixture called ``adapter`` makes.

    Every test reads the adapter only. The adapter should have at least two items, and
    all its sources must be readable.

    Examples
    --------
    .. code-block:: python

        class TestMyAdapter(AdapterTests):
            @pytest.fixture
            def adapter(self, tmp_path):
                ...  # write some small files below tmp_path
                return MyAdapter(tmp_path)
    """

    def test_it_yields_as_many_items_as_it_says(self, adapter: Adapter) -> None:
        """``len`` is right, so that every item is in a chunk."""
        assert sum(1 for _ in adapter.iter_data()) == len(adapter)

    def test_an_item_has_meta_frames_and_id(self, adapter: Adapter) -> None:
        """The keys are there, and have values of the right kind."""
        for item in adapter.iter_data():
            assert {"meta", "frames", "id"} <= item.keys()
            assert isinstance(item["meta"], dict), item["id"]
            assert isinstance(item["id"], str | int | np.integer), item["id"]

    def test_ids_are_unique(self, adapter: Adapter) -> None:
        """No two items have one id; ``7`` and ``"7"`` are the same one."""
        counts = Counter(str(item["id"]) for item in adapter.iter_data())
        assert [id_ for id_, count in counts.items() if count > 1] == []

    def test_metadata_is_what_json_holds(self, adapter: Adapter) -> None:
        """The map is JSON; numpy values are converted on the way."""
        for item in adapter.iter_data():
            assert _as_json(item["meta"], f"the metadata of item {item['id']!r}")

    def test_a_slice_gives_what_the_slice_of_all_items_has(
        self, adapter: Adapter
    ) -> None:
        """Chunks are slices, and together they are the dataset."""
        everything = _items(adapter, None)
        for slice_element in _SLICES:
            assert _items(adapter, slice_element) == everything[slice_element]

    def test_it_can_be_iterated_again(self, adapter: Adapter) -> None:
        """A worker makes several chunks with one copy of the adapter."""
        assert _items(adapter, None) == _items(adapter, None)

    def test_metadata_that_was_changed_does_not_come_back(
        self, adapter: Adapter
    ) -> None:
        """What is done with one item's metadata does not reach the next run."""
        before = _items(adapter, None)
        for item in adapter.iter_data():
            item["meta"].clear()
        assert _items(adapter, None) == before

    def test_a_pickled_copy_gives_the_same(self, adapter: Adapter) -> None:
        """Worker processes get a copy."""
        copy = pickle.loads(pickle.dumps(adapter))  # noqa: S301 - pickled right here
        assert len(copy) == len(adapter)
        assert _items(copy, None) == _items(adapter, None)
        assert _hook(copy, "describe") == _hook(adapter, "describe")

    def test_listed_ids_are_those_of_the_items(self, adapter: Adapter) -> None:
        """``item_ids``, where there is one, is what `iter_data` yields."""
        listed = _hook(adapter, "item_ids")
        assert listed is None or list(listed) == [i["id"] for i in adapter.iter_data()]

    def test_sources_are_named(self, adapter: Adapter) -> None:
        """``item_source``, where there is one, answers for every position."""
        source = getattr(adapter, "item_source", lambda position: None)
        for position in range(len(adapter)):
            told = source(position)
            assert told is None or isinstance(told, str), (
                f"item_source({position}) gives {told!r}, which is neither a text nor "
                "None"
            )

    def test_each_label_has_an_index_of_its_own(self, adapter: Adapter) -> None:
        """``label_mapping``, where there is one, is one to one."""
        mapping = _hook(adapter, "label_mapping")
        if mapping is None:
            return
        assert all(isinstance(label, str) for label in mapping)
        assert all(isinstance(index, int) for index in mapping.values())
        assert min(mapping.values(), default=0) >= 0
        assert len(set(mapping.values())) == len(mapping)

    def test_its_description_is_json(self, adapter: Adapter) -> None:
        """``describe`` and ``metainfo``, where they are, go into the manifest."""
        description = _hook(adapter, "describe")
        assert description is None or isinstance(json.dumps(description), str)
        metainfo = getattr(adapter, "metainfo", None)
        assert metainfo is None or isinstance(metainfo, dict)
        assert _as_json(metainfo or {}, "metainfo")

    def test_every_item_has_frames_and_gives_them_again(self, adapter: Adapter) -> None:
        """A chunk that failed is made anew, from the same items."""
        for item in adapter.iter_data():
            assert sum(1 for _ in item["frames"]) > 0, f"{item['id']!r} has no frames"
        for item in adapter.iter_data(slice(0, 1)):
            assert next(iter(item["frames"]), None) is not None

    def test_every_frame_can_be_stored(self, adapter: Adapter) -> None:
        """Of a type and a shape that the store takes."""
        for item in adapter.iter_data():
            for number, frame in enumerate(stored_frames(item["frames"])):
                assert encode_frame(frame.image, EncoderSettings()), (
                    f"{item['id']!r}, frame {number}"
                )


def _items(adapter: Adapter, slice_element: slice | None) -> list[tuple[Any, str]]:
    """Give ids and metadata in a form that compares, even with NaN in it."""
    return [
        (item["id"], _as_json(item["meta"]))
        for item in adapter.iter_data(slice_element)
    ]


def _as_json(meta: dict[Any, Any], what: str = "the metadata") -> str:
    """Give what the ingest stores, which refuses the same."""
    return json.dumps(plain_metadata(meta, what))


def _hook(adapter: Adapter, name: str) -> Any:
    """Call an optional method; None where the adapter has none."""
    method = getattr(adapter, name, None)
    return None if method is None else method()
