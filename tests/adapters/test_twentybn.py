"""The three layouts of 20BN."""

from __future__ import annotations

import gzip
import json

import pytest

from gulpio2.adapters import (
    Custom20BNCsvJpegAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
)
from gulpio2.errors import IngestError, SourceReadError
from gulpio2.testing.adapters import AdapterTests

ROWS = [
    {"id": "v1", "template": "t", "other": 3},
    {"id": 2, "template": "s", "name": "x"},
]


def write_json(path, rows):
    data = json.dumps(rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def json_file(tmp_path, make_video):
    """Give a JSON list of two videos that are there, 24 frames at 24 per second."""
    for name in ("v1", "2"):
        make_video(tmp_path / "videos" / name / f"any {name}.mp4", 24)
    return write_json(tmp_path / "list.json", ROWS)


@pytest.fixture
def csv_file(tmp_path, make_video, make_jpeg):
    """Give a CSV list of two items that are there as videos and as images."""
    for name in ("v1", "v2"):
        make_video(tmp_path / "videos" / f"{name}.webm", 24)
        for number in (2, 1):
            make_jpeg(tmp_path / "jpegs" / name / f"{number}.jpg")
    (tmp_path / "list.csv").write_text("v1;b\nv2;a\n")
    return tmp_path / "list.csv"


class TestJson(AdapterTests):
    """The common tests, on JSON."""

    @pytest.fixture
    def adapter(self, json_file, tmp_path):
        return Custom20BNJsonVideoAdapter(
            json_file, tmp_path / "videos", tmp_path / "out"
        )


class TestWebm(AdapterTests):
    """The common tests, on WebM."""

    @pytest.fixture
    def adapter(self, csv_file, tmp_path):
        return Custom20BNCsvWebmAdapter(csv_file, tmp_path / "videos", tmp_path / "out")


class TestJpeg(AdapterTests):
    """The common tests, on JPEG."""

    @pytest.fixture
    def adapter(self, csv_file, tmp_path):
        return Custom20BNCsvJpegAdapter(csv_file, tmp_path / "jpegs", tmp_path / "out")


@pytest.mark.parametrize("name", ["list.json", "list.json.gz"])
def test_json_gives_ids_of_their_type_and_three_keys(json_file, tmp_path, name):
    path = write_json(tmp_path / name, ROWS)
    adapter = Custom20BNJsonVideoAdapter(path, tmp_path / "videos", tmp_path / "out")
    items = list(adapter.iter_data())
    assert [list(item) for item in items] == [["meta", "frames", "id"]] * 2
    assert [item["meta"] for item in items] == [
        {"id": "v1", "label": "t", "idx": 1},
        {"id": 2, "label": "s", "idx": 0},
    ]
    assert [item["id"] for item in items] == ["v1", 2]
    assert adapter.labels2idx == adapter.label_mapping() == {"s": 0, "t": 1}
    assert adapter.get_meta() == adapter.all_meta
    assert adapter.data == ROWS
    assert adapter.item_source(1) == str(tmp_path / "videos" / "2")


def test_videos_of_json_are_resampled_to_8_frames_a_second(json_file, tmp_path):
    folder = tmp_path / "videos"
    adapter = Custom20BNJsonVideoAdapter(json_file, folder, "out", frame_size=24)
    for item in adapter.iter_data():
        # A second at 24 frames, and FFmpeg's rule repeats some at the beginning.
        assert 8 <= len(list(item["frames"])) <= 10
        assert {frame.shape for frame in item["frames"]} == {(24, 32, 3)}
    native = Custom20BNJsonVideoAdapter(json_file, folder, "out", frame_rate=0)
    assert [len(list(item["frames"])) for item in native.iter_data()] == [24, 24]


def test_videos_of_a_csv_are_resampled_to_12_frames_a_second(csv_file, tmp_path):
    adapter = Custom20BNCsvWebmAdapter(csv_file, tmp_path / "videos", tmp_path / "out")
    for item in adapter.iter_data():
        assert 12 <= len(list(item["frames"])) <= 14


@pytest.mark.parametrize(
    ("given", "kept"), [("8", 8), ("0", 0), (7.5, 7.5), ("7.5", "7.5"), ("1/2", "1/2")]
)
def test_a_frame_rate_of_a_command_line_is_kept_as_a_number(csv_file, given, kept):
    folder = csv_file.parent
    for adapter in (
        Custom20BNCsvWebmAdapter(csv_file, folder, folder, frame_rate=given),
        Custom20BNJsonVideoAdapter(
            write_json(folder / "list.json", ROWS), folder, folder, frame_rate=given
        ),
    ):
        assert adapter.frame_rate == kept
        assert type(adapter.frame_rate) is type(kept)


def test_another_key_of_json_may_be_the_label(json_file, tmp_path):
    adapter = Custom20BNJsonVideoAdapter(
        write_json(tmp_path / "l.json", [{"id": 1, "class": 7}]),
        tmp_path,
        tmp_path / "out",
        label_name="class",
    )
    assert adapter.all_meta == [{"id": 1, "label": 7, "idx": 0}]
    assert adapter.labels2idx == {"7": 0}


def test_another_ending_is_the_runtime_error_of_the_original(tmp_path):
    with pytest.raises(
        RuntimeError, match=r"Wrong data file format \(\.json\.gz or \.json\): 'x\.csv'"
    ):
        Custom20BNJsonVideoAdapter("x.csv", tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": 1}, "is not a list of objects"),
        ([7], "is not a list of objects"),
        ([{"id": 1, "label": "a"}], r"item 1 has no 'template'; it has \['id', 'lab"),
        ([{"template": "a"}], "item 1 has no 'id'"),
        ([{"id": None, "template": "a"}], "item 1 has None as id"),
        ([{"id": [1], "template": "a"}], r"item 1 has \[1\] as id"),
        ([{"id": 1, "template": ["a"]}], r"\['a'\] is no label"),
    ],
    ids=str,
)
def test_json_that_is_no_list_of_labelled_items_is_refused(tmp_path, rows, message):
    path = write_json(tmp_path / "l.json", rows)
    with pytest.raises(IngestError, match=message):
        Custom20BNJsonVideoAdapter(path, tmp_path, tmp_path / "out")


