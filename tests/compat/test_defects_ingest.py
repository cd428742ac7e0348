"""Defects 1 to 13 of GulpIO2 0.0.4, silent loss and corruption: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor, errors, utils
from gulpio2.adapters import (
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
    ImageFolderAdapter,
    ImageListAdapter,
    KineticsAdapter,
    VideoFolderAdapter,
)

if TYPE_CHECKING:
    from types import ModuleType


def chunk_in(folder: Path, number: int = 0) -> GulpChunk:
    """Give the chunk of this number in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return GulpChunk(
        str(folder / f"data_{number}.gulp"), str(folder / f"meta_{number}.gmeta")
    )


def ids_in(folder: Path) -> list[str]:
    """Give all ids of a directory."""
    return list(GulpDirectory(folder).merged_meta_dict)


def counts_in(folder: Path) -> dict[str, int]:
    """Give the number of frames of each item."""
    entries = GulpDirectory(folder).merged_meta_dict
    return {id_: len(entry["frame_info"]) for id_, entry in entries.items()}


def save_image(path: Path, pixels: np.ndarray) -> Path:
    """Write an image file."""
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels).save(path)
    return path


# ------------------------------------------------------------------ 1
@pytest.mark.parametrize("absolute", [False, True])
def test_defect_01_kinetics_reads_a_relative_folder(
    tmp_path: Path, make_video: Any, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
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
    tmp_path: Path, make_video: Any, damage: str, suffix: str
) -> None:
    folder = damaged_folder(tmp_path, make_video, damage, suffix)
    adapter = VideoFolderAdapter(str(folder), str(tmp_path / "out"))
    with pytest.raises(errors.SourceReadError, match=rf"b\{suffix}"):
        GulpIngestor(adapter, str(tmp_path / "out"), 10, 1)()
    assert counts_in(tmp_path / "out") == {f"a-a{suffix}": 40, f"c-c{suffix}": 40}


def test_defect_02_a_missing_video_is_an_error_that_names_it(
    tmp_path: Path, make_video: Any
) -> None:
    make_video(tmp_path / "videos" / "1.webm")
    (tmp_path / "list.csv").write_text("1;a\n2;b\n")
    adapter = Custom20BNCsvWebmAdapter(
        str(tmp_path / "list.csv"), str(tmp_path / "videos"), str(tmp_path / "out")
    )
    with pytest.raises((errors.SourceReadError, AssertionError), match=r"2\.webm"):
        GulpIngestor(adapter, str(tmp_path / "out"), 10, 1)()
    assert ids_in(tmp_path / "out") == ["1"]


def test_defect_02_failures_are_told_apart_in_a_summary_when_allowed(
    tmp_path: Path, make_video: Any
) -> None:
    folder = damaged_folder(tmp_path, make_video, "cut", ".webm")
    adapter = VideoFolderAdapter(str(folder), str(tmp_path / "out"))
    ingestor = GulpIngestor(adapter, str(tmp_path / "out"), 10, 1, allow_failures=True)
    report = ingestor.run()
    assert (report.items, report.frames) == (2, 80)
    (failure,) = report.failures
    assert "b.webm" in failure.message
    (line,) = (tmp_path / "out" / "failures.jsonl").read_text().splitlines()
    assert "b.webm" in json.dumps(json.loads(line))


def test_defect_02_the_program_ends_nonzero(
    tmp_path: Path, make_video: Any, script: Any
) -> None:
    folder = damaged_folder(tmp_path, make_video, "cut", ".webm")
    result = script("gulp2_video_folder", f"{folder}/", tmp_path / "out")
    assert result.code == 1
    assert "b.webm" in result.err
    assert sorted(counts_in(tmp_path / "out")) == ["a-a.webm", "c-c.webm"]


def test_defect_02_the_webm_of_the_report_is_not_stored_short(
    tmp_path: Path, shared_videos: Path
) -> None:
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
    tmp_path: Path, client_code: ModuleType, grey: Any, name: str
) -> None:
    for k in range(2):
        adapter = client_code.ArrayAdapter([(f"i{k}", {}, [grey(k)])])
        GulpIngestor(adapter, str(tmp_path / name), 1, 1)()
    assert ids_in(tmp_path / name) == ["i0", "i1"]
    assert GulpDirectory(tmp_path / name)["i0"][0][0].shape == (24, 32)


