"""The small functions of ``gulpio2.fileio`` and ``utils``."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from gulpio2 import GulpChunk, fileio, utils
from gulpio2.fileio import ImgInfo, extract_input_for_getitem


# ------------------------------------------------------------------ fileio
@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("a", ("a", None)),
        (7, ("7", None)),
        (True, ("True", None)),
        ((True, slice(1, 2)), ("True", slice(1, 2))),
        (("a", slice(1, 2)), ("a", slice(1, 2))),
        ((7, [1, 2]), ("7", [1, 2])),
        ((1.5, None), ("1.5", None)),
        ((None, 3), ("None", 3)),
        ((("a", 1), None), ("('a', 1)", None)),
    ],
)
def test_a_subscript_is_an_id_or_an_id_and_a_selector(element, expected):
    assert extract_input_for_getitem(element) == expected


@pytest.mark.parametrize("element", [1.5, b"a", ("a", 1, 2), [1, 2], None, {}])
def test_another_subscript_is_a_type_error(element):
    with pytest.raises(TypeError):
        extract_input_for_getitem(element)


@pytest.mark.parametrize(
    "serializer", [fileio.json_serializer, fileio.pickle_serializer]
)
def test_a_serializer_reads_what_it_wrote_in_order(serializer, tmp_path):
    thing = OrderedDict([("z", {"y": 1, "x": [1, {"w": None}]}), ("a", 2.5)])
    serializer.dump(thing, str(tmp_path / "file"))
    loaded = serializer.load(str(tmp_path / "file"))
    assert loaded == thing
    assert list(loaded) == ["z", "a"]


def test_the_json_serializer_writes_the_layout_of_json_dump(tmp_path):
    thing = {"é": [1, float("nan")], "b": {"c": True}}
    fileio.json_serializer.dump(thing, str(tmp_path / "file"))
    assert (
        tmp_path / "file"
    ).read_bytes() == b'{"\\u00e9": [1, NaN], "b": {"c": true}}'
    loaded = fileio.json_serializer.load(str(tmp_path / "file"))
    assert type(loaded) is OrderedDict
    assert type(loaded["b"]) is OrderedDict


# ------------------------------------------------------------------ the classes
def test_fresh_spans_in_memory_and_loaded_ones_are_the_same_numbers(tmp_path, grey):
    paths = (str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))
    with (chunk := GulpChunk(*paths)).open("wb"):
        chunk.append("a", {}, [grey(1), grey(2)])
    fresh = chunk.meta_dict["a"]["frame_info"]
    loaded = GulpChunk(*paths).meta_dict["a"]["frame_info"]
    assert all(type(info) is ImgInfo for info in fresh)
    assert [list(info) for info in fresh] == loaded


# ------------------------------------------------------------------ pixels
@pytest.mark.parametrize("shape", [(3,), (1, 2, 3, 3)])
def test_another_number_of_dimensions_is_a_value_error(shape):
    with pytest.raises(ValueError, match=str(shape[0])):
        utils.img_to_jpeg_bytes(np.zeros(shape, np.uint8))


def test_an_image_is_resized_from_an_array_a_picture_or_a_path(tmp_path, frame):
    pil = pytest.importorskip("PIL.Image")
    pixels = frame(1, 30, 40)
    pil.fromarray(pixels).save(tmp_path / "x.png")
    resized = [
        utils.resize_by_short_edge(image, 15)
        for image in (pixels, pil.fromarray(pixels), str(tmp_path / "x.png"))
    ]
    for image in resized:
        assert image.shape == (15, 20, 3)
        assert image.dtype == np.uint8
        np.testing.assert_array_equal(image, resized[0])
    with pytest.raises(FileNotFoundError):
        utils.resize_by_short_edge(str(tmp_path / "missing.png"), 15)


# ------------------------------------------------------------------ files
def test_images_are_found_by_extension_sorted_and_not_below(tmp_path):
    for name in ("b.jpg", "a.jpeg", "c.JPG", "d.png", "notjpg", "sub/e.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for folder in (str(tmp_path), tmp_path):
        assert utils.find_images_in_folder(folder) == [str(tmp_path / "b.jpg")]
        assert utils.find_images_in_folder(folder, formats={"jpg", "jpeg"}) == [
            str(tmp_path / "a.jpeg"),
            str(tmp_path / "b.jpg"),
        ]
    assert utils.find_images_in_folder(str(tmp_path / "missing")) == []


def test_a_video_is_burst_into_numbered_jpeg_files(tmp_path, make_video):
    video = make_video(tmp_path / "v.mp4", num_frames=24, rate=12)
    # 14 and not 12: what 0.0.4 makes of it, by the rounding of FFmpeg's `-r`.
    for rate, count in ((None, 24), (6, 14), ("6", 14), (0, 24)):
        folder = tmp_path / f"burst_{rate!r}"
        folder.mkdir()
        paths = utils.burst_video_into_frames(str(video), str(folder), frame_rate=rate)
        assert paths == [str(folder / f"{k:010d}.jpg") for k in range(1, count + 1)]
        for path in (paths[0], paths[-1]):
            jpeg = Path(path).read_bytes()
            assert utils.jpeg_bytes_to_img(jpeg).shape == (48, 64, 3)


def test_the_reference_clip_gives_the_known_numbers_of_frames(tmp_path, shared_videos):
    video = str(shared_videos / "vp8_audio_30fps.webm")
    for rate, count in ((None, 140), (8, 39)):
        with utils.temp_dir_for_bursting(str(tmp_path)) as folder:
            utils.burst_frames_to_shm(video, folder, frame_rate=rate)
            assert len(os.listdir(folder)) == count  # noqa: PTH208  # names alone
