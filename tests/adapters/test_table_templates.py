"""Tables that have no paths, but what paths can be made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gulpio2 import GulpDirectory
from gulpio2.adapters import TableAdapter
from gulpio2.cli.main import gulp2
from gulpio2.errors import (
    GulpError,
    IngestSettingError,
    SourceFieldError,
    SourceNotFoundError,
    SourceReadError,
)
from gulpio2.testing.adapters import AdapterTests


@pytest.fixture
def table(tmp_path, make_video):
    make_video(tmp_path / "P01" / "v7.mp4", 6)
    make_video(tmp_path / "P02" / "v7.mp4", 4)
    path = tmp_path / "clips.csv"
    path.write_text("who,video_id,clip,verb\nP01,v7,a,take\nP02,v7,b,put\n")
    return path


class TestTemplate(AdapterTests):
    @pytest.fixture
    def adapter(self, table):
        return TableAdapter(
            table, id_column="clip", path_template="{who}/{video_id}.mp4"
        )


def test_a_path_is_made_of_columns_which_stay_in_the_metadata(table):
    adapter = TableAdapter(
        table, id_column="clip", path_template="{who}/{video_id}.mp4"
    )
    first, second = adapter.iter_data()
    assert first["meta"] == {
        "id": "a",
        "who": "P01",
        "video_id": "v7",
        "verb": "take",
    }
    assert [len(list(item["frames"])) for item in (first, second)] == [6, 4]
    assert adapter.item_source(1).startswith(str(table.parent / "P02" / "v7.mp4"))


def test_a_template_may_be_a_path_object(table):
    template = Path("{who}") / "{video_id}.mp4"
    adapter = TableAdapter(table, id_column="clip", path_template=template)
    assert "P01/v7.mp4" in str(adapter.item_source(0))


def test_the_made_path_may_be_the_id(table):
    adapter = TableAdapter(table, id_column=None, path_template="{who}/{video_id}.mp4")
    assert adapter.item_ids() == ["P01/v7.mp4", "P02/v7.mp4"]


def num_frames(adapter):
    return [len(list(item["frames"])) for item in adapter.iter_data()]


@pytest.mark.parametrize("media", ["auto", "video"])
def test_a_file_may_have_any_ending(table, make_video, media):
    (table.parent / "P02" / "v7.mp4").unlink()
    make_video(table.parent / "v.webm", 3).rename(table.parent / "P02" / "v7.WEBM")
    (table.parent / "P02" / "v7.jpg").write_bytes(b"a picture beside it")
    (table.parent / "P01" / "v7.mp4.part").write_bytes(b"an unfinished download")
    template = "{who}/{video_id}.*"
    adapter = TableAdapter(table, id_column="clip", media=media, path_template=template)
    assert num_frames(adapter) == [6, 3]
    assert adapter.item_source(1).startswith(str(table.parent / "P02" / "v7.WEBM (row"))
    named = TableAdapter(table, id_column=None, path_template=template)
    assert named.item_ids() == ["P01/v7", "P02/v7"]


def test_so_may_one_of_a_column_and_a_file_that_is_called_so_is_meant(
    tmp_path, make_video
):
    for name in ("a.mp4", "b.mp4"):
        make_video(tmp_path / name, 5)
    make_video(tmp_path / "c.mp4", 2).rename(tmp_path / "b.*")
    (tmp_path / "t.csv").write_text("path\na.*\nb.*\n")
    adapter = TableAdapter(tmp_path / "t.csv", id_column=None, media="video")
    assert adapter.item_ids() == ["a", "b"]
    assert num_frames(adapter) == [5, 2]


def test_pictures_may_have_any_ending(tmp_path, make_jpeg):
    make_jpeg(tmp_path / "a.jpeg")
    make_jpeg(tmp_path / "b.jpg").rename(tmp_path / "b.JPG")
    (tmp_path / "t.csv").write_text("id\na\nb\n")
    for media in ("auto", "image"):
        adapter = TableAdapter(tmp_path / "t.csv", media=media, path_template="{id}.*")
        assert num_frames(adapter) == [1, 1]


def test_folders_and_moving_previews_beside_it_are_not_taken_for_the_file(table):
    (table.parent / "P01" / "v7.webm").mkdir()
    (table.parent / "P02" / "v7.gif").write_bytes(b"a preview")
    adapter = TableAdapter(table, id_column="clip", path_template="{who}/{video_id}.*")
    assert num_frames(adapter) == [6, 4]


def test_a_missing_file_of_any_ending_is_named_as_it_was_asked_for(table):
    (table.parent / "P02" / "v7.mp4").unlink()
    adapter = TableAdapter(table, id_column="clip", path_template="{who}/{video_id}.*")
    assert adapter.item_source(1).startswith(str(table.parent / "P02" / "v7.* (row 2"))


def test_of_an_excerpt_only_a_video_is_taken(table, make_video):
    table.write_text("id,a,b\nP01/v7,0,0.1\nP02/w,0,0.1\n")
    (table.parent / "P02" / "w.jpg").write_bytes(b"a picture")
    adapter = TableAdapter(
        table, start_column="a", end_column="b", path_template="{id}.*"
    )
    first, second = adapter.iter_data()
    assert 0 < len(list(first["frames"])) < 6
    with pytest.raises(SourceNotFoundError, match=r"'.*P02/w\.\*'.*\.mp4.*template"):
        list(second["frames"])


def test_files_of_one_name_cost_their_item_and_are_named(table, make_video):
    make_video(table.parent / "P02" / "v7.webm", 3)
    (table.parent / "P02" / "v7.mp4").rename(table.parent / "P02" / "v7.mov")
    adapter = TableAdapter(table, id_column="clip", path_template="{who}/{video_id}.*")
    first, second = adapter.iter_data()
    assert len(list(first["frames"])) == 6
    with pytest.raises(SourceReadError, match=r"any of v7\.mov, v7\.webm\. Keep one"):
        list(second["frames"])


def test_a_link_beside_what_it_leads_to_is_the_same_file(table):
    (table.parent / "P02" / "v7.webm").hardlink_to(table.parent / "P02" / "v7.mp4")
    adapter = TableAdapter(table, id_column="clip", path_template="{who}/{video_id}.*")
    assert num_frames(adapter) == [6, 4]


def test_a_missing_folder_and_a_name_that_is_too_long_are_told(tmp_path):
    (tmp_path / "t.csv").write_text(f"id\nno/folder\nt.csv/a\n{'n' * 300}\n")
    adapter = TableAdapter(tmp_path / "t.csv", path_template="{id}.*")
    items = list(adapter.iter_data())
    for item in items[:2]:
        with pytest.raises(SourceNotFoundError, match="Check the path"):
            list(item["frames"])
    with pytest.raises(GulpError, match="nnn"):
        list(items[2]["frames"])


def test_folders_have_no_ending(table):
    with pytest.raises(IngestSettingError, match=r"folders have no ending"):
        TableAdapter(table, id_column="clip", media="folder", path_template="{who}.*")


def test_a_column_called_path_is_metadata_beside_a_template(tmp_path):
    (tmp_path / "t.json").write_text(
        json.dumps([{"id": 5, "path": "elsewhere", "n": 12}])
    )
    adapter = TableAdapter(
        tmp_path / "t.json", root_folder="x", path_template="{{}}{n}-{id}-{n}.mp4"
    )
    (item,) = adapter.iter_data()
    assert item["meta"] == {"id": 5, "path": "elsewhere", "n": 12}
    assert adapter.item_source(0).startswith("x/{}12-5-12.mp4 ")


def test_numbers_may_have_zeros_before_them_as_in_names_of_kinetics(tmp_path):
    (tmp_path / "t.csv").write_text(
        "key,class,start,end\nyt,a b,3,-13\nxt,c,7777777,4\n"
    )
    adapter = TableAdapter(
        tmp_path / "t.csv",
        id_column=None,
        label_column="class",
        path_template="{class}/{{{key}_{start:06d}_{end:06}}}.mp4}}",
    )
    assert adapter.item_ids() == [
        "a b/{yt_000003_-00013}.mp4}",
        "c/{xt_7777777_000004}.mp4}",
    ]


@pytest.mark.parametrize("name", ["a.b", "a[0]", "a b", "a*"])
def test_a_column_is_meant_as_it_is_called(tmp_path, name):
    (tmp_path / "t.json").write_text(json.dumps([{"id": "x", name: "v", "a": "w"}]))
    adapter = TableAdapter(tmp_path / "t.json", path_template=f"{{{name}}}.mp4")
    assert adapter.item_source(0).startswith(str(tmp_path / "v.mp4"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("videos/all.mp4", "names no column"),
        ("", "names no column"),
        ("{}.mp4", "braces hold a column"),
        ("{who:>5}.mp4", "braces hold a column"),
        ("{who:00}.mp4", "braces hold a column"),
        ("{who!r}.mp4", "braces hold a column"),
        ("*/{who}.mp4", "only at its end"),
        ("{who}.*.*", "only at its end"),
        ("a.*{who}", "only at its end"),
        ("{who.mp4", "expected '}'"),
        ("who}.mp4", "Single '}'"),
    ],
)
def test_a_text_that_is_no_template_is_answered_with_one(table, template, message):
    with pytest.raises(IngestSettingError, match=message) as raised:
        TableAdapter(table, id_column="clip", path_template=template)
    assert "'videos/{video_id}.mp4'" in str(raised.value)


def test_a_column_that_is_not_there_is_named_with_those_there_are(table):
    with pytest.raises(SourceFieldError, match=r"no column 'nr'.*--path-template"):
        TableAdapter(table, id_column="clip", path_template="{who}/{nr}.mp4")


@pytest.mark.parametrize("cell", ["", None, 1.5, ["a"]])
def test_a_cell_that_no_path_is_made_of_is_named_with_its_row(tmp_path, cell):
    rows = [{"id": "a", "n": "x"}, {"id": "b", "n": cell}]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    with pytest.raises(SourceReadError, match=r"row 2 has .* as 'n'"):
        TableAdapter(tmp_path / "t.json", path_template="{n}.mp4")


def test_paths_come_from_a_column_or_from_a_template(table):
    with pytest.raises(IngestSettingError, match="Leave the other out"):
        TableAdapter(table, path_column="who", path_template="{who}.mp4")


def test_a_table_without_paths_is_told_of_templates(table):
    with pytest.raises(SourceFieldError, match="--path-template"):
        TableAdapter(table, id_column="clip")


def test_the_command_takes_a_template(table, tmp_path):
    arguments = ["ingest", "table", str(table), str(tmp_path / "out")]
    options = ["--id-column", "clip", "--path-template", "{who}/{video_id}.mp4"]
    result = CliRunner().invoke(gulp2, [*arguments, *options, "--num-workers", "1"])
    assert result.exit_code == 0, result.output
    with GulpDirectory(tmp_path / "out") as directory:
        assert len(directory["b"][0]) == 4