@pytest.mark.parametrize("name", GLOB_NAMES)
def test_defect_03_source_folders_are_taken_literally(
    tmp_path: Path, frame: Any, make_video: Any, name: str
) -> None:
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
def test_defect_04_rewriting_a_chunk_starts_from_an_empty_index(
    tmp_path: Path, grey: Any
) -> None:
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
    tmp_path: Path,
    client_code: ModuleType,
    grey: Any,
    videos_per_chunk: int,
    pair: tuple[Any, Any],
) -> None:
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


def test_defect_05_an_id_that_is_already_stored_is_refused(
    tmp_path: Path, client_code: ModuleType, grey: Any
) -> None:
    out = tmp_path / "out"
    GulpIngestor(
        client_code.ArrayAdapter([("a", {"n": 1}, [grey()])]), str(out), 1, 1
    )()
    again = client_code.ArrayAdapter([("a", {"n": 2}, [grey()]), ("b", {}, [grey()])])
    with pytest.raises(errors.DuplicateIdError, match="a"):
        GulpIngestor(again, str(out), 1, 1)()
    assert GulpDirectory(out)["a"][1] == {"n": 1}


@pytest.mark.parametrize("flags", [(), ("-O",)])
def test_defect_05_duplicates_across_chunks_are_an_error_when_optimised(
    tmp_path: Path, grey: Any, fresh_python: Any, flags: tuple[str, ...]
) -> None:
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
    tmp_path: Path, client_code: ModuleType, grey: Any, fault: str, num_workers: int
) -> None:
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


def test_defect_06_a_data_file_without_its_map_is_no_part_of_the_directory(
    make_directory: Any, grey: Any
) -> None:
    folder = make_directory({"a": [grey()]})
    (folder / "data_1.gulp").write_bytes(b"\xff\xd8 half a chunk")
    (folder / "data_2.gulp.0a1b2c3d.partial").write_bytes(b"\xff\xd8")
    directory = GulpDirectory(folder)
    assert list(directory.chunk_objs_lookup) == [0]
    (new,) = directory.new_chunks(1)
    with new.open("wb"):
        new.append("b", {}, [grey()])
    assert ids_in(folder) == ["a", "b"]


def test_defect_06_a_map_without_its_data_file_is_named(
    make_directory: Any, grey: Any
) -> None:
    folder = make_directory({"a": [grey()]}, {"b": [grey()]})
    (folder / "data_1.gulp").unlink()
    with pytest.raises(errors.ChunkMismatchError, match=r"meta_1\.gmeta|data_1\.gulp"):
        GulpDirectory(folder)


# ------------------------------------------------------------------ 7
def test_defect_07_numpy_metadata_is_stored_as_a_person_expects(
    tmp_path: Path, grey: Any
) -> None:
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
    tmp_path: Path, grey: Any, value: Any
) -> None:
    with (chunk := chunk_in(tmp_path)).open("wb"):
        chunk.append("good", {"n": 1}, [grey()])
        with pytest.raises((errors.GulpError, TypeError), match="bad one") as caught:
            chunk.append("bad one", {"a": [0, {"place": value}]}, [grey()])
        assert "place" in str(caught.value)
    assert ids_in(tmp_path) == ["good"]
    json.loads((tmp_path / "meta_0.gmeta").read_text())


def test_defect_07_an_ingest_loses_the_one_item_only(
    tmp_path: Path, client_code: ModuleType, grey: Any
) -> None:
    items = [("a", {}, [grey()]), ("b", {"when": {1}}, [grey()]), ("c", {}, [grey()])]
    ingestor = GulpIngestor(client_code.ArrayAdapter(items), str(tmp_path), 10, 1)
    with pytest.raises(Exception, match="when"):
        ingestor()
    assert ids_in(tmp_path) == ["a", "c"]


