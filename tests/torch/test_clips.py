"""Clips and images as tensors: frames, targets, transforms, randomness."""

from __future__ import annotations

import errno
import json
import os
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import EmptySampleError, FrameTimeError, StorageError
from gulpio2.format.layout import data_name, meta_name
from gulpio2.sampling import (
    ClipIndices,
    dense_windows,
    frames_at,
    sample_segments,
    sample_window,
    sample_window_by_time,
    spaced_windows,
    window_around,
    window_around_time,
)
from gulpio2.testing import make_frames
from gulpio2.torch import (
    GulpClipDataset,
    GulpImageDataset,
    GulpLoader,
    RecyclingCollate,
    RepeatDataset,
    SampleIndex,
    default_collate,
)
from gulpio2.torch.listing import Listing

pytestmark = pytest.mark.torch

window = partial(sample_window, clip_length=3)


class MapsAlone:
    """A reader of somebody's own, which has no index."""

    def __init__(self, folder):
        directory = GulpDirectory(folder)
        self.read_clip = directory.read_clip
        self.merged_meta_dict = dict(directory.merged_meta_dict)
        self.name = folder.name

    def __repr__(self):
        return self.name


def place(index, seed):
    return SampleIndex(index, seed=seed, epoch=0, position=0)


# ---------------------------------------------------------------- frames
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("collate", ["default", "recycling"])
def test_where_no_frame_is_chosen_another_sample_is_taken(
    make_directory, frame_numbers, shape, collate
):
    from torch.utils.data import DataLoader

    def choose(num_frames, *, rng=None):
        if num_frames == 5:
            return ClipIndices(np.zeros(shape, int), np.zeros(shape, bool))
        return window(num_frames, rng=rng)

    dataset = GulpClipDataset(make_directory(counts=(8, 5, 8)), choose, target="id")
    for _ in range(3):
        clip, id_ = dataset[1]
        assert (id_ in {"clip0", "clip2"}, len(frame_numbers(clip))) == (True, 3)
    made: Any = RecyclingCollate() if collate == "recycling" else default_collate
    loader: Any = DataLoader(dataset, 3, collate_fn=made, num_workers=1, timeout=60)
    for _ in range(2):
        ((clips, ids),) = loader
        assert clips.shape[:2] == (3, 3)
        assert set(ids) <= {"clip0", "clip2"}
    dataset.test_mode = True
    with pytest.raises(EmptySampleError):
        dataset[1]


