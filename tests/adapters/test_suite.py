"""The suite for adapters finds what is wrong with one."""

from __future__ import annotations

import pickle
import subprocess

import numpy as np
import pytest

from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.errors import GulpError
from gulpio2.testing.adapters import AdapterTests

FRAME = np.zeros((8, 8), np.uint8)


class Good(AbstractDatasetAdapter):
    """An adapter of three items that keeps the contract."""

    def __init__(self, **changes):
        self.changes = changes
        self.meta = [{"number": number, "np": np.int64(1)} for number in range(3)]

    def __len__(self):
        return self.changes.get("length", 3)

    def item(self, number):
        meta = self.meta[number]
        if "shared" not in self.changes:
            meta = meta | self.changes.get("meta", {})
        return {
            "meta": meta,
            "frames": [self.changes.get("frame", FRAME)]
            * self.changes.get("num_frames", 1),
            "id": self.changes.get("ids", range(3))[number],
        }

    def iter_data(self, slice_element=None):
        if "deaf" in self.changes:
            slice_element = None
        for number in range(3)[slice_element or slice(None)]:
            item = self.item(number)
            item.pop(self.changes.get("without"), None)
            yield item
        if "once" in self.changes:
            self.changes["ids"] = ["other"] * 3

    def item_ids(self):
        return self.changes.get("item_ids")

    def item_source(self, position):
        return self.changes.get("source")

    def label_mapping(self):
        return self.changes.get("labels")

    @property
    def metainfo(self):
        return self.changes.get("metainfo")

    def describe(self):
        return self.changes.get("description", {})


class TestGood(AdapterTests):
    """The suite passes."""

    @pytest.fixture
    def adapter(self):
        meta = {"x": np.float32(1), np.int64(1): np.longdouble(1), "array": [FRAME]}
        return Good(item_ids=[0, 1, 2], labels={"a": 0}, meta=meta)


@pytest.mark.parametrize(
    ("changes", "test"),
    [
        ({"length": 4}, "it_yields_as_many_items_as_it_says"),
        ({"without": "frames"}, "an_item_has_meta_frames_and_id"),
        ({"ids": [(1,), 2, 3]}, "an_item_has_meta_frames_and_id"),
        ({"ids": [7, "7", 8]}, "ids_are_unique"),
        ({"meta": {"x": object()}}, "metadata_is_what_json_holds"),
        ({"meta": {1: 2, "1": 3}}, "metadata_is_what_json_holds"),
        ({"meta": {"x": np.datetime64(5, "ns")}}, "metadata_is_what_json_holds"),
        ({"deaf": True}, "a_slice_gives_what_the_slice_of_all_items_has"),
        ({"once": True}, "it_can_be_iterated_again"),
        ({"shared": True}, "metadata_that_was_changed_does_not_come_back"),
        ({"function": lambda: None}, "a_pickled_copy_gives_the_same"),
        ({"item_ids": [0, 1]}, "listed_ids_are_those_of_the_items"),
        ({"source": 5}, "sources_are_named"),
        ({"labels": {"a": 0, "b": 0}}, "each_label_has_an_index_of_its_own"),
        ({"labels": {1: 0}}, "each_label_has_an_index_of_its_own"),
        ({"labels": {"a": -1}}, "each_label_has_an_index_of_its_own"),
        ({"description": {"x": object()}}, "its_description_is_json"),
        ({"metainfo": {"x": object()}}, "its_description_is_json"),
        ({"frame": FRAME.astype(np.float32)}, "every_frame_can_be_stored"),
        ({"num_frames": 0}, "every_item_has_frames_and_gives_them_again"),
    ],
)
def test_what_is_wrong_is_found_by_the_test_for_it(changes, test):
    run = getattr(AdapterTests(), f"test_{test}")
    found = AssertionError, TypeError, AttributeError, pickle.PickleError, GulpError
    with pytest.raises(found):
        run(Good(**changes))


def test_an_adapter_without_hooks_passes():
    class Bare:
        def __len__(self):
            return 1

        def iter_data(self, slice_element=None):
            for _ in range(1)[slice_element or slice(None)]:
                yield {"meta": {}, "frames": [FRAME], "id": 0}

    suite, failed = AdapterTests(), []
    for test in (
        suite.test_listed_ids_are_those_of_the_items,
        suite.test_sources_are_named,
        suite.test_each_label_has_an_index_of_its_own,
        suite.test_its_description_is_json,
    ):
        try:
            test(Bare())
        except (AssertionError, TypeError, AttributeError) as error:
            failed.append((test.__name__, error))
    assert not failed


def test_what_a_test_of_the_suite_compared_is_shown(tmp_path, python):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n"
        "from gulpio2.testing import FrameAdapter\n"
        "from gulpio2.testing.adapters import AdapterTests\n"
        "class More(FrameAdapter):\n"
        "    def __len__(self):\n"
        "        return 5\n"
        "    def iter_data(self, slice_element=None):\n"
        "        return super().iter_data(slice(0, 3))\n"
        "class TestMore(AdapterTests):\n"
        "    @pytest.fixture\n"
        "    def adapter(self):\n"
        "        return More()\n"
    )
    words = [python, "-m", "pytest", "-q", "-k", "as_many_items", "test_mine.py"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "assert 3 == 5" in done.stdout