def test_defect_07_no_metadata_is_an_empty_dict_or_an_error(
    tmp_path: Path, grey: Any
) -> None:
    with (chunk := chunk_in(tmp_path)).open("wb"):
        try:
            chunk.append("x", None, [grey()])  # type: ignore[arg-type]  # the fault
        except (errors.GulpError, TypeError) as error:
            assert "x" in str(error)  # noqa: PT017  either answer is right
    directory = GulpDirectory(tmp_path)
    assert all(directory[id_][1] == {} for id_ in directory.merged_meta_dict)


# ------------------------------------------------------------------ 8
def stored(folder: Path, image: Any) -> np.ndarray:
    """Store one frame and read it back."""
    with (chunk := chunk_in(folder)).open("wb"):
        chunk.append("x", {}, [image])
    read: np.ndarray = GulpDirectory(folder)["x"][0][0]
    return read


def near(read: np.ndarray, expected: np.ndarray, mean: float = 3.0) -> bool:
    """Tell whether a stored frame shows what was given."""
    if read.shape != expected.shape:
        return False
    return float(np.abs(read.astype(int) - expected.astype(int)).mean()) < mean


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "1", "I;16", "CMYK"])
def test_defect_08_pil_images_of_every_mode_are_stored_as_they_look(
    tmp_path: Path, mode: str
) -> None:
    pil = pytest.importorskip("PIL.Image")
    rows, columns = np.mgrid[0:32, 0:48]
    smooth = np.stack([rows * 4, columns * 3, 200 - rows * 2], -1).astype(np.uint8)
    colour = pil.fromarray(smooth)
    if mode == "I;16":
        image = pil.fromarray(smooth[..., 0].astype(np.uint16) * 257)
        expected = smooth[..., 0]
    elif mode in ("L", "LA", "1"):
        image = colour.convert("L").convert(mode)
        expected = np.asarray(image.convert("L"))
    else:
        image = colour.convert(mode)
        expected = np.asarray(image.convert("RGB"))
    assert near(stored(tmp_path, image), expected, mean=8.0 if mode == "1" else 3.0)


@pytest.mark.parametrize("mode", ["P", "RGBA", "LA", "1", "I;16", "CMYK"])
def test_defect_08_image_files_of_every_mode_are_ingested(
    tmp_path: Path, mode: str
) -> None:
    pil = pytest.importorskip("PIL.Image")
    rows, columns = np.mgrid[0:32, 0:48]
    smooth = np.stack([rows * 4, columns * 3, 200 - rows * 2], -1).astype(np.uint8)
    if mode == "I;16":
        image = pil.fromarray(smooth[..., 0].astype(np.uint16) * 257)
    else:
        image = pil.fromarray(smooth).convert(mode)
    suffix = ".jpg" if mode == "CMYK" else ".png"
    (tmp_path / "in" / "a").mkdir(parents=True)
    image.save(tmp_path / "in" / "a" / f"x{suffix}")
    for size in (-1, 16):
        out = tmp_path / f"out{size}"
        adapter = ImageFolderAdapter(f"{tmp_path / 'in'}/", str(out), img_size=size)
        GulpIngestor(adapter, str(out), 1, 1)()
        (frame,) = GulpDirectory(out)[f"a-x{suffix}"][0]
        edge = (32, 48) if size == -1 else (16, 24)
        assert frame.shape in (edge, (*edge, 3))
        if mode in ("P", "RGBA", "CMYK"):
            assert frame.shape == (*edge, 3)
            exact = np.asarray(image.convert("RGB").resize(edge[::-1]))
            assert near(frame, exact, mean=6.0)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, ::-1],
        lambda a: a[::-1],
        lambda a: a[4:20, 6:30],
        lambda a: a.swapaxes(0, 1),
        lambda a: a[::2, ::2],
        lambda a: np.asfortranarray(a),
    ],
    ids=["mirrored", "flipped", "cropped", "transposed", "every second", "fortran"],
)
@pytest.mark.parametrize("kind", ["colour", "grey"])
def test_defect_08_arrays_that_are_not_contiguous_are_stored(
    tmp_path: Path, frame: Any, view: Any, kind: str
) -> None:
    source = frame(1) if kind == "colour" else frame(1)[..., 0]
    image = view(source)
    both = [
        utils.img_to_jpeg_bytes(image),
        utils.img_to_jpeg_bytes(np.ascontiguousarray(image)),
    ]
    assert both[0] == both[1]
    assert stored(tmp_path, image).shape == image.shape


