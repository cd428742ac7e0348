"""Reading one chunk: clips as one array, decoders of one's own, damaged files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.errors import (
    CorruptFrameError,
    FormatError,
    MetaFileError,
    ReadRangeError,
)
from gulpio2.testing import make_frames
from tests.chunks import decoded_frames, make_chunk, make_three_items

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = EncoderSettings()


@pytest.fixture
def frames() -> list[np.ndarray]:
    """Give the frames of item "a" as they come out of the decoder."""
    return decoded_frames(6)


@pytest.fixture
def chunk(tmp_path: Path) -> GulpChunk:
    """Give a chunk of three items: "a", "7" (grey) and "empty"."""
    return make_three_items(tmp_path)


# --- one array ----------------------------------------------------------------------


def test_a_clip_is_one_array_of_the_frames(chunk, frames):
    clip = chunk.read_clip("a", slice(1, 4))
    assert (clip.shape, clip.dtype.name) == ((3, 24, 32, 3), "uint8")
    assert np.array_equal(clip, np.stack(frames[1:4]))
    assert np.array_equal(chunk.read_clip("a"), np.stack(frames))
    assert np.array_equal(chunk.read_clip("a", [5, 5, 0]), np.stack(frames)[[5, 5, 0]])


def test_a_grey_clip_has_one_channel(chunk):
    clip = chunk.read_clip("7")
    assert clip.shape == (2, 24, 32, 1)
    assert np.array_equal(clip[..., 0], np.stack(chunk["7"][0]))


def test_a_clip_of_an_item_without_frames_has_the_channels_that_were_asked_for(chunk):
    assert chunk.read_clip("empty").shape == (0, 0, 0, 3)
    assert chunk.read_clip("empty", colorspace="gray").shape == (0, 0, 0, 1)


def test_a_clip_is_decoded_into_the_callers_array(chunk, frames):
    out = np.zeros((2, 24, 32, 3), np.uint8)
    assert chunk.read_clip("a", [4, 0], out=out) is out
    assert np.array_equal(out, np.stack([frames[4], frames[0]]))
    grey = np.zeros((2, 24, 32, 1), np.uint8)
    assert chunk.read_clip("7", out=grey) is grey
    assert np.array_equal(grey[..., 0], np.stack(chunk["7"][0]))


def test_an_empty_clip_has_the_shape_of_its_frames(chunk):
    assert chunk.read_clip("a", []).shape == (0, 24, 32, 3)
    assert chunk.read_clip("7", slice(0, 0)).shape == (0, 24, 32, 1)
    assert chunk.read_clip("empty").shape == (0, 0, 0, 3)
    out = np.empty((0, 24, 32, 3), np.uint8)
    assert chunk.read_clip("a", [], out=out) is out
    assert chunk.read_clip("a", [], out=bytearray()) == b""
    batch = np.empty((2, 0, 24, 32, 3), np.uint8)
    assert chunk.read_clips([("a", []), ("a", [])], out=batch) is batch


@pytest.mark.parametrize(
    "out",
    [
        np.empty((4, 24, 32, 3), np.uint8),
        np.empty((0, 24, 32, 1), np.uint8),
        np.empty((0, 24, 32, 3), np.float32),
        np.empty((9, 9), np.uint8),
    ],
    ids=lambda out: f"{out.shape} {out.dtype}",
)
def test_an_array_of_frames_is_not_given_back_for_none(chunk, out):
    for read in (
        lambda: chunk.read_clip("a", slice(90, 94), out=out),
        lambda: chunk.read_clips([("a", []), ("a", [])], out=out),
    ):
        with pytest.raises(
            FormatError, match=r"3\) and type uint8 do not fit into out"
        ):
            read()


@pytest.mark.parametrize(
    "out",
    [
        np.empty((3, 24, 32, 3), np.uint8),
        np.empty((2, 24, 32, 1), np.uint8),
        np.empty((2, 24, 32), np.uint8),
        np.empty((2, 32, 24, 3), np.uint8),
        np.empty((2, 24, 32, 3), np.int8),
        np.empty((2, 24, 32, 6), np.uint8)[..., ::2],
        np.empty((3, 2, 24, 32), np.uint8).transpose(1, 2, 3, 0),
    ],
    ids=lambda out: f"{out.shape} {out.dtype} {out.strides}",
)
def test_an_array_that_does_not_fit_is_refused_with_both_shapes(chunk, out):
    message = r"\(2, 24, 32, 3\) do(es)? not fit into out, which is \("
    with pytest.raises(FormatError, match=message):
        chunk.read_clip("a", slice(0, 2), out=out)


@pytest.mark.parametrize(
    "odd",
    [
        make_frames(1, 24, 30)[0],
        make_frames(1, 30, 32)[0],
        make_frames(1, grey=True)[0],
    ],
    ids=["width", "height", "grey"],
)
def test_frames_of_several_shapes_are_a_list_and_no_clip(tmp_path, odd):
    chunk = make_chunk(tmp_path, {"mixed": ({}, [*make_frames(2), odd])})
    assert [frame.shape for frame in chunk["mixed"][0]][2] == odd.shape
    shape = re.escape(str(odd.shape))
    message = rf"item 'mixed', frame 2, in .* shape {shape} .* read_frames gives"
    with pytest.raises(FormatError, match=message):
        chunk.read_clip("mixed")
    assert chunk.read_clip("mixed", slice(0, 2)).shape == (2, 24, 32, 3)
    # Whichever comes first: a grey one does not take their colours from the others.
    with pytest.raises(FormatError, match=r"item 'mixed', frame [01], .*read_frames"):
        chunk.read_clip("mixed", [2, 1, 0])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_grey_and_coloured_frames_are_a_clip_where_one_kind_is_asked_for(
    tmp_path, order
):
    frames = [*make_frames(2), make_frames(1, grey=True)[0]]
    chunk = make_chunk(tmp_path, {"mixed": ({}, frames)})
    alone = chunk["mixed"][0]
    coloured = chunk.read_clip("mixed", order, colorspace="rgb")
    for index, frame in zip(order, coloured, strict=True):
        found = alone[index] if index < 2 else np.stack([alone[2]] * 3, axis=-1)
        np.testing.assert_array_equal(frame, found)
    grey = chunk.read_clip("mixed", order, colorspace="gray")
    assert grey.shape == (3, 24, 32, 1)
    np.testing.assert_array_equal(grey[order.index(2), ..., 0], alone[2])


# --- decoders -----------------------------------------------------------------------


def test_a_decoder_of_ones_own_is_called_once_per_frame_in_order(tmp_path):
    calls: list[bytes] = []

    def decoder(jpeg: bytes) -> str:
        calls.append(jpeg)
        return f"frame {len(calls)}"

    frames = [encode_frame(frame, SETTINGS) for frame in make_frames(3)]
    chunk = make_chunk(tmp_path, {"a": ({}, frames)}, jpeg_decoder=decoder)
    got, _ = chunk["a", [2, 0, 2]]
    assert got == ["frame 1", "frame 2", "frame 3"]
    assert calls == [frames[2], frames[0], frames[2]]
    assert all(type(jpeg) is bytes for jpeg in calls)


def test_a_clip_by_a_decoder_of_ones_own_is_its_results_stacked(tmp_path):
    def decoder(jpeg: bytes) -> np.ndarray:
        return decode_frame(jpeg)[::2, ::2, 0].astype(np.float32)

    chunk = make_chunk(tmp_path, {"a": ({}, make_frames(3))}, jpeg_decoder=decoder)
    clip = chunk.read_clip("a")
    assert (clip.shape, clip.dtype.name) == ((3, 12, 16), "float32")
    out = np.zeros((3, 12, 16), np.float32)
    assert chunk.read_clip("a", out=out) is out
    assert np.array_equal(out, clip)
    none = np.zeros((0, 12, 16), np.float32)
    assert chunk.read_clip("a", [], out=none) is none
    # Nothing is cast, and no frame spread over several.
    for kind, selection in ((np.uint8, [0, 1, 2]), (np.float32, [0]), (np.float32, [])):
        with pytest.raises(FormatError, match="do not fit into out"):
            chunk.read_clip("a", selection, out=np.zeros((3, 12, 16), kind))


def test_a_decoder_of_ones_own_fills_any_memory_that_a_clip_may_go_into(tmp_path):
    chunk = make_chunk(
        tmp_path, {"a": ({}, make_frames(3))}, jpeg_decoder=lambda j: decode_frame(j)
    )
    want = np.stack(decoded_frames(3))
    size, shape = want.size, want.shape
    strided = np.zeros((6, *shape[1:]), np.uint8)
    outs: list[tuple[Any, Callable[[Any], Any]]] = [
        (np.zeros(size, np.uint8), lambda out: out),
        (bytearray(size), lambda out: np.frombuffer(out, np.uint8)),
        (memoryview(bytearray(size)).cast("B", list(shape)), np.asarray),
        (strided[::2], lambda out: out),
    ]
    for out, look in outs:
        assert chunk.read_clip("a", out=out) is out
        assert np.array_equal(look(out).reshape(shape), want)
        with pytest.raises(FormatError, match="do not fit into out"):
            chunk.read_clip("a", [0, 1], out=out)
    wrong = [want.tolist(), np.broadcast_to(np.uint8(0), shape), bytes(size)]
    for no in wrong:
        with pytest.raises(FormatError, match=r"out is a list|read-only"):
            chunk.read_clip("a", out=no)
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(shape, dtype=torch.uint8)
    assert chunk.read_clip("a", out=tensor) is tensor
    assert np.array_equal(tensor.numpy(), want)
    for no in (tensor.to("meta"), tensor.untyped_storage()):
        with pytest.raises(FormatError, match=r"out is an? "):
            chunk.read_clip("a", out=no)


def test_an_error_of_a_decoder_of_ones_own_comes_through(tmp_path):
    chunk = make_chunk(tmp_path, {"a": ({}, make_frames(1))}, jpeg_decoder=int)
    with pytest.raises(ValueError, match="invalid literal"):
        chunk["a"]


def test_frames_are_given_as_they_are_stored(tmp_path):
    jpegs = [encode_frame(frame, SETTINGS) for frame in make_frames(3)]
    chunk = make_chunk(tmp_path, {"a": ({}, jpegs)})
    assert chunk.read_jpegs("a") == jpegs
    assert chunk.read_jpegs("a", -1) == jpegs[-1:]


# --- damage -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verify", "what"),
    [("frames", "its checksum is .* It is zeros"), (False, "not a readable JPEG")],
)
def test_a_frame_that_is_no_jpeg_is_named_with_its_place(chunk, tmp_path, verify, what):
    chunk.verify = verify
    path = tmp_path / "data_0.gulp"
    loc, _, length = chunk.meta_dict["a"]["frame_info"][2]
    data = bytearray(path.read_bytes())
    data[loc : loc + length] = b"\0" * length
    path.write_bytes(data)
    message = rf"item 'a', frame 2, in {path} at byte {loc}: {what}"
    for read in (chunk.read_frames, chunk.read_clip):
        with pytest.raises(CorruptFrameError, match=message):
            read("a", [1, 2, 3])
    assert len(chunk["a", [0, 1, 3]][0]) == 3


def test_a_cut_data_file_is_named_and_earlier_frames_are_read(chunk, tmp_path):
    path = tmp_path / "data_0.gulp"
    loc = chunk.meta_dict["a"]["frame_info"][5][0]
    os.truncate(path, loc + 10)
    with pytest.raises(ReadRangeError, match=rf"{path} ends at byte {loc + 10}"):
        chunk.read_frames("a")
    assert len(chunk.read_frames("a", slice(0, 5))[0]) == 5


def test_a_missing_data_file_is_a_file_not_found(chunk, tmp_path):
    (tmp_path / "data_0.gulp").unlink()
    with pytest.raises(FileNotFoundError):
        chunk["a"]
    with pytest.raises(FileNotFoundError), chunk.open("rb"):
        pytest.fail("opened nothing")
    assert chunk["a", []][0] == []


def test_a_map_that_is_damaged_is_refused_on_construction(chunk, tmp_path):
    path = tmp_path / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"frame_info"', b'"frame_infO"', 1))
    with pytest.raises(MetaFileError, match=rf"{path}: item 'a': has no list"):
        GulpChunk(str(tmp_path / "data_0.gulp"), str(path))
    path.write_bytes(b"[]")
    with pytest.raises(MetaFileError, match=rf"{path}: holds no object"):
        GulpChunk(str(tmp_path / "data_0.gulp"), str(path))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cut_data_file_is_told_with_the_item_and_a_frame(tmp_path, threads):
    from gulpio2 import GulpDirectory
    from gulpio2.testing import make_gulp_directory
    from gulpio2.torch.stored import locate_clip

    make_gulp_directory(tmp_path, num_items=1, num_frames=8).close()
    path = tmp_path / "data_0.gulp"
    data = path.read_bytes()
    with GulpDirectory(tmp_path, threads=threads) as directory:
        loc = directory.merged_meta_dict["item0"]["frame_info"][5][0]
        path.write_bytes(data[: loc + 10])
        told = rf"item 'item0', frame .*: {path} ends at byte {loc + 10}, but"
        for read in (directory.read_frames, directory.read_clip, directory.read_jpegs):
            with pytest.raises(ReadRangeError, match=told):
                read("item0")
            with pytest.raises(ReadRangeError, match=r"item 'item0', frame 6, in "):
                read("item0", [6])
        clip = locate_clip(directory, "item0", range(8), range(8))
        assert clip is not None
        with pytest.raises(ReadRangeError, match=rf"item 'item0': {path} ends at byte"):
            clip.item.read_into(0, len(data), bytearray(len(data)))
