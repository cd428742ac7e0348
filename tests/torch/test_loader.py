"""What the loader gives: clips, targets, sizes, memory, and how it is refused."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from time import sleep
from typing import Any

import cv2
import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.chunk import GulpChunk
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.errors import (
    EmptySampleError,
    FormatError,
    FrameIndexError,
    GulpWarning,
)
from gulpio2.order import PlainOrder, RepeatedOrder
from gulpio2.sampling import (
    ClipIndices,
    apply_border,
    dense_windows,
    sample_segments,
    sample_window,
    spaced_windows,
)
from gulpio2.sampling.clips import all_valid
from gulpio2.testing import make_frames
from gulpio2.torch import (
    CenterCrop,
    ConcatDataset,
    GulpClipDataset,
    GulpDataset,
    GulpImageDataset,
    GulpLoader,
    RandomResizedCrop,
    RepeatDataset,
    ResumableSampler,
    default_collate,
    profile,
)

window = partial(sample_window, clip_length=4)
numpy_loader = partial(GulpLoader, output="numpy", threads=2)


@pytest.fixture
def clips(make_directory):
    """Make a dataset of six items of 8 frames."""
    path = make_directory(counts=(8,) * 6)
    return GulpClipDataset(path, window, target="idx")


@pytest.fixture
def mixed_sizes(tmp_path):
    """Make a directory of items of several sizes, one of them grey."""
    folder = tmp_path / "sizes"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, (height, width) in enumerate(
            [(48, 64), (64, 48), (200, 300), (20, 30), (256, 256)]
        ):
            frames: Any = make_frames(6, height, width, seed=number)
            if number == 3:
                frames = [frame[..., 0] for frame in frames]
            chunk.append(f"v{number}", {"idx": number}, frames)
    return folder


def copies(loader):
    """Give all batches of an epoch, the clips copied out of the loader's memory."""
    return [(np.array(batch.clips), batch) for batch in loader]


def test_clips_are_those_that_the_dataset_gives(clips, item_numbers, frame_numbers):
    found = copies(numpy_loader(clips, batch_size=4, seed=3))
    assert [pixels.shape for pixels, _ in found] == [(4, 4, 8, 12, 3), (2, 4, 8, 12, 3)]
    places = list(ResumableSampler(clips, seed=3))
    for (pixels, batch), part in zip(found, (places[:4], places[4:]), strict=True):
        assert batch.indices.tolist() == part
        assert batch.seeds.tolist() == [place.seed for place in part]
        shown = np.moveaxis(pixels, -1, -3)
        assert item_numbers(shown) == [[index] * 4 for index in part]
        assert frame_numbers(shown) == batch.frame_indices.tolist()
        assert batch.valid.all()
        assert batch.targets.tolist() == [index % 2 for index in part]
        assert [info["id"] for info in batch.infos] == [f"clip{i}" for i in part]


@pytest.mark.torch
def test_a_data_loader_gives_the_same_batches(clips):
    from torch.utils.data import DataLoader

    other = DataLoader(
        clips,
        batch_size=4,
        sampler=ResumableSampler(clips, seed=3),
        collate_fn=default_collate,
    )
    loader = GulpLoader(clips, batch_size=4, seed=3, layout="TCHW")
    for batch, (pixels, targets) in zip(loader, other, strict=True):
        assert batch.clips.dtype == pixels.dtype
        assert batch.clips.equal(pixels)
        assert batch.targets.equal(targets)
        assert batch.targets.dtype == targets.dtype


@pytest.mark.torch
@pytest.mark.parametrize(
    ("layout", "shape"),
    [("THWC", (4, 4, 8, 12, 3)), ("TCHW", (4, 4, 3, 8, 12))],
)
def test_both_layouts_are_views_of_the_same_memory(clips, layout, shape):
    (batch,) = GulpLoader(clips, batch_size=4, layout=layout, drop_last=True)
    assert tuple(batch.clips.shape) == shape
    channels_last = batch.clips if layout == "THWC" else batch.clips.movedim(-3, -1)
    assert channels_last.is_contiguous()
    arrays = GulpLoader(clips, batch_size=4, layout=layout, output="numpy")
    assert next(iter(arrays)).clips.shape == shape


