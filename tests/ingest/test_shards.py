"""A share of an ingest: what is in it, and when it is complete."""

import errno
import json
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import DuplicateIdError, FormatError, IngestSettingError
from gulpio2.format.manifest import Manifest, dump_manifest, load_manifest
from gulpio2.ingest.planning import plan_run
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import content


class Source(FrameAdapter):
    """A folder, say, in which there may be more items another day."""

    def describe(self):
        return {}


def make(folder, *, num_items=12, per_chunk=2, workers=1, list_ids=True, **options):
    adapter = Source(num_items=num_items, num_frames=2, list_ids=list_ids)
    return GulpIngestor(adapter, folder, per_chunk, workers, **options)


class Repeating(FrameAdapter):
    """Items of which every fourth has the id of the first."""

    def item_ids(self):
        ids = super().item_ids() or []
        return [ids[0] if n % 4 == 0 else id_ for n, id_ in enumerate(ids)]

    def iter_data(self, slice_element=None):
        ids = self.item_ids()
        for item in super().iter_data(slice_element):
            yield {**item, "id": ids[item["meta"]["number"]]}


def test_a_share_does_not_depend_on_what_is_stored(tmp_path):
    for _ in range(2):
        options = {"shard": Shard(1, 2), "on_duplicate": "skip"}
        report = make(tmp_path, **options).run()
    assert (report.items, report.skipped) == (0, 6)
    assert sorted(GulpDirectory(tmp_path).chunk_lookup) == [
        f"item{n}" for n in range(6)
    ]


def lose_chunk(folder, number):
    for name in (f"data_{number}.gulp", f"meta_{number}.gmeta"):
        (folder / name).unlink()


@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("shard", [None, Shard(1, 1), Shard(2, 2)])
def test_a_lost_chunk_whose_items_are_ingested_again_is_missed_no_more(
    tmp_path, shard, list_ids
):
    options = {"shard": shard, "list_ids": list_ids, "on_duplicate": "skip"}
    make(tmp_path / "part", **options).run()
    lose_chunk(tmp_path / "part", 1)
    assert check_directory(tmp_path / "part").problems != []
    with pytest.raises(FormatError, match="has lost a chunk"):
        merge_directories([tmp_path / "part"], tmp_path / "all")
    assert make(tmp_path / "part", **options).run().items == 2
    assert check_directory(tmp_path / "part", deep=True).problems == []
    report = merge_directories([tmp_path / "part"], tmp_path / "all")
    assert report.items == (12 if shard != Shard(2, 2) else 6)


def test_a_lost_chunk_whose_items_an_earlier_version_stored_again_is_missed_no_more(
    tmp_path,
):
    make(tmp_path).run()
    before = (tmp_path / "gulp.json").read_bytes()
    lose_chunk(tmp_path, 1)
    make(tmp_path, on_duplicate="skip").run()
    (tmp_path / "gulp.json").write_bytes(before)
    assert check_directory(tmp_path).problems != []
    assert make(tmp_path, on_duplicate="skip").run().items == 0
    assert check_directory(tmp_path, deep=True).problems == []


def test_a_run_is_told_of_where_another_has_made_good_what_it_lost(tmp_path):
    make(tmp_path).run()
    lose_chunk(tmp_path, 5)  # the last: its number is not given again
    assert make(tmp_path, on_duplicate="skip").run().chunks == [6]
    runs = load_manifest((tmp_path / "gulp.json").read_bytes(), where="").runs
    assert [run.chunks for run in runs] == [(0, 1, 2, 3, 4), (6,)]
    lose_chunk(tmp_path, 2)
    assert [p.code for p in check_directory(tmp_path).problems] == ["missing-chunk"]


@pytest.mark.parametrize(
    "options",
    [{"num_items": 14}, {"num_items": 3}, {"shard": Shard(1, 2)}],
    ids=["more items", "fewer items", "one share"],
)
@pytest.mark.parametrize("lost", [4, 5])
def test_a_lost_chunk_is_missed_after_an_ingest_of_other_items(tmp_path, options, lost):
    make(tmp_path).run()
    lose_chunk(tmp_path, lost)
    make(tmp_path, on_duplicate="skip", **options).run()
    assert [p.code for p in check_directory(tmp_path).problems] == ["missing-chunk"]


def test_a_lost_last_chunk_is_missed_after_a_merge(tmp_path):
    make(tmp_path / "target").run()
    lose_chunk(tmp_path / "target", 5)
    (tmp_path / "part").mkdir()
    (chunk,) = GulpDirectory(tmp_path / "part").new_chunks(1)
    with chunk.open("wb"):
        chunk.append("another", {}, make_frames(1))
    report = merge_directories([tmp_path / "part"], tmp_path / "target")
    assert report.chunks == [6]
    problems = check_directory(tmp_path / "target").problems
    assert [problem.code for problem in problems] == ["missing-chunk"]


