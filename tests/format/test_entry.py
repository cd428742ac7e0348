"""Extras of an entry (rules 12 to 17)."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.entry import (
    EntryExtras,
    covered_part,
    dump_extras,
    entry_check,
    load_extras,
    seal_entry,
)
from gulpio2.format.tick_runs import expand_runs, ticks_to_runs

if TYPE_CHECKING:
    from gulpio2.types import JsonValue

ticks = st.lists(st.integers(-(2**62), 2**62), max_size=30)
# Mostly even steps, as videos have them.
even = st.builds(
    lambda start, step, count, more: [start + step * k for k in range(count)] + more,
    st.integers(-1000, 1000),
    st.integers(-50, 50),
    st.integers(0, 40),
    st.lists(st.integers(-1000, 1000), max_size=5),
)


def make_entry(num_frames: int = 3, **more: Any) -> dict[str, Any]:
    """Make a whole entry with extras."""
    entry: dict[str, Any] = {
        "frame_info": [[8 * n, 0, 8] for n in range(num_frames)],
        "meta_data": [{"label": "a"}],
        "gulp2": dump_extras(crc32=list(range(num_frames)), **more),
    }
    entry["gulp2"]["check"] = entry_check("id", entry)
    return entry


def test_extras_are_these_bytes():
    extras = dump_extras(
        crc32=[0xCBF43926, 1],
        time_base=Fraction(1, 14336),
        pts=[0, 512],
        source={"width": 340},
    )
    assert json.dumps(extras) == (
        '{"crc32": '
        # CB F4 39 26 and 00 00 00 01, least significant byte first
        '"Jjn0ywEAAAA=", '
        '"time_base": [1, 14336], '  # seconds per tick
        '"pts": [[0, 512, 2]], '  # start, step, count
        '"source": {"width": 340}}'
    )
    assert base64.b64decode("Jjn0ywEAAAA=") == b"\x26\x39\xf4\xcb\x01\0\0\0"


def test_what_is_not_known_has_no_key():
    assert dump_extras(crc32=[]) == {"crc32": ""}
    assert "pts" not in dump_extras(crc32=[1], pts=[4])
    assert "time_base" not in dump_extras(crc32=[1], time_base=Fraction(1, 2))
    assert "source" not in dump_extras(crc32=[1], source={})


def test_the_check_is_the_crc32_of_id_and_entry_without_it():
    entry = make_entry(1)
    text = (
        '["id", {"frame_info": [[0, 0, 8]], "meta_data": [{"label": "a"}], '
        '"gulp2": {"crc32": "AAAAAA=="}}]'
    )
    assert entry["gulp2"]["check"] == f"{zlib.crc32(text.encode()):08x}"
    assert entry_check("id", entry) == entry["gulp2"]["check"]
    assert entry_check("di", entry) != entry["gulp2"]["check"]


@pytest.mark.parametrize(
    ("pts", "runs"),
    [
        ([], []),
        ([7], [[7, 0, 1]]),
        ([7, 7, 7], [[7, 0, 3]]),
        ([0, 512, 1024], [[0, 512, 3]]),
        ([0, 512, 1024, 1030], [[0, 512, 3], [1030, 0, 1]]),
        ([3, 2, 1, 1], [[3, -1, 3], [1, 0, 1]]),
        ([0, 33, 67, 100, 133], [[0, 33, 2], [67, 33, 3]]),
        ([-4, 0], [[-4, 4, 2]]),
    ],
)
def test_times_are_runs_each_as_long_as_can_be(pts, runs):
    assert ticks_to_runs(pts) == runs
    assert expand_runs(runs, len(pts)) == tuple(pts)


@given(ticks | even)
def test_runs_expand_to_the_times_that_they_were_made_from(pts):
    runs = json.loads(json.dumps(ticks_to_runs(pts)))
    assert expand_runs(runs, len(pts)) == tuple(pts)
    assert len(runs) <= len(pts)


def test_an_hour_at_a_constant_rate_is_one_run():
    assert ticks_to_runs(range(0, 108_000 * 512, 512)) == [[0, 512, 108_000]]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([[0, 512, 2]], "pts holds 2 times for 3 frames"),
        ([[0, 1, 10**15]], "pts holds 1000000000000000 times for 3 frames"),
        ([[0, 1, 4], [0, 1, -1]], "pts holds 3 times for 3 frames"),
        ([[0, 1, 3], [0, 1, 0]], "pts holds 3 times for 3 frames"),
        ([[0, 1]], "pts is not a list of"),
        ([[0, 1, 3.0]], "pts is not a list of"),
        ([[0, True, 3]], "pts is not a list of"),
        ([0, 1, 3], "pts is not a list of"),
        ("abc", "pts is not a list of"),
        ({}, "pts is not a list of"),
        (None, "pts is not a list of"),
    ],
)
def test_runs_that_are_none_are_refused_before_they_are_expanded(runs, message):
    with pytest.raises(MetaFileError, match=message):
        expand_runs(runs, 3)


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(-(2**40), 2**40))),
    st.fractions(min_value=Fraction(1, 10**6), max_value=10),
)
def test_extras_read_back_as_they_were_written(frames, time_base):
    crc32 = [crc for crc, _ in frames]
    pts = [tick for _, tick in frames]
    source: dict[str, JsonValue] = {"rotation": 90, "frame_rate": [30000, 1001]}
    extras = dump_extras(crc32=crc32, time_base=time_base, pts=pts, source=source)
    entry = {"frame_info": [[0, 0, 4]] * len(frames), "gulp2": extras}
    loaded = load_extras(json.loads(json.dumps(entry)), where="x")
    assert loaded.crc32.tolist() == crc32
    assert loaded.pts == tuple(pts)
    assert loaded.time_base == (time_base if frames else None)
    assert loaded.source == source
    packed = base64.b64decode(str(extras["crc32"]))
    assert packed == struct.pack(f"<{len(crc32)}I", *crc32)


def test_an_entry_of_the_original_has_no_extras():
    extras = load_extras({"frame_info": [[0, 0, 4]], "meta_data": [{}]}, where="x")
    assert (len(extras.crc32), extras.pts, extras.time_base) == (0, (), None)
    assert (extras.source, extras.check) == ({}, None)
    assert EntryExtras().crc32.size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crc32": "AAAA"}, "3 bytes of crc32 for 3 frames"),
        ({"crc32": "A" * 24}, "18 bytes of crc32 for 3 frames"),
        ({"crc32": "=!"}, "the 'gulp2' part of the entry is damaged"),
        ({"crc32": "ü"}, "ASCII"),
        ({"crc32": 5}, "damaged"),
        ({"crc32": None}, "damaged"),
        ({"time_base": [1, 0]}, r"time_base is \[1, 0\]"),
        ({"time_base": [1]}, r"time_base is \[1\]"),
        ({"time_base": 0.5}, "time_base is 0.5"),
        ({"time_base": [True, 2]}, "time_base is"),
        ({"pts": [[0, 1, 2]]}, "pts holds 2 times for 3 frames"),
        ({"pts": [[0, 1, 9 * 10**4299], [0, 1, 9 * 10**4299]]}, "damaged"),
        ({"source": 1}, "source is 1 and no object"),
        ({"check": 1}, "check is 1 and no string"),
    ],
)
def test_damaged_extras_are_an_error_that_names_the_item(change, message):
    entry = make_entry(3)
    entry["gulp2"].update(change)
    with pytest.raises(MetaFileError, match=message) as caught:
        load_extras(entry, where="item 'id' of data_0.gulp")
    assert str(caught.value).startswith("item 'id' of data_0.gulp: ")


# --- rule 17: another program has appended ------------------------------------------


def test_the_check_covers_the_whole_entry():
    entry = make_entry(3)
    assert covered_part("id", entry) is entry


@pytest.mark.parametrize("num_metas", [1, 2, 5])
@pytest.mark.parametrize("num_frames", [0, 1, 7])
def test_what_another_program_appended_is_left_out_of_what_the_check_covers(
    num_metas, num_frames
):
    entry = make_entry(3, time_base=Fraction(1, 5), pts=[0, 1, 2])
    extended = {
        **entry,
        "frame_info": entry["frame_info"] + [[24, 0, 8]] * num_frames,
        "meta_data": entry["meta_data"] + [{"by": "it"}] * num_metas,
    }
    assert covered_part("id", extended) == entry
    extras = load_extras(extended, where="x")
    if num_frames:
        assert extras.crc32.size == 0
        assert (extras.pts, extras.check) == ((), None)


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry["frame_info"][0].__setitem__(0, 4),
        lambda entry: entry["meta_data"][0].__setitem__("label", "b"),
        lambda entry: entry["gulp2"].__setitem__("check", "00000000"),
        lambda entry: entry["gulp2"].pop("check"),
        lambda entry: entry["gulp2"].__setitem__("crc32", "AAAAAAEAAAACAAAB"),
        lambda entry: entry["frame_info"].pop(),
    ],
)
@pytest.mark.parametrize("appended", [False, True])
def test_a_changed_entry_is_covered_by_no_check(damage, appended):
    entry = make_entry(3)
    if appended:
        entry["frame_info"].append([24, 0, 8])
        entry["meta_data"].append({})
    damage(entry)
    if appended and len(entry["frame_info"]) == 3:
        return  # what was taken away is what had been appended
    assert covered_part("id", entry) is None


def test_looking_for_what_was_appended_ends():
    entry = make_entry(1)
    entry["meta_data"] = [{}] * 100_000
    assert covered_part("id", entry) is None


@pytest.mark.parametrize(
    "extras",
    [
        dump_extras(crc32=[1, 2]),
        dump_extras(
            crc32=[3],
            time_base=Fraction(1, 25),
            pts=[7],
            source={"codec": "h264", "name": 'ä "quoted" }}'},
        ),
    ],
)
def test_a_sealed_entry_is_the_json_of_the_entry_with_its_check(extras):
    id_ = 'clip "1" ü'
    entry: dict[str, Any] = {"frame_info": [[0, 1, 4]], "meta_data": [{"a": [None]}]}
    checked = {**extras, "check": ""}
    expected = {**entry, "gulp2": checked}
    checked["check"] = entry_check(id_, expected)
    entry["gulp2"] = extras
    assert seal_entry(id_, entry) == json.dumps(expected)
    assert entry == expected
