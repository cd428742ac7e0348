"""The contract, and what the base class does for every adapter."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter, Custom20BNAdapterMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Adapter


class Minimal(AbstractDatasetAdapter):
    """What 0.0.4 asked for, and not a line more."""

    def __init__(self, folder, output_folder, size=-1, *, flag=False, **others):
        self.folder = folder  # and no super().__init__()

    def __len__(self):
        return 1

    def iter_data(self, slice_element=None):
        yield {"meta": {}, "frames": [], "id": 0}


class Typed(AbstractDatasetAdapter):
    """What a program with types of its own declares; mypy looks at it, as it does."""

    def __len__(self) -> int:
        return 1

    def iter_data(self, slice_element: slice | None = None) -> Iterator[dict[str, Any]]:
        yield {"meta": {}, "frames": [np.zeros((8, 8, 3), np.uint8)], "id": 0}


def test_items_may_be_declared_as_plain_dicts(tmp_path):
    adapter: Adapter = Typed()
    assert GulpIngestor(adapter, tmp_path, 1, 1).run().items == 1


class WithoutConstructor(AbstractDatasetAdapter):
    """An adapter that takes nothing."""

    def __len__(self):
        return 0

    def iter_data(self, slice_element=None):
        yield from ()


class Derived(Minimal):
    """A constructor of its own, over another one."""

    def __init__(self, name):
        super().__init__(f"/data/{name}", "out")


@dataclass(frozen=True)
class AsDataclass(AbstractDatasetAdapter):
    """An adapter whose constructor is generated, and that cannot be changed."""

    folder: str
    size: int = 3

    def __len__(self):
        return 0

    def iter_data(self, slice_element=None):
        yield from ()


@dataclass
class WithMadeDefaults(AbstractDatasetAdapter):
    """An adapter with a default that is made for each."""

    folder: str = "in"
    endings: list[str] = field(default_factory=lambda: [".mp4"])

    def __len__(self):
        return 0

    def iter_data(self, slice_element=None):
        yield from ()


class MixinLast(AbstractDatasetAdapter, Custom20BNAdapterMixin):
    """The order of bases that clients of 0.0.4 write."""

    def __init__(self):
        self.labels2idx = {"a": 0}

    def __len__(self):
        return 0

    def iter_data(self, slice_element=None):
        yield from ()


class NeedsAnOpenFile(AbstractDatasetAdapter):
    """What it is given cannot be pickled, but it does not keep it."""

    def __init__(self, file):
        self.lines = list(file)

    def __len__(self):
        return len(self.lines)

    def iter_data(self, slice_element=None):
        yield from ()


def test_both_methods_must_be_there():
    class Half(AbstractDatasetAdapter):
        def __len__(self):
            return 0

    with pytest.raises(TypeError, match="iter_data"):
        Half()  # type: ignore[abstract]


def test_the_hooks_have_defaults():
    adapter = Minimal("in", "out")
    assert adapter.item_ids() is None
    assert adapter.item_source(0) is None
    assert adapter.label_mapping() is None


def test_the_arguments_are_described_without_the_output_folder():
    adapter = Minimal(Path("in"), output_folder="out", flag=True, more=(1, 2))
    assert adapter.describe() == {
        "folder": "in",
        "size": -1,
        "flag": True,
        "more": [1, 2],
    }


def test_the_outer_constructor_is_described():
    assert Derived("x").describe() == {"name": "x"}


def test_a_dataclass_is_described():
    assert AsDataclass("in").describe() == {"folder": "in", "size": 3}


def test_a_default_that_a_dataclass_makes_is_left_out():
    """It may be another one each time, and the run would not be the same."""
    assert WithMadeDefaults().describe() == {"folder": "in"}
    given = WithMadeDefaults(endings=[".ogg"]).describe()
    assert given == {"folder": "in", "endings": [".ogg"]}


@pytest.mark.parametrize(
    "adapter", [Minimal("in", "out", 4), Derived("x"), AsDataclass("in", size=5)]
)
def test_a_copy_is_described_alike(adapter):
    expected = adapter.describe()
    assert pickle.loads(pickle.dumps(adapter)).describe() == expected
    assert copy.copy(adapter).describe() == expected
    assert copy.deepcopy(adapter).describe() == expected


def test_an_argument_that_cannot_be_pickled_does_not_stay(tmp_path):
    (tmp_path / "list.txt").write_text("a\n")
    with (tmp_path / "list.txt").open() as file:
        adapter = NeedsAnOpenFile(file)
    assert pickle.loads(pickle.dumps(adapter)).lines == ["a\n"]


def test_changing_a_description_does_not_change_the_next_one():
    adapter = Minimal("in", "out")
    adapter.describe().clear()
    assert adapter.describe()["folder"] == "in"


def test_an_adapter_without_a_constructor_takes_no_arguments():
    assert WithoutConstructor().describe() == {}
    with pytest.raises(TypeError, match=r"WithoutConstructor\(\) takes no arguments"):
        WithoutConstructor(1)


def test_wrong_arguments_are_refused_by_the_constructor_itself():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Minimal("in")  # type: ignore[call-arg]


def test_the_signature_is_that_of_the_constructor():
    names = list(inspect.signature(Minimal).parameters)
    assert names == ["folder", "output_folder", "size", "flag", "others"]
    assert list(inspect.signature(WithoutConstructor).parameters) == []


def test_labels_of_a_mixin_that_comes_last_are_found():
    assert MixinLast().label_mapping() == {"a": 0}
