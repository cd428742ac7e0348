"""Defects 1 to 7 of GulpIO2 0.0.4, silent loss while writing: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor, errors, utils
from gulpio2.adapters import (
    Custom20BNCsvWebmAdapter,
    ImageFolderAdapter,
    KineticsAdapter,
    VideoFolderAdapter,
)
from tests.compat.folders import chunk_in, counts_in, ids_in, save_image


# ------------------------------------------------------------------ 1
@pytest.mark.parametrize("absolute", [False, True])
def test_defect_01_kinetics_reads_a_relative_folder(
    tmp_path, make_video, monkeypatch, absolute
):
    make_video(tmp_path / "vids" / "cooking" / "abcdefghijk_000001_000011.mp4")
    (tmp_path / "k.json").write_text(json.dumps({"abcdefghijk": {"subset": "train"}}))
    monkeypatch.chdir(tmp_path)
    folder = str(tmp_path / "vids") if absolute else "vids"
    GulpIngestor(KineticsAdapter("k.json", folder), "out", 1, 1)()
    assert counts_in(tmp_path / "out") == {"abcdefghijk": 12}


# ------------------------------------------------------------------ 2
def damaged_folder(tmp_path: Path, make_video: Any, damage: str, suffix: str) -> Path:
    """Make two good videos, and between them one that is damaged."""
    folder = tmp_path / "videos"
    for name in ("a", "b", "c"):
        make_video(folder / name / f"{name}{suffix}", num_frames=40, noise=60)
    victim = folder / "b" / f"b{suffix}"
    if damage == "no video":
        victim.write_bytes(b"this is a text file\n" * 100)
    elif damage == "empty":
        victim.write_bytes(b"")
    else:
        os.truncate(victim, victim.stat().st_size * 6 // 10)
    return folder


@pytest.mark.parametrize("damage", ["no video", "empty", "cut"])
@pytest.mark.parametrize("suffix", [".webm", ".mp4"])
def test_defect_02_a_damaged_video_is_an_error_that_names_the_file(
    tmp_path, make_video, damage, suffix
):
    folder = damaged_folder(tmp_path, make_video, damage, suffix)
    adapter = VideoFolderAdapter(str(folder), str(tmp_path / "out"))
    with pytest.raises(errors.SourceReadError, match=rf"b\{suffix}"):
        GulpIngestor(adapter, str(tmp_path / "out"), 10, 1)()
    assert counts_in(tmp_path / "out") == {f"a-a{suffix}": 40, f"c-c{suffix}": 40}


def test_defect_02_a_missing_video_is_an_error_that_names_it(tmp_path, make_video):
    make_video(tmp_path / "videos" / "1.webm")
    (tmp_path / "list.csv").write_text("1;a\n2;b\n")
    adapter = Custom20BNCsvWebmAdapter(
        str(tmp_path / "list.csv"), str(tmp_path / "videos"), str(tmp_path / "out")
    )
    with pytest.raises((errors.SourceReadError, AssertionError), match=r"2\.webm"):
        GulpIngestor(adapter, str(tmp_path / "out"), 10, 1)()
    assert ids_in(tmp_path / "out") == ["1"]


def test_defect_02_failures_are_told_apart_in_a_summary_when_allowed(
    tmp_path, make_video
):
    folder = damaged_folder(tmp_path, make_video, "cut", ".webm")
    adapter = VideoFolderAdapter(str(folder), str(tmp_path / "out"))
    ingestor = GulpIngestor(adapter, str(tmp_path / "out"), 10, 1, allow_failures=True)
    report = ingestor.run()
    assert (report.items, report.frames) == (2, 80)
    (failure,) = report.failures
    assert "b.webm" in failure.message
    (line,) = (tmp_path / "out" / "failures.jsonl").read_text().splitlines()
    assert "b.webm" in json.dumps(json.loads(line))


def test_defect_02_the_program_ends_nonzero(tmp_path, make_video, script):
    folder = damaged_folder(tmp_path, make_video, "cut", ".webm")
    result = script("gulp2_video_folder", f"{folder}/", tmp_path / "out")
    assert result.code == 1
    assert "b.webm" in result.err
    assert sorted(counts_in(tmp_path / "out")) == ["a-a.webm", "c-c.webm"]


def test_defect_02_the_webm_of_the_report_is_not_stored_short(tmp_path, shared_videos):
    whole = (shared_videos / "vp8_audio_30fps.webm").read_bytes()
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "1.webm").write_bytes(whole[:60000])
    (tmp_path / "list.csv").write_text("1;a\n")
    adapter = Custom20BNCsvWebmAdapter(
        str(tmp_path / "list.csv"), str(tmp_path / "videos"), str(tmp_path / "out")
    )
    with pytest.raises(errors.SourceReadError, match=r"1\.webm"):
        GulpIngestor(adapter, str(tmp_path / "out"), 10, 1)()


# ------------------------------------------------------------------ 3
GLOB_NAMES = ["g[1]", "what?", "star*", "[!a]", "{a,b}"]


@pytest.mark.parametrize("name", GLOB_NAMES)
def test_defect_03_a_directory_with_a_glob_name_is_extended(
    tmp_path, client_code, grey, name
):
    for k in range(2):
        adapter = client_code.ArrayAdapter([(f"i{k}", {}, [grey(k)])])
        GulpIngestor(adapter, str(tmp_path / name), 1, 1)()
    assert ids_in(tmp_path / name) == ["i0", "i1"]
    assert GulpDirectory(tmp_path / name)["i0"][0][0].shape == (24, 32)


@pytest.mark.parametrize("name", GLOB_NAMES)
def test_defect_03_source_folders_are_taken_literally(
    tmp_path, frame, make_video, name
):
    image = save_image(tmp_path / "i" / name / f"{name}.jpg", frame())
    found = utils.find_images_in_folder(str(image.parent), formats=["jpg"])
    assert found == [str(image)]
    video = make_video(tmp_path / "v" / name / f"{name}.mp4")
    assert utils.get_single_video_path(str(video.parent)) == str(video)
    (tmp_path / "i.out").mkdir()
    images = ImageFolderAdapter(f"{tmp_path / 'i'}/", str(tmp_path / "i.out"))
    inner = ImageFolderAdapter(f"{image.parent}/", str(tmp_path / "i.out"))
    (tmp_path / "v.out").mkdir()
    videos = VideoFolderAdapter(f"{tmp_path / 'v'}/", str(tmp_path / "v.out"))
    assert (len(images), len(inner), len(videos)) == (1, 1, 1)


# ------------------------------------------------------------------ 4
def test_defect_04_rewriting_a_chunk_starts_from_an_empty_index(tmp_path, grey):
    with (chunk := chunk_in(tmp_path)).open("wb"):
        chunk.append("old", {"n": 1}, [grey(1)])
    for again in (chunk, chunk_in(tmp_path)):
        with again.open("wb"):
            again.append("new", {"n": 2}, [grey(2)])
        assert list(again.meta_dict) == ["new"]
        assert ids_in(tmp_path) == ["new"]
        assert len(GulpDirectory(tmp_path)["new"][0]) == 1
        with pytest.raises(KeyError, match="old"):
            GulpDirectory(tmp_path)["old"]


# ------------------------------------------------------------------ 5
@pytest.mark.parametrize("videos_per_chunk", [1, 10])
@pytest.mark.parametrize("pair", [("a", "a"), (7, "7")])
def test_defect_05_a_duplicate_id_is_refused_while_ingesting(
    tmp_path, client_code, grey, videos_per_chunk, pair
):
    items = [(id_, {"n": n}, [grey(n)]) for n, id_ in enumerate(["z", *pair, "y"])]
    adapter = client_code.ArrayAdapter(items)
    with pytest.raises(errors.DuplicateIdError, match=str(pair[0])):
        GulpIngestor(adapter, str(tmp_path / "out"), videos_per_chunk, 1)()
    directory = GulpDirectory(tmp_path / "out")
    for id_ in directory.merged_meta_dict:
        entry = directory.merged_meta_dict[id_]
        assert (len(entry["frame_info"]), len(entry["meta_data"])) == (1, 1)
    if str(pair[0]) in directory:
        assert directory[pair[0]][1] == {"n": 1}, "the first one is kept"


@pytest.mark.parametrize("flags", [(), ("-O",)])
def test_defect_05_duplicates_across_chunks_are_an_error_when_optimised(
    tmp_path, grey, fresh_python, flags
):
    for number in (0, 1):
        with (chunk := chunk_in(tmp_path / "gulp", number)).open("wb"):
            chunk.append("twice", {"n": number}, [grey()])
    code = "import sys, gulpio2; gulpio2.GulpDirectory(sys.argv[1])"
    result = fresh_python(code, tmp_path / "gulp", flags=flags)
    assert result.code == 1
    assert "DuplicateIdError" in result.err
    assert "twice" in result.err
    assert "data_0.gulp" in result.err or "chunk" in result.err
    with pytest.raises(AssertionError, match="twice"):
        GulpDirectory(tmp_path / "gulp")


# ------------------------------------------------------------------ 6
@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("fault", ["own exception", "bad frame", "no meta", "no id"])
def test_defect_06_a_failed_worker_leaves_a_directory_that_opens_and_extends(
    tmp_path, client_code, grey, fault, num_workers
):
    items: list[Any] = [(f"i{k}", {}, [grey(k)]) for k in range(6)]
    if fault == "own exception":
        adapter = client_code.FailingAdapter(items, fails_at=2)
    elif fault == "bad frame":
        items[2] = ("i2", {}, [grey(2), "no frame"])
        adapter = client_code.ArrayAdapter(items)
    else:
        adapter = client_code.IncompleteAdapter(items, without=fault.split()[1])
    with pytest.raises(Exception, match=r"."):
        GulpIngestor(adapter, str(tmp_path / "out"), 2, num_workers)()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    data = {n for n in names if n.endswith(".gulp")}
    maps = {n for n in names if n.endswith(".gmeta")}
    assert {n[5:-5] for n in data} == {n[5:-6] for n in maps}
    assert [n for n in names if "partial" in n] == []
    stored = set(ids_in(tmp_path / "out"))
    if fault in ("own exception", "bad frame"):
        assert {"i0", "i1", "i4", "i5"} <= stored
        assert "i2" not in stored
    more = client_code.ArrayAdapter([("more", {}, [grey()])])
    GulpIngestor(more, str(tmp_path / "out"), 2, num_workers)()
    assert set(ids_in(tmp_path / "out")) == stored | {"more"}
    for id_ in ids_in(tmp_path / "out"):
        assert len(GulpDirectory(tmp_path / "out")[id_][0]) == 1


# ------------------------------------------------------------------ 7
def test_defect_07_numpy_metadata_is_stored_as_a_person_expects(tmp_path, grey):
    meta: Any = {
        "int": np.int64(3),
        "uint": np.uint8(200),
        "float32": np.float32(0.5),
        "bool": np.bool_(False),
        "text": np.str_("word"),
        "array": np.arange(4).reshape(2, 2),
        "nested": {"deep": [np.int32(1), (np.float64(2.5), np.array(["a", "b"]))]},
        np.int64(5): "a numpy key",
    }
    with (chunk := chunk_in(tmp_path)).open("wb"):
        chunk.append("x", meta, [grey()])
    _, read = GulpDirectory(tmp_path)["x"]
    assert read == {
        "int": 3,
        "uint": 200,
        "float32": 0.5,
        "bool": False,
        "text": "word",
        "array": [[0, 1], [2, 3]],
        "nested": {"deep": [1, [2.5, ["a", "b"]]]},
        "5": "a numpy key",
    }
    assert (type(read["int"]), type(read["bool"])) == (int, bool)


@pytest.mark.parametrize(
    "value", [{1, 2}, b"bytes", object(), 1j, np.datetime64("2020-01-01"), Path("p")]
)
def test_defect_07_other_metadata_is_refused_before_anything_is_written(
    tmp_path, grey, value
):
    with (chunk := chunk_in(tmp_path)).open("wb"):
        chunk.append("good", {"n": 1}, [grey()])
        with pytest.raises((errors.GulpError, TypeError), match="bad one") as caught:
            chunk.append("bad one", {"a": [0, {"place": value}]}, [grey()])
        assert "place" in str(caught.value)
    assert ids_in(tmp_path) == ["good"]
    json.loads((tmp_path / "meta_0.gmeta").read_text())


def test_defect_07_an_ingest_loses_the_one_item_only(tmp_path, client_code, grey):
    items = [("a", {}, [grey()]), ("b", {"when": {1}}, [grey()]), ("c", {}, [grey()])]
    ingestor = GulpIngestor(client_code.ArrayAdapter(items), str(tmp_path), 10, 1)
    with pytest.raises(Exception, match="when"):
        ingestor()
    assert ids_in(tmp_path) == ["a", "c"]


def test_defect_07_no_metadata_is_an_empty_dict_or_an_error(tmp_path, grey):
    with (chunk := chunk_in(tmp_path)).open("wb"):
        try:
            chunk.append("x", None, [grey()])  # type: ignore[arg-type]  # the fault
        except (errors.GulpError, TypeError) as error:
            assert "x" in str(error)  # noqa: PT017  either answer is right
    directory = GulpDirectory(tmp_path)
    assert all(directory[id_][1] == {} for id_ in directory.merged_meta_dict)