def test_items_of_all_sizes_come_to_one(mixed_sizes):
    dataset = GulpClipDataset(mixed_sizes, window, target="idx", test_mode=True)
    loader = numpy_loader(dataset, batch_size=5, shuffle=False, view=CenterCrop(32))
    ((pixels, batch),) = copies(loader)
    assert pixels.shape == (5, 4, 32, 32, 3)
    directory = GulpDirectory(mixed_sizes)
    for number in range(5):
        whole = directory.read_clip(f"v{number}", batch.frame_indices[number].tolist())
        height, width = whole.shape[1:3]
        edge = min(height, width)
        top, left = (height - edge) // 2, (width - edge) // 2
        for shown, frame in zip(pixels[number], whole, strict=True):
            part = np.ascontiguousarray(frame[top : top + edge, left : left + edge])
            wanted = cv2.resize(part, (32, 32), interpolation=cv2.INTER_AREA)
            if edge < 32:
                wanted = cv2.resize(part, (32, 32), interpolation=cv2.INTER_LINEAR)
            wanted = np.broadcast_to(wanted.reshape(32, 32, -1), (32, 32, 3))
            assert np.abs(shown.astype(int) - wanted).mean() < 6


def test_random_regions_are_mirrored_and_those_of_the_sample(mixed_sizes):
    dataset = GulpClipDataset(mixed_sizes, window).get_subset([2])
    mirrored, plain = (
        copies(
            numpy_loader(
                dataset,
                batch_size=1,
                view=RandomResizedCrop(40, area=(0.9, 1), mirrored=how),
            )
        )[0][0]
        for how in (1.0, 0.0)
    )
    assert np.array_equal(mirrored[..., ::-1, :], plain)
    assert not np.array_equal(mirrored, plain)


def test_items_of_several_sizes_need_a_view(mixed_sizes):
    dataset = GulpClipDataset(mixed_sizes, window)
    loader = numpy_loader(dataset, batch_size=5, shuffle=False)
    with pytest.raises(FormatError, match=r"item 'v1' .*64x48.*48x64.*view=CenterCrop"):
        list(loader)


@pytest.mark.parametrize("view", [None, CenterCrop(16)])
@pytest.mark.parametrize("on_corrupt", ["raise", "skip"])
def test_a_clip_of_two_sizes_is_told_with_its_frames(tmp_path, view, on_corrupt):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("v0", {"a": 1}, [*make_frames(5, 48, 64), *make_frames(3, 48, 36)])
    dataset = GulpClipDataset(tmp_path, lambda _, rng: all_valid(np.arange(3, 7)))
    loader = numpy_loader(dataset, batch_size=1, view=view, on_corrupt=on_corrupt)
    text = (
        r"item 'v0' of .*, frame 5: a frame of shape \(48, 36\) is not of the shape "
        r"\(48, 64\) of the first, which is frame 3\. .*with any "
        r"on_corrupt.* Leave the item out"
    )
    with pytest.raises(FormatError, match=text):
        list(loader)


def test_grey_is_the_luma_of_all_items(mixed_sizes):
    dataset = GulpClipDataset(mixed_sizes, window, test_mode=True)
    view = CenterCrop(24)
    arguments: dict[str, Any] = {"batch_size": 5, "view": view, "shuffle": False}
    ((grey, _),) = copies(numpy_loader(dataset, colorspace="gray", **arguments))
    ((rgb, _),) = copies(numpy_loader(dataset, **arguments))
    assert grey.shape == (5, 4, 24, 24, 1)
    luma = rgb @ np.array([0.299, 0.587, 0.114])
    assert np.abs(grey[..., 0] - luma).mean() < 2
    assert (rgb[3, ..., 0] == rgb[3, ..., 1]).all()


class OwnReader(GulpDirectory):
    """Has a way of its own to its bytes."""

    def read_jpegs(self, id_, slice_=None):
        """Give the bytes of frames."""
        return super().read_jpegs(id_, slice_)


@pytest.mark.parametrize(
    "open_directory",
    [GulpDirectory, partial(GulpDirectory, verify=True), OwnReader],
    ids=["plain", "verified", "own reader"],
)
def test_frames_that_come_again_or_are_missing(
    make_directory, frame_numbers, open_directory
):
    directory = open_directory(make_directory(counts=(3, 3)))
    sampled: dict[str, Any] = {
        border: partial(sample_window, clip_length=5, border=border)
        for border in ("mask", "repeat", "clamp", "loop")
    }
    # One before the first and one behind the last are none of the item's.
    sampled["around"] = lambda count, rng: apply_border(
        np.array([-1, 2, 2, 0, count]), count, "mask"
    )
    sampled["segments"] = partial(sample_segments, num_segments=6)
    for sampler in sampled.values():
        dataset = GulpClipDataset(directory, sampler, test_mode=True)
        ((pixels, batch),) = copies(numpy_loader(dataset, batch_size=2))
        numbers = frame_numbers(np.moveaxis(pixels, -1, -3))
        for shown, chosen in zip(numbers, batch.frame_indices.tolist(), strict=True):
            assert shown == [max(index, 0) for index in chosen]
        absent = batch.frame_indices < 0
        assert not (absent & batch.valid).any()
        assert (pixels[absent] == 0).all()
    assert sorted(set(batch.frame_indices[0].tolist())) == [0, 1, 2]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    "wanted", [[3], [1, 2, 3], [0, 2, 4], [3, 1], [0, 3, 1, 9]], ids=str
)
def test_a_frame_that_an_item_does_not_have_is_never_one_of_the_next_item(
    make_directory, wanted, indexed
):
    directory = GulpDirectory(make_directory(counts=(3, 8)), indexed=indexed)
    dataset = GulpClipDataset(
        directory, lambda count, rng: all_valid(np.array(wanted)), indices=[0]
    )
    loader = numpy_loader(dataset, batch_size=1)
    with pytest.raises(FrameIndexError, match=r"'clip0': frame .* item of 3 frames"):
        list(loader)


