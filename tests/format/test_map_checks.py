"""What the checker knows of maps and of the files beside them."""

from __future__ import annotations

import json
import zlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.checked_json import dump_checked, load_checked
from gulpio2.format.entry import dump_extras, entry_check
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.manifest import Manifest, Run, dump_manifest
from gulpio2.format.map_checks import (
    check_deleted,
    check_failures_file,
    check_manifest,
    check_map,
    note_of_manifest,
)


def make_map(*ids: str, extras: bool = True, **more: Any) -> dict[str, Any]:
    """Make a map of items of two frames."""
    meta_dict: dict[str, Any] = {}
    for number, id_ in enumerate(ids or ("a", "b")):
        infos = [[16 * number, 0, 8], [16 * number + 8, 0, 8]]
        entry: dict[str, Any] = {"frame_info": infos, "meta_data": [{"n": number}]}
        if extras:
            entry["gulp2"] = dump_extras(crc32=[1, 2], **more)
            entry["gulp2"]["check"] = entry_check(id_, entry)
        meta_dict[id_] = entry
    return meta_dict


def codes_of(data: bytes) -> list[tuple[str, str | None]]:
    """Give code and item of the problems of a map."""
    return [(p.code, p.item) for p in check_map(data, "meta_0.gmeta").problems]


def remade(meta_dict: dict[str, Any], id_: str) -> bytes:
    """Write a map after giving an entry the check that fits it."""
    meta_dict[id_]["gulp2"]["check"] = entry_check(id_, meta_dict[id_])
    return dump_gmeta(meta_dict)


# --- maps ---------------------------------------------------------------------------


def test_a_whole_map_has_its_ids_and_records_and_no_problem():
    found = check_map(dump_gmeta(make_map()), "meta_0.gmeta")
    assert (found.problems, found.notes) == ([], [])
    assert found.ids == ["a", "b"]
    assert found.records == [
        (0, 0, 8, "a", 0, 1),
        (8, 0, 8, "a", 1, 2),
        (16, 0, 8, "b", 0, 1),
        (24, 0, 8, "b", 1, 2),
    ]


def test_a_map_of_the_original_is_whole_and_its_frames_are_counted_in_a_note():
    found = check_map(dump_gmeta(make_map(extras=False)), "meta_0.gmeta")
    assert found.problems == []
    assert [record.crc32 for record in found.records] == [None] * 4
    (note,) = found.notes
    assert (note.code, note.file) == ("no-checksums", "meta_0.gmeta")
    assert note.message.startswith("4 of 4 frames have no usable checksum")


def test_an_item_without_frames_is_a_note():
    meta_dict: dict[str, Any] = {"a": {"frame_info": [], "meta_data": [{}]}}
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    assert found.problems == []
    assert [(note.code, note.item) for note in found.notes] == [("empty-item", "a")]


@pytest.mark.parametrize("num_frames", [0, 1])
def test_what_the_original_appended_to_an_item_is_no_problem(num_frames):
    meta_dict = make_map()
    meta_dict["a"]["frame_info"] += [[32, 0, 8]] * num_frames
    meta_dict["a"]["meta_data"].append({"by": "it"})
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    assert found.problems == []
    of_a = [record.crc32 for record in found.records if record.item == "a"]
    assert of_a == [1, 2, None][: 2 + num_frames]
    assert len(found.notes) == num_frames


