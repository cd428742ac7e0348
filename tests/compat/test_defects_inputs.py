"""Defects 29 to 33 of GulpIO2 0.0.4, inputs, workers and packaging: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import ast
import gzip
import json
import multiprocessing
import random
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor, errors, utils
from gulpio2.adapters import (
    Custom20BNCsvJpegAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
    ImageListAdapter,
)
from tests.compat.folders import ids_in, save_image


# ------------------------------------------------------------------ 29
def test_defect_29_an_unreadable_image_costs_that_one_item(tmp_path, frame):
    for k in range(3):
        save_image(tmp_path / f"x{k}.png", frame(k))
    (tmp_path / "x1.png").write_bytes(b"no image")
    (tmp_path / "list.txt").write_text("x0.png,a\nx1.png,a\nmissing.png,a\nx2.png,a\n")
    out = tmp_path / "out"
    adapter = ImageListAdapter(
        str(tmp_path / "list.txt"), str(out), root_folder=str(tmp_path)
    )
    report = GulpIngestor(adapter, str(out), 10, 1).run()
    assert ids_in(out) == ["a-x0.png", "a-x2.png"]
    assert [failure.id for failure in report.failures] == ["a-x1.png", "a-missing.png"]
    with pytest.raises(utils.ImageNotFound, match=r"x1\.png"):
        list(list(adapter.iter_data(slice(1, 2)))[0]["frames"])  # noqa: RUF015  # to the end, as a run does
    with pytest.raises(FileNotFoundError, match=r"missing\.png"):
        list(list(adapter.iter_data(slice(2, 3)))[0]["frames"])  # noqa: RUF015  # to the end, as a run does


def test_defect_29_a_list_may_have_blank_lines_spaces_and_commas_in_paths(
    tmp_path, frame
):
    save_image(tmp_path / "a,b.png", frame())
    save_image(tmp_path / "c.png", frame())
    (tmp_path / "list.txt").write_text("\na,b.png, cat \n   \nc.png,dog\n\n")
    adapter = ImageListAdapter(
        str(tmp_path / "list.txt"), str(tmp_path / "o"), root_folder=str(tmp_path)
    )
    items = [(item["id"], item["meta"]["label"]) for item in adapter.iter_data()]
    assert items == [("cat-a,b.png", "cat"), ("dog-c.png", "dog")]


def test_defect_29_csv_files_may_have_blank_rows(tmp_path, make_video, frame):
    (tmp_path / "list.csv").write_text("\n1;a\n\n2;b\n\n")
    for k in (1, 2):
        make_video(tmp_path / "videos" / f"{k}.webm")
        save_image(tmp_path / "images" / str(k) / "0.jpg", frame())
    table = str(tmp_path / "list.csv")
    for adapter in (
        Custom20BNCsvWebmAdapter(table, str(tmp_path / "videos"), str(tmp_path / "o")),
        Custom20BNCsvJpegAdapter(table, str(tmp_path / "images"), str(tmp_path / "p")),
    ):
        items = [(item["id"], item["meta"]["label"]) for item in adapter.iter_data()]
        assert items == [("1", "a"), ("2", "b")]


def test_defect_29_a_row_of_one_column_is_a_dummy_label_or_an_error_with_its_line(
    tmp_path, make_video
):
    (tmp_path / "list.csv").write_text("1;a\n\n2\n")
    table = str(tmp_path / "list.csv")
    for k in (1, 2):
        make_video(tmp_path / "videos" / f"{k}.webm")
    webm = Custom20BNCsvWebmAdapter(
        table, str(tmp_path / "videos"), str(tmp_path / "o")
    )
    labels = [item["meta"]["label"] for item in webm.iter_data()]
    assert labels == ["a", "dummy"]
    with pytest.raises(errors.SourceReadError, match=r"list\.csv.*line 3"):
        Custom20BNCsvJpegAdapter(table, str(tmp_path), str(tmp_path / "p"))


# ------------------------------------------------------------------ 30
def test_defect_30_the_temporary_folder_goes_after_an_exception(tmp_path):
    bursting = utils.temp_dir_for_bursting(str(tmp_path))
    with pytest.raises(RuntimeError, match="mine"), bursting as folder:  # noqa: PT012  # what raises is the block
        (Path(folder) / "x.jpg").write_bytes(b"x")
        raise RuntimeError("mine")
    assert list(tmp_path.iterdir()) == []


def test_defect_30_the_temporary_folder_does_not_depend_on_the_seed(tmp_path):
    folders = []
    for _ in range(2):
        random.seed(1)
        state = random.getstate()
        context = utils.temp_dir_for_bursting(shm_dir_path=str(tmp_path))
        folders.append((context, context.__enter__()))
        assert random.getstate() == state
    assert folders[0][1] != folders[1][1]
    for context, folder in folders:
        assert isinstance(folder, str)
        assert Path(folder).parent == tmp_path
        context.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_is_made_where_it_is_asked_for(tmp_path):
    wanted = tmp_path / "scratch" / "mine"
    with utils.temp_dir_for_bursting(wanted) as folder:
        assert Path(folder).parent == wanted
    assert list(wanted.iterdir()) == []


def test_defect_30_an_ingest_needs_no_shared_memory_folder(tmp_path, make_video):
    from gulpio2.adapters import VideoFolderAdapter

    make_video(tmp_path / "videos" / "a" / "x.mp4")
    out = tmp_path / "out"
    adapter = VideoFolderAdapter(
        f"{tmp_path / 'videos'}/", str(out), shm_dir_path=str(tmp_path / "no" / "shm")
    )
    GulpIngestor(adapter, str(out), 1, 1)()
    assert len(GulpDirectory(out)["a-x.mp4"][0]) == 12
    assert not (tmp_path / "no").exists()


def test_defect_30_path_objects_are_taken(tmp_path, frame, make_video):
    image = save_image(tmp_path / "x.png", frame(0, 24, 32))
    assert utils.resize_by_short_edge(image, 12).shape == (12, 16, 3)
    make_video(tmp_path / "videos" / "1" / "1.mp4")
    table = [{"id": 1, "template": "a"}]
    (tmp_path / "v.json").write_text(json.dumps(table))
    with gzip.open(tmp_path / "v.json.gz", "wt") as file:
        json.dump(table, file)
    for name in ("v.json", "v.json.gz"):
        adapter = Custom20BNJsonVideoAdapter(
            tmp_path / name, tmp_path / "videos", tmp_path / f"out.{name}"
        )
        assert [item["id"] for item in adapter.iter_data()] == [1]
    with pytest.raises(RuntimeError, match=r"v\.txt"):
        Custom20BNJsonVideoAdapter(tmp_path / "v.txt", tmp_path, tmp_path / "o")


# ------------------------------------------------------------------ 31
STRICT = ("-X", "dev", "-W", "error")


def test_defect_31_nothing_is_left_open_and_nothing_warns(tmp_path, frame, script):
    for k in range(3):
        save_image(tmp_path / f"x{k}.png", frame(k))
    (tmp_path / "list.txt").write_text("".join(f"x{k}.png,l{k}\n" for k in range(3)))
    result = script(
        "gulp2_image_list",
        "--images_per_chunk=1",
        "--num_workers=2",
        "list.txt",
        "out",
        cwd=tmp_path,
        flags=STRICT,
    )
    assert result.code == 0, result.err
    assert "Warning" not in result.err
    result = script("gulp2_sanity_check", "out", cwd=tmp_path, flags=STRICT)
    assert (result.code, result.err) == (0, "")


READ_EVERYTHING = """
import gc, sys
import gulpio2, gulpio2.fileio, gulpio2.utils, gulpio2.sanity_utils, gulpio2.adapters
directory = gulpio2.GulpDirectory(sys.argv[1])
for id_ in directory.merged_meta_dict:
    directory[id_]
