"""Every adapter's items, stored and read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import (
    ActivitynetAdapter,
    Custom20BNCsvJpegAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
    ImageFolderAdapter,
    ImageListAdapter,
    KineticsAdapter,
    TableAdapter,
    VideoFolderAdapter,
)
from gulpio2.errors import DuplicateIdError, SourceReadError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def sources(tmp_path, make_video, make_jpeg):
    """Give a folder with a small input for every adapter, of three items each."""
    root = tmp_path / "sources"
    for number, name in enumerate("abc"):
        make_jpeg(root / "images" / name / f"{name}.jpg", 40 * number)
        make_video(root / "videos" / name / f"{name}.mp4", 5)
        make_video(root / "webm" / f"{name}.webm", 5)
        make_video(root / "kinetics" / "c" / f"{name}_000001_000011.mp4", 5)
        make_video(root / "activitynet" / f"{name}.mp4", 5)
        for frame in range(3):
            make_jpeg(root / "jpegs" / name / f"{frame}.jpg", 20 * frame)
    (root / "list.txt").write_text("".join(f"{n}/{n}.jpg,l{n}\n" for n in "abc"))
    (root / "list.csv").write_text("".join(f"{n};l{n}\n" for n in "abc"))
    (root / "list.json").write_text(
        json.dumps([{"id": n, "template": f"l{n}"} for n in "abc"])
    )
    records = {n: {"subset": "training", "n": n} for n in "abc"}
    (root / "kinetics.json").write_text(json.dumps(records))
    (root / "activitynet.json").write_text(json.dumps({"database": records}))
    (root / "table.csv").write_text(
        "path,id,label\n" + "".join(f"webm/{n}.webm,{n},l{n}\n" for n in "abc")
    )
    return root


ADAPTERS: dict[str, Callable[[Path, Path], Any]] = {
    "image list": lambda s, o: ImageListAdapter(s / "list.txt", o, s / "images"),
    "image folder": lambda s, o: ImageFolderAdapter(s / "images", o),
    "video folder": lambda s, o: VideoFolderAdapter(s / "videos", o),
    "20bn json": lambda s, o: Custom20BNJsonVideoAdapter(
        s / "list.json", s / "videos", o, frame_rate=0
    ),
    "20bn webm": lambda s, o: Custom20BNCsvWebmAdapter(
        s / "list.csv", s / "webm", o, frame_rate=0
    ),
    "20bn jpeg": lambda s, o: Custom20BNCsvJpegAdapter(s / "list.csv", s / "jpegs", o),
    "activitynet": lambda s, o: ActivitynetAdapter(
        s / "activitynet.json", s / "activitynet"
    ),
    "kinetics": lambda s, o: KineticsAdapter(s / "kinetics.json", s / "kinetics"),
    "table": lambda s, o: TableAdapter(s / "table.csv", o, label_column="label"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_what_an_adapter_yields_is_what_is_read_back(sources, tmp_path, name):
    out = tmp_path / "out"
    adapter = ADAPTERS[name](sources, out)
    GulpIngestor(adapter, out, 2, 1)()
    directory = GulpDirectory(out)
    assert list(directory.merged_meta_dict) == adapter.item_ids()
    assert sorted(directory.chunk_objs_lookup) == [0, 1]
    for item in adapter.iter_data():
        frames, meta = directory[item["id"]]
        assert meta == item["meta"]
        expected = list(item["frames"])
        assert len(frames) == len(expected) > 0
        for stored, source in zip(frames, expected, strict=True):
            assert stored.shape == source.shape
            assert abs(float(np.mean(stored)) - float(np.mean(source))) < 2
    labels = out / "label2idx.json"
    if adapter.label_mapping() is None:
        assert not labels.exists()
    else:
        assert json.loads(labels.read_text()) == adapter.label_mapping()


def test_workers_make_the_same_files(sources, tmp_path):
    contents = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        GulpIngestor(VideoFolderAdapter(sources / "videos", out), out, 1, workers)()
        names = sorted(path.name for path in out.iterdir())
        contents.append([(name, (out / name).read_bytes()) for name in names])
    assert contents[0] == contents[1]


def test_a_jpeg_is_stored_byte_for_byte(sources, tmp_path):
    out = tmp_path / "out"
    GulpIngestor(ImageFolderAdapter(sources / "images", out), out, 10, 1)()
    data = (out / "data_0.gulp").read_bytes()
    for name in "abc":
        assert (sources / "images" / name / f"{name}.jpg").read_bytes() in data


def test_a_second_run_keeps_the_labels_of_the_first(sources, tmp_path, make_jpeg):
    out = tmp_path / "out"
    GulpIngestor(ImageFolderAdapter(sources / "images", out), out, 10, 1)()
    make_jpeg(sources / "more" / "aa" / "1.jpg")
    make_jpeg(sources / "more" / "c" / "2.jpg")
    GulpIngestor(ImageFolderAdapter(sources / "more", out), out, 10, 1)()
    labels = json.loads((out / "label2idx.json").read_text())
    assert labels == {"a": 0, "b": 1, "c": 2, "aa": 3}
    directory = GulpDirectory(out)
    for id_ in directory.merged_meta_dict:
        meta = directory[id_][1]
        assert labels[meta["label"]] == meta["idx"]


def test_colliding_ids_are_refused_with_both_sources_named(
    sources, tmp_path, make_jpeg
):
    make_jpeg(sources / "images" / "deep" / "a" / "a.jpg")
    out = tmp_path / "out"
    with pytest.raises(DuplicateIdError) as caught:
        GulpIngestor(ImageFolderAdapter(sources / "images", out), out, 10, 1)()
    assert "images/a/a.jpg" in str(caught.value)
    assert "images/deep/a/a.jpg" in str(caught.value)
    by_path = ImageFolderAdapter(sources / "images", out, id_rule="path")
    GulpIngestor(by_path, out, 10, 1)()
    assert len(GulpDirectory(out)) == 4


def test_an_unreadable_source_costs_its_own_item_only(sources, tmp_path):
    (sources / "webm" / "b.webm").write_bytes(b"no video")
    out = tmp_path / "out"
    adapter = TableAdapter(sources / "table.csv", out)
    with pytest.raises(SourceReadError, match=r"b\.webm"):
        GulpIngestor(adapter, out, 10, 1)()
    assert list(GulpDirectory(out).merged_meta_dict) == ["a", "c"]
    (failure,) = map(json.loads, (out / "failures.jsonl").read_text().splitlines())
    assert (failure["id"], failure["position"]) == ("b", 1)
    assert "row 2 of" in failure["source"]


def test_ids_that_are_stored_are_left_out_on_request(sources, tmp_path, capsys):
    out = tmp_path / "out"
    rows = [{"id": n, "template": f"l{n}"} for n in "ab"]
    (sources / "some.json").write_text(json.dumps(rows))

    def make(name):
        return Custom20BNJsonVideoAdapter(
            sources / name, sources / "videos", out, remove_duplicate_ids=True
        )

    GulpIngestor(make("some.json"), out, 10, 1)()
    GulpIngestor(make("list.json"), out, 10, 1)()
    assert list(GulpDirectory(out).merged_meta_dict) == ["a", "b", "c"]
    assert "Id a already in GulpDirectory, I skip it!" in capsys.readouterr().out


def test_the_manifest_tells_how_the_adapter_was_made(sources, tmp_path):
    contents = []
    for name in ("one", "two"):
        out = tmp_path / name
        adapter = ImageFolderAdapter(sources / "images", out, img_size=24)
        GulpIngestor(adapter, out, 10, 1)()
        contents.append((out / "gulp.json").read_text())
    assert contents[0] == contents[1]
    (run,) = json.loads(contents[0])["runs"]
    assert run["options"]["img_size"] == 24
    assert run["options"]["folder"] == str(sources / "images")
    assert "output_folder" not in run["options"]


def test_real_videos_of_a_folder_are_gulped_and_the_damaged_one_is_named(
    shared_videos, tmp_path
):
    adapter = VideoFolderAdapter(
        shared_videos,
        tmp_path,
        [".mp4", ".mkv", ".webm", ".avi", ".mov"],
        frame_size=64,
    )
    report = GulpIngestor(adapter, tmp_path, 4, 2).run()
    assert [failure.id for failure in report.failures] == ["videos-corrupted.mp4"]
    assert report.items == len(adapter) - 1 == 10
    entries = GulpDirectory(tmp_path).merged_meta_dict
    assert len(entries["videos-mpeg4_audio_25fps.avi"]["frame_info"]) == 164
