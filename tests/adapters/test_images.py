"""Images from a list and from a tree of folders."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from gulpio2.adapters import ImageFolderAdapter, ImageListAdapter
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests


@pytest.fixture
def images(tmp_path, make_jpeg):
    """Give a folder of images in class folders."""
    for number, name in enumerate(["a/1.jpg", "b/2.jpg", "b/3.jpg", "top.jpg"]):
        make_jpeg(tmp_path / "images" / name, 20 * number)
    return tmp_path / "images"


@pytest.fixture
def image_list(tmp_path, images):
    """Give a list of three of them."""
    path = tmp_path / "list.txt"
    path.write_text("a/1.jpg,x\nb/2.jpg,y\ntop.jpg,x\n")
    return path


class TestImageList(AdapterTests):
    """The common tests, on a list."""

    @pytest.fixture
    def adapter(self, image_list, images, tmp_path):
        return ImageListAdapter(image_list, tmp_path / "out", images)


class TestImageFolder(AdapterTests):
    """The common tests, on a folder."""

    @pytest.fixture
    def adapter(self, images, tmp_path):
        return ImageFolderAdapter(images, tmp_path / "out")


def write_list(tmp_path, text):
    path = tmp_path / "list.txt"
    path.write_text(text, "utf-8")
    return path


def test_a_list_gives_the_ids_and_metadata_of_the_original(image_list, images):
    adapter = ImageListAdapter(str(image_list), "out", str(images))
    items = list(adapter.iter_data())
    assert [list(item) for item in items] == [["meta", "frames", "id"]] * 3
    assert [item["meta"] for item in items] == [
        {"id": "1.jpg", "label": "x", "idx": 0},
        {"id": "2.jpg", "label": "y", "idx": 1},
        {"id": "x-top.jpg", "label": "x", "idx": 0},
    ]
    assert adapter.item_ids() == ["1.jpg", "2.jpg", "x-top.jpg"]
    assert adapter.folder == adapter.root_folder == str(images)
    assert adapter.data[0] == {"id": "1.jpg", "label": "x", "path": "a/1.jpg"}
    assert adapter.all_meta[0]["path"] == "a/1.jpg"


def test_the_frames_of_a_list_are_the_images(image_list, images, tmp_path):
    adapter = ImageListAdapter(image_list, tmp_path, images, img_size=24)
    frames = [list(item["frames"]) for item in adapter.iter_data()]
    assert [len(of_item) for of_item in frames] == [1, 1, 1]
    assert [of_item[0].shape for of_item in frames] == [(24, 32, 3)] * 3
    assert [int(np.mean(of_item[0])) for of_item in frames] == [0, 20, 60]


def test_paths_of_a_list_may_be_absolute(tmp_path, make_jpeg):
    path = make_jpeg(tmp_path / "in" / "a.jpg", 70)
    adapter = ImageListAdapter(write_list(tmp_path, f"{path},x\n"), tmp_path)
    (item,) = adapter.iter_data()
    assert int(np.mean(next(iter(item["frames"])))) == 70


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.jpg,x\n\n  \nb.jpg,y", [("a.jpg", "x"), ("b.jpg", "y")]),
        ("a,b.jpg,x\n", [("a,b.jpg", "x")]),
        (" a.jpg , x \r\n", [("a.jpg", "x")]),
        ("\ufeffa.jpg,ä b\n", [("a.jpg", "ä b")]),
        ("", []),
    ],
    ids=["blank lines", "comma in path", "spaces", "byte order mark", "empty"],
)
def test_lines_of_a_list(tmp_path, text, expected):
    rows = ImageListAdapter.parse_paths(write_list(tmp_path, text))
    assert [(row["path"], row["label"]) for row in rows] == expected


@pytest.mark.parametrize("line", ["a.jpg", ",x", "a.jpg,", "a.jpg, "])
def test_a_line_without_both_parts_is_named(tmp_path, line):
    path = write_list(tmp_path, f"b.jpg,y\n{line}\n")
    with pytest.raises(SourceReadError, match=r"list\.txt', line 2: .*is not 'path,"):
        ImageListAdapter(path, tmp_path)


def test_a_missing_list_is_named(tmp_path):
    why = r"list\.txt' cannot be read \(No such file or directory\)\. Give"
    with pytest.raises(SourceReadError, match=why):
        ImageListAdapter(tmp_path / "list.txt", tmp_path)


def test_colliding_ids_of_a_list_are_shown_with_their_sources(tmp_path):
    path = write_list(tmp_path, "a/x0.jpg,b\nb/x0.jpg,d\n")
    adapter = ImageListAdapter(path, tmp_path, "root")
    assert adapter.item_ids() == ["x0.jpg", "x0.jpg"]
    assert adapter.item_source(0) == "root/a/x0.jpg"
    assert adapter.item_source(1) == "root/b/x0.jpg"


def test_paths_of_a_list_may_be_the_ids(tmp_path):
    path = write_list(tmp_path, "a/x0.jpg,b\nb/x0.jpg,d\n")
    adapter = ImageListAdapter(path, tmp_path, id_rule="path")
    assert adapter.item_ids() == ["a/x0.jpg", "b/x0.jpg"]
    assert [item["meta"]["id"] for item in adapter.iter_data()] == adapter.item_ids()


@pytest.mark.parametrize("folder", ["..", "../b/..", "."])
def test_the_label_of_a_folder_is_its_own_name(
    tmp_path, make_jpeg, monkeypatch, folder
):
    make_jpeg(tmp_path / "a" / "1.jpg")
    (tmp_path / "a" / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a" if folder == "." else tmp_path / "a" / "b")
    adapter = ImageFolderAdapter(folder, tmp_path / "out", id_rule="path")
    assert [item["meta"]["label"] for item in adapter.iter_data()] == ["a"]


@pytest.mark.parametrize("make", [ImageListAdapter, ImageFolderAdapter])
def test_an_unknown_id_rule_is_answered_with_the_known_ones(image_list, tmp_path, make):
    with pytest.raises(ValueError, match=r"id_rule is 'x'; allowed are \['label-name"):
        make(image_list, tmp_path, id_rule="x")


def test_a_missing_image_costs_its_own_item_only(tmp_path, make_jpeg):
    make_jpeg(tmp_path / "b.jpg")
    path = write_list(tmp_path, "missing.jpg,x\nb.jpg,y\n")
    first, second = ImageListAdapter(path, tmp_path, tmp_path).iter_data()
    with pytest.raises(SourceReadError, match=r"missing\.jpg"):
        list(first["frames"])
    assert len(list(second["frames"])) == 1


def test_a_folder_gives_the_ids_and_metadata_of_the_original(images, monkeypatch):
    monkeypatch.chdir(images.parent)
    adapter = ImageFolderAdapter("images/", "out")
    assert [item["meta"] for item in adapter.iter_data()] == [
        {"id": "a-1.jpg", "label": "a", "path": "images/a", "idx": 0},
        {"id": "b-2.jpg", "label": "b", "path": "images/b", "idx": 1},
        {"id": "b-3.jpg", "label": "b", "path": "images/b", "idx": 1},
        {"id": "images-top.jpg", "label": "images", "path": "images", "idx": 2},
    ]
    assert adapter.label2idx == {"a": 0, "b": 1, "images": 2}
    assert adapter.file_extensions == [".jpg", ".png"]
    assert adapter.data[1] == {"id": "b-2.jpg", "label": "b", "path": "images/b"}


@pytest.mark.parametrize("spelled", [str, lambda path: f"{path}/", Path])
def test_a_folder_is_searched_alike_however_it_is_written(images, make_jpeg, spelled):
    make_jpeg(images.parent / "images2" / "other.jpg")
    adapter = ImageFolderAdapter(spelled(images), "out")
    assert adapter.item_ids() == ["a-1.jpg", "b-2.jpg", "b-3.jpg", "images-top.jpg"]


def test_the_current_folder_has_a_name(images, monkeypatch):
    monkeypatch.chdir(images)
    assert ImageFolderAdapter(".", "out").item_ids()[-1] == "images-top.jpg"
    assert ImageFolderAdapter(".", "out").item_source(0) == "a/1.jpg"


@pytest.mark.parametrize("extensions", [".png", [".png"], (".png",), {".png"}])
def test_only_the_given_extensions_are_taken(images, make_jpeg, extensions):
    make_jpeg(images / "c" / "4.png")
    assert ImageFolderAdapter(images, "out", extensions).item_ids() == ["c-4.png"]


def test_colliding_ids_of_a_folder_are_shown_with_their_sources(tmp_path, make_jpeg):
    for name in ("a/x/1.jpg", "b/x/1.jpg"):
        make_jpeg(tmp_path / "in" / name)
    adapter = ImageFolderAdapter(tmp_path / "in", "out")
    assert adapter.item_ids() == ["x-1.jpg", "x-1.jpg"]
    assert [adapter.item_source(k) for k in (0, 1)] == [
        str(tmp_path / "in" / "a" / "x" / "1.jpg"),
        str(tmp_path / "in" / "b" / "x" / "1.jpg"),
    ]
    by_path = ImageFolderAdapter(f"{tmp_path / 'in'}/", "out", id_rule="path")
    assert by_path.item_ids() == ["a/x/1.jpg", "b/x/1.jpg"]
    assert by_path.item_source(1) == str(tmp_path / "in" / "b" / "x" / "1.jpg")
    assert [len(list(item["frames"])) for item in by_path.iter_data()] == [1, 1]


def test_an_empty_folder_has_no_items(tmp_path):
    adapter = ImageFolderAdapter(tmp_path, "out")
    assert (len(adapter), list(adapter.iter_data())) == (0, [])


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SourceReadError, match="missing' cannot be listed"):
        ImageFolderAdapter(tmp_path / "missing", "out")


def test_shuffling_follows_the_global_state(images):
    ordered = ImageFolderAdapter(images, "out").item_ids()
    random.seed(3)
    shuffled = ImageFolderAdapter(images, "out", shuffle=True).item_ids()
    expected = ordered.copy()
    random.seed(3)
    random.shuffle(expected)
    assert shuffled == expected


@pytest.mark.parametrize("make", [ImageListAdapter, ImageFolderAdapter])
def test_labels_of_the_output_folder_keep_their_index(
    image_list, images, tmp_path, make
):
    out = tmp_path / "out"
    out.mkdir()
    (out / "label2idx.json").write_text('{"b": 5, "y": 7}')
    adapter = (
        make(image_list, out, images) if make is ImageListAdapter else make(images, out)
    )
    mapping = adapter.label_mapping()
    assert mapping is not None
    assert list(mapping.items())[:2] == [("b", 5), ("y", 7)]
    assert sorted(mapping.values())[2:] == list(range(8, 6 + len(mapping)))
    for item in adapter.iter_data():
        assert item["meta"]["idx"] == mapping[item["meta"]["label"]]
    assert json.loads((out / "label2idx.json").read_text()) == {"b": 5, "y": 7}


@pytest.mark.parametrize("ending", ["avif", "jp2", "jpe", "PBM", "gif", "heic"])
def test_images_of_other_endings_are_told_where_they_are_left_out(
    images, caplog, ending
):
    (images / f"x.{ending}").touch()
    assert len(ImageFolderAdapter(images, "out")) == 4
    assert f"left out for their endings: .{ending} (1). Name" in caplog.text
