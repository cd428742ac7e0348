"""ActivityNet's database and folder."""

from __future__ import annotations

import json

import pytest

from gulpio2.adapters import ActivitynetAdapter
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests

DATABASE = {
    "abc": {"subset": "training", "annotations": [{"label": "x"}], "duration": 1.5},
    "v2": {"subset": "training"},
    "val": {"subset": "validation"},
}


@pytest.fixture
def json_file(tmp_path, make_video):
    """Give the annotations beside a folder of videos of which not all belong."""
    for name in ("v2.a.mp4", "abc.mp4", "val.mp4", "stranger.mp4"):
        make_video(tmp_path / "videos" / name)
    (tmp_path / "videos" / "abc.mp4.part").touch()
    path = tmp_path / "activity.json"
    path.write_text(json.dumps({"version": "1.3", "database": DATABASE}))
    return path


class TestActivitynet(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, json_file, tmp_path):
        return ActivitynetAdapter(json_file, tmp_path / "videos")


def test_videos_of_the_phase_come_with_their_whole_record(json_file, tmp_path):
    adapter = ActivitynetAdapter(str(json_file), str(tmp_path / "videos"))
    items = list(adapter.iter_data())
    assert [item["id"] for item in items] == adapter.item_ids() == ["abc", "v2"]
    assert [item["meta"] for item in items] == [DATABASE["abc"], DATABASE["v2"]]
    assert adapter.vid_storage == ["abc.mp4", "v2.a.mp4"]
    assert adapter.item_source(1) == str(tmp_path / "videos" / "v2.a.mp4")
    assert adapter.label_mapping() is None
    assert len(adapter.get_bursted_frames(tmp_path / "videos" / "abc.mp4")) == 8


def test_another_phase_may_be_chosen(json_file, tmp_path):
    adapter = ActivitynetAdapter(json_file, tmp_path / "videos", phase="validation")
    assert adapter.item_ids() == ["val"]


def test_a_phase_that_the_database_lacks_is_answered_with_those_it_has(
    json_file, tmp_path
):
    with pytest.raises(
        ValueError, match=r"phase is 'test', .*only \['training', 'validation'\]"
    ):
        ActivitynetAdapter(json_file, tmp_path / "videos", phase="test")


@pytest.mark.parametrize(
    ("record", "has"),
    [
        ({"annotations": []}, "no"),
        ({"subset": None}, "None as"),
        ({"subset": ["training"]}, "['training'] as"),
    ],
)
def test_a_video_whose_record_has_no_phase_is_named(json_file, tmp_path, record, has):
    database = {**DATABASE, "v2": record}
    json_file.write_text(json.dumps({"database": database}))
    with pytest.raises(KeyError) as caught:  # as in 0.0.4
        ActivitynetAdapter(json_file, tmp_path / "videos")
    assert str(caught.value) == (
        f"'{json_file}': the record of 'v2' has {has} 'subset', which is its phase: "
        "training, validation or testing. Add it, or take the record out."
    )
    (tmp_path / "videos" / "v2.a.mp4").unlink()  # of nobody who is asked for
    adapter = ActivitynetAdapter(json_file, tmp_path / "videos")
    assert adapter.item_ids() == ["abc"]


def test_records_of_which_none_has_a_phase_are_refused(json_file, tmp_path):
    json_file.write_text(json.dumps({"database": {"a": {}, "b": {"subset": None}}}))
    with pytest.raises(SourceReadError, match="the record of 'a' has no 'subset'"):
        ActivitynetAdapter(json_file, tmp_path / "videos")


def test_size_and_rate_can_be_changed(json_file, tmp_path):
    adapter = ActivitynetAdapter(
        json_file, tmp_path / "videos", frame_size=24, frame_rate=12
    )
    (item,) = adapter.iter_data(slice(0, 1))
    assert {frame.shape for frame in item["frames"]} == {(24, 32, 3)}
    assert item["frames"].frame_rate == 12


@pytest.mark.parametrize("content", ["[]", "{}", '{"database": []}'])
def test_a_file_without_a_database_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(SourceReadError, match=r"a\.json' has no key 'database'"):
        ActivitynetAdapter(tmp_path / "a.json", tmp_path)


def test_a_missing_folder_is_named(json_file, tmp_path):
    with pytest.raises(SourceReadError, match="missing' cannot be listed"):
        ActivitynetAdapter(json_file, tmp_path / "missing")


def test_a_link_in_a_circle_is_an_item_that_fails(json_file, tmp_path):
    path = tmp_path / "videos" / "abc.mp4"
    path.unlink()
    path.symlink_to(path)
    first, second = ActivitynetAdapter(json_file, tmp_path / "videos").iter_data()
    with pytest.raises(SourceReadError, match="Too many levels of symbolic links"):
        list(first["frames"])
    assert list(second["frames"])


def test_files_without_a_record_and_records_without_a_file_are_told_of(
    json_file, tmp_path, caplog
):
    with caplog.at_level("WARNING"):
        ActivitynetAdapter(json_file, tmp_path / "videos")
    (told,) = caplog.messages
    assert told.endswith("files that no record is of are left out (1): stranger.mp4")
    (tmp_path / "videos" / "stranger.mp4").unlink()
    (tmp_path / "videos" / "abc.mp4").unlink()
    caplog.clear()
    with caplog.at_level("WARNING"):
        ActivitynetAdapter(json_file, tmp_path / "videos")
    (told,) = caplog.messages
    assert told.endswith("records of training have no file (1): abc")
