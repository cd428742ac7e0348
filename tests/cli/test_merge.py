"""``gulp2 merge``, and the shares that it joins."""

import json
import os

import pytest
from click.testing import CliRunner

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.cli.main import gulp2
from tests.faults.operations import content


def run(*words, status=0):
    result = CliRunner().invoke(gulp2, [str(word) for word in words])
    assert result.exit_code == status, result.output
    return result.output


def test_shards_and_a_merge_give_what_one_ingest_gives(tmp_path, images):
    options = ["--videos-per-chunk", "3", "--num-workers", "1", "-q"]
    run("ingest", "image-folder", images, tmp_path / "one", *options)
    for number in (1, 2, 3):
        shard = ["--shard", f"{number}/3"]
        run("ingest", "image-folder", images, tmp_path / "out", *options, *shard)
    parts = sorted((tmp_path / "out").glob("shard_*"))
    assert [part.name for part in parts] == [f"shard_{n}_of_3" for n in (1, 2, 3)]
    output = run("merge", *parts, tmp_path / "merged")
    assert "10 items in 4 chunks (4 linked, 0 copied)" in output
    assert content(tmp_path / "merged") == content(tmp_path / "one")


def test_the_report_as_json(tmp_path, images):
    run("ingest", "image-folder", images, tmp_path / "a", "-q", "--num-workers", "1")
    report = json.loads(
        run("merge", "--copy", "--json", tmp_path / "a", tmp_path / "b")
    )
    assert report["items"] == 10
    assert (report["linked"], report["copied"]) == (0, 1)


def test_items_that_failed_in_the_parts_are_counted(gulp2, tmp_path, adapter_file):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "a", "-q"]
    gulp2(*words, "--bad", "1", "--num-items", "4", status=1)
    done = gulp2("merge", "a", "b")
    assert done.stdout == "b: 3 items in 1 chunk (1 linked, 0 copied)\n"
    again = gulp2("merge", "a", "b").stdout
    assert again == "b: 0 items in 0 chunks (0 linked, 0 copied, 1 there already)\n"
    assert done.stderr == (
        "gulp2: 1 item failed in the ingests of the parts; b/failures.jsonl lists it\n"
    )
    assert gulp2("merge", "a", "c", "-q").output == ""
    assert json.loads(gulp2("merge", "a", "d", "--json").stdout)["failed"] == 1
    gulp2("ingest", f"{adapter_file}:MyAdapter", "s", "e", "-q")
    assert gulp2("merge", "e", "f").stderr == ""


def test_shards_of_a_shuffled_source_share_one_order(tmp_path, make_image):
    for number in range(12):
        make_image(tmp_path / "images" / "a" / f"{number}.jpg", seed=number)
    found: list[str] = []
    for number in (1, 2, 3):
        options = ["--shuffle", "--videos-per-chunk", "2", "--shard", f"{number}/3"]
        run("ingest", "image-folder", "images", "out", *options, "-q")
        with GulpDirectory(tmp_path / "out" / f"shard_{number}_of_3") as part:
            found += part.merged_meta_dict
    assert sorted(found) == sorted(f"a-{number}.jpg" for number in range(12))
    assert found != sorted(found)


def test_a_shard_that_cannot_be_is_wrong_usage(tmp_path, images):
    output = run(
        "ingest", "image-folder", images, tmp_path / "o", "--shard", "4/3", status=2
    )
    assert "no shard 4 of 3" in output
    assert not (tmp_path / "o").exists()


def test_missing_shares_are_told_and_count(tmp_path, images):
    options = ["--videos-per-chunk", "3", "--num-workers", "1", "-q"]
    for number in (1, 2, 3):
        shard = ["--shard", f"{number}/3"]
        run("ingest", "image-folder", images, tmp_path / "out", *options, *shard)
    parts = [tmp_path / "out" / f"shard_{number}_of_3" for number in (1, 2, 3)]
    target = tmp_path / "merged"
    output = run("merge", parts[0], parts[2], target, status=1)
    assert "lacks shares of what was ingested: 2/3" in output
    assert "7 items in 3 chunks" in output
    assert "note: gulp.json: tells of an ingest in shares, of which" in run(
        "check", target
    )
    assert "lacks      shares of its ingest: 2/3" in run("info", target)
    assert json.loads(run("info", "--json", target))["missing_shares"] == ["2/3"]
    assert "lacks shares of its ingest: 2/3" in run("ls", target)
    words = ["merge", "--partial", "--json", parts[0], target]
    result = CliRunner().invoke(gulp2, [str(word) for word in words])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["missing"] == ["2/3"]
    assert "lacks shares" in result.stderr
    assert "lacks" not in run("merge", parts[1], target)
    assert json.loads(run("merge", "--json", *parts, target))["missing"] == []
    assert "lacks" not in run("check", target) + run("info", target)
    assert "note:" not in run("check", target)
    # Where the shares lie: that it holds other folders is no surprise.
    assert "other files" not in run("merge", *parts, tmp_path / "out")


def test_shares_that_do_not_fit_are_refused(tmp_path, images):
    for number in (1, 2):
        options = ["--videos-per-chunk", number + 2, "--shard", f"{number}/2", "-q"]
        run("ingest", "image-folder", images, tmp_path / "out", *options)
    parts = sorted((tmp_path / "out").glob("shard_*"))
    output = run("merge", *parts, tmp_path / "merged", status=1)
    assert "shard_2_of_2 hold shares of one source that do not fit together" in output


def test_a_manifest_that_is_a_link_to_nowhere_is_told_in_a_line(
    gulp2, gulped, tmp_path
):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/gulp.json").symlink_to("nowhere")
    said = gulp2("merge", gulped, tmp_path / "out", status=1).stderr
    assert said == (
        f"gulp2: error: cannot read {tmp_path}/out/gulp.json: it is a link to nowhere, "
        "which is not there. Bring back what it leads to\n"
    )


@pytest.mark.usefixtures("_drawn_at_once")
@pytest.mark.parametrize("copy", [True, False])
def test_a_merge_shows_a_bar_and_says_how_to_go_on(tmp_path, monkeypatch, copy):
    from gulpio2.cli import progress
    from gulpio2.merge import data
    from gulpio2.storage.links import copy_file
    from gulpio2.testing import FrameAdapter

    GulpIngestor(FrameAdapter(num_items=6), tmp_path / "part", 2, 1).run()
    size = sum(path.stat().st_size for path in (tmp_path / "part").glob("*.gulp"))
    words = ["merge", *(["--copy"] if copy else []), tmp_path / "part"]
    put_in_place = copy_file if copy else os.link
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == (2 if copy else 3):  # a link more gives a file its name
            raise KeyboardInterrupt
        return put_in_place(*arguments)

    with monkeypatch.context() as patch:
        if copy:
            patch.setattr(data, "copy_file", interrupted)
        else:
            patch.setattr(os, "link", interrupted)
        output = run(*words, tmp_path / "out", status=130)
    assert "the parts are as they were; the same command goes on" in output
    monkeypatch.setattr(progress, "_FILE_SECONDS", 0.0)
    output = run(*words, tmp_path / "out")
    whole = f"{size / 1000:.1f}k"
    assert f"{whole}/{whole}B [" in output
    assert output.count(" MB/s]") == 4  # a line for each chunk, and one at the end
    assert "4 items in 2 chunks" in output
    assert len(GulpDirectory(tmp_path / "out")) == 6
