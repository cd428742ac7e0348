"""The base dataset: what the interface asks for, and none of its known faults."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from typing import Any

import numpy as np
import pytest

from gulpio2.torch import (
    AnnotationError,
    BaseDataset,
    EmptySampleError,
    SampleIndex,
    SampleIndexError,
    force_full_init,
)

SAMPLES = [{"img_path": f"{number}.jpg", "boxes": [[number]]} for number in range(5)]


@pytest.fixture
def ann_file(tmp_path):
    path = tmp_path / "train.json"
    content = {"metainfo": {"classes": ["cat"]}, "data_list": SAMPLES}
    path.write_text(json.dumps(content), "utf-8")
    return str(path)


@pytest.fixture(params=[True, False], ids=["serialized", "plain"])
def make(request, ann_file):
    """Make datasets that are serialised, and ones that are not."""

    def make_dataset(kind=BaseDataset, **options):
        options.setdefault("serialize_data", request.param)
        return kind(ann_file, **options)

    return make_dataset


def paths(dataset):
    return [dataset[index]["img_path"] for index in range(len(dataset))]


# ---------------------------------------------------------------- construction
def test_the_arguments_of_the_caller_are_not_changed(make):
    metainfo = {"classes": ["dog"]}
    prefix = {"img_path": "p"}
    config = {"least": [1]}
    dataset = make(
        metainfo=metainfo, data_prefix=prefix, data_root="r", filter_cfg=config
    )
    dataset.filter_cfg["least"].append(2)
    dataset.metainfo["classes"].append("cow")
    assert (metainfo, prefix, config) == (
        {"classes": ["dog"]},
        {"img_path": "p"},
        {"least": [1]},
    )
    assert BaseDataset("x.json", lazy_init=True).data_prefix == {"img_path": ""}


@pytest.mark.parametrize(
    ("root", "prefix", "joined"),
    [
        ("r", "", "r/"),
        ("r", "p", "r/p"),
        ("r", "/abs", "/abs"),
        ("r", "s3://bucket/p", "s3://bucket/p"),
        ("r", "https://host/p", "https://host/p"),
        ("", "p", "p"),
        (None, "", ""),
        ("s3://bucket", "p", "s3://bucket/p"),
        ("r/./x/", "../p", "r/./x/../p"),
    ],
)
def test_a_prefix_is_joined_to_the_root(root, prefix, joined):
    dataset = BaseDataset(
        data_root=root, data_prefix={"img_path": prefix}, lazy_init=True
    )
    assert dataset.data_prefix == {"img_path": joined}


@pytest.mark.parametrize(
    ("root", "file", "joined"),
    [
        ("r", "a.json", "r/a.json"),
        ("r", "/a.json", "/a.json"),
        ("r", "http://host/a.json", "http://host/a.json"),
        ("", "a.json", "a.json"),
        ("r", "", ""),
        ("r", None, ""),
        (None, None, ""),
    ],
)
def test_the_annotation_file_is_joined_to_the_root(root, file, joined):
    assert BaseDataset(file, data_root=root, lazy_init=True).ann_file == joined


@pytest.mark.parametrize("prefix", [{"img_path": None}, {"img_path": ["p"]}, None, "p"])
def test_prefixes_that_are_no_strings_are_refused(prefix):
    with pytest.raises(TypeError, match="data_prefix"):
        BaseDataset(data_prefix=prefix, lazy_init=True)


def test_a_key_of_the_prefixes_that_samples_lack_is_named_with_both(make):
    with pytest.raises(AnnotationError, match="has 'lidar', and an entry of"):
        make(data_prefix={"lidar": "x"})
    assert issubclass(AnnotationError, AssertionError)


def test_no_annotation_file_fails_only_when_it_is_needed():
    dataset = BaseDataset(lazy_init=True)
    with pytest.raises(TypeError, match="unsupported format of annotation file"):
        dataset.full_init()


def test_parsing_an_entry_twice_joins_its_prefix_once(make):
    dataset = make(data_prefix={"img_path": "p"})
    raw = {"img_path": "a.jpg"}
    once = dataset.parse_data_info(raw)
    assert once == dataset.parse_data_info(raw) == {"img_path": "p/a.jpg"}
    assert raw == {"img_path": "a.jpg"}


@pytest.mark.parametrize("parsed", [3, [3], [{}, None], None, "ab"])
def test_an_entry_that_becomes_no_dict_is_refused(parsed, make):
    class Odd(BaseDataset):
        def parse_data_info(self, raw_data_info):
            return parsed

    with pytest.raises(TypeError, match="must give a dict or a list of dicts"):
        make(Odd)


def test_an_entry_may_become_several_samples_or_none(make):
    class Several(BaseDataset):
        def parse_data_info(self, raw_data_info):
            count = raw_data_info["boxes"][0][0]
            return [dict(raw_data_info, part=part) for part in range(count)]

    dataset = make(Several)
    assert [dataset[index]["part"] for index in range(len(dataset))] == [
        *(0,),
        *(0, 1),
        *(0, 1, 2),
        *(0, 1, 2, 3),
    ]


# ---------------------------------------------------------------- metainfo
def test_the_constructor_wins_over_the_class_and_the_class_over_the_file(make):
    class Named(BaseDataset):
        METAINFO = {"classes": ["class"], "task": "class"}

    assert make().metainfo == {"classes": ["cat"]}
    assert make(Named).metainfo == {"classes": ["class"], "task": "class"}
    assert make(Named, metainfo={"task": 1}).metainfo == {
        "classes": ["class"],
        "task": 1,
    }
    assert make(Named, metainfo={"classes": ["mine"], "more": {"a": 1}}).metainfo == {
        "classes": ["mine"],
        "task": "class",
        "more": {"a": 1},
    }
    assert Named.METAINFO == {"classes": ["class"], "task": "class"}


def test_metainfo_is_a_deep_copy_each_time(make):
    dataset = make()
    dataset.metainfo["classes"].append("dog")
    assert dataset.metainfo == {"classes": ["cat"]}


def test_changing_the_class_later_does_not_change_its_datasets(make):
    class Named(BaseDataset):
        METAINFO = {"names": ["a"]}

    dataset = make(Named)
    Named.METAINFO["names"].append("b")
    assert dataset.metainfo["names"] == ["a"]


def test_a_lazy_dataset_has_no_metadata_of_the_file_yet(make):
    dataset = make(lazy_init=True)
    assert dataset.metainfo == {}
    dataset.full_init()
    assert dataset.metainfo == {"classes": ["cat"]}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x\n y \n\nz", ["x", " y ", "", "z"]),
        ("x\r\ny\r\n", ["x", "y"]),
        ("\ufeffx\r\ny\r\n", ["x", "y"]),
        ("one\x0ctwo\u2028three\n", ["one\x0ctwo\u2028three"]),
        ("", []),
    ],
)
def test_a_string_that_names_a_text_file_becomes_its_lines(text, lines, tmp_path):
    path = tmp_path / "classes.txt"
    path.write_bytes(text.encode())
    dataset = BaseDataset(metainfo={"classes": str(path)}, lazy_init=True)
    assert dataset.metainfo == {"classes": lines}


@pytest.mark.parametrize("value", ["no such file", "", "a\0b", "."])
def test_any_other_string_stays_and_is_warned_of(value, caplog):
    dataset = BaseDataset(metainfo={"task": value}, lazy_init=True)
    assert dataset.metainfo == {"task": value}
    assert "which is no text file" in caplog.text


def test_a_file_that_is_no_text_stays_a_string(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"\xff\xfe\x00")
    dataset = BaseDataset(metainfo={"init": str(path)}, lazy_init=True)
    assert dataset.metainfo == {"init": str(path)}


class Config:
    """A config object: the methods of a mapping, and no mapping."""

    def __init__(self, **values):
        self._values = values

    def keys(self):
        return self._values.keys()

    def __getitem__(self, key):
        return self._values[key]


def test_a_config_object_is_taken_for_a_mapping():
    given: Any = Config(task=3)
    dataset = BaseDataset(metainfo=given, lazy_init=True)
    assert dataset.metainfo == {"task": 3}


@pytest.mark.parametrize("metainfo", [[1], "text", 3])
def test_metainfo_that_is_no_mapping_is_refused(metainfo):
    with pytest.raises(TypeError, match="expected a mapping or None"):
        BaseDataset(metainfo=metainfo, lazy_init=True)


# ---------------------------------------------------------------- initialisation
def test_initialising_twice_loads_once(make):
    class Counting(BaseDataset):
        loads = 0

        def load_data_list(self):
            self.loads += 1
            return super().load_data_list()

    dataset = make(Counting, lazy_init=True)
    assert not dataset._fully_initialized
    dataset.full_init()
    dataset.full_init()
    assert dataset._fully_initialized
    assert dataset.loads == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda dataset: dataset[0],
        len,
        lambda dataset: dataset.get_data_info(0),
        lambda dataset: dataset.get_subset(1),
        lambda dataset: dataset.get_subset_(1),
        lambda dataset: dataset.prepare_data(0),
    ],
    ids=[
        "getitem",
        "len",
        "get_data_info",
        "get_subset",
        "get_subset_",
        "prepare_data",
    ],
)
def test_using_a_lazy_dataset_initialises_it_with_a_warning(use, make, caplog):
    dataset = make(lazy_init=True)
    use(dataset)
    assert dataset._fully_initialized
    assert "call full_init() first" in caplog.text


def test_forcing_an_object_that_cannot_be_initialised_is_an_attribute_error():
    class Other:
        @force_full_init
        def use(self):
            return 1

    with pytest.raises(AttributeError, match="Other has no full_init, which use needs"):
        Other().use()


def test_filtering_comes_before_the_choice_of_indices(make):
    class Filtered(BaseDataset):
        def filter_data(self):
            least = self.filter_cfg["least"]
            return [info for info in self.data_list if info["boxes"][0][0] >= least]

    dataset = make(Filtered, filter_cfg={"least": 3}, indices=[1])
    assert paths(dataset) == ["4.jpg"]


# ---------------------------------------------------------------- access
def test_an_info_is_a_new_dict_each_time(make):
    dataset = make()
    dataset.get_data_info(1)["boxes"][0].append(9)
    assert dataset.get_data_info(1) == {**SAMPLES[1], "sample_idx": 1}


@pytest.mark.parametrize("wrong", ["a", 1.5, None, [0]])
def test_what_is_no_position_of_a_sample_is_named(wrong, make):
    with pytest.raises(TypeError, match=r"cannot look up sample .*; give its position"):
        make()[wrong]


@pytest.mark.parametrize(
    ("index", "position"),
    [(0, 0), (4, 4), (-1, 4), (-5, 0), (np.int64(3), 3), (np.int64(-1), 4), (True, 1)],
)
def test_a_sample_knows_its_position_as_a_plain_int(index, position, make):
    info = make().get_data_info(index)
    assert info["sample_idx"] == position
    assert type(info["sample_idx"]) is int


@pytest.mark.parametrize("index", [5, -6, 100])
def test_an_index_outside_is_an_index_error(index, make):
    dataset = make()
    for ask in (dataset.get_data_info, dataset.__getitem__):
        with pytest.raises(SampleIndexError, match=f"sample {index} of a dataset of 5"):
            ask(index)
    assert issubclass(SampleIndexError, IndexError)
    assert issubclass(SampleIndexError, ValueError)


def test_iterating_ends_and_an_index_error_of_a_transform_does_not_end_it(make):
    assert [info["img_path"] for info in make()] == [s["img_path"] for s in SAMPLES]

    def fail(info):
        raise IndexError("in the transform")

    with pytest.raises(IndexError, match="in the transform"):
        list(make(pipeline=[fail]))


def test_a_pipeline_that_gives_none_is_asked_for_others(make):
    asked = []

    def drop(info):
        asked.append(info["sample_idx"])

    dataset = make(pipeline=[drop], max_refetch=4)
    with pytest.raises(EmptySampleError, match="sample 2 and for 4 others in its"):
        dataset[2]
    assert len(asked) == 5
    assert asked[0] == 2
    asked.clear()
    with pytest.raises(EmptySampleError):
        make(pipeline=[drop], max_refetch=0)[2]
    assert asked == [2]


@pytest.mark.parametrize(
    ("limit", "error"), [(-1, ValueError), (1.5, TypeError), ("9", TypeError)]
)
def test_a_limit_of_attempts_that_is_none_is_refused(make, limit, error):
    with pytest.raises(error, match=f"max_refetch is '?{limit}'?, expected"):
        make(max_refetch=limit)


def test_a_replaced_sample_says_which_one_it_is(make):
    dataset = make(pipeline=[lambda info: info if info["sample_idx"] == 3 else None])
    assert dataset[0]["sample_idx"] == 3


def test_in_test_mode_none_is_an_error_at_once(make):
    asked: list[Any] = []
    dataset = make(pipeline=[asked.append], test_mode=True)
    with pytest.raises(EmptySampleError, match="must not return None"):
        dataset[0]
    assert len(asked) == 1


def test_an_exception_of_the_pipeline_is_not_tried_again(make):
    asked = []

    def fail(info):
        asked.append(info)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        make(pipeline=[fail])[0]
    assert len(asked) == 1


def test_the_substitute_for_a_place_in_the_run_is_always_the_same(make):
    keep = make(pipeline=[lambda info: info if info["sample_idx"] != 1 else None])
    found = set()
    for position in range(40):
        index = SampleIndex(1, seed=position, epoch=0, position=position)
        first, again = keep[index], keep[index]
        assert first == again
        found.add(first["sample_idx"])
    assert found == {0, 2, 3, 4}


def test_categories_are_for_subclasses_to_say(make):
    with pytest.raises(NotImplementedError, match="override get_cat_ids"):
        make().get_cat_ids(0)


# ---------------------------------------------------------------- parts
CHOICES = [
    (0, []),
    (2, [0, 1]),
    (-2, [3, 4]),
    (5, [0, 1, 2, 3, 4]),
    (6, [0, 1, 2, 3, 4]),
    (-9, [0, 1, 2, 3, 4]),
    (np.int32(2), [0, 1]),
    ([], []),
    ((), []),
    ([3, 0, -1, 3], [3, 0, 4, 3]),
    ([-5], [0]),
    (range(1, 4), [1, 2, 3]),
    (np.array([4, -4]), [4, 1]),
    (np.array([2], np.uint8), [2]),
    (np.array([]), []),
    ([np.int64(1)], [1]),
]


@pytest.mark.parametrize(("indices", "positions"), CHOICES, ids=repr)
def test_the_three_ways_to_choose_samples_agree(indices, positions, make):
    expected = [SAMPLES[position]["img_path"] for position in positions]
    changed, whole = make(), make()
    assert changed.get_subset_(indices) is None
    for dataset in (make(indices=indices), whole.get_subset(indices), changed):
        assert len(dataset) == len(expected)
        assert paths(dataset) == expected
        assert [dataset[i]["sample_idx"] for i in range(len(dataset))] == list(
            range(len(expected))
        )
    assert len(whole) == 5


@pytest.mark.parametrize(
    ("indices", "error"),
    [
        ([5], SampleIndexError),
        ([-6], SampleIndexError),
        (np.array([0, 7]), SampleIndexError),
        (1.5, TypeError),
        ({}, TypeError),
        ({1}, TypeError),
        ("12", TypeError),
        (True, TypeError),
        ([True, False], TypeError),
        (np.array([True] * 5), TypeError),
        ([0.0], TypeError),
        (np.array([[0]]), TypeError),
        (["0"], TypeError),
        ([[0], [1, 2]], TypeError),
    ],
    ids=repr,
)
def test_what_chooses_no_samples_is_refused_alike_everywhere(indices, error, make):
    message = "indices are " if error is TypeError else "sample -?[0-9] of a dataset"
    with pytest.raises(error, match=message):
        make(indices=indices)
    with pytest.raises(error):
        make().get_subset(indices)
    with pytest.raises(error):
        make().get_subset_(indices)


def test_a_subset_and_its_origin_do_not_affect_each_other(make):
    dataset = make(metainfo={"more": [1]}, pipeline=[dict])
    subset = dataset.get_subset([1, 2])
    subset.metainfo["more"].append(2)
    subset.pipeline.transforms.append(lambda info: 0)
    subset.get_subset_([0])
    dataset.get_subset_([4])
    assert paths(dataset) == ["4.jpg"]
    assert (len(subset), subset[0]) == (1, 0)
    assert subset.get_data_info(0)["img_path"] == "1.jpg"
    assert dataset.metainfo["more"] == [1]


@pytest.mark.parametrize("serialize_data", [True, False])
def test_what_refers_back_to_the_dataset_refers_to_the_subset(make, serialize_data):
    class Scaled(BaseDataset):
        scale = 1

        def describe(self, info):
            return len(self), self.scale, info["img_path"]

    dataset = make(Scaled, serialize_data=serialize_data)
    dataset.pipeline.transforms.append(dataset.describe)
    subset = dataset.get_subset(2)
    subset.scale = 7
    assert subset[0] == (2, 7, "0.jpg")
    assert dataset[0] == (5, 1, "0.jpg")


@pytest.mark.parametrize("entry", [[["img_path", "x"]], [], "abc", 5, None], ids=repr)
def test_an_entry_that_is_no_dict_is_refused_with_the_file(tmp_path, entry):
    path = tmp_path / "listed.json"
    path.write_text(json.dumps({"metainfo": {}, "data_list": [entry]}))
    for prefix in ({}, {"img_path": ""}):
        with pytest.raises(AnnotationError, match=r"listed\.json.* expected a dict"):
            BaseDataset(str(path), data_prefix=prefix)


@pytest.mark.parametrize("value", [None, 5, ["a.jpg"]], ids=repr)
def test_a_value_that_is_no_path_is_refused_with_its_entry(tmp_path, value):
    path = tmp_path / "listed.json"
    entry = {"img_path": value, "number": 7}
    path.write_text(json.dumps({"metainfo": {}, "data_list": [entry]}))
    message = r"'img_path', which is no path in an entry of .*listed\.json.*'number': 7"
    with pytest.raises(AnnotationError, match=message):
        BaseDataset(str(path))


def test_a_subset_is_of_the_same_class_and_has_all_attributes(make):
    class Special(BaseDataset):
        pass

    dataset = make(Special)
    subset = dataset.get_subset(2)
    assert type(subset) is Special
    assert subset.__dict__.keys() == dataset.__dict__.keys()
    assert len(subset.get_subset([1, 1, 0])) == 3


# ---------------------------------------------------------------- serialisation
def test_serialised_samples_are_two_arrays(ann_file):
    dataset = BaseDataset(ann_file)
    assert dataset.data_list == []
    assert dataset.data_bytes.dtype == np.uint8
    assert dataset.data_address.dtype == np.int64
    assert dataset.data_address[-1] == len(dataset.data_bytes)
    start, stop = dataset.data_address[1:3].tolist()
    data = dataset.data_bytes[start:stop].tobytes()
    assert pickle.loads(data) == SAMPLES[2]
    assert data[:2] == b"\x80\x04"  # protocol 4


@pytest.mark.parametrize("how", ["indices=0", "indices=[]", "no entries", "filtered"])
def test_no_samples_are_a_dataset_of_none(how, make, tmp_path):
    class Nothing(BaseDataset):
        def filter_data(self):
            return []

    if how == "no entries":
        path = tmp_path / "empty.json"
        path.write_text('{"metainfo": {}, "data_list": []}', "utf-8")
        dataset = BaseDataset(str(path))
    elif how == "filtered":
        dataset = make(Nothing)
    else:
        dataset = make(indices=0 if how == "indices=0" else [])
    assert len(dataset) == 0
    assert list(dataset) == []
    with pytest.raises(IndexError):
        dataset[0]
    empty = dataset.get_subset([])
    assert (empty.data_bytes.dtype, empty.data_address.dtype) == (np.uint8, np.int64)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize(
    "clone",
    [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))],
    ids=["copy", "pickle"],
)
def test_a_copy_is_in_the_same_state_and_gives_the_same(clone, lazy, make):
    dataset = make(lazy_init=lazy)
    other = clone(dataset)
    assert other._fully_initialized is not lazy
    assert paths(other) == [sample["img_path"] for sample in SAMPLES]


def test_an_initialised_dataset_is_used_without_a_warning(make, caplog):
    with caplog.at_level(logging.WARNING):
        dataset = make()
        _ = dataset[0], len(dataset), dataset.get_subset(1)
    assert caplog.text == ""
