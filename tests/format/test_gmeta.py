"""Maps byte by byte (rules 7 to 11)."""

from __future__ import annotations

import json
import math
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.gmeta import (
    dump_gmeta,
    join_gmeta,
    load_gmeta,
    may_have_an_entry,
    validate_entry,
)
from gulpio2.format.records import FrameInfo

# What JSON holds, NaN left out because it is not equal to itself.
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
metas = st.dictionaries(st.text(max_size=8), values, max_size=4)
infos = st.tuples(st.integers(0, 2**40), st.integers(0, 3), st.integers(4, 2**20))
entries = st.fixed_dictionaries(
    {
        "frame_info": st.lists(infos.map(list), max_size=4),
        "meta_data": st.lists(metas, min_size=1, max_size=2),
    }
)
maps = st.dictionaries(st.text(max_size=8), entries, max_size=4)


def test_a_map_of_two_items_is_these_bytes():
    meta_dict = {
        "7": {
            "frame_info": [FrameInfo(0, 3, 752), FrameInfo(752, 1, 744)],
            "meta_data": [{"label": "a"}],
        },
        "v2": {"frame_info": [[1496, 0, 380]], "meta_data": [{}]},
    }
    assert dump_gmeta(meta_dict) == (
        b'{"7": '  # id of the first item
        b'{"frame_info": [[0, 3, 752], [752, 1, 744]], '  # loc, pad, length
        b'"meta_data": [{"label": "a"}]}, '  # one object per append
        b'"v2": {"frame_info": [[1496, 0, 380]], "meta_data": [{}]}}'  # no newline
    )


@pytest.mark.parametrize(
    ("meta", "written"),
    [
        ({"x": math.nan}, b'[{"x": NaN}]'),
        ({"x": math.inf, "y": -math.inf}, b'[{"x": Infinity, "y": -Infinity}]'),
        ({"n": None, "t": True}, b'[{"n": null, "t": true}]'),
        ({"ü": "\U0001f600"}, b'[{"\\u00fc": "\\ud83d\\ude00"}]'),
        ({"z": 1, "a": 2}, b'[{"z": 1, "a": 2}]'),
        (
            {7: 1, True: 2, None: 3, 0.5: 4},
            b'[{"7": 1, "true": 2, "null": 3, "0.5": 4}]',
        ),
        ({"shape": (2, 3)}, b'[{"shape": [2, 3]}]'),
        ({"f": 0.1, "big": 1e22, "int": 10**20}, b'[{"f": 0.1, "big": 1e+22, "int": 1'),
    ],
)
def test_metadata_is_written_as_the_original_writes_it(meta, written):
    data = dump_gmeta({"a": {"frame_info": [], "meta_data": [meta]}})
    assert data.startswith(b'{"a": {"frame_info": [], "meta_data": ' + written)


def test_an_empty_chunk_is_an_empty_object():
    assert dump_gmeta({}) == b"{}"
    assert load_gmeta(b"{}", where="meta_0.gmeta") == {}


@given(maps)
def test_a_map_reads_back_as_it_was_written(meta_dict):
    loaded = load_gmeta(dump_gmeta(meta_dict), where="x")
    assert loaded == meta_dict
    assert list(loaded) == list(meta_dict)


@given(maps)
def test_what_was_read_is_written_as_the_same_bytes(meta_dict):
    data = dump_gmeta(meta_dict)
    assert dump_gmeta(load_gmeta(data, where="x")) == data
    assert data == json.dumps(meta_dict).encode()


def test_mappings_keep_their_order_at_every_depth():
    data = b'{"b": {"frame_info": [], "meta_data": [{"z": {"y": 1, "x": 2}, "a": 0}]}}'
    loaded = load_gmeta(data, where="x")
    meta = loaded["b"]["meta_data"][0]
    assert isinstance(meta["z"], OrderedDict)
    assert (list(meta), list(meta["z"])) == (["z", "a"], ["y", "x"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes that are not JSON"),
        (b"{", "1 bytes that are not JSON"),
        (b"\x80\x02}q\x00.", "that are not JSON"),
        (b"[]", "holds no JSON object"),
        (b"null", "holds no JSON object"),
        (b"[" * 100_000, "that are not JSON"),
        (b'{"a": 1, "b": 2, "a": 3}', "id 'a' appears twice"),
        (b'{"a": 1}', "item 'a': is int and no object"),
        (b'{"a": {"meta_data": []}}', "item 'a': has no list (at `$.frame_info`)"),
        (
            b'{"a": {"frame_info": [[0, 0, 4], [4, 0]], "meta_data": []}}',
            "item 'a': [4, 0] is no [loc, pad, length] (at `$.frame_info[1]`)",
        ),
        (
            b'{"a": {"frame_info": [], "meta_data": [1]}}',
            "item 'a': has no list of objects (at `$.meta_data`)",
        ),
        (
            b'{"a": {"frame_info": [], "meta_data": [{}], "gulp2": 3}}',
            "item 'a': is no object (at `$.gulp2`)",
        ),
    ],
)
def test_what_is_no_map_is_an_error_with_the_file_the_item_and_the_place(data, message):
    with pytest.raises(MetaFileError) as caught:
        load_gmeta(data, where="out/meta_3.gmeta")
    assert str(caught.value).startswith("out/meta_3.gmeta: ")
    assert message in str(caught.value)
    assert "gulp2 check" in str(caught.value)


