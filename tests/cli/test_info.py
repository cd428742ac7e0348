"""``gulp2 info``: counts, sizes, times, labels, and how it was made."""

from __future__ import annotations

import errno
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.summary import refusal, spread, summarize
from gulpio2.cli.terminal import size
from gulpio2.errors import MetaFileError, StorageError
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames, make_gulp_directory
from gulpio2.types import StoredFrame
from tests.chunks import Timed, write
from tests.torch.troubles import fail_reads


def info_of(gulp2, *arguments):
    return json.loads(gulp2("info", "--json", *arguments).stdout)


def test_the_counts_are_right(gulp2, gulped):
    info = info_of(gulp2, gulped)
    assert (info["items"], info["frames"], info["chunks"]) == (4, 24, 2)
    assert info["bytes"] == sum(p.stat().st_size for p in gulped.glob("*.gulp"))
    assert info["frames_per_item"] == {"min": 6, "median": 6.0, "max": 6}
    assert info["frame_sizes"] == {"32x24 4:4:4": 4}
    assert info["metadata_keys"] == {"number": 4}
    assert info["labels"] == {}
    assert info["runs"] == []


def test_deleted_frames_and_holes_count_in_the_data_files_alone(gulp2, gulped):
    def bytes_of(command):
        return json.loads(gulp2(command, "--json", gulped).stdout)

    told = bytes_of("info")
    assert told["data_bytes"] == told["bytes"] == bytes_of("check")["bytes"]
    assert "data files" not in gulp2("info", gulped).stdout
    gulp2("delete", gulped, "item0")
    after = bytes_of("info")
    assert after["bytes"] < told["bytes"]
    gulp2("compact", gulped)  # leaves a hole before item1
    assert bytes_of("info")["bytes"] == after["bytes"]
    assert bytes_of("info")["data_bytes"] == bytes_of("check")["bytes"]
    assert bytes_of("info")["data_bytes"] == told["bytes"]
    (gulped / "data_9.gulp").write_bytes(b"a chunk that was never committed")
    assert bytes_of("info")["data_bytes"] == told["bytes"]
    assert f"a frame), {size(told['bytes'])} in the data files" in (
        gulp2("info", gulped).stdout
    )


def test_a_video_has_a_duration_a_rate_and_a_maker(gulp2, tmp_path, make_video):
    make_video(tmp_path / "videos" / "a" / "1.mp4", 6, 12)
    make_video(tmp_path / "videos" / "b" / "2.mp4", 30, 30)
    gulp2("ingest", "video-folder", "videos", "out")
    info = info_of(gulp2, "out")
    assert info["timed_items"] == 2
    assert info["seconds"] == pytest.approx(1.5)
    assert info["frame_rates"] == {"12": 1, "30": 1}
    assert info["frame_sizes"] == {"64x48 4:2:0": 2}
    assert info["labels"] == {"a": 1, "b": 1}
    assert info["runs"][0]["adapter"] == "VideoFolderAdapter"
    text = gulp2("info", "out").stdout
    assert "duration   1.50 s (2 of 2 items have times)" in text
    assert "labels     2 by 'label': a: 1, b: 1" in text
    assert "made by    VideoFolderAdapter" in text
    assert 'folder = "videos"' in text


@pytest.mark.usefixtures("real_item")
def test_a_rate_that_ticks_are_too_coarse_for_is_the_exact_one_of_the_source(gulp2):
    # Its ticks are thousandths of a second, too coarse for even thirtieths: its times
    # alone make 29.996.
    assert list(info_of(gulp2, "gulped")["frame_rates"]) == ["30"]


