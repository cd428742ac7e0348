"""One stored item: its frames by time, and what is known of it."""

from __future__ import annotations

import copy
import inspect
import json
import math
import os
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import CorruptFrameError, FrameTimeError, MetaFileError
from gulpio2.sampling.timeline import Timeline
from gulpio2.testing import make_frames
from tests.chunks import JPEGS, Timed, make_chunk

if TYPE_CHECKING:
    from pathlib import Path

# Seconds per tick, and a recording whose rate changes.
TICK = Fraction(1, 90_000)
VARIABLE = [900, 3900, 6900, 90_900, 90_901, 180_900]


@pytest.fixture
def chunk(tmp_path: Path) -> GulpChunk:
    """Write one item at a variable rate, one out of order, and some without times."""
    return make_chunk(
        tmp_path,
        {
            "variable": ({"label": 1}, Timed(VARIABLE, TICK, rotation=90)),
            "unordered": ({}, Timed([200, 0, 100], TICK)),
            "images": ({}, JPEGS[:2]),
            "grey": ({}, make_frames(1, 10, 14, grey=True)),
            "empty": ({}, []),
        },
    )


def indices_of(chunk: GulpChunk, frames: list[np.ndarray]) -> list[int]:
    """Say which frames of "variable" these are."""
    known = [frame.tobytes() for frame in chunk["variable"][0]]
    return [known.index(frame.tobytes()) for frame in frames]


# --- what is known ------------------------------------------------------------------


def test_an_item_knows_its_frames_bytes_and_metadata(chunk):
    item = chunk.item("variable")
    assert item.id_ == "variable"
    assert item.num_frames == 6
    assert item.num_bytes == sum(len(jpeg) + -len(jpeg) % 4 for jpeg in JPEGS[:6])
    assert item.meta == {"label": 1}
    item.meta["label"] = 2
    assert item.meta == {"label": 1}


def test_an_item_knows_its_times_and_facts_of_its_source(chunk):
    extras = chunk.item("variable").extras
    assert extras.pts == tuple(VARIABLE)
    assert extras.time_base == TICK
    assert extras.source == {"rotation": 90}
    assert chunk.item("images").extras.pts == ()


def test_the_duration_is_until_the_last_frame_is_over(chunk):
    """Shown as long as those before it are: as the samplers by seconds have it."""
    for id_ in ("variable", "unordered"):
        item = chunk.item(id_)
        times = sorted(float(tick * TICK) for tick in item.extras.pts)
        assert item.duration == pytest.approx(Timeline.of(times).seconds)
    assert chunk.item("unordered").duration == float(300 * TICK)
    assert chunk.item("images").duration is None
    assert chunk.item("empty").duration is None


def test_the_shape_of_the_first_frame_is_read_without_decoding(chunk):
    assert chunk.item("variable").frame_shape == (24, 32, 3)
    assert chunk.item("grey").frame_shape == (10, 14, 1)
    assert chunk.item("empty").frame_shape == (0, 0, 3)


def test_a_first_frame_that_is_none_is_named(chunk, tmp_path):
    data = tmp_path / "data_0.gulp"
    data.write_bytes(b"\0" * data.stat().st_size)
    message = r"item 'variable', frame 0, in .*data_0\.gulp at byte 0: its checksum"
    with pytest.raises(CorruptFrameError, match=message):
        _ = chunk.item("variable").frame_shape


def test_finding_an_item_reads_nothing(chunk, tmp_path):
    os.truncate(tmp_path / "data_0.gulp", 0)
    assert chunk.item("variable").num_frames == 6


# --- by time ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "seconds", "index"),
    [
        ("before", VARIABLE[0] * TICK, 0),
        ("before", Fraction(90_900, 90_000), 3),
        ("before", 1e6, 5),
        ("nearest", 0.6, 3),
        ("at", 1.01001, 4),
        ("at", 2.01, 5),
    ],
)
def test_a_time_stands_for_a_frame(chunk, mode, seconds, index):
    frames, meta = chunk.read_frames_at("variable", seconds, mode=mode)
    assert indices_of(chunk, frames) == [index]
    assert meta == {"label": 1}


def test_nearest_is_the_default(chunk):
    frames, _ = chunk.read_frames_at("variable", 0.6)
    assert indices_of(chunk, frames) == [3]
    item = chunk.item("variable")
    assert item.frame_indices_at(0.6) == item.frame_indices_at(0.6, "nearest") == [3]


