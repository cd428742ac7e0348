"""The small functions of ``gulpio2.fileio``, ``utils`` and ``sanity_utils``."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, fileio, sanity_utils, utils
from gulpio2.fileio import ImgInfo, calculate_chunk_slices, extract_input_for_getitem


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
    ("per_chunk", "count", "expected"),
    [
        (1, 1, [slice(0, 1)]),
        (2, 3, [slice(0, 2), slice(2, 3)]),
        (100, 2, [slice(0, 2)]),
        (3, 9, [slice(0, 3), slice(3, 6), slice(6, 9)]),
    ],
)
def test_items_are_cut_into_slices(per_chunk, count, expected):
    assert calculate_chunk_slices(per_chunk, count) == expected


@pytest.mark.parametrize(("per_chunk", "count"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_no_items_or_no_size_is_an_assertion_error(per_chunk, count):
    with pytest.raises(AssertionError):
        calculate_chunk_slices(per_chunk, count)


def test_the_span_of_a_frame_is_a_triplet():
    info = ImgInfo(loc=4, pad=1, length=8)
    assert info == (4, 1, 8)
    assert ImgInfo._fields == ("loc", "pad", "length")
    assert json.dumps(info) == "[4, 1, 8]"


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
def test_new_chunks_are_numbered_after_the_last_and_reserve_nothing(
    make_directory, grey
):
    folder = make_directory({"a": [grey()]}, {"b": [grey()]})
    directory = GulpDirectory(folder)
    for _ in range(2):
        paths = [chunk.data_file_path for chunk in directory.new_chunks(2)]
        assert paths == [str(folder / f"data_{k}.gulp") for k in (2, 3)]
    assert list(directory.new_chunks(0)) == []
    assert sorted(os.listdir(folder)) == [  # noqa: PTH208
        "data_0.gulp",
        "data_1.gulp",
        "meta_0.gmeta",
        "meta_1.gmeta",
    ]


def test_fresh_spans_in_memory_and_loaded_ones_are_the_same_numbers(tmp_path, grey):
    paths = (str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))
    with (chunk := GulpChunk(*paths)).open("wb"):
        chunk.append("a", {}, [grey(1), grey(2)])
    fresh = chunk.meta_dict["a"]["frame_info"]
    loaded = GulpChunk(*paths).meta_dict["a"]["frame_info"]
    assert all(type(info) is ImgInfo for info in fresh)
    assert [list(info) for info in fresh] == loaded


def test_a_missing_label_file_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        GulpDirectory(tmp_path)._load_label_dict()


# ------------------------------------------------------------------ pixels
@pytest.mark.parametrize("shape", [(9, 7), (9, 7, 3)])
def test_a_frame_survives_its_jpeg_within_a_few_levels(shape):
    ramp = np.linspace(40, 200, 9, dtype=np.uint8).reshape(-1, *[1] * (len(shape) - 1))
    image = np.broadcast_to(ramp, shape).copy()
    decoded = utils.jpeg_bytes_to_img(utils.img_to_jpeg_bytes(image))
    assert decoded.shape == shape
    assert np.abs(decoded.astype(int) - image).max() <= 5
    assert decoded.flags.c_contiguous
    assert decoded.flags.writeable
    assert decoded.flags.owndata


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3, 3)])
def test_another_number_of_dimensions_is_a_value_error(shape):
    with pytest.raises(ValueError, match=str(shape[0])):
        utils.img_to_jpeg_bytes(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("data", [b"", b"garbage", b"\xff\xd8\xff\xe0 cut"])
def test_what_is_no_jpeg_is_a_value_error(data):
    with pytest.raises(ValueError, match="JPEG"):
        utils.jpeg_bytes_to_img(data)


def test_a_cut_jpeg_is_a_value_error(frame):
    jpeg = utils.img_to_jpeg_bytes(frame())
    with pytest.raises(ValueError, match="JPEG"):
        utils.jpeg_bytes_to_img(jpeg[: len(jpeg) // 2])


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
            assert len(os.listdir(folder)) == count  # noqa: PTH208


# ------------------------------------------------------------------ sanity_utils
def directory_of(tmp_path: Path, *chunks: tuple[int, dict[str, Any]]) -> Any:
    """Make what the checks need of a directory: data sizes and maps."""
    made = []
    for number, (size, meta_dict) in enumerate(chunks):
        data, meta = tmp_path / f"d{number}", tmp_path / f"m{number}"
        data.write_bytes(bytes(size))
        meta.write_text("{}" if meta_dict else "")
        made.append(
            SimpleNamespace(
                data_file_path=str(data), meta_file_path=str(meta), meta_dict=meta_dict
            )
        )
    return SimpleNamespace(chunks=lambda: iter(made))


def entry(*spans: list[int]) -> dict[str, Any]:
    """Make an entry of a map."""
    return {"frame_info": list(spans), "meta_data": [{}]}


def test_the_checks_take_anything_that_has_chunks(tmp_path):
    directory = directory_of(
        tmp_path,
        (8, {"a": entry([0, 0, 8]), "b": entry()}),
        (0, {}),
        (9, {"c": entry([0, 0, 4]), "a": entry([4, 0, 4])}),
    )
    empty = sanity_utils.check_data_file_size_larger_zero(directory)
    assert empty == [str(tmp_path / "d1")]
    empty = sanity_utils.check_meta_file_size_larger_zero(directory)
    assert empty == [str(tmp_path / "m1")]
    assert sanity_utils.check_data_file_size(directory) == [str(tmp_path / "d2")]
    assert sanity_utils.extract_all_ids(directory) == ["a", "b", "c", "a"]
    assert sanity_utils.check_for_duplicate_ids(directory) == ["a"]


def test_repeats_are_listed_in_the_order_of_their_first_place():
    entries = ["b", "a", "c", "a", "b", "b"]
    assert sanity_utils.get_duplicate_entries(entries) == ["b", "a"]
    assert sanity_utils.get_duplicate_entries([]) == []


def test_a_result_is_printed_on_two_lines(capsys):
    sanity_utils.check_for_failures({"message": "Check it", "failures": []})
    sanity_utils.check_for_failures({"message": "Check it", "failures": ["a", 1]})
    assert capsys.readouterr().out.splitlines() == [
        "Sanity Check: Check it",
        "Test passed",
        "Sanity Check: Check it",
        "Test failed for: ['a', 1]",
    ]
