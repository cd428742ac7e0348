"""Annotation files of every format, and what is wrong with some of them."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from gulpio2.torch.annotations import load_annotations

CONTENT = {"metainfo": {"classes": ["cat"]}, "data_list": [{"id": "a", "box": [1.5]}]}

needs_yaml = pytest.mark.skipif(
    importlib.util.find_spec("yaml") is None, reason="PyYAML is not installed"
)


def write(path, content):
    if path.suffix in (".pickle", ".pkl"):
        path.write_bytes(pickle.dumps(content))
    else:  # JSON is YAML
        path.write_text(json.dumps(content), "utf-8")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "a.json",
        "a.JSON",
        pytest.param("a.yaml", marks=needs_yaml),
        pytest.param("a.yml", marks=needs_yaml),
        "a.pickle",
        "a.pkl",
    ],
)
def test_metadata_and_samples_are_read_from(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(write(tmp_path / name.lower(), CONTENT).read_bytes())
    assert load_annotations(path) == (CONTENT["metainfo"], CONTENT["data_list"])


def test_further_keys_are_ignored(tmp_path):
    path = write(tmp_path / "a.json", {**CONTENT, "version": 3})
    assert load_annotations(str(path)) == (CONTENT["metainfo"], CONTENT["data_list"])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ([], TypeError, "holds a list, expected a dict"),
        ({"metainfo": {}}, ValueError, "has no 'data_list'"),
        ({"data_list": []}, ValueError, "has no 'metainfo'"),
        ({"metainfo": [], "data_list": []}, TypeError, "'metainfo' .* is a list"),
        ({"metainfo": {}, "data_list": {}}, TypeError, "'data_list' .* is a dict"),
    ],
)
def test_content_that_is_no_annotation_is_refused(content, error, message, tmp_path):
    with pytest.raises(error, match=message):
        load_annotations(write(tmp_path / "a.json", content))


@pytest.mark.parametrize("name", ["a.txt", "a", "", "a.json.gz"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(name):
    with pytest.raises(TypeError, match=r"unsupported format .* one of \.json, \.yaml"):
        load_annotations(name)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_annotations(tmp_path / "a.json")


@pytest.mark.parametrize(
    "name", ["a.json", pytest.param("a.yaml", marks=needs_yaml), "a.pkl"]
)
def test_a_damaged_file_is_named(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b'{"metainfo": [\x80')
    with pytest.raises(ValueError, match=name):
        load_annotations(path)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_may_hold_plain_values_and_arrays(protocol, tmp_path):
    samples = [
        OrderedDict(boxes=np.arange(6, dtype=np.float32).reshape(2, 3)),
        {"scale": np.float64(0.5), "names": np.array(["a", None], dtype=object)},
        {"flags": {1, 2}, "raw": b"\x00", "nothing": None},
    ]
    path = tmp_path / "a.pkl"
    content = {"metainfo": {}, "data_list": samples}
    path.write_bytes(pickle.dumps(content, protocol))
    _, found = load_annotations(path)
    assert found[0]["boxes"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found[0]["boxes"].dtype == np.float32
    assert (found[1]["scale"], found[1]["names"].tolist()) == (0.5, ["a", None])
    assert found[2] == samples[2]


class Runs:
    """Would make a folder if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path):
    path, made = tmp_path / "a.pkl", tmp_path / "made"
    content = {"metainfo": {}, "data_list": [Runs(made)]}
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"names posix\.mkdir, and only plain"):
        load_annotations(path)
    assert not made.exists()
