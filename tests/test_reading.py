"""Frames out of data files: every form equals a full read, however it is shared out."""

from __future__ import annotations

import array
import json
import os
import pickle
import platform
import resource
import subprocess
import threading
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.codecs.jpeg import encode_frame
from gulpio2.codecs.options import DecodeOptions
from gulpio2.errors import (
    CorruptFrameError,
    FormatError,
    FrameIndexError,
    ReadRangeError,
)
from gulpio2.removal import compact_directory, delete_items
from gulpio2.testing import make_frames

NUM_FRAMES = 12


def jpeg(frame: Any, quality: int = 90) -> bytes:
    """Encode 4:2:0, as video is stored."""
    return bytes(
        simplejpeg.encode_jpeg(frame, quality=quality, colorsubsampling="420")
        if frame.ndim == 3
        else simplejpeg.encode_jpeg(
            frame[..., None], quality=quality, colorspace="GRAY"
        )
    )


def write_chunk(folder: Path, **items: list[Any]) -> GulpDirectory:
    """Write a chunk of items whose frames are given, as arrays or JPEG bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_, frames in items.items():
            chunk.append(id_, {}, frames)
    return GulpDirectory(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one colour item and one grey one, of frames large enough to share out."""
    path = tmp_path_factory.mktemp("reading")
    rng = np.random.default_rng(3)
    noise = [rng.integers(0, 60, (120, 160, 3), np.uint8) for _ in range(NUM_FRAMES)]
    smooth = make_frames(NUM_FRAMES, 120, 160)
    write_chunk(
        path,
        colour=[
            np.clip(a // 2 + b, 0, 255) for a, b in zip(smooth, noise, strict=True)
        ],
        grey=make_frames(NUM_FRAMES, 120, 160, grey=True),
        small=make_frames(NUM_FRAMES),
    )
    return path


selections = st.one_of(
    st.none(),
    st.integers(-NUM_FRAMES, NUM_FRAMES - 1),
    st.slices(NUM_FRAMES + 3),
    st.lists(st.integers(-NUM_FRAMES, NUM_FRAMES - 1), max_size=20),
    st.lists(st.integers(0, NUM_FRAMES - 1), min_size=1, max_size=20).map(np.array),
    st.lists(st.booleans(), min_size=NUM_FRAMES, max_size=NUM_FRAMES).map(np.array),
    st.builds(range, st.integers(0, NUM_FRAMES), st.integers(0, NUM_FRAMES)),
)


def chosen(frames: list[Any], selection: Any) -> list[Any]:
    """Select from a full read, by Python's own means."""
    if selection is None:
        return frames
    if isinstance(selection, slice):
        return frames[selection]
    if isinstance(selection, int):
        return [frames[selection]]
    if isinstance(selection, np.ndarray) and selection.dtype == bool:
        return [f for f, wanted in zip(frames, selection, strict=True) if wanted]
    return [frames[index] for index in selection]


@pytest.mark.parametrize("id_", ["colour", "grey", "small"])
@given(selection=selections, threads=st.integers(1, 8))
def test_a_selection_equals_a_full_read_and_the_same_selection(
    folder, id_, selection, threads
):
    everything = [simplejpeg_like(b) for b in GulpDirectory(folder).read_jpegs(id_)]
    directory = GulpDirectory(folder, threads=threads)
    expected = chosen(everything, selection)
    frames, _ = directory[id_, selection]
    clip = directory.read_clip(id_, selection)
    assert isinstance(frames, list)
    assert len(clip) == len(frames) == len(expected)
    for frame, in_clip, want in zip(frames, clip, expected, strict=True):
        np.testing.assert_array_equal(frame, want)
        np.testing.assert_array_equal(in_clip.reshape(want.shape), want)


def simplejpeg_like(data: bytes) -> Any:
    """Decode by the codec itself, with the settings of GulpIO2 0.0.4."""
    space = simplejpeg.decode_jpeg_header(data)[2]
    mode = "GRAY" if space == "Gray" else "RGB"
    frame = simplejpeg.decode_jpeg(data, mode, fastdct=True, fastupsample=True)
    return frame[..., 0] if mode == "GRAY" else frame


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an item of which every second frame is too large to be read over."""
    path = tmp_path_factory.mktemp("apart")
    rng = np.random.default_rng(5)
    large = [rng.integers(0, 255, (240, 320, 3), np.uint8) for _ in range(40)]
    small = make_frames(40, 240, 320)
    # With comments, so that their JPEGs differ in length and nothing else.
    frames = [
        with_comment(jpeg(large[k // 2] if k % 2 else small[k // 2]), 2_000 * (k % 3))
        for k in range(80)
    ]
    assert all(len(frame) > 64 * 1024 for frame in frames[1::2])
    write_chunk(path, video=frames)
    return path


def with_comment(data: bytes, length: int) -> bytes:
    """Put a comment of so many bytes into a JPEG."""
    segment = b"\xff\xfe" + (length + 2).to_bytes(2, "big") + bytes(length)
    return data[:2] + segment + data[2:]


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_frames_that_are_apart_equal_those_of_a_full_read(apart, threads, verify):
    directory = GulpDirectory(apart, threads=threads, verify=verify)
    full = np.stack([directory["video", [k]][0][0] for k in range(80)])
    for step in (2, 6, 10, 38):
        chosen = list(range(0, 80, step))
        mixed = [chosen[7 * k % len(chosen)] for k in range(len(chosen))]
        for wanted in (chosen, chosen[::-1], mixed, [*chosen, 1, chosen[0]]):
            np.testing.assert_array_equal(
                directory.read_clip("video", wanted), full[wanted]
            )
            lists, _ = directory["video", wanted]
            np.testing.assert_array_equal(np.stack(lists), full[wanted])
    starts = (0, 2, 4)
    batch = directory.read_clips([("video", range(k, 80, 20)) for k in starts])
    for clip, start in zip(batch, starts, strict=True):
        np.testing.assert_array_equal(clip, full[start::20])


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_frames_that_are_apart_in_a_cut_or_damaged_file_are_refused(
    apart, tmp_path, threads
):
    data, infos = (apart / "data_0.gulp").read_bytes(), entry_infos(apart)
    (tmp_path / "meta_0.gmeta").write_bytes((apart / "meta_0.gmeta").read_bytes())
    (tmp_path / "data_0.gulp").write_bytes(data[: infos[60][0] + 100])
    directory = GulpDirectory(tmp_path, threads=threads)
    with pytest.raises(ReadRangeError, match="it was cut"):
        directory.read_clip("video", range(0, 80, 4))
    assert directory.read_clip("video", range(0, 60, 4)).shape == (15, 240, 320, 3)
    wrong = bytearray(data)
    for frame in (24, 48):
        wrong[infos[frame][0] : infos[frame][0] + 40] = bytes(40)
    (tmp_path / "data_0.gulp").write_bytes(wrong)
    for _ in range(5):
        with pytest.raises(CorruptFrameError, match="frame 24"):
            GulpDirectory(tmp_path, threads=threads).read_clip("video", range(0, 80, 4))


def entry_infos(folder: Path) -> list[list[int]]:
    """Give where the frames of the item are."""
    infos: list[list[int]] = GulpDirectory(folder).merged_meta_dict["video"][
        "frame_info"
    ]
    return [list(info) for info in infos]


def test_each_frame_of_a_list_owns_its_memory_also_a_repeated_one(folder):
    frames, _ = GulpDirectory(folder)["colour", [3, 3, 0]]
    assert all(f.flags.owndata and f.flags.writeable for f in frames)
    frames[0][...] = 0
    assert frames[1].any()


# ------------------------------------------------------------------ out
def test_out_may_be_anything_with_writable_memory(folder):
    directory = GulpDirectory(folder)
    want = directory.read_clip("colour", slice(2, 4))
    flat = bytearray(want.nbytes)
    for out in (flat, memoryview(bytearray(want.nbytes)).cast("B", want.shape)):
        assert directory.read_clip("colour", slice(2, 4), out=out) is out
        assert bytes(memoryview(out).cast("B")) == want.tobytes()


@pytest.mark.torch
def test_out_may_be_a_tensor(folder):
    import torch

    directory = GulpDirectory(folder)
    out = torch.zeros((2, 120, 160, 3), dtype=torch.uint8)
    assert directory.read_clip("colour", [1, 0], out=out) is out
    np.testing.assert_array_equal(out.numpy(), directory.read_clip("colour", [1, 0]))
    batch = torch.zeros((3, 2, 120, 160, 3), dtype=torch.uint8)
    directory.read_clips([("colour", [1, 0])] * 3, out=batch)
    assert torch.equal(batch[2], out)


@pytest.mark.gpu
def test_out_may_be_pinned_memory_that_a_device_copies_from(folder):
    import torch

    directory = GulpDirectory(folder)
    want = directory.read_clip("colour", slice(2, 6))
    out = torch.zeros((4, 120, 160, 3), dtype=torch.uint8, pin_memory=True)
    address = out.data_ptr()
    assert directory.read_clip("colour", slice(2, 6), out=out) is out
    assert (out.is_pinned(), out.data_ptr()) == (True, address)
    on_device = out.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    np.testing.assert_array_equal(on_device.cpu().numpy(), want)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((2, 120, 320, 3), np.uint8)[:, :, ::2], "e, not C-contiguous; it"),
        (b"\0" * (2 * 120 * 160 * 3), "uint8, read-only; it must be writable"),
        (array.array("i", [0] * 10), "int32"),
        ([0, 1], "out is a list"),
    ],
    ids=["strided", "read-only", "numbers", "list"],
)
def test_memory_that_does_not_fit_is_refused(folder, out, message):
    with pytest.raises(FormatError, match=message):
        GulpDirectory(folder).read_clip("colour", [0, 1], out=out)


def test_what_a_decoder_of_ones_own_gives_is_of_one_shape(folder):
    directory = GulpDirectory(folder, jpeg_decoder=bytearray)
    lengths = [len(data) for data in directory.read_jpegs("colour", [0, 1])]
    assert lengths[0] != lengths[1]
    message = (
        rf"frame 1: the jpeg_decoder gave .*\({lengths[1]},\), and \({lengths[0]},\)"
    )
    with pytest.raises(FormatError, match=rf"item 'colour', {message}"):
        directory.read_clip("colour", [0, 1])
    with pytest.raises(FormatError, match=rf"item 'colour', {message}"):
        directory.read_clips([("colour", [0]), ("colour", [1])])
    assert directory.read_clip("colour", [1, 1]).shape == (2, lengths[1])


def test_what_a_decoder_of_ones_own_gives_needs_memory_for_each_frame(folder):
    directory = GulpDirectory(folder, jpeg_decoder=lambda data: np.float32(len(data)))
    shared = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2,), (0,))
    with pytest.raises(FormatError, match="several elements in the same memory"):
        directory.read_clip("colour", [0, 1], out=shared)
    strided = np.zeros(4, np.float32)[::2]
    np.testing.assert_array_equal(
        directory.read_clip("colour", [0, 1], out=strided),
        [len(data) for data in directory.read_jpegs("colour", [0, 1])],
    )


@pytest.mark.parametrize("selection", [[3], []])
def test_a_crop_that_reaches_out_is_refused_with_the_frame(folder, selection):
    directory = GulpDirectory(folder)
    place = f"item 'colour', frame {max([0, *selection])}, in .* at byte [0-9]+: crop"
    for read in (
        lambda: directory.read_clip("colour", selection, crop=(0, 0, 121, 1)),
        lambda: directory.read_clips([("colour", selection)], crop=(0, 0, 121, 1)),
    ):
        with pytest.raises(ValueError, match=place) as raised:
            read()
        assert type(raised.value) is ValueError


# ------------------------------------------------------------------ batches
@given(
    st.lists(
        st.lists(st.integers(0, NUM_FRAMES - 1), min_size=3, max_size=3), min_size=1
    ),
    st.integers(1, 4),
)
def test_a_batch_is_its_clips_one_above_the_other(folder, lists, threads):
    directory = GulpDirectory(folder, threads=threads)
    batch = directory.read_clips([("colour", indices) for indices in lists])
    assert batch.shape == (len(lists), 3, 120, 160, 3)
    for clip, indices in zip(batch, lists, strict=True):
        np.testing.assert_array_equal(clip, directory.read_clip("colour", indices))


def test_a_batch_of_clips_that_differ_is_refused_with_both_named(folder):
    directory = GulpDirectory(folder)
    with pytest.raises(
        FormatError, match="3 frames of item 'colour' and 2 of item 'grey'"
    ):
        directory.read_clips([("colour", [0, 1, 2]), ("grey", [0, 1])])
    with pytest.raises(
        FormatError, match=r"item 'small', frame 0, .* shape \(24, 32, 3\)"
    ):
        directory.read_clips([("colour", [0, 1]), ("small", [0, 1])])
    with pytest.raises(ValueError, match="requests is empty"):
        directory.read_clips([])
    with pytest.raises(TypeError, match="requests is None; give a list of pairs"):
        directory.read_clips(None)  # type: ignore[call-overload]  # as it is meant here


@pytest.mark.parametrize("request_", ["colour", "ab", 3, ("colour", 0, 1), ("colour",)])
def test_a_request_that_is_no_pair_is_named(folder, request_):
    with pytest.raises(TypeError, match="must be a pair of an id and a selection"):
        GulpDirectory(folder).read_clips([request_])


def test_a_batch_of_no_frames_is_empty(folder):
    batch = GulpDirectory(folder).read_clips([("colour", []), ("grey", slice(0, 0))])
    assert batch.shape == (2, 0, 120, 160, 3)


def test_a_chunk_reads_batches_too(folder):
    (chunk,) = GulpDirectory(folder)
    assert chunk.read_clips([("grey", [0]), ("grey", [5])]).shape == (2, 1, 120, 160, 1)


# ------------------------------------------------------------------ own decoders
def test_a_decoder_of_ones_own_is_called_in_order_and_its_results_stacked(folder):
    seen = []

    def decoder(data: bytes) -> Any:
        seen.append((threading.current_thread(), len(data)))
        return np.full((2, 2), len(seen), np.uint8)

    directory = GulpDirectory(folder, jpeg_decoder=decoder)
    clip = directory.read_clip("colour", [4, 2, 4])
    assert clip[:, 0, 0].tolist() == [1, 2, 3]
    assert {thread for thread, _ in seen} == {threading.current_thread()}
    assert [n for _, n in seen] == [
        len(data) for data in directory.read_jpegs("colour", [4, 2, 4])
    ]
    out = np.zeros((2, 1, 2, 2), np.uint8)
    assert directory.read_clips([("grey", [0]), ("small", [0])], out=out) is out
    assert out[:, 0, 0, 0].tolist() == [4, 5]
    assert directory.read_clip("colour", []).shape == (0,)
    with pytest.raises(ValueError, match="go with the package's decoder only"):
        directory.read_clip("colour", scale=2)


# ------------------------------------------------------------------ faults
def test_the_first_bad_frame_is_named_whatever_the_threads(tmp_path):
    frames = [jpeg(f) for f in make_frames(16, 120, 160)]
    directory = write_chunk(tmp_path, item=frames)
    infos = directory.merged_meta_dict["item"]["frame_info"]
    data = bytearray((tmp_path / "data_0.gulp").read_bytes())
    for bad in (9, 5, 12):
        loc, _, length = infos[bad]
        data[loc + 20 : loc + length] = bytes(length - 20)
    (tmp_path / "data_0.gulp").write_bytes(data)
    for threads in range(1, 9):
        directory = GulpDirectory(tmp_path, threads=threads)
        for read in (directory.read_frames, directory.read_clip):
            with pytest.raises(CorruptFrameError, match="item 'item', frame 5, in "):
                read("item")
        assert len(directory.read_clip("item", slice(0, 5))) == 5


def test_a_frame_that_declares_a_giant_is_refused_before_memory_is_set_aside(
    tmp_path, monkeypatch
):
    frames = [jpeg(f) for f in make_frames(3)]
    at = frames[1].index(b"\xff\xc0") + 5
    frames[1] = frames[1][:at] + (60000).to_bytes(2, "big") * 2 + frames[1][at + 4 :]
    with monkeypatch.context() as patch:
        # As one writes who has another limit, or GulpIO2 0.0.4, which has none.
        patch.setattr("gulpio2.codecs.jpeg.MAX_PIXELS", 60000**2)
        directory = write_chunk(tmp_path, item=frames, giant=[frames[1]])
    with pytest.raises(FormatError, match=r"frame 1, .* shape \(60000, 60000, 3\)"):
        directory.read_clip("item")
    for read in (directory.read_clip, directory.read_frames):
        with pytest.raises(CorruptFrameError, match="is above the limit"):
            read("giant")
    with pytest.raises(CorruptFrameError, match=r"frame 1, .* is above the limit"):
        directory.read_frames("item")


def test_a_map_that_asks_for_more_than_the_file_holds_allocates_nothing(tmp_path):
    directory = write_chunk(tmp_path, item=make_frames(2))
    infos = directory.merged_meta_dict["item"]["frame_info"]
    infos[1] = [infos[1][0], 0, 2**50]
    with pytest.raises(ReadRangeError, match="ends at byte"):
        directory.read_frames("item")
    infos[1] = [0, 0, 0]
    for read in (directory.read_clip, directory.read_frames, directory.read_jpegs):
        with pytest.raises(CorruptFrameError, match=r"frame 1, .* the record is empty"):
            read("item")


def test_an_index_outside_is_named_with_its_item(folder):
    with pytest.raises(FrameIndexError, match=f"item 'grey': frame index {NUM_FRAMES}"):
        GulpDirectory(folder).read_clips([("colour", [0]), ("grey", [NUM_FRAMES])])


# ------------------------------------------------------------------ verify
def test_verified_frames_are_those_stored_and_a_changed_byte_is_found(tmp_path):
    frames = [jpeg(f) for f in make_frames(8, 120, 160)]
    directory = write_chunk(tmp_path, item=frames)
    pixels = directory.read_clip("item")
    for verify in (True, "frames", False):
        verified = GulpDirectory(tmp_path, verify=verify)
        np.testing.assert_array_equal(verified.read_clip("item"), pixels)
        assert verified.read_jpegs("item") == frames
    path = tmp_path / "data_0.gulp"
    loc, _, length = directory.merged_meta_dict["item"]["frame_info"][6]
    data = bytearray(path.read_bytes())
    data[loc + length // 2] ^= 0x10  # in the scan: most such flips decode all the same
    path.write_bytes(data)
    message = f"item 'item', frame 6, in .* at byte {loc}: its checksum is "
    settings: list[dict[str, Any]] = [{"verify": True}, {}]
    for threads, options in product((1, 4), settings):
        verified = GulpDirectory(tmp_path, threads=threads, **options)
        view = verified.query("id == 'item'")
        for reader in (verified, view, verified.chunk_objs_lookup[0]):
            for read in (reader.read_frames, reader.read_clip, reader.read_jpegs):
                with pytest.raises(CorruptFrameError, match=message):
                    read("item")
        with pytest.raises(CorruptFrameError, match=message):
            verified.read_clips([("item", [0, 1]), ("item", [5, 6])])
        assert len(verified.read_clip("item", slice(0, 6))) == 6
    unverified = GulpDirectory(tmp_path, verify=False).read_clip("item")
    different = [
        not np.array_equal(*pair) for pair in zip(unverified, pixels, strict=True)
    ]
    assert np.flatnonzero(different).tolist() == [6]


def test_frames_without_checksums_are_read_without_verifying():
    golden = Path(__file__).parent / "golden" / "flow"
    directory = GulpDirectory(golden, verify=True)
    id_ = next(iter(directory.merged_meta_dict))
    assert len(directory[id_][0]) == len(GulpDirectory(golden)[id_][0])


@pytest.mark.parametrize("indexed", [False, True])
def test_entries_that_are_edited_in_memory_are_read_as_they_are_now(tmp_path, indexed):
    jpegs = [jpeg(frame) for frame in make_frames(4, 24, 32)]
    write_chunk(tmp_path, item=jpegs, other=jpegs[:2]).close()
    directory = GulpDirectory(tmp_path, indexed=indexed)
    entries = directory.merged_meta_dict
    entries["item"]["frame_info"].reverse()
    entries["item"]["meta_data"][0]["when"] = {1, 2}  # what JSON cannot hold
    assert directory.read_jpegs("item") == jpegs[::-1]
    assert directory.read_jpegs("item", [0, 3]) == [jpegs[3], jpegs[0]]
    pixels = GulpDirectory(tmp_path).read_clip("item")
    assert np.array_equal(directory.read_clip("item"), pixels[::-1])
    entries["other"]["frame_info"].extend(entries["item"]["frame_info"])
    assert directory.read_jpegs("other") == [*jpegs[:2], *jpegs[::-1]]


@pytest.mark.parametrize("indexed", [False, True])
def test_frames_that_have_changed_places_on_the_disk_are_no_edit(tmp_path, indexed):
    one = jpeg(make_frames(1, 24, 32)[0])
    other = one[:-20] + bytes([one[-20] ^ 1]) + one[-19:]  # of the same length
    write_chunk(tmp_path, item=[one, other]).close()
    path = tmp_path / "data_0.gulp"
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[half:] + data[:half])
    directory = GulpDirectory(tmp_path, indexed=indexed)
    assert directory.verify == "frames"
    with pytest.raises(CorruptFrameError, match=r"frame 0, .* its checksum is "):
        directory.read_jpegs("item")
    unverified = GulpDirectory(tmp_path, verify=False, indexed=indexed)
    assert unverified.read_jpegs("item") == [other, one]


@pytest.mark.parametrize("make", [GulpDirectory, partial(GulpChunk, meta_file_path="")])
def test_what_is_to_be_verified_is_one_of_three(tmp_path: Path, make: Any):
    with pytest.raises(ValueError, match="verify is 'entries'; it must be True, False"):
        make(tmp_path, verify="entries")
    options: dict[str, Any] = {"verify": np.True_}  # as of an array of settings
    assert GulpDirectory(tmp_path, **options).verify is True


# ------------------------------------------------------------------ system calls
def count_reads(call: Any) -> int:
    """Count the read calls of this process, as the kernel does."""

    def reads() -> int:
        fields = dict(
            line.split(": ")
            for line in Path("/proc/self/io").read_text("ascii").splitlines()
        )
        return int(fields["syscr"])

    before = reads()
    between = reads()  # what counting costs
    call()
    return reads() - between - (between - before)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="no /proc/self/io")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_contiguous_clip_is_one_system_call(folder, threads):
    directory = GulpDirectory(folder, threads=threads)
    out = np.empty((8, 120, 160, 3), np.uint8)
    directory.read_clip("colour", slice(0, 8), out=out)  # opens the file
    clip = slice(3, 11)
    assert count_reads(lambda: directory.read_clip("colour", clip, out=out)) == 1
    assert count_reads(lambda: directory["colour", clip]) == 1
    assert count_reads(lambda: directory.read_clip("grey", [9, 2, 3, 2])) <= 2
    batch = [("colour", slice(k, k + 4)) for k in range(5)]
    assert count_reads(lambda: directory.read_clips(batch)) == 5


# ------------------------------------------------------------------ copies
def test_the_settings_travel_to_a_copy(folder):
    directory = GulpDirectory(folder, threads=3, verify=True)
    directory.read_clip("colour")
    copy = pickle.loads(pickle.dumps(directory))
    assert (copy.threads, copy.verify) == (3, True)
    np.testing.assert_array_equal(copy.read_clip("grey"), directory.read_clip("grey"))


@pytest.mark.parametrize(
    ("threads", "error", "message"),
    [
        (0, ValueError, "threads is 0, expected at least 1"),
        (-1, ValueError, "threads is -1, expected at least 1"),
        (2.0, TypeError, "threads is 2.0, expected a whole number"),
        ("2", TypeError, "threads is '2', expected a whole number"),
    ],
)
def test_a_number_of_threads_that_is_none_is_refused(tmp_path, threads, error, message):
    with pytest.raises(error, match=message):
        GulpDirectory(tmp_path, threads=threads)
    with pytest.raises(error, match=message):
        GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta", threads=threads)


def test_many_threads_read_one_directory_at_the_same_time(folder):
    directory = GulpDirectory(folder, threads=2)
    want = directory.read_clip("colour")
    wrong = []

    def read() -> None:
        rng = np.random.default_rng(os.getpid())
        for _ in range(20):
            indices = rng.integers(0, NUM_FRAMES, 6)
            if not np.array_equal(
                directory.read_clip("colour", indices), want[indices]
            ):
                wrong.append(indices)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_stored_jpeg_with_another_header_is_read_by_that_header(tmp_path):
    # Same size, another subsampling and quality: the fast path must not take it.
    frames = make_frames(4, 120, 160)
    stored = [
        jpeg(frames[0]),
        bytes(simplejpeg.encode_jpeg(frames[1], quality=50, colorsubsampling="444")),
        jpeg(frames[2], 40),
        encode_frame(frames[3], _settings()),
    ]
    directory = write_chunk(tmp_path, item=stored)
    for frame, data in zip(directory.read_clip("item"), stored, strict=True):
        np.testing.assert_array_equal(frame, simplejpeg_like(data))
    crop = (10, 20, 50, 60)
    for frame, data in zip(directory.read_clip("item", crop=crop), stored, strict=True):
        np.testing.assert_array_equal(frame, simplejpeg_like(data)[10:60, 20:80])


@pytest.mark.parametrize("at", ["header", "middle", "end"])
def test_damage_does_not_pass_a_crop(tmp_path, at):
    # Which ends before the frame does, so that the codec's own word says nothing.
    frames = make_frames(3, 120, 160)
    directory = write_chunk(tmp_path, item=[jpeg(frame) for frame in frames])
    (_, _), (offset, length) = directory.item("item").record.spans([0, 1])
    place = {"header": 20, "middle": length // 2, "end": length - 3}[at]
    with (tmp_path / "data_0.gulp").open("r+b") as data:
        data.seek(offset + place)
        byte = data.read(1)[0]
        data.seek(offset + place)
        data.write(bytes([byte ^ 0x10]))
    crop = (0, 0, 16, 16)
    for read in (
        lambda: directory.read_clip("item", slice(0, 2), crop=crop),
        lambda: directory.read_clips([("item", [0, 1]), ("item", [0, 2])], crop=crop),
        lambda: directory.item("item").read_clip([1], options=DecodeOptions(crop=crop)),
    ):
        with pytest.raises(
            CorruptFrameError, match=r"frame 1, .*( checksum is | JPEG)"
        ):
            read()
    clip = directory.read_clip("item", [0, 2], crop=crop)
    np.testing.assert_array_equal(clip[1], simplejpeg_like(jpeg(frames[2]))[:16, :16])


def _settings() -> Any:
    from gulpio2.codecs.jpeg import EncoderSettings

    return EncoderSettings(quality=95, subsampling="422")


@pytest.mark.parametrize("verify", ["frames", False])
def test_jpegs_of_an_item_compacted_meanwhile_are_refused_without_checksums(
    tmp_path, verify
):
    folder = tmp_path / "gulped"
    write_chunk(folder, gone=make_frames(2), kept=make_frames(2))
    path = folder / "meta_0.gmeta"
    entries = json.loads(path.read_text())
    for entry in entries.values():  # as GulpIO2 0.0.4 writes it
        del entry["gulp2"]
    path.write_text(json.dumps(entries))
    directory = GulpDirectory(folder, verify=verify)
    assert all(jpeg[:2] == b"\xff\xd8" for jpeg in directory.read_jpegs("gone"))
    delete_items(folder, ["gone"])
    compact_directory(folder)
    directory.close()  # what is open is the file as it was
    with pytest.raises(CorruptFrameError, match=r"'gone', frame 1, .*It is zeros"):
        directory.read_jpegs("gone", [1])
    assert len(directory.read_jpegs("kept")) == 2


# ------------------------------------------------------------------ memory
FAULTS = """\
import ctypes, resource, statistics, sys
from gulpio2 import GulpDirectory

directory = GulpDirectory(sys.argv[1], threads=int(sys.argv[2]))

def read(times):
    for _ in range(times):
        READ

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    read(15)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 15

# Once in a while the heap of a thread grows for good.
found = [faults() for _ in range(9)]
print(statistics.median(found))
print(found, file=sys.stderr, flush=True)
ctypes.CDLL(None).malloc_stats()
"""
READS = {
    "a list of frames": (16, 'frames, _ = directory["clip", :]'),
    "a batch of clips": (
        96,
        'clips = [directory.read_clip("clip", slice(4)) for _ in range(24)]',
    ),
}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is about glibc")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("what", READS)
def test_what_is_let_go_of_together_is_not_new_memory_the_next_time(
    tmp_path, python, what, threads
):
    frames = make_frames(16, 256, 340)
    write_chunk(tmp_path / "gulped", clip=frames)
    num_frames, code = READS[what]
    done = subprocess.run(
        [python, "-c", FAULTS.replace("READ", code), tmp_path / "gulped", str(threads)],
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    num_pages = num_frames * frames[0].nbytes / resource.getpagesize()
    # Else it would be half of them. Some come where other programs have the processors.
    assert float(done.stdout) < 0.05 * num_pages, done.stderr