def test_a_sampler_may_change_what_a_sampler_of_the_package_chose(
    make_directory, frame_numbers
):
    def shifted(count, rng):
        clip = sample_window(count, 4, rng=rng)
        clip.indices[:2] = [7, 6]
        clip.valid[3] = False
        return clip

    dataset = GulpClipDataset(make_directory(counts=(8, 8)), shifted, test_mode=True)
    ((pixels, batch),) = copies(numpy_loader(dataset, batch_size=2))
    assert batch.frame_indices.tolist() == [[7, 6, 4, 5]] * 2
    assert batch.valid.tolist() == [[True, True, True, False]] * 2
    assert frame_numbers(np.moveaxis(pixels, -1, -3)) == [[7, 6, 4, 5]] * 2


@pytest.mark.torch
@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("kind", ["u1", "u8", "i4", ">i8"])
def test_frame_indices_are_of_one_kind(make_directory, kind, output):
    def last(num_frames, *, rng):
        return ClipIndices(np.array([num_frames - 1], kind), np.ones(1, np.bool_))

    dataset = GulpClipDataset(make_directory("other", counts=(8, 5)), last)
    loader = GulpLoader(dataset, batch_size=2, shuffle=False, output=output)
    found = next(iter(loader)).frame_indices
    assert str(found.dtype).removeprefix("torch.") == "int64"
    assert found.tolist() == [[7], [4]]


def test_several_clips_of_an_item_and_single_images(clips, make_directory):
    path = make_directory("other", counts=(8, 8))
    views = partial(spaced_windows, num_windows=3, clip_length=4)
    batch = next(iter(numpy_loader(GulpClipDataset(path, views), batch_size=2)))
    assert batch.clips.shape == (2, 3, 4, 8, 12, 3)
    assert batch.valid.shape == (2, 3, 4)
    images = GulpImageDataset(path, target=lambda info: {"of": info["id"]})
    batch = next(iter(numpy_loader(images, batch_size=2, shuffle=False)))
    assert batch.clips.shape == (2, 8, 12, 3)
    assert batch.targets == {"of": ["other0", "other1"]}


@pytest.mark.torch
@pytest.mark.parametrize("key", ["boxes", "facts", "number"])
def test_targets_that_cannot_be_stacked_are_a_list(make_directory, key):
    metas: list[dict[str, Any]] = [
        {"boxes": [1, 2], "facts": {"a": 1}, "number": 2**70},
        {"boxes": None, "facts": {"b": 1}, "number": 1},
    ]
    path = make_directory("other", counts=(8, 8), metas=metas)
    dataset = GulpClipDataset(path, window, target=key)
    for output in ("torch", "numpy"):
        loader = GulpLoader(dataset, batch_size=2, shuffle=False, output=output)
        assert next(iter(loader)).targets == [meta[key] for meta in metas]


@pytest.mark.torch
@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_targets_that_are_lists_lie_by_samples_in_every_batch(make_directory, output):
    rows = [[1, 2], [3, 4], [5, 6], [7]]
    path = make_directory("other", counts=(8,) * 4, metas=[{"of": row} for row in rows])
    dataset = GulpClipDataset(path, window, target="of")
    loader = GulpLoader(dataset, batch_size=2, shuffle=False, output=output)
    first, second = [batch.targets for batch in loader]
    assert (first.tolist(), second) == (rows[:2], rows[2:])
    assert type(first).__name__ == ("Tensor" if output == "torch" else "ndarray")


