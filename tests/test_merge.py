"""Shares of an ingest, and directories that become one."""

import errno
import json
import os
import resource
import signal

import numpy as np
import pytest
from click.testing import CliRunner

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.cli.main import gulp2
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import (
    DuplicateIdError,
    FormatError,
    IngestError,
    IngestSettingError,
    StorageError,
)
from gulpio2.format import other_settings
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index import opening
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import (
    content,
    fail_at_operation,
    in_child,
)


class Named(FrameAdapter):
    """Items with another name."""

    def __init__(self, name, **options):
        super().__init__(**options)
        self.name = name

    def item_ids(self):
        return [f"{self.name}{id_}" for id_ in super().item_ids() or ()]

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"{self.name}{item['id']}"}


class OneLabel(Named):
    """Items of one label, which has a number."""

    def __init__(self, name, label):
        super().__init__(name, num_items=2)
        self.label = label

    def label_mapping(self):
        return {self.label: 0}


class Numbered(OneLabel):
    """Items that have label and number in their metadata."""

    def __init__(self, name, label, idx):
        super().__init__(name, label)
        self.idx = idx

    def label_mapping(self):
        return {self.label: self.idx}

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": {"label": self.label, "idx": self.idx}}


class Twice(FrameAdapter):
    """The last item has the id of the first."""

    def item_ids(self):
        return [*(super().item_ids() or ())[:-1], "item0"]


def ingest(folder, *, num_items=13, per_chunk=2, workers=1, **options):
    adapter = FrameAdapter(num_items=num_items, bad=[5], **options.pop("adapter", {}))
    return GulpIngestor(adapter, folder, per_chunk, workers, **options).run()


def ingest_shards(folder, count, **options):
    folders = []
    for number in range(1, count + 1):
        shard = Shard(number, count)
        folders.append(folder / shard.folder_name)
        ingest(folders[-1], shard=shard, **options)
    return folders


@pytest.mark.parametrize("count", [1, 2, 3, 16])
@pytest.mark.parametrize(
    "options", [{}, {"adapter": {"list_ids": False}}], ids=["listed", "unlisted"]
)
def test_merged_shards_are_the_bytes_of_one_run(tmp_path, count, options):
    ingest(tmp_path / "whole", **options)
    parts = ingest_shards(tmp_path / "parts", count, **options)
    report = merge_directories(parts, tmp_path / "merged")
    assert report.items == 12
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_merged_shards_by_bytes_hold_the_items_of_one_run(tmp_path):
    ingest(tmp_path / "whole", chunk_bytes=3000)
    parts = ingest_shards(tmp_path / "parts", 3, chunk_bytes=3000)
    merge_directories(parts, tmp_path / "merged")
    with (
        GulpDirectory(tmp_path / "whole") as one,
        GulpDirectory(tmp_path / "merged") as other,
    ):
        assert list(one.chunk_lookup) == list(other.chunk_lookup)
        for id_ in one.chunk_lookup:
            assert (one.read_clip(id_) == other.read_clip(id_)).all()


def test_data_files_are_linked_not_copied(tmp_path):
    parts = ingest_shards(tmp_path, 2)
    report = merge_directories(parts, tmp_path / "merged")
    assert (report.linked, report.copied) == (7, 0)
    ours = {path.stat().st_ino for path in (tmp_path / "merged").glob("*.gulp")}
    theirs = {path.stat().st_ino for part in parts for path in part.glob("*.gulp")}
    assert ours == theirs


def append_to(folder, id_):
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append(id_, {}, make_frames(2))


def both_of(tmp_path, name="part"):
    """Make a part and what it was merged into; they share a data file."""
    part, merged = tmp_path / name, tmp_path / f"{name} merged"
    GulpIngestor(FrameAdapter(num_items=2), part, 2, 1).run()
    merge_directories([part], merged)
    assert (part / "data_0.gulp").samefile(merged / "data_0.gulp")
    return part, merged