@pytest.mark.parametrize("on_duplicate", ["raise", "skip", "report"])
@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("per_chunk", [1, 2, 5])
def test_shares_that_go_into_one_directory_are_all_of_the_items(
    tmp_path, on_duplicate, list_ids, per_chunk
):
    options = {"per_chunk": per_chunk, "list_ids": list_ids}
    make(tmp_path / "whole", **options).run()
    for number in (1, 2, 3):
        report = make(
            tmp_path / "shares",
            shard=Shard(number, 3),
            on_duplicate=on_duplicate,
            **options,
        ).run()
        assert not report.failures
    assert content(tmp_path / "shares") == content(tmp_path / "whole")


def test_an_id_of_two_shares_is_in_the_first(tmp_path):
    adapter = Repeating(num_items=12)
    for number in (1, 2, 3):
        GulpIngestor(
            adapter, tmp_path, 2, 1, shard=Shard(number, 3), on_duplicate="skip"
        ).run()
    with GulpDirectory(tmp_path) as directory:
        assert len(directory) == 10
        assert directory.chunk_lookup["item0"] == 0


def test_what_is_stored_of_the_share_itself_is_refused(tmp_path):
    make(tmp_path, shard=Shard(1, 2)).run()
    make(tmp_path, shard=Shard(2, 2)).run()
    before = content(tmp_path)
    with pytest.raises(DuplicateIdError, match="6 of 12 items are in the directory"):
        make(tmp_path, shard=Shard(2, 2)).run()
    assert content(tmp_path) == before


def test_a_share_beside_others_is_resumed_to_the_same_bytes(tmp_path):
    make(tmp_path / "whole").run()
    make(tmp_path / "out", shard=Shard(1, 2)).run()
    assert is_killed(63, make(tmp_path / "out", shard=Shard(2, 2)).run)
    assert make(tmp_path / "out", shard=Shard(2, 2), resume=True).run().items == 6
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_what_is_left_over_of_a_share_fills_its_chunks(tmp_path):
    # As it does of an undivided run: else one new item in ten would have its chunk.
    make(tmp_path, num_items=3).run()
    adapter = FrameAdapter(num_items=12)
    stored = GulpDirectory(tmp_path).chunk_lookup
    found = plan_run(
        adapter, stored, items_per_chunk=2, on_duplicate="skip", shard=Shard(1, 2)
    )
    assert [task.positions() for task in found.tasks] == [[3, 4], [5]]
    assert (found.skipped, found.share) == (3, range(6))


def test_a_plan_is_the_same_for_all_shares_and_whatever_is_stored():
    adapter = FrameAdapter(num_items=12)
    options: Any = {"items_per_chunk": 2, "on_duplicate": "skip"}
    whole = plan_run(adapter, (), **options)
    assert whole.undivided == whole.digest()
    for number in (1, 2, 3):
        share = plan_run(adapter, ["item3"], shard=Shard(number, 3), **options)
        assert share.undivided == whole.undivided
        assert share.digest() != whole.undivided
    others = {
        plan_run(FrameAdapter(num_items=13), (), **options).undivided,
        plan_run(adapter, (), **{**options, "items_per_chunk": 3}).undivided,
        plan_run(FrameAdapter(num_items=12, list_ids=False), (), **options).undivided,
    }
    assert len({*others, whole.undivided}) == 4


# --- what is complete -----------------------------------------------------------


def is_complete(folder, **options):
    """Resume; tell whether that was said to be needless."""
    before = content(folder)
    report = make(folder, resume=True, on_duplicate="skip", **options).run()
    done = report.items + report.skipped
    assert done or content(folder) == before
    return not done


