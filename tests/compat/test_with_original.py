"""Directories of this package are opened, checked and extended by GulpIO2 0.0.4.

The original is a program of its own, in an environment that ``bin/original`` makes.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.adapters import ImageFolderAdapter, VideoFolderAdapter
from gulpio2.errors import ChunkMismatchError
from tests.golden.corpus import GOLDEN, INPUTS, described, write_case
from tests.loading import load

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.original


def assert_read_alike(folder: Path, original: Any) -> dict[str, Any]:
    """Check that 0.0.4 reads what we read; give what it said, by id."""
    theirs = original.json("describe.py", folder)
    ours = GulpDirectory(folder)
    assert [item["id"] for item in theirs["items"]] == list(ours.merged_meta_dict)
    assert theirs["chunk_lookup"] == dict(ours.chunk_lookup)
    for item in theirs["items"]:
        frames, meta = ours[item["id"]]
        assert json.dumps(meta) == json.dumps(item["meta"])
        entry = ours.merged_meta_dict[item["id"]]
        assert json.dumps(entry["meta_data"]) == json.dumps(item["meta_data"])
        assert described(frames) == item["frames"] == item["by_id"], item["id"]
        assert item["every_second"] == item["frames"][::2]
    return {item["id"]: item for item in theirs["items"]}


def assert_passes_their_check(folder: Path, original: Any) -> None:
    """Check that the original's own checker finds nothing."""
    result = original.script("gulp2_sanity_check", folder)
    assert result.code == 0, result.err
    assert result.out.count("Sanity Check: ") == 4
    assert result.out.count("Test passed") == 4, result.out


# ------------------------------------------------------------------ written by chunks
@pytest.mark.parametrize("case", sorted(INPUTS.CASES))
def test_the_original_reads_what_our_chunks_wrote_as_its_own(case, tmp_path, original):
    (tmp_path / "ours").mkdir()
    write_case(tmp_path / "ours", INPUTS.CASES[case]())
    read = assert_read_alike(tmp_path / "ours", original)
    content = json.loads((GOLDEN / f"{case}.json").read_text("utf-8"))
    for item in (i for chunk in content["chunks"] for i in chunk["items"]):
        assert read[item["id"]]["frames"] == item["frames"]
        assert json.dumps(read[item["id"]]["meta"]) == json.dumps(item["meta"])


# 0.0.4's checker fails on empty chunks and items by its own faults (defect 23).
@pytest.mark.parametrize(
    "case", sorted(set(INPUTS.CASES) - {"appended_twice", "empty_chunk", "no_frames"})
)
def test_what_our_chunks_wrote_passes_the_check_of_the_original(
    case, tmp_path, original
):
    (tmp_path / "ours").mkdir()
    write_case(tmp_path / "ours", INPUTS.CASES[case]())
    assert_passes_their_check(tmp_path / "ours", original)


# ------------------------------------------------------------------ written by ingest
@pytest.fixture
def ingested(tmp_path: Path, client_code: ModuleType, frame: Any, grey: Any) -> Path:
    """Ingest arrays, with all that this package adds on disk."""
    items = [
        ("a", {"label": "x", "nan": math.nan}, [frame(k) for k in range(5)]),
        ("b/c", {"n": np.int64(3)}, [grey(k) for k in range(3)]),
        (7, {"list": [1, (2,)]}, [frame(9, 33, 17)]),
        ("größe", {}, [frame(10), grey(10)]),
        ("flow", {}, [grey(k, 16, 16) for k in range(8)]),
    ]
    folder = tmp_path / "ours"
    GulpIngestor(client_code.ArrayAdapter(items), str(folder), 2, 1)()
    return folder


def test_the_original_reads_what_our_ingest_wrote(ingested, original):
    entry = json.loads((ingested / "meta_0.gmeta").read_text())["a"]
    assert list(entry) == ["frame_info", "meta_data", "gulp2"], (
        "nothing extra to ignore"
    )
    assert (ingested / "gulp.json").is_file()
    read = assert_read_alike(ingested, original)
    assert list(read) == ["a", "b/c", "7", "größe", "flow"]
    assert_passes_their_check(ingested, original)


