"""``gulp2 delete`` and ``gulp2 compact``."""

from __future__ import annotations

import json

import pytest

from gulpio2 import GulpDirectory
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


def test_no_id_is_wrong_usage(gulp2, gulped):
    assert "Missing argument" in gulp2("delete", gulped, status=2).stderr


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
