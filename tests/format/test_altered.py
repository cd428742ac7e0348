"""Entries that are not what their checks say, found in the text of a map."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.altered import altered_ids, describe_altered, is_altered
from gulpio2.format.entry import dump_extras, entry_check, verify_entry
from gulpio2.format.gmeta import load_gmeta
from gulpio2.format.scan import UnusualMapError, scan_gmeta

# The text of a check may stand in ids and metadata as well.
texts = st.sampled_from(
    ["a", "b", '"', 'x", "check": "00000000"}}', "check", "gulp2", "\ud800", "ü"]
)
metas = st.recursive(
    st.one_of(texts, st.integers(), st.none()),
    lambda inner: st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
# With extras, without, extended by 0.0.4, with a further key, with no check.
kinds = st.sampled_from(["sealed", "plain", "extended", "further", "unchecked"])


def make_entry(id_: str, kind: str, meta: Any, num_frames: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "frame_info": [[8 * n, 0, 8] for n in range(num_frames)],
        "meta_data": [meta],
    }
    if kind == "further":
        entry["more"] = meta
    if kind != "plain":
        entry["gulp2"] = dump_extras(crc32=list(range(num_frames)))
        if kind != "unchecked":
            entry["gulp2"]["check"] = entry_check(id_, entry)
    if kind == "extended":
        entry["frame_info"].append([8 * num_frames, 0, 8])
        entry["meta_data"].append(meta)
    return entry


def fits(id_: str, entry: Any) -> bool:
    try:
        verify_entry(id_, entry, where="")
    except MetaFileError:
        return False
    return True


entries = st.lists(
    st.tuples(texts, kinds, metas, st.integers(0, 3)),
    max_size=5,
    unique_by=lambda drawn: drawn[0],
).map(lambda drawn: {each[0]: make_entry(*each) for each in drawn})


@given(entries, st.sampled_from([None, 1]), st.data())
@example({"a": make_entry("a", "sealed", "label", 2)}, None, None)
def test_it_is_those_that_do_not_fit_their_checks_wherever_a_byte_has_changed(
    map_, indent, drawn
):
    data = bytearray(json.dumps(map_, indent=indent).encode("ascii"))
    if drawn is not None and data:
        at = drawn.draw(st.integers(0, len(data) - 1))
        data[at] ^= 1 << drawn.draw(st.integers(0, 6))
    else:
        data[data.index(b"label")] ^= 1
    try:
        loaded = load_gmeta(bytes(data), where="")
    except MetaFileError:
        return
    wrong = [id_ for id_, entry in loaded.items() if not fits(id_, entry)]
    assert altered_ids(bytes(data), loaded) == wrong
    if drawn is None:
        assert wrong == ["a"]
    try:
        scanned = list(scan_gmeta(bytes(data), where=""))
    except UnusualMapError:
        return
    found = [
        entry.id_
        for entry in scanned
        if is_altered(memoryview(data)[entry.start : entry.stop], entry.id_)
    ]
    assert found == wrong


def test_a_map_in_another_form_is_looked_at_entry_by_entry():
    map_ = {str(n): make_entry(str(n), "sealed", {"n": n}, 1) for n in range(20)}
    map_["7"]["meta_data"][0]["n"] = 8
    data = json.dumps(map_, separators=(",", ":")).encode("ascii")
    assert altered_ids(data, load_gmeta(data, where="")) == ["7"]


def test_how_many_there_are_is_said():
    assert describe_altered("a", 1).startswith("the entry of item 'a' is not what ")
    many = describe_altered("a", 1201)
    assert many.startswith("the entry of item 'a' (and of 1,200 others) is not what ")