def test_defect_08_a_single_channel_is_grey(tmp_path: Path, grey: Any) -> None:
    read = stored(tmp_path, grey(1)[..., np.newaxis])
    np.testing.assert_array_equal(read, stored(tmp_path / "2", grey(1)))
    assert read.ndim == 2


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((8, 8, 3), np.float32),
        np.zeros((8, 8), np.int64),
        np.zeros((8, 8, 2), np.uint8),
        np.zeros((8, 8, 5), np.uint8),
        np.zeros((2, 8, 8, 3), np.uint8),
        np.zeros(8, np.uint8),
        np.zeros((0, 8, 3), np.uint8),
        "a path",
        None,
    ],
    ids=[
        "float",
        "int64",
        "2 channels",
        "5 channels",
        "4-D",
        "1-D",
        "no rows",
        "text",
        "nothing",
    ],
)
def test_defect_08_what_is_no_frame_is_refused_with_its_shape_or_type(
    tmp_path: Path, image: Any
) -> None:
    with (chunk := chunk_in(tmp_path)).open("wb"):
        with pytest.raises((ValueError, TypeError, errors.GulpError)) as caught:
            chunk.append("bad", {}, [image])
        facts = (
            [str(image.dtype), *map(str, image.shape)]
            if isinstance(image, np.ndarray)
            else [type(image).__name__]
        )
        assert any(fact in str(caught.value) for fact in facts), str(caught.value)
        chunk.append("good", {}, [np.zeros((8, 8), np.uint8)])
    assert ids_in(tmp_path) == ["good"]


