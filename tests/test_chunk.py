"""Reading one chunk: every form of access of 0.0.4, and the verbs beside them."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame
from gulpio2.errors import (
    FrameIndexError,
    ItemNotFoundError,
    MetaFileError,
    StorageError,
)
from gulpio2.serializers import json_serializer, pickle_serializer
from gulpio2.testing import make_frames
from tests.chunks import (
    decoded_frames,
    make_chunk,
    make_three_items,
    new_chunk,
    open_files,
)

SETTINGS = EncoderSettings()


@pytest.fixture
def frames() -> list[np.ndarray]:
    """Give the frames of item "a" as they come out of the decoder."""
    return decoded_frames(6)


@pytest.fixture
def chunk(tmp_path: Path) -> GulpChunk:
    """Give a chunk of three items: "a", "7" (grey) and "empty"."""
    return make_three_items(tmp_path)


# --- by id and selection ------------------------------------------------------------


def test_an_item_is_all_its_frames_and_its_metadata(chunk, frames):
    got, meta = chunk["a"]
    assert isinstance(got, list)
    assert len(got) == 6
    assert all(np.array_equal(*pair) for pair in zip(got, frames, strict=True))
    assert meta == {"label": "x", "inner": {"n": [1]}}
    assert type(meta) is dict


@pytest.mark.parametrize("id_", [7, "7", np.int64(7), np.uint8(7)])
def test_a_number_and_its_digits_are_the_same_id(chunk, id_):
    assert id_ in chunk
    got, _ = chunk[id_]
    assert [frame.shape for frame in got] == [(24, 32), (24, 32)]
    assert len(chunk[id_, 1:][0]) == 1


def test_membership_is_of_any_type(chunk):
    assert "a" in chunk
    assert "b" not in chunk
    assert None not in chunk
    assert 7.5 not in chunk


@pytest.mark.parametrize(
    ("selection", "indices"),
    [
        (None, [0, 1, 2, 3, 4, 5]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -2), [5, 3, 1]),
        (slice(-2, 99), [4, 5]),
        (slice(4, 2), []),
        (slice(np.int64(1), np.int64(4)), [1, 2, 3]),
        ([3, 0, 3, -1], [3, 0, 3, 5]),
        ([np.int32(2), 2], [2, 2]),
        (np.array([5, 1]), [5, 1]),
        ([], []),
        (np.array([], int), []),
        ((1, 2), [1, 2]),
        (range(0, 6, 3), [0, 3]),
        (np.array([True, False, False, True, False, False]), [0, 3]),
        (4, [4]),
        (-1, [5]),
    ],
    ids=repr,
)
def test_every_selection_gives_the_frames_of_a_list(chunk, frames, selection, indices):
    expected = [frames[index] for index in indices]
    for got, meta in (chunk["a", selection], chunk.read_frames("a", selection)):
        assert isinstance(got, list)
        assert meta["label"] == "x"
        assert len(got) == len(expected)
        assert all(np.array_equal(*pair) for pair in zip(got, expected, strict=True))


def test_the_subscript_may_be_written_as_a_slice(chunk, frames):
    got, _ = chunk["a", 1:6:2]
    assert np.array_equal(np.stack(got), np.stack(frames[1:6:2]))


def test_an_item_without_frames_is_read_as_none(chunk):
    assert chunk["empty"] == ([], {"why": "no frames"})
    assert chunk["empty", 3:5] == ([], {"why": "no frames"})


def test_metadata_is_a_copy_at_the_top_and_shared_below(chunk):
    _, meta = chunk["a"]
    meta["label"] = "changed"
    meta["inner"]["n"].append(2)
    assert chunk["a"][1] == {"label": "x", "inner": {"n": [1, 2]}}


def test_metadata_changed_in_the_map_is_read(chunk):
    chunk.meta_dict["a"]["meta_data"][0]["label"] = "y"
    del chunk.meta_dict["a"]["meta_data"][0]["inner"]
    assert chunk["a", []] == ([], {"label": "y"})


@pytest.mark.parametrize("id_", ["b", 8, "A", ""])
def test_an_unknown_id_is_a_key_error_that_names_id_and_file(chunk, id_):
    message = rf"no item '{id_}' in .*data_0\.gulp"
    with pytest.raises(ItemNotFoundError, match=message):
        chunk.read_frames(id_)
    with pytest.raises(KeyError):
        chunk[id_]


def test_a_position_outside_is_an_index_error_that_names_the_item(chunk):
    message = r"item 'a': frame index 6 is outside of an item of 6 frames"
    with pytest.raises(FrameIndexError, match=message):
        chunk["a", [0, 6]]
    with pytest.raises(IndexError):
        chunk["empty", 0]


@pytest.mark.parametrize("element", [1.5, b"a", None, ("a", 0, 1), ["a"], {"a"}])
def test_what_names_no_item_is_a_type_error(chunk, element):
    with pytest.raises(TypeError, match=r"give an id \(str or int\)"):
        chunk[element]


# --- iteration ----------------------------------------------------------------------


def labels(iterator: Any) -> list[Any]:
    """Give the number of frames of each item, in order."""
    return [len(frames) for frames, _ in iterator]


def test_iteration_goes_through_the_items_in_the_order_of_the_map(chunk):
    assert labels(chunk) == [6, 2, 0]
    assert labels(chunk.iter_all()) == [6, 2, 0]


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (["7", "a"], [6, 2]),
        ({"empty", "b"}, [0]),
        ([], []),
        ([7], []),
        (None, [6, 2, 0]),
        (iter(["empty", "7", "a"]), [6, 2, 0]),
        (map(str, [7, 1]), [2]),
        ("a7", [6, 2]),
        (np.array(["a"]), [6]),
        ([["a"], "7", None], [2]),
    ],
)
def test_accepted_ids_are_strings_and_keep_the_order_of_the_chunk(
    chunk, accepted, expected
):
    assert labels(chunk.iter_all(accepted_ids=accepted)) == expected


def test_shuffling_draws_from_the_global_generator(tmp_path):
    chunk = make_chunk(tmp_path, {n: ({"n": n}, []) for n in range(20)})
    np.random.seed(3)  # contract of 0.0.4
    got = [meta["n"] for _, meta in chunk.iter_all(shuffle=True)]
    np.random.seed(3)
    expected = [str(n) for n in range(20)]
    np.random.shuffle(expected)
    assert got == [int(id_) for id_ in expected]
    assert got != sorted(got)


def test_a_seed_gives_the_same_order_again_and_leaves_the_global_generator(tmp_path):
    chunk = make_chunk(tmp_path, {n: ({"n": n}, []) for n in range(20)})
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    orders = [[meta["n"] for _, meta in chunk.iter_all(seed=5)] for _ in range(2)]
    assert orders[0] == orders[1] != sorted(orders[0])
    assert sorted(orders[0]) == list(range(20))
    after = np.random.get_state()[1]  # type: ignore[index]
    assert np.array_equal(state, after)


def test_iteration_works_inside_of_an_open_block_and_inside_of_itself(chunk):
    with chunk.open("rb"):
        for got, _ in chunk:
            assert len(chunk["a", 0:1][0]) == 1
            assert labels(chunk) == [6, 2, 0]
            with chunk.open("rb"):
                assert len(chunk.read_frames("7")[0]) == 2
            assert isinstance(got, list)


# --- lifetime -----------------------------------------------------------------------


def test_a_chunk_that_is_not_there_is_not_taken_for_an_empty_one(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    for iterate in (
        iter,
        GulpChunk.iter_all,
        partial(GulpChunk.iter_all, shuffle=True),
    ):
        with pytest.raises(FileNotFoundError, match=r"cannot open .*data_0\.gulp"):
            list(iterate(chunk))
    with chunk.open("wb"):
        pass
    assert list(chunk) == []


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (None, FileNotFoundError, "cannot open .*Put the file back"),
        (Path.mkdir, StorageError, "cannot open .*not a regular file"),
        (os.mkfifo, StorageError, "cannot open .*not a regular file"),
        (lambda path: path.symlink_to(path), StorageError, "links lead in a circle"),
    ],
    ids=["nothing", "folder", "pipe", "circle"],
)
def test_what_cannot_be_opened_is_told_before_it_is_read(tmp_path, make, kind, said):
    chunk = make_three_items(tmp_path)
    path = Path(chunk.data_file_path)
    path.unlink()
    if make is not None:
        make(path)
    with pytest.raises(StorageError, match=said) as caught, chunk.open("rb"):
        pass
    assert isinstance(caught.value, kind)
    assert chunk.fp is None


def test_nothing_is_open_before_the_first_read_and_one_file_after_it(chunk, tmp_path):
    assert open_files(tmp_path) == []
    for _ in range(3):
        chunk["a"]
    assert open_files(tmp_path) == [str(tmp_path / "data_0.gulp")]
    other = pickle.loads(pickle.dumps(chunk))
    assert len(other["a"][0]) == 6
    assert len(open_files(tmp_path)) == 2
    del other
    assert len(open_files(tmp_path)) == 1


def test_an_open_block_has_the_file_and_closes_it(chunk, tmp_path):
    with chunk.open("rb"):
        assert chunk.fp.name == str(tmp_path / "data_0.gulp")
    assert chunk.fp is None
    assert open_files(tmp_path) == []
    with pytest.raises(ZeroDivisionError), chunk.open():
        _ = 1 / 0
    assert chunk.fp is None
    assert open_files(tmp_path) == []


@pytest.mark.parametrize("flag", ["r", "w", "r+b", "", None, "wb+"])
def test_other_flags_are_not_implemented(chunk, flag):
    with (
        pytest.raises(NotImplementedError, match="expected 'rb', 'wb' or 'ab'"),
        chunk.open(flag),
    ):
        pytest.fail("opened")


@pytest.mark.parametrize("read_before", [False, True])
def test_a_chunk_is_pickled_without_files(chunk, tmp_path, read_before):
    if read_before:
        chunk["a"]
    with chunk.open("rb"):
        copy = pickle.loads(pickle.dumps(chunk))
    assert copy.fp is None
    assert copy.meta_dict == chunk.meta_dict
    assert np.array_equal(copy.read_clip("a"), chunk.read_clip("a"))
    with copy.open("rb"):
        assert len(copy["7"][0]) == 2


def test_a_chunk_that_the_original_pickled_is_opened(chunk, tmp_path):
    state: dict[str, Any] = {
        "jpeg_decoder": decode_frame,
        "serializer": json_serializer,
        "data_file_path": str(tmp_path / "data_0.gulp"),
        "meta_file_path": str(tmp_path / "meta_0.gmeta"),
        "meta_dict": OrderedDict(json.loads(json.dumps(chunk.meta_dict))),
        "_img_info": {},
        "fp": None,
    }
    state["meta_dict"]["a"]["meta_data"][0]["label"] = "edited"
    copy = GulpChunk.__new__(GulpChunk)
    copy.__setstate__(state)
    for again in (copy, pickle.loads(pickle.dumps(copy))):
        with again.open("rb"):
            assert len(again["a"][0]) == 6
        with again.open("ab"):
            again.append("b", {}, [])
        assert again["a", []][1]["label"] == "edited"
        assert list(new_chunk(tmp_path).meta_dict) == ["a", "7", "empty", "b"]


def test_threads_read_one_chunk(chunk, frames):
    def read(number: int) -> bool:
        rng = np.random.default_rng(number)
        for _ in range(50):
            index = int(rng.integers(6))
            with chunk.open("rb"):
                (frame,), _ = chunk["a", [index]]
            if not np.array_equal(frame, frames[index]):
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))
    assert chunk.fp is None


def test_a_chunk_says_what_it_is(chunk, tmp_path):
    path = str(tmp_path / "data_0.gulp")
    assert repr(chunk) == f"GulpChunk({path!r}, 3 items)"


def test_a_pickled_map_is_read_with_its_own_serializer_only(tmp_path):
    paths = (str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))
    chunk = GulpChunk(*paths, serializer=pickle_serializer)
    with chunk.open("wb"):
        chunk.append("a", {"n": 1}, make_frames(2))
    assert len(GulpChunk(*paths, serializer=pickle_serializer)["a"][0]) == 2
    with pytest.raises(MetaFileError, match="that are not JSON"):
        GulpChunk(*paths)


def test_a_pickled_map_may_be_edited_to_what_is_no_json(tmp_path, caplog):
    path = tmp_path / "meta_0.gmeta"
    paths = (tmp_path / "data_0.gulp", path, pickle_serializer)
    chunk = GulpChunk(*paths)
    with chunk.open("wb"):
        chunk.append("a", {"n": 1}, make_frames(2))
    entry = pickle_serializer.load(path)["a"]
    entry["meta_data"][0]["day"] = date(2020, 2, 29)
    pickle_serializer.dump({"a": entry, 7: entry}, path)
    assert GulpChunk(*paths).item("a").meta == {"n": 1, "day": date(2020, 2, 29)}
    assert "the entry of item 'a' (and of 1 other) is not what its check" in caplog.text
    with pytest.raises(MetaFileError, match="its check is not that of its content"):
        GulpChunk(*paths, verify=True)


def test_reading_while_writing_is_refused(chunk):
    with chunk.open("ab"):
        message = "open for writing; leave the `with` block before reading"
        with pytest.raises(StorageError, match=message):
            chunk["a"]
    assert len(chunk["a"][0]) == 6
