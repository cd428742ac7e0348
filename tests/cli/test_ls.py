"""``gulp2 ls``: ids, details, patterns."""

from __future__ import annotations

import errno
import json
import os

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.format.journal import Copying
from gulpio2.storage.local import open_store
from gulpio2.testing import FrameAdapter, make_frames
from tests.cli.extracted import make_items

STRANGE = ["a/b", "b[1]", "line\nbreak", "\x1b[31mred", "ümlaut", "7"]


@pytest.fixture
def strange(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, id_ in enumerate(STRANGE):
            chunk.append(id_, {"n": number, "text": "\x07"}, [])
    return tmp_path


def test_the_ids_come_in_order_one_to_a_line(gulp2, gulped):
    assert gulp2("ls", gulped).stdout == "item0\nitem1\nitem2\nitem3\n"


def test_control_characters_are_escaped_for_people_and_kept_for_programs(
    gulp2, strange
):
    assert gulp2("ls", strange).stdout.splitlines() == [
        "a/b",
        "b[1]",
        r"line\nbreak",
        r"\x1b[31mred",
        "ümlaut",
        "7",
    ]
    rows = [
        json.loads(line)
        for line in gulp2("ls", "--json", strange).stdout.split("\n")
        if line
    ]
    assert [row["id"] for row in rows] == STRANGE
    assert rows[5] == {
        "id": "7",
        "frames": 0,
        "bytes": 0,
        "chunk": 0,
        "meta": {"n": 5, "text": "\x07"},
    }
    assert "\x07" not in gulp2("ls", "--long", strange).stdout


def test_the_long_form_has_frames_size_chunk_and_metadata(gulp2, gulped):
    lines = gulp2("ls", "-l", gulped).stdout.splitlines()
    assert lines[0].split() == ["frames", "size", "chunk", "id", "metadata"]
    assert lines[3].split()[0] == "6"
    assert lines[3].endswith('  item2  {"number": 2}')


def test_a_pattern_chooses_ids(gulp2, gulped, strange):
    assert gulp2("ls", gulped, "item[12]").stdout.split() == ["item1", "item2"]
    assert gulp2("ls", strange, "a*").stdout.split() == ["a/b"]


def test_an_id_is_like_itself(gulp2, strange):
    assert gulp2("ls", strange, "b[1]").stdout == "b[1]\n"


def test_no_match_is_exit_status_1(gulp2, gulped):
    result = gulp2("ls", gulped, "x*", status=1)
    assert result.stdout == ""
    assert "no item is like 'x*'" in result.stderr
    assert f"listed by: gulp2 ls {gulped}\n" in result.stderr


def test_a_condition_chooses_items(gulp2, gulped):
    assert gulp2("ls", gulped, "--where", "number in [1, 3]").stdout.split() == [
        "item1",
        "item3",
    ]
    rows = gulp2("ls", gulped, "*2", "--where", "num_frames == 6", "--json").stdout
    assert json.loads(rows)["id"] == "item2"
    result = gulp2("ls", gulped, "item?", "--where", "number > 9", status=1)
    assert "no item is like 'item?' and meets the condition" in result.stderr


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "It is empty: perhaps a variable of the shell is not set. Write it as l"),
        (" \n", "It is empty: perhaps a variable of the shell is not set"),
        ("number == 1 # 2", "'# 2' would be a comment, and a condition has none"),
        ("number >", "cannot be parsed: invalid syntax. Write it as label == "),
        ("label == 'x'", "there is no column 'label'; there are id, chunk, num_frames"),
        ("number == 'x'", "number is a column of type int64 and 'x' is a string"),
        ("open('x')", "no condition that is understood"),
    ],
)
def test_a_condition_that_is_none_is_wrong_usage(gulp2, gulped, condition, message):
    result = gulp2("ls", gulped, "--where", condition, status=2)
    assert message in " ".join(result.stderr.split())


