"""Labels get their index once, and the label file keeps it."""

from __future__ import annotations

import json
import math
import pickle
import threading
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.adapters.label_numbers import label_key, number_labels
from gulpio2.adapters.labels import (
    Custom20BNAdapterMixin,
    FolderLabelMixin,
    LabelFileMixin,
    merge_labels,
    read_label_file,
    stored_labels,
    write_label_file,
)
from gulpio2.errors import IngestError, MetaFileError, StorageError
from gulpio2.merge import merge_directories
from gulpio2.storage.locks import WriterLock

GREY = np.zeros((16, 16), np.uint8)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("labels", "existing", "expected"),
    [
        ([], {}, {}),
        (["b", "a", "b"], None, {"a": 0, "b": 1}),
        (["a", "c"], {"c": 7}, {"c": 7, "a": 8}),
        (["a", "b"], {"x": 5}, {"x": 5, "a": 6, "b": 7}),
        (["a"], {"z": 1, "a": 0}, {"z": 1, "a": 0}),
        ([12, 3], {}, {"3": 0, "12": 1}),
        ([12, "3"], {}, {"12": 0, "3": 1}),
        ([None, True], {}, {"null": 0, "true": 1}),
        ([0.5, math.nan], {}, {"0.5": 0, "NaN": 1}),
    ],
    ids=str,
)
def test_new_labels_come_sorted_after_the_largest_index(labels, existing, expected):
    mapping = number_labels(labels, existing)
    assert mapping == expected
    assert list(mapping) == list(expected)


def test_a_list_is_no_label():
    with pytest.raises(IngestError, match=r"\['a'\] is no label"):
        label_key(["a"])


def test_mappings_that_agree_are_merged():
    assert merge_labels({"b": 1}, {"a": 0, "b": 1}, where="f") == {"b": 1, "a": 0}


@pytest.mark.parametrize(
    ("existing", "mapping", "message"),
    [
        ({"a": 0}, {"a": 1}, "f has 'a' as 0, this run as 1"),
        ({"a": 0}, {"b": 0}, "f has 'a' as 0, this run 'b'"),
    ],
    ids=["another index", "another label"],
)
def test_mappings_that_contradict_are_refused(existing, mapping, message):
    with pytest.raises(IngestError, match=message):
        merge_labels(existing, mapping, where="f")


def test_the_file_is_laid_out_as_in_the_original(tmp_path):
    write_label_file(tmp_path / "new" / "out", {"b": 1, "ä": 0})
    path = tmp_path / "new" / "out" / "label2idx.json"
    assert path.read_bytes() == b'{"b": 1, "\\u00e4": 0}'
    assert [entry.name for entry in path.parent.iterdir()] == ["label2idx.json"]


def test_writing_keeps_what_is_there(tmp_path):
    write_label_file(tmp_path, {"a": 3})
    write_label_file(tmp_path, {"b": 4})
    assert read_label_file(tmp_path) == {"a": 3, "b": 4}


def test_a_contradiction_leaves_the_file_as_it_is(tmp_path):
    write_label_file(tmp_path, {"a": 3})
    with pytest.raises(IngestError, match=r"label2idx\.json has 'a' as 3"):
        write_label_file(tmp_path, {"a": 4})
    assert read_label_file(tmp_path) == {"a": 3}