KINDS: dict[str, Any] = {
    "a share": {"shard": Shard(2, 2)},
    "a share without ids": {"shard": Shard(2, 2), "list_ids": False},
    "no ids": {"list_ids": False},
    "by bytes": {"list_ids": False, "chunk_bytes": 3000},
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    return KINDS[request.param]


def test_a_finished_run_is_complete(tmp_path, kind):
    make(tmp_path, **kind).run()
    assert is_complete(tmp_path, **kind)


def test_a_finished_run_is_not_complete_once_there_are_more_items(tmp_path, kind):
    make(tmp_path, **kind).run()
    assert not is_complete(tmp_path, num_items=20, **kind)
    expected = 10 if "shard" in kind else 20
    with GulpDirectory(tmp_path) as directory:
        assert {f"item{n}" for n in range(20 - expected, 20)} <= {
            *directory.chunk_lookup
        }
    assert is_complete(tmp_path, num_items=20, **kind)


def test_a_finished_run_says_nothing_of_other_chunks(tmp_path, kind):
    make(tmp_path, **kind).run()
    assert not is_complete(tmp_path, per_chunk=5, **kind)


@pytest.mark.parametrize("list_ids", [True, False])
def test_a_finished_share_says_nothing_of_another(tmp_path, list_ids):
    make(tmp_path, shard=Shard(1, 2), list_ids=list_ids).run()
    assert not is_complete(tmp_path, shard=Shard(2, 2), list_ids=list_ids)
    assert is_complete(tmp_path, shard=Shard(2, 2), list_ids=list_ids)
    assert is_complete(tmp_path, list_ids=list_ids), "both are there"


def without_records(folder):
    """Have a manifest be as earlier versions wrote it."""
    path = folder / "gulp.json"
    manifest = load_manifest(path.read_bytes(), where="x")
    runs = [
        type(run)(run.adapter, run.options, run.encoder, run.package, run.chunks)
        for run in manifest.runs
    ]
    old = Manifest(tuple(runs), manifest.metainfo, manifest.files)
    path.write_bytes(dump_manifest(old))


@pytest.mark.parametrize("list_ids", [True, False])
def test_what_an_earlier_version_finished_is_complete_by_its_ids_alone(
    tmp_path, list_ids
):
    make(tmp_path, list_ids=list_ids).run()
    without_records(tmp_path)
    assert is_complete(tmp_path, list_ids=list_ids) == list_ids


@pytest.mark.parametrize("workers", [1, 2])
def test_an_empty_share_is_complete_too(tmp_path, workers):
    options = {"num_items": 3, "shard": Shard(1, 5), "workers": workers}
    assert make(tmp_path, **options).run().items == 0
    (run,) = GulpDirectory(tmp_path).manifest.runs
    assert run.shares is not None
    assert (run.chunks, run.shares.present) == ((), (1,))
    before = content(tmp_path)
    make(tmp_path, **options).run()
    assert content(tmp_path) == before


# --- what is refused ------------------------------------------------------------


class Labelled(FrameAdapter):
    """Items with labels."""

    number = 0

    def label_mapping(self):
        return {"a": self.number}


class Relabelled(Labelled):
    """The same label under another number."""

    number = 1


def interrupted(folder, adapter):
    assert is_killed(63, GulpIngestor(adapter, folder, 2, 1, ignore_space=True).run)
    assert (folder / "ingest.journal").exists()


def test_labels_that_are_refused_leave_an_interrupted_run_to_be_resumed(tmp_path):
    adapter = Labelled(num_items=6)
    interrupted(tmp_path, adapter)
    before = content(tmp_path)
    again = Relabelled(num_items=6)
    with pytest.raises(Exception, match="'a' as 0"):
        GulpIngestor(again, tmp_path, 2, 1, on_duplicate="skip").run()
    assert content(tmp_path) == before
    assert GulpIngestor(adapter, tmp_path, 2, 1, resume=True).run().items == 6


def test_a_want_of_room_leaves_an_interrupted_run_to_be_resumed(tmp_path, small_disk):
    adapter = FrameAdapter(num_items=210, num_frames=1)
    interrupted(tmp_path, adapter)
    before = content(tmp_path)
    with pytest.raises(OSError, match="--ignore-space") as caught:
        GulpIngestor(adapter, tmp_path, 2, 1, on_duplicate="skip").run()
    assert caught.value.errno == errno.ENOSPC
    assert content(tmp_path) == before
    small_disk()
    assert GulpIngestor(adapter, tmp_path, 2, 1, resume=True).run().items == 210


@pytest.mark.usefixtures("small_disk")
def test_what_the_run_removes_first_counts_as_room(tmp_path):
    (tmp_path / "data_7.gulp.0a0a.partial").write_bytes(bytes(1_000_000))
    adapter = FrameAdapter(num_items=210, num_frames=1)
    assert GulpIngestor(adapter, tmp_path, 100, 1).run().items == 210
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_refused_leaves_a_finished_directory_as_it_was(tmp_path, workers):
    GulpIngestor(Labelled(num_items=4, list_ids=False), tmp_path, 2, 1).run()
    before = content(tmp_path)
    for adapter, told in (
        (Relabelled(num_items=9, list_ids=False), "'a' as 0"),
        (Labelled(num_items=9, list_ids=False), "is in .* already"),
    ):
        for resume in (False, True):
            ingestor = GulpIngestor(adapter, tmp_path, 2, workers, resume=resume)
            with pytest.raises(Exception, match=told):
                ingestor.run()
            assert content(tmp_path) == before


@pytest.mark.parametrize(("count", "others"), [(-1, 2), (0, 2), (3, 3)])
def test_a_share_that_is_not_there_is_refused_with_those_that_are(count, others):
    told = f"no shard 4 of {count}; of {others} they are 1/{others} to {others}/"
    with pytest.raises(IngestSettingError, match=told):
        Shard(4, count)


def test_what_a_share_could_not_store_stays_listed_beside_another_share(tmp_path):
    for number, bad in ((1, [1]), (2, [7]), (2, [])):
        ingestor = make(tmp_path, shard=Shard(number, 2), on_duplicate="skip")
        ingestor.adapter.bad = bad
        ingestor.run()
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "item1"