@pytest.mark.parametrize("changed", [0, 1], ids=["part", "target"])
def test_what_is_appended_to_one_does_not_come_to_the_other(tmp_path, changed):
    both = both_of(tmp_path)
    other = both[1 - changed]
    before = content(other)
    append_to(both[changed], "new")
    assert content(other) == before
    assert not check_directory(other, deep=True).problems
    assert not check_directory(both[changed], deep=True).problems
    with GulpDirectory(both[changed], verify=True) as directory:
        assert sorted(directory.chunk_lookup) == ["item0", "item1", "new"]
        for id_ in directory.chunk_lookup:
            directory.read_clip(id_)
    inode = (both[changed] / "data_0.gulp").stat().st_ino
    append_to(both[changed], "newer")
    assert (both[changed] / "data_0.gulp").stat().st_ino == inode, "copied twice"


def test_an_append_goes_through_a_symbolic_link_also_to_a_shared_file(tmp_path):
    part, merged = both_of(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (part / "data_0.gulp").rename(elsewhere / "frames")
    (part / "data_0.gulp").symlink_to(elsewhere / "frames")
    before = content(merged)
    append_to(part, "new")
    assert (part / "data_0.gulp").is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["frames"]
    assert content(merged) == before
    assert not check_directory(part, deep=True).problems


def test_an_append_to_a_shared_file_may_be_killed_anywhere(tmp_path):
    for number in range(1, 100):
        part, merged = both_of(tmp_path, f"part{number}")
        before = content(merged)
        ended = not is_killed(number, append_to, part, "new")
        assert content(merged) == before
        with GulpDirectory(part, verify=True) as directory:
            assert {"item0", "item1"} <= {*directory.chunk_lookup}
            for id_ in directory.chunk_lookup:
                directory.read_clip(id_)
        if ended:
            break
    assert number > 5


def test_where_there_is_no_room_for_a_copy_nothing_is_lost(tmp_path):
    for number in range(1, 100):
        part, merged = both_of(tmp_path, f"part{number}")
        before = content(part), content(merged)

        def failing(part=part, number=number):
            fail_at_operation(number, errno.ENOSPC, for_good=False)
            with pytest.raises(StorageError):
                append_to(part, "new")

        ended = in_child(failing)
        assert content(merged) == before[1]
        if ended != 0:  # no operation of this number: nothing failed
            break
        found = content(part)
        assert found.keys() == before[0].keys(), "a copy was left"
        assert found["data_0.gulp"].startswith(before[0]["data_0.gulp"])
        with GulpDirectory(part, verify=True) as directory:
            assert {"item0", "item1"} <= {*directory.chunk_lookup}
            for id_ in directory.chunk_lookup:
                directory.read_clip(id_)
    assert number > 5


def test_without_links_files_are_copied(tmp_path, monkeypatch):
    parts = ingest_shards(tmp_path, 2)
    copied = merge_directories(parts, tmp_path / "copied", link=False)
    assert (copied.linked, copied.copied) == (0, 7)

    def refuse(*_paths):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    other = merge_directories(parts, tmp_path / "other")
    assert (other.linked, other.copied) == (0, 7)
    assert content(tmp_path / "copied") == content(tmp_path / "other")


def test_what_is_in_the_target_stays(tmp_path):
    ingest(tmp_path / "target", num_items=3)
    adapter = Named("more", num_items=4)
    GulpIngestor(adapter, tmp_path / "part", 2, 1).run()
    merge_directories([tmp_path / "part"], tmp_path / "target")
    with GulpDirectory(tmp_path / "target") as directory:
        assert len(directory) == 7
        assert [run.chunks for run in directory.manifest.runs] == [(0, 1), (2, 3)]
    assert not check_directory(tmp_path / "target", deep=True).problems


def test_merging_again_changes_nothing(tmp_path):
    parts = ingest_shards(tmp_path, 2)
    merge_directories(parts, tmp_path / "merged")
    before = content(tmp_path / "merged")
    report = merge_directories(parts, tmp_path / "merged")
    assert (report.items, report.present) == (0, 7)
    assert content(tmp_path / "merged") == before


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_merge_that_is_killed_anywhere_is_finished_by_merging_again(
    tmp_path, link, kill_step
):
    parts = ingest_shards(tmp_path, 2)
    merge_directories(parts, tmp_path / "whole")
    expected = content(tmp_path / "whole")
    for number in range(1, 500, kill_step):
        target = tmp_path / f"killed{number}"
        if not is_killed(number, merge_directories, parts, target, link=link):
            break
        with GulpDirectory(target) as directory:
            for id_ in directory.chunk_lookup:
                directory.read_clip(id_)
        merge_directories(parts, target, link=link)
        assert content(target) == expected
    assert number > 30


class Labelled(FrameAdapter):
    """Items of one label."""

    def label_mapping(self):
        return {"cat": 0}


@pytest.fixture
def stopped(tmp_path):
    """Merge two parts, up to the first chunk of three, and give them."""
    parts = [tmp_path / "a", tmp_path / "b"]
    GulpIngestor(Labelled(num_items=4), parts[0], 2, 1).run()
    GulpIngestor(Named("other", num_items=2), parts[1], 2, 1).run()

    def stop(**_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_directories(parts, tmp_path / "out", progress=stop)
    return parts


def test_a_merge_that_is_interrupted_has_its_labels_and_is_told_by_a_check(
    stopped, tmp_path
):
    assert len(GulpDirectory(tmp_path / "out")) == 2
    assert (tmp_path / "out" / "label2idx.json").exists()
    problems = check_directory(tmp_path / "out", deep=True).problems
    assert [problem.code for problem in problems] == ["unfinished-ingest"]
    assert merge_directories(stopped, tmp_path / "out").items == 4
    assert check_directory(tmp_path / "out", deep=True).problems == []
    merge_directories(stopped, tmp_path / "whole")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"on_duplicate": "skip"}])