def test_defect_08_a_cmyk_jpeg_decodes_to_rgb(shared_images: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    data = (shared_images / "cmyk.jpg").read_bytes()
    decoded = utils.jpeg_bytes_to_img(data)
    assert (decoded.shape[2], decoded.dtype) == (3, np.uint8)
    with pil.open(shared_images / "cmyk.jpg") as image:
        assert near(decoded, np.asarray(image.convert("RGB")), mean=4.0)


# ------------------------------------------------------------------ 9
def image_folder(root: Path, frame: Any, *labels: str) -> Path:
    """Make a folder of images, one per label, in a folder of that name."""
    for k, label in enumerate(labels):
        save_image(root / label / f"{label}.png", frame(k, 8, 8))
    return root


def labels_of(out: Path) -> dict[str, int]:
    """Read label2idx.json."""
    labels: dict[str, int] = json.loads((out / "label2idx.json").read_text())
    return labels


def test_defect_09_extending_keeps_the_label_indices_that_are_stored(
    tmp_path: Path, frame: Any
) -> None:
    out = tmp_path / "out"
    for name, labels in (("one", ("a", "b")), ("two", ("z", "b2"))):
        source = image_folder(tmp_path / name, frame, *labels)
        GulpIngestor(ImageFolderAdapter(f"{source}/", str(out)), str(out), 1, 1)()
    assert labels_of(out) == {"a": 0, "b": 1, "b2": 2, "z": 3}
    for id_ in ids_in(out):
        _, meta = GulpDirectory(out)[id_]
        assert labels_of(out)[meta["label"]] == meta["idx"]


def test_defect_09_the_next_index_is_past_the_largest(
    tmp_path: Path, frame: Any, make_video: Any
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "label2idx.json").write_text('{"x": 5}')
    source = image_folder(tmp_path / "images", frame, "a", "b")
    GulpIngestor(ImageFolderAdapter(f"{source}/", str(out)), str(out), 1, 1)()
    assert labels_of(out) == {"x": 5, "a": 6, "b": 7}
    make_video(tmp_path / "videos" / "9" / "9.mp4")
    (tmp_path / "v.json").write_text(json.dumps([{"id": 9, "template": "new"}]))
    adapter = Custom20BNJsonVideoAdapter(
        str(tmp_path / "v.json"), str(tmp_path / "videos"), str(out)
    )
    GulpIngestor(adapter, str(out), 1, 1)()
    assert labels_of(out) == {"x": 5, "a": 6, "b": 7, "new": 8}
    assert GulpDirectory(out)[9][1] == {"id": 9, "label": "new", "idx": 8}


def test_defect_09_labels_are_written_by_the_parent_though_a_worker_fails(
    tmp_path: Path, frame: Any
) -> None:
    out = tmp_path / "out"
    source = image_folder(tmp_path / "images", frame, "a", "b")
    (source / "b" / "b.png").write_bytes(b"no image")
    with pytest.raises(errors.GulpError, match=r"b\.png"):
        GulpIngestor(ImageFolderAdapter(f"{source}/", str(out)), str(out), 1, 2)()
    assert labels_of(out)["a"] == 0
    assert ids_in(out) == ["a-a.png"]


def test_defect_09_iterating_over_an_adapter_writes_no_file(
    tmp_path: Path, frame: Any
) -> None:
    source = image_folder(tmp_path / "images", frame, "a", "b")
    adapter = ImageFolderAdapter(f"{source}/", str(tmp_path / "out"))
    before = labels_of(tmp_path / "out") if (tmp_path / "out").exists() else None
    list(adapter.iter_data(slice(0, 1)))
    list(adapter.iter_data(slice(1, 2)))
    after = labels_of(tmp_path / "out") if (tmp_path / "out").exists() else None
    assert after == before


# ------------------------------------------------------------------ 10
def test_defect_10_an_image_list_can_be_iterated_again(
    tmp_path: Path, frame: Any
) -> None:
    lines = []
    for k in range(4):
        save_image(tmp_path / f"x{k}.png", frame(k, 8, 8))
        lines.append(f"x{k}.png,label{k % 2}")
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    adapter = ImageListAdapter(
        str(tmp_path / "list.txt"), str(tmp_path / "out"), root_folder=str(tmp_path)
    )

    def ids(part: slice | None) -> list[str]:
        return [item["id"] for item in adapter.iter_data(part)]

    expected = [f"label{k % 2}-x{k}.png" for k in range(4)]
    for _ in range(2):
        assert ids(slice(0, 2)) == expected[:2]
        assert ids(slice(2, 4)) == expected[2:]
        assert ids(None) == expected
        for item in adapter.iter_data(slice(0, 1)):
            assert len(list(item["frames"])) == 1
            assert set(item["meta"]) == {"id", "label", "idx"}
    assert len(adapter) == 4


# ------------------------------------------------------------------ 11
def test_defect_11_every_extension_is_found_by_default(
    tmp_path: Path, make_video: Any, frame: Any
) -> None:
    make_video(tmp_path / "videos" / "a" / "one.mp4")
    make_video(tmp_path / "videos" / "a" / "two.webm")
    out = tmp_path / "out"
    adapter = VideoFolderAdapter(f"{tmp_path / 'videos'}/", str(out))
    GulpIngestor(adapter, str(out), 10, 1)()
    assert counts_in(out) == {"a-one.mp4": 12, "a-two.webm": 12}
    save_image(tmp_path / "images" / "a" / "x.jpg", frame())
    save_image(tmp_path / "images" / "a" / "y.png", frame())
    images = ImageFolderAdapter(f"{tmp_path / 'images'}/", str(tmp_path / "out2"))
    assert [m["id"] for m in images.get_meta()] == ["a-x.jpg", "a-y.png"]


# ------------------------------------------------------------------ 12
@pytest.mark.parametrize("spelled", [str, lambda p: f"{p}/", lambda p: p])
@pytest.mark.parametrize("kind", ["images", "videos"])
def test_defect_12_a_folder_gives_the_same_with_and_without_a_slash(
    tmp_path: Path, frame: Any, make_video: Any, spelled: Any, kind: str
) -> None:
    if kind == "images":
        for path in ("images/a/x.png", "images/y.png", "images2/b/z.png"):
            save_image(tmp_path / path, frame())
        adapter: Any = ImageFolderAdapter(spelled(tmp_path / kind), str(tmp_path / "o"))
        expected = ["a-x.png", "images-y.png"]
    else:
        for path in ("videos/a/x.mp4", "videos/y.mp4", "videos2/b/z.mp4"):
            make_video(tmp_path / path)
        adapter = VideoFolderAdapter(spelled(tmp_path / kind), str(tmp_path / "o"))
        expected = ["a-x.mp4", "videos-y.mp4"]
    assert sorted(item["id"] for item in adapter.iter_data()) == expected


# ------------------------------------------------------------------ 13
def test_defect_13_ids_that_were_unambiguous_are_kept(
    tmp_path: Path, frame: Any
) -> None:
    save_image(tmp_path / "a" / "x0.jpg", frame())
    save_image(tmp_path / "x1.jpg", frame())
    (tmp_path / "list.txt").write_text("a/x0.jpg,b\nx1.jpg,d\n")
    adapter = ImageListAdapter(
        str(tmp_path / "list.txt"), str(tmp_path / "out"), root_folder=str(tmp_path)
    )
    assert [item["id"] for item in adapter.iter_data()] == ["x0.jpg", "d-x1.jpg"]


def test_defect_13_colliding_images_of_a_list_fail_with_both_named(
    tmp_path: Path, frame: Any
) -> None:
    for folder in ("a", "b"):
        save_image(tmp_path / folder / "x0.jpg", frame())
    (tmp_path / "list.txt").write_text("a/x0.jpg,b\nb/x0.jpg,d\n")
    out = tmp_path / "out"
    with pytest.raises(errors.DuplicateIdError) as caught:
        GulpIngestor(
            ImageListAdapter(
                str(tmp_path / "list.txt"), str(out), root_folder=str(tmp_path)
            ),
            str(out),
            1,
            1,
        )()
    assert "a/x0.jpg" in str(caught.value)
    assert "b/x0.jpg" in str(caught.value)


def test_defect_13_colliding_images_of_a_folder_fail_with_both_named(
    tmp_path: Path, frame: Any
) -> None:
    for folder in ("a", "b"):
        save_image(tmp_path / "in" / folder / "x" / "1.jpg", frame())
    out = tmp_path / "out"
    with pytest.raises(errors.DuplicateIdError) as caught:
        GulpIngestor(
            ImageFolderAdapter(f"{tmp_path / 'in'}/", str(out)), str(out), 1, 1
        )()
    assert "a/x/1.jpg" in str(caught.value)
    assert "b/x/1.jpg" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["plain_id_123", "has_00_inside", "_0000000000", "-_-_000001_0"]
)
@pytest.mark.parametrize("times", ["000001_000011", "010000_010010", "123456_123466"])
def test_defect_13_kinetics_names_are_read_from_the_right(
    tmp_path: Path, make_video: Any, name: str, times: str
) -> None:
    make_video(tmp_path / "vids" / "c" / f"{name}_{times}.mp4", num_frames=3)
    (tmp_path / "k.json").write_text(json.dumps({name: {"subset": "training"}}))
    out = tmp_path / "out"
    adapter = KineticsAdapter(str(tmp_path / "k.json"), str(tmp_path / "vids"))
    GulpIngestor(adapter, str(out), 1, 1)()
    assert counts_in(out) == {name: 3}
    assert GulpDirectory(out)[name][1]["subset"] == "training"


def test_defect_13_two_clips_of_one_kinetics_video_fail_with_both_named(
    tmp_path: Path, make_video: Any
) -> None:
    names = ["abc_000001_000011.mp4", "abc_000020_000030.mp4"]
    for name in names:
        make_video(tmp_path / "vids" / "c" / name, num_frames=3)
    (tmp_path / "k.json").write_text(json.dumps({"abc": {}}))
    out = tmp_path / "out"
    with pytest.raises(errors.DuplicateIdError) as caught:
        GulpIngestor(
            KineticsAdapter(str(tmp_path / "k.json"), str(tmp_path / "vids")),
            str(out),
            1,
            1,
        )()
    for name in names:
        assert name in str(caught.value)