@pytest.mark.torch
def test_a_target_that_is_read_backwards_is_stacked(make_directory):
    path = make_directory("other", counts=(8, 8))
    dataset = GulpClipDataset(path, window, target=lambda _: np.array([1, 2])[::-1])
    loader = GulpLoader(dataset, batch_size=2, shuffle=False)
    assert next(iter(loader)).targets.tolist() == [[2, 1], [2, 1]]


def test_a_sampler_must_choose_as_many_frames_of_each(make_directory):
    path = make_directory(counts=(8, 3))
    dataset = GulpClipDataset(path, lambda count, rng: sample_window(count, count))
    loader = numpy_loader(dataset, batch_size=2, shuffle=False)
    with pytest.raises(ValueError, match=r"shape \(3,\) of item 'clip1', and \(8,\)"):
        list(loader)


def test_wrappers_are_looked_through(clips, make_directory, item_numbers):
    other = GulpClipDataset(make_directory("other", counts=(8, 8)), window)
    joined = ConcatDataset([RepeatDataset(clips, 2), other])
    loader = numpy_loader(joined, batch_size=14, shuffle=False)
    ((pixels, batch),) = copies(loader)
    assert batch.indices.tolist() == list(range(14))
    items = [*range(6), *range(6), 0, 1]
    assert item_numbers(np.moveaxis(pixels, -1, -3)) == [[k] * 4 for k in items]
    assert batch.infos[-1]["id"] == "other1"
    assert batch.targets[-1] is None


def test_a_reader_that_only_decodes_is_read_from(clips, mixed_sizes):
    class Reader:
        """Has no more than the protocol asks for."""

        def __init__(self, path):
            self.directory = GulpDirectory(path)
            self.merged_meta_dict = self.directory.merged_meta_dict

        def read_clip(self, id_, slice_=None):
            return self.directory.read_clip(id_, slice_)

    view = RandomResizedCrop(24, area=(0.9, 1.0))
    arguments: dict[str, Any] = {"batch_size": 5, "view": view, "seed": 2}
    plain = GulpClipDataset(Reader(mixed_sizes), window)
    ((found, _),) = copies(numpy_loader(plain, **arguments))
    stored = GulpClipDataset(mixed_sizes, window)
    ((wanted, _),) = copies(numpy_loader(stored, **arguments))
    # Not the same pixels: the codec halves large frames itself where it can.
    assert np.abs(found.astype(int) - wanted).mean() < 6


class ReaderOf:
    """Gives what it was made of, for whatever is asked."""

    def __init__(self, given):
        self.given = given
        self.merged_meta_dict = {"a": {"frame_info": [[0, 0, 4]] * 9, "meta_data": []}}

    def read_clip(self, id_, slice_=None):
        return self.given[: len(slice_)]


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((3, 8, 8, 3), np.uint8),
        np.zeros((4, 8, 8), np.uint8),
        np.zeros((4, 8, 8, 3)),
        [np.zeros((8, 8, 3), np.uint8)] * 4,
    ],
    ids=["too few", "no channels", "floats", "a list"],
)
def test_what_a_reader_gives_in_place_of_frames_is_refused(given):
    dataset = GulpClipDataset(ReaderOf(given), window)
    match = (
        r"item 'a' of .*ReaderOf.*read_clip gave .* expected a numpy array \(4, H, W"
    )
    with pytest.raises(FormatError, match=match):
        next(iter(numpy_loader(dataset, batch_size=1, view=CenterCrop(4))))
    with pytest.raises(FormatError, match=match):
        dataset[0]


class MiscountedJpegs(OwnReader):
    """Gives another number of JPEGs than it is asked for."""

    num_more = 0

    def read_jpegs(self, id_, slice_=None):
        jpegs = super().read_jpegs(id_, slice_)
        return (2 * jpegs)[: len(jpegs) + self.num_more]


@pytest.mark.parametrize("view", [None, CenterCrop(4)], ids=["whole", "view"])
@pytest.mark.parametrize("num_more", [-1, 1])
def test_another_number_of_jpegs_than_of_frames_is_refused(
    make_directory, num_more, view
):
    reader = MiscountedJpegs(make_directory(counts=(8,)))
    reader.num_more = num_more
    loader = numpy_loader(GulpClipDataset(reader, window), batch_size=1, view=view)
    match = r"item 'clip0' of .*read_jpegs gave \d JPEGs for \d frames?, expected one"
    with pytest.raises(FormatError, match=match):
        next(iter(loader))


@pytest.mark.parametrize(("channels", "colorspace"), [(3, "gray"), (2, "rgb")])
def test_other_channels_than_were_asked_for_are_refused(channels, colorspace):
    dataset = GulpClipDataset(ReaderOf(np.zeros((4, 8, 8, channels), np.uint8)), window)
    loader = numpy_loader(dataset, batch_size=1, colorspace=colorspace)
    with pytest.raises(FormatError, match=f"gives frames of {channels} channels, and"):
        next(iter(loader))


