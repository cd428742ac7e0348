"""What real programs rely on, run as they do it (``client_code.py``)."""

from __future__ import annotations

import math
import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def rgb(make_directory: Any, frame: Any) -> Path:
    """Make a directory of two chunks with colour frames."""
    folder: Path = make_directory(
        {"P01_103_96": [frame(k) for k in range(6)], 7: [frame(k) for k in range(4)]},
        {"brush_hair/clip1": [frame(k + 20) for k in range(3)]},
    )
    return folder


@pytest.fixture
def flow(make_directory: Any, grey: Any) -> Path:
    """Make a directory of flow: u frames even, v frames odd."""
    folder: Path = make_directory({"P01_103_96": [grey(k) for k in range(10)]})
    return folder


# ------------------------------------------------------------------ opening
@pytest.mark.parametrize(
    "spelled",
    [
        lambda path: str(path.absolute()),
        lambda path: str(path),
        lambda path: f"{path}{os.sep}",
        lambda path: path,
        lambda path: os.path.relpath(path),
    ],
    ids=["absolute", "text", "trailing slash", "path", "relative"],
)
def test_a_directory_opens_however_its_path_is_spelled(rgb, spelled, monkeypatch):
    monkeypatch.chdir(rgb.parent)
    directory = GulpDirectory(spelled(rgb))
    assert len(directory.merged_meta_dict) == 3
    assert directory["7"][0][0].shape == (24, 32, 3)


def test_a_missing_or_empty_directory_opens_empty_and_is_not_made(tmp_path):
    missing = GulpDirectory(str(tmp_path / "missing"))
    assert (missing.num_chunks, missing.merged_meta_dict) == (0, {})
    assert list(missing) == []
    assert not (tmp_path / "missing").exists()
    assert GulpDirectory(str(tmp_path)).num_chunks == 0


# ------------------------------------------------------------------ enumerating
def test_metadata_is_enumerated_edited_and_the_edits_stick(client_code, tmp_path, grey):
    meta = {
        "label": "a",
        "nothing": None,
        "nan": math.nan,
        "list": [1],
        "count": 3,
    }
    adapter = client_code.ArrayAdapter([("x", meta, [grey(1), grey(2)])])
    GulpIngestor(adapter, str(tmp_path / "gulp"), 1, 1)()
    dataset = client_code.RgbDataset(tmp_path / "gulp")
    assert len(dataset) == 1
    expected = {"label": "a", "nan": "none", "count": 3}
    assert dataset.gulp_dir.merged_meta_dict["x"]["meta_data"][0] == expected
    assert dataset.gulp_dir["x"][1] == expected
    assert dataset.gulp_dir["x", slice(0, 1)][1] == expected
    assert next(iter(next(dataset.gulp_dir.chunks())))[1] == expected


def test_the_inner_mappings_are_shared_objects(rgb):
    directory = GulpDirectory(str(rgb))
    for chunk, meta_dict in zip(directory, directory.all_meta_dicts, strict=True):
        assert chunk.meta_dict is meta_dict
        for id_, entry in meta_dict.items():
            assert directory.merged_meta_dict[id_] is entry


def test_metadata_read_with_frames_is_a_fresh_dict_each_time(rgb):
    directory = GulpDirectory(str(rgb))
    _, meta = directory["7"]
    meta["of"] = "changed by the caller"
    meta["new"] = 1
    assert directory["7"][1] == {"of": "7"}


def test_edits_travel_to_a_worker_with_the_directory(rgb):
    directory = GulpDirectory(str(rgb))
    directory.merged_meta_dict["7"]["meta_data"][0]["edited"] = True
    copy = pickle.loads(pickle.dumps(directory))
    assert copy["7"][1] == {"of": "7", "edited": True}
    assert copy.merged_meta_dict["7"] is copy.chunk_objs_lookup[0].meta_dict["7"]


# ------------------------------------------------------------------ reading
def test_one_colour_frame_becomes_a_pil_image(rgb, client_code, frame):
    pytest.importorskip("PIL")
    image = client_code.RgbDataset(rgb).load_frame("P01_103_96", 3)
    assert (image.mode, image.size) == ("RGB", (32, 24))
    difference = np.abs(np.asarray(image).astype(int) - frame(3).astype(int))
    assert difference.mean() < 6


def test_flow_frames_are_grey_and_come_in_pairs(flow, client_code, grey):
    pytest.importorskip("PIL")
    dataset = client_code.FlowDataset(flow)
    u, v = dataset.load_flow("P01_103_96", 2)
    assert (u.mode, v.mode) == ("L", "L")
    for image, seed in ((u, 4), (v, 5)):
        difference = np.asarray(image).astype(int) - grey(seed).astype(int)
        assert np.abs(difference).mean() < 6
    us, vs = dataset.load_pairs("P01_103_96", 1, 3)
    assert (type(us), len(us), len(vs)) == (list, 3, 3)
    every = dataset.gulp_dir["P01_103_96"][0]
    for k in range(3):
        np.testing.assert_array_equal(us[k], every[2 + 2 * k])
        np.testing.assert_array_equal(vs[k], every[3 + 2 * k])


