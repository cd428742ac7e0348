"""Any table with paths and ids."""

from __future__ import annotations

import json
import logging
import random
from fractions import Fraction

import pytest

from gulpio2.adapters import TableAdapter
from gulpio2.errors import (
    IngestError,
    IngestSettingError,
    SourceFormatError,
    SourceReadError,
)
from gulpio2.testing.adapters import AdapterTests

CSV = (
    "path,id,class,fold,score,good,note\n"
    "v.mp4,007,b,1,0.5,true,x\n"
    "i.png.jpg,8,a,2,,false,\n"
    "frames,9,b,3,1,TRUE,z\n"
)


@pytest.fixture
def table(tmp_path, make_video, make_jpeg):
    """Give a CSV table of a video, an image and a folder of images."""
    make_video(tmp_path / "v.mp4", 6)
    make_jpeg(tmp_path / "i.png.jpg")
    for name in ("2.jpg", "1.JPG", "notes.txt"):
        make_jpeg(tmp_path / "frames" / name)
    (tmp_path / "t.csv").write_text(CSV)
    return tmp_path / "t.csv"


class TestTable(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, table, tmp_path):
        return TableAdapter(table, tmp_path / "out", label_column="class")


def write_rows(tmp_path, *rows):
    (tmp_path / "t.json").write_text(json.dumps(rows))
    return tmp_path / "t.json"


def test_other_columns_are_typed_metadata(table, tmp_path):
    adapter = TableAdapter(str(table), str(tmp_path / "out"), label_column="class")
    items = list(adapter.iter_data())
    assert [list(item) for item in items] == [["meta", "frames", "id"]] * 3
    assert [item["meta"] for item in items[:2]] == [
        {
            "id": "007",
            "label": "b",
            "idx": 1,
            "fold": 1,
            "score": 0.5,
            "good": True,
            "note": "x",
        },
        {
            "id": "8",
            "label": "a",
            "idx": 0,
            "fold": 2,
            "score": None,
            "good": False,
            "note": "",
        },
    ]
    assert list(items[0]["meta"])[:3] == ["id", "label", "idx"]
    assert adapter.item_ids() == ["007", "8", "9"]
    assert adapter.label_mapping() == {"a": 0, "b": 1}


def test_values_may_stay_as_they_are_written(table):
    (item, *_) = TableAdapter(table, parse_values=False).iter_data()
    assert item["meta"] == {
        "id": "007",
        "class": "b",
        "fold": "1",
        "score": "0.5",
        "good": "true",
        "note": "x",
    }


def test_a_path_is_a_video_an_image_or_a_folder_of_images(table):
    frames = [list(item["frames"]) for item in TableAdapter(table).iter_data()]
    assert [len(of_item) for of_item in frames] == [6, 1, 2]


def test_frames_may_be_resized_and_videos_resampled(table):
    adapter = TableAdapter(table, frame_size=24, frame_rate=12)
    frames = [list(item["frames"]) for item in adapter.iter_data()]
    assert [len(of_item) for of_item in frames] == [5, 1, 2]
    assert {frame.shape for of_item in frames for frame in of_item} == {(24, 32, 3)}


def test_images_of_a_folder_are_taken_whatever_the_case_of_their_endings(
    tmp_path, make_jpeg, caplog
):
    for name in (
        "1.jpg",
        "2.JPG",
        "3.Jpg",
        "4.jPEG",
        "5.jpe",
        "6.PPM",
        "t.txt",
        ".jpg",
    ):
        make_jpeg(tmp_path / "frames" / name)
    adapter = TableAdapter(write_rows(tmp_path, {"id": "x", "path": "frames"}))
    (item,) = adapter.iter_data()
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "gulpio2"):
        assert len(list(item["frames"])) == 4
    (record,) = caplog.records
    assert str(tmp_path / "frames") in record.getMessage()
    assert ".PPM (1), .jpe (1)" in record.getMessage()


