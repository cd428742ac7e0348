"""Annotation files of every format, and what is wrong with some of them."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
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


HONEST = [
    np.array([True, False]),
    np.arange(4, dtype=np.uint8),
    np.arange(4, dtype=">i8"),
    np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
    np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
    np.arange(9)[::2],
    np.array([1 + 2j]),
    np.array(["a", "bcd"]),
    np.array([b"a", b"bcd"]),
    np.array("2020-01-01", "M8[D]"),
    np.array([3], "m8[2h]"),
    np.array([["a", {"b": [1]}], [None, np.arange(2)]], object),
    np.empty((0, 4), np.float32),
    np.int64(3),
    np.bool_(True),
    np.str_("ab"),
    np.str_(""),
    np.bytes_(b"ab"),
    np.datetime64("2020-01-01T00:00", "ms"),
    np.complex64(1j),
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", HONEST, ids=repr)
def test_what_numpy_writes_is_read_as_it_was(value, protocol, tmp_path):
    path = tmp_path / "a.pkl"
    data = pickle.dumps({"metainfo": {}, "data_list": [value, value]}, protocol)
    path.write_bytes(data)
    _, (found, again) = load_annotations(path)
    expected = pickle.loads(data)["data_list"][0]  # in the byte order of the machine
    assert type(found) is type(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert repr(found) == repr(expected)
    assert found is again


_reconstruct = np.arange(1).__reduce__()[0]  # numpy 1 has it in another module
scalar = np.float64(1).__reduce__()[0]


class Call:
    """Pickled as a call of numpy's, with a state for what that gives."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def dtype_with(text, state, *, copy=True):
    return Call(np.dtype, (text, False, copy), state)


def array_with(*state):
    return Call(_reconstruct, (np.ndarray, (0,), b"b"), (1, *state))


FLAGS_OF_OBJECTS = 63
NATIVE = (None, None, None, -1, -1)
AS_TEXT = dtype_with("O8", (3, "|", *NATIVE, 0))  # and so not of objects, for numpy

CRAFTED = {
    "objects over bytes": Call(np.ndarray, ((1,), np.dtype("O"), b"A" * 8)),
    "objects in bytes": array_with((1,), np.dtype("O"), False, b"A" * 8),
    "objects as text": array_with((1,), AS_TEXT, False, b"A" * 8),
    "a scalar as text": Call(scalar, (AS_TEXT, b"A" * 8)),
    "text as objects": array_with(
        (1,), dtype_with("i8", (3, "<", *NATIVE, FLAGS_OF_OBJECTS)), False, ["a"]
    ),
    "fields out of a value": array_with(
        (1,),
        dtype_with(
            "V8", (3, "|", None, ("a",), {"a": (np.dtype("f8"), 1 << 20)}, 8, 1, 0)
        ),
        False,
        b"A" * 8,
    ),
    "text longer than it is": array_with(
        (1,), dtype_with("U2", (3, "<", None, None, None, 1 << 20, 4, 8)), False, b""
    ),
    "a short list": array_with((1 << 20,), np.dtype("O"), False, []),
    "a state of every array": dtype_with("f8", (3, ">", *NATIVE, 0), copy=False),
    "a subclass": Call(_reconstruct, (np.dtype, (0,), b"b")),
    "a state of a scalar": Call(
        scalar, (np.dtype("f8"), b"A" * 8), (None, {"__defaults__": ()})
    ),
}

LOADS = """
import sys
from gulpio2.torch.annotations import load_annotations
try:
    print(load_annotations(sys.argv[1]))
except ValueError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("value", CRAFTED.values(), ids=CRAFTED)
def test_an_array_that_numpy_would_not_write_is_refused(value, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"metainfo": {}, "data_list": [value]}, 4))
    # In a process of its own, which such a file could end.
    command = [sys.executable, "-c", LOADS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, (done.returncode, done.stdout)
    assert f"annotation file {path} cannot be read: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_attributes_of_what_makes_arrays_stay(tmp_path):
    # BUILD of a function itself, not of what it gives, with a state of slots.
    data = b"cnumpy\ndtype\n(N}\x8c\x0c__defaults__I01\nI01\n\x86stb."
    path = tmp_path / "a.pkl"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="unexpected state"):
        load_annotations(path)


FLIPS = """
import pickle, random, resource, sys
import numpy as np
from pathlib import Path
from gulpio2.torch.annotations import load_annotations
# A length may be flipped as well: memory that is not there is an error as any other.
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
path, rng, ends = Path(sys.argv[1]), random.Random(1), {"read": 0, "refused": 0}
samples = [
    {"boxes": np.arange(6.0).reshape(2, 3), "scale": np.float32(1), "text": "abc"},
    {"names": np.array(["a", None], object), "word": np.array(["xy"]), "set": {1, 2}},
]
for protocol in (2, 4, 5):
    honest = pickle.dumps({"metainfo": {"a": 1.5}, "data_list": samples}, protocol)
    for _ in range(1500):
        data = bytearray(honest)
        for _ in range(rng.choice([1, 1, 2])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            repr(load_annotations(path))
            ends["read"] += 1
        except TypeError as error:
            assert "of annotation file" in str(error) or "holds a" in str(error), error
        except ValueError as error:
            assert str(path) in str(error), error
            ends["refused"] += 1
print(min(ends.values()) > 100)
"""


def test_a_flipped_pickle_is_read_or_refused(tmp_path):
    command = [sys.executable, "-c", FLIPS, str(tmp_path / "a.pkl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"[" * 100_000),
        ("a.pkl", b"c_codecs\nencode\n(Va\nVunknown\ntR."),
        ("a.pkl", b"cbuiltins\nbytes\n(I9223372036854775807\ntR."),
        ("a.pkl", b"cbuiltins\ncomplex\n(NtR."),
        pytest.param("a.yaml", b"when: 2020-99-99", marks=needs_yaml),
    ],
)
def test_whatever_a_damaged_file_raises_names_it(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"annotation file .*{name} cannot be read: ."):
        load_annotations(path)
