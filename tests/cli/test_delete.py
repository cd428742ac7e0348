"""``gulp2 delete`` and ``gulp2 compact``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.format.journal import Copying


def test_what_is_deleted_is_said_and_hidden(gulp2, gulped):
    dry = gulp2("delete", gulped, "item1", "--dry-run")
    size = sum(map(len, GulpDirectory(gulped).read_jpegs("item1")))
    told = dry.stdout.split(": 6 frames, ")[1].split(" in data_0.gulp")[0]
    assert "would delete item1: 6 frames" in dry.stdout
    assert told.endswith(" kB")
    assert float(told[:-3]) == pytest.approx(size / 1000, abs=0.1)
    assert "item1" in GulpDirectory(gulped)
    done = gulp2("delete", gulped, "item1")
    assert "deleted item1: 6 frames" in done.stdout
    assert f"gulp2 compact {gulped}" in done.stdout
    assert "item1" not in GulpDirectory(gulped)


def test_an_unknown_id_is_exit_status_1_and_nothing_is_deleted(gulp2, gulped):
    result = gulp2("delete", gulped, "item1", "nobody", status=1)
    assert "no item 'nobody'" in result.stderr
    assert "item1" in GulpDirectory(gulped)


def test_a_link_that_leads_nowhere_is_told_in_a_line(gulp2, gulped):
    gulp2("delete", gulped, "item1")
    (gulped / "meta_0.gmeta").unlink()
    (gulped / "meta_0.gmeta").symlink_to("nowhere")
    for words in (["compact", gulped], ["delete", gulped, "item0"]):
        said = gulp2(*words, status=1).stderr
        assert said == (
            f"gulp2: error: cannot read {gulped}/meta_0.gmeta: it is a link to "
            "nowhere, which is not there. Bring back what it leads to\n"
        )


@pytest.mark.parametrize("words", [["compact"], ["delete", "item1"]])
def test_a_folder_that_is_no_gulp_directory_is_refused(gulp2, tmp_path, words):
    (tmp_path / "videos").mkdir()
    result = gulp2(words[0], "videos", *words[1:], status=1)
    assert "videos is no gulp directory" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("words", [[], ["--all"], ["--dry-run"]])
def test_neither_ids_nor_a_condition_is_wrong_usage(gulp2, gulped, words):
    said = gulp2("delete", gulped, *words, status=2).stderr
    assert "Missing argument 'ID...'. Name items, or give a condition" in said
    assert len(GulpDirectory(gulped)) == 4


def ids_of(path):
    return [*GulpDirectory(path).merged_meta_dict]


def test_a_condition_chooses_what_is_deleted(gulp2, gulped):
    words = ["delete", gulped, "--where", "number >= 2 and num_frames == 6"]
    dry = gulp2(*words, "--dry-run").stdout.splitlines()
    assert [line.partition(": 6 frames, ")[0] for line in dry] == [
        "would delete item2",
        "would delete item3",
    ]
    assert ids_of(gulped) == ["item0", "item1", "item2", "item3"]
    told = json.loads(gulp2(*words, "--json").stdout)
    assert [item["id"] for item in told] == ["item2", "item3"]
    assert ids_of(gulped) == ["item0", "item1"]


def test_of_ids_those_are_deleted_that_meet_the_condition(gulp2, gulped):
    words = ["delete", gulped, "item0", "item2", "--where", "number >= 2"]
    assert gulp2(*words).stdout.startswith("deleted item2: 6 frames")
    assert ids_of(gulped) == ["item0", "item1", "item3"]
    said = gulp2("delete", gulped, "nobody", "--where", "number == 3", status=1).stderr
    assert "no item 'nobody'" in said
    assert ids_of(gulped) == ["item0", "item1", "item3"]


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--all"], ["-q"]])
def test_a_condition_that_no_item_meets_deletes_nothing(gulp2, gulped, more):
    result = gulp2("delete", gulped, "--where", "number > 9", *more, status=1)
    assert result.stdout == ""
    assert result.stderr == (
        "gulp2: no item meets the condition, and nothing was deleted; all items are "
        f"listed by: gulp2 ls {gulped}\n"
    )
    result = gulp2(
        "delete", gulped, "item0", "--where", "number > 0", "--json", *more, status=1
    )
    assert json.loads(result.stdout) == []
    assert "no item has one of these ids and meets the condition, and" in result.stderr
    assert len(ids_of(gulped)) == 4


@pytest.mark.parametrize("condition", ["1 == 1", "id not in []"])
def test_everything_is_deleted_only_where_that_is_said(gulp2, gulped, condition):
    words = ["delete", gulped, "--where", condition]
    for more in ([], ["--dry-run"]):
        result = gulp2(*words, *more, status=1)
        assert result.stdout == ""
        assert "every item of" in result.stderr
        assert "nothing was deleted. If all of them are meant, add --all" in (
            result.stderr
        )
    assert len(ids_of(gulped)) == 4
    assert len(gulp2(*words, "--all").stdout.splitlines()) == 5
    assert ids_of(gulped) == []
    said = gulp2(*words, "--all", status=1).stderr
    assert "no item meets the condition, and nothing was deleted" in said


def test_leave_for_everything_without_a_condition_is_wrong_usage(gulp2, gulped):
    result = gulp2("delete", gulped, "item0", "--all", status=2)
    assert "--all is for --where" in result.stderr
    assert "item0" in gulp2("ls", gulped).stdout


def test_all_items_by_their_ids_need_no_leave(gulp2, gulped):
    ids = ids_of(gulped)
    gulp2("delete", gulped, *ids, "--where", "num_frames == 6")
    assert ids_of(gulped) == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "It is empty: perhaps a variable of the shell is not set"),
        ("  ", "It is empty: perhaps a variable of the shell is not set"),
        ("number == 1 # and num_frames < 2", "would be a comment"),
        ("number >", "cannot be parsed: invalid syntax. Write it as label == "),
        ("label == 'x'", "there is no column 'label'; there are id, chunk, num_frames"),
    ],
)
def test_a_condition_that_is_none_deletes_nothing(gulp2, gulped, condition, message):
    for ids in ([], ["item1"]):
        words = ["delete", gulped, *ids, "--where", condition]
        result = gulp2(*words, "--all", status=2)
        assert message in " ".join(result.stderr.split())
    assert len(ids_of(gulped)) == 4


def test_compacting_says_what_it_erased(gulp2, gulped):
    assert "nothing to erase" in gulp2("compact", gulped).stdout
    gulp2("delete", gulped, "item0", "item3")
    planned = json.loads(gulp2("compact", gulped, "--dry-run", "--json").stdout)
    assert [item["chunk"] for item in planned] == [0, 1]
    result = gulp2("compact", gulped)
    assert "of 1 deleted item in data_0.gulp" in result.stdout
    assert json.loads(gulp2("compact", gulped, "--json").stdout) == []
    gulp2("check", "--deep", gulped)


def test_other_names_under_which_erased_frames_stay_are_told(gulp2, gulped):
    gulp2("merge", gulped, "both")
    gulp2("delete", "both", "item0", "item3")
    planned = gulp2("compact", "both", "--dry-run")
    assert "data_0.gulp and 1 more have other names" in planned.stderr
    assert "the frames would stay there" in planned.stderr
    assert planned.output == planned.stdout + planned.stderr  # and not before it
    result = gulp2("compact", "both", "--json")
    assert [item["other_names"] for item in json.loads(result.stdout)] == [1, 1]
    assert "the frames are still there. Remove those as well" in result.stderr
    gulp2("delete", gulped, "item0")
    assert "other names" not in gulp2("compact", gulped).stderr  # no longer shared


def test_an_unfinished_merge_is_told_in_a_line(gulp2, gulped):
    journal = gulped / "ingest.journal"
    journal.write_bytes(Copying("merge", ("part",)).dump())
    for words in (["compact", gulped], ["delete", gulped, "item0"]):
        said = gulp2(*words, status=1).stderr
        assert said.startswith("gulp2: error: a merge into this folder was not fin")
        assert "Finish it (gulp2 merge with the same parts) before" in said
    journal.unlink()
    gulp2("delete", gulped, "item0")


def test_of_many_items_or_chunks_the_first_are_told_and_the_rest_counted(gulp2, gulped):
    rest = "and 1 more: --limit 0 or --json gives all of them"
    words = ["delete", gulped, "item0", "item1", "item3", "--limit"]
    lines = gulp2(*words, "2", "--dry-run").stdout.splitlines()
    assert lines[1].startswith("would delete item1: ")
    assert lines[2:] == [rest]
    assert len(gulp2(*words, "0", "--dry-run").stdout.splitlines()) == 3
    lines = gulp2(*words, "2").stdout.splitlines()
    assert lines[1].startswith("deleted item1: ")
    assert lines[2] == f"and 1 more: {gulped}/deleted.json gives all of them"
    assert '"item3"' in Path(gulped, "deleted.json").read_text("ascii")
    lines = gulp2("compact", gulped, "--dry-run", "--limit", "1").stdout.splitlines()
    assert lines[0].endswith("of 2 deleted items in data_0.gulp")
    assert lines[1:] == [rest]
    words = ["compact", gulped, "--limit"]
    assert len(gulp2(*words, "0", "--dry-run").stdout.splitlines()) == 2
    lines = gulp2(*words, "1").stdout.splitlines()
    assert lines[0].startswith("erased ")
    assert lines[1:] == ["and 1 more"]  # which no option gives any more


def test_of_an_id_in_two_chunks_one_is_deleted_by_the_command_that_check_names(
    gulp2, gulped
):
    with GulpDirectory(gulped) as directory:
        frames, meta = directory["item0"]
        numbers = sorted({*directory.chunk_lookup.values()})
    last = numbers[-1]
    chunk = GulpChunk(gulped / f"data_{last}.gulp", gulped / f"meta_{last}.gmeta")
    with chunk.open("ab"):
        chunk.append("item0", meta, frames)
    advice = f"gulp2 delete DIR ID --chunk {last}"
    assert advice in gulp2("check", gulped, status=1).stdout
    assert advice in gulp2("ls", gulped, status=1).stderr
    words = advice.replace("DIR", str(gulped)).replace("ID", "item0").split()[1:]
    would = f"would delete item0: 6 frames, .* in data_{last}.gulp\n"
    assert re.fullmatch(would, gulp2(*words, "--dry-run").stdout)
    (told,) = json.loads(gulp2(*words, "--json").stdout)
    assert (told["id"], told["chunk"], told["frames"]) == ("item0", last, 6)
    assert ids_of(gulped) == ["item0", "item1", "item2", "item3"]
    assert gulp2("check", "--deep", gulped).stdout.startswith(f"{gulped}: no problem")
    again = gulp2(*words, status=1).stderr
    assert f"no item 'item0' in data_{last}.gulp of {gulped}: deleted already" in again


def test_of_chunks_that_hold_no_such_item_nothing_is_deleted(gulp2, gulped):
    numbers = ["--chunk", "8", "--chunk", "9"]
    said = gulp2("delete", gulped, "item0", *numbers, status=1).stderr
    assert f"there is no chunk 8, 9 in {gulped}. Nothing was deleted" in said
    where = ["--where", "number == 1", "--chunk", "0"]
    said = gulp2("delete", gulped, *where, status=2).stderr
    assert "A condition has the column chunk" in said
    said = gulp2("delete", gulped, "item0", "--chunk", "x", status=2).stderr
    assert "'x' is not a valid whole number" in said
    assert ids_of(gulped) == ["item0", "item1", "item2", "item3"]


@pytest.mark.usefixtures("_drawn_at_once")
def test_a_deletion_shows_a_bar(gulp2, gulped):
    num_bytes = sum(path.stat().st_size for path in gulped.glob("meta_*.gmeta"))
    dry = gulp2("delete", gulped, "item1", "--dry-run").stderr
    assert dry.splitlines()[-1].startswith(f"{num_bytes}/{num_bytes}B [")
    gulp2("index", gulped)
    done = gulp2("delete", gulped, "item1").stderr.splitlines()[-1]
    left = sum(path.stat().st_size for path in gulped.glob("meta_*.gmeta"))
    whole = f"{(num_bytes + left) / 1000:.2f}k"
    assert done.startswith(f"{whole}/{whole}B [")


@pytest.mark.usefixtures("_drawn_at_once")
def test_a_compaction_shows_the_index_in_its_bar(gulp2, gulped):
    gulp2("index", gulped)
    before = (gulped / "index.arrow").read_bytes()
    gulp2("delete", gulped, "item1")
    with GulpDirectory(gulped) as directory:
        chunk = directory.chunk_lookup["item0"]
        kept = directory.chunk_objs_lookup[chunk].meta_dict.values()
        copied = sum(info[2] for entry in kept for info in entry["frame_info"])
    maps = sum(path.stat().st_size for path in gulped.glob("meta_*.gmeta"))
    whole = f"{(copied + maps) / 1000:.2f}k"
    (gulped / "index.arrow").write_bytes(before)  # as if that had been killed
    done = gulp2("compact", gulped).stderr.splitlines()[-1]
    assert done.startswith(f"{whole}/{whole}B [")