def test_without_a_label_column_there_are_no_labels(table):
    assert TableAdapter(table).label_mapping() is None


def test_labels_of_the_output_folder_keep_their_index(table, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "label2idx.json").write_text('{"b": 4}')
    adapter = TableAdapter(table, tmp_path / "out", label_column="class")
    assert adapter.label_mapping() == {"b": 4, "a": 5}


def test_json_rows_keep_their_types_and_may_have_nested_values(tmp_path):
    table = write_rows(
        tmp_path,
        {"file": "a.mp4", "key": 7, "box": [1, 2], "name": "1"},
        {"file": "b.mp4", "key": "b"},
    )
    adapter = TableAdapter(table, path_column="file", id_column="key")
    assert [item["meta"] for item in adapter.iter_data()] == [
        {"id": 7, "box": [1, 2], "name": "1"},
        {"id": "b"},
    ]


def test_the_path_may_be_the_id(tmp_path):
    table = write_rows(tmp_path, {"path": "a/b.mp4", "n": 1})
    (item,) = TableAdapter(table, id_column=None).iter_data()
    assert (item["id"], item["meta"]) == ("a/b.mp4", {"id": "a/b.mp4", "n": 1})


def test_paths_begin_at_the_table_or_at_the_root_folder(table, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert TableAdapter(table).item_source(0) == (
        f"{tmp_path / 'v.mp4'} (row 1 of {table})"
    )
    assert TableAdapter(table, root_folder="/data").item_source(1) == (
        f"/data/i.png.jpg (row 2 of {table})"
    )
    rows = write_rows(tmp_path, {"path": "/abs/x.mp4", "id": 1})
    assert TableAdapter(rows).item_source(0).startswith("/abs/x.mp4 ")


@pytest.mark.parametrize(
    ("path", "media", "message"),
    [
        ("missing.mp4", "auto", r"missing\.mp4"),
        ("missing", "auto", "There is no .*missing'"),
        ("t.csv", "auto", "no ending of a video or an image"),
        ("x.pgm", "auto", r"ends in \.pgm, .* media='image' if it is one"),
        ("t.csv", "video", r"t\.csv"),
        ("t.csv", "image", r"t\.csv"),
        ("empty", "auto", r"empty' holds no \*\.bmp or"),
        ("https://host/v.mp4", "auto", "'https://host/v.mp4' is a URL, and only files"),
        ("s3://bucket/*", "folder", r"'s3://bucket/\*' is a URL"),
    ],
)
def test_a_path_that_leads_to_no_frames_costs_its_own_item_only(
    table, tmp_path, path, media, message
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.pgm").touch()
    rows = write_rows(tmp_path, {"path": path, "id": 1}, {"path": path, "id": 2})
    first, _ = TableAdapter(rows, media=media).iter_data()
    with pytest.raises(SourceReadError, match=message):
        list(first["frames"])


@pytest.mark.parametrize("name", ["frames.mp4", "frames.jpg"])
def test_a_folder_that_ends_as_a_file_is_told_what_to_give(tmp_path, make_jpeg, name):
    make_jpeg(tmp_path / name / "1.jpg")
    path = tmp_path / "t.csv"
    path.write_text(f"path,id\n{name},1\n")
    (item,) = TableAdapter(path).iter_data()
    with pytest.raises(SourceReadError, match="Give media='folder' if it"):
        list(item["frames"])
    (item,) = TableAdapter(path, media="folder").iter_data()
    assert len(list(item["frames"])) == 1


def test_images_of_a_folder_that_are_not_taken_are_told(tmp_path, make_jpeg, caplog):
    for name in ("1.jpg", "2.JPG", "3.gif"):
        make_jpeg(tmp_path / "in" / name)
    (item,) = TableAdapter(write_rows(tmp_path, {"path": "in", "id": 1})).iter_data()
    assert len(list(item["frames"])) == 2
    (record,) = caplog.records
    assert "for their endings: .gif (1). Rename or convert" in record.getMessage()


def test_media_may_be_told_where_the_ending_does_not(table, tmp_path):
    (tmp_path / "v.mp4").rename(tmp_path / "v.dat")
    rows = write_rows(tmp_path, {"path": "v.dat", "id": 1})
    (item,) = TableAdapter(rows, media="video").iter_data()
    assert len(list(item["frames"])) == 6


def test_an_unknown_kind_of_media_is_answered_with_the_known_ones(table):
    with pytest.raises(ValueError, match=r"media is 'audio'; allowed are \['auto', "):
        TableAdapter(table, media="audio")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path_column": "p"}, r"t\.csv has no column 'p'; it has \['path', 'id', "),
        ({"id_column": "i"}, r"t\.csv has no column 'i'"),
        ({"label_column": "l"}, r"t\.csv has no column 'l'"),
        ({"id_column": "i"}, r"Name the right one in id_column \(on the command line "),
    ],
)
def test_a_missing_column_is_named_with_those_there_are(table, options, message):
    with pytest.raises(SourceReadError, match=message):
        TableAdapter(table, **options)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"path": "", "id": 1, "class": "a"},
            "row 2 has '' as 'path'; it must not be empty. Fill it in",
        ),
        ({"path": 5, "id": 1, "class": "a"}, "row 2 has 5 as 'path'"),
        ({"path": "a", "id": 1.5, "class": "a"}, "1.5 as 'id'; a str or int is"),
        ({"path": "a", "id": True, "class": "a"}, "True as 'id'"),
        ({"path": "a", "id": None, "class": "a"}, "None as 'id'"),
        ({"path": "a", "class": "a"}, "row 2 has no 'id'"),
        ({"path": "a", "id": 1, "class": ["a"]}, r"\['a'\] as 'class'"),
    ],
    ids=str,
)
def test_a_value_that_cannot_serve_is_named_with_its_row(tmp_path, row, message):
    table = write_rows(tmp_path, {"path": "a", "id": 0, "class": "a"}, row)
    with pytest.raises(SourceReadError, match=message):
        TableAdapter(table, label_column="class")