@pytest.mark.parametrize(
    ("data", "code", "offset", "message"),
    [
        (b"", "empty-map-file", None, "is empty: nothing of its chunk can be read"),
        (b"{", "map-not-json", 1, "is not JSON"),
        (b'{"a": 1;}', "map-not-json", 7, "is not JSON"),
        (b'{"\xff": 1}', "map-not-json", 2, "is not JSON"),
        (b"[" * 100_000, "map-not-json", None, "is not JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "map-not-json", None, "is not JSON"),
        (b"[]", "map-not-object", None, "holds no JSON object but a list"),
        (b"null", "map-not-object", None, "holds no JSON object but a NoneType"),
    ],
)
def test_what_is_no_map_is_named_with_its_place(data, code, offset, message):
    found = check_map(data, "meta_0.gmeta")
    (problem,) = found.problems
    assert (problem.code, problem.file) == (code, "meta_0.gmeta")
    assert message in problem.message
    if offset is not None or code != "map-not-json":
        assert problem.offset == offset


def test_a_repeated_id_is_named_and_all_its_records_are_known():
    data = dump_gmeta(make_map("a", "b")).replace(b'"b": ', b'"a": ')
    found = check_map(data, "meta_0.gmeta")
    assert [(p.code, p.item) for p in found.problems] == [
        ("duplicate-id", "a"),
        ("entry-check", "a"),
    ]
    assert found.problems[0].message == (
        "stands in the map 2 times: this package refuses the map, and GulpIO2 0.0.4 "
        "sees only the last"
    )
    assert found.ids == ["a", "a"]
    assert [record.loc for record in found.records] == [0, 8, 16, 24]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"frame_info": None}, "bad-entry", "(at `$.frame_info`)"),
        ({"frame_info": [[0, 9, 8]]}, "bad-entry", "(at `$.frame_info[0]`)"),
        ({"frame_info": [list(range(999))]}, "bad-entry", "(at `$.frame_info[0]`)"),
        ({"meta_data": {}}, "bad-entry", "(at `$.meta_data`)"),
        ({"gulp2": []}, "bad-entry", "(at `$.gulp2`)"),
    ],
)
def test_an_entry_that_is_none_is_named_and_the_others_are_checked(
    change, code, message
):
    meta_dict = make_map("a", "b")
    meta_dict["a"].update(change)
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    (problem,) = found.problems
    assert (problem.code, problem.item) == (code, "a")
    assert message in problem.message
    assert len(problem.message) <= 400
    assert {record.item for record in found.records} == {"b"}


def test_an_unknown_key_is_named():
    meta_dict = make_map("a")
    meta_dict["a"]["gulp3"] = {}
    (problem,) = check_map(remade(meta_dict, "a"), "meta_0.gmeta").problems
    assert str(problem) == (
        "meta_0.gmeta, item 'a': 'gulp3' is no key of this version of the format "
        "[unknown-key]"
    )


def test_an_entry_without_metadata_is_named():
    meta_dict = make_map("a")
    meta_dict["a"]["meta_data"] = []
    (problem,) = check_map(remade(meta_dict, "a"), "meta_0.gmeta").problems
    assert (problem.code, problem.item) == ("no-metadata", "a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crc32": "AAA"}, "Incorrect padding"),
        ({"crc32": "A" * 24}, "18 bytes of crc32 for 2 frames"),
        ({"time_base": [0, 1], "pts": [[0, 1, 2]]}, "time_base is [0, 1]"),
        ({"time_base": [1, 5], "pts": [[0, 1, 3]]}, "pts holds 3 times for 2 frames"),
        ({"time_base": [1, 5]}, "pts is missing"),
        ({"pts": [[0, 1, 2]]}, "time_base is missing"),
        ({"source": []}, "source is [] and no object"),
    ],
)
def test_extras_that_are_none_are_named(change, message):
    meta_dict = make_map("a", "b")
    meta_dict["a"]["gulp2"].update(change)
    (problem,) = check_map(remade(meta_dict, "a"), "meta_0.gmeta").problems
    assert (problem.code, problem.item) == ("bad-extras", "a")
    assert message in problem.message


def test_extras_without_checksums_are_named():
    meta_dict = make_map("a")
    del meta_dict["a"]["gulp2"]["crc32"]
    (problem,) = check_map(remade(meta_dict, "a"), "meta_0.gmeta").problems
    assert (problem.code, problem.message) == ("bad-extras", "crc32 is missing")


def test_extras_without_check_are_named():
    meta_dict = make_map("a")
    del meta_dict["a"]["gulp2"]["check"]
    (problem,) = check_map(dump_gmeta(meta_dict), "meta_0.gmeta").problems
    assert (problem.code, problem.message) == ("bad-extras", "check is missing")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"n": 0', b'"n": 9'),
        (b"[8, 0, 8]", b"[8, 1, 8]"),
        (b'"a"', b'"A"'),
        (b'"crc32": "AQ', b'"crc32": "AR'),
    ],
)
def test_an_entry_that_was_changed_is_named_by_its_check(old, new):
    data = dump_gmeta(make_map("a", "b"))
    assert data.count(old) >= 1
    codes = codes_of(data.replace(old, new, 1))
    assert codes == [("entry-check", "A" if new == b'"A"' else "a")]


def test_the_checksums_of_an_entry_that_was_changed_are_still_used():
    data = dump_gmeta(make_map("a")).replace(b'"n": 0', b'"n": 9')
    found = check_map(data, "meta_0.gmeta")
    assert [record.crc32 for record in found.records] == [1, 2]
    assert found.notes == []