@pytest.mark.parametrize(
    ("sampler", "frames"),
    [
        (window, [2, 3, 4]),
        (partial(sample_window, clip_length=3, stride=3), [0, 3, 6]),
        (partial(sample_segments, num_segments=4), [1, 3, 5, 7]),
        (partial(spaced_windows, clip_length=2, num_windows=2), [[0, 1], [6, 7]]),
        (partial(dense_windows, clip_length=4), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (partial(window_around, index=0, history=1, future=1), [0, 0, 1]),
    ],
)
def test_in_test_mode_a_clip_has_the_frames_of_the_sampler(
    sampler, frames, make_directory, frame_numbers, item_numbers
):
    dataset = GulpClipDataset(make_directory(), sampler, test_mode=True)
    clip = dataset[0]
    assert tuple(clip.shape) == (*np.shape(frames), 3, 8, 12)
    assert frame_numbers(clip) == frames
    assert set(np.ravel(item_numbers(dataset[1]))) == {1}


def test_a_config_names_the_sampler(make_directory, frame_numbers):
    config = {"type": "sample_window", "clip_length": 3, "stride": 2}
    dataset = GulpClipDataset(make_directory(), config, test_mode=True)
    assert frame_numbers(dataset[0]) == [1, 3, 5]
    assert config["type"] == "sample_window"
    for name in ("system", "apply_border", None):
        with pytest.raises(KeyError, match=f"sampler type is {name!r}, expected one"):
            GulpClipDataset("other", {"type": name})


def test_a_clip_is_a_uint8_tensor_over_the_memory_of_the_frames(make_directory):
    import torch

    clip = GulpClipDataset(make_directory(), window)[0]
    assert clip.dtype is torch.uint8
    assert clip.movedim(-3, -1).is_contiguous()


def test_an_item_that_is_too_short_is_filled_up(make_directory, frame_numbers):
    folder = make_directory()
    repeated = GulpClipDataset(folder, window)[2]
    assert frame_numbers(repeated) == [0, 0, 0]
    masked = GulpClipDataset(folder, partial(window, border="mask"))[2]
    assert masked[1:].sum() == 0
    assert masked[0].sum() > 0


def test_grey_frames_have_one_channel(make_directory):
    dataset = GulpClipDataset(make_directory(grey=True), window)
    assert tuple(dataset[0].shape) == (3, 1, 8, 12)


def test_an_item_without_frames_is_named(make_directory):
    dataset = GulpClipDataset(make_directory(counts=[0]), window)
    with pytest.raises(ValueError, match="'clip0' has no frames: leave it out"):
        dataset[0]


@pytest.mark.parametrize(
    ("ticks", "frames"),
    [([0, 100, 200, 300, 1000], [1, 3, 3]), ([0, 900, 100], [0, 2])],
)
def test_frames_are_chosen_by_seconds(ticks, frames, make_directory, frame_numbers):
    sampler = partial(
        window_around_time,
        seconds=0.1 if len(frames) == 3 else 0.0,
        period_seconds=0.25 if len(frames) == 3 else 0.1,
        future=len(frames) - 1,
    )
    folder = make_directory(counts=[len(ticks)], ticks=ticks)
    dataset = GulpClipDataset(folder, sampler, sample_by="seconds")
    assert frame_numbers(dataset[0]) == frames


@pytest.mark.parametrize("in_a_config", [False, True])
def test_frames_at_is_a_sampler_as_the_others(
    in_a_config, make_directory, frame_numbers
):
    folder = make_directory(counts=[5], ticks=[0, 100, 200, 300, 1000])
    seconds = [0.0, 0.29, 9.0]
    sampler = (
        {"type": "frames_at", "seconds": seconds}
        if in_a_config
        else partial(frames_at, seconds=seconds)
    )
    dataset = GulpClipDataset(folder, sampler, sample_by="seconds")
    assert frame_numbers(dataset[0]) == [0, 3, 4]
    with pytest.raises(ValueError, match="frames_at wants the times of the frames"):
        GulpClipDataset(folder, sampler)[0]


def test_a_frame_by_seconds_is_not_counted_from_the_end(make_directory):
    def sampler(times, rng=None):
        return ClipIndices(np.array([-2, 0]), np.array([True, True]))

    folder = make_directory(counts=[3], ticks=[0, 100, 200])
    dataset = GulpClipDataset(folder, sampler, sample_by="seconds")
    with pytest.raises(ValueError, match="the sampler chose frame -2"):
        dataset[0]


def test_masked_places_by_seconds_stay_masked(make_directory):
    sampler = partial(
        window_around_time, seconds=0.0, period_seconds=0.1, history=1, border="mask"
    )
    folder = make_directory(counts=[3], ticks=[0, 100, 200])
    clip = GulpClipDataset(folder, sampler, sample_by="seconds")[0]
    assert clip[0].sum() == 0


def test_seconds_of_items_without_times_are_refused(make_directory):
    sampler = partial(sample_window_by_time, clip_length=2, period_seconds=0.1)
    dataset = GulpClipDataset(make_directory(), sampler, sample_by="seconds")
    with pytest.raises(FrameTimeError, match="Sample its frames by index"):
        dataset[0]
    with pytest.raises(ValueError, match="sample_by is 'time'"):
        GulpClipDataset("other", sampler, sample_by="time")  # type: ignore[arg-type]


@pytest.mark.parametrize("opened", ["index", "maps"])
def test_items_without_times_are_told_when_a_dataset_is_made(
    opened, make_directory, tmp_path, caplog
):
    timed = make_directory("timed", counts=[8, 3, 5], ticks=range(8))
    mixed = make_directory("mixed", counts=[2, 2], ticks=range(2))
    chunk = GulpChunk(mixed / data_name(1), mixed / meta_name(1))
    with chunk.open("wb"):
        for item in range(3):
            meta = {"note": '"pts"'}  # in the metadata it is none of the frames
            chunk.append(f"bare{item}", meta, make_frames(2, 8, 8))
        chunk.append("empty", {}, [])  # of no frames it is another error
    map_ = mixed / meta_name(0)  # irregular to an index, which leaves it to the map
    entries = json.loads(map_.read_text())
    map_.write_text(json.dumps({id_: {"of": 1, **e} for id_, e in entries.items()}))
    readers: list[Any] = [
        GulpDirectory(folder, indexed=True) for folder in (timed, mixed)
    ]
    assert Listing.is_of(readers)
    if opened == "maps":
        readers = [MapsAlone(timed), MapsAlone(mixed)]
    sampler = partial(sample_window_by_time, clip_length=2, period_seconds=0.1)

    def told(source, sampler=sampler, **options):
        caplog.clear()
        dataset = GulpClipDataset(source, sampler, sample_by="seconds", **options)
        lines = [record.getMessage() for record in caplog.records]
        return dataset, lines

    dataset, (line,) = told(readers)
    assert f"'bare0' of {readers[1]!r} and 2 other items: no times" in line
    with pytest.raises(FrameTimeError, match="'bare0'"):
        dataset[5]
    assert told(readers[0])[1] == told(readers, indices=[0, 1, 2, 3, 4])[1] == []
    assert "'bare2'" in told(readers, indices=[0, 7])[1][0]
    annotations = tmp_path / "annotations.json"
    entries = [{"id": "timed1"}, {"id": "bare1", "source_idx": 1}]
    annotations.write_text(json.dumps({"metainfo": {}, "data_list": entries}))
    assert "'bare1'" in told(readers, ann_file=annotations)[1][0]
    assert told(readers, ann_file=annotations, indices=1)[1] == []
    caplog.clear()
    GulpClipDataset(readers, partial(sample_window, clip_length=2))
    assert caplog.records == []


def test_items_without_times_are_counted_once_however_many_samples_they_have(
    make_directory, caplog
):
    class Windows(GulpClipDataset):
        def parse_data_info(self, raw_data_info):
            # Of one directory, where it is none of those that are read.
            return [{**raw_data_info, "source_idx": 7} for _ in range(3)]

    sampler = partial(sample_window_by_time, clip_length=2, period_seconds=0.1)
    for counts, others in (([2], ""), ([2, 2], " and 1 other item")):
        path = make_directory(f"of{len(counts)}", counts=counts)
        caplog.clear()
        dataset = Windows(path, sampler, sample_by="seconds")
        assert len(dataset) == 3 * len(counts)
        (line,) = caplog.messages
        assert f"{dataset.source.readers[0]!r}{others}: no times" in line


@pytest.mark.parametrize(
    "sampler",
    [
        partial(sample_window_by_time, clip_length=2, period_seconds=0.1),
        partial(
            partial(window_around_time, seconds=0.0), period_seconds=0.1, history=1
        ),
        {"type": "sample_segments_by_time", "num_segments": 2},
    ],
)
def test_a_sampler_by_time_without_times_is_told_how_to_get_them(
    sampler, make_directory
):
    dataset = GulpClipDataset(make_directory(), sampler)
    with pytest.raises(ValueError, match=r"_time wants the times .*sample_by='second"):
        dataset[0]


def test_clips_of_which_no_frame_is_there_are_told_of(make_directory, caplog):
    """As where a recording's seconds are asked of items that begin at 0."""
    folder = make_directory(counts=[5, 5], ticks=[100, 0, 200, 400, 300])
    sampler = partial(window_around_time, period_seconds=0.1, future=1)

    def dataset(*seconds):
        arguments = dict(zip(("clip0", "clip1"), seconds, strict=True))
        return GulpClipDataset(
            folder,
            sampler,
            sample_by="seconds",
            sampler_arguments=lambda info: {"seconds": arguments[info["id"]]},
        )

    assert [len(clip) for clip in dataset(0.4, 0.1)] == [2, 2]  # 0.5 is not there
    assert caplog.messages == []
    for _ in dataset(901, 902):
        pass
    (told,) = caplog.messages
    assert told == (
        "of the clip that the sampler chose no frame is in item 'clip0', whose frames "
        "are at 0 to 0.4 seconds: see whether its seconds count from the same "
        "beginning. "
        "Further ones are not told, and `valid` is False for each of their frames"
    )


@pytest.mark.parametrize(
    "sampler",
    [
        window,
        partial(sample_segments, num_segments=2),
        partial(dense_windows, clip_length=2),
        partial(spaced_windows, clip_length=2, num_windows=2),
        {"type": "window_around", "index": 0, "history": 1},
    ],
)
def test_a_sampler_by_index_that_gets_times_is_told_what_to_do(sampler, make_directory):
    folder = make_directory(counts=[5], ticks=[0, 100, 200, 300, 400])
    dataset = GulpClipDataset(folder, sampler, sample_by="seconds")
    with pytest.raises(ValueError, match=r"wants the number of .*sample_by='index'"):
        dataset[0]


def test_what_a_sampler_of_ones_own_refuses_is_told_in_its_words(make_directory):
    def refuse(num_frames, rng):
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        GulpClipDataset(make_directory(), refuse)[0]


@pytest.mark.parametrize("chosen", [[0, 1], np.arange(2), None], ids=str)
def test_a_sampler_that_gives_no_clip_is_told_what_to_give(make_directory, chosen):
    folder, match = make_directory(), r"sampler gave .*, expected a ClipIndices"
    dataset = GulpClipDataset(folder, lambda count, rng: chosen)
    with pytest.raises(TypeError, match=match):
        dataset[0]
    with pytest.raises(TypeError, match=match):
        next(iter(GulpLoader(dataset, batch_size=2)))


def test_the_sampler_gets_what_the_metadata_says(make_directory, frame_numbers):
    metas = [{"peak": 5}, {"peak": 2}]
    dataset = GulpClipDataset(
        make_directory(counts=[8, 4], metas=metas),
        partial(window_around, history=1, future=1),
        sampler_arguments=lambda info: {"index": info["peak"]},
    )
    assert [frame_numbers(clip) for clip in dataset] == [[4, 5, 6], [1, 2, 3]]


@pytest.mark.parametrize("test_mode", [False, True])
def test_what_the_metadata_says_may_be_chosen_at_random(make_directory, test_mode):
    def moment(info, rng):
        return {"index": 0 if rng is None else int(rng.integers(info["num_frames"]))}

    dataset = GulpClipDataset(
        make_directory(counts=[90, 70]),
        partial(window_around, history=0, future=0),
        sampler_arguments=moment,
        test_mode=test_mode,
    )
    runs = [
        [
            batch.frame_indices.ravel().tolist()
            for batch in GulpLoader(dataset, batch_size=2, output="numpy", threads=2)
        ]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert (runs[0] == [[0, 0]]) == test_mode


def test_a_generator_that_somebody_bound_is_kept(make_directory):
    def moment(info, rng):
        assert rng is mine
        return {"index": 1}

    mine = np.random.default_rng(0)
    dataset = GulpClipDataset(
        make_directory(counts=[4]),
        partial(window_around, history=0, future=0),
        sampler_arguments=partial(moment, rng=mine),
    )
    assert dataset.choose(0)[1].indices.tolist() == [1]
    dataset.sampler_arguments = lambda _, rng=None: {"index": 2 if rng else 3}
    assert dataset.choose(0)[1].indices.tolist() == [2]


def test_a_dataset_that_chooses_in_its_own_way_needs_no_sampler(make_directory):
    class Own(GulpClipDataset):
        def choose_frames(self, info, rng):
            return sample_window(info["num_frames"], 3)

    assert Own(make_directory(counts=[3]), None)[0].shape[0] == 3


@pytest.mark.parametrize("sampler", [None, 16])
def test_what_is_no_sampler_is_refused(make_directory, sampler):
    with pytest.raises(TypeError, match=f"sampler is {sampler}, expected a function"):
        GulpClipDataset(make_directory(counts=[4]), sampler)


@pytest.mark.parametrize("sampler", [sample_window, sample_window_by_time])
def test_what_is_bound_in_the_place_of_the_frames_is_refused(make_directory, sampler):
    # sample_window(4, 9): nine frames of an item of four, where it has nine.
    with pytest.raises(TypeError, match=f"{sampler.__name__} with 4 in the place of"):
        GulpClipDataset(make_directory(counts=[9]), partial(sampler, 4))


def test_what_a_subclass_makes_of_an_item_keeps_what_finds_it(make_directory):
    class Bare(GulpClipDataset):
        def parse_data_info(self, raw_data_info):
            return {"number": raw_data_info["number"]}

    path = make_directory(counts=[4], metas=[{"number": 1}])
    dataset = Bare(path, partial(sample_window, clip_length=2))
    with pytest.raises(KeyError, match="sample 0 has no 'num_frames'"):
        dataset[0]


# ---------------------------------------------------------------- targets
@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("idx", [0, 1, 0]),
        ("label", ["a", "b", "a"]),
        ("num_frames", [8, 5, 1]),
        (lambda info: info["id"].upper(), ["CLIP0", "CLIP1", "CLIP2"]),
    ],
)
def test_the_target_is_a_field_or_a_function_of_the_metadata(
    target, values, make_directory
):
    dataset = GulpClipDataset(make_directory(), window, target=target)
    assert [sample[1] for sample in dataset] == values