@pytest.mark.parametrize("name", ["label", "idx"])
def test_a_column_that_would_hide_the_label_is_refused(tmp_path, name):
    table = write_rows(tmp_path, {"path": "a", "id": 0, "class": "a", name: 1})
    assert TableAdapter(table).item_ids() == [0]
    with pytest.raises(SourceReadError, match=rf"the columns \['{name}'\] would hide"):
        TableAdapter(table, label_column="class")


def test_another_column_called_id_is_refused(tmp_path):
    table = write_rows(tmp_path, {"path": "a", "id": 0, "key": "k"})
    with pytest.raises(IngestError, match=r"\['id'\] would hide"):
        TableAdapter(table, id_column="key")


def test_a_table_without_further_columns_has_items(tmp_path):
    table = write_rows(tmp_path, {"path": "a.mp4", "id": 0}, {"path": "b.mp4", "id": 1})
    assert [item["meta"] for item in TableAdapter(table).iter_data()] == [
        {"id": 0},
        {"id": 1},
    ]


def test_an_empty_table_has_no_items(tmp_path):
    (tmp_path / "t.csv").write_text("path,id\n")
    adapter = TableAdapter(tmp_path / "t.csv")
    assert (len(adapter), list(adapter.iter_data())) == (0, [])


@pytest.mark.parametrize(("name", "text"), [("t.json", "[]"), ("t.jsonl", "\n")])
def test_json_without_rows_has_no_items_and_no_missing_column(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    adapter = TableAdapter(tmp_path / name, label_column="class")
    assert list(adapter.iter_data()) == adapter.item_ids() == []


def test_shuffling_follows_the_global_state_and_keeps_rows_together(table):
    orders = set()
    for seed in range(10):
        random.seed(seed)
        adapter = TableAdapter(table, shuffle=True)
        random.seed(seed)
        assert TableAdapter(table, shuffle=True).item_ids() == adapter.item_ids()
        orders.add(tuple(adapter.item_ids()))
        for position, item in enumerate(adapter.iter_data()):
            assert item["meta"]["fold"] == {"007": 1, "8": 2, "9": 3}[item["id"]]
            row = item["meta"]["fold"]
            assert f"(row {row} of " in adapter.item_source(position)
    assert len(orders) > 1


def test_two_rows_of_one_id_are_told_apart_by_their_sources(tmp_path):
    row = {"path": "a.mp4", "id": "x"}
    adapter = TableAdapter(write_rows(tmp_path, row, row))
    assert adapter.item_ids() == ["x", "x"]
    assert adapter.item_source(0) != adapter.item_source(1)


@pytest.mark.parametrize("rows", [[{"path": "a.mp4", "id": "a"}], None, b"clips.csv"])
def test_rows_in_memory_are_no_table_which_is_a_file(rows):
    with pytest.raises(TypeError, match=r"table is .*; give the path of a file\. Rows"):
        TableAdapter(rows)


def test_of_folders_it_says_which_images_and_when(tmp_path, make_jpeg, caplog):
    for number in (3, 4):
        make_jpeg(tmp_path / "a" / f"img_{number}.jpg", 100)
        make_jpeg(tmp_path / "a" / f"flow_{number}.jpg", 5)
    table = tmp_path / "t.csv"
    table.write_text("path,id\na,one\n")
    adapter = TableAdapter(table, prefix="img_", image_rate="25", first_number=1)
    (item,) = adapter.iter_data()
    assert [frame.pts for frame in item["frames"].stored()] == [2, 3]
    assert item["frames"].time_base == Fraction(1, 25)
    assert min(image.mean() for image in item["frames"]) > 90
    assert caplog.messages == []
    with pytest.raises(IngestSettingError, match="without image_rate"):
        TableAdapter(table, first_number=1)


def test_folders_have_the_rate_of_their_row(tmp_path, make_jpeg):
    for name in "abcd":
        for number in (2, 4):
            make_jpeg(tmp_path / name / f"img_{number}.jpg", 100)
    table = tmp_path / "t.csv"
    table.write_text("path,id,fps\na,a,25\nb,b,30000/1001\nc,c,\nd,d,0\n")
    adapter = TableAdapter(table, image_rate_column="fps", first_number=1)
    bases = [item["frames"].time_base for item in adapter.iter_data()]
    assert bases == [Fraction(1, 25), Fraction(1001, 30000), None, None]
    first, *_, last = adapter.iter_data()
    assert [frame.pts for frame in first["frames"].stored()] == [1, 3]
    assert [frame.pts for frame in last["frames"].stored()] == [None, None]
    assert first["meta"] == {"id": "a", "fps": "25"}
    rows = [
        {"path": "a", "id": "a", "fps": 12.5},
        {"path": "b", "id": "b", "fps": None},
    ]
    table = tmp_path / "t.json"
    table.write_text(json.dumps(rows))
    adapter = TableAdapter(table, image_rate_column="fps")
    bases = [item["frames"].time_base for item in adapter.iter_data()]
    assert bases == [Fraction(2, 25), None]


def test_a_rate_that_is_none_is_refused_with_its_row(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("path,id,fps\na,a,25\nb,b,fast\n")
    with pytest.raises(SourceFormatError, match="in row 2, 'fps' is 'fast'; give fra"):
        TableAdapter(table, image_rate_column="fps")
    with pytest.raises(
        SourceReadError, match=r"no column 'rate'; .* image_rate_column"
    ):
        TableAdapter(table, image_rate_column="rate")
    with pytest.raises(IngestSettingError, match="leave one of them out"):
        TableAdapter(table, image_rate_column="fps", image_rate=25)