@pytest.mark.parametrize(
    ("old", "new", "offset"),
    [
        (b", ", b",\t", None),
        (b"[[0", b"[[ 0", None),
        (b"}}", b"}}\n", -1),
        (b'"n"', b'"\\u006e"', None),
        (b'"n": 0', b'"n": 7, "n": 0', None),
    ],
)
def test_bytes_that_change_no_value_are_found_with_their_place(old, new, offset):
    data = dump_gmeta(make_map("a"))
    place = data.rindex(old) if offset == -1 else data.index(old)
    changed = data[:place] + new + data[place + len(old) :]
    assert json.loads(changed) == json.loads(data)
    (problem,) = check_map(changed, "meta_0.gmeta").problems
    assert (problem.code, problem.item) == ("map-not-canonical", None)
    assert problem.offset is not None
    assert place <= problem.offset <= place + len(new)


def test_a_map_that_another_program_wrote_may_have_its_own_layout():
    data = json.dumps(make_map(extras=False), indent=2).encode()
    assert codes_of(data) == []


def test_every_changed_byte_of_a_map_is_found():
    data = dump_gmeta(make_map("ü", "b", source={"rate": [30, 1]}))
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            assert codes_of(bytes(damaged)), damaged[max(0, place - 9) : place + 9]


def test_every_cut_of_a_map_is_found():
    data = dump_gmeta(make_map("a", "b"))
    assert all(codes_of(data[:length]) for length in range(len(data)))


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from(["frame_info", "meta_data", "gulp2", None]),
    st.sampled_from(["crc32", "pts", "time_base", "source", "check", None]),
)
def test_whatever_json_a_map_holds_it_can_be_checked(value, key, extra):
    meta_dict = make_map("a", "b")
    if key is None:
        meta_dict["a"] = value
    elif key == "gulp2" and extra is not None:
        meta_dict["a"]["gulp2"][extra] = value
    else:
        meta_dict["a"][key] = value
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    assert found.ids == ["a", "b"]
    assert all(problem.item == "a" for problem in found.problems)


@pytest.mark.parametrize("depth", [50, 300, 900, 985, 990, 995, 1000, 5000])
def test_a_map_nested_deeply_is_a_problem_and_no_crash(depth):
    nested = b"[" * depth + b"]" * depth
    data = dump_gmeta(make_map("a")).replace(b'"n": 0', b'"n": ' + nested)
    assert codes_of(data) != []


@pytest.mark.parametrize(
    ("ticks", "frame"),
    [
        ([0], None),
        ([0, 1, 2, 3], None),
        ([5, 5, 5, 6], None),  # at one time is not back
        ([-3, -2, 7], None),
        ([2, 1, 0], 1),
        ([46, 47, 48, 0, 1, 2], 3),
        ([0, 40, 80, 0, 40, 80, 0, 40], 3),
        ([1, 3, 2], 2),
        ([0, 0, 0, -1], 3),
        ([10**400, 10**400 - 1], 1),
    ],
)
def test_an_item_whose_times_go_back_is_noted_with_the_first_frame(ticks, frame):
    infos = [[8 * number, 0, 8] for number in range(len(ticks))]
    entry: dict[str, Any] = {"frame_info": infos, "meta_data": [{}]}
    crc32 = range(len(ticks))
    entry["gulp2"] = dump_extras(crc32=crc32, time_base=Fraction(1, 25), pts=ticks)
    data = remade({"a": entry}, "a")
    found = check_map(data, "meta_0.gmeta")
    assert found.problems == []
    notes = [(note.code, note.item, note.frame) for note in found.notes]
    assert notes == ([] if frame is None else [("times-go-back", "a", frame)])


def test_of_times_that_do_not_count_nothing_is_noted():
    meta_dict = make_map("a", time_base=Fraction(1, 25), pts=[1, 0])
    meta_dict["a"]["frame_info"].append([16, 0, 8])  # by GulpIO2 0.0.4
    meta_dict["a"]["meta_data"].append({})
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    assert found.problems == []
    assert [note.code for note in found.notes] == ["no-checksums"]
    meta_dict["a"]["gulp2"]["pts"] = [[1, "x"]]
    found = check_map(dump_gmeta(meta_dict), "meta_0.gmeta")
    assert "times-go-back" not in [note.code for note in found.notes]


# --- the manifest -------------------------------------------------------------------

