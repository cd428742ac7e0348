"""What an adapter tells of itself is asked for before the run, or refuses it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import (
    AdapterContractError,
    DuplicateIdError,
    IngestSettingError,
)
from gulpio2.testing import FrameAdapter


def broken(name, answer):
    """Give an adapter of which one method gives this, or raises it."""

    def method(self):
        del self
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = property(method) if name == "metainfo" else method
    return type("Broken", (FrameAdapter,), {name: made})(num_items=2)


@pytest.mark.parametrize(
    "name", ["__len__", "item_ids", "label_mapping", "describe", "metainfo"]
)
def test_an_adapter_that_fails_to_tell_is_refused_before_anything_is_stored(
    name, tmp_path
):
    adapter = broken(name, RuntimeError("no table"))
    with pytest.raises(
        AdapterContractError,
        match=rf"{name}.* of the adapter Broken failed: RuntimeError: no table \(.*:\d",
    ):
        GulpIngestor(adapter, tmp_path, 2, 1).run()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_one_that_can_be_counted_only_so_often_is_refused_as_well(tmp_path, calls):
    class Ending(FrameAdapter):
        def __len__(self):
            nonlocal calls
            calls -= 1
            if calls < 0:
                raise OSError("the list is gone")
            return 2

    ingestor = GulpIngestor(Ending(num_items=2), tmp_path, 2, 1)
    if calls == 3:  # as often as a run asks
        assert ingestor.run().items == 2
        return
    with pytest.raises(AdapterContractError, match="failed: OSError: the list is gone"):
        ingestor.run()
    assert not any(tmp_path.iterdir())


def test_an_error_of_the_package_comes_through(tmp_path):
    adapter = broken("label_mapping", IngestSettingError("give a table"))
    with pytest.raises(IngestSettingError, match=r"^give a table$"):
        GulpIngestor(adapter, tmp_path, 2, 1).run()


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("label_mapping", ["run"], "gives a list; it must give a dict"),
        ("label_mapping", {"run": "1"}, "gives '1' for 'run'"),
        ("label_mapping", {"run": True}, "gives True for 'run'"),
        ("label_mapping", {"run": -1}, "gives -1 for 'run'"),
        ("label_mapping", {"a": 0, "b": 0}, "gives 0 for 'b' and for 'a'"),
        ("describe", {"x": {1, 2}}, r"cannot be stored as JSON: .* is a set"),
        ("metainfo", {"classes": {"run"}}, r"metainfo .* is a set \(at `\$\.classes`"),
        ("metainfo", ["run"], "it must be a dict"),
        ("item_ids", 3, "failed: TypeError"),
        ("item_ids", ["a"], "lists 1 id for 2 items"),
    ],
)
def test_an_answer_that_cannot_be_stored_is_refused(name, answer, message, tmp_path):
    with pytest.raises(AdapterContractError, match=message):
        GulpIngestor(broken(name, answer), tmp_path, 2, 1).run()
    assert not any(tmp_path.iterdir())


class Telling(FrameAdapter):
    """Tells in the types of numpy."""

    metainfo: ClassVar = {"classes": ("run", "jump"), "version": np.int64(3)}

    def label_mapping(self):
        return {"run": np.int64(0), "jump": 1}


def test_what_it_tells_is_stored_as_json_has_it(tmp_path):
    GulpIngestor(Telling(num_items=2), tmp_path, 2, 1).run()
    with GulpDirectory(tmp_path) as directory:
        assert directory.metainfo == {"classes": ["run", "jump"], "version": 3}
        assert directory._load_label_dict() == {"run": 0, "jump": 1}


class Prefixed(FrameAdapter):
    """Gives other ids than the adapter that it is made of lists."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"train/{item['id']}"}


class Limited(FrameAdapter):
    """Has fewer items than the adapter that it is made of lists ids for."""

    def __len__(self):
        return 1


@pytest.mark.parametrize(
    ("cls", "ids"), [(Prefixed, ["train/item0", "train/item1"]), (Limited, ["item0"])]
)
def test_a_list_of_ids_is_not_believed_where_a_subclass_gives_other_items(
    cls, ids, tmp_path
):
    GulpIngestor(cls(num_items=2), tmp_path, 2, 1).run()
    assert list(GulpDirectory(tmp_path).merged_meta_dict) == ids


def test_a_subclass_that_lists_its_own_ids_is_held_to_them(tmp_path):
    class Listing(Prefixed):
        def item_ids(self):
            return ["train/item0", "train/item1"]

    ingestor = GulpIngestor(Listing(num_items=2), tmp_path, 1, 1)
    ingestor.run()
    with pytest.raises(DuplicateIdError):
        ingestor.run()


def test_all_is_asked_for_once_a_run(tmp_path):
    asked = []

    class Counting(FrameAdapter):
        def label_mapping(self):
            asked.append("labels")

        def describe(self):
            asked.append("arguments")
            return {}

    GulpIngestor(Counting(num_items=4), tmp_path, 2, 1).run()
    assert sorted(asked) == ["arguments", "labels"]