def test_nothing_is_ingested_before_a_merge_is_finished(stopped, tmp_path, options):
    before = content(tmp_path / "out")
    adapter = Named("new", num_items=2)
    with pytest.raises(IngestError, match="a merge into this folder was not finished"):
        GulpIngestor(adapter, tmp_path / "out", 2, 1, **options).run()
    assert content(tmp_path / "out") == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_deleted_before_a_merge_is_finished(stopped, tmp_path, dry_run):
    out = tmp_path / "out"
    (out / ".data_9.gulp.0.partial").write_bytes(b"of the merge")
    before = content(out)
    message = (
        r"a merge into this folder .*out/ingest\.journal\)\. Finish it \(gulp2 merge"
    )
    with pytest.raises(IngestError, match=f"{message}.* before deleting: nothing was"):
        delete_items(out, ["item0"], dry_run=dry_run)
    with pytest.raises(IngestError, match=f"{message}.* before compacting: nothing"):
        compact_directory(out, dry_run=dry_run)
    assert content(out) == before
    assert merge_directories(stopped, out).items == 4
    delete_items(out, ["item0"])
    assert len(compact_directory(out)) == 1
    assert check_directory(out, deep=True).problems == []


@pytest.mark.parametrize("alone", [True, False])
def test_a_merge_is_not_finished_without_a_part_of_it(stopped, tmp_path, caplog, alone):
    report = merge_directories(stopped[1:], tmp_path / "out")
    assert report.left_out == [str(stopped[0])]
    (record,) = caplog.records
    assert f"{stopped[0]} was being merged into" in record.getMessage()
    problems = check_directory(tmp_path / "out", deep=True).problems
    assert [problem.code for problem in problems] == ["unfinished-ingest"]
    assert (
        CliRunner()
        .invoke(gulp2, ["merge", str(stopped[1]), str(tmp_path / "out")])
        .exit_code
        == 1
    )
    caplog.clear()
    parts = stopped[:1] if alone else stopped
    assert merge_directories(parts, tmp_path / "out").items == 2
    assert not caplog.records
    assert check_directory(tmp_path / "out", deep=True).problems == []


def test_what_failed_in_a_part_is_listed_once_however_often_it_is_merged(tmp_path):
    parts = ingest_shards(tmp_path, 2, num_items=8)
    GulpIngestor(Named("other", num_items=4, bad=[1, 2]), tmp_path / "o", 2, 1).run()
    assert merge_directories(parts, tmp_path / "all").failed == 1
    assert merge_directories([*parts, tmp_path / "o"], tmp_path / "all").failed == 3
    assert merge_directories([tmp_path / "o", *parts], tmp_path / "all").failed == 3
    lines = (tmp_path / "all" / "failures.jsonl").read_text().splitlines()
    assert [json.loads(line)["position"] for line in lines] == [5, 1, 2]


