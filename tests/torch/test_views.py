"""Which part of a frame a view shows."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import cv2
import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import FormatError
from gulpio2.sampling import ClipIndices, sample_window
from gulpio2.testing import FrameAdapter, make_gulp_directory
from gulpio2.torch import (
    CenterCrop,
    GulpClipDataset,
    GulpLoader,
    RandomResizedCrop,
    Region,
)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("view", "height", "width", "region"),
    [
        (CenterCrop(224), 256, 340, Region(0, 42, 256, 256)),
        (CenterCrop(224), 340, 256, Region(42, 0, 256, 256)),
        (CenterCrop((100, 200)), 256, 340, Region(43, 0, 170, 340)),
        (CenterCrop(224, share=0.875), 256, 256, Region(16, 16, 224, 224)),
        (CenterCrop(64), 1, 1, Region(0, 0, 1, 1)),
        (RandomResizedCrop(224), 256, 340, Region(0, 42, 256, 256)),
    ],
)
def test_without_a_generator_it_is_the_middle(view, height, width, region):
    assert view.choose(height, width, None) == region


@pytest.mark.parametrize(("height", "width"), [(256, 340), (40, 40), (3, 500), (1, 1)])
def test_a_random_region_lies_in_the_frame_and_keeps_its_bounds(height, width):
    view = RandomResizedCrop(32, area=(0.2, 0.6), ratio=(0.5, 2.0))
    for seed in range(200):
        region = view.choose(height, width, rng(seed))
        assert region.top >= 0
        assert region.left >= 0
        assert region.height >= 1
        assert region.width >= 1
        assert region.top + region.height <= height
        assert region.left + region.width <= width
        if (height, width) == (256, 340):
            assert 0.19 < region.height * region.width / (height * width) < 0.61
            assert 0.48 < region.width / region.height < 2.1


def test_random_regions_reach_everywhere_and_are_mirrored_half_the_time():
    view = RandomResizedCrop(32)
    regions = [view.choose(256, 340, rng(seed)) for seed in range(400)]
    assert min(region.top for region in regions) < 10
    assert max(region.left + region.width for region in regions) > 330
    # To the last row and column, where nearly all of them are taken.
    whole = RandomResizedCrop(32, area=(0.9, 0.9), ratio=(1.0, 1.0))
    edges = [whole.choose(20, 20, rng(seed)) for seed in range(60)]
    assert {region.top + region.height for region in edges} == {19, 20}
    assert {region.left + region.width for region in edges} == {19, 20}
    assert 150 < sum(region.mirrored for region in regions) < 250
    still = RandomResizedCrop(32, mirrored=0)
    assert not any(still.choose(256, 340, rng(seed)).mirrored for seed in range(50))


def test_the_same_generator_gives_the_same_region():
    view = RandomResizedCrop(112)
    assert view.choose(256, 340, rng(5)) == view.choose(256, 340, rng(5))
    # Pinned: a resumed run must find the same pixels with another version of numpy.
    assert view.choose(256, 340, rng(5)) == Region(2, 7, 199, 189, mirrored=False)


def test_a_size_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match="size is '112', expected an edge in pixels"):
        CenterCrop("112")  # type: ignore[arg-type]  # refused


# Shares as a config may have them.
TEXT: Any = "0.5"
NONE: Any = None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CenterCrop(0), "size is 0"),
        (lambda: CenterCrop((4, -1)), "at least one pixel"),
        (lambda: CenterCrop(8, share=0.0), "share is 0.0"),
        (lambda: RandomResizedCrop(8, area=(0.5, 0.1)), "area is"),
        (lambda: RandomResizedCrop(8, ratio=(0, 1)), "ratio is"),
        (lambda: RandomResizedCrop(8, area=(0.5, math.inf)), "area is"),
        (lambda: RandomResizedCrop(8, area=(20, 100)), "area is .*: 1 at most"),
        (lambda: RandomResizedCrop(8, mirrored=TEXT), "mirrored is '0.5'"),
        (lambda: CenterCrop(8, TEXT), "share is '0.5', expected above 0"),
        (lambda: CenterCrop(8, NONE), "share is None, expected above 0"),
        (lambda: RandomResizedCrop(8, ratio=(0.5, math.inf)), "ratio is"),
        (lambda: RandomResizedCrop(8, mirrored=2), "mirrored is 2"),
    ],
    ids=[
        "zero",
        "negative",
        "share",
        "area",
        "ratio",
        "endless-area",
        "percent",
        "mirrored-text",
        "share-text",
        "share-none",
        "endless-ratio",
        "mirrored",
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Own:
    """A view of somebody's own, which chooses what it was made with."""

    shape = 8, 8

    def __init__(self, chosen):
        self.chosen = chosen

    def choose(self, height, width, rng):
        return self.chosen