def test_a_target_that_an_item_lacks_is_named_with_what_it_has(make_directory):
    dataset = GulpClipDataset(make_directory(), window, target="verb")
    with pytest.raises(KeyError, match=r"no metadata 'verb' .* 'idx', 'label'"):
        dataset[0]


# ---------------------------------------------------------------- transforms
def test_the_transform_gets_a_clip_of_time_channels_height_width(make_directory):
    seen = []

    def crop(clip):
        seen.append(tuple(clip.shape))
        return clip[..., 2:6, 3:9].float() / 255

    dataset = GulpClipDataset(make_directory(), window, transform=crop, target="idx")
    clip, target = dataset[1]
    assert seen == [(3, 3, 8, 12)]
    assert tuple(clip.shape) == (3, 3, 4, 6)
    assert (clip.is_floating_point(), target) == (True, 1)


def test_each_of_several_clips_is_transformed_on_its_own(make_directory):
    import torch

    sampler = partial(spaced_windows, clip_length=2, num_windows=3)
    dataset = GulpClipDataset(
        make_directory(), sampler, transform=lambda clip: clip + torch.rand(1)
    )
    clips = dataset[0]
    assert tuple(clips.shape) == (3, 2, 3, 8, 12)
    noise = clips[:, 0, 2, 4, 6] - 77
    assert len(set(noise.tolist())) == 3


