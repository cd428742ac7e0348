"""``gulp2 index``: made, brought up to date, checked, removed."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.storage.local import LocalStore
from gulpio2.testing import make_frames
from tests.faults.rot import rot
from tests.storage.index.test_loading import fail


def append(folder, id_="more"):
    """Append an item to the first chunk."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append(id_, {"number": 9}, make_frames(2))


def test_the_index_is_made_and_told(gulp2, gulped):
    line = gulp2("index", gulped).stdout
    size = (gulped / "index.arrow").stat().st_size
    assert line.startswith(f"{gulped}/index.arrow: 4 items, 24 frames, ")
    assert line.endswith("2 maps of 2 parsed\n")
    told = json.loads(gulp2("index", gulped, "--json").stdout)
    assert told == {
        "directory": str(gulped),
        "path": f"{gulped}/index.arrow",
        "items": 4,
        "frames": 24,
        "chunks": 2,
        "parsed": 0,
        "num_bytes": size,
    }
    assert gulp2("-q", "index", gulped).output == ""


def test_only_what_has_changed_is_parsed_again(gulp2, gulped):
    gulp2("index", gulped)
    append(gulped)
    assert json.loads(gulp2("index", gulped, "--json").stdout)["parsed"] == 1
    assert GulpDirectory(gulped, indexed=True).query("number == 9").ids == ["more"]


def test_of_many_differences_the_first_are_listed(gulp2, gulped):
    gulp2("index", gulped)
    for name in ("0", "1"):
        chunk = GulpChunk(gulped / f"data_{name}.gulp", gulped / f"meta_{name}.gmeta")
        with chunk.open("ab"):
            chunk.append(f"more{name}", {}, make_frames(1))
    words = ["index", gulped, "--check", "--limit"]
    assert gulp2(*words, "1", status=1).stdout.splitlines() == [
        "meta_0.gmeta is not as it was indexed",
        "and 1 more: --limit 0 or --json gives all of them",
    ]
    assert len(gulp2(*words, "0", status=1).stdout.splitlines()) == 2


def test_a_check_names_the_maps_that_differ_and_writes_nothing(gulp2, gulped):
    result = gulp2("index", gulped, "--check", status=1)
    assert result.stdout == "there is no index\n"
    gulp2("index", gulped)
    assert "says what the maps say" in gulp2("index", gulped, "--check").stdout
    before = (gulped / "index.arrow").read_bytes()
    append(gulped)
    result = gulp2("index", gulped, "--check", status=1)
    assert result.stdout == "meta_0.gmeta is not as it was indexed\n"
    assert "run gulp2 index without --check" in result.stderr
    told = json.loads(gulp2("index", gulped, "--check", "--json", status=1).stdout)
    assert told["faults"] == ["meta_0.gmeta is not as it was indexed"]
    assert told["stale"] == ["meta_0.gmeta"]
    assert (gulped / "index.arrow").read_bytes() == before
    (gulped / "index.arrow").write_bytes(before[:-9])
    result = gulp2("index", gulped, "--check", status=1)
    assert result.stdout.startswith("it cannot be used: ")


def test_a_map_of_the_same_size_and_time_is_found_by_a_check_and_mended(gulp2, gulped):
    gulp2("index", gulped)
    path = gulped / "meta_1.gmeta"
    state = path.stat()
    with GulpDirectory(gulped) as directory:
        chunk = directory.chunk_objs_lookup[1]
        entry = chunk.meta_dict["item3"]
        entry["meta_data"][0]["number"] = 7
        del entry["gulp2"]["check"]
        with chunk.open("ab"):
            pass
    assert path.stat().st_size == state.st_size
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    result = gulp2("index", gulped, "--check", status=1)
    assert result.stdout == "meta_1.gmeta does not say what the index says\n"
    assert json.loads(gulp2("index", gulped, "--json").stdout)["parsed"] == 1
    gulp2("index", gulped, "--check")
    assert gulp2("ls", gulped, "--where", "number == 7").stdout == "item3\n"