def test_the_original_reads_what_our_ingest_of_videos_wrote(
    tmp_path, make_video, original
):
    for label, name in (("x", "one.mp4"), ("y", "two.mp4"), ("y", "three.webm")):
        make_video(tmp_path / "videos" / label / name, height=54, width=70)
    adapter = VideoFolderAdapter(f"{tmp_path / 'videos'}/", str(tmp_path / "ours"))
    GulpIngestor(adapter, str(tmp_path / "ours"), 2, 1)()
    index = json.loads((tmp_path / "ours" / "meta_0.gmeta").read_text())
    (first, *_) = index.values()
    assert {"time_base", "pts"} <= set(first["gulp2"])
    read = assert_read_alike(tmp_path / "ours", original)
    assert [len(item["frames"]) for item in read.values()] == [12, 12, 12]
    assert all(f["shape"] == [54, 70, 3] for i in read.values() for f in i["frames"])
    assert_passes_their_check(tmp_path / "ours", original)


def test_the_original_reads_real_videos_of_ours(tmp_path, shared_videos, original):
    folder = tmp_path / "videos" / "real"
    folder.mkdir(parents=True)
    for name in ("rotated_90.mov", "odd_width_vp9_10bit.mp4", "h264_6fps.mp4"):
        (folder / name).symlink_to(shared_videos / name)
    adapter = VideoFolderAdapter(
        str(tmp_path / "videos"), str(tmp_path / "ours"), [".mov", ".mp4"]
    )
    GulpIngestor(adapter, str(tmp_path / "ours"), 2, 1)()
    read = assert_read_alike(tmp_path / "ours", original)
    sizes = {
        id_: (len(i["frames"]), *i["frames"][0]["shape"]) for id_, i in read.items()
    }
    assert sizes == {
        "real-h264_6fps.mp4": (57, *sizes["real-h264_6fps.mp4"][1:]),
        "real-odd_width_vp9_10bit.mp4": (25, 240, 321, 3),
        "real-rotated_90.mov": (3, 568, 320, 3),
    }
    assert_passes_their_check(tmp_path / "ours", original)


@pytest.mark.parametrize("subsampling", ["444", "422", "420"])
def test_the_original_reads_jpeg_files_that_were_copied(
    tmp_path, frame, original, subsampling
):
    pil = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    sources = {}
    for k, quality in enumerate((60, 95)):
        path = folder / f"x{k}.jpg"
        pil.fromarray(frame(k, 37, 51)).save(
            path,
            quality=quality,
            subsampling=f"{subsampling[0]}:{subsampling[1]}:{subsampling[2]}",
        )
        sources[f"a-{path.name}"] = path.read_bytes()
    adapter = ImageFolderAdapter(str(tmp_path / "images"), str(tmp_path / "ours"))
    GulpIngestor(adapter, str(tmp_path / "ours"), 5, 1)()
    data = (tmp_path / "ours" / "data_0.gulp").read_bytes()
    for id_, source in sources.items():
        entry = GulpDirectory(tmp_path / "ours").merged_meta_dict[id_]
        ((loc, pad, length),) = entry["frame_info"]
        assert data[loc : loc + length - pad] == source, "not copied"
    assert_read_alike(tmp_path / "ours", original)
    assert_passes_their_check(tmp_path / "ours", original)


def test_the_original_reads_real_jpeg_files_that_were_copied(
    tmp_path, shared_images, original
):
    folder = tmp_path / "images" / "real"
    folder.mkdir(parents=True)
    for name in ("cat.jpg", "monarch.jpg", "cameraman.jpg", "fprint3.jpg"):
        (folder / name).symlink_to(shared_images / name)
    adapter = ImageFolderAdapter(str(tmp_path / "images"), str(tmp_path / "ours"))
    GulpIngestor(adapter, str(tmp_path / "ours"), 5, 1)()
    read = assert_read_alike(tmp_path / "ours", original)
    assert len(read) == 4
    assert_passes_their_check(tmp_path / "ours", original)


def test_the_label_indices_of_ours_are_read_by_the_original(tmp_path, frame, original):
    pil = pytest.importorskip("PIL.Image")
    for label in ("z", "a b", "ü"):
        (tmp_path / "images" / label).mkdir(parents=True)
        pil.fromarray(frame()).save(tmp_path / "images" / label / "x.png")
    adapter = ImageFolderAdapter(str(tmp_path / "images"), str(tmp_path / "ours"))
    GulpIngestor(adapter, str(tmp_path / "ours"), 5, 1)()
    code = (
        "import json, sys; from gulpio2 import GulpDirectory; "
        "print(json.dumps(GulpDirectory(sys.argv[1])._load_label_dict()))"
    )
    result = original.run("-c", code, tmp_path / "ours")
    assert json.loads(result.out) == {"a b": 0, "z": 1, "ü": 2}
    text = (tmp_path / "ours" / "label2idx.json").read_bytes()
    assert text == b'{"a b": 0, "z": 1, "\\u00fc": 2}'