for chunk in directory:
    for frames, meta in chunk:
        break
del directory, chunk, frames
gc.collect()
"""


def test_defect_31_reading_leaves_nothing_open_and_nothing_warns(
    make_directory, grey, fresh_python
):
    folder = make_directory({"a": [grey(1)], "b": [grey(2)]}, {"c": [grey(3)]})
    result = fresh_python(READ_EVERYTHING, folder, flags=STRICT)
    assert (result.code, result.err) == (0, "")


WITHOUT_PILLOW = """
import sys
sys.modules["PIL"] = None
import numpy as np
import gulpio2
from gulpio2.adapters import ImageFolderAdapter, VideoFolderAdapter
for make, name in ((ImageFolderAdapter, "images"), (VideoFolderAdapter, "videos")):
    gulpio2.GulpIngestor(make(name + "/", "out", [".png", ".mp4"]), "out", 5, 1)()
directory = gulpio2.GulpDirectory("out")
print(sorted((i, len(directory[i][0])) for i in directory.merged_meta_dict))
"""


def test_defect_31_pillow_is_not_needed(tmp_path, frame, make_video, fresh_python):
    save_image(tmp_path / "images" / "a" / "x.png", frame())
    make_video(tmp_path / "videos" / "a" / "y.mp4")
    result = fresh_python(WITHOUT_PILLOW, cwd=tmp_path)
    assert result.code == 0, result.err
    assert ast.literal_eval(result.out) == [("a-x.png", 1), ("a-y.mp4", 12)]


# ------------------------------------------------------------------ 32
def test_defect_32_an_adapter_is_not_pickled_for_every_chunk(
    tmp_path, client_code, grey
):
    items: list[Any] = [(k, {}, [grey(k)]) for k in range(12)]
    for workers in (1, 2):
        note = tmp_path / f"note{workers}"
        note.touch()
        adapter = client_code.CountingAdapter(items, str(note))
        out = tmp_path / f"out{workers}"
        GulpIngestor(adapter, str(out), 1, workers)()
        assert GulpDirectory(out).num_chunks == 12
        times = len(note.read_text().splitlines())
        assert times <= (0 if workers == 1 else workers), times


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"
)
@pytest.mark.parametrize("num_workers", [1, 2])
def test_defect_32_an_adapter_with_a_closure_runs_in_one_and_in_forked_workers(
    tmp_path, client_code, grey, num_workers
):
    adapter = client_code.ArrayAdapter([(k, {}, [grey(k)]) for k in range(3)])
    adapter.transform = lambda image: image
    GulpIngestor(adapter, str(tmp_path / "out"), 1, num_workers)()
    assert ids_in(tmp_path / "out") == ["0", "1", "2"]


def test_defect_32_what_cannot_be_sent_to_a_worker_is_named(
    tmp_path, client_code, grey
):
    adapter = client_code.ArrayAdapter([(k, {}, [grey()]) for k in range(4)])
    adapter.transform = lambda image: image
    refused = pytest.raises(errors.AdapterContractError, match=r"ArrayAdapter.*pickle")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as executor, refused:
        GulpIngestor(adapter, str(tmp_path / "out"), 1, 2, executor=executor)()


def test_defect_32_an_empty_adapter_is_an_error_with_a_text(tmp_path, client_code):
    out = tmp_path / "out"
    with pytest.raises(AssertionError, match="no items"):
        GulpIngestor(client_code.ArrayAdapter([]), str(out), 1, 1)()
    assert out.is_dir()


def test_defect_32_a_missing_or_second_video_is_an_error_with_a_text(
    tmp_path, make_video
):
    (tmp_path / "v").mkdir()
    with pytest.raises(AssertionError, match=re.escape(str(tmp_path / "v"))):
        utils.get_single_video_path(str(tmp_path / "v"))
    for name in ("a.mp4", "b.mp4"):
        make_video(tmp_path / "v" / name)
    with pytest.raises(AssertionError, match="2 files"):
        utils.get_single_video_path(str(tmp_path / "v"))


# ------------------------------------------------------------------ 33
def test_defect_33_the_documents_promise_no_argument_that_does_not_exist(repository):
    pages = [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]
    pages = [page for page in pages if page.is_file()]
    assert pages
    for page in pages:
        for call in re.findall(r"GulpDirectory\(([^()]*)\)", page.read_text("utf-8")):
            assert "colorspace=" not in call, page


def test_defect_33_grey_is_read_with_a_decoder_of_the_caller(make_directory, frame):
    import simplejpeg

    folder = make_directory({"a": [frame(1)]})

    def to_grey(data: bytes) -> Any:
        return simplejpeg.decode_jpeg(data, colorspace="GRAY")[..., 0]

    (read,) = GulpDirectory(folder, to_grey)["a"][0]
    assert read.shape == (24, 32)
    with pytest.raises(TypeError):
        GulpDirectory(folder, colorspace="GRAY")  # type: ignore[call-arg]  # the point