@pytest.mark.parametrize("several", [False, True])
def test_a_transform_that_gives_none_asks_for_another_sample(
    several, make_directory, item_numbers
):
    def only_item_one(clip):
        return clip if item_numbers(clip[0]) == 1 else None

    sampler = (
        partial(spaced_windows, clip_length=2, num_windows=2) if several else window
    )
    dataset = GulpClipDataset(make_directory(), sampler, transform=only_item_one)
    assert set(np.ravel(item_numbers(dataset[0]))) == {1}


def test_an_item_without_a_single_clip_asks_for_another(make_directory, item_numbers):
    sampler = partial(dense_windows, clip_length=6, partial=False)
    folder = make_directory()
    for transform in (None, lambda clip: clip):
        dataset = GulpClipDataset(folder, sampler, transform=transform)
        assert item_numbers(dataset[2]) == [[0] * 6]


def test_a_pipeline_gets_everything_as_a_dict(make_directory):
    dataset = GulpClipDataset(
        make_directory(),
        partial(window, border="mask"),
        transform=lambda clip: clip[..., :4, :4],
        target="label",
        pipeline=[lambda sample: {**sample, "more": 1}],
    )
    sample = dataset[2]
    assert tuple(sample.pop("frames").shape) == (3, 3, 4, 4)
    assert sample.pop("frame_indices").tolist() == [0, -1, -1]
    assert sample.pop("valid").tolist() == [True, False, False]
    assert sample == {
        "idx": 0,
        "label": "a",
        "id": "clip2",
        "num_frames": 1,
        "sample_idx": 2,
        "target": "a",
        "more": 1,
    }


