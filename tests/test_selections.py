"""Any selection, read in any way, is that of a full read; opened in any way."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import FrameIndexError
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames
from gulpio2.types import StoredFrame
from tests.test_reading import NUM_FRAMES, chosen, count_reads, selections

if TYPE_CHECKING:
    from collections.abc import Iterator

HEIGHT, WIDTH = 40, 56
TICKS = [3 * number + (number > 5) for number in range(NUM_FRAMES)]
TIME_BASE = Fraction(1, 30)


class Timed:
    """A frame source with times."""

    time_base = TIME_BASE

    def __init__(self, *, grey: bool) -> None:
        self.grey = grey

    def __len__(self) -> int:
        return NUM_FRAMES

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(make_frames(NUM_FRAMES, HEIGHT, WIDTH, grey=self.grey))

    def stored(self) -> Iterator[StoredFrame]:
        for frame, tick in zip(self, TICKS, strict=True):
            yield StoredFrame(encode_frame(frame, EncoderSettings()), tick)

    def source_info(self) -> dict[str, Any]:
        return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an item of colour and one of grey, whose records lie mixed."""
    path = tmp_path_factory.mktemp("gulped")
    chunk = GulpChunk(path / "data_0.gulp", path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("first", {}, make_frames(3, HEIGHT, WIDTH))
        chunk.append("colour", {"label": 1}, Timed(grey=False))
        chunk.append("grey", {"label": 2}, Timed(grey=True))
    return path


def by_maps(folder: Path) -> Any:
    return GulpDirectory(folder, indexed=False)


def by_index_file(folder: Path) -> Any:
    build_index(folder)
    directory = GulpDirectory(folder, indexed=True)
    assert directory._index is not None
    assert directory._index.mapped
    return directory


def by_index_in_memory(folder: Path) -> Any:
    (folder / "index.arrow").unlink(missing_ok=True)
    unfinished = folder / "data_1.gulp.0a.partial"  # nothing is written beside it
    unfinished.touch()
    directory = GulpDirectory(folder, indexed=True)
    unfinished.unlink()
    assert directory._index is not None
    assert not directory._index.mapped
    return directory


def by_view(folder: Path) -> Any:
    return GulpDirectory(folder, indexed=True).query(
        "num_frames > 3 and label in [1, 2]"
    )


def by_chunk(folder: Path) -> Any:
    (chunk,) = GulpDirectory(folder, indexed=True)
    return chunk


WAYS = [by_maps, by_index_file, by_index_in_memory, by_view, by_chunk]


def regions(draw: Any) -> Any:
    """Draw a region, or none."""
    if draw(st.booleans()):
        return None
    top, left = draw(st.integers(0, HEIGHT - 1)), draw(st.integers(0, WIDTH - 1))
    height = draw(st.integers(1, HEIGHT - top))
    return top, left, height, draw(st.integers(1, WIDTH - left))


@pytest.mark.parametrize("way", WAYS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_selection_is_that_of_a_full_read(folder, way, data):
    reader = way(folder)
    id_ = data.draw(st.sampled_from(["colour", "grey"]))
    selection = data.draw(selections)
    options = {
        "scale": data.draw(st.sampled_from([1, 2, 4, 8])),
        "crop": regions(data.draw),
        "colorspace": data.draw(st.sampled_from(["source", "rgb", "gray"])),
    }
    everything = list(GulpDirectory(folder, indexed=False).read_clip(id_, **options))
    expected = chosen(everything, selection)
    clip = reader.read_clip(id_, selection, **options)
    assert clip.shape == (len(expected), *everything[0].shape)
    for frame, want in zip(clip, expected, strict=True):
        np.testing.assert_array_equal(frame, want)
    out = np.full(clip.shape, 7, np.uint8)
    assert reader.read_clip(id_, selection, out=out, **options) is out
    np.testing.assert_array_equal(out, clip)
    pair = reader.read_clips([(id_, selection)] * 2, **options)
    np.testing.assert_array_equal(pair, np.stack([clip, clip]))


@pytest.mark.parametrize("way", WAYS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_frames_stored_bytes_and_times_are_selected_alike(folder, way, data):
    reader = way(folder)
    plain = GulpDirectory(folder, indexed=False)
    id_ = data.draw(st.sampled_from(["colour", "grey"]))
    selection = data.draw(selections)
    everything, meta = plain[id_]
    frames, found = reader[id_, selection]
    assert found == meta
    expected = chosen(everything, selection)
    assert len(frames) == len(expected)
    for frame, want in zip(frames, expected, strict=True):
        np.testing.assert_array_equal(frame, want)
    assert reader.read_jpegs(id_, selection) == chosen(plain.read_jpegs(id_), selection)
    indices = list(range(NUM_FRAMES))
    seconds = [float(TICKS[index] * TIME_BASE) for index in chosen(indices, selection)]
    timed, _ = reader.read_frames_at(id_, seconds)
    for frame, want in zip(timed, expected, strict=True):
        np.testing.assert_array_equal(frame, want)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="no /proc/self/io")
@pytest.mark.parametrize("way", WAYS)
def test_a_contiguous_clip_is_one_system_call_however_it_was_opened(folder, way):
    reader = way(folder)
    out = np.empty((8, HEIGHT, WIDTH, 3), np.uint8)
    reader.read_clip("grey", 0)  # opens the data file
    first = count_reads(lambda: reader.read_clip("colour", slice(0, 8), out=out))
    assert first <= 2, "the clip, and the item's entry in the map, once"
    for start in (0, 3, 4):
        clip = slice(start, start + 8)
        assert count_reads(partial(reader.read_clip, "colour", clip, out=out)) == 1
        assert count_reads(partial(reader.read_frames, "colour", clip)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_mask_is_one_of_another_length(folder, way):
    reader = way(folder)
    message = "a mask of 0 values cannot select from"
    with pytest.raises(FrameIndexError, match=message):
        reader.read_clip("colour", np.zeros(0, bool))
    ways_of_nothing: list[Any] = [[], (), np.array([]), np.array([], int)]
    for nothing in ways_of_nothing:
        assert len(reader.read_clip("colour", nothing)) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", [slice(0, 4, 0), slice(0, 1.5), "x", True])
def test_what_is_no_selection_is_refused_with_the_item(folder, way, wrong):
    with pytest.raises((TypeError, ValueError), match="item 'colour': cannot select"):
        way(folder)["colour", wrong]