def failed(folder):
    path = folder / "failures.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["id"] for line in lines]


def test_what_a_part_has_stored_since_it_was_merged_has_not_failed(tmp_path):
    def run(number, bad):
        adapter = FrameAdapter(num_items=8, bad=bad)
        shard = Shard(number, 2)
        folder = tmp_path / shard.folder_name
        GulpIngestor(adapter, folder, 2, 1, shard=shard, on_duplicate="skip").run()
        return folder

    parts = [run(number, bad=[1, 3, 5]) for number in (1, 2)]
    target = tmp_path / "all"
    merge_directories(parts, target)
    assert failed(target) == ["item1", "item3", "item5"]
    run(1, bad=[3])
    assert merge_directories(parts, target).items == 1
    assert sorted(failed(target)) == ["item3", "item5"]
    run(1, bad=[])
    run(2, bad=[])
    assert merge_directories(parts, target).items == 2
    assert failed(target) == []
    assert merge_directories(parts, target).failed == 0
    assert check_directory(target, deep=True).notes == []


def test_an_item_whose_id_another_has_stays_listed_where_that_one_is_stored(tmp_path):
    parts = []
    for shard in (Shard(1, 2), Shard(2, 2)):
        parts.append(tmp_path / shard.folder_name)
        adapter = Twice(num_items=8)
        ingestor = GulpIngestor(
            adapter, parts[-1], 2, 1, shard=shard, on_duplicate="report"
        )
        ingestor.run()
    for part in reversed(parts):
        merge_directories([part], tmp_path / "all")
    assert failed(tmp_path / "all") == ["item0"]


def test_a_damaged_list_of_failures_is_kept_by_a_merge(tmp_path):
    ingest(tmp_path / "a", num_items=3)
    (tmp_path / "all").mkdir()
    lines = b'no JSON\n[1]\n{"id": ["item0"], "error": {}}\n{"id": "item0"}\n7\n'
    (tmp_path / "all" / "failures.jsonl").write_bytes(lines)
    merge_directories([tmp_path / "a"], tmp_path / "all")
    assert (tmp_path / "all" / "failures.jsonl").read_bytes() == lines


@pytest.mark.parametrize("cut", ["first", "second", "all"])
def test_a_list_of_failures_without_a_last_newline_stays_apart(tmp_path, cut):
    for name in ("first", "second", "all"):
        GulpIngestor(Named(name, num_items=2, bad=[1]), tmp_path / name, 2, 1).run()
    path = tmp_path / cut / "failures.jsonl"
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    for _ in range(2):
        merge_directories([tmp_path / "first", tmp_path / "second"], tmp_path / "all")
        assert failed(tmp_path / "all") == ["allitem1", "firstitem1", "seconditem1"]
    assert check_directory(tmp_path / "all", deep=True).problems == []


@pytest.mark.parametrize("target", ["c", "c/below/it"])
def test_a_merge_that_is_refused_leaves_no_folder(tmp_path, target):
    ingest(tmp_path / "a", num_items=3)
    ingest(tmp_path / "b", num_items=4, per_chunk=4)
    with pytest.raises(DuplicateIdError):
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / target)
    assert not (tmp_path / "c").exists()
    (tmp_path / "c").mkdir()  # somebody's own stays
    with pytest.raises(DuplicateIdError):
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / target)
    assert not list((tmp_path / "c").iterdir())