# ---------------------------------------------------------------- randomness
def test_a_place_in_the_run_decides_frames_and_augmentation(make_directory):
    import random

    import torch

    def jitter(clip):
        noise = torch.rand(1).item() + random.random() + np.random.rand()
        return clip.float() + noise

    dataset = RepeatDataset(
        GulpClipDataset(make_directory(counts=[20]), window, transform=jitter), 2
    )
    first = dataset[place(1, seed=7)]
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    before = torch.rand(1), random.random(), np.random.rand()
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    again = dataset[place(1, seed=7)]
    after = torch.rand(1), random.random(), np.random.rand()
    assert torch.equal(first, again)
    assert before == after  # the trainer's own randomness is left alone
    others = {dataset[place(1, seed=seed)].sum().item() for seed in range(10)}
    assert len(others) == 10


def test_a_plain_index_draws_from_the_seeded_global_state(
    make_directory, frame_numbers
):
    dataset = GulpClipDataset(make_directory(counts=[20]), window)
    drawn = []
    for _ in range(2):
        np.random.seed(5)
        drawn.append([frame_numbers(dataset[0]) for _ in range(8)])
    assert drawn[0] == drawn[1]
    assert len({tuple(frames) for frames in drawn[0]}) > 1


# ---------------------------------------------------------------- images
@pytest.mark.parametrize(("frame", "numbers"), [(0, [0, 0]), (-1, [7, 4]), (3, [3, 3])])
def test_an_image_is_one_frame_of_each_item(
    frame, numbers, make_directory, frame_numbers
):
    dataset = GulpImageDataset(make_directory(counts=[8, 5]), frame=frame, target="idx")
    assert tuple(dataset[0][0].shape) == (3, 8, 12)
    assert [frame_numbers(image) for image, _ in dataset] == numbers
    assert [target for _, target in dataset] == [0, 1]


