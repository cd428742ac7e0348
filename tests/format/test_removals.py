"""``deleted.json``, and JSON that carries its own check (rules 19 and 30)."""

from __future__ import annotations

import contextlib
import itertools
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.checked_json import dump_checked, has_own_form, load_checked
from gulpio2.format.removals import (
    Removals,
    dump_removals,
    entry_spans,
    load_removals,
    merge_spans,
)

ENTRY = {"frame_info": [[0, 0, 8], [8, 3, 8]], "meta_data": [{"label": "ü"}]}
spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda s: (s[0], sum(s)))
)


def test_a_checked_object_is_these_bytes():
    check = zlib.crc32(b'{"a": [1], "b": "\\u00fc"}')
    assert (
        dump_checked({"a": [1], "b": "ü"})
        == (
            b"{\n"
            b' "a": [\n'
            b"  1\n"
            b" ],\n"
            b' "b": "\\u00fc",\n'
            b' "check": "%08x"\n'  # CRC-32 of the object on one line, without the check
            b"}\n"
        )
        % check
    )


def test_every_changed_byte_and_every_cut_is_found():
    data = dump_checked({"a": [1, {"b": None}], "c": "text"})
    assert load_checked(data, where="x", advice="") == {
        "a": [1, {"b": None}],
        "c": "text",
    }
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        for bad in (bytes(damaged), data[:place]):
            with contextlib.suppress(MetaFileError):
                body = load_checked(bad, where="out/x", advice="")
                assert body == {"a": [1, {"b": None}], "c": "text"}
                assert not has_own_form(bad)
    assert has_own_form(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.decode().encode("utf-16"),
        lambda data: data + b"\n",
    ],
)
def test_another_form_of_the_same_content_is_read_and_told(change):
    body = {"a": [1, {"b": None}], "c": "t\u00fc", "n": 0.5}
    other = change(dump_checked(body))
    assert load_checked(other, where="x", advice="") == body
    assert not has_own_form(other)


def test_what_was_removed_reads_back_as_it_was_written():
    removals = Removals(
        deleted={3: [("a", ENTRY), ("ü", ENTRY)], 10: []},
        erased={0: [(0, 8), (16, 24)]},
    )
    data = dump_removals(removals)
    loaded = load_removals(data, where="x")
    assert loaded.deleted == {3: [("a", ENTRY), ("ü", ENTRY)]}
    assert loaded.erased == {0: [(0, 8), (16, 24)]}
    assert dump_removals(loaded) == data


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "is malformed: 'deleted'"),
        ({"deleted": [], "erased": {}}, "is malformed"),
        ({"deleted": {"x": []}, "erased": {}}, "is malformed: invalid literal"),
        ({"deleted": {"0": [["a"]]}, "erased": {}}, "is malformed"),
        ({"deleted": {"0": [["a", {}]]}, "erased": {}}, "item 'a': has no list"),
        ({"deleted": {}, "erased": {"0": [[0]]}}, "is malformed"),
        ({"deleted": {}, "erased": {"0": [[8, 0]]}}, r"\[8, 0\] is no span of a file"),
        ({"deleted": {}, "erased": {"0": [[-4, 0]]}}, r"\[-4, 0\] is no span"),
        ({"deleted": {}, "erased": {"0": [[0, 2**63]]}}, "is no span of a file"),
        ({"deleted": {}, "erased": {"0": [[0.5, 4]]}}, "is no span of a file"),
    ],
)
def test_what_fits_its_check_and_is_of_another_form_is_refused(body, message):
    with pytest.raises(MetaFileError, match=rf"^out/deleted\.json: .*{message}"):
        load_removals(dump_checked(body), where="out/deleted.json")


def test_the_spans_of_an_entry_are_those_of_its_records():
    assert entry_spans(json.loads(json.dumps(ENTRY))) == [(0, 8), (8, 16)]


@given(spans)
def test_merged_spans_cover_the_same_bytes_once(given_spans):
    merged = merge_spans(given_spans)
    covered = [at for start, stop in merged for at in range(start, stop)]
    assert covered == sorted({at for s in given_spans for at in range(*s)})
    assert all(one[1] < two[0] for one, two in itertools.pairwise(merged))
