"""What the unit tests of GulpIO2 reach into, where it is kept.

Programs with their own tests patch the same names. Patches of `unittest.mock` are the
thing under test here, which is why they are used.
"""

from __future__ import annotations

import importlib
import io
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import gulpio2.fileio
from gulpio2 import GulpChunk, GulpIngestor, utils
from gulpio2.codecs import jpeg


@pytest.fixture
def chunk(tmp_path: Path) -> GulpChunk:
    """Give a chunk that has no files."""
    return GulpChunk(str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))


# ------------------------------------------------------------------ quality
def test_four_frames_of_one_pixel_width_at_quality_100_have_the_known_sizes(
    chunk, monkeypatch
):
    monkeypatch.setattr(utils, "_JPEG_WRITE_QUALITY", 100)
    frames = [np.full((1, 1, 3), value, np.uint8) for value in (1, 2, 254, 255)]
    with chunk.open("wb"):
        chunk.append(0, {"meta": "ANY"}, frames)
    expected = [(632 * k, 3, 632) for k in range(4)]
    assert chunk.meta_dict["0"]["frame_info"] == expected
    assert Path(chunk.data_file_path).stat().st_size == 4 * 632


def test_the_quality_is_consulted_at_every_encode(monkeypatch, frame):
    sizes = []
    for quality in (100, 50, 90):
        monkeypatch.setattr(utils, "_JPEG_WRITE_QUALITY", quality)
        sizes.append(len(utils.img_to_jpeg_bytes(frame())))
    assert sizes[0] > sizes[2] > sizes[1]


def test_the_quality_can_be_changed_while_a_chunk_is_open_and_patched(
    chunk, frame, monkeypatch
):
    monkeypatch.setattr(utils, "_JPEG_WRITE_QUALITY", 90)  # restored, come what may
    with chunk.open("wb"):
        chunk.append("before", {}, [frame()])
        with mock.patch("gulpio2.utils._JPEG_WRITE_QUALITY", 100):
            chunk.append("best", {}, [frame()])
        chunk.append("after", {}, [frame()])
    lengths = [
        chunk.meta_dict[i]["frame_info"][0][2] for i in ("before", "best", "after")
    ]
    assert lengths[0] == lengths[2] < lengths[1]


def test_a_patch_restores_the_quality_that_was_set_before_it(monkeypatch):
    monkeypatch.setattr(utils, "_JPEG_WRITE_QUALITY", 80)
    name, found = "gulpio2.utils._JPEG_WRITE_QUALITY", []
    with mock.patch(name, 100):
        with mock.patch(name, 50):
            found.append(jpeg.DEFAULT_QUALITY)
        found.append(jpeg.DEFAULT_QUALITY)
    found.append(jpeg.DEFAULT_QUALITY)
    assert found == [50, 100, 80]
    assert getattr(utils, "_JPEG_WRITE_QUALITY") == 80  # noqa: B009  # a name of 0.0.4


def test_ten_videos_of_forty_black_and_white_frames_have_the_known_size(
    tmp_path, client_code
):
    clip = [np.full((100, 100, 3), 255 * (k % 2), np.uint8) for k in range(40)]
    adapter = client_code.ArrayAdapter([(k, {}, clip) for k in range(10)])
    GulpIngestor(adapter, str(tmp_path / "out"), 100, 1)()
    # Measured with 0.0.4 and simplejpeg 1.9.0 on the same clip.
    assert (tmp_path / "out" / "data_0.gulp").stat().st_size == 369600


# ------------------------------------------------------------------ helpers


def test_an_index_that_is_not_there_is_an_empty_ordered_mapping(chunk):
    assert chunk._get_or_create_dict() == OrderedDict()
    assert isinstance(chunk._get_or_create_dict(), OrderedDict)


def test_an_index_that_is_there_is_loaded_in_its_order(chunk):
    content: dict[str, Any] = {
        "b": {"meta_data": [{}], "frame_info": []},
        "a": {"meta_data": [{}], "frame_info": []},
    }
    Path(chunk.meta_file_path).write_text(json.dumps(content))
    loaded = chunk._get_or_create_dict()
    assert list(loaded) == ["b", "a"]
    assert list(loaded["b"]) == ["meta_data", "frame_info"]


# ------------------------------------------------------------------ reading
def test_reads_go_through_fp_where_a_client_puts_a_file_there(chunk, grey):
    jpeg = utils.img_to_jpeg_bytes(grey(1))
    pad = -len(jpeg) % 4
    chunk.meta_dict["0"] = {
        "frame_info": [[4, pad, len(jpeg) + pad]],
        "meta_data": [{"m": 1}],
    }
    chunk.fp = io.BytesIO(b"junk" + jpeg + b"\0" * pad)
    frames, meta = chunk.read_frames("0")
    np.testing.assert_array_equal(frames[0], utils.jpeg_bytes_to_img(jpeg))
    assert meta == {"m": 1}


@pytest.mark.parametrize("flag", ["rb", "wb", "ab"])
def test_opening_gives_fp_and_closes_it(chunk, grey, flag):
    with chunk.open("wb"):
        chunk.append("0", {}, [grey(1)])
    with chunk.open(flag) as given:
        assert given is None
        opened: Any = chunk.fp
        assert opened is not None
    assert chunk.fp is None
    assert getattr(opened, "closed", True)


