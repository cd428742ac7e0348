"""What real programs rely on, run as they do it (``client_code.py``).

What they rely on in a directory or a chunk alone is held by the tests of these.
"""

from __future__ import annotations

import math
import multiprocessing
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


# ------------------------------------------------------------------ workers
@pytest.mark.torch
# Python >= 3.12 warns of a fork with threads running; the client chose to fork.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_torch_loader_reads_in_its_workers(rgb, client_code, method, read_first):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    from torch.utils.data import DataLoader

    dataset = client_code.RgbDataset(rgb)
    if read_first:
        dataset[0]
    loader = DataLoader(
        dataset, batch_size=3, num_workers=2, multiprocessing_context=method
    )
    ((clips, meta),) = list(loader)
    assert tuple(clips.shape) == (3, 2, 24, 32, 3)
    assert meta["of"] == ["P01_103_96", "7", "brush_hair/clip1"]
    for k in range(3):
        np.testing.assert_array_equal(clips[k].numpy(), dataset[k][0])
