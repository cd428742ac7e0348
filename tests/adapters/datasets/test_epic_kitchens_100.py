"""EPIC-KITCHENS-100, on a miniature of its annotations and frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import SourceFormatError, SourceReadError
from gulpio2.ingest.items import sized_source, source_path
from gulpio2.testing.adapters import AdapterTests

CSV = (
    "narration_id,participant_id,video_id,narration_timestamp,start_timestamp,"
    "stop_timestamp,start_frame,stop_frame,narration,verb,verb_class,noun,noun_class,"
    "all_nouns,all_noun_classes\n"
    "P01_01_0,P01,P01_01,00:00:01.089,00:00:00.14,00:00:03.37,8,12,open door,open,3,"
    "door,3,['door'],[3]\n"
    "P01_01_1,P01,P01_01,00:00:02.629,00:00:04.37,00:00:06.17,1,4,"
    "take cook's knife and plate,take,0,knife:cook's,4,"
    "\"['knife:cook\\'s', 'plate']\",\"[4, 2]\"\n"
)


@pytest.fixture
def files(tmp_path, make_jpeg):
    """Give the annotations, and frames 1 to 14 with flow 1 to 7 of one video."""
    participant = tmp_path / "EPIC-KITCHENS" / "P01"
    for number in range(1, 15):
        name = f"frame_{number:010d}.jpg"
        make_jpeg(participant / "rgb_frames" / "P01_01" / name, 10 * number)
    for number in range(1, 8):
        for axis, offset in (("u", 0), ("v", 100)):
            path = participant / "flow_frames" / "P01_01" / axis
            make_jpeg(
                path / f"frame_{number:010d}.jpg", offset + 10 * number, grey=True
            )
    (tmp_path / "EPIC_100_train.csv").write_text(CSV)
    return tmp_path / "EPIC_100_train.csv", tmp_path / "EPIC-KITCHENS"


@pytest.fixture
def rgb(load):
    """Give the class for RGB."""
    return load("epic_kitchens_100").EpicKitchensRgbAdapter


@pytest.fixture
def flow(load):
    """Give the class for flow."""
    return load("epic_kitchens_100").EpicKitchensFlowAdapter


class TestRgb(AdapterTests):
    """The common tests, on RGB."""

    @pytest.fixture
    def adapter(self, rgb, files):
        return rgb(*files)


class TestFlow(AdapterTests):
    """The common tests, on flow."""

    @pytest.fixture
    def adapter(self, flow, files):
        return flow(*files)


def brightness(frames):
    """Give each frame's mean, rounded."""
    return [round(float(np.mean(frame))) for frame in frames]


def test_a_segment_has_its_row_as_metadata(rgb, files):
    first, second = rgb(*files).iter_data()
    assert first["meta"] == {
        "narration_id": "P01_01_0",
        "participant_id": "P01",
        "video_id": "P01_01",
        "narration_timestamp": "00:00:01.089",
        "start_timestamp": "00:00:00.14",
        "stop_timestamp": "00:00:03.37",
        "start_frame": 8,
        "stop_frame": 12,
        "narration": "open door",
        "verb": "open",
        "verb_class": 3,
        "noun": "door",
        "noun_class": 3,
        "all_nouns": ["door"],
        "all_noun_classes": [3],
        "num_frames": 4,
    }
    assert second["meta"]["all_nouns"] == ["knife:cook's", "plate"]
    assert second["meta"]["all_noun_classes"] == [4, 2]


def test_rgb_frames_go_up_to_the_stop_frame(rgb, files):
    adapter = rgb(*map(str, files))
    frames = {item["id"]: brightness(item["frames"]) for item in adapter.iter_data()}
    assert frames == {"P01_01_0": [80, 90, 100, 110], "P01_01_1": [10, 20, 30]}
    first = "EPIC-KITCHENS/P01/rgb_frames/P01_01/frame_0000000008.jpg (row 1 of "
    assert first in adapter.item_source(0)