class OnlyDecodes:
    """A reader that has no more than the protocol asks for."""

    def __init__(self, path):
        self.directory = GulpDirectory(path)
        self.merged_meta_dict = self.directory.merged_meta_dict

    def read_clip(self, id_, slice_=None):
        return self.directory.read_clip(id_, slice_)


@pytest.fixture(params=[GulpDirectory, OnlyDecodes], ids=["stored", "decoded"])
def clips_of(request, tmp_path):
    """Load the clips of a directory of frames of 24x32, as a view shows them."""
    make_gulp_directory(tmp_path / "gulp", num_items=2, num_frames=4)
    window = partial(sample_window, clip_length=2)
    dataset = GulpClipDataset(request.param(tmp_path / "gulp"), window)

    def load(view):
        loader = GulpLoader(dataset, batch_size=2, view=view, output="numpy")
        (clips,) = (batch.clips.copy() for batch in loader)
        return clips

    return load


def test_a_view_may_take_its_numbers_from_a_generator(clips_of):
    numbers = rng().integers(2, 12, size=4)
    wanted = clips_of(Own(Region(*numbers.tolist())))
    found = clips_of(Own(Region(*numbers)))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "place",
    [(0, 0, 25, 32), (0, 1, 24, 32), (-2, 0, 5, 5), (0, -2, 5, 5), (3, 3, 0, 5)],
)
def test_a_region_that_is_no_part_of_the_frame_is_refused(clips_of, place):
    said = (
        r"^item 'item\d'.*: the view .* chose Region\(.*\), which is no part of a "
        r"frame of 24 rows and 32 columns$"
    )
    with pytest.raises(FormatError, match=said):
        clips_of(Own(Region(*place)))


@pytest.mark.parametrize("chosen", [(0, 0, 8, 8), None, Region(0, 0, 8.0, 8)])  # type: ignore[arg-type]  # the fault
def test_what_is_no_region_is_refused(clips_of, chosen):
    with pytest.raises(TypeError, match="expected a Region of whole numbers"):
        clips_of(Own(chosen))


class Refusing(Own):
    """A view of somebody's own, which takes larger frames only."""

    def choose(self, height, width, rng):
        raise ValueError(f"frames of {height} rows are too few")


def test_what_a_view_raises_comes_as_it_is(clips_of):
    with pytest.raises(ValueError, match=r"^frames of 24 rows are too few$"):
        clips_of(Refusing(None))


def test_a_size_and_bounds_may_be_lists_as_configs_have_them():
    assert CenterCrop([8, 6]).shape == (8, 6)
    view = RandomResizedCrop([8, 6], area=[0.5, 1.0])  # type: ignore[arg-type]  # JSON
    assert view == RandomResizedCrop((8, 6), area=[0.5, 1.0])  # type: ignore[arg-type]
    assert hash(CenterCrop([8, 6])) == hash(CenterCrop((8, 6)))


@pytest.mark.parametrize("area", [0.5, (0.8, 0.5), (0.5,), ("a", "b")])
def test_an_area_that_is_none_is_refused(area):
    with pytest.raises(ValueError, match=r"area is .* both above 0 and finite"):
        RandomResizedCrop(8, area=area)


@pytest.mark.parametrize("size", [(8, 8, 8), (8,), "12"])
def test_a_size_of_other_than_two_edges_is_refused(size):
    with pytest.raises(TypeError, match="expected an edge in pixels, or"):
        CenterCrop(size)