def test_an_index_with_entries_as_they_were_written_is_not_replaced(gulp2, gulped):
    gulp2("index", gulped)
    rot(gulped / "meta_1.gmeta", b'"number"', b'"NUMBER"')
    before = (gulped / "index.arrow").read_bytes()
    said = gulp2("index", gulped, status=1).stderr
    assert "`gulp2 repair` takes them from there" in said
    assert (gulped / "index.arrow").read_bytes() == before
    gulp2("index", gulped, "--remove")
    gulp2("index", gulped)
    assert gulp2("ls", gulped, "--where", "NUMBER == 2").stdout == "item2\n"


def _rotten(folder):
    rot(folder / "meta_1.gmeta", b'"number"', b'"NUMBER"')


def _no_json(folder):
    (folder / "meta_1.gmeta").write_text("{")


def _lost(folder):
    (folder / "meta_1.gmeta").unlink()


def _not_for_columns(folder):
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("wb"):
        chunk.append("\ud800", {}, [])


def _twice(folder):
    for ending in ("data_{}.gulp", "meta_{}.gmeta"):
        copy = folder / ending.format(7)
        copy.write_bytes((folder / ending.format(1)).read_bytes())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_rotten, "`gulp2 repair` takes them from there"),
        (_no_json, "meta_1.gmeta"),
        (_lost, "`gulp2 repair`, which takes the items from the index"),
        (_not_for_columns, "Such a directory can be opened, but has no index"),
        (_twice, "item2"),
    ],
)
def test_a_check_advises_no_index_where_that_is_refused(gulp2, gulped, change, reason):
    gulp2("index", gulped)
    before = (gulped / "index.arrow").read_bytes()
    change(gulped)
    checked = gulp2("index", gulped, "--check", status=1)
    assert checked.stdout
    assert "to mend it" not in checked.stderr
    (gulped / "index.arrow.0a.partial").touch()  # which is not for a check to remove
    assert gulp2("index", gulped, "--check", status=1).output == checked.output
    assert (gulped / "index.arrow.0a.partial").exists()
    said = gulp2("index", gulped, status=1).stderr
    assert reason in said
    refused = "gulp2: gulp2 index is refused here: "
    assert checked.stderr == said.replace("gulp2: error: ", refused)
    assert (gulped / "index.arrow").read_bytes() == before


def test_a_check_advises_an_index_in_place_of_one_that_cannot_be_used(gulp2, gulped):
    (gulped / "index.arrow").write_bytes(b"x")
    said = gulp2("index", gulped, "--check", status=1).stderr
    assert said == (
        f"gulp2: run gulp2 index without --check to mend it: gulp2 index {gulped}\n"
    )
    gulp2("index", gulped)
    gulp2("index", gulped, "--check")