def test_flow_comes_in_grey_pairs_of_every_second_frame(flow, files):
    adapter = flow(*files)
    items = list(adapter.iter_data())
    frames = {item["id"]: brightness(item["frames"]) for item in items}
    assert frames == {"P01_01_0": [40, 140, 50, 150], "P01_01_1": [10, 110]}
    assert {frame.shape for item in items for frame in item["frames"]} == {(48, 64)}
    assert [item["meta"]["num_frames"] for item in items] == [4, 2]
    assert "P01_01/u/frame_0000000004.jpg (row 1 of " in adapter.item_source(0)


@pytest.mark.parametrize("kind", ["rgb", "flow"])
def test_a_dry_run_knows_how_long_the_segments_are(request, files, kind):
    adapter = request.getfixturevalue(kind)(*files)
    assert adapter.item_source(0).endswith("EPIC_100_train.csv, frames 8 to 12)")
    assert [sized_source(adapter, place)[1] for place in (0, 1)] == [4, 3]
    assert Path(source_path(adapter, 0)).is_file()


def test_the_stride_of_the_flow_can_be_set(flow, files):
    (_, item) = flow(*files, flow_stride=1).iter_data()
    assert brightness(item["frames"]) == [10, 110, 20, 120, 30, 130]
    with pytest.raises(ValueError, match="flow_stride is 0"):
        flow(*files, flow_stride=0)


def test_a_missing_frame_costs_its_own_segment_only(rgb, files):
    annotations, root = files
    (root / "P01" / "rgb_frames" / "P01_01" / "frame_0000000010.jpg").unlink()
    first, second = rgb(annotations, root).iter_data()
    with pytest.raises(SourceReadError, match=r"frame_0000000010\.jpg"):
        list(first["frames"])
    assert len(list(second["frames"])) == 3


def test_a_table_without_the_columns_is_named(rgb, files):
    annotations, root = files
    annotations.write_text("narration_id,video_id\na,b\n")
    with pytest.raises(SourceReadError, match="has no column 'participant_id'"):
        rgb(annotations, root)


@pytest.mark.parametrize("cell", ["twelve", "12.5", "", "012", "1e400"])
@pytest.mark.parametrize("kind", ["rgb", "flow"])
def test_a_cell_that_is_no_number_of_a_frame_is_named(request, files, kind, cell):
    annotations, root = files
    annotations.write_text(CSV.replace(",1,4,", f",1,{cell},"))
    with pytest.raises(SourceFormatError) as caught:
        request.getfixturevalue(kind)(annotations, root)
    assert str(caught.value) == (
        f"{annotations}: row 2 has {cell!r} as 'stop_frame'; a whole number is needed "
        "there."
    )


@pytest.mark.parametrize("cell", ["door", "[door", "[f(3)]"])
def test_a_cell_that_is_no_list_is_named(rgb, files, cell):
    annotations, root = files
    annotations.write_text(CSV.replace("['door']", cell))
    with pytest.raises(SourceFormatError) as caught:
        list(rgb(annotations, root).iter_data())
    assert str(caught.value) == (
        f"{annotations}: row 1 has {cell!r} as 'all_nouns'; a list is needed there."
    )


def test_rgb_is_gulped_from_the_command_line_byte_for_byte(gulp, files, tmp_path):
    report = gulp("epic_kitchens_100:EpicKitchensRgbAdapter", *files)
    assert (report["items"], report["frames"]) == (2, 7)
    folder = files[1] / "P01" / "rgb_frames" / "P01_01"
    data = (tmp_path / "gulp" / "data_0.gulp").read_bytes()
    assert data.startswith((folder / "frame_0000000008.jpg").read_bytes())


def test_flow_is_gulped_from_the_command_line_in_pairs(gulp, files, tmp_path):
    gulp("epic_kitchens_100:EpicKitchensFlowAdapter", *files)
    directory = GulpDirectory(tmp_path / "gulp")
    u, v = directory["P01_01_0", slice(2, 4)][0]
    assert (u.shape, v.shape) == ((48, 64), (48, 64))
    assert brightness([u, v]) == pytest.approx([50, 150], abs=1)
    assert directory["P01_01_0"][1]["all_nouns"] == ["door"]