# ------------------------------------------------------------------ extended by it
def test_the_original_extends_our_directory_and_we_read_the_result(ingested, original):
    before = {i["id"]: i for i in original.json("describe.py", ingested)["items"]}
    ids = original.json("extend.py", ingested)
    assert set(ids) == {*before, "appended", "new", "ingested"}
    read = assert_read_alike(ingested, original)
    for id_, item in before.items():
        assert read[id_]["frames"][: len(item["frames"])] == item["frames"]
        assert read[id_]["meta"] == item["meta"] or "nan" in item["meta"]
    assert len(read["a"]["frames"]) == 6
    directory = GulpDirectory(ingested)
    assert directory.read_frames("a", [-1])[0][0].shape == (16, 16, 3)
    assert directory.item("a").num_frames == 6
    assert directory.read_clip("new").shape == (1, 16, 16, 3)


def test_what_the_original_extended_is_whole_to_our_check(ingested, original, script):
    original.json("extend.py", ingested)
    result = script("gulp2_sanity_check", ingested)
    assert result.code == 0, result.out


def test_we_extend_again_what_the_original_extended(
    ingested, original, client_code, grey
):
    original.json("extend.py", ingested)
    more = client_code.ArrayAdapter([("more", {}, [grey(1)])])
    GulpIngestor(more, str(ingested), 1, 1)()
    chunk = GulpDirectory(ingested).chunk_objs_lookup[0]
    with chunk.open("ab"):
        chunk.append("a", {"by": "us"}, [grey(2)])
        chunk.append("late", {}, [grey(3)])
    read = assert_read_alike(ingested, original)
    assert len(read["a"]["frames"]) == 7
    assert {"more", "late"} <= set(read)


# ------------------------------------------------------------------ the same surface
def test_the_table_of_signatures_is_that_of_the_original(original):
    api = load(Path(__file__).parents[1] / "test_public_api.py")
    theirs = original.json("signatures.py", *api.ORIGINAL)
    assert theirs == api.ORIGINAL


# ------------------------------------------------------------------ both at once
APPEND = """
import numpy as np, sys
from gulpio2 import GulpDirectory
chunk = GulpDirectory(sys.argv[1]).chunk_objs_lookup[0]
with chunk.open("ab"):
    chunk.append("theirs", {}, [np.full((40, 60, 3), n, np.uint8) for n in (50, 200)])
    chunk.fp.flush()
    print("written", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_what_the_original_appends_meanwhile_is_not_written_over(
    tmp_path, original, frame, order, goes_on
):
    folder = tmp_path / "out"
    folder.mkdir()
    first = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with first.open("wb"):
        first.append("before", {}, [frame(1), frame(2)])
    chunk = GulpDirectory(folder).chunk_objs_lookup[0]
    (wanted, _), _ = chunk["before"]
    program = tmp_path / "append.py"
    program.write_text(APPEND)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def start():
        theirs = subprocess.Popen(
            [original.python, str(program), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        assert theirs.stdout is not None
        assert theirs.stdout.readline().strip() == "written"
        return theirs

    def append():
        with chunk.open("ab"):
            chunk.append("ours", {}, [frame(3)])
            running.append(start())
            if order == "theirs first":
                running[0].communicate("\n")
            if goes_on:
                chunk.append("more", {}, [frame(4)])

    running: list[Any] = []
    if goes_on or order == "theirs first":
        with pytest.raises(ChunkMismatchError, match="another program"):
            append()
    else:
        append()
    if order == "ours first":
        running[0].communicate("\n")
    read = GulpDirectory(folder)
    frames, _ = read["theirs"]
    assert [round(float(np.mean(each))) for each in frames] == [50, 200]
    for id_ in read.chunk_lookup:
        assert len(read[id_][0]) == len(read.merged_meta_dict[id_]["frame_info"])
    np.testing.assert_array_equal(read["before"][0][0], wanted)
