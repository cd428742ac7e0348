"""A merge that leaves out items whose ids are taken."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from click.testing import CliRunner

from gulpio2 import EncoderSettings, GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.cli.main import gulp2
from gulpio2.errors import (
    ChunkMismatchError,
    DuplicateIdError,
    IngestError,
    IngestSettingError,
    MetaFileError,
)
from gulpio2.ingest.shard import Shard
from gulpio2.merge import data, merge_directories
from gulpio2.merge.parts import begin_merge
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.local import open_store
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import content
from tests.faults.rot import rot


class Some(FrameAdapter):
    """Some of many items, each with frames and times of its own kind."""

    def __init__(self, numbers, *, kind=0):
        super().__init__(num_items=len(numbers), num_frames=3)
        self.numbers, self.kind = tuple(numbers), kind

    def item_ids(self):
        return [f"item{number}" for number in self.numbers]

    def iter_data(self, slice_element=None):
        for number in self.numbers[slice_element or slice(None)]:
            yield {
                "meta": {"number": number, "kind": self.kind},
                "frames": make_frames(2 + number % 3, seed=100 * self.kind + number),
                "id": f"item{number}",
            }


def ingest(folder, numbers, *, kind=0, per_chunk=3):
    GulpIngestor(Some(numbers, kind=kind), folder, per_chunk, 1).run()
    return folder


def kinds(folder):
    with GulpDirectory(folder, verify=True) as directory:
        items = directory.merged_meta_dict.items()
        return {id_: entry["meta_data"][0]["kind"] for id_, entry in items}


def runs_of(folder):
    with GulpDirectory(folder) as directory:
        return directory.manifest.runs


def jpegs(folder, id_):
    with GulpDirectory(folder, verify=True) as directory:
        return directory.read_jpegs(id_)


@pytest.fixture
def parts(tmp_path):
    """Write two parts: of the second, a chunk of each kind is in the first, or not."""
    one = ingest(tmp_path / "one", [0, 1, 2, 3])
    # All of it is there; some are; none is.
    return one, ingest(tmp_path / "two", [2, 0, 1, 7, 3, 8, 9, 10], kind=1)


def test_items_that_are_there_are_left_out_and_the_others_come(tmp_path, parts):
    target = tmp_path / "all"
    with pytest.raises(DuplicateIdError):
        merge_directories(parts, target)
    report = merge_directories(parts, target, on_duplicate="skip")
    assert (report.items, report.skipped, report.chunks) == (8, 4, [0, 1, 2, 3])
    assert report.skipped_ids == ["item2", "item0", "item1", "item3"]
    assert (report.linked, report.copied) == (3, 1)
    taken = {f"item{n}": 0 for n in range(4)}
    assert kinds(target) == taken | {f"item{n}": 1 for n in (7, 8, 9, 10)}
    for id_ in ("item7", "item8", "item9"):
        assert jpegs(target, id_) == jpegs(parts[1], id_)
    checked = check_directory(target, deep=True)
    assert (checked.problems, checked.notes) == ([], [])
    with GulpDirectory(target) as directory:
        runs = directory.manifest.runs
    assert [run.chunks for run in runs] == [(0, 1), (2, 3)]


def test_merging_again_brings_nothing(tmp_path, parts):
    target = tmp_path / "all"
    merge_directories(parts, target, on_duplicate="skip")
    before = content(target)
    report = merge_directories(parts, target, on_duplicate="skip")
    assert (report.items, report.chunks) == (0, [])
    assert content(target) == before


def test_a_part_of_which_all_is_there_leaves_no_word(tmp_path, parts, caplog):
    copy = ingest(tmp_path / "copy", [3, 2, 1], kind=2)
    before = content(parts[0])
    report = merge_directories([copy], parts[0], on_duplicate="skip")
    assert (report.items, report.skipped) == (0, 3)
    assert content(parts[0]) == before
    assert not caplog.records


def test_a_run_of_which_all_was_deleted_is_told_of_in_further_copies(tmp_path):
    part = ingest(tmp_path / "part", [0, 1])
    delete_items(part, ["item0", "item1"])
    compact_directory(part)
    for source, copy in ((part, "copy"), (tmp_path / "copy", "other")):
        merge_directories([source], tmp_path / copy)
        assert [run.chunks for run in runs_of(tmp_path / copy)] == [()]
        assert check_directory(tmp_path / copy).problems == []
    # Beside one of which everything is there already, and which is not told of.
    (run,) = runs_of(tmp_path / "other")
    ingest(tmp_path / "other", [3, 2])
    target = ingest(tmp_path / "target", [2, 3], kind=1)
    before = runs_of(target)
    merge_directories([tmp_path / "other"], target, on_duplicate="skip")
    assert runs_of(target) == (*before, run)


def test_the_progress_comes_to_the_bytes_of_all_parts(tmp_path, parts):
    told = []

    def tell(*, num_bytes=0, **_):
        told.append(num_bytes)

    merge_directories(parts, tmp_path / "all", on_duplicate="skip", progress=tell)
    files = [path for part in parts for path in part.glob("data_*.gulp")]
    assert sum(told) == sum(path.stat().st_size for path in files)


def test_a_share_of_which_all_is_there_is_not_missing(tmp_path):
    target = ingest(tmp_path / "all", [2, 3], kind=1)
    shares = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(shares, 1):
        some = Some([0, 1, 2, 3])
        GulpIngestor(some, folder, 2, 1, shard=Shard(number, 2)).run()
    report = merge_directories(shares, target, on_duplicate="skip")
    assert (report.items, report.skipped, report.missing) == (2, 2, [])


def test_other_settings_are_told_of_what_comes_alone(tmp_path, parts, caplog):
    coarse, other = EncoderSettings(quality=40), tmp_path / "other"
    GulpIngestor(Some([1, 0]), other, 3, 1, encoder=coarse).run()
    merge_directories([other], parts[0], on_duplicate="skip")
    assert not caplog.records
    GulpIngestor(Some([5]), other, 3, 1, encoder=coarse).run()
    merge_directories([other], parts[0], on_duplicate="skip")
    (text,) = caplog.messages
    assert "quality" in text


def test_an_item_that_was_deleted_and_stored_again_is_left_out_like_others(tmp_path):
    target = ingest(tmp_path / "all", [0, 1])
    part = ingest(tmp_path / "part", [1, 5])
    delete_items(target, ["item0", "item1"])
    with pytest.raises(IngestError, match=r"'item1' of .* was deleted in"):
        merge_directories([part], target, on_duplicate="skip")
    ingest(target, [1])
    report = merge_directories([part], target, on_duplicate="skip")
    assert (report.items, report.skipped) == (1, 1)
    assert kinds(target).keys() == {"item1", "item5"}


class Failing(Some):
    """The first item has no frames."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            is_first = item["id"] == f"item{self.numbers[0]}"
            yield {**item, "frames": []} if is_first else item


