"""Kinetics' names, folders and records."""

from __future__ import annotations

import json

import pytest

from gulpio2.adapters import KineticsAdapter
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests


@pytest.fixture
def make_kinetics(tmp_path, make_video, monkeypatch):
    """Give a function that makes a folder of clips and the JSON of their videos."""
    monkeypatch.chdir(tmp_path)

    def make(clips, videos):
        for clip in clips:
            make_video(tmp_path / "vids" / clip)
        records = {video: {"subset": "train", "of": video} for video in videos}
        (tmp_path / "k.json").write_text(json.dumps(records))
        return tmp_path / "k.json"

    return make


class TestKinetics(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, make_kinetics, tmp_path):
        clips = ["b/abc_000001_000011.mp4", "a/xyz_000001_000011.mp4"]
        return KineticsAdapter(make_kinetics(clips, ["abc", "xyz"]), tmp_path / "vids")


@pytest.mark.parametrize("folder", ["vids", "vids/", "./vids", "absolute"])
def test_a_relative_folder_is_read_like_an_absolute_one(
    make_kinetics, tmp_path, folder
):
    make_kinetics(["cooking/abc_000001_000011.mp4"], ["abc"])
    place = tmp_path / "vids" if folder == "absolute" else folder
    adapter = KineticsAdapter("k.json", place)
    (item,) = adapter.iter_data()
    assert (item["id"], item["meta"]) == ("abc", {"subset": "train", "of": "abc"})
    assert len(list(item["frames"])) == 8
    assert len(adapter.get_bursted_frames(adapter.vid_storage[0])) == 8


@pytest.mark.parametrize(
    ("clip", "video"),
    [
        ("plain_000001_000011", "plain"),
        ("has_00_inside_000001_000011", "has_00_inside"),
        ("_0000000000_000001_000011", "_0000000000"),
        ("late_010000_010010", "late"),
        ("-_-_000001_0_123456_123466", "-_-_000001_0"),
        ("no_times", "no_times"),
    ],
)
def test_names_are_read_from_the_right(make_kinetics, clip, video):
    make_kinetics([f"c/{clip}.mp4"], [video, "other"])
    assert KineticsAdapter("k.json", "vids").item_ids() == [video]


def test_clips_come_sorted_by_path_and_only_from_class_folders(make_kinetics):
    clips = ["b/a_000001_000011.mp4", "a/c_000001_000011.mp4", "top_000001_000011.mp4"]
    deep = "b/deep/d_000001_000011.mp4"
    make_kinetics([*clips, deep], ["a", "c", "top", "d"])
    assert KineticsAdapter("k.json", "vids").item_ids() == ["c", "a"]


def test_clips_of_one_video_collide_with_their_sources_named(make_kinetics):
    make_kinetics(["c/abc_000001_000011.mp4", "c/abc_000020_000030.mp4"], ["abc"])
    adapter = KineticsAdapter("k.json", "vids")
    assert adapter.item_ids() == ["abc", "abc"]
    assert adapter.item_source(0) == "vids/c/abc_000001_000011.mp4"
    assert adapter.item_source(1) == "vids/c/abc_000020_000030.mp4"
    by_clip = KineticsAdapter("k.json", "vids", id_rule="clip")
    assert by_clip.item_ids() == ["abc_000001_000011", "abc_000020_000030"]
    assert [item["meta"]["of"] for item in by_clip.iter_data()] == ["abc", "abc"]


def test_a_video_without_a_record_is_named_or_left_out(make_kinetics):
    make_kinetics(["c/abc_000001_000011.mp4", "c/new_000001_000011.mp4"], ["abc"])
    with pytest.raises(SourceReadError, match=r"no record of 1 of 2 .*new_000001"):
        KineticsAdapter("k.json", "vids")
    adapter = KineticsAdapter("k.json", "vids", skip_unlisted=True)
    assert adapter.item_ids() == ["abc"]


def test_videos_that_are_left_out_for_their_place_or_ending_are_told(
    make_kinetics, tmp_path, caplog
):
    make_kinetics(["c/abc_000001_000011.mp4", "top_000001_000011.mp4"], ["abc"])
    for name in ("d.mkv", "e.MP4", "notes.txt"):
        (tmp_path / "vids" / "c" / name).touch()
    assert KineticsAdapter("k.json", "vids").item_ids() == ["abc"]
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "vids: 3 videos are left out, for not being <class>/<clip>.mp4: "
        "vids/c/d.mkv, vids/c/e.MP4, vids/top_000001_000011.mp4. To have"
    )


def test_an_unknown_id_rule_is_answered_with_the_known_ones(make_kinetics):
    make_kinetics(["c/abc_000001_000011.mp4"], ["abc"])
    with pytest.raises(ValueError, match=r"allowed are \['video', 'clip'\]"):
        KineticsAdapter("k.json", "vids", id_rule="x")  # type: ignore[arg-type]


def test_a_file_that_holds_no_records_is_refused(make_kinetics, tmp_path):
    make_kinetics(["c/abc_000001_000011.mp4"], ["abc"])
    (tmp_path / "k.json").write_text("[]")
    with pytest.raises(SourceReadError, match=r"k\.json' is not an object of YouTube"):
        KineticsAdapter("k.json", "vids")