def test_a_random_image_is_the_middle_one_in_testing(make_directory, frame_numbers):
    folder = make_directory(counts=[9])
    tested = GulpImageDataset(folder, frame="random", test_mode=True)
    assert frame_numbers(tested[0]) == 4
    trained = GulpImageDataset(folder, frame="random")
    found = {frame_numbers(trained[place(0, seed)]) for seed in range(100)}
    assert found == set(range(9))


def test_the_transform_of_an_image_gets_channels_height_width(make_directory):
    dataset = GulpImageDataset(make_directory(), transform=lambda image: image.shape)
    assert tuple(dataset[0]) == (3, 8, 12)


@pytest.mark.parametrize("frame", [5, -6])
def test_a_frame_that_an_item_does_not_have_is_named(frame, make_directory):
    dataset = GulpImageDataset(make_directory(counts=[5]), frame=frame)
    with pytest.raises(ValueError, match=f"has 5 frames, and so no frame {frame}"):
        dataset[0]
    with pytest.raises(ValueError, match="frame is 'last'"):
        GulpImageDataset("other", frame="last")  # type: ignore[arg-type]


def test_the_number_of_a_frame_is_a_plain_one(make_directory):
    frame: Any = np.int8(-1)
    dataset = GulpImageDataset(make_directory(counts=[130]), frame=frame)
    assert type(dataset.frame) is int
    _, chosen = dataset.choose(0)
    assert chosen.indices.tolist() == [129]  # more than 8 bits count


@pytest.mark.parametrize("frame", [1.5, None, [0], True])
def test_a_frame_that_is_no_number_is_refused_where_it_is_given(frame, make_directory):
    folder = make_directory(counts=[5])
    with pytest.raises(TypeError, match=r"frame is .*, expected an int or 'random'"):
        GulpImageDataset(folder, frame=frame)


@pytest.mark.parametrize("name", ["transform", "sampler_arguments"])
def test_what_cannot_be_called_is_refused_where_it_is_given(name, make_directory):
    wrong: dict[str, Any] = {name: 3}
    with pytest.raises(TypeError, match=f"{name} is 3, expected something that can be"):
        GulpClipDataset(make_directory(counts=[5]), window, **wrong)


def test_a_directory_that_cannot_be_looked_at_is_not_called_missing(
    make_directory, monkeypatch
):
    path, real = make_directory(), os.stat

    def fail(asked, *arguments, **options):
        if str(asked) == str(path):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), asked)
        return real(asked, *arguments, **options)

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(StorageError, match=f"cannot look at {path}: Stale"):
        GulpClipDataset(path, window)