def test_frames_are_chosen_by_a_list_of_numpy_integers_with_repeats(rgb):
    directory = GulpDirectory(str(rgb))
    every = directory["P01_103_96"][0]
    choices: list[Any] = [
        [0, 0, 5, 2],
        list(np.linspace(0, 5, 4).astype(int)),
        np.array([5, 1, 1]),
        [np.int32(3), 0],
    ]
    for chosen in choices:
        stacked = np.stack(directory["P01_103_96", chosen][0])
        np.testing.assert_array_equal(
            stacked, np.stack([every[int(i)] for i in chosen])
        )


def test_a_whole_item_is_a_pair_of_frames_and_metadata(rgb):
    directory = GulpDirectory(str(rgb))
    frames, meta = directory["P01_103_96"]
    assert (len(frames), meta) == (6, {"of": "P01_103_96"})
    assert len(directory["P01_103_96"]) == 2
    assert isinstance(directory["P01_103_96"], tuple)


@pytest.mark.parametrize("id_", [7, "7", np.int64(7), np.int32(7)])
def test_an_id_may_be_a_number_from_a_table(rgb, id_):
    directory = GulpDirectory(str(rgb))
    assert len(directory[id_, slice(0, 4)][0]) == 4
    assert directory[id_][1] == {"of": "7"}
    assert directory.merged_meta_dict[str(id_)]["meta_data"][0]["of"] == "7"
    assert id_ in directory
    assert id_ in directory.chunk_objs_lookup[0]


def test_an_id_may_hold_a_slash(rgb):
    directory = GulpDirectory(str(rgb))
    assert directory.chunk_lookup["brush_hair/clip1"] == 1
    assert len(directory["brush_hair/clip1", 1:][0]) == 2


def test_an_unknown_id_is_a_key_error_with_the_id_in_it(rgb):
    directory = GulpDirectory(str(rgb))
    for id_ in ("nobody", 99):
        with pytest.raises(KeyError, match=str(id_)):
            directory[id_]
        with pytest.raises(KeyError, match=str(id_)):
            directory[id_, 0:1]


def test_a_decoder_of_the_client_may_give_anything(rgb):
    seen: list[bytes] = []

    def decoder(data: bytes) -> tuple[str, int]:
        seen.append(data)
        return ("decoded", len(seen))

    directory = GulpDirectory(str(rgb), jpeg_decoder=decoder)
    assert directory["7", [2, 0, 2]][0] == [("decoded", k) for k in (1, 2, 3)]
    assert all(bytes(data[:2]) == b"\xff\xd8" for data in seen)
    assert bytes(seen[0]) == bytes(seen[2]) != bytes(seen[1])
    assert next(directory.chunks()).jpeg_decoder is decoder
    assert next(directory.new_chunks(1)).jpeg_decoder is decoder


# ------------------------------------------------------------------ iterating
def test_chunks_and_their_items_are_iterated(rgb):
    directory = GulpDirectory(str(rgb))
    read = [meta["of"] for chunk in directory for _, meta in chunk]
    assert read == ["P01_103_96", "7", "brush_hair/clip1"]
    first, second = directory.chunks(), directory.chunks()
    assert next(first) is next(second)
    assert len(list(first)) == 1


def test_iteration_filters_by_ids_and_keeps_the_order_of_the_chunk(rgb):
    chunk = GulpDirectory(str(rgb)).chunk_objs_lookup[0]

    def ids(**options: Any) -> list[str]:
        return [meta["of"] for _, meta in chunk.iter_all(**options)]

    assert ids(accepted_ids=["7", "P01_103_96", "unknown"]) == ["P01_103_96", "7"]
    assert ids(accepted_ids={"7"}) == ["7"]
    assert ids(accepted_ids=[]) == []


def test_shuffling_follows_the_global_numpy_seed(make_directory, grey):
    folder = make_directory({k: [grey(k)] for k in range(20)})
    (chunk,) = GulpDirectory(str(folder))

    def order(seed: int) -> list[str]:
        np.random.seed(seed)  # noqa: NPY002  what clients do
        return [meta["of"] for _, meta in chunk.iter_all(shuffle=True)]

    expected = [str(k) for k in range(20)]
    np.random.seed(5)  # noqa: NPY002
    np.random.shuffle(expected)  # noqa: NPY002
    assert order(5) == expected == order(5)
    assert order(6) != expected
    assert list(chunk.meta_dict) == [str(k) for k in range(20)]


def test_a_chunk_is_iterated_inside_of_an_open_block(rgb):
    (chunk, _) = GulpDirectory(str(rgb))
    with chunk.open("rb"):
        assert [meta["of"] for _, meta in chunk] == ["P01_103_96", "7"]
        assert len(chunk.read_frames("7")[0]) == 4