# ---------------------------------------------------------------- memory
@pytest.mark.parametrize("keep", [1, 2, 4])
def test_a_batch_stays_valid_until_so_many_more_are_asked_for(clips, keep):
    loader = numpy_loader(clips, batch_size=1, keep=keep, prefetch=2)
    given: list[tuple[Any, Any]] = []
    for batch in loader:
        given.append((batch, batch.clips.copy()))
        for kept, pixels in given[-keep:]:
            assert np.array_equal(kept.clips, pixels)


def test_a_view_of_a_directory_is_read_as_the_directory_is(make_directory):
    path = make_directory(counts=(8,) * 6)
    view = GulpDirectory(path).query("label == 'b'")
    loader = numpy_loader(GulpClipDataset(view, window), batch_size=3, shuffle=False)
    (batch,) = loader
    assert [info["id"] for info in batch.infos] == ["clip1", "clip3", "clip5"]
    for clip, info, chosen in zip(
        batch.clips, batch.infos, batch.frame_indices, strict=True
    ):
        assert np.array_equal(clip, view.read_clip(info["id"], chosen))


def test_a_decoder_of_ones_own_is_used_behind_a_view_too(make_directory):
    def inverted(jpeg):
        return 255 - jpeg_bytes_to_img(jpeg)

    path = make_directory(counts=(8,) * 4)
    directory = GulpDirectory(path, inverted)
    wanted = None
    for source in (directory, directory.query("num_frames == 8")):
        loader = numpy_loader(GulpClipDataset(source, window), batch_size=4)
        (batch,) = loader
        if wanted is None:
            wanted = batch.clips.copy()
            plain = numpy_loader(GulpClipDataset(path, window), batch_size=4)
            (other,) = plain
            assert np.array_equal(255 - wanted, other.clips)
        assert np.array_equal(batch.clips, wanted)


def test_memory_is_used_again(clips):
    loader = numpy_loader(clips, batch_size=1, keep=1, prefetch=2)
    addresses = [
        batch.clips.__array_interface__["data"][0] for _ in range(4) for batch in loader
    ]
    assert len(addresses) == 24
    assert len(set(addresses)) == 3  # prefetch + keep


def test_nothing_is_made_further_ahead_than_asked_for(make_directory):
    path = make_directory(counts=(8,) * 9)
    seen: list[str] = []
    reached = threading.Event()

    def target(info):
        seen.append(info["id"])
        if len(seen) == 4:
            reached.set()
        return 0

    dataset = GulpClipDataset(path, window, target=target)
    loader = numpy_loader(dataset, batch_size=1, prefetch=3, keep=1)
    batches = iter(loader)
    next(batches)
    assert reached.wait(10)
    loader.close()  # the threads are through with what they had begun
    assert len(seen) == 4


@pytest.mark.gpu
def test_pinned_batches_may_be_copied_while_the_program_goes_on(make_directory):
    import torch

    path = make_directory(counts=(8,) * 12)
    loader = GulpLoader(
        GulpClipDataset(path, window), batch_size=2, pin_memory=True, prefetch=1
    )
    for _ in range(3):
        copied, wanted = [], []
        for batch in loader:
            assert batch.clips.is_pinned()
            wanted.append(batch.clips.clone())
            torch.cuda._sleep(20_000_000)  # so that the copy has to wait its turn
            copied.append(batch.clips.to("cuda", non_blocking=True))
        assert all(a.cpu().equal(b) for a, b in zip(copied, wanted, strict=True))


@pytest.mark.torch
def test_without_a_device_memory_is_not_pinned_and_a_warning_says_so(
    make_directory, monkeypatch
):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    dataset = GulpClipDataset(make_directory(counts=(8,) * 4), window)
    wanted = [batch.clips.clone() for batch in GulpLoader(dataset, batch_size=2)]
    with pytest.warns(GulpWarning, match="pin_memory=True needs a CUDA device"):
        found = [
            batch.clips.clone()
            for batch in GulpLoader(dataset, batch_size=2, pin_memory=True)
        ]
    assert all(a.equal(b) for a, b in zip(found, wanted, strict=True))