def test_a_mode_is_taken_by_keyword_and_the_help_says_which_there_are(chunk):
    item = chunk.item("variable")
    assert item.frame_indices_at([0.6, 1e6], mode="before") == (
        item.frame_indices_at([0.6, 1e6], "before")
    )
    for method in (item.frame_indices_at, chunk.read_frames_at):
        text = inspect.getdoc(method) or ""
        assert all(f'"{mode}": ' in text for mode in ("nearest", "before", "at"))


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array])
def test_times_may_be_several_in_any_order(chunk, kind):
    frames, _ = chunk.read_frames_at("variable", kind([2.0, 0.0, 1.01, 2.0]))
    assert indices_of(chunk, frames) == [5, 0, 3, 5]


def test_no_times_are_no_frames(chunk):
    assert chunk.read_frames_at("variable", []) == ([], {"label": 1})


@pytest.mark.parametrize(
    "seconds",
    [1, np.float32(1), np.int64(1), Fraction(1), Decimal(1), np.array(1.0)],
)
def test_a_time_is_any_number(chunk, seconds):
    frames, _ = chunk.read_frames_at("variable", seconds)
    assert indices_of(chunk, frames) == [3]


def test_frames_need_not_be_in_the_order_of_their_times(chunk):
    times = [0, 100 * TICK, 200 * TICK]
    frames, _ = chunk.read_frames_at("unordered", times, mode="at")
    assert [frame.tobytes() for frame in frames] == [
        chunk["unordered", [index]][0][0].tobytes() for index in (1, 2, 0)
    ]


@pytest.mark.parametrize(
    ("seconds", "mode", "message"),
    [
        (0.0, "before", r"no frame is before 0\.0 s: the first one is at 0\.01 s"),
        (0.5, "at", r"no frame is at 0\.5 s; the nearest one is at 0\.0766"),
    ],
)
def test_no_frame_at_a_time_is_an_error(chunk, seconds, mode, message):
    with pytest.raises(FrameTimeError, match=message):
        chunk.read_frames_at("variable", seconds, mode=mode)
    with pytest.raises(LookupError):
        chunk.read_frames_at("variable", [1.0, seconds], mode=mode)


@pytest.mark.parametrize("id_", ["images", "empty"])
def test_an_item_without_times_is_an_error_that_says_so(chunk, id_):
    message = rf"item '{id_}' in .*data_0\.gulp has no presentation times"
    with pytest.raises(FrameTimeError, match=message):
        chunk.read_frames_at(id_, 0.0)


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (math.nan, ValueError),
        (math.inf, ValueError),
        pytest.param(10**400, ValueError, id="beyond floats"),
        ("12", TypeError),
        (["1"], TypeError),
        (b"1", TypeError),
        (None, TypeError),
        ([[0.5]], TypeError),
        (True, TypeError),
        (np.array([False, True]), TypeError),
    ],
)
@pytest.mark.parametrize("mode", ["at", "before", "nearest"])
def test_what_is_no_time_is_refused(chunk, seconds, error, mode):
    with pytest.raises(error, match="is no time"):
        chunk.read_frames_at("variable", seconds, mode=mode)


def test_damaged_extras_hinder_only_what_needs_them(chunk, tmp_path):
    path = tmp_path / "meta_0.gmeta"
    meta_dict = json.loads(path.read_bytes())
    meta_dict["variable"]["gulp2"]["pts"] = [[0, 1, 10**12]]
    path.write_text(json.dumps(meta_dict))
    damaged = GulpChunk(tmp_path / "data_0.gulp", path)
    assert len(damaged["variable"][0]) == 6
    message = r"item 'variable' .*: the 'gulp2' part of the entry is damaged: pts holds"
    with pytest.raises(MetaFileError, match=message):
        damaged.read_frames_at("variable", 0.0)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))]
)
def test_a_copy_of_an_item_reads_as_it_does(chunk, tmp_path, indexed, copied):
    item = GulpDirectory(tmp_path, indexed=indexed).item("variable")
    again = copied(item)
    assert again.meta == {"label": 1}
    assert again.entry == item.entry
    assert np.array_equal(again.read_clip([5, 0]), item.read_clip([5, 0]))
    assert again.frame_indices_at(0.5) == item.frame_indices_at(0.5)