RUNS = (Run("A", {}, {}, "1", chunks=(0, 1)), Run("A", {}, {}, "1", chunks=(2,)))
MANIFEST = dump_manifest(Manifest(runs=RUNS))


def test_a_whole_manifest_whose_chunks_are_there_has_no_problem():
    assert check_manifest(MANIFEST, {0, 1, 2, 3}) == []


def test_a_chunk_that_the_manifest_tells_of_and_that_is_gone_is_named():
    (problem,) = check_manifest(MANIFEST, {0, 2})
    assert (problem.code, problem.file) == ("missing-chunk", "data_1.gulp")


def test_a_damaged_manifest_is_named():
    (problem,) = check_manifest(MANIFEST.replace(b'"A"', b'"B"', 1), {0, 1, 2})
    assert (problem.code, problem.file) == ("bad-manifest", "gulp.json")
    assert problem.message.startswith("the content does not fit its check")


def test_a_manifest_of_another_version_is_not_called_damaged():
    body = load_checked(MANIFEST, where="", advice="")
    newer = dump_checked({**body, "format_version": 2})
    (problem,) = check_manifest(newer, set())
    assert (problem.code, problem.file) == ("unknown-version", "gulp.json")
    assert problem.message.startswith("format version 2; this package reads 1")


def test_files_without_a_check_are_compared_with_the_manifest():
    labels = b'{"a": 0}'
    files = {"label2idx.json": f"{zlib.crc32(labels):08x}"}
    data = dump_manifest(Manifest(files=files))
    assert check_manifest(data, set(), {"label2idx.json": labels}) == []
    for others in ({"label2idx.json": b'{"a": 1}'}, {}):
        (problem,) = check_manifest(data, set(), others)
        assert (problem.code, problem.file) == ("changed-file", "label2idx.json")
        assert problem.message.startswith("is not as the last ingest left it")
        (problem,) = check_manifest(data, set(), others, is_unfinished=True)
        assert (problem.code, problem.file) == ("changed-file", "label2idx.json")
        assert "the last finished ingest left it. The one that is" in problem.message


# --- deleted items ------------------------------------------------------------------


def test_entries_of_deleted_items_are_checked_like_others():
    meta_dict = make_map("a", "b")
    meta_dict["b"]["meta_data"] = [{"n": 9}]
    found = check_deleted(meta_dict.items(), "deleted.json")
    assert [record.item for record in found.records] == ["a", "a", "b", "b"]
    (problem,) = found.problems
    assert (problem.code, problem.file) == ("entry-check", "deleted.json")


# --- labels and failures ------------------------------------------------------------


def test_failed_items_are_counted_in_a_note():
    line = b'{"position": 1, "id": "a", "error": "E", "message": "m"}\n'
    problems, notes = check_failures_file(line * 3)
    assert problems == []
    assert str(notes[0]) == (
        "failures.jsonl: 3 items could not be ingested; the file names them "
        "[failed-items]"
    )
    assert check_failures_file(b"") == ([], [])


@pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_list_of_failures_is_named_with_the_line(line):
    problems, notes = check_failures_file(b'{"id": "a"}\n' + line + b"\n")
    assert notes == []
    assert str(problems[0]) == (
        "failures.jsonl: line 2 is no JSON object [bad-failures]"
    )


@pytest.mark.parametrize(("chunks", "is_told"), [({0}, True), ({0, 1}, False)])
def test_labels_of_a_directory_that_another_program_extended_may_change(
    chunks, is_told
):
    # GulpIO2 0.0.4 adds chunks and writes the labels anew, without the manifest.
    run = Run("A", {}, {}, "1.0", (0,))
    manifest = dump_manifest(Manifest((run,), {}, {"label2idx.json": "00000000"}))
    labels = {"label2idx.json": b"{}"}
    found = check_manifest(manifest, chunks, labels)
    assert [p.code for p in found] == ["changed-file"] * is_told
    missing = check_manifest(manifest, chunks, {})
    assert [p.code for p in missing] == ["changed-file"]
    noted = note_of_manifest(manifest, chunks, b"{}")
    assert [p.code for p in noted] == ["other-labels"] * (not is_told)
    assert note_of_manifest(manifest, chunks, None) == []


def test_a_manifest_in_another_form_is_told_and_what_it_says_is_checked():
    for data in (MANIFEST.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + MANIFEST):
        form, missing = check_manifest(data, {0, 2})
        assert (form.code, missing.code) == ("bad-manifest", "missing-chunk")
        assert form.message.startswith("its content is what was written, and its form")