def test_flushing_dumps_the_index_through_the_serializer(tmp_path, grey):
    dumped: list[tuple[Any, Any]] = []

    class Serializer(gulpio2.fileio.AbstractSerializer):
        def load(self, file_name: Any) -> Any:
            raise AssertionError(file_name)

        def dump(self, thing: Any, file_name: Any) -> None:
            dumped.append((dict(thing), file_name))
            Path(file_name).write_text("mine")

    path = str(tmp_path / "meta_0.gmeta")
    chunk = GulpChunk(str(tmp_path / "data_0.gulp"), path, serializer=Serializer())
    with chunk.open("wb"):
        chunk.append("0", {"m": 1}, [grey(1)])
    assert Path(path).read_text() == "mine"
    assert list(dumped[-1][0]) == ["0"]


def test_iteration_opens_the_chunk_and_reads_each_id_through_its_methods(
    chunk, grey, monkeypatch
):
    with chunk.open("wb"):
        for k in range(3):
            chunk.append(k, {}, [grey(k)])
    calls: list[Any] = []

    def read_frames(id_: str) -> tuple[list[str], dict[str, str]]:
        calls.append(id_)
        return [f"frame of {id_}"], {"id": id_}

    monkeypatch.setattr(chunk, "read_frames", read_frames)
    expected = [([f"frame of {k}"], {"id": k}) for k in "012"]
    assert list(chunk.iter_all()) == expected
    assert calls == ["0", "1", "2"]


def test_shuffling_goes_through_the_global_shuffle_of_numpy(chunk, grey):
    with chunk.open("wb"):
        for k in range(3):
            chunk.append(k, {"k": k}, [grey(k)])
    with mock.patch("numpy.random.shuffle") as shuffle:
        shuffle.side_effect = lambda ids: ids.reverse()
        read = [meta["k"] for _, meta in chunk.iter_all(shuffle=True)]
    assert read == [2, 1, 0]
    shuffle.assert_called_once()


# ------------------------------------------------------------------ patched names
@pytest.mark.parametrize(
    "target",
    [
        "gulpio2.fileio.img_to_jpeg_bytes",
        "gulpio2.fileio.json_serializer",
        "gulpio2.fileio.GulpChunk",
        "gulpio2.fileio.ChunkWriter",
        "gulpio2.utils.resize_by_short_edge",
    ],
)
def test_a_name_that_upstream_patches_exists(target):
    module, _, name = target.rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    with mock.patch(target) as patched:
        assert getattr(importlib.import_module(module), name) is patched


@pytest.mark.parametrize(
    "name",
    [
        "ImageNotFound",
        "burst_video_into_frames",
        "find_images_in_folder",
        "get_single_video_path",
        "remove_entries_with_duplicate_ids",
        "resize_by_short_edge",
        "resize_images",
        "temp_dir_for_bursting",
    ],
)
def test_what_adapters_are_written_with_is_importable_from_their_module(name):
    adapters = importlib.import_module("gulpio2.adapters")
    assert getattr(adapters, name) is getattr(utils, name)


def test_ffmpeg_is_looked_for_through_os_system():
    for status, answer in ((0, True), (1, False)):
        with mock.patch("os.system", return_value=status) as system:
            assert utils.check_ffmpeg_exists() is answer
        (command,) = system.call_args.args
        assert command.startswith("ffmpeg -version")


# ------------------------------------------------------------------ helpers of utils
@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((480, 640), 256, (256, 341)),
        ((240, 427), 256, (256, 455)),
        ((1000, 3), 1, (333, 1)),
        ((3, 1000), 1, (1, 333)),
        ((50, 50), 20, (20, 20)),
        ((10, 20), 30, (30, 60)),
        ((10, 20), 0, (10, 20)),
        ((10, 20), -1, (10, 20)),
    ],
)
def test_the_short_edge_is_computed_by_the_rule_of_the_original(
    shape, size, expected, grey
):
    assert utils.resize_by_short_edge(grey(1, *shape), size).shape == expected


def test_images_are_resized_lazily_from_any_iterator(tmp_path, grey):
    pil = pytest.importorskip("PIL.Image")
    paths = []
    for k in range(2):
        pil.fromarray(grey(k, 20, 30)).save(tmp_path / f"{k}.png")
        paths.append(tmp_path / f"{k}.png")
    lazy = utils.resize_images(map(str, [*paths, "missing.png"]), 10)
    assert next(lazy).shape == (10, 15)
    assert next(lazy).shape == (10, 15)
    with pytest.raises(FileNotFoundError, match=r"missing\.png"):
        next(lazy)
    (same,) = utils.resize_images([paths[0]])
    np.testing.assert_array_equal(same, grey(0, 20, 30))


def test_ids_that_are_there_already_are_told_and_dropped(make_directory, grey, capsys):
    folder = make_directory({1: [grey(1)], "b": [grey(2)]})
    metas: list[Any] = [{"id": "1"}, {"id": 5}, {"id": 5}, {"id": "c"}]
    kept = utils.remove_entries_with_duplicate_ids(str(folder), metas)
    assert kept == [{"id": 5}, {"id": "c"}]
    assert capsys.readouterr().out.splitlines() == [
        "Id 5 more than once in json file, I skip it!",
        "Id 1 already in GulpDirectory, I skip it!",
    ]
    with pytest.raises(utils.DuplicateIdException):
        utils.remove_entries_with_duplicate_ids(str(folder), [{"id": "b"}])
    assert "no items to add... Abort" in capsys.readouterr().out
