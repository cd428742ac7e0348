"""Shares that are missing from a merge, or do not fit together."""

from dataclasses import replace

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import FormatError, IngestError
from gulpio2.format.manifest import Manifest, Run, Shares, dump_manifest
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.testing import FrameAdapter
from tests.faults.operations import content


class Source(FrameAdapter):
    """A folder, say, in which there may be more items another day."""

    def describe(self):
        return {}


def make(folder, shard=None, *, num_items=12, per_chunk=2, **options):
    adapter = Source(num_items=num_items, num_frames=2, **options)
    GulpIngestor(adapter, folder, per_chunk, 1, shard=shard).run()
    return folder


def make_shares(root, count, **options):
    shards = [Shard(number, count) for number in range(1, count + 1)]
    return [make(root / shard.folder_name, shard, **options) for shard in shards]


@pytest.mark.parametrize("list_ids", [True, False])
def test_missing_shares_are_named_and_can_be_merged_later(tmp_path, caplog, list_ids):
    make(tmp_path / "whole", list_ids=list_ids)
    parts = make_shares(tmp_path, 3, list_ids=list_ids)
    target = tmp_path / "merged"
    report = merge_directories([parts[0], parts[2]], target)
    assert (report.items, report.missing) == (8, ["2/3"])
    assert "merged lacks shares of what was ingested: 2/3. Merge" in caplog.text
    for again in ([parts[0]], [parts[2], parts[0]]):
        assert merge_directories(again, target).missing == ["2/3"]
    caplog.clear()
    report = merge_directories([parts[1]], target)
    assert (report.items, report.missing) == (4, [])
    assert merge_directories(parts, target).missing == []
    assert merge_directories([parts[1]], target).missing == []
    assert not caplog.text
    # The order of the chunks is that of the merges; what is told of them is the same.
    assert content(target)["gulp.json"] == content(tmp_path / "whole")["gulp.json"]


def test_shares_that_come_one_by_one_give_the_bytes_of_one_run(tmp_path):
    make(tmp_path / "whole")
    parts = make_shares(tmp_path, 5)
    found = [merge_directories([p], tmp_path / "merged").missing for p in parts]
    assert found == [["2-5/5"], ["3-5/5"], ["4-5/5"], ["5/5"], []]
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_the_folder_of_the_shares_is_answered_with_them(tmp_path):
    make_shares(tmp_path / "gulped", 2)
    with pytest.raises(FormatError) as caught:
        merge_directories([tmp_path / "gulped"], tmp_path / "merged")
    assert str(caught.value) == (
        f"{tmp_path / 'gulped'} is no gulp directory: it holds no chunk. It holds "
        "shares of an ingest, from shard_1_of_2 to shard_2_of_2: give these in its "
        "place, each as a part"
    )
    assert not (tmp_path / "merged").exists()


def test_shares_without_a_chunk_need_be_there_too(tmp_path):
    # Nothing but their own record tells that they have none.
    make(tmp_path / "whole", num_items=3)
    parts = make_shares(tmp_path, 5, num_items=3)
    empty = [part for part in parts if not list(part.glob("*.gulp"))]
    assert len(empty) == 3
    others = [part for part in parts if part not in empty]
    target = tmp_path / "merged"
    assert merge_directories(others, target).missing == ["1-2/5", "4/5"]
    assert merge_directories(empty, target).missing == []
    assert content(target) == content(tmp_path / "whole")


def test_a_run_of_which_every_item_failed_can_be_divided(tmp_path):
    options = {"num_items": 4, "bad": [0, 1, 2, 3]}
    make(tmp_path / "whole", **options)
    parts = make_shares(tmp_path, 2, **options)
    assert merge_directories(parts, tmp_path / "merged").missing == []
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


NO_WHOLE = "hold shares of one source that do not fit together: of other items, or"
OTHERS = {
    "other chunks": (Shard(2, 2), {"per_chunk": 3}, NO_WHOLE),
    "other items": (Shard(2, 2), {"num_items": 14}, NO_WHOLE),
    # Neither the items nor the size of a chunk would have to be others.
    "another number": (Shard(3, 3), {}, "are of an ingest that was cut into 2 and 3 "),
}


@pytest.mark.parametrize(("shard", "options", "why"), OTHERS.values(), ids=OTHERS)
def test_shares_that_do_not_fit_together_are_refused(tmp_path, shard, options, why):
    first = make(tmp_path / "first", Shard(1, 2))
    other = make(tmp_path / "other", shard, **options)
    with pytest.raises(IngestError, match=f"first and .*other {why}"):
        merge_directories([first, other], tmp_path / "both")
    assert not (tmp_path / "both").exists()
    merge_directories([first], tmp_path / "merged")
    before = content(tmp_path / "merged")
    with pytest.raises(IngestError, match=f"merged and .*other {why}"):
        merge_directories([other], tmp_path / "merged")
    assert content(tmp_path / "merged") == before
    merge_directories([make(tmp_path / "second", Shard(2, 2))], tmp_path / "merged")


class Other(Source):
    """Another source."""

    def item_ids(self):
        return [f"other{id_}" for id_ in super().item_ids() or ()]

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"other{item['id']}"}


def test_shares_of_two_sources_may_be_merged_at_once(tmp_path):
    parts = make_shares(tmp_path / "one", 2)
    for number in (1, 3):
        folder = tmp_path / f"other{number}"
        shard = Shard(number, 3)
        GulpIngestor(Other(num_items=9), folder, 2, 1, shard=shard).run()
        parts.append(folder)
    assert merge_directories(parts, tmp_path / "all").missing == ["2/3"]
    runs = GulpDirectory(tmp_path / "all").manifest.runs
    assert [run.shares and run.shares.present for run in runs] == [None, (1, 3)]


def test_parts_of_earlier_versions_are_merged_without_a_word(tmp_path, caplog):
    parts = make_shares(tmp_path, 2)
    for part in parts:
        (run,) = GulpDirectory(part).manifest.runs
        old = Run(run.adapter, run.options, run.encoder, run.package, run.chunks)
        (part / "gulp.json").write_bytes(dump_manifest(Manifest((old,))))
    assert merge_directories(parts, tmp_path / "merged").missing == []
    (run,) = GulpDirectory(tmp_path / "merged").manifest.runs
    assert (run.chunks, run.plan, run.shares) == ((0, 1, 2, 3, 4, 5), None, None)
    assert merge_directories(parts[:1], tmp_path / "half").missing == []
    assert not caplog.text


def test_a_share_of_many_is_no_list_of_all_the_others(tmp_path):
    part = make(tmp_path / "a", Shard(1, 2))
    (run,) = GulpDirectory(part).manifest.runs
    many = replace(run, shares=Shares(10**15, (7,)))
    (part / "gulp.json").write_bytes(dump_manifest(Manifest((many,))))
    found = merge_directories([part], tmp_path / "b").missing
    assert found == [f"1-6/{10**15}", f"8-{10**15}/{10**15}"]


def test_a_share_that_was_interrupted_before_its_first_chunk_is_not_to_be_left_out(
    tmp_path,
):
    class Interrupted(FrameAdapter):
        def iter_data(self, slice_element=None):
            yield from super().iter_data(slice(*slice_element.indices(1)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GulpIngestor(Interrupted(num_items=3), tmp_path / "part", 3, 1).run()
    with pytest.raises(IngestError, match=r"part was not finished.*--resume"):
        merge_directories([tmp_path / "part"], tmp_path / "all")
    assert not (tmp_path / "all").exists()