def test_a_directory_that_cannot_be_queried_is_no_wrong_condition(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("é\ud800", {"n": 1}, [])
    result = gulp2("ls", tmp_path, "--where", "n == 1", status=1)
    assert "Usage" not in result.stderr
    assert result.stderr == (
        f"gulp2: error: {tmp_path} cannot be asked like a table: "
        f"{tmp_path / 'meta_0.gmeta'}: the id 'é\\ud800' holds half a character, as "
        "that of a file whose name is no UTF-8. Rename such a file and ingest it "
        "again. Its items can be read by their ids\n"
    )


@pytest.mark.parametrize("times", [3, 99])
def test_a_directory_that_is_written_to_meanwhile_is_opened_again(
    gulp2, gulped, monkeypatch, times
):
    opened: list[GulpDirectory] = []

    def open_and_append(path):
        opened.append(GulpDirectory(path))
        if len(opened) <= times:
            chunk = GulpChunk(path / "data_1.gulp", path / "meta_1.gmeta")
            with chunk.open("ab"):
                chunk.append(f"new{len(opened)}", {"number": 9}, [])
        return opened[-1]

    monkeypatch.setattr("gulpio2.cli.conditions.open_gulp_directory", open_and_append)
    result = gulp2("ls", gulped, "--where", "number == 9", status=int(times > 10))
    if times == 3:
        assert result.stdout.split() == ["new1", "new2", "new3"]
    else:
        assert "a map in it is another. Open it again" in result.stderr
        assert len(opened) == 10


def test_a_directory_without_items_is_no_failure(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        pass
    assert gulp2("ls", tmp_path).stdout == ""


def test_a_chunk_whose_number_is_none_is_passed_over_and_told(gulp2, gulped):
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        (gulped / name.format(1)).rename(gulped / name.format(10**19))
    assert gulp2("ls", gulped).stdout.split() == ["item0", "item1"]
    assert "18 digits" in gulp2("check", gulped, status=1).stdout


def test_a_column_that_is_no_plain_name_is_listed_as_it_is_written(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {"id": "x", "start time": 3}, make_frames(1, 8, 8))
    for condition, message in (
        ("labl == 1", "num_frames, `meta.id`, `start time`."),
        ("meta.id == 'x'", "'meta.id' stands where `meta.id`, with backticks, is"),
    ):
        result = gulp2("ls", tmp_path, "--where", condition, status=2)
        assert message in " ".join(result.stderr.split())
    assert gulp2("ls", tmp_path, "--where", "`meta.id` == 'x'").stdout == "a\n"


@pytest.mark.parametrize("names", [["meta_0.gmeta"], ["meta_0.gmeta", "data_0.gulp"]])
def test_a_chunk_that_was_stored_and_is_gone_is_told_of(gulp2, tmp_path, names):
    folder = tmp_path / "gulped"
    GulpIngestor(FrameAdapter(num_items=6), folder, 2, 1).run()
    assert not gulp2("ls", folder).stderr
    assert json.loads(gulp2("info", folder, "--json").stdout)["missing_chunks"] == []
    for name in names:
        (folder / name).unlink()
    result = gulp2("ls", folder)
    assert result.stdout.split() == ["item2", "item3", "item4", "item5"]
    assert "data_0.gulp or meta_0.gmeta is not there. Put both" in result.stderr
    assert "lacks      chunks that were stored: 0; see" in gulp2("info", folder).stdout
    assert json.loads(gulp2("info", folder, "--json").stdout)["missing_chunks"] == [0]


def test_a_directory_that_is_not_finished_is_listed_and_told(gulp2, gulped):
    (gulped / "ingest.journal").write_bytes(b"")
    result = gulp2("ls", gulped)
    assert len(result.stdout.split()) == 4
    assert "is not finished: it holds what an ingest has stored so" in result.stderr
    assert "`gulp2 ingest` with --resume goes on" in result.stderr
    assert not gulp2("ls", gulped, "-q").stderr


@pytest.mark.parametrize(
    ("verb", "advice"),
    [
        ("merge", "Finish it (gulp2 merge with the same parts)"),
        ("repair", "Repair its source again, into an empty folder (gulp2 repair),"),
    ],
)
def test_what_goes_on_with_a_merge_or_a_repair_is_no_ingest(
    gulp2, gulped, verb, advice
):
    (gulped / "ingest.journal").write_bytes(Copying(verb, ("part",)).dump())
    said = " ".join(gulp2("ls", gulped).stderr.split())
    assert f"what a {verb} has stored so far. If none is at work: {advice}" in said
    assert "--resume" not in said


class Stopped(FrameAdapter):
    """Items of which Ctrl-C does not let the second one come."""

    def iter_data(self, slice_element=None):
        yield next(super().iter_data(slice_element))
        raise KeyboardInterrupt


@pytest.mark.parametrize("command", ["ls", "info", "sheet"])
def test_an_ingest_that_was_stopped_before_its_first_chunk_is_to_be_resumed(
    gulp2, tmp_path, command
):
    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(Stopped(num_items=2), tmp_path / "begun", 2, 1).run()
    said = " ".join(gulp2(command, "begun", status=1).stderr.split())
    assert "error: begun holds no chunk yet: an ingest is at work there, or was" in said
    assert said.endswith("If none is at work: `gulp2 ingest` with --resume goes on")


def test_a_merge_without_a_chunk_yet_is_to_be_finished(gulp2, tmp_path):
    (tmp_path / "both").mkdir()
    journal = Copying("merge", ("one", "other")).dump()
    (tmp_path / "both" / "ingest.journal").write_bytes(journal)
    said = " ".join(gulp2("ls", "both", status=1).stderr.split())
    assert "a merge is at work there, or was interrupted" in said
    assert "Finish it (gulp2 merge with the same parts) before its items are" in said


def test_a_damaged_manifest_is_no_matter_of_listing(gulp2, gulped):
    (gulped / "gulp.json").write_bytes(b"{")
    assert len(gulp2("ls", gulped).stdout.split()) == 4


def test_the_ids_that_are_listed_are_those_that_commands_take(gulp2, tmp_path):
    ids = ["山田\u3000太郎", "👩\u200d💻", "a\xa0b", "\u0645\u06cc\u200c\u062e\u0648"]
    make_items(tmp_path / "gulp", *ids)
    listed = gulp2("ls", "gulp").stdout.split("\n")[:-1]
    assert listed == ids
    gulp2("extract", "gulp", "--out", "out", "--", *listed)
    assert len(list((tmp_path / "out").iterdir())) == len(ids)


def test_an_id_with_an_escape_that_is_not_found_is_explained(gulp2, tmp_path):
    make_items(tmp_path / "gulp", "a\u202eb", r"c\x1bd")
    (escaped, other) = gulp2("ls", "gulp").stdout.splitlines()
    hint = "the id has the character itself; gulp2 ls --json gives such an id\n"
    for words in (["extract", "gulp", escaped], ["delete", "gulp", escaped]):
        said = gulp2(*words, status=1).stderr
        assert said.startswith(r"gulp2: error: no item 'a\\u202eb' in gulp")
        assert said.endswith(hint)
    gulp2("extract", "gulp", other)  # it has a backslash
    assert "itself" not in gulp2("extract", "gulp", "videos\\b", status=1).stderr


@pytest.mark.parametrize("name", ["gulp.json", "ingest.journal"])
def test_a_directory_that_cannot_be_asked_whether_it_is_finished_is_told(
    gulp2, gulped, monkeypatch, name
):
    def begin(folder):  # the directory is open by then
        (gulped / name).unlink(missing_ok=True)
        (gulped / name).symlink_to(name)  # nobody can read it, not even root
        return open_store(folder)

    monkeypatch.setattr("gulpio2.unfinished.open_store", begin)
    result = gulp2("ls", gulped)
    assert len(result.stdout.split()) == 4
    assert "could not be asked whether it is finished: cannot read" in result.stderr
    assert name in result.stderr


def test_a_directory_that_cannot_be_listed_anew_is_told(gulp2, gulped, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def begin(folder):
        monkeypatch.setattr(os, "listdir", fail)
        return open_store(folder)

    monkeypatch.setattr("gulpio2.unfinished.open_store", begin)
    result = gulp2("ls", gulped)
    assert f"is finished: cannot list {gulped}: Input/output" in result.stderr


@pytest.fixture
def uneven(tmp_path):
    """Write items of several lengths and kinds of metadata, in two chunks."""
    items = {"z": 10, "e": 2.5, "b": None, "r": "b", "a": None, "f": [1], "c": "a"}
    for place, (id_, n) in enumerate(items.items()):
        names = f"data_{place // 4}.gulp", f"meta_{place // 4}.gmeta"
        chunk = GulpChunk(*(tmp_path / name for name in names))
        meta = {"id": 7 - place} if id_ == "b" else {"id": 7 - place, "n": n}
        with chunk.open("ab"):
            chunk.append(id_, meta, make_frames((3 * place + 2) % 7 + 1, 8, 8))
    return tmp_path


@pytest.mark.parametrize(
    ("column", "smallest_first", "largest_first"),
    [
        ("id", "abcefrz", "zrfecba"),
        ("num_frames", "abzfrec", "cerfzba"),
        ("bytes", "abzfrec", "cerfzba"),
        ("chunk", "zebrafc", "afczebr"),
        ("meta.id", "cfarbez", "zebrafc"),
        ("n", "ezcrfba", "frczeba"),  # b and a have none
    ],
)
def test_items_are_sorted_by_a_column(
    gulp2, uneven, column, smallest_first, largest_first
):
    listed = gulp2("ls", uneven, "--sort", column).stdout.split()
    assert "".join(listed) == smallest_first
    command = ["ls", uneven, "--sort", column, "--reverse", "--json"]
    rows = map(json.loads, gulp2(*command).stdout.splitlines())
    assert "".join(row["id"] for row in rows) == largest_first


def test_a_key_may_begin_as_one_that_is_named_like_a_column(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_, n in {"a": 2, "b": 1}.items():
            chunk.append(id_, {"meta.n": n}, make_frames(1, 8, 8))
    assert gulp2("ls", tmp_path, "--sort", "meta.n").stdout.split() == ["b", "a"]


def test_those_that_meet_a_condition_are_sorted(gulp2, uneven):
    command = ["ls", uneven, "[a-f]", "--where", "num_frames > 1", "--sort", "id"]
    assert gulp2(*command).stdout.split() == ["b", "c", "e", "f"]
    # Nothing to sort is no column that is missing.
    command = ["ls", uneven, "--where", "num_frames > 99", "--sort", "n"]
    assert gulp2(*command, status=1).stdout == ""


def test_a_column_that_no_item_has_is_refused(gulp2, uneven):
    told = gulp2("ls", uneven, "--sort", "frames", status=2).stderr
    assert "No item has 'frames' in its metadata" in " ".join(told.split())
    told = gulp2("ls", uneven, "--reverse", status=2).stderr
    assert "--reverse is for --sort" in " ".join(told.split())