@pytest.mark.parametrize("brought", ["before", "beside"])
def test_what_failed_in_a_part_and_is_there_is_not_told_as_failed(tmp_path, brought):
    one, two = ingest(tmp_path / "one", [5, 6]), tmp_path / "two"
    GulpIngestor(Failing([5, 7]), two, 3, 1).run()
    GulpIngestor(Failing([8, 9]), two, 3, 1).run()
    target = one if brought == "before" else tmp_path / "all"
    parts = [two] if brought == "before" else [one, two]
    report = merge_directories(parts, target)
    lines = (target / "failures.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["item8"]
    assert report.failed == 1


@pytest.mark.parametrize("link", [True, False])
def test_a_merge_that_skips_and_is_killed_anywhere_is_finished_by_merging_again(
    tmp_path, parts, link, kill_step
):
    options = {"link": link, "on_duplicate": "skip"}
    merge_directories(parts, tmp_path / "whole", **options)
    expected = content(tmp_path / "whole")
    for number in range(1, 500, kill_step):
        target = tmp_path / f"killed{number}"
        if not is_killed(number, merge_directories, parts, target, **options):
            break
        merge_directories(parts, target, **options)
        assert content(target) == expected, number
    assert number > 30


@pytest.fixture
def overlapping(tmp_path):
    """Write parts with the same items in some, of which two bring something."""
    items = {"one": [0, 1, 2], "two": [2, 3], "three": [3, 2], "four": [1, 0]}
    return [ingest(tmp_path / name, numbers) for name, numbers in items.items()]


@pytest.mark.parametrize(
    ("numbers", "kind", "is_told"),
    [([0, 1], 0, True), ([0, 1], 1, False), ([0, 1, 9], 0, False)],
    ids=["told", "others", "more"],
)
def test_a_run_is_told_of_its_chunk_alone_after_a_merge_that_was_killed(
    tmp_path, overlapping, kill_step, numbers, kind, is_told
):
    before = ingest(tmp_path / "before", numbers, kind=kind)
    if not is_told:
        (before / "gulp.json").unlink()  # as GulpIO2 0.0.4 has left it
    whole = shutil.copytree(before, tmp_path / "whole")
    options: Any = {"on_duplicate": "skip"}
    merge_directories(overlapping, whole, **options)
    with GulpDirectory(whole) as directory:
        runs = directory.manifest.runs
    assert [run.chunks for run in runs[is_told:]] == [(1,), (2,)]
    for number in range(1, 500, kill_step):
        target = shutil.copytree(before, tmp_path / f"killed{number}")
        if not is_killed(number, merge_directories, overlapping, target, **options):
            break
        merge_directories(overlapping, target, **options)
        assert content(target) == content(whole), number
    assert number > 30


def test_a_run_is_told_of_its_chunk_where_parts_are_merged_in_another_order(
    tmp_path, overlapping
):
    target = ingest(tmp_path / "all", [0, 1])
    (target / "gulp.json").unlink()

    def merged(parts):
        merge_directories(parts, target, on_duplicate="skip")
        with GulpDirectory(target) as directory:
            return {run.plan: run.chunks for run in directory.manifest.runs}

    runs = merged(overlapping[:2])
    (target / "gulp.json").unlink()  # as if it had been killed before
    begin_merge(open_store(target), map(str, overlapping[:2]))
    assert merged(overlapping[1::-1]) == runs


def test_a_chunk_with_holes_comes_without_them(tmp_path, parts):
    delete_items(parts[1], ["item7"])
    compact_directory(parts[1])
    merge_directories(parts, tmp_path / "all", on_duplicate="skip")
    assert jpegs(tmp_path / "all", "item8") == jpegs(parts[1], "item8")
    assert not (tmp_path / "all" / "deleted.json").exists()
    assert check_directory(tmp_path / "all", deep=True).problems == []


def test_an_entry_that_is_altered_is_not_given_a_check_that_fits(tmp_path, parts):
    rot(parts[1] / "meta_1.gmeta", b'"number": 8', b'"number": 6')
    with pytest.raises(MetaFileError, match="item 'item8': its check is not that"):
        merge_directories(parts, tmp_path / "all", on_duplicate="skip")
    assert [path.name for path in (tmp_path / "all").glob("*.partial")] == []


def test_frames_that_the_original_appended_come_without_checksums(tmp_path, parts):
    path = parts[1] / "meta_1.gmeta"
    entries = json.loads(path.read_text())
    del entries["item8"]["gulp2"]  # as GulpIO2 0.0.4 would have written it
    end = (parts[1] / "data_1.gulp").stat().st_size
    (first, *_) = entries["item7"]["frame_info"]
    with (parts[1] / "data_1.gulp").open("r+b") as file:
        jpeg = file.read(first[0] + first[2])[first[0] :]
        file.seek(end)
        file.write(jpeg)
    entries["item7"]["frame_info"].append([end, first[1], first[2]])
    entries["item7"]["meta_data"].append({"more": 1})
    path.write_text(json.dumps(entries))
    merge_directories(parts, tmp_path / "all", on_duplicate="skip")
    assert jpegs(tmp_path / "all", "item7") == jpegs(parts[1], "item7")
    assert jpegs(tmp_path / "all", "item8") == jpegs(parts[1], "item8")
    assert check_directory(tmp_path / "all", deep=True).problems == []


def test_a_chunk_that_is_written_anew_meanwhile_is_refused(
    tmp_path, parts, monkeypatch
):
    def refuse(read):
        monkeypatch.undo()
        chunk = GulpChunk(parts[1] / "data_1.gulp", parts[1] / "meta_1.gmeta")
        with chunk.open("wb"):
            chunk.append("another", {}, make_frames(2))
        real(read)

    real = data.refuse_replaced
    monkeypatch.setattr("gulpio2.merge.items.refuse_replaced", refuse)
    with pytest.raises(ChunkMismatchError, match="was written anew"):
        merge_directories(parts, tmp_path / "all", on_duplicate="skip")
    assert [path.name for path in (tmp_path / "all").glob("*.partial")] == []


@pytest.mark.usefixtures("permissions")
def test_a_copy_may_be_read_by_nobody_who_may_not_read_the_part(tmp_path, parts):
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (parts[1] / name).chmod(0o600)
    merge_directories(parts, tmp_path / "all", on_duplicate="skip")
    for name in ("data_2.gulp", "meta_2.gmeta"):
        assert (tmp_path / "all" / name).stat().st_mode & 0o777 == 0o600


def test_an_unknown_choice_is_refused(tmp_path, parts):
    other: Any = "report"
    with pytest.raises(IngestSettingError, match="on_duplicate"):
        merge_directories(parts, tmp_path / "all", on_duplicate=other)


def test_the_command_says_how_many_were_left_out(tmp_path, parts):
    words = ["merge", *map(str, parts), str(tmp_path / "all")]
    runner = CliRunner()
    refused = runner.invoke(gulp2, words)
    assert refused.exit_code == 1
    assert "--on-duplicate skip" in refused.stderr
    result = runner.invoke(gulp2, [*words, "--on-duplicate", "skip", "-v"])
    assert result.exit_code == 0
    assert (
        "left out, as items of these ids come before them (--json names all): "
        "'item2', 'item0', 'item1', 'item3'\n" in result.stderr
    )
    assert "8 items in 4 chunks (3 linked, 1 copied), 4 skipped" in result.stdout
    again = runner.invoke(gulp2, [*words, "--on-duplicate", "skip", "--json"])
    told = json.loads(again.stdout)
    assert (told["items"], told["skipped"], told["present"]) == (0, 6, 3)
    assert len(told["skipped_ids"]) == 6
    assert not again.stderr