@pytest.mark.parametrize("number", [0, 2])
def test_not_exactly_one_video_costs_its_own_item_only(
    json_file, make_video, tmp_path, number
):
    video = tmp_path / "videos" / "v1" / "any v1.mp4"
    if number:
        make_video(video.with_name("second.mp4"))
    else:
        video.unlink()
    adapter = Custom20BNJsonVideoAdapter(json_file, tmp_path / "videos", "out")
    first, second = adapter.iter_data()
    with pytest.raises(SourceReadError, match=r"videos/v1' holds"):
        list(first["frames"])
    assert len(list(second["frames"])) > 0


def test_a_csv_gives_ids_as_text(csv_file, tmp_path):
    adapter = Custom20BNCsvWebmAdapter(csv_file, tmp_path / "videos", tmp_path / "out")
    assert [item["meta"] for item in adapter.iter_data()] == [
        {"id": "v1", "label": "b", "idx": 1},
        {"id": "v2", "label": "a", "idx": 0},
    ]
    assert adapter.item_source(0) == str(tmp_path / "videos" / "v1.webm")


def test_a_csv_row_of_an_id_alone_has_the_label_dummy(tmp_path):
    (tmp_path / "l.csv").write_text("\nv1\n\nv2;a;more\n;\n")
    adapter = Custom20BNCsvWebmAdapter(tmp_path / "l.csv", tmp_path, tmp_path / "out")
    assert adapter.data == [{"id": "v1", "label": "dummy"}, {"id": "v2", "label": "a"}]


def test_another_label_name_changes_nothing_for_a_csv(csv_file, tmp_path):
    adapter = Custom20BNCsvWebmAdapter(csv_file, tmp_path, "out", label_name="x")
    assert [meta["label"] for meta in adapter.all_meta] == ["b", "a"]
    assert adapter.label_name == "x"


def test_a_csv_of_jpegs_needs_labels(tmp_path):
    (tmp_path / "l.csv").write_text("v2;a\n\nv1\n")
    with pytest.raises(SourceReadError, match=r"l\.csv', line 3: 'v1' is not 'id;lab"):
        Custom20BNCsvJpegAdapter(tmp_path / "l.csv", tmp_path, tmp_path / "out")


def test_the_path_of_a_webm(csv_file, tmp_path):
    adapter = Custom20BNCsvWebmAdapter(csv_file, tmp_path / "videos", tmp_path / "out")
    video = tmp_path / "videos" / "v1"
    assert adapter.get_single_video_file_path(str(video)) == f"{video}.webm"
    with pytest.raises(AssertionError, match=r"no video .*v1\.mp4"):
        adapter.get_single_video_file_path(video, format_="mp4")


def test_images_of_an_item_are_its_frames(csv_file, make_jpeg, tmp_path):
    make_jpeg(tmp_path / "jpegs" / "v1" / "0.jpg", height=30, width=20)
    adapter = Custom20BNCsvJpegAdapter(csv_file, tmp_path / "jpegs", tmp_path / "out")
    first, second = adapter.iter_data()
    assert [f.shape for f in first["frames"]] == [(30, 20, 3)] + [(48, 64, 3)] * 2
    assert len(list(second["frames"])) == 2


def test_repeated_and_stored_ids_are_left_out_with_a_line_each(tmp_path, capsys):
    rows = [
        {"id": id_, "template": t} for id_, t in [("v1", "a"), ("v1", "b"), (2, "c")]
    ]
    path = write_json(tmp_path / "l.json", rows)
    adapter = Custom20BNJsonVideoAdapter(
        path, tmp_path, tmp_path / "out", remove_duplicate_ids=True
    )
    assert [meta["label"] for meta in adapter.all_meta] == ["a", "c"]
    assert (len(adapter), adapter.item_ids()) == (2, ["v1", 2])
    assert len(adapter.data) == 3
    assert capsys.readouterr().out == (
        "Id v1 more than once in json file, I skip it!\n"
    )


@pytest.mark.parametrize("kind", [Custom20BNCsvJpegAdapter, Custom20BNCsvWebmAdapter])
def test_a_label_that_is_cut_at_a_semicolon_is_told_of(
    csv_file, tmp_path, kind, caplog
):
    csv_file.write_text("v1;pick up; then put\nv2;a\n")
    with caplog.at_level("WARNING"):
        kind(csv_file, tmp_path, tmp_path / "out")
    assert "1 row has more than 'id;label', the first in line 1" in caplog.text
    caplog.clear()
    csv_file.write_text('v1;"pick up; then put"\nv2;a;\n')
    with caplog.at_level("WARNING"):
        adapter = kind(csv_file, tmp_path, tmp_path / "out")
    assert [row["label"] for row in adapter.all_meta] == ["pick up; then put", "a"]
    assert not caplog.messages