# ---------------------------------------------------------------- epochs
def test_lengths_and_epochs(clips):
    loader = numpy_loader(clips, batch_size=4)
    assert (len(loader), loader.epoch) == (2, 0)
    first = [index for batch in loader for index in batch.indices]
    assert loader.epoch == 1
    second = [index for batch in loader for index in batch.indices]
    assert sorted(first) == sorted(second) == list(range(6))
    assert first != second
    loader.set_epoch(0)
    assert [index for batch in loader for index in batch.indices] == first
    dropping = numpy_loader(clips, batch_size=4, drop_last=True)
    assert len(dropping) == 1
    assert [len(batch) for batch in dropping] == [4]
    assert dropping.epoch == 1
    assert [len(batch) for batch in dropping] == [4]


def test_an_iteration_goes_on_where_the_one_before_was_left(clips):
    loader = numpy_loader(clips, batch_size=1, seed=4)
    wanted = [draw.index for draw in loader.cursor.pending()]
    found = []
    for batch in loader:
        found += batch.indices.tolist()
        if len(found) == 2:
            break
    assert (len(loader), loader.batches_left) == (6, 4)
    for batch in loader:
        found += batch.indices.tolist()
    assert found == wanted


def test_an_earlier_iteration_ends_with_the_next_one(clips):
    loader = numpy_loader(clips, batch_size=1)
    first, second = iter(loader), iter(loader)
    next(first)
    next(second)
    with pytest.raises(RuntimeError, match="another was begun"):
        next(first)
    assert len(list(second)) == 4


def test_setting_the_state_ends_an_iteration(clips):
    loader = numpy_loader(clips, batch_size=1)
    state = loader.state_dict()
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(state)
    with pytest.raises(RuntimeError, match="its state was set"):
        next(batches)
    assert len(list(loader)) == 6


def test_an_empty_dataset_has_empty_epochs(clips):
    empty = clips.get_subset([])
    loader = numpy_loader(empty, batch_size=2)
    assert len(loader) == 0
    assert list(loader) == []
    assert loader.epoch == 1


def test_an_error_comes_in_its_turn(make_directory):
    path = make_directory(counts=(8,) * 5)

    def target(info):
        if info["id"] == "clip3":
            raise LookupError("no such label")
        return info["idx"]

    dataset = GulpClipDataset(path, window, target=target)
    loader = numpy_loader(dataset, batch_size=1, shuffle=False, prefetch=4)
    seen: list[int] = []
    with pytest.raises(LookupError, match="no such label"):
        seen.extend(batch.indices.item() for batch in loader)
    assert loader.state_dict()["position"] == 3
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("gulpio2-loader")]


def ended(*_, **__):
    return next(iter(()))


WORKER = {"threads": None, "num_workers": 1}


@pytest.mark.parametrize("options", [{"threads": 0}, {"threads": 2}, WORKER], ids=str)
@pytest.mark.parametrize("what", [{"target": ended}, {"sampler": ended}])
def test_of_the_end_of_an_iterator_is_said_where_it_was(make_directory, options, what):
    """Python says that a generator raised it, and nothing of whose it is."""
    path = make_directory(counts=(8,) * 3)
    dataset = GulpClipDataset(path, **{"sampler": window, **what})
    with (
        numpy_loader(dataset, batch_size=1, shuffle=False, **options) as loader,
        pytest.raises(RuntimeError, match=r"StopIteration was raised where sample 0 w"),
    ):
        next(iter(loader))


def test_an_interrupt_is_not_held_up_by_what_is_planned(make_directory):
    calls = []

    def sampler(num_frames, rng=None):
        calls.append(num_frames)
        if len(calls) == 9:  # Ctrl-C comes to where the program is
            raise KeyboardInterrupt
        return window(num_frames, rng=rng)

    dataset = GulpClipDataset(make_directory(counts=(8,) * 24), sampler)
    loader = numpy_loader(dataset, batch_size=2, threads=0)
    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(len(batch) for batch in loader)
    assert seen == []
    assert sum(len(batch) for batch in loader) == 24


# ---------------------------------------------------------------- profile
def test_the_profile_says_where_the_time_went(clips):
    loader = numpy_loader(clips, batch_size=2)
    assert loader.profile().advice == "nothing was loaded yet"
    assert len(list(loader)) == 3
    profile = loader.profile()
    assert (profile.num_batches, profile.num_samples, profile.num_frames) == (3, 6, 24)
    assert profile.num_bytes > 24 * 200
    assert profile.decode_seconds > 0
    assert profile.storage_seconds > 0
    assert profile.seconds > 0
    text = str(profile)
    for word in ("storage", "decode", "transform", "for data", "for the consumer"):
        assert word in text
    assert text.endswith(f"change first: {profile.advice}")
    loader.reset_profile()
    assert loader.profile().num_frames == 0