PLACES = np.array([[0, 1, 2, 1], [0, 1, 2, 1], [2, -1, 3, 3]])


def three_clips(num_frames, *, rng=None):
    """Choose the same frames twice, one of them again, and others with a gap."""
    del num_frames, rng
    return ClipIndices(PLACES, PLACES >= 0)


class Ramps(FrameAdapter):
    """Frames whose pixels tell their row, their column and the frame."""

    def iter_data(self, slice_element=None):
        rows, columns = np.indices((24, 32))
        for item in super().iter_data(slice_element):
            frames = [
                np.stack([8 * rows, 7 * columns, np.full_like(rows, 60 * number)], -1)
                for number in range(4)
            ]
            yield {**item, "frames": [frame.astype(np.uint8) for frame in frames]}


class Somewhere:
    """A view of somebody's own, as large as what it shows."""

    shape = 8, 8

    def __init__(self, *, each_clip):
        self.each_clip = each_clip

    def choose(self, height, width, rng):
        if rng is None:
            return Region(0, 0, 8, 8)
        top, left = rng.integers([height - 7, width - 7]).tolist()
        return Region(top, left, 8, 8)


@pytest.fixture
def ramps(tmp_path):
    GulpIngestor(Ramps(num_items=3), tmp_path / "gulp", 2, 1).run()
    return tmp_path / "gulp"


def places_of(dataset, view, **making):
    """Say which part of which frames each clip shows, by all of its pixels."""
    places = []
    with GulpLoader(
        dataset, batch_size=2, view=view, output="numpy", seed=5, **making
    ) as loader:
        for clip, region in (
            (clip, region)
            for batch in loader
            for sample, regions in zip(batch.clips, batch.regions, strict=True)
            for clip, region in zip(
                sample,
                regions if isinstance(regions, tuple) else 3 * [regions],
                strict=True,
            )
        ):
            top, left, _ = np.rint(clip[0].mean((0, 1)) / [8, 7, 60] - [3.5, 3.5, 0])
            shown = [round(number) for number in clip.mean((1, 2))[:, 2] / 60]
            for frame in clip:
                if frame.any():
                    rows, columns = np.indices((8, 8))
                    wanted = [8 * (rows + top), 7 * (columns + left)]
                    assert np.abs(frame[..., :2] - np.stack(wanted, -1)).max() < 6
            assert region == Region(int(top), int(left), 8, 8)
            places.append(((int(top), int(left)), shown))
    return places


MAKING: list[dict[str, Any]] = [{"threads": 0}, {"threads": 2}, {"num_workers": 1}]


@pytest.mark.parametrize("making", MAKING, ids=str)
@pytest.mark.parametrize("reader", [GulpDirectory, OnlyDecodes])
def test_each_clip_of_a_sample_may_show_a_region_of_its_own(ramps, reader, making):
    dataset = GulpClipDataset(reader(ramps), three_clips)
    alike = places_of(dataset, Somewhere(each_clip=False), **making)
    apart = places_of(dataset, Somewhere(each_clip=True), **making)
    for found in (alike, apart):
        shown = [numbers for _, numbers in found]
        assert shown == [[0, 1, 2, 1], [0, 1, 2, 1], [2, 0, 3, 3]] * 3
    regions = [[place for place, _ in alike[n : n + 3]] for n in (0, 3, 6)]
    assert [len(set(of_sample)) for of_sample in regions] == [1, 1, 1]
    others = [[place for place, _ in apart[n : n + 3]] for n in (0, 3, 6)]
    assert [len(set(of_sample)) for of_sample in others] == [3, 3, 3]
    assert [first for first, *_ in others] == [first for first, *_ in regions]
    again = places_of(GulpClipDataset(ramps, three_clips), Somewhere(each_clip=True))
    assert again == apart


