"""Rows of a table that name a video and the times of an excerpt of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import TableAdapter
from gulpio2.adapters.cells import as_seconds
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import (
    DuplicateIdError,
    IngestSettingError,
    SourceFormatError,
    SourceReadError,
)
from gulpio2.ingest.fitness import choose_sources
from gulpio2.ingest.items import sized_source, source_path
from gulpio2.ingest.jobs import Task
from gulpio2.ingest.survey import survey
from gulpio2.testing.adapters import AdapterTests

COLUMNS: dict[str, Any] = {"start_column": "start", "end_column": "end"}


def write_table(folder, *rows, header="path,start,end,verb"):
    path = folder / "cuts.csv"
    path.write_text("\n".join([header, *rows, ""]))
    return path


@pytest.fixture
def table(tmp_path, make_video):
    make_video(tmp_path / "a.mp4", 100, frame_rate=25)
    make_video(tmp_path / "b.webm", 50, frame_rate=25)
    return write_table(
        tmp_path,
        "a.mp4,00:00:03.20,00:00:03.6,wash",
        "a.mp4,0.0,0.2,take",
        "b.webm,1,1.5,put",
    )


class TestExcerpts(AdapterTests):
    @pytest.fixture
    def adapter(self, table):
        return TableAdapter(table, id_column=None, label_column="verb", **COLUMNS)


def test_an_item_has_the_frames_between_its_times(table, tmp_path):
    adapter = TableAdapter(table, id_column=None, label_column="verb", **COLUMNS)
    GulpIngestor(adapter, tmp_path / "out", 2, 1)()
    whole = TableAdapter(table, id_column="verb")
    frames = [list(item["frames"]) for item in whole.iter_data()]
    with GulpDirectory(tmp_path / "out") as directory:
        assert list(directory.merged_meta_dict) == [
            "a.mp4_00:00:03.20_00:00:03.6",
            "a.mp4_0.0_0.2",
            "b.webm_1_1.5",
        ]
        found, meta = directory["a.mp4_00:00:03.20_00:00:03.6"]
        assert len(found) == 10
        for one, other in zip(found, frames[0][80:90], strict=True):
            assert abs(float(one.mean()) - float(other.mean())) < 1
        assert meta == {
            "id": "a.mp4_00:00:03.20_00:00:03.6",
            "label": "wash",
            "idx": meta["idx"],
            "start": "00:00:03.20",
            "end": "00:00:03.6",
        }
        assert len(directory["a.mp4_0.0_0.2"][0]) == 5
        at, _ = directory.read_frames_at("b.webm_1_1.5", [1.0])  # of the recording
        assert abs(float(at[0].mean()) - float(frames[2][25].mean())) < 1


def test_frames_of_excerpts_may_be_resized_and_resampled(table):
    adapter = TableAdapter(
        table, id_column=None, frame_size=24, frame_rate=5, **COLUMNS
    )
    frames = [list(item["frames"]) for item in adapter.iter_data()]
    assert [len(of_item) for of_item in frames] == [4, 3, 4]
    assert {frame.shape for of_item in frames for frame in of_item} == {(24, 32, 3)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"id_column": "name"}, ["7", "7"]),
        ({"id_column": "name", "id_rule": "video"}, ["7", "7"]),
        ({"id_column": "name", "id_rule": "clip"}, ["7_0_1.50", "7_1.50_2"]),
        ({"id_column": None}, ["a.mp4_0_1.50", "a.mp4_1.50_2"]),
        ({"id_column": None, "id_rule": "video"}, ["a.mp4", "a.mp4"]),
    ],
)
def test_ids_may_have_the_times(tmp_path, options, expected):
    header = "name,path,start,end"
    table = write_table(tmp_path, "7,a.mp4,0, 1.50", "7,a.mp4,1.50,2", header=header)
    adapter = TableAdapter(table, **COLUMNS, **options)
    assert adapter.item_ids() == expected
    assert [item["id"] for item in adapter.iter_data()] == expected
    assert [item["meta"]["id"] for item in adapter.iter_data()] == expected


def test_an_id_that_is_there_twice_is_refused_with_both_rows(table, tmp_path):
    write_table(tmp_path, "a.mp4,0,1,x", "a.mp4,0,1,y")
    adapter = TableAdapter(table, id_column=None, **COLUMNS)
    with pytest.raises(DuplicateIdError, match=r"a\.mp4_0_1.*row 1 of .*row 2 of"):
        GulpIngestor(adapter, tmp_path / "out", 2, 1)()


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("12.5", 12.5),
        (" 7 ", 7),
        ("0902", 902),
        (".5", 0.5),
        ("1e1", 10),
        ("00:01:05.640", 65.64),
        ("1:00:00", 3600),
        ("75:30.5", 4530.5),
        ("00:00:01.1", 1.1),
        (3, 3),
        (0.1, 0.1),
        ("-1", -1),
    ],
)
def test_times_are_seconds_or_hours_minutes_and_seconds(cell, seconds):
    assert as_seconds(cell) == seconds


@pytest.mark.parametrize("column", ["start", "end"])
@pytest.mark.parametrize(
    "cell",
    ["soon", "1,5", "1:2:3:4", "00:61:00", "00:00:60", "-00:00:01", "1 s", "1_0"],
)
def test_a_cell_that_is_no_time_is_named_with_its_row_and_column(
    tmp_path, column, cell
):
    row = {"id": "a", "path": "a.mp4", "start": 1, "end": 2}
    table = tmp_path / "cuts.json"
    table.write_text(json.dumps([row, {**row, "id": "b", column: cell}]))
    with pytest.raises(SourceFormatError) as caught:
        TableAdapter(table, **COLUMNS)
    message = str(caught.value)
    assert f"{table}: row 2 has {cell!r} as {column!r}, which is no time" in message


@pytest.mark.parametrize("cell", ["", None, True, [1]])
def test_a_time_that_is_missing_is_named_with_its_row_and_column(tmp_path, cell):
    table = tmp_path / "cuts.json"
    row = {"id": "a", "path": "a.mp4", "start": 1, "end": cell}
    table.write_text(json.dumps([row]))
    with pytest.raises(SourceReadError, match=r"row 1 has .* as 'end'"):
        TableAdapter(table, **COLUMNS)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("3,3", "the end must be after the start"),
        ("3,2", "from 3.0 s to 2.0 s: the end must be after the start"),
        ("-1,2", "the start is -1.0"),
        ("nan,2", "the start is nan"),
        ("1,inf", "the end is inf"),
        ("4,5", "its last one is at 3.96 s. Correct the times"),
    ],
)
def test_times_that_no_excerpt_has_cost_their_own_item(tmp_path, table, times, message):
    write_table(tmp_path, "a.mp4,0,1,x", f"a.mp4,{times},y", "b.webm,1,9,z")
    adapter = TableAdapter(table, id_column=None, **COLUMNS)
    report = GulpIngestor(adapter, tmp_path / "out", 2, 1).run()
    assert (report.items, report.frames) == (2, 50)
    (failure,) = report.failures
    assert failure.id == f"a.mp4_{times.replace(',', '_')}"
    assert failure.source is not None
    assert f"{tmp_path / 'a.mp4'} (row 2 of {table}, " in failure.source
    assert message in failure.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_column": "start"}, "an excerpt has both"),
        ({"end_column": "end"}, "an excerpt has both"),
        ({**COLUMNS, "media": "folder"}, "only of videos"),
        ({"id_rule": "clip"}, "name their columns"),
        ({**COLUMNS, "id_rule": "path"}, "allowed are"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(table, options, message):
    with pytest.raises(IngestSettingError, match=message):
        TableAdapter(table, id_column=None, **options)


def test_a_column_that_is_not_there_is_told_with_its_option(table):
    with pytest.raises(SourceFormatError, match="--start-column"):
        TableAdapter(table, id_column=None, start_column="begin", end_column="end")


def test_without_a_column_of_ids_it_is_told_how_to_do_without(table):
    with pytest.raises(SourceFormatError, match=r"no column 'id'.* or none \(''"):
        TableAdapter(table, **COLUMNS)


def test_an_image_has_no_excerpts(tmp_path, make_jpeg):
    make_jpeg(tmp_path / "a.jpg")
    table = write_table(tmp_path, "a.jpg,0,1,x")
    (item,) = TableAdapter(table, id_column=None, **COLUMNS).iter_data()
    with pytest.raises(SourceReadError, match="only of videos there are"):
        list(item["frames"])


def test_excerpts_are_as_large_as_their_times_say_and_not_as_the_recording(
    table, tmp_path
):
    adapter = TableAdapter(table, id_column=None, **COLUMNS)
    path = str(tmp_path / "a.mp4")
    assert source_path(adapter, 0) == path
    name, seconds = sized_source(adapter, 0)
    assert name == path
    assert seconds == pytest.approx(0.4)
    whole = TableAdapter(table, id_column=None)
    assert sized_source(whole, 0) == (source_path(whole, 0), None) == (path, None)
    # Workers of a cluster must see it all the same.
    assert path in choose_sources(adapter, [Task(0, 0, 3)])


def test_a_dry_run_counts_the_frames_of_excerpts(tmp_path, table):
    rows = [f"a.mp4,{n / 100},{n / 100 + 0.4},x" for n in range(150)]
    write_table(tmp_path, *rows, "a.mp4,5,6,y", "b.webm,0,1,z")
    adapter = TableAdapter(table, id_column=None, **COLUMNS)
    found = survey(adapter, EncoderSettings(), share=1)
    assert found.frames == 150 * 10 + 25
    (oddity,) = (odd for odd in found.oddities if odd.fails)
    assert "its last one is at 3.96 s" in oddity.examples[0]
    some = survey(adapter, EncoderSettings())
    assert some.sampled < 60
    assert abs(some.frames / found.frames - 1) < 0.1


def test_excerpts_of_very_uneven_lengths_are_told_apart_by_their_seconds(
    tmp_path, make_video
):
    make_video(tmp_path / "a.mp4", 400, frame_rate=25)
    frames = np.random.default_rng(0).lognormal(1, 1.5, 500).clip(1, 380).round()
    rows = [f"a.mp4,{n % 20 / 25},{(n % 20 + k) / 25},x" for n, k in enumerate(frames)]
    table = write_table(tmp_path, *rows)
    found = survey(TableAdapter(table, id_column=None, **COLUMNS), EncoderSettings())
    assert found.sampled < 150
    assert found.frames == pytest.approx(frames.sum(), rel=0.02)
    assert found.unmet == 0


@pytest.mark.parametrize("times", ["5,2", "3,3"])
def test_excerpts_that_end_before_they_begin_have_no_size(table, tmp_path, times):
    write_table(tmp_path, f"a.mp4,{times},x")
    adapter = TableAdapter(table, id_column=None, **COLUMNS)
    assert sized_source(adapter, 0)[1] == 0