def test_what_was_done_is_in_the_profile_of_a_loader_that_was_closed(clips):
    loader = numpy_loader(clips, batch_size=2)
    batches: Any = iter(loader)
    next(batches)
    loader.close()
    profile = loader.profile()
    assert profile.num_batches == 1
    assert "frames in 1 batch and " in str(profile)
    assert profile.num_samples >= 2
    batches.close()
    assert loader.profile() == profile


def test_one_who_waits_for_the_first_batch_of_each_epoch_is_not_told_to_make_more_ahead(
    make_directory,
):
    import time

    def sampler(num_frames, rng=None):
        time.sleep(0.05)
        return window(num_frames, rng=rng)

    dataset = GulpClipDataset(make_directory(counts=(8,) * 3), sampler)
    loader = numpy_loader(dataset, batch_size=1, threads=1)
    for _ in range(2):
        for _ in loader:
            time.sleep(0.1)
    found = loader.profile()
    assert 0.1 <= found.starting_seconds <= found.waiting_for_data_seconds
    waits = replace(
        found,
        seconds=1.0,
        waiting_for_data_seconds=0.2,
        waiting_for_consumer_seconds=9.0,
        starting_seconds=0.15,
    )
    assert waits.advice.startswith(
        "none: the consumer mostly waits for the first batch"
    )
    assert replace(waits, starting_seconds=0.05).advice.startswith("prefetch: ")
    busy = replace(waits, waiting_for_consumer_seconds=0.0)  # what makes it is slow
    assert busy.advice == replace(busy, starting_seconds=0.0).advice


def test_a_slow_consumer_is_told_that_it_sets_the_pace(clips):
    import time

    loader = numpy_loader(clips, batch_size=1, prefetch=3)
    for number, _ in enumerate(loader):
        time.sleep(0.05)
        if number == 0:  # whose threads had to be started
            loader.reset_profile()
    profile = loader.profile()
    assert profile.waiting_for_consumer_seconds > profile.decode_seconds
    assert profile.consumer_seconds > profile.waiting_for_data_seconds
    assert profile.advice.startswith("none: ")


@pytest.mark.parametrize(
    ("num_threads", "are_processes", "advised"),
    [
        (4, False, "threads: decode takes most"),
        (8, False, "num_workers, in place of threads: decode takes most"),
        (8, True, "num_workers: decode takes most"),
        (16, False, "frame_size of the ingest"),
        (16, True, "frame_size of the ingest"),
    ],
)
def test_more_than_eight_threads_are_not_advised(
    monkeypatch, num_threads, are_processes, advised
):
    monkeypatch.setattr(profile, "usable_cores", lambda: 16)
    clock = profile.Clock(decode=7.0, busy=8.0, samples=10, frames=80)
    consumer = profile.ConsumerClock(waiting=1.0, batches=5)
    made = profile.make_profile(
        [clock], consumer, num_threads=num_threads, are_processes=are_processes
    )
    assert made.advice.startswith(advised)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"prefetch": 0}, "prefetch is 0, expected at least 1"),
        ({"keep": 0}, "keep is 0"),
        ({"threads": -1}, "threads is -1, expected at least 0"),
        ({"output": "jax"}, "output is 'jax'; it must be one of torch, numpy"),
        ({"layout": "CTHW"}, "layout is 'CTHW'"),
        ({"colorspace": "yuv"}, "colorspace is 'yuv'"),
        ({"on_corrupt": "ignore"}, "on_corrupt is 'ignore'"),
        ({"pin_memory": True}, "pin_memory goes with output='torch'"),
        ({"rank": 1}, "give both"),
        ({"rank": 2, "num_ranks": 2}, "rank is 2 of 2"),
        ({"order": PlainOrder(5)}, "draws from 5 samples, and the dataset has 6"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_is_refused(clips, arguments, message):
    with pytest.raises(ValueError, match=message):
        GulpLoader(clips, **{"batch_size": 2, "output": "numpy", **arguments})


def test_other_datasets_and_transforms_are_refused(clips, make_directory):
    path = make_directory("other")
    with pytest.raises(TypeError, match="GulpDataset, expected a GulpClipDataset"):
        GulpLoader(GulpDataset(path), batch_size=1)
    for option in ({"transform": abs}, {"pipeline": [dict]}):
        dataset = GulpClipDataset(path, window, **option)
        with pytest.raises(ValueError, match="transform or a pipeline"):
            GulpLoader(RepeatDataset(dataset, 2), batch_size=1)


class _Doubled(GulpClipDataset):
    def prepare_data(self, idx):
        return 2 * super().prepare_data(idx)


class _Numbered(RepeatDataset):
    def __getitem__(self, idx):
        return idx, super().__getitem__(idx)


def test_samples_that_a_subclass_makes_in_its_own_way_are_refused(make_directory):
    path = make_directory("other")
    with pytest.raises(TypeError, match="_Doubled overrides __getitem__ or prepare"):
        GulpLoader(RepeatDataset(_Doubled(path, window), 2), batch_size=1)
    with pytest.raises(TypeError, match="_Numbered overrides __getitem__"):
        GulpLoader(_Numbered(GulpClipDataset(path, window), 2), batch_size=1)


def test_an_order_of_repeats_is_followed(clips):
    order = RepeatedOrder([0, 1, 0, 3, 0, 0], shuffle=False)
    loader = numpy_loader(clips, batch_size=8, order=order)
    assert next(iter(loader)).indices.tolist() == [1, 3, 3, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda clips: clips.share_memory_(),  # as for what goes through torch's queues
        lambda clips: clips.resize_(1, *clips.shape[1:]),
        lambda clips: clips.as_strided_(clips.shape, (0,) * clips.ndim),
        lambda clips: clips.transpose_(0, 1),
    ],
    ids=["sent", "cut", "strided", "transposed"],
)
@pytest.mark.parametrize("kept", [False, True])
def test_what_is_done_to_a_batch_as_a_tensor_leaves_the_later_ones_alone(
    clips, change, kept
):
    torch = pytest.importorskip("torch")
    plain = numpy_loader(clips, batch_size=2, shuffle=False)
    right = [torch.from_numpy(batch.clips.copy()) for batch in plain]
    first = None
    with GulpLoader(clips, batch_size=2, shuffle=False, prefetch=1) as loader:
        for batch, expected in zip(loader, right, strict=True):
            assert torch.equal(batch.clips, expected)
            first = batch.clips if first is None else first
            change(first if kept else batch.clips)  # kept: its time is over