def test_a_file_of_others_is_left_where_there_is_no_gulp_directory(gulp2, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.arrow").write_bytes(b"somebody's")
    said = gulp2("index", tmp_path / "other", status=1).stderr
    assert "is no gulp directory" in said
    assert (tmp_path / "other" / "index.arrow").read_bytes() == b"somebody's"


def test_the_index_is_removed(gulp2, gulped):
    gulp2("index", gulped)
    (gulped / "index.arrow.0a.partial").write_bytes(b"left over")
    assert gulp2("index", gulped, "--remove").stdout == "removed\n"
    assert sorted(path.suffix for path in gulped.iterdir()) == [
        *(".gmeta", ".gmeta", ".gulp", ".gulp")
    ]
    told = json.loads(gulp2("index", gulped, "--remove", "--json").stdout)
    assert told["removed"] is False


@pytest.mark.usefixtures("_drawn_at_once")
def test_a_check_shows_a_bar(gulp2, gulped):
    gulp2("index", gulped)
    num_bytes = sum(path.stat().st_size for path in gulped.glob("meta_*.gmeta"))
    said = gulp2("index", gulped, "--check").stderr.splitlines()[-1]
    assert said.startswith(f"{num_bytes}/{num_bytes}B [")


def test_two_wishes_at_once_are_wrong_usage(gulp2, gulped):
    result = gulp2("index", gulped, "--check", "--remove", status=2)
    assert "do not go together" in result.stderr


def test_a_check_misses_no_index_where_there_are_no_items(gulp2, tmp_path):
    with GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta").open("wb"):
        pass
    gulp2("index", tmp_path)
    assert gulp2("index", tmp_path, "--check").stdout == "the index is not needed\n"
    told = json.loads(gulp2("index", tmp_path, "--check", "--json").stdout)
    assert told["faults"] == []
    (tmp_path / "meta_0.gmeta").write_text("{")
    assert gulp2("index", tmp_path, "--check", status=1).stdout == "there is no index\n"
    (tmp_path / "nothing").mkdir()
    result = gulp2("index", tmp_path / "nothing", "--check", status=1)
    assert "is no gulp directory" in result.stderr


def test_a_check_of_a_map_without_data_ends_as_opening_does(gulp2, gulped):
    gulp2("index", gulped)
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (gulped / name).rename(gulped / f"away_{name}")
    gulp2("index", gulped, "--remove")
    gulp2("index", gulped)
    (gulped / "away_meta_1.gmeta").rename(gulped / "meta_1.gmeta")
    result = gulp2("index", gulped, "--check", status=1)
    assert "meta_1.gmeta has no data_1.gulp: the frames are missing" in result.stderr
    assert result.stdout == ""


def test_a_check_advises_no_index_where_there_can_be_none(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("\ud800", {}, [])
    told = gulp2("index", tmp_path, status=1).stderr
    assert "Such a directory can be opened, but has no index" in told
    assert gulp2("index", tmp_path, "--check", status=1).stderr == told


def test_a_folder_without_chunks_has_nothing_to_index(gulp2, start, tmp_path):
    result = gulp2("index", tmp_path, status=1)
    assert "no gulp directory" in result.stderr
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        pass
    assert "there are no items" in gulp2("index", tmp_path).stderr
    # A process of its own, as what is written here to both streams may be in any order.
    program = start("index", tmp_path, "--json", stderr=subprocess.STDOUT)
    result, remark = program.communicate(timeout=60)[0].splitlines()
    assert json.loads(result)["items"] == 0
    assert "there are no items" in remark


def test_it_waits_for_no_other_writer(gulp2, gulped):
    with LocalStore(gulped).lock():
        result = gulp2("index", gulped, status=1)
    assert "another process is writing to" in result.stderr
    assert not (gulped / "index.arrow").exists()


def test_info_says_whether_there_is_one(gulp2, gulped):
    def told():
        return json.loads(gulp2("info", gulped, "--json").stdout)["index"]

    none = {"bytes": 0, "fresh": False, "stale": [], "fault": None}
    assert told() == none
    assert "index      none; gulp2 index makes one" in gulp2("info", gulped).stdout
    gulp2("index", gulped)
    size = (gulped / "index.arrow").stat().st_size
    assert told() == {**none, "bytes": size, "fresh": True}
    assert "kB, up to date" in gulp2("info", gulped).stdout
    append(gulped)
    assert told() == {**none, "bytes": size, "stale": ["meta_0.gmeta"]}
    assert "kB, stale: 1 map changed since" in gulp2("info", gulped).stdout
    (gulped / "index.arrow").write_bytes(b"x")
    assert "no Arrow file" in told()["fault"]
    assert "not usable: no Arrow file" in gulp2("info", gulped).stdout


@pytest.mark.parametrize(
    "arguments",
    [("ls", "gulped", "--where", "number == 0"), ("info", "gulped"),
     ("check", "gulped", "--deep"), ("index", "gulped", "--check"),
     ("index", "gulped")],
)  # fmt: skip
def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(start, gulped, arguments):
    os.mkfifo(gulped / "index.arrow")
    process = start(*arguments)
    try:
        output = "".join(process.communicate(timeout=30))
    finally:
        process.kill()
    assert process.returncode == (arguments[0] == "check" or arguments[-1] == "--check")
    assert "not a regular file" in output or arguments[0] == "check"
    assert "there is no index" not in output


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_in_the_place_of_a_map_is_told_in_a_line(start, gulped, kind):
    path = gulped / "meta_1.gmeta"
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    process = start("index", "gulped")
    try:
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 1
    assert said == "gulp2: error: cannot read gulped/meta_1.gmeta: not a regular file\n"


def test_an_index_that_is_a_link_to_itself_is_told_of_and_replaced(gulp2, gulped):
    (gulped / "index.arrow").symlink_to("index.arrow")
    said = gulp2("index", gulped, "--check", status=1).stdout
    assert said.startswith("it cannot be used: ")
    assert "not usable: " in gulp2("info", gulped).stdout
    gulp2("index", gulped)
    gulp2("index", gulped, "--check")


def test_an_index_that_cannot_be_read_is_not_advised_to_be_replaced(
    gulp2, gulped, monkeypatch
):
    gulp2("index", gulped)
    before = (gulped / "index.arrow").read_bytes()
    reason = f"cannot read {gulped}/index.arrow: Input/output error"
    for number in range(2):  # it is opened twice
        with monkeypatch.context() as patch:
            fail(patch, "open", "index.arrow", after=number)
            result = gulp2("index", gulped, "--check", status=1)
        assert result.stderr.startswith(f"gulp2: error: {reason}")
        assert result.stderr.endswith("try again\n")
        assert result.stdout == ""
    with monkeypatch.context() as patch:
        fail(patch, "open", "index.arrow")
        said = gulp2("info", gulped).stdout
    assert f"index      unknown: {reason}" in said
    assert "gulp2 index" not in said
    append(gulped)
    with monkeypatch.context() as patch:
        fail(patch, "open", "index.arrow", after=2)
        result = gulp2("index", gulped, "--check", status=1)
    assert result.stdout == "meta_0.gmeta is not as it was indexed\n"
    assert result.stderr.startswith(f"gulp2: gulp2 index is refused here: {reason}")
    with monkeypatch.context() as patch:
        fail(patch, "open", "index.arrow")
        assert "It is not replaced" in gulp2("index", gulped, status=1).stderr
    assert (gulped / "index.arrow").read_bytes() == before


@pytest.mark.usefixtures("permissions")
def test_a_map_that_may_not_be_read_is_told_in_a_line(gulp2, gulped):
    (gulped / "meta_1.gmeta").chmod(0)
    said = gulp2("index", gulped, status=1).stderr
    assert said.startswith(f"gulp2: error: cannot read {gulped}/meta_1.gmeta: ")


def test_metadata_may_be_nested_as_deep_as_a_map_can_be(gulp2, tmp_path):
    deep = "[" * 800 + "]" * 800
    entry = '{"frame_info": [], "meta_data": [{"deep": %s, "n": 1}]}'
    (tmp_path / "data_0.gulp").touch()
    (tmp_path / "meta_0.gmeta").write_text('{"a": %s}' % (entry % deep))
    gulp2("index", tmp_path)
    gulp2("index", tmp_path, "--check")
    assert gulp2("ls", tmp_path, "--where", "n == 1").stdout == "a\n"


def test_a_map_without_a_data_file_is_not_left_out(gulp2, gulped):
    (gulped / "data_0.gulp").unlink()
    result = gulp2("index", gulped, status=1)
    assert "meta_0.gmeta has no data_0.gulp: the frames are missing" in result.stderr
    assert not (gulped / "index.arrow").exists()
