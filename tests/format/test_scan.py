"""The entries of a map one by one: as a full load has them, and where they are."""

from __future__ import annotations

import json
from collections import OrderedDict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.format.scan import UnusualMapError, parse_spans, scan_gmeta

triplets = st.tuples(
    st.integers(0, 2**40), st.integers(0, 3), st.integers(3, 2**31)
).map(list)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=5,
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
# As those of items without times are, or nearly so.
short = st.fixed_dictionaries(
    {
        "crc32": st.sampled_from(
            ["", "AAAA", "AA==", "AAAAAAA=", "A", "AA==AAAA", '"']
        ),
        "check": st.sampled_from(["01234567", "89abcdef", "0123456", "ABCDEF01"]),
    }
)
entries = st.fixed_dictionaries(
    {
        "frame_info": st.lists(triplets, max_size=4),
        "meta_data": st.lists(st.dictionaries(texts, json_values, max_size=3)),
    },
    optional={"gulp2": st.dictionaries(texts, json_values, max_size=2) | short},
)
maps = st.dictionaries(texts, entries, max_size=4)


def assert_scanned_like_loaded(data: bytes) -> None:
    """Compare every entry with that of a full load."""
    loaded = load_gmeta(data, where="map")
    scanned = list(scan_gmeta(data, where="map"))
    assert [entry.id_ for entry in scanned] == list(loaded)
    for entry in scanned:
        want = loaded[entry.id_]
        spans = parse_spans([entry.spans_text])
        assert spans.tolist() == want["frame_info"]
        assert entry.num_frames == len(spans)
        assert json.loads(entry.meta_text) == want["meta_data"]
        assert entry.extras == want.get("gulp2")
        text = data[entry.start : entry.stop]
        (found,) = json.loads(b"{%s}" % text, object_pairs_hook=OrderedDict).items()
        assert found == (entry.id_, want)


@given(maps)
def test_a_map_as_it_is_written_is_scanned_as_it_is_loaded(meta_dict):
    assert_scanned_like_loaded(dump_gmeta(meta_dict))


@given(maps, st.sampled_from([None, 1]), st.booleans())
def test_a_map_written_in_another_way_is_too(meta_dict, indent, ascii_only):
    text = json.dumps(meta_dict, indent=indent, ensure_ascii=ascii_only)
    try:
        data = f" {text}\n".encode()
    except UnicodeEncodeError:
        return
    assert_scanned_like_loaded(data)


def test_the_golden_maps_are_scanned_as_they_are_loaded(repository):
    paths = sorted((repository / "tests" / "golden").glob("*/*.gmeta"))
    assert len(paths) > 10
    for path in paths:
        if path.parent.name != "pickled":
            assert_scanned_like_loaded(path.read_bytes())


ENTRY = '{"frame_info": [[0, 0, 4]], "meta_data": [{}]}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"a": {}}',
        f'{{"a": {ENTRY}',
        f'{{"a": {ENTRY}}} x',
        f'{{"a": {ENTRY}, "a": {ENTRY}}}',
        f'{{"a": {ENTRY},}}',
        f"{{7: {ENTRY}}}",
        '{"a": {"frame_info": [[0, 4, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [[0, 3, 2]], "meta_data": []}}',
        '{"a": {"frame_info": [[-1, 0, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [[0.0, 0, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [[true, 0, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [[0, 0, 4], [1, 2]], "meta_data": []}}',
        '{"a": {"frame_info": [[00, 0, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [[99999999999999999999, 0, 4]], "meta_data": []}}',
        '{"a": {"frame_info": [], "meta_data": [3]}}',
        '{"a": {"frame_info": [], "meta_data": [{"x": ]}}',
        '{"a": {"frame_info": [], "meta_data": [{}]',
        '{"a": {"meta_data": [{}]}}',
        '{"a": {"frame_info": []}}',
        *(
            f'{{"a": {{"frame_info": [], "meta_data": {metas}, '
            '"gulp2": {"crc32": "AAAA", "check": "01234567"}}}'
            for metas in ("5", "[3]", "{}", "null", '[{}, "x"]')
        ),
        "[" * 100_000,
    ],
)
def test_what_is_no_map_is_refused_as_a_full_load_refuses_it(text):
    with pytest.raises(MetaFileError) as scanned:
        list(scan_gmeta(text.encode(), where="map"))
    with pytest.raises(MetaFileError) as loaded:
        load_gmeta(text.encode(), where="map")
    assert str(scanned.value) == str(loaded.value)


@pytest.mark.parametrize(
    "data",
    [
        f'{{"a": {ENTRY}}}'.encode("utf-16"),
        f'{{"\\ud800": {ENTRY}}}'.encode(),
        b'{"a": {"frame_info": [], "frame_info": [], "meta_data": []}}',
    ],
    ids=["utf-16", "half a character", "a key twice"],
)
def test_what_only_a_full_load_understands_is_said_to_be_so(data):
    load_gmeta(data, where="map")
    with pytest.raises(UnusualMapError):
        list(scan_gmeta(data, where="map"))


@pytest.mark.parametrize("text", [f'{{"a": {ENTRY}, "ü": {ENTRY}}}', " {}"])
def test_a_byte_order_mark_is_passed_over(text):
    assert_scanned_like_loaded(text.encode("utf-8-sig"))


def test_unusual_entries_are_marked():
    more = '{"frame_info": [], "meta_data": [], "mine": 1}'
    turned = '{"meta_data": [], "frame_info": []}'
    data = f'{{"a": {ENTRY}, "b": {more}, "c": {turned}}}'.encode()
    assert [entry.regular for entry in scan_gmeta(data, where="map")] == [
        True,
        False,
        False,
    ]


@st.composite
def changed_maps(draw):
    """Draw a map of which some bytes were replaced by others, or by none."""
    data = dump_gmeta(draw(maps))
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, min(start + 4, len(data))))
    return data[:start] + draw(st.binary(max_size=4)) + data[stop:]


@given(st.binary(max_size=60) | changed_maps())
@example(b"{}")
@example(f'{{"a": {ENTRY}, "b": {ENTRY}}}'.encode())
def test_arbitrary_bytes_are_scanned_as_they_are_loaded_or_refused(data):
    try:
        list(scan_gmeta(data, where="map"))
    except (MetaFileError, UnusualMapError):
        return
    assert_scanned_like_loaded(data)
