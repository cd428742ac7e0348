"""What a look at one item of a run counts, keeps and tries."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pytest

from gulpio2.codecs import jpeg
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.ingest.estimate import MAP_BYTES
from gulpio2.ingest.looking import LookJob, LookTask, Settings, look_at
from gulpio2.testing import FrameAdapter, make_frames
from gulpio2.types import no_progress

VARIANTS = (
    Settings(EncoderSettings(90), None),
    Settings(EncoderSettings(60), None),
)


def look(adapter, position=0, *, num_varied=0):
    job = LookJob(adapter, VARIANTS, num_varied)
    return look_at(job, LookTask(position), no_progress)


def test_what_a_map_has_is_counted_beside_the_frames():
    small, large = (
        look(FrameAdapter(num_items=1, num_frames=number)) for number in (5, 10)
    )
    beside = [each.num_bytes - each.frame_bytes for each in (small, large)]
    assert beside[1] - beside[0] == 5 * MAP_BYTES


def test_the_facts_of_a_source_are_counted():
    info = {"codec": "h264", "note": "x" * 1000}

    class Frames(list):
        def source_info(self):
            return info

    class Sourced(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": Frames(item["frames"])}

    sourced, plain = (cls(num_items=1, num_frames=3) for cls in (Sourced, FrameAdapter))
    more = look(sourced).num_bytes - look(plain).num_bytes
    assert len(json.dumps(info)) <= more <= len(json.dumps(info)) + 200


def test_what_was_odd_of_an_item_is_told_beside_what_made_it_fail():
    (frame,) = make_frames(1, 64, 96)
    whole = encode_frame(frame, EncoderSettings())

    class Failing(FrameAdapter):
        def _frames(self, number):
            yield whole[: len(whole) // 2] + b"\xff\xd9"
            raise OSError("no more")

    assert set(look(Failing(num_items=1)).odd) == {
        "stored as it is, and not readable",
        "unreadable",
    }


@pytest.mark.parametrize("position", range(1, 4))
def test_of_each_item_a_jpeg_is_kept_of_all_settings(position):
    kept = look(FrameAdapter(num_items=4, num_frames=2), position).kept
    assert {number: len(jpegs) for number, jpegs in kept.items()} == {0: 1, 1: 1}


def test_a_quarter_of_the_first_frames_is_tried_otherwise_and_then_a_sixteenth():
    found = look(FrameAdapter(num_items=1, num_frames=1000))
    # 100 of the first 400, and 37 of the others.
    assert found.others[1].frames == pytest.approx(137, abs=8)


def test_items_of_one_frame_take_turns_once_there_are_many():
    adapter = FrameAdapter(num_items=64, num_frames=1)
    tried = [look(adapter, n, num_varied=100).others for n in range(64)]
    assert sum(map(bool, tried)) == pytest.approx(16, abs=2)


def test_the_time_is_that_of_decoding_all_and_of_encoding_all(monkeypatch):
    """By a clock that goes on by one second whenever it is asked."""
    encoded = []

    def count(image, settings):
        if settings == VARIANTS[0].encoder:
            encoded.append(image)
        else:
            next(ticks)  # what is tried is no part of a run
        return jpeg.encode_frame(image, settings)

    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("gulpio2.ingest.looking.time", clock)
    monkeypatch.setattr("gulpio2.ingest.looking.encode_frame", count)
    found = look(FrameAdapter(num_items=1, num_frames=60))
    assert 16 < len(encoded) < 60
    # A second for each that is encoded, and one before each of them and at the end.
    assert found.seconds == len(encoded) + 1 + 60