@pytest.mark.parametrize(
    "info",
    [
        [0, 0],
        [0, 0, 4, 0],
        [-4, 0, 4],
        [0, 4, 8],
        [0, -1, 4],
        [0, 3, 2],
        [0.0, 0, 4],
        [0, 0, "4"],
        [0, False, 4],
        [0, 0, None],
        [2**63, 0, 4],
        [2**63 - 4, 0, 4],
        [0, 0, 10**4000],
        "abc",
        None,
    ],
)
def test_three_numbers_that_can_be_no_record_are_refused(info):
    entry = {"frame_info": [[0, 0, 4], info], "meta_data": [{}]}
    fault = validate_entry(entry)
    assert fault is not None
    assert "$.frame_info[1]" in fault


def test_the_last_possible_record_is_accepted():
    entry = {"frame_info": [[2**63 - 5, 0, 4]], "meta_data": [None, {}]}
    assert validate_entry(entry) is None


def test_keys_that_are_not_known_are_let_through():
    entry = {"frame_info": [], "meta_data": [{}], "later": {"a": 1}}
    assert load_gmeta(dump_gmeta({"a": entry}), where="x")["a"] == entry


def test_a_map_joined_of_json_is_that_of_the_entries():
    entries = {
        "a": {"frame_info": [[0, 0, 4]], "meta_data": [{"x": float("nan")}]},
        'ü "b"': {"frame_info": [], "meta_data": []},
    }
    texts = {id_: json.dumps(entry) for id_, entry in entries.items()}
    assert join_gmeta(texts) == dump_gmeta(entries)
    assert join_gmeta({}) == dump_gmeta({})


IDS = st.text('ab/ \\"\x7fé\U0001f600', max_size=3) | st.text(max_size=4)


def spellings(text):
    """Give JSON of a text, each character as it is or as any of its escapes."""

    def ways(char):
        units = char.encode("utf-16-be", "surrogatepass").hex()
        escapes = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        found = [escapes, escapes.upper().replace("U", "u"), json.dumps(char)[1:-1]]
        if char not in '"\\' and char >= " " and not "\ud800" <= char <= "\udfff":
            found.append(char)
        return st.sampled_from(found + ["\\/"] * (char == "/"))

    return st.tuples(*map(ways, text)).map(lambda parts: f'"{"".join(parts)}"')


@given(st.data(), st.lists(IDS, max_size=3), IDS)
def test_a_map_that_has_an_id_may_have_it_however_it_is_written(data, others, id_):
    keys = [data.draw(spellings(key)) for key in (*others, id_)]
    text = ", ".join(f"{key}: {{}}" for key in keys)
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
    written = f"{{{text}}}".encode(encoding)
    assert id_ in json.loads(written)
    assert may_have_an_entry(written, ["nobody", id_])


def test_a_map_that_has_none_of_a_few_ids_is_told():
    written = dump_gmeta({"item1": {"meta_data": [{"label": "ünï"}]}})
    assert not may_have_an_entry(written, ["item", "1", "item11", "label2"])
    assert may_have_an_entry(written, ["item", "item1"])


@pytest.mark.parametrize(
    ("key", "id_"),
    [
        (r'"\u0061/b"', "a/b"),
        (r'"a\/b"', "a/b"),
        (r'"a\u002Fb"', "a/b"),
        (r'"\u00E9"', "é"),
        ('"é"', "é"),
        (r'"\u007f"', "\x7f"),
    ],
)
def test_an_id_that_is_written_with_other_escapes_is_found(key, id_):
    written = f"{{{key}: {{}}}}".encode()
    assert list(json.loads(written)) == [id_]
    assert may_have_an_entry(written, [id_])