# ---------------------------------------------------------------- samples without clips
def test_an_item_in_which_the_sampler_finds_no_clip_is_told(make_directory):
    path = make_directory("lengths", counts=(8, 3, 9))
    sampler = partial(dense_windows, clip_length=8, partial=False)
    loader = numpy_loader(GulpClipDataset(path, sampler), batch_size=1, shuffle=False)
    with pytest.raises(ValueError, match="no clip in item 'lengths1', which has 3"):
        list(loader)
    longer = GulpClipDataset(path, partial(sampler, clip_length=64))
    with pytest.raises(ValueError, match="the sampler found no clip in item"):
        next(iter(numpy_loader(longer, batch_size=1)))


@pytest.mark.torch
def test_a_sample_in_which_the_sampler_finds_no_clip_is_empty(make_directory):
    sampler = partial(dense_windows, clip_length=64, partial=False)
    dataset = GulpClipDataset(make_directory("short", counts=(8,)), sampler)
    with pytest.raises(EmptySampleError, match="or the sampler found no clip, for sam"):
        dataset[0]


@pytest.mark.parametrize("batch_size", [1, 2])
def test_items_of_several_numbers_of_clips_are_told_what_takes_them(
    make_directory, batch_size
):
    path = make_directory("lengths", counts=(8, 16))
    dataset = GulpClipDataset(path, partial(dense_windows, clip_length=8, step=8))
    loader = numpy_loader(dataset, batch_size=batch_size, shuffle=False)
    message = (
        r"a loader needs as many of each, whatever its batch_size\..* make each window "
        r"a sample \(parse_data_info .*, or take a DataLoader with pseudo_collate"
    )
    with pytest.raises(ValueError, match=message):
        list(loader)


class _OwnTarget(GulpClipDataset):
    def target_of(self, info):
        return 10 * info["num_frames"]


def test_a_target_that_a_subclass_gives_is_a_target(make_directory):
    dataset = _OwnTarget(make_directory("own", counts=(8, 8)), window)
    (batch,) = numpy_loader(dataset, batch_size=2)
    assert batch.targets.tolist() == [80, 80]


@pytest.mark.torch
def test_a_target_that_a_subclass_gives_is_that_of_the_sample(make_directory):
    dataset = _OwnTarget(make_directory("own", counts=(8, 8)), window)
    assert dataset[0][1] == 80


def test_what_an_iteration_waits_for_after_its_first_batch_does_not_start_it():
    clock = profile.ConsumerClock()
    assert clock.wait_for(lambda: sleep(0.01), is_first=True) is None
    started = clock.starting
    clock.wait_for(lambda: sleep(0.01), is_first=False)
    assert 0.01 <= clock.starting == started < clock.waiting
