"""Defects 8 to 13 of GulpIO2 0.0.4, frames, labels and ids of sources: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor, errors, utils
from gulpio2.adapters import (
    Custom20BNJsonVideoAdapter,
    ImageFolderAdapter,
    ImageListAdapter,
    KineticsAdapter,
    VideoFolderAdapter,
)
from tests.compat.folders import chunk_in, counts_in, ids_in, save_image

if TYPE_CHECKING:
    from pathlib import Path


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
def test_defect_08_pil_images_of_every_mode_are_stored_as_they_look(tmp_path, mode):
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
        image = colour.quantize(64, dither=0) if mode == "P" else colour.convert(mode)
        expected = np.asarray(image.convert("RGB"))
    assert near(stored(tmp_path, image), expected, mean=8.0 if mode == "1" else 3.0)


@pytest.mark.parametrize("mode", ["P", "RGBA", "LA", "1", "I;16", "CMYK"])
def test_defect_08_image_files_of_every_mode_are_ingested(tmp_path, mode):
    pil = pytest.importorskip("PIL.Image")
    rows, columns = np.mgrid[0:32, 0:48]
    smooth = np.stack([rows * 4, columns * 3, 200 - rows * 2], -1).astype(np.uint8)
    if mode == "I;16":
        image = pil.fromarray(smooth[..., 0].astype(np.uint16) * 257)
    elif mode == "P":
        image = pil.fromarray(smooth).quantize(64, dither=0)
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
    tmp_path, frame, view, kind
):
    source = frame(1) if kind == "colour" else frame(1)[..., 0]
    image = view(source)
    both = [
        utils.img_to_jpeg_bytes(image),
        utils.img_to_jpeg_bytes(np.ascontiguousarray(image)),
    ]
    assert both[0] == both[1]
    assert stored(tmp_path, image).shape == image.shape


def test_defect_08_a_single_channel_is_grey(tmp_path, grey):
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
def test_defect_08_what_is_no_frame_is_refused_with_its_shape_or_type(tmp_path, image):
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


def test_defect_08_a_cmyk_jpeg_decodes_to_rgb(shared_images):
    pil = pytest.importorskip("PIL.Image")
    data = (shared_images / "cmyk.jpg").read_bytes()
    decoded = utils.jpeg_bytes_to_img(data)
    assert decoded.shape[2] == 3
    assert decoded.dtype == np.uint8
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


def test_defect_09_extending_keeps_the_label_indices_that_are_stored(tmp_path, frame):
    out = tmp_path / "out"
    for name, labels in (("one", ("a", "b")), ("two", ("z", "b2"))):
        source = image_folder(tmp_path / name, frame, *labels)
        GulpIngestor(ImageFolderAdapter(f"{source}/", str(out)), str(out), 1, 1)()
    assert labels_of(out) == {"a": 0, "b": 1, "b2": 2, "z": 3}
    for id_ in ids_in(out):
        _, meta = GulpDirectory(out)[id_]
        assert labels_of(out)[meta["label"]] == meta["idx"]


def test_defect_09_the_next_index_is_past_the_largest(tmp_path, frame, make_video):
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
    tmp_path, frame
):
    out = tmp_path / "out"
    source = image_folder(tmp_path / "images", frame, "a", "b")
    (source / "b" / "b.png").write_bytes(b"no image")
    with pytest.raises(errors.GulpError, match=r"b\.png"):
        GulpIngestor(ImageFolderAdapter(f"{source}/", str(out)), str(out), 1, 2)()
    assert labels_of(out)["a"] == 0
    assert ids_in(out) == ["a-a.png"]


def test_defect_09_iterating_over_an_adapter_writes_no_file(tmp_path, frame):
    source = image_folder(tmp_path / "images", frame, "a", "b")
    adapter = ImageFolderAdapter(f"{source}/", str(tmp_path / "out"))
    before = labels_of(tmp_path / "out") if (tmp_path / "out").exists() else None
    list(adapter.iter_data(slice(0, 1)))
    list(adapter.iter_data(slice(1, 2)))
    after = labels_of(tmp_path / "out") if (tmp_path / "out").exists() else None
    assert after == before


# ------------------------------------------------------------------ 10
def test_defect_10_an_image_list_can_be_iterated_again(tmp_path, frame):
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
def test_defect_11_every_extension_is_found_by_default(tmp_path, make_video, frame):
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
    tmp_path, frame, make_video, spelled, kind
):
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
def test_defect_13_ids_that_were_unambiguous_are_kept(tmp_path, frame):
    save_image(tmp_path / "a" / "x0.jpg", frame())
    save_image(tmp_path / "x1.jpg", frame())
    (tmp_path / "list.txt").write_text("a/x0.jpg,b\nx1.jpg,d\n")
    adapter = ImageListAdapter(
        str(tmp_path / "list.txt"), str(tmp_path / "out"), root_folder=str(tmp_path)
    )
    assert [item["id"] for item in adapter.iter_data()] == ["x0.jpg", "d-x1.jpg"]


def test_defect_13_colliding_images_of_a_list_fail_with_both_named(tmp_path, frame):
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


def test_defect_13_colliding_images_of_a_folder_fail_with_both_named(tmp_path, frame):
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
    tmp_path, make_video, name, times
):
    make_video(tmp_path / "vids" / "c" / f"{name}_{times}.mp4", num_frames=3)
    (tmp_path / "k.json").write_text(json.dumps({name: {"subset": "training"}}))
    out = tmp_path / "out"
    adapter = KineticsAdapter(str(tmp_path / "k.json"), str(tmp_path / "vids"))
    GulpIngestor(adapter, str(out), 1, 1)()
    assert counts_in(out) == {name: 3}
    assert GulpDirectory(out)[name][1]["subset"] == "training"


def test_defect_13_two_clips_of_one_kinetics_video_fail_with_both_named(
    tmp_path, make_video
):
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