def test_an_id_in_two_parts_is_refused_and_nothing_is_written(tmp_path):
    ingest(tmp_path / "a", num_items=3)
    ingest(tmp_path / "b", num_items=4, per_chunk=4)
    with pytest.raises(DuplicateIdError, match="item0") as caught:
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert str(tmp_path / "a") in str(caught.value)
    assert ", the first of 3 that are there twice. Nothing was" in str(caught.value)
    assert not list((tmp_path / "c").glob("*.gulp"))
    delete_items(tmp_path / "b", ["item0", "item1"])
    compact_directory(tmp_path / "b")
    with pytest.raises(DuplicateIdError, match=r"'item2' is in .*b\. Nothing .* it in"):
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_a_part_of_other_settings_is_told_once_with_what_differs(tmp_path, caplog):
    for name, quality in (("a", 90), ("b", 30), ("c", 90)):
        settings = EncoderSettings(quality=quality)
        adapter = Named(name, num_items=3)
        GulpIngestor(adapter, tmp_path / name, 2, 1, encoder=settings).run()
    a, b, c, target = (tmp_path / name for name in ("a", "b", "c", "target"))
    merge_directories([a, c], target)
    assert caplog.messages == []
    merge_directories([a, b], target)
    (text,) = caplog.messages
    assert text.startswith(f"{b} holds frames that were ingested with other settings")
    assert f"in {target}: quality 30 (until now 90). They are merged as they" in text
    caplog.clear()
    merge_directories([a, b, c], target)  # all of it is there
    merge_directories([a, c, b], tmp_path / "new")
    assert [message.partition(" ")[0] for message in caplog.messages] == [str(b)]


def test_the_settings_of_each_part_are_read_twice_however_many_there_are(
    tmp_path, monkeypatch
):
    read = []

    def noted(options, encoder):
        read.append(options)
        return _settings(options, encoder)

    _settings = other_settings._settings
    monkeypatch.setattr(other_settings, "_settings", noted)
    for number in range(1, 9):
        shard = Shard(number, 8)
        adapter = FrameAdapter(num_items=8, num_frames=1)
        GulpIngestor(adapter, tmp_path / str(number), 1, 1, shard=shard).run()
    read.clear()
    merge_directories([tmp_path / str(n) for n in range(1, 9)], tmp_path / "all")
    assert len(read) == 16


def test_shards_of_one_run_have_no_other_settings(tmp_path, caplog):
    parts = ingest_shards(tmp_path, 3)
    caplog.clear()
    merge_directories(parts, tmp_path / "merged")
    assert caplog.messages == []


def test_a_folder_that_is_no_gulp_directory_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(FormatError, match="no gulp directory"):
        merge_directories([tmp_path / "a"], tmp_path / "c")


def test_an_unfinished_part_is_refused(tmp_path):
    ingest(tmp_path / "a", num_items=2)
    (tmp_path / "a" / "ingest.journal").write_bytes(b"")
    with pytest.raises(IngestError, match="--resume"):
        merge_directories([tmp_path / "a"], tmp_path / "c")


