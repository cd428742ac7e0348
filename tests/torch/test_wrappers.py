"""Wrappers: the interface, nested freely, and none of the known faults."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from gulpio2.torch import (
    BaseDataset,
    ClassBalancedDataset,
    ConcatDataset,
    MixtureDataset,
    RepeatDataset,
    SampleIndex,
)

CATEGORIES = [[0], [0], [0], [0], [1], [], [0, 1, 1], [2]]


class Toy(BaseDataset):
    def get_cat_ids(self, idx):
        return self.get_data_info(idx)["cats"]


@pytest.fixture
def make(tmp_path):
    """Make datasets of some samples, named after the dataset."""

    def make_dataset(name="a", cats=CATEGORIES, **options):
        path = tmp_path / f"{name}.json"
        samples = [
            {"img_path": f"{name}{number}", "cats": c} for number, c in enumerate(cats)
        ]
        content = {"metainfo": {"classes": ["x", "y"]}, "data_list": samples}
        path.write_text(json.dumps(content), "utf-8")
        return Toy(str(path), **options)

    return make_dataset


def names(dataset):
    return [dataset[index]["img_path"] for index in range(len(dataset))]


def test_a_sum_of_datasets_is_one_behind_the_other(make):
    first, second = make("a"), make("b", [[0], [1]])
    both = first + second
    assert isinstance(both, ConcatDataset)
    assert names(both) == [*names(first), "b0", "b1"]
    assert names(both + second)[-4:] == ["b0", "b1"] * 2
    with pytest.raises(TypeError, match="unsupported operand"):
        first + 3

    class OfOthers:
        def __radd__(self, other):
            return [other, self]

    of_others = OfOthers()
    assert first + of_others == [first, of_others]


# ---------------------------------------------------------------- all of them
WRAPPERS = {
    "concat": lambda inner, **options: ConcatDataset([inner], **options),
    "repeat": lambda inner, **options: RepeatDataset(inner, 2, **options),
    "balanced": lambda inner, **options: ClassBalancedDataset(inner, 0.3, **options),
    "mixture": lambda inner, **options: MixtureDataset([inner], [1], **options),
}
each_wrapper = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)


@each_wrapper
def test_metadata_is_complete_once_a_lazy_dataset_is_initialised(wrap, make):
    wrapped = wrap(make(lazy_init=True), lazy_init=True)
    assert wrapped.metainfo == {}
    wrapped.full_init()
    wrapped.full_init()
    assert wrapped.metainfo == {"classes": ["x", "y"]}
    wrapped.metainfo["classes"].append("z")
    assert wrapped.metainfo == {"classes": ["x", "y"]}


@each_wrapper
def test_a_lazy_one_is_initialised_on_demand_with_a_warning(wrap, make, caplog):
    assert wrap(make(lazy_init=True), lazy_init=True)[0]["img_path"][0] == "a"
    assert "is initialised by __getitem__" in caplog.text
    assert len(wrap(make(lazy_init=True), lazy_init=True)) >= 8
    info = wrap(make(lazy_init=True), lazy_init=True).get_data_info(-1)
    assert info["sample_idx"] in range(8)


@each_wrapper
def test_a_lazy_one_is_initialised_where_a_sample_is_looked_up(wrap, make, caplog):
    inner = make(lazy_init=True)
    dataset, place = wrap(inner, lazy_init=True).locate(0)
    assert dataset is inner
    assert dataset[place]["sample_idx"] in range(8)
    assert "is initialised by locate; call full_init() first" in caplog.text


@each_wrapper
def test_without_lazy_init_the_dataset_inside_is_initialised(wrap, make):
    inner = make(lazy_init=True)
    wrap(inner)
    assert inner._fully_initialized


@each_wrapper
def test_there_are_no_subsets(wrap, make):
    wrapped = wrap(make())
    for ask in (wrapped.get_subset, wrapped.get_subset_):
        with pytest.raises(NotImplementedError, match="take one of the dataset inside"):
            ask(1)


@each_wrapper
def test_indices_from_the_end_and_outside(wrap, make):
    wrapped = wrap(make())
    count = len(wrapped)
    assert wrapped[-1] == wrapped[count - 1]
    assert wrapped[np.int64(-count)] == wrapped[0]
    for index in (count, -count - 1, 100):
        for kind in (IndexError, ValueError):
            with pytest.raises(kind, match=f"sample {index} of a dataset of {count}"):
                wrapped[index]
            with pytest.raises(kind):
                wrapped.get_data_info(index)


@each_wrapper
def test_iterating_ends_after_the_last_sample(wrap, make):
    wrapped = wrap(make())
    assert [info["img_path"] for info in wrapped] == names(wrapped)


@each_wrapper
@pytest.mark.parametrize("inner", [3, "a", None, [1], object])
def test_what_is_no_dataset_is_refused(wrap, inner):
    with pytest.raises(TypeError, match="is no dataset"):
        wrap(inner)


@each_wrapper
def test_a_config_builds_the_dataset_inside(wrap, make):
    path = make().ann_file
    wrapped = wrap({"type": Toy, "ann_file": path, "indices": 3})
    assert set(names(wrapped)) == {"a0", "a1", "a2"}
    nested = {"type": "RepeatDataset", "times": 2, "dataset": make(indices=1)}
    assert set(names(wrap(nested))) == {"a0"}


@each_wrapper
@pytest.mark.parametrize("outer", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_nest(wrap, outer, make):
    inner = wrap(make())
    if isinstance(inner, MixtureDataset) and outer is WRAPPERS["balanced"]:
        with pytest.raises(ValueError, match="there is a MixtureDataset inside, whose"):
            outer(RepeatDataset(inner, 2))
        return
    wrapped = outer(inner)
    assert set(names(wrapped)) == set(names(inner))
    assert wrapped.get_cat_ids(0) == wrapped.get_data_info(0)["cats"]
    assert wrapped.metainfo == {"classes": ["x", "y"]}


@each_wrapper
def test_a_pickled_wrapper_gives_the_same(wrap, make):
    wrapped = wrap(make())
    assert names(pickle.loads(pickle.dumps(wrapped))) == names(wrapped)


@each_wrapper
def test_another_sample_is_fetched_from_the_dataset_inside(wrap, make):
    wrapped = wrap(
        make(pipeline=[lambda info: info if "2" in info["img_path"] else None])
    )
    assert {info["img_path"] for info in wrapped} == {"a2"}


@each_wrapper
def test_the_place_in_the_run_reaches_the_dataset_inside(wrap, make):
    keep = make(pipeline=[lambda info: info if "0" not in info["img_path"] else None])
    wrapped = RepeatDataset(wrap(keep), 1)
    first = next(i for i in range(8) if wrapped.get_data_info(i)["sample_idx"] == 0)
    index = SampleIndex(first, seed=5, epoch=0, position=0)
    assert len({wrapped[index]["img_path"] for _ in range(10)}) == 1


# ---------------------------------------------------------------- concat
def test_datasets_come_one_after_the_other(make):
    joined = ConcatDataset([make("a", [[0]] * 3), make("b", [[0]] * 5)])
    assert joined.cumulative_sizes == [3, 8]
    assert names(joined) == ["a0", "a1", "a2", "b0", "b1", "b2", "b3", "b4"]
    assert joined.get_data_info(3)["sample_idx"] == 0
    assert joined.get_data_info(-1)["sample_idx"] == 4


def test_an_empty_member_is_passed_over(make):
    joined = ConcatDataset([make("a", []), make("b", [[0]]), make("c", []), make("d")])
    assert names(joined)[:2] == ["b0", "d0"]


def test_a_lazy_and_an_initialised_dataset_can_be_joined(make):
    joined = ConcatDataset([make("a"), make("b", lazy_init=True)])
    assert len(joined) == 16
    later = ConcatDataset([make("a"), make("b", lazy_init=True)], lazy_init=True)
    assert later.metainfo == {"classes": ["x", "y"]}
    assert len(later) == 16


@pytest.mark.parametrize(
    ("first", "other", "error", "message"),
    [
        ({"a": 1}, {}, ValueError, "'a' is in dataset 0 and not in dataset 2"),
        ({}, {"a": 1}, ValueError, "'a' is in dataset 2 and not in dataset 0"),
        ({"a": 1}, {"a": "1"}, TypeError, "'a' is an int in dataset 0 and a str in"),
        ({"a": [1]}, {"a": (1,)}, TypeError, "'a' is a list in dataset 0 and a tuple"),
        ({"a": 1}, {"a": 2}, ValueError, "'a' of dataset 2 is not that of dataset 0"),
        ({"a": np.arange(3)}, {"a": np.arange(2)}, ValueError, "is not that of"),
        ({"a": [np.arange(3)]}, {"a": [np.ones(3)]}, ValueError, "is not that of"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ValueError, "is not that of"),
    ],
)
def test_metadata_that_differs_is_named_with_the_members(
    first, other, error, message, make
):
    members = [make(metainfo=first), make(metainfo=first), make(metainfo=other)]
    with pytest.raises(error, match=message):
        ConcatDataset(members, lazy_init=True)
    for keys in ("a", ["a"], ["b", "a"]):
        joined = ConcatDataset(members, ignore_keys=keys)
        assert repr(joined.metainfo.get("a")) == repr(first.get("a"))


@pytest.mark.torch
def test_tensors_of_metadata_are_compared_as_arrays_are(make):
    import torch

    one, two = ({"mean": torch.full((3,), float(n))} for n in (1, 2))
    ConcatDataset([make(metainfo=one), make(metainfo=one)])
    with pytest.raises(ValueError, match="'mean' of dataset 1"):
        ConcatDataset([make(metainfo=one), make(metainfo=two)])


def test_metadata_that_a_lazy_member_turns_out_to_have_is_compared_then(make):
    lazy = make(lazy_init=True)
    joined = ConcatDataset([make(metainfo={"classes": ["z"]}), lazy], lazy_init=True)
    with pytest.raises(ValueError, match="'classes' of dataset 1"):
        joined.full_init()


@pytest.mark.parametrize(
    "value",
    [
        np.arange(4),
        [np.arange(2), {"x": np.ones(1)}],
        {"y": (1, [2])},
        None,
        1.5,
        [np.nan],
        {"mean": np.array([1.0, np.nan])},
        np.array(["a", "b"]),
    ],
)
def test_equal_metadata_with_arrays_at_any_depth_agrees(value, make):
    assert len(ConcatDataset([make(metainfo={"a": value}) for _ in range(2)])) == 16


@pytest.mark.parametrize("keys", [3, ("a",), [1], {"a"}])
def test_keys_to_ignore_that_are_no_strings_are_refused(keys, make):
    with pytest.raises(TypeError, match="ignore_keys is"):
        ConcatDataset([make()], ignore_keys=keys)


def test_nothing_to_join_is_refused():
    with pytest.raises(ValueError, match="datasets is empty"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="expected a sequence"):
        ConcatDataset("ab")


# ---------------------------------------------------------------- repeat
def test_a_dataset_is_repeated(make):
    repeated = RepeatDataset(make(cats=[[0]] * 3), 3)
    assert len(repeated) == 9
    assert names(repeated) == ["a0", "a1", "a2"] * 3
    assert repeated.get_data_info(5)["sample_idx"] == 2


@pytest.mark.parametrize(
    ("times", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)]
)
def test_times_that_are_no_count_are_refused(times, error, make):
    with pytest.raises(error):
        RepeatDataset(make(), times)


def test_an_empty_dataset_repeated_is_empty(make):
    assert list(RepeatDataset(make(cats=[]), 3)) == []


# ---------------------------------------------------------------- balanced
@pytest.mark.parametrize(
    ("threshold", "indices"),
    [
        (0.1, [0, 1, 2, 3, 4, 5, 6, 7]),
        (0.3, [0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 7]),
        (2.0, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 6, 7, 7, 7, 7]),
    ],
)
def test_samples_of_rare_categories_come_several_times(threshold, indices, make):
    balanced = ClassBalancedDataset(make(), threshold)
    assert balanced.repeat_indices == indices
    assert names(balanced) == [f"a{index}" for index in indices]
    assert [balanced.get_cat_ids(i) for i in range(len(balanced))] == [
        CATEGORIES[index] for index in indices
    ]


def test_an_empty_dataset_balanced_is_empty(make):
    assert len(ClassBalancedDataset(make(cats=[]), 0.5)) == 0


def test_a_text_for_the_categories_of_a_sample_is_refused(make):
    with pytest.raises(TypeError, match="categories of an item are 'walk', expected a"):
        ClassBalancedDataset(make(cats=["walk", "run"]), 0.5)


# ---------------------------------------------------------------- mixture
def test_a_mixture_has_its_shares_and_goes_through_each_dataset(make):
    few, many = make("f", [[0]] * 5), make("m", [[0]] * 300)
    mixture = MixtureDataset([few, many], [1, 3], length=1024, seed=2)
    found = names(mixture)
    assert len(found) == 1024
    assert sum(name[0] == "f" for name in found) == 256
    of_many = [name for name in found if name[0] == "m"]
    assert len(set(of_many[:300])) == 300  # all before any again
    assert len(set(of_many[300:600])) == 300


def test_the_next_epoch_of_a_mixture_goes_on_where_the_last_one_ended(make):
    few, many = make("f", [[0]] * 5), make("m", [[0]] * 20)
    short = MixtureDataset([few, many], [1, 1], length=10, seed=2)
    long = MixtureDataset([few, many], [1, 1], length=30, seed=2)
    epochs = []
    for epoch in range(3):
        short.set_epoch(epoch)
        epochs += names(short)
    assert epochs == names(long)


def test_a_sample_of_a_run_is_of_the_epoch_that_the_run_is_in(make):
    mixture = MixtureDataset([make("f", [[0]] * 5), make("m", [[0]] * 20)], [1, 1])
    wanted = []
    for epoch in range(3):
        mixture.set_epoch(epoch)
        wanted.append(names(mixture))
    mixture.set_epoch(0)
    found = [
        [
            mixture[SampleIndex(index, seed=1, epoch=epoch, position=0)]["img_path"]
            for index in range(len(mixture))
        ]
        for epoch in range(3)
    ]
    assert found == wanted
    assert wanted[0] != wanted[1]


def test_what_is_known_of_a_sample_of_a_run_is_of_its_epoch_too(make):
    few, many = make("f", [[0]] * 5), make("m", [[1]] * 20)
    outer = RepeatDataset(MixtureDataset([few, many], [1, 1]), 2)
    for index in range(len(outer)):
        place = SampleIndex(index, seed=1, epoch=3, position=index)
        sample = outer[place]
        assert outer.get_data_info(place) == sample
        assert outer.get_cat_ids(place) == sample["cats"]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_workers_that_persist_hear_of_the_next_epoch(make):
    from torch.utils.data import DataLoader

    mixture = MixtureDataset([make("f", [[0]] * 5), make("m", [[0]] * 20)], [1, 1])
    loader = DataLoader(
        mixture, batch_size=None, num_workers=2, persistent_workers=True
    )
    for epoch in (0, 1, 4):
        mixture.set_epoch(epoch)
        assert [info["img_path"] for info in loader] == names(mixture)
    again = pickle.loads(pickle.dumps(mixture))
    assert again.epoch == 4
    assert names(again) == names(mixture)
    with pytest.raises(ValueError, match="epoch is -1"):
        mixture.set_epoch(-1)


def test_datasets_of_a_mixture_have_orders_of_their_own(make):
    mixture = MixtureDataset([make("a", [[0]] * 50), make("b", [[0]] * 50)], [1, 1])
    found = names(mixture)
    orders = [[name[1:] for name in found if name[0] == letter] for letter in "ab"]
    of_each = [order.epoch_length for order in mixture.order.orders]
    assert of_each == [50, 50]
    assert [sorted(order) == order for order in orders] == [False, False]
    both = min(map(len, orders))
    assert orders[0][:both] != orders[1][:both]


@pytest.mark.parametrize("most_kept", [1 << 20, 100], ids=["whole", "one by one"])
def test_a_mixture_that_is_shuffled_is_computed_as_a_whole(
    make, monkeypatch, most_kept
):
    from gulpio2.torch import mixture as module

    monkeypatch.setattr(module, "_MOST_KEPT", most_kept)
    mixed = MixtureDataset([make("f"), make("m")], [2, 1], length=2000, seed=3)
    in_order = []
    for epoch in range(3):
        mixed.set_epoch(epoch)
        in_order.append(names(mixed))
    asked = []
    of_order = mixed.order.source_indices

    def counting(epoch, positions):
        asked.append(len(positions))
        return of_order(epoch, positions)

    again = pickle.loads(pickle.dumps(mixed))
    monkeypatch.setattr(mixed.order, "source_indices", counting)
    places = np.random.default_rng(1).permutation(2000).tolist()
    for epoch in (0, 1, 2, 1, 2):  # of two epochs, as when batches are read ahead
        mixed.set_epoch(epoch)
        again.set_epoch(epoch)
        for place in places[:300]:
            assert mixed[place]["img_path"] == in_order[epoch][place]
            assert again[place]["img_path"] == in_order[epoch][place]
    if most_kept > 2000:
        assert sum(asked) <= 3 * 2000 + 30 * 256
        assert asked.count(2000) == 3
    else:
        assert asked[-100:] == [1] * 100


def test_a_long_mixture_is_computed_by_portions_where_batches_are_in_order(
    make, monkeypatch
):
    from gulpio2.torch import mixture as module

    monkeypatch.setattr(module, "_MOST_KEPT", 100)
    mixed = MixtureDataset([make("f"), make("m")], [2, 1], length=40_000, seed=3)
    asked = []
    of_order = mixed.order.source_indices

    def counting(epoch, positions):
        asked.append(len(positions))
        return of_order(epoch, positions)

    monkeypatch.setattr(mixed.order, "source_indices", counting)
    # As one of eight workers goes through it, whose batches are every eighth.
    for first in range(3 * 64, 40_000, 8 * 64):
        for place in range(first, first + 64):
            mixed.locate(place)
    assert len(asked) < 4 * 40_000 / (8 * 64)


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"seed": None}, TypeError, "seed is None, expected a whole number"),
        ({"length": 0}, ValueError, "length is 0, expected at least 1"),
        ({"length": 2.5}, TypeError, "length is 2.5, expected a whole number"),
        ({"weights": {1: 0.5}}, TypeError, "weights are {1: 0.5}, expected one for"),
        ({"weights": {1.0}}, TypeError, "weights are {1.0}, expected one for each"),
    ],
)
def test_arguments_of_a_mixture_are_named_where_they_are_wrong(
    make, arguments, error, told
):
    with pytest.raises(error, match=told):
        MixtureDataset(**{"datasets": [make()], "weights": [1], **arguments})
    with pytest.raises(ValueError, match=r"epoch is .*, expected below 2\*\*32"):
        MixtureDataset([make()], [1]).set_epoch(2**32)


def test_a_mixture_in_any_order_of_asking_is_the_same(make):
    mixture = MixtureDataset([make("f"), make("m")], [2, 1], length=700)
    in_order = names(mixture)
    asked = [mixture[index]["img_path"] for index in range(699, -1, -1)]
    assert asked[::-1] == in_order


def test_a_mixture_tells_of_classes_that_differ(make, caplog):
    few, same = make("f", [[0]] * 5), make("m", [[0]] * 20)
    MixtureDataset([few, same], [1, 1])
    assert not caplog.records
    named = make("n", [[0]] * 5, metainfo={"classes": ["y", "x"]})
    mixture = MixtureDataset([few, same, named], [1, 1, 1], lazy_init=True)
    assert not caplog.records
    mixture.full_init()
    (record,) = caplog.records
    assert "dataset 2 of a mixture are not those of dataset 0: ['y', 'x']" in (
        record.getMessage()
    )
