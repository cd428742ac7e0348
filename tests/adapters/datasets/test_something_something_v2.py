"""Something-Something v2, on a miniature of its files."""

from __future__ import annotations

import json

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests

ROWS = [
    {
        "id": "78687",
        "label": "holding potato next to vicks vaporub bottle",
        "template": "Holding [something] next to [something]",
        "placeholders": ["potato", "vicks vaporub bottle"],
    },
    {
        "id": "42326",
        "label": "approaching a cup with your camera",
        "template": "Approaching [something] with your camera",
        "placeholders": ["a cup"],
    },
]
LABELS = {
    "Approaching something with your camera": "0",
    "Holding something next to something": "19",
    "Attaching something to something": "1",
}


@pytest.fixture
def files(tmp_path, make_video):
    """Give the annotations, the labels and the folder of videos, as released."""
    for number, row in enumerate(ROWS):
        path = tmp_path / "20bn-something-something-v2" / f"{row['id']}.webm"
        make_video(path, 6 + number, height=24, width=32, frame_rate=12)
    for part, content in [
        ("train", ROWS),
        ("labels", LABELS),
        ("test", [{"id": "78687"}, {"id": "42326"}]),
    ]:
        path = tmp_path / f"something-something-v2-{part}.json"
        path.write_text(json.dumps(content))
    return {
        "annotations": tmp_path / "something-something-v2-train.json",
        "labels": tmp_path / "something-something-v2-labels.json",
        "folder": tmp_path / "20bn-something-something-v2",
    }


@pytest.fixture
def make(load):
    """Give the class."""
    return load("something_something_v2").SomethingSomethingV2Adapter


class TestSomethingSomethingV2(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, make, files):
        return make(**files)


def test_clips_have_the_published_numbers_of_their_templates(make, files):
    adapter = make(**files)
    items = list(adapter.iter_data())
    assert items[0]["meta"] == {
        "id": "78687",
        "label": "Holding something next to something",
        "idx": 19,
        "caption": "holding potato next to vicks vaporub bottle",
        "placeholders": ["potato", "vicks vaporub bottle"],
    }
    assert items[1]["meta"]["idx"] == 0
    assert [len(list(item["frames"])) for item in items] == [6, 7]
    assert list(adapter.label_mapping().values()) == [0, 1, 19]
    assert adapter.item_source(0) == str(files["folder"] / "78687.webm")


def test_the_test_part_has_ids_only(make, files, tmp_path):
    files["annotations"] = tmp_path / "something-something-v2-test.json"
    adapter = make(**files)
    assert [i["meta"] for i in adapter.iter_data()] == [
        {"id": "78687"},
        {"id": "42326"},
    ]


@pytest.mark.parametrize("name", ["annotations", "labels"])
def test_a_byte_order_mark_is_no_part_of_a_file(make, files, name):
    files[name].write_text(files[name].read_text(), "utf-8-sig")
    assert make(**files).item_ids() == ["78687", "42326"]


def test_frames_may_be_resized_and_resampled(make, files):
    (item, _) = make(**files, frame_size=12, frame_rate=6).iter_data()
    assert {frame.shape for frame in item["frames"]} == {(12, 16, 3)}
    assert len(list(item["frames"])) == 5  # of six at twice the rate


def test_files_that_do_not_belong_together_are_named(make, files):
    with pytest.raises(SourceReadError, match="Give the annotations first"):
        make(files["labels"], files["annotations"], files["folder"])
    files["labels"].write_text('{"Other": "0"}')
    with pytest.raises(SourceReadError, match="has no 'Holding something next to"):
        make(**files)
    files["labels"].write_text('{"Other": null}')
    with pytest.raises(SourceReadError, match="has None for 'Other', which is no num"):
        make(**files)
    files["labels"].unlink()
    with pytest.raises(SourceReadError, match=r"labels\.json cannot be read as JSON"):
        make(**files)


@pytest.mark.parametrize(
    "row",
    [
        "1",
        '{"label": "x"}',
        '{"id": null}',
        '{"id": "1", "template": null}',
        '{"id": "1", "placeholders": "pen"}',
    ],
)
def test_a_row_that_is_none_is_named(make, files, row):
    files["annotations"].write_text(f'[{{"id": "0"}}, {row}]')
    with pytest.raises(SourceReadError, match=r"\.json: item 2 is .*is needed"):
        make(**files)


def test_it_is_gulped_from_the_command_line(gulp, files, tmp_path):
    report = gulp(
        "something_something_v2:SomethingSomethingV2Adapter",
        *files.values(),
        "--frame-size",
        "12",
    )
    assert report["items"] == 2
    frames, meta = GulpDirectory(tmp_path / "gulp")["78687"]
    assert [frame.shape for frame in frames] == [(12, 16, 3)] * 6
    assert meta["idx"] == 19