@pytest.mark.parametrize("lost", [["data_1.gulp", "meta_1.gmeta"], ["meta_1.gmeta"]])
def test_a_part_that_has_lost_a_chunk_is_refused_until_it_is_repaired(tmp_path, lost):
    ingest(tmp_path / "part", num_items=5)
    for name in lost:
        (tmp_path / "part" / name).unlink()
    with pytest.raises(FormatError, match=r"part has lost a chunk.* meta_1\.gmeta"):
        merge_directories([tmp_path / "part"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    repair_directory(tmp_path / "part", tmp_path / "mended")
    assert merge_directories([tmp_path / "mended"], tmp_path / "out").items >= 3


def test_a_part_with_deleted_items_is_refused(tmp_path):
    ingest(tmp_path / "a", num_items=2)
    delete_items(tmp_path / "a", ["item0"])
    with pytest.raises(IngestError, match=r"holds deleted.* with 'gulp2 compact'"):
        merge_directories([tmp_path / "a"], tmp_path / "c")


def compacted_shards(folder):
    """Give shares of which items were erased: first, between, last, all of a chunk."""
    parts = ingest_shards(folder, 2)
    for part, ids in (
        (parts[0], ["item0", "item4"]),
        (parts[1], ["item7", "item8", "item9", "item11"]),
    ):
        delete_items(part, ids)
        compact_directory(part)
    return parts


def is_as_compacted(parts, target):
    """Compare what was merged with the parts, and with what they say of holes."""
    with GulpDirectory(target, verify=True) as directory:
        ids = {*directory.chunk_lookup}
        for part in parts:
            with GulpDirectory(part) as own:
                for id_ in own.chunk_lookup:
                    assert own.read_jpegs(id_) == directory.read_jpegs(id_)
                ids -= {*own.chunk_lookup}
    assert not ids
    assert check_directory(target, deep=True).problems == []


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_part_that_was_compacted_is_merged_with_its_holes(tmp_path, link):
    parts, target = compacted_shards(tmp_path), tmp_path / "out"
    report = merge_directories(parts, target, link=link)
    assert report.linked == (len(report.chunks) if link else 0)
    is_as_compacted(parts, target)
    before = content(target)
    assert merge_directories(parts, target).present == len(report.chunks)
    assert content(target) == before
    size = (target / "data_0.gulp").stat().st_size
    append_to(target, "new")
    entry = json.loads((target / "meta_0.gmeta").read_bytes())["new"]
    assert entry["frame_info"][0][0] >= size
    delete_items(target, ["item1", "item2"])
    compact_directory(target)
    assert check_directory(target, deep=True).problems == []
    repair_directory(target, tmp_path / "mended")
    assert check_directory(tmp_path / "mended", deep=True).problems == []


def test_frames_that_the_target_still_has_are_not_noted_as_erased(tmp_path):
    part, target = tmp_path / "part", tmp_path / "out"
    ingest(part, num_items=4)
    merge_directories([part], target, link=False)
    for folder in (part, target):
        delete_items(folder, ["item1"])
    compact_directory(part)
    assert merge_directories([part], target).present == 2
    assert check_directory(target, deep=True).problems == []
    compact_directory(target)
    assert check_directory(target, deep=True).problems == []


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_merge_of_compacted_parts_may_be_killed_anywhere(tmp_path, link, kill_step):
    parts = compacted_shards(tmp_path)
    merge_directories(parts, tmp_path / "whole", link=link)
    expected = content(tmp_path / "whole")
    for number in range(1, 500, kill_step):
        target = tmp_path / f"killed{number}"
        if not is_killed(number, merge_directories, parts, target, link=link):
            break
        merge_directories(parts, target, link=link)
        assert content(target) == expected
    assert number > 20
    is_as_compacted(parts, target)


def test_what_was_deleted_in_the_target_is_not_brought_back(tmp_path):
    part, out = tmp_path / "part", tmp_path / "out"
    ingest(part, num_items=5)
    merge_directories([part], out)
    delete_items(out, ["item2", "item3"])  # all of a chunk
    before = content(out)
    message = "the item 'item2' of .*part, and 1 more of it, was deleted in .*out"
    with pytest.raises(IngestError, match=message):
        merge_directories([part], out)
    delete_items(part, ["item0", "item1", "item4"])  # the same frames at other places
    repair_directory(part, tmp_path / "copy")
    with pytest.raises(IngestError, match=r"'item2' of .*copy, and 1 more"):
        merge_directories([tmp_path / "copy"], out)
    assert content(out) == before
    compact_directory(out)
    assert merge_directories([tmp_path / "copy"], out).items == 2


def test_another_item_comes_under_the_id_of_a_deleted_one(tmp_path):
    ingest(tmp_path / "part", num_items=2)
    merge_directories([tmp_path / "part"], tmp_path / "out")
    delete_items(tmp_path / "out", ["item0", "item1"])
    (tmp_path / "other").mkdir()
    chunk = GulpChunk(tmp_path / "other/data_0.gulp", tmp_path / "other/meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("item0", {"label": "mended"}, make_frames(3))
    merge_directories([tmp_path / "other"], tmp_path / "out")
    assert check_directory(tmp_path / "out", deep=True).ok


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "", "1/" + "9" * 5000]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(IngestSettingError):
        Shard.parse(text)


@pytest.mark.parametrize("numbers", [("1", "2"), (1.0, 2), (1, None), (True, 2)])
def test_what_is_no_number_of_a_shard_is_refused(numbers):
    with pytest.raises(IngestSettingError, match=r"of a shard is .* whole number"):
        Shard(*numbers)


@pytest.mark.parametrize("numbers", [(np.int64(1), 2), (1, np.int64(2))])
def test_a_shard_may_have_whole_numbers_of_any_kind(tmp_path, numbers):
    shard = Shard(*numbers)
    GulpIngestor(FrameAdapter(), tmp_path / "a", 2, 1, shard=shard).run()
    GulpIngestor(FrameAdapter(), tmp_path / "b", 2, 1, shard=Shard(1, 2)).run()
    assert content(tmp_path / "a") == content(tmp_path / "b")


@pytest.mark.parametrize("num_chunks", [0, 1, 5, 16, 100])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_shards_cover_every_chunk_once_and_evenly(num_chunks, count):
    shares = [Shard(n, count).chunks(num_chunks) for n in range(1, count + 1)]
    assert [chunk for share in shares for chunk in share] == list(range(num_chunks))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_an_interrupted_shard_is_resumed_as_the_same_shard_only(tmp_path):
    assert is_killed(30, ingest, tmp_path / "a", shard=Shard(1, 2))
    with pytest.raises(IngestError, match="shard"):
        ingest(tmp_path / "a", shard=Shard(2, 2), resume=True)
    ingest(tmp_path / "a", shard=Shard(1, 2), resume=True)
    ingest(tmp_path / "b", shard=Shard(1, 2))
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_directory_is_not_merged_into_itself(tmp_path):
    ingest(tmp_path / "a")
    before = content(tmp_path / "a")
    with pytest.raises(IngestSettingError, match="merged into itself"):
        merge_directories([tmp_path / "a"], tmp_path / "x" / ".." / "a")
    assert content(tmp_path / "a") == before


def test_a_part_that_is_given_twice_is_named(tmp_path):
    ingest(tmp_path / "a")
    parts = [tmp_path / "a", tmp_path / "x" / ".." / "a"]
    with pytest.raises(IngestSettingError, match="is given twice"):
        merge_directories(parts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_labels_that_contradict_are_told_with_both_directories(tmp_path):
    for name, labels in (("a", {"x": 0}), ("b", {"y": 0})):
        GulpIngestor(Named(name, num_items=2), tmp_path / name, 2, 1).run()
        (tmp_path / name / "label2idx.json").write_text(json.dumps(labels))
    with pytest.raises(IngestError) as caught:
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    assert (
        f"label2idx.json of {tmp_path / 'a'} has 'x' as 0, that of {tmp_path / 'b'} 'y'"
        in str(caught.value)
    )
    # What it advises: a new folder begins with the numbers of the other.
    advised = "anew into a folder with a copy of the other's label2idx.json, or keep"
    assert advised in str(caught.value)


def test_a_copy_that_finds_no_room_is_not_called_unreadable(tmp_path):
    ingest(tmp_path / "part", num_items=4)
    size = max(path.stat().st_size for path in (tmp_path / "part").glob("*.gulp"))

    def merge_with_little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        with pytest.raises(StorageError, match=r"cannot copy .* to .*File too large"):
            merge_directories([tmp_path / "part"], tmp_path / "out", link=False)

    assert in_child(merge_with_little_room) == 0


def test_lost_labels_are_not_numbered_afresh(tmp_path):
    for name in ("a", "b"):
        GulpIngestor(OneLabel(name, "x"), tmp_path / name, 2, 1).run()
    (tmp_path / "a" / "label2idx.json").unlink()
    before = content(tmp_path / "a"), content(tmp_path / "b")
    message = r"a/label2idx.json is missing, in which the labels of the stored items"
    with pytest.raises(IngestError, match=message):
        GulpIngestor(OneLabel("c", "y"), tmp_path / "a", 2, 1).run()
    with pytest.raises(IngestError, match=message):
        merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    with pytest.raises(IngestError, match=message):
        merge_directories([tmp_path / "b"], tmp_path / "a")
    assert (content(tmp_path / "a"), content(tmp_path / "b")) == before
    report = repair_directory(tmp_path / "a", tmp_path / "mended")
    assert [loss.file for loss in report.lost] == ["label2idx.json"]


class Told(Named):
    """Two items of a dataset of which something is known."""

    def __init__(self, name, metainfo):
        super().__init__(name, num_items=2)
        self.metainfo = metainfo


def ingest_told(folder, metainfo):
    GulpIngestor(Told(folder.name, metainfo), folder, 2, 1).run()
    return folder


@pytest.mark.parametrize("into", [False, True], ids=["parts", "target"])
@pytest.mark.parametrize(
    ("one", "other"), [(["run", "jump"], ["jump", "run"]), (1, True), (None, "x")]
)
def test_metainfo_that_contradicts_is_refused_before_anything_is_written(
    tmp_path, one, other, into
):
    a = ingest_told(tmp_path / "a", {"licence": "free", "classes": one})
    b = ingest_told(tmp_path / "b", {"classes": other, "licence": "free"})
    before = content(a), content(b)
    parts, target = ([b], a) if into else ([a, b], tmp_path / "out")
    with pytest.raises(IngestError) as caught:
        merge_directories(parts, target)
    assert str(caught.value).startswith(f"{a} and {b} have another 'classes' each")
    assert "Ingest one of them anew into another folder, with" in str(caught.value)
    assert (content(a), content(b)) == before
    assert into or not target.exists()


def test_metainfo_that_agrees_or_that_one_has_alone_is_joined(tmp_path):
    mean = {"mean": {"r": float("nan"), "g": 0.5}}
    parts = [
        ingest_told(tmp_path / "a", {**mean, "classes": ["run"]}),
        ingest_told(tmp_path / "b", {}),
        ingest_told(tmp_path / "c", {"mean": dict(reversed(mean["mean"].items()))}),
        ingest_told(tmp_path / "d", {"licence": None}),
    ]
    for _ in range(2):
        merge_directories(parts, tmp_path / "out")
        with GulpDirectory(tmp_path / "out") as directory:
            assert list(directory.metainfo) == ["mean", "classes", "licence"]
            assert directory.metainfo["classes"] == ["run"]


def test_the_index_at_the_end_is_told_of_by_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "SMALL_MAPS_BYTES", 0)
    for name in ("one", "two"):
        GulpIngestor(Named(name, num_items=6), tmp_path / name, 2, 1).run()
    told: list[dict[str, int]] = []
    parts = [tmp_path / "one", tmp_path / "two"]
    merge_directories(parts, tmp_path / "out", progress=lambda **c: told.append(c))
    files = [*(tmp_path / "out").glob("data_*.gulp")]
    maps = [*(tmp_path / "out").glob("meta_*.gmeta")]
    sizes = sum(path.stat().st_size for path in [*files, *maps])
    assert sum(counts["num_bytes"] for counts in told) == sizes
    assert sum(counts.get("items", 0) for counts in told) == 12, "each once"
    assert len(told) == len(files) + len(maps)


def test_parts_may_come_from_a_generator(tmp_path):
    ingest_shards(tmp_path, 2)
    report = merge_directories(tmp_path.glob("shard_*"), tmp_path / "merged")
    assert (report.items, report.missing) == (12, [])


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_one_path_in_the_place_of_the_parts_is_refused(tmp_path, kind):
    (part,) = ingest_shards(tmp_path, 1)
    with pytest.raises(IngestSettingError, match=r"give a list of directories: \["):
        merge_directories(kind(part), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_labels_that_another_program_replaced_are_not_gone_on_with(tmp_path):
    """As GulpIO2 0.0.4 does, which writes the labels of its own items alone."""
    for name, label, idx in (("a", "x", 0), ("b", "y", 5)):
        GulpIngestor(Numbered(name, label, idx), tmp_path / name, 2, 1).run()
    path = tmp_path / "a" / "label2idx.json"
    theirs = GulpChunk(tmp_path / "a/data_1.gulp", tmp_path / "a/meta_1.gmeta")
    with theirs.open("wb"):
        theirs.append("z-1", {"label": "z", "idx": 0}, make_frames(1))
    for labels, now in (({"z": 0}, "missing there"), ({"z": 0, "x": 1}, "1 there")):
        path.write_text(json.dumps(labels))
        before = content(tmp_path / "a"), content(tmp_path / "b")
        message = rf"label2idx.json was replaced by another .*'x' of .*and is {now}"
        with pytest.raises(IngestError, match=message):
            GulpIngestor(Numbered("c", "y", 5), tmp_path / "a", 2, 1).run()
        with pytest.raises(IngestError, match=message):
            merge_directories([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
        assert (content(tmp_path / "a"), content(tmp_path / "b")) == before
    # With what says the same of stored items there is nothing to refuse.
    path.write_text('{"x": 0, "z": 1}')
    GulpIngestor(Numbered("c", "y", 5), tmp_path / "a", 2, 1).run()
    assert json.loads(path.read_text()) == {"x": 0, "z": 1, "y": 5}
