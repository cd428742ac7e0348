"""Entries out of a damaged map, and frames by their markers."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.salvage import (
    JpegFinder,
    gaps_between,
    placeholder_id,
    salvage_map,
)
from gulpio2.testing import make_frames

ENTRIES = {
    id_: {"frame_info": [[0, 1, 8]], "meta_data": [{"name": id_}]}
    for id_ in ("plain", 'quo"te', "back\\slash\\", "übung", "\\\\", '\\"', "")
}


def jpegs(count=3):
    return [
        encode_frame(frame, EncoderSettings()) for frame in make_frames(count, 16, 16)
    ]


def padded(data):
    return data + bytes(-len(data) % 4)


def test_every_entry_of_a_whole_map_is_found():
    assert salvage_map(dump_gmeta(ENTRIES)) == list(ENTRIES.items())


def test_entries_before_a_cut_are_found():
    data = dump_gmeta(ENTRIES)
    for stop in range(len(data)):
        found = salvage_map(data[:stop])
        assert found == list(ENTRIES.items())[: len(found)]
    assert len(found) == len(ENTRIES)  # only the last brace is missing


def test_entries_after_a_cut_at_the_front_are_found():
    data = dump_gmeta(ENTRIES)
    names = list(ENTRIES.values())
    for start in range(1, len(data)):
        found = [entry for _, entry in salvage_map(data[start:])]
        assert found == (names[-len(found) :] if found else [])


def test_an_entry_with_a_damaged_byte_costs_itself_alone():
    data = bytearray(dump_gmeta(ENTRIES))
    at = data.index(b'"back') + 12
    data[at : at + 8] = b"\0" * 8
    found = dict(salvage_map(bytes(data)))
    assert found == {k: v for k, v in ENTRIES.items() if not k.startswith("back")}


def test_what_stands_in_metadata_is_no_entry():
    inner = {"x": {"frame_info": [[0, 0, 4]], "meta_data": [{}]}}
    entry = {"frame_info": [[0, 0, 4]], "meta_data": [inner]}
    assert salvage_map(dump_gmeta({"outer": entry})[:-1]) == [("outer", entry)]


def test_no_rest_of_a_map_is_copied_for_an_entry_that_seems_to_hold_another():
    inner = {"x": {"frame_info": [[0, 0, 4]], "meta_data": [{}]}}
    entry = {"frame_info": [[0, 0, 4]], "meta_data": [inner]}
    data = dump_gmeta({"outer": entry}) + b" " * 10_000_000
    tracemalloc.start()
    found = salvage_map(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [("outer", entry)]
    assert peak < 1.5 * len(data)


@given(st.binary(max_size=300))
def test_anything_else_gives_nothing_and_no_error(data):
    assert salvage_map(data) == []


@pytest.mark.parametrize(
    "data",
    [
        b'\\"' * 200_000 + b'": {"frame_info": ' * 20_000,
        b'"a": {"frame_info": [' * 20_000,
        b'"a": {"frame_info": ' * 20_000,
        b'"a": {"frame_info": "' + b"x" * 300_000,
    ],
    ids=["quotes", "lists", "objects", "string"],
)
def test_a_crafted_map_takes_no_long_time(data):
    began = time.monotonic()
    salvage_map(data)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("spans", "size", "gaps"),
    [
        ([], 8, [(0, 8)]),
        ([(0, 8)], 8, []),
        ([(4, 8)], 12, [(0, 4), (8, 12)]),
        ([(0, 6), (4, 8)], 8, []),
        ([(4, 400)], 8, [(0, 4)]),
        ([(100, 400)], 8, [(0, 8)]),
        ([], 0, []),
        ([(2, 3)], 0, []),
    ],
)
def test_gaps_are_what_is_between(spans, size, gaps):
    assert gaps_between(spans, size) == gaps


def test_frames_are_found_one_after_another():
    frames = jpegs()
    data = b"".join(padded(frame) for frame in frames)
    finder = JpegFinder(data)
    found = []
    position = 0
    while (frame := finder.find(position, len(data))) is not None:
        found.append(data[frame.start : frame.stop])
        position = frame.stop
    assert found == frames


def test_a_frame_that_lost_its_end_does_not_swallow_the_next():
    one, two, three = jpegs()
    data = padded(one) + padded(two[:-2]) + padded(three)
    finder = JpegFinder(data)
    first = finder.find(0, len(data))
    assert first is not None
    second = finder.find(first.stop, len(data))
    assert second is not None
    assert data[first.start : first.stop] == one
    assert data[second.start : second.stop] == three


def test_a_frame_after_rubbish_is_found_where_records_begin():
    (frame,) = jpegs(1)
    for front in (b"\xff\xd8\xff\xe0" * 10, b"\xff" * 40, bytes(40)):
        found = JpegFinder(front + frame).find(0, len(front) + 4)
        assert found == (len(front), len(front) + len(frame))
    assert JpegFinder(b"ab" + frame).find(0, 100) is None
    assert JpegFinder(b"ab" + frame, 1).find(0, 100) == (2, 2 + len(frame))


@pytest.mark.parametrize("alignment", [1, 4])
@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff\xe0" * 100_000,
        b"\xff\xd8\xff\xc4\xff\xfe" * 60_000 + bytes(4_000_000),
        b"\xff\xd8\xff\xc4\0\x02" + b"\xff\xc4\0\x02" * 200_000,
        b"\xff\xd8\xff\xc4\xf0\0" * 10_000 + b"\xff\xc4\0\x02" * 100_000,
        b"\xff\xd8" + b"\xff" * 10_000_000,  # as of flash memory that was erased
        b"\xff\xd8\xff\xe0\0\x02" + (b"\xff" * 1000 + b"\0") * 1000,
    ],
    ids=["starts", "long runs", "chain", "starts and chain", "ones", "runs of ones"],
)
def test_crafted_markers_take_no_long_time(data, alignment):
    began = time.monotonic()
    assert JpegFinder(data, alignment).find(0, len(data)) is None
    assert time.monotonic() - began < 20


def test_a_placeholder_says_where_the_first_frame_was():
    assert placeholder_id(7, 128) == "salvaged_7_128"
    assert json.loads(json.dumps(placeholder_id(0, 0))) == "salvaged_0_0"