def test_a_batch_says_what_the_view_has_chosen(ramps):
    """So that boxes of an item can be brought to what is shown."""
    view = RandomResizedCrop((12, 16), area=(0.3, 1.0))
    dataset = GulpClipDataset(ramps, three_clips)
    mirrored = set()
    with (
        GulpLoader(dataset, batch_size=3, view=view, output="numpy", seed=2) as loader,
        GulpDirectory(ramps) as directory,
    ):
        for _ in range(4):
            (batch,) = loader
            for clips, region, info in zip(
                batch.clips, batch.regions, batch.infos, strict=True
            ):
                rows = slice(region.top, region.top + region.height)
                columns = slice(region.left, region.left + region.width)
                whole = directory.read_clip(info["id"], [0])[0, rows, columns]
                whole = whole[:, ::-1] if region.mirrored else whole
                shown = cv2.resize(whole, (16, 12), interpolation=cv2.INTER_LINEAR)
                assert np.abs(clips[0, 0].astype(int) - shown).max() < 12
                mirrored.add(region.mirrored)
    assert mirrored == {True, False}


def nothing_and_two(num_frames, *, rng=None):
    """Choose a clip without frames, and one of two."""
    del num_frames, rng
    places = np.array([[-1, -1], [0, 1]])
    return ClipIndices(places, places >= 0)


@pytest.mark.parametrize("making", MAKING, ids=str)
def test_of_what_shows_nothing_there_is_no_region(ramps, making):
    dataset = GulpClipDataset(ramps, nothing_and_two)
    options = {"batch_size": 3, "output": "numpy", **making}
    for each_clip in (True, False):
        view = Somewhere(each_clip=each_clip)
        with GulpLoader(dataset, view=view, **options) as loader:
            (batch,) = loader
        if each_clip:
            kinds = [[*map(type, each)] for each in batch.regions]
            assert kinds == 3 * [[type(None), Region]]
        else:
            assert [*map(type, batch.regions)] == 3 * [Region]
    with GulpLoader(dataset, **options) as loader:
        (batch,) = loader
    assert batch.regions == [None, None, None]


def test_frames_that_there_are_not_are_black_in_memory_that_had_others(ramps):
    with GulpLoader(
        GulpClipDataset(ramps, three_clips),
        batch_size=1,
        view=Somewhere(each_clip=True),
        output="numpy",
        prefetch=1,
    ) as loader:
        for batch in loader:
            assert not batch.clips[0, 2, 1].any()
            batch.clips[...] = 255
        # Of each item three frames twice, and two: what comes again is copied.
        assert loader.profile().num_frames == 3 * (3 + 3 + 2)


def test_in_test_mode_all_clips_show_one_region(ramps):
    dataset = GulpClipDataset(ramps, three_clips, test_mode=True)
    found = places_of(dataset, Somewhere(each_clip=True))
    assert {place for place, _ in found} == {(0, 0)}


def test_random_regions_of_each_clip_are_asked_for():
    assert not RandomResizedCrop(16).each_clip
    assert RandomResizedCrop(16, each_clip=True).each_clip
    number: Any = 2
    with pytest.raises(TypeError, match="each_clip is 2, expected True or False"):
        RandomResizedCrop(16, each_clip=number)


class AroundNumber:
    """A view of somebody's own, which chooses by the metadata of the sample."""

    shape = 8, 8

    def choose(self, height, width, rng, info=None):
        return Region(info["number"], 2, 8, 8)


@pytest.mark.parametrize("reader", [GulpDirectory, OnlyDecodes])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_view_that_wants_it_is_told_of_the_sample(tmp_path, reader, num_workers):
    make_gulp_directory(tmp_path / "gulp", num_items=3, num_frames=4)
    source = reader(tmp_path / "gulp")
    dataset = GulpClipDataset(source, partial(sample_window, clip_length=2))
    loader = GulpLoader(
        dataset,
        batch_size=3,
        view=AroundNumber(),
        num_workers=num_workers,
        output="numpy",
    )
    with loader:
        (batch,) = loader
        told = zip(batch.infos, batch.regions, strict=True)
        tops = {info["id"]: region.top for info, region in told}
    assert tops == {"item0": 0, "item1": 1, "item2": 2}