def timed_item(folder, time_base, pts, source):
    """Write one item with these times, and give its rates."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    frames = TimedFrames(make_frames(len(pts)), time_base, pts, source)
    with chunk.open("wb"):
        chunk.append("item", {}, frames)
    with GulpDirectory(folder) as directory:
        return dict(summarize(directory).frame_rates)


class TimedFrames:
    """Frames with times and facts of a source."""

    def __init__(self, frames, time_base, pts, source):
        self.frames, self.time_base, self.pts = frames, time_base, pts
        self.source = source

    def __iter__(self):
        return iter(self.frames)

    def __len__(self):
        return len(self.frames)

    def stored(self):
        return map(StoredFrame, self.frames, self.pts)

    def source_info(self):
        return self.source


@pytest.mark.parametrize(
    ("pts", "source", "rate"),
    [
        ([0, 33, 67, 100, 133], {"frame_rate": [30, 1]}, "30"),
        ([0, 33, 67, 100, 133], {}, "30.075"),
        ([0, 33, 67, 100, 133], {"frame_rate": None}, "30.075"),
        ([0, 33, 67, 100, 133], {"frame_rate": [0, 0]}, "30.075"),
        ([0, 33, 67, 100, 133], {"frame_rate": [30000, 1001]}, "29.97"),
        ([0, 125, 250, 375, 500], {"frame_rate": [30, 1]}, "8"),
        ([0, 33, 67, 200, 233], {"frame_rate": [30, 1]}, "variable"),
    ],
)
def test_the_rate_of_the_source_counts_only_where_the_times_agree(
    tmp_path, pts, source, rate
):
    assert timed_item(tmp_path, Fraction(1, 1000), pts, source) == {rate: 1}


def test_an_option_without_effect_is_not_listed(gulp2, tmp_path, make_video):
    make_video(tmp_path / "videos" / "a" / "1.mp4", 6, 12)
    gulp2("ingest", "video-folder", "videos", "out")
    assert "shm_dir_path" not in gulp2("info", "out").stdout


def test_labels_are_counted_by_the_key_that_is_asked_for(gulp2, gulped):
    info = info_of(gulp2, gulped, "--label-key", "number")
    assert info["labels"] == {"0": 1, "1": 1, "2": 1, "3": 1}


def test_a_sample_is_named(gulp2, gulped):
    assert info_of(gulp2, gulped, "--sample", 2)["sampled_items"] == 2
    assert "(of 2 items looked at)" in gulp2("info", gulped, "--sample", 2).stdout
    assert "looked at" not in gulp2("info", gulped).stdout


def test_many_kinds_are_cut_and_counted(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(12):
            chunk.append(number, {"label": f"kind\x1b{number}"}, [])
    text = gulp2("info", tmp_path).stdout
    assert "and 4 more" in text
    assert r"kind\x1b0: 1" in text
    assert "\x1b" not in text


def test_many_keys_are_cut_and_counted(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(51):
            chunk.append(f"item{number}", {f"key{number}": 0}, make_frames(1))
    line = ", ".join(f"key{number}" for number in range(50))
    text = gulp2("info", tmp_path).stdout
    assert f"  metadata   {line}, and 1 more\n" in text
    assert len(info_of(gulp2, tmp_path)["metadata_keys"]) == 51


def test_a_damaged_first_frame_is_said_and_no_end(gulp2, gulped):
    data = bytearray((gulped / "data_0.gulp").read_bytes())
    data[:100] = bytes(100)
    (gulped / "data_0.gulp").write_bytes(data)
    assert info_of(gulp2, gulped)["unreadable"] == ["item0"]
    assert "damaged    1 first frame: item0" in gulp2("info", gulped).stdout


def test_a_label_key_that_no_item_has_is_told(gulp2, gulped):
    told = gulp2("info", gulped, "--label-key", "lable").stdout
    assert "  labels     none: no item has the key 'lable'\n" in told


def test_runs_that_were_made_alike_are_told_together(gulp2, adapter_file):
    words = [
        "ingest",
        f"{adapter_file}:MyAdapter",
        "s",
        "out",
        "--on-duplicate",
        "skip",
    ]
    gulp2(*words)
    gulp2(*words, "--num-items", 4)
    gulp2("delete", "out", "ramp0")
    gulp2(*words)
    text = gulp2("info", "out").stdout
    assert text.count("made by    MyAdapter") == 2
    assert text.count(", 2 chunks in 2 runs (") == 1
    assert text.count(", 1 chunk (") == 1
    assert len(info_of(gulp2, "out")["runs"]) == 3


def test_a_damaged_manifest_is_a_warning(gulp2, gulped):
    (gulped / "gulp.json").write_text("{}")
    result = gulp2("info", gulped)
    assert "items      4" in result.stdout
    assert "gulp.json" in result.stderr
    assert result.output == result.stdout + result.stderr  # and not before it
    quiet = gulp2("info", gulped, "-q")
    assert quiet.stderr == ""
    assert "unknown: gulp.json cannot be read" in quiet.stdout


def test_a_folder_that_is_no_gulp_directory_is_an_error(gulp2, tmp_path):
    (tmp_path / "x").mkdir()
    result = gulp2("info", "x", status=1)
    assert "x is no gulp directory: it holds no chunk" in result.stderr
    assert gulp2("info", "nowhere", status=2).stdout == ""


@pytest.mark.parametrize("command", ["info {0}", "ls {0}", "merge {0} {1}"])
def test_data_files_of_which_all_maps_are_lost_are_named(gulp2, tmp_path, command):
    make_gulp_directory(tmp_path / "lost", num_items=4, num_frames=1).close()
    for path in (tmp_path / "lost").glob("meta_*.gmeta"):
        path.unlink()
    arguments = command.format(tmp_path / "lost", tmp_path / "out").split()
    said = gulp2(*arguments, status=1).stderr
    assert "data_0.gulp and 1 other data file have no map" in said
    assert "Run `gulp2 check`" in said
    assert "that was ingested into" not in said, "for it is this folder"


def test_grey_and_empty_items_are_counted(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("grey", {}, make_frames(2, grey=True))
        chunk.append("empty", {}, [])
    with GulpDirectory(tmp_path) as directory:
        summary = summarize(directory)
    assert summary.frame_sizes == Counter({"32x24 grey": 1})
    assert summary.frames_per_item == (0, 1.0, 2)


def test_an_index_changes_nothing_of_it(tmp_path):
    # Items of all kinds, also such whose rows send readers to the map.
    tick = Fraction(1, 1000)
    items = {
        "even": Timed([0, 40, 80, 120], tick, frame_rate=[25, 1]),
        "rounded": Timed([5, 38, 72, 105, 138], tick, frame_rate=[30, 1]),
        "odd": Timed([0, 40, 90, 91], tick, frame_rate="25"),
        "backwards": Timed([80, 40, 0], tick),
        "all at once": Timed([7, 7, 7], tick, frame_rate=[25, 1]),
        "one": Timed([3], tick),
        "large": Timed([2**60, 2**60 + 2, 2**60 + 4], Fraction(3, 90_000)),
        "none": make_frames(2),
        "empty": [],
        "appended to": Timed([0, 40], tick),
        "spaced": Timed([0, 40], tick),
    }
    write(tmp_path, *((id_, {"label": id_}, what) for id_, what in items.items()))
    path = tmp_path / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    entries["appended to"]["frame_info"].append([0, 0, 752])  # as 0.0.4 does
    entries["none"]["meta_data"] = [None]
    entries["later"] = {**entries["even"], "gulp2": {"pts": [[0, 1, 4]]}}
    # Of extras without checksums nothing holds.
    others = {"time_base": [1, 10], "pts": [[0, 1, 4]]}
    entries["without checksums"] = {**entries["even"], "gulp2": others}
    text = json.dumps(entries).replace('"spaced": {', '"spaced":  {"unknown": 1, ')
    path.write_text(text)
    build_index(tmp_path)
    with (
        GulpDirectory(tmp_path, indexed=True) as one,
        GulpDirectory(tmp_path, indexed=False) as other,
    ):
        found, wanted = summarize(one), summarize(other)
        times = [(d.item(id_).duration for id_ in d.chunk_lookup) for d in (one, other)]
        assert list(times[0]) == list(times[1])
    assert found == wanted
    assert found.frame_rates == {"25": 3, "30": 1, "variable": 1, "15000": 1}
    assert found.timed_items == 6
    assert found.seconds == pytest.approx(
        0.16 + (133 + 33) / 1000 + (91 + 40) / 1000 + 0.12 + 6 / 30_000 + 0.08
    )


@pytest.mark.parametrize("indexed", [True, False])
def test_damaged_times_are_an_error(tmp_path, indexed):
    write(tmp_path, ("item", {}, Timed([0, 40])))
    path = tmp_path / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b"[[0, 40, 2]]", b"[[0, 40, 3]]"))
    with (
        GulpDirectory(tmp_path, indexed=indexed) as directory,
        pytest.raises(MetaFileError, match="pts holds 3 times for 2 frames"),
    ):
        summarize(directory)


@pytest.mark.parametrize("number", [0, 1, 3, 9, 10, 11])
def test_a_spread_is_in_order_without_repeats(number):
    values = spread(range(10), number)
    assert values == sorted(set(values))
    assert len(values) == min(number, 10)
    assert values[:1] == [0][:number]


def test_it_reads_what_the_original_wrote(gulp2, repository):
    folder = Path(repository) / "tests" / "golden" / "many_chunks"
    info = info_of(gulp2, folder)
    assert info["chunks"] == len(list(folder.glob("*.gmeta")))
    assert "made by    unknown" in gulp2("info", folder).stdout


def test_chunks_that_no_run_of_the_manifest_has_made_are_counted(
    gulp2, adapter_file, tmp_path
):
    folder = tmp_path / "out"
    for number in (0, 1):
        path = folder / f"data_{number}.gulp"
        path.parent.mkdir(exist_ok=True)
        chunk = GulpChunk(path, folder / f"meta_{number}.gmeta")
        with chunk.open("wb"):
            chunk.append(f"old{number}", {}, make_frames(1))
    gulp2("ingest", f"{adapter_file}:MyAdapter", "s", folder)
    text = gulp2("info", folder).stdout
    assert "made by    MyAdapter" in text
    assert "made by    unknown, 2 chunks: gulp.json does not tell: GulpIO2 0" in text
    assert info_of(gulp2, folder)["chunks_of_no_run"] == [0, 1]
    (folder / "ingest.journal").touch()
    assert "unknown, 2 chunks: an ingest, a merge or" in gulp2("info", folder).stdout


def test_a_directory_with_one_cut_file_is_told_of_all_the_same(gulp2, gulped):
    data = gulped / "data_1.gulp"
    data.write_bytes(data.read_bytes()[:10])
    info = info_of(gulp2, gulped)
    assert (info["items"], len(info["unreadable"])) == (4, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gulp.json", "unknown: gulp.json cannot be read"),
        (
            "ingest.journal",
            "unknown: an ingest, a merge or a repair is at work here, or was",
        ),
        ("none", "unknown: there is no gulp.json; GulpIO2 0.0.4 writes none"),
    ],
)
def test_what_is_not_known_of_its_making_is_said(gulp2, gulped, name, text):
    (gulped / name).write_text("junk")
    assert text in gulp2("info", gulped).stdout


def test_the_folder_of_shares_is_told_what_makes_one_directory_of_them(gulp2, tmp_path):
    (tmp_path / "gulped" / "shard_1_of_2").mkdir(parents=True)
    result = gulp2("info", str(tmp_path / "gulped"), status=1)
    assert (
        "holds shares of an ingest, shard_1_of_2: `gulp2 merge` makes" in result.stderr
    )


def test_labels_that_are_written_alike_are_counted_apart(tmp_path):
    labels = [1, "1", True, "true", None, "null", "x"]
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, label in enumerate(labels):
            chunk.append(number, {"label": label}, make_frames(1))
    with GulpDirectory(tmp_path) as directory:
        found = summarize(directory).labels
    assert found == Counter(["1", '"1"', "true", '"true"', "null", '"null"', "x"])


def test_a_data_file_that_cannot_be_opened_is_named_beside_the_rest(
    gulp2, gulped, unopenable
):
    text = unopenable(gulped / "data_1.gulp")
    result = gulp2("info", gulped, status=1)
    assert "items      4 in 2 chunks" in result.stdout
    assert "sizes      32x24 4:4:4: 2" in result.stdout
    (line,) = [line for line in result.stdout.split("\n") if "unreadable" in line]
    assert line.startswith("  unreadable data_1.gulp: ")
    assert text in line
    assert "damaged" not in result.stdout
    info = json.loads(gulp2("info", "--json", gulped, status=1).stdout)
    assert list(info["refused"]) == ["data_1.gulp"]
    assert (info["unreadable"], info["frames"]) == ([], 24)


def test_links_that_lead_to_nothing_are_named_though_nobody_reads_them(gulp2, gulped):
    for name in ("gulp.json", "deleted.json", "data_7.gulp"):
        (gulped / name).symlink_to("gone")
    (gulped / "notes.txt").symlink_to("gone")  # none of the directory
    result = gulp2("info", gulped, "--sample", 0, status=1)
    assert [line for line in result.stdout.split("\n") if "unreadable" in line] == [
        f"  unreadable {name}: is a link to gone, which is not there"
        for name in ("data_7.gulp", "gulp.json", "deleted.json")
    ]
    assert "unknown: gulp.json is a link to what is not there" in result.stdout


def test_of_many_unreadable_files_some_are_named_and_the_rest_counted(gulp2, tmp_path):
    make_gulp_directory(
        tmp_path / "in", num_items=12, num_frames=1, items_per_chunk=1
    ).close()
    for number in range(1, 12):
        (tmp_path / "in" / f"data_{number}.gulp").unlink()
        (tmp_path / "in" / f"data_{number}.gulp").mkdir()
    text = gulp2("info", "in", status=1).stdout
    assert text.count("  unreadable data_") == 8
    assert "  unreadable 3 files more; see gulp2 check" in text


@pytest.mark.parametrize(
    ("functions", "said"),
    [(["open"], "cannot open"), (["pread", "preadv"], "cannot read")],
)
def test_an_error_that_passes_is_told_and_no_damage(
    gulp2, gulped, monkeypatch, functions, said
):
    real = GulpDirectory.item

    def item(self, id_):
        found = real(self, id_)
        monkeypatch.setattr(GulpDirectory, "item", real)
        fail_reads(monkeypatch, *functions, times=1)  # the maps are read by now
        return found

    monkeypatch.setattr(GulpDirectory, "item", item)
    result = gulp2("info", gulped, status=1)
    assert f"  unreadable data_0.gulp: {said} {gulped / 'data_0.gulp'}" in result.stdout
    assert "damaged" not in result.stdout
    assert "sizes      32x24 4:4:4: 3" in result.stdout


def test_a_process_that_may_open_no_more_files_does_not_blame_them(gulped):
    with GulpDirectory(gulped) as directory:
        item = directory.item("item0")
        many = StorageError(errno.EMFILE, "Too many open files")
        assert refusal(item, many) == ""
        assert refusal(item, StorageError(errno.EIO, "cannot read")) == ""


def test_sizes_of_later_frames_are_told_by_a_deep_check(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("two", {}, [*make_frames(1, 24, 32), *make_frames(1, 24, 18)])
    assert info_of(gulp2, tmp_path)["frame_sizes"] == {"32x24 4:4:4": 1}
    help_text = " ".join(gulp2("info", "--help").stdout.split())
    assert "later ones of an item have another is told by gulp2 check --deep" in (
        help_text
    )
    told = gulp2("check", "--deep", tmp_path).stdout
    assert "item 'two': has frames of 2 sizes" in told