def test_a_disk_that_refuses_leaves_the_file_as_it_is(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Not a directory"):
        write_label_file(tmp_path / "file" / "out", {"b": 4})


def test_a_missing_file_or_folder_has_no_labels(tmp_path):
    assert read_label_file(tmp_path) == {}
    assert read_label_file(tmp_path / "missing") == {}


@pytest.mark.parametrize(
    "content", ["{", "[1]", '{"a": "0"}', '{"a": true}', '{"a": 1.5}']
)
def test_a_file_that_is_no_label_file_is_named(tmp_path, content):
    (tmp_path / "label2idx.json").write_text(content)
    told = r"label2idx\.json is no.*put the right one back"
    with pytest.raises(MetaFileError, match=told):
        read_label_file(tmp_path)


def test_a_label_that_is_there_twice_is_not_taken_once(tmp_path):
    (tmp_path / "label2idx.json").write_text('{"a": 0, "b": 1, "a": 2}')
    with pytest.raises(MetaFileError, match=r"label2idx\.json has a label twice"):
        write_label_file(tmp_path, {"a": 2})
    assert (tmp_path / "label2idx.json").read_text() == '{"a": 0, "b": 1, "a": 2}'


def make_20bn(output_folder):
    """Make the mixin as clients of 0.0.4 use it."""
    mixin = Custom20BNAdapterMixin()
    mixin.output_folder = output_folder
    mixin.data = [{"template": "b"}, {"template": "a"}]
    mixin.labels2idx = mixin.create_label2idx_dict("template")
    return mixin


def test_the_20bn_mixin_numbers_reads_and_writes(tmp_path):
    mixin = make_20bn(str(tmp_path))
    assert mixin.labels2idx == mixin.label_mapping() == {"a": 0, "b": 1}
    assert not mixin.check_if_label2idx_exists()
    assert mixin.read_label2idx() == {}
    mixin.write_label2idx_dict()
    assert mixin.check_if_label2idx_exists()
    assert json.loads((tmp_path / "label2idx.json").read_text()) == {"a": 0, "b": 1}
    mixin.data = [{"label": "0"}]
    assert mixin.create_label2idx_dict("label") == {"a": 0, "b": 1, "0": 2}


def test_a_folder_that_nobody_may_look_into_is_told(tmp_path):
    mixin = LabelFileMixin()
    mixin.output_folder = tmp_path / ("long" * 100)  # as without the right to do so
    with pytest.raises(StorageError, match="File name too long"):
        mixin.check_if_label2idx_exists()


def test_labels_cannot_be_written_without_an_output_folder():
    mixin = FolderLabelMixin()
    mixin.output_folder = None
    mixin.data = [{"label": "a"}]
    assert mixin.label_mapping() is None
    mixin.label2idx = mixin.create_label2idx_dict()
    with pytest.raises(IngestError, match="made without output_folder"):
        mixin.write_label2idx_dict()
    assert not mixin.check_if_label2idx_exists()


def test_labels_that_are_numbers_are_found_as_they_are(tmp_path):
    class Numbered(Custom20BNAdapterMixin):
        output_folder = str(tmp_path)

        def __init__(self):
            self.data = [{"cls": 3}, {"cls": 1}, {"cls": True}]

    numbers = Numbered().create_label2idx_dict("cls")
    by_label: dict[Any, int] = numbers
    assert sorted(numbers) == ["1", "3", "true"]
    assert by_label[3] == numbers["3"]
    assert by_label[True] == numbers["true"]
    assert json.loads(json.dumps(numbers)) == numbers
    assert pickle.loads(pickle.dumps(numbers))[3] == numbers["3"]
    assert by_label[np.int64(3)] == by_label.get(3) == numbers["3"]
    assert 3 in by_label
    assert by_label.get(7, -1) == -1
    for missing in (7, "walk", None, 3.5, (1,)):
        assert missing not in by_label
        with pytest.raises(KeyError):
            by_label[missing]


class Numbered(AbstractDatasetAdapter):
    """An item for each pair of label and number, and no word of labels."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def iter_data(self, slice_element=None):
        for number in range(len(self))[slice_element or slice(None)]:
            label, index = self.pairs[number]
            meta = {"label": label, "idx": index}
            yield {"id": f"{label}{number}", "meta": meta, "frames": [GREY]}


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("run", 4), ("jump", 1), ("run", 4)], {"jump": 1, "run": 4}),
        ([("run", 0), ("run", 1)], {}),  # idx counts something else
        ([("run", 0), ("jump", 0)], {}),
        ([("run", None)], {}),
        ([("run", "1")], {}),
        ([("run", True), ("jump", False), ("walk", 2)], {"walk": 2}),
        ([("unknown", -1), ("walk", 2)], {"walk": 2}),
    ],
    ids=str,
)
def test_stored_items_tell_the_numbers_of_their_labels(tmp_path, pairs, expected):
    GulpIngestor(Numbered(*pairs), tmp_path / "gulped", 2, 1).run()
    found = stored_labels(tmp_path / "gulped")
    assert found == expected
    assert list(found) == list(expected)
    assert stored_labels(tmp_path / "missing") == {}


def test_labels_of_a_chunk_that_is_written_anew_are_waited_for(tmp_path):
    folder, away = tmp_path / "gulped", tmp_path / "away"
    GulpIngestor(Numbered(("run", 0), ("jump", 1)), folder, 1, 1).run()
    map_ = folder / "meta_1.gmeta"
    with ExitStack() as ends:
        ends.enter_context(WriterLock()).take(folder / "data_1.gulp")
        map_.rename(away)
        ends.callback(away.rename, map_)  # before its lock is let go of
        later = threading.Timer(0.2, ends.pop_all().close)
    later.start()
    assert stored_labels(folder) == {"run": 0, "jump": 1}
    later.join()


class Labelled(Numbered):
    """The same with the numbers in ``label2idx.json``."""

    def label_mapping(self):
        return dict(self.pairs)


def test_numbers_of_items_that_came_without_the_file_are_not_given_again(tmp_path):
    folder = tmp_path / "gulped"
    GulpIngestor(Numbered(("run", 0), ("jump", 1)), folder, 2, 1).run()
    before = content(folder)
    message = (
        "gulped, where items .* is missing, has '{}' as {}, this run {}\\. .*"
        'put a .*, as {{"run": 0}} has'
    )
    for pair, told in (
        (("swim", 0), ("run", 0, "'swim'")),
        (("jump", 0), ("jump", 1, "as 0")),
    ):
        with pytest.raises(IngestError, match=message.format(*told)):
            GulpIngestor(Labelled(pair), folder, 2, 1).run()
    assert content(folder) == before
    GulpIngestor(Labelled(*[("swim", 2)] * 3), folder, 1, 1).run()
    assert read_label_file(folder) == {"run": 0, "jump": 1, "swim": 2}


def test_numbers_of_items_that_came_without_the_file_are_merged(tmp_path):
    bare, other = tmp_path / "bare", tmp_path / "other"
    GulpIngestor(Numbered(("run", 0), ("jump", 1)), bare, 2, 1).run()
    GulpIngestor(Labelled(("swim", 0)), other, 2, 1).run()
    advised = r"anew into a folder with a copy of the other's label2idx.json"
    for parts, message in (
        ([bare, other], rf"of {bare} has 'run' as 0, that of {other} 'swim'"),
        ([other, bare], rf"of {other} has 'swim' as 0, the metadata of {bare} 'run'"),
    ):
        with pytest.raises(IngestError, match=f"^[^ ]+ {message}.*{advised}"):
            merge_directories(parts, tmp_path / "both")
        with pytest.raises(IngestError, match=message):
            merge_directories(parts[1:], parts[0])
    assert not (tmp_path / "both").exists()
    unknown = tmp_path / "unknown"
    GulpIngestor(Numbered(("swim", 0)), unknown, 2, 1).run()
    merge_directories([bare, unknown], tmp_path / "all")  # who knows what idx is
    fitting = tmp_path / "fitting"
    GulpIngestor(Labelled(("walk", 2), ("run", 0)), fitting, 2, 1).run()
    merge_directories([fitting], bare)
    assert read_label_file(bare) == {"run": 0, "jump": 1, "walk": 2}
