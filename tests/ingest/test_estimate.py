"""How much a run will store, and its refusal where that cannot fit."""

import errno
import sys

import pytest

from gulpio2 import GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import StorageError
from gulpio2.ingest.estimate import estimate
from gulpio2.storage.local import free_bytes
from gulpio2.testing import FrameAdapter


def stored_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.g*"))


@pytest.mark.parametrize("num_frames", [3, 40])
def test_an_estimate_is_close_where_items_are_alike(tmp_path, num_frames):
    adapter = FrameAdapter(num_items=30, num_frames=num_frames)
    found = estimate(adapter, EncoderSettings(), sample=5)
    report = GulpIngestor(adapter, tmp_path, 10, 1).run()
    assert (found.items, found.sampled) == (30, 5)
    assert found.frames == report.frames
    assert found.num_bytes == pytest.approx(stored_bytes(tmp_path), rel=0.15)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_long_item_stands_for_those_whose_files_are_as_large(tmp_path, is_known):
    """It is one of the eight that are looked at, and the only one of 200."""

    class Uneven(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                length = 300 if item["meta"]["number"] == 12 else 3
                yield {**item, "frames": [*item["frames"]] * length}

        def item_source(self, position):
            path = tmp_path / f"{position}.mp4"
            path.write_bytes(bytes((300 if position == 12 else 3) * 100))
            return str(path) if is_known else None

    found = estimate(Uneven(num_items=200, num_frames=1), EncoderSettings())
    assert found.sampled == 8
    frames = 300 + 199 * 3
    assert (found.frames == pytest.approx(frames, rel=0.01)) == is_known
    assert (found.frames > 8 * frames) == (not is_known)


def test_files_that_say_nothing_of_the_items_change_nothing(tmp_path):
    class Images(FrameAdapter):
        def item_source(self, position):
            path = tmp_path / f"{position}.png"
            path.write_bytes(bytes(100 + 5000 * (position % 3)))
            return str(path)

    found = estimate(Images(num_items=100, num_frames=1), EncoderSettings())
    assert found.frames == 100


def test_items_that_cannot_be_read_are_counted_and_passed_over():
    adapter = FrameAdapter(num_items=4, num_frames=2, bad=[1])
    found = estimate(adapter, EncoderSettings(), sample=4)
    assert (found.sampled, found.frames) == (4, 6)


class Ending(FrameAdapter):
    """Ends the program in place of the frames of every third item."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            ends = item["meta"]["number"] % 3 == 0
            yield {**item, "frames": self._exit()} if ends else item

    def _exit(self):
        yield from ()
        sys.exit("no more")


def test_an_item_that_ends_the_program_is_one_that_cannot_be_read(tmp_path):
    adapter = Ending(num_items=210, num_frames=1)
    found = estimate(adapter, EncoderSettings(), sample=210)
    assert (found.sampled, found.frames) == (210, 140)
    report = GulpIngestor(adapter, tmp_path, 70, 1).run()  # which makes an estimate
    assert (report.items, len(report.failures)) == (140, 70)


def test_only_the_positions_that_are_left_count():
    adapter = FrameAdapter(num_items=50, num_frames=2)
    found = estimate(adapter, EncoderSettings(), positions=[3, 8, 9])
    assert (found.items, found.sampled, found.frames) == (3, 3, 6)


def test_nothing_to_store_is_nothing():
    found = estimate(FrameAdapter(num_items=2), EncoderSettings(), positions=[])
    assert (found.sampled, found.num_bytes) == (0, 0)


def test_time_is_limited_after_the_first_item():
    adapter = FrameAdapter(num_items=50, num_frames=2)
    found = estimate(adapter, EncoderSettings(), max_seconds=-1)
    assert (found.sampled, found.frames) == (1, 100)


@pytest.mark.usefixtures("small_disk")
def test_a_long_run_that_cannot_fit_is_refused_before_anything_is_stored(tmp_path):
    assert free_bytes(tmp_path) == 20 * 1024
    adapter = FrameAdapter(num_items=200, num_frames=1)
    with pytest.raises(StorageError, match="--ignore-space") as caught:
        GulpIngestor(adapter, tmp_path, 50, 1).run()
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.glob("*.gulp")) == []
    report = GulpIngestor(adapter, tmp_path, 50, 1, ignore_space=True, resume=True)
    assert report.run().items == 200


@pytest.mark.usefixtures("small_disk")
def test_a_short_run_is_begun_without_an_estimate(tmp_path):
    adapter = FrameAdapter(num_items=199, num_frames=1)
    assert GulpIngestor(adapter, tmp_path, 50, 1).run().items == 199


def test_a_folder_that_nobody_knows_has_unknown_room(tmp_path):
    assert free_bytes(tmp_path / "nothing") is None
