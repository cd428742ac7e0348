"""Datasets over gulp directories: items, metadata, annotations, several sources."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import (
    FrameTimeError,
    ItemNotFoundError,
    SampleIndexError,
    StorageError,
)
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sampling import ClipIndices
from gulpio2.testing import FrameAdapter
from gulpio2.torch import (
    AnnotationError,
    ClassBalancedDataset,
    ConcatDataset,
    GulpDataset,
    GulpSource,
)


def ids(dataset):
    return [dataset.get_data_info(index)["id"] for index in range(len(dataset))]


def annotate(folder, entries, metainfo=None):
    path = folder / "annotations.json"
    content = {"metainfo": metainfo or {}, "data_list": entries}
    path.write_text(json.dumps(content), "utf-8")
    return path


# ---------------------------------------------------------------- items
@pytest.mark.parametrize("serialize", [True, False])
def test_each_item_is_a_sample_with_its_metadata(serialize, make_directory):
    dataset = GulpDataset(make_directory(), serialize_data=serialize)
    assert [dataset[index] for index in range(3)] == [
        {"idx": 0, "label": "a", "id": "clip0", "num_frames": 8, "sample_idx": 0},
        {"idx": 1, "label": "b", "id": "clip1", "num_frames": 5, "sample_idx": 1},
        {"idx": 0, "label": "a", "id": "clip2", "num_frames": 1, "sample_idx": 2},
    ]


def test_the_id_is_that_of_the_item_whatever_the_metadata_says(make_directory):
    folder = make_directory(counts=[2], metas=[{"id": 7, "num_frames": 99}])
    info = GulpDataset(folder).get_data_info(0)
    assert (info["id"], info["num_frames"]) == ("clip0", 2)


def test_an_item_may_become_several_samples(make_directory):
    class Halves(GulpDataset):
        def parse_data_info(self, raw_data_info):
            count = raw_data_info["num_frames"]
            return [dict(raw_data_info, begin=begin) for begin in range(0, count, 4)]

        def filter_data(self):
            return [info for info in self.data_list if info["begin"] > 0]

    dataset = Halves(make_directory())
    found = [(info["id"], info["begin"]) for info in dataset]
    assert found == [("clip0", 4), ("clip1", 4)]


def test_the_options_of_the_base_dataset_hold(make_directory):
    folder = make_directory()
    dataset = GulpDataset(
        folder.name,
        data_root=folder.parent,
        indices=[2, 0],
        pipeline=[lambda info: info["id"]],
        metainfo={"task": "toy"},
        lazy_init=True,
    )
    assert not dataset._fully_initialized
    dataset.full_init()
    assert list(dataset) == ["clip2", "clip0"]
    assert list(dataset.get_subset([1])) == ["clip0"]
    assert dataset.get_subset(1).source is dataset.source
    assert dataset.metainfo == {"task": "toy"}


@pytest.mark.parametrize("indexed", [False, True])
def test_changing_an_info_reaches_neither_dataset_nor_directory(
    make_directory, indexed
):
    folder = make_directory(counts=[1], metas=[{"tags": ["x"]}])
    directory = GulpDirectory(folder, indexed=indexed)
    assert list(directory.merged_meta_dict.items())  # an index keeps what was looked at
    for serialize in (True, False):
        dataset = GulpDataset(directory, serialize_data=serialize)
        dataset.get_data_info(0)["tags"].append("y")
        assert dataset.get_data_info(0)["tags"] == ["x"]
    assert directory.merged_meta_dict["clip0"]["meta_data"][0] == {"tags": ["x"]}


def test_an_empty_directory_is_a_dataset_of_none(tmp_path):
    assert len(GulpDataset(tmp_path)) == 0


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "video.mp4").touch()
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} is no gulp directory"):
        GulpDataset(tmp_path)


def test_a_pickled_dataset_has_no_open_file_and_reads_on(make_directory):
    dataset = GulpDataset(make_directory())
    whole = ClipIndices(np.arange(8), np.ones(8, np.bool_))
    before = dataset.source.read(dataset.get_data_info(0), whole)
    other = pickle.loads(pickle.dumps(dataset))
    assert ids(other) == ids(dataset)
    after = other.source.read(other.get_data_info(0), whole)
    assert np.array_equal(before, after)


# ---------------------------------------------------------------- metadata
def test_classes_come_from_the_labels_at_the_priority_of_a_file(make_directory):
    folder = make_directory(labels={"zebra": 1, "ant": 0})

    class Named(GulpDataset):
        METAINFO = {"classes": ("class",)}

    assert GulpDataset(folder).metainfo == {"classes": ["ant", "zebra"]}
    assert Named(folder).metainfo == {"classes": ("class",)}
    assert Named(folder, metainfo={"classes": 1}).metainfo == {"classes": 1}
    path = annotate(folder, [{"id": "clip0"}], {"classes": ["file"]})
    assert GulpDataset(folder, ann_file=path).metainfo == {"classes": ["file"]}


class Scaled(FrameAdapter):
    """Tells values of the dataset that are not equal to themselves."""

    @property
    def metainfo(self):
        return {"scale": float("nan"), "mean": [1.0, float("nan")]}


def test_metainfo_of_directories_is_compared_by_what_it_says(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        GulpIngestor(Scaled(num_items=2), folder, 2, 1).run()
    for source in (folders[0], folders):
        assert np.isnan(GulpDataset(source).metainfo["scale"])


@pytest.mark.parametrize(
    "labels",
    [{"a": 0, "b": 2}, {"a": 0, "b": 0}, {"a": [0]}, {"a": None}, ["a", "b"], 3],
)
def test_labels_that_are_not_numbered_from_0_give_no_classes(
    labels, make_directory, caplog
):
    folder = make_directory(labels=labels)
    assert GulpDataset(folder).metainfo == {}
    assert "does not number its labels from 0 on" in caplog.text


def test_the_manifest_of_a_directory_says_its_metadata(make_directory):
    from gulpio2.format.manifest import Manifest, dump_manifest

    folder = make_directory(labels={"a": 0})
    manifest = Manifest(metainfo={"classes": ["A"], "task": "toy"})
    (folder / "gulp.json").write_bytes(dump_manifest(manifest))
    assert GulpDataset(folder).metainfo == {"classes": ["A"], "task": "toy"}


def test_directories_that_disagree_need_a_word_on_which_holds(make_directory):
    folders = [
        make_directory("one", labels={"a": 0}),
        make_directory("two", labels={"b": 0}),
    ]
    with pytest.raises(ValueError, match=r"'classes' is \['b'\] in .* Say which holds"):
        GulpDataset(folders)
    dataset = GulpDataset(folders, metainfo={"classes": ["c"]})
    assert dataset.metainfo == {"classes": ["c"]}


def test_categories_are_the_stored_idx(make_directory):
    dataset = GulpDataset(make_directory())
    assert [dataset.get_cat_ids(index) for index in range(3)] == [[0], [1], [0]]
    balanced = ClassBalancedDataset(dataset, 1.0)
    assert balanced.repeat_indices == [0, 0, 1, 1, 2, 2]


def test_a_category_of_numpy_is_one(make_directory):
    class Numbered(GulpDataset):
        def parse_data_info(self, raw_data_info):
            return {**raw_data_info, "idx": np.uint8(3)}

    (category,) = Numbered(make_directory()).get_cat_ids(0)
    assert (category, type(category)) == (3, int)


@pytest.mark.parametrize("meta", [{}, {"idx": "1"}, {"idx": None}, {"idx": True}])
def test_without_an_integer_idx_categories_are_for_subclasses(meta, make_directory):
    dataset = GulpDataset(make_directory(counts=[1], metas=[meta]))
    with pytest.raises(NotImplementedError, match="override get_cat_ids"):
        dataset.get_cat_ids(0)


# ---------------------------------------------------------------- annotations
@pytest.mark.parametrize(
    ("key", "message"),
    [("lidar", "and an item has not"), ("num_frames", "which is no path in an item")],
)
def test_a_prefix_that_goes_before_nothing_of_an_item_is_refused(
    key, message, make_directory
):
    with pytest.raises(AnnotationError, match=f"{message}: .*'id': 'clip0'"):
        GulpDataset(make_directory(), data_prefix={key: "root"})


def test_annotations_choose_items_and_add_to_their_metadata(make_directory):
    folder = make_directory()
    path = annotate(
        folder,
        [
            {"id": "clip2", "label": "mine"},
            {"id": "clip0"},
            {"id": "clip2", "begin": 3},
        ],
        {"task": "toy"},
    )
    dataset = GulpDataset(folder, ann_file=path)
    assert ids(dataset) == ["clip2", "clip0", "clip2"]
    assert dataset.get_data_info(0) == {
        "idx": 0,
        "label": "mine",
        "id": "clip2",
        "num_frames": 1,
        "sample_idx": 0,
    }
    assert dataset.get_data_info(2)["begin"] == 3
    assert dataset.metainfo == {"task": "toy"}


def test_an_id_may_be_a_number_in_annotations(make_directory):
    folder = make_directory("1", counts=[2])  # its item is called 10
    dataset = GulpDataset(folder, ann_file=annotate(folder, [{"id": 10}]))
    assert ids(dataset) == ["10"]


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        ({"id": "x"}, ItemNotFoundError, "no item 'x' in GulpSource"),
        ({"label": "a"}, ValueError, "has no 'id' to find its item by"),
        ("video1", AnnotationError, "an annotation is 'video1', expected a dict"),
        ("clip0", AnnotationError, "an annotation is 'clip0', expected a dict"),
        (["clip0"], AnnotationError, r"an annotation is \['clip0'\], expected"),
        (5, AnnotationError, "an annotation is 5, expected a dict with the 'id'"),
        (None, AnnotationError, "an annotation is None, expected a dict"),
    ],
)
def test_an_annotation_of_no_item_is_refused(entry, error, message, make_directory):
    folder = make_directory()
    with pytest.raises(error, match=message):
        GulpDataset(folder, ann_file=annotate(folder, [entry]))


def test_annotations_of_items_that_are_gone_are_counted(make_directory):
    folder = make_directory()
    entries = [{"id": f"clip{number}"} for number in range(9)]
    with pytest.raises(ItemNotFoundError) as caught:
        GulpDataset(folder, ann_file=annotate(folder, entries))
    assert caught.value.args == ("clip3",)
    told = "name items that are not in GulpSource"
    assert f"6 of 9 annotations in {folder}" in str(caught.value)
    assert told in str(caught.value)
    assert "'clip3', 'clip4', 'clip5', 'clip6' and 2 more. Take" in str(caught.value)


# ---------------------------------------------------------------- several sources
def test_several_directories_are_one_dataset(make_directory):
    folders = [make_directory("one"), make_directory("two", counts=(2,))]
    dataset = GulpDataset(folders)
    assert ids(dataset) == ["one0", "one1", "one2", "two0"]
    assert [info["source_idx"] for info in dataset] == [0, 0, 0, 1]


def test_an_id_may_be_in_several_directories(make_directory, tmp_path):
    one = make_directory("same", counts=(2,))
    moved = one.rename(tmp_path / "moved")
    two = make_directory("same", counts=(3,))
    dataset = GulpDataset([moved, GulpDirectory(two)])
    assert [(info["id"], info["num_frames"]) for info in dataset] == [
        ("same0", 2),
        ("same0", 3),
    ]
    path = annotate(tmp_path, [{"id": "same0", "source_idx": 1}])
    assert GulpDataset([moved, two], ann_file=path).get_data_info(0)["num_frames"] == 3
    path = annotate(tmp_path, [{"id": "same0"}])
    with pytest.raises(ValueError, match=r"is in sources \[0, 1\]"):
        GulpDataset([moved, two], ann_file=path)


class ListReader:
    """The least that frames can be read from."""

    def __init__(self, frames):
        self.frames = frames
        self.merged_meta_dict = {
            id_: {"frame_info": [[0, 0, 0]] * len(clip), "meta_data": []}
            for id_, clip in frames.items()
        }
        self.reads = []

    def read_clip(self, id_, slice_=None):
        self.reads.append((id_, slice_))
        return self.frames[id_][slice_]


def test_anything_that_reads_like_a_directory_is_a_source():
    reader = ListReader({"a": np.zeros((4, 2, 2, 3), np.uint8)})
    dataset = GulpDataset(reader)
    assert dataset[0] == {"id": "a", "num_frames": 4, "sample_idx": 0}
    assert dataset.metainfo == {}


@pytest.mark.parametrize("source", [3, None, object(), [3]])
def test_what_cannot_be_read_from_is_refused(source):
    with pytest.raises(TypeError, match="expected the path of a gulp directory"):
        GulpDataset(source)


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no gulp directory at .*typo"):
        GulpDataset("typo", data_root=tmp_path)


def test_a_url_is_refused():
    """It was a dataset of no items."""
    with pytest.raises(StorageError, match=r"cannot read s3://bucket/train: it is a U"):
        GulpDataset("train", data_root="s3://bucket")


def test_no_source_at_all_is_refused():
    with pytest.raises(ValueError, match="source is empty"):
        GulpDataset([])


def test_datasets_of_directories_are_concatenated(make_directory):
    parts = [GulpDataset(make_directory(name)) for name in ("one", "two")]
    assert ids(ConcatDataset(parts))[2:4] == ["one2", "two0"]


@pytest.mark.parametrize(
    "source",
    [
        str,
        GulpDirectory,
        lambda folder: [folder],
        lambda folder: GulpDirectory(folder).query("num_frames > 0"),
    ],
)
def test_chunks_that_were_stored_and_are_gone_are_warned_of(source, tmp_path, caplog):
    folder = tmp_path / "gulped"
    GulpIngestor(FrameAdapter(num_items=6), folder, 2, 1).run()
    delete_items(folder, ["item0", "item1"])
    compact_directory(folder)  # of which nothing is missed
    assert len(GulpDataset(source(folder))) == 4
    assert not caplog.records
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (folder / name).unlink()
    dataset = GulpDataset(source(folder), lazy_init=True)
    assert not caplog.records
    dataset.full_init()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"{folder} has lost a chunk" in record.message
    assert "data_1.gulp or meta_1.gmeta is not there. Put both files" in record.message
    caplog.clear()
    # Said once, and not in each worker.
    assert len(pickle.loads(pickle.dumps(dataset)).get_subset(1)) == 1
    assert not caplog.records
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (folder / name).unlink()
    assert len(GulpDataset(source(folder))) == 2
    assert "data_0.gulp or meta_0.gmeta is not there (and those of 1 more)" in (
        caplog.text
    )


# ---------------------------------------------------------------- reading
def clip(indices):
    wanted = np.array(indices)
    return ClipIndices(wanted, wanted >= 0)


@pytest.mark.parametrize(
    ("indices", "read"),
    [
        ([0, 1, 2], [0, 1, 2]),
        ([2, 0, 2], [0, 2]),
        ([3, 3, 3], [3]),
        ([-1, 1, -1], [1]),
        ([-1, -1], []),
        ([[0, 1], [1, 2]], [0, 1, 2]),
    ],
)
def test_each_frame_is_read_once_and_put_where_it_is_wanted(indices, read):
    frames = np.arange(1, 5, dtype=np.uint8).reshape(4, 1, 1, 1) * np.ones(
        (1, 2, 3, 3), np.uint8
    )
    reader = ListReader({"a": frames})
    source = GulpSource(reader)
    found = source.read(next(source.items()), clip(indices))
    assert reader.reads == [("a", read)]
    assert found.shape == (*np.shape(indices), 2, 3, 3)
    assert found[..., 0, 0, 0].tolist() == (np.array(indices) + 1).tolist()


def test_times_are_seconds_in_the_order_of_the_frames(make_directory):
    folder = make_directory(counts=[3], ticks=[500, 540, 1580])
    source = GulpSource(folder)
    assert source.times(next(source.items())).tolist() == [0.5, 0.54, 1.58]


def test_an_item_without_times_says_so(make_directory):
    source = GulpSource(make_directory())
    with pytest.raises(FrameTimeError, match="Sample its frames by index"):
        source.times(next(source.items()))


def items_of(dataset):
    return [dataset.get_data_info(number) for number in range(len(dataset))]


@pytest.mark.parametrize("kind", ["directory", "view", "several"])
def test_of_an_index_nothing_is_serialised_and_all_is_the_same(make_directory, kind):
    pytest.importorskip("pyarrow")
    path = make_directory(counts=(8, 5, 1, 4, 7))
    other = make_directory("other", counts=(2, 3))

    def source(*, indexed):
        directory = GulpDirectory(path, indexed=indexed)
        if kind == "directory":
            return directory
        if kind == "view":
            return directory.query("num_frames < 8").query("label == 'b' or idx == 0")
        return [directory, GulpDirectory(other, indexed=indexed)]

    plain = GulpDataset(source(indexed=False))
    listed = GulpDataset(source(indexed=True))
    assert len(listed) == len(plain) > 2
    assert items_of(listed) == items_of(plain)
    assert listed.data_bytes.size == 0
    assert plain.data_bytes.size > 0
    again = pickle.loads(pickle.dumps(listed))
    assert items_of(again) == items_of(plain)
    chosen = [-1, 0, 0]
    assert items_of(listed.get_subset(chosen)) == items_of(plain.get_subset(chosen))
    assert items_of(copy.deepcopy(listed).get_subset(-2)) == items_of(
        plain.get_subset(-2)
    )
    listed.get_subset_(2)
    assert items_of(listed) == items_of(plain.get_subset(2))
    first = GulpDataset(source(indexed=True), indices=[1, 0])
    assert items_of(first) == items_of(plain.get_subset([1, 0]))
    assert listed.get_cat_ids(-1) == plain.get_subset(2).get_cat_ids(-1)
    with pytest.raises(SampleIndexError):
        listed.get_data_info(2)


def test_a_dataset_of_an_index_is_pickled_as_a_path(make_directory):
    pytest.importorskip("pyarrow")
    path = make_directory(counts=(1,) * 60)
    dataset = GulpDataset(GulpDirectory(path, indexed=True))
    assert len(pickle.dumps(dataset)) < 1500
    assert len(pickle.dumps(GulpDataset(path))) > 6000


def test_a_subclass_that_parses_or_filters_is_asked_with_an_index_too(make_directory):
    pytest.importorskip("pyarrow")

    class Twice(GulpDataset):
        def parse_data_info(self, raw_data_info):
            return [raw_data_info, raw_data_info]

    class Short(GulpDataset):
        def filter_data(self):
            return [info for info in self.data_list if info["num_frames"] < 6]

    directory = GulpDirectory(make_directory(counts=(8, 5, 1)), indexed=True)
    assert len(Twice(directory)) == 6
    assert len(Short(directory)) == 2
    assert GulpDataset(directory, serialize_data=False).data_list
